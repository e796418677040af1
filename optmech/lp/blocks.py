"""The linear program with its block structure kept.

One block per observable o holds the variables z_o = (P[:,o], u_o): the column of the mechanism
and the block's auxiliary variables, with the same layout in every block. All variables are >= 0.

    minimise    Σ_o cost[:,o]·z_o + shared_cost·g
    subject to  v_i <= e^{r} v_j                 for the pairs of the cone, in every block
                unit · w >= q f(p / q)           for the perspectives, in every block
                local · z_o <= 0 (or = 0)        the same rows in every block
                links · (z_1, ..., z_O) + shared · g  (= or <=)  rhs
                z_o <= 0                         where fixed[:,o]
                z_o = values[:,o]                for the secrets whose rows are held

The flattened variable order is block after block, then the shared variables g >= 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Indices, Ints
from optmech.base.read_only import record


def entries(shape: tuple[int, int], *parts: tuple[Any, Any, Any]) -> sp.coo_array:
    """A sparse matrix of values, their rows and their columns, part after part."""
    value, row, column = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return sp.coo_array((value, (row, column)), shape=shape)


@record
class PairCone:
    """v_i <= exp(log_ratio) v_j for m pairs. ``active`` (m, blocks) restricts a pair to blocks;
    None means all."""

    i: Indices
    j: Indices
    log_ratio: Floats
    active: Bools | None = None

    def __len__(self) -> int:
        return len(self.i)

    @property
    def everywhere(self) -> Bools:
        """Which pairs hold in every block."""
        if self.active is None:
            return np.ones(len(self), dtype=bool)
        return np.asarray(self.active.all(axis=1))

    def within(self, blocks: int) -> Bools:
        """(m, blocks): where every pair holds."""
        return np.ones((len(self), blocks), dtype=bool) if self.active is None else self.active

    def lengths(self, secrets: int) -> Floats:
        """(S, S): the least log ratio of the pairs that hold everywhere; inf where none does."""
        out, kept = np.full((secrets, secrets), np.inf), self.everywhere
        np.minimum.at(out, (self.i[kept], self.j[kept]), self.log_ratio[kept])
        return out

    def take(self, keep: Bools | Ints) -> PairCone:
        """The cone of some of the pairs."""
        active = None if self.active is None else self.active[keep]
        return PairCone(self.i[keep], self.j[keep], self.log_ratio[keep], active)

    def in_blocks(self, kept: Ints) -> PairCone:
        """The cone with its pairs in some of the blocks."""
        return self if self.active is None else replace(self, active=self.active[:, kept])


@record
class LocalRows:
    """Rows ``matrix @ z_o <= 0`` in every block, or ``== 0`` where ``equal``."""

    matrix: sp.csr_array
    equal: bool = False


@record
class LinkRows:
    """Rows across blocks, <= or, where ``equal``, = ``rhs`` (r,): ``matrix`` (r, blocks * block
    size), ``shared`` (r, shared)."""

    equal: bool
    rhs: Floats
    matrix: sp.csr_array
    shared: sp.csr_array


def averages(lp: BlockLP, link: LinkRows) -> Ints | None:
    """(S,): in which row of a link a secret is, where every row says that the mean over its secrets
    of Σ_o P[s,o] is one, and every secret is in one; None for anything else."""
    coo = link.matrix.tocoo()
    row, column = coo.coords
    secret = column % lp.block_size
    rows = np.full(lp.block_size, -1)
    rows[secret] = row
    if link.shared.nnz or coo.nnz != lp.secrets * lp.blocks or (rows[lp.secrets :] >= 0).any():
        return None
    size = np.bincount(rows[: lp.secrets] + 1, minlength=len(link.rhs) + 1)[1:]
    alike = size.all() and (rows[secret] == row).all() and (coo.data == 1 / size[row]).all()
    return rows[: lp.secrets] if alike and link.equal and (link.rhs == 1).all() else None


@record
class Perspective:
    """unit_k w_k >= q_k f(p_k / q_k) in every block, for a convex f: not linear, and left out by
    ``flatten``'s callers in their own way. ``p``, ``q`` and ``w`` (m,) are local indices.

    ``left`` and ``right`` are the places among the local rows of those that say what p and q are,
    ``total`` the place among the links of those that limit Σ_o w_o; m rows each.
    """

    kind: str
    """Name of the generator f."""
    p: Ints
    q: Ints
    w: Ints
    unit: Floats
    left: int
    right: int
    total: int


@record
class Informed:
    """Σ_s prior_s KL(v_s ‖ prior·v) <= maximum, as the perspectives and rows of the program say it:
    with the local index of prior·v and the place of the limit among the links."""

    prior: Floats
    maximum: float
    common: int
    limit: int


@record
class HeldColumns:
    """What the variables of some secrets (k,) are: ``values`` (k, blocks), times 1 - e where
    ``elastic`` is the number of the shared variable e."""

    secrets: Ints
    values: Floats
    elastic: int | None = None


@record
class BlockLP:
    """See the module's docstring."""

    secrets: int
    blocks: int
    auxiliary: int
    cost: Floats
    shared_cost: Floats
    fixed: Bools
    cone: PairCone
    local: tuple[LocalRows, ...]
    links: tuple[LinkRows, ...]
    perspectives: tuple[Perspective, ...] = ()
    informed: Informed | None = None
    """Of a single limit on mutual information, for engines that know what that is."""
    held: HeldColumns | None = None

    @property
    def block_size(self) -> int:
        return self.secrets + self.auxiliary

    @property
    def shared(self) -> int:
        return len(self.shared_cost)

    @property
    def cone_rows(self) -> int:
        """Number of pair rows over all blocks."""
        cone = self.cone
        return len(cone) * self.blocks if cone.active is None else int(cone.active.sum())

    @property
    def nonzeros(self) -> int:
        """Entries of the flattened constraint matrix."""
        local = sum(rows.matrix.nnz for rows in self.local) * self.blocks
        links = sum(rows.matrix.nnz + rows.shared.nnz for rows in self.links)
        return int(2 * self.cone_rows + local + links)

    def with_cone(self, cone: PairCone) -> BlockLP:
        """The program over another cone."""
        return replace(self, cone=cone)

    def with_blocks(self, kept: Ints) -> BlockLP:
        """The program of some of the blocks, the columns of the others being zero."""
        size = self.block_size
        columns = (kept[:, None] * size + np.arange(size)).ravel()
        return replace(
            self,
            blocks=len(kept),
            cost=self.cost[:, kept],
            fixed=self.fixed[:, kept],
            cone=self.cone.in_blocks(kept),
            links=tuple(replace(link, matrix=link.matrix[:, columns]) for link in self.links),
            held=self.held and replace(self.held, values=self.held.values[:, kept]),
        )


@record
class Point:
    """A primal–dual point of a BlockLP, in the program's own shapes.

    ``z`` (block_size, blocks) and ``shared`` (g,) are primal. Multipliers of <= rows are >= 0:
    ``cone`` is a sparse (pairs, blocks) matrix whose entries of the same place add up,
    ``local[k]`` (rows, blocks), ``links[k]`` (rows,), with either sign for
    equations, in the convention  cost + Σ multiplier·row >= 0.
    """

    z: Floats
    shared: Floats
    cone: sp.csr_array | sp.coo_array
    local: tuple[Floats, ...]
    links: tuple[Floats, ...]


@record
class Start:
    """A neighbour's design: hints, which may be wrong.

    ``matrix`` is p(o|s), (S, O). ``weight`` are multipliers of P[i,o] <= exp(log_ratio[i,j])
    P[j,o] for o = ``block``, ordered by block, i, j; ``log_ratio`` (S, S) is the neighbour's.
    """

    matrix: Floats
    log_ratio: Floats
    i: Ints
    j: Ints
    block: Ints
    weight: Floats
