"""δ of k independent reports for a pair of secrets, between proved bounds.

An atom is a report with its two probabilities (p, q) and the loss ln p/q. Merging atoms is a
post-processing and lowers no privacy; splitting them undoes one (docs/theory.md, "Independent
reports"). Atoms are split onto a grid of losses for the upper bound and merged between its points
for the lower one; sums of losses are convolutions of numbers >= 0, whose rounding is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.exponentials import bracket, exp_range
from optmech.exact.number import Exact, rounded_down, rounded_up
from optmech.exact.rounding import above

_TAIL = 1e-22
"""Mass beyond which an end of the grid is cut off, at every convolution."""
_UNIT = 2.0**-53
_WIDE = 20.0
"""Sums of k losses stay within this many times sqrt(k) of their mean, but for what is cut off."""


@dataclass(frozen=True)
class Weights:
    """Masses at whole multiples of the grid's step, from ``start`` on; a relative error."""

    start: int
    parts: tuple[Floats, ...]
    error: float

    def times(self, other: Weights) -> Weights:
        """The masses of sums: every product, added where the sums are equal."""
        made = tuple(np.convolve(a, b) for a, b in zip(self.parts, other.parts, strict=True))
        terms = min(len(self.parts[0]), len(other.parts[0])) + 1
        return Weights(self.start + other.start, made, self.error + other.error + terms * _UNIT)


def delta_of_pair(
    p: Sequence[int], q: Sequence[int], total: int, epsilon: Exact, *, k: int, points: int
) -> tuple[float, float]:
    """Bounds of Σ max(0, p^k(o_1..o_k) - e^ε q^k(o_1..o_k)) for p and q over ``total``."""
    atoms = [(a, b) for a, b in zip(p, q, strict=True) if a and b]
    lost = Fraction(total - sum(a for a, _ in atoms), total)
    sure = 1 - (1 - lost) ** k
    if not atoms:
        return 1.0, 1.0
    losses = [math.log(a) - math.log(b) for a, b in atoms]
    reach = max(max(losses) - min(losses), 2.0**-20) * min(k, _WIDE * math.sqrt(k))
    step = 2.0 ** math.ceil(math.log2(reach / points))
    upper, beyond = power(_split(atoms, losses, total, step), k, points, upward=True)
    lower, _ = power(_merged(atoms, losses, total, step), k, points, upward=False)
    high = above_loss(upper, epsilon, step) + rounded_up(sure) + beyond
    low = excess(lower, epsilon) + rounded_down(sure)
    # what underflowed is less than that
    low = low * (1 - 4 * _UNIT) - 1e-280
    return max(0.0, low), min(1.0, high * (1 + 4 * _UNIT))


def _split(atoms: list[tuple[int, int]], losses: list[float], total: int, step: float) -> Weights:
    """Every atom as two, with the losses of the grid on both sides and the same p and q together:
    p = p1 + p2, q = p1 e^-ε1 + p2 e^-ε2. Rounding goes to the larger loss."""
    import flint

    first = math.floor(min(losses) / step) - 1
    out = np.zeros(math.floor(max(losses) / step) + 2 - first + 1)
    with flint.ctx.workprec(160):
        growth = flint.arb(step).exp()
        for (a, b), loss in zip(atoms, losses, strict=True):
            at = math.floor(loss / step)
            p, q = flint.arb(a) / total, flint.arb(b) / total
            # p2 = g (p - e^{ε1} q) / (g - 1) with g = e^{step}
            second = growth * (p - (flint.arb(at) * step).exp() * q) / (growth - 1)
            rest = p - second
            if second >= 0 and rest >= 0:
                out[at - first] += above(rest)
                out[at + 1 - first] += above(second)
            else:
                # at a point of the grid, as far as can be told: the whole to the next one above
                out[at + 1 - first + int(not rest >= 0)] += above(p)
    return Weights(first, (out,), (len(atoms) + 2) * _UNIT)


def _merged(atoms: list[tuple[int, int]], losses: list[float], total: int, step: float) -> Weights:
    """The atoms whose losses round to the same point of the grid as one."""
    places = [round(loss / step) for loss in losses]
    first = min(places)
    masses = np.zeros((2, max(places) - first + 1))
    for (a, b), at in zip(atoms, places, strict=True):
        masses[:, at - first] += a / total, b / total
    return Weights(first, (masses[0], masses[1]), (len(atoms) + 2) * _UNIT)


def power(one: Weights, k: int, points: int, *, upward: bool) -> tuple[Weights, float]:
    """The k-fold sum by repeated squaring, and a bound of the mass that was cut off above."""
    found: Weights | None = None
    beyond, square, cut, bits = 0.0, one, 0.0, k
    while True:
        if bits & 1:
            if found is None:
                found, beyond = square, cut
            else:
                found, more = _cut(found.times(square), points, upward=upward)
                beyond = beyond + cut + more
        bits >>= 1
        if not bits:
            assert found is not None
            return found, beyond * (1 + 1e-9)
        square, more = _cut(square.times(square), points, upward=upward)
        cut = 2 * cut + more


def _cut(found: Weights, points: int, *, upward: bool) -> tuple[Weights, float]:
    """Without the ends that hold next to nothing. For an upper bound, the lower end moves up to
    what stays, and the mass of the upper one is returned; for a lower bound both are forgotten."""
    p = found.parts[0]
    rising, falling = np.cumsum(p), np.cumsum(p[::-1])
    low = int(np.searchsorted(rising, _TAIL))
    high = len(p) - int(np.searchsorted(falling, _TAIL))
    if high - low > 4 * points:
        # wider than was thought of: the ends with the least mass go
        middle = int(np.searchsorted(rising, rising[-1] / 2))
        low, high = max(low, middle - 2 * points), min(high, middle + 2 * points)
    error = found.error + len(p) * _UNIT
    if high <= low:
        # all of it is next to nothing, as where most reports tell the two apart for sure
        nothing = tuple(np.zeros(1) for _ in found.parts)
        above = float(rising[-1]) * (1 + error) if upward else 0.0
        return Weights(found.start, nothing, error), above
    parts = [part[low:high].copy() for part in found.parts]
    above = 0.0
    if upward:
        parts[0][0] += rising[low - 1] if low else 0.0
        above = float(p[high:].sum()) * (1 + error)
    return Weights(found.start + low, tuple(parts), error), above


def above_loss(found: Weights, epsilon: Exact, step: float) -> float:
    """Σ p max(0, 1 - e^{ε - loss}), rounded up."""
    import flint

    losses = found.start + np.arange(len(found.parts[0]))
    mass = 0.0
    with flint.ctx.workprec(128):
        ends = bracket(epsilon)[0]
        rate = flint.arb(flint.fmpq(ends.numerator, ends.denominator))
        for loss, p in zip(losses.tolist(), found.parts[0].tolist(), strict=True):
            if p and loss * step > epsilon * (1 - 1e-12) - 1e-300:
                share = 1 - (rate - flint.arb(loss) * step).exp()
                mass += p * max(0.0, above(share))
    return mass * (1 + found.error + (len(losses) + 4) * _UNIT)


def excess(found: Weights, epsilon: Exact) -> float:
    """Σ max(0, p - e^ε q), rounded down."""
    rate = float(exp_range(epsilon, np.ones(1))[1][0])
    if rate == math.inf:
        return 0.0
    p, q = found.parts
    spare = p * (1 - found.error - 2 * _UNIT) - rate * q * (1 + found.error + 4 * _UNIT)
    kept = spare[spare > 0]
    return max(0.0, float(kept.sum()) * (1 - (len(kept) + 4) * _UNIT))
