"""The Wasserstein-1 barycentre on a finite set of points (CM19's best common target)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arguments import also_called
from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.errors import ProblemError, SolverError
from optmech.exact.number import rounded_down, rounded_up
from optmech.exact.numerators import Numerators
from optmech.spaces.distances import DistanceLike, values_between
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Distribution, domain_of
from optmech.spaces.rationals import Shares
from optmech.transport.joint import Arcs, Multipliers, joint_bound, solve_joint
from optmech.transport.rational import RationalPlan, cheapest_plan
from optmech.transport.refined import refine_joint

_DUST = 1e-13
"""Output masses below this, of a total of 1, are the solver's."""
_LARGEST = 1e300
"""Distances leave room for sums along paths, and for a price that no detour is worth."""
_MULTIPLE = 2**20
"""Largest denominator, beside the inputs' units, of the masses at a vertex that is looked for."""

REFINED_ABOVE = 1e-9
"""A relative gap above this is closed by refinement in whole numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Barycenter(Shown):
    """A distribution μ that minimises Σ_t w_t W_1(λ_t, μ), with its proof."""

    exact: Shares
    """μ in whole numbers."""
    couplings: tuple[RationalPlan, ...]
    """Plans of (λ_t, μ), marginals exact, optimal up to rounding at 2^-60."""
    value: float
    """Σ_t w_t W_1(λ_t, μ) of this μ, rounded up."""
    values: tuple[float, ...]
    """W_1(λ_t, μ) for every t."""
    lower_bound: float
    """No distribution does better, rounded down."""
    multipliers: Multipliers
    """What proves the bound; see ``joint.joint_bound``."""
    gap: float
    """(value - lower_bound) / value before both are rounded, rounded up; 0 where the value is 0."""

    @property
    def distribution(self) -> Floats:
        """μ as floats, shape (m,)."""
        return self.exact.weights

    @property
    def plans(self) -> Floats:
        """γ_t as floats, shape (T, n, m)."""
        return np.array([coupling.plan for coupling in self.couplings])


@also_called(distance_matrix="distance")
def barycenter(
    lams: Sequence[Distribution], distance: DistanceLike, weights: ArrayLike | None = None
) -> Barycenter:
    """A Wasserstein-1 barycentre of ``lams`` among all distributions on the columns' points.

    Parameters
    ----------
    lams:
        T >= 1 weight vectors of shape (n,), or priors; each is divided by its exact sum.
    distance:
        d >= 0, shape (n, m); usually square. Need not be a metric. Where a ``lam`` is a prior, also
        a function of two domains or a table with its labels. ``distance_matrix=`` is the same.
    weights:
        w_t >= 0, divided by their sum; equal unless given.

    The value is that of exact plans for the returned μ, the bound holds for every μ: their
    difference is what the linear program's tolerance leaves open, about 1e-12 of the value. Where
    distances are too far apart for floating point, the program is refined in whole numbers.

    Raises
    ------
    ProblemError
        On unusable weights or distances.
    SolverError
        Where the program could not be solved.
    """
    inputs, apart, shares = read_joint(lams, distance, weights)
    target, multipliers, arcs = _floating(inputs, apart, shares)
    found = _found(inputs, apart, shares, target, multipliers)
    if found.gap > REFINED_ABOVE:
        found = _found(inputs, apart, shares, target, multipliers, optimal=True)
    if found.gap > REFINED_ABOVE:
        try:
            point = refine_joint(inputs, apart, shares, Fraction(1), Fraction(0), arcs)
        except SolverError:
            return found  # its gap says how good it may be called
        refined = [
            _found(inputs, apart, shares, target, point.multipliers(), optimal=True)
            for target in exact_masses(point.outputs()[0], inputs)
        ]
        found = min(found, *refined, key=lambda made: made.gap)
    return found


def _floating(
    inputs: list[Shares], distance: Floats, shares: Shares
) -> tuple[Shares, Multipliers, Arcs | None]:
    """What the program in floating point says; the first input's nearest points where it fails."""
    try:
        point = solve_joint(inputs, distance, shares, factor=1.0)
    except SolverError:
        nothing = Multipliers.zero(len(inputs), distance.shape[1])
        return nearest(inputs[0], distance), nothing, None
    return rounded_outputs(point.outputs())[0], Multipliers.of(point.multipliers()), point.have


def _found(
    inputs: list[Shares],
    distance: Floats,
    shares: Shares,
    target: Shares,
    multipliers: Multipliers,
    *,
    optimal: bool = False,
) -> Barycenter:
    """The barycentre with plans for a target, and what multipliers prove."""
    plans = tuple(cheapest_plan(lam, target, distance, optimal=optimal) for lam in inputs)
    costs = [plan.cost(distance) for plan in plans]
    value = weighted(shares, costs)
    bound = joint_bound(inputs, distance, shares, multipliers, Fraction(1), Fraction(0))
    bound = max(bound, Fraction(0))
    return Barycenter(
        exact=target,
        couplings=plans,
        value=rounded_up(value),
        values=tuple(rounded_up(cost) for cost in costs),
        lower_bound=rounded_down(bound) + 0.0,
        multipliers=multipliers,
        gap=relative_gap(value, bound),
    )


def read_joint(
    lams: Sequence[Distribution],
    distance: DistanceLike,
    weights: ArrayLike | None,
    *,
    where: str = "lams",
    secrets: Domain | None = None,
    observables: Domain | None = None,
) -> tuple[list[Shares], Floats, Shares]:
    """Inputs, distances and weights as they are used; raises ProblemError on unusable ones.

    Domains that are not given are those of the first prior among ``lams``.
    """
    listed = list(lams) if isinstance(lams, Iterable) else []
    known = next((domain for domain in map(domain_of, listed) if domain is not None), None)
    rows = secrets or known
    values = values_between(distance, rows, observables or rows)
    if not values.size or (values < 0).any():
        raise ProblemError(
            f"shape {values.shape}, least entry {values.min(initial=0.0):g}",
            where="distance",
            remedy="Give numbers >= 0, a row for every input point",
        )
    if values.max() > _LARGEST:
        raise ProblemError(
            f"the largest entry is {values.max():g}, above 1e300",
            where="distance",
            remedy="Use a larger unit",
        )
    inputs = [Shares.of(lam, f"{where}[{t}]") for t, lam in enumerate(listed)]
    if not inputs:
        raise ProblemError(
            "is not a list of distributions", where=where, remedy="Give at least one"
        )
    for t, lam in enumerate(inputs):
        if len(lam) != len(values):
            raise ProblemError(
                f"{len(lam)} weights for {len(values)} rows of distances",
                where=f"{where}[{t}]",
                remedy="Give a weight for every input point",
            )
    shares = Shares.of([1] * len(inputs) if weights is None else weights, "weights")
    if len(shares) != len(inputs):
        raise ProblemError(f"{len(shares)} weights for {len(inputs)} inputs", where="weights")
    return inputs, values, shares


def rounded_outputs(outputs: Floats) -> list[Shares]:
    """About-distributions, shape (T, m), as whole numbers over one power of two.

    Points where no output has more than dust are left out of all.
    """
    kept = np.where((outputs > _DUST).any(axis=0), np.maximum(outputs, 0.0), 0.0)
    released = Numerators.rounded(kept)
    return [Shares.reduced(row) for row in released.rows]


def nearest(lam: Shares, distance: Floats) -> Shares:
    """The output when every point goes to its nearest, the first of equals."""
    units = [0] * distance.shape[1]
    for y, unit in zip(distance.argmin(axis=1).tolist(), lam.units, strict=True):
        units[y] += unit
    return Shares.reduced(units)


def exact_masses(units: list[int], inputs: list[Shares]) -> list[Shares]:
    """An output in units of 2^-k: as it is, and, where they sum to one, the fractions of small
    multiples of the inputs' units that it is near.

    Vertices of the program are such fractions, and where the least loss is 0 nothing else attains
    it.
    """
    total, unit = sum(units), math.lcm(*(lam.total for lam in inputs))
    near = [Fraction(part * unit, total).limit_denominator(_MULTIPLE) / unit for part in units]
    found = [Shares.reduced(units)]
    if sum(near) == 1:
        scale = math.lcm(*(part.denominator for part in near))
        found.append(Shares.reduced([int(part * scale) for part in near]))
    return found


def relative_gap(value: Fraction, bound: Fraction) -> float:
    """(value - bound) / value, rounded up; 0 where the value is 0."""
    return max(0.0, rounded_up((value - bound) / value)) if value else 0.0


def weighted(weights: Shares, values: Sequence[Fraction]) -> Fraction:
    """Σ w_t v_t."""
    return sum((weights[t] * value for t, value in enumerate(values)), Fraction(0))
