"""From stated constraints to a ``Statement``, with every distance evaluated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.certificate import families
from optmech.certificate.families import (
    Approximate,
    Distortion,
    Divergence,
    LiftedRatio,
    LossLimit,
    Ratio,
)
from optmech.certificate.families.ratio import rounded_product
from optmech.errors import ProblemError
from optmech.exact.number import Exact
from optmech.problem.constraints import (
    Constraint,
    DifferentialPrivacy,
    DistortionPrivacy,
    DistributionPrivacy,
    LossBound,
    MaximizeDistortion,
    MetricPrivacy,
    Support,
)
from optmech.spaces.distances import evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.losses import loss_matrix
from optmech.spaces.prior import Prior
from optmech.statement import Family, Objective, Statement, read_only

_LEAST_LIMIT = 1e-30
"""Divergences below this are the squares of differences below float64's."""


def make_statement(
    prior: Prior,
    observables: Domain,
    loss: Floats,
    objective: Objective | MaximizeDistortion,
    constraints: tuple[Constraint, ...],
) -> Statement:
    """Evaluate every distance and sort the constraints into families.

    Raises
    ------
    ProblemError
        Where an array does not fit the domains; the message has the constraint's index.
    """
    loss = read_only(loss)
    builder = _Builder(prior, observables, loss)
    for k, constraint in enumerate(constraints):
        try:
            builder.add(k, constraint)
        except ProblemError as error:
            raise error.at(f"constraints[{k}]") from error
    factors = None
    if isinstance(objective, MaximizeDistortion):
        try:
            factors = builder.attacked(objective.distance, objective.prior)
        except ProblemError as error:
            raise error.at("objective") from error
    return Statement(
        prior=prior.weights,
        loss=loss,
        objective="maximize_distortion" if isinstance(objective, MaximizeDistortion) else objective,
        families=tuple(builder.families),
        target_factors=factors,
    )


class _Builder:
    def __init__(self, prior: Prior, observables: Domain, loss: Floats) -> None:
        self.prior = prior
        self.secrets = prior.domain
        self.observables = observables
        self.loss = loss
        self.families: list[Family] = []

    def add(self, index: int, constraint: Constraint) -> None:
        match constraint:
            case MetricPrivacy():
                self._metric(index, constraint)
            case DifferentialPrivacy():
                distance = np.where(self._adjacent(constraint), 1.0, np.inf)
                self._ratios(index, constraint.epsilon, distance, constraint.delta)
            case DistortionPrivacy():
                values, weights = self.attacked(constraint.distance, constraint.prior)
                self.families.append(
                    Distortion(index, values * weights, constraint.minimum, values, weights)
                )
            case DistributionPrivacy():
                self._distribution(index, constraint)
            case LossBound():
                self._loss_bound(index, constraint)
            case Support():
                self.families.append(families.Support(index, self._support(constraint)))
            case _:
                raise ProblemError(
                    f"{type(constraint).__name__} is not a constraint",
                    remedy="Use MetricPrivacy, DifferentialPrivacy, DistortionPrivacy, "
                    "DistributionPrivacy, LossBound or Support",
                )

    def attacked(self, distance: object, prior: Prior | None) -> tuple[Floats, Floats]:
        """d(t,s) and the adversary's π(s)."""
        values = evaluate(distance, self.secrets, self.secrets, where="distance")  # type: ignore[arg-type]
        adversary = self.prior if prior is None else prior
        if not isinstance(adversary, Prior) or adversary.domain.labels != self.secrets.labels:
            raise ProblemError(
                "the adversary's prior is not a Prior over the secrets",
                where="prior",
                remedy=f"Make it with om.Prior over the same {len(self.secrets)} labels",
            )
        return values, adversary.weights

    def _metric(self, index: int, constraint: MetricPrivacy) -> None:
        values = evaluate(constraint.distance, self.secrets, self.secrets, where="distance")
        kept = np.array(values)
        if constraint.threshold is not None:
            kept[values > constraint.threshold] = np.inf
        window = None
        if constraint.observable_threshold is not None:
            reach = evaluate(constraint.distance, self.secrets, self.observables, where="distance")
            window = reach <= constraint.observable_threshold
        self._ratios(index, constraint.epsilon, kept, constraint.delta, window)

    def _ratios(
        self,
        index: int,
        epsilon: Exact,
        distance: Floats,
        delta: Exact,
        window: NDArray[np.bool_] | None = None,
    ) -> None:
        np.fill_diagonal(distance, np.inf)
        if delta > 0:
            left, right = np.nonzero(np.isfinite(distance))
            if not len(left):
                return  # one secret, or a threshold or radius below every distance: no inequality
            unit = sp.eye_array(len(self.secrets), format="csr")
            apart = distance[left, right]
            chosen = rounded_product(epsilon, apart)
            self.families.append(
                Approximate(index, unit[left], unit[right], chosen, delta, epsilon, apart)
            )
            return
        self.families.append(Ratio(index, epsilon, distance, window))

    def _adjacent(self, constraint: DifferentialPrivacy) -> NDArray[np.bool_]:
        count = len(self.secrets)
        adjacency = constraint.adjacency
        if adjacency == "all":
            return np.ones((count, count), dtype=bool)
        if callable(adjacency[0]):
            distance, radius = adjacency
            values = evaluate(distance, self.secrets, self.secrets, where="adjacency")
            return np.asarray(values <= radius)
        adjacent = np.zeros((count, count), dtype=bool)
        for k, (i, j) in enumerate(adjacency):
            if max(i, j) >= count:
                raise ProblemError(
                    f"pair ({i}, {j}) is outside the {count} secrets",
                    where=f"adjacency[{k}]",
                    remedy=f"Indices run from 0 to {count - 1}",
                )
            adjacent[i, j] = adjacent[j, i] = True
        return adjacent

    def _distribution(self, index: int, constraint: DistributionPrivacy) -> None:
        count = len(self.secrets)
        for k, pair in enumerate(constraint.pairs):
            for side, distribution in enumerate(pair):
                if distribution.shape != (count,):
                    raise ProblemError(
                        f"{distribution.size} entries for {count} secrets",
                        where=f"pairs[{k}][{side}]",
                    )
        first = np.array([pair[0] for pair in constraint.pairs])
        second = np.array([pair[1] for pair in constraint.pairs])
        scale = np.ones(len(first)) if constraint.scale is None else np.array(constraint.scale)
        if constraint.divergence != "max":
            self._divergence(index, constraint, first, second, scale)
            return
        left, right = np.vstack([first, second]), np.vstack([second, first])
        scale = np.concatenate([scale, scale])
        epsilon, delta = constraint.epsilon, constraint.delta
        ratios = rounded_product(epsilon, scale)
        if not delta > 0:
            self.families.append(LiftedRatio(index, left, right, ratios, epsilon, scale))
        else:
            sparse = sp.csr_array(left), sp.csr_array(right)
            self.families.append(Approximate(index, *sparse, ratios, delta, epsilon, scale))

    def _divergence(
        self,
        index: int,
        constraint: DistributionPrivacy,
        first: Floats,
        second: Floats,
        scale: Floats,
    ) -> None:
        """Distributions at divergence 0 are equal: a ratio of 1. Total variation is the hockey
        stick at e^0, with ε · scale for δ."""
        epsilon, nothing = constraint.epsilon, Exact(Fraction(0))
        equal = (scale == 0) | (epsilon.factor == 0) | (epsilon.log_of == 1)
        limits = rounded_product(epsilon, scale)
        if (~equal & (limits < _LEAST_LIMIT)).any():
            raise ProblemError(
                f"ε · scale is {limits[~equal].min():g}, too small to be told from 0",
                where="epsilon",
                remedy=f"Give 0, or at least {_LEAST_LIMIT:g}",
            )
        if equal.any():
            left = np.vstack([first[equal], second[equal]])
            right = np.vstack([second[equal], first[equal]])
            one = np.ones(len(left))
            self.families.append(LiftedRatio(index, left, right, 0 * one, nothing, one))
        apart = np.flatnonzero(~equal)
        if constraint.divergence == "tv":
            for k in apart.tolist():
                one = np.ones(1)
                sides = sp.csr_array(first[[k]]), sp.csr_array(second[[k]])
                limit = epsilon.times(scale[k])
                self.families.append(Approximate(index, *sides, 0 * one, limit, nothing, one))
        elif len(apart):
            both = np.concatenate([scale[apart], scale[apart]])
            self.families.append(
                Divergence(
                    index,
                    constraint.divergence,
                    np.vstack([first[apart], second[apart]]),
                    np.vstack([second[apart], first[apart]]),
                    np.concatenate([limits[apart], limits[apart]]),
                    epsilon,
                    both,
                )
            )

    def _loss_bound(self, index: int, constraint: LossBound) -> None:
        if constraint.loss is None:
            values = self.loss
        else:
            values = loss_matrix(constraint.loss, self.secrets, self.observables, where="loss")
        weighted = values if constraint.worst_case else values * self.prior.weights[:, None]
        self.families.append(
            LossLimit(index, weighted, constraint.maximum, constraint.worst_case, values)
        )

    def _support(self, constraint: Support) -> NDArray[np.bool_]:
        shape = (len(self.secrets), len(self.observables))
        if constraint.mask is not None:
            mask = constraint.mask
            if mask.shape != shape:
                raise ProblemError(
                    f"shape {mask.shape} does not fit {shape[0]} secrets x {shape[1]} observables",
                    where="mask",
                )
        else:
            assert constraint.distance is not None
            assert constraint.radius is not None
            reach = evaluate(constraint.distance, self.secrets, self.observables, where="distance")
            mask = reach <= constraint.radius
        empty = np.flatnonzero(~mask.any(axis=1))
        if len(empty):
            raise ProblemError(
                f"leaves {len(empty)} secret(s) without observables, the first "
                f"{self.secrets.labels[empty[0]]!r}",
                where="mask" if constraint.mask is not None else "radius",
                remedy="Allow at least one observable for every secret",
            )
        return mask
