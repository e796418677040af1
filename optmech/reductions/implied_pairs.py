"""Drop pair rows that follow from shorter ones.

Source: v_i <= e^{r_ik} v_k for all pairs. Target: only pairs without an intermediate j with
r_ij + r_jk <= r_ik. Equivalent, because the inequalities of (i, j) and (j, k) multiply to that of
(i, k), and both are strictly shorter, so the elimination cannot be circular. On a grid with
Euclidean distance the pairs with coprime offsets remain; on lines, graphs and Manhattan metrics
the edges. Sums are compared to 1e-12 relative: the target may be looser than the source by that
much, which repair makes good. Duals: dropped pairs get multiplier zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.base.minplus import near_detour
from optmech.lp.blocks import BlockLP, Point
from optmech.reductions.base import Reduced

_RELATIVE = 1e-12


@dataclass(frozen=True)
class ImpliedPairs:
    """See the module's docstring."""

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        keep = essential(lp)
        if keep.all():
            return (Reduced(lp),)
        kept = np.flatnonzero(keep)
        return (Reduced(lp.with_cone(lp.cone.take(kept)), Scatter(kept, len(lp.cone))),)


@dataclass(frozen=True, eq=False)
class Scatter:
    """Recovery for programs that kept only some of ``pairs`` pairs: the others get multiplier 0."""

    kept: Ints
    pairs: int

    def __call__(self, point: Point) -> Point:
        coo = point.cone.tocoo()
        pair, block = coo.coords
        shape = (self.pairs, point.cone.shape[1])
        return replace(point, cone=sp.coo_array((coo.data, (self.kept[pair], block)), shape=shape))


def essential(lp: BlockLP) -> NDArray[np.bool_]:
    """Which pairs of the cone are not implied; pairs restricted to some blocks all stay."""
    cone, everywhere = lp.cone, lp.cone.everywhere
    keep = np.ones(len(cone), dtype=bool)
    drop = implied(cone.lengths(lp.secrets))
    keep[everywhere] = ~drop[cone.i[everywhere], cone.j[everywhere]]
    return keep


def implied(ratio: Floats) -> NDArray[np.bool_]:
    """implied[i, k]: some j has ratio[i,j] + ratio[j,k] <= ratio[i,k], both strictly shorter."""
    detour = near_detour(ratio)
    return np.asarray(np.isfinite(detour) & (detour <= ratio * (1 + _RELATIVE)))
