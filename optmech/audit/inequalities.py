"""Families of inequalities.

Each decides whether a mechanism satisfies it (theory, "Release and check"), and adds the
multipliers of the file to the bound (theory, "The Lagrangian bound", the table). P is the
mechanism, f a number >= e^{ε d}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from optmech.audit.document import Matrix, Vector, fraction, keys, one_of
from optmech.audit.mechanisms import (
    SCALE,
    Lagrangian,
    Mask,
    Mechanism,
    Pair,
    Shares,
    cut,
    entries,
    prices,
)
from optmech.audit.numbers import (
    ONE,
    ZERO,
    Fault,
    Interval,
    Real,
    at_most,
    ceiling,
    dot,
    exp_bounds,
    need,
    number,
    root,
    signed_log,
)

NEAR = Fraction(1, 10**12)  # a limit this close beyond the attainable means the attainable


Row = list[Fraction | None] | dict[int, Fraction]  # of all, or of those with a limit alone


@dataclass(frozen=True)
class Ratios:
    """P[i,o] <= e^{ε d[i][j]} P[j,o] for every d that is not None, and o in the window of i."""

    epsilon: Any  # a number like Real: what gives bounds of the factor for d
    d: Sequence[Row]
    window: Mask | None
    unthresholded: Matrix | None  # the distances of all pairs, where thresholds left some out

    @property
    def family(self) -> str:
        return "ratio" if self.window is None else "windowed"

    def limits(self, i: int) -> Iterator[tuple[int, Fraction]]:
        """Those j with a limit, and d[i][j]."""
        row = self.d[i]
        if isinstance(row, dict):
            yield from row.items()
            return
        yield from ((j, d) for j, d in enumerate(row) if d is not None)

    def limit(self, i: int, j: int) -> Fraction | None:
        row = self.d[i]
        return row.get(j) if isinstance(row, dict) else row[j]

    def seen(self, i: int, observables: int) -> Sequence[int]:
        every = range(observables)
        return every if self.window is None else [o for o in every if self.window[i][o]]

    def check(self, p: Mechanism) -> str:
        """By a lower bound of e^{ε d}, or else exactly. Counts, and finds the largest
        P[i,o] / (e^{ε d} P[j,o])."""
        checked, top, bottom = 0, 0, 1
        for i, row in enumerate(p.high):
            seen = self.seen(i, len(row))
            for j, d in self.limits(i):
                other = p.rows[j]
                checked += len(seen)
                low, _ = self.epsilon.exp(d, 64)
                over, under = low.denominator, low.numerator
                (own, a), (theirs, b) = p.exact(i), p.exact(j)
                for o in seen:
                    left, right = row[o] * over, other[o] * under
                    if left > right and not at_most(own[o] * b, theirs[o] * a, self.epsilon, d):
                        raise Fault(f"p({o}|{i}) is too large beside p({o}|{j})")
                    if left * bottom > top * right and right:
                        top, bottom = left, right
        return f"{checked} ratios, the tightest at {top / bottom:.15g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        charge_ratios([self], bound, plain)


def charge_ratios(parts: list[Ratios], bound: Lagrangian, plain: object) -> None:
    """With the least known f of the pair; none where all are too large, or outside of a window."""

    @cache
    def least(i: int, j: int) -> Fraction | None:
        known = [part.epsilon.above(d) for part in parts if (d := part.limit(i, j)) is not None]
        return min((v for v in known if v is not None), default=None)

    def factor(i: int, j: int, o: int) -> Fraction | None:
        seen = all(part.window is None or part.window[i][o] for part in parts)
        return least(i, j) if seen else None

    bound.add_ratios(plain, factor)


@dataclass(frozen=True)
class Lifted:
    """(aP)[o] <= e^{ε d} (bP)[o] for all o."""

    epsilon: Real
    pairs: list[Pair]
    family: ClassVar[str] = "lifted"

    def check(self, p: Mechanism) -> str:
        for index, pair in enumerate(self.pairs):
            left, right, _ = p.pushed(pair)
            for o, (x, y) in enumerate(zip(left, right, strict=True)):
                holds = at_most(x, y, self.epsilon, pair.d)
                need(holds or at_most(*p.sums(pair, o), self.epsilon, pair.d), f"pair {index}")
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


def order_of(kind: str) -> Fraction | None:
    """The order of a Rényi divergence, a fraction in lowest terms of numbers up to 64."""
    if not kind.startswith("renyi:"):
        return None
    order = fraction(kind.removeprefix("renyi:"))
    fits = 0 < order != 1 and max(order.numerator, order.denominator) <= 64
    need(fits, "an order is 1, or out of range")
    return order


def power_bounds(base: Fraction, exponent: Fraction) -> Interval:
    """base^exponent for base >= 0, by the whole root of a whole power."""
    top, q = base**exponent.numerator, exponent.denominator
    low = root((top.numerator << (600 * q)) // top.denominator, q)
    return Interval(Fraction(low, 1 << 600), Fraction(low + 1, 1 << 600))


def divergence(kind: str, p: Vector, q: Vector) -> Fraction | None:
    """At least D_f(p, q), within about 2^-240, or None for infinity (theory, "Divergences")."""
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
        if value < least and (common := p.common):
            value = common[0].distortion(self.w) / common[1]
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
        """Bounds of the limit, or of what it misses by rounding (theory, "The statement")."""
        low, high = self.most.exp(ONE, 512) if self.natural else self.most.bounds()
        for extreme in (self.blind, sum(map(max, zip(*self.w, strict=True)), ZERO)):
            if low < extreme <= low + abs(low) * NEAR:
                return extreme, extreme
        return low, high

    def check(self, p: Mechanism) -> str:
        value = -p.distortion(self.regret) if p.above is None else most_gained(self.w, p)
        if value > self.limit[0] and (common := p.common):
            value = -common[0].distortion(self.regret) / common[1]
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
    prior: Vector | None
    loss: Matrix
    family: ClassVar[str] = "loss_limits"

    def of(self, losses: Vector) -> Fraction:
        return max(losses) if self.prior is None else dot(self.prior, losses)

    def check(self, p: Mechanism) -> str:
        each = p.means(self.loss) if self.prior is None else p.losses(self.loss)
        value, most = self.of(each), self.most.low
        if value > most and (common := p.common):
            value = self.of(common[0].losses(self.loss)) / common[1]
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
    reported: Vector
    meant: Vector
    family: ClassVar[str] = "bias"

    def check(self, p: Mechanism) -> str:
        means = p.means([self.reported] * len(p.rows))
        off = max(abs(mean - v) for mean, v in zip(means, self.meant, strict=True))
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
Part = Charged | Support | Fixed
FAMILIES = ("windowed", "lifted", "approximate", "divergence", "distortion", "loss_limits")
ADDED = ("leakage", "bias", "information")  # entries of files whose constraints need them


def blind(w: Matrix) -> Fraction:
    """d_max: the error of an adversary who sees nothing."""
    return min(sum(row, ZERO) for row in w)


def negated(rows: Matrix) -> Matrix:
    return [[-v for v in row] for row in rows]


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
