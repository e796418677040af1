"""Audit of a design file with nothing but the Python standard library.

    python -m optmech.audit design.json        or, from a copy of this file alone:
    python audit.py design.json

Reads the file and proves again, in whole numbers and fractions, everything that it claims: that
every row of the mechanism is a distribution, that every stated inequality holds exactly, what the
objective is, and that no mechanism can do better than the bound (or that none exists). It shares
no code with the rest of optmech. ``docs/theory.md`` has the proofs that it relies on.

Floats in the file stand for the binary fractions that they are; distributions over secrets in
distribution privacy are divided by their exact sum.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

FORMAT = "optmech-design/2"
NEAR = Fraction(1, 10**12)  # a limit this close beyond the attainable means the attainable
SCALE = 1200  # bits behind the point of the sums in the bound; everything is rounded down

Matrix = list[list[Fraction]]


class Fault(Exception):  # noqa: N818
    """Something in the file does not hold, or is not well-formed."""


def need(condition: bool, message: str) -> None:
    if not condition:
        raise Fault(message)


# ---------------------------------------------------------------- numbers
def number(value: Any, least: int | None = 0) -> Fraction:
    need(type(value) in (int, float) and math.isfinite(value), f"{value!r} is not a finite number")
    need(least is None or value >= least, f"{value!r} is below {least}")
    return Fraction(value)


def matrix(value: Any, rows: int, columns: int) -> Matrix:
    need(type(value) is list and len(value) == rows, f"a matrix does not have {rows} rows")
    need(all(type(row) is list and len(row) == columns for row in value), "a row is too short")
    return [[number(entry) for entry in row] for row in value]


class Real:
    """A stated number: ``factor``, or ``factor`` times the natural logarithm of ``log_of``."""

    pattern = re.compile(r"(?:(?P<factor>[0-9]+(?:/[0-9]+)?) )?ln (?P<log>[0-9]+(?:/[0-9]+)?)")

    def __init__(self, value: Any) -> None:
        self.log_of: Fraction | None = None
        if type(value) is not str:
            self.factor = number(value)
            return
        found = self.pattern.fullmatch(value)
        if found is None:
            need(re.fullmatch(r"[0-9]+(/[0-9]+)?", value) is not None, f"{value!r}: no number")
            self.factor = Fraction(value)
        else:
            self.factor, self.log_of = Fraction(found["factor"] or 1), Fraction(found["log"])
            need(self.log_of >= 1, f"{value!r} is negative")

    @property
    def zero(self) -> bool:
        return self.factor == 0 or self.log_of == 1

    def scaled(self, by: Fraction) -> Real:
        out = Real(0)
        out.factor, out.log_of = self.factor * by, self.log_of
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
        """Bounds of e^{this · d}, relative width about 2^-bits. Beyond 2^(2·bits): a low bound."""
        known = self.power(d)
        if known is not None:
            return known, known
        low, high = self.times(d, bits + 64)
        if low > 2 * bits:
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
    with open(path, "rb") as stream:
        content = stream.read()
    head, _, rest = content.partition(b"\n")
    digest = hashlib.sha256(rest).hexdigest().encode()
    need(head == b'{"digest": "sha256:' + digest + b'",', "the digest does not match the content")

    def refuse(constant: str) -> None:
        raise Fault(f"{constant} is not a number")

    body = json.loads(content, parse_constant=refuse)
    need(type(body) is dict and body.get("format") == FORMAT, f"is not of format {FORMAT}")
    return dict(body)


def count(domain: Any) -> int:
    if "grid" in domain:
        rows, columns = domain["grid"]
        return int(rows) * int(columns)
    return len(domain["labels"])


class Audit:
    """The problem of a design file, its mechanism, and what was found."""

    def __init__(self, body: dict[str, Any]) -> None:
        problem = body["problem"]
        self.n, self.m = count(problem["secrets"]), count(problem["observables"])
        need(type(problem["title"]) is str, "the title is no text")
        need(0 < self.n <= 10**5 and 0 < self.m <= 10**5, "sizes are out of range")
        self.prior = self.distribution(problem["prior"])
        self.loss = matrix(problem["loss"], self.n, self.m)
        self.result, self.multipliers = body["result"], body["multipliers"]
        self.objective = problem["objective"]
        if type(self.objective) is not dict:
            need(self.objective in ("expected_loss", "worst_loss"), "the objective is unknown")
        self.allowed = [[True] * self.m for _ in range(self.n)]
        self.ratios: list[tuple[int, Real, list[list[Fraction | None]], Any]] = []
        self.sums: list[tuple[int, Real, Real, list[Any]]] = []
        self.divergences: list[tuple[int, str, list[Any]]] = []
        self.distortions: list[tuple[int, Fraction, Fraction, Matrix]] = []
        self.limits: list[tuple[int, Fraction, Fraction, bool, Matrix]] = []
        for k, constraint in enumerate(problem["constraints"]):
            getattr(self, "read_" + str(constraint["kind"]))(k, constraint)
        self.settle_limits()
        self.lines: list[str] = []
        self.bits, self.rows = 0, [[0] * self.m]
        if body["mechanism"] is not None:
            self.read_mechanism(body["mechanism"])

    def distribution(self, values: Any) -> list[Fraction]:
        out = matrix([values], 1, self.n)[0]
        total = sum(out, Fraction(0))
        need(abs(total - 1) <= Fraction(2 * self.n, 2**52), "a prior does not sum to one")
        return out

    def weighted(self, distance: Any, prior: Any) -> Matrix:
        weights = self.prior if prior is None else self.distribution(prior)
        return [
            [d * w for d, w in zip(row, weights, strict=True)]
            for row in matrix(distance["secrets"], self.n, self.n)
        ]

    # each constraint's inequalities -------------------------------------
    def read_metric_privacy(self, k: int, c: Any) -> None:
        d = matrix(c["distance"]["secrets"], self.n, self.n)
        most = None if c["threshold"] is None else number(c["threshold"])
        window = None
        if c["observable_threshold"] is not None:
            reach = matrix(c["distance"]["observables"], self.n, self.m)
            near = number(c["observable_threshold"])
            window = [[value <= near for value in row] for row in reach]
        kept = [[v if most is None or v <= most else None for v in row] for row in d]
        self.add_ratios(k, c, kept, window)

    def read_differential_privacy(self, k: int, c: Any) -> None:
        n, adjacency = self.n, c["adjacency"]
        if adjacency == "all":
            near = [[True] * n for _ in range(n)]
        elif type(adjacency) is dict:
            radius = number(adjacency["radius"])
            d = matrix(adjacency["distance"]["secrets"], n, n)
            near = [[value <= radius for value in row] for row in d]
        else:
            near = [[False] * n for _ in range(n)]
            for i, j in adjacency:
                need(type(i) is type(j) is int and 0 <= i < n and 0 <= j < n, "a pair is outside")
                near[i][j] = near[j][i] = True
        self.add_ratios(k, c, [[Fraction(1) if x else None for x in row] for row in near], None)

    def add_ratios(self, k: int, c: Any, d: list[list[Fraction | None]], window: Any) -> None:
        for s in range(self.n):
            d[s][s] = None
        epsilon, delta = Real(c["epsilon"]), Real(c["delta"])
        if delta.zero:
            self.ratios.append((k, epsilon, d, window))
            return
        pairs = [
            ({i: Fraction(1)}, {j: Fraction(1)}, value)
            for i, row in enumerate(d)
            for j, value in enumerate(row)
            if value is not None
        ]
        self.sums.append((k, epsilon, delta, pairs))

    def read_distribution_privacy(self, k: int, c: Any) -> None:
        scale = [1] * len(c["pairs"]) if c["scale"] is None else c["scale"]
        both = []
        for (a, b), factor in zip(c["pairs"], scale, strict=True):
            p, q = (matrix([side], 1, self.n)[0] for side in (a, b))
            shares = [{s: v / sum(side) for s, v in enumerate(side) if v} for side in (p, q)]
            both.append((shares[0], shares[1], number(factor)))
        epsilon, delta = Real(c["epsilon"]), Real(c["delta"])
        if c["divergence"] == "max":
            self.sums.append((k, epsilon, delta, both + reverse(both)))
            return
        need(delta.zero, "a divergence with a delta")
        # at divergence 0 distributions are equal
        limits = [epsilon.scaled(factor) for _, _, factor in both]
        listed = list(zip(both, limits, strict=True))
        equal = [(p, q, Fraction(1)) for (p, q, _), limit in listed if limit.zero]
        apart = [(p, q, limit) for (p, q, _), limit in listed if not limit.zero]
        if equal:
            self.sums.append((k, Real(0), Real(0), equal + reverse(equal)))
        if c["divergence"] == "tv":
            self.sums += [(k, Real(0), limit, [(p, q, Fraction(1))]) for p, q, limit in apart]
        elif apart:
            tangent(c["divergence"], Fraction(0))
            self.divergences.append((k, c["divergence"], apart + reverse(apart)))

    def read_distortion_privacy(self, k: int, c: Any) -> None:
        low, high = Real(c["minimum"]).times(Fraction(1), 256)
        self.distortions.append((k, low, high, self.weighted(c["distance"], c["prior"])))

    def read_loss_bound(self, k: int, c: Any) -> None:
        low, high = Real(c["maximum"]).times(Fraction(1), 256)
        loss = self.loss if c["loss"] is None else matrix(c["loss"], self.n, self.m)
        self.limits.append((k, low, high, bool(c["worst_case"]), loss))

    def read_support(self, k: int, c: Any) -> None:
        mask = matrix(c["mask"], self.n, self.m)
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
        for place, (k, low, _, worst, loss) in enumerate(self.limits):
            least = self.least(worst, loss)
            if low < least <= low * (1 + NEAR):
                self.limits[place] = (k, least, least, worst, loss)

    def least(self, worst: bool, loss: Matrix) -> Fraction:
        cheapest = [
            min(c for c, ok in zip(*rows, strict=True) if ok)
            for rows in zip(loss, self.allowed, strict=True)
        ]
        return max(cheapest) if worst else self.mean(cheapest)

    def mean(self, values: list[Fraction]) -> Fraction:
        return sum((p * v for p, v in zip(self.prior, values, strict=True)), Fraction(0))

    def read_mechanism(self, plain: Any) -> None:
        bits = self.bits = plain["bits"]
        need(type(bits) is int and 1 <= bits <= 1074, "the number of bits is out of range")
        need(len(plain["rows"]) == self.n, "the mechanism has too few or too many rows")
        self.rows = []
        for indices, texts in plain["rows"]:
            row = [0] * self.m
            for o, text in zip(indices, texts, strict=True):
                need(type(o) is int and 0 <= o < self.m and row[o] == 0, "a wrong observable")
                need(re.fullmatch("[1-9a-f][0-9a-f]*", text) is not None, "a wrong numerator")
                row[o] = int(text, 16)
            need(sum(row) == 1 << bits, "a row does not sum to one")
            self.rows.append(row)

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
        given = self.multipliers["objective"]
        if type(self.objective) is dict:
            w = self.weighted(self.objective["distance"], self.objective["prior"])
            self.add_attack(table, Fraction(1), given, w)
            return Fraction(1)
        weights = self.prior
        if self.objective == "worst_loss":
            weights = [Fraction(0)] * self.n if given else [Fraction(1)] * self.n
            for _, s, value in self.entries(given, 1, self.n):
                weights[s] = max(Fraction(0), value)
            need(sum(weights) > 0, "the weights of the worst loss are zero")
        for s, p in enumerate(weights):
            for o, c in enumerate(self.loss[s]):
                table[s][o] += down(p * c)
        return sum(weights, Fraction(0)) if self.objective == "worst_loss" else Fraction(1)

    def add_attack(self, table: list[list[int]], price: Fraction, given: Any, w: Matrix) -> None:
        """- price Σ_t α(t|o) w[t][s], the attack α(.|o) divided by its sum."""
        guesses: list[list[tuple[int, Fraction]]] = [[] for _ in range(self.m)]
        for o, t, value in self.entries(given, self.m, self.n):
            if value > 0:
                guesses[o].append((t, value))
        for o, listed in enumerate(guesses):
            used = listed or [(t, Fraction(1)) for t in range(self.n)]
            total = sum((value for _, value in used), Fraction(0))
            for t, value in used:
                share = price * value / total
                for s in range(self.n):
                    table[s][o] -= up(share * w[t][s])

    def add_constraints(self, table: list[list[int]]) -> Fraction:
        constant, given = Fraction(0), self.multipliers
        windowed = [part for part in self.ratios if part[3] is not None]
        plain = [part for part in self.ratios if part[3] is None]
        if given["ratio"] is not None:
            self.add_pairs(table, plain, given["ratio"])
        for part, pairs in zip(windowed, given["windowed"], strict=False):
            self.add_pairs(table, [part], pairs)
        exact = [part for part in self.sums if part[2].zero]
        for (_, epsilon, _, pairs), values in zip(exact, given["lifted"], strict=False):
            for k, o, value in self.entries(values, len(pairs), self.m):
                self.add_sum(table, epsilon, pairs[k], o, value)
        loose = [part for part in self.sums if not part[2].zero]
        for (_, epsilon, delta, pairs), values in zip(loose, given["approximate"], strict=False):
            weights = [max(Fraction(0), number(v, None)) for v in values["weight"]]
            for k, o, test in self.entries(values["test"], len(pairs), self.m):
                test = min(Fraction(1), test)
                self.add_sum(table, epsilon, pairs[k], o, weights[k] * test)
            constant -= sum(weights) * delta.times(Fraction(1), 256)[1]
        tangents = given.get("divergence", [])
        for (_, kind, pairs), values in zip(self.divergences, tangents, strict=False):
            constant -= self.add_tangents(table, kind, pairs, values)
        for (_, least, _, w), values in zip(self.distortions, given["distortion"], strict=False):
            price = max(Fraction(0), number(values["weight"], None))
            self.add_attack(table, price, values["strategy"], w)
            constant += price * least
        for limit, values in zip(self.limits, given["loss_limits"], strict=False):
            _, _, most, worst, loss = limit
            prices = [max(Fraction(0), number(v, None)) for v in values]
            constant -= sum(prices if worst else prices[:1]) * most
            for s in range(self.n):
                price = prices[s] if worst else prices[0] * self.prior[s]
                for o, c in enumerate(loss[s]):
                    table[s][o] += down(price * c)
        return constant

    def add_pairs(self, table: list[list[int]], parts: list[Any], given: Any) -> None:
        """z (P[i,o] - f P[j,o]) for the least known f >= e^{εd} of the pair."""
        listed = zip(given["i"], given["j"], given["o"], given["value"], strict=True)
        for i, j, o, value in listed:
            z = number(value, None)
            need(0 <= i < self.n and 0 <= j < self.n and 0 <= o < self.m, "an index is outside")
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

    def add_tangents(self, table: Any, kind: str, pairs: Any, values: Any) -> Fraction:
        """Σ y (α p + β q) on the table; returns Σ y · limit, rounded up."""
        weights = [max(Fraction(0), number(v, None)) for v in values["weight"]]
        need(len(weights) == len(pairs), "weights of a wrong length")
        for k, o, slope in self.entries(values["slope"], len(pairs), self.m):
            p, q, _ = pairs[k]
            alpha, beta = tangent(kind, slope)
            for side, price in ((p, weights[k] * alpha), (q, weights[k] * beta)):
                for s, share in side.items():
                    table[s][o] += down(price * share)
        limits = [limit.times(Fraction(1), 256)[1] for _, _, limit in pairs]
        return sum((y * most for y, most in zip(weights, limits, strict=True)), Fraction(0))

    def entries(self, given: Any, rows: int, columns: int) -> Iterable[tuple[int, int, Fraction]]:
        if given is None:
            return
        need(given["shape"] == [rows, columns], "multipliers of a wrong shape")
        places = list(zip(given["row"], given["column"], strict=True))
        need(len(set(places)) == len(places), "a multiplier is given twice")
        for r, c, value in zip(given["row"], given["column"], given["value"], strict=True):
            need(0 <= r < rows and 0 <= c < columns, "an index is outside")
            yield r, c, number(value, None)

    def check_figures(self) -> None:
        """Value and bound of the file against exact ones: never better than the truth."""
        claim = {key: number(self.result[key], None) for key in ("objective", "bound", "loss")}
        bound, values = self.lagrangian(True), self.losses(self.loss)
        loss = max(values) if self.objective == "worst_loss" else self.mean(values)
        least = number(self.result["lower_bound"])
        if type(self.objective) is dict:
            w = self.weighted(self.objective["distance"], self.objective["prior"])
            value = self.distortion(w)
            need(close(claim["objective"], value), "the distortion is not what the file says")
            need(claim["objective"] <= value, "the distortion is less than the file says")
            need(claim["bound"] >= min(-bound, blind(w)), "the bound is not proved")
            need(least == 0 or least <= self.least_loss(value, bound), "the least loss: unproved")
        else:
            need(claim["objective"] == claim["loss"], "objective and loss differ")
            need(claim["bound"] <= max(bound, Fraction(0)), "the bound is not proved")
            need(least == claim["bound"], "bound and lower bound differ")
        need(close(claim["loss"], loss) and claim["loss"] >= loss, "the loss is larger")
        self.say(f"objective {float(claim['objective']):.15g}, bound {float(claim['bound']):.15g}")
        self.say(f"loss {float(claim['loss']):.15g}, lower bound {float(least):.15g}")

    def least_loss(self, value: Fraction, bound: Fraction) -> Fraction:
        """q - (U - D) / μ, where one bound on the problem's own expected loss is stated."""
        given = self.multipliers["loss_limits"]
        need(len(self.limits) == 1 and len(given) > 0, "there is no price of loss")
        _, most, _, worst, loss = self.limits[0]
        price = number(given[0][0], None)
        need(not worst and loss == self.loss and price > 0, "there is no price of loss")
        return most - (-bound - value) / price

    def check_infeasible(self) -> None:
        for k, least, _, w in self.distortions:
            if least > blind(w):
                return self.say(f"constraints[{k}]: more distortion than any mechanism has")
        for k, _, most, worst, loss in self.limits:
            if self.least(worst, loss) > most:
                return self.say(f"constraints[{k}]: less loss than any mechanism has")
        zero = [[not ok for ok in row] for row in self.allowed]
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


def close(claimed: Fraction, found: Fraction) -> bool:
    return abs(claimed - found) <= abs(found) / 2**50 + Fraction(1, 2**1073)


def audit(path: str) -> list[str]:
    """What was verified, line by line; raises Fault where the file does not hold."""
    try:
        body = read(path)
        found = Audit(body)
        if body["mechanism"] is None:
            need(body["result"]["status"] == "infeasible", "there is no mechanism")
            found.check_infeasible()
        else:
            need(body["result"]["status"] in ("optimal", "feasible"), "the status is wrong")
            found.check_mechanism()
            found.check_figures()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Fault(f"is not a well-formed design: {error!r}") from error
    except (ArithmeticError, RecursionError, MemoryError) as error:
        raise Fault(f"holds numbers out of range: {error!r}") from error
    return found.lines


def main(arguments: list[str]) -> int:
    """0 when everything holds, 1 when not, 2 without a readable file."""
    if len(arguments) != 1:
        print("usage: python audit.py DESIGN", file=sys.stderr)
        return 2
    try:
        lines = audit(arguments[0])
    except OSError as error:
        print(f"{arguments[0]}: {error.strerror}", file=sys.stderr)
        return 2
    except Fault as fault:
        print(f"{arguments[0]}: FAILED: {fault}")
        return 1
    print("\n".join([*lines, "everything that the file claims holds"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
