"""Plans in whole numbers: marginals and optimality as identities of fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import distributions, nonnegative_matrices

import optmech as om
from optmech.spaces.rationals import RationalRows, Shares
from optmech.transport.rational import RationalPlan, cheapest_plan, worst_case_plan

AWKWARD = [1 / 3, 0.1, 0.2, 0.3, 1 / 7, 0.7]
"""Floats whose sums agree on paper and not in binary."""


def awkward(data: st.DataObject, count: int) -> list[float]:
    return data.draw(st.lists(st.sampled_from(AWKWARD), min_size=count, max_size=count))


def fractions(weights: np.ndarray | list[float]) -> list[Fraction]:
    exact = [Fraction(float(w)) for w in weights]
    return [w / sum(exact) for w in exact]


def assert_couples(plan: RationalPlan, a: list[Fraction], b: list[Fraction]) -> None:
    rows, columns = [Fraction(0)] * len(a), [Fraction(0)] * len(b)
    for (x, y), flow in plan.flows.items():
        assert flow > 0
        rows[x] += Fraction(flow, plan.total)
        columns[y] += Fraction(flow, plan.total)
    assert rows == a
    assert columns == b


def assert_optimal(plan: RationalPlan, cost: np.ndarray) -> None:
    u, v = plan.potentials
    for x, y in itertools.product(plan.first.support, plan.second.support):
        slack = Fraction(float(cost[x, y])) * 2**plan.shift - u[x] - v[y]
        assert slack >= 0
        if (x, y) in plan.flows:
            assert slack == 0


@given(st.data(), st.integers(1, 6), st.integers(1, 6))
def test_plans_are_exact_and_optimal(data: st.DataObject, n: int, m: int) -> None:
    a, b = awkward(data, n), awkward(data, m)
    cost = data.draw(nonnegative_matrices(n, m))
    plan = cheapest_plan(Shares.of(a, "a"), Shares.of(b, "b"), cost)
    assert_couples(plan, fractions(a), fractions(b))
    assert_optimal(plan, cost)
    rough = om.transport.wasserstein(a, b, cost).value
    assert float(plan.cost(cost)) == pytest.approx(rough, rel=1e-12, abs=1e-12)


@given(st.data(), st.integers(1, 6), st.integers(1, 6))
def test_hurried_plans_have_exact_marginals_too(data: st.DataObject, n: int, m: int) -> None:
    a, b = awkward(data, n), awkward(data, m)
    cost = data.draw(nonnegative_matrices(n, m))
    first, second = Shares.of(a, "a"), Shares.of(b, "b")
    plan = cheapest_plan(first, second, cost, optimal=False)
    assert_couples(plan, fractions(a), fractions(b))
    least = cheapest_plan(first, second, cost).cost(cost)
    assert least <= plan.cost(cost) <= least + Fraction(n + m, 2**55) * 20


@given(st.data(), st.integers(1, 5), st.integers(1, 5))
def test_longest_moves_are_least(data: st.DataObject, n: int, m: int) -> None:
    a, b = data.draw(distributions(n)), data.draw(distributions(m))
    distance = data.draw(nonnegative_matrices(n, m))
    found = worst_case_plan(Shares.of(a, "a"), Shares.of(b, "b"), distance)
    assert found.value == om.transport.wasserstein(a, b, distance, math.inf).value
    assert found.plan.longest(distance) == found.value
    assert found.plan.second.fractions == fractions(b)
    assert max(abs(p - q) for p, q in zip(found.plan.first.weights, a, strict=True)) < 1e-14
    if found.value > 0:
        held = sum(found.plan.first[x] for x in found.sources)
        near = (distance[list(found.sources)] < found.value).any(axis=0)
        assert held > sum((Fraction(w) for w, k in zip(fractions(b), near, strict=True) if k), 0)


def test_longest_moves_of_whole_numbers_leave_the_input_alone() -> None:
    distance = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    found = worst_case_plan(Shares.of([3, 0, 0, 2], "a"), Shares.of([1, 1, 1, 2], "b"), distance)
    assert found.value == 2
    assert found.plan.first.fractions == [Fraction(3, 5), 0, 0, Fraction(2, 5)]
    # of all plans that move at most 2: one unit stays, one moves by 1, one by 2
    assert found.plan.cost(distance) == Fraction(3, 5)


def test_a_worst_case_plan_has_the_least_mean_move_among_its_kind() -> None:
    """0 -> 1 and 1 -> 2 both move 1; 0 -> 2 directly costs as much on a line, but moves 2."""
    distance = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    found = worst_case_plan(Shares.of([1, 1, 0], "a"), Shares.of([0, 1, 1], "b"), distance)
    assert found.value == 1
    assert sorted(found.plan.flows) == [(0, 1), (1, 2)]


def test_numbers_count_as_they_are_written() -> None:
    assert Shares.of(["1/3", "2/3"], "w").units == (1, 2)
    assert Shares.of([Fraction(1, 4), 3], "w").units == (1, 12)
    assert Shares.of(np.array([2, 4]), "w").units == (1, 2)
    assert Shares.of([0.1, 0.9], "w").fractions == fractions([0.1, 0.9])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "not a list"),
        ("12", "not a list"),
        (None, "not a list"),
        ([0, 0], "sum to 0"),
        ([1, -1], "negative"),
        ([1, math.nan], "not finite"),
        (["ln 2", 1], "no fraction"),
        ([[1, 2]], "not a number"),
        ([True, 1], "not a number"),
    ],
)
def test_unusable_weights_are_refused(value: object, message: str) -> None:
    with pytest.raises(om.ProblemError, match=message):
        Shares.of(value, "w")


def test_rows_of_fractions_push_exactly_and_sample() -> None:
    rows = RationalRows(((1, 2), (1, 0)))
    assert rows.push(Shares.of(["1/2", "1/2"], "w")).fractions == [Fraction(2, 3), Fraction(1, 3)]
    m = om.Mechanism.of(om.Domain(["a", "b"]), om.Domain([0, 1]), rows)
    drawn = m.sample("a", size=30_000, seed=1)
    # five standard deviations of a mean of 2/3
    assert abs(np.mean(drawn) - 2 / 3) < 5 * math.sqrt(2 / 9 / 30_000)
    with pytest.raises(om.ProblemError, match="row 1"):
        RationalRows(((1, 2), (0, 0)))
