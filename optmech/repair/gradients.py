"""A matrix over a mesh's control points, moved inside the cone of privacy at every point, released.

Constants have no gradient: added to a column they raise what its gradient may be, and the rows
still have one sum (theory: "Privacy at every point").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.check import Check
from optmech.certificate.everywhere import check_gradients
from optmech.errors import VerificationError
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators
from optmech.lp.gradients import cone_rows
from optmech.mesh import Mesh

_MARGINS = (1e-10, 1e-8, 1e-6, 1e-4)
_HALVINGS = 45


def inside(mesh: Mesh, epsilon: float, matrix: Floats, margin: float = _MARGINS[0]) -> Floats:
    """Near ``matrix`` (rows, O), whose rows sum to one up to rounding: entries >= 0, rows with sum
    one, and ‖G_o[α]‖ <= (1 − margin) ε P[α,o] in every triangle, up to rounding."""
    raised = np.maximum(matrix, 0.0)
    raised = raised / raised.sum(axis=1, keepdims=True)
    rate = (1 - margin) * epsilon
    # (T, n, 3, O): what each control point allows, and the gradient there
    cones = np.einsum("tack,tko->taco", cone_rows(mesh, rate), raised[mesh.control], optimize=True)
    excess = np.hypot(cones[:, :, 1], cones[:, :, 2]) - cones[:, :, 0]
    constant = np.maximum(excess.max(axis=(0, 1)), 0.0) / rate
    return np.asarray((raised + constant) / (1 + constant.sum()))


def released_inside(
    mesh: Mesh, epsilon: Exact, matrix: Floats, index: int | None = None
) -> tuple[Numerators, Check]:
    """Whole numbers near a matrix whose gradients pass the exact check, and that check.

    Raises
    ------
    VerificationError
        Where none near it pass.
    """
    check = None
    for margin in _MARGINS:
        released = Numerators.rounded(inside(mesh, float(epsilon), matrix, margin))
        check = check_gradients(mesh, epsilon, released, index)
        if check.passed:
            return released, check
    raise VerificationError(
        f"no matrix near the solution is private at every point: {check.detail if check else ''}",
        where="everywhere",
        remedy="Use a wider mesh: its triangles are too small for floating point",
    )


def toward(
    matrix: Floats, other: Floats, excess: Callable[[Floats], float], margin: float
) -> Floats | None:
    """The matrix with as little of ``other`` mixed in as leaves it inside convex constraints,
    ``excess`` <= −margin, in floating point; None where that of ``other`` is larger."""
    if excess(matrix) <= -margin:
        return matrix
    if excess(other) > -margin:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if excess((1 - middle) * matrix + middle * other) <= -margin:
            high = middle
        else:
            low = middle
    return np.asarray((1 - high) * matrix + high * other)
