"""A BlockLP as one sparse matrix, its rows scaled, and its points in the shapes of the program."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP, HeldColumns, Point, entries

_ROUNDING = 1e-12
"""Share of its terms by which a row of known values may miss its limit: rounding."""
_LEAST_COST = 2.0**-1000
_COUNTS = 1e-20
"""Share of a row's largest entry from which on an entry has a say in the row's scale."""


@record
class FlatLP:
    """minimise cost·x subject to lower <= matrix x <= upper, 0 <= x <= upper_x.

    Rows: cone pairs block after block (block-major, in the order of ``pair_of_row``), then local
    rows block after block for each family, then linking rows. Row k of the original program is
    ``row_scale[k]`` times row k here, divided out again by ``point``.
    """

    lp: BlockLP
    cost: Floats
    matrix: sp.csr_array
    lower: Floats
    upper: Floats
    upper_x: Floats
    row_scale: Floats
    pair_of_row: Ints
    block_of_row: Ints
    """Columns of rows that are held are empty, their parts of the rows moved to the limits."""

    @property
    def cost_scale(self) -> float:
        """What makes costs of order one, so that a solver's absolute tolerances fit."""
        largest = float(np.abs(self.cost).max(initial=0.0))
        # of a subnormal number the inverse is none
        return 1.0 / max(largest, _LEAST_COST) if largest else 1.0

    def point(self, x: Floats, row_dual: Floats) -> Point:
        """Primal values and row duals (HiGHS sign: <= 0 for active <= rows) as a Point."""
        lp = self.lp
        dual = -row_dual * self.row_scale
        size = lp.block_size * lp.blocks
        counts = [len(self.pair_of_row), *(r.matrix.shape[0] * lp.blocks for r in lp.local)]
        ends = np.cumsum([*counts, *(len(link.rhs) for link in lp.links)])[:-1]
        own, *others = np.split(dual, ends)
        cone = sp.csr_array(
            (np.maximum(own, 0.0), (self.pair_of_row, self.block_of_row)),
            shape=(len(lp.cone), lp.blocks),
        )
        equal = [*(rows.equal for rows in lp.local), *(link.equal for link in lp.links)]
        parts = zip(others, equal, strict=True)
        signed = [part if same else np.maximum(part, 0.0) for part, same in parts]
        count = len(lp.local)
        z = x[:size].reshape(lp.blocks, lp.block_size).T
        if lp.held is not None:
            z = np.array(z)
            z[lp.held.secrets] = lp.held.values
        return Point(
            z=z,
            shared=x[size:],
            cone=cone,
            local=tuple(part.reshape(lp.blocks, -1).T for part in signed[:count]),
            links=tuple(signed[count:]),
        )


def flatten(lp: BlockLP) -> FlatLP:
    """Write the program as one sparse matrix. Raises ProblemError where there are perspectives,
    which are not linear."""
    if lp.perspectives:
        raise ProblemError(
            "divergence constraints are not linear",
            where="constraints",
            remedy='Solve with profile "conic", "tangents" or "cvxpy"; only "max" and "tv" make a '
            "linear program",
        )
    # block after block
    blocks, pairs = np.nonzero(lp.cone.within(lp.blocks).T)
    # e^{-r/2} v_i - e^{r/2} v_j <= 0 has entries of comparable size, where a large ε·diameter would
    # drown in a solver's absolute tolerances
    half, row, offset = lp.cone.log_ratio[pairs] / 2, np.arange(len(pairs)), blocks * lp.block_size
    scale, shape = np.exp(-half), (len(pairs), lp.blocks * lp.block_size + lp.shared)
    left = scale, row, offset + lp.cone.i[pairs]
    right = -np.exp(half), row, offset + lp.cone.j[pairs]
    parts, scales = [sp.csr_array(entries(shape, left, right))], [scale]
    lower, upper = [np.full(len(pairs), -np.inf)], [np.zeros(len(pairs))]
    limited = [(_everywhere(lp, part.matrix), np.zeros(1), part.equal) for part in lp.local]
    limited += [
        (sp.hstack([link.matrix, link.shared], format="csr"), link.rhs, link.equal)
        for link in lp.links
    ]
    for own, rhs, equal in limited:
        row_scale = _row_scales(own)
        parts.append(sp.diags_array(row_scale) @ own)
        scales.append(row_scale)
        upper.append(rhs * row_scale)
        lower.append(upper[-1] if equal else np.full(len(row_scale), -np.inf))
    upper_x = np.where(lp.fixed.T.ravel(), 0.0, np.inf)
    flat = FlatLP(
        lp=lp,
        cost=np.concatenate([lp.cost.T.ravel(), lp.shared_cost]),
        matrix=sp.vstack(parts, format="csr"),
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        upper_x=np.concatenate([upper_x, np.full(lp.shared, np.inf)]),
        row_scale=np.concatenate(scales),
        pair_of_row=pairs,
        block_of_row=blocks,
    )
    return flat if lp.held is None else _with_known(flat, lp.held)


def _everywhere(lp: BlockLP, rows: sp.csr_array) -> sp.csr_array:
    """Local rows in every block, as rows over all variables."""
    stacked = sp.block_diag([rows] * lp.blocks, format="csr")
    pad = sp.csr_array((stacked.shape[0], lp.shared))
    return sp.hstack([stacked, pad], format="csr")


def _with_known(flat: FlatLP, held: HeldColumns) -> FlatLP:
    """The program with the columns of held rows put in. A row that nothing else is left of, and
    that holds up to rounding, is let go: the certificate decides it."""
    lp = flat.lp
    columns = (np.arange(lp.blocks)[:, None] * lp.block_size + held.secrets).ravel()
    values = held.values.T.ravel()
    parts = flat.matrix.tocsc()[:, columns]
    moved, size = parts @ values, abs(parts) @ values
    known = np.zeros(flat.matrix.shape[1], dtype=bool)
    known[columns] = True
    matrix = flat.matrix @ sp.diags_array(np.where(known, 0.0, 1.0))
    left = np.array(known)
    if held.elastic is not None:
        # the values count 1 - e times, as the right sides that zero misses do
        e = lp.blocks * lp.block_size + held.elastic
        left[e] = True
        place = (np.arange(len(moved)), np.full(len(moved), e))
        matrix = matrix + sp.csr_array((-moved, place), shape=matrix.shape)
    others = abs(flat.matrix) @ np.where(left, 0.0, 1.0)
    slack = _ROUNDING * (size + np.where(np.isfinite(flat.upper), abs(flat.upper), 0.0))
    idle = (others == 0) & (moved <= flat.upper + slack) & (moved >= flat.lower - slack)
    matrix = sp.diags_array(np.where(idle, 0.0, 1.0)) @ matrix
    matrix.eliminate_zeros()
    return replace(
        flat,
        cost=np.where(known, 0.0, flat.cost),
        matrix=matrix,
        lower=np.where(idle, -np.inf, flat.lower - moved),
        upper=np.where(idle, 0.0, flat.upper - moved),
        upper_x=np.where(known, 0.0, flat.upper_x),
    )


def _row_scales(matrix: sp.csr_array) -> Floats:
    """One over the geometric middle of a row's largest absolute entry and the smallest of those
    that count: a weight of 1e-200 beside others of order one would scale these beyond what
    solvers take."""
    high, low = np.zeros(matrix.shape[0]), np.full(matrix.shape[0], np.inf)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    entries = np.abs(matrix.data)
    np.maximum.at(high, row, entries)
    counts = entries > _COUNTS * high[row]
    np.minimum.at(low, row[counts], entries[counts])
    high = np.where(high > 0, high, 1.0)
    return 1.0 / np.sqrt(high) / np.sqrt(np.minimum(low, high))


@record
class Interior:
    """A mechanism (S, O) inside, and what it shares with all: ``zero`` (S, O) marks entries
    that are zero, and ``rows`` (k, S * O) with ``sums`` (k,) are the equations that hold, those
    among the probabilities alone; row sums are left out."""

    matrix: Floats
    zero: Bools
    rows: sp.csr_array
    sums: Floats
