"""Noise of any shape, for a promise of several (ε, δ) at once: only upwards, within a range, for
losses that are not even, or even for a whole trade-off curve.

The law has finitely many places. Its promise is Σ_k max(0, z(k) - e^ε z(k + s)) <= δ for every pair
(ε, δ) and every shift, upwards and downwards, decided exactly. For multipliers y >= 0 of a pair and
a shift, at most λ, every law within the support has E c(Z) >= min_k C(k) - Σ δ λ, with C(k) = c(k)
+ Σ y(k) - e^ε y(k - s) (docs/theory/releases.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact, Number, parse_exact
from optmech.spaces.arguments import LOAD, kind
from optmech_noise.additive.bound import BITS
from optmech_noise.additive.cells import CellNoise
from optmech_noise.additive.real_loss import RealLoss
from optmech_noise.additive.result import LatticeNoise, WholeNoise
from optmech_noise.additive.shaped_law import Curve, Part, Parts, ShapedLaw, SidedLoss, Support


class CurveNoise(LatticeNoise):
    """Noise with a law of finitely many places that keeps every pair of a curve."""

    law: Any
    measure: Any
    curve: Curve
    multipliers: Parts | None
    support: Support = (None, None)
    _apart = frozenset({"multipliers", "seconds"})

    @property
    def epsilon(self) -> Exact:  # type: ignore[override]
        """That of the first pair."""
        return self.curve[0][0]

    @property
    def promise(self) -> str:
        """The promise in words."""
        pairs = ", ".join(f"({rate.words}, {part.words})" for rate, part in self.curve)
        ends = ""
        if self.support != (None, None):
            low, high = ("any" if end is None else str(end) for end in self.support)
            ends = f", noise from {low} to {high}"
        many = "" if len(self.curve) == 1 else " all"
        return f"(ε, δ) ={many} {pairs} at sensitivity {float(self.sensitivity):.9g}{ends}"

    @property
    def compared(self) -> str:
        """What the lower bound is of, in words."""
        within = "" if self.support == (None, None) else " and within the same range"
        return f"all noise that is as private{within}"

    @property
    def shown(self) -> str:
        """The law in words."""
        return f"whole numbers over 2^{self.law.bits} from {self.law.low} to {self.law.high}"

    @property
    def edge(self) -> str:
        """Where the law ends, in words."""
        return f"from {self.law.low} to {self.law.high}"

    @property
    def within(self) -> str:
        return self.edge

    def at(self, epsilon: Number) -> Fraction:
        """A number at or above δ(ε) of one release, exact but for e^ε, which is rounded; raises
        ProblemError for an ε that is none."""
        return self.largest(parse_exact(epsilon, where="epsilon"), self.steps)

    def largest(self, rate: Exact, steps: int) -> Fraction:
        """A number at or above δ at this ε of shifts up to so many steps."""
        power = exp_bounds(rate, BITS)[0]
        found: Fraction = max(self.law.excess(s, power) for s in self.law.shifts(steps))
        return found

    @cached_property
    def spent(self) -> tuple[Fraction, ...]:
        """δ at the ε of every pair."""
        return tuple(self.largest(rate, self.steps) for rate, _ in self.curve)

    @property
    def is_private(self) -> bool:
        """Whether every pair is kept, decided exactly."""
        low, high = self.support
        inside = (low is None or self.law.low >= low) and (high is None or self.law.high <= high)
        pairs = zip(self.spent, self.curve, strict=True)
        return inside and all(found <= bracket(part)[0] for found, (_, part) in pairs)

    @property
    def decided(self) -> tuple[float, str]:
        """The δ of the pairs, and what was decided of them in words."""
        listed = ", ".join(
            f"{float(found):.6g} at ε = {rate.words}"
            for found, (rate, _) in zip(self.spent, self.curve, strict=True)
        )
        return float(max(self.spent)), f"δ is {listed}"

    @cached_property
    def exact_loss(self) -> Fraction:
        """E c(Z), exactly."""
        places = enumerate(self.law.masses, self.law.low)
        total = sum((self.majorant(k) * v for k, v in places), Fraction(0))
        return self.means.unit * total / (1 << int(self.law.bits))

    def _proved(self, found: Parts) -> Fraction:
        every, loss, unit = found.every, self.minorant, 1 << found.bits
        if any(p.bound >= len(self.curve) or abs(p.shift) > self.steps for p in every):
            raise ProblemError("there is a shift beyond the sensitivity", where="multipliers")
        powers = [exp_bounds(rate, BITS)[1] for rate, _ in self.curve]
        low, high = reach_of(self, every)
        wide = self.steps + 1
        gains = [0] * (high - low + 1)
        harms = [[0] * (high - low + 1) for _ in self.curve]
        for part in every:
            y = [part.at(k) for k in range(low - wide, high + wide + 1)]
            own = harms[part.bound]
            for i in range(high - low + 1):
                gains[i] += y[i + wide]
                own[i] += y[i + wide - part.shift]
        least = min(
            loss(low + i) * unit
            + gain
            - sum((a * own[i] for a, own in zip(powers, harms, strict=True)), Fraction(0))
            for i, gain in enumerate(gains)
        )
        cost = sum((bracket(self.curve[p.bound][1])[1] * p.price for p in every), Fraction(0))
        return (least - cost) / unit

    @property
    def stated(self) -> dict[str, object]:
        pairs = [[rate.text, part.text] for rate, part in self.curve]
        return {"curve": pairs, "sensitivity": float(self.sensitivity), "support": self.support}


def reach_of(design: CurveNoise, every: Sequence[Part]) -> tuple[int, int]:
    """The places that a bound is looked for at: beyond them all but the loss is constant, and that
    does not fall, so that of a support that is farther out its nearest place says all."""
    wide, last = design.steps + 1, design.minorant.last
    low = min([-last, *(p.first for p in every)]) - wide
    high = max([last, *(p.last for p in every)]) + wide
    first, end = design.support
    if first is not None:
        low, high = max(low, first), max(high, first)
    if end is not None:
        low, high = min(low, end), min(high, end)
    return low, high


@kind("Give what om.noise.optimal(curve=…) or (…, support=…) returns", {"str": LOAD})
@record
class ShapedNoise(CurveNoise, WholeNoise):
    """The result of ``om.noise.optimal`` with a ``curve`` or a ``support``, or a loss with two
    sides: noise on the integers with a proof, as ``NoiseDesign`` is.

    Examples
    --------
    >>> padding = om.noise.optimal(1, "1/1000", support=(0, None))  # only adds
    >>> print(padding.law.low, f"{padding.lower_bound:.4f} {padding.loss:.4f}")
    0 6.2026 6.2026
    >>> print(round(float(padding.pmf(0)), 6))  # as much as δ allows
    0.001
    >>> print(float(padding.at(1)) <= 1e-3, padding.sample(seed=1) >= 0)
    True True
    >>> print(padding.law.shifts(2), padding.largest(om.noise.optimal(1).epsilon, 1) <= 1e-3)
    [-1, 1, -2, 2] True
    >>> padding.require_private() is padding, padding.drawn(3, seed=1).shape
    (True, (3,))
    """

    law: ShapedLaw  # type: ignore[assignment]
    measure: SidedLoss
    curve: Curve
    sensitivity: int
    support: Support = (None, None)
    multipliers: Parts | None = None
    seconds: float = 0.0


@kind("Give what om.noise.real(curve=…) returns", {"str": LOAD}, "real noise for a curve")
@record
class ShapedRealNoise(CurveNoise, CellNoise):
    """The result of ``om.noise.real`` with a ``curve``: even noise on the real line that keeps
    every pair, with a bound of all real noise that does.

    Examples
    --------
    >>> noise = om.noise.real(curve=[(0, 0.25), (1, 0.01)], cells=8)
    >>> print(noise.gap < 0.02, float(noise.at(1)) <= 0.01)
    True True
    >>> len(noise.sample(size=2, bits=8, seed=1)), noise.drawn(2, seed=1).shape
    (2, (2,))
    """

    law: ShapedLaw  # type: ignore[assignment]
    measure: RealLoss
    curve: Curve
    sensitivity: Fraction
    cells: int = 16
    multipliers: Parts | None = None
    seconds: float = 0.0

    @property
    def shown(self) -> str:
        return f"density constant on {self.law.count} cells of {float(self.step):.6g}"

    @property
    def edge(self) -> str:
        return f"{self.law.high} to either side"
