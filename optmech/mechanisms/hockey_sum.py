"""E[max(0, Y₁ + … + Y_n)] for independent copies of a finite Y, and E[ln(X + Y₁ + … + Y_k)] for
non-negative ones, between rigorous bounds.

Two ways to the first, of which the first is taken where it is small enough:

* **Halves.** The multisets of ⌊n/2⌋ and ⌈n/2⌉ atoms are listed with their sums and probabilities;
  sorted suffix sums of one half serve every entry of the other. Only rounding is uncertain.
* **Lattice.** Every atom is spread over its two neighbours on a lattice of step h, keeping its
  mean. The sum S' of spread copies is S + Ξ with E[Ξ|S] = 0, so that E max(0, S') >= E max(0, S)
  by Jensen's inequality; the excess is bounded through P(|S'| small) (docs/theory/targets.md). The
  law of S' is a power of a discrete Fourier transform, on a window outside which Chernoff's bound
  leaves nothing to speak of; the error of the transform is bounded by its norm.
"""

import math
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.exact.number import Interval
from optmech.exact.rounding import UNIT as UNIT, depth, suffix_depth, suffix_sums, total

_MOST_MULTISETS = 300_000
_MOST_FACTORS = 170
"""Factorials of more are no floats."""
_TAIL = 1e-25
"""What Chernoff's bound may leave outside the window on either side."""


def positive_part(values: Floats, weights: Floats, copies: int, nodes: int) -> Interval:
    """E[max(0, Y₁ + … + Y_copies)], Y = values[k] with probability weights[k].

    ``weights`` are positive and sum to one but for a few units in the last place of each, and so
    are values: both are accounted for. ``nodes`` is the length of the lattice.
    """
    size = float(total(weights * np.abs(values)))
    if size == 0:
        return Interval(0.0, 0.0)
    # values and weights known to 8 units each, sums of equal ones, and of `copies` terms
    noise = (32 + 4 * copies + 2 * len(values)) * UNIT * copies * size
    if values.min() >= 0 or values.max() <= 0:
        mean = copies * size if values.min() >= 0 else 0.0
        return widened(mean, mean, noise)
    values, weights = _merged(values, weights)
    half = (copies + 1) // 2
    listed = math.comb(len(values) + half - 1, half)
    if half <= _MOST_FACTORS and listed <= _MOST_MULTISETS:
        exact = _halves(values, weights, copies)
        units = 2 * suffix_depth(listed) + 2 * depth(listed) + 8
        return widened(exact, exact, noise + units * UNIT * copies * size)
    found = _Lattice(values, weights, copies, nodes).bounds()
    return widened(found.lower, found.upper, noise)


def widened(lower: float, upper: float, by: float) -> Interval:
    """An interval of numbers >= 0 whose ends may be off by so much."""
    return Interval(max(0.0, lower - by), upper + by)


def _merged(values: np.ndarray, weights: Floats) -> tuple[np.ndarray, Floats]:
    """Every value once, with the sum of its weights."""
    distinct, where = np.unique(values, return_inverse=True)
    return distinct, np.bincount(where, weights=weights).astype(np.float64)


def _halves(values: Floats, weights: Floats, copies: int) -> float:
    """E max(0, A + B) with A, B the sums of the two halves, A sorted with suffix sums."""
    first, p = _multisets(values, weights, (copies + 1) // 2)
    second, q = _multisets(values, weights, copies // 2)
    order = np.argsort(first)
    first, p = first[order], p[order]
    mass, moment = suffix_sums(p), suffix_sums(p * first)
    start = np.searchsorted(first, -second)
    return float(total(q * np.maximum(moment[start] + second * mass[start], 0.0)))


def _multisets(values: Floats, weights: Floats, size: int) -> tuple[Floats, Floats]:
    """Sum and probability of every multiset of ``size`` atoms."""
    if size == 0:
        return np.zeros(1), np.ones(1)
    picks = np.array(list(combinations_with_replacement(range(len(values)), size)))
    changes = picks[:, 1:] != picks[:, :-1]
    orders = np.full(len(picks), float(math.factorial(size)))
    run = np.ones(len(picks))
    for k in range(1, size):
        run = np.where(changes[:, k - 1], 1.0, run + 1)
        orders /= run
    return values[picks].sum(axis=1), weights[picks].prod(axis=1) * orders


def _norm(values: np.ndarray) -> float:
    """The 2-norm."""
    return float(np.sqrt((values**2).sum()))


def fourier_error(size: int, power: int, norm: float, result: float) -> float:
    """Bounds the 2-norm of the error of an inverse transform of a product of ``power`` transforms
    of laws of 2-norm at most ``norm``; ``result`` is the 2-norm of what came out.

    A transform errs by at most 8 log2(size) units relative in the 2-norm (Higham, Accuracy and
    Stability, Theorem 24.2, with room); factors are at most 1 in absolute value, so that errors
    of a product add up, and as much again is allowed for the multiplications.
    """
    return 8 * math.log2(size) * UNIT * (2 * power * norm + result)


def spread(scaled: Floats, weights: Floats) -> tuple[Ints, Floats]:
    """Every atom on the two whole numbers around it, its mean kept."""
    below = np.floor(scaled).astype(np.int64)
    share = scaled - below
    return np.append(below, below + 1), np.append(weights * (1 - share), weights * share)


def spread_reach(terms: int, step: float) -> tuple[float, float]:
    """(t, P): a sum of ``terms`` centred terms of range ``step`` exceeds t in absolute value with
    probability at most P: never, or by Hoeffding's inequality."""
    if terms <= 25:
        return terms * step, 0.0
    return 5 * math.sqrt(terms) * step, 2 * math.exp(-50.0)


class CyclicSums:
    """The law of a sum of copies of a spread Y on a cyclic lattice, made of atoms at whole numbers
    of steps. ``least`` is the least that the window reaches to either side."""

    atoms: Ints
    mass: Floats

    def __init__(
        self, values: Floats, weights: Floats, copies: int, nodes: int, least: float = 0.0
    ) -> None:
        self.copies, self.nodes = copies, nodes
        low, high = float(values.min()), float(values.max())
        # spreading widens the tails a little: they are bounded again, at the ends of the window
        top = max(-low, high, least)
        left = max(top, min(reach(-values, weights, copies), -copies * low))
        right = max(top, min(reach(values, weights, copies), copies * high))
        margin = 2 * copies + 4
        self.step = 1.02 * (left + right) / (nodes - 2 * margin)
        self.first = math.floor((-1.01 * left - margin * self.step) / self.step)

    @cached_property
    def law(self) -> tuple[Floats, Floats, float]:
        """Places, the cyclic law at them, and the 2-norm of its error."""
        from scipy.fft import irfft, rfft

        n, size = self.copies, self.nodes
        law = np.bincount(self.atoms % size, weights=self.mass, minlength=size)
        norm = _norm(law)
        power = irfft(rfft(law) ** n, size)
        places: Floats = (self.first + np.arange(size, dtype=np.float64)) * self.step
        cyclic = np.maximum(np.roll(power, -(self.first % size)), 0.0)
        return places, cyclic, fourier_error(size, n, norm, _norm(power))

    def expected(self, values: Floats) -> tuple[float, float]:
        """The mean of a function that has these values at the places, and the error of the
        transform in it."""
        _, cyclic, fourier = self.law
        return float(total(cyclic * values)), fourier * _norm(values)

    @cached_property
    def outside(self) -> tuple[float, float]:
        """P(S' outside the window) and E[S'; S' beyond its right end], by Chernoff's bound."""
        values: Floats = (self.atoms * self.step).astype(np.float64)
        n = self.copies
        left, right = self.first * self.step, (self.first + self.nodes - 1) * self.step
        lower = 0.0 if n * values.min() >= left else chernoff(-values, self.mass, n, -left)[0]
        if n * values.max() <= right:
            return lower, 0.0
        upper, moment = chernoff(values, self.mass, n, right)
        return lower + upper, moment


class _Lattice(CyclicSums):
    """Bounds from the law of the spread sum on a cyclic lattice."""

    def __init__(self, values: Floats, weights: Floats, copies: int, nodes: int) -> None:
        super().__init__(values, weights, copies, nodes)
        self.atoms, self.mass = _merged(*spread(values / self.step, weights))

    def bounds(self) -> Interval:
        """The interval; see the module's docstring for why it holds."""
        places = self.law[0]
        positive = np.maximum(places, 0.0)
        mean, blur = self.expected(positive)
        outside, beyond = self.outside
        rounding = 2 * depth(self.nodes) * UNIT * mean
        upper = mean + blur + beyond + rounding
        spread = self._excess(places, outside)
        # mass of the outside that the cycle maps into the window counts at most the largest place
        lower = upper - 2 * (blur + beyond + rounding) - outside * float(positive[-1]) - spread
        return Interval(max(0.0, lower), upper)

    def _excess(self, places: Floats, outside: float) -> float:
        """Bounds E max(0, S') - E max(0, S).

        Ξ is a sum of n centred terms of range h, independent given the atoms that S is the sum of.
        The expected excess given them is at most E[(|Ξ| - |S|)⁺]: at most √n h/2 everywhere, and by
        Hoeffding's inequality below ∫ 2 e^{-2t²/nh²} dt from a = |s| on where |s| > a.
        """
        n, h = self.copies, self.step
        reach, beyond = spread_reach(n, h)
        far = math.sqrt(n) * h * beyond
        near = np.abs(places) <= 2 * reach
        chance = sum(self.expected(near.astype(np.float64))) + outside + beyond
        return math.sqrt(n) * h / 2 * min(chance, 1.0) + far


def reach(values: Floats, weights: Floats, copies: int) -> float:
    """A W with P(Y₁ + … + Y_copies >= W) <= _TAIL, by Chernoff's bound on a range of rates."""
    return min(
        (copies * _log_moment(values, weights, rate) - math.log(_TAIL)) / rate
        for rate in _rates(values)
    )


def chernoff(values: Floats, weights: Floats, copies: int, at: float) -> tuple[float, float]:
    """Bounds of P(S >= at) and E[S; S >= at] for at > 0.

    max(0, s) e^{-ts} decreases for s >= 1/t, so that E[S; S >= at] <= at e^{-t at} E e^{tS}.
    """
    if at <= 0:
        return 1.0, math.inf
    chance, moment = 1.0, math.inf
    for rate in _rates(values):
        bound = math.exp(min(0.0, copies * _log_moment(values, weights, rate) - rate * at))
        chance = min(chance, bound)
        if rate * at >= 1:
            moment = min(moment, at * bound)
    return chance, moment


def _rates(values: Floats) -> list[float]:
    rates: list[float] = (
        np.geomspace(1e-3, 1e3, 61) / (float(np.abs(values).max()) or 1.0)
    ).tolist()
    return rates


def _log_moment(values: Floats, weights: Floats, rate: float) -> float:
    """ln E e^{rate Y}, rounded up a little."""
    shift = rate * float(values.max())
    return shift + math.log(weights @ np.exp(rate * values - shift)) + 1e-12


def expected_log(
    values: Floats, first: Floats, others: Floats, copies: int, nodes: int, units: int
) -> Interval:
    """E ln S, S = X + Y₁ + … + Y_copies, where X takes values[k] with probability first[k] and
    every Y with probability others[k]. S > 0 almost surely is assumed.

    Values are known to ``units`` units in the last place each, and so are probabilities.

    Terms are spread over a lattice of step h with their means kept: S' = S + Ξ, E[Ξ|S] = 0. Let
    g be ln, continued below the least positive S by its tangent: g is concave, so that
    E g(S') <= E ln S, and by Taylor's formula the difference is at most
    E[Ξ²/2 max(S' - |Ξ|, least)²] (docs/theory/targets.md). The law of S' comes from Fourier
    transforms over its whole range, with their error bounded by its norm.
    """
    from scipy.fft import irfft, rfft

    terms = copies + 1
    step = terms * float(values.max()) / (nodes - 2 * terms - 2)
    one, many = (np.bincount(*spread(values / step, p), nodes) for p in (first, others))
    law = np.maximum(irfft(rfft(one) * rfft(many) ** copies, nodes), 0.0)
    norms = [*map(_norm, (one, many, law))]
    blur_unit = fourier_error(nodes, terms, max(norms[:2]), norms[2])
    least = float(values[(values > 0) & (first + others > 0)].min())
    sums = np.arange(nodes) * step
    logs = np.log(np.maximum(sums, least)) + np.minimum(sums - least, 0.0) / least
    # the law has mass one: a constant may be taken off before errors are multiplied
    centre = math.log(max(float(total(law * sums)), least))
    centred = law * (logs - centre)
    blur = blur_unit * _norm(logs - centre)
    blur += 2 * depth(nodes) * UNIT * float(np.abs(centred).sum())
    # no sum is outside these: probabilities that are a little off move the mean by no more
    low, high = math.log(least), math.log(terms * values.max())
    off = terms * (units + 2 * len(values)) + 16
    blur += off * UNIT * (1 + abs(centre) + max(abs(low), abs(high)))
    reach, chance = spread_reach(terms, step)
    with np.errstate(all="ignore"):
        curvature = (reach / np.maximum(sums - reach, least)) ** 2 / 2
        lost = float(total(law * curvature)) * (1 + 2.0**-40)
        lost += blur_unit * _norm(curvature)
    if chance:
        farthest = terms * step / least
        lost += chance * farthest * farthest / 2
    value = centre + float(total(centred))
    upper = value + lost + blur if math.isfinite(lost) else math.inf
    room = 16 * UNIT * (1 + abs(low) + abs(high))
    return Interval(max(value - blur, low - room), min(upper, high + room))
