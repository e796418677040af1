"""Transport with gains, and what a guarantee for points is worth for distributions.

If p(o|i) <= e^{r_ij} p(o|j) for all i, j and o, then (aP)(o) <= Λ(a, b) (bP)(o), and Λ(a, b), the
largest a·v / b·v over v >= 0 with v_i <= e^{r_ij} v_j, is the least such factor: some mechanism
that keeps r attains it. Kawamoto and Murakami, ESORICS 2019, Theorem 2 has e^{ε W_∞(a, b)} in its
place, which is never smaller.

Mass a_i is sent to places j, where it counts e^{r_ij} times; the least λ with no more than λ b_j
arriving anywhere is that largest ratio (docs/theory/populations.md, "Carrying a guarantee over to
distributions"). Any plan proves an upper bound and any v a lower one. Both are evaluated here with
every rounding charged, so that whoever proposes them need not be trusted. Logarithms are kept
throughout: a, b and e^r may range as far as they like.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, normalised_rows, slices, square_array
from optmech.base.memory import require
from optmech.base.minplus import shortest_detour
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import probability, weights
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, product_up, sum_up
from optmech.exact.rounding import UNIT, down, exp_down, exp_up, log_floats, up
from optmech.spaces.prior import Distribution, weights_of
from optmech.transport import pivots

_FAR = 60.0
"""What is e^60 dearer than the decisive row is no use, what is as much cheaper all the same."""
_DUST = 1e-18
"""Shares of a row below this are left out."""
_CLOSE = 1e-9
"""Bounds farther apart than this, relatively, are compared with those that need no solver."""


class Logs(NamedTuple):
    """Logarithms of numbers >= 0 between floats; both -inf for 0."""

    low: Floats
    up: Floats

    @property
    def positive(self) -> np.ndarray:
        """Which numbers are not 0."""
        return self.up > -np.inf

    @property
    def middle(self) -> Floats:
        """A float within the bounds."""
        some = self.positive
        width = np.subtract(self.up, self.low, out=np.zeros_like(self.up), where=some)
        return self.low + 0.5 * width


class Arcs(NamedTuple):
    """Sparse plans, arrays of shape (k, e): ``share`` of its mass goes from ``source`` to
    ``target``; shares of a source sum to 1 up to a factor."""

    source: Ints
    target: Ints
    share: Floats


@record
class Gains:
    """Bounds of ln max a·v / b·v for k problems, and what proves them."""

    lower: Floats
    """Shape (k,)."""
    upper: Floats
    """Shape (k,); inf, as the lower bound, where b·v may be 0 while a·v is not."""
    arcs: Arcs
    """The plans that prove ``upper``; no shares where it is inf."""
    potentials: Floats
    """ln v at the targets, shape (k, m), which prove ``lower``; inf where b is 0."""


def gains(ratio: Floats, a: Logs, b: Logs, least: Floats | None = None) -> Gains:
    """Bounds for k problems at once, of r, shape (k, n, m), with entries above -inf, inf where
    there is no inequality, and ln a, shapes (k, n), and ln b, (k, m). ``least`` has entries at most
    those of ``ratio``: the lower bounds hold for every r between the two."""
    most = ratio
    least = ratio if least is None else least
    rows, columns = a.positive, b.positive
    with np.errstate(invalid="ignore"):
        logs = most + a.middle[:, :, None] - b.middle[:, None, :]
    counted = rows[:, :, None] & columns[:, None, :]
    logs = np.where(counted, logs, np.inf)
    cheapest = np.where(rows, logs.min(axis=2, initial=np.inf), -np.inf)
    decisive = cheapest.max(axis=1, initial=-np.inf)
    usable = np.isfinite(decisive)
    level = np.where(usable, decisive, 0.0)
    count, n, m = most.shape
    arcs, q = _no_arcs(count, n + m), np.zeros((count, m))
    # what is far from decisive is clipped
    relative = np.clip(logs - level[:, None, None], -_FAR, _FAR)
    pivots.least_arrivals(relative, rows & usable[:, None], columns, *arcs, q)
    arcs.share[~((arcs.share > _DUST) & np.isfinite(arcs.share))] = 0.0
    potentials = np.where(columns, q - np.where(columns, b.middle, 0.0), np.inf)
    lower = _lower(least, a, b, potentials)
    upper = proved_by(most, a, b, arcs)
    size = np.maximum(1.0, np.where(np.isfinite(lower), np.abs(lower), 1.0))
    poor = np.flatnonzero(usable & ~(upper - lower <= _CLOSE * size))
    if len(poor):
        one, other = (Logs(side.low[poor], side.up[poor]) for side in (a, b))
        simple, decay = _simple(most[poor], one, other, logs[poor])
        found = proved_by(most[poor], one, other, simple)
        _replace(poor, ~(upper[poor] <= found), (upper, *arcs), (found, *simple))
        found = _lower(least[poor], one, other, decay)
        _replace(poor, ~(lower[poor] >= found), (lower, potentials), (found, decay))
    infinite = np.where(decisive == np.inf, np.inf, -np.inf)
    return Gains(
        np.where(usable, lower, infinite), np.where(usable, upper, infinite), arcs, potentials
    )


def proved_by(ratio: Floats, a: Logs, b: Logs, arcs: Arcs) -> Floats:
    """Upper bounds of ln max a·v / b·v, (k,), that plans prove, whoever made them: ln of the
    largest arrival over b, rounded up; inf where a source sends nothing. ``ratio``, ``a`` and ``b``
    as of ``gains``."""
    count, n, m = ratio.shape
    each = np.arange(count)[:, None]
    sources, targets = each * n + arcs.source, each * m + arcs.target
    sent = np.bincount(sources.ravel(), arcs.share.ravel(), count * n)
    used = arcs.share > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = up(ratio[each, arcs.source, arcs.target] + a.up[each, arcs.source])
        logs = np.where(used, up(logs - b.low[each, arcs.target]), -np.inf)
        level = logs.max(axis=1)
        logs = up(logs - level[:, None])
        part = np.where(used, arcs.share / sent[sources] * exp_up(logs), 0.0)
    arrived = np.bincount(targets.ravel(), part.ravel(), count * m).reshape(count, m)
    # sums of the shares, the quotient, the product, sums of the parts
    most = max(n + m, arcs.share.shape[1])
    charged = arrived.max(axis=1) * (1 + 4 * (most + 4) * UNIT)
    complete = ((sent.reshape(count, n) > 0) | ~a.positive).all(axis=1)
    valid = complete & np.isfinite(charged) & (charged > 0)
    with np.errstate(invalid="ignore"):
        out = up(log_floats(np.where(valid, charged, 1.0))[1] + level)
    return np.where(valid, out, np.inf)


def _lower(ratio: Floats, a: Logs, b: Logs, potentials: Floats) -> Floats:
    """ln (a·u / b·v) for ln v = ``potentials`` and the largest u below e^r v, rounded down; -inf
    where that is no number."""
    with np.errstate(invalid="ignore", divide="ignore"):
        reached = down(ratio + potentials[:, None, :]).min(axis=2, initial=np.inf)
        above = np.where(a.positive, down(reached + a.low), -np.inf)
        below = np.where(b.positive, up(potentials + b.up), -np.inf)
        high, deep = above.max(axis=1), below.max(axis=1)
        value = exp_down(down(above - high[:, None])).sum(axis=1)
        cost = np.where(b.positive, exp_up(up(below - deep[:, None])), 0.0).sum(axis=1)
        value = value * (1 - 4 * above.shape[1] * UNIT)
        cost = cost * (1 + 4 * below.shape[1] * UNIT)
        valid = (value > 0) & np.isfinite(value) & (cost > 0) & np.isfinite(cost)
        gained = log_floats(np.where(valid, value, 1.0))[0]
        spent = log_floats(np.where(valid, cost, 1.0))[1]
        out = down(down(gained - spent) + down(high - deep))
    return np.where(valid & ~np.isnan(out), out, -np.inf)


def _simple(most: Floats, a: Logs, b: Logs, logs: Floats) -> tuple[Arcs, Floats]:
    """Plans and potentials that need no solver: every source sends all to where it is cheapest,
    and v falls off from the decisive source as fast as it may."""
    count, n, m = most.shape
    target = logs.argmin(axis=2)
    row = np.where(a.positive, logs.min(axis=2), -np.inf).argmax(axis=1)
    simple = _no_arcs(count, n + m)
    simple.source[:, :n], simple.target[:, :n] = np.arange(n), target
    simple.share[:, :n] = a.positive
    decay = -most[np.arange(count), row]
    # where r is inf v may be as small as one likes: e^-800 of the least other
    floor = np.where(np.isfinite(decay), decay, np.inf).min(axis=1) - 800.0
    return simple, np.where(b.positive, np.maximum(decay, floor[:, None]), np.inf)


def _no_arcs(count: int, size: int) -> Arcs:
    return Arcs(*(np.zeros((count, size), dtype=kind) for kind in (np.int64, np.int64, float)))


def _replace(
    places: Ints, better: np.ndarray, kept: Sequence[np.ndarray], new: Sequence[np.ndarray]
) -> None:
    """Put what is better of the new at its places, into each array."""
    for old, made in zip(kept, new, strict=True):
        old[places[better]] = made[better]


_LARGEST = 1e300
"""Finite entries of r above this are refused: their sums might overflow."""
_ENTRIES = 1_000_000
"""Entries of the arrays that are worked on at a time."""


@record
class CarryOver(Shown):
    """ln Λ(a, b) between proved bounds, with what proves them.

    Examples
    --------
    >>> r = np.array([[0, 1.0], [1.0, 0]])  # ε = 1 between two points
    >>> c = om.guarantees.carry_over(r, [1, 0], [0, 1])
    >>> print(round(c.lower, 6), round(c.upper, 6))
    1.0 1.0
    >>> print(round(c.estimated(0.01, 0.01), 4))  # δ where populations are known within 1 %
    0.0372
    """

    lower: float
    """Some mechanism that keeps r tells a from b by no less."""
    upper: float
    """No mechanism that keeps r tells a from b by more; inf where nothing is promised."""
    sources: Ints
    """Where a has mass, s places."""
    targets: Ints
    """Where b has mass, t places."""
    shares: Floats
    """Which part of its mass each source sends to each target, (s, t): rows of sum 1 up to rounding
    prove ``upper``. Zeros where it is inf."""
    potentials: Floats
    """ln v for every place, shape (n,): v_i <= e^{r_ij} v_j and ln (a·v / b·v) is at least
    ``lower``. inf where v may be as large as one likes."""
    masses: Floats
    """What each source holds, of sum 1."""

    @property
    def plan(self) -> Floats:
        """γ, shape (n, n): row i sums to a_i, and Σ_i γ_ij e^{r_ij} <= e^upper b_j."""
        out = np.zeros((len(self.potentials), len(self.potentials)))
        out[np.ix_(self.sources, self.targets)] = self.masses[:, None] * self.shares
        return out

    def estimated(self, first: Number, second: Number, delta: Number = 0.0) -> float:
        """δ for populations that are known roughly: (``upper``, δ)-distribution privacy holds for
        all pairs within total variation ``first`` of a and ``second`` of b.

        ``delta`` is that of the points: p(S|i) <= e^{r_ij} p(S|j) + ``delta`` for all sets S, with
        r after shortest paths, along which δ is not kept.
        """
        named = {"first": first, "second": second, "delta": delta}
        parts = [stated_up(probability(value, name)) for name, value in named.items()]
        if parts[1] == 0:
            return min(1.0, sum_up(parts[0], parts[2]))
        grown = product_up(float(exp_up(np.array(self.upper))), parts[1])
        return min(1.0, sum_up(parts[0], grown, parts[2]))


def carry_over(log_ratio: ArrayLike, a: Distribution, b: Distribution) -> CarryOver:
    """The least ln Λ >= 0 with (aP)(o) <= Λ (bP)(o) for all o and every P that keeps ``log_ratio``.

    Parameters
    ----------
    log_ratio:
        r >= 0, shape (n, n), for instance ε d: p(o|i) <= e^{r_ij} p(o|j). It need not be symmetric;
        inf where nothing is stated. Shortest paths are taken first, as the inequalities compose,
        the diagonal counts as 0, and r_ji as 0 where r_ij is: rows whose entries are at most those
        of another are equal to it, as both sum to one. Entries count as the floats that they are.
    a, b:
        Weights >= 0 of any positive sum, shape (n,), or priors; as their floats are, over their
        sums.

    Raises
    ------
    ProblemError
        On unusable ratios or weights.

    Examples
    --------
    >>> r = np.array([[0, 1.0], [1.0, 0]])
    >>> c = om.guarantees.carry_over(r, [0.75, 0.25], [0.25, 0.75])
    >>> print(round(c.upper, 4))  # ln of (3 e + 1) / (e + 3), less than 1
    0.4706
    """
    return carry_over_many(log_ratio, [a], [b])[0]


def carry_over_many(
    log_ratio: ArrayLike, firsts: Sequence[Distribution], seconds: Sequence[Distribution]
) -> list[CarryOver]:
    """``carry_over`` for the pairs (firsts[k], seconds[k]), thousands of small ones a second.

    Examples
    --------
    >>> r = np.array([[0, 1.0], [1.0, 0]])
    >>> many = om.guarantees.carry_over_many(r, [[1, 0], [1, 1]], [[0, 1], [1, 1]])
    >>> [round(c.upper, 4) for c in many]
    [1.0, 0.0]
    """
    firsts, seconds = _listed(firsts, "firsts"), _listed(seconds, "seconds")
    if len(firsts) != len(seconds):
        raise ProblemError(
            f"{len(seconds)} distributions for {len(firsts)} first ones", where="seconds"
        )
    least, most = closed(log_ratio)
    count = len(most)
    named = (("a", "firsts", firsts), ("b", "seconds", seconds))
    given = np.array(
        [
            [
                weights(weights_of(lam), alone if len(listed) == 1 else f"{many}[{k}]", count)
                for k, lam in enumerate(listed)
            ]
            for alone, many, listed in named
        ]
    ).reshape(2, -1, count)
    shapes = np.count_nonzero(given, axis=2).T
    out: dict[int, CarryOver] = {}
    for part in together(shapes.prod(axis=1), shapes):
        out.update(zip(part.tolist(), _bounded(least, most, *given[:, part]), strict=True))
    return [out[k] for k in range(len(firsts))]


def together(entries: Ints, shapes: Ints) -> Iterator[Ints]:
    """Indices of equal rows of ``shapes``, in parts of not too many ``entries``."""
    for shape in np.unique(shapes, axis=0):
        alike = np.flatnonzero((shapes == shape).all(axis=1))
        for part in slices(len(alike), int(entries[alike[0]]), _ENTRIES):
            yield alike[part]


def _listed(given: Sequence[Distribution], where: str) -> Sequence[Distribution]:
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise ProblemError(f"{type(given).__name__} is not a list of weights", where=where)
    return given


def closed(log_ratio: ArrayLike) -> tuple[Floats, Floats]:
    """r closed under shortest paths and, where it is 0 one way, the other way, between floats below
    and above it."""
    ratio = square_array(log_ratio, "log_ratio").copy()
    if not ((ratio >= 0) & ((ratio <= _LARGEST) | (ratio == np.inf))).all():
        raise ProblemError(
            "an entry is negative, not a number, or finite and above 1e300",
            where="log_ratio",
            remedy="Give logarithms of ratios >= 1, inf where nothing is stated",
        )
    require(8.0 * ratio.nbytes, what="shortest paths", where="log_ratio", remedy="Merge places")
    np.fill_diagonal(ratio, 0.0)
    # rows of which no entry of one is larger are equal, as both sum to one
    ratio[(ratio == 0).T] = 0.0
    count = len(ratio)
    most = ratio.copy()
    charge = 0
    while (shortest_detour(ratio) < ratio).any():
        for k in range(count):
            np.minimum(ratio, ratio[:, k, None] + ratio[k], out=ratio)
        charge += count
        most = np.where(ratio < most, up(ratio * (1 + 2 * charge * UNIT)), most)
    # no detour of two legs is shorter up to a rounding, hence none of 2^k up to k of them
    depth = math.ceil(math.log2(count + 1)) + 2
    return down(ratio * (1 - 2 * depth * UNIT)), most


def _bounded(least: Floats, most: Floats, first: Floats, second: Floats) -> list[CarryOver]:
    """Bounds for rows of weights with equally many places of mass each."""
    count = len(first)
    sources = np.nonzero(first)[1].reshape(count, -1)
    targets = np.nonzero(second)[1].reshape(count, -1)
    a, b = np.take_along_axis(first, sources, 1), np.take_along_axis(second, targets, 1)
    where = sources[:, :, None], targets[:, None, :]
    found = gains(most[where], normalised_logs(a), normalised_logs(b), least[where])
    shares, arcs = np.zeros((count, sources.shape[1], targets.shape[1])), found.arcs
    np.add.at(shares, (np.arange(count)[:, None], arcs.source, arcs.target), arcs.share)
    sent = shares.sum(axis=2, keepdims=True)
    shares /= np.where(sent > 0, sent, 1.0)
    shares[found.upper == np.inf] = 0.0
    masses = normalised_rows(a / a.max(axis=1, keepdims=True))
    out = []
    for k, same in enumerate((first == second).all(axis=1).tolist()):
        lower, upper = (max(float(ends[k]), 0.0) for ends in (found.lower, found.upper))
        if same:
            lower, upper = 0.0, 0.0
            shares[k] = np.eye(len(sources[k]))
        # equal numbers v_i prove 0
        proof = np.zeros(len(least))
        if lower > 0:
            proof = (least[:, targets[k]] + found.potentials[k]).min(axis=1)
        out.append(CarryOver(lower, upper, sources[k], targets[k], shares[k], proof, masses[k]))
    return out


def normalised_logs(masses: Floats) -> Logs:
    """ln of weights over the sums of their rows, shape (k, n), each row with a positive one."""
    low, high = log_floats(masses)
    top = np.frexp(masses.max(axis=1))[1]
    total = np.ldexp(masses, -top[:, None]).sum(axis=1)
    # what underflows in the scaling is less than a rounding
    charge = 4 * (masses.shape[1] + 4) * UNIT
    shift = top * math.log(2)
    about = up(np.abs(shift) * 2.0**-51) + 2.0**-1000
    below = log_floats(total * (1 - charge))[0] + shift - about
    above = log_floats(total * (1 + charge))[1] + shift + about
    return Logs(down(low - up(above)[:, None]), up(high - down(below)[:, None]))


def least_log_factor(log_ratio: Floats, a: Sequence[float], b: Sequence[float]) -> float:
    """ln Λ from above, for inequalities between the places of a and those of b alone:
    ``log_ratio``, shape (n, m), entries >= 0, inf where nothing is stated. No paths are taken, so
    that it may be used together with a δ. a and b are weights >= 0 that may be off by 2^-52 of
    themselves."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    sources, targets = np.flatnonzero(first), np.flatnonzero(second)
    ratio = np.ascontiguousarray(log_ratio[np.ix_(sources, targets)])[None]
    one, other = (
        Logs(down(logs.low - 2.0**-50), up(logs.up + 2.0**-50))
        for logs in (normalised_logs(first[None, sources]), normalised_logs(second[None, targets]))
    )
    return max(0.0, float(gains(ratio, one, other).upper[0]))
