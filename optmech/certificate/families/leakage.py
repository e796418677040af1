"""The best guess: errors that it makes at least (Shokri, PETS 2015, eq. 7), and what an adversary
gains by it from a report at most (g-leakage)."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Fitting, Trusted, trusted
from optmech.certificate.lagrangian import Lagrangian, attack, mixture, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import at_most, bracket, exp_bracket
from optmech.exact.number import Exact


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
            "minimum": fits.exact(self.minimum),
            "prior": fits.table(self.prior, (statement.secrets,)),
            "distance": fits.table(self.distance, (statement.secrets,) * 2),
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

    def charge(
        self, statement: Statement, lagrangian: Lagrangian, given: AttackMultipliers
    ) -> None:
        price = float(positive(given.weight))
        part = price * (attack(given.strategy) @ self.weighted).T
        lagrangian.add(-part, part, statement.secrets + 5.0)
        lagrangian.constant += Fraction(price) * self.least[0]

    def impossible(self, statement: Statement) -> str:
        minimum = self.least[0]
        if minimum <= self.blind:
            return ""
        least, most = float(minimum), values.rounded_down(self.blind)
        return (
            f"constraints[{self.index}]: distortion privacy of at least "
            f"d_m = {least:.9g} is asked for, and d_max = {most:.9g} is the "
            "error of an adversary who sees nothing: no mechanism can exceed it. "
            f"Lower the minimum to at most {most:.9g}"
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
            "maximum": fits.exact(self.maximum, signed=not self.natural),
            "natural": type(self.natural) is bool,
            "weights": fits.table(self.weights, (secrets,)),
            "gain": fits.finite(self.gain, (len(self.gain), secrets)) and len(self.gain) > 0,
            "weighted": np.array_equal(self.weighted, self.gain * self.weights),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        # gains have any sign: every term is above that of the lower bound by a unit at most, and
        # not at all where no probability is
        gained = partial(values.gained, self.gain, self.weights)
        least = value = gained(low)
        if low is not high:
            most = values.blind_gain(np.abs(self.gain), self.weights)
            columns = zip(zip(*low.rows, strict=True), zip(*high.rows, strict=True), strict=True)
            off = most * sum(below != above for below, above in columns) / (1 << low.bits)
            value = least + off
            if least - off <= self.most[0] < value:
                value = values.exactly(gained, low, value)
        passed = value <= self.most[0]
        if not passed and self.natural and value > 0:
            passed = at_most(value.numerator, value.denominator, self.maximum, 1.0)
        limit = f"{'e^' if self.natural else ''}{float(self.maximum):.12g}"
        detail = f"gain of the best guess {float(value):.12g}, allowed {limit}"
        return Check("leakage", self.index, 1, passed, float(value), detail)

    def charge(
        self, statement: Statement, lagrangian: Lagrangian, given: AttackMultipliers
    ) -> None:
        """ν (Σ_w q(w|o) Σ_s weighted[w,s] P[s,o] - limit) <= 0 for any strategy q."""
        high = self.most[1]
        if high is None:
            return
        price = float(positive(given.weight))
        strategy, roundings = mixture(given.strategy)
        part = price * (strategy @ self.weighted).T
        lagrangian.add(part, price * (strategy @ np.abs(self.weighted)).T, roundings + 3.0)
        lagrangian.constant -= Fraction(price) * high

    def impossible(self, statement: Statement) -> str:
        high = self.most[1]
        if high is None or self.blind <= high:
            return ""
        asked = f"{'e^' if self.natural else ''}{float(self.maximum):.9g}"
        least = values.rounded_up(self.blind)
        return (
            f"constraints[{self.index}]: a leakage of at most {asked} is asked for, and an "
            f"adversary who sees nothing gains {least:.9g} already: no mechanism can stay below. "
            f"Raise the maximum{'' if self.natural else f' to at least {least:.9g}'}"
        )

    def note(self, statement: Statement) -> str:
        if self.most == self.stated:
            return ""
        return (
            f"constraints[{self.index}]: the maximum falls short of the gain of an adversary who "
            "sees nothing, or everything, by rounding only; that gain is meant"
        )
