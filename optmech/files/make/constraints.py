"""Objectives and constraints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.files.make.context import Context
from optmech.files.make.metrics import build_distance, build_loss, read_matrix
from optmech.files.make.priors import build_prior
from optmech.files.schema import constraints as schema
from optmech.files.schema.constraints import ConstraintSpec, ObjectiveSpec
from optmech.files.schema.metrics import DistanceSpec
from optmech.files.schema.priors import DistributionSpec, PriorSpec
from optmech.problem import constraints as om
from optmech.spaces.distances import Distance, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_index
from optmech.spaces.prior import Prior
from optmech.statement import Objective


def build_objective(spec: ObjectiveSpec, context: Context) -> Objective | om.MaximizeDistortion:
    """The objective by its name or table."""
    if not isinstance(spec, schema.MaximizeDistortion):
        return spec
    return om.MaximizeDistortion(_distance(spec.distance, context), _adversary(spec.prior, context))


def build_constraint(
    spec: ConstraintSpec, context: Context, prior: Prior, observed: Domain
) -> om.Constraint:
    """One entry of ``[[constraints]]``."""
    match spec:
        case schema.MetricPrivacy():
            return om.MetricPrivacy(
                spec.epsilon,
                _distance(spec.distance, context),
                spec.threshold,
                spec.observable_threshold,
                spec.delta or 0.0,
            )
        case schema.DifferentialPrivacy():
            return om.DifferentialPrivacy(
                spec.epsilon, _adjacency(spec.adjacency, context), spec.delta or 0.0
            )
        case schema.DistortionPrivacy():
            return _distortion(spec, context, prior)
        case schema.DistributionPrivacy():
            return om.DistributionPrivacy(
                spec.epsilon, _pairs(spec, context), spec.delta or 0.0, spec.divergence, spec.scale
            )
        case schema.LossBound():
            with _at("loss"):
                loss = None if spec.loss is None else build_loss(spec.loss, context, observed)
            return om.LossBound(spec.maximum, spec.worst_case, loss)
        case schema.Support():
            return _support(spec, context)


@contextmanager
def _at(place: str) -> Iterator[None]:
    try:
        yield
    except ProblemError as error:
        raise error.at(place) from error


def _distance(spec: DistanceSpec, context: Context) -> Distance:
    with _at("distance"):
        return build_distance(spec, context)


def _adversary(spec: PriorSpec | None, context: Context) -> Prior | None:
    with _at("prior"):
        return None if spec is None else build_prior(spec, context)


def _distortion(
    spec: schema.DistortionPrivacy, context: Context, prior: Prior
) -> om.DistortionPrivacy:
    distance = _distance(spec.distance, context)
    adversary = _adversary(spec.prior, context)
    minimum = spec.minimum
    if isinstance(minimum, schema.FractionOfBlind):
        values = evaluate(distance, context.domain, context.domain, where="distance")
        blind = (values @ (adversary or prior).weights).min()
        return om.DistortionPrivacy(minimum.fraction_of_blind * blind, distance, adversary)
    return om.DistortionPrivacy(minimum, distance, adversary)


def _adjacency(spec: schema.Adjacency, context: Context) -> om.Adjacency:
    if isinstance(spec, str):
        return "all"
    if spec.distance is not None and spec.radius is not None:
        with _at("adjacency.distance"):
            return (build_distance(spec.distance, context), spec.radius)
    pairs = []
    for k, (a, b) in enumerate(spec.pairs or []):
        with _at(f"adjacency.pairs[{k}]"):
            pairs.append((find_index(context.domain, a), find_index(context.domain, b)))
    return tuple(pairs)


def _pairs(spec: schema.DistributionPrivacy, context: Context) -> list[tuple[Floats, Floats]]:
    pairs = []
    for k, (first, second) in enumerate(spec.pairs):
        sides = []
        for side, given in enumerate((first, second)):
            with _at(f"pairs[{k}][{side}]"):
                sides.append(build_distribution(given, context))
        pairs.append((sides[0], sides[1]))
    return pairs


def build_distribution(given: DistributionSpec, context: Context) -> Floats:
    """Weights over the secrets, from an array, a table or a recipe."""
    if isinstance(given, dict):
        weights = np.zeros(len(context.domain))
        for label, weight in given.items():
            weights[find_index(context.domain, label)] += weight
        return weights
    if not isinstance(given, list):
        return build_prior(given, context).weights
    if len(given) != len(context.domain):
        raise ProblemError(
            f"has {len(given)} entries for {len(context.domain)} secrets",
            remedy=f"Give {len(context.domain)}, or a table from label to weight",
        )
    return np.array(given, dtype=np.float64)


def _support(spec: schema.Support, context: Context) -> om.Support:
    if spec.distance is not None and spec.radius is not None:
        return om.Support.within(_distance(spec.distance, context), spec.radius)
    if spec.mask is not None:
        return om.Support(spec.mask)
    rows = np.array(read_matrix(None, spec.file, context, "mask"))
    if not np.isin(rows, (0, 1)).all():
        raise ProblemError("has entries other than 0 and 1", where="file", remedy="Use 0 and 1")
    return om.Support(rows.astype(bool))
