"""The Wasserstein-1 barycentre on a finite set of points (CM19's best common target)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.number import Exact, rounded_down, rounded_up
from optmech.spaces.distances import DistanceLike, values_between
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Distribution, domain_of
from optmech.spaces.rationals import Shares
from optmech.transport.joint import Multipliers
from optmech.transport.outputs import Outputs
from optmech.transport.rational import RationalPlan

_LARGEST = 1e300
"""Distances leave room for sums along paths, and for a price that no detour is worth."""


@record
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
    multipliers: Multipliers | None
    """What proves the bound; see ``joint.joint_bound``. None where it needs none."""
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
        a function of two domains or a table with its labels.
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
    zero = Exact(Fraction(0))
    found, _ = Outputs(tuple(inputs), apart, shares, zero, zero).optimum()
    return Barycenter(
        exact=found.plans[0].second,
        couplings=found.plans,
        value=rounded_up(found.cost),
        values=tuple(rounded_up(plan.cost(apart)) for plan in found.plans),
        lower_bound=rounded_down(found.bound) + 0.0,
        multipliers=found.multipliers,
        gap=found.gap,
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
