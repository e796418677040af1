"""Audit of a design file with nothing but the Python standard library.

    python -m optmech.audit design.json        or, from a copy of this file alone:
    python audit.py design.json
    python audit.py family.json                (mechanisms with an auxiliary input)
    python audit.py city.omm design.json       (a packed mechanism and its design)

Reads the file and proves again, in whole numbers and fractions: that every row of the mechanism
is a distribution, that every stated inequality holds exactly, what the objective is, and that no
mechanism can do better than the bound (or that none exists); that distances with a name are those
of the coordinates, and what thresholds leave of ε. Entries that are unknown, missing or written in
another way than optmech writes them are refused, and what is not checked is named at the end. It
shares no code with the rest of optmech.

It is meant to be read from top to bottom: 1 exact numbers, 2 the file, 3 secrets, observables and
distances, 4 mechanisms and the bound on all of them, 5 the families of inequalities, each with its
decision and its place in the bound, 6 the kinds of constraints that state them, 7 the verdict on a
design, 8 the same for mechanisms with an auxiliary input, 9 for those that are private at every
point of a region, 10 bounds by cells, 11 noise on all whole numbers, 12 packed mechanisms, 13 the
command line.
"Theory" is ``docs/theory.md``, which has the proofs.

Floats in the file stand for the binary fractions that they are; distributions over secrets in
distribution privacy are divided by their exact sum.
"""

from __future__ import annotations

import base64
import decimal
import gzip
import hashlib
import json
import math
import os
import re
import stat
import struct
import sys
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import ClassVar, NamedTuple, TypeVar, cast

FORMAT = "optmech-design/2"
BINARY = "optmech-design/3"  # the same with long lists as bytes
FAMILY = "optmech-targets/2"  # mechanisms with an auxiliary input
LISTED = {BINARY: FORMAT}
NOISE = "optmech-noise/1"  # noise on all whole numbers
NEAR = Fraction(1, 10**12)  # a limit this close beyond the attainable means the attainable
OPTIMAL_GAP = 1e-6  # what may be called optimal
LARGEST = Fraction(2**100)  # multipliers are cut to this: any numbers >= 0 are valid
LARGEST_LOG = 710  # from e^710 on a multiplier is dropped
MOST_BYTES = 2 * 2**30
MOST_ENTRIES = 10**7  # of a matrix: more does not fit into memory as fractions
EARTH_RADIUS_KM = 6371.0088
LOG_ROUNDING = 1e-15  # of a ratio of floats nearest to two probabilities
TINY, HUGE = Fraction(1, 2**900), Fraction(2) ** 1024  # sums of guesses that can be divided by
SCALE = 1200  # bits behind the point of the sums in the bound; everything is rounded down
ZERO, ONE = Fraction(0), Fraction(1)

Body = dict[str, object]
Sums = tuple[int, list[int], int]  # the first place, masses from there on, what is lost
Matrix = list[list[Fraction]]
Mask = list[list[bool]]
Shares = dict[int, Fraction]  # a distribution over secrets, by its positive entries
T = TypeVar("T")


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


# ==== 1. Exact numbers ============================================================================
class Interval(NamedTuple):
    low: Fraction
    high: Fraction


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
        """The same, or a float below 0, or "-a/b"."""
        if isinstance(value, str) and value.startswith("-"):
            below = cls.read(value[1:])
            need(below.log_of is None and below.factor > 0, f"{value!a}: no number")
            return cls(-below.factor)
        if isinstance(value, float) and value < 0:
            return cls(Fraction(real(value)))
        return cls.read(value)

    @property
    def text(self) -> str | float:
        """As it must be written: a float where that is exact."""
        if self.log_of is not None:
            return f"{'' if self.factor == 1 else f'{self.factor} '}ln {self.log_of}"
        plain = float(self.factor)
        return plain if Fraction(plain) == self.factor else str(self.factor)

    @property
    def nearest(self) -> float:
        """The nearest float, about: tiny numbers become 0."""
        if self.log_of is None:
            return float(self.factor)
        if self.log_of < 2:
            return float(self.factor) * math.log1p(self.log_of - 1)
        log = math.log(self.log_of.numerator) - math.log(self.log_of.denominator)
        return float(self.factor) * log

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
    """Here 1/2 < y <= 2, so |z| <= 1/3 and what is left out is below |next term| · 9/8."""
    z, unit = (y - 1) / (y + 1), 1 << (bits + 16)
    total, power, n = ZERO, z, 1
    while abs(power) * unit > 1:
        total += power / n
        power, n = Fraction(round(power * z * z * unit * 64), unit * 64), n + 2
    slack = Fraction(n + 2, unit)  # roundings of powers, and the remainder
    return Interval(2 * (total - slack), 2 * (total + slack))


def exp_bounds(x: Fraction, bits: int) -> Interval:
    """e^x for x >= 0: Taylor's series at x / 2^m < 2^-8 with its remainder, squared m times."""
    m = max(0, int(x).bit_length() + 8)
    width = bits + 2 * m + 32
    one = 1 << width
    y_low = (x.numerator << width) // (x.denominator << m)
    y_high = y_low + 1
    low = high = term_low = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> width) // n
        term_high = ceiling(ceiling(term_high * y_high, one), n)
        low, high = low + term_low, high + term_high
    high += 2  # the terms that follow are each below half of the one before, and that is <= 1
    for _ in range(m):
        low, high = low * low >> width, ceiling(high * high, one)
    return Interval(Fraction(low, one), Fraction(high, one))


def signed_log(value: Fraction, bits: int) -> Interval:
    """ln value for value > 0, after rounding value outward to about ``bits`` digits."""
    if value < 1:
        low, high = signed_log(1 / value, bits)
        return Interval(-high, -low)
    shift = max(0, bits - int(value).bit_length())
    whole = (value.numerator << shift) // value.denominator
    ends = Fraction(whole, 1 << shift), Fraction(whole + 1, 1 << shift)
    return Interval(log_bounds(ends[0], bits).low, log_bounds(ends[1], bits).high)


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


def ceiling(a: int, b: int) -> int:
    return -(-a // b)


def rounded_up(value: Fraction) -> Fraction:
    """The least float >= value."""
    nearest = float(value)
    return Fraction(nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf))


def dot(a: Iterable[Fraction | int], b: Iterable[Fraction]) -> Fraction:
    return sum((v * w for v, w in zip(a, b, strict=True)), ZERO)


# ==== 2. The file: entries are what they must be, or refused ======================================
def read(path: str) -> Body:
    """A file of one of the formats, whose digest fits, in which no key occurs twice."""
    about = os.stat(path)
    need(stat.S_ISREG(about.st_mode), "is not a regular file")
    need(about.st_size <= MOST_BYTES, "is too large")
    with gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    need(len(content) <= MOST_BYTES, "is too large")
    head, _, rest = content.partition(b"\n")
    digest = hashlib.sha256(rest).hexdigest().encode()
    need(head == b'{"digest": "sha256:' + digest + b'",', "the digest does not match the content")

    def refuse(constant: str) -> None:
        raise Fault(f"{constant} is not a number")

    def unique(pairs: list[tuple[str, object]]) -> Body:
        need(len(dict(pairs)) == len(pairs), "a key occurs twice")
        return dict(pairs)

    body = json.loads(content, parse_constant=refuse, object_pairs_hook=unique)
    if isinstance(body, dict) and isinstance(form := body.get("format"), str) and form in LISTED:
        body = {**keys(Lists().expanded(body), " ".join(body)), "format": LISTED[form]}
    if not isinstance(body, dict) or body.get("format") not in (FORMAT, FAMILY, NOISE):
        raise Fault(f"is of none of the formats {FORMAT}, {FAMILY} and {NOISE}")
    return body


class Lists:
    """Lists that a file holds as compressed bytes, at most so many of them together."""

    left = MOST_BYTES
    codes: ClassVar = {"float64": "d", "uint8": "B", "uint16": "H", "uint32": "I"}

    def expanded(self, plain: object) -> object:
        if isinstance(plain, list):
            return [self.expanded(part) for part in plain]
        if not isinstance(plain, dict) or "list" not in plain:
            pairs = plain.items() if isinstance(plain, dict) else ()
            return {key: self.expanded(part) for key, part in pairs} if pairs else plain
        kind, shape = keys(plain, "list shape zlib")["list"], listing(plain["shape"])
        sizes = [size for size in shape if type(size) is int and size > 0]
        one_row = kind in self.codes and len(shape) == 1
        whole = one_row or (kind in ("hex", "float64") and len(shape) == 2)
        need(whole and len(sizes) == len(shape), "a list of unknown kind or shape")
        code = self.codes.get(str(kind), "B")
        size = math.prod(sizes) * struct.calcsize(f"<{code}")
        need(size <= self.left, "lists that are too large")
        self.left -= size
        content = self.bytes_of(text(plain["zlib"], "a list"), size)
        if kind == "hex":
            parts = (content[k : k + sizes[1]] for k in range(0, size, sizes[1]))
            return [f"{int.from_bytes(part, 'little'):x}" for part in parts]
        values = list(struct.unpack(f"<{math.prod(sizes)}{code}", content))
        need(all(map(math.isfinite, values)), "a number that is not finite")
        if len(sizes) == 1:
            return values
        return [values[k : k + sizes[1]] for k in range(0, len(values), sizes[1])]

    @staticmethod
    def bytes_of(packed: str, size: int) -> bytes:
        reader = zlib.decompressobj()
        try:
            content = reader.decompress(base64.b64decode(packed, validate=True), size + 1)
        except zlib.error as error:
            raise Fault(f"a list cannot be unpacked: {error}") from error
        need(len(content) == size and reader.eof and not reader.unused_data, "a list of other size")
        return content


def keys(value: object, wanted: str, optional: str = "") -> Body:
    """``value``, an object with exactly these keys."""
    if not isinstance(value, dict):
        raise Fault("an object is missing")
    wrong = (value.keys() - set(optional.split())) ^ set(wanted.split())
    need(not wrong, f"missing or unknown entries: {sorted(wrong)!a}")
    return value


def listing(value: object, count: int | None = None) -> list[object]:
    if not isinstance(value, list) or count not in (None, len(value)):
        raise Fault("a list is missing, or of another length")
    return value


def text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise Fault(f"{what} is no text")
    return value


def one_of(value: object, known: Iterable[str], what: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise Fault(f"{what} {value!a} is unknown")
    return value


def number(value: object, least: float = -math.inf) -> Fraction:
    """A float or a whole number; whole numbers beyond the floats raise OverflowError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Fault(f"{value!a} is not a finite number")
    need(value >= least, f"{value!a} is below {least}")
    return Fraction(value)


def real(value: object, least: float = -math.inf) -> float:
    if not isinstance(value, float) or not math.isfinite(value):
        raise Fault(f"{value!a} is not a finite float")
    need(value >= least, f"{value!a} is below {least}")
    return value


def reals(value: object, count: int | None = None) -> list[float]:
    return [real(v) for v in listing(value, count)]


def fractions(value: object, count: int) -> list[Fraction]:
    """Floats >= 0."""
    return [Fraction(real(v, 0)) for v in listing(value, count)]


def matrix(value: object, rows: int, columns: int) -> Matrix:
    return [fractions(row, columns) for row in listing(value, rows)]


def whole(value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
        raise Fault(f"{value!a} is no index below {most}")
    return value


HEX = re.compile(r"0|-?[1-9a-f][0-9a-f]{0,99999}", re.ASCII)


def integer(value: object, least: int | None = None) -> int:
    """A whole number in hexadecimal."""
    if not isinstance(value, str) or HEX.fullmatch(value) is None:
        raise Fault("a number is no whole one in hexadecimal")
    found = int(value, 16)
    need(least is None or found >= least, "a whole number is too small")
    return found


def distribution(value: object, count: int) -> list[Fraction]:
    """Numbers >= 0, one a secret, that sum to one up to rounding."""
    out = fractions(value, count)
    off = math.fsum([*map(float, out), -1.0])
    need(abs(off) <= count * 2.0**-52, "a distribution does not sum to one")
    return out


# ==== 3. Secrets, observables, and distances that have a name =====================================
class Places(NamedTuple):
    """Secrets or observables: labels, and coordinates where there are some."""

    labels: Sequence[Hashable]
    points: list[list[float]] | None
    unit: str
    bounds: list[float] | None = None  # west, south, east, north of a grid over degrees
    globe: bool = False  # points are longitude and latitude
    size: tuple[int, int, float, float] | None = None  # of a grid: rows, columns, width, height


def read_places(plain: object, count: int) -> Places:
    grid = isinstance(plain, dict) and "grid" in plain
    out = read_grid(plain, count) if grid else read_labelled(plain)
    need(0 < len(out.labels) == count, "labels are missing, or too many")
    need(len(set(out.labels)) == count, "labels are not distinct")
    return out


def read_grid(plain: object, count: int) -> Places:
    """Centres of cells; over a box of degrees these must be the cells that the box has."""
    body = keys(plain, "grid cell origin unit bounds")
    unit = text(body["unit"], "the unit")
    rows, columns = (whole(v, 10**7 + 1) for v in listing(body["grid"], 2))
    need(0 < rows * columns == count, "the size of the grid is another one")
    (width, height), (x, y) = reals(body["cell"], 2), reals(body["origin"], 2)
    need(width > 0 and height > 0, "a cell has no size")
    bounds = None if body["bounds"] is None else reals(body["bounds"], 4)
    if bounds is not None:
        west, south, east, north = bounds
        need(-360 <= west < east <= 360, "the longitudes are out of range")
        need(-90 <= south < north <= 90, "the latitudes are out of range")
        degree = math.pi / 180 * EARTH_RADIUS_KM
        across = (east - west) * degree * math.cos(math.radians((south + north) / 2)) / columns
        along = (north - south) * degree / rows
        fits = abs(across - width) <= 1e-12 * width and abs(along - height) <= 1e-12 * height
        need(fits and unit == "km" and x == y == 0, "cells are not of these degrees")
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    points = [[x + (c + 0.5) * width, y + (r + 0.5) * height] for r, c in cells]
    need(all(math.isfinite(v) for p in points for v in p), "a cell is too far away")
    return Places(cells, points, unit, bounds, size=(rows, columns, width, height))


def read_labelled(plain: object) -> Places:
    body = keys(plain, "labels points unit coordinates", "outlines")
    unit = text(body["unit"], "the unit")
    labels = [label(v) for v in listing(body["labels"])]
    globe = one_of(body["coordinates"], ("plane", "lonlat"), "the system of coordinates") != "plane"
    need(not globe or unit in ("", "km"), "distances on the globe are in km")
    points, wide = None, 0
    if body["points"] is not None:
        points = [reals(p) for p in listing(body["points"], len(labels))]
        wide = len(points[0])
        need(wide > 0 and all(len(p) == wide for p in points), "points of several kinds")
    if globe:
        need(wide == 2, "there is no longitude and latitude")
        fits = all(abs(lon) <= 360 and abs(lat) <= 90 for lon, lat in points or ())
        need(fits, "a point is not on the globe")
    if "outlines" in body:
        need(wide == 2, "outlines without points")
        for outline in listing(body["outlines"], len(labels)):
            need(len(listing(outline)) > 0, "an outline is missing")
            for ring in listing(outline):
                corners = [reals(corner, 2) for corner in listing(ring)]
                need(len(corners) >= 3, "a ring has too few corners")
    return Places(labels, points, unit, None, globe)


def label(plain: object) -> Hashable:
    if isinstance(plain, list):
        return tuple(label(part) for part in plain)
    if not isinstance(plain, str | int | float | None):
        raise Fault(f"{plain!a} is no label")
    need(not isinstance(plain, float) or math.isfinite(plain), f"{plain!a} is no label")
    return plain


def compare(name: str, stated: Matrix, a: Places, b: Places) -> None:
    """Raise Fault where a matrix is not, up to rounding, what its name says."""
    if name == "hamming":
        proper = [[0.0 if x == y else 1.0 for y in b.labels] for x in a.labels]
    else:
        if a.points is None or b.points is None:
            raise Fault(f"{name} needs coordinates")
        globe = name == "haversine"
        need(a.globe is globe and b.globe is globe, f"{name} needs other coordinates")
        known = "" not in (a.unit, b.unit)
        frame = a.bounds == b.bounds or (None in (a.bounds, b.bounds) and known)
        frame = frame and (a.unit == b.unit or not known)
        need(globe or frame, "coordinates in two units, or over different bounds")
        need(len(a.points[0]) == len(b.points[0]), "coordinates of different dimensions")
        proper = [[between(name, p, q) for q in b.points] for p in a.points]
    for i, (row, right) in enumerate(zip(stated, proper, strict=True)):
        for j, (value, d) in enumerate(zip(map(float, row), right, strict=True)):
            share = 1e-12
            if name == "haversine":  # an arcsine near 1 loses half of the digits
                share = 1e-9 if d < 0.9999 * math.pi * EARTH_RADIUS_KM else 1e-7
            lost = 0 < max(value, d) < 2.0**-960  # fewer digits than are compared
            if lost or not abs(value - d) <= share * d:
                raise Fault(f"{value!a} at [{i}, {j}] is not {name}")


NAMED = ("euclidean", "manhattan", "haversine", "hamming")  # distances that are computed again


def between(name: str, p: list[float], q: list[float]) -> float:
    if name == "haversine":
        (lon, lat), (lon2, lat2) = (map(math.radians, point) for point in (p, q))
        cosines = math.cos(lat) * math.cos(lat2)
        across = math.sqrt(max(cosines, 0.0)) * math.sin((lon - lon2) / 2)
        half = math.hypot(math.sin((lat - lat2) / 2), across)  # no square may underflow
        return 2 * EARTH_RADIUS_KM * math.asin(min(half, 1.0))
    steps = [x - y for x, y in zip(p, q, strict=True)]
    if name == "manhattan":
        return math.fsum(map(abs, steps))
    return math.hypot(*steps)


# ==== 4. A mechanism, and a bound on all of them ==================================================
class Pair(NamedTuple):  # two distributions over secrets, and what multiplies ε between them
    a: Shares
    b: Shares
    d: Fraction = ONE


class Mechanism(NamedTuple):
    """P[s,o] = rows[s][o] / 2^bits; or between that and ``above``, of which the side that is harder
    to keep counts."""

    bits: int
    rows: list[list[int]]
    above: list[list[int]] | None = None

    @property
    def high(self) -> list[list[int]]:
        return self.rows if self.above is None else self.above

    @property
    def unit(self) -> Fraction:
        """By so much a probability may be above that of ``rows``."""
        return ZERO if self.above is None else Fraction(1, 1 << self.bits)

    def pushed(self, pair: Pair) -> tuple[list[int], list[int], int]:
        """aP and bP in whole numbers, and the number that stands for one."""
        scale = math.lcm(*(v.denominator for side in (pair.a, pair.b) for v in side.values()))
        sides = []
        for side, rows in ((pair.a, self.high), (pair.b, self.rows)):
            parts = [(int(share * scale), rows[s]) for s, share in side.items()]
            sides.append([sum(v * row[o] for v, row in parts) for o in range(len(self.rows[0]))])
        return sides[0], sides[1], scale << self.bits

    def losses(self, loss: Matrix) -> list[Fraction]:
        """Σ_o loss[s][o] P[s,o] for every s, or more; losses are >= 0."""
        return [
            sum((c * p for c, p in zip(*rows, strict=True) if p), ZERO) / (1 << self.bits)
            for rows in zip(loss, self.high, strict=True)
        ]

    def distortion(self, w: Matrix) -> Fraction:
        """Σ_o min_t Σ_s w[t][s] P[s,o]: the error of the best attack (theory, section 1)."""
        scale = math.lcm(*(v.denominator for row in w for v in row))
        weights = [[int(v * scale) for v in row] for row in w]
        total = 0
        for column in zip(*self.rows, strict=True):
            used = [(s, p) for s, p in enumerate(column) if p]
            total += min(sum(row[s] * p for s, p in used) for row in weights)
        return Fraction(total, scale << self.bits)


def read_mechanism(plain: object, n: int, m: int) -> Mechanism:
    """Rows of whole numbers > 0, in hexadecimal at increasing observables, that sum to 2^bits."""
    body, rows = keys(plain, "bits rows"), []
    bits = whole(body["bits"], 1075)
    need(bits > 0, "the number of bits is out of range")
    for entry in listing(body["rows"], n):
        indices, digits = (listing(side) for side in listing(entry, 2))
        row, before = [0] * m, -1
        for o, value in zip(indices, listing(digits, len(indices)), strict=True):
            need(whole(o, m) > before, "observables are out of order")
            before = whole(o, m)
            row[before] = integer(value, 1)
        need(sum(row) == 1 << bits, "a row does not sum to one")
        rows.append(row)
    return Mechanism(bits, rows)


Entries = list[tuple[int, int, Fraction]]  # row, column, value


class Lagrangian:
    """K + Σ_s min_{o allowed} L[s][o], of multipliers >= 0 that anybody may have chosen; of a row
    that is held the value in the place of the minimum (theory, "Rows held fixed"). If every
    inequality "left - right <= 0" adds its multiple to the objective, this is at most the objective
    of every mechanism (theory, Theorem 1); without an objective a number above 0 proves that there
    is no mechanism (Theorem 2). To leave out an inequality only lowers the bound, and so does to
    round entries down. L is in multiples of 2^-SCALE."""

    def __init__(self, allowed: Mask, held: dict[int, tuple[int, list[int]]] | None = None) -> None:
        self.allowed, self.n, self.m = allowed, len(allowed), len(allowed[0])
        self.held = held or {}  # rows that are given, over powers of two
        self.L, self.K = [[0] * self.m for _ in allowed], ZERO
        self.unit = ONE  # what the objective was multiplied by
        self.paid: list[list[Fraction]] = []  # μ of the limits on loss

    def value(self) -> Fraction:
        rows = enumerate(zip(self.L, self.allowed, strict=True))
        free = (row for s, row in rows if s not in self.held)
        least = sum(min(v for v, ok in zip(*row, strict=True) if ok) for row in free)
        known = ZERO  # a row that is held has one value
        for s, (bits, own) in self.held.items():
            known += Fraction(sum(v * p for v, p in zip(self.L[s], own, strict=True)), 1 << bits)
        return ((least + known) / (1 << SCALE) + self.K) / self.unit

    def add(self, s: int, o: int, value: Fraction) -> None:
        self.L[s][o] += (value.numerator << SCALE) // value.denominator

    def add_pair(self, pair: Pair, o: int, first: Fraction, second: Fraction) -> None:
        """first · a_s + second · b_s."""
        for side, weight in ((pair.a, first), (pair.b, second)):
            for s, share in side.items():
                self.add(s, o, weight * share)

    def add_losses(self, weights: list[Fraction], loss: Matrix) -> None:
        """ω_s c(s,o)."""
        for s, (weight, row) in enumerate(zip(weights, loss, strict=True)):
            for o, c in enumerate(row):
                self.add(s, o, weight * c)

    def add_attack(self, weight: Fraction, given: Entries, w: Matrix) -> None:
        """-ν Σ_t α(t|o) w[t,s], the attack α(·|o) divided by its sum; any attack will do."""
        guesses: list[Shares] = [{} for _ in range(self.m)]
        for o, t, value in given:
            if value > 0:
                guesses[o][t] = value
        for o, shares in enumerate(guesses):
            total = sum(shares.values(), ZERO)
            if not TINY < total < HUGE:
                shares, total = dict.fromkeys(range(len(w)), ONE), Fraction(len(w))
            for t, value in shares.items():
                share = -weight * value / total
                for s, v in enumerate(w[t]):
                    self.add(s, o, share * v)


def prices(plain: object, count: int) -> list[Fraction]:
    """Multipliers: any numbers, cut to [0, 2^100]."""
    return [cut(number(v)) for v in listing(plain, count)]


def cut(value: Fraction) -> Fraction:
    return min(max(value, ZERO), LARGEST)


def entries(plain: object, rows: int, columns: int) -> Entries:
    """A sparse matrix: places and values."""
    body = keys(plain, "shape row column value")
    shape = [whole(v, MOST_ENTRIES) for v in listing(body["shape"], 2)]
    need(shape == [rows, columns], "multipliers of a wrong shape")
    count = len(listing(body["row"]))
    parts = (listing(body[name], count) for name in ("row", "column", "value"))
    found = [(whole(r, rows), whole(c, columns), number(v)) for r, c, v in zip(*parts, strict=True)]
    need(len({(r, c) for r, c, _ in found}) == count, "a multiplier is given twice")
    return found


# ==== 5. Families of inequalities =================================================================
# Each decides whether a mechanism satisfies it (theory, section 4), and adds the multipliers of the
# file to the bound (theory, section 2, the table). P is the mechanism, f a number >= e^{ε d}.
@dataclass(frozen=True)
class Ratios:
    """P[i,o] <= e^{ε d[i][j]} P[j,o] for every d that is not None, and o in the window of i."""

    epsilon: Real
    d: list[list[Fraction | None]]
    window: Mask | None
    unthresholded: Matrix | None  # the distances of all pairs, where thresholds left some out

    @property
    def family(self) -> str:
        return "ratio" if self.window is None else "windowed"

    def seen(self, i: int, observables: int) -> Sequence[int]:
        every = range(observables)
        return every if self.window is None else [o for o in every if self.window[i][o]]

    def check(self, p: Mechanism) -> str:
        """By a lower bound of e^{ε d}, or else exactly. Counts, and finds the largest
        P[i,o] / (e^{ε d} P[j,o])."""
        checked, top, bottom = 0, 0, 1
        for i, row in enumerate(p.high):
            seen = self.seen(i, len(row))
            for d, (j, other) in zip(self.d[i], enumerate(p.rows), strict=True):
                if d is None:
                    continue
                checked += len(seen)
                low, _ = self.epsilon.exp(d, 64)
                over, under = low.denominator, low.numerator
                for o in seen:
                    left, right = row[o] * over, other[o] * under
                    if left > right and not at_most(row[o], other[o], self.epsilon, d):
                        raise Fault(f"p({o}|{i}) is too large beside p({o}|{j})")
                    if left * bottom > top * right and right:
                        top, bottom = left, right
        return f"{checked} ratios, the tightest at {top / bottom:.15g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        charge_ratios([self], bound, plain)


def charge_ratios(parts: list[Ratios], bound: Lagrangian, plain: object) -> None:
    """z at (i,o) and -f z at (j,o), the least known f of the pair; none where all are too large."""
    body = keys(plain, "i j o value")
    count = len(listing(body["i"]))
    columns = (listing(body[name], count) for name in ("i", "j", "o", "value"))
    for i_, j_, o_, value in zip(*columns, strict=True):
        i, j, o = whole(i_, bound.n), whole(j_, bound.n), whole(o_, bound.m)
        z, known = cut(number(value)), []
        for part in parts:
            d = part.d[i][j]
            if d is not None and (part.window is None or part.window[i][o]):
                f = part.epsilon.above(d)
                known += [] if f is None else [f]
        if z > 0 and known:
            bound.add(i, o, z)
            bound.add(j, o, -z * min(known))


@dataclass(frozen=True)
class Lifted:
    """(aP)[o] <= e^{ε d} (bP)[o] for all o."""

    epsilon: Real
    pairs: list[Pair]
    family: ClassVar[str] = "lifted"

    def check(self, p: Mechanism) -> str:
        for index, pair in enumerate(self.pairs):
            left, right, _ = p.pushed(pair)
            for x, y in zip(left, right, strict=True):
                need(at_most(x, y, self.epsilon, pair.d), f"pair {index}")
        return f"{len(self.pairs) * len(p.rows[0])} ratios"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """z (a_s - f b_s)."""
        for k, o, value in entries(plain, len(self.pairs), bound.m):
            factor, z = self.epsilon.above(self.pairs[k].d), cut(value)
            if z and factor is not None:
                bound.add_pair(self.pairs[k], o, z, -z * factor)


@dataclass(frozen=True)
class Approximate:
    """Σ_o max(0, (aP)[o] - e^{ε d} (bP)[o]) <= δ."""

    epsilon: Real
    delta: Real
    pairs: list[Pair]
    family: ClassVar[str] = "approximate"

    def check(self, p: Mechanism) -> str:
        """With a lower factor the sum is larger: to pass is a proof."""
        most = self.delta.bounds().low
        for index, pair in enumerate(self.pairs):
            low, _ = self.epsilon.exp(pair.d, p.bits + 256)
            over, under = low.denominator, low.numerator
            left, right, one = p.pushed(pair)
            spent = sum(max(0, x * over - y * under) for x, y in zip(left, right, strict=True))
            need(Fraction(spent, over * one) <= most, f"pair {index}")
        return f"{len(self.pairs)} sums <= delta"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """y φ_o (a_s - f b_s), and -y δ, for a test 0 <= φ <= 1; y = 0 where f is too large."""
        body = keys(plain, "weight test")
        y = prices(body["weight"], len(self.pairs))
        factors = [self.epsilon.above(pair.d) for pair in self.pairs]
        for k, o, test in entries(body["test"], len(self.pairs), bound.m):
            factor, z = factors[k], y[k] * min(ONE, test)
            if z > 0 and factor is not None:
                bound.add_pair(self.pairs[k], o, z, -z * factor)
        paid = sum(v for v, factor in zip(y, factors, strict=True) if factor is not None)
        bound.K -= paid * self.delta.bounds().high


@dataclass(frozen=True)
class Divergences:
    """D_f(aP, bP) <= limit, for each pair its own."""

    kind: str
    pairs: list[Pair]
    limits: list[Real]
    family: ClassVar[str] = "divergence"

    def bounds(self, limit: Real) -> Interval:
        """Of the limit on D_f: for "renyi:a" the divergence ±(Σ p^a q^(1-a) - 1) is at most
        ±(e^((a-1) limit) - 1)."""
        order = order_of(self.kind)
        if order is None:
            return limit.bounds()
        low, high = limit.exp(abs(order - 1), 512)
        need(high is not None, "a limit is too large")
        top = high or low
        return Interval(low - 1, top - 1) if order > 1 else Interval(1 - 1 / low, 1 - 1 / top)

    def check(self, p: Mechanism) -> str:
        for index, (pair, limit) in enumerate(zip(self.pairs, self.limits, strict=True)):
            left, right, one = p.pushed(pair)
            sides = ([Fraction(v, one) for v in side] for side in (left, right))
            spent = divergence(self.kind, *sides)
            fits = spent is not None and spent <= self.bounds(limit).low
            need(fits, f"pair {index}: the divergence is too large")
        return f"{len(self.pairs)} divergences ({self.kind})"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """y (α_o a_s - f*(α_o) b_s), and -y limit."""
        body = keys(plain, "weight slope")
        y = prices(body["weight"], len(self.pairs))
        for k, o, slope in entries(body["slope"], len(self.pairs), bound.m):
            alpha, beta = tangent(self.kind, slope)
            bound.add_pair(self.pairs[k], o, y[k] * alpha, y[k] * beta)
        bound.K -= dot(y, [self.bounds(limit).high for limit in self.limits])


@dataclass(frozen=True)
class Information:
    """Σ_s π_s KL(P[s] ‖ πP) <= limit, π divided by its sum."""

    limit: Real
    prior: Shares
    family: ClassVar[str] = "information"

    def check(self, p: Mechanism) -> str:
        unit = 1 << p.bits
        rows = {s: [Fraction(v, unit) for v in p.rows[s]] for s in self.prior}
        common = [dot(self.prior.values(), column) for column in zip(*rows.values(), strict=True)]
        spent = ZERO
        for s, share in self.prior.items():
            own = divergence("kl", rows[s], common)
            need(own is not None, "a report without probability")
            spent += share * (own or ZERO)
        need(spent <= self.limit.bounds().low, f"the mutual information is {float(spent)}")
        return f"mutual information {float(spent):.12g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """y π_s (α_so at (s,o), -f*(α_so) π_t at every (t,o)), and -y limit; a slope of 0 adds
        nothing."""
        body = keys(plain, "weight slope")
        (y,) = prices(body["weight"], 1)
        for s, o, slope in entries(body["slope"], bound.n, bound.m):
            if s in self.prior:
                alpha, beta = tangent("kl", slope)
                weight = y * self.prior[s]
                bound.add(s, o, weight * alpha)
                for t, share in self.prior.items():
                    bound.add(t, o, weight * beta * share)
        bound.K -= y * self.limit.bounds().high


DIVERGENCES = ("kl", "reverse_kl", "chi2", "hellinger")  # tv is of the family above


RENYI = re.compile(r"renyi:([1-9][0-9]?)(?:/([1-9][0-9]?))?", re.ASCII)


def order_of(kind: str) -> Fraction | None:
    """The order of a Rényi divergence, a fraction in lowest terms of numbers up to 64."""
    found = RENYI.fullmatch(kind)
    if found is None:
        return None
    top, bottom = int(found[1]), int(found[2] or 1)
    fits = max(top, bottom) <= 64 and top != bottom and math.gcd(top, bottom) == 1
    need(fits and found[2] != "1", "an order is written otherwise, or too large")
    return Fraction(top, bottom)


def power_bounds(base: Fraction, exponent: Fraction, bits: int = 600) -> Interval:
    """base^exponent for base >= 0, by the whole root of a whole power."""
    top, q = base**exponent.numerator, exponent.denominator
    low = root((top.numerator << (bits * q)) // top.denominator, q)
    return Interval(Fraction(low, 1 << bits), Fraction(low + 1, 1 << bits))


def divergence(kind: str, p: list[Fraction], q: list[Fraction]) -> Fraction | None:
    """At least D_f(p, q), within about 2^-240; None where it is infinite (theory, section 8)."""
    pairs = list(zip(p, q, strict=True))
    if kind == "reverse_kl":
        return divergence("kl", q, p)
    if kind == "hellinger":  # 1 - Σ √(pq), the roots rounded down
        return 1 - Fraction(sum(math.isqrt(int(a * b * 2**1200)) for a, b in pairs), 2**600)
    order = order_of(kind)
    if order is not None and order < 1:
        return 1 - sum((b * power_bounds(a / b, order).low for a, b in pairs if a and b), ZERO)
    one_of(kind, ("kl", "chi2") if order is None else (kind,), "the divergence")
    if any(a and not b for a, b in pairs):
        return None
    if order is not None:
        return sum((b * power_bounds(a / b, order).high for a, b in pairs if b), -ONE)
    if kind == "chi2":
        terms = [(a - b) ** 2 / b for a, b in pairs if b]
    else:
        terms = [a * signed_log(a / b, 256).high for a, b in pairs if a]
    return Fraction(sum(ceiling(v.numerator << SCALE, v.denominator) for v in terms), 1 << SCALE)


def tangent(kind: str, slope: Fraction) -> tuple[Fraction, Fraction]:
    """α, the slope cut to where f* is finite, and β <= -f*(α): then α p + β q <= q f(p/q)."""
    if kind == "kl":
        alpha = min(max(slope, Fraction(-700)), Fraction(700))
        low, high = exp_bounds(abs(alpha), 256)
        return alpha, 1 - (high if alpha >= 0 else 1 / low)
    if kind == "reverse_kl":
        alpha = min(slope, 1 - Fraction(1, 2**53))
        return alpha, signed_log(1 - alpha, 256).low
    if kind == "chi2":
        alpha = max(slope, Fraction(-2))
        return alpha, -(alpha + alpha * alpha / 4)
    order = order_of(kind)
    if order is not None:
        sign, share = (1 if order > 1 else -1), Fraction(2**52 - 1, 2**52)
        alpha = max(slope, -order) if order > 1 else min(slope, order * share)
        base = 1 + sign * alpha / order  # t^(a-1); t^a is its power by a / (a - 1)
        top, bottom = order.numerator, abs(order.numerator - order.denominator)
        most = power_bounds(base if order > 1 else 1 / base, Fraction(top, bottom)).high
        return alpha, abs(order - 1) * (1 - most)
    one_of(kind, ("hellinger",), "the divergence")
    alpha = min(slope, Fraction(1, 2) - Fraction(1, 2**54))
    return alpha, -alpha / (1 - 2 * alpha)


@dataclass(frozen=True)
class Distortion:
    """Σ_o min_t Σ_s w[t][s] P[s,o] >= least, w[t][s] = π(s) d(t,s)."""

    least: Interval
    w: Matrix
    family: ClassVar[str] = "distortion"

    def check(self, p: Mechanism) -> str:
        value, least = p.distortion(self.w), self.least.high
        need(value >= least, f"the distortion is {float(value)}")
        return f"distortion {float(value):.12g} >= {float(least):.12g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """-ν Σ_t α(t|o) w[t,s], and ν least."""
        body = keys(plain, "weight strategy")
        weight = cut(number(body["weight"]))
        bound.add_attack(weight, entries(body["strategy"], bound.m, bound.n), self.w)
        bound.K += weight * self.least.low


@dataclass(frozen=True)
class Leakage:
    """Σ_o max_w Σ_s w[g][s] P[s,o] <= most, w[g][s] = π(s) g(w,s) of any sign; or <= e^most."""

    most: Real
    natural: bool
    w: Matrix
    family: ClassVar[str] = "leakage"

    @property
    def regret(self) -> Matrix:
        """Minus w: the best guess is the one that errs least."""
        return negated(self.w)

    @property
    def blind(self) -> Fraction:
        """What a guess gains without a report, the least possible."""
        return -blind(self.regret)

    @property
    def limit(self) -> tuple[Fraction, Fraction | None]:
        """Bounds of the limit, or of what it misses by rounding (theory, section 1)."""
        low, high = self.most.exp(ONE, 512) if self.natural else self.most.bounds()
        for extreme in (self.blind, sum(map(max, zip(*self.w, strict=True)), ZERO)):
            if low < extreme <= low + abs(low) * NEAR:
                return extreme, extreme
        return low, high

    def check(self, p: Mechanism) -> str:
        value = -p.distortion(self.regret) if p.above is None else most_gained(self.w, p)
        holds = value <= self.limit[0]
        if self.natural and value > 0:
            holds = holds or at_most(value.numerator, value.denominator, self.most, ONE)
        need(holds, f"the best guess gains {float(value)}")
        return f"gain of the best guess {float(value):.12g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """ν Σ_w q(w|o) w[w,s], and -ν times the limit; nothing where that is too large."""
        body = keys(plain, "weight strategy")
        weight, high = cut(number(body["weight"])), self.limit[1]
        played = entries(body["strategy"], bound.m, len(self.w))
        if high is not None:
            bound.add_attack(weight, played, self.regret)
            bound.K -= weight * high


@dataclass(frozen=True)
class LossLimit:
    """Σ_o loss[s][o] P[s,o] <= most: on average over a prior, or without one for every s."""

    most: Interval
    prior: list[Fraction] | None
    loss: Matrix
    family: ClassVar[str] = "loss_limits"

    def of(self, losses: list[Fraction]) -> Fraction:
        return max(losses) if self.prior is None else dot(self.prior, losses)

    def check(self, p: Mechanism) -> str:
        value, most = self.of(p.losses(self.loss)), self.most.low
        need(value <= most, f"the loss is {float(value)}")
        return f"loss {float(value):.12g} <= {float(most):.12g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """μ_s u[s,o], or μ π_s u[s,o], and -μ most."""
        mu = prices(plain, bound.n if self.prior is None else 1)
        bound.paid.append(mu)
        bound.add_losses(mu if self.prior is None else [mu[0] * v for v in self.prior], self.loss)
        bound.K -= sum(mu) * self.most.high


@dataclass(frozen=True)
class Bias:
    """|Σ_o reported[o] P[s,o] - meant[s]| <= most for every s."""

    most: Interval
    reported: list[Fraction]
    meant: list[Fraction]
    family: ClassVar[str] = "bias"

    def check(self, p: Mechanism) -> str:
        means = Mechanism(p.bits, p.rows).losses([self.reported] * len(p.rows))
        off = max(abs(mean - v) for mean, v in zip(means, self.meant, strict=True))
        off += sum(map(abs, self.reported), ZERO) * p.unit
        need(off <= self.most.low, f"a bias is {float(off)}")
        return f"bias {float(off):.12g} <= {float(self.most.low):.12g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """a_s (reported - meant), and -a_s most; b_s (meant - reported), and -b_s most."""
        for row, s, value in entries(plain, 2, bound.n):
            y = cut(value)
            for o, v in enumerate(self.reported):
                bound.add(s, o, (v - self.meant[s]) * (y if row == 0 else -y))
            bound.K -= y * self.most.high


@dataclass(frozen=True)
class Support:
    """P[s,o] = 0 where the mask is False. The minimum of the bound is over what is allowed."""

    mask: Mask

    def check(self, p: Mechanism) -> str:
        rows = zip(p.high, self.mask, strict=True)
        empty = all(ok or not v for row in rows for v, ok in zip(*row, strict=True))
        need(empty, "an observable outside the support has a probability")
        return "nothing outside the support"


@dataclass(frozen=True)
class Fixed:
    """P[s,o] = rows[s][o] / 2^bits. The bound has these rows at their value."""

    bits: int
    rows: dict[int, list[int]]

    def check(self, p: Mechanism) -> str:
        for s, row in self.rows.items():
            same = all(v << p.bits == w << self.bits for v, w in zip(row, p.rows[s], strict=True))
            need(same, f"row {s} is not the one that was to be kept")
        return f"{len(self.rows)} rows kept, digit by digit"


Charged = (
    Ratios
    | Lifted
    | Approximate
    | Divergences
    | Distortion
    | Leakage
    | LossLimit
    | Bias
    | Information
)
FAMILIES = ("windowed", "lifted", "approximate", "divergence", "distortion", "loss_limits")
ADDED = (
    "leakage",
    "bias",
    "information",
)  # entries that the files have whose constraints need them


# ==== 6. Kinds of constraints, and the inequalities that they state ===============================
Inequalities = Iterator[Charged | Support | Fixed]


def metric_privacy(stated: Statement, c: Body) -> Inequalities:
    """ε d for pairs of secrets within the threshold, at the observables near the first of them."""
    keys(c, "kind epsilon distance threshold observable_threshold delta")
    near = window = None
    if c["observable_threshold"] is None:
        d = stated.among(c["distance"])
    else:
        d, reach = stated.across(c["distance"])
        window = within(reach, c["observable_threshold"])
    if c["threshold"] is not None:
        near = within(d, c["threshold"])
    some = None if near is None and window is None else d
    yield from between_secrets(stated, c, d, near, window, some)


def differential_privacy(stated: Statement, c: Body) -> Inequalities:
    """ε for neighbours."""
    keys(c, "kind epsilon adjacency delta")
    n, adjacency, near = stated.n, c["adjacency"], None
    if isinstance(adjacency, dict):
        keys(adjacency, "distance radius")
        near = within(stated.among(adjacency["distance"]), adjacency["radius"])
    elif adjacency != "all":
        near = [[False] * n for _ in range(n)]
        need(len(listing(adjacency)) > 0, "there is no pair")
        for pair in listing(adjacency):
            i, j = (whole(s, n) for s in listing(pair, 2))
            need(i != j, f"secret {i} is paired with itself")
            near[i][j] = near[j][i] = True
    yield from between_secrets(stated, c, [[ONE] * n for _ in range(n)], near)


def within(d: Matrix, most: object) -> Mask:
    limit = Fraction(real(most, 0))
    return [[v <= limit for v in row] for row in d]


def between_secrets(
    stated: Statement, c: Body, d: Matrix, near: Mask | None, window: Mask | None = None,
    unthresholded: Matrix | None = None,
) -> Inequalities:  # fmt: skip
    """Ratios, or with δ > 0 sums over point masses."""
    kept = [
        [v if s != t and (near is None or near[s][t]) else None for t, v in enumerate(row)]
        for s, row in enumerate(d)
    ]
    epsilon, delta = Real.read(c["epsilon"]), small(c["delta"])
    pairs = [(i, j, v) for i, row in enumerate(kept) for j, v in enumerate(row) if v is not None]
    if not pairs or (window is not None and not any(map(any, window))):
        stated.say("constrains nothing")
    if not delta.nearest > 0:
        yield Ratios(epsilon, kept, window, unthresholded)
        return
    need(window is None, "a delta with an observable threshold")
    if pairs:
        yield Approximate(epsilon, delta, [Pair({i: ONE}, {j: ONE}, v) for i, j, v in pairs])


def small(value: object) -> Real:
    delta = Real.read(value)
    need(delta.nearest <= 1, "a delta is above 1")
    return delta


def distribution_privacy(stated: Statement, c: Body) -> Inequalities:
    """Ratios or sums of pushed distributions, or divergences of them, both ways."""
    keys(c, "kind epsilon pairs delta divergence scale")
    given = listing(c["pairs"])
    need(len(given) > 0, "there is no pair")
    scale = [ONE] * len(given) if c["scale"] is None else fractions(c["scale"], len(given))
    pairs = []
    for pair, factor in zip(given, scale, strict=True):
        a, b = (normalised(distribution(side, stated.n)) for side in listing(pair, 2))
        pairs.append(Pair(a, b, factor))
    if all(a == b for a, b, _ in pairs):
        stated.say("constrains nothing")
    epsilon, delta = Real.read(c["epsilon"]), small(c["delta"])
    kind = text(c["divergence"], "the divergence")
    if order_of(kind) is None:
        one_of(kind, ("max", "tv", *DIVERGENCES), "the divergence")
    if kind == "max":
        pairs = both_ways(pairs)
        loose = delta.nearest > 0
        yield Approximate(epsilon, delta, pairs) if loose else Lifted(epsilon, pairs)
        return
    need(not delta.nearest > 0, "a divergence with a delta")
    equal, apart, limits = [], [], []
    for a, b, factor in pairs:
        limit = epsilon.scaled(factor)
        if limit.zero:  # at divergence 0 distributions are equal
            equal.append(Pair(a, b))
            continue
        rate = epsilon.nearest * float(factor)
        need(rate >= 1e-30, "a limit cannot be told from 0")
        need(order_of(kind) is None or rate <= 10, "a limit is too large")
        apart.append(Pair(a, b))
        limits.append(limit)
    if equal:
        yield Lifted(Real(ZERO), both_ways(equal))
    if kind == "tv":  # the same in both directions
        yield from (Approximate(Real(ZERO), v, [p]) for p, v in zip(apart, limits, strict=True))
    elif apart:
        yield Divergences(kind, both_ways(apart), limits * 2)


def pufferfish(stated: Statement, c: Body) -> Inequalities:
    """Of the laws of the answer given one secret and another."""
    keys(c, "kind epsilon pairs delta")
    yield from distribution_privacy(stated, {**c, "divergence": "max", "scale": None})


def renyi_privacy(stated: Statement, c: Body) -> Inequalities:
    """Rényi divergence of the reports of all pairs of secrets, both ways; of order 1 that of
    Kullback and Leibler."""
    keys(c, "kind order epsilon distance")
    order, n = Real.read(c["order"]), stated.n
    need(order.log_of is None, "an order is no fraction")
    name = "kl" if order.factor == 1 else f"renyi:{order.factor}"
    apart = None if c["distance"] is None else stated.among(c["distance"])
    ends = [(i, j) for i in range(n) for j in range(i + 1, n)]
    if not ends:
        stated.say("constrains nothing")
        return
    rows = [[float(s == i) for s in range(n)] for i in range(n)]
    body = {
        "kind": "", "epsilon": c["epsilon"], "delta": 0.0, "divergence": name,
        "pairs": [[rows[i], rows[j]] for i, j in ends],
        "scale": None if apart is None else [
            float(min(apart[i][j], apart[j][i])) for i, j in ends
        ],
    }  # fmt: skip
    yield from distribution_privacy(stated, body)


def policy_graph(stated: Statement, c: Body) -> Inequalities:
    """ε times the length of every edge; what follows along paths needs no statement."""
    keys(c, "kind epsilon graph")
    lengths: list[list[Fraction | None]] = [[None] * stated.n for _ in range(stated.n)]
    need(len(listing(c["graph"])) > 0, "there is no edge")
    for edge in listing(c["graph"]):
        first, second, length = listing(edge, 3)
        i, j, d = whole(first, stated.n), whole(second, stated.n), Fraction(real(length, 0))
        need(i != j, "an edge joins a secret with itself")
        known = lengths[i][j]
        lengths[i][j] = lengths[j][i] = d if known is None else min(d, known)
    yield Ratios(Real.read(c["epsilon"]), lengths, None, None)


def normalised(weights: list[Fraction]) -> Shares:
    total = sum(weights, ZERO)
    return {s: v / total for s, v in enumerate(weights) if v}


def both_ways(pairs: list[Pair]) -> list[Pair]:
    return pairs + [Pair(b, a, d) for a, b, d in pairs]


def distortion_privacy(stated: Statement, c: Body) -> Inequalities:
    """An error is concave in the prior: in a ball it is least at a corner, and no larger where
    weights are rounded down."""
    keys(c, "kind minimum distance prior", "radius within")
    least, d = Real.read(c["minimum"]).bounds(), stated.among(c["distance"])
    weights = stated.prior if c["prior"] is None else distribution(c["prior"], stated.n)
    priors: list[Sequence[Fraction]] = [weights]
    if "radius" in c or "within" in c:
        keys(c, "kind minimum distance prior radius within")
        priors = [[-rounded_up(-v) for v in near] for near in ball(stated, weights, c)]
    for near in priors:
        w = [[v * p for v, p in zip(row, near, strict=True)] for row in d]
        most = blind(w)
        meant = most < least.high <= most * (1 + NEAR)
        yield Distortion(Interval(most, most) if meant else least, w)


def blind(w: Matrix) -> Fraction:
    """d_max: the error of an adversary who sees nothing."""
    return min(sum(row, ZERO) for row in w)


def gain_leakage(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind maximum gain prior radius within")
    most = Real.signed(c["maximum"])
    if c["radius"] is None:
        need(c["within"] is None, "a distance without a radius")
        yield Leakage(most, False, weighted_gains(stated, c["gain"], c["prior"]))
        return
    n, weights = stated.n, stated.prior
    if c["prior"] is not None:
        weights = distribution(c["prior"], n)
    rows = unit_matrix(n) if c["gain"] == "identity" else signed_rows(c["gain"], n)
    need(all(v >= 0 for row in rows for v in row), "a gain below 0")
    for near in ball(stated, weights, c):
        up = [rounded_up(v) for v in near]
        yield Leakage(most, False, [[v * p for v, p in zip(row, up, strict=True)] for row in rows])


def ball(stated: Statement, weights: list[Fraction], c: Body) -> list[Sequence[Fraction]]:
    """Corners of the priors within the radius of c, in total variation or W_1 of a distance."""
    n = stated.n
    apart = [[Fraction(s != t) for t in range(n)] for s in range(n)]
    if c["within"] is not None:
        apart = stated.among(c["within"])
        need(not any(apart[s][s] for s in range(n)), "a place is away from itself")
    return corners(weights, Real.read(c["radius"]).bounds().high, apart)


def corners(weights: list[Fraction], radius: Fraction, apart: Matrix) -> list[Sequence[Fraction]]:
    """Priors whose hull has all that mass can be moved to at a cost of at most the radius: the
    mass of every place goes to one, that of one place perhaps to two (theory, "Leakage")."""
    n, tried = len(weights), 0
    used = [s for s in range(n) if weights[s]]
    found: dict[tuple[Fraction, ...], None] = {}

    def end(left: Fraction, masses: list[Fraction], split: int) -> None:
        cost, mass = apart[split], weights[split]
        for a in (t for t in range(n) if cost[t] * mass < left):
            for b in (t for t in range(n) if cost[t] * mass > left):
                share, out = (left - mass * cost[a]) / (cost[b] - cost[a]), list(masses)
                out[a] += mass - share
                out[b] += share
                found[tuple(out)] = None

    def go(k: int, left: Fraction, masses: list[Fraction], split: int | None) -> None:
        nonlocal tried
        tried += 1
        need(tried < 10**6 and len(found) <= 1000, "too many priors")
        if k < len(used):
            s = used[k]
            for t in range(n):
                cost = weights[s] * apart[s][t]
                if cost <= left:
                    out = list(masses)
                    out[t] += weights[s]
                    go(k + 1, left - cost, out, split)
            if split is None:
                go(k + 1, left, masses, s)
        elif split is None:
            found[tuple(masses)] = None
        else:
            end(left, masses, split)

    go(0, radius, [ZERO] * n, None)
    return list(found)


def mutual_information(stated: Statement, c: Body) -> Inequalities:
    """Where nothing may be told, all rows that count are equal."""
    keys(c, "kind maximum prior")
    weights = stated.prior if c["prior"] is None else distribution(c["prior"], stated.n)
    prior, most = normalised(weights), Real.read(c["maximum"])
    if most.zero:
        first, *others = prior
        pairs = [Pair({first: ONE}, {s: ONE}) for s in others]
        if pairs:
            yield Lifted(Real(ZERO), both_ways(pairs))
        return
    need(most.nearest >= 1e-30, "a limit cannot be told from 0")
    yield Information(most, prior)


def weighted_gains(stated: Statement, gain: object, prior: object) -> Matrix:
    """π(s) g(w,s)."""
    weights = stated.prior if prior is None else distribution(prior, stated.n)
    rows = unit_matrix(stated.n) if gain == "identity" else signed_rows(gain, stated.n)
    return [[v * p for v, p in zip(row, weights, strict=True)] for row in rows]


def goal_of(stated: Statement, goal: Body) -> Matrix:
    """The gains of an objective, weighted; two names mean measures without a prior."""
    if goal["gain"] not in ("maximal", "additive"):
        return weighted_gains(stated, goal["gain"], goal["prior"])
    need(goal["prior"] is None, "a prior of a measure that has none")
    return unit_matrix(stated.n) if goal["gain"] == "maximal" else first_less(stated.n)


def negated(rows: Matrix) -> Matrix:
    return [[-v for v in row] for row in rows]


def maximal_leakage(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind maximum")
    yield Leakage(Real.read(c["maximum"]), True, unit_matrix(stated.n))


def additive_capacity(stated: Statement, c: Body) -> Inequalities:
    """1 - Σ_o min_w P[w,o] = Σ_o max_w (P[0,o] - P[w,o])."""
    keys(c, "kind maximum")
    yield Leakage(small(c["maximum"]), False, first_less(stated.n))


def first_less(n: int) -> Matrix:
    return [[Fraction((s == 0) - (s == w)) for s in range(n)] for w in range(n)]


def unit_matrix(n: int) -> Matrix:
    return [[Fraction(s == w) for s in range(n)] for w in range(n)]


def signed_rows(value: object, columns: int) -> Matrix:
    """A row for every guess, of numbers of any sign."""
    rows = [[Fraction(v) for v in reals(row, columns)] for row in listing(value)]
    need(0 < len(rows) * columns <= MOST_ENTRIES, "there is no guess, or too many")
    return rows


def loss_bound(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind maximum worst_case loss")
    worst, most = c["worst_case"], Real.read(c["maximum"]).bounds()
    need(isinstance(worst, bool), "worst_case is neither true nor false")
    loss = stated.loss if c["loss"] is None else matrix(c["loss"], stated.n, stated.m)
    yield LossLimit(most, None if worst else stated.prior, loss)


def bias(stated: Statement, c: Body) -> Inequalities:
    """Of every coordinate of the values, or of the places."""
    keys(c, "kind maximum values reported")
    meant = columns_of(c["values"], stated.secrets, stated.n)
    given = c["values"] if c["reported"] is None else c["reported"]
    reported = columns_of(given, stated.observables, stated.m)
    most = Real.read(c["maximum"])
    need(not most.zero, "a bias of at most 0")
    for of_secrets, of_reports in zip(meant, reported, strict=True):
        yield Bias(most.bounds(), of_reports, of_secrets)


def columns_of(value: object, places: Places, count: int) -> list[list[Fraction]]:
    """Numbers of any sign, one or some for every element, by coordinate; or the coordinates."""
    rows = listing(places.points if value is None else value, count)
    if not isinstance(rows[0], list):
        rows = [[row] for row in rows]
    width = len(listing(rows[0]))
    return [list(column) for column in zip(*signed_rows(rows, width), strict=True)]


def fixed_rows(stated: Statement, c: Body) -> Inequalities:
    """Rows of whole numbers over a power of two, of secrets in increasing order."""
    keys(c, "kind source bits secrets rows")
    bits, source = whole(c["bits"], 1075), text(c["source"], "the source")
    need(not source or re.fullmatch("sha256:[0-9a-f]{64}", source) is not None, "no digest")
    secrets = [whole(s, stated.n) for s in listing(c["secrets"])]
    need(bool(secrets) and sorted(set(secrets)) == secrets, "secrets are out of order")
    rows = read_mechanism({"bits": bits, "rows": c["rows"]}, len(secrets), stated.m).rows
    stated.say(f"rows of the file {source or '(not named)'}, which is not looked at")
    yield Fixed(bits, dict(zip(secrets, rows, strict=True)))


def support(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind mask")
    rows = listing(c["mask"], stated.n)
    mask = [[whole(v, 2) > 0 for v in listing(row, stated.m)] for row in rows]
    need(all(map(any, mask)), "a secret may report nothing")
    yield Support(mask)


# a kind without a reader here is refused, as is an entry that its reader does not know
READERS: tuple[Callable[[Statement, Body], Inequalities], ...] = (
    metric_privacy, differential_privacy, distortion_privacy, distribution_privacy, loss_bound,
    support, gain_leakage, maximal_leakage, additive_capacity, pufferfish, policy_graph,
    bias, mutual_information, renyi_privacy, fixed_rows,
)  # fmt: skip
KINDS = {reader.__name__: reader for reader in READERS}


class Statement:
    """Minimise the expected or the worst loss, or maximise the distortion of weights ``target``,
    over the mechanisms that satisfy all inequalities; ``allowed`` is what all supports allow."""

    def __init__(self, plain: object, lines: list[str], skip: int | None = None) -> None:
        wanted = "title secrets observables prior loss objective constraints"
        problem, self.lines, self.place = keys(plain, wanted, "loss_name"), lines, ""
        self.n = len(listing(problem["prior"]))
        self.m = len(listing(listing(problem["loss"], self.n)[0]))
        # pairs of secrets count where something is about pairs
        alone = problem["constraints"] == [] and problem["objective"] == "expected_loss"
        wide = self.m if alone else max(self.n, self.m)
        need(self.n * wide <= MOST_ENTRIES, "is too large for this audit")
        with self.at("secrets"):
            self.secrets = read_places(problem["secrets"], self.n)
        with self.at("observables"):
            self.observables = read_places(problem["observables"], self.m)
        text(problem["title"], "the title")
        self.prior = distribution(problem["prior"], self.n)
        self.loss = matrix(problem["loss"], self.n, self.m)
        if "loss_name" in problem:
            with self.at("loss"):
                name = one_of(problem["loss_name"], NAMED, "the name")
                compare(name, self.loss, self.secrets, self.observables)
                self.say(f"the distance is {name}, computed again")
        self.objective, self.target, goal = "distortion", Matrix(), problem["objective"]
        if isinstance(goal, dict):
            with self.at("objective"):
                if "gain" in goal:
                    keys(goal, "gain prior")
                    self.objective, self.target = "leakage", goal_of(self, goal)
                else:
                    keys(goal, "distance prior")
                    self.target = self.weighted(goal["distance"], goal["prior"])
        else:
            self.objective = one_of(goal, ("expected_loss", "worst_loss"), "the objective")
        self.parts: list[tuple[int, Charged | Support | Fixed]] = []
        for k, constraint in enumerate(listing(problem["constraints"])):
            if k == skip:
                continue
            with self.at(f"constraints[{k}]"):
                body = constraint if isinstance(constraint, dict) else {}
                reader = KINDS[one_of(body.get("kind"), KINDS, "the kind")]
                self.parts += [(k, part) for part in reader(self, body)]
        limiting = any(isinstance(part, LossLimit | Support | Bias) for _, part in self.parts)
        need(not self.target or limiting, "distortion or leakage without a limit on loss")
        rows = [[part.mask[s] for part in self.of(Support)] for s in range(self.n)]
        self.allowed = [[all(row[o] for row in own) for o in range(self.m)] for own in rows]
        self.parts = [(k, self.attainable(part)) for k, part in self.parts]
        self.held: dict[int, tuple[int, list[int]]] = {}
        for fixed in self.of(Fixed):
            for s, row in fixed.rows.items():
                self.held.setdefault(s, (fixed.bits, row))

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        self.place = place
        with inside(place):
            yield

    def say(self, words: str) -> None:
        self.lines.append(f"{self.place}: {words}")

    def matrix(self, name: object, plain: object, to: Places) -> Matrix:
        """From the secrets. What has a name that can be computed again has to be it."""
        called, stated = text(name, "a name"), matrix(plain, self.n, len(to.labels))
        if called in NAMED:
            compare(called, stated, self.secrets, to)
            self.say(f"the distance is {called}, computed again")
        else:
            own = "" if called in ("matrix", "given") else f", called {called!a}: not checked"
            self.say(f"a distance given as a matrix{own}")
        return stated

    def among(self, plain: object) -> Matrix:
        """A distance among the secrets."""
        body = keys(plain, "name secrets")
        return self.matrix(body["name"], body["secrets"], self.secrets)

    def across(self, plain: object) -> tuple[Matrix, Matrix]:
        """A distance among the secrets, and from these to the observables."""
        body = keys(plain, "name secrets observables")
        d = self.matrix(body["name"], body["secrets"], self.secrets)
        reach = self.matrix(body["name"], body["observables"], self.observables)
        same = self.secrets == self.observables
        need(not same or reach == d, "one distance between the same places differs")
        return d, reach

    def weighted(self, distance: object, prior: object) -> Matrix:
        """w of a distortion."""
        weights = self.prior if prior is None else distribution(prior, self.n)
        return [[v * p for v, p in zip(row, weights, strict=True)] for row in self.among(distance)]

    def log_ratio(self, s: int, t: int) -> Fraction | None:
        """A number >= the log ratio stated for two secrets, all observables; none without one."""
        parts = [part for part in self.of(Ratios) if part.window is None]
        found = [part.epsilon.times(d, 256).high for part in parts
                 if (d := part.d[s][t]) is not None]  # fmt: skip
        return min(found, default=None)

    def of(self, family: type[T]) -> list[T]:
        return [part for _, part in self.parts if isinstance(part, family)]

    def check(self, mechanism: Mechanism) -> list[str]:
        """Every constraint of the file, family by family."""
        lines = [f"{self.n} rows of {self.m} whole numbers, each with sum 2^{mechanism.bits}"]
        for k, part in self.parts:
            with inside(f"constraints[{k}]"):
                found = part.check(mechanism)
            lines.append(f"constraints[{k}]: {found}")
        return lines

    def attainable(self, part: Charged | Support | Fixed) -> Charged | Support | Fixed:
        """A loss limit that misses the least loss by rounding means it (theory, section 1)."""
        if isinstance(part, LossLimit) and all(map(any, self.allowed)):
            least = self.least(part)
            if part.most.low < least <= part.most.low * (1 + NEAR):
                return replace(part, most=Interval(least, least))
        return part

    def least(self, limit: LossLimit) -> Fraction:
        """What any mechanism on the support loses."""
        rows = zip(limit.loss, self.allowed, strict=True)
        return limit.of([min(c for c, ok in zip(*row, strict=True) if ok) for row in rows])

    def lagrangian(self, plain: object, objective: bool = True) -> Lagrangian:
        """The objective, if it counts, and all inequalities with the multipliers of the file;
        those of the last parts of a family may be left out."""
        wanted = "ratio windowed lifted approximate distortion loss_limits objective"
        charged = [part for _, part in self.parts if not isinstance(part, Support | Fixed)]
        stated = {part.family for part in charged}
        added = [family for family in ADDED if family in stated]
        body = keys(plain, " ".join([wanted, *added]), "divergence")
        bound = Lagrangian(self.allowed, self.held)
        self.add_objective(bound, body["objective"], objective)
        if body["ratio"] is not None:  # one list for all of them
            ratios = [part for part in self.of(Ratios) if part.window is None]
            charge_ratios(ratios, bound, body["ratio"])
        for family in (*FAMILIES, *added):
            given = listing(body.get(family, []))
            parts = [part for part in charged if part.family == family]
            need(len(given) <= len(parts), f"{family}: multipliers of nothing")
            for part, own in zip(parts, given, strict=False):
                part.charge(bound, own)
        return bound

    def value(self, p: Mechanism) -> Fraction:
        """What is minimised: a loss, a leakage, or minus the distortion."""
        if self.objective == "leakage":
            return -p.distortion(negated(self.target))
        if self.objective == "distortion":
            return -p.distortion(self.target)
        losses = p.losses(self.loss)
        return max(losses) if self.objective == "worst_loss" else dot(self.prior, losses)

    def add_objective(self, bound: Lagrangian, plain: object, counts: bool) -> None:
        """π_s c(s,o); ω_s c(s,o) for weights ω >= 0, all 1 if none are given, whose sum is divided
        by in the end; or an attack on the distortion."""
        goal = None
        if plain is not None:
            need(self.objective != "expected_loss", "an expected loss has no multipliers")
            worst = self.objective == "worst_loss"
            goal = entries(plain, *((1, self.n) if worst else (self.m, len(self.target))))
        if counts and self.objective == "leakage":
            bound.add_attack(ONE, goal or [], negated(self.target))
        elif counts and self.objective == "distortion":
            bound.add_attack(ONE, goal or [], self.target)
        elif counts and self.objective == "worst_loss":
            given = {s: cut(value) for _, s, value in goal or ()}
            weights = [ONE if goal is None else given.get(s, ZERO) for s in range(self.n)]
            bound.unit = sum(weights, ZERO)
            need(bound.unit > 0, "the weights of the worst loss are zero")
            bound.add_losses(weights, self.loss)
        elif counts:
            bound.add_losses(self.prior, self.loss)


# ==== 7. The verdict on a design ==================================================================
FIGURES = ("objective", "bound", "loss", "lower_bound")
Verdict = tuple[list[str], str]  # what was verified, and what the file says that was not


def promises_of(body: Body) -> list[Body]:
    """The constraints of the problem, as objects."""
    problem = body["problem"] if isinstance(body["problem"], dict) else {}
    stated = listing(problem.get("constraints"))
    return [c if isinstance(c, dict) else {} for c in stated]


def judge_design(body: Body) -> Verdict:
    if any("everywhere" in c for c in promises_of(body)):
        return Everywhere(body).check()
    keys(body, "digest format problem result mechanism multipliers", "outer")
    lines: list[str] = []
    unchecked = "title, labels, coordinates, outlines, units, engine, reason, notes, seconds, "
    unchecked += "rounding cost"
    stated, released = Statement(body["problem"], lines), body["mechanism"] is not None
    with inside("result"):
        result = read_result(body["result"], released)
    with inside("multipliers"):
        bound = stated.lagrangian(body["multipliers"], objective=released)
    if released:
        with inside("mechanism"):
            mechanism = read_mechanism(body["mechanism"], stated.n, stated.m)
        lines += stated.check(mechanism)
        lines += check_approximations(stated, mechanism, listing(result["approximations"]))
        cells, proved = with_cells(body, stated, lines)
        lines += check_figures(stated, mechanism, result, bound, cells, proved)
        unchecked += f"; {cells}" if cells else ""
    else:
        lines.append(why_infeasible(stated, bound))
    return lines, unchecked


WITNESS = {"plans", "costs"}  # entries that prove the numbers of cells; older files have none


def outer_of(plain: object) -> Body:
    """The proof of a bound by cells, with or without what proves their numbers."""
    more = " ".join(WITNESS) if isinstance(plain, dict) and WITNESS & plain.keys() else ""
    return keys(plain, f"cells multipliers {more}")


def with_cells(body: Body, stated: Statement, lines: list[str]) -> tuple[str, Fraction | None]:
    """Words for a bound by cells of the secrets that nothing in the file proves, or else the bound
    that is proved; neither where there are no cells."""
    if "outer" not in body:
        return "", None
    outer = outer_of(body["outer"])
    need(stated.objective == "expected_loss", "cells of another objective")
    if WITNESS & outer.keys():
        with inside("outer"):
            cells = Cells(outer, stated, stated.log_ratio)
            proved = cells.bound()
        lines.append(f"a bound by {len(cells.groups)} cells of the {stated.n} secrets")
        return "", proved
    for cell in listing(outer["cells"], stated.n):
        whole(cell, stated.n)
    return "the lower bound, gap and status, by cells of the secrets", None


def read_result(plain: object, released: bool) -> Body:
    """Types and ranges of what the file claims; figures are null where nothing is feasible."""
    result = keys(plain, "status objective bound loss lower_bound engine engine_reason seconds "
                  "rounding_cost reason notes approximations")  # fmt: skip
    known = ("optimal", "feasible") if released else ("infeasible",)
    need(text(result["status"], "the status") in known, "the status does not fit")
    for name in FIGURES:
        need(released or result[name] is None, "a figure of no mechanism")
        if released:
            real(result[name], 0 if name == "lower_bound" else -math.inf)
    for name in ("engine", "engine_reason", "reason"):
        text(result[name], f"the {name}")
    for note in listing(result["notes"]):
        text(note, "a note")
    number(result["seconds"], 0)
    number(result["rounding_cost"])
    for approximation in listing(result["approximations"]):
        part = keys(approximation, "constraint promised_epsilon epsilon repaired_loss")
        need(released, "an approximation of nothing")
        whole(part["constraint"], MOST_ENTRIES)
        number(part["promised_epsilon"])
        for value in (part["epsilon"], part["repaired_loss"]):
            need(value is None or math.isfinite(number(value)), "an ε or a loss is not finite")
    return result


def check_approximations(
    stated: Statement, mechanism: Mechanism, claims: list[object]
) -> Iterator[str]:
    """The ε of constraints with thresholds, measured again over all pairs of secrets."""
    parts = [(k, v) for k, v in stated.parts if isinstance(v, Ratios) and v.unthresholded]
    bodies = [claim for claim in claims if isinstance(claim, dict)]
    places = [claim["constraint"] for claim in bodies]
    need(places == [k for k, _ in parts], "approximations are missing")
    for claim, (k, part) in zip(bodies, parts, strict=True):
        epsilon = math.inf if claim["epsilon"] is None else claim["epsilon"]
        with inside(f"constraints[{k}]"):
            least, found, most = measured(mechanism.rows, part.unthresholded or [])
            near = epsilon >= 0 and least * (1 - 1e-9) <= epsilon <= most * (1 + 1e-9)
            need(near, f"with its thresholds ε is {found}")
            same = math.isclose(claim["promised_epsilon"], part.epsilon.nearest, rel_tol=1e-9)
            need(same, "another ε was promised")
        yield (
            f"constraints[{k}]: for all pairs ε is {found:.9g}, measured again; the loss after "
            "repair is not checked"
        )


def measured(rows: list[list[int]], d: Matrix) -> tuple[float, float, float]:
    """The least ε of metric privacy, the largest ln(p(o|s) / p(o|s')) / d(s, s'), between
    bounds of what floats nearest to the probabilities give: logarithms that are off by a few
    2^-53, and equal rows that are equal."""
    worst = (0.0, 0.0, 0.0)
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            if i == j or row == other:
                continue
            if d[i][j] == 0 or any(a and not b for a, b in zip(row, other, strict=True)):
                return math.inf, math.inf, math.inf
            tops = [(a, b) for a, b in zip(row, other, strict=True) if a > b]
            best = max((log_ratio(a, b) for a, b in tops), default=0.0)
            own = [(best + off) / float(d[i][j]) for off in (-LOG_ROUNDING, 0, LOG_ROUNDING)]
            worst = (max(worst[0], own[0]), max(worst[1], own[1]), max(worst[2], own[2]))
    return worst


def log_ratio(a: int, b: int) -> float:
    """ln(a / b) for a > b > 0."""
    try:
        return math.log1p((a - b) / b)
    except OverflowError:
        return math.log(a) - math.log(b)


def check_figures(
    stated: Statement, mechanism: Mechanism, result: Body, bound: Lagrangian, cells: str = "",
    by_cells: Fraction | None = None,
) -> Iterator[str]:  # fmt: skip
    """Value and bound of the file against exact ones: never better than the truth. Of a distortion
    ``bound`` is that of its negative. ``cells`` prove nothing here, or the bound ``by_cells``."""
    objective, claimed, loss, least = (number(result[name]) for name in FIGURES)
    proved, losses = bound.value(), mechanism.losses(stated.loss)
    maximise = stated.objective == "distortion"
    exact = max(losses) if stated.objective == "worst_loss" else dot(stated.prior, losses)
    if maximise:
        value = mechanism.distortion(stated.target)
        need(objective == -rounded_up(-value), "the distortion is another one")
        need(claimed >= min(-proved, blind(stated.target)), "the bound is not proved")
        priced = least == 0 or least <= least_loss(stated, bound, -proved - value)
        need(priced, "the least loss: unproved")
    elif stated.target:
        regret = negated(stated.target)
        value = mechanism.distortion(regret)
        need(objective == rounded_up(-value), "the leakage is another one")
        need(claimed <= max(proved, -blind(regret)), "the bound is not proved")
        priced = least == 0 or least <= least_loss(stated, bound, -proved - value)
        need(priced, "the least loss: unproved")
    else:
        need(objective == loss, "objective and loss differ")
        proved = max(proved, by_cells or ZERO)
        need(bool(cells) or claimed <= max(proved, ZERO), "the bound is not proved")
        need(least == claimed, "bound and lower bound differ")
    need(loss == rounded_up(exact), "the loss is another one")
    if cells:
        yield f"loss {float(loss):.15g}"
    else:
        yield f"objective {float(objective):.15g}, bound {float(claimed):.15g}"
        yield f"loss {float(loss):.15g}, lower bound {float(least):.15g}"
    off = float(claimed) - float(objective)
    off = max(0.0, off if maximise else -off)
    gap = 0.0 if off == 0 else off / abs(float(objective)) if objective else math.inf
    best = check_status(result["status"], gap) == "optimal"
    if not cells:
        yield f"gap {gap:.2g}: {'optimal' if best else 'not proved to be optimal'}"


def check_status(stated: object, gap: float | Fraction) -> str:
    """The word for a certified relative gap, of all files alike: it follows from the gap."""
    status = "optimal" if gap <= OPTIMAL_GAP else "feasible"
    need(stated == status, f"the gap is {float(gap):.2g}: {status}, and not {stated!a:.40}")
    return status


def least_loss(stated: Statement, bound: Lagrangian, gap: Fraction) -> Fraction:
    """q - (U - D) / μ, where one bound on the problem's own expected loss is stated: what costs
    distortion D (theory, end of section 2). ``gap`` is U - D."""
    limits = stated.of(LossLimit)
    need(len(limits) == len(bound.paid) == 1, "there is no price of loss")
    limit, mu = limits[0], bound.paid[0][0]
    priced = limit.prior is not None and limit.loss == stated.loss and mu > 0
    need(priced, "there is no price of loss")
    return limit.most.low - gap / mu


def why_infeasible(stated: Statement, bound: Lagrangian) -> str:
    """More distortion or less loss than there can be, zeros that fill a row, or multipliers with a
    positive bound of nothing."""
    possible = all(map(any, stated.allowed))
    for k, part in stated.parts:
        if isinstance(part, Distortion) and part.least.low > blind(part.w):
            return f"constraints[{k}]: more distortion than any mechanism has"
        if isinstance(part, Leakage) and part.limit[1] is not None and part.limit[1] < part.blind:
            return f"constraints[{k}]: less leakage than any mechanism has"
        if isinstance(part, Bias) and possible:
            for meant, ok in zip(part.meant, stated.allowed, strict=True):
                seen = [v for v, may in zip(part.reported, ok, strict=True) if may]
                if not min(seen) - part.most.high <= meant <= max(seen) + part.most.high:
                    return f"constraints[{k}]: a mean that no reports have"
        if isinstance(part, LossLimit) and possible and stated.least(part) > part.most.high:
            return f"constraints[{k}]: less loss than any mechanism has"
    conflict = conflict_of_rows(stated)
    if conflict:
        return conflict
    if any(map(all, forced_zeros(stated))):
        return "the support leaves a secret without observables"
    need(bound.value() > 0, "the multipliers do not prove that nothing is feasible")
    return "the multipliers prove that nothing is feasible"


def conflict_of_rows(stated: Statement) -> str:
    """Why rows that are held cannot be kept together; empty where no two of them say so."""
    for k, part in stated.parts:
        if isinstance(part, Fixed):
            for s, row in part.rows.items():
                bits, first = stated.held[s]
                if any(v << bits != w << part.bits for v, w in zip(row, first, strict=True)):
                    return f"constraints[{k}]: row {s} is fixed twice"
                if any(v and not ok for v, ok in zip(row, stated.allowed[s], strict=True)):
                    return f"constraints[{k}]: row {s} is outside the support"
    top = max((bits for bits, _ in stated.held.values()), default=0)
    rows = {s: [v << (top - bits) for v in row] for s, (bits, row) in stated.held.items()}
    for k, part in stated.parts:
        if not isinstance(part, Ratios):
            continue
        for i, row in rows.items():
            for j, other in rows.items():
                d = part.d[i][j]
                if d is None or i == j:
                    continue
                for o in part.seen(i, stated.m):
                    if not at_most(row[o], other[o], part.epsilon, d):
                        return f"constraints[{k}]: rows {i} and {j}, which are held, break a ratio"
    return ""


def forced_zeros(stated: Statement) -> Mask:
    """Where P[j,o] = 0 and P[i,o] <= e^{ε d} P[j,o], P[i,o] = 0: from the support on, until
    nothing changes (theory, section 1)."""
    zero = [[not ok for ok in row] for row in stated.allowed]
    moved = any(map(any, zero))
    while moved:
        moved = False
        for part in stated.of(Ratios):
            for i, row in enumerate(part.d):
                seen = part.seen(i, stated.m)
                known = [zero[j] for j, d in enumerate(row) if d is not None]
                for o in seen:
                    if not zero[i][o] and any(other[o] for other in known):
                        zero[i][o] = moved = True
    return zero


# ==== 8. Mechanisms with an auxiliary input: couplings and targets (theory, section 9) ============
# For every value t of the auxiliary input a plan moves the input's distribution λ_t to the output's
# μ_t. The outputs have to be equal or close, and the loss is Σ_t w_t Σ γ_t d.
MOST_EPSILON = 1000  # beyond e^1000 multipliers prove nothing
MOST_SHIFT = 5001


class Plan:
    """A coupling γ in whole numbers, its marginals proved, and the potentials of a proof: u and v
    are times 2^shift, and input, output and flows have sums of their own."""

    def __init__(self, plain: object, n: int, m: int, proof: bool) -> None:
        body = keys(plain, "input output moves" + (" potentials shift" if proof else ""))
        self.input, self.output = masses(body["input"], n), masses(body["output"], m)
        self.flows: dict[tuple[int, int], int] = {}
        before, rows, columns = (-1, -1), [0] * n, [0] * m
        for move in listing(body["moves"]):
            source, sink, flow = listing(move, 3)
            x, y = whole(source, n), whole(sink, m)
            need((x, y) > before, "moves are not in order")
            before, self.flows[x, y] = (x, y), integer(flow, 1)
            rows[x] += self.flows[x, y]
            columns[y] += self.flows[x, y]
        fits = any(rows) and same(self.input, rows) and same(self.output, columns)
        need(fits, "a plan does not have its marginals")
        self.u, self.v, self.shift = [0] * n, [0] * m, 0
        if proof:
            first, second = listing(body["potentials"], 2)
            self.u = [integer(p) for p in listing(first, n)]
            self.v = [integer(p) for p in listing(second, m)]
            self.shift = whole(body["shift"], MOST_SHIFT)
            known = zip(self.u + self.v, self.input + self.output, strict=True)
            need(all(mass or not p for p, mass in known), "a point without mass has a potential")

    def cost(self, d: Matrix) -> Fraction:
        total = sum(self.flows.values())
        return sum((flow * d[x][y] for (x, y), flow in self.flows.items()), ZERO) / total

    def longest(self, d: Matrix) -> Fraction:
        return max(d[x][y] for x, y in self.flows)

    def dual(self) -> Fraction:
        """Σ λ u + Σ μ v: no plan costs less if u + v <= d."""
        first, second = (
            Fraction(sum(a * b for a, b in zip(side, given, strict=True)), sum(given))
            for side, given in ((self.u, self.input), (self.v, self.output))
        )
        return (first + second) / Fraction(1 << self.shift)

    def is_optimal(self, d: Matrix, limit: Fraction | None) -> bool:
        """u + v <= d between points with mass, up to a limit of d; equality where mass moves."""
        for x, unit in enumerate(self.input):
            for y, other in enumerate(self.output):
                if not unit or not other or (limit is not None and d[x][y] > limit):
                    continue
                slack = d[x][y] * 2**self.shift - self.u[x] - self.v[y]
                if slack < 0 or (slack and (x, y) in self.flows):
                    return False
        return True

    def is_crowded(self, points: list[int], d: Matrix, longest: Fraction) -> bool:
        """Whether ``points`` hold more mass than all that is nearer than ``longest`` (Hall)."""
        near = [y for y in range(len(self.output)) if any(d[x][y] < longest for x in points)]
        held = sum(self.input[x] for x in points) * sum(self.output)
        return held > sum(self.output[y] for y in near) * sum(self.input)


def masses(value: object, count: int) -> list[int]:
    out = [integer(v, 0) for v in listing(value, count)]
    need(any(out), "a distribution has no mass")
    return out


def same(p: list[int], q: list[int]) -> bool:
    """Whether two lists of masses are one distribution."""
    one, other = sum(p), sum(q)
    return all(a * other == b * one for a, b in zip(p, q, strict=True))


class Family:
    """Mechanisms with an auxiliary input, one plan for each: losses, outputs, and the bound."""

    def __init__(self, body: Body) -> None:
        keys(body, "digest format task p epsilon delta outside secrets observables names weights "
             "distance_name distance plans multipliers crowded claims seconds")  # fmt: skip
        self.lines: list[str] = []
        self.coupled = one_of(body["task"], ("coupling", "target"), "the task") == "coupling"
        one_of(body["outside"], ("target", "nearest"), "the rule for other inputs")
        self.bottleneck, plain = body["p"] == "inf", type(body["p"]) is int and body["p"] == 1
        need(plain or (self.bottleneck and self.coupled), "p is unknown, or does not fit the task")
        self.read_distances(body)
        names = [text(name, "a name") for name in listing(body["names"])]
        self.count = len(names)
        need(0 < self.count == len(set(names)), "names are missing or not distinct")
        self.epsilon, self.delta = Real.read(body["epsilon"]), small(body["delta"])
        free = self.epsilon.nearest > 0 or self.delta.nearest > 0
        need(not (self.coupled and free), "outputs of a coupling are equal")
        self.plans = []
        for t, part in enumerate(listing(body["plans"], self.count)):
            with inside(f"plan {t}"):
                self.plans.append(Plan(part, self.n, self.m, self.coupled))
        self.weights = masses(body["weights"], self.count)
        self.read_proofs(body)
        real(body["seconds"], 0)
        claims = keys(body["claims"], "status loss lower_bound losses worst_moves")
        self.status = one_of(claims["status"], ("optimal", "feasible"), "the status")
        self.loss, self.least = fractions([claims["loss"], claims["lower_bound"]], 2)
        self.losses = fractions(claims["losses"], self.count)
        self.longest = fractions(claims["worst_moves"], self.count)

    def read_distances(self, body: Body) -> None:
        rows = listing(body["distance"])
        self.n, self.m = len(rows), len(listing(rows[0]))
        need(0 < self.n * self.m <= MOST_ENTRIES, "is too large for this audit, or empty")
        with inside("secrets"):
            secrets = read_places(body["secrets"], self.n)
        with inside("observables"):
            observables = read_places(body["observables"], self.m)
        self.d = matrix(rows, self.n, self.m)
        name = one_of(body["distance_name"], ("matrix", *NAMED), "the name of the distances")
        if name == "matrix":
            self.lines.append("the distances are a matrix of the file: compared with nothing")
            return
        with inside("the distances"):
            compare(name, self.d, secrets, observables)
        self.lines.append(f"the distances are {name}, computed again")

    def read_proofs(self, body: Body) -> None:
        """Points too full for shorter moves, and multipliers z[t][t'][y] times 2^shift."""
        self.crowded: list[list[int]] = []
        for points in listing(body["crowded"], self.count if self.bottleneck else 0):
            found = [whole(x, self.n) for x in listing(points)]
            need(len(set(found)) == len(found), "a point occurs twice in a set")
            self.crowded.append(found)
        size, self.shift = self.count, 0
        self.z = [[[0] * self.m for _ in range(size)] for _ in range(size)]
        if body["multipliers"] is None:
            return
        need(not self.coupled, "a coupling has no multipliers")
        with inside("multipliers"):
            given = keys(body["multipliers"], "values shift")
            self.shift = whole(given["shift"], MOST_SHIFT)
            self.z = [
                [[integer(v, 0) for v in listing(row, self.m)] for row in listing(part, size)]
                for part in listing(given["values"], size)
            ]
            own = any(any(part[t]) for t, part in enumerate(self.z))
            need(not own, "an input has a multiplier with itself")

    def check(self) -> Verdict:
        self.lines.append(f"{self.count} plans, each with its marginals, in whole numbers")
        self.check_outputs()
        limits = [plan.longest(self.d) for plan in self.plans]
        for t, (plan, limit) in enumerate(zip(self.plans, limits, strict=True)):
            if self.coupled:
                proved = plan.is_optimal(self.d, limit if self.bottleneck else None)
                need(proved, f"plan {t}: is not proved to be optimal")
            if self.bottleneck and limit:
                proved = plan.is_crowded(self.crowded[t], self.d, limit)
                need(proved, f"plan {t}: maybe a longest move is shorter")
        if self.coupled:
            far = ", or less far" if self.bottleneck else ""
            self.lines.append(f"no plan moves less{far}")
        self.check_figures(limits)
        return self.lines, "labels, coordinates and units, names of the inputs, seconds"

    def check_outputs(self) -> None:
        outputs = [plan.output for plan in self.plans]
        if all(same(outputs[0], output) for output in outputs):
            self.lines.append("all outputs are one distribution")
            return
        need(not self.coupled, "the outputs are not one distribution")
        for a, p in enumerate(outputs):
            for b, q in enumerate(outputs):
                need(a == b or self.is_close(p, q), f"outputs {a} and {b} are not close")
        self.lines.append("all outputs are close in pairs")

    def is_close(self, p: list[int], q: list[int]) -> bool:
        """Σ max(0, p - e^ε q) <= δ."""
        one = sum(p) * sum(q)
        sides = [(a * sum(q), b * sum(p)) for a, b in zip(p, q, strict=True)]
        if not self.delta.nearest > 0:
            return all(at_most(a, b, self.epsilon, ONE) for a, b in sides)
        low, _ = self.epsilon.exp(ONE, one.bit_length() + 256)
        spent = sum((max(ZERO, a - low * b) for a, b in sides), ZERO)
        return spent <= self.delta.bounds().low * one

    def bound(self) -> Fraction:
        """Σ_t Σ_x λ_t[x] min_y (w_t d(x,y) + g_t[y]) - δ Σ max_y z, with e^ε and δ rounded up, and
        g_t[y] = Σ_t' (z[t][t'][y] - e^ε z[t'][t][y]). For given outputs, the duals of the plans."""
        weights = [Fraction(w, sum(self.weights)) for w in self.weights]
        if self.coupled:
            return dot(weights, [plan.dual() for plan in self.plans])
        factor, z = ZERO, [[[0] * self.m for _ in part] for part in self.z]
        if self.epsilon.bounds(128).low <= MOST_EPSILON:
            factor, z = raised(self.epsilon.exp(ONE, 4096)), self.z
        most = sum(max(row) for part in z for row in part)
        total = -raised(self.delta.bounds(2048)) * Fraction(most, 1 << self.shift)
        # in whole numbers of one unit: fractions are slow
        denominator = math.lcm(*(v.denominator for row in self.d for v in row))
        d = [[int(v * denominator) for v in row] for row in self.d]
        for t, (plan, weight) in enumerate(zip(self.plans, weights, strict=True)):
            g = [
                sum((z[t][o][y] - factor * z[o][t][y] for o in range(self.count)), ZERO)
                / 2**self.shift
                for y in range(self.m)
            ]
            unit = math.lcm(*(v.denominator for v in g), weight.denominator * denominator)
            added, scale = [int(v * unit) for v in g], int(weight * unit / denominator)
            for x, mass in enumerate(plan.input):
                if mass:
                    least = min(c * scale + v for c, v in zip(d[x], added, strict=True))
                    total += Fraction(mass * least, sum(plan.input) * unit)
        return max(ZERO, total)

    def check_figures(self, limits: list[Fraction]) -> None:
        costs = [plan.cost(self.d) for plan in self.plans]
        loss, bound = dot(self.weights, costs) / sum(self.weights), self.bound()
        need(self.losses == [rounded_up(cost) for cost in costs], "the losses are other ones")
        need(self.longest == limits, "the longest moves are other ones")
        need(self.loss == rounded_up(loss), "the loss is another one")
        proper = -rounded_up(-bound)
        need(self.least <= proper, "the bound is not proved")
        bound = self.least if self.least < proper else bound
        gap = rounded_up((loss - bound) / loss) if loss else ZERO
        status = check_status(self.status, gap)
        self.lines.append(f"loss {float(self.loss):.15g}, lower bound {float(self.least):.15g}")
        self.lines.append(f"gap {float(gap):.2g}: {status}")


def raised(known: tuple[Fraction, Fraction | None]) -> Fraction:
    """The number where it is rational, else the next multiple of 2^-256 above it."""
    low, high = known
    if high is None:
        raise Fault("e^ε is too large")
    return high if low == high else Fraction(math.floor(high * 2**256) + 1, 2**256)


# ==== 9. Mechanisms that are private at every point (theory, "Privacy at every point") ============
# p_o is a polynomial of degree d in every triangle, with a coefficient P[α] for each of its control
# points α = (α₀, α₁, α₂), Σα = d, in Bernstein's form: Σ_α d!/α! λ^α P[α]; linear for d = 1. In
# whole numbers over a power of two: edges d₁, d₂ of a triangle, D = d₁ × d₂, rises a, b of the
# coefficients along them; then those of D ∇p_o are a d₂' - b d₁' with (x, y)' = (y, -x).
Point = tuple[int, int]
Corners = tuple[int, int, int]
Index = tuple[int, int, int]
At = tuple[list[int], list[int]]  # control points, and what they count for over their sum


class Region:
    """Triangles, proved to tile a convex region edge to edge."""

    def __init__(self, plain: object, places: list[list[float]]) -> None:
        curved = isinstance(plain, dict) and "degree" in plain
        body = keys(plain, "vertices triangles unit coordinates" + " degree" * curved)
        self.degree = whole(body.get("degree", 1), 7)
        need(self.degree > 0, "the degree is none")
        self.measure = text(body["unit"], "the unit")
        self.globe = one_of(body["coordinates"], ("plane", "lonlat"), "the system") == "lonlat"
        given = [reals(v, 2) for v in listing(body["vertices"])]
        need(all(len(p) == 2 for p in places), "a place is not in the plane")
        floats = [v for p in given + places for v in p]
        self.unit = max(Fraction(v).denominator for v in floats)
        self.vertices = [self.scaled(p) for p in given]
        self.places = [self.turned(self.scaled(p)) for p in places]
        self.triangles = []
        for row in listing(body["triangles"]):
            a, b, c = (whole(k, len(given)) for k in listing(row, 3))
            self.triangles.append((a, b, c))
        self.stretch: list[tuple[int, int]] = []
        self.check_tiling()
        if self.globe:
            counts = [(Fraction(x), Fraction(y)) for x, y in kilometres(given, self.triangles)]
            grain = max(k.denominator for pair in counts for k in pair)
            self.stretch = [(int(x * grain), int(y * grain)) for x, y in counts]
            self.unit *= grain  # of the edges, from here on
        self.buckets = self.sorted_into_buckets()
        self.number_control_points()

    def scaled(self, point: list[float]) -> Point:
        x, y = (int(Fraction(v) * self.unit) for v in point)
        return x, y

    def turned(self, place: Point) -> Point:
        """On the globe the same place within half a turn of the region's middle."""
        if not self.globe:
            return place
        west, east = (end(x for x, _ in self.vertices) for end in (min, max))
        turn = 360 * self.unit
        return place[0] - round(Fraction(2 * place[0] - west - east, 2 * turn)) * turn, place[1]

    def edges(self, t: int) -> tuple[Point, Point]:
        (ax, ay), (bx, by), (cx, cy) = (self.vertices[k] for k in self.triangles[t])
        x, y = self.stretch[t] if self.stretch else (1, 1)
        return (x * (bx - ax), y * (by - ay)), (x * (cx - ax), y * (cy - ay))

    def check_tiling(self) -> None:
        """Counterclockwise triangles, no edge twice, every vertex used, and the edges without a
        reverse form one ring that turns left only, once around."""
        seen: set[tuple[int, int]] = set()
        for t, (a, b, c) in enumerate(self.triangles):
            need(cross(*self.edges(t)) > 0, f"triangle {t} has no area, or runs clockwise")
            for edge in ((a, b), (b, c), (c, a)):
                need(edge not in seen, "two triangles lie on one side of an edge")
                seen.add(edge)
        need(len({a for a, _ in seen}) == len(self.vertices), "a vertex is in no triangle")
        border = {a: b for a, b in seen if (b, a) not in seen}
        need(len(border) == sum((b, a) not in seen for a, b in seen), "the border meets itself")
        ring = [min(border)]
        while border[ring[-1]] != ring[0] and len(ring) <= len(border):
            ring.append(border[ring[-1]])
        need(len(ring) == len(border), "the border is not one ring")
        ends = zip(ring, ring[1:] + ring[:1], strict=True)
        both = [(self.vertices[a], self.vertices[b]) for a, b in ends]
        steps = [(b[0] - a[0], b[1] - a[1]) for a, b in both]
        for k, step in enumerate(steps):
            before = steps[k - 1]
            straight = cross(before, step) == 0 and before[0] * step[0] + before[1] * step[1] > 0
            need(cross(before, step) > 0 or straight, "the border is not convex")
        up = [y > 0 or (y == 0 and x > 0) for x, y in steps]
        once = sum(here and not up[k - 1] for k, here in enumerate(up)) == 1
        need(once, "the border goes around more than once")

    def number_control_points(self) -> None:
        """Vertices first, then those along each edge from its lower vertex, the edges in order,
        then those inside of each triangle."""
        d, number = self.degree, len(self.vertices)
        self.indices = [(d - j - k, j, k) for k in range(d + 1) for j in range(d + 1 - k)]
        known: dict[tuple[Point, ...], int] = {((v, d),): v for v in range(number)}
        three = [sorted(corners) for corners in self.triangles]
        edges = {edge for a, b, c in three for edge in ((a, b), (a, c), (b, c))}
        for start, end in sorted(edges):
            for step in range(1, d):
                known[(start, d - step), (end, step)] = number
                number += 1
        self.control: list[list[int]] = []
        for corners in self.triangles:
            own = []
            for index in self.indices:
                held = sorted((v, n) for v, n in zip(corners, index, strict=True) if n)
                if len(held) == 3:
                    known[tuple(held)] = number
                    number += 1
                own.append(known[tuple(held)])
            self.control.append(own)
        self.count = number
        # rises at α: Σ_k α_k (P[α - e_k + e_1] - P[α - e_k + e_0]), and with e_2 in place of e_1
        place = {index: i for i, index in enumerate(self.indices)}
        self.rises = [
            [[(n, place[moved(at, k, 0)], place[moved(at, k, e)]) for k, n in enumerate(at) if n]
             for at in self.indices] for e in (1, 2)
        ]  # fmt: skip

    def bucket(self, value: int, axis: int) -> int:
        low, high = self.ends[axis]
        return (value - low) * self.side // (high - low)

    def sorted_into_buckets(self) -> dict[Point, list[int]]:
        """The triangles whose boxes meet each cell of a grid over the region."""
        self.side = math.isqrt(len(self.triangles)) + 1
        sides = [[v[axis] for v in self.vertices] for axis in (0, 1)]
        self.ends = [(min(side), max(side)) for side in sides]
        out: dict[Point, list[int]] = {}
        for t, corners in enumerate(self.triangles):
            spans = []
            for axis in (0, 1):
                values = [self.vertices[k][axis] for k in corners]
                first, last = self.bucket(min(values), axis), self.bucket(max(values), axis)
                spans.append(range(first, last + 1))
            for i in spans[0]:
                for j in spans[1]:
                    out.setdefault((i, j), []).append(t)
        return out

    def shares(self, place: Point) -> At:
        """The control points around a place, and the values of Bernstein's polynomials there."""
        key = self.bucket(place[0], 0), self.bucket(place[1], 1)
        for t in self.buckets.get(key, ()):
            corners = self.triangles[t]
            away = [(x - place[0], y - place[1]) for x, y in (self.vertices[k] for k in corners)]
            weights = [cross(away[k - 2], away[k - 1]) for k in range(3)]
            if min(weights) >= 0:
                top, x, y, z = math.factorial(self.degree), *weights
                values = [
                    top // math.prod(map(math.factorial, (i, j, k))) * x**i * y**j * z**k
                    for i, j, k in self.indices
                ]
                return self.control[t], values
        raise Fault("a place lies outside of the region")


def moved(index: Index, one: int, other: int) -> Index:
    a, b, c = (n - (k == one) + (k == other) for k, n in enumerate(index))
    return a, b, c


def cross(a: Point, b: Point) -> int:
    return a[0] * b[1] - a[1] * b[0]


def most_gained(w: Matrix, p: Mechanism) -> Fraction:
    """At least Σ_o max_g Σ_s w[g][s] P[s,o] for P between two matrices, w of any sign."""
    columns = zip(zip(*p.rows, strict=True), zip(*p.high, strict=True), strict=True)
    return sum(
        (
            max(
                sum(v * (b if v > 0 else a) for v, a, b in zip(row, low, high, strict=True))
                for row in w
            )
            for low, high in columns
        ),
        ZERO,
    ) / (1 << p.bits)


class Everywhere:
    """The mechanism of a region: gradients, loss, and the bounds."""

    def __init__(self, body: Body) -> None:
        keys(body, "digest format problem result mechanism multipliers", "outer")
        problem, bodies = body["problem"], promises_of(body)
        self.lines: list[str] = []
        everywhere = [k for k, c in enumerate(bodies) if "everywhere" in c]
        need(len(everywhere) == 1, "there is not one promise at every point")
        index, constraint = everywhere[0], bodies[everywhere[0]]
        # the promise is not one about secrets: it is read here
        self.stated = Statement(problem, self.lines, index)
        self.beside = self.stated.parts
        for k, part in self.beside:
            alone = isinstance(part, Divergences | Information | Fixed)
            need(not alone, f"constraints[{k}] does not stand beside a promise at every point")
        need(self.stated.objective == "expected_loss", "the objective is not the expected loss")
        with inside(f"constraints[{index}]"):
            promise = keys(constraint, "kind epsilon distance everywhere")
            known = ("euclidean", "haversine")
            fits = promise["kind"] == "metric_privacy" and promise["distance"] in known
            need(fits, f"is no metric privacy by a distance that is measured here: {known}")
            self.epsilon = Real.read(promise["epsilon"])
            secrets, globe = self.stated.secrets, promise["distance"] == "haversine"
            need(secrets.points is not None and secrets.globe is globe and secrets.bounds is None,
                 "the places are not points that this distance measures")  # fmt: skip
            self.region = Region(promise["everywhere"], secrets.points or [])
            need(self.region.globe is globe, "the mesh is not in the coordinates of the places")
            units = secrets.unit, self.region.measure
            fits = units[1] == "km" if globe else "" in units or units[0] == units[1]
            need(fits, "the mesh is in another unit than the places")
        self.located = [self.region.shares(place) for place in self.region.places]
        self.released = body["mechanism"] is not None
        with inside("multipliers"):
            self.read_vectors(body["multipliers"])
        with inside("result"):
            result = read_result(body["result"], self.released)
        self.outer = body.get("outer")
        if not self.released:
            return
        with inside("mechanism"):
            self.rows = read_mechanism(body["mechanism"], self.region.count, self.stated.m)
        with inside("result"):
            need(result["approximations"] == [], "an approximation of a promise at every point")
            self.status = str(result["status"])
            names = ("objective", "loss", "bound", "lower_bound")
            value, self.loss, self.bound, self.least = fractions([result[k] for k in names], 4)
            need(value == self.loss, "the objective is not the loss")

    def read_vectors(self, plain: object) -> None:
        """Two numbers for each control point, of the reports of every triangle that have some."""
        numbers = 2 * len(self.region.indices)
        given = dict(plain) if isinstance(plain, dict) else {}
        stated = listing(given.pop("gradient", None))
        none = {"bits": 0, "vectors": [[[], []] for _ in self.region.triangles]}
        need(len(stated) < 2, "there is not one promise at every point")
        self.joint, body = given, keys(stated[0] if stated else none, "bits vectors")
        self.bits = whole(body["bits"], 2000)
        self.vectors: list[dict[int, list[int]]] = []
        for part in listing(body["vectors"], len(self.region.triangles)):
            reports, values = (listing(side) for side in listing(part, 2))
            own: dict[int, list[int]] = {}
            for o, vector in zip(reports, listing(values, len(reports)), strict=True):
                need(whole(o, self.stated.m) > max(own, default=-1), "reports are out of order")
                own[whole(o, self.stated.m)] = [signed(v) for v in listing(vector, numbers)]
            self.vectors.append(own)

    def check(self) -> Verdict:
        region, unchecked = self.region, "title, labels, units, engine, reason, notes, seconds, "
        unchecked += "rounding cost"
        self.lines.append(f"{len(region.triangles)} triangles tile a convex region edge to edge")
        if not self.released:
            self.lines.append(self.why_infeasible())
            return self.lines, unchecked
        self.lines.append(f"{region.count} rows of {self.stated.m} whole numbers")
        self.check_gradients()
        self.check_beside()
        low, high = self.expected()
        need(self.loss in (rounded_up(low), rounded_up(high)), "the loss is another one")
        need(self.bound <= max(self.mesh_bound(), ZERO), "the bound is not proved")
        off = float(max(self.loss - self.bound, ZERO))
        gap = off / float(self.loss) if off else 0.0
        check_status(self.status, gap)
        self.lines.append(f"loss {float(self.loss):.15g}, on this mesh at least "
                          f"{float(self.bound):.15g}: a gap of {gap:.2g}")  # fmt: skip
        words = f"{float(self.least):.15g} as a lower bound of every mechanism"
        if self.outer is None:
            need(self.least == 0, "the lower bound is not proved")
        elif (outer := outer_of(self.outer))["cells"] is None:
            keys(outer, "cells multipliers")
            need(self.least <= max(self.outer_bound(outer), ZERO), "the lower bound is not proved")
            beside = " and keeps the other constraints" * bool(self.beside)
            self.lines.append(
                f"{words} that is private at every point{beside}, by the places alone"
            )
        elif not WITNESS & outer.keys():
            for cell in listing(outer["cells"], self.stated.n):
                whole(cell, self.stated.n)
            unchecked += f"; {words}, by cells of the places"
        else:
            with inside("outer"):
                cells = Cells(outer, self.stated, self.log_ratio)
                proved = cells.bound()
            need(self.least <= max(proved, ZERO), "the lower bound is not proved")
            count = f"{len(cells.groups)} cells of the {self.stated.n} places"
            self.lines.append(f"{words} that is private at every point, by {count}")
        return self.lines, unchecked

    def log_ratio(self, s: int, t: int) -> Fraction:
        return self.epsilon.bounds().high * self.apart(s, t)

    def check_gradients(self) -> None:
        """‖a d₂ - b d₁‖ <= ε D P[α] at every control point, squared, in whole numbers."""
        rate, rows = self.epsilon.bounds().low, self.rows.rows
        for t, control in enumerate(self.region.control):
            first, second = self.region.edges(t)
            limit = (rate * cross(first, second)) / self.region.unit
            top, bottom = limit.numerator, limit.denominator
            for o, values in enumerate(zip(*(rows[k] for k in control), strict=True)):
                for own, *rises in zip(values, *self.region.rises, strict=True):
                    a, b = (sum(n * (values[j] - values[i]) for n, i, j in r) for r in rises)
                    x, y = a * second[0] - b * first[0], a * second[1] - b * first[1]
                    if bottom * bottom * (x * x + y * y) > (top * own) ** 2:
                        raise Fault(f"triangle {t}: the probability of report {o} is too steep")
        count = len(self.region.indices) * len(self.region.triangles) * self.stated.m
        self.lines.append(f"{count} gradients, each within ε at all points of the region")

    def check_beside(self) -> None:
        """What is said of the places, of the mechanism there: Σ_α B_α(x) P[α,o] between multiples
        of 2^-(bits + 64), of which the one that is harder to keep counts."""
        if not self.beside:
            return
        low: list[list[int]] = []
        high: list[list[int]] = []
        for control, weights in self.located:
            rows = zip(*(self.rows.rows[k] for k in control), strict=True)
            tops = [
                sum(w * v for w, v in zip(weights, column, strict=True)) << 64 for column in rows
            ]
            low.append([top // sum(weights) for top in tops])
            high.append([-(-top // sum(weights)) for top in tops])
        there = Mechanism(self.rows.bits + 64, low, high)
        for k, part in self.beside:
            with inside(f"constraints[{k}]"):
                found = part.check(there)
            self.lines.append(f"constraints[{k}]: {found}, at the places")

    def expected(self) -> Interval:
        """Σ_x π(x) Σ_α B_α(x) Σ_o c(x,o) P[α,o], between multiples of 2^-SCALE."""
        low, high = 0, 0
        for (control, weights), mass, costs in self.places():
            terms = (dot(self.rows.rows[k], costs) for k in control)
            value = mass * dot(weights, terms) / (sum(weights) << self.rows.bits) * 2**SCALE
            low, high = low + math.floor(value), high + math.ceil(value)
        return Interval(Fraction(low, 1 << SCALE), Fraction(high, 1 << SCALE))

    def places(self) -> Iterator[tuple[At, Fraction, list[Fraction]]]:
        return zip(self.located, self.stated.prior, self.stated.loss, strict=True)

    def why_infeasible(self) -> str:
        """What proves that the mesh has no mechanism that satisfies everything."""
        with inside("multipliers"):
            bound = self.stated.lagrangian(self.joint, objective=False)
        with suppress(Fault):
            return why_infeasible(self.stated, bound)
        need(self.mesh_bound(False) > 0, "nothing proves that the problem is infeasible")
        return "infeasible: the multipliers of all constraints demand more than there is"

    def mesh_bound(self, objective: bool = True) -> Fraction:
        """For any vectors w, |w| ε D P[α] + w·(D G[α]) >= 0 at every control point α, G those of
        ∇p: taken off the costs, these leave the sum of the least entries of the rows."""
        rate, unit = self.epsilon.bounds().high, self.region.unit
        # what is never reported from one place is not reported from any point
        allowed = [all(column) for column in zip(*self.stated.allowed, strict=True)]
        need(any(allowed), "no observable is allowed at all places")
        bound = Lagrangian([allowed for _ in range(self.region.count)])
        with inside("multipliers"):
            joint = self.stated.lagrangian(self.joint, objective)
        bound.K = joint.K
        costs = [[Fraction(v, 1 << SCALE) for v in row] for row in joint.L]
        for (control, weights), row in zip(self.located, costs, strict=True):
            for k, weight in zip(control, weights, strict=True):
                share = Fraction(weight, sum(weights))
                for o, c in enumerate(row):
                    bound.add(k, o, share * c)
        for t, control in enumerate(self.region.control):
            first, second = self.region.edges(t)
            steep = rate * cross(first, second) / unit**2
            for o, w in self.vectors[t].items():
                slopes = [0] * len(control)
                for at, (k, x, y) in enumerate(zip(control, w[::2], w[1::2], strict=True)):
                    size = root_up(x * x + y * y)
                    bound.add(k, o, -steep * Fraction(size, 1 << self.bits))
                    # (x, y)' · w = y w_x - x w_y
                    sides = cross((x, y), second), -cross((x, y), first)
                    for side, rises in zip(sides, self.region.rises, strict=True):
                        for n, i, j in rises[at]:
                            slopes[i] += n * side
                            slopes[j] -= n * side
                for k, v in zip(control, slopes, strict=True):
                    bound.add(k, o, Fraction(v, unit << self.bits))
        return bound.value()

    def outer_bound(self, plain: Body) -> Fraction:
        """The bound of the problem whose secrets are the places, with distances rounded up: what is
        private at every point is private between them."""
        need(self.stated.n**2 <= MOST_ENTRIES, "too many places for a bound by these alone")
        apart = [
            [None if s == t else self.apart(s, t) for t in range(len(self.region.places))]
            for s in range(len(self.region.places))
        ]
        self.stated.parts = [(0, Ratios(self.epsilon, apart, None, None)), *self.beside]
        with inside("outer"):
            return self.stated.lagrangian(plain["multipliers"]).value()

    def apart(self, s: int, t: int) -> Fraction:
        """A number that is not below the distance of two places."""
        if self.region.globe:  # on the globe floats err by far less than what is added
            both = self.stated.secrets.points or []
            return Fraction(between("haversine", both[s], both[t]) * (1 + 1e-9) + 1e-9)
        p, q = self.region.places[s], self.region.places[t]
        square = (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2
        return rounded_up(Fraction(root_up(square << 256), self.region.unit << 128))


# What a degree counts for (theory, "On the globe"): enclosures in multiples of 2^-TRIG.
TRIG = 240
PRECISE = 1 << TRIG


def outward(low: Fraction, high: Fraction) -> Interval:
    return Interval(Fraction(math.floor(low * PRECISE), PRECISE),
                    Fraction(math.ceil(high * PRECISE), PRECISE))  # fmt: skip


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
    return Interval(Fraction(math.isqrt(math.floor(x.low * PRECISE**2)), PRECISE),
                    Fraction(math.isqrt(math.ceil(x.high * PRECISE**2)) + 1, PRECISE))  # fmt: skip


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


def arc_sine(y: Interval) -> Interval:
    """For numbers below the sine of 3/2, by halving."""
    last = 3 * PRECISE // 2
    need(y.high < sine(Fraction(last, PRECISE)).low, "the region is too large for a map of degrees")
    low, high, top = 0, last, last
    while high - low > 1:
        middle = (low + high) // 2
        fits = sine(Fraction(middle, PRECISE)).high <= y.low
        low, high = (middle, high) if fits else (low, middle)
    bottom = low
    while top - low > 1:
        middle = (low + top) // 2
        fits = sine(Fraction(middle, PRECISE)).low >= y.high
        low, top = (low, middle) if fits else (middle, top)
    return Interval(Fraction(bottom, PRECISE), Fraction(top, PRECISE))


def kilometres(vertices: list[list[float]], corners: list[Corners]) -> list[tuple[float, float]]:
    """For every triangle what a degree of longitude and one of latitude count for, rounded down:
    lines of the map, measured so, are at most as long as great circles."""
    (west, east), (south, north) = (
        (min(v[k] for v in vertices), max(v[k] for v in vertices)) for k in (0, 1)
    )
    top, near = max(abs(south), abs(north)), min(abs(south), abs(north))
    need(top <= 85 and east - west < 180, "the region is too large, or too close to a pole")
    wide, tall = (
        radians(Fraction(east) - Fraction(west)),
        radians(Fraction(north) - Fraction(south)),
    )
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
    out = []
    for triangle in corners:
        cos = cosine_of(max(abs(vertices[k][1]) for k in triangle)).low
        out.append((math.nextafter(float(scale * cos), -math.inf), along))
    return out


def root_up(square: int) -> int:
    return math.isqrt(square - 1) + 1 if square else 0


def signed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise Fault(f"{value!a} is no whole number")
    return value


# ==== 10. Bounds by cells of the secrets (theory, "Cells and what proves them") ===================
Growth = Callable[[int, int], Fraction | None]  # a number >= the log ratio stated for two secrets
FINE = 1 << 64  # powers of e are whole numbers over this, rounded up


class Cells:
    """A bound on every mechanism P from its means Q[C,o] over cells, weighted by the prior: rows of
    Q sum to one, Q[C,o] <= Λ Q[C',o] where a plan moves C to C', and C pays at least κ Q[C,o] for
    o. Masses are in multiples of 2^-SCALE."""

    def __init__(self, plain: object, stated: Statement, logs: Growth) -> None:
        self.body = keys(plain, "cells multipliers plans costs")
        self.stated, self.logs, self.powers = stated, logs, dict[tuple[int, int], int | None]()
        self.mass = [int(p * 2**SCALE) for p in stated.prior]
        held: dict[int, list[int]] = {}
        for s, cell in enumerate(listing(self.body["cells"], stated.n)):
            held.setdefault(whole(cell, MOST_ENTRIES), []).append(s)
        parts = ([s for s in held[cell] if self.mass[s]] for cell in sorted(held))
        self.groups = [group for group in parts if group]
        self.total = [sum(self.mass[s] for s in group) for group in self.groups]

    def grown(self, s: int, t: int) -> int | None:
        """A number >= FINE e^r of two secrets; none where nothing is stated, or too much."""
        r = self.logs(s, t)
        if s == t or r is None or r > LARGEST_LOG:
            return FINE if s == t else None
        return math.ceil(exp_bounds(r, 64).high * FINE)

    def known(self, s: int, t: int) -> int | None:
        """The same, of secrets that are asked for often."""
        if (s, t) not in self.powers:
            self.powers[s, t] = self.grown(s, t)
        return self.powers[s, t]

    def arrivals(self, plan: Plans, first: int, second: int) -> list[int] | None:
        """FINE times what arrives at every member of the second cell when shares of sum one of all
        mass of the first go as the plan says, times e^r; none where some cannot."""
        sources, targets = self.groups[first], self.groups[second]
        arrived: list[int] | None = [0] * len(targets)
        power = self.known if first == second else self.grown
        for s in sources:
            arcs = plan.next_arcs(len(targets))
            sent = sum(share for _, share in arcs)
            for j, share in arcs:
                grown = power(s, targets[j])
                if arrived is None or grown is None:
                    arrived = None
                else:
                    arrived[j] += ceiling(self.mass[s] * share * grown, sent)
            if not arcs:
                arrived = None
        return arrived

    def bound(self) -> Fraction:
        """Of all mechanisms, by any multipliers >= 0 of the cells (theory, Theorem 1)."""
        bound = Lagrangian([[True] * self.stated.m for _ in self.groups])
        with inside("costs"):
            self.pay(bound)
        with inside("plans"):
            ratios = self.ratios()
        with inside("multipliers"):
            names = "windowed lifted approximate distortion loss_limits objective"
            given = keys(self.body["multipliers"], f"ratio {names}", "divergence")
            need(given["objective"] is None or given["objective"] == [], "of nothing")
            others = [given[name] for name in given if name not in ("ratio", "objective")]
            need(all(other == [] for other in others), "of nothing")
            if given["ratio"] is None:
                return bound.value()
            body = keys(given["ratio"], "i j o value")
            count = len(listing(body["i"]))
            columns = (listing(body[name], count) for name in ("i", "j", "o", "value"))
            for i_, j_, o_, value in zip(*columns, strict=True):
                i, j, o = whole(i_, bound.n), whole(j_, bound.n), whole(o_, bound.m)
                z, factor = cut(number(value)), ratios.get((i, j))
                if z > 0 and factor is not None:
                    bound.add(i, o, z)
                    bound.add(j, o, -z * factor)
        return bound.value()

    def ratios(self) -> dict[tuple[int, int], Fraction]:
        """Λ of pairs of cells, from above: any plan proves one."""
        body = keys(self.body["plans"], "first second arcs target share")
        out: dict[tuple[int, int], Fraction] = {}
        plan, count, last = Plans(body), len(self.groups), (-1, -1)
        seconds = listing(body["second"], len(listing(body["first"])))
        for i_, j_ in zip(listing(body["first"]), seconds, strict=True):
            i, j = whole(i_, count), whole(j_, count)
            need(i != j, "a plan from a cell to itself")
            need(last < (i, j), "pairs of cells are out of order")
            last = i, j
            arrived = self.arrivals(plan, i, j)
            if arrived is not None:
                # rounded once, as masses may be of any sizes
                over = max(
                    ceiling(v * FINE * self.total[j], self.mass[t] * self.total[i])
                    for t, v in zip(self.groups[j], arrived, strict=True)
                )
                out[i, j] = Fraction(over, FINE * FINE)
        plan.end()
        return out

    def pay(self, bound: Lagrangian) -> None:
        """What each cell pays for every observable, at least, is added to the bound."""
        costs = self.body["costs"]
        if isinstance(costs, dict) and "radii" in costs:
            need(sum(len(g) ** 2 for g in self.groups) <= MOST_ENTRIES, "cells of too many secrets")
            radii = fractions(keys(costs, "radii")["radii"], self.stated.n)
            for k, group in enumerate(self.groups):
                self.pay_box(bound.L[k], group, [radii[s] for s in group])
            return
        plan = Plans(keys(costs, "arcs target share"))
        for k, group in enumerate(self.groups):
            for o in range(self.stated.m):
                arrived = self.arrivals(plan, k, k)
                paid = [
                    (self.total[k] * self.mass[t] * c.numerator * FINE) // (c.denominator * v)
                    for t, v in zip(group, arrived or [], strict=arrived is not None)
                    for c in (self.stated.loss[t][o],)
                    if v
                ]
                bound.L[k][o] += min(paid, default=0)
        plan.end()

    def pay_box(self, row: list[int], group: list[int], radii: list[Fraction]) -> None:
        """Every column within the ratios is within factors e^{±f} of a level if f_s + f_t >= r_st:
        its mean cost is least where the cheapest are high and the others low."""
        for s, f in zip(group, radii, strict=True):
            for t, g in zip(group, radii, strict=True):
                r = self.logs(s, t)
                need(s == t or (r is not None and f + g >= r), "radii are too small")
        if max(radii) > LARGEST_LOG:
            return
        ups = [math.ceil(exp_bounds(f, 64).high * FINE) for f in radii]
        high = [self.mass[s] * u for s, u in zip(group, ups, strict=True)]
        low = [self.mass[s] * (FINE * FINE // u) for s, u in zip(group, ups, strict=True)]
        total = sum(self.mass[s] for s in group)
        for o in range(self.stated.m):
            costs = [self.stated.loss[s][o] for s in group]
            grain = max(c.denominator for c in costs)
            units = [int(c * grain) for c in costs]
            over, under = sum(c * v for c, v in zip(units, low, strict=True)), sum(low)
            least = over * total // (under * grain) if under else min(units) * total // grain
            for k in sorted(range(len(group)), key=units.__getitem__):
                over, under = over + units[k] * (high[k] - low[k]), under + high[k] - low[k]
                least = min(least, over * total // (under * grain))
            row[o] += least


class Plans:
    """Plans as the file has them: source by source so many arcs, their targets and shares."""

    def __init__(self, body: Body) -> None:
        self.counts, targets, shares = (listing(body[k]) for k in ("arcs", "target", "share"))
        self.arcs = zip(targets, listing(shares, len(targets)), strict=True)
        self.sources = iter(self.counts)

    def next_arcs(self, targets: int) -> list[tuple[int, int]]:
        found = []
        for _ in range(whole(next(self.sources, None), targets + 1)):
            target, share = next(self.arcs, (None, None))
            need(whole(share, 2**32) > 0, "a share of nothing")
            found.append((whole(target, targets), whole(share, 2**32)))
        return found

    def end(self) -> None:
        need(next(self.sources, None) is None and next(self.arcs, None) is None, "arcs of nothing")


# ==== 11. Noise on all whole numbers (Theory, "Noise on the integers") ============================
class NoiseLoss(NamedTuple):
    """c(0), ..., c(m), and c(m) + slope j + curvature j² for k = m + j: of a function at most that,
    and at least the same with the two numbers of ``least``."""

    values: list[Fraction]
    slope: Fraction
    curvature: Fraction
    least: tuple[Fraction, Fraction] | None = None

    @property
    def below(self) -> NoiseLoss:
        return self if self.least is None else NoiseLoss(self.values, *self.least)

    @property
    def words(self) -> str:
        ends = [
            f"{float(self.values[-1]):.9g} + {float(a):.9g} j + {float(b):.9g} j²"
            for a, b in (self.least or (ZERO, ZERO), (self.slope, self.curvature))
        ]
        return f"a function, beyond {len(self.values) - 1} between {' and '.join(ends)}"

    @property
    def own_words(self) -> str:
        return "seconds" + ", that the loss is this function" * (self.least is not None)

    def at(self, k: int) -> Fraction:
        j = abs(k) - len(self.values) + 1
        return self.values[abs(k)] if j <= 0 else self.values[-1] + self.far(j)

    def far(self, j: int) -> Fraction:
        return self.slope * j + self.curvature * j * j

    def polynomial(self, start: int) -> tuple[Fraction, Fraction, Fraction]:
        """(a, b, g): c(start + j) = a + b j + g j² for j >= 0, from c at three places beyond m."""
        x, y, z = (self.at(start + j) for j in range(3))
        return x, (4 * y - 3 * x - z) / 2, (z - 2 * y + x) / 2


def read_noise_loss(plain: object) -> NoiseLoss:
    name = plain.get("name") if isinstance(plain, dict) else None
    if name == "absolute" or name == "square":
        keys(plain, "name")
        one = Fraction(name == "absolute"), Fraction(name == "square")
        return NoiseLoss([ZERO], *one)
    if name == "threshold":
        width = whole(keys(plain, "name width")["width"], 9999)
        return NoiseLoss([ZERO] * (width + 1) + [ONE], ZERO, ZERO)
    if name == "function":
        body = keys(plain, "name values most least")
        values = [Fraction(v) for v in reals(body["values"])]
        need(0 < len(values) <= 10_000 and min(values) >= 0, "the loss is no function")
        need(max(values) < 2**60, "the loss is no function")
        most, least = fractions(body["most"], 2), fractions(body["least"], 2)
        need(all(0 <= a <= b < 2**60 for a, b in zip(least, most, strict=True)), "it falls")
        return NoiseLoss(values, most[0], most[1], (least[0], least[1]))
    one_of(name, ("table",), "the loss")
    values = [Fraction(v) for v in reals(keys(plain, "name values")["values"])]
    need(2 <= len(values) <= 10_000 and min(values) >= 0, "the loss is no table")
    need(max(values) < 2**60 and values[-1] >= values[-2], "the loss is no table")
    return NoiseLoss(values, values[-1] - values[-2], ZERO)


def wholes(value: object) -> list[int]:
    return [integer(v, 0) for v in listing(value)]


LAW = "bits window tails ratio ratio_bits"
SLOWEST = 1 - Fraction(1, 1 << 24)  # of ratios of tails: draws take a step for every period


class Noise:
    """A law z on the integers, symmetric: window[|k|] / 2^bits up to n, and p tails a side beyond,
    each geometric from period to period; what it promises, its loss, and what all noise loses."""

    numbers = "whole numbers"
    alike = ""

    def __init__(self, body: Body) -> None:
        entries = "digest format epsilon delta sensitivity loss law multipliers claims seconds"
        keys(body, entries, "releases")
        self.epsilon, self.delta = Real.read(body["epsilon"]), Real.read(body["delta"])
        self.releases, self.lattice = 1, 0
        if "releases" in body:
            several = keys(body["releases"], "count exponent")
            self.releases = whole(several["count"], 10_001)
            self.lattice = whole(several["exponent"], 25)
            need(self.releases > 1, "too few releases")
        # several releases without δ add up to ε
        self.each = self.epsilon
        if self.releases > 1 and self.delta.zero:
            self.each = self.epsilon.scaled(Fraction(1, self.releases))
            self.alike = ", with the same law in every release,"
        need(self.epsilon.nearest <= 64, "ε is too large")
        need(self.delta.bounds().high <= 1, "δ is above 1")
        self.read_law(body)
        need(self.releases == 1 or self.n + self.period <= 50_000, "too many places")
        self.multipliers = body["multipliers"]

    def read_law(self, body: Body) -> None:
        """The sensitivity, the loss, the law and the claims."""
        self.sensitivity = whole(body["sensitivity"], 1001)
        need(self.sensitivity > 0, "the sensitivity is 0")
        self.loss = read_noise_loss(body["loss"])
        law = keys(body["law"], LAW)
        self.bits = whole(law["bits"], 4097)
        self.window, self.tails = wholes(law["window"]), wholes(law["tails"])
        exponent = whole(law["ratio_bits"], 4097)
        self.ratio = Fraction(integer(law["ratio"], 0), 1 << exponent)
        need(len(self.window) + len(self.tails) <= 200_000, "the law is too long")
        need(self.bits > 0 and bool(self.window), "the law is empty")
        total = 2 * sum(self.window) - self.window[0] + 2 * sum(self.tails)
        need(total == 1 << self.bits, "the probabilities do not sum to one")
        need(self.ratio <= SLOWEST, "the tails hardly fall")
        need(bool(self.tails) == (self.ratio > 0) == any(self.tails), "tails without their ratio")
        self.n, self.period = len(self.window) - 1, len(self.tails)
        terms = (self.n + self.period + self.sensitivity) * self.sensitivity
        need(terms <= 4_000_000, "too many places for the sensitivity")
        need(not 0 < self.period < self.sensitivity, "fewer tails than the sensitivity")
        self.claims = keys(body["claims"], "status loss lower_bound")
        real(body["seconds"], 0)

    def check(self) -> Verdict:
        power = self.each.exp(ONE, 192)
        if self.releases == 1 or self.delta.zero:
            worst = max(self.excess(s, power[0]) for s in range(1, self.sensitivity + 1))
        else:
            worst = Releases(self).delta()
        need(worst <= self.delta.bounds().low, f"δ is {float(worst):.9g}, and more than stated")
        together = f" of {self.releases} releases together" if self.releases > 1 else ""
        return self.verdict(
            self.lower_bound(power[1]),
            f"(ε, δ) = ({self.epsilon.text}, {self.delta.text}){together} at every shift up to "
            f"{self.sensitivity}: δ is {float(worst):.9g}",
        )

    def verdict(self, least: Fraction, promise: str) -> Verdict:
        """The claims against what was found."""
        loss = self.expected()
        claimed = real(self.claims["lower_bound"], 0)
        need(real(self.claims["loss"]) == rounded_up(loss), "the loss is another one")
        need(claimed <= least, "the lower bound is not proved")
        stated = float(rounded_up(loss))
        gap = max(0.0, stated - claimed) / stated if stated else 0.0
        check_status(self.claims["status"], gap)
        ends = "" if self.period else ", none beyond"
        lines = [
            f"probabilities of all {self.numbers}, {self.n} to either side one by one{ends}, in "
            f"whole numbers over 2^{self.bits}",
            promise,
            f"expected loss {stated:.15g}, and of all noise that is as private{self.alike} "
            f"at least {claimed:.15g}: a gap of {gap:.2g}",
        ]
        if self.loss.least is not None:
            lines.insert(1, self.loss.words)
        return lines, self.loss.own_words

    @cache  # noqa: B019
    def z(self, k: int) -> Fraction:
        block, c = divmod(k - self.n - 1, self.period or 1)
        if k <= self.n:
            return Fraction(self.window[k], 1 << self.bits)
        if not self.period:
            return ZERO
        return Fraction(self.tails[c], 1 << self.bits) * (1 - self.ratio) * self.ratio**block

    def excess(self, s: int, power: Fraction) -> Fraction:
        """Σ_i max(0, z(i) - power z(i + s)): term by term where one of the two places is in the
        window or the tails differ; a period further out, terms shrink by the ratio."""
        last = self.n + s + self.period
        unit = 1 << self.bits
        scaled = [self.z(k) * unit for k in range(last + s + 1)]
        whole = math.lcm(power.denominator, *(v.denominator for v in scaled[self.n :]))
        z = [int(v * whole) for v in scaled]
        a, b = power.numerator, power.denominator

        def terms(first: int, end: int) -> int:
            pairs = ((abs(i), abs(i + s)) for i in range(first, end + 1))
            return sum(max(0, b * z[i] - a * z[j]) for i, j in pairs)

        total = Fraction(terms(-self.n - s, self.n))
        outer = terms(self.n + 1, self.n + self.period)
        outer += terms(-self.n - s - self.period, -self.n - s - 1)
        return (total + outer / (1 - self.ratio)) / (b * whole * unit)

    def expected(self) -> Fraction:
        """Σ c(k) z(k), with Σ r^j (1 - r) (1, j, j²) = (1, r/(1 - r), r (1 + r)/(1 - r)²)."""
        total = sum((self.loss.at(k) * v for k, v in enumerate(self.window)), ZERO)
        total = 2 * total - self.loss.at(0) * self.window[0]
        r, p = self.ratio, self.period
        need(not p or self.n >= len(self.loss.values) - 1, "the window is too short for the loss")
        for c, mass in enumerate(self.tails):
            x, y, w = self.loss.polynomial(self.n + 1 + c)
            second = r * (1 + r) / (1 - r) ** 2
            total += 2 * mass * (x + y * p * r / (1 - r) + w * p * p * second)
        return total / (1 << self.bits)

    def lower_bound(self, power: Fraction | None) -> Fraction:
        """min C(k) - 2 δ Σ λ for the multipliers in the file; 0 without any."""
        if self.multipliers is None:
            return ZERO
        body = keys(self.multipliers, "bits shifts")
        unit = 1 << whole(body["bits"], 4097)
        rows = [self.read_row(part, unit) for part in listing(body["shifts"])]
        need(power is not None and len({s for s, *_ in rows}) == len(rows) > 0, "no multipliers")
        assert power is not None
        n = len(rows[0][1]) // 2
        need(all(len(inner) == 2 * n + 1 for _, inner, _, _ in rows), "windows differ")
        last = max(n + max(s for s, *_ in rows), len(self.loss.values) - 1)
        a, b = power.numerator, power.denominator
        below = self.loss.below
        inside = [below.at(k) * unit * b for k in range(last + 1)]
        # beyond: C(last + j) is a polynomial in j, known from three places
        beyond = [below.at(last + j) * unit * b for j in (1, 2, 3)]
        for s, inner, (x, y, w), _ in rows:
            own = {i - n: v for i, v in enumerate(inner) if v}
            far = {n + j: x + y * j + w * j * j for j in range(1, last - n + 4)}
            at = own | far
            for k in range(last + 1):
                gain = at.get(k, 0) + at.get(-k, 0)
                inside[k] += b * gain - a * (at.get(k - s, 0) + at.get(-k - s, 0))
            for j in (1, 2, 3):
                beyond[j - 1] += b * at[last + j] - a * at[last + j - s]
        first, second, third = beyond
        bend, rise = third - 2 * second + first, second - first
        need(bend >= 0 and (bend > 0 or rise >= 0), "nothing is proved far out")
        # least of first + (rise - bend/2) t + bend/2 t² over t >= 0
        slope = rise - bend / 2
        low = first if slope >= 0 else first - slope * slope / (2 * bend)
        least = min(*inside, low) / (unit * b)
        cost = 2 * self.delta.bounds().high * sum(limit for *_, limit in rows) / unit
        return max(ZERO, least - (ZERO if self.delta.zero else cost))

    def read_row(self, plain: object, unit: int) -> tuple[int, list[int], list[int], int]:
        """A shift s, y_s(-n), ..., y_s(n), the polynomial beyond n, and the limit λ_s."""
        body = keys(plain, "shift inner tail limit")
        s, inner, tail = whole(body["shift"], 1001), wholes(body["inner"]), wholes(body["tail"])
        limit = integer(body["limit"], 0)
        need(0 < s <= self.sensitivity and len(tail) == 3 and len(inner) % 2 == 1, "a bad shift")
        bent = self.loss.below.curvature > 0
        need(bent or tail[2] == 0, "multipliers grow faster than the loss")
        need(
            bent or self.loss.below.slope > 0 or tail[1] == 0,
            "multipliers grow faster than the loss",
        )
        if not self.delta.zero:
            need(max(*inner, tail[0]) <= limit and tail[1:] == [0, 0], "a multiplier is too large")
        return s, inner, tail, limit


class PowerNoise(Noise):
    """Noise whose promise is D_α(Z ‖ Z + s) <= ε for every |s| up to the sensitivity."""

    def __init__(self, body: Body) -> None:
        keys(body, "digest format renyi sensitivity loss law tangents claims seconds")
        stated = keys(body["renyi"], "order epsilon")
        order = text(stated["order"], "the order")
        need(re.fullmatch("[1-9][0-9]?(/[1-9][0-9]?)?", order) is not None, "a bad order")
        self.order, self.epsilon = Fraction(order), Real.read(stated["epsilon"])
        need(str(self.order) == order and self.order > 1, "an order is written otherwise, or <= 1")
        need(max(self.order.numerator, self.order.denominator) <= 64, "the order is too large")
        need(self.epsilon.nearest <= 64, "ε is too large")
        need(float(self.order - 1) * self.epsilon.nearest <= 4000, "ε is too large")
        self.read_law(body)
        terms = (self.n + self.period + self.sensitivity) * self.sensitivity
        need(terms <= 200_000, "too many places for the sensitivity")
        digits = self.bits + 3 * whole(keys(body["law"], LAW)["ratio_bits"], 4097)
        need(terms * digits * self.order.numerator <= 10**9, "too many digits for the order")
        self.tangents = body["tangents"]

    def check(self) -> Verdict:
        low, high = self.epsilon.exp(self.order - 1, 192)
        worst = max(self.power_sum(s) for s in range(1, self.sensitivity + 1))
        need(worst <= low, "a Rényi divergence is larger than stated")
        assert high is not None
        return self.verdict(
            self.tangent_bound(high),
            f"Rényi divergence of order {self.order} at most {self.epsilon.text} at every shift up "
            f"to {self.sensitivity}",
        )

    def power_sum(self, s: int) -> Fraction:
        """At least Σ_i z(i) (z(i) / z(i + s))^(α-1)."""

        def terms(places: range) -> Fraction:
            pairs = [(self.z(abs(i)), self.z(abs(i + s))) for i in places]
            need(all(q for p, q in pairs if p), "a place is possible, and its shift is not")
            used = [(p, q) for p, q in pairs if p]
            unit = 1 << 700
            whole = [
                ceiling(v.numerator * unit, v.denominator)
                for v in (p * power_bounds(p / q, self.order - 1).high for p, q in used)
            ]
            return Fraction(sum(whole), unit)

        n, p = self.n, self.period
        outer = terms(range(n + 1, n + p + 1)) + terms(range(-n - s - p, -n - s))
        return terms(range(-n - s, n + 1)) + outer / (1 - self.ratio)

    def tangent_bound(self, limit: Fraction) -> Fraction:
        """min C(k), C(k) = c(k) + Σ λ [(g(k) + g(-k))/2 - e^((α-1)ε)] with g(k) = α x(k)^(α-1) -
        (α-1) x(k-s)^α for the numbers x and λ of the file; 0 without any."""
        if self.tangents is None:
            return ZERO
        body = keys(self.tangents, "bits price_bits shifts")
        unit = 1 << whole(body["bits"], 4097)
        scale = 1 << whole(body["price_bits"], 4097)
        parts = [keys(part, "shift price inner tail") for part in listing(body["shifts"])]
        shifts = [whole(part["shift"], 1001) for part in parts]
        need(len(set(shifts)) == len(shifts) > 0, "no shifts, or twice the same")
        need(min(shifts) > 0 and max(shifts) <= self.sensitivity, "a bad shift")
        sizes = {len(listing(part["inner"])) for part in parts}
        need(len(sizes) == 1, "windows differ")
        size = sizes.pop()
        need(size % 2 == 1 and size * len(parts) <= 400_000, "a bad window")
        n = size // 2
        last = max(n + max(shifts), len(self.loss.values) - 1) + 1
        # twice C(k) but for the loss, over 2^600: beyond the last place all stays the same
        found, digits = [0] * (last + 1), 0
        for s, part in zip(shifts, parts, strict=True):
            price, ends = integer(part["price"], 0), wholes(part["tail"])
            need(len(ends) == 2, "tails are two numbers")
            places = [ends[1], *wholes(part["inner"]), ends[0]]
            widest = max(unit, *places).bit_length()
            digits += len(places) * widest * self.order.numerator
            need(digits <= 10**9, "too many digits for the order")
            gain: dict[int, int] = {}
            harm: dict[int, int] = {}
            for x in set(places):
                low = power_bounds(Fraction(x, unit), self.order - 1).low
                high = power_bounds(Fraction(x, unit), self.order).high
                gain[x] = math.floor(self.order * low * 2**600)
                harm[x] = math.ceil((self.order - 1) * high * 2**600)
            rest = 2 * math.ceil(limit * 2**600)

            def at(i: int, places: list[int] = places) -> int:
                return places[max(0, min(i + n + 1, len(places) - 1))]

            for k in range(last + 1):
                value = gain[at(k)] + gain[at(-k)] - harm[at(k - s)] - harm[at(-k - s)]
                found[k] += price * (value - rest)
        least = min(self.loss.below.at(k) + Fraction(v, scale << 601) for k, v in enumerate(found))
        return max(ZERO, least)


LATTICE = 65_536  # places of sums of losses, at most
REACH = 131_072  # of the losses of one release
DIGITS = 48  # masses of losses are whole numbers over 10^48


class Releases:
    """At least δ of several releases: losses of one, rounded up to multiples of h so that both
    laws keep their masses, as a polynomial with whole coefficients; its power, by products of long
    decimals. All roundings, merged ends and what is cut off make losses larger (Theory)."""

    def __init__(self, noise: Noise) -> None:
        self.noise, self.fine = noise, 1 << 320
        self.exponent = noise.lattice
        step = Fraction(1, 1 << noise.lattice)
        low, high = exp_bounds(step, 384)
        self.up = int(low * self.fine), int(high * self.fine) + 1
        self.down = int(self.fine / high), int(self.fine / low) + 1
        self.spare = int(noise.delta.bounds().low * 10**DIGITS) // noise.releases >> 20
        self.context = decimal.Context(
            prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN
        )

    def delta(self) -> Fraction:
        one = self.trimmed(*self.single())
        first, found, lost = one
        for digit in bin(self.noise.releases)[3:]:
            first, found, lost = self.product((first, found, lost), (first, found, lost))
            if digit == "1":
                first, found, lost = self.product((first, found, lost), one)
        rate = self.noise.epsilon.bounds(320).low
        start = max(first, int(rate / Fraction(1, 1 << self.exponent)))
        before = rate - Fraction(start, 1 << self.exponent)
        near = exp_bounds(abs(before), 320)
        power = int((near.low if before >= 0 else 1 / near.high) * self.fine)
        total = lost * self.fine
        for value in found[start - first :]:
            total += value * max(0, self.fine - power)
            power = power * self.down[0] // self.fine
        return min(ONE, Fraction(total, self.fine * 10**DIGITS))

    def product(self, a: Sums, b: Sums) -> Sums:
        """Of the sum of two independent losses; digits of coefficients do not overlap."""
        width = 2 * DIGITS + 8

        def joined(values: list[int]) -> decimal.Decimal:
            return decimal.Decimal("".join(f"{v:0{width}d}" for v in values))

        both = self.context.multiply(joined(a[1]), joined(b[1]))
        count = len(a[1]) + len(b[1]) - 1
        digits = format(both, "f").zfill(count * width)
        sums = [
            ceiling(int(digits[i : i + width]), 10**DIGITS) for i in range(0, len(digits), width)
        ]
        unit = 10**DIGITS
        p, q = min(a[2], unit), min(b[2], unit)
        return self.trimmed(a[0] + b[0], sums, p + q - p * q // unit)

    def trimmed(self, first: int, found: list[int], lost: int) -> Sums:
        """The ends that hold next to nothing: the lower merged with the rest, the upper lost."""
        start, below, end = 0, 0, len(found)
        while start < len(found) - 1 and below + found[start] <= self.spare:
            below, start = below + found[start], start + 1
        above = 0
        while end > start + 1 and above + found[end - 1] <= self.spare:
            above, end = above + found[end - 1], end - 1
        need(end - start <= LATTICE, "losses spread over too many places")
        return first + start, [found[start] + below, *found[start + 1 : end]], lost + above

    def single(self) -> Sums:
        """Of one release: of the largest shift where the noise falls from the centre, and else of
        the pair whose curve is the largest of all shifts', joined between multiples of h."""
        noise = self.noise
        last = noise.n + 2 * noise.period + 1
        falls = all(noise.z(k) >= noise.z(k + 1) for k in range(last))
        shifts = [noise.sensitivity]
        if not falls:
            shifts = list(range(1, noise.sensitivity + 1))
        pairs = [self.atoms(s) for s in shifts]
        far = max((abs(self.place(p, q)) for some in pairs for p, q in some if p and q), default=0)
        reach = far + 3
        need(reach <= REACH, "losses spread over too many places")
        need(falls or reach * len(shifts) <= 4 * REACH, "too many shifts")
        lows = [self.fine]
        for _ in range(reach):
            lows.append(lows[-1] * self.up[0] // self.fine)
        below = [self.fine]
        for _ in range(reach):
            below.append(below[-1] * self.down[0] // self.fine)
        lows = below[:0:-1] + lows
        found = [self.spread(some, lows, reach) for some in pairs]
        if len(found) > 1:
            masses, lost = self.largest(found)
        else:
            masses, lost = found[0]
        return -reach, masses, lost

    def atoms(self, s: int) -> list[tuple[Fraction, Fraction]]:
        """(z(i), z(i + s)): term by term, and all of the tails beyond by their sums."""
        noise = self.noise
        n, p = noise.n, noise.period
        whole = 1 / (1 - noise.ratio)
        inner = [(noise.z(abs(i)), noise.z(abs(i + s))) for i in range(-n - s, n + 1)]
        outer = [*range(n + 1, n + p + 1), *range(-n - s - p, -n - s)]
        return inner + [(noise.z(abs(i)) * whole, noise.z(abs(i + s)) * whole) for i in outer]

    def place(self, p: Fraction, q: Fraction) -> int:
        ratio = p / q
        if Fraction(1, 2) < ratio < 2:
            loss = math.log1p(float(ratio - 1))
        else:
            loss = math.log(ratio.numerator) - math.log(ratio.denominator)
        return math.floor(loss * (1 << self.exponent))

    def spread(
        self, some: list[tuple[Fraction, Fraction]], lows: list[int], reach: int
    ) -> tuple[list[int], int]:
        """Shares (1 - e^{jh} q/p)/(1 - e^-h) of p on the place above, the rest on that below."""
        found, lost, unit = [ZERO] * (2 * reach + 1), ZERO, 10**DIGITS
        for p, q in some:
            if not q:
                lost += p
            elif p:
                j = self.place(p, q)
                while p * self.fine > lows[j + 1 + reach] * q:
                    j += 1
                above = (p * self.fine - lows[j + reach] * q) / (self.fine - self.down[1])
                above = min(p, max(ZERO, above))
                above = min(p, Fraction(ceiling(above.numerator * self.fine, above.denominator),
                                        self.fine))  # fmt: skip
                found[j + 1 + reach] += above
                found[j + reach] += p - above
        masses = [ceiling(v.numerator * unit, v.denominator) for v in found]
        return masses, ceiling(lost.numerator * unit, lost.denominator)

    def largest(self, found: list[tuple[list[int], int]]) -> tuple[list[int], int]:
        """M_j = Σ_{i>j} P_i (1 - e^{(j-i)h}) + P_∞, the largest of all; the masses of its kinks."""
        count = len(found[0][0])
        low_curve, high_curve = [0] * (count + 1), [0] * (count + 1)
        for masses, lost in found:
            above, low, high = lost * self.fine, 0, 0
            for j in range(count - 1, -2, -1):
                if j < count - 1:
                    mass = masses[j + 1] * self.fine
                    above += mass
                    low = (low + mass) * self.down[0] // self.fine
                    high = ceiling((high + mass) * self.down[1], self.fine)
                low_curve[j + 1] = max(low_curve[j + 1], above - high)
                high_curve[j + 1] = max(high_curve[j + 1], above - low)
        lost = max(lost for _, lost in found)
        high_curve.append(lost * self.fine)
        out = []
        for j in range(count):
            rise = self.fine * (high_curve[j + 2] - low_curve[j + 1])
            fall = self.up[1] * high_curve[j] - self.up[0] * low_curve[j + 1]
            rest = self.fine * (self.up[0] - self.fine)
            out.append(max(0, ceiling(rise + fall, rest)))
        return out, lost


class PlanarNoise(Noise):
    """Noise on pairs of whole numbers with the symmetries of the square: core / 2^bits up to a
    radius, shells τ (1 - r)² r^j / 2^bits beyond. Radii are l1 norms for changes in l1, else l∞."""

    numbers = "pairs of whole numbers"

    def __init__(self, body: Body) -> None:
        entries = "epsilon delta sensitivity norm loss law multipliers claims seconds"
        keys(body, f"digest format {entries}")
        self.epsilon, self.delta = Real.read(body["epsilon"]), Real.read(body["delta"])
        need(self.epsilon.nearest <= 64, "ε is too large")
        need(self.delta.bounds().high <= 1, "δ is above 1")
        self.sensitivity = whole(body["sensitivity"], 41)
        need(self.sensitivity > 0, "the sensitivity is 0")
        self.norm = one_of(body["norm"], ("l1", "l2", "linf"), "the norm")
        need(isinstance(body["loss"], dict), "no loss")
        loss = dict(cast("Body", body["loss"]))
        self.measured = one_of(loss.pop("norm", None), ("l1", "l2", "linf"), "the loss")
        self.kind = loss.get("name")
        need(self.measured != "l2" or self.kind not in ("table", "function"), "a bad loss")
        self.loss = read_noise_loss(loss)
        law = keys(body["law"], "width bits core tails ratio ratio_bits")
        self.n, self.bits = whole(law["width"], 301), whole(law["bits"], 4097)
        core, self.tails = wholes(law["core"]), wholes(law["tails"])
        exponent = whole(law["ratio_bits"], 4097)
        self.ratio = Fraction(integer(law["ratio"], 0), 1 << exponent)
        need(self.bits > 0 and self.ratio <= SLOWEST, "no law")
        need(bool(self.tails) == (self.ratio > 0) == any(self.tails), "tails without their ratio")
        self.period, self.sides = len(self.tails), 4 if self.norm == "l1" else 8
        need(self.period <= self.sensitivity, "too many tails")
        places = self.quarter(self.n)
        need(len(places) == len(core) <= 40_000, "another number of places")
        self.core = dict(zip(places, core, strict=True))
        total = sum((Fraction(v * self.images(k)) for k, v in self.core.items()), ZERO)
        for c, v in enumerate(self.tails, 1):
            total += self.sides * v * ((self.n + c) * (1 - self.ratio) + self.period * self.ratio)
        need(total == 1 << self.bits, "the probabilities do not sum to one")
        d = self.sensitivity
        self.shifts = [
            (x, y) for x in range(1, d + 1) for y in range(x + 1)
            if (x + y <= d, x * x + y * y <= d * d, True)[("l1", "l2", "linf").index(self.norm)]
        ]  # fmt: skip
        size = (2 * (self.n + d) + 1) ** 2
        need(size * len(self.shifts) <= 6_000_000, "too many places")
        blocks = ceiling(d, self.period) + 2 if self.period else 0
        need(size * (self.bits + blocks * exponent) <= 4 * 10**8, "too many digits")
        self.multipliers = body["multipliers"]
        self.claims = keys(body["claims"], "status loss lower_bound")
        real(body["seconds"], 0)

    def quarter(self, n: int) -> list[tuple[int, int]]:
        """x >= y >= 0 of radius up to n."""
        if self.norm == "l1":
            return [(x, y) for x in range(n + 1) for y in range(min(x, n - x) + 1)]
        return [(x, y) for x in range(n + 1) for y in range(x + 1)]

    @staticmethod
    def folded(x: int, y: int) -> tuple[int, int]:
        return max(abs(x), abs(y)), min(abs(x), abs(y))

    @staticmethod
    def images(k: tuple[int, int]) -> int:
        return 1 if k == (0, 0) else 4 if k[1] == 0 or k[0] == k[1] else 8

    def radius(self, x: int, y: int) -> int:
        return abs(x) + abs(y) if self.norm == "l1" else max(abs(x), abs(y))

    def shell(self, m: int) -> Fraction:
        """z at radius m > n."""
        if not self.period:
            return ZERO
        block, c = divmod(m - self.n - 1, self.period)
        return Fraction(self.tails[c], 1 << self.bits) * (1 - self.ratio) ** 2 * self.ratio**block

    def cost(self, k: tuple[int, int], up: bool) -> Fraction:
        """c(k), of roots a bound."""
        x, y = k
        if self.measured != "l2":
            loss = self.loss if up else self.loss.below
            return loss.at(x + y if self.measured == "l1" else x)
        return self.rooted(x * x + y * y, up)

    def rooted(self, square: int, up: bool) -> Fraction:
        if self.kind == "square":
            return Fraction(square)
        if self.kind == "threshold":
            return Fraction(square > (len(self.loss.values) - 2) ** 2)
        low = math.isqrt(square << 160)
        return Fraction(low + (up and low * low != square << 160), 1 << 80)

    def check(self) -> Verdict:
        power = self.epsilon.exp(ONE, 192)
        worst = self.largest(power[0])
        need(worst <= self.delta.bounds().low, f"δ is {float(worst):.9g}, and more than stated")
        return self.verdict(
            self.lower_bound(power[1]),
            f"(ε, δ) = ({self.epsilon.text}, {self.delta.text}) at every shift up to "
            f"{self.sensitivity} in {self.norm}: δ is {float(worst):.9g}",
        )

    def largest(self, power: Fraction) -> Fraction:
        """The largest Σ_k max(0, z(k) - power z(k + v)): terms are zero where both lie beyond."""
        n, d = self.n, self.sensitivity
        for m in range(n + 1, n + self.period + 1):
            for t in range(1, d + 1):
                pair = self.shell(m), self.shell(m + t)
                need(max(pair) <= power * min(pair), "the tails do not keep ε")
        found = {k: Fraction(v, 1 << self.bits) for k, v in self.core.items()}
        found |= {k: self.shell(self.radius(*k)) for k in self.quarter(n + d) if k not in found}
        unit = math.lcm(*(v.denominator for v in found.values()))
        a, b = power.numerator, power.denominator
        near = {k: int(v * unit) * b for k, v in found.items()}
        far = {k: int(v * unit) * a for k, v in found.items()}
        ends = range(-n - d, n + d + 1)
        every = [(x, y) for x in ends for y in ends if self.radius(x, y) <= n + d]
        worst = 0
        for v in self.shifts:
            total = 0
            for x, y in every:
                other = self.folded(x + v[0], y + v[1])
                if other in far:
                    total += max(0, near[self.folded(x, y)] - far[other])
            worst = max(worst, total)
        return Fraction(worst, b * unit)

    def expected(self) -> Fraction:
        """At least Σ c(k) z(k): beyond the window every place costs as much as the norm can be."""
        total = sum((self.cost(k, True) * self.images(k) * v for k, v in self.core.items()), ZERO)
        r, p, last = self.ratio, self.period, len(self.loss.values) - 1
        sums = (1 / (1 - r), r / (1 - r) ** 2, r * (1 + r) / (1 - r) ** 3,
                r * (1 + 4 * r + r * r) / (1 - r) ** 4)  # fmt: skip
        for c, v in enumerate(self.tails, 1):
            start = self.n + c
            half = (self.norm, self.measured) == ("l1", "linf")
            need((start + 1) // 2 > last if half else start > last, "the window is too short")
            grown = ONE
            if self.norm != "l1":
                grown = {"l1": Fraction(2), "l2": Fraction(3, 2), "linf": ONE}[self.measured]
            at = grown * start - last
            x = self.loss.values[-1] + self.loss.slope * at + self.loss.curvature * at * at
            y = grown * (self.loss.slope + 2 * self.loss.curvature * at)
            w = grown * grown * self.loss.curvature
            powers = (x * start, x + y * start, y + w * start, w)
            found = sum(
                (q * p**i * s for i, (q, s) in enumerate(zip(powers, sums, strict=True))), ZERO
            )
            total += self.sides * v * (1 - r) ** 2 * found
        return total / (1 << self.bits)

    def lower_bound(self, power: Fraction | None) -> Fraction:
        """min C - δ Σ λ, C the mean over images of k of c(k) + Σ_v y_v(k) - e^ε y_v(k - v)."""
        if self.multipliers is None:
            return ZERO
        assert power is not None
        body = keys(self.multipliers, "bits width shifts")
        unit, n = 1 << whole(body["bits"], 4097), whole(body["width"], 301)
        parts = [keys(part, "shift values limit") for part in listing(body["shifts"])]
        need((2 * (n + self.sensitivity) + 1) ** 2 * len(parts) <= 6_000_000, "too many places")
        shifts = []
        for part in parts:
            first, second = listing(part["shift"], 2)
            shifts.append((whole(first, 41), whole(second, 41)))
        need(len(set(shifts)) == len(shifts) > 0 and set(shifts) <= set(self.shifts), "bad shifts")
        own: dict[tuple[int, int], int] = {}
        others: dict[tuple[int, int], int] = {}
        limits = 0
        for v, part in zip(shifts, parts, strict=True):
            values, limit = wholes(part["values"]), integer(part["limit"], 0)
            need(self.delta.zero or max(values, default=0) <= limit, "a multiplier is too large")
            limits += limit
            count = 0
            for k in self.quarter(n):
                around = {(a * p, b * q) for a, b in (k, k[::-1]) for p in (1, -1) for q in (1, -1)}
                moved = [self.folded(x + v[0], y + v[1]) for x, y in around]
                for other in sorted(set(moved)):
                    need(count < len(values), "too few multipliers")
                    price = values[count] * moved.count(other)
                    count += 1
                    own[k] = own.get(k, 0) + price
                    others[other] = others.get(other, 0) + price
            need(count == len(values), "too many multipliers")
        reach = n + self.sensitivity
        least = self.nearest_beyond(reach + 1)
        for k in self.quarter(reach):
            gain = own.get(k, 0) - power * others.get(k, 0)
            least = min(least, self.cost(k, False) + Fraction(gain) / (unit * self.images(k)))
        cost = self.delta.bounds().high * limits / unit
        return max(ZERO, least - (ZERO if self.delta.zero else cost))

    def nearest_beyond(self, m: int) -> Fraction:
        """At most the loss of every place of radius m or more."""
        if self.measured == "l2":
            return self.rooted(m * m if self.norm != "l1" else (m * m + 1) // 2, False)
        start = (m + 1) // 2 if (self.norm, self.measured) == ("l1", "linf") else m
        values = self.loss.values
        return self.loss.below.at(start) if start >= len(values) - 1 else min(values[start:])


# ==== 12. Packed mechanisms, against the design that they were packed from ========================
# One item of CBOR (docs/packed.md): 55799([format, header, rows, digest]). Whatever follows from
# the design is made again here, in the words and bytes of a file, and compared; figures that
# machines round differently are compared to nine digits.
PACKED = b"\xd9\xd9\xf7\x84\x70optmech-packed/"
HEADER = ("accuracy/bits/columns/constraints/design/does not promise/loss/outside/prior/protects/"
          "reach/region/reports/row of/secrets/title/width")  # fmt: skip
MESH_HEADER = ("accuracy/bits/columns/constraints/design/does not promise/kind/loss/mesh/outside/"
               "prior/protects/region/reports/snap/title/width")  # fmt: skip
PACKED_WORDS = "title, date of the prior, whether positions outside are refused"
SAME = 1e-9  # of figures that rest on cosines
MOST_PLACES, MOST_COLUMNS, DEEPEST = 2**16, 2**15, 8
TIMES = (
    "Every report spends the stated ε again: n independent reports about one place promise only n "
    "times ε. Repeat the report for as long as the place is the same.",
    "Reports from several times tell more than each of them alone: positions follow one another.",
    "That a report was made, when, how often and from which network address is not hidden.",
    "An adversary who knows more than the prior may guess better than the stated accuracy; what is "
    "promised of probabilities holds whatever is known.",
)
AT_PLACES = (
    "A position counts as its place: two positions that are close to each other, on both sides of "
    "a border between places, are told apart as these places are."
)
REFUSED = "That a position lay outside the region is seen where no report is made for it."
NEAREST_PLACE = (
    "A position outside the region counts as the nearest place, however far that is: what is "
    "promised of it is what is promised of that place."
)
MOVED = (
    "Before a draw a position of the region is moved, by at most snap: the promise between two of "
    "them that are d apart is that for a distance of d + 2 snap."
)
NEAREST_POINT = (
    "A position outside the region counts as the nearest point of its border, however far that is: "
    "what is promised of it is what is promised of that point."
)
ON_THE_GLOBE = (
    "Two positions outside the region that are close to each other may have nearest points that "
    "are far apart."
)
IN_WORDS = {"max": "ε =", "kl": "KL divergence at most",
               "reverse_kl": "reverse KL divergence at most", "tv": "total variation at most",
               "chi2": "χ² divergence at most",
               "hellinger": "squared Hellinger distance at most"}  # fmt: skip
GAINS = {"maximal": "e to the maximal leakage", "additive": "additive capacity",
         "identity": "the secret itself is guessed"}  # fmt: skip


class Typed(list[float]):
    """Numbers as the bytes of an array, under a tag of RFC 8746."""

    codes: ClassVar = {70: "I", 71: "Q", 86: "d"}

    def __init__(self, values: Iterable[float], tag: int) -> None:
        super().__init__(values)
        self.tag = tag


def array(value: object, tag: int) -> list[float]:
    if not isinstance(value, Typed) or value.tag != tag:
        raise Fault(f"an array under tag {tag} is missing")
    need(all(map(math.isfinite, value)), "a number that is not finite")
    return value


def indices(value: object, most: int) -> list[int]:
    return [whole(k, most) for k in array(value, 70)]


class Cbor:
    """What CBOR says; whether it is deterministic shows when it is written again."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def whole(self) -> object:
        found = self.item(0)
        need(self.at == len(self.content), "bytes after the end")
        need(cbor(found) == self.content, "is not in the one form that is written")
        return found

    def take(self, count: int) -> bytes:
        need(count <= len(self.content) - self.at, "ends in the middle of an item")
        self.at += count
        return self.content[self.at - count : self.at]

    def item(self, depth: int) -> object:
        need(depth <= 16, "nests too deep")
        first = self.take(1)[0]
        major, count = first >> 5, first & 31
        if major == 7:
            if count in (20, 21, 22):
                return {20: False, 21: True, 22: None}[count]
            need(25 <= count <= 27, "an unknown simple value")
            size, code = {25: (2, ">e"), 26: (4, ">f"), 27: (8, ">d")}[count]
            value = float(struct.unpack(code, self.take(size))[0])
            need(math.isfinite(value), "a number that is not finite")
            return value
        if count >= 24:
            need(count <= 27, "an indefinite length")
            count = int.from_bytes(self.take(1 << count - 24), "big")
        if major < 2:
            return count if major == 0 else -1 - count
        if major == 2:
            return self.take(count)
        if major == 3:
            return self.take(count).decode()
        if major == 6:
            code, content = Typed.codes.get(count, ""), self.item(depth + 1)
            if not code or not isinstance(content, bytes):
                raise Fault("an unknown tag")
            size, rest = divmod(len(content), struct.calcsize(f"<{code}"))
            need(rest == 0, "an array that ends in the middle of a number")
            return Typed(struct.unpack(f"<{size}{code}", content), count)
        need(count <= len(self.content) - self.at, "ends in the middle of an item")
        if major == 4:
            return [self.item(depth + 1) for _ in range(count)]
        pairs = [(text(self.item(depth + 1), "a key"), self.item(depth + 1)) for _ in range(count)]
        need(len(dict(pairs)) == count, "a key twice")
        return dict(pairs)


def cbor(value: object) -> bytes:
    """The deterministic form of RFC 8949, section 4.2.1."""
    if isinstance(value, bool | None):
        return bytes([{False: 0xF4, True: 0xF5, None: 0xF6}[value]])
    if isinstance(value, int):
        return head_of(0, value) if value >= 0 else head_of(1, -1 - value)
    if isinstance(value, float):
        for first, code in ((0xF9, ">e"), (0xFA, ">f"), (0xFB, ">d")):
            try:
                short = struct.pack(code, value)
            except OverflowError:
                continue
            if struct.unpack(code, short)[0] == value:
                return bytes([first]) + short
    if isinstance(value, bytes):
        return head_of(2, len(value)) + value
    if isinstance(value, str):
        return head_of(3, len(value.encode())) + value.encode()
    if isinstance(value, Typed):
        packed = struct.pack(f"<{len(value)}{Typed.codes[value.tag]}", *value)
        return head_of(6, value.tag) + cbor(packed)
    if isinstance(value, list | tuple):
        return head_of(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, dict):
        pairs = sorted((cbor(key), cbor(part)) for key, part in value.items())
        return head_of(5, len(pairs)) + b"".join(key + part for key, part in pairs)
    raise Fault(f"{value!a} has no form in a file")


def head_of(major: int, argument: int) -> bytes:
    if argument < 24:
        return bytes([major << 5 | argument])
    size = next(k for k in range(4) if argument < 1 << (8 << k))
    return bytes([major << 5 | 24 + size]) + argument.to_bytes(1 << size, "big")


def require_same(head: Body, name: str, own: object) -> None:
    """Raise Fault where an entry is not, byte by byte, what follows from the design."""
    need(cbor(head[name]) == cbor(own), f"{name} is not that of the design")


def require_near(said: object, own: float | None, what: str) -> None:
    """The same of a figure that machines round differently."""
    right = said is None if own is None else math.isclose(real(said), own, rel_tol=SAME)
    need(right, f"{what} is not that of the design")


def judge_packed(path: str, design: str) -> Verdict:
    """The design's statement on the packed numbers, and what the file says of both."""
    need(os.stat(path).st_size <= 64 * 2**20, "is too large")
    with open(path, "rb") as stream:
        content = stream.read()
    need(content.startswith(PACKED), "is no plain packed mechanism")
    version = content[len(PACKED) : len(PACKED) + 1]
    need(version in (b"1", b"2"), "is of an unknown version")
    reader = Cbor(content[len(PACKED) + 1 :])
    inner, rows, digest = (reader.item(0) for _ in range(3))
    need(reader.at == len(reader.content), "bytes after the end")
    need(digest == hashlib.sha256(content[:-32]).digest(), "the digest does not match the content")
    if not isinstance(inner, bytes) or not isinstance(rows, bytes):
        raise Fault("is not a packed mechanism")
    again = b"".join(map(cbor, (inner, rows, digest)))
    need(again == reader.content, "is not in the one form that is written")
    head = Cbor(inner).whole()
    entries = HEADER if version == b"1" else MESH_HEADER
    if not isinstance(head, dict) or "/".join(sorted(head)) != entries:
        raise Fault("the header is missing, or has other entries")
    body = read(design)
    mesh = any("everywhere" in c for c in promises_of(body))
    need(body["format"] == FORMAT and mesh == (version == b"2"), "is of another kind of design")
    text(head["title"], "the title")
    prior = keys(head["prior"], "words date")
    need(prior["date"] is None or isinstance(prior["date"], str), "the date is no text")
    one_of(head["outside"], ("refuse", "nearest"), "what is done outside")
    own = {name: body[name] for name in ("mechanism", "problem")}
    written = json.dumps(own, sort_keys=True, separators=(",", ":")).encode()
    require_same(head, "design", hashlib.sha256(written).digest())
    lines = (judge_packed_mesh if version == b"2" else judge_packed_places)(head, rows, body)
    return lines, f"{PACKED_WORDS}; and the design itself"


def judge_packed_places(head: Body, rows: bytes, body: Body) -> list[str]:
    lines: list[str] = []
    stated, problem = Statement(body["problem"], lines), cast("Body", body["problem"])
    mechanism = packed_rows(head, rows, stated.n, stated.m)
    require_same(head, "secrets", written_places(problem["secrets"], stated.secrets))
    same_reports(head, problem, stated)
    same_words(head, problem, stated, None)
    lines += stated.check(mechanism)
    original = read_mechanism(body["mechanism"], stated.n, stated.m)
    before, after = (stated.value(p) for p in (original, mechanism))
    sign = -1 if stated.objective == "distortion" else 1
    change = (after - before) / abs(before) if before else after - before
    figures = {
        "objective": objective_said(problem["objective"]),
        "design": sign * float(rounded_up(before)),
        "packed": sign * float(rounded_up(after)),
        "increase": float(rounded_up(change)),
    }
    require_same(head, "loss", figures)
    masses = [
        [p * row[o] / (1 << mechanism.bits) for o in indices(head["columns"], stated.m)]
        for p, row in zip(map(float, stated.prior), mechanism.rows, strict=True)
    ]
    check_accuracy(head, stated, masses)
    require_near(head["reach"], reach_of(stated.secrets), "reach")
    lines.append(f"packed over 2^{mechanism.bits}: objective {sign * float(after):.15g}")
    lines.append(f"relative change from the design {float(change):.3g}")
    return lines


def judge_packed_mesh(head: Body, rows: bytes, body: Body) -> list[str]:
    """The gradients of the packed numbers on the design's mesh, what they are at the places, the
    loss, and how far positions are moved (docs/packed.md, "Mechanisms for every point")."""
    design = Everywhere(body)
    region, problem = design.region, cast("Body", body["problem"])
    require_same(head, "kind", "mesh")
    promises = [c for c in listing(problem["constraints"]) if isinstance(c, dict)]
    stated = cast("Body", next(c for c in promises if "everywhere" in c)["everywhere"])
    vertices = [reals(p, 2) for p in listing(stated["vertices"])]
    mesh = keys(head["mesh"], "vertices triangles degree rows unit coordinates")
    control = [k for part in region.control for k in part]
    given = indices(mesh["rows"], len(control))
    row_of = dict(zip(control, given, strict=True))
    own = {
        "vertices": Typed((v for p in vertices for v in p), 86),
        "triangles": Typed((k for corners in region.triangles for k in corners), 70),
        "degree": region.degree,
        "rows": Typed((row_of[k] for k in control), 70),
        "unit": "km" if region.globe else stated["unit"],
        "coordinates": stated["coordinates"],
    }
    require_same(head, "mesh", own)
    before = design.expected()
    points = Typed((row_of[k] for k in range(region.count)), 70)
    design.rows = packed_rows({**head, "row of": points}, rows, region.count, design.stated.m)
    same_reports(head, problem, design.stated)
    same_words(head, problem, design.stated, stated)
    lines = [f"{len(region.triangles)} triangles tile a convex region edge to edge"]
    design.lines = lines
    design.check_gradients()
    design.check_beside()
    after = design.expected()
    loss = keys(head["loss"], "objective design packed increase")
    need(loss["objective"] == "expected loss", "the objective is another one")
    for name, found in (("packed", after), ("design", before)):
        known = [float(rounded_up(end)) for end in found]
        need(real(loss[name]) in known, f"the loss, {name}, is another one")
    change = after.high - before.low
    if before.low:
        change /= before.low if change > 0 else before.high
    # of nothing but the rounding of the sums
    least = Fraction(1, 2**250)
    right = abs(Fraction(real(loss["increase"])) - rounded_up(change)) <= least
    need(right, "the increase is another one")
    masses = []
    for (places, weights), mass, _ in design.places():
        unit = float(mass) / (sum(weights) << design.rows.bits)
        columns = indices(head["columns"], design.stated.m)
        own_rows = [design.rows.rows[k] for k in places]
        masses.append(
            [unit * sum(w * row[o] for w, row in zip(weights, own_rows, strict=True))
             for o in columns]
        )  # fmt: skip
    check_accuracy(head, design.stated, masses)
    require_near(head["snap"], moved_by(region, vertices), "snap")
    lines.append(f"packed over 2^{design.rows.bits}: loss {float(after.high):.15g}")
    outside = "; others count as the nearest point of its border" * (head["outside"] == "nearest")
    lines.append(f"positions of the region are moved by at most {head['snap']}{outside}")
    return lines


def packed_rows(head: Body, rows: bytes, n: int, m: int) -> Mechanism:
    """Entries of ``width`` bytes, little-endian; rows that several secrets share stand once."""
    bits, width = whole(head["bits"], 49), whole(head["width"], 8)
    need(bits in (16, 24, 32, 48) and width in (bits // 8, bits // 8 + 1), "bits out of range")
    columns, row_of = indices(head["columns"], m), indices(head["row of"], n)
    need(bool(columns) and sorted(set(columns)) == columns, "columns are out of order")
    need(len(columns) <= MOST_COLUMNS and len(row_of) == n, "too many columns, or rows for others")
    count, step = max(row_of) + 1, width * len(columns)
    need(set(row_of) == set(range(count)), "a row is used by no secret")
    need(len(rows) == step * count, "the rows have another length")
    found, certain = [], False
    for at in range(0, len(rows), step):
        out = [0] * m
        for o, k in zip(columns, range(at, at + step, width), strict=True):
            out[o] = int.from_bytes(rows[k : k + width], "little")
        need(sum(out) == 1 << bits, "a row does not sum to one")
        certain |= 1 << bits in out
        found.append(out)
    need(certain == (width > bits // 8), "entries are wider than they need be")
    return Mechanism(bits, [found[row] for row in row_of])


def same_reports(head: Body, problem: Body, stated: Statement) -> None:
    reports = head["secrets"] if head["reports"] is None else head["reports"]
    own = written_places(problem["observables"], stated.observables)
    require_same({"reports": reports}, "reports", own)


def written_places(plain: object, places: Places) -> Body:
    """Places as a packed file has them, from those of a design."""
    stated = cast("Body", plain)
    need(len(places.labels) <= MOST_PLACES, "too many places")
    if "grid" in stated:
        rows, columns = listing(stated["grid"], 2)
        sides = {side: Typed(reals(stated[side], 2), 86) for side in ("cell", "origin")}
        bounds = None if places.bounds is None else Typed(places.bounds, 86)
        return {"kind": "grid", "rows": rows, "columns": columns, **sides, "unit": places.unit,
                "bounds": bounds}  # fmt: skip
    need(all(depth(label) <= DEEPEST for label in listing(stated["labels"])), "a label is too deep")
    if places.points is None:
        return {"kind": "labels", "labels": stated["labels"], "unit": places.unit}
    points = Typed((v for p in places.points for v in p), 86)
    cells = [hexagon(label) for label in places.labels]
    if places.globe and None not in cells:
        return {"kind": "h3", "cells": Typed(map(int, filter(None, cells)), 71), "points": points}
    return {
        "kind": "points",
        "labels": stated["labels"],
        "dimension": len(places.points[0]),
        "points": points,
        "unit": "km" if places.globe else places.unit,
        "coordinates": stated["coordinates"],
    }


def depth(label: object) -> int:
    return 1 + max(map(depth, label), default=0) if isinstance(label, list) else 0


def hexagon(label: object) -> int | None:
    """The number of a cell of H3, where a label looks like one."""
    fits = isinstance(label, str) and re.fullmatch("8[0-9a-f]{14}", label)
    return int(str(label), 16) if fits else None


def same_words(head: Body, problem: Body, stated: Statement, mesh: Body | None) -> None:
    """Every sentence, as it follows from the design and what is done outside."""
    constraints = []
    for c in listing(problem["constraints"]):
        body = cast("Body", c)
        kind, per = text(body["kind"], "the kind"), ""
        if isinstance(body.get("distance"), dict | str):
            per = per_said(body["distance"], stated)
        epsilon = None
        if "epsilon" in body:
            epsilon = float(rounded_up(Real.read(body["epsilon"]).bounds().high))
        promise = PROMISES[kind](body, stated)
        constraints.append({"kind": kind, "promise": promise, "epsilon": epsilon, "per": per})
    require_same(head, "constraints", constraints)
    require_same(head, "protects", [f"{c['kind']}: {c['promise']}" for c in constraints])
    refused, secrets = head["outside"] == "refuse", stated.secrets
    region, outside = region_said(secrets), [AT_PLACES, REFUSED if refused else NEAREST_PLACE]
    if secrets.points is None:
        outside = []
    if mesh is not None:
        vertices = [reals(p, 2) for p in listing(mesh["vertices"])]
        globe, count = mesh["coordinates"] == "lonlat", len(listing(mesh["triangles"]))
        unit = text(mesh["unit"], "the unit")
        where = region_said(Places(vertices, vertices, unit, None, globe))  # type: ignore[arg-type]
        region = f"every point of {count} triangles: {where}"
        outside = [MOVED, *([REFUSED] if refused else [NEAREST_POINT, *[ON_THE_GLOBE] * globe])]
    require_same(head, "does not promise", [*TIMES, *outside])
    require_same(head, "region", region)
    said = re.fullmatch(r"entropy ([0-9]+\.[0-9]{3}) bits over ([0-9]+) places",
                        text(keys(head["prior"], "words date")["words"], "the prior"))  # fmt: skip
    entropy = abs(math.fsum(p * math.log2(p) for p in map(float, stated.prior) if p))
    right = said is not None and said[2] == str(stated.n)
    need(right and abs(float(said[1] if said else 0) - entropy) <= 0.0005 + SAME,
         "prior is not that of the design")  # fmt: skip


def region_said(places: Places) -> str:
    """Where places are, in words."""
    if places.points is None:
        return f"{len(places.labels)} labels"
    if places.size is not None:
        rows, columns, width, height = places.size
        said = f"{rows} rows x {columns} columns of cells"
        if places.bounds is None:
            return f"{said} of {width:g} x {height:g} {places.unit}".rstrip()
        return f"{said} over {box_said(*places.bounds)}"
    sides = list(zip(*places.points, strict=True))
    if places.globe:
        (west, east), (south, north) = ((min(side), max(side)) for side in sides)
        return f"{len(places.labels)} places within {box_said(west, south, east, north)}"
    spans = ", ".join(f"{min(side):g} to {max(side):g}" for side in sides)
    return f"{len(places.labels)} places at {spans} {places.unit}".rstrip()


def box_said(west: float, south: float, east: float, north: float) -> str:
    return f"longitude {west:.5f} to {east:.5f}, latitude {south:.5f} to {north:.5f} degrees"


def amount(value: object) -> str:
    """A number as it was written, short."""
    words = Real.read(value).text
    return words if isinstance(words, str) else f"{words:g}"


def distance_said(distance: object) -> str:
    """A name that was computed again, or that there is none."""
    name = text(distance["name"] if isinstance(distance, dict) else distance, "a name")
    if name in NAMED:
        return name
    called = "" if name in ("matrix", "given") else f", called {name!r} in the file"
    return f"given as a matrix{called}"


def per_said(distance: object, stated: Statement) -> str:
    name = distance_said(distance)
    unit = {"haversine": "km", "hamming": ""}.get(name, stated.secrets.unit)
    if name.startswith("given"):
        return f"unit of distance ({name})"
    return f"{unit} ({name})" if unit else f"unit of {name} distance"


def delta_said(c: Body) -> str:
    return "" if Real.read(c["delta"]).zero else f", δ = {amount(c['delta'])}"


def pairs_said(count: int) -> str:
    return "one pair" if count == 1 else f"{count} pairs"


def against_said(c: Body) -> str:
    against = "the prior" if c["prior"] is None else "another prior"
    if c.get("radius") is None:
        return against
    within = c.get("within")
    metric = "total variation" if within is None else distance_said(within)
    return f"any prior within {amount(c['radius'])} of {against} ({metric})"


def gain_said(gain: object) -> str:
    if isinstance(gain, str):
        return GAINS[gain]
    count = len(listing(gain))
    return f"{count} guess{'' if count == 1 else 'es'}"


def objective_said(goal: object) -> str:
    if isinstance(goal, dict):
        if "gain" in goal:
            return f"leakage ({gain_said(goal['gain'])})"
        return "distortion of the best attack"
    return text(goal, "the objective").replace("_", " ")


def metric_said(c: Body, stated: Statement) -> str:
    words = f"ε = {amount(c['epsilon'])} per {per_said(c['distance'], stated)}"
    mesh = c.get("everywhere")
    if isinstance(mesh, dict):
        globe, degree = mesh["coordinates"] == "lonlat", mesh.get("degree", 1)
        counts = [len(listing(mesh[name])) for name in ("vertices", "triangles")]
        curved = f" of degree {degree}" if degree != 1 else ""
        unit = f" in {mesh['unit']}" if mesh["unit"] and not globe else ""
        where = ", longitude and latitude" if globe else ""
        return (f"{words}, at every point of Mesh({counts[0]} vertices, {counts[1]} triangles"
                f"{curved}{unit}{where})")  # fmt: skip
    if c["threshold"] is not None:
        words += f", for secrets up to {real(c['threshold']):g} apart"
    if c["observable_threshold"] is not None:
        words += f", where observables are up to {real(c['observable_threshold']):g} away"
    return words + delta_said(c)


def differential_said(c: Body, _: Statement) -> str:
    adjacency, pairs = c["adjacency"], "all pairs"
    if isinstance(adjacency, dict):
        pairs = f"pairs up to {real(adjacency['radius']):g} apart"
    elif adjacency != "all":
        pairs = f"{len(listing(adjacency))} pairs"
    return f"ε = {amount(c['epsilon'])}, {pairs}{delta_said(c)}"


def distribution_said(c: Body, _: Statement) -> str:
    kind = text(c["divergence"], "the divergence")
    order = order_of(kind)
    words = IN_WORDS[kind] if order is None else f"Rényi divergence of order {order} at most"
    scaled = "" if c["scale"] is None else ", scaled"
    counted = pairs_said(len(listing(c["pairs"])))
    return f"{words} {amount(c['epsilon'])} for {counted} of distributions{scaled}{delta_said(c)}"


def loss_said(c: Body, _: Statement) -> str:
    which = "loss of every secret" if c["worst_case"] else "expected loss"
    own = "" if c["loss"] is None else " (its own loss)"
    return f"{which} at most {amount(c['maximum'])}{own}"


def renyi_said(c: Body, stated: Statement) -> str:
    per = "" if c["distance"] is None else f" per {per_said(c['distance'], stated)}"
    return f"Rényi divergence of order {amount(c['order'])} at most {amount(c['epsilon'])}{per}"


def fixed_said(c: Body, stated: Statement) -> str:
    source = text(c["source"], "the source")
    return (f"the rows of {len(listing(c['secrets']))} of {stated.n} secrets exactly as given"
            f"{f' ({source[:19]}…)' if source else ''}")  # fmt: skip


def graph_said(c: Body, _: Statement) -> str:
    count = len(listing(c["graph"]))
    edges = "one edge" if count == 1 else f"{count} edges"
    return f"ε = {amount(c['epsilon'])} per unit of length in a graph of {edges}"


PROMISES: dict[str, Callable[[Body, Statement], str]] = {
    "metric_privacy": metric_said,
    "differential_privacy": differential_said,
    "distribution_privacy": distribution_said,
    "loss_bound": loss_said,
    "renyi_privacy": renyi_said,
    "fixed_rows": fixed_said,
    "policy_graph": graph_said,
    "support": lambda c, _: "observables of a given mask only",
    "maximal_leakage": lambda c, _: (
        f"maximal leakage at most {amount(c['maximum'])} nats, for every prior"
    ),
    "additive_capacity": lambda c, _: (
        f"additive capacity at most {amount(c['maximum'])}, for every prior and gain up to 1"
    ),
    "mutual_information": lambda c, _: (
        f"mutual information at most {amount(c['maximum'])} nats"
        f"{'' if c['prior'] is None else ', of another prior'}"
    ),
    "distortion_privacy": lambda c, _: (
        f"error of the best attack with {against_said(c)} at least {amount(c['minimum'])} "
        f"({distance_said(c['distance'])})"
    ),
    "gain_leakage": lambda c, _: (
        f"the best guess with {against_said(c)} gains at most {amount(c['maximum'])} "
        f"({gain_said(c['gain'])})"
    ),
    "pufferfish": lambda c, _: (
        f"ε = {amount(c['epsilon'])} for {pairs_said(len(listing(c['pairs'])))} of secrets behind "
        f"the answer{delta_said(c)}"
    ),
    "bias": lambda c, _: (
        f"reports are right on average, {'the coordinates' if c['values'] is None else 'a value'} "
        f"within {amount(c['maximum'])}, for every secret"
    ),
}


def check_accuracy(head: Body, stated: Statement, masses: list[list[float]]) -> None:
    """Every radius is the least within which a secret lies with probability ``quantile``, given a
    report; ``masses`` are those of secrets and columns together."""
    secrets, reports = stated.secrets, stated.observables
    a, b = secrets.points, reports.points
    apart = a is not None and b is not None and secrets.globe is reports.globe
    if a is None or b is None or not apart or len(a[0]) != len(b[0]):
        need(head["accuracy"] is None, "an accuracy of places without common coordinates")
        return
    stated_so = keys(head["accuracy"], "quantile radius")
    quantile = 0.95
    need(stated_so["quantile"] == quantile, "the quantile is another one")
    columns, radii = indices(head["columns"], stated.m), array(stated_so["radius"], 86)
    need(len(radii) == len(columns), "an accuracy of other columns")
    scale = 1000 if secrets.globe or secrets.bounds is not None else 1
    half = scale * math.hypot(*secrets.size[2:]) / 2 if secrets.size is not None else 0.0
    name = "haversine" if secrets.globe else "euclidean"
    for k, (o, radius) in enumerate(zip(columns, radii, strict=True)):
        away = [scale * between(name, p, b[o]) + half for p in a]
        slack = SAME * radius
        own = [row[k] for row in masses]
        total = math.fsum(own)
        within = math.fsum(v for v, d in zip(own, away, strict=True) if d <= radius + slack)
        closer = math.fsum(v for v, d in zip(own, away, strict=True) if d < radius - slack)
        right = any(abs(d - radius) <= slack for d in away)
        right &= quantile * total * (1 - SAME) <= within
        right &= closer <= quantile * total * (1 + SAME) if total else radius + slack >= max(away)
        need(right, "accuracy is not that of the design")


def reach_of(places: Places) -> float | None:
    """The largest distance from a place to its nearest neighbour, in degrees on the globe."""
    points = places.points
    if points is None or places.size is not None or len(points) < 2:
        return None
    name, degree = "euclidean", 1.0
    if places.globe:
        name, degree = "haversine", math.pi / 180 * EARTH_RADIUS_KM
    return max(
        min(between(name, p, q) for j, q in enumerate(points) if j != k) / degree
        for k, p in enumerate(points)
    )


def moved_by(region: Region, vertices: list[list[float]]) -> float:
    """How far the weights of a position may be from it (theory, "Packed meshes"), in floats that
    err by far less than the last term allows."""
    sides = [[v[axis] for v in vertices] for axis in (0, 1)]
    wide = sum((max(side) - min(side)) ** 2 for side in sides)
    most = 0.0
    for corners in region.triangles:
        a, b, c = (vertices[k] for k in corners)
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        longest = max((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in ((a, b), (b, c), (c, a)))
        need(longest <= 2.0**18 * area and wide <= 2.0**30 * area, "a triangle is too thin")
        most = max(most, math.sqrt(longest) * (2.0**-23 + 2.0**-29 + 2.0**-46 * wide / area))
    return (most + 2.0**-43) * 111.2 if region.globe else most


# ==== 13. The command line ========================================================================
def audit(path: str) -> list[str]:
    """What was verified, line by line; raises Fault where the file does not hold."""
    lines, _ = judge(path)
    return lines


def judge(path: str, design: str | None = None) -> Verdict:
    """The verdict on a file of any format, or on a packed mechanism and its design; whatever its
    entries do to the code is a Fault."""
    try:
        if design is not None:
            return judge_packed(path, design)
        body = read(path)
        if body["format"] == NOISE:
            if "norm" in body:
                return PlanarNoise(body).check()
            return (PowerNoise if "renyi" in body else Noise)(body).check()
        return Family(body).check() if body["format"] == FAMILY else judge_design(body)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Fault(f"is not a well-formed design: {error!a}") from error
    except (ArithmeticError, RecursionError, MemoryError) as error:
        raise Fault(f"holds numbers out of range: {error!a}") from error


def shown(words: str) -> str:
    """A text without what a terminal would obey instead of showing it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def verdict(arguments: list[str]) -> tuple[int, list[str]]:
    """The status, 0 when everything holds, 1 when not, 2 without a readable file; and the words."""
    if len(arguments) not in (1, 2):
        return 2, ["usage: python audit.py DESIGN, or PACKED DESIGN"]
    try:
        lines, unchecked = judge(*arguments)
    except (OSError, EOFError) as error:
        return 2, [f"{arguments[0]}: {getattr(error, 'strerror', None) or error}"]
    except Fault as fault:
        return 1, [f"{arguments[0]}: FAILED: {fault}"]
    words = f"not checked, as they are the file's own words: {unchecked}"
    return 0, [*lines, words, "everything that the file claims holds, apart from these"]


def written(words: list[str], number: int) -> str:
    """Lines on standard output (1) or standard error (2); why they cannot be, or nothing."""
    stream = sys.stdout if number == 1 else sys.stderr
    if stream is None:
        return "it is closed"
    try:
        print("\n".join(map(shown, words)), file=stream, flush=True)
    except OSError as error:
        # what is left in the buffer goes nowhere: at the end Python would fail at it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        return error.strerror or str(error)
    return ""


def main(arguments: list[str]) -> int:
    """0 when everything holds, 1 when not, 2 without a readable file or where the verdict cannot
    be written."""
    status, words = verdict(arguments)
    if status == 2:
        written(words, 2)
    elif reason := written(words, 1):
        written([f"standard output cannot be written: {reason}"], 2)
        return 2
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
