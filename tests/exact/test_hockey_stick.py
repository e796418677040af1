"""Hockey sticks and their inverse against fractions, over entries of any size."""

from __future__ import annotations

import math
from fractions import Fraction

import exact_numbers as exact
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from strategies import distributions, spread_distributions

import optmech as om
from optmech.exact.ratios.hockey_stick import excess_mass, least_log_ratio

BUDGETS = st.one_of(
    st.integers(-320, -1).map(lambda k: 10.0**k), st.sampled_from([1e-20, 1e-16, 0.05, 0.5, 0.9])
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Two distributions: far apart, or nearly the same."""
    count = draw(st.integers(1, 6))
    some = st.one_of(distributions(count), spread_distributions(count))
    p, q = draw(some), draw(some)
    if draw(st.booleans()):
        steps = draw(st.lists(st.integers(-9, 9), min_size=count, max_size=count))
        q = p * (1 + np.array(steps) * 10.0 ** draw(st.integers(-16, -2)))
        q = q / q.sum()
    return p, q


def fractions(values: np.ndarray) -> list[Fraction]:
    return [Fraction(value) for value in values.tolist()]


@settings(max_examples=150)
@given(pairs(), BUDGETS)
@example((np.array([0.0, 1.0]), np.array([2 / 3, 1 / 3])), 1e-271)
@example((np.array([0.0, 1.0]), np.array([1.0, 1e-300])), 1e-310)
@example((np.array([4, 2.5, 0.5, 6]) / 13, np.array([5e-18, 0, 0.5, 0.5])), 0.5)
@example((np.array([4, 5, 4]) / 13, np.array([0, 0.5, 0.5])), 4 / 13)
def test_inverse_is_the_root_of_the_right_piece(
    pair: tuple[np.ndarray, np.ndarray], budget: float
) -> None:
    p, q = pair
    found = float(least_log_ratio(p[None], q[None], budget)[0])
    expected = float(exact.least_epsilon(fractions(p), fractions(q), Fraction(budget)))
    if math.isinf(expected):
        assert found == math.inf
    else:
        assert found == pytest.approx(expected, rel=1e-14, abs=2e-15)


@given(pairs(), st.one_of(st.floats(0, 3), st.floats(0, 1400)))
def test_excess_is_that_of_the_sum(pair: tuple[np.ndarray, np.ndarray], epsilon: float) -> None:
    p, q = pair
    found = float(excess_mass(p[None], q[None], np.array([epsilon]))[0])
    expected = exact.hockey_stick(fractions(p), fractions(q), epsilon)
    # of every e^ε q the rounding of e^ε, and of the difference no more than that of its parts
    assert found == pytest.approx(float(expected), rel=1e-14, abs=(2 + epsilon) * 4e-16)


@given(pairs(), BUDGETS)
def test_all_inverses_agree(pair: tuple[np.ndarray, np.ndarray], budget: float) -> None:
    p, q = pair
    m = om.Mechanism(om.Domain("ab"), om.Domain.range(len(p)), [p, q])
    there, back = (om.divergences.max_divergence(a, b, budget) for a, b in ((p, q), (q, p)))
    curve = om.measures.hockey_stick_curve(p, q)
    assert curve.epsilon(budget) == pytest.approx(there, rel=1e-13, abs=1e-14)
    expected = pytest.approx(max(there, back), rel=1e-13, abs=1e-14)
    assert om.measures.epsilon_for_delta(m, budget) == expected
    assert om.measures.distribution_epsilon(m, [1, 0], [0, 1], budget) == expected
    assert om.distributional.pairwise_epsilon(m, np.eye(2), budget).worst == expected


def test_a_budget_below_the_rounding_of_one() -> None:
    p, q = [1e-30, 1, 0], [1e-60, 0.09, 0.91]
    assert om.divergences.max_divergence(p, q, 1e-20) == pytest.approx(-math.log(0.09), rel=1e-15)
    assert om.divergences.max_divergence(p, q, 1e-30) == pytest.approx(-math.log(0.09), rel=1e-15)
    assert om.divergences.max_divergence(p, q, 5e-31) == pytest.approx(
        math.log(5e-31) - math.log(1e-60), rel=1e-15
    )
    assert om.divergences.max_divergence(p, q, 1e-320) == pytest.approx(30 * math.log(10))
