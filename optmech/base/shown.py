"""Objects in an interpreter or a notebook: a line or a few, however large they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from fractions import Fraction
from html import escape
from typing import Any, ClassVar

import numpy as np

from optmech.base.read_only import ReadOnly

_MOST = 160
_LONGEST = 200


class SameFields:
    """A frozen dataclass without an equality of its own (``eq=False``): equal to
    what is of the same class with equal fields, arrays entry by entry and NaN equal to itself.

    How a result was found does not count: answers are equal that promise the same with the same
    probabilities and have the same bounds.
    """

    _apart: ClassVar[frozenset[str]] = frozenset()
    """Fields that say how it was found, or prove what follows from them."""
    _follows: ClassVar[tuple[str, ...]] = ()
    """Attributes that follow from these fields, and count in their place."""

    def _compared(self) -> Iterator[Any]:
        names = (name for name in names_of_fields(self) if name not in self._apart)
        return (getattr(self, name) for name in (*names, *self._follows))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(map(_same, self._compared(), other._compared()))

    def __hash__(self) -> int:
        known = str | float | int | SameFields
        plain = (v for v in self._compared() if isinstance(v, known) and v == v)
        return hash((type(self).__name__, *plain))


def names_of_fields(value: Any) -> list[str]:
    """The names of the fields of a dataclass."""
    return [field.name for field in fields(value)]


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, tuple | list) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return bool(a == b)


class Shown(SameFields, ReadOnly):
    """Frozen data, its arrays read-only, which is equal by its fields and whose representation
    leaves out what arrays and long lists hold."""

    def __repr__(self) -> str:
        inside = (f"{name}={short(getattr(self, name))}" for name in names_of_fields(self))
        return f"{type(self).__name__}({', '.join(inside)})"

    def _repr_html_(self) -> str:
        names = names_of_fields(self)
        return card(type(self).__name__, [(name, short(getattr(self, name))) for name in names])


def short(value: Any) -> str:
    """The representation of a value, or what kind of thing it is where that is long."""
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} array>"
    if isinstance(value, list | tuple) and len(value) > 6:
        return f"<{len(value):,} entries>"
    if isinstance(value, Fraction) and value.denominator > 10**6:
        return f"{value.numerator / value.denominator:.6g}"
    text = f"({', '.join(map(short, value))})" if type(value) is tuple else repr(value)
    return text if len(text) <= _MOST else f"{text[: _MOST - 4]} ..."


def card(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """HTML for notebooks: a title, and rows of names and values; every text is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{_escaped(name)}</th>"
        f"<td style='text-align:left'>{_escaped(value)}</td></tr>"
        for name, value in facts
    )
    return f"<div><strong>{_escaped(title)}</strong><table>{rows}</table></div>"


def _escaped(value: object) -> str:
    shown = str(value)
    return escape(shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 4]} ...")
