"""Coarser problems of any ratios: a lower bound from cells, a mechanism from landmarks.

``coarsened`` is ``aggregation`` with costs in closed form, which thousands of observables need: the
columns inside a cell lie in a box around a level of their own, and the least mean cost over a box
is found by sorting. ``Landmarks`` restrict a problem to some of its secrets, each with the weight
and the mean costs of those around it; what is designed for them is carried back by ``lifted``.
Proofs: docs/theory.md, "Cells and landmarks".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.exact.rounding import exp_down, exp_up, up
from optmech.reductions.aggregation import Coarse, Members, assembled, near_pairs, ratios_between
from optmech.spaces.prior import Prior

_UNIT = 2.0**-53
_SWEEPS = 40
_ENTRIES = 4_000_000
"""Of the arrays that are worked on at a time."""
_CLOSE = 24
"""Nearest cells of each whose exact ratios are found."""

Limits = Callable[[Ints, Ints], Floats]
"""Floats not below the log ratios between secrets, for index arrays that broadcast."""


def coarsened(prior: Prior, cost: Floats, limits: Limits, cells: Ints) -> Coarse:
    """A problem over cells whose optimum no mechanism for the secrets undercuts that keeps the
    ratios ``limits``; ``cost`` (n, O) >= 0 is the loss, ``cells`` (n,) the cell of every secret."""
    members = Members.of(prior, cells, len(cost))
    centres = members.representatives

    def blocks(i: Ints, j: Ints) -> Floats:
        return limits(i[:, :, None], j[:, None, :])

    near = near_pairs(limits(centres[:, None], centres[None, :]), _CLOSE)
    ratio = ratios_between(members, blocks, near)
    least = boxed_costs(members, cost, box_radii(members, limits))
    return assembled(members, least, ratio).undivided(prior)


def radii(ratio: Floats) -> Floats:
    """f >= 0 with f_s + f_t >= r_st for all s, t, small ones: (k,). Every column of the cone is
    then within factors e^{±f_s} of one level."""
    both = np.maximum(ratio, ratio.T)
    np.fill_diagonal(both, 0.0)
    f = np.full(len(both), 0.5 * float(both.max(initial=0.0)))
    for _ in range(_SWEEPS):
        f = np.maximum(0.5 * (f + (both - f).max(axis=1)), 0.0)
    missing = float((both - f[:, None] - f).max(initial=0.0))
    # two roundings in the sums above, and two in whoever adds these, of such numbers
    return np.asarray(up(f + max(0.5 * missing, 0.0) + 16 * _UNIT * float(both.max(initial=0.0))))


def box_radii(members: Members, limits: Limits) -> list[Floats]:
    """``radii`` of the members of every cell."""
    return [radii(limits(group[:, None], group[None, :])) for group in members.groups]


def boxed_costs(members: Members, cost: Floats, boxes: list[Floats]) -> Floats:
    """Floats below the least mean cost of every observable over the columns of every cell, which
    have ``boxes`` f (``radii``).

    Σ a c v / Σ a v over v between e^{-f} and e^f is least where v is e^f for the cheapest and
    e^{-f} for the others: one of as many candidates as there are members. Each is a quotient of
    sums of numbers >= 0, whose rounding is charged. Shape (K, O).
    """
    out = np.empty((len(members.groups), cost.shape[1]))
    for k, group in enumerate(members.groups):
        f = boxes[k]
        weight = members.mass[group]
        high, low = weight * exp_up(f), weight * exp_down(-f)
        for part in _columns(len(group), cost.shape[1]):
            own = cost[group, part]
            order = np.argsort(own, axis=0)
            own = np.take_along_axis(own, order, axis=0)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                over = _cheapest_high(own * high[order], own * low[order])
                under = _cheapest_high(high[order], low[order])
                found = over / under
            # where a sum overflows or vanishes the cheapest member still is below every mean
            out[k, part] = np.where(np.isfinite(found), found, own[0]).min(axis=0)
        out[k] *= 1 - (4 * len(group) + 64) * _UNIT
    return np.maximum(out, 0.0)


def _cheapest_high(high: Floats, low: Floats) -> Floats:
    """Σ of the first q ``high`` and of the other ``low``, q = 0 to k, (k + 1, O)."""
    none = np.zeros((1, high.shape[1]))
    before = np.vstack([none, np.cumsum(high, axis=0)])
    after = np.vstack([np.cumsum(low[::-1], axis=0)[::-1], none])
    return np.asarray(before + after)


def _columns(rows: int, columns: int) -> list[slice]:
    step = max(1, _ENTRIES // max(1, rows))
    return [slice(begin, begin + step) for begin in range(0, columns, step)]


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Some of the secrets, each for those around it."""

    chosen: Ints
    """(K,): their numbers."""
    weight: Floats
    """(K,): the prior of those around."""
    cost: Floats
    """(K, O): the mean costs of those around, by prior."""

    @classmethod
    def of(cls, points: Floats, prior: Floats, cost: Floats, cells: Ints) -> Landmarks:
        """The secret nearest to the middle of every cell; ``points`` (n, 2)."""
        chosen, weight, mean = [], [], []
        order = np.argsort(cells, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
            mass = prior[group]
            total = float(mass.sum())
            share = mass / total if total > 0 else np.full(len(group), 1 / len(group))
            middle = points[group].mean(axis=0)
            away = ((points[group] - middle) ** 2).sum(axis=1)
            chosen.append(int(group[away.argmin()]))
            weight.append(total)
            mean.append(share @ cost[group])
        return cls(np.array(chosen), np.array(weight), np.array(mean))


def lifted(columns: Floats, limits: Limits, chosen: Ints, count: int) -> Floats:
    """Columns for all ``count`` secrets from those of the ``chosen`` ones (K, O), in the cone.

    The geometric mean of the least column above and the largest below that the ratios allow from
    the landmarks: each is in the cone, and so is their mean. Secrets are worked on in parts.
    """
    out = np.empty((count, columns.shape[1]))
    inverse = np.where(columns > 0, 1 / np.where(columns > 0, columns, 1.0), 0.0)
    step = max(1, _ENTRIES // max(1, columns.shape[1]) // 8)
    for begin in range(0, count, step):
        part = np.arange(begin, min(count, begin + step))
        to = np.exp(-limits(part[:, None], chosen[None, :]))
        back = np.exp(-limits(chosen[None, :], part[:, None]))
        low, high = np.zeros((len(part), columns.shape[1])), np.zeros_like(out[part])
        product = np.empty_like(low)
        for k in range(len(chosen)):
            np.multiply(back[:, k, None], columns[k], out=product)
            np.maximum(low, product, out=low)
            np.multiply(to[:, k, None], inverse[k], out=product)
            np.maximum(high, product, out=high)
        out[part] = np.sqrt(low / np.where(high > 0, high, np.inf))
    return out
