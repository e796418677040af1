"""The inequalities of a statement in floats, as search and repair have them: copies, which may be
tightened or changed, of what the certificate decides. From these to a BlockLP, and from its points
back to matrices and multipliers.

Points of segments at which a linear program counts the worst loss: a few at first, then those where
its solution loses more than it says (Kelley, The cutting-plane method, 1960).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import ReadOnly, record
from optmech.certificate import Multipliers
from optmech.certificate.families import PairMultipliers, known
from optmech.certificate.families.ratio import shared_out
from optmech.certificate.segments import coefficients, shares, values_at
from optmech.certificate.statement import Segments, Statement
from optmech.errors import ProblemError
from optmech.exact.rounding import UNIT
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import BlockLP, HeldColumns, Point
from optmech.lp.families import PROGRAMS
from optmech.lp.families.base import ROUNDING, Part, Reader
from optmech.lp.families.limits import add_gains
from optmech.lp.families.ratios import JOINT, Ratios, Window


@record
class Inequalities:
    """``parts`` over the matrices of a ``statement``, whose cost and allowed entries they share."""

    statement: Statement
    parts: tuple[Part, ...]
    points: Points | None = None
    """Where the worst loss counts between secrets, if it does."""

    @classmethod
    def of(cls, statement: Statement) -> Inequalities:
        """The inequalities as stated, rounded. Raises VerificationError where the certificate does
        not know a family; ProblemError where it is not searched."""
        families = known(statement)
        log_ratio = statement.log_ratio
        if statement.held is not None:
            # between rows that are held the certificate decides, and nothing can be done
            held = statement.held.has(statement.secrets)
            log_ratio = np.where(held[:, None] & held, np.inf, log_ratio)
        parts: list[Part] = [Ratios(log_ratio)]
        for family in families:
            if type(family) not in PROGRAMS:
                raise ProblemError(f"there is no program for {family.kind!r}", where="statement")
        for kind, make in PROGRAMS.items():
            own = (k for k, family in enumerate(families) if type(family) is kind)
            parts += [part for k in own if (part := make(k, families[k])) is not None]
        segments = statement.segments
        return cls(statement, tuple(parts), None if segments is None else Points.spread(segments))

    @property
    def allowed(self) -> Bools:
        return self.statement.allowed

    @property
    def _joint(self) -> Ratios:
        return next(part for part in self.parts if type(part) is Ratios)

    @property
    def log_ratio(self) -> Floats:
        """(S, S), of all pairs that are limited in every column; inf without a limit."""
        return self._joint.log_ratio

    @property
    def windows(self) -> tuple[Window, ...]:
        """The ratios that hold in some entries only."""
        return tuple(part for part in self.parts if isinstance(part, Window))

    @cached_property
    def convex(self) -> tuple[Part, ...]:
        """What is beyond ratios, support and row sums."""
        return tuple(part for part in self.parts if part.convex)

    @property
    def pairs(self) -> int:
        """Number of pairs with a limit."""
        parts = (self._joint, *self.windows)
        return sum(int(np.isfinite(part.log_ratio).sum()) for part in parts)

    def with_ratios(self, log_ratio: Floats) -> Inequalities:
        """With other log ratios for what holds in every column."""
        return self._each(lambda p: Ratios(log_ratio) if p is self._joint else p)

    def tightened(self, margin: float) -> Inequalities:
        """With every convex constraint stricter by a relative margin."""
        return self._each(lambda part: part.tightened(margin))

    def without_tiny(self, most: float = 0.0) -> Inequalities:
        """With ratios that leave no more than rounding, or than ``most``, taken for one; itself
        without such."""
        return self._each(lambda part: part.without_tiny(most))

    def without(self, dropped: Callable[[Part], bool]) -> Inequalities:
        """Without some of the convex constraints."""
        return replace(self, parts=tuple(p for p in self.parts if not (p.convex and dropped(p))))

    def violation(self, matrix: Floats, guard: float = ROUNDING) -> float:
        """Largest violation of the convex constraints, relative to their size; <= 0 is feasible.
        See ``Part.violation`` for ``guard``."""
        return max((part.violation(matrix, guard) for part in self.convex), default=-1.0)

    def hold(self, matrix: Floats) -> bool:
        """Whether a matrix is a mechanism that keeps everything, sums up to their own rounding."""
        if matrix.shape != self.statement.loss.shape or not np.isfinite(matrix).all():
            return False
        error = np.abs(matrix.sum(axis=1) - 1.0).max()
        if matrix.min() < 0 or error > _sum_guard(matrix.shape[1]) or matrix[~self.allowed].any():
            return False
        guard = -_sum_guard(matrix.size)
        return all(part.violation(matrix, guard) <= 0 for part in self.parts)

    def _each(self, change: Callable[[Part], Part]) -> Inequalities:
        parts = tuple(map(change, self.parts))
        same = all(new is old for new, old in zip(parts, self.parts, strict=True))
        return self if same else replace(self, parts=parts)


def _sum_guard(terms: int) -> float:
    """Relative rounding of a (pairwise or BLAS) sum of ``terms`` products of positive numbers."""
    return float((16 + 2 * np.log2(max(terms, 2)) + min(terms, 256) / 8) * UNIT)


@record
class ProgramMultipliers:
    """``pairs`` are of the joint log ratios, whether stated or implied; ``families`` has the others
    by the place of their family in the statement."""

    pairs: PairMultipliers
    families: dict[int, Any]
    objective: Floats | None

    def stated(self, statement: Statement) -> Multipliers:
        """Multipliers of the statement, where its families state all pairs."""
        found = {**self.families, **shared_out(statement, self.pairs)}
        families = tuple(found.get(place) for place in range(len(statement.families)))
        return Multipliers(families, self.objective)


@record
class Compiled:
    """A BlockLP with what reads its points: the families' rows, and the objective's."""

    lp: BlockLP
    readers: tuple[tuple[int, Reader], ...]
    objective: Callable[[Point], Floats | None]

    def recover(self, point: Point) -> tuple[Floats, ProgramMultipliers]:
        """The matrix (S, O) and the multipliers of the inequalities."""
        found = {place: read(point) for place, read in self.readers}
        pairs = found.pop(JOINT)
        return point.z[: self.lp.secrets], ProgramMultipliers(pairs, found, self.objective(point))


def compile_lp(given: Inequalities, *, elastic: bool = False) -> Compiled:
    """Write a design problem as a BlockLP (Shokri, PETS 2015, eq. 21, 22, 24; Kawamoto and
    Murakami, ESORICS 2019, Def. 8, 9).

    With ``elastic`` the program whose optimum is zero exactly when the inequalities can be
    satisfied: every row sum and every required distortion is multiplied by 1 - e with one shared
    e >= 0, which is minimised. P = 0 with e = 1 is always feasible, and the multipliers of an
    optimum e > 0 are a Farkas certificate.
    """
    stated = given.statement.held
    held = None if stated is None else HeldColumns(stated.secrets, stated.matrix)
    lp = Assembly(given.allowed, held)
    index = np.arange(lp.secrets * lp.blocks)
    sums = sp.coo_array((np.ones(len(index)), (index // lp.blocks, index)))
    lp.link(np.ones(lp.secrets), sums, equal=True)
    objective = _nothing if elastic else _objective(given, lp)
    readers = tuple((part.number, part.write(lp)) for part in given.parts)
    if elastic:
        lp.add_elastic()
    return Compiled(lp.finish(), readers, objective)


def _nothing(point: Point) -> None:
    """The multipliers of an objective that has none."""


def _objective(given: Inequalities, lp: Assembly) -> Callable[[Point], Floats | None]:
    """Add what is minimised, and say how to read its multipliers."""
    statement = given.statement
    if statement.objective == "expected_loss":
        lp.cost = statement.cost
        return _nothing
    if statement.objective == "worst_loss":
        rows, points = lp.weighted_rows(statement.loss, per_secret=True), given.points
        if points is not None:
            rows = sp.coo_array(sp.vstack([rows, points.rows(lp, statement.loss)]))
        column, terms = lp.shared(1.0), rows.shape[0]
        places = (np.arange(terms), np.full(terms, column))
        level = sp.coo_array((-np.ones(terms), places))
        worst = lp.link(np.zeros(terms), rows, level)
        if points is None:
            return lambda point: point.links[worst]
        return lambda point: points.weights(point.links[worst], statement.secrets)
    if statement.target is None:
        raise ProblemError("a variance has no linear program", where="objective")
    if statement.objective == "minimize_leakage":
        played = add_gains(lp, statement.target, 1.0, regrets=given.pairs > 0)
        return lambda point: played.strategy(point, 1.0)
    _, attack = lp.extreme_rows(statement.target, -1.0)
    return lambda point: point.local[attack].T


_PARTS = 2.0**20
"""Points are at whole numbers of so many parts of a segment: mirrored segments have mirrored
ones."""
_FIRST = 4
"""Equal parts of a segment between which the first points lie."""
_AROUND = 0.25
"""How far from a point others are added, by the gap and its root: a quadratic that is off by a gap
has its vertex off by a root of it."""


@record
class Points(ReadOnly):
    """The points at ``share`` (K,) of the way along the segments of the numbers ``of`` (K,)."""

    segments: Segments
    of: Ints
    share: Floats

    @classmethod
    def spread(cls, segments: Segments) -> Points:
        """The same shares of the way in every segment."""
        inner, count = np.arange(1, _FIRST) / _FIRST, len(segments)
        return cls(segments, np.repeat(np.arange(count), len(inner)), np.tile(inner, count))

    def rows(self, lp: Assembly, loss: Floats) -> sp.coo_array:
        """The expected loss at every point."""
        ends, t = self.segments.ends[self.of], self.share[:, None]
        bent = t * (1.0 - t) * self.segments.bends[self.of, None]
        costs = (1.0 - t) * loss[ends[:, 0]] + t * loss[ends[:, 1]] - bent
        return lp.mixed_rows(costs, ends, self.share)

    def level(self, statement: Statement, matrix: Floats) -> float:
        """What a matrix loses at most at the secrets and at these points."""
        parts = coefficients(self.segments, statement.loss, matrix)
        low, middle, high = (part[self.of] for part in parts)
        at = values_at(low, middle, high, self.share)
        return float(max((statement.loss * matrix).sum(axis=1).max(), at.max()))

    def beyond(
        self, statement: Statement, matrix: Floats, weights: Floats | None, gap: float
    ) -> Points | None:
        """With others: where a matrix loses more in a segment than at all of these, and around the
        points that the bound's ``weights`` (``Multipliers``) have, which lie nearer to those of the
        optimum. None where there are no others."""
        parts = coefficients(self.segments, statement.loss, matrix)
        best = shares(*parts)
        wanted = [np.where(values_at(*parts, best) > self.level(statement, matrix), best, np.nan)]
        if weights is not None:
            first, second = np.maximum(weights[statement.secrets :], 0.0).reshape(2, -1)
            total = first + second
            middle = np.where(total > 0, second, np.nan) / np.where(total > 0, total, 1.0)
            off = _AROUND * min(gap, 1.0)
            wanted += [middle + move for move in (0.0, off, -off, off**0.5, -(off**0.5))]
        share = np.rint(np.array(wanted) * _PARTS) / _PARTS
        inside = (share > 0) & (share < 1)
        of = np.broadcast_to(np.arange(len(self.segments)), share.shape)[inside]
        every = np.append(self.of, of), np.append(self.share, share[inside])
        all_of, at = np.unique(np.stack(every), axis=1)
        if len(at) == len(self.share):
            return None
        return Points(self.segments, all_of.astype(np.int64), at)

    def weights(self, duals: Floats, secrets: int) -> Floats:
        """Weights of secrets and of one point in every segment, as ``Multipliers`` have them, that
        charge what ``duals`` of all secrets and of these points do.

        A quadratic with the coefficients a, b, c at t is (1 - t)² a + 2 t (1 - t) b + t² c. With
        the sums u, m, v of (1 - t)², t (1 - t), t² it is the one at √v / (√u + √v) that has m and
        no more than u and v, as m² <= u v; the ends have what is left.
        """
        # products of less could underflow
        duals = np.where(duals > 1e-200, duals, 0.0)
        out, given, count = np.array(duals[:secrets]), duals[secrets:], len(self.segments)
        t = self.share
        u, m, v = (
            np.bincount(self.of, given * part, count)
            for part in ((1.0 - t) ** 2, t * (1.0 - t), t**2)
        )
        both = np.sqrt(u) + np.sqrt(v)
        share = np.where(m > 0, np.sqrt(v), 0.5) / np.where(m > 0, both, 1.0)
        first, second = m / share, m / (1.0 - share)
        left = u - first * (1.0 - share), v - second * share
        for rows, rest in zip(self.segments.ends.T, left, strict=True):
            np.add.at(out, rows, np.maximum(rest, 0.0))
        return np.concatenate([out, first, second])
