"""Arrays of whole numbers of any size, to floats and back."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats

Whole = NDArray[np.object_]
"""An array of whole numbers of any size."""


def scaled(values: Whole, exponent: int) -> Floats:
    """Whole numbers times 2^exponent, as floats; what is too large is ± inf."""
    flat = values.ravel().tolist()
    out = np.empty(len(flat))
    for k, value in enumerate(flat):
        extra = max(0, value.bit_length() - 64)
        try:
            out[k] = math.ldexp(float(value >> extra), extra + exponent)
        except OverflowError:
            out[k] = math.inf if value > 0 else -math.inf
    return out.reshape(values.shape)


def whole(values: Floats, exponent: int) -> Whole:
    """Floats times 2^exponent, as whole numbers (nearest)."""
    out = np.empty(values.size, dtype=object)
    mantissa, power = np.frexp(values.ravel())
    for k, (a, b) in enumerate(zip(np.ldexp(mantissa, 53).tolist(), power.tolist(), strict=True)):
        shift = exponent + b - 53
        out[k] = int(a) << shift if shift >= 0 else int(a) >> -shift
    return out.reshape(values.shape)
