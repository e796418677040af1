"""Families of inequalities.

Each decides whether a mechanism satisfies it (theory, "Release and check"), and adds the
multipliers of the file to the bound (theory, "The Lagrangian bound", the table). P is the
mechanism, f a number >= e^{ε d}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, NamedTuple

from optmech_audit.document import Matrix, Vector, fraction, members
from optmech_audit.mechanisms import (
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
from optmech_audit.numbers import (
    ONE,
    ZERO,
    Fault,
    Interval,
    Real,
    at_most,
    ceiling,
    dot,
    exp_bounds,
    interval,
    need,
    number,
    paired,
    root,
    signed_log,
    transposed,
)

NEAR = Fraction(1, 10**12)  # a limit this close beyond the attainable means the attainable


class Ratios(NamedTuple):
    """P[i,o] <= e^{ε d[i][j]} P[j,o] for every d that there is, and o in the window of i."""

    epsilon: Real
    d: Sequence[Shares]  # by the other secret
    window: Mask | None = None
    unthresholded: Matrix | None = (
        None  # the distances of all pairs, where thresholds left some out
    )

    def seen(self, i: int, observables: int) -> Sequence[int]:
        every = range(observables)
        return every if self.window is None else [o for o in every if self.window[i][o]]

    def check(self, p: Mechanism) -> str:
        """By a lower bound of e^{ε d}, or else exactly. Counts, and finds the largest
        P[i,o] / (e^{ε d} P[j,o])."""
        checked, top, bottom = 0, 0, 1
        for i, row in enumerate(p.high):
            seen = self.seen(i, len(row))
            for j, d in self.d[i].items():
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
    """With -e^{ε d}, the least known of the pair; none where all are too large, or outside of a
    window."""

    @cache
    def least(i: int, j: int) -> Fraction | None:
        known = [part.epsilon.above(part.d[i][j]) for part in parts if j in part.d[i]]
        return max((-v for v in known if v is not None), default=None)

    def factor(i: int, j: int, o: int) -> Fraction | None:
        seen = all(part.window is None or part.window[i][o] for part in parts)
        return least(i, j) if seen else None

    bound.add_ratios(plain, factor)


class Lifted(NamedTuple):
    """(aP)[o] <= e^{ε d} (bP)[o] for all o, or those in the window of the pair."""

    epsilon: Real
    pairs: list[Pair]
    window: Mask | None = None

    def check(self, p: Mechanism) -> str:
        for index, pair in enumerate(self.pairs):
            left, right, _ = p.pushed(pair)
            for o, (x, y) in enumerate(paired(left, right)):
                outside = self.window is not None and not self.window[index][o]
                holds = outside or at_most(x, y, self.epsilon, pair.d)
                need(holds or at_most(*p.sums(pair, o), self.epsilon, pair.d), f"pair {index}")
        return f"{len(self.pairs) * len(p.rows[0])} ratios"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        for k, o, value in entries(plain, len(self.pairs), bound.m):
            if self.window is None or self.window[k][o]:
                add_lifted(bound, self.epsilon, self.pairs[k], o, cut(value))


def add_lifted(bound: Lagrangian, epsilon: Real, pair: Pair, o: int, z: Fraction) -> None:
    """z (a_s - f b_s), for z > 0 and f that is not too large."""
    factor = epsilon.above(pair.d)
    if z > 0 and factor is not None:
        bound.add_pair(pair, o, z, -z * factor)


class Approximate(NamedTuple):
    """Σ_o max(0, (aP)[o] - e^{ε d} (bP)[o]) <= δ."""

    epsilon: Real
    delta: Real
    pairs: list[Pair]

    def check(self, p: Mechanism) -> str:
        """With a lower factor the sum is larger: to pass is a proof."""
        most = self.delta.bounds().low
        for index, pair in enumerate(self.pairs):
            low, _ = self.epsilon.exp(pair.d, p.bits + 256)
            over, under = low.denominator, low.numerator
            left, right, one = p.pushed(pair)
            spent = sum(max(0, x * over - y * under) for x, y in paired(left, right))
            need(Fraction(spent, over * one) <= most, f"pair {index}")
        return f"{len(self.pairs)} sums <= delta"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """y φ_o (a_s - f b_s), and -y δ, for a test 0 <= φ <= 1; y = 0 where f is too large."""
        weight, test = members(plain, "weight test")
        y = prices(weight, len(self.pairs))
        for k, o, value in entries(test, len(self.pairs), bound.m):
            add_lifted(bound, self.epsilon, self.pairs[k], o, y[k] * min(ONE, value))
        for v, pair in paired(y, self.pairs):
            if self.epsilon.above(pair.d) is not None:
                bound.K -= v * self.delta.bounds().high


class Divergences(NamedTuple):
    """D_f(aP, bP) <= limit, for each pair its own."""

    kind: str
    pairs: list[Pair]
    limits: list[Real]

    def bounds(self, limit: Real) -> Interval:
        """Of the limit on D_f: for "renyi:a" the divergence ±(Σ p^a q^(1-a) - 1) is at most
        ±(e^((a-1) limit) - 1)."""
        order = order_of(self.kind)
        if order is None:
            return limit.bounds()
        low, high = limit.enclosed(abs(order - 1), 512)
        return Interval(low - 1, high - 1) if order > 1 else Interval(1 - 1 / low, 1 - 1 / high)

    def check(self, p: Mechanism) -> str:
        for index, (pair, limit) in enumerate(paired(self.pairs, self.limits)):
            *sides, one = p.pushed(pair)
            spent = divergence(self.kind, *([Fraction(v, one) for v in side] for side in sides))
            fits = spent is not None and spent <= self.bounds(limit).low
            need(fits, f"pair {index}: the divergence is too large")
        return f"{len(self.pairs)} divergences ({self.kind})"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """y (α_o a_s - f*(α_o) b_s), and -y limit."""
        weight, slopes = members(plain, "weight slope")
        y = prices(weight, len(self.pairs))
        for k, o, slope in entries(slopes, len(self.pairs), bound.m):
            alpha, beta = tangent(self.kind, slope)
            bound.add_pair(self.pairs[k], o, y[k] * alpha, y[k] * beta)
        bound.K -= dot(y, [self.bounds(limit).high for limit in self.limits])


class Information(NamedTuple):
    """Σ_s π_s KL(P[s] ‖ πP) <= limit, π divided by its sum."""

    limit: Real
    prior: Shares

    def check(self, p: Mechanism) -> str:
        unit = 1 << p.bits
        rows = {s: [Fraction(v, unit) for v in p.rows[s]] for s in self.prior}
        common = [dot(self.prior.values(), column) for column in transposed(rows.values())]
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
        weight, slopes = members(plain, "weight slope")
        (y,) = prices(weight, 1)
        for s, o, slope in entries(slopes, bound.n, bound.m):
            if s in self.prior:
                alpha, beta = tangent("kl", slope)
                paid = y * self.prior[s]
                bound.add_pair(Pair({s: ONE}, self.prior), o, paid * alpha, paid * beta)
        bound.K -= y * self.limit.bounds().high


POWERS = {"chi2": Fraction(2), "hellinger": Fraction(1, 2)}  # orders of those that are ±(Σ - 1)
DIVERGENCES = ("kl", "reverse_kl", *POWERS)  # tv is of the family above


def order_of(kind: str) -> Fraction | None:
    """The order of a Rényi divergence, a fraction in lowest terms of numbers up to 64."""
    if not kind.startswith("renyi:"):
        return None
    order = fraction(kind.removeprefix("renyi:"))
    fits = 0 < order != 1 and max(order.numerator, order.denominator) <= 64
    need(fits, "an order is 1, or out of range")
    return order


def power_of(kind: str) -> Fraction:
    """a, where a divergence is ±(Σ p^a q^(1-a) - 1)."""
    order = POWERS.get(kind) or order_of(kind)
    if order is None:
        raise Fault(f"the divergence {kind!a} is unknown")
    return order


def power_bounds(base: Fraction, exponent: Fraction) -> Interval:
    """base^exponent for base >= 0, by the whole root of a whole power."""
    top, q = base**exponent.numerator, exponent.denominator
    low = root((top.numerator << (600 * q)) // top.denominator, q)
    return interval(low, low + 1, 1 << 600)


def divergence(kind: str, p: Vector, q: Vector) -> Fraction | None:
    """At least D_f(p, q), within about 2^-240, or None for infinity (theory, "Divergences")."""
    pairs = list(paired(p, q))
    if kind == "reverse_kl":
        return divergence("kl", q, p)
    order = ONE if kind == "kl" else power_of(kind)
    if order < 1:
        return 1 - sum((b * power_bounds(a / b, order).low for a, b in pairs if a and b), ZERO)
    if any(a and not b for a, b in pairs):
        return None
    if order > 1:
        return sum((b * power_bounds(a / b, order).high for a, b in pairs if b), -ONE)
    terms = [a * signed_log(a / b, 256).high for a, b in pairs if a]
    return Fraction(sum(ceiling(v.numerator << SCALE, v.denominator) for v in terms), 1 << SCALE)


def tangent(kind: str, slope: Fraction) -> tuple[Fraction, Fraction]:
    """α, the slope cut to where f* is finite, and β <= -f*(α): then α p + β q <= q f(p/q)."""
    if kind == "kl":
        alpha = min(max(slope, Fraction(-700)), Fraction(700))
        return alpha, 1 - exp_bounds(alpha, 256).high
    if kind == "reverse_kl":
        alpha = min(slope, 1 - Fraction(1, 2**53))
        return alpha, signed_log(1 - alpha, 256).low
    order = power_of(kind)
    if order > 1:
        alpha = max(slope, -order)
        base = 1 + alpha / order  # t^(a-1); t^a is its power by a / (a - 1)
    else:
        alpha = min(slope, order * (1 - Fraction(1, 2**53 if kind in POWERS else 2**52)))
        base = 1 / (1 - alpha / order)
    return alpha, abs(order - 1) * (1 - power_bounds(base, order / abs(order - 1)).high)


@dataclass(frozen=True)
class Guess:
    """Σ_o min_t Σ_s w[t][s] P[s,o] >= least: what the best guess errs by."""

    least: tuple[Fraction | None, Fraction]  # bounds, of which the lower may be far away
    w: Matrix

    @property
    def possible(self) -> bool:
        return self.least[0] is None or self.least[0] <= blind(self.w)

    def value(self, p: Mechanism) -> Fraction:
        return p.judged(lambda q: q.distortion(self.w), lambda found: found >= self.least[1])

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """-ν Σ_t α(t|o) w[t,s], and ν least; nothing where that is too far away."""
        weight, strategy = members(plain, "weight strategy")
        nu = cut(number(weight))
        played = entries(strategy, bound.m, len(self.w))
        if self.least[0] is not None:
            bound.add_attack(nu, played, self.w)
            bound.K += nu * self.least[0]


class Distortion(Guess):
    """Of w[t][s] = π(s) d(t,s)."""

    beyond = "more distortion"

    def check(self, p: Mechanism) -> str:
        value, least = self.value(p), self.least[1]
        need(value >= least, f"the distortion is {float(value)}")
        return f"distortion {float(value):.12g} >= {float(least):.12g}"


@dataclass(frozen=True)
class Leakage(Guess):
    """Of w[g][s] = -π(s) g(w,s) of any sign. Gains up to e^log are allowed where there is a log."""

    log: Real | None
    beyond: ClassVar[str] = "less leakage"

    def check(self, p: Mechanism) -> str:
        value = -self.value(p)
        holds = value <= -self.least[1]
        if self.log is not None and value > 0:
            holds = holds or at_most(value.numerator, value.denominator, self.log, ONE)
        need(holds, f"the best guess gains {float(value)}")
        return f"gain of the best guess {float(value):.12g}"


def leakage(most: Real, gains: Matrix, natural: bool = False) -> Leakage:
    """Σ_o max_w Σ_s π(s) g(w,s) P[s,o] <= most, or <= e^most; a limit that misses by rounding what
    a guess gains without a report, or knowing the secret, means that (theory, "The statement")."""
    low, high = most.exp(ONE, 512) if natural else most.bounds()
    regret = negated(gains)
    for extreme in (-blind(regret), sum(map(max, transposed(gains)), ZERO)):
        if low < extreme <= low + abs(low) * NEAR:
            low = high = extreme
            break
    return Leakage((None if high is None else -high, -low), regret, most if natural else None)


class LossLimit(NamedTuple):
    """Σ_o loss[s][o] P[s,o] <= most: on average over a prior, or without one for every s."""

    most: Interval
    prior: Vector | None
    loss: Matrix

    def of(self, losses: Vector) -> Fraction:
        return max(losses) if self.prior is None else dot(self.prior, losses)

    def value(self, p: Mechanism) -> Fraction:
        return self.of(p.means(self.loss) if self.prior is None else p.losses(self.loss))

    def check(self, p: Mechanism) -> str:
        most = self.most.low
        value = p.judged(self.value, lambda found: found <= most)
        need(value <= most, f"the loss is {float(value)}")
        return f"loss {float(value):.12g} <= {float(most):.12g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """μ_s u[s,o], or μ π_s u[s,o], and -μ most."""
        mu = prices(plain, bound.n if self.prior is None else 1)
        bound.paid.append(mu)
        bound.add_losses(mu if self.prior is None else [mu[0] * v for v in self.prior], self.loss)
        bound.K -= sum(mu) * self.most.high


class Bias(NamedTuple):
    """|Σ_o reported[o] P[s,o] - meant[s]| <= most for every s."""

    most: Interval
    reported: Vector
    meant: Vector

    def check(self, p: Mechanism) -> str:
        means = p.means([self.reported] * len(p.rows))
        off = max(abs(mean - v) for mean, v in paired(means, self.meant))
        need(off <= self.most.low, f"a bias is {float(off)}")
        return f"bias {float(off):.12g} <= {float(self.most.low):.12g}"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """a_s (reported - meant), and -a_s most; b_s (meant - reported), and -b_s most."""
        for row, s, value in entries(plain, 2, bound.n):
            y = cut(value)
            bound.add_row(s, -y if row else y, [v - self.meant[s] for v in self.reported])
            bound.K -= y * self.most.high


class Row(NamedTuple):
    """lower - slack <= Σ w P[s,o] <= upper + slack over entries (s, o, w), where it has limits."""

    entries: list[tuple[int, int, Real]]
    lower: Real | None
    upper: Real | None
    slack: Fraction

    def sides(self) -> list[tuple[Real, int]]:
        """Limits, with 1 for the upper and -1 for the lower one."""
        given = ((self.upper, 1), (self.lower, -1))
        return [(limit, sign) for limit, sign in given if limit is not None]

    def most(self, limit: Real, sign: int) -> Fraction:
        """What sign times the sum is at most, or more."""
        ends = limit.bounds()
        return (ends.high if sign > 0 else -ends.low) + self.slack

    def over(self, p: Mechanism, limit: Real, sign: int) -> Fraction:
        """By how much the sum misses a limit, or more: it is one of multiples of logarithms."""
        parts: dict[Fraction | None, Fraction] = {None: -self.slack}
        unit = 1 << p.own_bits
        own = [(limit.log_of, -sign * limit.factor)]
        for s, o, w in self.entries:
            row, total = p.exact(s)
            if row[o]:
                own.append((w.log_of, sign * w.factor * row[o] / (total * unit)))
        for log_of, value in own:
            parts[log_of] = parts.get(log_of, ZERO) + value
        most = parts.pop(None)
        for log_of, value in parts.items():
            ends = Real(ONE, log_of).bounds()
            most += max(value * ends.low, value * ends.high)
        return most

    def least(self, allowed: Mask, sign: int) -> Fraction:
        """What sign times the sum is at least, of any mechanism on a support."""
        rows: dict[int, dict[int, Fraction]] = {}
        for s, o, w in self.entries:
            ends = w.bounds()
            rows.setdefault(s, {})[o] = min(sign * ends.low, sign * ends.high)
        used = ((own, allowed[s]) for s, own in rows.items())
        return sum(
            (min(own.get(o, ZERO) for o, ok in enumerate(may) if ok) for own, may in used), ZERO
        )


class LinearRows(NamedTuple):
    """Inequalities over the probabilities."""

    rows: list[Row]

    def check(self, p: Mechanism) -> str:
        for k, row in enumerate(self.rows):
            for limit, sign in row.sides():
                over = row.over(p, limit, sign)
                need(over <= 0, f"inequality {k} misses its limit by {float(over)}")
        return f"{len(self.rows)} linear inequalities"

    def charge(self, bound: Lagrangian, plain: object) -> None:
        """y w, and -y upper; -y w, and y lower: of every weight the end that makes less of it."""
        for side, k, value in entries(plain, 2, len(self.rows)):
            y, row = cut(value), self.rows[k]
            for limit, sign in row.sides():
                if (sign < 0) != bool(side):
                    continue
                bound.K -= y * row.most(limit, sign)
                for s, o, w in row.entries:
                    ends = w.bounds()
                    bound.add(s, o, y, min(sign * ends.low, sign * ends.high))

    def impossible(self, allowed: Mask) -> bool:
        return any(
            row.least(allowed, sign) > row.most(limit, sign)
            for row in self.rows
            for limit, sign in row.sides()
        )


class Support(NamedTuple):
    """P[s,o] = 0 where the mask is False. The minimum of the bound is over what is allowed."""

    mask: Mask

    def check(self, p: Mechanism) -> str:
        rows = paired(p.high, self.mask)
        empty = all(ok or not v for row in rows for v, ok in transposed(row))
        need(empty, "an observable outside the support has a probability")
        return "nothing outside the support"


class Fixed(NamedTuple):
    """P[s,o] = rows[s][o] / 2^bits. The bound has these rows at their value."""

    bits: int
    rows: dict[int, list[int]]

    def check(self, p: Mechanism) -> str:
        for s, row in self.rows.items():
            same = all(v << p.bits == w << self.bits for v, w in paired(row, p.rows[s]))
            need(same, f"row {s} is not the one that was to be kept")
        return f"{len(self.rows)} rows kept, digit by digit"


Pushed = Lifted | Approximate | Divergences | Information
Charged = Ratios | Pushed | Distortion | Leakage | LossLimit | Bias | LinearRows
Part = Charged | Support | Fixed
Families = dict[str, type[Charged]]
FAMILIES: Families = {
    "windowed": Ratios, "lifted": Lifted, "approximate": Approximate, "divergence": Divergences,
    "distortion": Distortion, "loss_limits": LossLimit,
}  # fmt: skip
# entries of files whose constraints need them
ADDED: Families = {
    "leakage": Leakage, "bias": Bias, "information": Information, "linear": LinearRows,
}  # fmt: skip


def blind(w: Matrix) -> Fraction:
    """d_max: the error of an adversary who sees nothing."""
    return min(sum(row, ZERO) for row in w)


def negated(rows: Matrix) -> Matrix:
    return [[-v for v in row] for row in rows]
