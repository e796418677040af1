"""Trace files: positions at several times. ``kind`` says how the positions depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Union

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from optmech.files.schema import markov
from optmech.problem.constraint import require_installed
from optmech.sections.base import (
    Count,
    ExactNumber,
    FormatNumber,
    NonNegative,
    Positive,
    Spec,
    kind_of,
    refusal,
    shorten,
)


class Stationary(Spec):
    """A kernel of a length scale and a variance."""

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


class White(Spec):
    """Independent positions."""

    kind: Literal["white"]
    variance: Positive


class Constant(Spec):
    """One position for all times."""

    kind: Literal["constant"]
    variance: Positive


class Sum(Spec):
    """The sum of kernels."""

    kind: Literal["sum"]
    parts: Annotated[list[KernelSpec], Field(min_length=1)]


class Product(Spec):
    """The product of kernels."""

    kind: Literal["product"]
    parts: Annotated[list[KernelSpec], Field(min_length=1)]


class Fitted(Spec):
    """Length scale and variance of a family, by maximum likelihood from the GPS fixes."""

    kind: Literal["fitted"]
    family: Literal["rbf", "ornstein_uhlenbeck", "matern"]
    smoothness: Annotated[float, Field(gt=0, le=100)] = 1.5
    bounds: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None
    noise: NonNegative | None = None


KernelSpec = Annotated[
    Annotated[Rbf, Tag("kind=rbf")]
    | Annotated[OrnsteinUhlenbeck, Tag("kind=ornstein_uhlenbeck")]
    | Annotated[Matern, Tag("kind=matern")]
    | Annotated[Periodic, Tag("kind=periodic")]
    | Annotated[White, Tag("kind=white")]
    | Annotated[Constant, Tag("kind=constant")]
    | Annotated[Sum, Tag("kind=sum")]
    | Annotated[Product, Tag("kind=product")]
    | Annotated[Fitted, Tag("kind=fitted")],
    Discriminator(kind_of),
]


class Times(Spec):
    """Given times, or ``count`` of them, a ``step`` apart."""

    values: Annotated[list[float], Field(min_length=1)] | None = None
    count: Annotated[int, Field(ge=1, le=2000)] | None = None
    step: Positive = 1.0
    start: float = 0.0

    @model_validator(mode="after")
    def _one_form(self) -> Times:
        if (self.values is None) == (self.count is None):
            raise refusal("needs either values or count", "Give one of the two")
        return self


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


class GaussianTrace(Spec):
    """A trace under a Gaussian conditional prior; required keys are checked by the reader."""

    model_config = ConfigDict(
        title="optmech trace file of kind gaussian",
        json_schema_extra={"required": ["kind", *_REQUIRED]},
    )

    format: FormatNumber | None = None
    kind: Literal["gaussian"]
    title: str = ""
    description: str = ""
    source: str = ""
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

    @model_validator(mode="after")
    def _one_form(self) -> GaussianTrace:
        if (self.times is None) == (self.gps is None):
            raise refusal("needs either times or gps", "Give one of the two", ("times",))
        if (self.epsilon is None) == (self.noise is None):
            raise refusal(
                "needs either epsilon or noise",
                "epsilon asks for noise; noise asks for its loss",
                ("epsilon",),
            )
        return self


KINDS: dict[str, Callable[[], type[Spec]]] = {
    "gaussian": lambda: GaussianTrace,
    "markov": markov.markov_spec,
}
"""The model of every ``kind`` of trace file."""
REQUIRED: dict[str, tuple[str, ...]] = {"gaussian": _REQUIRED, "markov": markov.REQUIRED}


def trace_schema() -> dict[str, Any]:
    """The JSON Schema of trace files, format 1, with the constraints of installed packages."""
    require_installed()
    kinds: Any = Union[tuple(model() for model in KINDS.values())]  # noqa: UP007
    schema = TypeAdapter(kinds).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
