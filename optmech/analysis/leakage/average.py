"""Refinement b = aR: floats propose R or a gain, rationals decide.

Both mechanisms are reduced first. Where the columns of the reduced a are independent, R is unique
and found by elimination, and what speaks against it is a row of a left inverse. Otherwise the
program min Σ|b - aR| proposes both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.analysis.leakage.exactly import fmpq_mat, nonnegative_solution, rational
from optmech.analysis.leakage.hypers import proportional, reduced
from optmech.analysis.leakage.joint import drawn, fractions, rational_rows
from optmech.analysis.leakage.vulnerability import posterior_vulnerability
from optmech.base.arrays import Floats
from optmech.errors import SolverError, TooLargeError, VerificationError
from optmech.exact.number import Exact, Interval, rounded_down, rounded_up
from optmech.exact.numerators import Numerators
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import RationalRows

Fractions = list[list[Fraction]]
_GRID = 2.0**-40
"""Gains that floats propose are multiples of it."""
_DEPENDENT = 400
"""Columns beyond which independence is not looked for by elimination."""
_PROGRAM = 300_000
"""Secrets times observables of both, beyond which the linear program takes minutes."""
_MOST_EQUATIONS = 4_000_000
_MARGIN = 2.0**-36
"""What a guess is made worse by everywhere, so that rounding it earns nothing."""


def refined_on_average(a: Mechanism, b: Mechanism, slack: Fraction) -> dict[str, Any]:
    """The fields of a ``Refinement``: R where b = aR (within ``slack``), else a gain."""
    a, b = drawn(a), drawn(b)
    few, fewer = reduced(a), reduced(b)
    remap, gain = _proposed(few, fewer)
    gap = _gap(a, b, gain)
    near = _whole(a, b, Mechanism.of(few.observables, fewer.observables, Numerators.rounded(remap)))
    if gap > slack:
        return _refuted(gain, gap, _distance(a, b, near))
    if slack:
        far = _distance(a, b, near)
        bounds = _bounds(gap, far)
        if far <= slack:
            return {"holds": True, "remap": near, "deficiency": bounds}
        raise SolverError(
            f"the deficiency lies in {bounds}, and whether it is at most {float(slack):g} is not "
            "decided by that",
            where="refines",
            remedy="Give another tolerance",
        )
    exact, rows = _decided(fractions(few), fractions(fewer), remap)
    if exact is not None:
        made = Mechanism.of(few.observables, fewer.observables, rational_rows(exact))
        whole = _whole(a, b, made)
        if _distance(a, b, whole) != 0:
            raise VerificationError("the remap does not lead from a to b", where="refines")
        return {"holds": True, "remap": whole, "deficiency": Interval(0.0, 0.0)}
    # multipliers may have any sign and size, gains are from 0 to 1
    most = max(abs(value) for line in rows for value in line)
    half = tuple(tuple(value / most / 2 + Fraction(1, 2) for value in line) for line in rows)
    gap = _gap(a, b, half)
    if gap <= 0:
        raise VerificationError("the gain does not tell a from b", where="refines")
    return _refuted(half, gap, _distance(a, b, near))


def _bounds(gap: Fraction, far: Fraction) -> Interval:
    return Interval(rounded_down(max(gap, Fraction(0))) + 0.0, rounded_up(far))


def _refuted(gain: Any, gap: Fraction, far: Fraction) -> dict[str, Any]:
    return {"holds": False, "gain": gain, "gap": Exact(gap), "deficiency": _bounds(gap, far)}


def _gap(a: Mechanism, b: Mechanism, gain: Any) -> Fraction:
    """V_g[b] - V_g[a] for the uniform prior, exactly."""
    even = Prior.uniform(a.secrets)
    values = [posterior_vulnerability(m, even, gain).factor for m in (b, a)]
    return values[0] - values[1]


def _distance(a: Mechanism, b: Mechanism, remap: Mechanism) -> Fraction:
    """The mean over the secrets of TV(b(·|s), (aR)(·|s)), exactly."""
    reached, wanted = fractions(a.then(remap)), fractions(b)
    return sum(
        (
            max(Fraction(0), p - q)
            for made, row in zip(reached, wanted, strict=True)
            for p, q in zip(row, made, strict=True)
        ),
        Fraction(0),
    ) / len(wanted)


def _whole(a: Mechanism, b: Mechanism, remap: Mechanism) -> Mechanism:
    """A post-processing between reduced mechanisms as one between a and b themselves: proportional
    observables of a are treated alike, those of b drawn in proportion."""
    assert remap.exact is not None
    ours, theirs = _groups(a), _groups(b)
    columns = list(zip(*fractions(b), strict=True))
    split: Fractions = []
    for group in theirs:
        s = next(s for s, value in enumerate(columns[group[0]]) if value)
        total = sum((columns[o][s] for o in group), Fraction(0))
        split.append(
            [columns[o][s] / total if o in group else Fraction(0) for o in range(len(columns))]
        )
    spread = rational_rows(
        [
            [
                sum((v * part[o] for v, part in zip(line, split, strict=True)), Fraction(0))
                for o in range(len(columns))
            ]
            for line in remap.exact.rows
        ]
    ).rows
    # a report that never occurs may be followed by anything
    listed = [spread[0]] * len(a.observables)
    for units, group in zip(spread, ours, strict=True):
        for o in group:
            listed[o] = units
    return Mechanism.of(a.observables, b.observables, RationalRows(tuple(listed)))


def _groups(m: Mechanism) -> tuple[tuple[int, ...], ...]:
    return proportional(list(zip(*m.rational.rows, strict=True)))


def _proposed(a: Mechanism, b: Mechanism) -> tuple[Floats, Floats]:
    """R that brings a near to b, and a gain that tells them apart, both in floats."""
    count, mine, theirs = len(a.secrets), len(a.observables), len(b.observables)
    if count * mine * theirs <= _PROGRAM:
        remap, gain = _programmed(a, b)
    elif mine <= count:
        remap, gain = _inverted(a, b)
    else:
        raise TooLargeError(
            f"a remap from {mine:,} to {theirs:,} observables for {count:,} secrets is too large "
            "to search for",
            where="refines",
            remedy='Compare mechanisms with fewer observables, or in the order "privacy"',
        )
    remap = np.maximum(remap, 0.0)
    remap[remap.sum(axis=1) == 0] = 1.0
    gain = np.clip(np.round(gain / _GRID) * _GRID, 0.0, 1.0)
    return remap / remap.sum(axis=1, keepdims=True), gain


def _inverted(a: Mechanism, b: Mechanism) -> tuple[Floats, Floats]:
    """R by least squares, and the row of the left inverse that its least entry comes from."""
    inverse = np.linalg.pinv(a.matrix)
    remap = inverse @ b.matrix
    o, z = np.unravel_index(remap.argmin(), remap.shape)
    gain = np.full((len(b.observables), len(a.secrets)), 0.5)
    gain[z] -= inverse[o] / (2 * np.abs(inverse[o]).max()) + _MARGIN
    return remap, gain


def _programmed(a: Mechanism, b: Mechanism) -> tuple[Floats, Floats]:
    """The least Σ_s ½|b - aR| in floats: R, and the gain from its dual."""
    import highspy

    from optmech.lp.highs import highs_model, run_highs

    count, mine, theirs = len(a.secrets), len(a.observables), len(b.observables)
    eye, cells = sp.eye_array(theirs), count * theirs
    reached = sp.kron(sp.csr_array(a.matrix), eye)
    both = [reached, sp.eye_array(cells), -sp.eye_array(cells)]
    sums = sp.hstack(
        [sp.kron(sp.eye_array(mine), np.ones((1, theirs))), sp.csr_array((mine, 2 * cells))]
    )
    rows = sp.csr_array(sp.vstack([sp.hstack(both), sums]))
    wanted = np.concatenate([b.matrix.ravel(), np.ones(mine)])
    cost = np.concatenate([np.zeros(mine * theirs), np.full(2 * cells, 0.5)])
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
    solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
    solver.passModel(highs_model(cost, rows, wanted, wanted, np.full(len(cost), np.inf)))
    run_highs(solver)
    solution = solver.getSolution()
    remap = np.array(solution.col_value)[: mine * theirs].reshape(mine, theirs)
    prices = np.array(solution.row_dual)[:cells].reshape(count, theirs)
    return remap, (prices + 0.5).T


def _decided(a: Fractions, b: Fractions, remap: Floats) -> tuple[Fractions | None, Fractions]:
    """R with b = aR exactly, or rows y (a guess for each observable of b) with
    Σ_z y_z·b_z > Σ_o max_z y_z·a_o."""
    mine, theirs, count = len(a[0]), len(b[0]), len(a)
    if mine <= min(count, _DEPENDENT):
        unique = _unique(a, b)
        if unique is not None:
            return unique
    size = (count * theirs + mine) * mine * theirs
    if size > _MOST_EQUATIONS:
        raise TooLargeError(
            f"floats do not decide it, and equations with {size:,} numbers are too many",
            where="refines",
            remedy="Give a tolerance above 0, or mechanisms with fewer observables",
        )
    # unknowns R[o, z] in the order (o, z); equations for every (s, z), then the sum of every row
    rows, wanted = [], []
    for s in range(count):
        for z in range(theirs):
            row = [Fraction(0)] * (mine * theirs)
            row[z::theirs] = a[s]
            rows.append(row)
            wanted.append(b[s][z])
    for o in range(mine):
        row = [Fraction(0)] * (mine * theirs)
        row[o * theirs : (o + 1) * theirs] = [Fraction(1)] * theirs
        rows.append(row)
        wanted.append(Fraction(1))
    likely = np.flatnonzero(remap.ravel() > 1e-9).tolist()
    found = nonnegative_solution(rows, wanted, likely, where="refines")
    if found.solution is not None:
        return [found.solution[o * theirs : (o + 1) * theirs] for o in range(mine)], []
    assert found.farkas is not None
    return None, [[found.farkas[s * theirs + z] for s in range(count)] for z in range(theirs)]


def _unique(a: Fractions, b: Fractions) -> tuple[Fractions | None, Fractions] | None:
    """The decision where the columns of a are independent; None where they are not."""
    mine, theirs, count = len(a[0]), len(b[0]), len(a)
    eliminated, rank = fmpq_mat([[*p, *q] for p, q in zip(a, b, strict=True)]).rref()
    pivots = [next(k for k in range(mine + theirs) if eliminated[i, k] != 0) for i in range(rank)]
    if pivots[:mine] != list(range(mine)):
        return None
    nothing = [Fraction(0)] * count
    if rank > mine:
        # some column of b is outside the span of a: y with yA = 0 and y·b_z = 1
        z = pivots[mine] - mine
        column = [[*row, wanted[z]] for row, wanted in zip(a, b, strict=True)]
        y = _dual(column, [Fraction(0)] * mine + [Fraction(1)])
        return None, [y if k == z else nothing for k in range(theirs)]
    found = [[rational(eliminated[o, mine + z]) for z in range(theirs)] for o in range(mine)]
    for o, row in enumerate(found):
        if min(row) < 0:
            # y with yA = -e_o earns nothing from a, and -R[o, z] > 0 from b
            z = row.index(min(row))
            y = _dual(a, [Fraction(-int(k == o)) for k in range(mine)])
            return None, [y if k == z else nothing for k in range(theirs)]
    return found, []


def _dual(a: Fractions, wanted: Sequence[Fraction]) -> list[Fraction]:
    """Some y with yA = wanted, for independent columns of A."""
    count = len(a)
    lines = [[*column, w] for column, w in zip(zip(*a, strict=True), wanted, strict=True)]
    eliminated, rank = fmpq_mat(lines).rref()
    y = [Fraction(0)] * count
    for i in range(rank):
        pivot = next(k for k in range(count + 1) if eliminated[i, k] != 0)
        y[pivot] = rational(eliminated[i, count])
    return y
