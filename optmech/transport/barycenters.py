"""The Wasserstein-1 barycentre on a finite set of points (CM19's best common target)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.domain import Floats, finite_array
from optmech.errors import ProblemError
from optmech.exact import rounded_down, rounded_up
from optmech.numerators import Numerators
from optmech.prior import Prior
from optmech.rationals import Shares
from optmech.transport.joint import joint_bound, solve_joint
from optmech.transport.rational import RationalPlan, cheapest_plan

_DUST = 1e-13
"""Output masses below this, of a total of 1, are the solver's."""

NOISE = 2.0**-46
"""Losses below this share of the largest distance are rounding."""


@dataclass(frozen=True, eq=False)
class Barycenter:
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
    multipliers: Floats
    """What proves the bound; see ``joint.joint_bound``."""
    noise: float
    """What the rounding of masses is worth: values below it stand for 0."""

    @property
    def distribution(self) -> Floats:
        """μ as floats, shape (m,)."""
        return self.exact.weights

    @property
    def plans(self) -> Floats:
        """γ_t as floats, shape (T, n, m)."""
        return np.array([coupling.plan for coupling in self.couplings])

    @property
    def gap(self) -> float:
        """(value - lower_bound) / value; 0 where their difference is rounding."""
        difference = self.value - self.lower_bound
        return difference / self.value if self.value > self.noise else 0.0


def barycenter(
    lams: Sequence[ArrayLike | Prior], distance_matrix: ArrayLike, weights: ArrayLike | None = None
) -> Barycenter:
    """A Wasserstein-1 barycentre of ``lams`` among all distributions on the columns' points.

    Parameters
    ----------
    lams:
        T >= 1 weight vectors of shape (n,), or priors; each is divided by its exact sum.
    distance_matrix:
        d >= 0, shape (n, m); usually square. Need not be a metric.
    weights:
        w_t >= 0, divided by their sum; equal unless given.

    The value is that of exact plans for the returned μ, the bound holds for every μ: their
    difference is what the linear program's tolerance leaves open, about 1e-12 of the value.

    Raises
    ------
    ProblemError
        On unusable weights or distances.
    SolverError
        Where the program could not be solved.
    """
    inputs, distance, shares = read_joint(lams, distance_matrix, weights)
    point = solve_joint(
        np.array([lam.weights for lam in inputs]), distance, shares.weights, factor=1.0
    )
    target = rounded_outputs(point.outputs)[0]
    plans = tuple(cheapest_plan(lam, target, distance, optimal=False) for lam in inputs)
    costs = [plan.cost(distance) for plan in plans]
    bound = joint_bound(inputs, distance, shares, point.multipliers, 1.0, Fraction(0))
    return Barycenter(
        exact=target,
        couplings=plans,
        value=rounded_up(weighted(shares, costs)),
        values=tuple(rounded_up(cost) for cost in costs),
        lower_bound=max(0.0, rounded_down(bound)),
        multipliers=point.multipliers,
        noise=NOISE * float(distance.max()),
    )


def read_joint(
    lams: Sequence[ArrayLike | Prior],
    distance_matrix: ArrayLike,
    weights: ArrayLike | None,
    where: str = "lams",
) -> tuple[list[Shares], Floats, Shares]:
    """Inputs, distances and weights as they are used; raises ProblemError on unusable ones."""
    distance = finite_array(distance_matrix, where="distance_matrix", ndim=2)
    if not distance.size or (distance < 0).any():
        raise ProblemError(
            f"shape {distance.shape}, least entry {distance.min(initial=0.0):g}",
            where="distance_matrix",
            remedy="Give numbers >= 0, a row for every input point",
        )
    try:
        inputs = [Shares.of(lam, f"{where}[{t}]") for t, lam in enumerate(lams)]
    except TypeError:
        inputs = []
    if not inputs:
        raise ProblemError(
            "is not a list of distributions", where=where, remedy="Give at least one"
        )
    for t, lam in enumerate(inputs):
        if len(lam) != len(distance):
            raise ProblemError(
                f"{len(lam)} weights for {len(distance)} rows of distances",
                where=f"{where}[{t}]",
                remedy="Give a weight for every input point",
            )
    shares = Shares.of([1] * len(inputs) if weights is None else weights, "weights")
    if len(shares) != len(inputs):
        raise ProblemError(f"{len(shares)} weights for {len(inputs)} inputs", where="weights")
    return inputs, distance, shares


def rounded_outputs(outputs: Floats) -> list[Shares]:
    """About-distributions, shape (T, m), as whole numbers over one power of two.

    Points where no output has more than dust are left out of all.
    """
    kept = np.where((outputs > _DUST).any(axis=0), np.maximum(outputs, 0.0), 0.0)
    released = Numerators.rounded(kept)
    return [Shares.reduced(row) for row in released.rows]


def weighted(weights: Shares, values: Sequence[Fraction]) -> Fraction:
    """Σ w_t v_t."""
    return sum((weights[t] * value for t, value in enumerate(values)), Fraction(0))
