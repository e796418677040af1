"""Plans of several inputs whose outputs are one distribution, or pairwise (ε, δ)-close, of least
mean cost (Kawamoto and Murakami, Allerton 2019, Def. 15; mathematics of the joint program in
docs/theory/targets.md).

A solver proposes outputs. Here they are made close and decided to be so exactly, get plans with
exact marginals, and multipliers that prove how much better any others could be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.errors import SolverError
from optmech.exact.exponentials import at_most, ball_of, bracket, exp_bounds, exp_lower
from optmech.exact.number import Exact, rounded_up
from optmech.exact.numerators import Numerators, dot, steepest
from optmech.exact.rounding import above
from optmech.spaces.rationals import Shares
from optmech.transport.joint import Arcs, Floating, Multipliers, joint_bound
from optmech.transport.rational import RationalPlan, cheapest_plan
from optmech.transport.refinement import Refinement

_BITS = 256
_INFINITE = 1000
"""An ε above this is as good as infinite: bounds do not use its multipliers."""
_DUST = 1e-13
"""Output masses below this, of a total of 1, are the solver's."""
_MULTIPLE = 2**20
"""Largest denominator, beside the inputs' units, of the masses at a vertex that is looked for."""
_REFINED_ABOVE = 1e-9
"""A relative gap above this is closed by refinement in whole numbers."""
_EQUAL_BELOW = 1e-9
"""An ε below this leaves the solver no room between equal and close outputs."""
_LARGEST = 36.0
"""e^36 is as far as the program's coefficients may be apart; larger ε are solved at this."""
_REFINED_LARGEST = 30
"""An ε above this is solved at this where the program is refined."""
_CHEAPER = 40
_TIGHTER = 200
"""Refined programs ask for e^ε and δ less 2^-200 of them, over the range of the distances."""
_FINEST, _STEP = 48, 4
"""Shares of the mean that are mixed into outputs of floats: 2^-48, 2^-44, …"""
_EXCESSES = (45, 40, 35, 30, 20, 10, 0)


@record
class Optimum:
    """Plans whose outputs are close, and what proves that no others cost much less."""

    plans: tuple[RationalPlan, ...]
    multipliers: Multipliers | None
    """None where they prove no more than none do."""
    cost: Fraction
    """Σ w_t ⟨c, γ_t⟩."""
    bound: Fraction
    """No plans whose outputs are close cost less."""

    @property
    def gap(self) -> float:
        """(cost - bound) / cost, rounded up."""
        return relative_gap(self.cost, self.bound)


@record
class Outputs(ReadOnly):
    """What is asked of the outputs of T ``inputs``: that Σ_y max(0, μ_t[y] − e^ε μ_t'[y]) <= δ for
    all t, t'. Moves cost ``distance``, shape (n, m), and inputs count with their ``weights``."""

    inputs: tuple[Shares, ...]
    distance: Floats
    weights: Shares
    epsilon: Exact
    delta: Exact

    def bound(self, multipliers: Multipliers | None) -> Fraction:
        """A lower bound of the cost from any multipliers, exactly."""
        factor = exp_ends(self.epsilon)
        if multipliers is None or factor is None:
            multipliers = Multipliers.zero(len(self.inputs), self.distance.shape[1])
        most = Fraction(1) if factor is None else factor[1]
        asked = self.inputs, self.distance, self.weights, multipliers
        return max(Fraction(0), joint_bound(*asked, most, bracket(self.delta)[1]))

    def optimum(self, arcs: Arcs | None = None) -> tuple[Optimum, Arcs | None]:
        """The best plans found, starting with the moves ``arcs``; and the moves to start similar
        programs with. Raises SolverError where no outputs found are close."""
        outputs = self._unchanged()
        multipliers = None
        unchanged = self._kept_by(outputs)
        if not unchanged:
            try:
                outputs, multipliers, arcs = self._floating(arcs)
            except SolverError:
                outputs = [outputs[0]] * len(outputs)
        found = self._planned(outputs, multipliers)
        if found.gap > _REFINED_ABOVE:
            found = self._planned(outputs, multipliers, optimal=True)
        if found.gap > _REFINED_ABOVE and not unchanged:
            try:
                every = [found, *self._refined(arcs)]
            except SolverError:
                # the gap says how good what there is may be called
                every = [found]
            proof = max(every, key=lambda made: made.bound)
            best = min(every, key=lambda made: made.cost)
            found = replace(best, multipliers=proof.multipliers, bound=proof.bound)
        if not self._kept_by([plan.second for plan in found.plans]):
            raise SolverError("the outputs are not close", where="optimal target")
        return found, arcs

    def _kept_by(self, outputs: Sequence[Shares]) -> bool:
        return are_close(outputs, self.epsilon, self.delta)

    def _unchanged(self) -> list[Shares]:
        return [_nearest(lam, self.distance) for lam in self.inputs]

    def _planned(
        self, outputs: list[Shares], multipliers: Multipliers | None, *, optimal: bool = False
    ) -> Optimum:
        """Plans for the outputs, and the multipliers where they prove more than none do."""
        plans = tuple(
            cheapest_plan(lam, output, self.distance, optimal=optimal)
            for lam, output in zip(self.inputs, outputs, strict=True)
        )
        cost = weighted(self.weights, [plan.cost(self.distance) for plan in plans])
        trivial, bound = self.bound(None), self.bound(multipliers)
        proof = None if trivial >= bound else multipliers
        return Optimum(plans, proof, cost, max(trivial, bound))

    def _floating(self, arcs: Arcs | None) -> tuple[list[Shares], Multipliers, Arcs]:
        """The program in floating point, its outputs made close."""
        rate, spare = self.epsilon, float(self.delta)
        common = rate < _EQUAL_BELOW and not spare
        solved = 1.0 if common else math.exp(min(rate, _LARGEST))
        point = Floating(self.inputs, self.distance, self.weights, solved, spare, arcs)
        point.solve()
        # e^-ε z counts as much against the larger factor as z against the one that was solved with
        damping = math.exp(min(rate, _LARGEST) - rate)
        found = point.outputs()
        outputs = [Shares.reduced(row) for row in _whole(found)]
        if not common:
            factor = exp_ends(rate)
            raised = None if factor is None else factor[0]
            made = [
                _closed(_whole(found), lift, rate, self.delta, _FINEST)
                for lift in ([None, raised] if spare else [raised])
            ]
            outputs = min(made, key=lambda close: np.abs([p.weights for p in close] - found).sum())
        return outputs, Multipliers.of(point.multipliers() * damping), point.have

    def _refined(self, arcs: Arcs | None) -> list[Optimum]:
        """Plans from the program in whole numbers, with ε and δ a little tighter than asked for, so
        that roundings leave the outputs close.

        Beyond e^30 what has to move shrinks with e^-ε, but for e^-30 of it: the outputs at ε = 30
        are mixed with unchanged ones accordingly.
        """
        rate, spare = self.epsilon, self.delta
        solved = min(rate, Exact(Fraction(_REFINED_LARGEST)))
        known, stated = exp_ends(solved), exp_ends(rate)
        assert known is not None
        exponents = np.frexp(self.distance[self.distance > 0])[1]
        tighter = 1 - Fraction(1, 1 << _TIGHTER + int(np.ptp(exponents)))
        factor, delta = max(Fraction(1), known[0] * tighter), bracket(spare)[0] * tighter
        point = Refinement(self.inputs, self.distance, self.weights, factor, delta, arcs)
        point.solve()
        multipliers, attained = point.multipliers(), point.attained(self.inputs)
        if factor == 1 and not delta:
            targets = _exact_masses(point.outputs()[0], self.inputs)
            made = [[target] * len(self.inputs) for target in targets]
        else:
            made = [_closed(point.outputs(), factor if not delta else None, rate, spare)]
            made += [attained] if self._kept_by(attained) else []
        if rate > solved and stated is not None:
            share = known[0] / stated[1]
            # prices that are a little too high everywhere would count against a far smaller loss
            multipliers = multipliers.times(share * (1 - Fraction(1, 1 << _CHEAPER)))
            made += _diluted(made[0], self._unchanged(), share, rate, spare)
        return [self._planned(outputs, multipliers, optimal=True) for outputs in made]


def exp_ends(epsilon: Exact) -> tuple[Fraction, Fraction] | None:
    """Bounds of e^ε, equal where it is rational and else within 2^-256 of it; None above e^1000."""
    return None if epsilon > _INFINITE else exp_bounds(epsilon, _BITS)


def are_close(outputs: Sequence[Shares], epsilon: Exact, delta: Exact) -> bool:
    """Whether Σ_y max(0, μ_t[y] − e^ε μ_t'[y]) <= δ for all t ≠ t', decided exactly."""
    return all(_is_close(p, q, epsilon, delta) for p, q in itertools.permutations(outputs, 2))


def _is_close(p: Shares, q: Shares, epsilon: Exact, delta: Exact) -> bool:
    if p.total == q.total and p.units == q.units:
        return True
    sides = [(a * q.total, b * p.total) for a, b in zip(p.units, q.units, strict=True)]
    if not float(delta):
        return all(at_most(left, right, epsilon, 1.0) for left, right in sides)
    factor = exp_lower(epsilon, 1.0, (p.total * q.total).bit_length() + 256)
    spent = sum((max(Fraction(0), left - factor * right) for left, right in sides), Fraction(0))
    return spent <= bracket(delta)[0] * p.total * q.total


def max_divergence(p: Shares, q: Shares) -> float:
    """D_∞(p ‖ q) = max_y ln(p[y] / q[y]) of the exact ratio, rounded upwards; inf where q excludes
    what p has."""
    sides = zip(p.units, q.units, strict=True)
    top, bottom = steepest((a * q.total, b * p.total) for a, b in sides)
    if top == bottom or not bottom:
        return math.inf if not bottom else 0.0
    # as many digits as a ratio close to 1 has in common with it, and a float's
    with flint.ctx.workprec(top.bit_length() + bottom.bit_length() + 128):
        return above(ball_of(Fraction(top, bottom)).log())


def largest_divergence(outputs: Sequence[Shares]) -> float:
    """The largest ``max_divergence`` of two of them; 0 for one alone."""
    return max((max_divergence(p, q) for p, q in itertools.permutations(outputs, 2)), default=0.0)


def _whole(outputs: Floats) -> list[list[int]]:
    """About-distributions, shape (T, m), as whole numbers over one power of two. Points where no
    output has more than dust are left out of all."""
    kept = np.where((outputs > _DUST).any(axis=0), np.maximum(outputs, 0.0), 0.0)
    return [list(row) for row in Numerators.rounded(kept).rows]


def _closed(
    outputs: list[list[int]],
    factor: Fraction | None,
    epsilon: Exact,
    delta: Exact,
    finest: int | None = None,
) -> list[Shares]:
    """About-distributions, shape (T, m), in units of about one sum, as outputs that are close.

    With a ``factor`` (at most e^ε) every output is first raised to the others' over it, which
    needs no δ. Then sums are made equal, and a share of the mean of all is mixed in, the least of
    0, 2^-k, 2^-(k-4), …, 1 that suffices (1 always does); k is ``finest``, or as sums need.
    """
    units = outputs
    if factor is not None:
        tops = [max(column) for column in zip(*units, strict=True)]
        least = [-(-top * factor.denominator // factor.numerator) for top in tops]
        units = [[max(pair) for pair in zip(row, least, strict=True)] for row in units]
    total = max(map(sum, units))
    for row in units:
        row[row.index(max(row))] += total - sum(row)
    mean = [sum(column) for column in zip(*units, strict=True)]
    shifts = range(finest or total.bit_length(), -_STEP, -_STEP)
    for keep, mixed in [(1, 0)] + [(((1 << max(0, k)) - 1) * len(units), 1) for k in shifts]:
        whole = [
            Shares.reduced([keep * own + mixed * all_ for own, all_ in zip(row, mean, strict=True)])
            for row in units
        ]
        if are_close(whole, epsilon, delta):
            return whole
    raise SolverError("the outputs could not be made close", where="optimal target")


def _diluted(
    outputs: list[Shares], others: list[Shares], share: Fraction, epsilon: Exact, delta: Exact
) -> list[list[Shares]]:
    """``others`` with a share of ``outputs``, or little more, where that is close; else nothing."""
    for shift in _EXCESSES:
        part = share * (1 + Fraction(1, 1 << shift))
        if not 0 < part <= 1:
            continue
        mixed = [
            Shares.of(
                [part * a + (1 - part) * b for a, b in zip(p.fractions, q.fractions, strict=True)],
                "outputs",
            )
            for p, q in zip(outputs, others, strict=True)
        ]
        if are_close(mixed, epsilon, delta):
            return [mixed]
    return []


def _nearest(lam: Shares, distance: Floats) -> Shares:
    """The output when every point goes to its nearest, the first of equals."""
    units = [0] * distance.shape[1]
    for y, unit in zip(distance.argmin(axis=1).tolist(), lam.units, strict=True):
        units[y] += unit
    return Shares.reduced(units)


def _exact_masses(units: list[int], inputs: Sequence[Shares]) -> list[Shares]:
    """An output in units of 2^-k: as it is, and, where they sum to one, the fractions of small
    multiples of the inputs' units that it is near.

    Vertices of the program are such fractions, and where the least loss is 0 nothing else attains
    it.
    """
    total, unit = sum(units), math.lcm(*(lam.total for lam in inputs))
    near = [Fraction(part * unit, total).limit_denominator(_MULTIPLE) / unit for part in units]
    found = [Shares.reduced(units)]
    if sum(near) == 1:
        found.append(Shares.of(near, "target"))
    return found


def relative_gap(value: Fraction, bound: Fraction) -> float:
    """(value - bound) / value, rounded up; 0 where the value is 0."""
    return max(0.0, rounded_up((value - bound) / value)) if value else 0.0


def weighted(weights: Shares, values: Sequence[Fraction]) -> Fraction:
    """Σ w_t v_t."""
    return Fraction(dot(weights.units, values), weights.total)
