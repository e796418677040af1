"""``[transport]``: coupling mechanisms and optimal targets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, model_validator

from optmech.problem.constraints.distribution import as_divergence
from optmech.problem.fields import FIELDS
from optmech.sections.base import ExactNumber, NonNegative, Spec, must, refusal
from optmech.sections.priors import DistributionSpec

Order = Annotated[
    Any,
    must(
        lambda value: value in (1, "inf") and not isinstance(value, bool),
        "neither 1 nor inf",
        'Write 1 or "inf"',
    ),
    WithJsonSchema({"enum": [1, "inf"]}),
]


Divergence: Any = FIELDS[as_divergence].type_of_key()


class Input(Spec):
    """An auxiliary input and the distribution that secrets then have."""

    name: str | None = None
    weight: NonNegative = 1.0
    distribution: DistributionSpec


class Transport(Spec):
    """One mechanism for every auxiliary input; distances are the problem's loss."""

    task: Literal["coupling", "barycenter", "target"]
    inputs: Annotated[list[Input], Field(min_length=1)]
    target: DistributionSpec | None = None
    p: Order = 1
    outside: Literal["target", "nearest"] = "target"
    epsilon: ExactNumber | None = None
    epsilons: list[ExactNumber] | None = None
    delta: ExactNumber | None = None
    divergence: Divergence | None = None

    @model_validator(mode="after")
    def _fits(self) -> Transport:
        if (self.target is not None) != (self.task == "coupling"):
            raise refusal(
                "target belongs to the task coupling, and is needed there",
                "Give target with coupling, and with no other task",
            )
        if self.task != "coupling" and self.p != 1:
            raise refusal("p belongs to the task coupling", "Leave it out")
        private = (self.epsilon, self.epsilons, self.delta)
        if self.task != "target" and any(value is not None for value in private):
            raise refusal("epsilon, epsilons and delta belong to the task target", "Leave them out")
        if self.divergence is not None and self.task != "target":
            raise refusal("divergence belongs to the task target", "Leave it out")
        if self.divergence is not None and (self.epsilons or self.outside != "target"):
            raise refusal(
                "epsilons and outside are for targets without a divergence", "Leave them out"
            )
        return self
