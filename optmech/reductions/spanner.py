"""Replace a metric by a sparse t-spanner: fewer pairs, privacy kept by construction.

Source: v_i <= e^{r_ij} v_j for all pairs. A t-spanner is a set of edges whose shortest paths are
at most t times as long as the direct distances.

* Restriction: the spanner's edges with r/t. A path of edges has length <= t r_ij / t, so every
  source inequality follows: its points are feasible for the source (primal).
* Relaxation: the spanner's edges with r. They are some of the source's inequalities, so its
  multipliers are multipliers of the source (dual): they give the lower bound.

What is given up is the difference of the two optima, which the certified gap shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP
from optmech.reductions.base import Reduced
from optmech.reductions.implied_pairs import Scatter


@dataclass(frozen=True)
class Spanner:
    """Greedy spanner of stretch ``stretch`` >= 1 (Althöfer et al. 1993)."""

    stretch: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.stretch) and self.stretch >= 1):
            raise ProblemError(
                f"stretch {self.stretch!r} must be >= 1",
                where="reductions",
                remedy='Write "spanner:1.2", for example',
            )

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        cone, everywhere = lp.cone, lp.cone.everywhere
        edge = greedy_spanner(cone.lengths(lp.secrets), self.stretch)
        keep = ~everywhere
        keep[everywhere] = edge[cone.i[everywhere], cone.j[everywhere]]
        kept = np.flatnonzero(keep)
        relaxed = cone.take(kept)
        shrink = np.where(relaxed.everywhere, self.stretch, 1.0)
        restricted = replace(relaxed, log_ratio=relaxed.log_ratio / shrink)
        recover = Scatter(kept, len(cone))
        return (
            Reduced(lp.with_cone(restricted), recover, dual=False),
            Reduced(lp.with_cone(relaxed), recover, primal=False),
        )


def greedy_spanner(ratio: Floats, stretch: float) -> NDArray[np.bool_]:
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
        if paths[a, b] > stretch * length * (1 + 1e-12):
            edge[a, b] = True
            np.minimum(paths, paths[:, [a]] + length + paths[[b], :], out=paths)
    return edge
