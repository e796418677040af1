"""``[prior]``, and the adversary's priors of constraints."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from optmech.sections.base import (
    TAG,
    NonNegative,
    Positive,
    Seed,
    Spec,
    kind_of,
    refusal,
    shorten,
)
from optmech.sections.domains import DataFileKeys

_WEIGHTS_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1},
        {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
    ]
}


def _weights(value: object) -> Any:
    if isinstance(value, list):
        items: list[tuple[Any, Any]] = list(enumerate(value))
    elif isinstance(value, dict):
        items = list(value.items())
    else:
        raise refusal("is neither an array nor a table", "Give [1, 2, ...] or {label = 1, ...}")
    if not items:
        raise refusal("is empty", "Give a weight for every secret")
    bad = [(key, weight) for key, weight in items if not _is_weight(weight)]
    if bad:
        key, weight = bad[0]
        others = f" (nor are {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise refusal(
            f"{shorten(weight)} is not a weight{others}", "Give finite numbers >= 0", (key,)
        )
    if not any(weight > 0 for _, weight in items):
        raise refusal("the weights sum to 0", "Give at least one positive weight")
    return value


def _is_weight(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value < float("inf")  # type: ignore[operator]


Weights = Annotated[Any, BeforeValidator(_weights), WithJsonSchema(_WEIGHTS_SCHEMA)]
"""An array in the order of the secrets, or a table from label to weight."""


Texts = dict[str, Annotated[list[str], Field(min_length=1)]]
"""Texts by column."""


class Uniform(Spec):
    """The same weight for every secret."""

    kind: Literal["uniform"]


class Given(Spec):
    """Weights; labels of a table that are no secrets are refused."""

    kind: Literal["weights"]
    weights: Weights


class Counts(Spec):
    """Counted observations; labels that are no secrets are counted as outside and reported.
    Without ``counts``, the rows (points) that every secret stands for."""

    kind: Literal["counts"]
    counts: Weights | None = None
    smoothing: NonNegative = 0.0


class Observations(DataFileKeys):
    """Rows of a CSV file (check-ins, trips, ...) counted into the secrets."""

    kind: Literal["csv"]
    x: str
    y: str
    weight: str | None = None
    only: Texts = Field(default_factory=dict)
    without: Texts = Field(default_factory=dict)
    smoothing: NonNegative = 0.0
    max_distance: NonNegative | None = None


class Column(Spec):
    """A column of the table that the secrets come from."""

    kind: Literal["column"]
    column: str
    smoothing: NonNegative = 0.0


class Visits(Spec):
    """Made-up but realistic visit counts around hotspots of Zipf-like popularity."""

    kind: Literal["visits"]
    seed: Seed
    visits: Annotated[int, Field(ge=1, le=10**12)] = 10_000
    hotspots: Annotated[int, Field(ge=1, le=10_000)] = 8
    exponent: NonNegative = 1.0
    reach: Positive = 1.0
    background: Annotated[float, Field(ge=0, le=1)] = 0.05
    noise: Annotated[float, Field(ge=0, le=10)] = 0.5
    empty: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Dirichlet(Spec):
    """A random distribution."""

    kind: Literal["dirichlet"]
    seed: Seed
    concentration: Annotated[float, Field(gt=0, le=1e6)] = 1.0


UniformName = Literal["uniform"]

_Kinds = (
    Annotated[UniformName, Tag("kind=name")]
    | Annotated[Uniform, Tag("kind=uniform")]
    | Annotated[Given, Tag("kind=weights")]
    | Annotated[Counts, Tag("kind=counts")]
    | Annotated[Observations, Tag("kind=csv")]
    | Annotated[Column, Tag("kind=column")]
    | Annotated[Visits, Tag("kind=visits")]
    | Annotated[Dirichlet, Tag("kind=dirichlet")]
)

PriorSpec = Annotated[_Kinds, Discriminator(kind_of)]


def _weights_or_prior(value: object) -> str | None:
    given = isinstance(value, str) or (
        isinstance(value, dict) and isinstance(value.get("kind"), str)
    )
    return kind_of(value) if given or isinstance(value, Spec) else f"{TAG}table"


DistributionSpec = Annotated[
    Annotated[Weights, Tag("kind=table")] | _Kinds, Discriminator(_weights_or_prior)
]
"""Bare weights (an array, or a table from label to weight), or anything that makes a prior."""
