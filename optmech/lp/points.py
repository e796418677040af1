"""Points of segments at which a linear program counts the worst loss: a few at first, then those
where its solution loses more than it says (Kelley, The cutting-plane method, 1960)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, record
from optmech.certificate.segments import coefficients, shares, values_at
from optmech.certificate.statement import Segments, Statement
from optmech.lp.assembly import Assembly

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
