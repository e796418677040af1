"""From floats to multipliers that prove much and to whole numbers that are private."""

import decimal
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.exponentials import exp_bounds
from optmech.exact.number import Exact
from optmech.exact.numerators import integers
from optmech_noise.additive.bound import NoiseMultipliers, ShiftWindow, nothing
from optmech_noise.additive.law import Law
from optmech_noise.program import S, Solution, Window, from_cheapest

_BITS = 100
_SAFE = 1e-12
_LEVELS = 12
_SMALL = 1e-7
_DIGITS = 60
_RATIO_BITS = 60
KEPT = 1e-9
"""The share of δ that is kept back for roundings."""
_ROUNDING = 1e-8
"""A relative excess below this is rounding."""
SLACK = 2.0**-30
"""By how much less than e^ε neighbours differ, relatively, for rounding to have room."""


LIFTED = 20.0
"""For larger ε without δ, solutions are those of this one carried over."""
_NEARLY = 3e-8
_LEAST_LEVEL = 1e-280
_DEEPEST = -640.0

Digits = float | decimal.Decimal
Tails = dict[int, tuple[float, float, float]]
"""Of shifts: multipliers beyond the window as polynomials."""


class Dual:
    """The multipliers of a solution, extended beyond the window and made to hold everywhere.

    Seen from outside, the multipliers of an inequality between an inner and an outer place help the
    inner one and hurt the outer one. Places are visited from the farthest inwards, from the place
    that costs least, which need not be the centre: multipliers that hurt a place too much are
    lowered, and what a place can spare is given to that of the largest shift.
    """

    def __init__(self, window: Window, solution: Solution[int], power: Fraction) -> None:
        self.window = window
        self.exact_power = power
        self.widest = max(window.sensitivity, *solution.multipliers)
        self.limits = dict(solution.limits)
        self.rows = dict(solution.multipliers)
        self.rows.setdefault(window.sensitivity, np.zeros(2 * window.n + 1))
        if window.delta > 0:
            for s, y in self.rows.items():
                # a limit is known to a tolerance only, and small multipliers may be above it
                most, known = float(y.max()), self.limits.get(s, 0.0)
                cheap = 2 * window.delta * (most - known) < 1e-9 * solution.value
                self.limits[s] = max(known, most) if cheap else known
        self.cost = 2 * window.delta / (1 - KEPT) * sum(self.limits.values())

    def best(self, loss: float) -> NoiseMultipliers:
        """The multipliers with the largest bound, of a few levels that places are held to; it is
        at most ``loss``."""
        level = loss + self.cost
        if self.window.far is not None:
            level = min(level, self.window.far)
        tried: dict[float, float] = {}
        last = None
        for _ in range(_LEVELS):
            excess = tried[level] = self._swept(level)[1]
            if excess >= -1e-12 * abs(level) or level == last:
                break
            if last is None:
                # far less than the way to go, as what is lacking grows faster than the level
                step = max(excess / 256, -_NEARLY * level)
            else:
                slope = (excess - tried[last]) / (level - last)
                step = -excess / slope if slope < -1e-9 else excess
            last, level = level, level + step
        level = max(tried, key=lambda at: min(at, at + tried[at]))
        rows, _, tails = self._swept(level)
        return self._whole(rows, tails, level)

    def _tails(self, level: float) -> Tails:
        """Polynomials beyond the window under which places far out reach the level exactly."""
        w = self.window
        start = max(w.n, w.loss.last)
        a, b, g = map(float, w.loss.polynomial(start))
        rest = math.expm1(w.epsilon)
        if w.delta > 0:
            room = (a + b + g - level) / rest * (1 - _SAFE) if rest > 0 else math.inf
            total = sum(self.limits.values())
            share = min(1.0, max(0.0, room / total)) if total > 0 else 0.0
            return {s: (share * limit, 0.0, 0.0) for s, limit in self.limits.items()}
        p, power = w.sensitivity, w.power
        d = g / rest * (1 - _SAFE)
        slope = (b + 2 * d * p * power) / rest * (1 - 2 * _SAFE)
        at = (a - level + power * (slope * p - d * p * p)) / rest * (1 - 3 * _SAFE)
        return {p: (max(at, 0.0), max(slope, 0.0), max(d, 0.0))}

    def _swept(self, level: float) -> tuple[dict[int, list[Digits]], float, Tails]:
        """Multipliers under which every place but the innermost reaches the level where they can;
        by how much the least that any place is left with is above it; the tails."""
        w, reach = self.window, self.window.n + self.widest
        losses = w.loss.floats(np.arange(reach + 1.0))
        most = float(losses.max())
        if level >= _SMALL * most and w.epsilon <= LIFTED:
            return self._lowered(level, losses.tolist(), w.power)
        # a level far below the losses that are weighed against each other needs more digits
        deep = math.log10(max(most, 1e-300) / max(level, 1e-300))
        with decimal.localcontext(prec=_DIGITS + max(0, int(2 * deep))):
            exact = [_decimal(w.loss(k)) for k in range(reach + 1)]
            return self._lowered(decimal.Decimal(level), exact, _decimal(self.exact_power))

    def _lowered(
        self, level: Any, loss: list[Any], power: Any
    ) -> tuple[dict[int, list[Any]], float, Tails]:
        """Multipliers that are swept, as numbers like ``level``."""
        w, n, reach = self.window, self.window.n, len(loss) - 1
        number = type(level)
        zero, one, aim = number(0), number(1), level * number(1 + 1e-14)
        # where a multiplier of place 0 is: there are none below -n
        before = 2 * self.widest
        centre = before + n
        spread = w.delta == 0 and w.epsilon > LIFTED
        tails = self._tails(float(level))
        outer = np.arange(1, self.widest + 1)
        rows = {}
        for s, known in self.rows.items():
            a, b, d = tails.get(s, (0.0, 0.0, 0.0))
            found = np.append(known, a + b * outer + d * outer**2)
            if w.delta > 0:
                found = np.minimum(found, self.limits[s])
            rows[s] = [zero] * before + [number(value) for value in found.tolist()]
        most = number(self.limits.get(w.sensitivity, math.inf))
        main = rows[w.sensitivity]
        least = number(math.inf)
        order, rank = self._inwards(reach)
        for k in order:
            value = loss[k]
            hurting = []
            for s, y in rows.items():
                one_side, other_side = centre + k - s, centre - k - s
                value += y[centre + k] + y[centre - k] - power * (y[one_side] + y[other_side])
                if k - s <= n and rank[abs(k - s)] < rank[k]:
                    hurting.append((y, one_side))
                if 0 < k <= n - s and rank[k + s] < rank[k]:
                    hurting.append((y, other_side))
            # the centre is hurt from both sides by one and the same
            pain = power * (1 if k else 2)
            total = pain * sum(y[at] for y, at in hurting)
            if (value < aim or spread) and total > 0:
                # of a smaller ε they are raised too: what is spared goes where these are
                keep = max(zero, one - (aim - value) / total)
                for y, at in hurting:
                    y[at] *= keep
                value += total * (one - keep)
            elif value > aim and abs(near := k - w.sensitivity) <= n and rank[abs(near)] < rank[k]:
                gain = min((value - aim) / pain, most - main[centre + near])
                main[centre + near] += gain
                value -= pain * gain
            least = min(least, value)
        inner = {s: y[before : centre + n + 1] for s, y in rows.items()}
        return inner, float(least - level), tails

    def _inwards(self, reach: int) -> tuple[list[int], list[int]]:
        """The places up to ``reach`` from the farthest on, and how near each is, in order."""
        wide = reach + self.widest + 1
        away = from_cheapest(self.window.loss.floats(np.arange(wide + 0.0)))
        order = np.lexsort((np.arange(wide), away))
        rank = np.empty(wide, dtype=int)
        rank[order] = np.arange(wide)
        return order[::-1][order[::-1] <= reach].tolist(), rank.tolist()

    def _whole(self, rows: dict[int, list[Digits]], tails: Tails, level: float) -> NoiseMultipliers:
        largest = max([1e-300, *(float(max(y)) for y in rows.values()), *self.limits.values()])
        # a level far below the multipliers is what remains of their differences
        bits = bits_for(min(largest, max(level, _LEAST_LEVEL)), _BITS)
        parts = shift_windows(rows, dict.fromkeys(rows, (0.0,) * 3) | tails, self.limits, bits)
        return NoiseMultipliers(bits, parts) if parts else nothing(self.window.sensitivity)


def shift_windows(
    rows: Mapping[S, Sequence[Digits]],
    tails: Mapping[S, tuple[float, ...]],
    limits: Mapping[S, float],
    bits: int,
) -> tuple[ShiftWindow, ...]:
    """Multipliers as whole numbers, none above its limit, of the shifts that have any."""
    parts = []
    for s, y in sorted(rows.items()):
        limit = limits.get(s, math.inf)
        inner, tail = (whole_numbers(v, bits, limit) for v in (y, tails.get(s, ())))
        if any(inner) or any(tail):
            price = whole_numbers([limits.get(s, 0.0)], bits)
            parts.append(ShiftWindow(s, inner, tail, *price))
    return tuple(parts)


def _decimal(value: Fraction) -> decimal.Decimal:
    return decimal.Decimal(value.numerator) / value.denominator


def bits_for(value: float, bits: int) -> int:
    """Over which power of two a float has so many bits; at least over 1."""
    return max(0, bits - math.frexp(value)[1])


def whole_numbers(values: Iterable[Digits], bits: int, most: float = math.inf) -> tuple[int, ...]:
    """Numbers, or ``most`` where they are above it, times 2^bits, rounded towards 0."""
    return tuple(int(Fraction(min(value, most)) * (1 << bits)) for value in values)


def mirrored(places: Floats) -> Floats:
    """Values at …, 1, 0, 1, … from those at 0, 1, …"""
    return np.concatenate([places[:0:-1], places])


def excess(places: Floats, power: float, shift: int) -> float:
    """Σ max(0, z(i) - ``power`` z(i + shift)) of places in a row, the ends of which are empty."""
    return float(np.maximum(places[:-shift] - power * places[shift:], 0.0).sum())


def closed(values: Floats, ratio: float, sensitivity: int) -> Floats:
    """The least values at or above the given ones, on [0, len), of which no two at most
    ``sensitivity`` apart (mirrored at 0) differ by a factor below ``ratio``."""
    from scipy.ndimage import maximum_filter1d

    out = np.asarray(values, dtype=np.float64).copy()
    while True:
        near = maximum_filter1d(mirrored(out), 2 * sensitivity + 1, mode="nearest")[len(out) - 1 :]
        new = np.maximum(out, ratio * near)
        if (new <= out * (1 + 1e-13)).all():
            return np.asarray(new)
        out = new


def tail_ratio(epsilon: Exact) -> tuple[int, int]:
    """A ratio a little above e^-ε, as a whole number over a power of two, and its exponent."""
    bits = _RATIO_BITS + max(0, int(1.5 * float(epsilon)))
    exact = 1 / exp_bounds(epsilon, 128)[0]
    return math.ceil(exact * (1 << bits) * (1 + Fraction(SLACK))), bits


def lifted(solution: Solution[int], window: Window) -> Solution[int]:
    """The best places for the window's ε, from those for a smaller one.

    z(k) = x(k) e^{-ε h(k)} with whole numbers h, and from some ε on h and x stay: with δ = 0 all x
    are 1, with δ > 0 h counts sensitivities from the cheapest place. Multipliers fall as z does.
    """
    n, more = window.n, window.epsilon - LIFTED
    places = np.append(solution.window, solution.tails * -math.expm1(-LIFTED))
    costs = window.loss.floats(np.arange(len(places) + 0.0))
    if window.delta == 0:
        levels = np.rint(-np.log(np.maximum(places / places.max(), 1e-300)) / LIFTED)
        places, made = (
            np.exp(np.maximum(-levels * rate, _DEEPEST)) for rate in (LIFTED, window.epsilon)
        )
    else:
        levels = np.ceil(from_cheapest(costs) / window.sensitivity)
        made = places * np.exp(np.maximum(-levels * more, _DEEPEST))
    both = np.where(np.arange(len(places)) > 0, 2.0, 1.0)
    far = solution.far * float(window.loss.end) if solution.far else 0.0
    values = [
        (float(both * costs @ z) + far) / (float(both @ z) + solution.far) for z in (places, made)
    ]
    share = values[1] / values[0] if values[0] > 0 else 1.0
    rise = share * np.exp(np.minimum(mirrored(levels[: n + 1]) * more, -_DEEPEST))
    return replace(
        solution,
        window=made[: n + 1],
        tails=made[n + 1 :] / (1 - window.ratio),
        value=values[1],
        multipliers={s: y * rise for s, y in solution.multipliers.items()},
        limits={s: limit * share for s, limit in solution.limits.items()},
    )


def thinned(solution: Solution[int], window: Window, ample: float) -> Solution[int]:
    """The best places for ε = 0 and the window's δ, from those for a larger one of which most is
    infinitely far out: what is near is in proportion to δ, and the multipliers are the same."""
    share = window.delta / ample
    end = float(window.loss.end)
    return replace(
        solution,
        window=solution.window * share,
        value=end + share * (solution.value - end),
        far=1 + share * (solution.far - 1),
    )


def pure_places(solution: Solution[int], ratio: float, sensitivity: int) -> Floats:
    """z(0), …, z(n + Δ) near a solution for δ = 0, of which no two break the ratio, and neither
    does their continuation with it."""
    places = np.concatenate([solution.window, solution.tails * (1 - ratio)])
    for _ in range(3):
        places = closed(np.maximum(places, 0.0), ratio, sensitivity)
        # falling within a period, so that what follows keeps the ratio too
        falling = np.maximum.accumulate(places[: -sensitivity - 1 : -1])
        places[-sensitivity:] = falling[::-1]
    return places


def continued(places: Floats, ratio: float, sensitivity: int, last: int) -> Floats:
    """z(0), …, z(last) from places that go on with the ratio from period to period."""
    missing = max(0, last + 1 - len(places))
    blocks = -(-missing // sensitivity)
    powers = ratio ** np.arange(1.0, blocks + 1)
    tail = np.outer(powers, places[-sensitivity:]).ravel()
    return np.concatenate([places, tail])[: last + 1]


def with_tails(places: Floats, period: int, ratio: int, bits: int) -> Law:
    """The law of places whose last period goes on with the ratio; finite where that is empty.

    Places and tails are whole numbers of sum one; rounding goes to the centre, or where that is
    empty to the likeliest place.
    """
    tailed = bool(ratio and places[-period:].any())
    masses = places.copy() if tailed else np.trim_zeros(places, "b")
    cut = len(masses) - period * tailed
    masses[cut:] /= 1 - ratio / 2**bits
    whole = integers(masses[None, :])[0][0]
    total = 2 * sum(whole) - whole[0]
    fine = 64 + (total // min(value for value in whole if value)).bit_length() + 1
    scaled = [(value << fine) // total for value in whole]
    missing = (1 << fine) - (2 * sum(scaled) - scaled[0])
    likeliest = 0 if scaled[0] else max(range(cut), key=scaled.__getitem__)
    scaled[likeliest] += missing if likeliest == 0 else missing // 2
    tails = (tuple(scaled[cut:]), ratio, bits) if tailed else ()
    return Law(fine, tuple(scaled[:cut]), *tails)


def tidied(solution: Solution[int], window: Window) -> Floats:
    """z(0), …, z(n + Δ) of a solution for δ > 0: where an inequality outwards is exceeded by
    rounding only, the outer place is raised until it is not."""
    rest = 1 - window.ratio
    tails = solution.tails if solution.tails.sum() > 1e-14 else np.zeros(window.sensitivity)
    raw = np.concatenate([solution.window, tails * rest])
    least = 1e-16 * math.exp(min(0.0, LIFTED - window.epsilon))
    raw = np.where(raw < least * raw.max(), 0.0, raw)
    places = raw.tolist()
    ratio = math.exp(-window.epsilon)
    for k in range(1, len(places)):
        for shift in range(1, min(window.sensitivity + 1, 2 * k)):
            least = places[abs(k - shift)] * ratio
            if places[k] < least <= places[k] * (1 + _ROUNDING):
                places[k] = least
    return np.array(places)
