"""Noise with its proof: what it promises, what it costs, and what all such noise costs at least."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

from optmech.base.read_only import record
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech.noise.additive.bound import NoiseMultipliers, proved_bound
from optmech.noise.additive.certified import CertifiedNoise, LatticeNoise
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import NoiseLoss
from optmech.noise.additive.privacy import largest_delta


@record
class ApproximateNoise(LatticeNoise):
    """Noise with a law on the integers that promises (ε, δ) for shifts up to ``sensitivity``, alone
    or of several releases together, and multipliers that bound the loss of all noise that does."""

    law: Law
    measure: Any
    epsilon: Exact
    delta: Exact
    sensitivity: Any
    multipliers: NoiseMultipliers | None = None
    seconds: float = 0.0
    releases: int = 1
    """So many numbers, each with noise of its own, keep ε and δ together."""
    exponent: int = 0
    """Losses are added on multiples of 2^-exponent where there are several releases and δ > 0."""

    @property
    def promise(self) -> str:
        """The promise in words."""
        stated = f"(ε, δ) = ({self.epsilon.words}, {self.delta.words})"
        if self.releases == 1:
            return f"{stated} at sensitivity {float(self.sensitivity):.9g}"
        return (
            f"{stated} of {self.releases:,} releases together, each at sensitivity "
            f"{float(self.sensitivity):.9g}"
        )

    @property
    def compared(self) -> str:
        """What the lower bound is of, in words."""
        if self.releases > 1 and not self.delta > 0:
            return "all noise that is as private, with the same law in every release"
        least = self.minorant
        if least.is_less_far_out and not least.values[-1] and self.loss > 0:
            return f"{super().compared}; noise farther out may lose less still"
        return super().compared

    @property
    def each(self) -> Exact:
        """The ε that bounds one release: of several with the same law and without δ an equal part,
        which is all that each may take, as largest losses add up."""
        if self.releases == 1 or self.delta > 0:
            return self.epsilon
        return Exact(self.epsilon.factor / self.releases, self.epsilon.log_of)

    def _bound(self) -> Fraction:
        if self.multipliers is None:
            return Fraction(0)
        # what several releases keep together each keeps by itself
        stated = (self.minorant, self.each, self.delta, self.steps, self.multipliers)
        return proved_bound(*stated)

    @cached_property
    def largest_delta(self) -> tuple[Fraction, int]:
        """The largest δ of one release over all shifts up to the sensitivity, and the shift it is
        at: at ε, or of several releases without δ at an equal part of it."""
        return largest_delta(self.law, self.each, self.steps)

    @cached_property
    def proved_delta(self) -> Fraction:
        """A number at or above δ(ε) of all releases together; of one release it is that number."""
        if self.releases == 1 or not self.delta > 0:
            return self.largest_delta[0]
        from optmech.noise.additive.lattice import composed_delta

        return composed_delta(
            self.law,
            self.steps,
            self.releases,
            epsilon=self.epsilon,
            delta=self.delta,
            exponent=self.exponent,
        )

    @property
    def is_private(self) -> bool:
        """Whether the noise is as private as promised, decided exactly."""
        return self.proved_delta <= bracket(self.delta)[0]

    @property
    def decided(self) -> tuple[float, str]:
        """The largest δ, and what was decided of it in words."""
        worst = float(self.proved_delta)
        shift = f"{float(self.largest_delta[1] * Fraction(self.sensitivity) / self.steps):.9g}"
        if self.releases > 1:
            head = f"of {self.releases:,} releases at ε = {self.epsilon.words}"
            return worst, f"{head} δ is at most {worst:.9g}"
        return worst, f"at ε = {self.epsilon.words} δ is {worst:.9g}, at shift {shift}"

    @property
    def stated(self) -> dict[str, object]:
        return {
            "epsilon": self.epsilon.text,
            "delta": self.delta.text,
            "sensitivity": self.sensitivity,
            "releases": self.releases,
        }


@record
class NoiseDesign(ApproximateNoise, CertifiedNoise):
    """The result of ``om.noise.optimal``: noise Z on the integers, to be added to a number that one
    person changes by at most ``sensitivity``, or to each of ``releases`` such numbers.

    Everything is proved by exact arithmetic from ``law`` and ``multipliers``: that the noise is
    (ε, δ)-differentially private, its loss E c(Z), and that no noise whatsoever that is as private
    has a loss below ``lower_bound``, of any support; of several releases without δ no noise with
    the same law in every release.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon="ln 2")
    >>> print(design.status, round(design.loss, 4), round(design.lower_bound, 4))
    optimal 1.3333 1.3333
    >>> 41 + design.sample(seed=1)  # a count, as it is released
    48
    >>> print(round(float(design.pmf(0)), 4), design.quantile(0.95))
    0.3333 4
    >>> design.interval(48), design.most_likely(48, low=0)  # of the count, from its release
    ((44, 52), 48)
    >>> print(round(design.privacy(k_fold=10).epsilon(delta=1e-6).upper, 3))
    6.931
    >>> design.require_private() is design, design.summary()["status"]
    (True, 'optimal')
    >>> design.drawn(3, seed=1).shape, design.gap_to(design.loss, design.lower_bound) <= 1e-6
    ((3,), True)
    """

    measure: NoiseLoss
    sensitivity: int
