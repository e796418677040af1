"""δ of k independent reports, between proved bounds: for a pair of secrets, and for a single δ(ε)
that is known between bounds at finitely many ε.

An atom is a report with its two probabilities (p, q) and the loss ln p/q. Merging atoms is a
post-processing and lowers no privacy; splitting them undoes one (docs/theory/adversaries.md,
"Independent reports"). Atoms are split onto a grid of losses for the upper bound and merged between
its points for the lower one; sums of losses are convolutions of numbers >= 0, whose rounding is
bounded.

H(t) = Σ max(0, p - t q) of a pair of laws is convex in t = e^ε, and every convex function with
H(0) = 1, H >= max(0, 1 - t) is that of a pair of laws; the larger curve is the less private pair,
for any number of reports (Blackwell 1953; docs/theory/populations.md, "Reports about a
population"). The curve above joins the dots (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022),
the one below extends the chords beside every gap into it.

What is earned is summed over the multisets of k reports: what counts is how often each was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.exponentials import ball_of, bracket, exp_range
from optmech.exact.number import Exact, Interval, rounded_down, rounded_up
from optmech.exact.ratios.hockey_stick import Dot, atoms_of
from optmech.exact.rounding import UNIT, above

_TAIL = 1e-22
"""Mass beyond which an end of the grid is cut off, at every convolution."""
_WIDE = 20.0
"""Sums of k losses stay within this many times sqrt(k) of their mean, but for what is cut off."""


@dataclass(frozen=True)
class Weights:
    """Masses at whole multiples of the grid's step, from ``start`` on; a relative error; and the
    mass that was cut off above."""

    start: int
    parts: tuple[Floats, ...]
    error: float
    lost: float = 0.0

    def times(self, other: Weights) -> Weights:
        """The masses of sums: every product, added where the sums are equal."""
        made = tuple(np.convolve(a, b) for a, b in zip(self.parts, other.parts, strict=True))
        terms = min(len(self.parts[0]), len(other.parts[0])) + 1
        error = self.error + other.error + terms * UNIT
        return Weights(self.start + other.start, made, error, self.lost + other.lost)


def delta_of_pair(
    p: Sequence[int], q: Sequence[int], total: int, epsilon: Exact, *, k: int, points: int
) -> tuple[float, float]:
    """Bounds of Σ max(0, p^k(o_1..o_k) - e^ε q^k(o_1..o_k)) for p and q over ``total``."""
    atoms = [(a, b) for a, b in zip(p, q, strict=True) if a and b]
    lost = Fraction(total - sum(a for a, _ in atoms), total)
    if not atoms:
        return 1.0, 1.0
    losses = [math.log(a) - math.log(b) for a, b in atoms]
    reach = max(max(losses) - min(losses), 2.0**-20) * min(k, _WIDE * math.sqrt(k))
    step = 2.0 ** math.ceil(math.log2(reach / points))
    lower = _merged(
        [round(loss / step) for loss in losses], [(a / total, b / total) for a, b in atoms]
    )
    upper = _split(atoms, losses, total, step)
    return _of_many(lower, upper, (lost, lost), epsilon, step, k=k, points=points)


def _of_many(
    lower: Weights,
    upper: Weights,
    lost: tuple[Fraction, Fraction],
    epsilon: Exact,
    step: float,
    *,
    k: int,
    points: int,
) -> tuple[float, float]:
    """Bounds of δ of k reports: ``lower`` and ``upper`` are one of less and of more loss, and of
    the first law's mass the shares ``lost`` lie where the second has none."""
    few, many = (1 - (1 - share) ** k for share in lost)
    made = power(upper, k, points, upward=True)
    high = above_loss(made, epsilon, step) + rounded_up(many) + made.lost * (1 + 1e-9)
    low = excess(power(lower, k, points, upward=False), epsilon) + rounded_down(few)
    # what underflowed is less than that
    return max(0.0, low * (1 - 8 * UNIT) - 1e-280), min(1.0, high * (1 + 4 * UNIT))


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
    return Weights(first, (out,), (len(atoms) + 2) * UNIT)


def _merged(places: list[int], atoms: list[tuple[float, float]]) -> Weights:
    """Atoms (p, q), those at the same place of the grid as one."""
    first = min(places)
    masses = np.zeros((2, max(places) - first + 1))
    for at, atom in zip(places, atoms, strict=True):
        masses[:, at - first] += atom
    return Weights(first, (masses[0], masses[1]), (len(atoms) + 4) * UNIT)


def power(one: Weights, k: int, points: int, *, upward: bool) -> Weights:
    """The k-fold sum by repeated squaring."""
    found = one
    for digit in bin(k)[3:]:
        found = _cut(found.times(found), points, upward=upward)
        if digit == "1":
            found = _cut(found.times(one), points, upward=upward)
    return found


def _cut(found: Weights, points: int, *, upward: bool) -> Weights:
    """Without the ends that hold next to nothing. For an upper bound, the lower end moves up to
    what stays, and the upper one is lost; for a lower bound both are forgotten."""
    p = found.parts[0]
    rising, falling = np.cumsum(p), np.cumsum(p[::-1])
    low = int(np.searchsorted(rising, _TAIL))
    high = len(p) - int(np.searchsorted(falling, _TAIL))
    if high - low > 4 * points:
        # wider than was thought of: the ends with the least mass go
        middle = int(np.searchsorted(rising, rising[-1] / 2))
        low, high = max(low, middle - 2 * points), min(high, middle + 2 * points)
    error = found.error + len(p) * UNIT
    if high <= low:
        # all of it is next to nothing, as where most reports tell the two apart for sure
        low = high = 0
    parts = [np.append(part[low:high], 0.0) for part in found.parts]
    lost = 0.0
    if upward:
        parts[0][0] += rising[low - 1] if low else 0.0
        lost = float(p[high:].sum()) * (1 + error)
    return Weights(found.start + low, tuple(parts), error, found.lost + lost)


def above_loss(found: Weights, epsilon: Exact, step: float) -> float:
    """Σ p max(0, 1 - e^{ε - loss}), rounded up."""
    import flint

    losses = found.start + np.arange(len(found.parts[0]))
    mass = 0.0
    with flint.ctx.workprec(128):
        rate = ball_of(bracket(epsilon)[0])
        for loss, p in zip(losses.tolist(), found.parts[0].tolist(), strict=True):
            if p and loss * step > epsilon * (1 - 1e-12) - 1e-300:
                share = 1 - (rate - flint.arb(loss) * step).exp()
                mass += p * max(0.0, above(share))
    return mass * (1 + found.error + (len(losses) + 4) * UNIT)


def excess(found: Weights, epsilon: Exact) -> float:
    """Σ max(0, p - e^ε q), rounded down."""
    rate = float(exp_range(epsilon, np.ones(1))[1][0])
    if rate == math.inf:
        return 0.0
    p, q = found.parts
    spare = p * (1 - found.error - 2 * UNIT) - rate * q * (1 + found.error + 4 * UNIT)
    kept = spare[spare > 0]
    return max(0.0, float(kept.sum()) * (1 - (len(kept) + 4) * UNIT))


def delta_of_curve(
    curve: Callable[[float], Interval],
    reach: float,
    epsilon: Exact,
    *,
    k: int,
    knots: int,
    never: float,
) -> tuple[float, float]:
    """Bounds of δ(ε) of k reports, ``curve(t)`` those of one at ε = ln t >= -``reach``. At least
    ``never`` of the first law's mass lies where the second has none."""
    step = 2.0 ** math.ceil(math.log2(max(2 * reach, 2.0**-30) / knots))
    half = math.ceil(reach / step)
    # below e^(place · step), so that a loss rounds up to its place
    ratios = [math.exp(place * step) * (1 - 8 * UNIT) for place in range(-half, half + 1)]
    one, zero, rest = Fraction(1), Fraction(0), Fraction(never)
    dots, below = [(zero, one)], [(zero, one)]
    for ratio in ratios:
        bounds, t = curve(ratio), Fraction(ratio)
        dots.append((t, min(dots[-1][1], Fraction(min(bounds.upper, 1.0)))))
        below.append((t, max(rest, one - t, Fraction(bounds.lower))))
    above_it, below_it = _hull(dots), _hull(_minorant(below, dots, rest))
    mass = np.zeros(len(ratios))
    for corner, q in atoms_of(above_it):
        mass[ratios.index(float(corner))] += rounded_up(corner * q)
    atoms = [(corner, q) for corner, q in atoms_of(below_it) if q]
    # wherever atoms are merged, it is a post-processing
    lower = _merged(
        [min(max(round(math.log(corner) / step), -half), half) for corner, _ in atoms],
        [(rounded_down(corner * q), rounded_up(q)) for corner, q in atoms],
    )
    upper = Weights(-half, (mass,), 4 * UNIT)
    lost = below_it[-1][1], above_it[-1][1]
    return _of_many(lower, upper, lost, epsilon, step, k=k, points=len(mass))


def _hull(dots: Sequence[Dot]) -> list[Dot]:
    """The corners of the largest convex function below all dots."""
    out: list[Dot] = []
    for t, h in sorted(dots):
        if out and out[-1][0] == t:
            continue  # the lower of two comes first
        while len(out) > 1:
            (a, ha), (b, hb) = out[-2:]
            if (hb - ha) * (t - b) < (h - hb) * (b - a):
                break
            out.pop()
        out.append((t, h))
    return out


def _minorant(low: list[Dot], high: list[Dot], rest: Fraction) -> list[Dot]:
    """Corners of a function below the curve: at every t the largest of what is left in the end,
    1 - t and the chords on
    both sides, extended. Right of t_j the curve is above the line from the upper dot before to the
    lower dot at t_j, and left of it above the line from the upper dot behind."""
    zero, one = Fraction(0), Fraction(1)
    out: list[Dot] = []
    for j, ((a, ha), (b, hb)) in enumerate(pairwise(low)):
        lines = [(ha, (ha - high[j - 1][1]) / (a - high[j - 1][0]))] if j else []
        if j + 2 < len(low):
            slope = (high[j + 2][1] - hb) / (high[j + 2][0] - b)
            lines.append((hb + slope * (a - b), slope))
        lines += [(rest, zero), (one - a, -one)]
        crossings = {a, b}
        for m, (h0, s0) in enumerate(lines):
            for h1, s1 in lines[m + 1 :]:
                if s0 != s1 and a < (t := a + (h1 - h0) / (s0 - s1)) < b:
                    crossings.add(t)
        out += [(t, max(h + s * (t - a) for h, s in lines)) for t in crossings]
    last = low[-1][0]
    # no more is known beyond
    return [*out, (last, max(rest, one - last)), (max(last, one) + 1, rest)]
