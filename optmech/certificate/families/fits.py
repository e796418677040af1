"""Whether fields of a family are of the type, shape and range that its inequalities need.

What is not a number >= 0 could otherwise pass for a pair without a limit, or for one that equal
rows satisfy.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from optmech.base.edges import Edges
from optmech.exact.number import Exact


def exact(value: object, *, signed: bool = False) -> bool:
    """A number >= 0 with its exact value; where ``signed``, a rational one may be below."""
    if type(value) is not Exact or (value.log_of is not None and value.log_of < 1):
        return False
    return value.factor >= 0 or (signed and value.log_of is None)


def table(values: object, shape: tuple[int, ...], *, unlimited: bool = False) -> bool:
    """Floats >= 0 of this shape: finite ones, or also inf where ``unlimited``."""
    if type(values) is not np.ndarray or values.dtype != np.float64 or values.shape != shape:
        return False
    return bool((values >= 0).all()) and (unlimited or bool(np.isfinite(values).all()))


def edges(values: object, shape: tuple[int, int]) -> bool:
    """Edges of so many points with finite numbers >= 0, in order, each given once."""
    if type(values) is not Edges or (values.count, values.count) != shape:
        return False
    i, j, count = values.i, values.j, values.count
    whole = all(type(part) is np.ndarray and part.dtype == np.int64 for part in (i, j))
    if not whole or not (i.shape == j.shape == values.value.shape == (len(i),)):
        return False
    inside = all(bool(((part >= 0) & (part < count)).all()) for part in (i, j))
    rising = bool((np.diff(i * count + j) > 0).all())
    return inside and rising and table(values.value, (len(i),))


def finite(values: object, shape: tuple[int, ...]) -> bool:
    """Finite floats of any sign, of this shape."""
    sound = type(values) is np.ndarray and values.dtype == np.float64 and values.shape == shape
    return sound and bool(np.isfinite(values).all())  # type: ignore[call-overload]


def mask(values: object, shape: tuple[int, ...]) -> bool:
    """Truth values of this shape."""
    return type(values) is np.ndarray and values.dtype == np.bool_ and values.shape == shape


def weights(rows: object, shape: tuple[int, int]) -> bool:
    """Rows of finite floats >= 0, none of them zero; dense, or sparse with sorted entries that are
    given once."""
    if not isinstance(rows, sp.csr_array):
        return table(rows, shape) and bool(np.asarray(rows).any(axis=1).all())
    sound = rows.shape == shape and rows.has_canonical_format and table(rows.data, (rows.nnz,))
    return sound and bool((np.asarray(rows.sum(axis=1)) > 0).all())
