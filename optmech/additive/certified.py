"""What all noise with a proof has in common, whatever it promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from optmech.additive import estimates
from optmech.additive.law import Law
from optmech.additive.loss import NoiseLoss
from optmech.base.arrays import Ints
from optmech.base.shown import Shown, card
from optmech.certificate.objective import relative_gap, status_of
from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.exact.number import Exact, Number, rounded_down, rounded_up

if TYPE_CHECKING:
    from optmech.additive.composition import ComposedPrivacy

MOST_DRAWS = 10**7


class ProvedNoise(Shown, ABC):
    """Noise with a promise, its loss, and a lower bound of the loss of all noise that keeps it."""

    epsilon: Exact
    sensitivity: int
    seconds: float
    numbers = "whole numbers"
    """What the noise is added to."""

    @property
    @abstractmethod
    def measured(self) -> str:
        """The loss in words."""

    @property
    @abstractmethod
    def promise(self) -> str:
        """The promise in words."""

    @property
    def compared(self) -> str:
        """What the lower bound is of, in words."""
        return "all noise that is as private"

    @property
    @abstractmethod
    def exact_bound(self) -> Fraction:
        """The lower bound that is proved, exactly; 0 without any."""

    @property
    @abstractmethod
    def is_private(self) -> bool:
        """Whether the noise is as private as promised, decided exactly."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The law in words."""

    @property
    @abstractmethod
    def described(self) -> tuple[int, str]:
        """How many numbers make up the law, and what they are in words."""

    @property
    @abstractmethod
    def decided(self) -> tuple[float, str]:
        """The number that the promise is about, and what was decided of it in words."""

    @abstractmethod
    def drawn(self, count: int, seed: int | None) -> Ints:
        """``count`` draws, exactly as likely as the law says."""

    @property
    @abstractmethod
    def exact_loss(self) -> Fraction:
        """The expected loss, exactly or rounded up a little."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.promise}, {self.measured} {self.loss:.6g}, "
            f"lower bound {self.lower_bound:.6g}, gap {self.gap:.2g}, {self.status})"
        )

    def _repr_html_(self) -> str:
        facts: list[tuple[str, object]] = [
            ("promise", self.promise),
            (self.measured, f"{self.loss:.6g}"),
            ("lower bound", f"{self.lower_bound:.6g}"),
            ("gap", f"{self.gap:.2g}"),
        ]
        return card("Noise", facts)

    @property
    def loss(self) -> float:
        """The expected loss, rounded up."""
        return rounded_up(self.exact_loss)

    @property
    def lower_bound(self) -> float:
        """None of what it is ``compared`` with has less loss: rounded down."""
        return rounded_down(self.exact_bound) + 0.0

    @property
    def gap(self) -> float:
        """(loss - lower bound) / loss."""
        return relative_gap(self.loss, self.lower_bound)

    @property
    def status(self) -> Literal["optimal", "feasible"]:
        """ "optimal" where the gap is at most 1e-6, else "feasible"."""
        return status_of(self.gap)

    @property
    @abstractmethod
    def stated(self) -> dict[str, object]:
        """The numbers of the promise as plain values."""

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

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a design written by ``save`` and prove it again; raises ProblemError where the file
        cannot be read or is none, VerificationError where it does not hold what it claims."""
        from optmech.additive.file import load_noise

        found = load_noise(path)
        if not isinstance(found, cls):
            raise ProblemError(
                f"promises otherwise: {found.promise}",
                where=str(path),
                remedy=f"Load it with om.noise.{type(found).__name__}.load",
            )
        return found

    def save(self, path: str | Path) -> None:
        """Write the design to one JSON file, atomically; raises ProblemError where that cannot be
        done."""
        from optmech.additive.file import save_noise

        save_noise(self, path)


class CertifiedNoise(ProvedNoise):
    """Noise Z on the integers with its loss E c(Z), and a lower bound of the loss of all noise on
    the integers that keeps the same promise, of any support."""

    law: Law
    measure: NoiseLoss

    @property
    def measured(self) -> str:
        """The loss in words."""
        return self.measure.words

    @property
    def shown(self) -> str:
        """The law in words."""
        ends = "geometric beyond" if self.law.tails else "never beyond"
        return f"whole numbers over 2^{self.law.bits}, {ends} ±{self.law.n}"

    @property
    def described(self) -> tuple[int, str]:
        """How many numbers make up the law, and what they are in words."""
        law = self.law
        tails = f"{len(law.tails)} geometric tails a side" if law.tails else "no tails"
        detail = f"whole numbers over 2^{law.bits} for |k| <= {law.n}, {tails}, of sum one"
        return law.n + 1 + len(law.tails), detail

    @cached_property
    def exact_loss(self) -> Fraction:
        """E c(Z), exactly."""
        return self.law.expected(self.measure)

    def drawn(self, count: int, seed: int | None) -> Ints:
        """``count`` draws, exactly as likely as the law says."""
        return self.law.sample(count, seed)

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
