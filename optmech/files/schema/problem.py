"""The top level of a problem file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from optmech.files.schema.constraints import ObjectiveSpec, with_constraints
from optmech.files.schema.transport import Transport
from optmech.problem.constraint import require_installed
from optmech.sections.base import FormatNumber, Spec
from optmech.sections.domains import Observables, Secrets
from optmech.sections.metrics import LossSpec
from optmech.sections.priors import PriorSpec

REQUIRED = ("format", "secrets", "prior", "loss")


class ProblemSpec(Spec):
    """A whole problem file; ``problem_spec`` is the model with its constraints.

    The required sections are optional here: the reader reports what is missing itself, so that
    the errors of the sections that are there can be reported together with it.
    """

    model_config = ConfigDict(
        title="optmech problem file", json_schema_extra={"required": list(REQUIRED)}
    )

    format: FormatNumber | None = None
    title: str = ""
    description: str = ""
    source: str = ""
    profile: str | None = None
    optimum: Annotated[float, Field(ge=0)] | None = None
    secrets: Secrets | None = None
    observables: Observables | None = None
    prior: PriorSpec | None = None
    loss: LossSpec | None = None
    objective: ObjectiveSpec = "expected_loss"
    constraints: list[Any] = Field(default_factory=list, max_length=1000)
    transport: Transport | None = None


def problem_spec() -> type[ProblemSpec]:
    """The model of problem files with the kinds that are registered now."""
    return with_constraints(ProblemSpec, gaps=True)


def problem_schema() -> dict[str, Any]:
    """The JSON Schema of problem files, format 1, with the kinds of installed packages."""
    require_installed()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **problem_spec().model_json_schema(),
    }
