"""What tables of files are made of, as pydantic models: strict scalars, sections, the dispatch on
``kind``. Imported only when a file is read."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from optmech.errors import ProblemError, described
from optmech.exact.number import parse_exact, parse_signed
from optmech.exact.ratios.generators import NAMES, divergence_name

T = TypeVar("T")
TAG = "kind="
"""Prefix of the union tags, so that they can be told from keys in pydantic's locations."""


class Section(BaseModel):
    """Base of every table of a file: unknown keys and loose types are refused. These say which keys
    exist and what type and range their values have; a table that stands for something has a method
    that makes it, given what stands around it in the file."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        self.refuse_misfits()
        return self

    def refuse_misfits(self) -> None:
        """Raise a refusal where keys do not go together."""


def kind_of(value: object) -> str | None:
    """The union tag of a table, or of a bare name."""
    if isinstance(value, str):
        return f"{TAG}name"
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return f"{TAG}{kind}" if isinstance(kind, str) else None


@dataclass(frozen=True)
class ByKind:
    """Tells the members of a union apart by the tag of a value: that of a table is its ``kind``."""

    tag_of: Callable[[object], str | None] = kind_of

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> Any:
        tagged = [
            Annotated[member, Tag(f"{TAG}{kind}")]
            for member in get_args(union)
            for kind in _kinds(member)
        ]
        return handler.generate_schema(Annotated[reduce(or_, tagged), Discriminator(self.tag_of)])


def _kinds(member: Any) -> tuple[str, ...]:
    if get_origin(get_args(member)[0] if get_origin(member) is Annotated else member) is Literal:
        return ("name",)
    fields = getattr(member, "model_fields", {})
    return get_args(fields["kind"].annotation) if "kind" in fields else ("table",)


def narrowed(annotation: Any, value: object) -> Any:
    """A type of which only the member is left that a ``value`` picks by its kind, in a union by
    kind that stands alone or beside None; the type as it is where it picks none."""
    if get_origin(annotation) in (Union, UnionType):
        return reduce(or_, (narrowed(member, value) for member in get_args(annotation)))
    if get_origin(annotation) is not Annotated:
        return annotation
    union, *others = get_args(annotation)
    by = next((own for own in others if isinstance(own, ByKind)), None)
    if by is None:
        return annotation
    tag = by.tag_of(value)
    picked = [own for own in get_args(union) if tag in [TAG + kind for kind in _kinds(own)]]
    return picked[0] if len(picked) == 1 and len(others) == 1 else annotation


def bare(names: Any, table: Callable[[str], Section]) -> Any:
    """The type of bare names that stand for tables: the value is the ``table`` of the name."""
    return Annotated[names, AfterValidator(table)]


def table_or_name(value: object) -> str:
    """The union tag where a bare name stands for a table without ``kind``."""
    return f"{TAG}name" if isinstance(value, str) else f"{TAG}table"


def refusal(message: str, remedy: str, at: tuple[int | str, ...] = ()) -> PydanticCustomError:
    """A validation error in optmech's own words; ``at`` is the place inside the value."""
    context = {"message": message, "remedy": remedy, "at": at}
    return PydanticCustomError("optmech", "{message}", context)


def either(*forms: str, remedy: str = "Give one of the two", at: tuple[str, ...] = ()) -> Any:
    """The validator of a table that has all keys of one form, as in "x y" and "secret", and none of
    the others."""
    separator = ", or " if " " in "".join(forms) else " or "
    words = separator.join(form.replace(" ", " and ") for form in forms)

    def one_form(table: Any) -> Any:
        given = [[getattr(table, key) is not None for key in form.split()] for form in forms]
        used = [form for form in given if any(form)]
        if len(used) != 1 or not all(used[0]):
            raise refusal(f"needs either {words}", remedy, at)
        return table

    return model_validator(mode="after")(one_form)


def parsed(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A validator that makes errors of optmech in ``parse`` errors of validation."""

    def parse_or_refuse(value: object) -> Any:
        try:
            return parse(value)
        except ProblemError as error:
            raise refusal(error.message, error.remedy) from error

    return parse_or_refuse


def must(fits: Callable[[Any], bool], what: str, remedy: str) -> BeforeValidator:
    """A validator that says of every value that does not fit that it is not ``what``."""

    def checked(value: object) -> object:
        if not fits(value):
            raise refusal(f"{described(value)} is {what}", remedy)
        return value

    return BeforeValidator(checked)


def is_label(value: object) -> bool:
    """Whether a value can be a label as it is defined."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_reference(value: object) -> bool:
    parts = value if isinstance(value, list) and value else [value]
    return all(is_label(part) or isinstance(part, float) for part in parts)


def _read(number: Callable[..., Any]) -> PlainValidator:
    return PlainValidator(parsed(partial(number, where="")))


_NUMBER_SCHEMA = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}
_LABEL_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
_REFERENCE_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "array", "items": {"type": ["number", "string"]}, "minItems": 1},
    ]
}

ExactNumber = Annotated[Any, _read(parse_exact), WithJsonSchema(_NUMBER_SCHEMA)]
"""A number >= 0, or an exact string such as "ln 3" or "1/2"."""

_SIGNED_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string"}]}
SignedNumber = Annotated[Any, _read(parse_signed), WithJsonSchema(_SIGNED_SCHEMA)]
"""A number of any sign, or an exact string such as "-1/2"."""

Label = Annotated[
    Any,
    must(is_label, "not a label", "Use text or a whole number"),
    WithJsonSchema(_LABEL_SCHEMA),
]
"""A label as it is defined."""

LabelReference = Annotated[
    Any,
    must(_is_reference, "not a label", "Use one of the labels; a grid cell is [row, column]"),
    WithJsonSchema(_REFERENCE_SCHEMA),
]
"""A label as it is referred to; a grid cell is [row, column]."""

FormatNumber = Annotated[
    Literal[1], must(lambda value: type(value) is int, "not a format number", "Write format = 1")
]
"""``format = 1``."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0)]
Some = Annotated[list[T], Field(min_length=1)]
"""A list with an entry at least."""
Labels = Some[Label]
Point = Annotated[list[float], Field(min_length=2, max_length=2)]
Bounds = Annotated[list[float], Field(min_length=4, max_length=4)]
TwoPositive = Annotated[list[Positive], Field(min_length=2, max_length=2)]
Matrix = list[list[float]]


class RowSpec(Section):
    """The row of one secret: a probability for every observable."""

    secret: LabelReference
    row: list[ExactNumber]


class FractionOfBlind(Section):
    """A share of d_max, the error of an adversary who sees nothing."""

    fraction_of_blind: Annotated[float, Field(ge=0, le=1)]


_Number = Annotated[ExactNumber, Tag(f"{TAG}number")]
_Share = Annotated[FractionOfBlind, Tag(f"{TAG}table")]


def _number_or_share(value: object) -> str:
    return f"{TAG}table" if isinstance(value, dict | FractionOfBlind) else f"{TAG}number"


def _one_or_more(value: object) -> str:
    return f"{TAG}{'table' if isinstance(value, list) else 'number'}"


def _mask(value: object) -> Any:
    rows_fit = isinstance(value, list) and all(isinstance(row, list) for row in value)
    if not rows_fit:
        raise refusal("is not an array of rows", "Give [[1, 0], [1, 1]], a row per secret")
    assert isinstance(value, list)
    for i, row in enumerate(value):
        for j, cell in enumerate(row):
            if not isinstance(cell, bool | int) or cell not in (0, 1):
                raise refusal(f"{described(cell)} is not 0, 1, true or false", "Correct it", (i, j))
        if len(row) != len(value[0]):
            raise refusal(
                f"has {len(row)} entries and row 0 has {len(value[0])}",
                "Give rows of one length",
                (i,),
            )
    return value


def _values(value: object) -> Any:
    if not isinstance(value, list) or not value:
        raise refusal("is not an array of numbers", "Give a number, or an array of some, for each")
    for k, row in enumerate(value):
        for number in row if isinstance(row, list) else [row]:
            if not is_number(number):
                raise refusal(f"{described(number)} is not a number", "Correct it", (k,))
    return value


def _scale(value: object) -> Any:
    if value in ("W_inf", "W_1") if isinstance(value, str) else False:
        return value
    if not isinstance(value, list) or not value:
        raise refusal("is no list of numbers", 'Give a number per pair, "W_inf" or "W_1"')
    for k, number in enumerate(value):
        if not is_number(number) or not 0 <= number < math.inf:
            raise refusal(f"{described(number)} is no number >= 0", "Correct it", (k,))
    return value


_CELLS = {"type": "array", "items": {"enum": [0, 1, True, False]}}
_ONE = {"type": "number"}
_ONE_OR_MORE = {"anyOf": [_ONE, {"type": "array", "items": _ONE, "minItems": 1}]}
_ORDERS = {"type": "string", "pattern": "^renyi:[0-9]+(/[0-9]+)?$"}


class FileSection(Section):
    """What every file says of itself; a reader reports a missing format itself."""

    format: FormatNumber | None = None
    title: str = ""
    description: str = ""
    source: str = ""


SORTS: dict[str, Any] = {
    "number": ExactNumber,
    "signed number": SignedNumber,
    "scale": Annotated[
        Any,
        BeforeValidator(_scale),
        WithJsonSchema(
            {"anyOf": [{"enum": ["W_inf", "W_1"]}, {"type": "array", "items": {"type": "number"}}]}
        ),
    ],
    "limits": Annotated[
        Annotated[SignedNumber, Tag(f"{TAG}number")]
        | Annotated[Some[SignedNumber], Tag(f"{TAG}table")],
        Discriminator(_one_or_more),
    ],
    "bound": NonNegative,
    "bounds": list[NonNegative],
    "label": LabelReference,
    "labels": Annotated[list[LabelReference], Field(min_length=1)],
    "rows": list[RowSpec],
    "number or share": Annotated[_Number | _Share, Discriminator(_number_or_share)],
    "mask": Annotated[
        Any, BeforeValidator(_mask), WithJsonSchema({"type": "array", "items": _CELLS})
    ],
    "values": Annotated[
        Any,
        BeforeValidator(_values),
        WithJsonSchema({"type": "array", "items": _ONE_OR_MORE, "minItems": 1}),
    ],
    "divergence": Annotated[
        str,
        BeforeValidator(parsed(partial(divergence_name, orders=True))),
        WithJsonSchema({"anyOf": [{"enum": list(NAMES)}, _ORDERS]}),
    ],
}
"""The types of values by the names that constraints have for them; ``optmech.files`` adds those of
tables."""
