"""The barycentre against POT's linear program, and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import distributions, metrics

import optmech as om

LINE = np.arange(7.0)


@pytest.mark.parametrize("seed", range(6))
def test_value_is_that_of_pot(seed: int) -> None:
    ot = pytest.importorskip("ot", reason="POT is not installed: pip install pot")
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(3, 12)), int(rng.integers(2, 5))
    points = rng.random((n, 2))
    d = np.hypot(*np.moveaxis(points[:, None] - points, 2, 0))
    lams, w = rng.dirichlet(np.full(n, 0.5), count), rng.dirichlet(np.ones(count))
    found = om.transport.barycenter(lams, d, w)
    other = ot.lp.barycenter(np.ascontiguousarray(lams.T), d, w)
    value = sum(
        share * ot.emd2(lam, other / other.sum(), d) for share, lam in zip(w, lams, strict=True)
    )
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.lower_bound <= value * (1 + 1e-12)
    assert found.gap < 1e-12


@given(st.data(), st.integers(1, 5))
def test_two_inputs_meet_on_a_shortest_path(data: st.DataObject, n: int) -> None:
    """In a metric min_μ (W(a,μ) + W(μ,b))/2 = W(a,b)/2, by the triangle inequality."""
    a, b, d = data.draw(distributions(n)), data.draw(distributions(n)), data.draw(metrics(n))
    found = om.transport.barycenter([a, b], d)
    assert found.value == pytest.approx(om.transport.wasserstein(a, b, d).value / 2, abs=1e-12)


@given(st.data(), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_on_a_line_it_is_the_weighted_median_of_the_cumulated_inputs(
    data: st.DataObject, weights: list[int]
) -> None:
    lams = [data.draw(distributions(len(LINE))) for _ in weights]
    d = np.abs(np.subtract.outer(LINE, LINE))
    found = om.transport.barycenter(lams, d, weights)
    w = np.array(weights) / sum(weights)
    cumulated = np.cumsum(lams, axis=1)[:, :-1]
    # Σ_k min_c Σ_t w_t |F_t(k) − c|, each minimum at one of the F_t(k)
    best = sum(min(float(w @ np.abs(f - c)) for c in f) for f in cumulated.T)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert found.lower_bound <= found.value
    np.testing.assert_allclose(found.plans.sum(axis=1), [found.distribution] * len(w), atol=1e-15)
    np.testing.assert_allclose(found.plans.sum(axis=2), lams, atol=1e-15)


def test_targets_may_lie_on_other_points() -> None:
    found = om.transport.barycenter([[1, 0], [0, 1]], [[3.0, 1.0, 4.0], [1.0, 1.0, 5.0]])
    assert found.distribution.tolist() == [0, 1, 0]
    assert found.value == 1


@pytest.mark.parametrize(
    ("lams", "distance", "weights", "where"),
    [
        ([], [[0.0]], None, "lams"),
        (3, [[0.0]], None, "lams"),
        ([[1, 2]], [[0.0]], None, r"lams\[0\]"),
        ([[1]], [[-1.0]], None, "distance"),
        ([[1]], [[np.nan]], None, "distance"),
        ([[1]], [0.0], None, "distance"),
        ([[1]], [[0.0]], [1, 2], "weights"),
        ([[1]], [[0.0]], [0], "weights"),
        ([["x"]], [[0.0]], None, r"lams\[0\]\[0\]"),
    ],
)
def test_bad_arguments_are_refused(
    lams: object, distance: object, weights: object, where: str
) -> None:
    with pytest.raises(om.ProblemError, match=where):
        om.transport.barycenter(lams, distance, weights)
