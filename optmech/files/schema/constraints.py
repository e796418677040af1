"""``objective`` and ``[[constraints]]``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from optmech.files.schema.base import (
    ExactNumber,
    LabelReference,
    NonNegative,
    Spec,
    kind_of,
    refusal,
    shorten,
    table_or_name,
)
from optmech.files.schema.metrics import DistanceSpec, LossSpec
from optmech.files.schema.priors import DistributionSpec, PriorSpec


class MetricPrivacy(Spec):
    """p(o|s) <= exp(ε d(s,s')) p(o|s'), or with a mass δ of exceptions."""

    kind: Literal["metric_privacy"]
    epsilon: ExactNumber
    distance: DistanceSpec
    threshold: NonNegative | None = None
    observable_threshold: NonNegative | None = None
    delta: ExactNumber | None = None


class Neighbours(Spec):
    """Which secrets are adjacent: listed pairs of labels, or all within a radius."""

    pairs: (
        Annotated[
            list[Annotated[list[LabelReference], Field(min_length=2, max_length=2)]],
            Field(min_length=1),
        ]
        | None
    ) = None
    distance: DistanceSpec | None = None
    radius: NonNegative | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Neighbours:
        by_radius = (self.distance is not None, self.radius is not None)
        if by_radius != (self.pairs is None,) * 2:
            raise refusal("needs either pairs, or distance and radius", "Keep one of the two forms")
        return self


Adjacency = Annotated[
    Annotated[Literal["all"], Tag("kind=name")] | Annotated[Neighbours, Tag("kind=table")],
    Discriminator(table_or_name),
]


class DifferentialPrivacy(Spec):
    """The same with e^ε for adjacent secrets."""

    kind: Literal["differential_privacy"]
    epsilon: ExactNumber
    adjacency: Adjacency = "all"
    delta: ExactNumber | None = None


class FractionOfBlind(Spec):
    """A share of d_max, the error of an adversary who sees nothing."""

    fraction_of_blind: Annotated[float, Field(ge=0, le=1)]


def _minimum_tag(value: object) -> str:
    return "kind=table" if isinstance(value, dict | FractionOfBlind) else "kind=number"


Minimum = Annotated[
    Annotated[ExactNumber, Tag("kind=number")] | Annotated[FractionOfBlind, Tag("kind=table")],
    Discriminator(_minimum_tag),
]


class DistortionPrivacy(Spec):
    """The error of the best attack is at least ``minimum``."""

    kind: Literal["distortion_privacy"]
    minimum: Minimum
    distance: DistanceSpec
    prior: PriorSpec | None = None


class DistributionPrivacy(Spec):
    """(λP)(o) <= e^ε (λ'P)(o), or a divergence of at most ε, for each pair of distributions, both
    ways."""

    kind: Literal["distribution_privacy"]
    epsilon: ExactNumber
    pairs: Annotated[
        list[Annotated[list[DistributionSpec], Field(min_length=2, max_length=2)]],
        Field(min_length=1),
    ]
    delta: ExactNumber | None = None
    divergence: Literal["max", "kl", "reverse_kl", "tv", "chi2", "hellinger"] = "max"
    scale: list[NonNegative] | None = None


class LossBound(Spec):
    """The expected or worst-case loss is at most ``maximum``."""

    kind: Literal["loss_bound"]
    maximum: ExactNumber
    worst_case: bool = False
    loss: LossSpec | None = None


def _mask(value: object) -> Any:
    rows_fit = isinstance(value, list) and all(isinstance(row, list) for row in value)
    if not rows_fit:
        raise refusal("is not an array of rows", "Give [[1, 0], [1, 1]], a row per secret")
    assert isinstance(value, list)
    for i, row in enumerate(value):
        for j, cell in enumerate(row):
            if not isinstance(cell, bool | int) or cell not in (0, 1):
                raise refusal(f"{shorten(cell)} is not 0, 1, true or false", "Correct it", (i, j))
        if len(row) != len(value[0]):
            raise refusal(
                f"has {len(row)} entries and row 0 has {len(value[0])}",
                "Give rows of one length",
                (i,),
            )
    return value


_MASK_SCHEMA = {
    "type": "array",
    "items": {"type": "array", "items": {"enum": [0, 1, True, False]}},
}


class Support(Spec):
    """p(o|s) > 0 only where a mask, or a radius, allows it."""

    kind: Literal["support"]
    mask: Annotated[Any, BeforeValidator(_mask), WithJsonSchema(_MASK_SCHEMA)] | None = None
    file: str | None = None
    distance: DistanceSpec | None = None
    radius: NonNegative | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Support:
        if (self.distance is None) != (self.radius is None):
            raise refusal("distance and radius go together", "Give both or neither")
        if sum(form is not None for form in (self.mask, self.file, self.radius)) != 1:
            raise refusal(
                "needs one of mask, file, and distance with radius", "Keep one of the forms"
            )
        return self


ConstraintSpec = Annotated[
    Annotated[MetricPrivacy, Tag("kind=metric_privacy")]
    | Annotated[DifferentialPrivacy, Tag("kind=differential_privacy")]
    | Annotated[DistortionPrivacy, Tag("kind=distortion_privacy")]
    | Annotated[DistributionPrivacy, Tag("kind=distribution_privacy")]
    | Annotated[LossBound, Tag("kind=loss_bound")]
    | Annotated[Support, Tag("kind=support")],
    Discriminator(kind_of),
]


class MaximizeDistortion(Spec):
    """The largest error of the best attack, under a loss bound."""

    kind: Literal["maximize_distortion"]
    distance: DistanceSpec
    prior: PriorSpec | None = None


ObjectiveSpec = Annotated[
    Annotated[Literal["expected_loss", "worst_loss"], Tag("kind=name")]
    | Annotated[MaximizeDistortion, Tag("kind=maximize_distortion")],
    Discriminator(kind_of),
]
