"""The program as this engine sees it: secrets that must be equal are one variable, every local
row is a dense row of a pool, and what couples the blocks is row sums and a few kinds of <= rows.

    minimise    Σ_o W[o]·v_o + Σ_o f_o·a_o + h·g
    subject to  v_i <= e^r v_j                  pairs of ``ratio``, every block
                pool_k·v_o + sides_k·a_o >= 0    every block
                Σ_o v_o = 1                      per variable, or in the mean over some variables
                Σ_o A_o v_o + C a_o + D g <= b   the coupling rows

with v in m variables ("classes" of secrets), a free and g free: their bounds at zero never bind
in the programs that are accepted.
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Indices, Ints
from optmech.base.read_only import record
from optmech.lp.blocks import BlockLP, LinkRows, averages

MERGE = 1e-11
"""Log ratios up to this, both ways, make two secrets one variable."""
FAR = 50.0
"""Pairs with a larger log ratio are left to the repair: they cost at most e^-50."""
_MAX_AUXILIARY = 8


@record
class Coupling:
    """The coupling constraints besides row sums, N rows <= across blocks.

    Row l has ``value[l, o]`` at variable ``variable[l]`` of block o (``variable`` is m where it
    has none), ``auxiliary[l]`` (p,) at every block's auxiliaries and ``shared[l]`` (g,).
    """

    variable: Ints
    value: Floats
    auxiliary: Floats
    shared: Floats
    rhs: Floats


@record
class Model:
    """See the module. Arrays over variables have m + 1 columns, the last of them zero."""

    lp: BlockLP
    class_of: Ints
    first: Ints
    """First secret of every class."""
    tree: tuple[tuple[int, int, int, int], ...]
    """(secret, parent, pair secret->parent, pair parent->secret), children before parents."""
    cost: Floats
    ratio: Floats
    pair: Indices
    """Number of a pair of classes in the program's cone, -1 for none."""
    allowed: Bools
    pool: Floats
    sides: Floats
    auxiliary_cost: Floats
    shared_cost: Floats
    coupling: Coupling
    limits: Floats
    """(k, blocks, m + 1): loss limits, as rows a - limit·v >= 0 of k further auxiliaries."""
    row: Ints
    """(m,): in which row sum a variable is. Each has its own, but in programs folded along their
    symmetries, where a row sum is a mean over several."""

    @property
    def pairs_only(self) -> bool:
        """Whether there is nothing beyond pairs and row sums, and nothing is fixed at zero."""
        none = not len(self.pool) and not len(self.coupling.rhs)
        return none and bool(self.allowed.all())

    @property
    def folded(self) -> bool:
        """Whether row sums are means over several variables."""
        return any(link.equal and len(link.rhs) < self.lp.secrets for link in self.lp.links)

    def means(self, sums: Floats) -> Floats:
        """The means of ``sums`` (m,) over what shares a row sum, for every variable."""
        if not self.folded:
            return sums
        return (np.bincount(self.row, sums) / np.bincount(self.row))[self.row]

    @property
    def variables(self) -> int:
        return len(self.first)

    @property
    def blocks(self) -> int:
        return self.lp.blocks


def refusal(lp: BlockLP) -> str:
    """Why the program does not have the shape above; empty when it has."""
    if lp.perspectives or any(rows.equal for rows in lp.local):
        return "divergences, and equations within a block, are not supported"
    if lp.held is not None:
        return "rows that are held fixed are not supported"
    if lp.cone.active is not None:
        return "pairs that hold in some blocks only are not supported"
    if lp.fixed[lp.secrets :].any():
        return "fixed auxiliary variables are not supported"
    if not _free(lp):
        return "auxiliary variables whose bound at zero matters are not supported"
    if lp.auxiliary > _MAX_AUXILIARY:
        return f"{lp.auxiliary} auxiliary variables per block; at most {_MAX_AUXILIARY}"
    equations = [link for link in lp.links if link.equal]
    if len(equations) != 1 or (rows := averages(lp, equations[0])) is None:
        return "equations across blocks other than row sums of one are not supported"
    if len(np.unique(rows)) < lp.secrets and not _pairs_alone(lp):
        return "means of row sums are supported beside pairs alone"
    if any(not link.equal and _over(lp, link) is None for link in lp.links):
        return "rows across blocks over more than one kind of variables are not supported"
    return ""


def _pairs_alone(lp: BlockLP) -> bool:
    """Whether there is nothing beyond row sums and pairs, none of which make secrets equal."""
    more = lp.local or len(lp.links) > 1 or lp.fixed.any()
    return not more and not (lp.cone.log_ratio <= MERGE).any()


def _free(lp: BlockLP) -> bool:
    """Whether bounds at zero never bind: auxiliary variables are limited only from above, by what
    is not negative, and more of them is nowhere worse; shared ones limit what is not negative."""
    for rows in lp.local:
        own, others = rows.matrix[:, lp.secrets :], rows.matrix[:, : lp.secrets]
        limited = np.diff(own.indptr) > 0
        if (own.data < 0).any() or (others[limited].data > 0).any():
            return False
    for link in lp.links:
        index = link.matrix.indices % lp.block_size
        shared = np.diff(link.shared.indptr) > 0
        if (link.matrix.data[index >= lp.secrets] > 0).any() or (link.shared.data > 0).any():
            return False
        if (link.matrix[shared].data < 0).any():
            return False
    return not (lp.cost[lp.secrets :] > 0).any() and not (lp.shared_cost < 0).any()


def build(lp: BlockLP, *, table: bool = True) -> Model:
    """Write ``lp`` as a Model; its ratios as a ``table`` of all pairs, or else not at all."""
    class_of, first, tree = _classes(lp)
    count = len(first)
    none = np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int32)
    ratio, pair = _ratios(lp, class_of, count) if table else none
    merge = sp.csr_array(
        (np.ones(lp.secrets), (class_of, np.arange(lp.secrets))), shape=(count, lp.secrets)
    )
    pool, sides = _pool(lp, merge)
    coupling, limits = _coupling(lp, class_of, merge)
    rows = [averages(lp, link) for link in lp.links if link.equal]
    return Model(
        lp=lp,
        class_of=class_of,
        first=first,
        tree=tree,
        cost=_padded((merge @ lp.cost[: lp.secrets]).T),
        ratio=ratio,
        pair=pair,
        allowed=_allowed(lp, merge, ratio),
        pool=_padded(pool),
        sides=_padded(sides, len(limits)),
        auxiliary_cost=_padded(lp.cost[lp.secrets :].T, len(limits)),
        shared_cost=lp.shared_cost,
        coupling=coupling,
        limits=_padded(limits),
        row=first if not rows or rows[0] is None else rows[0][first],
    )


def _padded(rows: Floats, more: int = 1) -> Floats:
    """With more columns, of zeros."""
    *others, width = rows.shape
    wide = np.zeros((*others, width + more))
    wide[..., :width] = rows
    return wide


def _classes(lp: BlockLP) -> tuple[Ints, Ints, tuple[tuple[int, int, int, int], ...]]:
    """Classes of secrets tied by ratios of one both ways, and a spanning tree of every class."""
    secrets = lp.secrets
    zero = np.flatnonzero(lp.cone.log_ratio <= MERGE)
    pairs = zip(lp.cone.i[zero].tolist(), lp.cone.j[zero].tolist(), strict=True)
    number = dict(zip(pairs, zero.tolist(), strict=True))
    mutual = [(i, j) for i, j in number if (j, i) in number and i != j]
    if not mutual:
        return np.arange(secrets), np.arange(secrets), ()
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    ends = tuple(np.array(mutual).T)
    graph = sp.csr_array((np.ones(len(mutual)), ends), shape=(secrets, secrets))
    class_of = connected_components(graph, directed=False)[1].astype(np.int64)
    _, first = np.unique(class_of, return_index=True)
    tree: list[tuple[int, int, int, int]] = []
    for root in first[np.bincount(class_of) > 1]:
        order, parent = breadth_first_order(graph, root, directed=False)
        for secret in order[:0:-1].tolist():
            above = int(parent[secret])
            tree.append((secret, above, number[secret, above], number[above, secret]))
    return class_of, first, tuple(tree)


def _ratios(lp: BlockLP, class_of: Ints, count: int) -> tuple[Floats, Indices]:
    """The tightest log ratio between classes, and which pair has it."""
    cone = lp.cone
    ratio = np.full((count, count), np.inf)
    pair = np.full((count, count), -1, dtype=np.int32)
    own = count == lp.secrets
    i, j = (cone.i, cone.j) if own else (class_of[cone.i], class_of[cone.j])
    some = (i != j) & (cone.log_ratio <= FAR)
    if some.all():
        used, lengths = np.arange(len(i), dtype=np.int32), cone.log_ratio
    else:
        used = np.flatnonzero(some).astype(np.int32)
        i, j, lengths = i[used], j[used], cone.log_ratio[used]
    pair[i, j] = used
    if int((pair >= 0).sum()) < len(used):
        # written in falling order, so that the tightest stays
        order = np.argsort(-lengths, kind="stable")
        used, i, j, lengths = used[order], i[order], j[order], lengths[order]
        pair[i, j] = used
    ratio[i, j] = np.maximum(lengths, MERGE)
    return ratio, pair


def _allowed(lp: BlockLP, merge: sp.csr_array, ratio: Floats) -> Bools:
    """(blocks, m): a variable is zero where it is fixed, or where it is below a zero one."""
    zero = (merge @ lp.fixed[: lp.secrets].astype(float)) > 0
    bounded = np.isfinite(ratio).astype(float) if zero.any() else ratio
    while zero.any():
        wider = zero | ((bounded @ zero.astype(float)) > 0)
        if (wider == zero).all():
            break
        zero = wider
    return np.ascontiguousarray(~zero.T)


def _pool(lp: BlockLP, merge: sp.csr_array) -> tuple[Floats, Floats]:
    """All local rows, turned to >= 0: coefficients of variables and of auxiliaries."""
    if not lp.local:
        return np.zeros((0, merge.shape[0])), np.zeros((0, lp.auxiliary))
    rows = sp.vstack([local.matrix for local in lp.local], format="csr")
    secrets = lp.secrets
    return -(rows[:, :secrets] @ merge.T).toarray(), -rows[:, secrets:].toarray()


def _coupling(lp: BlockLP, class_of: Ints, merge: sp.csr_array) -> tuple[Coupling, Floats]:
    links, none = [link for link in lp.links if not link.equal], merge.shape[0]
    rhs = np.concatenate([np.zeros(0), *(link.rhs for link in links)])
    shared = np.vstack([np.zeros((0, lp.shared)), *(link.shared.toarray() for link in links)])
    variable, value = np.full(len(rhs), none), np.zeros((len(rhs), lp.blocks))
    auxiliary = np.zeros((len(rhs), lp.auxiliary))
    limits: list[Floats] = []
    first = 0
    for link in links:
        over, coo = _over(lp, link), link.matrix.tocoo()
        row, (block, local) = first + coo.coords[0], np.divmod(coo.coords[1], lp.block_size)
        if over == "secrets":
            spread = link.matrix.toarray().reshape(lp.blocks, lp.block_size)
            limits.append(spread[:, : lp.secrets] @ merge.T)
            auxiliary = np.column_stack([auxiliary, np.arange(len(rhs)) == first])
        elif over == "auxiliaries":
            auxiliary[row, local - lp.secrets] = coo.data
        else:
            variable[row] = class_of[local]
            value[row, block] = coo.data
        first += len(link.rhs)
    coupling = Coupling(variable, value, auxiliary, shared, rhs)
    return coupling, np.array(limits).reshape(len(limits), lp.blocks, none)


def _over(lp: BlockLP, link: LinkRows) -> Literal["secret", "secrets", "auxiliaries"] | None:
    """What the rows of a link are over: one secret each, several in one row, or auxiliary
    variables alike in every block; None for anything else."""
    row, column = link.matrix.tocoo().coords
    local = column % lp.block_size
    if (local >= lp.secrets).any():
        first = sp.hstack([link.matrix[:, : lp.block_size]] * lp.blocks)
        alike = abs(link.matrix - first).nnz == 0
        return "auxiliaries" if alike and (local >= lp.secrets).all() else None
    low, high = np.full(len(link.rhs), lp.secrets), np.zeros(len(link.rhs), dtype=np.int64)
    np.minimum.at(low, row, local)
    np.maximum.at(high, row, local)
    if (low >= high).all():
        return "secret"
    return "secrets" if len(link.rhs) == 1 else None
