"""Audit of a design file with nothing but the Python standard library.

    python -m optmech.audit design.json        or, from a copy of this file alone:
    python audit.py design.json
    python audit.py family.json                (mechanisms with an auxiliary input)

Reads the file and proves again, in whole numbers and fractions: that every row of the mechanism
is a distribution, that every stated inequality holds exactly, what the objective is, and that no
mechanism can do better than the bound (or that none exists); that distances with a name are those
of the coordinates, and what thresholds leave of ε. Entries that are unknown, missing or written in
another way than optmech writes them are refused, and what is not checked is named at the end. It
shares no code with the rest of optmech. ``docs/theory.md`` has the proofs that it relies on.

Floats in the file stand for the binary fractions that they are; distributions over secrets in
distribution privacy are divided by their exact sum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

FORMAT = "optmech-design/2"
FAMILY = "optmech-targets/2"  # mechanisms with an auxiliary input
NEAR = Fraction(1, 10**12)  # a limit this close beyond the attainable means the attainable
OPTIMAL_GAP = 1e-6  # what may be called optimal
LARGEST = Fraction(2**100)  # multipliers are cut to this: any numbers >= 0 are valid
LARGEST_LOG = 710  # from e^710 on a multiplier is dropped
MOST_BYTES = 2 * 2**30
MOST_ENTRIES = 10**7  # of a matrix: more does not fit into memory as fractions
EARTH_RADIUS_KM = 6371.0088
LOG_ROUNDING = 1e-15  # of a ratio of floats nearest to two probabilities
NAMED = ("euclidean", "manhattan", "hamming", "haversine")  # distances that are computed again
KINDS = (
    "metric_privacy", "differential_privacy", "distortion_privacy", "distribution_privacy",
    "loss_bound", "support",
)  # fmt: skip
DIVERGENCES = ("kl", "reverse_kl", "tv", "chi2", "hellinger")
TINY, HUGE = Fraction(1, 2**900), Fraction(2) ** 1024  # sums of guesses that can be divided by
SCALE = 1200  # bits behind the point of the sums in the bound; everything is rounded down

Matrix = list[list[Fraction]]
Entry = tuple[int, int, Fraction]


class Fault(Exception):  # noqa: N818
    """Something in the file does not hold, or is not well-formed."""


def need(condition: bool, message: str) -> None:
    if not condition:
        raise Fault(message)


# ---------------------------------------------------------------- values as they must be written
def keys(value: Any, wanted: str, optional: str = "") -> Any:
    """``value``, an object with exactly these keys."""
    need(type(value) is dict, "an object is missing")
    wrong = (set(value) - set(optional.split())) ^ set(wanted.split())
    need(not wrong, f"missing or unknown entries: {sorted(wrong)!a}")
    return value


def listing(value: Any, count: int | None = None) -> list[Any]:
    need(type(value) is list and count in (None, len(value)), "a list is missing, or too long")
    return list(value)


def number(value: Any, least: int | None = 0) -> Fraction:
    need(type(value) in (int, float) and math.isfinite(value), f"{value!a} is not a finite number")
    need(least is None or value >= least, f"{value!a} is below {least}")
    float(value)  # a whole number beyond the floats is none of ours
    return Fraction(value)


def real(value: Any, least: float = -math.inf) -> float:
    need(type(value) is float and math.isfinite(value), f"{value!a} is not a finite float")
    need(value >= least, f"{value!a} is below {least}")
    return float(value)


def whole(value: Any, most: int) -> int:
    need(type(value) is int and 0 <= value < most, f"{value!a} is no index below {most}")
    return int(value)


def matrix(value: Any, rows: int, columns: int) -> Matrix:
    return [
        [Fraction(real(entry, 0)) for entry in listing(row, columns)]
        for row in listing(value, rows)
    ]


class Real:
    """A stated number: ``factor``, or ``factor`` times the natural logarithm of ``log_of``."""

    pattern = re.compile(r"(?:(?P<factor>[0-9]+(?:/[0-9]+)?) )?ln (?P<log>[0-9]+(?:/[0-9]+)?)")

    def __init__(self, value: Any) -> None:
        self.log_of: Fraction | None = None
        if type(value) is not str:
            self.factor = Fraction(real(value, 0))
            need(math.copysign(1, value) > 0, "zero is written with a sign")
            return
        need(len(value) <= 2000, "a number is too long")
        found = self.pattern.fullmatch(value)
        if found is None:
            need(re.fullmatch(r"[0-9]+/[0-9]+", value) is not None, f"{value!a}: no number")
            self.factor = Fraction(value)
        else:
            self.factor, self.log_of = Fraction(found["factor"] or 1), Fraction(found["log"])
            need(self.log_of >= 1, f"{value!a} is negative")
        need(self.text == value and math.isfinite(self.nearest), f"{value!a} is written otherwise")

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
        out = Real(0.0)
        out.factor, out.log_of = self.factor * by, self.log_of
        need(math.isfinite(out.nearest), "a limit is too large")
        return out

    @cache  # noqa: B019
    def times(self, d: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        """Lower and upper bound of this number times d >= 0."""
        if self.log_of is None:
            return self.factor * d, self.factor * d
        low, high = log_bounds(self.log_of, bits)
        return self.factor * d * low, self.factor * d * high

    @cache  # noqa: B019
    def power(self, d: Fraction) -> Fraction | None:
        """e^{this · d} where it is rational and a root of order <= 64; else None."""
        exponent = self.factor * d
        if exponent == 0 or self.log_of == 1:
            return Fraction(1)
        if self.log_of is None or exponent.denominator > 64:
            return None
        if exponent.numerator * self.log_of.numerator.bit_length() > 100_000:
            return None
        q = exponent.denominator
        base = Fraction(root(self.log_of.numerator, q), root(self.log_of.denominator, q))
        return base**exponent.numerator if base**q == self.log_of else None

    @cache  # noqa: B019
    def exp(self, d: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        """Bounds of e^{this · d}, relative width about 2^-bits. Where this · d is beyond 710 and
        2·bits: a low bound, and 0."""
        known = self.power(d)
        if known is not None:
            return known, known
        low, high = self.times(d, bits + 64)
        if low > max(LARGEST_LOG, 2 * bits):
            return Fraction(1 << (2 * bits)), Fraction(0)
        return exp_bounds(low, bits)[0], exp_bounds(high, bits)[1]


def root(value: int, q: int) -> int:
    """The whole part of the q-th root."""
    low, high = 0, 1 << (value.bit_length() // q + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**q <= value else (low, middle)
    return low


@cache
def log_bounds(value: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """ln value for value >= 1: value = 2^k y, ln y = 2 (z + z^3/3 + ...), z = (y - 1)/(y + 1)."""
    k = max(0, value.numerator.bit_length() - value.denominator.bit_length())
    bits += k.bit_length()
    low, high = _log_series(value / 2**k, bits)
    if k:
        two = _log_series(Fraction(2), bits)
        low, high = low + k * two[0], high + k * two[1]
    return low, high


def _log_series(y: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Here 1/2 < y <= 2, so |z| <= 1/3 and what is left out is below |next term| · 9/8."""
    z, unit = (y - 1) / (y + 1), 1 << (bits + 16)
    total, power, n = Fraction(0), z, 1
    while abs(power) * unit > 1:
        total += power / n
        power, n = Fraction(round(power * z * z * unit * 64), unit * 64), n + 2
    slack = Fraction(n + 2, unit)  # roundings of powers, and the remainder
    return 2 * (total - slack), 2 * (total + slack)


def exp_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
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
    return Fraction(low, one), Fraction(high, one)


def signed_log(value: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """ln value for value > 0, after rounding value outward to about ``bits`` digits."""
    if value < 1:
        low, high = signed_log(1 / value, bits)
        return -high, -low
    shift = max(0, bits - int(value).bit_length())
    whole = (value.numerator << shift) // value.denominator
    ends = Fraction(whole, 1 << shift), Fraction(whole + 1, 1 << shift)
    return log_bounds(ends[0], bits)[0], log_bounds(ends[1], bits)[1]


# ---------------------------------------------------------------- divergences
def divergence(kind: str, p: list[Fraction], q: list[Fraction]) -> Fraction | None:
    """At least D_f(p, q), within about 2^-240; None where it is infinite."""
    if kind == "reverse_kl":
        return divergence("kl", q, p)
    if kind == "hellinger":
        # 1 - Σ √(pq), the roots rounded down
        roots = sum(math.isqrt(int(a * b * (1 << 1200))) for a, b in zip(p, q, strict=True))
        return 1 - Fraction(roots, 1 << 600)
    total = Fraction(0)
    for a, b in zip(p, q, strict=True):
        if a and not b:
            return None
        if b and kind == "chi2":
            total += Fraction(up((a - b) ** 2 / b), 1 << SCALE)
        elif a and kind == "kl":
            total += Fraction(up(a * signed_log(a / b, 256)[1]), 1 << SCALE)
    return total


def tangent(kind: str, slope: Fraction) -> tuple[Fraction, Fraction]:
    """α, the slope cut to where f* is finite, and β <= -f*(α): then α p + β q <= q f(p/q)."""
    if kind == "kl":
        alpha = min(max(slope, Fraction(-700)), Fraction(700))
        low, high = exp_bounds(abs(alpha), 256)
        return alpha, 1 - (high if alpha >= 0 else 1 / low)
    if kind == "reverse_kl":
        alpha = min(slope, 1 - Fraction(1, 2**53))
        return alpha, signed_log(1 - alpha, 256)[0]
    if kind == "chi2":
        alpha = max(slope, Fraction(-2))
        return alpha, -(alpha + alpha * alpha / 4)
    need(kind == "hellinger", "the divergence is unknown")
    alpha = min(slope, Fraction(1, 2) - Fraction(1, 2**54))
    return alpha, -alpha / (1 - 2 * alpha)


def at_most(left: int, right: int, epsilon: Real, d: Fraction) -> bool:
    """left <= e^{ε d} right, exactly."""
    if left <= right or right == 0:
        return left <= right
    known = epsilon.power(d)
    if known is not None:
        return left * known.denominator <= right * known.numerator
    bits = 64
    while bits <= 16384:
        low, high = epsilon.exp(d, bits)
        if left * low.denominator <= right * low.numerator:
            return True
        if high and left * high.denominator > right * high.numerator:
            return False
        bits *= 4
    return False


# ---------------------------------------------------------------- the design file
def read(path: str) -> dict[str, Any]:
    about = os.stat(path)
    need(stat.S_ISREG(about.st_mode), "is not a regular file")
    need(about.st_size <= MOST_BYTES, "is too large")
    with open(path, "rb") as stream:
        content = stream.read()
    head, _, rest = content.partition(b"\n")
    digest = hashlib.sha256(rest).hexdigest().encode()
    need(head == b'{"digest": "sha256:' + digest + b'",', "the digest does not match the content")

    def refuse(constant: str) -> None:
        raise Fault(f"{constant} is not a number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a key occurs twice")
        return dict(pairs)

    body = json.loads(content, parse_constant=refuse, object_pairs_hook=unique)
    known = type(body) is dict and body.get("format") in (FORMAT, FAMILY)
    need(known, f"is neither of format {FORMAT} nor of {FAMILY}")
    return dict(body)


class Places:
    """Secrets or observables: labels, and coordinates where there are some."""

    def __init__(self, plain: Any, count: int) -> None:
        need(type(plain) is dict and type(plain.get("unit")) is str, "the unit is no text")
        self.count, self.unit = count, plain["unit"]
        self.bounds: list[float] | None = plain.get("bounds")
        self.points: list[list[float]] | None = None
        self.globe = False
        if "grid" in plain:
            self.read_grid(keys(plain, "grid cell origin unit bounds"))
        else:
            self.read_labels(keys(plain, "labels points unit coordinates", "outlines"))
        need(0 < len(self.labels) == count, "labels are missing, or too many")
        need(len(set(self.labels)) == count, "labels are not distinct")

    def read_grid(self, plain: Any) -> None:
        rows, columns = (whole(v, 10**7 + 1) for v in listing(plain["grid"], 2))
        need(0 < rows * columns == self.count, "the size of the grid is another one")
        width, height = (real(v) for v in listing(plain["cell"], 2))
        x, y = (real(v) for v in listing(plain["origin"], 2))
        need(width > 0 and height > 0, "a cell has no size")
        if plain["bounds"] is not None:
            west, south, east, north = (real(v) for v in listing(plain["bounds"], 4))
            need(-360 <= west < east <= 360, "the longitudes are out of range")
            need(-90 <= south < north <= 90, "the latitudes are out of range")
            degree = math.pi / 180 * EARTH_RADIUS_KM
            across = (east - west) * degree * math.cos(math.radians((south + north) / 2)) / columns
            up_ = (north - south) * degree / rows
            fits = abs(across - width) <= 1e-12 * width and abs(up_ - height) <= 1e-12 * height
            need(fits and plain["unit"] == "km" and x == y == 0, "cells are not of these degrees")
        places = [(row, column) for row in range(rows) for column in range(columns)]
        self.labels: list[Any] = list(places)
        self.points = [[x + (c + 0.5) * width, y + (r + 0.5) * height] for r, c in places]
        need(all(math.isfinite(v) for p in self.points for v in p), "a cell is too far away")

    def read_labels(self, plain: Any) -> None:
        self.labels = [self.label(v) for v in listing(plain["labels"])]
        count = len(self.labels)
        need(plain["coordinates"] in ("plane", "lonlat"), "the coordinates are unknown")
        self.globe = plain["coordinates"] == "lonlat"
        wide = 0
        if plain["points"] is not None:
            rows = [[real(v) for v in listing(p)] for p in listing(plain["points"], count)]
            wide = len(rows[0])
            need(wide > 0 and all(len(row) == wide for row in rows), "points of several kinds")
            self.points = rows
        need(not self.globe or self.unit in ("", "km"), "distances on the globe are in km")
        if self.globe:
            need(self.points is not None and wide == 2, "there is no longitude and latitude")
            for lon, lat in self.points or ():
                need(abs(lon) <= 360 and abs(lat) <= 90, "a point is not on the globe")
        if "outlines" in plain:
            need(wide == 2, "outlines without points")
            for rings in listing(plain["outlines"], count):
                need(len(listing(rings)) > 0, "an outline is missing")
                for ring in rings:
                    need(len(listing(ring)) >= 3, "a ring has too few corners")
                    need(all([real(v) for v in listing(corner, 2)] for corner in ring), "")

    def label(self, plain: Any) -> Any:
        if type(plain) is list:
            return tuple(self.label(part) for part in plain)
        kinds = (type(None), str, int, float, bool)
        need(type(plain) in kinds, f"{plain!a} is no label")
        need(type(plain) is not float or math.isfinite(plain), f"{plain!a} is no label")
        return plain


def recomputed(name: str, a: Places, b: Places) -> list[list[float]]:
    """The distances that a name says, in floating point."""
    if name == "hamming":
        return [[0.0 if x == y else 1.0 for y in b.labels] for x in a.labels]
    need(a.points is not None and b.points is not None, f"{name} needs coordinates")
    globe = name == "haversine"
    need(a.globe is globe and b.globe is globe, f"{name} needs other coordinates")
    need(globe or in_one_frame(a, b), "coordinates in two units, or over different bounds")
    assert a.points is not None
    assert b.points is not None
    need(len(a.points[0]) == len(b.points[0]), "coordinates of different dimensions")
    between = {"euclidean": straight, "manhattan": sideways, "haversine": around}[name]
    return [[between(p, q) for q in b.points] for p in a.points]


def in_one_frame(a: Places, b: Places) -> bool:
    units = {a.unit, b.unit} - {""}
    boxes = [a.bounds, b.bounds]
    return len(units) < 2 and (
        boxes[0] == boxes[1] or (None in boxes and "" not in (a.unit, b.unit))
    )


def straight(p: list[float], q: list[float]) -> float:
    steps = [x - y for x, y in zip(p, q, strict=True)]
    need(len(p) == 2 or math.isfinite(sum(v * v for v in steps)), "points are too far apart")
    return math.hypot(*steps)


def sideways(p: list[float], q: list[float]) -> float:
    return math.fsum(abs(x - y) for x, y in zip(p, q, strict=True))


def around(p: list[float], q: list[float]) -> float:
    (lon, lat), (lon2, lat2) = (map(math.radians, point) for point in (p, q))
    cosines = math.cos(lat) * math.cos(lat2)
    half = math.sin((lat - lat2) / 2) ** 2 + cosines * math.sin((lon - lon2) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(half, 1.0)))


def differ(name: str, stated: float, proper: float) -> bool:
    """Whether by more than rounding; an arcsine near 1 loses half of the digits."""
    share = 1e-12
    if name == "haversine":
        share = 1e-9 if proper < 0.9999 * math.pi * EARTH_RADIUS_KM else 1e-7
    return not abs(stated - proper) <= share * proper + 1e-150


class Audit:
    """The problem of a design file, its mechanism, and what was found."""

    unchecked = (
        "title, labels, coordinates, outlines, units, engine, reason, notes, seconds, rounding cost"
    )

    def __init__(self, body: dict[str, Any]) -> None:
        keys(body, "digest format problem result mechanism multipliers")
        wanted = "title secrets observables prior loss objective constraints"
        problem = keys(body["problem"], wanted, "loss_name")
        self.lines: list[str] = []
        self.n = len(listing(problem["prior"]))
        self.m = len(listing(listing(problem["loss"], self.n)[0]))
        need(self.n * max(self.n, self.m) <= MOST_ENTRIES, "is too large for this audit")
        self.secrets = Places(problem["secrets"], self.n)
        self.observables = Places(problem["observables"], self.m)
        need(type(problem["title"]) is str, "the title is no text")
        self.prior = self.distribution(problem["prior"])
        self.loss = matrix(problem["loss"], self.n, self.m)
        if "loss_name" in problem:
            need(problem["loss_name"] in NAMED, "the loss has a name that says nothing")
            self.check_name("loss", problem["loss_name"], problem["loss"], self.observables)
        self.result = self.read_result(body["result"], body["mechanism"] is not None)
        self.objective = problem["objective"]
        self.target: Matrix = []
        if type(self.objective) is dict:
            keys(self.objective, "distance prior")
            self.target = self.weighted("objective", self.objective)
        else:
            need(self.objective in ("expected_loss", "worst_loss"), "the objective is unknown")
        self.allowed = [[True] * self.m for _ in range(self.n)]
        self.ratios: list[tuple[int, Real, list[list[Fraction | None]], Any]] = []
        self.sums: list[tuple[int, Real, Real, list[Any]]] = []
        self.divergences: list[tuple[int, str, list[Any]]] = []
        self.distortions: list[tuple[int, Fraction, Fraction, Matrix]] = []
        self.limits: list[tuple[int, Fraction, Fraction, bool, Matrix]] = []
        self.thresholded: list[tuple[int, Real, Matrix]] = []
        for k, constraint in enumerate(listing(problem["constraints"])):
            need(constraint["kind"] in KINDS, f"{constraint['kind']!a} is no constraint")
            getattr(self, "read_" + constraint["kind"])(k, constraint)
        limiting = any(c["kind"] in ("loss_bound", "support") for c in problem["constraints"])
        need(type(self.objective) is not dict or limiting, "distortion without a limit on loss")
        self.settle_limits()
        self.read_multipliers(body["multipliers"])
        self.bits, self.rows = 0, [[0] * self.m]
        if body["mechanism"] is not None:
            self.read_mechanism(body["mechanism"])

    def distribution(self, values: Any) -> list[Fraction]:
        """A list of n numbers >= 0 that sum to one up to rounding."""
        out = matrix([values], 1, self.n)[0]
        off = math.fsum([*map(float, out), -1.0])
        need(abs(off) <= self.n * 2.0**-52, "a distribution does not sum to one")
        return out

    def check_name(self, what: str, name: Any, stated: Any, to: Places) -> None:
        """Whether a matrix is what its name says, where that can be computed again."""
        need(type(name) is str, "a distance has no name")
        if name not in NAMED:
            called = "" if name in ("matrix", "given") else f", called {name!a}: not checked"
            self.say(f"{what}: a distance given as a matrix{called}")
            return
        proper = recomputed(name, self.secrets, to)
        for i, (row, right) in enumerate(zip(stated, proper, strict=True)):
            for j, (v, w) in enumerate(zip(row, right, strict=True)):
                need(not differ(name, v, w), f"{what}: {v!a} at [{i}, {j}] is not {name}")
        self.say(f"{what}: the distance is {name}, computed again")

    def distance(self, what: str, plain: Any, reach: bool = False) -> tuple[Matrix, Matrix]:
        """The distances among secrets, and from secrets to observables."""
        keys(plain, "name secrets observables" if reach else "name secrets")
        d = matrix(plain["secrets"], self.n, self.n)
        self.check_name(what, plain["name"], plain["secrets"], self.secrets)
        if not reach:
            return d, []
        across = matrix(plain["observables"], self.n, self.m)
        same = self.secrets.labels == self.observables.labels
        need(not same or across == d, f"{what}: one distance between the same labels differs")
        self.check_name(what, plain["name"], plain["observables"], self.observables)
        return d, across

    def weighted(self, what: str, plain: Any) -> Matrix:
        prior = plain["prior"]
        weights = self.prior if prior is None else self.distribution(prior)
        return [
            [d * w for d, w in zip(row, weights, strict=True)]
            for row in self.distance(what, plain["distance"])[0]
        ]

    def read_result(self, plain: Any, released: bool) -> dict[str, Any]:
        """Types and ranges of what the file claims; figures are null where nothing is feasible."""
        keys(plain, "status objective bound loss lower_bound engine engine_reason seconds "
             "rounding_cost reason notes approximations")  # fmt: skip
        status = ("optimal", "feasible") if released else ("infeasible",)
        need(plain["status"] in status, "the status does not fit")
        for name in ("objective", "bound", "loss", "lower_bound"):
            if released:
                number(plain[name], 0 if name == "lower_bound" else None)
            else:
                need(plain[name] is None, "a figure of no mechanism")
        for text in (plain["engine"], plain["engine_reason"], plain["reason"]):
            need(type(text) is str, f"{text!a} is no text")
        need(all(type(note) is str for note in listing(plain["notes"])), "a note is no text")
        number(plain["seconds"])
        number(plain["rounding_cost"], None)
        for part in listing(plain["approximations"]):
            keys(part, "constraint promised_epsilon epsilon repaired_loss")
            need(released and type(part["constraint"]) is int, "an approximation of nothing")
            number(part["promised_epsilon"], None)
            for value in (part["epsilon"], part["repaired_loss"]):
                need(value is None or number(value, None) is not None, "")
        return dict(plain)

    # each constraint's inequalities -------------------------------------
    def read_metric_privacy(self, k: int, c: Any) -> None:
        keys(c, "kind epsilon distance threshold observable_threshold delta")
        windowed = c["observable_threshold"] is not None
        d, reach = self.distance(f"constraints[{k}]", c["distance"], windowed)
        most = None if c["threshold"] is None else Fraction(real(c["threshold"], 0))
        window = None
        if windowed:
            near = Fraction(real(c["observable_threshold"], 0))
            window = [[value <= near for value in row] for row in reach]
        kept = [[v if most is None or v <= most else None for v in row] for row in d]
        stated = Real(c["delta"]).nearest > 0
        need(not (windowed and stated), "a delta with an observable threshold")
        if (windowed or most is not None) and not stated:
            self.thresholded.append((k, Real(c["epsilon"]), d))
        self.add_ratios(k, c, kept, window)

    def read_differential_privacy(self, k: int, c: Any) -> None:
        keys(c, "kind epsilon adjacency delta")
        n, adjacency = self.n, c["adjacency"]
        if adjacency == "all":
            near = [[True] * n for _ in range(n)]
        elif type(adjacency) is dict:
            keys(adjacency, "distance radius")
            radius = Fraction(real(adjacency["radius"], 0))
            d, _ = self.distance(f"constraints[{k}]", adjacency["distance"])
            near = [[value <= radius for value in row] for row in d]
        else:
            near = [[False] * n for _ in range(n)]
            need(len(listing(adjacency)) > 0, "there is no pair")
            for pair in adjacency:
                i, j = (whole(s, n) for s in listing(pair, 2))
                need(i != j, f"constraints[{k}]: secret {i} is paired with itself")
                near[i][j] = near[j][i] = True
        self.add_ratios(k, c, [[Fraction(1) if x else None for x in row] for row in near], None)

    def add_ratios(self, k: int, c: Any, d: list[list[Fraction | None]], window: Any) -> None:
        for s in range(self.n):
            d[s][s] = None
        epsilon, delta = Real(c["epsilon"]), Real(c["delta"])
        need(delta.nearest <= 1, "a delta is above 1")
        seen = [[True]] if window is None else window
        if not any(v is not None for row in d for v in row) or not any(map(any, seen)):
            self.say(f"constraints[{k}]: constrains nothing")
        if not delta.nearest > 0:
            self.ratios.append((k, epsilon, d, window))
            return
        pairs = [
            ({i: Fraction(1)}, {j: Fraction(1)}, value)
            for i, row in enumerate(d)
            for j, value in enumerate(row)
            if value is not None
        ]
        if pairs:
            self.sums.append((k, epsilon, delta, pairs))

    def read_distribution_privacy(self, k: int, c: Any) -> None:
        keys(c, "kind epsilon pairs delta divergence scale")
        count = len(listing(c["pairs"]))
        need(count > 0, "there is no pair")
        scale = [1.0] * count if c["scale"] is None else listing(c["scale"], count)
        both = []
        for pair, factor in zip(c["pairs"], scale, strict=True):
            p, q = (self.distribution(side) for side in listing(pair, 2))
            shares = [{s: v / sum(side) for s, v in enumerate(side) if v} for side in (p, q)]
            both.append((shares[0], shares[1], Fraction(real(factor, 0))))
        if all(p == q for p, q, _ in both):
            self.say(f"constraints[{k}]: constrains nothing")
        epsilon, delta = Real(c["epsilon"]), Real(c["delta"])
        need(delta.nearest <= 1, "a delta is above 1")
        if c["divergence"] == "max":
            delta = delta if delta.nearest > 0 else Real(0.0)
            self.sums.append((k, epsilon, delta, both + reverse(both)))
            return
        need(c["divergence"] in DIVERGENCES, "the divergence is unknown")
        need(not delta.nearest > 0, "a divergence with a delta")
        # at divergence 0 distributions are equal
        limits = [epsilon.scaled(factor) for _, _, factor in both]
        listed = list(zip(both, limits, strict=True))
        equal = [(p, q, Fraction(1)) for (p, q, _), limit in listed if limit.zero]
        apart = [(p, q, limit) for (p, q, _), limit in listed if not limit.zero]
        small = [epsilon.nearest * float(f) for (_, _, f), x in listed if not x.zero]
        need(min(small, default=1.0) >= 1e-30, "a limit cannot be told from 0")
        if equal:
            self.sums.append((k, Real(0.0), Real(0.0), equal + reverse(equal)))
        if c["divergence"] == "tv":
            self.sums += [(k, Real(0.0), limit, [(p, q, Fraction(1))]) for p, q, limit in apart]
        elif apart:
            self.divergences.append((k, c["divergence"], apart + reverse(apart)))

    def read_distortion_privacy(self, k: int, c: Any) -> None:
        keys(c, "kind minimum distance prior")
        low, high = Real(c["minimum"]).times(Fraction(1), 256)
        self.distortions.append((k, low, high, self.weighted(f"constraints[{k}]", c)))

    def read_loss_bound(self, k: int, c: Any) -> None:
        keys(c, "kind maximum worst_case loss")
        need(type(c["worst_case"]) is bool, "worst_case is neither true nor false")
        low, high = Real(c["maximum"]).times(Fraction(1), 256)
        loss = self.loss if c["loss"] is None else matrix(c["loss"], self.n, self.m)
        self.limits.append((k, low, high, c["worst_case"], loss))

    def read_support(self, k: int, c: Any) -> None:
        keys(c, "kind mask")
        mask = [[whole(v, 2) for v in listing(row, self.m)] for row in listing(c["mask"], self.n)]
        need(all(map(any, mask)), f"constraints[{k}]: a secret may report nothing")
        self.allowed = [
            [old and new == 1 for old, new in zip(*rows, strict=True)]
            for rows in zip(self.allowed, mask, strict=True)
        ]

    def settle_limits(self) -> None:
        """Limits that miss the attainable extreme by rounding mean the extreme."""
        for place, (k, _, high, w) in enumerate(self.distortions):
            largest = blind(w)
            if largest < high <= largest * (1 + NEAR):
                self.distortions[place] = (k, largest, largest, w)
        if not all(map(any, self.allowed)):
            return
        for place, (k, low, _, worst, loss) in enumerate(self.limits):
            least = self.least(worst, loss)
            if low < least <= low * (1 + NEAR):
                self.limits[place] = (k, least, least, worst, loss)

    def least(self, worst: bool, loss: Matrix) -> Fraction:
        cheapest = [
            min((c for c, ok in zip(*rows, strict=True) if ok), default=Fraction(0))
            for rows in zip(loss, self.allowed, strict=True)
        ]
        return max(cheapest) if worst else self.mean(cheapest)

    def mean(self, values: list[Fraction]) -> Fraction:
        return sum((p * v for p, v in zip(self.prior, values, strict=True)), Fraction(0))

    def read_mechanism(self, plain: Any) -> None:
        keys(plain, "bits rows")
        bits = self.bits = plain["bits"]
        need(type(bits) is int and 1 <= bits <= 1074, "the number of bits is out of range")
        self.rows = []
        for entry in listing(plain["rows"], self.n):
            indices, texts = listing(entry, 2)
            row, before = [0] * self.m, -1
            for o, text in zip(listing(indices, len(texts)), listing(texts), strict=True):
                need(whole(o, self.m) > before, "observables are out of order")
                need(type(text) is str and len(text) <= 270, "a wrong numerator")
                need(re.fullmatch("[1-9a-f][0-9a-f]*", text) is not None, "a wrong numerator")
                row[o], before = int(text, 16), o
            need(sum(row) == 1 << bits, "a row does not sum to one")
            self.rows.append(row)

    def read_multipliers(self, plain: Any) -> None:
        """All multipliers, cut to [0, 2^100]; slopes as they are."""
        keys(plain, "ratio windowed lifted approximate distortion loss_limits objective",
             "divergence")  # fmt: skip
        windows = [part for part in self.ratios if part[3] is not None]
        exact = [part for part in self.sums if part[2].zero]
        loose = [part for part in self.sums if not part[2].zero]
        self.pairs = [] if plain["ratio"] is None else self.pair_list(plain["ratio"])
        self.windowed = [
            (part, self.pair_list(given)) for part, given in family(plain["windowed"], windows)
        ]
        self.lifted = [
            (part, [(r, o, price(v)) for r, o, v in self.entries(given, len(part[3]), self.m)])
            for part, given in family(plain["lifted"], exact)
        ]
        self.approximate = [
            (part, *self.priced(given, "test", len(part[3]), self.m))
            for part, given in family(plain["approximate"], loose)
        ]
        self.tangents = [
            (part, *self.priced(given, "slope", len(part[2]), self.m))
            for part, given in family(plain.get("divergence", []), self.divergences)
        ]
        self.attacks = []
        for part, given in family(plain["distortion"], self.distortions):
            keys(given, "weight strategy")
            weight = price(number(given["weight"], None))
            self.attacks.append((part, weight, self.entries(given["strategy"], self.m, self.n)))
        self.spent = [
            (part, [price(number(v, None)) for v in listing(given, self.n if part[3] else 1)])
            for part, given in family(plain["loss_limits"], self.limits)
        ]
        self.goal: list[Entry] | None = None
        if plain["objective"] is not None:
            need(self.objective != "expected_loss", "an expected loss has no multipliers")
            shape = (1, self.n) if self.objective == "worst_loss" else (self.m, self.n)
            self.goal = self.entries(plain["objective"], *shape)

    def pair_list(self, plain: Any) -> list[tuple[int, int, int, Fraction]]:
        keys(plain, "i j o value")
        count = len(listing(plain["i"]))
        columns = [listing(plain[key], count) for key in ("i", "j", "o", "value")]
        return [
            (whole(i, self.n), whole(j, self.n), whole(o, self.m), price(number(v, None)))
            for i, j, o, v in zip(*columns, strict=True)
        ]

    def priced(
        self, plain: Any, what: str, count: int, columns: int
    ) -> tuple[list[Fraction], list[Entry]]:
        keys(plain, f"weight {what}")
        weights = [price(number(v, None)) for v in listing(plain["weight"], count)]
        return weights, self.entries(plain[what], count, columns)

    def entries(self, plain: Any, rows: int, columns: int) -> list[Entry]:
        keys(plain, "shape row column value")
        need([type(v) for v in listing(plain["shape"], 2)] == [int, int], "a wrong shape")
        need(plain["shape"] == [rows, columns], "multipliers of a wrong shape")
        count = len(listing(plain["row"]))
        places = [
            (whole(r, rows), whole(c, columns))
            for r, c in zip(plain["row"], listing(plain["column"], count), strict=True)
        ]
        need(len(set(places)) == count, "a multiplier is given twice")
        values = [number(v, None) for v in listing(plain["value"], count)]
        return [(r, c, v) for (r, c), v in zip(places, values, strict=True)]

    # what is claimed -----------------------------------------------------
    def say(self, text: str) -> None:
        self.lines.append(text)

    def check_mechanism(self) -> None:
        self.say(f"{self.n} rows of {self.m} whole numbers, each with sum 2^{self.bits}")
        for s, row in enumerate(self.rows):
            need(all(ok or not v for ok, v in zip(self.allowed[s], row, strict=True)), "support")
        for k, epsilon, d, window in self.ratios:
            self.check_ratio(k, epsilon, d, window)
        for k, epsilon, delta, pairs in self.sums:
            self.check_sums(k, epsilon, delta, pairs)
        for k, kind, pairs in self.divergences:
            self.check_divergences(k, kind, pairs)
        for k, _, least, w in self.distortions:
            value = self.distortion(w)
            need(value >= least, f"constraints[{k}]: the distortion is {float(value)}")
            self.say(f"constraints[{k}]: distortion {float(value):.12g} >= {float(least):.12g}")
        self.check_approximations()
        for k, most, _, worst, loss in self.limits:
            values = self.losses(loss)
            spent = max(values) if worst else self.mean(values)
            need(spent <= most, f"constraints[{k}]: the loss is {float(spent)}")
            self.say(f"constraints[{k}]: loss {float(spent):.12g} <= {float(most):.12g}")

    def check_ratio(self, k: int, epsilon: Real, d: Any, window: Any) -> None:
        checked, tightest = 0, Fraction(0)
        for i, row in enumerate(self.rows):
            columns = [o for o in range(self.m) if window is None or window[i][o]]
            for j, other in enumerate(self.rows):
                if d[i][j] is None:
                    continue
                checked += len(columns)
                low = epsilon.exp(d[i][j], 64)[0]
                for o in columns:
                    fits = row[o] * low.denominator <= other[o] * low.numerator
                    need(
                        fits or at_most(row[o], other[o], epsilon, d[i][j]),
                        f"constraints[{k}]: p({o}|{i}) is too large beside p({o}|{j})",
                    )
                    top, bottom = row[o] * low.denominator, other[o] * low.numerator
                    if top * tightest.denominator > tightest.numerator * bottom and bottom:
                        tightest = Fraction(top, bottom)
        self.say(f"constraints[{k}]: {checked} ratios, the tightest at {float(tightest):.15g}")

    def check_sums(self, k: int, epsilon: Real, delta: Real, pairs: Any) -> None:
        allowed = delta.times(Fraction(1), 256)[0]
        strict = delta.zero
        for number_, (p, q, d) in enumerate(pairs):
            scale = math.lcm(*(v.denominator for side in (p, q) for v in side.values()))
            left, right = (
                [sum(int(v * scale) * self.rows[s][o] for s, v in side.items())
                 for o in range(self.m)] for side in (p, q)
            )  # fmt: skip
            where = f"constraints[{k}]: pair {number_}"
            if strict:
                for a, b in zip(left, right, strict=True):
                    need(at_most(a, b, epsilon, d), where)
                continue
            low = epsilon.exp(d, self.bits + 256)[0]
            spent = sum(
                max(0, a * low.denominator - b * low.numerator)
                for a, b in zip(left, right, strict=True)
            )
            need(Fraction(spent, low.denominator * scale << self.bits) <= allowed, where)
        what = f"{len(pairs) * self.m} ratios" if strict else f"{len(pairs)} sums <= delta"
        self.say(f"constraints[{k}]: {what}")

    def check_divergences(self, k: int, kind: str, pairs: Any) -> None:
        for number_, (p, q, limit) in enumerate(pairs):
            left, right = (
                [
                    sum((v * self.rows[s][o] for s, v in side.items()), Fraction(0)) / 2**self.bits
                    for o in range(self.m)
                ]
                for side in (p, q)
            )
            spent = divergence(kind, left, right)
            where = f"constraints[{k}]: pair {number_}: the divergence is too large"
            need(spent is not None and spent <= limit.times(Fraction(1), 256)[0], where)
        self.say(f"constraints[{k}]: {len(pairs)} divergences ({kind})")

    def check_approximations(self) -> None:
        """The ε of thresholded constraints, measured again over all pairs of secrets."""
        stated = self.result["approximations"]
        places = [k for k, _, _ in self.thresholded]
        need([part["constraint"] for part in stated] == places, "approximations are missing")
        for part, (k, epsilon, d) in zip(stated, self.thresholded, strict=True):
            least, found, most = self.measured(d)
            claimed = math.inf if part["epsilon"] is None else part["epsilon"]
            near = claimed >= 0 and least * (1 - 1e-9) <= claimed <= most * (1 + 1e-9)
            need(near, f"constraints[{k}]: with its thresholds ε is {found}")
            promised = part["promised_epsilon"]
            need(math.isclose(promised, epsilon.nearest, rel_tol=1e-9), "another ε was promised")
            self.say(
                f"constraints[{k}]: for all pairs ε is {found:.9g}, measured again; the loss "
                "after repair is not checked"
            )

    def measured(self, d: Matrix) -> tuple[float, float, float]:
        """The least ε of metric privacy, the largest ln(p(o|s) / p(o|s')) / d(s, s'), between
        bounds of what floats nearest to the probabilities give: logarithms that are off by a few
        2^-53, and equal rows that are equal."""
        worst = (0.0, 0.0, 0.0)
        for i, row in enumerate(self.rows):
            for j, other in enumerate(self.rows):
                if i == j or row == other:
                    continue
                if d[i][j] == 0 or any(a and not b for a, b in zip(row, other, strict=True)):
                    return math.inf, math.inf, math.inf
                tops = [(a, b) for a, b in zip(row, other, strict=True) if a > b]
                best = max((log_ratio(a, b) for a, b in tops), default=0.0)
                own = [(best + off) / float(d[i][j]) for off in (-LOG_ROUNDING, 0, LOG_ROUNDING)]
                worst = (max(worst[0], own[0]), max(worst[1], own[1]), max(worst[2], own[2]))
        return worst

    def distortion(self, w: Matrix) -> Fraction:
        scale = math.lcm(*(v.denominator for row in w for v in row))
        whole = [[int(v * scale) for v in row] for row in w]
        total = 0
        for column in zip(*self.rows, strict=True):
            used = [(s, p) for s, p in enumerate(column) if p]
            total += min(sum(row[s] * p for s, p in used) for row in whole)
        return Fraction(total, scale << self.bits)

    def losses(self, loss: Matrix) -> list[Fraction]:
        return [
            sum((c * p for c, p in zip(*rows, strict=True) if p), Fraction(0)) / (1 << self.bits)
            for rows in zip(loss, self.rows, strict=True)
        ]

    # the bound: constant + Σ_s min_o L[s][o], every number rounded down -------
    def lagrangian(self, objective: bool) -> Fraction:
        table = [[0] * self.m for _ in range(self.n)]
        weight = self.add_objective(table) if objective else Fraction(1)
        constant = self.add_constraints(table)
        low = sum(
            min(v for v, ok in zip(*rows, strict=True) if ok)
            for rows in zip(table, self.allowed, strict=True)
        )
        return (Fraction(low, 1 << SCALE) + constant) / weight

    def add_objective(self, table: list[list[int]]) -> Fraction:
        if type(self.objective) is dict:
            self.add_attack(table, Fraction(1), self.goal or [], self.target)
            return Fraction(1)
        weights = self.prior
        if self.objective == "worst_loss":
            weights = [Fraction(1 if self.goal is None else 0)] * self.n
            for _, s, value in self.goal or []:
                weights[s] = price(value)
            need(sum(weights) > 0, "the weights of the worst loss are zero")
        for s, p in enumerate(weights):
            for o, c in enumerate(self.loss[s]):
                table[s][o] += down(p * c)
        return sum(weights, Fraction(0)) if self.objective == "worst_loss" else Fraction(1)

    def add_attack(
        self, table: list[list[int]], weight: Fraction, given: list[Entry], w: Matrix
    ) -> None:
        """- weight Σ_t α(t|o) w[t][s], the attack α(.|o) divided by its sum."""
        guesses: list[list[tuple[int, Fraction]]] = [[] for _ in range(self.m)]
        for o, t, value in given:
            if value > 0:
                guesses[o].append((t, value))
        for o, listed in enumerate(guesses):
            total = sum((value for _, value in listed), Fraction(0))
            if not TINY < total < HUGE:
                listed, total = [(t, Fraction(1)) for t in range(self.n)], Fraction(self.n)
            for t, value in listed:
                share = weight * value / total
                for s in range(self.n):
                    table[s][o] -= up(share * w[t][s])

    def add_constraints(self, table: list[list[int]]) -> Fraction:
        constant = Fraction(0)
        self.add_pairs(table, [part for part in self.ratios if part[3] is None], self.pairs)
        for part, pairs in self.windowed:
            self.add_pairs(table, [part], pairs)
        for (_, epsilon, _, pairs), given in self.lifted:
            for k, o, value in given:
                self.add_sum(table, epsilon, pairs[k], o, value)
        for (_, epsilon, delta, pairs), weights, tests in self.approximate:
            used = [
                y if epsilon.exp(d, 128)[1] else Fraction(0)
                for y, (_, _, d) in zip(weights, pairs, strict=True)
            ]
            for k, o, test in tests:
                self.add_sum(table, epsilon, pairs[k], o, used[k] * min(Fraction(1), test))
            constant -= sum(used) * delta.times(Fraction(1), 256)[1]
        for (_, kind, pairs), weights, slopes in self.tangents:
            constant -= self.add_tangents(table, kind, pairs, weights, slopes)
        for (_, least, _, w), weight, strategy in self.attacks:
            self.add_attack(table, weight, strategy, w)
            constant += weight * least
        for (_, _, most, worst, loss), prices in self.spent:
            constant -= sum(prices) * most
            for s in range(self.n):
                each = prices[s] if worst else prices[0] * self.prior[s]
                for o, c in enumerate(loss[s]):
                    table[s][o] += down(each * c)
        return constant

    def add_pairs(self, table: list[list[int]], parts: list[Any], given: Any) -> None:
        """z (P[i,o] - f P[j,o]) for the least known f >= e^{εd} of the pair."""
        for i, j, o, z in given:
            stated = [
                epsilon.exp(d[i][j], 128)[1]
                for _, epsilon, d, window in parts
                if d[i][j] is not None and (window is None or window[i][o])
            ]
            factors = [f for f in stated if f]
            if z > 0 and factors:
                table[i][o] += down(z)
                table[j][o] -= up(z * min(factors))

    def add_sum(self, table: Any, epsilon: Real, pair: Any, o: int, value: Fraction) -> None:
        p, q, d = pair
        factor = epsilon.exp(d, 128)[1]
        if value > 0 and factor:
            for s, share in p.items():
                table[s][o] += down(value * share)
            for s, share in q.items():
                table[s][o] -= up(value * factor * share)

    def add_tangents(
        self, table: Any, kind: str, pairs: Any, weights: list[Fraction], slopes: list[Entry]
    ) -> Fraction:
        """Σ y (α p + β q) on the table; returns Σ y · limit, rounded up."""
        for k, o, slope in slopes:
            p, q, _ = pairs[k]
            alpha, beta = tangent(kind, slope)
            for side, weight in ((p, weights[k] * alpha), (q, weights[k] * beta)):
                for s, share in side.items():
                    table[s][o] += down(weight * share)
        limits = [limit.times(Fraction(1), 256)[1] for _, _, limit in pairs]
        return sum((y * most for y, most in zip(weights, limits, strict=True)), Fraction(0))

    def check_figures(self) -> None:
        """Value and bound of the file against exact ones: never better than the truth."""
        claim = {key: number(self.result[key], None) for key in ("objective", "bound", "loss")}
        bound, values = self.lagrangian(True), self.losses(self.loss)
        loss = max(values) if self.objective == "worst_loss" else self.mean(values)
        least = number(self.result["lower_bound"])
        if type(self.objective) is dict:
            w = self.target
            value = self.distortion(w)
            need(claim["objective"] == -rounded_up(-value), "the distortion is another one")
            need(claim["bound"] >= min(-bound, blind(w)), "the bound is not proved")
            need(least == 0 or least <= self.least_loss(value, bound), "the least loss: unproved")
        else:
            need(claim["objective"] == claim["loss"], "objective and loss differ")
            need(claim["bound"] <= max(bound, Fraction(0)), "the bound is not proved")
            need(least == claim["bound"], "bound and lower bound differ")
        need(claim["loss"] == rounded_up(loss), "the loss is another one")
        self.say(f"objective {float(claim['objective']):.15g}, bound {float(claim['bound']):.15g}")
        self.say(f"loss {float(claim['loss']):.15g}, lower bound {float(least):.15g}")
        self.check_status(float(claim["objective"]), float(claim["bound"]))

    def check_status(self, value: float, bound: float) -> None:
        """Optimal up to a gap of 10^-6, and not beyond."""
        off = max(0.0, bound - value if type(self.objective) is dict else value - bound)
        gap = 0.0 if off == 0 else off / abs(value) if value else math.inf
        best = gap <= OPTIMAL_GAP
        need(best or self.result["status"] == "feasible", f"the gap is {gap:.2g}: not optimal")
        self.say(f"gap {gap:.2g}: {'optimal' if best else 'not proved to be optimal'}")

    def least_loss(self, value: Fraction, bound: Fraction) -> Fraction:
        """q - (U - D) / μ, where one bound on the problem's own expected loss is stated."""
        need(len(self.limits) == 1 and len(self.spent) == 1, "there is no price of loss")
        most, worst, loss = self.limits[0][1], self.limits[0][3], self.limits[0][4]
        paid: Fraction = self.spent[0][1][0]
        need(not worst and loss == self.loss and paid > 0, "there is no price of loss")
        return most - (-bound - value) / paid

    def check_infeasible(self) -> None:
        for k, least, _, w in self.distortions:
            if least > blind(w):
                return self.say(f"constraints[{k}]: more distortion than any mechanism has")
        zero = [[not ok for ok in row] for row in self.allowed]
        for k, _, most, worst, loss in self.limits:
            if not any(map(all, zero)) and self.least(worst, loss) > most:
                return self.say(f"constraints[{k}]: less loss than any mechanism has")
        moved = True
        while moved:
            moved = False
            for i, j, holds in self.bound_pairs():
                for o in range(self.m):
                    if zero[j][o] and not zero[i][o] and holds[o]:
                        zero[i][o] = moved = True
        if any(map(all, zero)):
            return self.say("the support leaves a secret without observables")
        need(self.lagrangian(False) > 0, "the multipliers do not prove that nothing is feasible")
        return self.say("the multipliers prove that nothing is feasible")

    def bound_pairs(self) -> Iterator[tuple[int, int, list[bool]]]:
        """Pairs, and for which observables each holds."""
        always = [True] * self.m
        for _, _, d, window in self.ratios:
            for i, row in enumerate(d):
                holds = always if window is None else window[i]
                yield from ((i, j, holds) for j, v in enumerate(row) if v is not None)


def reverse(pairs: list[Any]) -> list[Any]:
    return [(q, p, last) for p, q, last in pairs]


def blind(w: Matrix) -> Fraction:
    """d_max: the error of an adversary who sees nothing."""
    return min(sum(row, Fraction(0)) for row in w)


def down(value: Fraction) -> int:
    return (value.numerator << SCALE) // value.denominator


def up(value: Fraction) -> int:
    return ceiling(value.numerator << SCALE, value.denominator)


def ceiling(a: int, b: int) -> int:
    return -(-a // b)


def price(value: Fraction) -> Fraction:
    return min(max(value, Fraction(0)), LARGEST)


def family(plain: Any, stated: list[Any]) -> list[tuple[Any, Any]]:
    """What is stated with its multipliers; those at the end may be left out."""
    need(len(listing(plain)) <= len(stated), "multipliers of nothing")
    return list(zip(stated, plain, strict=False))


def rounded_up(value: Fraction) -> Fraction:
    """The least float >= value."""
    nearest = float(value)
    return Fraction(nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf))


def log_ratio(a: int, b: int) -> float:
    """ln(a / b) for a > b > 0."""
    try:
        return math.log1p((a - b) / b)
    except OverflowError:
        return math.log(a) - math.log(b)


# ---------------------------------------------------------------- families of mechanisms
HEX = re.compile(r"0|-?[1-9a-f][0-9a-f]{0,99999}", re.ASCII)
BITS = 256  # behind the point of e^ε and δ where they are irrational
MOST_EPSILON = 1000  # beyond e^1000 multipliers prove nothing


def integer(value: Any, least: int | None = None) -> int:
    need(type(value) is str and HEX.fullmatch(value) is not None, "a number is none")
    found = int(value, 16)
    need(least is None or found >= least, "a number is too small")
    return found


def masses(value: Any, count: int) -> list[int]:
    out = [integer(v, 0) for v in listing(value, count)]
    need(any(out), "a distribution has no mass")
    return out


def shift_of(value: Any) -> int:
    return whole(value, 5001)


def outward(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds as multiples of 2^-256."""
    return (
        Fraction(math.floor(low * 2**BITS), 2**BITS),
        Fraction(math.floor(high * 2**BITS) + 1, 2**BITS),
    )


class Plan:
    """A coupling in whole numbers, its marginals proved, and the potentials of a proof."""

    def __init__(self, plain: Any, n: int, m: int, proof: bool) -> None:
        keys(plain, "input output moves" + (" potentials shift" if proof else ""))
        self.input, self.output = masses(plain["input"], n), masses(plain["output"], m)
        self.flows: dict[tuple[int, int], int] = {}
        before, rows, columns = (-1, -1), [0] * n, [0] * m
        for move in listing(plain["moves"]):
            x, y, text = listing(move, 3)
            place = (whole(x, n), whole(y, m))
            need(place > before, "moves are not in order")
            self.flows[place] = flow = integer(text, 1)
            before = place
            rows[x] += flow
            columns[y] += flow
        self.total = sum(rows)
        for given, found in ((self.input, rows), (self.output, columns)):
            all_ = sum(given)
            same = all(a * self.total == b * all_ for a, b in zip(given, found, strict=True))
            need(same, "a plan does not have its marginals")
        self.u, self.v, self.shift = [0] * n, [0] * m, 0
        if proof:
            sides = zip(listing(plain["potentials"], 2), (n, m), strict=True)
            self.u, self.v = ([integer(v) for v in listing(side, size)] for side, size in sides)
            self.shift = shift_of(plain["shift"])
            for side, given in ((self.u, self.input), (self.v, self.output)):
                bare = [p for p, unit in zip(side, given, strict=True) if not unit]
                need(not any(bare), "a point without mass has a potential")

    def cost(self, d: Matrix) -> Fraction:
        return sum((f * d[x][y] for (x, y), f in self.flows.items()), Fraction(0)) / self.total

    def longest(self, d: Matrix) -> Fraction:
        return max(d[x][y] for x, y in self.flows)

    def dual(self) -> Fraction:
        """Σ λ u + Σ μ v."""
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
        """Whether ``points`` hold more mass than all that is nearer than ``longest``."""
        near = [y for y in range(len(self.output)) if any(d[x][y] < longest for x in points)]
        held = sum(self.input[x] for x in points) * sum(self.output)
        return held > sum(self.output[y] for y in near) * sum(self.input)


class Family:
    """Mechanisms with an auxiliary input, one plan for each: losses, outputs, and the bound."""

    unchecked = "labels, coordinates and units, names of the inputs, seconds"

    def __init__(self, body: dict[str, Any]) -> None:
        keys(body, "digest format task p epsilon delta outside secrets observables names weights "
             "distance_name distance plans multipliers crowded claims seconds")  # fmt: skip
        self.lines: list[str] = []
        need(body["task"] in ("coupling", "target"), "the task is unknown")
        need(body["outside"] in ("target", "nearest"), "the rule for other inputs is unknown")
        self.coupled = body["task"] == "coupling"
        self.bottleneck = body["p"] == "inf"
        plain = type(body["p"]) is int and body["p"] == 1
        need(plain or (self.bottleneck and self.coupled), "p is unknown, or does not fit the task")
        self.read_distances(body)
        names = listing(body["names"])
        need(all(type(name) is str for name in names), "a name is no text")
        need(0 < len(names) == len(set(names)), "names are missing or not distinct")
        self.count = len(names)
        self.epsilon, self.delta = Real(body["epsilon"]), Real(body["delta"])
        need(self.delta.nearest <= 1, "a delta is above 1")
        free = self.epsilon.nearest > 0 or self.delta.nearest > 0
        need(not (self.coupled and free), "outputs of a coupling are equal")
        given = listing(body["plans"], self.count)
        self.plans = [Plan(part, self.n, self.m, self.coupled) for part in given]
        self.weights = masses(body["weights"], self.count)
        self.read_proofs(body)
        need(real(body["seconds"], 0) >= 0, "the seconds are none")
        claims = keys(body["claims"], "status loss lower_bound losses worst_moves")
        need(claims["status"] in ("optimal", "feasible"), "the status is unknown")
        self.claims = claims

    def read_distances(self, body: Any) -> None:
        rows = listing(body["distance"])
        self.n, self.m = len(rows), len(listing(rows[0]))
        need(0 < self.n * self.m <= MOST_ENTRIES, "is too large for this audit, or empty")
        secrets = Places(body["secrets"], self.n)
        observables = Places(body["observables"], self.m)
        self.d = matrix(rows, self.n, self.m)
        self.unit = math.lcm(*(v.denominator for row in self.d for v in row))
        self.whole = [[int(v * self.unit) for v in row] for row in self.d]
        name = body["distance_name"]
        need(name == "matrix" or name in NAMED, "the name of the distances is unknown")
        if name == "matrix":
            return self.say("the distances are a matrix of the file: compared with nothing")
        for i, right in enumerate(recomputed(name, secrets, observables)):
            for j, proper in enumerate(right):
                off = differ(name, rows[i][j], proper)
                need(not off, f"the distance at [{i}, {j}] is not {name}")
        return self.say(f"the distances are {name}, computed again")

    def read_proofs(self, body: Any) -> None:
        self.crowded = []
        for points in listing(body["crowded"], self.count if self.bottleneck else 0):
            found = [whole(x, self.n) for x in listing(points)]
            need(len(set(found)) == len(found), "a point occurs twice in a set")
            self.crowded.append(found)
        size, nothing = self.count, body["multipliers"] is None
        need(nothing or not self.coupled, "a coupling has no multipliers")
        self.z, self.shift = [[[0] * self.m for _ in range(size)] for _ in range(size)], 0
        if not nothing:
            keys(body["multipliers"], "values shift")
            self.shift = shift_of(body["multipliers"]["shift"])
            self.z = [
                [[integer(v, 0) for v in listing(row, self.m)] for row in listing(part, size)]
                for part in listing(body["multipliers"]["values"], size)
            ]
            own = any(any(part[t]) for t, part in enumerate(self.z))
            need(not own, "an input has a multiplier with itself")

    def say(self, text: str) -> None:
        self.lines.append(text)

    def check(self) -> None:
        self.say(f"{self.count} plans, each with its marginals, in whole numbers")
        self.check_outputs()
        limits = [plan.longest(self.d) for plan in self.plans]
        for t, plan in enumerate(self.plans):
            if self.coupled:
                limit = limits[t] if self.bottleneck else None
                need(plan.is_optimal(self.d, limit), f"plan {t}: is not proved to be optimal")
            if self.bottleneck and limits[t]:
                proved = plan.is_crowded(self.crowded[t], self.d, limits[t])
                need(proved, f"plan {t}: maybe a longest move is shorter")
        if self.coupled:
            self.say("no plan moves less" + (", or less far" if self.bottleneck else ""))
        self.check_figures(limits)

    def check_outputs(self) -> None:
        outputs = [plan.output for plan in self.plans]
        first = outputs[0]
        if all(
            a * sum(p) == b * sum(first) for p in outputs for a, b in zip(first, p, strict=True)
        ):
            return self.say("all outputs are one distribution")
        need(not self.coupled, "the outputs are not one distribution")
        for a, p in enumerate(outputs):
            for b, q in enumerate(outputs):
                need(a == b or self.is_close(p, q), f"outputs {a} and {b} are not close")
        return self.say("all outputs are close in pairs")

    def is_close(self, p: list[int], q: list[int]) -> bool:
        """Σ max(0, p - e^ε q) <= δ."""
        size = (sum(p), sum(q))
        sides = [(a * size[1], b * size[0]) for a, b in zip(p, q, strict=True)]
        if not self.delta.nearest > 0:
            return all(at_most(a, b, self.epsilon, Fraction(1)) for a, b in sides)
        low = self.epsilon.exp(Fraction(1), (size[0] * size[1]).bit_length() + 256)[0]
        spent = sum((max(Fraction(0), a - low * b) for a, b in sides), Fraction(0))
        return spent <= self.delta.times(Fraction(1), 256)[0] * size[0] * size[1]

    def bound(self) -> Fraction:
        if self.coupled:
            return self.mean([plan.dual() for plan in self.plans])
        factor, z = Fraction(1), self.z
        if self.epsilon.times(Fraction(1), 128)[0] > MOST_EPSILON:
            z = [[[0] * self.m for _ in z] for _ in z]
        else:
            low, high = self.epsilon.exp(Fraction(1), 4096)
            factor = low if low == high else outward(low, high)[1]
        low, high = self.delta.times(Fraction(1), 2048)
        delta = low if low == high else outward(low, high)[1]
        most = sum(max(row) for part in z for row in part)
        total = -delta * Fraction(most, 1 << self.shift)
        for t, plan in enumerate(self.plans):
            weight = Fraction(self.weights[t], sum(self.weights))
            price = [
                sum((z[t][o][y] - factor * z[o][t][y] for o in range(self.count)), Fraction(0))
                / 2**self.shift
                for y in range(self.m)
            ]
            # in whole numbers of one unit: fractions are slow
            parts = math.lcm(*(v.denominator for v in price))
            unit = math.lcm(parts, weight.denominator * self.unit)
            added = [int(v * unit) for v in price]
            scale = weight.numerator * (unit // (weight.denominator * self.unit))
            for x, mass in enumerate(plan.input):
                if mass:
                    least = min(c * scale + g for c, g in zip(self.whole[x], added, strict=True))
                    total += Fraction(mass * least, sum(plan.input) * unit)
        return max(Fraction(0), total)

    def mean(self, values: list[Fraction]) -> Fraction:
        total = sum(self.weights)
        return sum((w * v for w, v in zip(self.weights, values, strict=True)), Fraction(0)) / total

    def check_figures(self, limits: list[Fraction]) -> None:
        costs = [plan.cost(self.d) for plan in self.plans]
        loss, bound = self.mean(costs), self.bound()
        claims = self.claims
        stated = [Fraction(real(v, 0)) for v in listing(claims["losses"], self.count)]
        need(stated == [rounded_up(cost) for cost in costs], "the losses are other ones")
        moves = [Fraction(real(v, 0)) for v in listing(claims["worst_moves"], self.count)]
        need(moves == limits, "the longest moves are other ones")
        need(Fraction(real(claims["loss"], 0)) == rounded_up(loss), "the loss is another one")
        least, proper = Fraction(real(claims["lower_bound"], 0)), -rounded_up(-bound)
        need(least <= proper, "the bound is not proved")
        bound = least if least < proper else bound
        gap = rounded_up((loss - bound) / loss) if loss else Fraction(0)
        status = "optimal" if gap <= OPTIMAL_GAP else "feasible"
        need(claims["status"] == status, f"the gap is {float(gap):.2g}: the status is wrong")
        self.say(f"loss {float(claims['loss']):.15g}, lower bound {float(least):.15g}")
        self.say(f"gap {float(gap):.2g}: {status}")


def audit(path: str) -> list[str]:
    """What was verified, line by line; raises Fault where the file does not hold."""
    return _audited(path).lines


def _audited(path: str) -> Audit | Family:
    found: Audit | Family
    try:
        body = read(path)
        if body["format"] == FAMILY:
            found = Family(body)
            found.check()
            return found
        found = Audit(body)
        if body["mechanism"] is None:
            found.check_infeasible()
        else:
            found.check_mechanism()
            found.check_figures()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Fault(f"is not a well-formed design: {error!a}") from error
    except (ArithmeticError, RecursionError, MemoryError) as error:
        raise Fault(f"holds numbers out of range: {error!a}") from error
    return found


def shown(text: str) -> str:
    """A text without what a terminal would obey instead of showing it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def main(arguments: list[str]) -> int:
    """0 when everything holds, 1 when not, 2 without a readable file."""
    if len(arguments) != 1:
        print("usage: python audit.py DESIGN", file=sys.stderr)
        return 2
    try:
        found = _audited(arguments[0])
    except OSError as error:
        print(shown(f"{arguments[0]}: {error.strerror}"), file=sys.stderr)
        return 2
    except Fault as fault:
        print(shown(f"{arguments[0]}: FAILED: {fault}"))
        return 1
    words = f"not checked, as they are the file's own words: {found.unchecked}"
    print("\n".join(map(shown, [*found.lines, words])))
    print("everything that the file claims holds, apart from these")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
