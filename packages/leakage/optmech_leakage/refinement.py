"""Whether one mechanism never leaks more than another, with a witness (QIF chapter 9).

b refines a (a ⊑ b) if b is a followed by some post-processing; by the coriaceous theorem (McIver,
Morgan, Smith, Espinoza and Meinicke 2014) exactly then no prior and no gain lets b leak more.

For b = aR floats propose R or a gain, rationals decide. Both mechanisms are reduced first. Where
the columns of the reduced a are independent, R is unique and found by elimination, and what speaks
against it is a row of a left inverse. Otherwise the program min Σ|b - aR| proposes both sides.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from optmech.analysis.probabilities import Gain
from optmech.base.arrays import Floats, largest_entry, normalised_rows
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, SolverError, TooLargeError, VerificationError
from optmech.exact.arguments import one_of, probability
from optmech.exact.number import Exact, Interval, Number, rounded_down, rounded_up
from optmech.exact.numerators import Numerators, dot, steepest
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import RationalRows, Shares
from optmech_leakage.feasibility import eliminated, nonnegative_solution, rational, solved
from optmech_leakage.vulnerability import (
    Groups,
    drawn,
    fractions,
    posterior_vulnerability,
    proportional,
    rational_rows,
    reduced,
    require_same_secrets,
    variation,
)

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
    merged = np.zeros((len(a.observables), len(remap.secrets)))
    # a report that never occurs may be followed by anything
    merged[:, 0] = 1.0
    for k, group in enumerate(_groups(a)):
        merged[list(group)] = np.eye(merged.shape[1])[k]
    split = []
    for group in _groups(b):
        row = next(row for row in b.rational.rows if row[group[0]])
        split.append(Shares.reduced([v if o in group else 0 for o, v in enumerate(row)]).units)
    spread = Mechanism.of(remap.observables, b.observables, RationalRows(tuple(split)))
    return Mechanism(a.observables, remap.secrets, merged).then(remap).then(spread)


def _groups(m: Mechanism) -> Groups:
    return proportional(list(zip(*m.rational.rows, strict=True)))


def _proposed(a: Mechanism, b: Mechanism) -> tuple[Floats, Floats]:
    """R that brings a near to b, and a gain that tells them apart, both in floats."""
    count, mine, theirs = len(a.secrets), len(a.observables), len(b.observables)
    if count * mine * theirs <= _PROGRAM:
        remap, gain = _programmed(a, b)
    elif mine <= count:
        # by least squares, and the row of the left inverse that the least entry comes from
        inverse = np.linalg.pinv(a.matrix)
        remap = inverse @ b.matrix
        o, z = largest_entry(-remap)
        gain = np.full((theirs, count), 0.5)
        gain[z] -= inverse[o] / (2 * np.abs(inverse[o]).max()) + _MARGIN
    else:
        raise TooLargeError(
            f"a remap from {mine:,} to {theirs:,} observables for {count:,} secrets is too large "
            "to search for",
            where="refines",
            remedy='Compare mechanisms with fewer observables, or in the order "privacy"',
        )
    remap = np.maximum(remap, 0.0)
    remap[remap.sum(axis=1) == 0] = 1.0
    # no zero has a sign
    gain = np.clip(np.round(gain / _GRID) * _GRID, 0.0, 1.0) + 0.0
    return normalised_rows(remap), gain


def _programmed(a: Mechanism, b: Mechanism) -> tuple[Floats, Floats]:
    """The least Σ_s TV(b, aR) in floats: R, and the gain from its dual."""
    from optmech.base.highs import TIGHT, highs_run

    count, mine, theirs = len(a.secrets), len(a.observables), len(b.observables)
    cells = count * theirs
    reached = sp.kron(sp.csr_array(a.matrix), sp.eye_array(theirs))
    sums = sp.kron(sp.eye_array(mine), np.ones((1, theirs)))
    # R, and what aR lacks of b
    rows = sp.csr_array(sp.block_array([[reached, sp.eye_array(cells)], [sums, None]]))
    wanted = np.concatenate([b.matrix.ravel(), np.ones(mine)])
    most = np.concatenate([np.full(cells, np.inf), np.ones(mine)])
    cost = np.concatenate([np.zeros(mine * theirs), np.ones(cells)])
    options = {"solver": "simplex", **TIGHT}
    solver = highs_run(cost, rows, wanted, most, np.full(len(cost), np.inf), **options)
    solution = solver.getSolution()
    remap = np.array(solution.col_value)[: mine * theirs].reshape(mine, theirs)
    return remap, np.array(solution.row_dual)[:cells].reshape(count, theirs).T


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
    reached = np.kron(np.array(a, dtype=object), np.eye(theirs, dtype=int))
    sums = np.kron(np.eye(mine, dtype=int), np.ones((1, theirs), dtype=int))
    rows = np.vstack([reached, sums]).tolist()
    wanted = [*(value for row in b for value in row), *[Fraction(1)] * mine]
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
    remap = [[rational(found[o, mine + z]) for z in range(theirs)] for o in range(mine)]
    if len(pivots) > mine:
        # some column of b is outside the span of a: y with yA = 0 and y·b_z = 1
        z = pivots[mine] - mine
        columns = [*zip(*a, strict=True), [row[z] for row in b]]
        asked = [Fraction(0)] * mine + [Fraction(1)]
    else:
        o, row = min(enumerate(remap), key=lambda at: min(at[1]))
        if min(row) >= 0:
            return remap, []
        # y with yA = -e_o earns nothing from a, and -R[o, z] > 0 from b
        z = row.index(min(row))
        columns, asked = list(zip(*a, strict=True)), [Fraction(-int(k == o)) for k in range(mine)]
    y = solved(columns, asked, range(count))
    assert y is not None
    return None, [y if k == z else [Fraction(0)] * count for k in range(theirs)]


def _in_the_worst_case(a: Mechanism, b: Mechanism) -> Refinement:
    """Whether there is an observable of b whose posterior is no mixture of posteriors of a, with y
    such that Σ_s y(s) b(o|s) > 0 >= Σ_s y(s) a(o'|s) for all o'.

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
            return Refinement(False, "max", gain=(y,), observable=b.observables.labels[o])
    return Refinement(True, "max")


def _in_privacy(a: Mechanism, b: Mechanism) -> Refinement:
    """Whether b tells two secrets apart better than a does, by the largest likelihood ratio."""
    for s in range(len(a.secrets)):
        for t in range(s):
            (p, q), (mine, other) = (_largest_ratio(m, s, t) for m in (b, a))
            if p * other > q * mine:
                labels = a.secrets.labels
                return Refinement(False, "privacy", pair=(labels[t], labels[s]))
    return Refinement(True, "privacy")


def _largest_ratio(m: Mechanism, s: int, t: int) -> tuple[int, int]:
    """max_o max(p(o|s)/p(o|t), p(o|t)/p(o|s)) as a fraction, over 0 where it is infinite."""
    one, other = m.rational.rows[s], m.rational.rows[t]
    mine, theirs = sum(one), sum(other)
    scaled = ((a * theirs, b * mine) for a, b in zip(one, other, strict=True))
    return steepest((max(pair), min(pair)) for pair in scaled)


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
    return _in_the_worst_case(a, b) if order == "max" else _in_privacy(a, b)
