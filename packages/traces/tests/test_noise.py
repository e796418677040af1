"""The least noise against closed forms, a second solver and isotropic noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech import traces

TEN = np.arange(10.0)
EVEN = list(range(0, 10, 2))


def test_independent_points_are_hidden_one_by_one() -> None:
    """Σ = I: noise λ r² m/(2ε) on the secrets and the floor elsewhere."""
    trace = traces.GaussianPrior(TEN, traces.white(1.0))
    design = traces.optimal_noise(trace, 0.5, [EVEN], 1.0, 2.0)
    expected = np.zeros(10)
    expected[EVEN] = 2 * 5 / (2 * 0.5)
    np.testing.assert_allclose(np.diag(design.covariance), expected, atol=2e-5)
    assert design.trace == pytest.approx(50, rel=2e-6)
    assert design.lower_bound == pytest.approx(50, rel=1e-9)
    assert design.isotropic == pytest.approx(100, rel=1e-9)


def test_a_single_secret_has_a_closed_form() -> None:
    """A = b bᵀ/κ − C: its positive part in floats, on a well-conditioned kernel."""
    trace = traces.GaussianPrior(TEN, traces.ornstein_uhlenbeck(1.0))
    k = trace.covariance
    b = k[:, 3] / k[3, 3]
    c = k - np.outer(k[:, 3], k[:, 3]) / k[3, 3]
    values = np.linalg.eigvalsh(np.outer(b, b) * 2.0 / (2 * 0.7) - c)
    design = traces.optimal_noise(trace, 0.7, [3], 1.0, 2.0)
    assert design.trace == pytest.approx(values[values > 0].sum(), rel=1e-5)
    assert design.lower_bound == pytest.approx(values[values > 0].sum(), rel=1e-9)
    assert design.gap < 1e-5


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(["full", "diagonal"]))
def test_promises_are_kept_and_bounded(seed: int, structure: str) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.3, 1.5, 6))
    trace = traces.GaussianPrior(times, traces.rbf(rng.uniform(0.4, 2.5)))
    count = int(rng.integers(1, 4))
    sets = [rng.choice(6, int(rng.integers(1, 4)), replace=False).tolist() for _ in range(count)]
    epsilon = float(rng.uniform(0.1, 3))
    design = traces.optimal_noise(trace, epsilon, sets, 1.0, 2.0, structure=structure)  # type: ignore[arg-type]
    assert design.loss <= epsilon
    for secrets in sets:
        again = traces.privacy_loss(trace, design.covariance, secrets, 1.0, 2.0, ball=True)
        box = traces.privacy_loss(trace, design.covariance, secrets, 1.0, 2.0)
        assert box.upper <= again.upper * (1 + 1e-12)
        assert again.upper <= epsilon
    assert design.lower_bound <= design.trace <= design.isotropic * (1 + 1e-6)
    assert design.gap < 2e-5
    sigma = max(traces.calibrate(trace, epsilon, s, 1.0, 2.0, ball=True) for s in sets)
    assert design.isotropic == pytest.approx(6 * sigma**2, rel=1e-7)


def test_a_second_solver_and_the_schur_complement_agree() -> None:
    """The program of the literature, written out in cvxpy with SCS, finds the same trace."""
    cp = pytest.importorskip("cvxpy")
    trace = traces.GaussianPrior(np.arange(6.0), traces.rbf(1.0))
    sets = [[0, 3], [1, 2], [5]]
    design = traces.optimal_noise(trace, 1.0, sets, 1.0, 2.0)
    k = trace.covariance
    noise = cp.Variable((6, 6), PSD=True)
    bounds = []
    for s in sets:
        gain = k[:, s] @ np.linalg.inv(k[np.ix_(s, s)])
        rest = k - gain @ k[s]
        kappa = 2 * 1.0 / (2 * len(s))
        blocks = cp.bmat([[kappa * np.eye(len(s)), gain.T], [gain, noise + (rest + rest.T) / 2]])
        bounds.append(blocks >> 0)
    program = cp.Problem(cp.Minimize(cp.trace(noise)), bounds)
    program.solve(solver="SCS", eps=1e-8, max_iters=100_000)
    assert design.trace == pytest.approx(float(program.value), rel=2e-5)
    again = traces.optimal_noise(trace, 1.0, sets, 1.0, 2.0, solver="SCS")
    assert again.trace == pytest.approx(design.trace, rel=1e-3)
    assert again.loss <= 1.0
    assert again.lower_bound <= design.trace


def test_the_search_without_cones_agrees_with_the_solver() -> None:
    from optmech_traces.gaussian import sdp

    rng = np.random.default_rng(8)
    matrices = []
    for _ in range(4):
        root = rng.standard_normal((7, 3))
        matrices.append(root @ root.T - 0.3 * np.eye(7))
    for query in (np.eye(7), np.diag(np.arange(1.0, 8))):
        cones = sdp.several(matrices, query, 0.0, False, "CLARABEL")
        own = sdp.consensus(matrices, query, 0.0)
        assert cones is not None
        costs = [float(np.sum((query @ c.matrix) * query)) for c in (cones, own)]
        assert costs[1] == pytest.approx(costs[0], rel=1e-4)
        assert max(np.linalg.eigvalsh(a - own.matrix)[-1] for a in matrices) < 1e-3
    trace = traces.GaussianPrior(np.arange(30.0), traces.rbf(2.0))
    design = traces.optimal_noise(trace, 1.0, [[0, 9, 18, 27], [12, 15]], 1.0, 2.0)
    assert design.loss <= 1.0
    assert design.gap < 1e-4


def test_correlated_noise_beats_independent_noise_beats_isotropic() -> None:
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    full, diagonal, isotropic = (
        traces.optimal_noise(trace, 1.0, [EVEN], 1.0, 2.0, structure=s)  # type: ignore[arg-type]
        for s in ("full", "diagonal", "isotropic")
    )
    assert full.trace < 0.45 * diagonal.lower_bound
    assert diagonal.trace < 0.97 * isotropic.lower_bound
    assert isotropic.trace == pytest.approx(isotropic.isotropic, rel=1e-9)
    assert not np.any(diagonal.covariance - np.diag(np.diag(diagonal.covariance)))


def test_axes_are_designed_apart_and_together() -> None:
    one = traces.optimal_noise(traces.GaussianPrior(TEN, traces.rbf(1.0)), 0.5, [EVEN], 1.0, 2.0)
    two = traces.optimal_noise(
        traces.GaussianPrior(TEN, traces.rbf(1.0), dimensions=2), 1.0, [EVEN], 1.0, 2.0
    )
    assert two.trace == pytest.approx(2 * one.trace, rel=1e-9)
    coupled = traces.GaussianPrior(TEN[:5], traces.rbf(1.0), cross=[[1.0, 0.7], [0.7, 1.0]])
    design = traces.optimal_noise(coupled, 1.0, [[0, 2]], 1.0, 2.0)
    assert design.loss <= 1.0
    assert design.gap < 1e-5


def test_a_query_is_answered_with_less_variance() -> None:
    trace = traces.GaussianPrior(TEN[:6], traces.rbf(1.0))
    mean = np.full((1, 6), 1 / 6)
    plain = traces.optimal_noise(trace, 1.0, [[0, 2, 4]], 1.0, 2.0)
    aimed = traces.optimal_noise(trace, 1.0, [[0, 2, 4]], 1.0, 2.0, query=mean)
    seen = float((mean @ plain.covariance @ mean.T).item())
    assert aimed.trace <= seen * (1 + 1e-6)
    assert aimed.loss <= 1.0
    assert aimed.lower_bound <= aimed.trace
    assert aimed.gap < 0.01
    weights = np.array([1.0, 2, 3, 4, 5, 6])
    weighted = traces.optimal_noise(trace, 1.0, [[0, 2, 4]], 1.0, 2.0, query=weights)
    assert weighted.trace == pytest.approx(float(weights @ np.diag(weighted.covariance)))
    assert weighted.trace <= weights @ np.diag(plain.covariance)
    assert weighted.gap < 1e-4


@pytest.mark.parametrize("length", [2.0, 20.0, 200.0])
@pytest.mark.parametrize("secrets", [[0, 10, 20, 30, 40], list(range(0, 50, 2)), [24, 25, 26]])
def test_fifty_points_far_closer_than_the_length_scale(length: float, secrets: list[int]) -> None:
    """A proved covariance, whatever the condition."""
    trace = traces.GaussianPrior(np.arange(50.0), traces.rbf(length))
    design = traces.optimal_noise(trace, 1.0, [secrets], 1.0, 2.0)
    assert design.loss <= 1.0
    assert design.lower_bound <= design.trace <= design.isotropic * (1 + 1e-6)
    assert design.gap < 1e-4
    loss = traces.privacy_loss(trace, design.covariance, secrets, 1.0, 2.0, ball=True)
    assert loss.upper <= 1.0


def test_a_promise_can_hold_for_several_length_scales() -> None:
    priors = [traces.GaussianPrior(TEN[:6], traces.rbf(length)) for length in (0.5, 1.0, 1.5, 2.0)]
    alone = [traces.optimal_noise(prior, 1.0, [[0, 2, 4]], 1.0, 2.0) for prior in priors]
    design = traces.optimal_noise(priors[0], 1.0, [[0, 2, 4]], 1.0, 2.0, also=priors[1:])
    assert len(design.losses) == 4
    for prior in priors:
        loss = traces.privacy_loss(prior, design.covariance, [0, 2, 4], 1.0, 2.0, ball=True)
        assert loss.upper <= 1.0
    assert design.trace >= max(one.lower_bound for one in alone)
    assert design.gap < 1e-4
    # noise for one length scale does not keep the promise for the next
    assert traces.privacy_loss(priors[3], alone[0].covariance, [0, 2, 4], 1.0, 2.0).lower > 2
    with pytest.raises(om.ProblemError, match=r"^also\[0\]"):
        traces.optimal_noise(
            priors[0], 1.0, [[0]], 1.0, 2.0, also=[traces.GaussianPrior(TEN, traces.rbf(1.0))]
        )


def test_releases_have_the_noise() -> None:
    trace = traces.GaussianPrior(TEN[:3], traces.rbf(1.0))
    design = traces.optimal_noise(trace, 1.0, [[0, 2]], 1.0, 2.0)
    path = np.array([1.0, 2.0, 3.0])
    drawn = np.array([design.sample(path, seed) - path for seed in range(4000)])
    np.testing.assert_allclose(np.cov(drawn.T), design.covariance, atol=0.2)
    with pytest.raises(om.ProblemError, match=r"^path"):
        design.sample([1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"secret_sets": []}, "secret_sets"),
        ({"secret_sets": [[0], [12]]}, r"secret_sets\[1\]\[0\]"),
        ({"secret_sets": 3.5}, "secret_sets"),
        ({"epsilon": 0}, "epsilon"),
        ({"radius": 0}, "radius"),
        ({"order": 0.2}, "order"),
        ({"structure": "round"}, "structure"),
        ({"floor": -1.0}, "floor"),
        ({"query": np.ones((2, 3))}, "query"),
        ({"query": -np.ones(10)}, "query"),
    ],
)
def test_bad_arguments_are_placed(change: dict[str, object], where: str) -> None:
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    good: dict[str, object] = {
        "epsilon": 1.0, "secret_sets": [[0]], "radius": 1.0, "order": 2.0,
    }  # fmt: skip
    with pytest.raises(om.ProblemError, match=f"^{where}"):
        traces.optimal_noise(trace, **{**good, **change})  # type: ignore[arg-type]


def test_secrets_that_determine_each_other_are_refused() -> None:
    trace = traces.GaussianPrior(TEN, traces.periodic(1.0, 4.0))
    with pytest.raises(om.ProblemError, match="determine each other"):
        traces.optimal_noise(trace, 1.0, [[0, 4]], 1.0, 2.0)
