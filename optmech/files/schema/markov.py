"""Trace files of kind "markov": a Markov chain on cells, and what each release has to keep."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from optmech.files.schema.constraints import ObjectiveSpec, with_constraints
from optmech.sections.base import (
    Count,
    ExactNumber,
    FormatNumber,
    LabelReference,
    Matrix,
    NonNegative,
    Positive,
    Spec,
    kind_of,
    refusal,
)
from optmech.sections.domains import Observables, Secrets
from optmech.sections.metrics import DistanceSpec, LossSpec
from optmech.sections.priors import PriorSpec

REQUIRED = ("format", "steps", "secrets", "chain", "loss", "adversary")

Lags = list[int]
Moments = list[Annotated[int, Field(ge=0)]]


class RandomWalk(Spec):
    """P(y|x) proportional to exp(−d(x, y)/scale)."""

    kind: Literal["random_walk"]
    distance: DistanceSpec
    scale: Positive
    initial: PriorSpec | None = None


class Matrices(Spec):
    """A given transition matrix, or one for every step."""

    kind: Literal["matrix"]
    transitions: Annotated[list[Matrix] | Matrix, Field(min_length=1)]
    initial: PriorSpec


class Fixes(Spec):
    """Estimated from positions in a CSV file: at regular times, or one step per row."""

    kind: Literal["fixes"]
    file: str
    user: str = "user"
    time: str = "time"
    x: str = "lon"
    y: str = "lat"
    interval: Positive | None = None
    max_gap: Positive
    max_distance: Positive | None = None
    smoothing: NonNegative = 1.0
    scale: Positive | None = None


ChainSpec = Annotated[
    Annotated[RandomWalk, Tag("kind=random_walk")]
    | Annotated[Matrices, Tag("kind=matrix")]
    | Annotated[Fixes, Tag("kind=fixes")],
    Discriminator(kind_of),
]


class About(Spec):
    """The other times that a constraint is about."""

    lags: Lags = Field(default_factory=list)
    times: Moments = Field(default_factory=list)

    @model_validator(mode="after")
    def _some(self) -> About:
        if not self.lags and not self.times:
            raise refusal("names no time", "Give lags = [1], or times = [0]", ("lags",))
        return self


class ConditionalPrivacy(About):
    """What the release of time t tells about the location at another time."""

    kind: Literal["conditional_privacy"]
    epsilon: ExactNumber
    distance: DistanceSpec | None = None
    radius: NonNegative | None = None
    delta: ExactNumber | None = None


class ConditionalDistortion(About):
    """The error of the best attack on the location at another time."""

    kind: Literal["conditional_distortion"]
    minimum: ExactNumber
    distance: DistanceSpec


class Adversary(Spec):
    """How the adversary is simulated: ``traces`` of the chain, or all releases."""

    distance: DistanceSpec
    traces: Annotated[int, Field(ge=2, le=10**6)] = 20
    exact: bool = False


class MarkovTrace(Spec):
    """A trace under a Markov chain; required keys are checked by the reader. ``markov_spec`` is the
    model with its constraints."""

    model_config = ConfigDict(
        title="optmech trace file of kind markov",
        json_schema_extra={"required": ["kind", *REQUIRED]},
    )

    format: FormatNumber | None = None
    kind: Literal["markov"]
    title: str = ""
    description: str = ""
    source: str = ""
    steps: Count | None = None
    secrets: Secrets | None = None
    observables: Observables | None = None
    chain: ChainSpec | None = None
    loss: LossSpec | None = None
    objective: ObjectiveSpec = "expected_loss"
    constraints: list[Any] = Field(default_factory=list)
    adversary: Adversary | None = None
    on_infeasible: Literal["stop", "skip", "relax"] = "stop"
    fraction: Annotated[float, Field(gt=0, lt=1)] = 0.9
    total_epsilon: ExactNumber | None = None
    profile: str | None = None
    gap: Positive = 1e-4
    trace: list[LabelReference] | None = None


def markov_spec() -> type[MarkovTrace]:
    """The model of these files with the kinds of constraints that are registered now."""
    return with_constraints(
        MarkovTrace,
        conditional_privacy=ConditionalPrivacy,
        conditional_distortion=ConditionalDistortion,
    )
