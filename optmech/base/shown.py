"""Objects in an interpreter: a line or a few, however large they are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optmech.base.equality import SameFields, names_of_fields
from optmech.base.read_only import ReadOnly

_MOST = 160


class Shown(SameFields, ReadOnly):
    """Frozen data, its arrays read-only, which is equal by its fields and whose representation
    leaves out what arrays and long lists hold."""

    def __repr__(self) -> str:
        inside = (f"{name}={short(getattr(self, name))}" for name in names_of_fields(self))
        return f"{type(self).__name__}({', '.join(inside)})"


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
