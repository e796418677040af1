"""Rounding to whole numbers: exact sums, small errors, zeros and equal rows preserved."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

import optmech as om
from optmech.exact.numerators import Numerators, integers


@given(st.integers(0, 2**32 - 1), st.integers(0, 900))
def test_rounding_keeps_sums_zeros_equal_rows_and_62_bits(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.exp2(-depth * rng.random((4, 5))) * (rng.random((4, 5)) < 0.8)
    matrix[:, 2] = 1.0
    matrix[3] = matrix[0]
    matrix /= matrix.sum(axis=1, keepdims=True)
    out = Numerators.rounded(matrix)
    assert out.rows[3] == out.rows[0]
    for row, floats in zip(out.rows, matrix.tolist(), strict=True):
        assert sum(row) == 2**out.bits
        total = sum(map(Fraction, floats))
        for value, given_ in zip(row, floats, strict=True):
            true = Fraction(given_) / total
            if given_ == 0:
                assert value == 0
            else:
                assert abs(Fraction(value, 2**out.bits) / true - 1) <= Fraction(1, 2**62)
    assert np.allclose(out.matrix, matrix, rtol=1e-15, atol=0)


@given(st.lists(st.floats(0, 1e300, allow_subnormal=True), min_size=1, max_size=6))
def test_integers_are_exact(values: list[float]) -> None:
    (row,), exponent = integers(np.array([values]))
    assert [Fraction(w, 2**exponent) for w in row] == [Fraction(v) for v in values]


def test_mixing_is_exact() -> None:
    a, b = Numerators(2, ((1, 3),)), Numerators(1, ((1, 1),))
    mixed = a.mixed(b, 3)
    share = Fraction(1, 8)
    assert Fraction(mixed.rows[0][0], 2**mixed.bits) == (1 - share) / 4 + share / 2
    assert a.mixed(b, 0).matrix.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("bits", "rows"),
    [(2, ((1, 2),)), (2, ((5, -1),)), (0, ((1,),)), (1075, ((2**1075,),)), (1, ((1, 1), (2,)))],
)
def test_refuses(bits: int, rows: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(om.ProblemError, match="mechanism"):
        Numerators(bits, rows)


def test_the_least_probability_is_a_positive_float() -> None:
    assert Numerators(1074, ((1, 2**1074 - 1),)).matrix[0, 0] == 2.0**-1074
