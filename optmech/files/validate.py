"""From a document to its typed sections, with every error of the shape put into words."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from optmech.errors import ProblemError, described
from optmech.exact.number import shortened
from optmech.problem.constraint import find_kind
from optmech.reading.errors import MAX_KEPT, WORDS, Collector, Kind, kind_of, path_text, show

if TYPE_CHECKING:
    from pydantic import BaseModel

    from optmech.files.problem import ProblemSection

S = TypeVar("S", bound="BaseModel")
Location = tuple[int | str, ...]

_LIST = "Write [...]; a list of tables has two brackets: [[...]]"
_TABLE = "{value} is not a table", "Write a table of keys and values"
_OUT = "{value} is out of range"
_COUNT = "has {actual_length} entries"
_SAID = {
    "float_type": ("{value} is not a number", "Give a finite number"),
    "finite_number": ("{value} is not finite", "Give a finite number"),
    "int_type": ("{value} is not a whole number", "Give a whole number"),
    "bool_type": ("{value} is not true or false", "Write true or false"),
    "string_type": ("{value} is not text", "Write it in quotes"),
    "list_type": ("{value} is not an array", _LIST),
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "model_attributes_type": _TABLE,
    "greater_than": (_OUT, "Must be > {gt}"),
    "greater_than_equal": (_OUT, "Must be >= {ge}"),
    "less_than": (_OUT, "Must be < {lt}"),
    "less_than_equal": (_OUT, "Must be <= {le}"),
    "too_short": (_COUNT, "Give at least {min_length}"),
    "too_long": (_COUNT, "Give at most {max_length}"),
}
"""Message and remedy of pydantic's errors by their types."""


def require_kind(document: Mapping[str, Any], wanted: Kind, path: Path) -> None:
    """Raises ProblemError, with the command to use, where a document is clearly of another kind."""
    found = kind_of(document)
    if found is not None and found != wanted:
        what, remedy = WORDS[found]
        raise ProblemError(f"this is {what}, not {WORDS[wanted][0]}", where=path, remedy=remedy)


def require_keys(document: Mapping[str, Any], model: type[BaseModel], errors: Collector) -> None:
    """Keep an error for every key that is not there and that the schema of files requires."""
    schema: Any = model.model_config["json_schema_extra"]
    for key in schema["required"]:
        if document.get(key) is None:
            remedy = "Write format = 1" if key == "format" else f"Add a section {key}"
            errors.add(ProblemError("is missing", where=key, remedy=remedy))


def validate(document: Mapping[str, Any], errors: Collector) -> ProblemSection:
    """The sections of a document that have the right shape; the errors of the others are kept.

    A section with an error is left out of the result, so that the others can still be built and
    report what is wrong with them.
    """
    from pydantic import ValidationError

    from optmech.files.problem import problem_section, section_for

    look_for_kinds(document)
    own = section_for(document)
    with suppress(ValidationError):
        if own is not None:
            return own.model_validate(dict(document))
    root = problem_section()
    require_keys(document, root, errors)
    for k, item in enumerate(_constraints(document)):
        if item is None:
            errors.add(_no_kind(("constraints", k), item))
    try:
        return root.model_validate(dict(document))
    except ValidationError as error:
        details = error.errors(include_url=False)
    add_details(details, root, errors)
    places = [detail["loc"] for detail in details]
    faulty = {place[0] for place in places}
    sound = {key: value for key, value in document.items() if key not in faulty}
    if "constraints" in faulty:
        wrong = {place[1:2] for place in places if place[0] == "constraints"}
        # with None in the places of those with errors; none where the list itself has one
        items = [] if () in wrong else _constraints(document)
        sound["constraints"] = [None if (k,) in wrong else x for k, x in enumerate(items)]
    return root.model_validate(sound)


def look_for_kinds(document: Mapping[str, Any]) -> None:
    """Look among the installed packages for kinds of constraints that are not known yet."""
    for item in _constraints(document):
        if isinstance(item, dict):
            find_kind(item.get("kind"))


def _constraints(document: Mapping[str, Any]) -> list[Any]:
    items = document.get("constraints")
    return items if isinstance(items, list) else []


def checked(model: type[S], document: Mapping[str, Any], errors: Collector, path: Path) -> S:
    """A document as the model of its file, or every error of its shape and those kept before."""
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(document))
    except ValidationError as error:
        add_details(error.errors(include_url=False), model, errors)
        errors.refuse(str(path))
        raise


def add_details(details: Sequence[Any], root: type[BaseModel], errors: Collector) -> None:
    """Keep pydantic's errors in our words; of very many the first ones, and how many there are."""
    for detail in details[:MAX_KEPT]:
        errors.add(in_words(detail, root))
    errors.uncounted += max(0, len(details) - MAX_KEPT)


def in_words(detail: Any, root: type[BaseModel]) -> ProblemError:
    """An error of pydantic as one of ours; ``root`` is the model of the whole document."""
    location: Location = detail["loc"]
    kind, context = detail["type"], detail.get("ctx", {})
    given = detail["input"]
    value = described(given) if kind == "list_type" else _said(given, location)
    if kind == "optmech":
        place, message = (*location, *context["at"]), context["message"]
        if not context["at"] and _is_entry(location):
            message = message.replace(shortened(given), described(given))
        return _error(place, message, context["remedy"])
    if kind == "missing":
        return _error(location, "is missing", f"Add {location[-1]}")
    if kind == "extra_forbidden":
        known = _known_keys(location[:-1], root)
        remedy = closest(location[-1], known)
        if len(location) > 1 and location[-1] in root.model_fields and location[-1] not in known:
            remedy = f"Write it above the first [table]: below one, it belongs to {location[0]}"
        return _error(location, "is not a known key", remedy)
    if kind == "union_tag_not_found":
        return _no_kind(location, detail["input"])
    if kind == "union_tag_invalid":
        tags = [word.strip("' ").partition("=")[2] for word in context["expected_tags"].split(",")]
        known = [tag for tag in tags if tag != "name"]
        given = context["tag"].partition("=")[2]
        return _error((*location, "kind"), f"{show(given)} is unknown", closest(given, known))
    if kind == "literal_error":
        words = context["expected"].replace(" or ", ", ").split(", ")
        known = [word.strip("'\"") for word in words]
        remedy = closest(detail["input"], known)
        if location[-1] == "kind=name" and not remedy.startswith("Did"):
            remedy += "; everything else is a table"
        return _error(location, f"{value} is unknown", remedy)
    if kind in _SAID:
        message, remedy = (text.format(value=value, **context) for text in _SAID[kind])
        return _error(location, message if context.get("actual_length", 1) else "is empty", remedy)
    return _error(location, f"{value} is not usable: {detail['msg']}", "Correct it")


def _said(value: object, location: Location) -> str:
    """A value in words: entries of lists and tables are data, and what is in them is not said."""
    plain = isinstance(value, str | int | float) and not _is_entry(location)
    return show(value) if plain else described(value)


def _is_entry(location: Location) -> bool:
    from optmech.reading.sections import TAG

    keys = [part for part in location if not str(part).startswith(TAG)]
    return bool(keys) and isinstance(keys[-1], int)


def _error(location: Location, message: str, remedy: str) -> ProblemError:
    from optmech.reading.sections import TAG

    parts = [part for part in location if not (isinstance(part, str) and part.startswith(TAG))]
    return ProblemError(message, where=path_text(parts), remedy=remedy)


def _no_kind(location: Location, value: object) -> ProblemError:
    if not isinstance(value, dict):
        said = _said(value, location)
        return _error(location, f"{said} is not a table", 'Write a table with kind = "..."')
    message = f"{_said(value['kind'], ('kind',))} is not text" if "kind" in value else "is missing"
    return _error((*location, "kind"), message, 'Write kind = "..."')


def closest(given: object, known: list[str]) -> str:
    """A remedy where a name is unknown."""
    close = difflib.get_close_matches(str(given)[:80], known, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(known)}"


def _known_keys(location: Location, root: type[BaseModel]) -> list[str]:
    """Keys of the table at ``location``, found by walking the models along it."""
    from optmech.reading.sections import TAG

    models: list[type[BaseModel]] = [root]
    for part in location:
        if isinstance(part, int):
            continue
        if part.startswith(TAG):
            models = [model for model in models if _has_kind(model, part[len(TAG) :])]
        else:
            fields = [m.model_fields[part] for m in models if part in m.model_fields]
            models = [found for field in fields for found in _models(field.annotation)]
    return list(dict.fromkeys(key for model in models for key in model.model_fields))


def _has_kind(model: type[BaseModel], kind: str) -> bool:
    field = model.model_fields.get("kind")
    return kind == "table" if field is None else kind in get_args(field.annotation)


def _models(annotation: Any) -> list[type[BaseModel]]:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _models(inner)]
