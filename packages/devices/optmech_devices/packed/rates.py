"""What the numbers of a packed file keep between positions, whatever its header says: decided from
the file alone (docs/theory/budgets.md, "What many reports cost")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints, slices
from optmech.spaces.mesh.elements import rises
from optmech_devices.packed.meshes import Areas, Weights

_UNSURE = 2.0**-48
"""More than floats are off, beside the square of a triangle's longest edge over twice its area."""
_ON_THE_GLOBE = 1 + 2.0**-40
"""More than what a degree counts for differs between readers."""
_AT_ONCE = 2**20


def kept_rate(weights: Weights, rows: NDArray[np.uint64], row_of: Ints) -> float:
    """The least ε per unit of distance, rounded up, for which ``rows`` (whole numbers, ``row_of``
    every control point) meet the condition of Theorem 6, or along segments the one that is
    necessary: then log ratios of reports are at most ε times the distance, at all points. Infinite
    where there is none."""
    mesh, most = weights.mesh, 0.0
    for part in slices(len(mesh.control), mesh.control.shape[1] * rows.shape[1], _AT_ONCE):
        values = rows[row_of[mesh.control[part]]].astype(np.float64)
        if isinstance(weights, Areas):
            found = _gradients(weights, part, values)
        else:
            found = _slopes(mesh.widths[part], values) * (1 + _UNSURE)
        most = max(most, float(found.max(initial=0.0)))
    return most


def _slopes(widths: Floats, values: Floats) -> Floats:
    """|P[a,o] - P[b,o]| over the least of both and the length, (E, O); ``values`` (E, 2, O)."""
    least = values.min(axis=1)
    return _quotients(values.max(axis=1) - least, least * widths[:, None])


def _gradients(areas: Areas, part: slice, values: Floats) -> Floats:
    """‖G_o[α]‖ over P[α,o], (t, n, O), with all that floats may be off."""
    mesh = areas.mesh
    a, b, c = areas.corners[part].transpose(1, 0, 2)
    first, second = (b - a) * mesh.units[part], (c - a) * mesh.units[part]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    along = rises(mesh.degree).astype(np.float64) @ values[:, None]
    one, two = along.transpose(1, 0, 2, 3)
    x, y = (
        (one * second[:, k, None, None] - two * first[:, k, None, None]) / area[:, None, None]
        for k in (0, 1)
    )
    third = second - first
    longest = np.max([(edge * edge).sum(axis=1) for edge in (first, second, third)], axis=0)
    more = 1 + _UNSURE * (longest / area)
    if mesh.coordinates == "lonlat":
        more = more * _ON_THE_GLOBE
    return np.asarray(_quotients(np.sqrt(x * x + y * y), values) * more[:, None, None])


def _quotients(over: Floats, under: Floats) -> Floats:
    """Quotients of numbers from 0; 0 over 0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(over == 0, 0.0, over / under))
