"""The program of privacy at every point, solved as a whole by HiGHS: tangents where they are
violated, or directions once and for all."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import scipy.sparse as sp

from optmech.lp import gradients
from optmech.lp.highs import highs_model
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
    base = gradients.sector_rows(mesh, epsilon, directions, inside=not rounds).matrix
    sums = sp.hstack([sp.eye_array(count)] * reports, format="csr")
    cut = sp.block_diag([base] * reports, format="csr")
    for _ in range(rounds + 1):
        table = sp.csr_array(sp.vstack([sums, cut]))
        lower = np.concatenate([np.ones(count), np.full(cut.shape[0], -np.inf)])
        upper = np.concatenate([np.ones(count), np.zeros(cut.shape[0])])
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("solver", "ipm")
        highs.setOptionValue("threads", 1)
        highs.setOptionValue("run_crossover", crossover)
        highs.setOptionValue("ipm_optimality_tolerance", 1e-10)
        highs.passModel(
            highs_model(costs.T.ravel(), table, lower, upper, np.full(costs.size, np.inf))
        )
        highs.run()
        values = np.array(highs.getSolution().col_value)
        matrix = values.reshape(reports, count).T
        found, column = gradients.tangent_rows(mesh, epsilon, matrix, tolerance)
        if not rounds or not len(found):
            break
        more = found.matrix.tocoo()
        place = column[more.coords[0]] * count + more.coords[1]
        added = sp.csr_array((more.data, (more.coords[0], place)), shape=(len(found), costs.size))
        cut = sp.csr_array(sp.vstack([cut, added]))
    return Solved(matrix, float((costs * matrix).sum()), table.shape[0])
