"""The loss of a trace against the two Gaussians themselves, brute force and closed forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from optmech_traces.gaussian import balls
from optmech_traces.gaussian.balls import Enclosure

import optmech as om
from optmech import traces

TEN = np.arange(10.0)
EVEN = range(0, 10, 2)


def released(sigma: np.ndarray, noise: np.ndarray, secrets: list[int]) -> tuple[np.ndarray, ...]:
    """Mean map and covariance of the release given the secrets, in floats, from the definition."""
    rest = [k for k in range(len(sigma)) if k not in secrets]
    gain = np.linalg.solve(sigma[np.ix_(secrets, secrets)], sigma[np.ix_(secrets, rest)]).T
    mean = np.zeros((len(sigma), len(secrets)))
    mean[secrets, range(len(secrets))] = 1.0
    mean[rest] = gain
    covariance = noise.copy()
    covariance[np.ix_(rest, rest)] += (
        sigma[np.ix_(rest, rest)] - gain @ sigma[np.ix_(secrets, rest)]
    )
    return mean, covariance


def quadratic(trace: traces.GaussianPrior, noise: np.ndarray, secrets: list[int]) -> np.ndarray:
    mean, covariance = released(trace.covariance, noise, secrets)
    return mean.T @ np.linalg.solve(covariance, mean)


@pytest.mark.parametrize("order", [1.0, 2.0, 7.3])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_expected_gain_of_the_right_hypothesis(order: float, share: float) -> None:
    """Posterior log-odds minus prior ones, integrated over the releases under the truth; under the
    other hypothesis, which is how TP19 Corollary 1 prints it, never above 0."""
    trace = traces.GaussianPrior([0.0, 0.7], traces.rbf(1.1, 1.7))
    loss = traces.privacy_loss(trace, 0.8, [0], 1.5, order)
    mean, covariance = released(trace.covariance, 0.8 * np.eye(2), [0])
    axis = np.linspace(-14, 14, 561)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    density = []
    for at in (points - mean @ loss.hypothesis, points):
        square = np.einsum("ni,ij,nj->n", at, np.linalg.inv(covariance), at)
        density.append(np.exp(-square / 2) / (2 * math.pi * math.sqrt(np.linalg.det(covariance))))
    posterior = share * density[0] / (share * density[0] + (1 - share) * density[1])
    gain = np.log(posterior) - np.log1p(-posterior) - math.log(share / (1 - share))
    cell = (axis[1] - axis[0]) ** 2
    true, false = (float((side * gain).sum()) * cell for side in density)
    lower, upper = loss.expected_gain
    assert true == pytest.approx(lower, rel=1e-6)
    assert lower <= upper <= lower * (1 + 1e-12)
    assert lower <= loss.upper / order <= upper
    assert false == pytest.approx(-true, rel=1e-6)


@pytest.mark.parametrize("order", [1.5, 3.0])
def test_formula_3_is_the_renyi_divergence_of_the_two_gaussians(order: float) -> None:
    """Integrated on a grid over the three releases, for isotropic noise."""
    trace = traces.GaussianPrior([0.0, 0.7, 2.0], traces.rbf(1.1, 1.7))
    variance, delta = 0.8, np.array([1.0, -1.0])
    mean, covariance = released(trace.covariance, variance * np.eye(3), [0, 2])
    shift = mean @ delta
    axis = np.linspace(-16, 16, 129)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    precision = np.linalg.inv(covariance)
    norm = math.log((2 * math.pi) ** 3 * np.linalg.det(covariance)) / 2
    there = -np.einsum("ni,ij,nj->n", points - shift, precision, points - shift) / 2 - norm
    here = -np.einsum("ni,ij,nj->n", points, precision, points) / 2 - norm
    integral = float(np.exp(order * there + (1 - order) * here).sum()) * (axis[1] - axis[0]) ** 3
    direct = math.log(integral) / (order - 1)
    assert direct == pytest.approx(
        order / 2 * delta @ quadratic(trace, variance * np.eye(3), [0, 2]) @ delta, rel=1e-9
    )
    # the hypothesis found is at least as bad as this one, and evaluates to the bound
    loss = traces.privacy_loss(trace, variance, [0, 2], 1.0, order)
    worst = loss.hypothesis
    own = order / 2 * worst @ quadratic(trace, variance * np.eye(3), [0, 2]) @ worst
    assert own == pytest.approx(loss.upper, rel=1e-9)
    assert loss.upper >= direct * (1 - 1e-9)


@given(st.integers(0, 10**6), st.integers(2, 7), st.booleans())
def test_bounds_enclose_brute_force(seed: int, size: int, ball: bool) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.3, 1.5, size + 2))
    trace = traces.GaussianPrior(times, traces.matern(rng.uniform(0.5, 3), 1.5))
    root = rng.standard_normal((size + 2, size + 2))
    noise = root @ root.T + 0.1 * np.eye(size + 2)
    secrets = sorted(rng.choice(size + 2, size, replace=False).tolist())
    matrix = quadratic(trace, noise, secrets)
    radius, order = float(rng.uniform(0.1, 3)), float(rng.uniform(1, 9))
    loss = traces.privacy_loss(trace, noise, secrets, radius, order, ball=ball)
    if ball:
        expected = float(np.linalg.eigvalsh(matrix)[-1]) * size
        assert np.linalg.norm(loss.hypothesis) == pytest.approx(radius * math.sqrt(size))
    else:
        expected = max(
            float(np.array(x) @ matrix @ np.array(x))
            for x in itertools.product((-1.0, 1.0), repeat=size)
        )
        assert set(np.abs(loss.hypothesis)) == {radius}
    expected *= order / 2 * radius**2
    assert loss.lower <= loss.upper
    assert loss.lower == pytest.approx(expected, rel=1e-7)
    assert loss.upper == pytest.approx(expected, rel=1e-7)


@given(st.integers(0, 10**6), st.integers(2, 12))
def test_large_boxes_are_bounded_from_both_sides(seed: int, size: int) -> None:
    """The route for large boxes, on boxes that brute force can do."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, int(rng.integers(1, size + 1))))
    matrix = root @ root.T
    best, exact = balls.best_vertex(matrix)
    assert best @ matrix @ best == pytest.approx(exact, rel=1e-12)
    point, upper = balls._wide(Enclosure(matrix, np.zeros_like(matrix)))
    found = point @ matrix @ point
    assert found <= exact * (1 + 1e-12)
    assert float(upper.lower()) >= exact * (1 - 1e-12)
    # Nesterov: the relaxation of a semidefinite form is within pi/2
    assert float(upper.upper()) <= exact * math.pi / 2 * (1 + 1e-6)


def test_twenty_six_secrets_are_enclosed() -> None:
    trace = traces.GaussianPrior(np.arange(60.0), traces.rbf(1.5))
    loss = traces.privacy_loss(trace, 0.3, range(0, 52, 2), 1.0, 2.0)
    assert 0 < loss.lower <= loss.upper <= loss.lower * 1.05
    ball = traces.privacy_loss(trace, 0.3, range(0, 52, 2), 1.0, 2.0, ball=True)
    assert loss.upper <= ball.upper


def test_independent_points_lose_what_noise_on_each_loses() -> None:
    trace = traces.GaussianPrior(TEN, traces.white(1.0))
    loss = traces.privacy_loss(trace, 0.25, EVEN, 0.5, 3.0)
    assert loss.upper == pytest.approx(3 / 2 * 5 * 0.5**2 / 0.25, rel=1e-12)
    fifty = traces.GaussianPrior(np.arange(50.0), traces.white(1.0))
    loss = traces.privacy_loss(fifty, 1.0, range(50), 1.0, 2.0)
    assert loss.upper == pytest.approx(50, rel=1e-12)
    assert loss.upper - loss.lower <= 1e-10


def test_one_position_for_all_times_is_averaged() -> None:
    """A constant kernel: d releases of one position, precision d/σ²; Σ itself is singular."""
    trace = traces.GaussianPrior(TEN, traces.constant(4.0))
    loss = traces.privacy_loss(trace, 0.5, [3], 1.0, 2.0)
    assert loss.upper == pytest.approx(10 / 0.5, rel=1e-12)
    with pytest.raises(om.ProblemError, match="determine each other"):
        traces.privacy_loss(trace, 0.5, [3, 4], 1.0, 2.0)


def test_axes_add_up_and_coupled_axes_do_not_decouple() -> None:
    one = traces.GaussianPrior(TEN, traces.rbf(1.0))
    two = traces.GaussianPrior(TEN, traces.rbf(1.0), dimensions=2)
    for ball in (False, True):
        single = traces.privacy_loss(one, 1.0, EVEN, 1.0, 2.0, ball=ball)
        double = traces.privacy_loss(two, np.eye(10), EVEN, 1.0, 2.0, ball=ball)
        assert double.upper == pytest.approx(2 * single.upper, rel=1e-10)
        assert double.hypothesis.shape == (5, 2)
    coupled = traces.GaussianPrior(TEN[:4], traces.rbf(1.0), cross=[[1.0, 0.6], [0.6, 2.0]])
    matrix = quadratic(coupled, np.eye(8), [0, 1, 4, 5])
    best = max(
        float(np.array(x) @ matrix @ np.array(x)) for x in itertools.product((-1.0, 1.0), repeat=4)
    )
    assert traces.privacy_loss(coupled, 1.0, [0, 2], 1.0, 2.0).upper == pytest.approx(best)


@pytest.mark.parametrize("scale", [20.0, 200.0, 1000.0])
def test_smooth_kernels_are_enclosed_where_floats_give_nothing(scale: float) -> None:
    trace = traces.GaussianPrior(np.arange(50.0), traces.rbf(scale))
    secrets = [0, 12, 25, 37, 49]
    loss = traces.privacy_loss(trace, 1.0, secrets, 1.0, 2.0)
    assert 0 < loss.upper - loss.lower < 1e-9 * loss.upper
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(400):
        k = mpmath.matrix(50, 50)
        for i in range(50):
            for j in range(50):
                k[i, j] = mpmath.exp(-(mpmath.mpf(i - j) ** 2) / (2 * mpmath.mpf(scale) ** 2))
        pick = [[k[i, j] for j in secrets] for i in secrets]
        cross = mpmath.matrix([[k[i, j] for j in secrets] for i in range(50)])
        gain = cross * mpmath.matrix(pick) ** -1
        rest = k - gain * cross.T + mpmath.eye(50)
        x = mpmath.matrix(loss.hypothesis.tolist())
        value = ((gain * x).T * mpmath.lu_solve(rest, gain * x))[0]
    assert loss.lower * (1 - 1e-12) <= float(value) <= loss.upper * (1 + 1e-12)


def test_conversion_to_approximate_privacy() -> None:
    from scipy.stats import norm

    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    loss = traces.privacy_loss(trace, 4.0, EVEN, 1.0, 2.0)
    mu = math.sqrt(2 * loss.upper / 2.0)
    for epsilon in (0.0, 0.5, 3.0):
        exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
            -mu / 2 - epsilon / mu
        )
        assert loss.delta(epsilon) == pytest.approx(exact, rel=1e-9)
        assert loss.epsilon(loss.delta(epsilon)) == pytest.approx(epsilon, abs=1e-9)
        # a single order of Rényi divergence implies less
        assert traces.renyi_delta(loss.upper, 2.0, epsilon) >= loss.delta(epsilon)
    assert loss.delta("ln 3") == pytest.approx(loss.delta(math.log(3)), rel=1e-12)
    assert loss.delta("ln 3") >= loss.delta(math.nextafter(math.log(3), 2)), "never less than at ε"
    assert loss.epsilon("1/1000") == loss.epsilon(Fraction(1, 1000))
    # the implied δ is the least value of E[(1 - e^(ε-x))+] bounds over e^((λ-1)x): its supremum
    x = np.linspace(1.0, 40.0, 400_001)
    ratio = np.exp(-x * 2.0) * (1 - np.exp(1.0 - x))
    assert traces.renyi_delta(0.3, 3.0, 1.0) == pytest.approx(math.exp(0.6) * ratio.max(), rel=1e-6)
    back = traces.renyi_epsilon(0.3, 3.0, 1e-3)
    assert traces.renyi_delta(0.3, 3.0, back) == pytest.approx(1e-3, rel=1e-9)


@given(st.integers(0, 10**6))
def test_local_search_is_locally_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((9, 9))
    matrix = root @ root.T
    vectors, dual = balls.diagonal_dual(matrix)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0)
    assert dual.sum() == pytest.approx(float(np.einsum("ij,ij->", matrix @ vectors, vectors)))
    point = balls.local_maximum(matrix, vectors)
    value = point @ matrix @ point
    for flips in itertools.combinations(range(9), 2):
        other = point.copy()
        other[list(flips)] *= -1
        assert other @ matrix @ other <= value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"secrets": [10]}, r"secrets\[0\]"),
        ({"secrets": [-1]}, r"secrets\[0\]"),
        ({"secrets": [1, 1]}, r"secrets\[1\]"),
        ({"secrets": []}, "secrets"),
        ({"secrets": [1.5]}, r"secrets\[0\]"),
        ({"secrets": None}, "secrets"),
        ({"trace": 3}, "trace"),
        ({"radius": 0.0}, "radius"),
        ({"radius": -1.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"radius": "far"}, "radius"),
        ({"order": 0.5}, "order"),
        ({"order": math.inf}, "order"),
        ({"noise_covariance": -1.0}, "noise_covariance"),
        ({"noise_covariance": np.eye(9)}, "noise_covariance"),
        ({"noise_covariance": np.ones((10, 10))}, "noise_covariance"),
        ({"noise_covariance": np.triu(np.ones((10, 10)))}, "noise_covariance"),
        ({"noise_covariance": 0.0}, "secrets"),
    ],
)
def test_bad_arguments_are_placed(arguments: dict[str, object], where: str) -> None:
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    good: dict[str, object] = {
        "noise_covariance": 1.0, "secrets": [0, 2], "radius": 1.0, "order": 2.0,
    }  # fmt: skip
    with pytest.raises(om.ProblemError, match=f"^{where}"):
        traces.privacy_loss(**{"trace": trace, **good, **arguments})  # type: ignore[arg-type]
