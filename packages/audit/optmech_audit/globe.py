"""What a degree counts for (theory, "On the globe"): enclosures in multiples of 2^-TRIG."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from optmech_audit.document import Rows, Table
from optmech_audit.numbers import ONE, ZERO, Interval, bisected, interval, need
from optmech_audit.places import EARTH_RADIUS_KM, spans

# What a degree counts for (theory, "On the globe"): enclosures in multiples of 2^-TRIG.
TRIG = 240
PRECISE = 1 << TRIG


def outward(low: Fraction, high: Fraction) -> Interval:
    return interval(math.floor(low * PRECISE), math.ceil(high * PRECISE), PRECISE)


def alternating(term: Fraction, factor: Callable[[int], Fraction]) -> Interval:
    """term (1 - f(1) (1 - f(2) (1 - ...))): its terms fall from the second one on, and what is left
    out is less than the last that was added. A term is rounded by less than two grains."""
    total, k = term, 0
    while k < 2 or term * PRECISE > 1:
        k += 1
        term = outward(term * factor(k), ZERO).low
        total += -term if k % 2 else term
    slack = term + Fraction(2 * k + 2, PRECISE)
    return outward(total - slack, total + slack)


def sine(x: Fraction) -> Interval:
    """For 0 <= x <= 2, as ``cosine``."""
    return alternating(x, lambda k: x * x / (2 * k * (2 * k + 1)))


def cosine(x: Fraction) -> Interval:
    return alternating(ONE, lambda k: x * x / ((2 * k - 1) * 2 * k))


def square_root(x: Interval) -> Interval:
    low, high = math.floor(x.low * PRECISE**2), math.ceil(x.high * PRECISE**2)
    return interval(math.isqrt(low), math.isqrt(high) + 1, PRECISE)


def arc_tangent(n: int) -> Interval:
    """Of 1/n."""
    return alternating(Fraction(1, n), lambda k: Fraction(2 * k - 1, (2 * k + 1) * n * n))


@cache
def half_turn() -> Interval:
    """π = 16 arctan 1/5 - 4 arctan 1/239."""
    a, b = arc_tangent(5), arc_tangent(239)
    return Interval(16 * a.low - 4 * b.high, 16 * a.high - 4 * b.low)


def radians(degrees: Fraction) -> Interval:
    """For degrees >= 0."""
    share = degrees / 180
    return outward(share * half_turn().low, share * half_turn().high)


@cache
def cosine_of(degrees: float) -> Interval:
    """For 0 <= degrees <= 90."""
    angle = radians(Fraction(degrees))
    return Interval(cosine(angle.high).low, cosine(angle.low).high)


@cache
def arc_sine(y: Interval) -> Interval:
    """For numbers below the sine of 3/2, by halving."""
    last = 3 * PRECISE // 2
    need(y.high < sine(Fraction(last, PRECISE)).low, "the region is too large for a map of degrees")
    low = bisected(lambda k: sine(Fraction(k, PRECISE)).high <= y.low, 0, last)
    high = bisected(lambda k: sine(Fraction(k, PRECISE)).low < y.high, low, last) + 1
    return interval(low, high, PRECISE)


def kilometres(vertices: Table, corners: Rows) -> list[tuple[float, float]]:
    """For every triangle what a degree of longitude and one of latitude count for, rounded down:
    lines of the map, measured so, are at most as long as great circles."""
    (west, east), (south, north) = spans(vertices)
    top, near = max(abs(south), abs(north)), min(abs(south), abs(north))
    need(top <= 85 and east - west < 180, "the region is too large, or too close to a pole")
    wide, tall = (radians(Fraction(b) - Fraction(a)) for a, b in ((west, east), (south, north)))
    share, below = cosine_of(0.0 if south <= 0 <= north else near), cosine_of(top)
    ends = list(zip(wide, tall, share, below, strict=True))
    length = square_root(Interval(*((w * c) ** 2 + t * t for w, t, c, _ in ends)))
    # 1 + 32/27 tan², and tan² = 1/cos² - 1
    squares = [1 + Fraction(32, 27) * (1 / c**2 - 1) for *_, c in reversed(ends)]
    bend = square_root(Interval(*squares))
    turns = outward(length.low * bend.low / 2, length.high * bend.high / 2)
    need(turns.high < Fraction(3, 2), "the region is too large for a map of degrees")
    chord = arc_sine(outward(sine(turns.low).low / bend.high, sine(turns.high).high / bend.low))
    scale = 2 * chord.low / length.high * Fraction(EARTH_RADIUS_KM) * half_turn().low / 180
    along = math.nextafter(float(scale), -math.inf)
    cosines = (cosine_of(max(abs(vertices[k][1]) for k in triangle)).low for triangle in corners)
    return [(math.nextafter(float(scale * cosine), -math.inf), along) for cosine in cosines]


def root_up(square: int) -> int:
    return math.isqrt(square - 1) + 1 if square else 0
