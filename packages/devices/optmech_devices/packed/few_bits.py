"""From a mechanism to whole numbers over a small power of two, inside the cone of its ratios.

Rounding entries one by one breaks the ratios of small ones. Here every column is raised to its
least majorant among *whole* vectors of the cone, v_j = ceil(max_i e^{-r_ij} v_i), rows are
completed by a whole vector that lies in the cone as well, and reports whose least entries would
cost more than they are worth are merged into others first. Proofs: docs/theory/files.md, "Packing".
The result is still to be decided by the certificate: nothing is promised here. Constants have no
gradient: with whole ones in its columns, a matrix over a mesh's control points keeps its promise.
"""

from collections.abc import Callable, Iterator

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.minplus import max_times
from optmech.base.read_only import record
from optmech.certificate.families.gradient import check_gradients
from optmech.certificate.statement import Statement
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators
from optmech.lp.inequalities import Inequalities
from optmech.repair.cone import Cone, members_of
from optmech.repair.fixed_rows import HeldRows
from optmech.repair.gradients import MARGINS, inside, missing
from optmech.repair.mixing import constant_anchors
from optmech.repair.release import Implied, Released
from optmech.spaces.mesh import Mesh

_SMALL, _SNAP = 4096.0, 2e-13
"""Products below the first that exceed a whole number by less than this share of it are taken for
that number: ratios such as 2 are often meant exactly, and there a unit counts."""
_TRIES = 16
_CONSTANTS = 40
"""Added to columns: every one makes some column's rounding sufficient."""
_SHARES = (0.0, 0.5, 1.0, 2.0)
_MIXTURES = (0.0, *(2.0**-k for k in range(40, 3, -4)))


@record
class WholeCone:
    """The whole vectors of a cone, up to 2^bits."""

    cone: Cone
    bits: int
    snap: float = _SNAP

    def closure(self, columns: Floats) -> Floats:
        """The least whole matrix >= ``columns`` (whole numbers, shape (S, O)) in the cone."""
        out = np.where(self.cone.allowed, columns, 0.0)
        moving = np.flatnonzero(out.any(axis=0))
        # a step upwards may start others: whole numbers end that
        while len(moving):
            before = out[:, moving]
            after = np.maximum(before, self._up(max_times(self.cone.always, before)))
            for ratios, window in self.cone.windows:
                inside = np.where(window[:, moving], after, 0.0)
                after = np.maximum(after, self._up(max_times(ratios, inside)))
            out[:, moving] = after
            moving = moving[(after != before).any(axis=0)]
        return out

    def holds(self, column: Floats) -> bool:
        """Whether a whole vector (S,) lies in the cone, of all ratios together."""
        if column.min() < 0:
            return False
        least = self._up(max_times(self.cone.log_ratio, column[:, None])[:, 0])
        return bool((least <= column).all())

    def _up(self, values: Floats) -> Floats:
        return np.ceil(np.where(values < _SMALL, values * (1 - self.snap), values))


def few_bits(
    statement: Statement,
    matrix: Floats,
    bits: int,
    inside: Callable[[], Floats | None],
) -> Released | None:
    """Whole numbers over 2^``bits`` near a mechanism, which pass the exact check; None where no way
    was found. ``bits`` is at most 48; ``inside`` finds a matrix that keeps every inequality with
    something to spare, and is asked where no constant one helps."""
    given = Inequalities.of(statement)
    held = HeldRows.of(given, bits)
    if held is not None:
        return held.near(matrix)
    implied = Implied.of(given).given
    cone = Cone.of(implied)

    def anchors() -> Iterator[list[Floats]]:
        yield list(constant_anchors(statement, matrix))
        if given.convex and (deepest := inside()) is not None:
            yield [deepest]

    found = (
        Released.of(statement, candidate)
        for others in anchors()
        for snap in (_SNAP, 0.0)
        for candidate in _candidates(given, WholeCone(cone, bits, snap), matrix, others)
    )
    return next(filter(None, found), None)


def _candidates(
    given: Inequalities, whole: WholeCone, matrix: Floats, others: list[Floats]
) -> Iterator[Numerators]:
    """The cheapest first where only ratios count; else by how much of ``others`` is mixed in."""
    statement = given.statement
    if not given.convex:
        found = [
            _numerators(rounded, whole.bits)
            for merged in _merged(statement, whole, matrix)
            if (rounded := _rounded(statement, whole, merged)) is not None
        ]
        yield from sorted(found, key=lambda n: (statement.cost * n.matrix).sum())
        return
    for share in _MIXTURES:
        for anchor in others if share else (matrix,):
            mixed = _rounded(statement, whole, (1 - share) * matrix + share * anchor)
            if mixed is not None:
                yield _numerators(mixed, whole.bits)


def _numerators(rounded: Floats, bits: int) -> Numerators:
    return Numerators.of(bits, rounded.astype(np.int64))


def _rounded(statement: Statement, whole: WholeCone, matrix: Floats) -> Floats | None:
    """Whole columns of the cone and rows that sum to 2^bits; None where there are no such."""
    cone, total = whole.cone, 2.0**whole.bits
    reserve = np.zeros(len(matrix))
    usable = np.asarray(cone.allowed.all(axis=0))
    for _ in range(_TRIES):
        out = whole.closure(np.floor(matrix * (total - reserve[:, None])))
        out += np.ceil(cone.lifted.raised(out, usable) - out)
        missing = total - out.sum(axis=1)
        short = np.zeros(len(matrix))
        for members in members_of(cone.component):
            own = missing[members]
            if not own.any():
                continue
            free = np.flatnonzero(cone.allowed[members].all(axis=0))
            if not len(free):
                return None
            ratios = cone.log_ratio[np.ix_(members, members)]
            least = cone.least_total(total - own, ratios) - total
            vector = np.zeros(len(matrix))
            vector[members] = own
            if least > 0 or not whole.holds(vector):
                short[members] = max(1.0, np.ceil(1.05 * least))
                continue
            cheapest = free[(own @ statement.cost[np.ix_(members, free)]).argmin()]
            out[members, cheapest] += own
        if not short.any():
            return out
        reserve += short
        if reserve.max() >= total:
            return None
    return None


def _merged(statement: Statement, whole: WholeCone, matrix: Floats) -> Iterator[Floats]:
    """The matrix with none, and with more and more, of its reports merged into others: a function
    of the report, so that every promise is kept."""
    yield matrix
    expected = statement.objective == "expected_loss"
    if not expected or not statement.allowed.all() or whole.cone.windows:
        return
    total, cost = 2.0**whole.bits, statement.cost
    used = np.flatnonzero(matrix.any(axis=0))
    if len(used) < 2:
        return
    columns = matrix[:, used]
    spent = whole.closure(np.floor(matrix * total))[:, used] / total - columns
    # what a report's least entries push aside has the mean loss of its row
    mean = (matrix * cost).sum(axis=1, keepdims=True)
    keeping = (spent * (cost[:, used] - mean)).sum(axis=0)
    moved = columns.T @ cost[:, used]
    own = moved.diagonal().copy()
    np.fill_diagonal(moved, np.inf)
    leaving = moved.min(axis=1) - own
    before = len(used)
    for share in _SHARES:
        kept = leaving > share * keeping
        kept[columns.sum(axis=0).argmax()] = True
        if kept.sum() == before:
            continue
        before = int(kept.sum())
        np.fill_diagonal(moved, own)
        nearest = np.flatnonzero(kept)[moved[:, kept].argmin(axis=1)]
        target = np.where(kept, np.arange(len(used)), nearest)
        out = np.zeros_like(matrix)
        np.add.at(out.T, used[target], columns.T)
        yield out


def few_bits_inside(
    mesh: Mesh, epsilon: Exact, matrix: Floats, bits: int, index: int | None
) -> Numerators | None:
    """Whole numbers over 2^``bits`` (at most 48) near a matrix whose gradients pass the exact
    check; None where there is no room for them.

    Rounding moves an entry by less than a unit, and what that adds to a gradient is made up for by
    a whole constant in its column, which has no gradient itself.
    """
    total = 2**bits
    own = inside(mesh, float(epsilon), matrix)
    constant = np.zeros(own.shape[1], dtype=np.int64)
    for _ in range(_CONSTANTS):
        left = total - constant.sum()
        if left <= 0:
            return None
        whole = _rounded_rows(own, left) + constant
        needed = missing(mesh, (1 - MARGINS[0]) * float(epsilon), whole.astype(np.float64))
        if not needed.any():
            released = Numerators.of(bits, whole)
            if check_gradients(mesh, epsilon, released, index).passed:
                return released
            needed[:] = 1.0
        constant += np.ceil(needed).astype(np.int64)
    return None


def _rounded_rows(matrix: Floats, total: int) -> Ints:
    """Whole rows of the sum ``total``, each entry less than one from ``matrix`` times that: the
    largest remainders are rounded up."""
    scaled = matrix * total
    down = np.floor(scaled)
    short = total - down.sum(axis=1)
    order = np.argsort(np.argsort(down - scaled, axis=1, kind="stable"), axis=1, kind="stable")
    out = np.asarray(down + (order < short[:, None]), dtype=np.int64)
    # rows whose floats do not sum to one exactly
    out[np.arange(len(out)), scaled.argmax(axis=1)] += total - out.sum(axis=1)
    return out
