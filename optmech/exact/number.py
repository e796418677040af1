"""Numbers that remember exactly what was written: ``0.6``, ``"1/2"``, ``"ln 3"``."""

from __future__ import annotations

import math
import numbers
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any, cast

from optmech.errors import ProblemError, described

Number = float | str | Fraction
"""What a rate or a probability is given as; texts such as "1/3" and "ln 3" are kept exact."""

_RATIONAL = r"[0-9]+(?:\.[0-9]+)?(?:\s*/\s*[0-9]+)?"
_LONGEST = 2000
"""Characters of a number: room for the ``text`` of any number written in 200 characters."""
_SHOWN, _SHOWN_BITS = 60, 200
_MOST_BITS = 6600
"""Of a numerator and a denominator together, which are written in so many characters."""
_REMEDY = 'Give a finite number >= 0, or an exact string such as "ln 3", "1/2" or "2 ln 3"'
_PATTERN = re.compile(
    rf"^\s*(?:(?P<factor>{_RATIONAL})\s*\*?\s*)?ln\s*\(?\s*(?P<log>{_RATIONAL})\s*\)?\s*$"
    rf"|^\s*(?P<plain>{_RATIONAL}(?:[eE][+-]?[0-9]{{1,3}})?)\s*$"
)


def _fraction(text: str) -> Fraction:
    head, _, tail = text.replace(" ", "").partition("/")
    return Fraction(head) / Fraction(tail) if tail else Fraction(head)


class Exact(float):
    """A real, usable as a float, that keeps its exact value; logarithms are those of numbers >= 1.

    The exact value is ``factor`` (a rational) when ``log_of`` is None, and
    ``factor * ln(log_of)`` otherwise. A float is taken as the binary fraction that it is.
    """

    factor: Fraction
    log_of: Fraction | None

    def __new__(cls, factor: Fraction, log_of: Fraction | None = None) -> Exact:
        value = float(factor) if log_of is None else float(factor) * log_of_fraction(log_of)
        self = super().__new__(cls, value)
        self.factor = factor
        self.log_of = log_of
        return self

    def __reduce__(self) -> tuple[type[Exact], tuple[Fraction, Fraction | None]]:
        return (Exact, (self.factor, self.log_of))

    def times(self, factor: Fraction | float) -> Exact:
        """This number times ``factor`` >= 0, floats as the binary fractions that they are."""
        return Exact(self.factor * Fraction(factor), self.log_of)

    @property
    def words(self) -> str:
        """The number as it was written, short."""
        text = self.text
        return text if isinstance(text, str) else f"{text:g}"

    @property
    def text(self) -> str | float:
        """The number as it is written to files: a float where that is exact, else a string."""
        if self.log_of is not None:
            head = "" if self.factor == 1 else f"{self.factor} "
            return f"{head}ln {self.log_of}"
        plain = float(self.factor)
        return plain if Fraction(plain) == self.factor else str(self.factor)


def shortened(value: object) -> str:
    """A value as it stands in messages."""
    if isinstance(value, int | Fraction):
        bits = value.numerator.bit_length() + (value.denominator - 1).bit_length()
        if bits > _SHOWN_BITS:
            return f"a number of {bits} bits"
    if not isinstance(value, str | numbers.Number | Exact):
        return described(value)
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


def said_of(value: object, where: str) -> str:
    """A parameter as it stands in messages; of an entry of a list or table, what it is alone."""
    return described(value) if where.endswith("]") else shortened(value)


def log_of_fraction(ratio: Fraction) -> float:
    """ln of a positive fraction, to about a unit in the last place however large its terms are."""
    if ratio < 2:
        return math.log1p(float(ratio - 1))
    if ratio < 2**1000:
        return math.log(ratio)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def parse_exact(
    value: object, *, where: str, positive: bool = False, remedy: str = _REMEDY
) -> Exact:
    """Read a finite number ≥ 0 (or > 0) from a float, int, Fraction or exact string; raises
    ProblemError on anything else."""
    refused = partial(ProblemError, where=where, remedy=remedy)
    if isinstance(value, Exact):
        number = value
    elif isinstance(value, str):
        number = _parse_string(value, where, remedy)
    elif not _is_number(value):
        raise refused(f"{said_of(value, where)} is not a number")
    else:
        own: Any = value
        try:
            own = own if isinstance(own, Fraction | Decimal | int) else float(own)
            if isinstance(own, float) and not math.isfinite(own):
                raise refused(f"{own!r} is not finite")
            if _is_long(own):
                raise refused(f"has more digits than fit into {_LONGEST:,} characters")
            number = Exact(Fraction(own))
        except OverflowError as error:
            raise refused("is too large for a float") from error
        except (TypeError, ValueError) as error:
            raise refused(f"{said_of(value, where)} is not a finite number") from error
    if number.factor < 0 or not math.isfinite(number):
        raise refused(f"{said_of(value, where)} is negative or not finite")
    if positive and not number > 0:
        raise refused(f"{shortened(value)} must be above 0")
    return number


def float_of(value: object, where: str, *, positive: bool = False) -> float:
    """The float next to a number ≥ 0 (or > 0) that may be an exact string; errors as
    ``parse_exact`` has them."""
    return float(parse_exact(value, where=where, positive=positive))


def parse_fraction(value: object, *, where: str) -> Fraction:
    """Read a fraction ≥ 0 as ``parse_exact`` does; raises ProblemError on logarithms too."""
    found = parse_exact(value, where=where)
    if found.log_of is not None:
        raise ProblemError("is no fraction", where=where, remedy='Give one, such as "1/4"')
    return found.factor


def parse_signed(value: object, *, where: str) -> Exact:
    """Read a finite number of any sign, as ``parse_exact`` does one >= 0; logarithms are >= 0."""
    below: Any = None
    if isinstance(value, str):
        below = value.strip()[1:] if value.strip().startswith("-") else None
    elif _is_number(value):
        if isinstance(value, Decimal):
            # the context of decimals rounds what it negates, and cannot compare what is no number
            below = value.copy_negate() if value.is_signed() and not value.is_nan() else None
        elif isinstance(value, Exact):
            below = Exact(-value.factor, value.log_of) if value.factor < 0 else None
        else:
            below = -cast(Any, value) if cast(Any, value) < 0 else None
    remedy = 'Give a finite number, or an exact string such as "-1/2" or "ln 3"'
    if below is None:
        return parse_exact(value, where=where, remedy=remedy)
    found = parse_exact(below, where=where, remedy=remedy)
    if found.log_of is not None:
        raise ProblemError(
            f"{value!r} is a logarithm below 0", where=where, remedy="Give it as a decimal number"
        )
    return Exact(-found.factor)


def _is_long(value: Fraction | Decimal | float) -> bool:
    """Whether a number takes more digits than are read, told without writing them."""
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        return isinstance(exponent, int) and len(digits) + abs(exponent) > _LONGEST - 2
    top, bottom = value.as_integer_ratio()
    return top.bit_length() + bottom.bit_length() > _MOST_BITS


def _is_number(value: object) -> bool:
    """Whether a value can be read as one number: truth values and arrays are none."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    alone = hasattr(value, "__float__") and not getattr(value, "ndim", 0)
    return alone and not isinstance(value, bool | type) and kind in "iuf"


def rounded_up(value: Fraction) -> float:
    """A float >= ``value``: the nearest, or the one after it."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def product_up(*values: float) -> float:
    """A float >= the product of floats >= 0, and equal to it where that is a float; inf where a
    value is."""
    if math.inf in values:
        return math.inf
    return rounded_up(math.prod(map(Fraction, values), start=Fraction(1)))


def sum_up(*values: float) -> float:
    """A float >= the sum, and equal to it where that is a float; inf where a value is."""
    return math.inf if math.inf in values else rounded_up(sum(map(Fraction, values), Fraction(0)))


def rounded_down(value: Fraction) -> float:
    """A float <= ``value``."""
    # no zero has a sign
    return 0.0 - rounded_up(-value)


def from_below(value: float, digits: int = 6) -> str:
    """A bound from below as it is shown: with so many digits, and never above it."""
    return _sided(value, digits, -1)


def from_above(value: float, digits: int = 6) -> str:
    """A bound from above as it is shown: with so many digits, and never below it."""
    return _sided(value, digits, 1)


def _sided(value: float, digits: int, side: int) -> str:
    text = f"{value:.{digits}g}"
    # a text that is read as the value itself stands for it
    if not math.isfinite(value) or (float(text) - value) * side >= 0:
        return text
    rounding = ROUND_CEILING if side > 0 else ROUND_FLOOR
    return f"{float(Context(digits, rounding).create_decimal(value)):.{digits}g}"


_LOGARITHM = re.compile(r"(?:log|ln)\s*\(\s*([0-9./]+)\s*\)")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")


def _parse_string(text: str, where: str, remedy: str) -> Exact:
    match = _PATTERN.match(text) if len(text) <= _LONGEST else None
    if match is None:
        shown = said_of(text, where)
        if found := _LOGARITHM.fullmatch(text.strip()[:_LONGEST]):
            remedy = f'Write "ln {found[1].strip()}"'
        elif found := _PERCENT.fullmatch(text.strip()[:_LONGEST]):
            remedy = f"Write {float(found[1]) / 100:g}"
        negative = text.strip().startswith("-") and _PATTERN.match(text.strip()[1:])
        fault = "is negative" if negative else "is not a number"
        raise ProblemError(f"{shown} {fault}", where=where, remedy=remedy)
    try:
        if match["plain"] is not None:
            return Exact(_fraction(match["plain"]))
        factor = _fraction(match["factor"]) if match["factor"] else Fraction(1)
        log_of = _fraction(match["log"])
        if log_of < 1:
            shown = said_of(text, where)
            said = f"{shown} is negative: ln needs a number >= 1"
            raise ProblemError(said, where=where, remedy=remedy)
        return Exact(factor, log_of)
    except (ZeroDivisionError, OverflowError) as error:
        raise ProblemError(
            f"{said_of(text, where)} is not a finite number", where=where, remedy=remedy
        ) from error


@dataclass(frozen=True)
class Interval:
    """A number known to lie between two floats. An end that is not a number bounds nothing.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> t = om.mechanisms.tupling(om.mechanisms.randomized_response(sides, "ln 3"), dummies=0)
    >>> delta = t.delta([1, 0], [0, 1], epsilon=0)
    >>> print(round(delta.lower, 4), round(delta.upper, 4))  # the mechanism alone: 3/4 - 1/4
    0.5 0.5
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name, end in (("lower", -math.inf), ("upper", math.inf)):
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, end)

    def __str__(self) -> str:
        return f"[{from_below(self.lower, 9)}, {from_above(self.upper, 9)}]"

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        """upper - lower."""
        return self.upper - self.lower
