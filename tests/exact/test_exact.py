from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from each import each
from hypothesis import example, given, strategies as st

from optmech.errors import ProblemError
from optmech.exact.number import Exact, parse_exact, parse_signed


@pytest.mark.parametrize(
    ("written", "factor", "log_of"),
    [
        ("1/2", Fraction(1, 2), None),
        (" 1 / 2 ", Fraction(1, 2), None),
        ("0.1", Fraction(1, 10), None),
        ("2.5e-3", Fraction(1, 400), None),
        ("ln 3", Fraction(1), Fraction(3)),
        ("ln(3)", Fraction(1), Fraction(3)),
        ("2 ln 3", Fraction(2), Fraction(3)),
        ("2*ln(3)", Fraction(2), Fraction(3)),
        ("1/2 ln 3", Fraction(1, 2), Fraction(3)),
        ("ln 3/2", Fraction(1), Fraction(3, 2)),
        ("0.1 ln 1.5", Fraction(1, 10), Fraction(3, 2)),
        ("0", Fraction(0), None),
        (0.1, Fraction(3602879701896397, 36028797018963968), None),
        (np.float32(0.5), Fraction(1, 2), None),
        (3, Fraction(3), None),
        (Fraction(2, 7), Fraction(2, 7), None),
    ],
)
def test_exact_value_is_what_was_written(written, factor, log_of):
    number = parse_exact(written, where="epsilon")
    assert (number.factor, number.log_of) == (factor, log_of)


@given(st.fractions(min_value=1, max_value=10**9), st.fractions(min_value=0, max_value=50))
@example(Fraction(2 * 10**24 + 1, 10**24), Fraction(1))
@example(Fraction(10**30 + 1, 10**30), Fraction(1))
def test_float_of_a_logarithm_is_right_to_rounding(log_of, factor):
    number = Exact(factor, log_of)
    with localcontext() as context:
        context.prec = 60
        ratio = Decimal(log_of.numerator) / Decimal(log_of.denominator)
        true = ratio.ln() * factor.numerator / factor.denominator
        assert abs(Decimal(float(number)) - true) <= true * Decimal(2) ** -50


@given(
    st.one_of(
        st.floats(0, 1e300),
        st.fractions(min_value=0),
        st.builds(lambda a, b: f"{a} ln {b}", st.fractions(0, 9), st.fractions(1, 9)),
        st.builds(lambda m, e: f"{m}e{e}", st.integers(0, 99), st.integers(-300, 290)),
    )
)
def test_text_reads_back_to_the_same_number(written):
    number = parse_exact(written, where="x")
    again = parse_exact(number.text, where="x")
    assert (again.factor, again.log_of) == (number.factor, number.log_of)
    assert float(again) == float(number)


def test_survives_copies_and_pickles():
    number = parse_exact("2 ln 3", where="x")
    for copied in (copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
        assert (copied.factor, copied.log_of, float(copied)) == (2, 3, float(number))


@each(
    "hostile",
    [
        "", " ", "-1", "+1", "--1", "nan", "inf", "Infinity", "1e999", "1/0", "0/0", "ln 0",
        "ln 0.5", "ln 0.999999", "ln -3", "ln", "ln ln 3", "2 ln 1/0", "1e3/2", "0x10", "1_000",
        "1,5", "١", "¼", "e", "exp(1)", "__import__('os')", "3; 4", "ln 3 + 1", "1" * 5000,
        "9" * 400, "1e" + "9" * 100, "ln 3\x00", None, True, [], [0.5], {}, b"1", 1j, object(),
        math.nan, math.inf, -math.inf, -1, -1e-300, 10**400, Fraction(10**400), Fraction(-1, 3),
        np.nan, np.array([1.0, 2.0]), "1/-2",
    ],
)  # fmt: skip
def test_what_is_not_a_number_is_refused_with_its_place(hostile):
    with pytest.raises(ProblemError) as caught:
        parse_exact(hostile, where="constraints[1].epsilon")
    assert str(caught.value).startswith("constraints[1].epsilon: ")
    assert len(str(caught.value)) < 700


@given(st.text(max_size=30))
def test_no_string_makes_a_traceback(text):
    try:
        number = parse_exact(text, where="x")
    except ProblemError:
        return
    assert math.isfinite(number)
    assert number >= 0


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, "0", "ln 1", "0 ln 3"])
def test_zero_only_where_it_is_allowed(zero):
    assert parse_exact(zero, where="x") == 0
    with pytest.raises(ProblemError, match="above 0"):
        parse_exact(zero, where="x", positive=True)


@pytest.mark.parametrize(
    "value",
    [Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), math.nan, -math.inf, -(10**400)],
)
def test_what_is_no_finite_number_of_any_sign_is_refused(value: object) -> None:
    with pytest.raises(ProblemError, match=r"finite|too large"):
        parse_signed(value, where="x")
