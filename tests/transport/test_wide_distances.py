"""Distances that differ by more than floating point can hold: against an exact linear program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_lp import joint_optimum, maximum

import optmech as om

FACTORS = {"0": Fraction(1), "ln 2": Fraction(2), "ln 11/10": Fraction(11, 10), "ln 50": 50}


def exactly(weights: Any) -> list[Fraction]:
    parts = [Fraction(float(w)) for w in weights]
    return [part / sum(parts) for part in parts]


def problem(seed: int, orders: float) -> dict[str, Any]:
    """One to three inputs on a few points, distances over ``orders`` orders of magnitude, some of
    them 0 and some forbidding."""
    rng = np.random.default_rng(seed)
    count, n, m = int(rng.integers(1, 4)), *rng.integers(2, 5, 2).tolist()
    if count == 3:
        n = m = min(n, m, 3)
    d = 10.0 ** rng.uniform(-orders / 2, orders / 2, (n, m))
    if rng.random() < 0.3:
        d[rng.random((n, m)) < 0.3] = 0
    if rng.random() < 0.3:
        d[rng.random((n, m)) < 0.3] = 10.0 ** (orders / 2 + 1)
    if rng.random() < 0.5:
        inputs = rng.dirichlet(np.ones(n), count)
    else:
        inputs = rng.integers(0, 6, (count, n))
        inputs[:, 0] += 1
    epsilon = ["0", "0", "ln 2", "ln 11/10", "ln 50"][rng.integers(5)]
    delta = ["0", "0", "1/100"][rng.integers(3)] if epsilon != "0" and count < 3 else "0"
    weights = rng.integers(1, 5, count).tolist()
    return {"inputs": inputs, "d": d, "epsilon": epsilon, "delta": delta, "weights": weights}


def least(given: dict[str, Any]) -> Fraction:
    return joint_optimum(
        [exactly(lam) for lam in given["inputs"]],
        [[Fraction(float(value)) for value in row] for row in given["d"]],
        exactly(given["weights"]),
        Fraction(FACTORS[given["epsilon"]]),
        Fraction(given["delta"]),
    )


def judge(loss: float, bound: float, gap: float, best: Fraction) -> None:
    """The bound is one, and "optimal" is."""
    assert bound <= best <= loss
    assert gap <= 1e-6
    assert loss <= best * (1 + Fraction(1, 10**6))
    assert gap <= 1e-9


def solve_and_judge(seed: int, orders: float) -> None:
    given = problem(seed, orders)
    best = least(given)
    design = om.mechanisms.optimal_target(
        given["inputs"], given["d"], given["epsilon"], given["weights"], delta=given["delta"]
    )
    assert design.status == "optimal"
    judge(design.loss, design.lower_bound, design.gap, best)
    if given["epsilon"] == "0":
        found = om.transport.barycenter(given["inputs"], given["d"], given["weights"])
        judge(found.value, found.lower_bound, found.gap, best)


@pytest.mark.parametrize("start", range(0, 200, 100))
def test_optimal_over_thirty_orders(start: int) -> None:
    for seed in range(start, start + 100):
        solve_and_judge(seed, 30)


def test_irrational_epsilons_over_thirty_orders() -> None:
    """e^ε is bracketed to 2^-300, and with it the optimum."""
    mp = pytest.importorskip("mpmath", reason="mpmath is not installed: pip install mpmath")
    for seed in range(24):
        given = problem(seed, 30)
        epsilon = [0.001, 0.5, 2.0, 9.0][seed % 4]
        with mp.workprec(400):
            units = int(mp.floor(mp.exp(epsilon) * 2**300))
        low, high = (
            joint_optimum(
                [exactly(lam) for lam in given["inputs"]],
                [[Fraction(float(value)) for value in row] for row in given["d"]],
                exactly(given["weights"]),
                Fraction(unit, 2**300),
            )
            for unit in (units + 1, units)
        )
        design = om.mechanisms.optimal_target(
            given["inputs"], given["d"], epsilon, given["weights"]
        )
        assert design.lower_bound <= high
        assert low <= design.loss <= high * (1 + Fraction(1, 10**6))
        assert design.status == "optimal"


def test_optimal_over_all_floats() -> None:
    for seed in range(24):
        solve_and_judge(seed, 580)


def test_couplings_over_thirty_orders() -> None:
    """A coupling is a transport problem: its dual has u + v <= d."""
    for seed in range(100):
        given = problem(seed, 30)
        n, m = given["d"].shape
        target = np.random.default_rng(seed).integers(1, 9, m)
        lam, mu = exactly(given["inputs"][0]), exactly(target)
        rows, limits = [], []
        for x in range(n):
            for y in range(m):
                row = [Fraction(0)] * 2 * (n + m)
                row[x], row[n + m + x] = Fraction(1), Fraction(-1)
                row[n + y], row[n + m + n + y] = Fraction(1), Fraction(-1)
                rows.append(row)
                limits.append(Fraction(float(given["d"][x, y])))
        best = maximum([*lam, *mu, *(-v for v in lam), *(-v for v in mu)], rows, limits)
        design = om.mechanisms.coupling_design([given["inputs"][0]], target, given["d"])
        assert design.exact_losses == (best,)
        assert design.exact_bound == best
        assert design.gap == 0
        longest = om.mechanisms.coupling_design([given["inputs"][0]], target, given["d"], "inf")
        assert longest.exact_losses[0] >= best


def test_a_forbidden_move_changes_nothing() -> None:
    """Inputs at the ends of a line and a point between them: half of the mass moves one step from
    each side, whatever the forbidden distances are called."""
    for forbidden in (1e3, 1e16, 1e30, 1e299):
        d = np.array([[0, 0.25, forbidden], [0.25, 0, 0.25], [forbidden, 0.25, 0]])
        design = om.mechanisms.optimal_target([[1, 0, 0], [0, 0, 1]], d)
        assert design.loss == 0.25
        assert design.exact_outputs[0].fractions == [0, 1, 0]
        assert design.gap < 1e-15


@pytest.mark.parametrize("epsilon", [20.0, 30.0, 33.0, 60.0, 400.0, 690.0])
def test_large_epsilons_to_full_accuracy(epsilon: float) -> None:
    """Two points that exclude each other: the loss is 1 / (e^ε + 1)."""
    mp = pytest.importorskip("mpmath", reason="mpmath is not installed: pip install mpmath")
    design = om.mechanisms.optimal_target([[1, 0], [0, 1]], [[0, 1], [1, 0]], epsilon)
    with mp.workprec(2000):
        best = 1 / (mp.exp(epsilon) + 1)
        assert design.lower_bound <= best <= design.loss
        assert design.loss <= best * (1 + mp.mpf("1e-9"))
    assert design.status == "optimal"


def test_beyond_every_bound_the_gap_says_so() -> None:
    """e^2000 is no float: the loss is tiny, and nothing is claimed about how good that is."""
    design = om.mechanisms.optimal_target([[1, 0], [0, 1]], [[0, 1], [1, 0]], 2000)
    assert 0 < design.loss < 1e-10
    assert (design.lower_bound, design.gap, design.status) == (0, 1, "feasible")


def test_nothing_to_lose_is_lost_exactly() -> None:
    """Points at distance 0 can be merged: the least loss is 0, and no rounding may stand for it."""
    d = [[0, 0, 1e16], [0, 0, 1e-14], [1e16, 1e-14, 0]]
    for epsilon in (0, "ln 11/10"):
        design = om.mechanisms.optimal_target([[1, 2, 4], [2, 1, 4], [3, 0, 4]], d, epsilon)
        assert (design.loss, design.gap) == (0, 0)


@pytest.mark.parametrize("far", [1.1e300, 1.7e308])
def test_distances_whose_sums_overflow_are_refused(far: float) -> None:
    d, lam, mu = [[0.0, far], [far, 0.0]], [1, 2], [2, 1]
    for call in (
        lambda: om.mechanisms.optimal_target([lam, mu], d),
        lambda: om.mechanisms.coupling_design([lam], mu, d, "inf"),
        lambda: om.transport.barycenter([lam, mu], d),
    ):
        with pytest.raises(om.ProblemError, match="above 1e300"):
            call()
    d = np.array([[0.0, 1e300], [1e300, 0.0]])
    assert om.mechanisms.coupling_design([lam], mu, d, "inf").loss == 1e300 / 3
