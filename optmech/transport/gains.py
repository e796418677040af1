"""Transport with gains: the largest a·v / b·v over v >= 0 with v_i <= e^{r_ij} v_j, between proved
bounds.

Mass a_i is sent to places j, where it counts e^{r_ij} times; the least λ with no more than λ b_j
arriving anywhere is that largest ratio (docs/theory.md, "Carrying a guarantee over to
distributions"). Any plan proves an upper bound and any v a lower one. Both are evaluated here with
every rounding charged, so that whoever proposes them need not be trusted. Logarithms are kept
throughout: a, b and e^r may range as far as they like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.exact.rounding import down, exp_down, exp_up, log_floats, up

_FAR = 60.0
"""What is e^60 dearer than the decisive row is no use, what is as much cheaper all the same."""
_DUST = 1e-18
"""Shares of a row below this are left out."""
_CLOSE = 1e-9
"""Bounds farther apart than this, relatively, are compared with those that need no solver."""
_UNIT = 2.0**-53


class Logs(NamedTuple):
    """Logarithms of numbers >= 0 between floats; both -inf for 0."""

    low: Floats
    up: Floats

    @property
    def positive(self) -> np.ndarray:
        """Which numbers are not 0."""
        return np.asarray(self.up > -np.inf)

    @property
    def middle(self) -> Floats:
        """A float within the bounds."""
        some = self.positive
        width = np.subtract(self.up, self.low, out=np.zeros_like(self.up), where=some)
        return np.asarray(self.low + 0.5 * width)


class Arcs(NamedTuple):
    """Sparse plans, arrays of shape (k, e): ``share`` of its mass goes from ``source`` to
    ``target``; shares of a source sum to 1 up to a factor."""

    source: Ints
    target: Ints
    share: Floats


@dataclass(frozen=True, eq=False)
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
    arcs, q = _proposed(logs - level[:, None, None], rows, columns, usable)
    potentials = np.where(columns, q - np.where(columns, b.middle, 0.0), np.inf)
    lower = _lower(least, a, b, potentials)
    upper = proved_by(most, a, b, arcs)
    size = np.maximum(1.0, np.where(np.isfinite(lower), np.abs(lower), 1.0))
    poor = np.flatnonzero(usable & ~(upper - lower <= _CLOSE * size))
    if len(poor):
        _with_simple_ones(poor, (least, most), a, b, logs, (lower, upper), arcs, potentials)
    infinite = np.where(decisive == np.inf, np.inf, -np.inf)
    return Gains(
        np.where(usable, lower, infinite), np.where(usable, upper, infinite), arcs, potentials
    )


def _proposed(
    relative: Floats, rows: np.ndarray, columns: np.ndarray, usable: np.ndarray
) -> tuple[Arcs, Floats]:
    """Plans and ln b v of the targets, close to the best; what is far from decisive is clipped."""
    from optmech.transport.gain_kernels import least_arrivals  # may load a compiler

    count, n, m = relative.shape
    arcs = Arcs(
        np.zeros((count, n + m), dtype=np.int64),
        np.zeros((count, n + m), dtype=np.int64),
        np.zeros((count, n + m)),
    )
    q = np.zeros((count, m))
    clipped = np.clip(relative, -_FAR, _FAR)
    least_arrivals(clipped, rows & usable[:, None], columns, *arcs, q)
    arcs.share[~((arcs.share > _DUST) & np.isfinite(arcs.share))] = 0.0
    return arcs, q


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
    charged = arrived.max(axis=1) * (1 + 4 * (most + 4) * _UNIT)
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
        value = value * (1 - 4 * above.shape[1] * _UNIT)
        cost = cost * (1 + 4 * below.shape[1] * _UNIT)
        valid = (value > 0) & np.isfinite(value) & (cost > 0) & np.isfinite(cost)
        gained = log_floats(np.where(valid, value, 1.0))[0]
        spent = log_floats(np.where(valid, cost, 1.0))[1]
        out = down(down(gained - spent) + down(high - deep))
    return np.where(valid & ~np.isnan(out), out, -np.inf)


def _with_simple_ones(
    poor: Ints,
    ratios: tuple[Floats, Floats],
    a: Logs,
    b: Logs,
    logs: Floats,
    bounds: tuple[Floats, Floats],
    arcs: Arcs,
    potentials: Floats,
) -> None:
    """Improve bounds in place by those that need no solver: every source sends all to where it is
    cheapest, and v falls off from the decisive source as fast as it may."""
    lower, upper = bounds
    least, most = (ratio[poor] for ratio in ratios)
    a, b = Logs(a.low[poor], a.up[poor]), Logs(b.low[poor], b.up[poor])
    count, n, m = most.shape
    target = logs[poor].argmin(axis=2)
    cost = np.take_along_axis(logs[poor], target[:, :, None], axis=2)[:, :, 0]
    row = np.where(a.positive, cost, -np.inf).argmax(axis=1)
    simple = Arcs(*(np.zeros((count, n + m), dtype=kind) for kind in (np.int64, np.int64, float)))
    simple.source[:, :n], simple.target[:, :n] = np.arange(n), target
    simple.share[:, :n] = a.positive
    found = proved_by(most, a, b, simple)
    better = ~(upper[poor] <= found)
    upper[poor[better]] = found[better]
    for kept, new in zip(arcs, simple, strict=True):
        kept[poor[better]] = new[better]
    decay = -most[np.arange(count), row]
    # where r is inf v may be as small as one likes: e^-800 of the least other
    floor = np.where(np.isfinite(decay), decay, np.inf).min(axis=1) - 800.0
    decay = np.where(b.positive, np.maximum(decay, floor[:, None]), np.inf)
    found = _lower(least, a, b, decay)
    better = ~(lower[poor] >= found)
    lower[poor[better]] = found[better]
    potentials[poor[better]] = decay[better]
