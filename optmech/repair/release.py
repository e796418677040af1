"""From a repaired float matrix to integer numerators that satisfy every inequality exactly.

Where a problem leaves no matrix strictly inside all of its inequalities, some of these are
equations: entries that are zero, entries of a column that are equal, pushes of two distributions
that agree. A proposal is projected onto them in floating point and solved for in whole numbers,
column by column; what rounding leaves of the rows goes to one column, where it keeps the equations
that hold in all columns. As little of a matrix far inside is then mixed in as makes every
inequality hold. Proof: docs/theory/repair.md, "Equations".

Equalities that a statement implies are stated, so that searches and repairs see them. If r_ij = 0
then P[i,o] <= P[j,o] in every column, and both rows sum to one: they are equal. Ratios that leave
no more than rounding are taken for zero, which is stricter. Proofs: docs/theory/repair.md, "Equal
rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import flint
import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.certificate import Check, Multipliers, check_exact
from optmech.certificate.families import PairMultipliers
from optmech.certificate.statement import Statement
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators, Wholes, enough_bits, integers, wholes
from optmech.lp.families.ratios import TINY
from optmech.lp.flatten import Interior
from optmech.lp.inequalities import Inequalities, ProgramMultipliers
from optmech.repair.cone import components, members_of

_SHIFTS = tuple(range(48, 8, -4))
_TOWARDS_MEAN = 40
_STEP = 4
_NEAREST_FIRST = tuple(range(60, -1, -_STEP))
_PASSES = 3
_LEAST = 1e-9
"""Entries move in proportion to their size, and to this at least."""
_SPARE = 40
"""Bits beyond those that the equations need."""


@record
class Released:
    """A matrix that passed, and the verdicts."""

    exact: Numerators
    checks: tuple[Check, ...]

    @classmethod
    def of(cls, statement: Statement, candidate: Numerators) -> Released | None:
        """The candidate, if it passes the exact check."""
        checks = check_exact(statement, candidate)
        return cls(candidate, checks) if all(check.passed for check in checks) else None


def release(
    given: Inequalities, matrix: Floats, anchors: Iterable[Floats], *, alone: bool = False
) -> Released | None:
    """Round to numerators and check exactly; None where no way was found.

    Sums can miss their limits by the last digits of floating point. Then 2^-48, 2^-44, ... of an
    anchor, a matrix that satisfies the constraints with room to spare, is mixed in (theory:
    "Release"); with ``alone``, at last an anchor by itself.
    """
    statement, rounded = given.statement, Numerators.rounded(matrix)
    found = Released.of(statement, rounded)
    if found is not None:
        return found
    others = [Numerators.rounded(anchor) for anchor in anchors]
    rounded = equalised(given, rounded) or rounded
    for shift in (*_SHIFTS, 0) if alone else _SHIFTS:
        for other in others:
            try:
                found = Released.of(statement, rounded.mixed(other, shift))
            except ProblemError:
                continue
            if found is not None:
                return found
    return None


def equalised(given: Inequalities, near: Numerators) -> Numerators | None:
    """A matrix near ``near`` with λP = λ'P exactly, for pairs that may hardly differ; else None.

    With pivot rows B and free rows F, den · P_B = -R P_F for the reduced echelon form R of the
    differences λ - λ'. The free rows become a common row plus multiples of den, so that the pivot
    rows are whole numbers too.
    """
    apart = differences(given)
    if not apart:
        return None
    table, den, pivots = _echelon(apart)
    # a little of the mean row keeps small entries positive
    count = len(near.rows)
    mean = wholes(near.rows).sum(axis=0) // count
    mean[mean.argmax()] += (1 << near.bits) - mean.sum()
    mixed = near.mixed(Numerators(near.bits, (tuple(mean),) * count), _TOWARDS_MEAN)
    shift = den.bit_length() + _TOWARDS_MEAN
    rows, common = wholes(mixed.rows), mean << (_TOWARDS_MEAN + shift)
    # multiples of den that sum to zero, from the common row
    steps = ((rows << shift) - common) // den
    steps[np.arange(count), rows.argmax(axis=1)] -= steps.sum(axis=1)
    out = common + den * steps
    steps[pivots] = 0
    out[pivots] = common - table @ steps
    try:
        return Numerators.of(mixed.bits + shift, out)
    except ProblemError:
        return None


def _echelon(rows: list[list[int]]) -> _Solver:
    """The reduced form of some equations."""
    reduced, denominator, rank = flint.fmpz_mat(rows).rref()
    sign = -1 if denominator < 0 else 1
    table = sign * wholes([list(map(int, row)) for row in reduced.table()])[:rank]
    return table, sign * int(denominator), [int(np.flatnonzero(row)[0]) for row in table]


def differences(given: Inequalities) -> list[list[int]]:
    """λ/Σλ - λ'/Σλ' in whole numbers, for pairs of different distributions whose ratios are all
    but equal."""
    found: list[list[int]] = []
    for part in given.parts:
        for left, right in part.equal_pushes():
            whole = wholes(integers(np.vstack([left, right]))[0])
            a, b = whole[: len(left)], whole[len(left) :]
            apart = a * b.sum(axis=1, keepdims=True) - b * a.sum(axis=1, keepdims=True)
            found += apart[(apart != 0).any(axis=1)].tolist()
    return found


Equation = tuple[int, ...]
"""Whole coefficients of the secrets; their combination of a column is zero."""


def released_near(implied: Implied, matrix: Floats, inside: Interior) -> Released | None:
    """The matrix with as little as possible of the one inside; None where nothing passed."""
    equations = _Equations(implied.given, inside)
    near, anchor = (equations.projected(part) for part in (matrix, inside.matrix))

    def mixed(shift: int) -> Released | None:
        share = 2.0**-shift
        try:
            candidate = equations.solved((1 - share) * near + share * anchor)
        except ProblemError:
            return None
        return Released.of(implied.given.statement, candidate)

    for shift in _NEAREST_FIRST:
        found = mixed(shift)
        if found is not None:
            less = (mixed(k) for k in range(shift + _STEP - 1, shift, -1))
            return next(filter(None, less), found)
    return None


class _Equations:
    """What all mechanisms have in common: zeros, equations of every column, and
    more equations of some columns (ties within a window)."""

    def __init__(self, given: Inequalities, inside: Interior) -> None:
        self.zero = inside.zero
        self.inside = inside.matrix
        secrets, observables = self.zero.shape
        zero, ties = given.log_ratio == 0, list(_tied_entries(inside))
        links: list[list[tuple[int, int]]] = [[] for _ in range(observables)]
        for i, j, o in ties:
            links[o].append((i, j))

        def equal(o: int) -> Ints:
            tied = np.outer(self.zero[:, o], self.zero[:, o])
            for pair in links[o]:
                tied[pair] = True
            own = components(tied)
            return np.asarray(own[:, None] == own, np.int64)

        # what is equal in all columns but one is equal there too; nothing is where two tie nothing
        never = self.zero.sum(axis=0).tolist()
        free = sum(not own and few < 2 for own, few in zip(links, never, strict=True))
        alike = np.asarray(free < 2 and sum(map(equal, range(observables))) >= observables - 1)
        same = components((zero & zero.T) | alike)
        first = np.unique(same, return_index=True)[1][same]
        self.common = [_tie(secrets, i, s) for s, i in enumerate(first) if i != s]
        self.common += map(tuple, differences(given))
        self.more: list[list[Equation]] = [[] for _ in range(observables)]
        for i, j, o in ties:
            if same[i] != same[j]:
                self.more[o].append(_tie(secrets, i, j))
        self.rest = self._rest()
        self.solvers = [self._solver(o) for o in range(observables)]

    def solved(self, matrix: Floats) -> Numerators:
        """Whole numbers near a matrix. Raises ProblemError where some are below zero, or an
        equation holds in no column that could take what rounding leaves."""
        widest = max(den.bit_length() for _, den, _ in self.solvers)
        bits = enough_bits(matrix) + widest + _SPARE
        columns = [
            _solution(matrix[:, o], solver, bits, np.flatnonzero(~self.zero[:, o]))
            for o, solver in enumerate(self.solvers)
        ]
        if min(self.rest) < 0:
            raise ProblemError("no column can take what rounding leaves", where="mechanism")
        rows = wholes(columns).T
        rows[np.arange(len(rows)), self.rest] += (1 << bits) - rows.sum(axis=1)
        return Numerators.of(bits, rows)

    def _solver(self, o: int) -> _Solver:
        """The reduced echelon form of a column's equations over the entries that are not zero."""
        free = np.flatnonzero(~self.zero[:, o]).tolist()
        rows = [[equation[s] for s in free] for equation in [*self.common, *self.more[o]]]
        rows = [row for row in rows if any(row)]
        return _echelon(rows) if rows else (wholes(np.zeros((0, len(free)))), 1, [])

    def projected(self, matrix: Floats) -> Floats:
        """The nearest solution of all equations, distances being relative to the entries."""
        matrix = np.where(self.zero, 0.0, np.maximum(matrix, 0.0))
        secrets, observables = matrix.shape
        free = ~self.zero.ravel()
        sums = np.kron(np.eye(secrets), np.ones(observables))
        unit = np.eye(observables)
        body = [
            np.kron(np.array(equation, dtype=float) / max(map(abs, equation)), unit[o])
            for o in range(observables)
            for equation in [*self.common, *self.more[o]]
        ]
        table = np.vstack([sums, *body]) * free
        wanted = np.concatenate([np.ones(secrets), np.zeros(len(table) - secrets)])
        values = matrix.ravel()
        for _ in range(_PASSES):
            weight = np.maximum(values, _LEAST) * free
            step = np.linalg.lstsq(table * weight, wanted - table @ values, rcond=1e-12)[0]
            values = values + weight * step
        return values.reshape(matrix.shape)

    def _rest(self) -> list[int]:
        """For every row the column that takes what rounding leaves: one for all rows that
        equations of every column tie, and there none of them may be zero or tied otherwise."""
        secrets = len(self.zero)
        used = np.array([[value != 0 for value in row] for row in self.common], dtype=float)
        used = used.reshape(len(self.common), secrets)
        out = np.zeros(secrets, dtype=np.int64)
        for rows in members_of(components(used.T @ used > 0)):
            size = np.where(self.zero[rows], 0.0, self.inside[rows]).min(axis=0)
            for o, equations in enumerate(self.more):
                if any(equation[s] for equation in equations for s in rows.tolist()):
                    size[o] = 0.0
            out[rows] = size.argmax() if size.max() > 0 else -1
        return out.tolist()


_Solver = tuple[Wholes, int, list[int]]
"""Rows of an echelon form, its denominator > 0, and the pivots."""


def _solution(values: Floats, solver: _Solver, bits: int, free: Ints) -> Wholes:
    """Whole numbers near 2^bits ``values`` that solve a column's equations: multiples of the
    denominator in the free places, so that the pivots are whole."""
    table, den, pivots = solver
    out = wholes(np.zeros(len(values), dtype=np.int64))
    steps = np.maximum(floored(values[free], bits) // den, 0)
    steps[pivots] = 0
    out[free] = steps * den
    out[free[pivots]] = -(table @ steps)
    return out


def floored(values: Floats, bits: int) -> Wholes:
    """The largest whole numbers up to values · 2^bits, (n,)."""
    ratios = map(float.as_integer_ratio, values.tolist())
    return wholes([(top << bits) // bottom for top, bottom in ratios])


def _tie(secrets: int, i: int, j: int) -> Equation:
    out = [0] * secrets
    out[min(i, j)], out[max(i, j)] = 1, -1
    return tuple(out)


def _tied_entries(inside: Interior) -> Iterator[tuple[int, int, int]]:
    """(i, j, o) with P[i,o] = P[j,o] among the equations found."""
    observables = inside.zero.shape[1]
    rows = inside.rows
    for first, last, total in zip(rows.indptr[:-1], rows.indptr[1:], inside.sums, strict=True):
        if last - first == 2 and total == 0 and rows.data[first] == -rows.data[first + 1]:
            (i, o), (j, other) = (divmod(int(k), observables) for k in rows.indices[first:last])
            if o == other and not (inside.zero[i, o] and inside.zero[j, o]):
                yield i, j, o


@record
class Implied:
    """Inequalities with the same mechanisms as their ``source`` (or a few less, where tiny ratios
    were taken for zero) with the equalities stated, and the way back for their multipliers."""

    source: Inequalities
    given: Inequalities
    first: Ints
    second: Ints
    """Pairs P[first] <= P[second] of the source that are given both ways, without a window."""
    stricter: bool
    """Whether there were tiny ratios, taken for zero."""

    @classmethod
    def of(cls, source: Inequalities, *, tiny: bool = True) -> Implied:
        """Without ``tiny``, no ratio is taken for zero that is not."""
        rounded = given = source.without_tiny() if tiny else source
        # where P[i,o] <= P[j,o] in every column, by ratios of one or the support
        zero: Bools = np.array(given.log_ratio == 0)
        for part in given.windows:
            whole = np.asarray((part.window | ~given.allowed).all(axis=1))
            zero |= (part.log_ratio == 0) & whole[:, None]
        np.fill_diagonal(zero, False)
        one_way = zero & ~(zero.T & (given.log_ratio == 0) & (given.log_ratio.T == 0))
        one_way &= ~(one_way & one_way.T & np.tri(len(zero), k=-1, dtype=bool))
        i, j = np.nonzero(one_way)
        if len(i):
            ratio = np.array(given.log_ratio)
            ratio[i, j] = ratio[j, i] = 0.0
            given = given.with_ratios(ratio)
        return cls(source, given, i, j, rounded is not source)

    def recover(self, found: ProgramMultipliers) -> Multipliers:
        """Multipliers of the source that prove the same bound, but for what is tiny."""
        statement, ratio = self.source.statement, found.pairs
        if not len(self.first) or not len(ratio.value):
            return found.stated(statement)
        # 1, 2, ... for the pairs that are given both ways, -1, -2, ... for the other way
        number = np.zeros(self.source.log_ratio.shape, dtype=np.int64)
        number[self.first, self.second] = np.arange(1, len(self.first) + 1)
        own = (number - number.T)[ratio.i, ratio.j]
        kept, both, own = ratio.take(own == 0), ratio.take(own != 0), own[own != 0]
        # adding the same to all columns of a pair moves no bound
        net = np.zeros((len(self.first), statement.observables))
        np.add.at(net, (abs(own) - 1, both.o), np.sign(own) * both.value)
        net -= net.min(axis=1, keepdims=True)
        plain = self.source.log_ratio[self.first, self.second] <= TINY
        families = dict(found.families)
        left = np.where(plain[:, None], 0.0, net)
        for window in self.source.windows:
            tight = window.log_ratio[self.first, self.second] <= TINY
            here = np.where(tight[:, None] & window.window[self.first], left, 0.0)
            left = left - here
            more = PairMultipliers.joined([families.get(window.number), self._pairs(here)])
            families[window.number] = more
        pairs = PairMultipliers.joined([kept, self._pairs(net * plain[:, None])])
        assert pairs is not None
        return replace(found, pairs=pairs, families=families).stated(statement)

    def _pairs(self, value: Floats) -> PairMultipliers:
        """Weights (pairs, O) on P[first] <= P[second]."""
        k, o = np.nonzero(value)
        return PairMultipliers(self.first[k], self.second[k], o, value[k, o])
