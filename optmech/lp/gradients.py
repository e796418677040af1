"""Privacy at every point as cones over the control points of a mesh, the objective over these, and
where a finer mesh helps most.

Nothing here is trusted: what comes of it is decided by ``certificate.gradients``.
"""

import math

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.families import Gradient, MeshMultipliers
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.elements import rises


def _slopes(mesh: Mesh) -> Floats:
    """∇λ of the three corners of every triangle, (T, 3, 2), per unit of distance."""
    corners = mesh.vertices[mesh.triangles] - mesh.vertices[mesh.triangles[:, :1]]
    corners = corners * mesh.units[:, None, :]
    across = corners[:, (2, 0, 1)] - corners[:, (1, 2, 0)]
    area = across[:, 0, 0] * across[:, 1, 1] - across[:, 0, 1] * across[:, 1, 0]
    turned = np.stack([-across[..., 1], across[..., 0]], axis=2)
    return turned / area[:, None, None]


def cone_rows(mesh: Mesh, epsilon: float) -> Floats:
    """What ε P[α] and the two components of G[α], the coefficients of ∇p, are of the coefficients
    of p: (T, n, 3, n), at every control point α of every triangle."""
    triangles, each = mesh.control.shape
    out = np.zeros((triangles, each, 3, each))
    out[:, :, 0, :] = epsilon * np.eye(each)
    # one part after the other: the gradients of the second and third weight
    for slope, terms in zip(_slopes(mesh)[:, 1:].swapaxes(0, 1), rises(mesh.degree), strict=True):
        out[:, :, 1:, :] += slope[:, None, :, None] * terms[:, None, :]
    return out


def row_costs(mesh: Mesh, points: Floats, weights: Floats, costs: Floats) -> Floats:
    """Σ_x π(x) B_α(x) c(x, o) for every control point α, (rows, O): the objective, whose size does
    not depend on how many places (n, 2), weights (n,) and costs (n, O) there are."""
    return np.asarray(mesh.interpolation(points).T @ (weights[:, None] * costs))


def indicator(mesh: Mesh, epsilon: float, matrix: Floats, multipliers: Floats) -> Floats:
    """What the objective loses, to first order, because columns grow by 1 + a + … + a^d/d! at most
    over the width of a triangle, a being ε times it, and not by e^a; (T,). Where this is large a
    finer mesh helps most.

    ``multipliers`` (O, T, n) are those of ε P[α] at the control points, >= 0: with P[α] they are
    what a relative change of ε in the triangle is worth.
    """
    worth = np.einsum("otk,tko->t", multipliers, matrix[mesh.control])
    steps = epsilon * mesh.widths
    powers = steps[:, None] ** np.arange(mesh.degree + 1)
    growth = (powers / [math.factorial(k) for k in range(mesh.degree + 1)]).sum(axis=1)
    return np.asarray(epsilon * worth * (1 - np.log(growth) / steps))


def indicator_of(gradient: Gradient, matrix: Floats, given: MeshMultipliers | None) -> Floats:
    """``indicator`` of a promise at every point, with the multipliers that prove its bound."""
    mesh = gradient.mesh
    if given is None:
        return np.zeros(len(mesh.triangles))
    sizes = given.sizes(mesh).swapaxes(0, 1)
    return indicator(mesh, float(gradient.epsilon), matrix, sizes)
