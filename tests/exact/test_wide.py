"""Sums of products far below the least float, against fractions; and chains that need them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from optmech_traces import ConditionalPrivacy, MarkovPrior
from strategies import spread_distributions

import optmech as om
from optmech.exact.ratios.wide import LEAST, Wide, log_ratio, product, pushed, tilted

LINE = om.Domain.range(3)


def value(number: Wide) -> Fraction:
    return Fraction(float(number.mantissa)) * Fraction(2) ** int(number.exponent)


def near(found: Wide, expected: Fraction) -> bool:
    if not expected:
        return not found.positive
    return abs(value(found) / expected - 1) < Fraction(1, 2**48)


def fractions(matrix: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in matrix.tolist()]


ROWS = st.lists(spread_distributions(4), min_size=4, max_size=4).map(np.array)


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_long_products_of_matrices(matrices: list[np.ndarray]) -> None:
    """The product of up to five: entries down to 10^-1500 of the largest."""
    found = Wide.of(np.eye(4))
    vector = Wide.of(np.ones(4))
    expected = fractions(np.eye(4))
    total = [Fraction(1)] * 4
    for matrix in matrices:
        found = product(found, Wide.of(matrix.T))
        vector = pushed(vector, matrix)
        exact = fractions(matrix)
        total = [sum(total[x] * exact[x][y] for x in range(4)) for y in range(4)]
        expected = [[sum(r[k] * exact[k][y] for k in range(4)) for y in range(4)] for r in expected]
    for x in range(4):
        assert near(vector[x], total[x])
        for y in range(4):
            assert near(found[x, y], expected[x][y])


@given(ROWS, st.lists(st.integers(-3000, 3000), min_size=4, max_size=4))
def test_tilted_rows(kernel: np.ndarray, exponents: list[int]) -> None:
    message = Wide(np.full(4, 0.5), np.array(exponents))
    rows, sums = tilted(kernel, message)
    for x, row in enumerate(fractions(kernel)):
        weighted = [p * Fraction(2) ** (e - 1) for p, e in zip(row, exponents, strict=True)]
        assert near(sums[x], sum(weighted))
        for y, part in enumerate(weighted):
            share = part / sum(weighted)
            if share > Fraction(LEAST):
                assert rows[x, y] == pytest.approx(float(share), rel=1e-14)
            else:
                assert rows[x, y] == (LEAST if share else 0.0)


def test_ratios_of_any_size() -> None:
    p = Wide(np.array([0.5, 0.5, 0.75, 0.0, 0.5, 0.0]), np.array([0, -5000, 1, 0, 3, 0]))
    q = Wide(np.array([0.5, 0.5, 0.5, 0.5, 0.0, 0.0]), np.array([0, 5000, 1, 0, 3, 0]))
    found = log_ratio(p, q)
    expected = [0.0, -10_000 * np.log(2), np.log(1.5), -np.inf, np.inf, -np.inf]
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_a_cell_stays_possible_however_unlikely_releases_make_it() -> None:
    """Twenty releases with a ratio of 10^100 each: 10^-2000 is not 0."""
    prior = MarkovPrior(LINE, [1, 1, 0], np.eye(3))
    after = prior.given({t: [1.0, 1e-100, 1.0] for t in range(20)})
    assert (after.marginals(20)[-1] > 0).tolist() == [True, True, False]
    assert after.conditional(3, 0).any(axis=1).tolist() == [True, True, False]
    [constraint] = ConditionalPrivacy(0.5, lags=0).at(after, 19)
    assert len(constraint.pairs) == 1


def test_what_cannot_be_does_not_hide_what_can() -> None:
    """Only cells 0 and 1 can be: their likelihoods of 10^-400 decide, not the 1 of cell 2."""
    prior = MarkovPrior(LINE, [1, 1, 0], np.eye(3))
    after = prior.given({t: [2e-100, 1e-100, 1.0] for t in range(4)})
    np.testing.assert_allclose(after.marginals(1)[0], [16 / 17, 1 / 17, 0], rtol=1e-14)


def test_backward_conditionals_of_a_cell_that_is_all_but_impossible() -> None:
    """P(X_0 | X_4 = 1) where P(X_4 = 1) is 10^-400: Bayes' rule in proportion."""
    pair = om.Domain.range(2)
    prior = MarkovPrior(
        pair, [1, 1], [[[1, 1e-250], [0.5, 0.5]], [[1, 1e-250], [1, 2e-250]]], repeat=0
    )
    table = prior.conditional(0, 2)
    # to 1 at the end: 0→0→1 with 10^-250, and 1→0→1 or 1→1→1 with 0.5 and 1 of that
    np.testing.assert_allclose(table[1], [1 / 2.5, 1.5 / 2.5], rtol=1e-14)
    rare = MarkovPrior(pair, [1, 1e-300], [[1, 1e-200], [1, 1e-100]])
    # 1 after one step: from 0 with 10^-200, from 1 with 10^-400
    assert rare.conditional(0, 1)[1] == pytest.approx([1, 1e-200], rel=1e-13)
