"""The least noise for the box against closed forms, a program of another shape and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech import traces


def told(trace: traces.GaussianPrior, noise: np.ndarray, secrets: list[int]) -> np.ndarray:
    """M of TP19 (3), in floats."""
    k = trace.covariance
    gain = k[:, secrets] @ np.linalg.inv(k[np.ix_(secrets, secrets)])
    rest = k - gain @ k[secrets]
    return np.asarray(gain.T @ np.linalg.solve(noise + rest, gain))


def test_independent_points_share_the_loss() -> None:
    """min Σ n_i with Σ 1/n_i <= 2ε/(λ r²) is (λ r²/2ε) m², equal on the secrets."""
    trace = traces.GaussianPrior(np.arange(6.0), traces.white(1.0))
    design = traces.optimal_noise(trace, 0.5, [[1, 2, 4]], 2.0, 1.0, region="box")
    assert design.lower_bound == pytest.approx(4 * 9 / (2 * 0.5), rel=1e-7)
    assert design.trace == pytest.approx(36, rel=1e-5)
    equal = traces.optimal_noise(
        trace, 0.5, [[1, 2, 4]], 2.0, 1.0, region="box", structure="isotropic"
    )
    assert equal.trace == pytest.approx(6 * 12, rel=1e-7)
    assert equal.lower_bound <= equal.trace <= equal.lower_bound * (1 + 1e-7)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from(["full", "diagonal"]))
def test_no_vertex_breaks_the_promise_and_the_ball_costs_more(seed: int, structure: str) -> None:
    rng = np.random.default_rng(seed)
    trace = traces.GaussianPrior(
        np.cumsum(rng.uniform(0.4, 1.5, 6)), traces.rbf(rng.uniform(0.5, 2.0))
    )
    sets = [rng.choice(6, int(rng.integers(1, 5)), replace=False).tolist() for _ in range(2)]
    epsilon, radius, order = float(rng.uniform(0.2, 3)), 1.5, 2.0
    terms = (trace, epsilon, sets, radius, order)
    box = traces.optimal_noise(*terms, region="box", structure=structure)  # type: ignore[arg-type]
    ball = traces.optimal_noise(*terms, structure=structure)  # type: ignore[arg-type]
    assert box.gap < 2e-5
    assert box.lower_bound <= ball.trace
    assert box.trace <= ball.trace * (1 + 1e-6)
    for secrets in sets:
        m = told(trace, box.covariance, secrets)
        worst = max(
            np.array(v) @ m @ v for v in itertools.product((-1.0, 1.0), repeat=len(secrets))
        )
        assert order / 2 * radius**2 * worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("secrets", [[1, 3], [0, 1, 3, 4]])
def test_a_program_with_a_diagonal_of_its_own(secrets: list[int]) -> None:
    """[[D, Bᵀ], [B, N + C]] ≽ 0 with tr D <= 2ε/(λ r²) is enough for the box, and for two secrets
    needed: the dual diagonal of a 2 x 2 matrix is (m₁₁ + |m₁₂|, m₂₂ + |m₁₂|)."""
    cp = pytest.importorskip("cvxpy")
    trace = traces.GaussianPrior(np.arange(5.0), traces.rbf(1.3))
    design = traces.optimal_noise(trace, 1.0, [secrets], 1.0, 2.0, region="box")
    k, m = trace.covariance, len(secrets)
    gain = k[:, secrets] @ np.linalg.inv(k[np.ix_(secrets, secrets)])
    rest = k - gain @ k[secrets]
    noise, diagonal = cp.Variable((5, 5), PSD=True), cp.Variable(m)
    block = cp.bmat([[cp.diag(diagonal), gain.T], [gain, noise + (rest + rest.T) / 2]])
    program = cp.Problem(
        cp.Minimize(cp.trace(noise)), [(block + block.T) / 2 >> 0, cp.sum(diagonal) <= 1.0]
    )
    program.solve(solver="CLARABEL")
    assert design.lower_bound <= program.value * (1 + 1e-6)
    assert design.trace <= program.value * (1 + 1e-5)
    if m == 2:
        assert design.trace == pytest.approx(program.value, rel=2e-5)


def test_axes_share_the_loss_where_they_are_alike() -> None:
    times = np.arange(4.0)
    one = traces.GaussianPrior(times, traces.rbf(1.0))
    two = traces.GaussianPrior(times, traces.rbf(1.0), dimensions=2)
    half = traces.optimal_noise(one, 0.5, [[0, 2]], 1.0, 2.0, region="box")
    both = traces.optimal_noise(two, 1.0, [[0, 2]], 1.0, 2.0, region="box")
    assert both.trace == pytest.approx(2 * half.trace, rel=1e-6)
    assert both.lower_bound == pytest.approx(2 * half.lower_bound, rel=1e-6)
    weighted = traces.optimal_noise(
        two, 1.0, [[0, 2]], 1.0, 2.0, region="box", query=np.ones(8), floor=1e-6 * half.isotropic
    )
    assert weighted.trace == pytest.approx(both.trace, rel=1e-4)
    assert weighted.lower_bound <= both.trace


def test_several_priors() -> None:
    times = np.arange(4.0)
    priors = [traces.GaussianPrior(times, traces.rbf(scale)) for scale in (0.7, 1.4)]
    design = traces.optimal_noise(
        priors[0], "ln 2", [[0, 1, 3]], 1.0, 2.0, also=priors[1:], region="box"
    )
    assert design.loss <= np.log(2)
    for prior in priors:
        alone = traces.optimal_noise(prior, "ln 2", [[0, 1, 3]], 1.0, 2.0, region="box")
        assert alone.lower_bound <= design.trace


def test_what_cannot_be_asked() -> None:
    trace = traces.GaussianPrior(np.arange(3.0), traces.rbf(1.0))
    with pytest.raises(om.ProblemError, match="unknown"):
        traces.optimal_noise(trace, 1.0, [[0]], 1.0, 2.0, region="sphere")  # type: ignore[arg-type]
    long = traces.GaussianPrior(np.arange(25.0), traces.rbf(1.0))
    with pytest.raises(om.ProblemError, match="25 coordinates"):
        traces.optimal_noise(long, 1.0, [[0]], 1.0, 2.0, region="box")


def test_a_trace_file_gets_the_noise_for_its_region(tmp_path) -> None:
    text = """kind = "gaussian"
format = 1
times = { count = 6 }
kernel = { kind = "rbf", length_scale = 1.0 }
secrets = [0, 2, 4]
radius = 1.0
order = 2
epsilon = 1
"""
    (tmp_path / "box.toml").write_text(text)
    (tmp_path / "ball.toml").write_text(text + "ball = true\n")
    box, ball = (om.load_task(tmp_path / f"{name}.toml").solve() for name in ("box", "ball"))
    assert (box.region, ball.region) == ("box", "ball")
    assert box.kept
    assert box.summary()["region"] == "box"
    assert box.design.trace < ball.design.trace
    assert box.design.lower_bound <= box.design.trace
