"""Optimal targets against dense linear programs, closed forms and the theory of the frontier."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from strategies import distributions, metrics

import optmech as om

TWO = np.array([[0.0, 1.0], [1.0, 0.0]])


def by_linprog(
    lams: np.ndarray, d: np.ndarray, weights: np.ndarray, epsilon: float, delta: float = 0.0
) -> float:
    """The joint program with every variable, by scipy."""
    count, (n, m) = len(lams), d.shape
    pairs = list(itertools.permutations(range(count), 2))
    cost = np.concatenate([w * d.ravel() for w in weights] + [np.zeros(len(pairs) * m)])
    push = sp.kron(np.ones((1, n)), sp.eye(m))
    nothing = sp.csr_array((m, n * m))
    upper = []
    for k, (a, b) in enumerate(pairs):
        blocks = [nothing] * count
        blocks[a], blocks[b] = push, -math.exp(epsilon) * push
        slacks = [sp.csr_array((m, m))] * len(pairs)
        slacks[k] = -sp.eye(m)
        upper.append(sp.hstack(blocks + slacks))
    totals = sp.hstack(
        [sp.csr_array((len(pairs), count * n * m)), sp.kron(sp.eye(len(pairs)), np.ones((1, m)))]
    )
    supply = sp.hstack(
        [
            sp.block_diag([sp.kron(sp.eye(n), np.ones((1, m)))] * count),
            sp.csr_array((count * n, len(pairs) * m)),
        ]
    )
    found = linprog(
        cost,
        A_ub=sp.vstack([*upper, totals]).tocsr() if pairs else None,
        b_ub=np.append(np.zeros(len(pairs) * m), np.full(len(pairs), delta)) if pairs else None,
        A_eq=supply.tocsr(),
        b_eq=np.concatenate(lams),
        method="highs",
    )
    return float(found.fun)


def spent(outputs: np.ndarray, epsilon: float) -> float:
    """The largest Σ max(0, μ_t − e^ε μ_t')."""
    return max(
        (np.maximum(p - math.exp(epsilon) * q, 0).sum() for p in outputs for q in outputs),
        default=0.0,
    )


@settings(max_examples=40)
@given(
    st.data(),
    st.integers(2, 5),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.1, 0.7, 2.0]),
    st.sampled_from([0.0, 0.01, 0.2]),
)
def test_loss_is_that_of_the_dense_program(
    data: st.DataObject, n: int, count: int, epsilon: float, delta: float
) -> None:
    lams = np.array([data.draw(distributions(n)) for _ in range(count)])
    d = data.draw(metrics(n))
    weights = data.draw(distributions(count, zeros=False))
    found = om.mechanisms.optimal_target(lams, d, epsilon, weights, delta=delta)
    best = by_linprog(lams, d, weights, epsilon, delta)
    assert found.loss == pytest.approx(best, rel=1e-7, abs=1e-9)
    assert found.lower_bound <= best + 1e-7
    assert found.gap < 1e-6
    assert spent(found.outputs, epsilon) <= delta + 1e-12
    losses = [
        (lam[:, None] * m.matrix * d).sum() for lam, m in zip(lams, found.mechanisms, strict=True)
    ]
    assert weights @ losses == pytest.approx(found.loss, abs=1e-12)
    pushed = [lam @ m.matrix for lam, m in zip(lams, found.mechanisms, strict=True)]
    np.testing.assert_allclose(pushed, found.outputs, atol=1e-14)


def test_privacy_holds_in_fractions() -> None:
    """e^ε is a rational number here, so that nothing is left to rounding."""
    rng = np.random.default_rng(4)
    lams, points = rng.dirichlet(np.ones(12), 3), rng.random((12, 2))
    d = np.hypot(*np.moveaxis(points[:, None] - points, 2, 0))
    found = om.mechanisms.optimal_target(lams, d, "ln 3/2")
    for p, q in itertools.permutations(found.exact_outputs, 2):
        for a, b in zip(p.fractions, q.fractions, strict=True):
            assert a <= Fraction(3, 2) * b
    # and it is used up
    assert om.divergences.max_divergence(found.outputs[0], found.outputs[1]) == pytest.approx(
        math.log(1.5), rel=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 3.0])
def test_two_points_that_exclude_each_other(epsilon: float) -> None:
    """λ = (1, 0) and (0, 1): outputs (p, 1−p) and (1−p, p) with p = e^ε (1−p), loss 1/(e^ε+1)."""
    found = om.mechanisms.optimal_target([[1, 0], [0, 1]], TWO, epsilon)
    assert found.loss == pytest.approx(1 / (math.exp(epsilon) + 1), rel=1e-9)


def two_points(epsilon: float) -> float:
    """The closed form of docs/theory/targets.md for a, b = 1/2, 1/20 and weights 1/4, 3/4."""
    e = math.exp(epsilon)
    return max(0.0, min(0.25 * (0.5 - 0.05 * e), 0.75 * (0.5 / e - 0.05)))


def test_frontier_has_a_concave_kink() -> None:
    factors = [1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0, 9.0]
    found = om.mechanisms.target_frontier(
        [[0.5, 0.5], [0.05, 0.95]], TWO, [f"ln {e:g}" for e in factors], weights=[1, 3]
    )
    losses = [design.loss for design in found]
    for loss, e in zip(losses, factors, strict=True):
        assert loss == pytest.approx(two_points(math.log(e)), rel=1e-9)
    # 2.5, 3 and 3.5: the middle lies above the chord, so V is not convex in e^ε (nor in ε)
    assert losses[3] > (losses[2] + losses[4]) / 2 + 1e-3
    logs = np.log([2.0, 3.0, 4.5])
    middle = two_points(logs[1])
    assert logs[1] == pytest.approx((logs[0] + logs[2]) / 2)
    assert middle > (two_points(logs[0]) + two_points(logs[2])) / 2


@settings(max_examples=15)
@given(st.data(), st.integers(2, 5), st.integers(2, 3))
def test_frontier_falls_from_the_barycentre_to_nothing(
    data: st.DataObject, n: int, count: int
) -> None:
    lams = [data.draw(distributions(n, zeros=False)) for _ in range(count)]
    d = data.draw(metrics(n))
    # a point that everybody can reach at no cost would be no metric
    end = om.mechanisms.no_obfuscation_epsilon(lams)
    logs = [np.log(p / q).max() for p, q in itertools.permutations(lams, 2)]
    assert end == pytest.approx(max(0.0, *logs), abs=1e-12)
    grid = [0.0, 0.25 * end, 0.5 * end, 0.75 * end, 0.999 * end, end * (1 + 1e-12), end + 1]
    found = om.mechanisms.target_frontier(lams, d, grid)
    losses = [design.loss for design in found]
    assert losses[0] == pytest.approx(om.transport.barycenter(lams, d).value, abs=1e-12)
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(losses))
    assert losses[-1] == losses[-2] == 0
    if end > 1e-6:
        assert losses[-3] > 0


def test_nothing_is_lost_at_the_least_epsilon_without_change() -> None:
    """The ε returned is a float above the logarithm: rounded to nearest, half of them would be too
    small, and lose a little."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        lams = rng.dirichlet(np.ones(int(rng.integers(2, 6))), int(rng.integers(2, 4)))
        d = 1.0 - np.eye(lams.shape[1])
        end = om.mechanisms.no_obfuscation_epsilon(lams)
        assert om.mechanisms.optimal_target(lams, d, end).loss == 0
        assert om.mechanisms.optimal_target(lams, d, end * (1 - 1e-9)).loss > 0


def test_frontier_never_ends_where_supports_differ() -> None:
    lams, d = (
        np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]),
        np.abs(np.subtract.outer(*[range(3)] * 2)),
    )
    assert om.mechanisms.no_obfuscation_epsilon(lams) == math.inf
    mean = lams.mean(axis=0)
    apart = np.mean([om.transport.wasserstein(lam, mean, d).value for lam in lams])
    for epsilon in (0.0, 1.0, 5.0, 12.0):
        found = om.mechanisms.optimal_target(lams, d, epsilon)
        assert 0 < found.lower_bound <= found.loss
        assert found.loss <= 2 / (math.exp(epsilon) + 1) * apart * (1 + 1e-9)


def test_loss_is_convex_in_delta() -> None:
    rng = np.random.default_rng(3)
    lams, d = rng.dirichlet(np.ones(5), 2), np.abs(np.subtract.outer(range(5), range(5)))
    deltas = np.linspace(0, 0.4, 9)
    losses = [om.mechanisms.optimal_target(lams, d, 0.2, delta=x).loss for x in deltas]
    assert (np.diff(losses, 2) >= -1e-9).all()
    assert losses[0] > losses[-1]


@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-5])
def test_small_deltas_cost_no_more_than_they_are_worth(delta: float) -> None:
    """Excesses of the solver's size are far above δ here."""
    rng = np.random.default_rng(8)
    lams, d = rng.dirichlet(np.ones(8), 3), np.abs(np.subtract.outer(range(8), range(8)))
    found = om.mechanisms.optimal_target(lams, d, 0.1, delta=delta)
    assert spent(found.outputs, 0.1) <= delta * (1 + 1e-9) + 1e-16
    assert found.gap < 1e-8


def test_extreme_epsilons() -> None:
    lams = [[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]
    d = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    start = om.transport.barycenter(lams, d).value
    tiny = om.mechanisms.optimal_target(lams, d, 1e-13)
    assert tiny.is_common
    assert tiny.loss == pytest.approx(start, rel=1e-12)
    assert tiny.gap < 1e-9
    huge = om.mechanisms.optimal_target(lams, d, 400)
    assert huge.loss < 1e-12
    assert spent(huge.outputs, 400.0) == 0
    assert not huge.is_common


def test_bound_at_huge_epsilons_where_not_every_point_can_stay() -> None:
    """Two of three points must move whatever is asked: 1/2 and 1/4 of the mass, by 1 and 2."""
    d = np.array([[0.0, 9.0], [1.0, 9.0], [9.0, 2.0]])
    found = om.mechanisms.optimal_target([[1, 2, 1], [0, 3, 1]], d, 60.0, [1, 0])
    assert found.loss == pytest.approx(1.0, rel=1e-9)
    assert found.gap < 1e-9


def test_three_hundred_points() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((300, 2))
    d = np.abs(points[:, None] - points).sum(axis=2)
    found = om.mechanisms.optimal_target(rng.dirichlet(np.full(300, 0.5), 3), d, 0.5)
    assert found.gap < 1e-9


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "two"}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"weights": [0, 0]}, "weights"),
        ({"inputs": [[1, 2, 3]]}, "inputs[0]"),
        ({"outside": None}, "outside"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, object], where: str) -> None:
    arguments = {"inputs": [[1, 0], [0, 1]], "distance": TWO, **change}
    with pytest.raises(om.ProblemError) as caught:
        om.mechanisms.optimal_target(**arguments)
    assert caught.value.where == where
