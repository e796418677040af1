"""δ of k independent reports whose single δ(ε) is known between bounds at finitely many ε.

H(t) = Σ max(0, p - t q) of a pair of laws is convex in t = e^ε, and every convex function with
H(0) = 1, H >= max(0, 1 - t) is that of a pair of laws; the larger curve is the less private pair,
for any number of reports (Blackwell 1953; docs/theory.md, "Reports about a population"). The curve
above joins the dots (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022), the one below extends
the chords beside every gap into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optmech.analysis.leakage.losses import Weights, above_loss, excess, power
from optmech.exact.number import Exact, Interval, rounded_down, rounded_up

Dot = tuple[Fraction, Fraction]
_UNIT = 2.0**-53


def delta_of_curve(
    curve: Callable[[float], Interval],
    reach: float,
    epsilon: Exact,
    *,
    k: int,
    knots: int,
    never: float = 0.0,
) -> tuple[float, float]:
    """Bounds of δ(ε) of k reports, ``curve(t)`` those of one at ε = ln t >= -``reach``. At least
    ``never`` of the first law's mass lies where the second has none."""
    step = 2.0 ** math.ceil(math.log2(max(2 * reach, 2.0**-30) / knots))
    half = math.ceil(reach / step)
    places = range(-half, half + 1)
    # below e^(place · step), so that a loss rounds up to its place
    ratios = [math.exp(place * step) * (1 - 8 * _UNIT) for place in places]
    found = [curve(t) for t in ratios]
    one, zero, rest = Fraction(1), Fraction(0), Fraction(never)
    dots = [(zero, one)]
    for t, bounds in zip(ratios, found, strict=True):
        dots.append((Fraction(t), min(dots[-1][1], Fraction(min(bounds.upper, 1.0)))))
    high = _upper(_hull(dots), dict(zip(ratios, places, strict=True)), half, step, epsilon, k)
    below = [(zero, one)]
    for t, bounds in zip(ratios, found, strict=True):
        below.append((Fraction(t), max(rest, one - Fraction(t), Fraction(bounds.lower))))
    low = _lower(_hull(_minorant(below, dots, rest)), half, step, epsilon, k)
    return low, min(1.0, high)


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


def _atoms(corners: Sequence[Dot]) -> list[tuple[Fraction, Fraction]]:
    """(t, q) for every corner but 0: the law q has the change of slope there, and p = t q."""
    slopes = [(hb - ha) / (b - a) for (a, ha), (b, hb) in pairwise(corners)]
    after = [*slopes[1:], Fraction(0)]
    return [
        (t, max(Fraction(0), right - left))
        for (t, _), left, right in zip(corners[1:], slopes, after, strict=True)
    ]


def _upper(
    corners: list[Dot], place: dict[float, int], half: int, step: float, epsilon: Exact, k: int
) -> float:
    mass = np.zeros(2 * half + 1)
    for t, q in _atoms(corners):
        mass[place[float(t)] + half] += rounded_up(t * q)
    lost = corners[-1][1]
    sure = 1 - (1 - lost) ** k
    made, beyond = power(Weights(-half, (mass,), 4 * _UNIT), k, len(mass), upward=True)
    return (above_loss(made, epsilon, step) + rounded_up(sure) + beyond) * (1 + 4 * _UNIT)


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


def _lower(corners: list[Dot], half: int, step: float, epsilon: Exact, k: int) -> float:
    atoms = [(t, q) for t, q in _atoms(corners) if q]
    # wherever atoms are merged, it is a post-processing
    places = [min(max(round(math.log(t) / step), -half), half) for t, _ in atoms]
    first = min(places)
    masses = np.zeros((2, max(places) - first + 1))
    for (t, q), at in zip(atoms, places, strict=True):
        masses[:, at - first] += rounded_down(t * q), rounded_up(q)
    weights = Weights(first, (masses[0], masses[1]), (len(atoms) + 4) * _UNIT)
    made, _ = power(weights, k, masses.shape[1], upward=False)
    sure = rounded_down(1 - (1 - corners[-1][1]) ** k)
    return max(0.0, (sure + excess(made, epsilon)) * (1 - 8 * _UNIT) - 1e-280)
