"""Strict scalars, the common base of all models, and the dispatch on ``kind``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from optmech.errors import ProblemError
from optmech.exact.number import Exact, parse_exact

TAG = "kind="
"""Prefix of the union tags, so that they can be told from keys in pydantic's locations."""


class Spec(BaseModel):
    """Base of every table of a problem file: unknown keys and loose types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


def kind_of(value: object) -> str | None:
    """The union tag of a table, or of a bare name."""
    if isinstance(value, str):
        return f"{TAG}name"
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return f"{TAG}{kind}" if isinstance(kind, str) else None


def table_or_name(value: object) -> str:
    """The union tag where a bare name stands for a table without ``kind``."""
    return f"{TAG}name" if isinstance(value, str) else f"{TAG}table"


def refusal(message: str, remedy: str, at: tuple[int | str, ...] = ()) -> PydanticCustomError:
    """A validation error in optmech's own words; ``at`` is the place inside the value."""
    context = {"message": message, "remedy": remedy, "at": at}
    return PydanticCustomError("optmech", "{message}", context)


def _exact(value: object) -> Exact:
    try:
        return parse_exact(value, where="")
    except ProblemError as error:
        raise refusal(error.message, error.remedy) from error


def _whole(value: object) -> object:
    if type(value) is not int:
        raise refusal(f"{shorten(value)} is not a format number", "Write format = 1")
    return value


def _label(value: object) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise refusal(f"{shorten(value)} is not a label", "Use text or a whole number")
    return value


def _reference(value: object) -> Any:
    parts = value if isinstance(value, list) and value else [value]
    if any(isinstance(part, bool) or not isinstance(part, str | int | float) for part in parts):
        raise refusal(
            f"{shorten(value)} is not a label",
            "Use a label of the secrets; a grid cell is [row, column]",
        )
    return value


def shorten(value: object) -> str:
    """A value for a message, without its content where it is an array or a table."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)[:60]


_NUMBER_SCHEMA = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}
_LABEL_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
_REFERENCE_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "array", "items": {"type": ["number", "string"]}, "minItems": 1},
    ]
}

ExactNumber = Annotated[Any, PlainValidator(_exact), WithJsonSchema(_NUMBER_SCHEMA)]
"""A number >= 0, or an exact string such as "ln 3" or "1/2"."""

Label = Annotated[Any, PlainValidator(_label), WithJsonSchema(_LABEL_SCHEMA)]
"""A label as it is defined."""

LabelReference = Annotated[Any, PlainValidator(_reference), WithJsonSchema(_REFERENCE_SCHEMA)]
"""A label as it is referred to; a grid cell is [row, column]."""

FormatNumber = Annotated[Literal[1], BeforeValidator(_whole)]
"""``format = 1``."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
NonNegatives = list[NonNegative]
Count = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0)]
Labels = Annotated[list[Label], Field(min_length=1)]
Point = Annotated[list[float], Field(min_length=2, max_length=2)]
Matrix = list[list[float]]
