"""A matrix over a mesh's control points, moved inside the cone of privacy at every point, released.

Constants have no gradient: added to a column they raise what its gradient may be, and the rows
still have one sum (theory: "Privacy at every point").
"""

import numpy as np

from optmech.base.arrays import Floats, normalised_rows
from optmech.certificate.check import Check
from optmech.certificate.families.gradient import check_gradients
from optmech.errors import VerificationError
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators
from optmech.lp.gradients import cone_rows
from optmech.spaces.mesh import Mesh

MARGINS = (1e-10, 1e-8, 1e-6, 1e-4)


def inside(mesh: Mesh, epsilon: float, matrix: Floats, margin: float = MARGINS[0]) -> Floats:
    """Near ``matrix`` (rows, O), whose rows sum to one up to rounding: entries >= 0, rows with sum
    one, and ‖G_o[α]‖ <= (1 − margin) ε P[α,o] in every triangle, up to rounding."""
    raised = normalised_rows(np.maximum(matrix, 0.0))
    constant = missing(mesh, (1 - margin) * epsilon, raised)
    return np.asarray((raised + constant) / (1 + constant.sum()))


def missing(mesh: Mesh, rate: float, matrix: Floats) -> Floats:
    """The least constant for every column (O,) with which ‖G_o[α]‖ <= rate · P[α,o] everywhere,
    up to rounding."""
    # (T, n, 3, O): what each control point allows, and the gradient there
    cones = np.einsum("tack,tko->taco", cone_rows(mesh, rate), matrix[mesh.control], optimize=True)
    excess = np.hypot(cones[:, :, 1], cones[:, :, 2]) - cones[:, :, 0]
    return np.asarray(np.maximum(excess.max(axis=(0, 1)), 0.0) / rate)


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
    for margin in MARGINS:
        released = Numerators.rounded(inside(mesh, float(epsilon), matrix, margin))
        check = check_gradients(mesh, epsilon, released, index)
        if check.passed:
            return released, check
    raise VerificationError(
        f"no matrix near the solution is private at every point: {check.detail if check else ''}",
        where="everywhere",
        remedy="Use a wider mesh: its triangles are too small for floating point",
    )
