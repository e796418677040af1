"""What is measured of mechanisms whose probabilities range over 600 orders of magnitude, against
fractions; and the sums that this rests on."""

from __future__ import annotations

from fractions import Fraction

import exact_numbers as exact
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import distributions, spread_distributions

import optmech as om
from optmech.exact.rounding import depth, suffix_depth, suffix_sums, total

LINE = om.Domain.range(3)


def some(count: int = 3) -> st.SearchStrategy[np.ndarray]:
    return st.one_of(spread_distributions(count), distributions(count))


@st.composite
def cases(draw: st.DrawFn) -> tuple[om.Mechanism, np.ndarray, np.ndarray]:
    m = om.Mechanism(LINE, LINE, np.array([draw(some()) for _ in range(3)]))
    return m, draw(some()), draw(some())


def outputs(m: om.Mechanism, *lams: np.ndarray) -> list[list[Fraction]]:
    weights = [om.Prior(LINE, lam).weights for lam in lams]
    return [exact.push([Fraction(x) for x in lam.tolist()], m.matrix) for lam in weights]


@settings(max_examples=80)
@given(cases())
def test_epsilon_of_distributions(case: tuple[om.Mechanism, np.ndarray, np.ndarray]) -> None:
    m, *lams = case
    p, q = outputs(m, *lams)
    truth = float(max(exact.max_divergence(p, q), exact.max_divergence(q, p)))
    expected = pytest.approx(truth, rel=1e-14, abs=1e-14)
    assert om.measures.distribution_epsilon(m, *lams) == expected
    assert om.distributional.pairwise_epsilon(m, lams).worst == expected
    assert om.divergences.epsilon_of_distributions(m, [tuple(lams)], "max") == expected
    assert om.distributional.probabilistic_epsilon(m, *lams, 0) == expected


@settings(max_examples=60)
@given(cases(), st.floats(0, 5))
def test_delta_of_distributions(
    case: tuple[om.Mechanism, np.ndarray, np.ndarray], epsilon: float
) -> None:
    m, *lams = case
    p, q = outputs(m, *lams)
    truth = max(exact.hockey_stick(p, q, epsilon), exact.hockey_stick(q, p, epsilon))
    found = om.measures.distribution_delta(m, *lams, epsilon)
    assert found == pytest.approx(float(truth), abs=4e-15)


@settings(max_examples=60)
@given(cases())
def test_epsilon_and_information(case: tuple[om.Mechanism, np.ndarray, np.ndarray]) -> None:
    m, weights, _ = case
    rows = [[Fraction(x) for x in row] for row in m.matrix.tolist()]
    truth = max(exact.max_divergence(a, b) for a in rows for b in rows)
    assert om.measures.epsilon(m) == pytest.approx(float(truth), rel=1e-15)
    prior = om.Prior(LINE, weights)
    shares = [Fraction(x) for x in prior.weights.tolist()]
    [output] = outputs(m, weights)
    with mpmath.workdps(60):
        nats = mpmath.fsum(
            exact.big(w * row[o]) * mpmath.log(exact.big(row[o] / output[o]))
            for w, row in zip(shares, rows, strict=True)
            for o in range(3)
            if w * row[o]
        )
    assert om.measures.mutual_information(m, prior) == pytest.approx(float(nats), abs=4e-15)


def test_a_secret_of_next_to_no_weight_has_finite_information() -> None:
    m = om.Mechanism(om.Domain("ab"), om.Domain("xy"), np.eye(2))
    prior = om.Prior(om.Domain("ab"), [5e-324, 1.0])
    assert om.measures.mutual_information(m, prior) == pytest.approx(0, abs=1e-300)


def test_outputs_that_are_no_floats_still_have_a_ratio() -> None:
    matrix = [[1e-200, 1.0], [0.0, 1.0]]
    m = om.Mechanism(om.Domain("ab"), om.Domain("xy"), matrix)
    lams = [[1e-200, 1.0], [1e-250, 1.0]]
    assert om.measures.distribution_epsilon(m, *lams) == pytest.approx(50 * np.log(10))
    assert om.distributional.bayes_factors(m, *lams)[0] == pytest.approx(1e50)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 3000))
def test_sums_are_off_by_no_more_than_their_depth(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    terms = rng.random(count) * 10.0 ** rng.integers(-20, 1, count)
    parts = [Fraction(x) for x in terms.tolist()]
    whole = sum(parts, Fraction(0))
    unit = Fraction(1, 2**53)
    assert abs(Fraction(float(total(terms))) - whole) <= depth(count) * unit * whole
    assert total(np.stack([terms, terms]))[1] == total(terms)
    found = suffix_sums(terms)
    assert found[-1] == 0
    for k in {0, count // 2, count - 1}:
        tail = sum(parts[k:], Fraction(0))
        assert abs(Fraction(float(found[k])) - tail) <= suffix_depth(count) * unit * tail


def test_no_terms_sum_to_nothing() -> None:
    assert total(np.zeros(0)) == 0
    assert suffix_sums(np.zeros(0)).tolist() == [0.0]
