"""Trace files: positions at several times. ``kind`` says how the positions depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from optmech.files.schema import markov
from optmech.sections.base import (
    ByKind,
    Count,
    ExactNumber,
    FileSpec,
    NonNegative,
    Positive,
    Spec,
    either,
    refusal,
    shorten,
)


class Stationary(Spec):
    """A kernel of a length scale and a variance."""

    kind: str
    length_scale: Positive
    variance: Positive = 1.0


class Rbf(Stationary):
    """variance · exp(−lag²/(2 length_scale²))."""

    kind: Literal["rbf"]


class OrnsteinUhlenbeck(Stationary):
    """variance · exp(−lag/length_scale)."""

    kind: Literal["ornstein_uhlenbeck"]


class Matern(Stationary):
    """The Matérn kernel."""

    kind: Literal["matern"]
    smoothness: Annotated[float, Field(gt=0, le=100)] = 1.5


class Periodic(Stationary):
    """variance · exp(−2 sin²(π lag/period)/length_scale²)."""

    kind: Literal["periodic"]
    period: Positive


class Flat(Spec):
    """Independent positions (white), or one position for all times (constant)."""

    kind: Literal["white", "constant"]
    variance: Positive


class Joined(Spec):
    """The sum or the product of kernels."""

    kind: Literal["sum", "product"]
    parts: Annotated[list[KernelSpec], Field(min_length=1)]


class Fitted(Spec):
    """Length scale and variance of a family, by maximum likelihood from the GPS fixes."""

    kind: Literal["fitted"]
    family: Literal["rbf", "ornstein_uhlenbeck", "matern"]
    smoothness: Annotated[float, Field(gt=0, le=100)] = 1.5
    bounds: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None
    noise: NonNegative | None = None


KernelSpec = Annotated[
    Rbf | OrnsteinUhlenbeck | Matern | Periodic | Flat | Joined | Fitted,
    ByKind(),
]


class Times(Spec):
    """Given times, or ``count`` of them, a ``step`` apart."""

    values: Annotated[list[float], Field(min_length=1)] | None = None
    count: Annotated[int, Field(ge=1, le=2000)] | None = None
    step: Positive = 1.0
    start: float = 0.0

    _one_form = either("values", "count")


class Gps(Spec):
    """A run of fixes of one user from a CSV file; two axes, in km."""

    file: str
    user: str
    user_column: str = "user"
    time: str = "time"
    x: str = "lon"
    y: str = "lat"
    max_gap: Positive = 600.0
    spacing: NonNegative = 0.0
    run: Annotated[int, Field(ge=0)] = 0
    count: Annotated[int, Field(ge=2, le=2000)] = 50


def _sets(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise refusal(f"{shorten(value)} is not a list of indices", "Give [0, 2, 4]")
    nested = [isinstance(item, list) for item in value]
    if any(nested) != all(nested):
        raise refusal("mixes indices and sets", "Give [0, 2], or several sets as [[0, 2], [1]]")
    for k, one in enumerate(value if all(nested) else [value]):
        for j, index in enumerate(one):
            if type(index) is not int or index < 0:
                place = (k, j) if all(nested) else (j,)
                raise refusal(f"{shorten(index)} is not an index", "Count times from 0", place)
    return value if all(nested) else [value]


def _noise(value: object) -> object:
    if isinstance(value, dict):
        if set(value) != {"file"} or not isinstance(value["file"], str):
            raise refusal("is not a noise", 'Give { file = "noise.json" }')
        return value
    rows = value if isinstance(value, list) else [value]
    for k, row in enumerate(rows):
        for cell in row if isinstance(row, list) else [row]:
            if isinstance(cell, bool) or not isinstance(cell, int | float):
                place = (k,) if isinstance(value, list) else ()
                raise refusal(
                    f"{shorten(cell)} is not a number",
                    "Give a variance, a variance for every time, or a covariance matrix",
                    place,
                )
    return value


_INDICES = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_SETS_SCHEMA = {"anyOf": [_INDICES, {"type": "array", "items": _INDICES, "minItems": 1}]}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_NOISE_SCHEMA = {
    "anyOf": [
        {"type": "number"},
        _NUMBERS,
        {"type": "array", "items": _NUMBERS},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ]
}


_REQUIRED = ("format", "kernel", "secrets", "radius", "order")


class GaussianTrace(FileSpec):
    """A trace under a Gaussian conditional prior; required keys are checked by the reader."""

    model_config = ConfigDict(
        title="optmech trace file of kind gaussian",
        json_schema_extra={"required": ["kind", *_REQUIRED]},
    )

    kind: Literal["gaussian"]
    unit: str = ""
    times: Times | None = None
    gps: Gps | None = None
    kernel: KernelSpec | None = None
    dimensions: Annotated[int, Field(ge=1, le=3)] = 1
    secrets: Annotated[Any, BeforeValidator(_sets), WithJsonSchema(_SETS_SCHEMA)] | None = None
    radius: Positive | None = None
    order: Annotated[float, Field(ge=1)] | None = None
    epsilon: ExactNumber | None = None
    noise: Annotated[Any, BeforeValidator(_noise), WithJsonSchema(_NOISE_SCHEMA)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    ball: bool = False
    subsets: Count | None = None
    length_scales: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None

    _times = either("times", "gps", at=("times",))
    _question = either(
        "epsilon",
        "noise",
        remedy="epsilon asks for noise; noise asks for its loss",
        at=("epsilon",),
    )


KINDS: dict[str, Callable[[], type[Spec]]] = {
    "gaussian": lambda: GaussianTrace,
    "markov": markov.markov_spec,
}
"""The model of every ``kind`` of trace file."""
REQUIRED: dict[str, tuple[str, ...]] = {"gaussian": _REQUIRED, "markov": markov.REQUIRED}
