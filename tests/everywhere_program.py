"""The program of privacy at every point, solved as a whole by HiGHS: tangents where they are
violated, or directions once and for all."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import scipy.sparse as sp

from optmech.base.highs import highs_model, run_highs
from optmech.spaces.mesh import Mesh


@dataclass(frozen=True)
class Solved:
    matrix: np.ndarray
    value: float
    rows: int


def solve(
    mesh: Mesh,
    epsilon: float,
    costs: np.ndarray,
    directions: int = 16,
    rounds: int = 0,
    tolerance: float = 1e-6,
    crossover: str = "off",
) -> Solved:
    """Minimise Σ costs·P over the mesh's cone. With ``rounds`` the directions are tangents, and
    those that the solution violates are added up to so many times."""
    count, reports = costs.shape
    base = sector_rows(mesh, epsilon, directions, inside=not rounds)
    sums = sp.hstack([sp.eye_array(count)] * reports, format="csr")
    cut = sp.block_diag([base] * reports, format="csr")
    for _ in range(rounds + 1):
        table = sp.csr_array(sp.vstack([sums, cut]))
        lower = np.concatenate([np.ones(count), np.full(cut.shape[0], -np.inf)])
        upper = np.concatenate([np.ones(count), np.zeros(cut.shape[0])])
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("solver", "ipm")
        highs.setOptionValue("run_crossover", crossover)
        highs.setOptionValue("ipm_optimality_tolerance", 1e-10)
        highs.passModel(
            highs_model(costs.T.ravel(), table, lower, upper, np.full(costs.size, np.inf))
        )
        run_highs(highs)
        assert highs.getModelStatus() != highspy.HighsModelStatus.kNotset
        values = np.array(highs.getSolution().col_value)
        matrix = values.reshape(reports, count).T
        added = tangent_rows(mesh, epsilon, matrix, tolerance)
        if not rounds or not added.shape[0]:
            break
        cut = sp.csr_array(sp.vstack([cut, added]))
    return Solved(matrix, float((costs * matrix).sum()), table.shape[0])


def slopes(mesh: Mesh) -> np.ndarray:
    """∇λ of the three corners of every triangle, (T, 3, 2), per unit of distance."""
    away = mesh.vertices[mesh.triangles] - mesh.vertices[mesh.triangles[:, :1]]
    sides = np.concatenate([away * mesh.units[:, None, :], np.ones((*away.shape[:2], 1))], axis=2)
    return np.linalg.inv(sides)[:, :2].swapaxes(1, 2)


def rows(
    mesh: Mesh, rate: float, triangle: np.ndarray, direction: np.ndarray, vertex: np.ndarray
) -> sp.csr_array:
    """u·∇p − rate p(v) for given triangles, directions and vertices, over vertices."""
    along = np.einsum("kcd,kd->kc", slopes(mesh)[triangle], direction)
    along -= rate * (mesh.triangles[triangle] == vertex[:, None])
    places = np.repeat(np.arange(len(triangle)), 3), mesh.triangles[triangle].ravel()
    return sp.csr_array((along.ravel(), places), shape=(len(triangle), len(mesh)))


def sector_rows(mesh: Mesh, epsilon: float, directions: int, inside: bool) -> sp.csr_array:
    """For equally spaced directions and all corners: with ``inside`` they imply ‖∇p‖ <= ε p, as a
    polygon inside the disc does; without it they follow from it."""
    count = len(mesh.triangles)
    angle = 2 * np.pi / directions * (np.arange(directions) + 0.5)
    triangle, sector, corner = (a.ravel() for a in np.indices((count, directions, 3)))
    direction = np.column_stack([np.cos(angle), np.sin(angle)])[sector]
    rate = epsilon * (np.cos(np.pi / directions) if inside else 1.0)
    return rows(mesh, rate, triangle, direction, mesh.triangles[triangle, corner])


def tangent_rows(mesh: Mesh, epsilon: float, matrix: np.ndarray, tolerance: float) -> sp.csr_array:
    """Tangents of the cone where a matrix violates it, in its columns one after the other."""
    found = np.einsum("tcd,tco->tod", slopes(mesh), matrix[mesh.triangles])
    size, values = np.linalg.norm(found, axis=2), matrix[mesh.triangles]
    excess = size - epsilon * values.min(axis=1)
    triangle, column = np.nonzero(excess > tolerance * epsilon * matrix.mean(axis=0))
    direction = found[triangle, column] / size[triangle, column, None]
    vertex = mesh.triangles[triangle, values.argmin(axis=1)[triangle, column]]
    more = rows(mesh, epsilon, triangle, direction, vertex).tocoo()
    places = more.coords[0], column[more.coords[0]] * len(matrix) + more.coords[1]
    return sp.csr_array((more.data, places), shape=(len(triangle), matrix.size))
