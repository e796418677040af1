"""Sweep files: a problem template and the axes along which it is varied."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from optmech.reading.sections import (
    ByKind,
    FormatNumber,
    NonNegative,
    Positive,
    Section,
    either,
    must,
    refusal,
)

PLACE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[0-9]+\]|\.[A-Za-z_][A-Za-z0-9_]*)*")
_MOST_POINTS = 1_000_000


def _is_place(value: object) -> bool:
    return isinstance(value, str) and PLACE.fullmatch(value) is not None


def _not_empty(value: object) -> object:
    if not value:
        raise refusal("is empty", "Give at least one value")
    return value


Place = Annotated[
    Any,
    must(_is_place, "not a place in a problem", "Write it like constraints[0].epsilon"),
    WithJsonSchema({"type": "string", "pattern": f"^{PLACE.pattern}$"}),
]
"""A place in the problem file, like constraints[0].epsilon."""

Values = Annotated[
    Any,
    # the last validator is asked first
    BeforeValidator(_not_empty),
    must(lambda value: isinstance(value, list), "not an array", "Write [...]"),
    WithJsonSchema({"type": "array", "minItems": 1}),
]


class ListAxis(Section):
    """The values as they are listed."""

    kind: Literal["list"]
    path: Place
    values: Values
    name: str | None = None


class RangeAxis(Section):
    """``count`` numbers from ``start`` to ``stop``, both included, evenly or by equal factors."""

    kind: Literal["range"]
    path: Place
    start: float
    stop: float
    count: Annotated[int, Field(ge=1, le=_MOST_POINTS)]
    scale: Literal["linear", "log"] = "linear"
    name: str | None = None

    @model_validator(mode="after")
    def _usable(self) -> RangeAxis:
        if self.scale == "log" and (self.start <= 0 or self.stop <= 0):
            raise refusal("needs start and stop above 0 for a log scale", 'Use scale = "linear"')
        if self.count > 1 and self.start == self.stop:
            raise refusal("starts where it stops", "Give two ends, or count = 1")
        if self.count == 1 and self.start != self.stop:
            raise refusal("has two ends for one value", "Give count >= 2, or stop = start")
        return self


class PriorsAxis(Section):
    """One prior per user, from one CSV table of rows (user, visit).

    Visits are points (``x``, ``y``) or secrets (``secret``: labels), of weight one or that of a
    column.
    """

    kind: Literal["priors"]
    file: str
    user: str
    x: str | None = None
    y: str | None = None
    secret: str | None = None
    weight: str | None = None
    users: Annotated[list[str], Field(min_length=1)] | None = None
    minimum: Annotated[int, Field(ge=1)] = 1
    smoothing: NonNegative = 0.0
    max_distance: NonNegative | None = None
    path: Place = "prior"
    name: str | None = None

    _one_form = either("x y", "secret", remedy="Keep one of the two forms")


Single = Annotated[ListAxis | RangeAxis | PriorsAxis, ByKind()]


class ZipAxis(Section):
    """Axes of equal length that move together."""

    kind: Literal["zip"]
    axes: Annotated[list[Single], Field(min_length=2)]


AnyAxis = Annotated[ListAxis | RangeAxis | PriorsAxis | ZipAxis, ByKind()]


class SweepSection(Section):
    """A whole sweep file."""

    model_config = ConfigDict(title="optmech sweep file")

    format: FormatNumber
    title: str = ""
    description: str = ""
    problem: Annotated[
        Any,
        must(
            lambda value: isinstance(value, str | dict) and bool(value),
            "not a problem",
            "Give a file, a gallery name, or a table",
        ),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
    ]
    profile: str | None = None
    gap: Positive | None = None
    time_limit: Positive | None = None
    chain: Annotated[int, Field(ge=1)] = 10
    axes: Annotated[list[AnyAxis], Field(min_length=1)]
