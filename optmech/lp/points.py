"""Points of segments at which a linear program counts the worst loss: first the middles, then those
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
_AROUND = 0.25

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
        at = values_at(*(part[self.of] for part in parts), self.share)
        return float(max((statement.loss * matrix).sum(axis=1).max(), at.max()))

    def beyond(
        self, statement: Statement, matrix: Floats, weights: Floats | None, gap: float
    ) -> Points | None:
        """With others: where a matrix loses more in a segment than at all of these, and around the
        points that the bound's ``weights`` (``Multipliers``) have, which lie nearer to those of the
        optimum. None where there are no others."""
        parts = coefficients(self.segments, statement.loss, matrix)
        level, best = self.level(statement, matrix), shares(*parts)
        wanted = [np.where(values_at(*parts, best) > level, best, np.nan)]
        if weights is not None:
            first, second = weights[statement.secrets :].reshape(2, -1)
            total = first + second
            middle = np.where(total > 0, second, np.nan) / np.where(total > 0, total, 1.0)
            near = middle[None, :] + _AROUND * np.array([[0.0], [gap], [-gap], [gap**.5], [-gap**.5]])
            wanted.extend(near)
        share = np.rint(np.array(wanted) * _PARTS) / _PARTS
        of = np.broadcast_to(np.arange(len(self.segments)), share.shape)
        inside = (share > 0) & (share < 1)
        old = np.stack([self.of, self.share])
        all_of = np.hstack([old, np.stack([of[inside], share[inside]])])
        new = np.unique(all_of, axis=1)
        if new.shape == old.shape:
            return None
        return Points(self.segments, new[0].astype(np.int64), new[1])

    def weights(self, duals: Floats, secrets: int) -> Floats:
        """Weights of secrets and of one point in every segment, as ``Multipliers`` have them, that
        charge what ``duals`` of all secrets and of these points do.

        A quadratic with the coefficients a, b, c at t is (1 - t)² a + 2 t (1 - t) b + t² c. With
        the sums u, m, v of (1 - t)², t (1 - t), t² it is the one at √v / (√u + √v) that has m and
        no more than u and v, as m² <= u v; the ends have what is left.
        """
        duals = np.maximum(duals, 0.0)
        out, given, count = np.array(duals[:secrets]), duals[secrets:], len(self.segments)
        t = self.share
        u, m, v = (
            np.bincount(self.of, given * part, count)
            for part in ((1.0 - t) ** 2, t * (1.0 - t), t**2)
        )
        roots = np.sqrt(u), np.sqrt(v)
        share = np.where(m > 0, roots[1] / np.where(m > 0, sum(roots), 1.0), 0.5)
        first, second = m / share, m / (1.0 - share)
        for rows, left in zip(
            self.segments.ends.T, (u - first * (1.0 - share), v - second * share), strict=True
        ):
            np.add.at(out, rows, np.maximum(left, 0.0))
        return np.concatenate([out, first, second])
