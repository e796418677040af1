"""Fewer pairs: without those that follow from shorter ones, or those of a sparse spanner.
And thinner multipliers that prove the same: one forest of pairs for every observable.

Source: multipliers z_ij >= 0 of P[i,o] <= e^{r_ij} P[j,o], which enter the bound only through
L[s,o] = cost[s,o] + Σ_j z_sj - Σ_i e^{r_is} z_is. Target: multipliers of which those of one
observable contain no cycle, so at most S - 1 each, with L at least as large. Interior-point methods
end in the middle of the optimal multipliers and spread over ten times as many.

A cycle of pairs is emptied by moving weight around it so that L changes at one secret only. That
change has one sign in each of the two directions; in the one that does not lower L some weight
shrinks (all of them growing is possible only around a directed cycle, where e^{Σr} >= 1 makes L
fall), and it is moved until the first is zero. Proof: docs/theory/reductions.md, "Thin
multipliers". The certificate evaluates what comes out: nothing here is trusted.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.minplus import MANY, near_detour
from optmech.base.native import run
from optmech.base.read_only import record
from optmech.certificate.families import PairMultipliers
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP, PairCone, Point
from optmech.reductions.base import Reduced

_RELATIVE = 1e-12
_NEARLY_ALL = 0.9
"""Of many points' pairs, share from which on dropping the others saves less than a second list."""


@dataclass(frozen=True)
class ImpliedPairs:
    """Drop pair rows that follow from shorter ones.

    Source: v_i <= e^{r_ik} v_k for all pairs. Target: only pairs without an intermediate j with
    r_ij + r_jk <= r_ik. Equivalent, because the inequalities of (i, j) and (j, k) multiply to that
    of (i, k), and both are strictly shorter, so the elimination cannot be circular. On a grid with
    Euclidean distance the pairs with coprime offsets remain; on lines, graphs and Manhattan metrics
    the edges. Sums are compared to 1e-12 relative: the target may be looser than the source by that
    much, which repair makes good. Duals: dropped pairs get multiplier zero.
    """

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        keep = _with_windows(lp.cone, ~implied(lp.cone.lengths(lp.secrets)))
        nearly = lp.secrets >= MANY and keep.sum() > _NEARLY_ALL * len(keep)
        if nearly or keep.all():
            return (Reduced(lp),)
        kept = np.flatnonzero(keep)
        return (Reduced(lp.with_cone(lp.cone.take(kept)), Scatter(kept, len(lp.cone))),)


@record
class Scatter:
    """Recovery for programs that kept only some of ``pairs`` pairs: the others get multiplier 0."""

    kept: Ints
    pairs: int

    def __call__(self, point: Point) -> Point:
        coo = point.cone.tocoo()
        pair, block = coo.coords
        shape = (self.pairs, point.cone.shape[1])
        return replace(point, cone=sp.coo_array((coo.data, (self.kept[pair], block)), shape=shape))


def _with_windows(cone: PairCone, kept: Bools) -> Bools:
    """Which rows of the cone are of pairs that are ``kept`` (S, S); those restricted to some blocks
    all stay."""
    return kept[cone.i, cone.j] | ~cone.everywhere


def implied(ratio: Floats) -> Bools:
    """implied[i, k]: some j has ratio[i,j] + ratio[j,k] <= ratio[i,k], both strictly shorter."""
    detour = near_detour(ratio)
    return np.isfinite(detour) & (detour <= ratio * (1 + _RELATIVE))


@dataclass(frozen=True)
class Spanner:
    """Replace a metric by a greedy spanner of ``stretch`` t >= 1 (Althöfer et al. 1993): fewer
    pairs, privacy kept by construction.

    Source: v_i <= e^{r_ij} v_j for all pairs. A t-spanner is a set of edges whose shortest paths
    are at most t times as long as the direct distances.

    * Restriction: the spanner's edges with r/t. A path of edges has length <= t r_ij / t, so every
      source inequality follows: its points are feasible for the source (primal).
    * Relaxation: the spanner's edges with r. They are some of the source's inequalities, so its
      multipliers are multipliers of the source (dual): they give the lower bound.

    What is given up is the difference of the two optima, which the certified gap shows.
    """

    stretch: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.stretch) and self.stretch >= 1):
            raise ProblemError(
                f"stretch {self.stretch!r} must be >= 1",
                where="reductions",
                remedy='Write "spanner:1.2", for example',
            )

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        cone = lp.cone
        edge = greedy_spanner(cone.lengths(lp.secrets), self.stretch)
        kept = np.flatnonzero(_with_windows(cone, edge))
        relaxed = cone.take(kept)
        shrink = np.where(relaxed.everywhere, self.stretch, 1.0)
        restricted = replace(relaxed, log_ratio=relaxed.log_ratio / shrink)
        recover = Scatter(kept, len(cone))
        return (
            Reduced(lp.with_cone(restricted), recover, dual=False),
            Reduced(lp.with_cone(relaxed), recover, primal=False),
        )


def greedy_spanner(ratio: Floats, stretch: float) -> Bools:
    """Edges of the greedy spanner of a (possibly asymmetric) matrix of lengths.

    Pairs are taken by length; one is added when the paths so far are longer than ``stretch``
    times its own. Distances are updated densely after each edge, O(n²) per edge.
    """
    count = len(ratio)
    paths = np.full((count, count), np.inf)
    np.fill_diagonal(paths, 0.0)
    edge = np.zeros((count, count), dtype=bool)
    i, j = np.nonzero(np.isfinite(ratio))
    order = np.argsort(ratio[i, j], kind="stable")
    for a, b in zip(i[order].tolist(), j[order].tolist(), strict=True):
        length = ratio[a, b]
        if paths[a, b] > stretch * length * (1 + _RELATIVE):
            edge[a, b] = True
            np.minimum(paths, paths[:, [a]] + length + paths[[b], :], out=paths)
    return edge


def thinned(pairs: PairMultipliers, log_ratio: Floats) -> PairMultipliers:
    """Multipliers without cycles, by compiled kernels. ``log_ratio`` (S, S) holds r >= 0, finite
    for these pairs."""
    used = pairs.take(pairs.value > 0)
    order = np.lexsort((-used.value, used.o))
    used = used.take(order)
    starts = np.flatnonzero(np.diff(used.o, prepend=-1))
    value = np.array(used.value)
    gain = np.exp(log_ratio[used.i, used.j])
    ends = np.append(starts, len(value)).astype(np.int64)
    secrets = (np.ascontiguousarray(part, dtype=np.int64) for part in (used.i, used.j))
    run("empty_cycles", len(starts), len(log_ratio), *secrets, gain, ends, value)
    out = PairMultipliers(used.i, used.j, used.o, value)
    return out.take(value > 0)
