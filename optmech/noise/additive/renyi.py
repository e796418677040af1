"""Noise that keeps a bound on Rényi divergences, with its proof."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from optmech.base.read_only import record
from optmech.exact.number import Exact, log_of_fraction
from optmech.noise.additive.certified import CertifiedNoise
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import NoiseLoss
from optmech.noise.additive.power import Tangents, limit_bounds, power_bound, power_sum


@record
class RenyiNoise(CertifiedNoise):
    """The result of ``om.noise.optimal`` with ``renyi=(order, epsilon)``: noise Z on the integers
    with D_α(Z ‖ Z + s) <= ε for the order α and all shifts |s| <= ``sensitivity`` (Mironov, Rényi
    differential privacy, CSF 2017).

    Everything is proved by exact arithmetic from ``law`` and ``multipliers``: every such
    divergence, the loss E c(Z), and that no noise on the integers that keeps the same has a loss
    below ``lower_bound``.

    Examples
    --------
    >>> design = om.noise.optimal(renyi=(2, 1), gap=1e-3)
    >>> print(round(design.divergence, 4), design.is_private)
    1.0 True
    """

    law: Law
    measure: NoiseLoss
    order: Fraction
    epsilon: Exact
    sensitivity: int
    multipliers: Tangents | None = None
    seconds: float = 0.0

    @property
    def promise(self) -> str:
        """The promise in words."""
        head = f"Rényi divergence of order {self.order} at most {self.epsilon.words}"
        return f"{head} at sensitivity {self.sensitivity}"

    @cached_property
    def exact_bound(self) -> Fraction:
        """The lower bound that the multipliers prove, exactly; 0 without any."""
        if self.multipliers is None:
            return Fraction(0)
        stated = (
            self.measure.minorant,
            self.order,
            self.epsilon,
            self.sensitivity,
            self.multipliers,
        )
        return max(Fraction(0), power_bound(*stated))

    @cached_property
    def largest_sum(self) -> tuple[Fraction | None, int]:
        """The largest Σ z(i)^α z(i + s)^{1-α} over all shifts up to the sensitivity, from above,
        None where it is infinite, and the shift it is at."""
        worst, at = Fraction(0), 1
        for shift in range(1, self.sensitivity + 1):
            found = power_sum(self.law, shift, self.order)
            if found is None:
                return None, shift
            if found > worst:
                worst, at = found, shift
        return worst, at

    @property
    def divergence(self) -> float:
        """The largest divergence D_α, nearly; infinite where some place is impossible."""
        worst = self.largest_sum[0]
        if worst is None:
            return float("inf")
        return max(0.0, log_of_fraction(worst) / float(self.order - 1)) if worst > 1 else 0.0

    @property
    def is_private(self) -> bool:
        """Whether every divergence is as small as promised, decided with enclosures."""
        worst = self.largest_sum[0]
        return worst is not None and worst <= limit_bounds(self.order, self.epsilon)[0]

    @property
    def decided(self) -> tuple[float, str]:
        """The largest divergence, and what was decided of it in words."""
        worst, at = self.divergence, self.largest_sum[1]
        return worst, f"the divergence of order {self.order} is {worst:.9g}, at shift {at}"

    @property
    def stated(self) -> dict[str, object]:
        return {
            "order": str(self.order),
            "epsilon": self.epsilon.text,
            "sensitivity": self.sensitivity,
        }
