"""What all noise with a proof has in common, whatever it promises."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from optmech.base.arrays import Ints
from optmech.certificate.check import Check
from optmech.certificate.proved import ProvedLoss
from optmech.errors import ProblemError, VerificationError
from optmech.exact.arguments import probability, whole
from optmech.exact.number import Exact, Number, log_of_fraction
from optmech.reading.sealed import NOISE
from optmech.spaces.arguments import LOAD, kind
from optmech_noise.additive.law import Law
from optmech_noise.additive.loss import NoiseLoss, least_whole
from optmech_noise.additive.real_loss import Cells

if TYPE_CHECKING:
    from optmech_noise.additive.composition import ComposedPrivacy

MOST_DRAWS = 10**7
_FARTHEST = 10_000
"""Periods into a tail beyond which no number is looked at exactly."""
_MOST_BITS = 4_000_000
"""Of powers of ratios that are close to one and have few bits."""


class ProvedNoise(ProvedLoss):
    """Noise with a promise, its loss, and a lower bound of the loss of all noise that keeps it."""

    formats = (NOISE,)
    heading = "Noise"
    epsilon: Exact
    sensitivity: Any
    law: Any
    measure: Any
    multipliers: Any
    numbers = "whole numbers"
    """What the noise is added to."""
    tails = "geometric tails a side"
    _apart = frozenset({"multipliers", "tangents", "seconds"})
    _follows = ("lower_bound",)
    _inner = ProvedLoss._inner | {
        *("bounding", "caveats", "cells", "charged", "checks", "claimed", "compared", "costs"),
        *("decided", "described", "drawn", "each", "edge", "enclosed", "exact_bound", "exact_loss"),
        *("exponent", "figures_of", "gap_to", "grid", "heading", "is_private", "largest_delta"),
        *("majorant", "means", "measure", "measured", "minorant", "multipliers", "numbers"),
        *("require_private", "shown", "stated", "step", "steps", "within"),
    }

    @property
    def compared(self) -> str:
        """What the lower bound is of, in words."""
        return "all noise that is as private"

    @property
    def steps(self) -> int:
        """The largest shift, in steps of the lattice that the law is on."""
        return int(self.sensitivity)

    @property
    @abstractmethod
    def is_private(self) -> bool:
        """Whether the noise is as private as promised, decided exactly."""

    @property
    @abstractmethod
    def edge(self) -> str:
        """Where the window of the law ends, in words."""

    @property
    def shown(self) -> str:
        """The law in words."""
        ends = "geometric" if self.law.tails else "never"
        return f"whole numbers over 2^{self.law.bits}, {ends} beyond {self.edge}"

    @property
    def within(self) -> str:
        """What the window of the law is, in words."""
        return f"up to {self.edge}"

    @property
    def described(self) -> tuple[int, str]:
        """How many numbers make up the law, and what they are in words."""
        law = self.law
        tails = f"{len(law.tails)} {self.tails}" if law.tails else "no tails"
        return law.count, f"whole numbers over 2^{law.bits} {self.within}, {tails}, of sum one"

    @property
    def measured(self) -> str:
        """The loss in words."""
        return str(self.measure.words)

    @property
    @abstractmethod
    def decided(self) -> tuple[float, str]:
        """The number that the promise is about, and what was decided of it in words."""

    def require_private(self) -> Self:
        """This noise; raises VerificationError where its promise does not hold."""
        if not self.is_private:
            raise VerificationError(
                f"{self.decided[1]}, above what is promised: {self.promise}",
                where="noise",
                remedy="Make the noise again",
            )
        return self

    def drawn(self, count: int, seed: int | None) -> Any:
        """``count`` draws, exactly as likely as the law says."""
        return self.law.sample(count, seed)

    def _draws(self, size: int | None, seed: int | None) -> Any:
        """One draw, or ``size`` of them."""
        drawn = self.law.sample(1 if size is None else whole(size, "size", 0, MOST_DRAWS), seed)
        return drawn[0] if size is None else drawn

    def _bound(self) -> Fraction:
        """What the multipliers prove of all noise; 0 without any."""
        return Fraction(0) if self.multipliers is None else self._proved(self.multipliers)

    @abstractmethod
    def _proved(self, found: Any) -> Fraction:
        """What multipliers prove of all noise, on a lattice in its units."""

    @cached_property
    def exact_bound(self) -> Fraction:
        """The lower bound that the multipliers prove, exactly; 0 without any."""
        return max(Fraction(0), self._bound())

    @property
    def checks(self) -> Iterator[Check]:
        """Of the law, and of the promise."""
        count, detail = self.described
        worst, words = self.decided
        passed = self.is_private
        if not passed:
            words += f", above what is promised: {self.promise}"
        yield Check("distribution", None, count, True, 0.0, detail)
        yield Check("privacy", 0, 2 * self.steps, passed, worst, words)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a verdict on its file is about, and what is the file's own word."""
        return (
            f"noise on all {self.numbers}: {self.measured}, tails included; the lower bound "
            f"is of {self.compared}",
            "the seconds are the file's own words",
        )

    @property
    def stated(self) -> dict[str, object]:
        """The numbers of the promise as plain values."""
        raise NotImplementedError

    def summary(self) -> dict[str, object]:
        """The design's figures as plain values, ready for JSON."""
        return {
            "status": self.status,
            **self.stated,
            "measure": self.measured,
            "loss": self.loss,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "verified": self.is_private,
            "seconds": self.seconds,
        }


class ApproximatelyPrivate(ProvedNoise):
    """Noise that promises (ε, δ)."""

    delta: Exact

    @property
    def pair(self) -> str:
        """ε and δ in words."""
        return f"(ε, δ) = ({self.epsilon.words}, {self.delta.words})"

    @property
    def stated(self) -> dict[str, object]:
        return {
            "epsilon": self.epsilon.text,
            "delta": self.delta.text,
            "sensitivity": self.sensitivity,
        }


class Divided(ProvedNoise):
    """Noise on cells or rings, of which so many make up the sensitivity."""

    sensitivity: Fraction
    cells: int

    @property
    def steps(self) -> int:
        return self.cells

    @property
    def step(self) -> Fraction:
        """The width of a cell, or of a ring."""
        return self.sensitivity / self.cells


class LatticeNoise(ProvedNoise):
    """Noise with a law on the integers, or on the cells of a lattice."""

    law: Law

    @property
    @abstractmethod
    def costs(self) -> Cells:
        """The loss on the lattice that the lower bound is proved on."""

    @property
    def means(self) -> Cells:
        """The loss on the lattice of the law."""
        return self.costs

    @property
    def minorant(self) -> NoiseLoss:
        """The least that the loss may be on the lattice, of which bounds are."""
        return self.costs.below

    @property
    def majorant(self) -> NoiseLoss:
        """The loss on the lattice that the law is charged."""
        return self.means.above

    @cached_property
    def exact_loss(self) -> Fraction:
        """E c(Z), exactly."""
        return self.means.unit * self.law.expected(self.majorant)

    def _bound(self) -> Fraction:
        return self.costs.unit * (super()._bound() - self.costs.charge)

    @property
    def charged(self) -> NoiseLoss:
        """The loss for which law and bound are searched together."""
        return self.majorant

    @property
    def bounding(self) -> int:
        """The largest shift, in steps of the lattice that the lower bound is proved on."""
        return self.steps


class WholeNoise(LatticeNoise):
    """Noise on the integers."""

    sensitivity: int

    @property
    def costs(self) -> Cells:
        return Cells(self.measure.minorant, self.measure, Fraction(1), Fraction(0))

    def pmf(self, k: int) -> Fraction:
        """P(Z = k), exactly; raises ProblemError unless k is a whole number, or where it lies more
        than 10,000 periods out in a tail."""
        most = self.law.n + _FARTHEST * len(self.law.tails)
        far = whole(k, "k", None)
        return self.law.at(whole(far, "k", -most, most) if self.law.tails else far)

    def sample(self, size: int | None = None, *, seed: int | None = None) -> int | Ints:
        """One draw of the noise, or ``size`` of them, with exactly the probabilities of ``pmf``.

        From the operating system's entropy; a seed makes draws reproducible and unfit for release.
        Raises ProblemError for a size that is none.
        """
        drawn = self._draws(size, seed)
        return int(drawn) if size is None else drawn


@kind("Give what om.noise.optimal returns", {"str": LOAD}, "noise for a number")
class CertifiedNoise(WholeNoise):
    """Noise Z on the integers with its loss E c(Z), and a lower bound of the loss of all noise on
    the integers that keeps the same promise, of any support."""

    measure: NoiseLoss

    @property
    def edge(self) -> str:
        """Where the window of the law ends, in words."""
        return f"±{self.law.n}"

    @property
    def within(self) -> str:
        """What the window of the law is, in words."""
        return f"for |k| <= {self.law.n}"

    def quantile(self, level: Number = 0.95) -> int:
        """The least k with P(|Z| <= k) >= ``level``, decided exactly; raises ProblemError for a
        level that is none, or is 1 where the noise has tails."""
        return _reach(self.law, _stated_level(level))

    def interval(
        self,
        released: int | Sequence[int],
        level: Number = 0.95,
        *,
        low: int | None = None,
        high: int | None = None,
    ) -> tuple[int, int]:
        """Ends of an interval that holds the true number with probability ``level`` at least, for a
        released number, or several releases of the same number; cut to what is possible, where
        ``low`` or ``high`` are known. Raises ProblemError for numbers or a level that are none.

        Of m releases each gets a level of 1 - (1 - level)/m, and what all their intervals share is
        returned (Bonferroni): where they share nothing, the most likely number.
        """
        values, (least, most) = _numbers(released), _ends(low, high)
        wide = _reach(self.law, 1 - (1 - _stated_level(level)) / len(values))
        first, last = max(max(values) - wide, least), min(min(values) + wide, most)
        if first > last:
            first = last = self.most_likely(values, low=low, high=high)
        return int(first), int(last)

    def most_likely(
        self, released: int | Sequence[int], *, low: int | None = None, high: int | None = None
    ) -> int:
        """The maximum-likelihood estimate of the true number from one or more releases of it, of
        those from ``low`` to ``high``, decided exactly: the one nearest to the median of what was
        released where several are as likely. With δ > 0 and a sensitivity above 1 this need not be
        what was released. Raises ProblemError where no number in the range is possible, or the
        range is empty."""
        values, (least, most) = _numbers(released), _ends(low, high)
        first, last = min(values), max(values)
        # beyond all released numbers by more than the window and a period nothing gets likelier
        margin = self.law.n + 2 * len(self.law.tails) + 1
        # a range that lies out there: some number of the period that is next is likeliest
        period = len(self.law.tails)
        end = min(max(last + margin, least + period), most)
        start = max(min(first - margin, most - period), least)
        wide = max(end - start, abs(start - first), abs(end - last))
        if least > most or wide > 10**6:
            raise ProblemError("the range is empty or too wide", where="low")
        middle = sorted(values)[len(values) // 2]

        def likelihood(x: int) -> Fraction:
            return math.prod((self.law.at(value - x) for value in values), start=Fraction(1))

        possible = range(int(start), int(end) + 1)
        best = max(possible, key=lambda x: (likelihood(x), -abs(x - middle), -x))
        if likelihood(best) == 0:
            raise ProblemError(
                "no number in the range could have been released so",
                where="released",
                remedy="Give numbers that this noise can lead to, or a wider range",
            )
        return best

    def privacy(self, k_fold: int = 1) -> ComposedPrivacy:
        """What ``k_fold`` releases with this noise reveal together: bounds on δ(ε) and ε(δ).

        Raises ProblemError for a number of releases that is none.
        """
        from optmech_noise.additive.composition import MOST_RELEASES, ComposedPrivacy

        count = whole(k_fold, "k_fold", 1, MOST_RELEASES)
        return ComposedPrivacy(self.law, self.sensitivity, count)


def _reach(law: Law, level: Fraction) -> int:
    """The least k with P(|Z| <= k) >= ``level``, decided exactly; ``level`` < 1 where there are
    tails."""

    def covers(k: int) -> bool:
        return 1 - 2 * law.upper_tail(k + 1) >= level

    if law.tails:
        # about how many periods of the tails hold all but the rest
        missing = log_of_fraction(1 / (1 - level)) if level < 1 else math.inf
        if missing / log_of_fraction(1 / law.r) > max(_FARTHEST, _MOST_BITS / law.ratio_bits):
            raise ProblemError(
                "no interval holds that much", where="level", remedy="Give less, below 1"
            )
    return least_whole(covers, max(1, law.n + 8 * len(law.tails)))


def _stated_level(level: Number) -> Fraction:
    """A confidence from 0 to 1, exactly."""
    number = probability(level, "level")
    return number.factor if number.log_of is None else Fraction(float(number))


def _ends(low: int | None, high: int | None) -> tuple[float, float]:
    """The ends of a range, infinite where there are none; raises ProblemError on what is no whole
    number."""
    return (
        -math.inf if low is None else whole(low, "low", None),
        math.inf if high is None else whole(high, "high", None),
    )


def _numbers(released: int | Sequence[int]) -> list[int]:
    """One or more released numbers; raises ProblemError where they are none."""
    several = isinstance(released, Iterable) and getattr(released, "ndim", 1) > 0
    values = list(cast("Iterable[int]", released)) if several else [released]
    if not values:
        raise ProblemError("is empty", where="released", remedy="Give at least one number")
    return [whole(value, "released", None) for value in values]
