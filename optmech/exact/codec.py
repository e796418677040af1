"""Entries of files described once for both directions: how a value is written as plain JSON, and
how it is read again, strictly, in the one form in which it is written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from optmech.errors import ProblemError, described
from optmech.exact.arguments import require_keys, whole
from optmech.exact.number import Exact, parse_exact

T = TypeVar("T")
Plain = Any


@dataclass(frozen=True)
class Codec(Generic[T]):
    """``write`` turns a value into plain JSON, and ``read`` is its inverse, which raises
    ProblemError, TypeError or LookupError on anything else."""

    write: Callable[[T], Plain]
    read: Callable[[Plain], T]


def record(
    make: Callable[..., Any],
    where: str,
    rare: str | None = None,
    /,
    **entries: Codec[Any] | tuple[str, Codec[Any]],
) -> Codec[Any]:
    """An object with exactly these entries, in this order: attributes of the value and parameters
    of ``make``, of the same name or of the one that stands beside the codec. Where the attribute
    ``rare`` counts as false it is left out, and ``make`` knows what it is then."""
    parts = {
        entry: given if isinstance(given, tuple) else (entry, given)
        for entry, given in entries.items()
    }

    def write(value: Any) -> Plain:
        held = {entry: getattr(value, name) for entry, (name, _) in parts.items()}
        return {k: parts[k][1].write(each) for k, each in held.items() if k != rare or each}

    def read(plain: Plain) -> Any:
        require_keys(plain, set(parts) - {rare}, where, rare)
        return make(**{name: c.read(plain[k]) for k, (name, c) in parts.items() if k in plain})

    return Codec(write, read)


def listing(
    each: Codec[T], count: int | None = None, most: float = math.inf
) -> Codec[tuple[T, ...]]:
    """A list of ``count`` entries (any number up to ``most``)."""

    def read(plain: Plain) -> tuple[T, ...]:
        if type(plain) is not list:
            raise ProblemError(f"{described(plain)} is no list")
        if count not in (None, len(plain)) or len(plain) > most:
            wanted = f"at most {most:,}" if count is None else count
            raise ProblemError(f"a list has {len(plain):,} entries, and not {wanted}")
        return tuple(map(each.read, plain))

    return Codec(lambda values: list(map(each.write, values)), read)


def placed(
    plain: Plain, empty: Sequence[T], read: Callable[[Plain], T | None], where: str, words: str
) -> tuple[T, ...]:
    """``empty`` with some entries: a list of their places, which rise, and one of what ``read``
    makes entries of, None being none. Raises ProblemError, in these ``words`` of an entry."""
    places, given = plain
    if len(places) != len(given):
        raise ProblemError("index lists of different lengths", where=where)
    out, before = list(empty), -1
    for place, value in zip(places, given, strict=True):
        found = read(value)
        if type(place) is not int or not before < place < len(out):
            raise ProblemError("has indices that are none or do not increase", where=where)
        if found is None:
            raise ProblemError(f"{described(value)} {words}", where=where)
        out[place], before = found, place
    return tuple(out)


def optional(codec: Codec[T]) -> Codec[T | None]:
    """A value or null."""
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda plain: None if plain is None else codec.read(plain),
    )


def within(where: str, least: int = 0, most: int | None = None) -> Codec[int]:
    """A whole number from ``least``, and to ``most`` where given."""
    return Codec(int, lambda plain: whole(plain, where, least, most))


def one_of(where: str, known: Sequence[str]) -> Codec[Any]:
    """One of the texts that are known."""
    return Codec(str, lambda plain: _required(plain, type(plain) is str and plain in known, where))


def digits(most: int, sign: str = "") -> Codec[int]:
    """A whole number as ``most`` hexadecimal digits at most, below 0 where ``sign`` is "-?"."""
    form = re.compile(rf"0|{sign}[1-9a-f][0-9a-f]{{0,{most - 1}}}", re.ASCII)

    def read(plain: Plain) -> int:
        fits = type(plain) is str and form.fullmatch(plain)
        return int(_required(plain, fits, "whole number"), 16)

    return Codec(lambda value: f"{value:x}", read)


def exact(where: str, read: Callable[..., Exact] = parse_exact) -> Codec[Exact]:
    """A number >= 0 that is kept exact, as its ``text``."""
    return worded(partial(read, where=where), where, lambda number: number.text)


def worded(read: Callable[[Any], T], where: str, text: Callable[[T], Plain] = str) -> Codec[T]:
    """What is read from texts, of which one form is its own."""

    def decode(plain: Plain) -> T:
        found = read(plain)
        if not is_same(text(found), plain):
            raise ProblemError("is not written as it must be", where=where)
        return found

    return Codec(text, decode)


def is_same(one: Plain, other: Plain) -> bool:
    """Whether two values are written alike: true is not 1, nor 1 the same as 1.0, nor -0.0 as 0."""
    first, second = (json.dumps(part, sort_keys=True, allow_nan=False) for part in (one, other))
    return first == second


def amount(where: str) -> Codec[float]:
    """A float >= 0."""
    return Codec(
        float,
        lambda plain: _required(
            plain, type(plain) is float and math.isfinite(plain) and plain >= 0, where
        ),
    )


def _required(plain: Plain, fits: object, where: str) -> Plain:
    if not fits:
        raise ProblemError(f"{plain!r:.40} will not do", where=where)
    return plain
