"""Puts the sections of a file together, gathering the errors of those that do not fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.statement import Objective
from optmech.errors import ProblemError, TooLargeError
from optmech.files.make.constraints import build_constraint, build_objective
from optmech.files.make.context import Context, Listed, require_room
from optmech.files.make.domains import build_observables, list_secrets
from optmech.files.make.metrics import build_loss
from optmech.files.make.priors import build_prior, listed_weights
from optmech.files.make.transport import build_transport
from optmech.files.make.zones import merge, places_of, zones_of
from optmech.files.schema import ProblemSpec
from optmech.problem import Constraint, MaximizeDistortion, MinimizeLeakage, Problem
from optmech.problem.problem import make_statement
from optmech.problem.space import Space
from optmech.reading.errors import Collector
from optmech.sections import priors as prior_schema
from optmech.sections.domains import Aggregable
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain
from optmech.spaces.losses import loss_matrix
from optmech.spaces.prior import Prior
from optmech.tasks.coupling import Transport

if TYPE_CHECKING:
    from optmech.files.schema.markov import MarkovTrace

_BELOW_A_DISTANCE = re.compile(
    r"(distance|adjacency|loss)\."
    r"(points|euclidean|manhattan|hamming|haversine|graph|distance matrix)$"
)


def assemble(
    spec: ProblemSpec, directory: Path, title: str, errors: Collector
) -> tuple[Problem, Transport | None] | None:
    """The problem and its ``[transport]`` table, or None when ``errors`` has gathered any."""
    context = build_secrets(spec, directory, errors)
    if context is None:
        return None
    parts = _Parts(spec, context, errors)
    if errors.errors or parts.prior is None or parts.observed is None or parts.loss is None:
        parts.find_misfits()
        return None
    try:
        problem = Problem(
            parts.prior,
            parts.loss,
            parts.observed,
            objective=parts.objective,
            constraints=[constraint for _, constraint in parts.constraints],
            title=title,
        )
        return problem, parts.transport
    except TooLargeError as error:
        errors.add(error)
    except ProblemError as error:
        parts.find_misfits()
        errors.add(_in_file(error))
    return None


def build_secrets(spec: ProblemSpec, directory: Path, errors: Collector) -> Context | None:
    """The secrets, aggregated where the file says so."""
    if spec.secrets is None:
        return None
    with errors.at("secrets"):
        listed = list_secrets(spec.secrets, directory)
        merging = isinstance(spec.secrets, Aggregable)
        wanted = getattr(spec.secrets, "aggregate", None)
        if wanted is None:
            places = len(places_of(listed.domain)[0]) if merging else None
            observables = len(listed.domain) if spec.observables is None else 1
            require_room(len(listed.domain), "", observables=observables, places=places)
            return Context(directory, listed, listed.domain)
        zone = zones_of(listed.domain, wanted.zones)
        weights = _weights_for_centroids(spec, listed, directory)
        return Context(directory, listed, merge(listed.domain, zone, weights), zone)
    return None


def _weights_for_centroids(spec: ProblemSpec, listed: Listed, directory: Path) -> Floats | None:
    """The prior's weights of the listed points, where it has them; its errors come later."""
    if not isinstance(spec.prior, prior_schema.Given | prior_schema.Counts | prior_schema.Column):
        return None
    try:
        weights, _ = listed_weights(spec.prior, listed, directory)
    except ProblemError:
        return None
    return weights if weights.max() > 0 else None


class Parts:
    """The sections that several kinds of files have, each built on its own, so that one error does
    not hide another."""

    def __init__(
        self, spec: ProblemSpec | MarkovTrace, context: Context, errors: Collector
    ) -> None:
        self.context, self.errors = context, errors
        self.observed: Domain | None = None
        self.loss: Distance | Floats | None = None
        self.objective: Objective | MaximizeDistortion | MinimizeLeakage = "expected_loss"
        with errors.at("observables"):
            self.observed = (
                context.domain
                if spec.observables is None
                else build_observables(spec.observables, context)
            )
        with errors.at("objective"):
            self.objective = build_objective(spec.objective, context)
        if spec.loss is not None and self.observed is not None:
            with errors.at("loss"):
                self.loss = build_loss(spec.loss, context, self.observed)


class _Parts(Parts):
    def __init__(self, spec: ProblemSpec, context: Context, errors: Collector) -> None:
        self.prior: Prior | None = None
        self.constraints: list[tuple[int, Constraint]] = []
        self.transport: Transport | None = None
        if spec.prior is not None:
            with errors.at("prior"):
                self.prior = build_prior(spec.prior, context)
        super().__init__(spec, context, errors)
        if self.observed is None:
            return
        if spec.transport is not None:
            with errors.at("transport"):
                self.transport = build_transport(spec.transport, context, self.observed)
        for k, item in enumerate(spec.constraints):
            if item is not None:
                with errors.at(f"constraints[{k}]"):
                    built = build_constraint(item, context, self._any_prior(), self.observed)
                    self.constraints.append((k, built))

    def _any_prior(self) -> Prior:
        return Prior.uniform(self.context.domain) if self.prior is None else self.prior

    def find_misfits(self) -> None:
        """Try the parts that were built one by one against the domains, and keep what fails."""
        if self.observed is None:
            return
        prior, observed = self._any_prior(), self.observed
        values = np.zeros((len(prior), len(observed)))
        try:
            if self.loss is not None:
                values = loss_matrix(self.loss, prior.domain, observed, where="loss")
        except ProblemError as error:
            self.errors.add(_in_file(error))
        space = Space(prior, observed, values)
        tried: list[tuple[int, Any, tuple[Constraint, ...]]] = [(0, self.objective, ())]
        tried[:0] = [(k, "expected_loss", (stated,)) for k, stated in self.constraints]
        for k, objective, constraints in tried:
            try:
                make_statement(space, objective, constraints)
            except ProblemError as error:
                place = error.where.replace("constraints[0]", f"constraints[{k}]", 1)
                self.errors.add(_in_file(error.moved(place)))


def _in_file(error: ProblemError) -> ProblemError:
    """The error with a place that is a path into the file."""
    return error.moved(_BELOW_A_DISTANCE.sub(r"\1", error.where))
