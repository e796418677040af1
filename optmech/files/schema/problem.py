"""The top level of a problem file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from optmech.files.schema.base import FormatNumber, Spec
from optmech.files.schema.constraints import ConstraintSpec, ObjectiveSpec
from optmech.files.schema.domains import Observables, Secrets
from optmech.files.schema.metrics import LossSpec
from optmech.files.schema.priors import PriorSpec
from optmech.files.schema.transport import Transport

REQUIRED = ("format", "secrets", "prior", "loss")


class ProblemSpec(Spec):
    """A whole problem file.

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
    constraints: list[ConstraintSpec | None] = Field(default_factory=list, max_length=1000)
    transport: Transport | None = None


def problem_schema() -> dict[str, Any]:
    """The JSON Schema of problem files, format 1."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ProblemSpec.model_json_schema(),
    }
