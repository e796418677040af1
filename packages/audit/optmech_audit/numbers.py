"""Numbers that proofs rest on: fractions, stated numbers, bounds of logarithms and powers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NamedTuple, TypeVar

LARGEST_LOG = 710  # from e^710 on a multiplier is dropped
ZERO, ONE = Fraction(0), Fraction(1)
A = TypeVar("A")
B = TypeVar("B")


class Fault(Exception):  # noqa: N818
    """Something in the file does not hold, or is not well-formed."""


def need(condition: bool, message: str) -> None:
    if not condition:
        raise Fault(message)


@contextmanager
def inside(place: str) -> Iterator[None]:
    """Faults within say where they are."""
    try:
        yield
    except Fault as fault:
        raise Fault(f"{place}: {fault}") from None


class Interval(NamedTuple):
    low: Fraction
    high: Fraction


def interval(low: int, high: int, unit: int) -> Interval:
    """Between two multiples of one over a unit."""
    return Interval(Fraction(low, unit), Fraction(high, unit))


FRACTION = "[0-9]+(?:/[0-9]+)?"
REAL = re.compile(f"(?:({FRACTION}) )?ln ({FRACTION})|([0-9]+/[0-9]+)")


@dataclass(frozen=True, eq=False)
class Real:
    """A stated number: ``factor``, or ``factor`` times the natural logarithm of ``log_of`` >= 1."""

    factor: Fraction
    log_of: Fraction | None = None

    @classmethod
    def read(cls, value: object) -> Real:
        """A float, or one of the texts "a/b", "ln a/b" and "a/b ln a/b" in lowest terms."""
        if not isinstance(value, str):
            need(math.copysign(1, real(value, 0)) > 0, "zero is written with a sign")
            return cls(Fraction(real(value)))
        need(len(value) <= 2000, "a number is too long")
        found = REAL.fullmatch(value)
        if found is None:
            raise Fault(f"{value!a}: no number")
        factor, log, plain = found.groups()
        out = cls(Fraction(plain)) if plain else cls(Fraction(factor or 1), Fraction(log))
        need(out.log_of is None or out.log_of >= 1, f"{value!a} is negative")
        need(out.text == value and math.isfinite(out.nearest), f"{value!a} is written otherwise")
        return out

    @classmethod
    def signed(cls, value: object) -> Real:
        """A number as ``read`` takes it, or a float below 0, or "-a/b"."""
        if isinstance(value, str) and value.startswith("-"):
            below = cls.read(value[1:])
            need(below.log_of is None and below.factor > 0, f"{value!a}: no number")
            return cls(-below.factor)
        if isinstance(value, float) and value < 0:
            return cls(Fraction(real(value)))
        return cls.read(value)

    @property
    def text(self) -> str | float:
        """How it must be written: a float where that is exact."""
        if self.log_of is not None:
            return f"{'' if self.factor == 1 else f'{self.factor} '}ln {self.log_of}"
        plain = float(self.factor)
        return plain if Fraction(plain) == self.factor else str(self.factor)

    @property
    def nearest(self) -> float:
        """The nearest float, about: tiny numbers become 0."""
        if self.log_of is None:
            return float(self.factor)
        return float(self.factor) * log_ratio(*self.log_of.as_integer_ratio())

    @property
    def zero(self) -> bool:
        return self.factor == 0 or self.log_of == 1

    def scaled(self, by: Fraction) -> Real:
        out = replace(self, factor=self.factor * by)
        need(math.isfinite(out.nearest), "a limit is too large")
        return out

    @cache  # noqa: B019
    def times(self, d: Fraction, bits: int) -> Interval:
        """Bounds of this number times d >= 0."""
        if self.log_of is None:
            return Interval(self.factor * d, self.factor * d)
        low, high = log_bounds(self.log_of, bits)
        return Interval(self.factor * d * low, self.factor * d * high)

    def bounds(self, bits: int = 256) -> Interval:
        return self.times(ONE, bits)

    @cache  # noqa: B019
    def power(self, d: Fraction) -> Fraction | None:
        """e^{this · d} where it is rational and a root of order <= 64; else None."""
        exponent = self.factor * d
        if exponent == 0 or self.log_of == 1:
            return ONE
        if self.log_of is None or exponent.denominator > 64:
            return None
        if exponent.numerator * self.log_of.numerator.bit_length() > 100_000:
            return None
        q = exponent.denominator
        base = Fraction(root(self.log_of.numerator, q), root(self.log_of.denominator, q))
        return base**exponent.numerator if base**q == self.log_of else None

    @cache  # noqa: B019
    def exp(self, d: Fraction, bits: int) -> tuple[Fraction, Fraction | None]:
        """Bounds of e^{this · d}, relative width about 2^-bits. Where this · d is beyond 710 and
        2·bits: a low bound, and no other."""
        known = self.power(d)
        if known is not None:
            return known, known
        low, high = self.times(d, bits + 64)
        if low > max(LARGEST_LOG, 2 * bits):
            return Fraction(1 << (2 * bits)), None
        first = exp_bounds(low, bits)
        return first.low, (first if low == high else exp_bounds(high, bits)).high

    def enclosed(self, d: Fraction, bits: int) -> Interval:
        """Bounds of e^{this · d}, where there are two."""
        low, high = self.exp(d, bits)
        if high is None:
            raise Fault("ε is too large")
        return Interval(low, high)

    def above(self, d: Fraction) -> Fraction | None:
        """A number >= e^{this · d}; none where it is too large for a multiplier."""
        _, high = self.exp(d, 128)
        return high


def root(value: int, q: int) -> int:
    """The whole part of the q-th root."""
    if q == 1 or not value:
        return value
    # Newton's method falls from above the root until it is at its whole part
    found = 1 << (value.bit_length() // q + 1)
    while (lower := ((q - 1) * found + value // found ** (q - 1)) // q) < found:
        found = lower
    return found


@cache
def log_bounds(value: Fraction, bits: int) -> Interval:
    """ln value for value >= 1: value = 2^k y, ln y = 2 (z + z^3/3 + ...), z = (y - 1)/(y + 1)."""
    if value == 1:
        return Interval(ZERO, ZERO)
    k = max(0, value.numerator.bit_length() - value.denominator.bit_length())
    bits += k.bit_length()
    low, high = _log_series(value / 2**k, bits)
    two = _log_series(Fraction(2), bits) if k else Interval(ZERO, ZERO)
    return Interval(low + k * two.low, high + k * two.high)


def _log_series(y: Fraction, bits: int) -> Interval:
    """Here 1/2 < y <= 2, so |z| <= 1/3 and what is left out is below |next term| · 9/8. Powers are
    whole numbers of units, each within 3 of what it stands for."""
    width = bits + 32
    z = ((y.numerator - y.denominator) << width) // (y.numerator + y.denominator)
    total, power, n, square = 0, z, 1, z * z >> width
    while abs(power) > 1:
        total += power // n
        power, n = power * square >> width, n + 2
    slack = 4 * (n + 2)
    return interval(total - slack, total + slack, 1 << (width - 1))


def exp_bounds(x: Fraction, bits: int) -> Interval:
    """e^x: Taylor's series at x / 2^m < 2^-8 with its remainder, squared m times; or 1/e^-x."""
    if x < 0:
        low, high = exp_bounds(-x, bits)
        return Interval(1 / high, 1 / low)
    m = max(0, int(x).bit_length() + 8)
    width = bits + 2 * m + 32
    one = 1 << width
    y_low = (x.numerator << width) // (x.denominator << m)
    y_high = y_low + 1
    below = above = term_low = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> width) // n
        term_high = ceiling(ceiling(term_high * y_high, one), n)
        below, above = below + term_low, above + term_high
    above += 2  # the terms that follow are each below half of the one before, and that is <= 1
    for _ in range(m):
        below, above = below * below >> width, ceiling(above * above, one)
    return interval(below, above, one)


def signed_log(value: Fraction, bits: int) -> Interval:
    """ln value for value > 0, after rounding value outward to about ``bits`` digits."""
    if value < 1:
        low, high = signed_log(1 / value, bits)
        return Interval(-high, -low)
    shift = max(0, bits - int(value).bit_length())
    whole = (value.numerator << shift) // value.denominator
    first, last = (log_bounds(Fraction(end, 1 << shift), bits) for end in (whole, whole + 1))
    return Interval(first.low, last.high)


def log_ratio(a: int, b: int) -> float:
    """ln(a / b), about."""
    return math.log1p((a - b) / b) if b < 2 * a < 4 * b else math.log(a) - math.log(b)


def at_most(left: int, right: int, epsilon: Real, d: Fraction) -> bool:
    """left <= e^{ε d} right, exactly: both differ where e^{ε d} is irrational, so that some
    precision tells; what none of these tells counts as broken."""
    if left <= right or right == 0:
        return left <= right
    for bits in (64, 256, 1024, 4096, 16384):
        low, high = epsilon.exp(d, bits)
        if left * low.denominator <= right * low.numerator:
            return True
        if high is not None and left * high.denominator > right * high.numerator:
            return False
    return False


def bisected(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The last number below ``high`` that fits, where ``low`` does and those after some do not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def ceiling(a: int, b: int) -> int:
    return -(-a // b)


def rounded_up(value: Fraction) -> Fraction:
    """The least float >= value."""
    nearest = float(value)
    return Fraction(nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf))


def paired(first: Iterable[A], second: Iterable[B]) -> Iterator[tuple[A, B]]:
    """Two lists of one length, side by side."""
    return zip(first, second, strict=True)


def transposed(rows: Iterable[Iterable[A]]) -> Iterator[tuple[A, ...]]:
    """The columns of rows of one length."""
    return zip(*rows, strict=True)


def dot(a: Iterable[Fraction | int], b: Iterable[Fraction]) -> Fraction:
    return sum((v * w for v, w in paired(a, b)), ZERO)


def number(value: object, least: float = -math.inf) -> Fraction:
    """A float or a whole number; whole numbers beyond the floats raise OverflowError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Fault(f"{value!a} is not a finite number")
    need(value >= least, f"{value!a} is below {least}")
    return Fraction(value)


def real(value: object, least: float = -math.inf) -> float:
    if not isinstance(value, float):
        raise Fault(f"{value!a} is not a finite float")
    number(value, least)
    return value


def up(value: float | Fraction) -> str:
    """A number >= 0 in two digits, and not below it."""
    value = float(value)
    text = f"{value:.2g}"
    if not 0 < value < math.inf or float(text) >= value:
        return text
    return f"{value + 0.5 * 10.0 ** (math.floor(math.log10(value)) - 1):.2g}"
