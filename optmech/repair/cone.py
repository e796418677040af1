"""Making columns satisfy ratio constraints, and rows sum to one, without leaving the cone.

The cone K = {v >= 0: v_i <= e^{r_ij} v_j} is closed under maxima, so every column has a least
majorant in K; lifted rows a·v <= f b·v are met by adding constants, and neither is lost when the
rows are completed. ``docs/theory/repair.md`` ("Repair") proves what is used here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints, normalised_rows, slices
from optmech.base.minplus import max_times, open_by, shortest_paths
from optmech.base.read_only import record
from optmech.certificate.bound import forced_zeros
from optmech.exact.rounding import UNIT
from optmech.lp.families.base import LARGEST_LOG
from optmech.lp.families.ratios import NO_ROOM
from optmech.lp.inequalities import Inequalities

_MARGIN = 1e-13
"""Taken off every factor, relatively, so that later roundings cannot break an inequality."""
MARGIN = 2e-14
"""Taken off every log ratio, so that later roundings cannot break an inequality."""
ROUNDING = 4e-15
"""Row sums that differ by no more are divided by: the margin covers what that does to ratios."""
_LEAST_SHARE, _MOST_SHARE = 1e-12, 1e-6
"""Of the ratios of many points that are closed as they are: room for what they were rounded by."""
_AT_A_TIME = 2**20
"""Pairs that are looked at together: what is made for each takes memory."""
CLAMP = 650.0
"""Log ratios above this are tightened to it: e^-650 is still a normal float64."""


@record
class LiftedRows:
    """All lifted rows with room to spare: (m, S), (m, S) and (m,)."""

    left: Floats
    right: Floats
    factor: Floats

    @classmethod
    def of(cls, given: Inequalities) -> LiftedRows:
        """The rows that are given; none where their ratios are all but equal."""
        none = np.zeros((0, given.statement.secrets))
        parts = [rows for part in given.parts if (rows := part.column_rows()) is not None]
        ratio = np.concatenate([np.zeros(0), *(part.log_ratio for part in parts)])
        used = (ratio >= NO_ROOM) & (ratio < LARGEST_LOG)
        left = np.vstack([none, *(part.left for part in parts)])[used]
        right = np.vstack([none, *(part.right for part in parts)])[used]
        return cls(left, right, np.exp(ratio[used]) * (1 - _MARGIN))

    def __len__(self) -> int:
        return len(self.factor)

    def _over(self, columns: Floats) -> Floats:
        """a·v - f b·v."""
        return self.left @ columns - self.factor[:, None] * (self.right @ columns)

    def _room(self) -> Floats:
        """What a constant of one leaves below the limit, > 0."""
        return -self._over(np.ones((self.left.shape[1], 1)))[:, 0]

    def raised(self, columns: Floats, usable: Bools) -> Floats:
        """The columns plus the least constants with which they meet all rows; only those that are
        ``usable`` are changed."""
        if not len(self):
            return columns
        short = (self._over(columns) / self._room()[:, None]).max(axis=0)
        return columns + np.where(usable, np.maximum(short, 0.0), 0.0)

    def least_total(self, sums: Floats) -> float:
        """The least t with which the vector t - ``sums`` meets all rows; 0 without rows."""
        return float((-self._over(sums[:, None])[:, 0] / self._room()).max(initial=0.0))


@record
class Cone:
    """The ratio constraints given, tightened by the margin and closed under paths."""

    log_ratio: Floats
    """All ratio constraints together, closed: r_ik <= r_ij + r_jk; inf between components."""
    always: Floats
    """All but the windowed constraints, closed."""
    windows: tuple[tuple[Floats, Bools], ...]
    component: Ints
    allowed: Bools
    """Entries that can be positive once the ratio constraints are applied to the support."""
    lifted: LiftedRows

    @classmethod
    def of(cls, given: Inequalities) -> Cone:
        windows = tuple((_tightened(part.log_ratio), part.window) for part in given.windows)
        loose = np.inf if windows else open_by(given.log_ratio)
        if np.isfinite(loose):
            always = _shrunk(given.log_ratio, loose)
        else:
            always = _closed(_tightened(given.log_ratio))
        joint = always
        if windows:
            joint = _closed(np.min([always, *(ratios for ratios, _ in windows)], axis=0))
        component = components(np.isfinite(joint))
        allowed = ~forced_zeros(given.statement)
        rows = LiftedRows.of(given)
        if len(rows) and allowed.all(axis=0).any():
            component = np.zeros_like(component)  # which lifted rows tie together
        return cls(joint, always, windows, component, allowed, rows)

    def closure(self, matrix: Floats) -> Floats:
        """The least matrix >= ``matrix`` whose columns lie in the cone."""
        if (matrix == matrix[:1]).all() and (matrix[:1] >= 0).all() and self.allowed.all():
            return np.array(matrix)
        out = max_times(self.always, np.where(self.allowed, np.maximum(matrix, 0), 0))
        if not self.windows:
            return out
        # a window is not closed under paths: repeat until nothing moves
        for _ in range(len(matrix)):
            before = out
            for ratios, window in self.windows:
                out = np.maximum(out, max_times(ratios, np.where(window, out, 0.0)))
            out = max_times(self.always, out)
            if np.array_equal(before, out):
                break
        return out

    def complete(self, matrix: Floats, cost: Floats) -> Floats | None:
        """Scale columns of the cone and add to the cheapest ones until every row sums to one.

        Lifted rows that hold, or that constants can mend, hold afterwards. ``cost`` (S, O) prices
        the additions. None where a component has no column to add to.
        """
        usable = np.asarray(self.allowed.all(axis=0))
        out = np.array(self.lifted.raised(matrix, usable))
        for members in members_of(self.component):
            filled = self._complete_component(out[members], members, cost[members])
            if filled is None:
                return None
            out[members] = filled
        return normalised_rows(out)

    def _complete_component(self, part: Floats, members: Ints, cost: Floats) -> Floats | None:
        sums = part.sum(axis=1)
        if sums.min() > 0 and np.ptp(sums) <= ROUNDING * sums.max():
            return part
        usable = np.flatnonzero(self.allowed[members].all(axis=0))
        if not len(usable):
            return None
        whole = len(members) == len(self.log_ratio)
        ratios = self.log_ratio if whole else self.log_ratio[np.ix_(members, members)]
        total = self.least_total(sums, ratios)
        if not np.isfinite(total) or total <= 0:
            total, part, sums = 1.0, np.zeros_like(part), np.zeros_like(sums)
        missing = np.maximum(total - sums, 0.0)
        missing = max_times(ratios, missing[:, None])[:, 0]
        cheapest = usable[(missing @ cost[:, usable]).argmin()]
        out = part / total
        out[:, cheapest] += missing / total
        return out

    def least_total(self, sums: Floats, ratios: Floats) -> float:
        """The least t with which t - ``sums`` lies in the cone and meets the lifted rows."""
        total = least_level(sums, lambda part: ratios[part])
        # lifted rows tie all secrets together, or are left to mixing
        whole = len(sums) == self.lifted.left.shape[1]
        return max(total, self.lifted.least_total(sums)) if whole else total


def least_level(sums: Floats, ratios: Callable[[Ints], Floats]) -> float:
    """The least t with which t - ``sums`` (S,) lies in the cone of ``ratios``, which gives the rows
    of some secrets."""
    total, index = float(sums.max()), np.arange(len(sums))
    for part in (index[own] for own in slices(len(sums), len(sums), _AT_A_TIME)):
        own = ratios(part)
        with np.errstate(all="ignore"):
            # t - q lies in the cone iff t >= q_j + (q_j - q_i) / (e^r - 1) for all pairs
            need = sums + (sums - sums[part, None]) / np.expm1(own)
        need = np.where(np.isfinite(own) & (own > 0), need, 0.0)
        total = max(total, float(need.max(initial=0.0)))
    return total


def _tightened(log_ratio: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        tight = log_ratio - MARGIN - 16 * UNIT * log_ratio
    return _clamped(tight, log_ratio)


def _clamped(tight: Floats, log_ratio: Floats) -> Floats:
    """Log ratios that were made smaller, nowhere too large for floats, and zero where nothing is
    left."""
    tight = np.where(np.isfinite(log_ratio), np.minimum(tight, CLAMP), np.inf)
    return np.where(log_ratio < 2 * MARGIN, 0.0, tight)


def _shrunk(log_ratio: Floats, loose: float) -> Floats:
    """Distances, which detours shorten by ``loose`` at most, times one number below 1, which are
    distances again: the margin is relative."""
    some = log_ratio[(log_ratio > 2 * MARGIN) & np.isfinite(log_ratio)]
    room = MARGIN + 2 * loose
    share = np.clip(room / some.min(initial=1.0), _LEAST_SHARE, _MOST_SHARE)
    with np.errstate(invalid="ignore"):
        tight = _clamped(log_ratio * (1 - share), log_ratio)
    np.fill_diagonal(tight, np.inf)
    return tight


def _closed(log_ratio: Floats) -> Floats:
    """Shortest paths between all pairs, inf from a secret to itself."""
    out = shortest_paths(log_ratio)
    np.fill_diagonal(out, np.inf)
    return out


def components(tied: Bools) -> Ints:
    """Number of the component of every secret, where ``tied`` (S, S) ties two in one direction."""
    if (tied | np.eye(len(tied), dtype=bool)).all():
        return np.zeros(len(tied), dtype=np.int64)
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(tied, directed=False)[1], np.int64)


def members_of(component: Ints) -> list[Ints]:
    """The secrets of every component."""
    return [np.flatnonzero(component == c) for c in range(int(component.max()) + 1)]
