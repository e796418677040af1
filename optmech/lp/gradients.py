"""Privacy at every point as rows of a linear program: in every triangle of a mesh, for a few
directions u, u·∇p <= ε p(v). Rows have three entries and are the same in every block.

Nothing here is trusted: what comes of it is decided by ``certificate.families.gradient``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import Gradient, MeshMultipliers
from optmech.certificate.families.gradient import Edges
from optmech.errors import ProblemError
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.elements import rises

_TIE = 1e-12
_END = 1 - 1e-9
"""A corner that is lowest at the very end of a sector is lowest in the next one."""


@dataclass(frozen=True, eq=False)
class GradientRows:
    """Rows u·∇p − rate p(v) <= 0, in columns of vertices."""

    matrix: sp.csr_array
    """Shape (k, V)."""
    triangle: Ints
    direction: Floats
    """Unit vectors u, (k, 2)."""
    vertex: Ints

    def __len__(self) -> int:
        return len(self.triangle)


def slopes(mesh: Mesh) -> Floats:
    """∇λ of the three corners of every triangle, (T, 3, 2), per unit of distance."""
    corners = _corners(mesh)
    across = corners[:, (2, 0, 1)] - corners[:, (1, 2, 0)]
    area = across[:, 0, 0] * across[:, 1, 1] - across[:, 0, 1] * across[:, 1, 0]
    turned = np.stack([-across[..., 1], across[..., 0]], axis=2)
    return np.asarray(turned / area[:, None, None])


def gradients(mesh: Mesh, matrix: Floats) -> Floats:
    """∇p of every column of ``matrix`` (V, O) in every triangle, (T, O, 2)."""
    return np.asarray(np.einsum("tcd,tco->tod", slopes(mesh), matrix[mesh.triangles]))


def cone_rows(mesh: Mesh, epsilon: float) -> Floats:
    """What ε P[α] and the two components of G[α], the coefficients of ∇p, are of the coefficients
    of p: (T, n, 3, n), at every control point α of every triangle."""
    triangles, each = mesh.control.shape
    out = np.zeros((triangles, each, 3, each))
    out[:, :, 0, :] = epsilon * np.eye(each)
    # one part after the other: the gradients of the second and third weight
    for slope, terms in zip(slopes(mesh)[:, 1:].swapaxes(0, 1), rises(mesh.degree), strict=True):
        out[:, :, 1:, :] += slope[:, None, :, None] * terms[:, None, :]
    return out


def rows(mesh: Mesh, rate: float, triangle: Ints, direction: Floats, vertex: Ints) -> GradientRows:
    """The rows of given triangles, directions and vertices, (k,), (k, 2) and (k,)."""
    count = len(triangle)
    along = np.einsum("kcd,kd->kc", slopes(mesh)[triangle], direction)
    along -= rate * (mesh.triangles[triangle] == vertex[:, None])
    places = np.repeat(np.arange(count), 3), mesh.triangles[triangle].ravel()
    matrix = sp.csr_array((along.ravel(), places), shape=(count, len(mesh)))
    return GradientRows(matrix, triangle, direction, vertex)


def sector_rows(
    mesh: Mesh, epsilon: float, directions: int = 16, *, inside: bool = True
) -> GradientRows:
    """Rows for equally spaced directions that together imply ‖∇p‖ <= ε p(v) at every vertex.

    Where ∇p points into the sector of ±π/m around u, p is least at a vertex that is lowest in some
    direction of the sector: m + 3 rows a triangle suffice, of the 3m there are (theory: "Privacy
    at every point"). With ``inside`` their rate is ε cos(π/m); without it is ε, they are tangents
    of the cone, necessary but not sufficient, and the gradient exceeds ε by 1/cos(π/m) at most.
    """
    if directions < 3:
        raise ProblemError(
            f"{directions} directions do not enclose a disc", where="directions", remedy="Give 8"
        )
    half = np.pi / directions
    centre = np.asarray(2 * half * (np.arange(directions) + 0.5), dtype=np.float64)
    lowest = _lowest(mesh, centre, half)
    triangle, sector, corner = np.nonzero(lowest)
    direction = np.column_stack([np.cos(centre), np.sin(centre)])[sector]
    rate = epsilon * (float(np.cos(half)) if inside else 1.0)
    return rows(mesh, rate, triangle, direction, mesh.triangles[triangle, corner])


def tangent_rows(
    mesh: Mesh, epsilon: float, matrix: Floats, tolerance: float = 1e-9
) -> tuple[GradientRows, Ints]:
    """The tangents of the cone that ``matrix`` (V, O) violates, where its gradients point, by more
    than ``tolerance`` relative to ε times a column's mean; and the column of each, (k,)."""
    found = gradients(mesh, matrix)
    size = np.linalg.norm(found, axis=2)
    values = matrix[mesh.triangles]
    lowest = values.argmin(axis=1)
    excess = size - epsilon * values.min(axis=1)
    triangle, column = np.nonzero(excess > tolerance * epsilon * matrix.mean(axis=0))
    direction = found[triangle, column] / size[triangle, column, None]
    vertex = mesh.triangles[triangle, lowest[triangle, column]]
    return rows(mesh, epsilon, triangle, direction, vertex), column


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
    vectors = np.array(given.vectors, dtype=np.float64)
    pairs = vectors.reshape(*vectors.shape[:2], -1, 2).transpose(1, 0, 2, 3)
    size = np.ldexp(np.hypot(pairs[..., 0], pairs[..., 1]), -given.bits)
    area = Edges(mesh).floats[2]
    return indicator(mesh, float(gradient.epsilon), matrix, size * area[None, :, None])


def _corners(mesh: Mesh) -> Floats:
    """The corners of every triangle from its first one, in units of distance, (T, 3, 2)."""
    away = mesh.vertices[mesh.triangles] - mesh.vertices[mesh.triangles[:, :1]]
    return np.asarray(away * mesh.units[:, None, :])


def _lowest(mesh: Mesh, centre: Floats, half: float) -> NDArray[np.bool_]:
    """Whether a corner is lowest in some direction of a sector: (T, sectors, 3)."""
    corners = _corners(mesh)
    edges = corners[:, (2, 0, 1)] - corners[:, (1, 2, 0)]
    normal = np.arctan2(edges[..., 0], -edges[..., 1])
    # where the lowest corner changes: across the edges; and the ends of the sector
    turns = np.concatenate([normal, normal + np.pi], axis=1)[:, None, :] - centre[:, None]
    turns = np.remainder(turns + np.pi, 2 * np.pi) - np.pi
    half *= _END
    ends = np.broadcast_to(np.array([-half, half]), (*turns.shape[:2], 2))
    angles = np.concatenate([np.where(np.abs(turns) < half, turns, half), ends], axis=2)
    angles = angles + centre[:, None]
    size = np.linalg.norm(edges, axis=2).max(axis=1)[:, None, None, None]
    height = (
        np.cos(angles)[..., None] * corners[:, None, None, :, 0]
        + np.sin(angles)[..., None] * corners[:, None, None, :, 1]
    )
    return np.asarray((height <= height.min(axis=3, keepdims=True) + _TIE * size).any(axis=2))
