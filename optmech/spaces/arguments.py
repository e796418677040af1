"""What public functions take, by the names in their annotations: checked once, before use."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, wraps
from importlib import import_module
from numbers import Real
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from optmech.base.names import stated
from optmech.errors import ProblemError, moved
from optmech.exact.arguments import truth

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Kind(NamedTuple):
    """What an annotation names, and what to do about anything else."""

    cls: type | None
    remedy: str
    instead: Mapping[str, str] = {}
    """What to do with something that is of another kind, by the name of that."""
    words: str = ""
    """What it is called, where that is not the name of its class."""


LOAD = "Read it with om.load(path)"
KINDS: dict[str, Kind] = {
    "bool": Kind(bool, ""),
    "path": Kind(
        None,
        "Give the name of a file",
        {"Design": "Give the name of the file that design.save(path) wrote or is to be written"},
    ),
    "function": Kind(None, "Give a function"),
}
"""Every name in an annotation that is checked, once its module was imported: each ``kind`` says its
own at its class."""


def kind(
    remedy: str, instead: Mapping[str, str] = {}, words: str = ""
) -> Callable[[type[T]], type[T]]:
    """Let the class be checked where an annotation names it; what is said about anything else."""

    def told(cls: type[T]) -> type[T]:
        KINDS[cls.__name__] = Kind(cls, remedy, instead, words)
        return cls

    return told


_FOREIGN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""Errors of Python and NumPy on what they cannot work with."""
_PLAIN: Mapping[str, tuple[Any, str]] = {
    "str": (str, "text"),
    "int": ((int, np.integer), "a whole number"),
    "float": ((Real, np.number), "a number"),
    "Number": ((Real, np.number, str), "a number"),
    "list": (Iterable, "a list"),
    "Literal": (str, "text"),
    "Mapping": (Mapping, "a dict"),
    **dict.fromkeys(("Callable", "Note", "Progress", "Schedule"), (Callable, "a function")),
    "bool": ((bool, np.bool_), "True or False"),
}
"""What names in annotations stand for, and words for it."""


READERS: dict[str, Callable[[Any, Any, str], Any]] = {}
"""What makes a mechanism or a prior of numbers, by its name: of an array, list or table, the domain
that the other arguments are over (None without one), and the argument's name."""
_OF_NUMBERS = ("Mechanism", "Prior")


class Asked(NamedTuple):
    """What one parameter may be: things of these kinds, lists of those, or nothing."""

    kinds: tuple[str, ...]
    lists: tuple[str, ...]
    nothing: bool

    @property
    def words(self) -> str:
        """What is wanted, after "is not"."""
        names = dict.fromkeys(f"a {KINDS[kind].words or kind}" for kind in self.kinds)
        names |= dict.fromkeys(f"a list of {KINDS[kind].words or kind}s" for kind in self.lists)
        *before, last = names
        return f"{', '.join(before)} or {last}" if before else last


def checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments whose annotations name nothing but ``KINDS``, lists of these, paths and
    functions: where a mechanism is asked for a design counts as its own, an array as one over the
    secrets of the other arguments, and weights as a prior over these; anything else raises
    ProblemError with the argument's name. Where the call ends in an error of Python or NumPy, an
    argument that is not what its annotation says is named instead."""
    known: list[tuple[inspect.Signature, dict[str, Asked]]] = []

    @wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> R:
        # found at the first call: most functions are imported and never called
        if not known:
            known.append(_stated(function))
        signature, wanted = known[0]
        bound = signature.bind(*args, **given)
        numbers: dict[str, str] = {}
        for name, asked in wanted.items():
            if name in bound.arguments:
                kind = _kind_of_numbers(bound.arguments[name], asked)
                if kind:
                    numbers[name] = kind
                    continue
                bound.arguments[name] = _read(bound.arguments[name], asked, name, wanted, signature)
        for name, kind in numbers.items():
            domain = _domain_among(bound.arguments.values())
            bound.arguments[name] = _of_numbers(kind, bound.arguments[name], domain, name)
        try:
            return function(*bound.args, **bound.kwargs)
        except _FOREIGN as error:
            unfit = _unfit(signature, bound.arguments, error)
            if unfit is None:
                raise
            raise unfit from error

    return called


def taken(value: object, annotation: str, where: str) -> Any:
    """A value that is what an annotation says; ProblemError at ``where`` on anything else."""
    asked = asked_by(annotation)
    if asked is None:
        raise TypeError(f"{annotation} is not checked")
    if kind := _kind_of_numbers(value, asked):
        return _of_numbers(kind, value, None, where)
    return _read(value, asked, where)


def _kind_of_numbers(value: Any, asked: Asked) -> str:
    """What is to be made of an array, a list or a table; empty where it is none, or is as asked."""
    table = hasattr(value, "iloc") or hasattr(value, "dims")
    listed = isinstance(value, list | tuple) and not asked.lists
    nested = listed and len(value) > 0 and isinstance(value[0], list | tuple | np.ndarray)
    for kind in _OF_NUMBERS:
        if kind not in asked.kinds or any(_is(own, value) for own in asked.kinds):
            continue
        if isinstance(value, np.ndarray) or table or (nested if kind == "Mechanism" else listed):
            return kind
        if kind == "Prior" and isinstance(value, Mapping) and value:
            return kind
    return ""


def _of_numbers(kind: str, value: Any, domain: Any, where: str) -> Any:
    with moved(lambda own: own if own.startswith(where) else where):
        return READERS[kind](value, domain, where)


def _domain_among(values: Iterable[object]) -> Any:
    """The secrets that the arguments of a call are over; None where none says."""
    for kind, name in (("Mechanism", "secrets"), ("Prior", "domain"), ("Problem", "secrets")):
        for value in values:
            if _is(kind, value) and _is("Domain", getattr(value, name, None)):
                return getattr(value, name)
    return next((value for value in values if _is("Domain", value)), None)


def _stated(function: Callable[..., object]) -> tuple[inspect.Signature, dict[str, Asked]]:
    """The signature of a function, and what is checked of it. What its module imports for type
    checkers alone is imported now, so that it is known what is said of it."""
    signature = inspect.signature(function)
    words = {name: words_of(p.annotation) for name, p in signature.parameters.items()}
    named = {part.lstrip("*") for text in words.values() for part in _names(text)}
    if unknown := named - set(KINDS) - set(_PLAIN) - set(function.__globals__):
        homes = stated(function.__module__)
        for name in unknown & set(homes):
            import_module(homes[name])
    asked = {name: asked_by(text) for name, text in words.items()}
    return signature, {name: own for name, own in asked.items() if own is not None}


def _unfit(
    signature: inspect.Signature, given: Mapping[str, Any], error: Exception
) -> ProblemError | None:
    """What is wrong with an argument of a call that ended in an error of somebody else: one that is
    not what its annotation says, or else is too large, not finite or empty."""
    for name, value in given.items():
        parts = [*map(_plainly, _names(words_of(signature.parameters[name].annotation)))]
        if parts and not any(_fits(part, value) for part in parts):
            words = " or ".join(dict.fromkeys(_PLAIN[part][1] for part in parts if part in _PLAIN))
            found = f"{type(value).__name__} is not {words or 'what is asked for'}"
            return ProblemError(found, where=name, remedy="help() says what there is")
    for name, value in given.items():
        numbers = isinstance(value, Real) and not isinstance(value, bool)
        if numbers and not abs(value) <= sys.float_info.max:
            return ProblemError(
                "is not finite" if isinstance(value, float) else "is beyond all floats", where=name
            )
        if isinstance(value, list | tuple | Mapping | np.ndarray) and not len(value):
            return ProblemError("is empty", where=name, remedy="Give at least one")
    large = isinstance(error, OverflowError)
    return ProblemError("a number is too large", where="arguments") if large else None


@cache
def _names(annotation: str) -> tuple[str, ...]:
    """The names in the union that an annotation is; that of what is in a list after a star."""
    return tuple(_parts(ast.parse(annotation, mode="eval").body)) if annotation else ()


def _parts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        yield from (*_parts(node.left), *_parts(node.right))
    elif isinstance(node, ast.Subscript):
        name, each = ast.unparse(node.value), tuple(_parts(node.slice))
        many = name in ("Sequence", "Iterable", "list")
        # of lists of several kinds no more is said than that they are lists
        yield f"*{each[0]}" if many and len(each) == 1 else "list" if many else name
    else:
        yield ast.unparse(node)


def _plainly(name: str) -> str:
    """A list of what is not looked at as a list."""
    each = name.lstrip("*")
    return name if each == name or each in _PLAIN else name[: -len(each) - 1] + "list"


def _fits(part: str, value: object) -> bool:
    """Whether a value may be what a name in an annotation says; so may all of what is unknown."""
    if part.startswith("*"):
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            return False
        return isinstance(value, Iterator) or all(_fits(part[1:], each) for each in value)
    if part in _PLAIN:
        kinds = _PLAIN[part][0]
        return isinstance(value, kinds) and (part != "int" or not isinstance(value, bool))
    if part == "None":
        return value is None
    return part not in KINDS or _is(part, value)


def words_of(annotation: object) -> str:
    """An annotation as it is written, without modules, also where it is no text."""
    if isinstance(annotation, str):
        return annotation
    return re.sub(r"[\w.]+\.(\w+)", r"\1", inspect.formatannotation(annotation))


def asked_by(annotation: str) -> Asked | None:
    """What an annotation asks for; None where it names anything else as well."""
    names = ["function" if name == "Callable" else name for name in _names(annotation)]
    if {"str", "Path"} <= set(names):
        names = ["path" if name == "Path" else name for name in names if name != "str"]
    lists = [name[1:] for name in names if name.startswith("*")]
    kinds = [name for name in names if name != "None" and not name.startswith("*")]
    if not names or not {*kinds, *lists} <= set(KINDS):
        return None
    return Asked(tuple(kinds), tuple(lists), "None" in names)


def _read(
    value: Any,
    asked: Asked,
    where: str,
    wanted: Mapping[str, Asked] = {},
    signature: inspect.Signature | None = None,
) -> Any:
    """The value, or what counts for it. What is refused may have been meant for another argument
    of the signature, of which these are ``wanted``."""
    if (value is None and asked.nothing) or any(_is(kind, value) for kind in asked.kinds):
        return value
    if "Mechanism" in asked.kinds and _is("Design", value):
        return value.mechanism
    if "bool" in asked.kinds:
        return truth(value, where)
    if asked.lists and isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        each = Asked(asked.lists, (), False)
        found = enumerate(value)
        return tuple(_read(one, each, f"{where}[{k}]", wanted, signature) for k, one in found)
    remedy = _instead(value, asked)
    others = {kind for name, own in wanted.items() if name != where for kind in own.kinds}
    meant = any(_is(kind, value) for kind in others - {"path", "function"})
    if signature is not None and meant and not remedy:
        remedy = f"The arguments are {', '.join(signature.parameters)}, in this order"
    raise ProblemError(
        f"{type(value).__name__} is not {asked.words}",
        where=where,
        remedy=remedy or _first(asked).remedy,
    )


def _is(kind: str, value: object) -> bool:
    if kind == "path":
        return isinstance(value, str | os.PathLike)
    if kind == "function":
        return callable(value)
    cls = KINDS[kind].cls if kind in KINDS else None
    return cls is not None and isinstance(value, cls)


def _first(asked: Asked) -> Kind:
    """The first kind that is asked for, a path as the last."""
    names = asked.kinds + asked.lists
    return KINDS[next((name for name in names if name != "path"), names[0])]


def _instead(value: Any, asked: Asked) -> str:
    """What to do with a value of a kind that is often given instead; empty for others."""
    if any(_is(kind, value) for kind in asked.lists):
        return "Give a list of one: [it]"
    for given, instead in _first(asked).instead.items():
        if _is(given, value) or type(value).__name__ == given:
            return instead.format(value=value)
    return ""
