"""Noise that keeps bounds on Rényi divergences, with its proof."""

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, from_above, log_of_fraction, rounded_down
from optmech_noise.additive.bound import (
    BITS,
    Bounds,
    Tangents,
    least_total,
    limit_bounds,
    log_bounds,
    power_sum,
)
from optmech_noise.additive.cells import CellNoise
from optmech_noise.additive.law import Law
from optmech_noise.additive.loss import NoiseLoss
from optmech_noise.additive.real_loss import RealLoss, rational
from optmech_noise.additive.result import CertifiedNoise, LatticeNoise

_ROUNDED = Fraction(1, 1 << 40)


@record
class DivergenceNoise(LatticeNoise):
    """Noise with a law on the integers or on cells that promises D_α(Z ‖ Z + s) <= ε for pairs
    (α, ε) and all shifts |s| <= ``sensitivity``, or for every α > 1 and ε = ρα; and tangents that
    bound the loss of all noise that does."""

    law: Law
    measure: Any
    bounds: Bounds
    sensitivity: Any
    multipliers: Tangents | None = None
    seconds: float = 0.0
    rho: Exact | None = None
    """Of a promise at every order above 1; ``bounds`` are then those that are looked at."""

    @property
    def order(self) -> Fraction:
        """The first order."""
        return self.bounds[0][0]

    @property
    def orders(self) -> list[Fraction]:
        """All of them."""
        return [order for order, _ in self.bounds]

    @property
    def epsilon(self) -> Exact:  # type: ignore[override]
        """What the divergence of the first order is at most."""
        return self.bounds[0][1]

    @property
    def promise(self) -> str:
        """The promise in words."""
        tail = f"at sensitivity {float(self.sensitivity):.9g}"
        if self.rho is not None:
            return f"zero-concentrated privacy with ρ = {self.rho.words} {tail}"
        parts = [f"{_named(order)} at most {rate.words}" for order, rate in self.bounds]
        return f"{', '.join(parts)} {tail}"

    def _proved(self, found: Tangents) -> Fraction:
        least = least_total(self.minorant, self.orders, self.steps, found)
        limits = [limit_bounds(order, epsilon)[1] for order, epsilon in self.bounds]
        cost = sum(part.price * limits[part.bound] for part in found.shifts)
        return least - Fraction(cost) / (1 << found.price_bits)

    @property
    def _shifts(self) -> range:
        """Those that are looked at."""
        # noise that falls from the centre diverges most at the largest shift
        return range(self.steps if self.law.falls else 1, self.steps + 1)

    def _largest(self, order: Fraction) -> tuple[Fraction | float, int]:
        sums = ((power_sum(self.law, shift, order), shift) for shift in self._shifts)
        return max(sums, key=lambda pair: pair[0])

    @property
    def divergences(self) -> tuple[float, ...]:
        """The largest divergence of every order, nearly; infinite where some place is
        impossible."""
        return tuple(_divergence(order, worst) for order, _, worst, _ in self._found)

    @cached_property
    def _found(self) -> list[tuple[Fraction, Exact, Fraction | float, int]]:
        """Every order with what is promised, the largest R_s of all shifts up to the sensitivity,
        from above, and the shift it is at, in steps."""
        return [(*bound, *self._largest(bound[0])) for bound in self.bounds]

    @property
    def divergence(self) -> float:
        """The largest divergence of the first order, nearly."""
        return self.divergences[0]

    @cached_property
    def is_private(self) -> bool:
        """Whether every divergence is as small as promised, decided with enclosures."""
        if self.rho is not None:
            return self._is_concentrated(bracket(self.rho)[0])
        return all(worst <= limit_bounds(order, rate)[0] for order, rate, worst, _ in self._found)

    def _is_concentrated(self, rho: Fraction) -> bool:
        """Whether D_α <= ``rho`` α for every α > 1: (α - 1) D_α is convex in α, and so at most
        straight between the orders that are looked at; beyond, it grows no faster than by D_∞."""
        points = []
        for order, _, worst, _ in self._found:
            if isinstance(worst, float):
                return False
            if order > 1:
                points.append((order, _log_up(worst)))
        largest = self._largest_ratio()
        # up to the first order D_α is at most what it is there
        if not points or points[0][1] > rho * (points[0][0] - 1) or isinstance(largest, float):
            return False
        last = points[-1]
        far = last[1] <= rho * last[0] * (last[0] - 1)
        steep = _log_up(largest) > rho * (2 * last[0] - 1)
        return far and not steep and all(_is_below(a, b, rho) for a, b in pairwise(points))

    def _largest_ratio(self) -> Fraction | float:
        """The largest z(i)/z(i + s) of all shifts up to the sensitivity."""
        every = (pairs for shift in self._shifts for pairs in self.law.pairs(shift)[:2])
        return max(Fraction(p, q) if q else math.inf for pairs in every for p, q in pairs if p)

    def least_divergence(self, loss: Number | None = None) -> float:
        """A number that the largest divergence is at or above of all noise whose loss is at most
        ``loss``, by default that of this noise; for a promise of a single order. Raises
        ProblemError for several.

        The tangents bound E c(Z) + Σ λ R_s(Z) of all noise Z, so that a small loss leaves large
        sums.
        """
        if len(self.bounds) != 1:
            raise ProblemError("goes with a promise of one order", where="least_divergence")
        cost = self.exact_loss if loss is None else rational(loss, "loss", positive=False)
        if self.multipliers is None:
            return 0.0
        order, price = self.order, self.multipliers.price
        total = least_total(self.minorant, self.orders, self.steps, self.multipliers)
        # of noise that costs so much the most on the lattice
        least = total - cost / self.costs.unit - self.costs.charge
        least = least / price if price else Fraction(0)
        if order == 1 or least <= 1:
            return max(0.0, rounded_down(least)) if order == 1 else 0.0
        log = Fraction(log_bounds(least.numerator, least.denominator)[0], 1 << BITS)
        return max(0.0, rounded_down(log / (order - 1)))

    @property
    def kept(self) -> Bounds:
        """What the law is searched under: of a promise at every order a little less between the
        orders that are looked at, so that segments between these lie below the parabola."""
        if self.rho is None:
            return self.bounds
        orders = [order for order in self.orders if order > 1]
        rho = bracket(self.rho)[0] * (1 - _ROUNDED)
        made = []
        for k, order in enumerate(orders):
            near = orders[max(0, k - 1) : k + 2]
            apart = max(b - a for a, b in pairwise(near)) if len(near) > 1 else Fraction(0)
            rate = rho * (order - apart**2 / (4 * (order - 1)))
            made.append((order, Exact(min(rate, rho) if k == 0 else rate)))
        return tuple(made)

    @property
    def decided(self) -> tuple[float, str]:
        """The largest divergence, and what was decided of it in words."""
        if self.rho is not None:
            worst = max(
                _divergence(order, found) / float(order) for order, _, found, _ in self._found
            )
            return (
                worst,
                f"of {len(self.bounds)} orders divergences are at most {from_above(worst, 9)} α",
            )
        words = [
            f"the divergence of order {order} is {_divergence(order, found):.9g}, at shift "
            f"{float(at * Fraction(self.sensitivity) / self.steps):.9g}"
            for order, _, found, at in self._found
        ]
        return self.divergence, "; ".join(words)

    @property
    def stated(self) -> dict[str, object]:
        promise: dict[str, object]
        if self.rho is not None:
            promise = {"rho": self.rho.text}
        elif len(self.bounds) == 1:
            promise = {"order": str(self.order), "epsilon": self.epsilon.text}
        else:
            promise = {"orders": {str(order): rate.text for order, rate in self.bounds}}
        return {**promise, "sensitivity": self.sensitivity}


def _named(order: Fraction) -> str:
    if order == 1:
        return "Kullback–Leibler divergence"
    return f"Rényi divergence of order {order}"


def _divergence(order: Fraction, worst: Fraction | float) -> float:
    if isinstance(worst, float):
        return worst
    if order == 1:
        return max(0.0, float(worst))
    return max(0.0, log_of_fraction(worst) / float(order - 1)) if worst > 1 else 0.0


def _log_up(value: Fraction) -> Fraction:
    return Fraction(log_bounds(value.numerator, value.denominator)[1], 1 << BITS)


def _is_below(
    one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction], rho: Fraction
) -> bool:
    """Whether the segment between two points lies below ``rho`` α (α - 1)."""
    (a, low), (b, high) = one, other
    slope = (high - low) / (b - a)
    # the least of rho α² - (rho + slope) α + ... over [a, b]
    least = min(b, max(a, (1 + slope / rho) / 2))
    return rho * least * (least - 1) >= low + slope * (least - a)


@record
class RenyiNoise(DivergenceNoise, CertifiedNoise):
    """The result of ``om.noise.rdp`` and its kin: noise Z on the integers with D_α(Z ‖ Z + s) <= ε
    for the orders α that were asked for and all shifts |s| <= ``sensitivity`` (Mironov, Rényi
    differential privacy, CSF 2017). Order 1 is the Kullback-Leibler divergence.

    Everything is proved by exact arithmetic from ``law`` and ``multipliers``: every such
    divergence, the loss E c(Z), and that no noise on the integers that keeps the same has a loss
    below ``lower_bound``.

    Examples
    --------
    >>> design = om.noise.rdp((2, 1), gap=1e-3)
    >>> print(round(design.divergence, 4), design.is_private)
    1.0 True
    >>> print(round(design.least_divergence(), 2))  # of all noise that costs no more
    1.0
    """

    measure: NoiseLoss
    sensitivity: int


@record
class RealRenyiNoise(CellNoise, DivergenceNoise):
    """The result of ``om.noise.rdp`` and its kin with ``cells``: noise Z on the real line with
    D_α(Z ‖ Z + s) <= ε for the orders α that were asked for, order 1 being the Kullback-Leibler
    divergence, and all real shifts |s| <= ``sensitivity``. Its density is constant on cells.

    Everything is proved by exact arithmetic: every such divergence, the loss E c(Z), and that no
    noise on the real line that keeps the same has a loss below ``lower_bound``.

    Examples
    --------
    >>> noise = om.noise.rdp((1, "1/4"), loss="square", cells=16)  # a Gaussian's variance is 2
    >>> print(f"{noise.lower_bound:.4f} {noise.loss:.4f} {noise.is_private}")
    1.9945 1.9958 True
    >>> print(round(noise.divergence_at("1/2"), 3) < round(noise.least_divergence(), 3))
    True
    """

    measure: RealLoss
    sensitivity: Fraction
    cells: int = 16

    def divergence_at(self, shift: Number) -> float:
        """The divergence of the first order for numbers that differ by ``shift``, nearly. Raises
        ProblemError for a shift that is none, or above the sensitivity."""
        steps = rational(shift, "shift", positive=False) / self.step
        if steps > self.cells:
            raise ProblemError("is beyond the sensitivity", where="shift")
        first = steps.__floor__()
        part, nothing = steps - first, Fraction(self.order != 1)
        near, far = (
            power_sum(self.law, k, self.order) if k else nothing
            for k in (first, first + (part > 0))
        )
        if math.inf in (near, far):
            return math.inf
        return _divergence(self.order, (1 - part) * near + part * far)
