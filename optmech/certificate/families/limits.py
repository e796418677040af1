"""Means of at most a stated number: of losses, expected or of every secret, and of what the
reported value misses the secret's value by; and what the best guess misses at least (Shokri, PETS
2015, eq. 7), or gains from a report at most (g-leakage)."""

import math
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families.base import (
    Fitting,
    Plain,
    Trusted,
    is_exact,
    is_finite,
    is_table,
    trusted,
)
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import at_most, bracket, exp_bracket
from optmech.exact.number import Exact, from_above, from_below
from optmech.exact.numerators import dot, wholes


@trusted
@record
class LossLimit(ReadOnly, Trusted):
    """Σ_so weighted[s,o] P[s,o] <= maximum, or that for every row s where ``per_secret``.

    ``weighted`` is the rounded product of the prior and ``loss``, or ``loss`` itself. Multipliers
    are one number, or one for every secret.
    """

    kind = "loss"
    written = "loss_limits"
    named = "loss <= {.maximum:.9g}"
    agree = "per_secret loss"
    index: int
    weighted: Floats
    maximum: float
    per_secret: bool
    loss: Floats

    def least(self, statement: Statement) -> Fraction:
        """What the best allowed observables cost: no mechanism stays below. A secret that the
        support leaves none costs nothing here; ``support_reason`` says that nothing is feasible
        then."""

        def compute() -> Fraction:
            cheapest = np.where(statement.allowed, self.loss, np.inf).min(axis=1)
            cheapest = np.where(np.isfinite(cheapest), cheapest, 0.0)
            if self.per_secret:
                return Fraction(cheapest.max())
            return values.expected(statement.prior, [Fraction(v) for v in cheapest.tolist()])

        return statement.once(self, compute)

    def most(self, statement: Statement) -> tuple[Fraction, Fraction]:
        """Bounds of the stated q; the least possible loss where q falls short of it by no more
        than 10^-12 of it."""
        low, high = bracket(self.maximum)
        least = self.least(statement)
        return (least, least) if low < least <= low * (1 + values.NEAR) else (low, high)

    def fits(self, statement: Statement) -> Fitting:
        weighted = self.loss if self.per_secret else self.loss * statement.prior[:, None]
        return {
            "maximum": is_exact(self.maximum),
            "loss": is_table(self.loss, statement.loss.shape),
            "weighted": np.array_equal(self.weighted, weighted),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        # losses and weights are >= 0
        if self.per_secret:
            spent = values.means(self.loss, high)
        else:

            def mean(released: Scaled) -> Fraction:
                return values.expected(statement.prior, values.losses(self.loss, released))

            value = mean(high)
            if low is not high and mean(low) <= self.most(statement)[0] < value:
                value = values.exactly(mean, high, value)
            spent = [value]
        top = float(max(spent))
        detail = f"largest {top:.12g}, allowed {float(self.maximum):.12g}"
        passed = max(spent) <= self.most(statement)[0]
        return Check("loss bound", self.index, len(spent), passed, top, detail)

    def charge(self, lagrangian: Lagrangian, given: Floats) -> None:
        prices = positive(np.atleast_1d(given))
        value = np.broadcast_to(prices if self.per_secret else prices[:1], len(self.loss))
        part = value[:, None] * self.weighted
        lagrangian.add(part, part, 2.0)
        spent = value if self.per_secret else value[:1]
        total = math.nextafter(math.fsum(spent.tolist()), math.inf) if spent.any() else 0.0
        lagrangian.constant -= Fraction(total) * self.most(lagrangian.statement)[1]

    def impossible(self, statement: Statement) -> str:
        maximum, cheapest = self.most(statement)[1], self.least(statement)
        if cheapest <= maximum:
            return ""
        least = values.rounded_up(cheapest)
        return (
            f"constraints[{self.index}]: a loss of at most {float(maximum):.9g} is asked "
            f"for, and the best observables alone cost "
            f"{from_below(values.rounded_down(cheapest), 9)}. "
            f"Raise the maximum to at least {from_above(least, 9)}"
        )

    def note(self, statement: Statement) -> str:
        if self.most(statement)[0] <= bracket(self.maximum)[1]:
            return ""
        return (
            f"constraints[{self.index}]: the maximum falls short of the least possible loss "
            "by rounding only; the least possible loss is meant"
        )

    def zeros(self, statement: Statement) -> Floats:
        return np.zeros(statement.secrets if self.per_secret else 1)

    def encode(self, given: Floats | None, statement: Statement) -> Plain:
        return super().encode(None if given is None else np.atleast_1d(given), statement)


@trusted
@record
class Bias(ReadOnly, Trusted):
    """|Σ_o reported[o] P[s,o] - meant[s]| <= maximum for every s.

    Multipliers are (2, S): of the means that are too large, and too small.
    """

    kind = "bias"
    named = "bias <= {.maximum:.9g}"
    agree = "reported meant"
    index: int
    reported: Floats
    meant: Floats
    maximum: Exact

    def fits(self, statement: Statement) -> Fitting:
        return {
            "maximum": is_exact(self.maximum) and self.maximum > 0,
            "reported": is_finite(self.reported, (statement.observables,)),
            "meant": is_finite(self.meant, (statement.secrets,)),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        rows = np.tile(self.reported, (statement.secrets, 1))
        means = values.means(rows, low)
        off = [abs(m - Fraction(v)) for m, v in zip(means, self.meant.tolist(), strict=True)]
        top = float(max(off))
        detail = f"largest {top:.12g}, allowed {float(self.maximum):.12g}"
        passed = max(off) <= bracket(self.maximum)[0]
        return Check("bias", self.index, 2 * len(off), passed, top, detail)

    def charge(self, lagrangian: Lagrangian, given: Floats) -> None:
        """a_s (mean - meant - η) <= 0 and b_s (meant - mean - η) <= 0."""
        above, below = positive(given)
        lagrangian.add(
            (above - below)[:, None] * self.reported,
            (above + below)[:, None] * np.abs(self.reported),
            4.0,
        )
        a, b, meant = (list(map(Fraction, part.tolist())) for part in (above, below, self.meant))
        spent = bracket(self.maximum)[1] * (sum(a) + sum(b))
        lagrangian.constant -= dot(a, meant) - dot(b, meant) + spent

    def impossible(self, statement: Statement) -> str:
        allowed = statement.allowed.any(axis=1)
        low = np.where(statement.allowed, self.reported, math.inf).min(axis=1)
        high = np.where(statement.allowed, self.reported, -math.inf).max(axis=1)
        most = bracket(self.maximum)[1]
        for s in np.flatnonzero(allowed).tolist():
            meant = Fraction(self.meant[s])
            if Fraction(low[s]) - most <= meant <= Fraction(high[s]) + most:
                continue
            return (
                f"constraints[{self.index}]: secret {s} has the value {self.meant[s]:.9g}, and "
                f"what it may report has values from {low[s]:.9g} to {high[s]:.9g}: no mean comes "
                f"as near as {float(self.maximum):.9g}. Report more values, or raise the maximum"
            )
        return ""

    def zeros(self, statement: Statement) -> Floats:
        return np.zeros((2, statement.secrets))


@record
class AttackMultipliers:
    """Weight of a distortion inequality and the attack it is played with: q(t|o), (O, S)."""

    weight: float
    strategy: Floats


class BestGuess(ReadOnly, Trusted):
    """Families over what the best guess t is worth from a report: Σ_s weighted[t,s] P[s,o]."""

    agree = "weighted"
    weighted: Floats

    def zeros(self, statement: Statement) -> AttackMultipliers:
        return AttackMultipliers(0.0, np.zeros((statement.observables, len(self.weighted))))


@trusted
@record
class Distortion(BestGuess):
    """Σ_o min_t Σ_s weighted[t,s] P[s,o] >= minimum, with weighted[t,s] = π(s) d(t,s), the
    rounded product of ``distance`` and ``prior``."""

    kind = "distortion"
    named = "distortion >= {.minimum:.9g}"
    index: int
    weighted: Floats
    minimum: float
    distance: Floats
    prior: Floats

    @cached_property
    def blind(self) -> Fraction:
        """d_max: the error of an adversary who sees nothing, the largest possible distortion."""
        return values.blind(self.distance, self.prior)

    @cached_property
    def least(self) -> tuple[Fraction, Fraction]:
        """Bounds of the stated d_m (equal if it is rational); d_max itself where d_m exceeds it by
        no more than 10^-12: a d_m computed as d_max in floating point is meant to be d_max."""
        low, high = bracket(self.minimum)
        largest = self.blind
        near = largest < high <= largest * (1 + values.NEAR)
        return (largest, largest) if near else (low, high)

    def fits(self, statement: Statement) -> Fitting:
        return {
            "minimum": is_exact(self.minimum),
            "prior": is_table(self.prior, (statement.secrets,)),
            "distance": is_table(self.distance, (statement.secrets,) * 2),
            "weighted": np.array_equal(self.weighted, self.distance * self.prior),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        # distances and weights are >= 0
        distortion = partial(values.distortion, self.distance, self.prior)
        value = distortion(low)
        if low is not high and value < self.least[1] <= distortion(high):
            value = values.exactly(distortion, low, value)
        passed = value >= self.least[1]
        detail = f"distortion {float(value):.12g}, required {float(self.minimum):.12g}"
        return Check("distortion", self.index, 1, passed, float(value), detail)

    def charge(self, lagrangian: Lagrangian, given: AttackMultipliers) -> None:
        price = float(positive(given.weight))
        lagrangian.add_errors(self.weighted, given.strategy, price)
        lagrangian.constant += Fraction(price) * self.least[0]

    def impossible(self, statement: Statement) -> str:
        minimum = self.least[0]
        if minimum <= self.blind:
            return ""
        least, most = float(minimum), values.rounded_down(self.blind)
        return (
            f"constraints[{self.index}]: distortion privacy of at least "
            f"d_m = {least:.9g} is asked for, and "
            f"d_max = {from_above(values.rounded_up(self.blind), 9)} is the error of an "
            "adversary who sees nothing: no mechanism can exceed it. "
            f"Lower the minimum to at most {from_below(most, 9)}"
        )

    def note(self, statement: Statement) -> str:
        if self.least[0] >= bracket(self.minimum)[0]:
            return ""
        return (
            f"constraints[{self.index}]: the minimum exceeds d_max by rounding only; d_max "
            "itself is meant"
        )


@trusted
@record
class Leakage(BestGuess):
    """Σ_o max_w Σ_s weighted[w,s] P[s,o] <= maximum, or <= e^maximum where ``natural``, with
    weighted[w,s] = g(w,s) π(s), the rounded product of ``gain`` (W, S), of any sign, and
    ``weights`` >= 0 (S,), which need not sum to one.

    Multipliers are a weight and the strategy q(w|o) that is played with it, (O, W).
    """

    kind = "leakage"
    named = "leakage <= {.maximum:.9g}"
    agree = "weighted natural"
    index: int
    weighted: Floats
    maximum: Exact
    natural: bool
    gain: Floats
    weights: Floats

    @cached_property
    def blind(self) -> Fraction:
        """What an adversary gains who sees nothing: the least possible."""
        return values.blind_gain(self.gain, self.weights)

    @cached_property
    def stated(self) -> tuple[Fraction, Fraction | None]:
        """Bounds of the number that is the limit; no upper one where that is beyond floats."""
        return exp_bracket(self.maximum) if self.natural else bracket(self.maximum)

    @cached_property
    def most(self) -> tuple[Fraction, Fraction | None]:
        """The limit; the least or the largest possible gain where it falls short of that by no more
        than 10^-12 of itself: it was computed in floating point and is meant."""
        low = self.stated[0]
        for extreme in (self.blind, values.known_gain(self.gain, self.weights)):
            if low < extreme <= low + abs(low) * values.NEAR:
                return extreme, extreme
        return self.stated

    def fits(self, statement: Statement) -> Fitting:
        secrets = statement.secrets
        return {
            "maximum": is_exact(self.maximum, signed=not self.natural),
            "natural": type(self.natural) is bool,
            "weights": is_table(self.weights, (secrets,)),
            "gain": is_finite(self.gain, (len(self.gain), secrets)) and len(self.gain) > 0,
            "weighted": np.array_equal(self.weighted, self.gain * self.weights),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        # gains have any sign: every term is above that of the lower bound by a unit at most, and
        # not at all where no probability is
        gained = partial(values.gained, self.gain, self.weights)
        least = value = gained(low)
        if low is not high:
            most = values.blind_gain(np.abs(self.gain), self.weights)
            apart = (wholes(low.rows) != wholes(high.rows)).any(axis=0)
            off = most * int(apart.sum()) / (1 << low.bits)
            value = least + off
            if least - off <= self.most[0] < value:
                value = values.exactly(gained, low, value)
        passed = value <= self.most[0]
        if not passed and self.natural and value > 0:
            passed = at_most(value.numerator, value.denominator, self.maximum, 1.0)
        limit = f"{'e^' if self.natural else ''}{float(self.maximum):.12g}"
        detail = f"gain of the best guess {float(value):.12g}, allowed {limit}"
        return Check("leakage", self.index, 1, passed, float(value), detail)

    def charge(self, lagrangian: Lagrangian, given: AttackMultipliers) -> None:
        """ν (Σ_w q(w|o) Σ_s weighted[w,s] P[s,o] - limit) <= 0 for any strategy q."""
        high = self.most[1]
        if high is None:
            return
        price = float(positive(given.weight))
        lagrangian.add_gains(self.weighted, given.strategy, price)
        lagrangian.constant -= Fraction(price) * high

    def impossible(self, statement: Statement) -> str:
        high = self.most[1]
        if high is None or self.blind <= high:
            return ""
        asked = f"{'e^' if self.natural else ''}{float(self.maximum):.9g}"
        least = values.rounded_up(self.blind)
        return (
            f"constraints[{self.index}]: a leakage of at most {asked} is asked for, and an "
            f"adversary who sees nothing gains {from_below(values.rounded_down(self.blind), 9)} "
            "already: no mechanism can stay below. "
            f"Raise the maximum{'' if self.natural else f' to at least {from_above(least, 9)}'}"
        )

    def note(self, statement: Statement) -> str:
        if self.most == self.stated:
            return ""
        return (
            f"constraints[{self.index}]: the maximum falls short of the gain of an adversary who "
            "sees nothing, or everything, by rounding only; that gain is meant"
        )
