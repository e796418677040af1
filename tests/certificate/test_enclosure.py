"""Enclosures of e^{εd}, against Python's decimal arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from optmech_audit.numbers import Real

from optmech.exact import exponentials
from optmech.exact.exponentials import at_most, bracket, exact_exp, exp_lower, exp_range
from optmech.exact.number import Exact, parse_exact

EPSILONS = st.one_of(
    st.floats(0, 60, allow_subnormal=True),
    st.sampled_from(["ln 3", "1/2", "2 ln 5", "1/3 ln 7/2", "ln 1", "ln 1000000007", "7/3"]),
).map(lambda value: parse_exact(value, where="epsilon"))
DISTANCES = st.one_of(st.floats(0, 12, allow_subnormal=True), st.integers(0, 12).map(float))


@pytest.fixture(autouse=True, scope="module")
def digits() -> Iterator[None]:
    with localcontext(prec=450):
        yield


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def true_exp(epsilon: Exact, d: float) -> Decimal:
    exponent = decimal(epsilon.factor) * Decimal(d)
    if epsilon.log_of is not None:
        exponent *= decimal(epsilon.log_of).ln()
    return exponent.exp()


TINY = Decimal(10) ** -100


@given(EPSILONS, DISTANCES)
def test_floats_and_fractions_enclose(epsilon: Exact, d: float) -> None:
    truth = true_exp(epsilon, d)
    (low,), (high,) = exp_range(epsilon, np.array([d]))
    assert Decimal(low) <= truth * (1 + TINY)
    assert math.isinf(high) or Decimal(high) >= truth * (1 - TINY)
    if math.isfinite(high):
        assert high <= low * (1 + 2.0**-50)
    lower = exp_lower(epsilon, d, 300)
    assert decimal(lower) <= truth * (1 + TINY)
    if truth < 2**500:
        assert decimal(lower) >= truth * (1 - Decimal(10) ** -80)


@given(EPSILONS, DISTANCES, st.sampled_from([64, 256]))
def test_the_audit_encloses_by_its_own_series(epsilon: Exact, d: float, bits: int) -> None:
    truth = true_exp(epsilon, d)
    low, high = Real.read(epsilon.text).exp(Fraction(d), bits)
    assert decimal(low) <= truth * (1 + TINY)
    if high:
        assert decimal(high) >= truth * (1 - TINY)
        assert high - low <= low / 2 ** (bits - 1)


@given(EPSILONS, DISTANCES, st.integers(1, 2**70), st.integers(0, 3), st.booleans())
def test_whole_numbers_are_compared_exactly(
    epsilon: Exact, d: float, right: int, off: int, above: bool
) -> None:
    """Numbers next to the limit, on both sides of it."""
    limit = true_exp(epsilon, d) * right
    known = exact_exp(epsilon, d)
    if known is not None:
        assert abs(decimal(known) - true_exp(epsilon, d)) <= TINY * decimal(known)
        whole = math.floor(known * right)
    else:
        whole = int(limit)
    left = whole + off if above else max(0, whole - off)
    expected = left <= (known * right if known is not None else whole)
    assert at_most(left, right, epsilon, d) is expected


@pytest.mark.parametrize(
    ("epsilon", "d", "value"),
    [("ln 3", 2.0, 9), ("ln 4", 0.5, 2), ("1/2 ln 9/4", 1.0, Fraction(3, 2)), ("1/2", 0.0, 1)],
)
def test_rational_powers_are_recognised(epsilon: str, d: float, value: Fraction) -> None:
    number = parse_exact(epsilon, where="epsilon")
    assert exact_exp(number, d) == value
    assert Real.read(number.text).power(Fraction(d)) == value


@pytest.mark.parametrize(("epsilon", "d"), [("ln 2", 0.5), (1.0, 1.0), ("ln 3", 0.1)])
def test_irrational_powers_are_not(epsilon: object, d: float) -> None:
    assert exact_exp(parse_exact(epsilon, where="epsilon"), d) is None


def test_extremes() -> None:
    huge = parse_exact(1e300, where="epsilon")
    assert at_most(2**1000, 1, huge, 1.0)
    assert not at_most(1, 0, huge, 1e5)
    low, high = exp_range(huge, np.array([0.0, 1.0, np.inf, 1e-320]))
    assert low.tolist() == [1.0, 2.0**1022, 1.0, 1.0]
    assert high.tolist()[:3] == [1.0, math.inf, math.inf]
    assert 1 < high[3] < 1 + 1e-15
    low_two, high_two = bracket(parse_exact("ln 2", where="x"))
    assert low_two < high_two < low_two + Fraction(1, 2**200)
    assert abs(decimal(low_two) - Decimal(2).ln()) < Decimal(10) ** -70


@given(st.lists(st.floats(0, 200), min_size=1, max_size=20), st.sampled_from(["ln 3", "0.7", "5"]))
def test_large_arrays_are_enclosed_as_well(distances: list[float], rate: str) -> None:
    epsilon = parse_exact(rate, where="epsilon")
    d = np.array([*distances, 0.0, np.inf])
    low, high = exp_range(epsilon, d)
    wide = exponentials._many_ends(epsilon, d)
    assert (wide[0] <= high).all()
    assert (wide[1] >= low).all()
    for (below, above), value in zip(zip(*wide, strict=True), d.tolist(), strict=True):
        if np.isfinite(value) and float(epsilon) * value < 600:
            truth = true_exp(epsilon, value)
            assert Decimal(float(below)) <= truth * (1 + TINY)
            assert Decimal(float(above)) >= truth * (1 - TINY)
            assert above <= below * (1 + 2.0**-46 * (1 + float(epsilon) * value))
    assert (wide[0][-2:].tolist(), wide[1][-2:].tolist()) == ([1.0, 1.0], [1.0, np.inf])
