"""Frozen data that is equal where its fields are, also where these are arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from optmech.base.shown import names_of_fields


class SameFields:
    """A frozen dataclass or attrs class without an equality of its own (``eq=False``): equal to
    what is of the same class with equal fields, arrays entry by entry."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = names_of_fields(self)
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        found = (getattr(self, name) for name in names_of_fields(self))
        plain = (value for value in found if isinstance(value, str | float | int))
        return hash((type(self).__name__, *plain))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    if isinstance(a, tuple | list) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
