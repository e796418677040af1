"""Arrays of multipliers as plain JSON values, and back: types, ranges, shapes, nothing else."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys

Plain = Any
WHERE = "multipliers"


def encoded(given: Any) -> Plain:
    """Multipliers: an array (matrices as ``sparse`` has them), or a dataclass of arrays by name."""
    if is_dataclass(given):
        return {field.name: encoded(getattr(given, field.name)) for field in fields(given)}
    return sparse(given) if np.ndim(given) == 2 else np.asarray(given).tolist()


def decoded(plain: Plain, like: Any) -> Any:
    """The inverse, of the kind and shapes of ``like``; ProblemError where they do not fit."""
    if is_dataclass(like) and not isinstance(like, type):
        names = [field.name for field in fields(like)]
        require_keys(plain, set(names), WHERE)
        return replace(like, **{name: decoded(plain[name], getattr(like, name)) for name in names})
    shape = np.shape(like)
    if len(shape) == 2:
        return dense(plain, shape)
    return numbers(plain, *shape) if shape else float(numbers([plain])[0])


def sparse(values: Any) -> Plain:
    """A matrix as its shape and its entries other than zero."""
    kept = sp.coo_array(values)
    row, column = kept.coords
    return {
        "shape": list(kept.shape),
        "row": row.tolist(),
        "column": column.tolist(),
        "value": kept.data.tolist(),
    }


def numbers(values: Plain, count: int | None = None) -> Floats:
    """Finite numbers, ``count`` of them where that is given. Raises ProblemError otherwise."""
    if type(values) is not list or not all(type(value) in (int, float) for value in values):
        raise ProblemError("a multiplier is not a number", where=WHERE)
    if count is not None and len(values) != count:
        raise ProblemError(f"{len(values)} weights for {count}", where=WHERE)
    return finite_array(values, where=WHERE, ndim=1)


def indices(values: Plain, size: int) -> Ints:
    """Whole numbers from 0 to ``size`` - 1. Raises ProblemError otherwise."""
    if type(values) is not list or not all(type(value) is int for value in values):
        raise ProblemError("an index is not a whole number", where=WHERE)
    array = np.asarray(values, dtype=np.int64).reshape(-1)
    if len(array) and not (array.min() >= 0 and array.max() < size):
        raise ProblemError(f"an index is outside 0..{size - 1}", where=WHERE)
    return array


def dense(plain: Plain, expected: tuple[int, int]) -> Floats:
    """The inverse of ``sparse``. Raises ProblemError where the shape is another one."""
    require_keys(plain, {"shape", "row", "column", "value"}, WHERE)
    if plain["shape"] != list(expected) or any(type(size) is not int for size in plain["shape"]):
        raise ProblemError(f"shape {plain['shape']} is not {expected}", where=WHERE)
    out = np.zeros(expected)
    row, column = indices(plain["row"], expected[0]), indices(plain["column"], expected[1])
    values = numbers(plain["value"], len(row))
    if len(column) != len(row) or len(np.unique(row * expected[1] + column)) != len(row):
        raise ProblemError("an entry is missing or given twice", where=WHERE)
    out[row, column] = values
    return out
