"""Objectives and constraints, each built by its kind from what stands around it in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optmech.base.arrays import Floats
from optmech.certificate.statement import Objective
from optmech.designs.file import rows_of_design
from optmech.files.make.context import Context
from optmech.files.make.meshes import build_mesh
from optmech.files.make.metrics import build_distance, build_loss, read_matrix
from optmech.files.make.priors import build_distribution, build_prior
from optmech.problem import Constraint, MaximizeDistortion, MinimizeLeakage
from optmech.problem.constraint import kinds
from optmech.problem.given_rows import GivenRows
from optmech.sections.base import Spec
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_index
from optmech.spaces.mesh import Mesh
from optmech.spaces.prior import Prior


@dataclass(frozen=True)
class Surroundings:
    """The ``Place`` of a table in a file: its methods are described there."""

    context: Context
    prior: Prior
    observed: Domain

    @property
    def secrets(self) -> Domain:
        return self.context.domain

    def distance(self, spec: Any) -> Distance:
        return build_distance(spec, self.context)

    def loss(self, spec: Any) -> Distance | Floats:
        return build_loss(spec, self.context, self.observed)

    def adversary(self, spec: Any) -> Prior:
        return build_prior(spec, self.context)

    def distribution(self, spec: Any) -> Floats:
        return build_distribution(spec, self.context)

    def index(self, label: object) -> int:
        return find_index(self.context.domain, label)

    def mesh(self, spec: Any) -> Mesh:
        return build_mesh(spec, self.context, self.prior)

    def rows(self, file: str) -> Floats:
        return read_matrix(None, file, self.context, "mask")

    def kept_rows(self, design: str) -> GivenRows:
        return rows_of_design(self.context.directory / design)


def build_objective(
    spec: Any, context: Context
) -> Objective | MaximizeDistortion | MinimizeLeakage:
    """The objective by its name or table."""
    if not isinstance(spec, Spec):
        name: Objective = spec
        return name
    domain = context.domain
    goals = (MaximizeDistortion, MinimizeLeakage)
    (goal,) = (goal for goal in goals if goal.kind == getattr(spec, "kind", ""))
    return goal.build(spec, Surroundings(context, Prior.uniform(domain), domain))


def build_constraint(spec: Any, context: Context, prior: Prior, observed: Domain) -> Constraint:
    """One entry of ``[[constraints]]``."""
    return kinds()[spec.kind].build(spec, Surroundings(context, prior, observed))
