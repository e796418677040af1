"""Whether one mechanism never leaks more than another, with a witness (QIF chapter 9).

b refines a (a ⊑ b) if b is a followed by some post-processing; by the coriaceous theorem (McIver,
Morgan, Smith, Espinoza and Meinicke 2014) exactly then no prior and no gain lets b leak more.

For b = aR floats propose R or a gain, rationals decide. Both mechanisms are reduced first. Where
the columns of the reduced a are independent, R is unique and found by elimination, and what speaks
against it is a row of a left inverse. Otherwise the program min Σ|b - aR| proposes both sides.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from optmech.analysis.leakage.feasibility import eliminated, nonnegative_solution, rational
from optmech.analysis.leakage.vulnerability import (
    Gain,
    drawn,
    fractions,
    posterior_vulnerability,
    proportional,
    rational_rows,
    reduced,
    require_same_secrets,
    variation,
)
from optmech.base.arrays import Floats, normalised_rows
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, SolverError, TooLargeError, VerificationError
from optmech.exact.arguments import one_of, probability
from optmech.exact.number import Exact, Interval, Number, rounded_down, rounded_up
from optmech.exact.numerators import Numerators, dot
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import RationalRows

Fractions = list[list[Fraction]]
_GRID = 2.0**-40
"""Gains that floats propose are multiples of it."""
_TIGHT: dict[str, str | float] = {
    "solver": "simplex", "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10
}  # fmt: skip
_DEPENDENT = 400
"""Columns beyond which independence is not looked for by elimination."""
_PROGRAM = 300_000
"""Secrets times observables of both, beyond which the linear program takes minutes."""
_MOST_EQUATIONS = 4_000_000
_MARGIN = 2.0**-36
"""What a guess is made worse by everywhere, so that rounding it earns nothing."""


def _on_average(a: Mechanism, b: Mechanism, slack: Fraction) -> Refinement:
    """R where b = aR (within ``slack``), else a gain."""
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
            return Refinement(True, "average", near, deficiency=bounds)
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
        return Refinement(True, "average", whole, deficiency=Interval(0.0, 0.0))
    # multipliers may have any sign and size, gains are from 0 to 1
    most = max(abs(value) for line in rows for value in line)
    half = tuple(tuple(value / most / 2 + Fraction(1, 2) for value in line) for line in rows)
    gap = _gap(a, b, half)
    if gap <= 0:
        raise VerificationError("the gain does not tell a from b", where="refines")
    return _refuted(half, gap, _distance(a, b, near))


def _bounds(gap: Fraction, far: Fraction) -> Interval:
    return Interval(rounded_down(max(gap, Fraction(0))) + 0.0, rounded_up(far))


def _refuted(gain: Any, gap: Fraction, far: Fraction) -> Refinement:
    bounds = _bounds(gap, far)
    return Refinement(False, "average", gain=gain, gap=Exact(gap), deficiency=bounds)


def _gap(a: Mechanism, b: Mechanism, gain: Any) -> Fraction:
    """V_g[b] - V_g[a] for the uniform prior, exactly."""
    even = Prior.uniform(a.secrets)
    values = [posterior_vulnerability(m, even, gain).factor for m in (b, a)]
    return values[0] - values[1]


def _distance(a: Mechanism, b: Mechanism, remap: Mechanism) -> Fraction:
    """The mean over the secrets of TV(b(·|s), (aR)(·|s)), exactly."""
    rows = zip(b.rational.rows, a.then(remap).rational.rows, strict=True)
    return sum((variation(p, q) for p, q in rows), Fraction(0)) / len(b.secrets)


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
        [[dot(line, column) for column in zip(*split, strict=True)] for line in remap.exact.rows]
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
    return normalised_rows(remap), gain


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
    from optmech.lp.highs import highs_run

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
    most = np.full(len(cost), np.inf)
    solution = highs_run(cost, rows, wanted, wanted, most, **_TIGHT).getSolution()
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
    found, pivots = eliminated([[*p, *q] for p, q in zip(a, b, strict=True)])
    if pivots[:mine] != list(range(mine)):
        return None
    nothing = [Fraction(0)] * count
    if len(pivots) > mine:
        # some column of b is outside the span of a: y with yA = 0 and y·b_z = 1
        z = pivots[mine] - mine
        column = [[*row, wanted[z]] for row, wanted in zip(a, b, strict=True)]
        y = _dual(column, [Fraction(0)] * mine + [Fraction(1)])
        return None, [y if k == z else nothing for k in range(theirs)]
    remap = [[rational(found[o, mine + z]) for z in range(theirs)] for o in range(mine)]
    for o, row in enumerate(remap):
        if min(row) < 0:
            # y with yA = -e_o earns nothing from a, and -R[o, z] > 0 from b
            z = row.index(min(row))
            y = _dual(a, [Fraction(-int(k == o)) for k in range(mine)])
            return None, [y if k == z else nothing for k in range(theirs)]
    return remap, []


def _dual(a: Fractions, wanted: Sequence[Fraction]) -> list[Fraction]:
    """Some y with yA = wanted, for independent columns of A."""
    count = len(a)
    lines = [[*column, w] for column, w in zip(zip(*a, strict=True), wanted, strict=True)]
    found, pivots = eliminated(lines)
    y = [Fraction(0)] * count
    for i, pivot in enumerate(pivots):
        y[pivot] = rational(found[i, count])
    return y


def _in_the_worst_case(a: Mechanism, b: Mechanism) -> tuple[int, tuple[Fraction, ...] | None]:
    """An observable of b whose posterior is no mixture of posteriors of a, with y such that
    Σ_s y(s) b(o|s) > 0 >= Σ_s y(s) a(o'|s) for all o'; (0, None) where there is none.

    A column is a mixture of columns but for its scale: it lies in the cone that they span.
    """
    from scipy.optimize import nnls

    few = reduced(a)
    columns = fractions(few)
    scaled = few.matrix / few.matrix.max(axis=0)
    for o, column in enumerate(zip(*fractions(b), strict=True)):
        if not any(column):
            continue
        wanted = b.matrix[:, o] / b.matrix[:, o].max()
        likely = np.flatnonzero(nnls(scaled, wanted)[0] > 1e-12).tolist()
        row = nonnegative_solution(columns, column, likely, where="refines").farkas
        if row is not None:
            best = max(abs(value) for value in row)
            y = tuple(value / best for value in row)
            earned = [dot(y, c) for c in zip(*columns, strict=True)]
            if max(earned) > 0 or dot(y, column) <= 0:
                raise VerificationError("the separating row does not separate", where="refines")
            return o, y
    return 0, None


def _in_privacy(a: Mechanism, b: Mechanism) -> tuple[int, int] | None:
    """Two secrets that b tells apart better than a does, by the largest likelihood ratio."""
    for s in range(len(a.secrets)):
        for t in range(s):
            p, q = _largest_ratio(b, s, t)
            mine, other = _largest_ratio(a, s, t)
            if p * other > q * mine:
                return t, s
    return None


def _largest_ratio(m: Mechanism, s: int, t: int) -> tuple[int, int]:
    """max_o max(p(o|s)/p(o|t), p(o|t)/p(o|s)) as a fraction, over 0 where it is infinite."""
    top, bottom = 1, 1
    rows = m.rational.rows
    mine, other = sum(rows[s]), sum(rows[t])
    for a, b in zip(rows[s], rows[t], strict=True):
        one, two = a * other, b * mine
        high, low = (one, two) if one > two else (two, one)
        if high and low * top < high * bottom:
            top, bottom = high, low
            if not low:
                return 1, 0
    return top, bottom


Order = Literal["average", "max", "privacy"]


@record
class Refinement(Shown):
    """Whether a ⊑ b, with a witness that has been verified in rationals.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> a = om.mechanisms.randomized_response(sides, "ln 3")
    >>> b = om.mechanisms.randomized_response(sides, "ln 2")
    >>> om.leakage.refines(a, b).holds, om.leakage.refines(b, a).holds
    (True, False)
    """

    holds: bool
    order: Order
    remap: Mechanism | None = None
    """Where it holds on average: the post-processing R with b = a.then(R), from the observables of
    a to those of b (within ``tolerance``, if one was given)."""
    gain: Gain | None = None
    """Where it does not: a gain with entries from 0 to 1 under which b leaks more than a for the
    uniform prior, shape (guesses, secrets), floats or (where these do not suffice) fractions. In
    the order "max" one row, whose expected value is above 0 after some report of b, and at most 0
    after every report of a."""
    gap: float = 0.0
    """By how much b leaks more under ``gain``: V_g[b] - V_g[a], uniform prior; above 0 where the
    relation does not hold."""
    deficiency: Interval | None = None
    """Bounds of min_R mean_s TV(b(·|s), (aR)(·|s)), which is the largest ``gap`` over all gains
    with entries from 0 to 1 (Le Cam's deficiency for the uniform prior; Torgersen 1991); in the
    order "average" only."""
    observable: Hashable | None = None
    """In the order "max", where it does not hold: the report of b whose posterior no mixture of
    posteriors of a equals."""
    pair: tuple[Hashable, Hashable] | None = None
    """In the order "privacy", where it does not hold: two secrets that b tells apart better."""

    def __bool__(self) -> bool:
        return self.holds


@checked_arguments
def refines(
    a: Mechanism, b: Mechanism, order: Order = "average", *, tolerance: Number = 0
) -> Refinement:
    """Whether a ⊑ b: b never leaks more than a.

    * ``"average"``: b = a followed by some post-processing, which is to say that V_g[π, b] <=
      V_g[π, a] for every prior π and gain g (QIF chapter 9).
    * ``"max"``: every posterior of b is a mixture of posteriors of a, so that no report of b is
      worse than all reports of a, for every quasi-convex measure of posteriors (Chatzikokolakis,
      Fernandes and Palamidessi, Comparing systems: max-case refinement orders and application to
      differential privacy, CSF 2019).
    * ``"privacy"``: for all secrets s, s', b has no larger |ln p(o|s)/p(o|s')| than a: whatever
      metric privacy a gives, b gives (the same paper).

    Each implies the next. The answer is exact for the probabilities that are drawn with. A product
    of floats is hardly ever exactly the product of its factors; with a ``tolerance`` above 0, for
    "average" only, the answer is whether the deficiency is at most that: no gain with entries from
    0 to 1 earns more than ``tolerance`` more from b than from a, for the uniform prior.

    Raises
    ------
    ProblemError
        On different secrets, an unknown order, a tolerance with another order.
    TooLargeError
        Where floats do not decide it and exact arithmetic would take too long.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> a = om.Mechanism(sides, sides, [[0.75, 0.25], [0.25, 0.75]])
    >>> b = a.then(a)
    >>> print(om.leakage.refines(a, b).remap.matrix)  # the post-processing that makes b of a
    [[0.75 0.25]
     [0.25 0.75]]
    >>> print(om.leakage.refines(b, a).gain)  # a gain that earns more from a
    [[1. 0.]
     [0. 1.]]
    """
    require_same_secrets(a, b)
    one_of(order, get_args(Order), "order")
    slack = Fraction(probability(tolerance, "tolerance").factor)
    if order == "average":
        return _on_average(a, b, slack)
    if slack:
        raise ProblemError("is for the order 'average' only", where="tolerance")
    if order == "max":
        at, row = _in_the_worst_case(a, b)
        if row is None:
            return Refinement(True, order)
        return Refinement(False, order, gain=(row,), observable=b.observables.labels[at])
    pair = _in_privacy(a, b)
    if pair is None:
        return Refinement(True, order)
    labels = a.secrets.labels
    return Refinement(False, order, pair=(labels[pair[0]], labels[pair[1]]))
