"""Known mechanisms: what they promise is what their matrix gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import dlaplace

import optmech as om
from optmech import mechanisms
from optmech.spaces.observables import Regions

LINE = om.Domain.range(7)
EUCLIDEAN = om.distances.euclidean()


def test_randomized_response_by_hand() -> None:
    m = mechanisms.randomized_response(om.Domain("abc"), "ln 4")
    np.testing.assert_allclose(m.matrix, (np.ones((3, 3)) + 3 * np.eye(3)) / 6, rtol=1e-15)
    assert om.measures.epsilon(m) == pytest.approx(math.log(4), rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 50.0, 800.0])
def test_randomized_response_at_any_epsilon(epsilon: float) -> None:
    m = mechanisms.randomized_response(LINE, epsilon)
    loss = om.measures.expected_loss(m, om.Prior.uniform(LINE), om.distances.hamming())
    assert loss == pytest.approx(6 / (math.exp(min(epsilon, 700)) + 6), rel=1e-12, abs=1e-300)


def test_rappor_flips_bits_independently() -> None:
    m = mechanisms.rappor(om.Domain.range(4), 2.0)
    flip = 1 / (1 + math.e)
    for o, word in enumerate(m.observables.labels):
        for s in range(4):
            truth = [int(k == s) for k in range(4)]
            wrong = sum(x != y for x, y in zip(word, truth, strict=True))
            assert m.matrix[s, o] == pytest.approx(
                flip**wrong * (1 - flip) ** (4 - wrong), rel=1e-13
            )
    assert om.measures.epsilon(m) == pytest.approx(2.0, rel=1e-13)
    with pytest.raises(om.OptmechError, match=r"2\^13 observables"):
        mechanisms.rappor(om.Domain.range(13), 1.0)


def test_geometric_is_the_clamped_discrete_laplace() -> None:
    domain = om.Domain([0, 1, 2, 3], [[0.0], [0.5], [1.0], [1.5]])
    m = mechanisms.geometric(domain, 1.4)
    noise = dlaplace(0.7)
    for s in range(4):
        for o in (1, 2):
            assert m.matrix[s, o] == pytest.approx(noise.pmf(o - s), rel=1e-12)
        assert m.matrix[s, 0] == pytest.approx(noise.cdf(-s), rel=1e-12)
    assert om.measures.epsilon(m, EUCLIDEAN) == pytest.approx(1.4, rel=1e-12)


@pytest.mark.parametrize("points", [[0, 1, 3], [2, 1, 0], [[0, 0], [1, 0], [2, 0]]])
def test_geometric_needs_a_line(points: list[float]) -> None:
    with pytest.raises(om.ProblemError, match="equally spaced"):
        mechanisms.geometric(om.Domain("abc", points), 1.0)


def test_exponential_keeps_epsilon_per_utility_distance() -> None:
    """For any utility: max over y of |u(x, y) − u(x', y)| (Kawamoto and Murakami, ESORICS 2019,
    Def. 2), of which a metric is its own."""
    rng = np.random.default_rng(3)
    for size in (2, 5, 9):
        places = om.Domain.range(size)
        loss = rng.uniform(0, 4, (size, size))
        apart = np.abs(loss[:, None] - loss).max(axis=2)
        m = mechanisms.exponential(places, 1, om.distances.matrix(loss))
        assert om.measures.tightest(m, om.distances.matrix(apart)).value <= 1 + 1e-12
        metric = om.distances.euclidean()(places, places)
        np.testing.assert_allclose(np.abs(metric[:, None] - metric).max(axis=2), metric)


def test_exponential_halves_epsilon() -> None:
    grid = om.Grid(3, 4)
    m = mechanisms.exponential(grid, 1.2)
    d = EUCLIDEAN(grid, grid)
    expected = np.exp(-0.6 * d)
    np.testing.assert_allclose(m.matrix, expected / expected.sum(axis=1, keepdims=True), rtol=1e-13)
    assert 0.6 < om.measures.epsilon(m, EUCLIDEAN) <= 1.2


def test_restricted_laplace_never_errs_beyond_its_radius() -> None:
    grid = om.Grid(5, 5)
    m = mechanisms.restricted_laplace(grid, 0.8, 1.5)
    d = EUCLIDEAN(grid, grid)
    assert (m.matrix[d > 1.5] == 0).all()
    assert (m.matrix[d <= 1.5] > 0).all()
    corner = np.array([1, math.exp(-0.8), math.exp(-0.8), math.exp(-0.8 * math.sqrt(2))])
    assert m.matrix[0, 0] == pytest.approx(1 / corner.sum(), rel=1e-14)
    assert om.measures.epsilon(m) == math.inf


def test_restricted_laplace_underflows_to_the_nearest() -> None:
    near = om.Domain(["x", "y"], [[3.0], [9.0]])
    m = mechanisms.restricted_laplace(om.Domain(["s"], [[0.0]]), 1000.0, 20.0, observables=near)
    assert m.matrix.tolist() == [[1.0, 0.0]]
    with pytest.raises(om.ProblemError, match="Use at least 3"):
        mechanisms.restricted_laplace(om.Domain(["s"], [[0.0]]), 1.0, 2.0, observables=near)


def polar_monte_carlo(grid: om.Grid, start: int, epsilon: float, count: int) -> np.ndarray:
    """Planar Laplace noise by its radius, Gamma(2, 1/ε), clamped to the grid."""
    rng = np.random.default_rng(9)
    radius, angle = rng.gamma(2, 1 / epsilon, count), rng.uniform(0, 2 * np.pi, count)
    noisy = grid.points[start] + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    inside = np.clip(noisy, 0, [grid.columns * grid.cell[0], grid.rows * grid.cell[1]])
    return np.bincount(grid.locate(inside), minlength=len(grid)) / count


@pytest.mark.parametrize("start", [0, 7, 11])
def test_planar_laplace_against_monte_carlo(start: int) -> None:
    grid = om.Grid(3, 4, (0.7, 1.1))
    m = mechanisms.planar_laplace(grid, 1.3)
    count = 400_000
    seen = polar_monte_carlo(grid, start, 1.3, count)
    p = m.matrix[start]
    assert (np.abs(seen - p) < 5 * np.sqrt(p / count)).all()


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 1.0, 6.0])
def test_planar_laplace_masses_by_cubature(epsilon: float) -> None:
    """Inner cells that the origin is not in, against adaptive cubature of the density."""
    from scipy.integrate import dblquad

    grid = om.Grid(5, 5, (1.0, 0.6))
    m = mechanisms.planar_laplace(grid, epsilon)
    for o in (6, 8, 18):
        x, y = grid.points[o] - grid.points[6]
        if o == 6:
            quarter, _ = dblquad(
                lambda v, u: epsilon**2 / (2 * math.pi) * math.exp(-epsilon * math.hypot(u, v)),
                0, 0.5, 0, 0.3, epsabs=1e-11, epsrel=1e-8,
            )  # fmt: skip
            mass = 4 * quarter
        else:
            mass, _ = dblquad(
                lambda v, u: epsilon**2 / (2 * math.pi) * math.exp(-epsilon * math.hypot(u, v)),
                x - 0.5, x + 0.5, y - 0.3, y + 0.3, epsabs=0, epsrel=1e-11,
            )  # fmt: skip
        assert m.matrix[6, o] == pytest.approx(mass, rel=1e-8)


def test_planar_laplace_keeps_its_promise() -> None:
    grid = om.Grid(6, 7, (0.5, 0.8))
    for epsilon in (1e-6, 0.3, 4.0, 40.0):
        m = mechanisms.planar_laplace(grid, epsilon)
        measured = om.measures.epsilon(m, EUCLIDEAN)
        assert measured <= epsilon * (1 + 1e-9)
        assert measured > 0.6 * epsilon


def test_planar_noise_of_a_row_of_one_cell() -> None:
    one = om.Grid(1, 1)
    assert mechanisms.planar_laplace(one, 1.0).matrix.tolist() == [[1.0]]
    assert mechanisms.planar_gaussian(one, 1.0).matrix.tolist() == [[1.0]]


def test_planar_gaussian_is_a_product() -> None:
    from scipy.stats import norm

    grid = om.Grid(3, 4, (0.7, 1.1))
    m = mechanisms.planar_gaussian(grid, 0.9)
    edges = [-math.inf, 0.7, 1.4, 2.1, math.inf]
    lines = [-math.inf, 1.1, 2.2, math.inf]
    for s in (0, 6):
        x, y = grid.points[s]
        across = np.diff(norm(x, 0.9).cdf(edges))
        up = np.diff(norm(y, 0.9).cdf(lines))
        np.testing.assert_allclose(m.matrix[s].reshape(3, 4), np.outer(up, across), rtol=1e-12)


def test_regions_of_a_grid_are_treated_like_the_grid() -> None:
    grid = om.Grid(3, 3, (1.0, 0.5))
    boxes = [[c * 1.0, r * 0.5, (c + 1) * 1.0, (r + 1) * 0.5] for r in range(3) for c in range(3)]
    regions = Regions([(r, c, "") for r in range(3) for c in range(3)], boxes)
    for make in (mechanisms.planar_laplace, mechanisms.planar_gaussian):
        np.testing.assert_allclose(make(regions, 1.1).matrix, make(grid, 1.1).matrix, rtol=1e-11)


def test_planar_noise_needs_cells() -> None:
    with pytest.raises(om.ProblemError, match="no rectangular cells"):
        mechanisms.planar_laplace(LINE, 1.0)  # type: ignore[arg-type]
    with pytest.raises(om.ProblemError, match="must be above 0"):
        mechanisms.planar_gaussian(om.Grid(2, 2), 0.0)
    with pytest.raises(om.ProblemError, match="above 0"):
        mechanisms.planar_laplace(om.Grid(2, 2), 0.0)


FAR = om.Domain(range(4), points=[[0.0, 0.0], [1.0, 0.0], [800.0, 0.0], [5000.0, 0.0]])


@pytest.mark.parametrize("epsilon", [1.0, 9.0])
def test_promises_hold_where_weights_underflow(epsilon: float) -> None:
    """A zero beside a positive number would be no privacy at all."""
    distance = om.distances.euclidean()
    line = om.Domain.range(100)
    for m in (om.mechanisms.geometric(line, epsilon), om.mechanisms.exponential(FAR, epsilon)):
        assert m.matrix.min() > 0
        assert om.measures.epsilon(m, distance) <= epsilon * (1 + 1e-12)
    grid = om.Grid(1, 40, cell=(50.0, 50.0))
    assert om.measures.epsilon(om.mechanisms.planar_laplace(grid, epsilon), distance) <= epsilon * (
        1 + 1e-9
    )
    labels = om.Domain(range(12))
    for rate in (690.0, 2000.0):
        assert om.measures.epsilon(om.mechanisms.randomized_response(labels, rate)) <= rate
        assert om.measures.epsilon(om.mechanisms.rappor(om.Domain("abcdef"), rate)) <= rate
