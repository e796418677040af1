"""Noise with its proof: what it promises, what it costs, and what all such noise costs at least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optmech.additive import estimates
from optmech.additive.bound import LowerBound, NoiseMultipliers
from optmech.additive.law import Law
from optmech.additive.loss import NoiseLoss
from optmech.additive.privacy import largest_delta
from optmech.base import html
from optmech.base.arrays import Ints
from optmech.base.shown import Shown
from optmech.certificate.objective import relative_gap, status_of
from optmech.errors import VerificationError
from optmech.exact.checked import whole
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, rounded_down, rounded_up

if TYPE_CHECKING:
    from optmech.additive.composition import ComposedPrivacy

MOST_DRAWS = 10**7


@dataclass(frozen=True, eq=False, repr=False)
class NoiseDesign(Shown):
    """The result of ``om.noise.optimal``: noise Z on the integers, to be added to a number that one
    person changes by at most ``sensitivity``, or to each of ``releases`` such numbers.

    Everything is proved by exact arithmetic from ``law`` and ``multipliers``: that the noise is
    (ε, δ)-differentially private, its loss E c(Z), and that no noise whatsoever that is as private
    has a loss below ``lower_bound``, of any support.
    """

    law: Law
    measure: NoiseLoss
    epsilon: Exact
    delta: Exact
    sensitivity: int
    multipliers: NoiseMultipliers | None = None
    seconds: float = 0.0
    releases: int = 1
    """So many numbers, each with noise of its own, keep ε and δ together."""
    exponent: int = 0
    """Losses are added on multiples of 2^-exponent where there are several releases and δ > 0."""

    def __repr__(self) -> str:
        return (
            f"NoiseDesign({self.promise}, {self.measure.words} {self.loss:.6g}, lower bound "
            f"{self.lower_bound:.6g}, gap {self.gap:.2g}, {self.status})"
        )

    def _repr_html_(self) -> str:
        facts: list[tuple[str, object]] = [
            ("promise", self.promise),
            (self.measure.words, f"{self.loss:.6g}"),
            ("lower bound", f"{self.lower_bound:.6g}"),
            ("gap", f"{self.gap:.2g}"),
        ]
        return html.card("Noise", facts)

    @property
    def promise(self) -> str:
        """The promise in words."""
        stated = f"(ε, δ) = ({self.epsilon.words}, {self.delta.words})"
        if self.releases == 1:
            return f"{stated} at sensitivity {self.sensitivity}"
        return (
            f"{stated} of {self.releases:,} releases together, each at sensitivity "
            f"{self.sensitivity}"
        )

    @property
    def each(self) -> Exact:
        """The ε that bounds one release: of several without δ an equal part, which is all that
        they may take, as largest losses add up."""
        if self.releases == 1 or self.delta > 0:
            return self.epsilon
        return Exact(self.epsilon.factor / self.releases, self.epsilon.log_of)

    @cached_property
    def exact_loss(self) -> Fraction:
        """E c(Z), exactly."""
        return self.law.expected(self.measure)

    @cached_property
    def exact_bound(self) -> Fraction:
        """The lower bound that the multipliers prove, exactly; 0 without any."""
        if self.multipliers is None:
            return Fraction(0)
        # what several releases keep together each keeps by itself
        stated = (self.measure, self.each, self.delta, self.sensitivity, self.multipliers)
        return max(Fraction(0), LowerBound(*stated).exact)

    @property
    def loss(self) -> float:
        """E c(Z), rounded up."""
        return rounded_up(self.exact_loss)

    @property
    def lower_bound(self) -> float:
        """No noise on the integers that is as private has less loss: rounded down."""
        return rounded_down(self.exact_bound) + 0.0

    @property
    def gap(self) -> float:
        """(loss - lower bound) / loss."""
        return relative_gap(self.loss, self.lower_bound)

    @property
    def status(self) -> Literal["optimal", "feasible"]:
        """ "optimal" where the gap is at most 1e-6, else "feasible"."""
        return status_of(self.gap)

    @cached_property
    def largest_delta(self) -> tuple[Fraction, int]:
        """The largest δ of one release over all shifts up to the sensitivity, and the shift it is
        at: at ε, or of several releases without δ at an equal part of it."""
        return largest_delta(self.law, self.each, self.sensitivity)

    @cached_property
    def proved_delta(self) -> Fraction:
        """A number at or above δ(ε) of all releases together; of one release it is that number."""
        if self.releases == 1 or not self.delta > 0:
            return self.largest_delta[0]
        from optmech.additive.lattice import composed_delta

        return composed_delta(
            self.law,
            self.sensitivity,
            self.releases,
            epsilon=self.epsilon,
            delta=self.delta,
            exponent=self.exponent,
        )

    @property
    def is_private(self) -> bool:
        """Whether the noise is as private as promised, decided exactly."""
        return self.proved_delta <= bracket(self.delta)[0]

    def require_private(self) -> NoiseDesign:
        """This design; raises VerificationError where its promise does not hold."""
        if not self.is_private:
            raise VerificationError(
                f"δ is {float(self.proved_delta):.9g}, above {self.delta.words}",
                where="noise",
                remedy="Make the noise again",
            )
        return self

    def pmf(self, k: int) -> Fraction:
        """P(Z = k), exactly; raises ProblemError unless k is a whole number, or where it lies more
        than 10,000 periods out in a tail."""
        most = self.law.n + estimates.FARTHEST * len(self.law.tails)
        far = whole(k, "k", None)
        return self.law.at(whole(far, "k", -most, most) if self.law.tails else far)

    def sample(self, size: int | None = None, *, seed: int | None = None) -> int | Ints:
        """One draw of the noise, or ``size`` of them, with exactly the probabilities of ``pmf``.

        From the operating system's entropy; a seed makes draws reproducible and unfit for release.
        Raises ProblemError for a size that is none.
        """
        count = 1 if size is None else whole(size, "size", 0, MOST_DRAWS)
        drawn = self.law.sample(count, seed)
        return int(drawn[0]) if size is None else drawn

    def quantile(self, level: Number = 0.95) -> int:
        """The least k with P(|Z| <= k) >= ``level``, decided exactly; raises ProblemError for a
        level that is none, or is 1 where the noise has tails."""
        return estimates.reach(self.law, estimates.stated_level(level))

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
        ``low`` or ``high`` are known. Raises ProblemError for numbers or a level that are none."""
        return estimates.interval(self.law, released, level, low, high)

    def most_likely(
        self, released: int | Sequence[int], *, low: int | None = None, high: int | None = None
    ) -> int:
        """The maximum-likelihood estimate of the true number from one or more releases of it, of
        those from ``low`` to ``high``. With δ > 0 and a sensitivity above 1 this need not be what
        was released. Raises ProblemError where no number in the range is possible."""
        return estimates.most_likely(self.law, released, low, high)

    def privacy(self, k_fold: int = 1) -> ComposedPrivacy:
        """What ``k_fold`` releases with this noise reveal together: bounds on δ(ε) and ε(δ).

        Raises ProblemError for a number of releases that is none.
        """
        from optmech.additive.composition import composed

        return composed(self.law, self.sensitivity, k_fold)

    def summary(self) -> dict[str, Any]:
        """The design's figures as plain values, ready for JSON."""
        return {
            "status": self.status,
            "epsilon": self.epsilon.text,
            "delta": self.delta.text,
            "sensitivity": self.sensitivity,
            "releases": self.releases,
            "measure": self.measure.words,
            "loss": self.loss,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "verified": self.is_private,
            "seconds": self.seconds,
        }

    def save(self, path: str | Path) -> None:
        """Write the design to one JSON file, atomically; raises ProblemError where that cannot be
        done."""
        from optmech.additive.file import save_noise

        save_noise(self, path)

    @staticmethod
    def load(path: str | Path) -> NoiseDesign:
        """Read a design written by ``save`` and prove it again; raises ProblemError where the file
        cannot be read or is none, VerificationError where it does not hold what it claims."""
        from optmech.additive.file import load_noise

        return load_noise(path)
