"""Numbers of any type that take too many digits: refused wherever one is taken, before they are
written out."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from each import each
from hypothesis import example, given, strategies as st
from optmech_noise.additive.bound import order_of

import optmech as om
from optmech.exact.number import parse_exact, parse_signed
from optmech.spaces.mesh.triangulation import both_rational

KM = om.distances.euclidean()
LONG: dict[str, Any] = {
    "a large decimal": Decimal("1e200000"),
    "a small decimal": Decimal("1e-200000"),
    "a decimal of many digits": Decimal("0." + "12" * 2000),
    "a large one below 0": Decimal("-1e200000"),
    "a small one below 0": Decimal("-1e-200000"),
    "a small fraction": Fraction(1, 10**3000),
    "a long fraction": Fraction(10**3000 + 1, 10**3000),
    "a small fraction below 0": Fraction(-1, 10**3000),
    "a text": "1e-200000",
    "a long text": "0." + "12" * 2000,
    "a whole number": 10**5000,
    "a whole number below 0": -(10**5000),
}
ENTRIES: dict[str, Callable[[Any], object]] = {
    "a rate": lambda n: om.MetricPrivacy(n, KM),
    "a δ": lambda n: om.MetricPrivacy(1, KM, delta=n),
    "a rate of pairs": om.DifferentialPrivacy,
    "a limit": om.LossBound,
    "exact weights": lambda n: om.mechanisms.optimal_target([[1, n], [0, 1]], [[0, 1], [1, 0]]),
    "the rate of noise": lambda n: om.noise.optimal(epsilon=n),
    "a coordinate": lambda n: both_rational((0, n)),
    "a number": lambda n: parse_exact(n, where="it"),
    "a number of any sign": lambda n: parse_signed(n, where="it"),
    "an order": order_of,
}


@each("entry", ENTRIES.values(), ids=ENTRIES)
@each("number", LONG.values(), ids=LONG)
def test_they_are_refused(entry: Callable[[Any], object], number: Any) -> None:
    if isinstance(number, int) and number > 0 and entry is ENTRIES["exact weights"]:
        return  # whole numbers of any size are weights
    with pytest.raises(om.ProblemError) as caught:
        entry(number)
    assert len(str(caught.value)) < 400


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=40))
@example(Decimal("-1." + "123456789" * 20))
@example(Fraction(-1, 3))
@example(Fraction(-1, 10**400))
def test_any_other_is_kept_exactly_and_read_again(number: Fraction | Decimal) -> None:
    exact = Fraction(number)
    if abs(exact) >= 10**300:
        return
    found = parse_signed(number, where="it")
    assert found.factor == exact
    assert parse_signed(found, where="it").factor == exact
    assert parse_signed(found.text, where="it").factor == exact
    if exact < 0:
        with pytest.raises(om.ProblemError, match="negative"):
            parse_exact(number, where="it")


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, int, float, Fraction, Decimal])
def test_types_of_numbers(kind: Any) -> None:
    assert parse_exact(kind(3), where="it").factor == 3
    assert parse_signed(kind(-3), where="it").factor == -3
