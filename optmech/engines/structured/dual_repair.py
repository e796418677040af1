"""Dual feasibility restoration: an iterate's multipliers, moved until they make a bound.

On the way to the optimum the dual equations hold with a residual, and every negative reduced cost
is taken off the bound. Multipliers of coupling and local rows are scaled until shared and
auxiliary variables are stationary; then those of the pairs take up what is left:

* *projection*: the weighted least squares correction dz = (z/s) G H⁻¹ r meets Gᵀdz = r exactly,
  but for multipliers that it would make negative;
* *draining*: a multiplier of v_i <= e v_j takes e z from the reduced cost of j and adds z to that
  of i, so lowering it mends j and passes a smaller deficit on to i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats
from optmech.engines.structured.backend import Backend
from optmech.engines.structured.dense import DenseRows
from optmech.engines.structured.model import Model
from optmech.engines.structured.state import State, auxiliary_cost, reduced_cost
from optmech.engines.structured.tuning import TUNING


@dataclass(frozen=True, eq=False)
class Duals:
    """Multipliers: y (m,) of the row sums, nu >= 0 of the coupling rows, lam >= 0 (blocks, K) of
    the dense rows, z >= 0 of the pair rows.

    ``lowest`` (m,) is min_o L[s,o] - y_s, L being the costs that the other multipliers leave, and
    ``bound`` the Lagrangian bound Σ_s min_o L[s,o] less what the coupling rows cost, in float64.
    """

    y: Floats
    nu: Floats
    lam: Floats
    z: Floats
    lowest: Floats
    bound: float


def restored(
    model: Model, backend: Backend, state: State, projections: int = TUNING.projections
) -> Duals:
    """The multipliers of ``state``, restored; the backend's factors must be those of ``state``."""
    nu = _shared_stationary(model, np.maximum(state.nu, 0.0))
    lam = _auxiliary_stationary(state.dense, auxiliary_cost(model, nu))
    priced = np.matmul(lam[:, None, :], state.dense.Q)[:, 0]
    reduced = reduced_cost(model, state.y, nu, priced)
    z, left = _pair_multipliers(backend, state, reduced, projections)
    lowest = np.where(model.allowed, left[:, :-1], np.inf).min(axis=0)
    bound = float((state.y + lowest).sum() - model.coupling.rhs @ nu)
    return Duals(state.y, nu, lam, z, lowest, bound)


def _shared_stationary(model: Model, nu: Floats) -> Floats:
    """nu with h + Dᵀnu = 0 exactly where a shared variable has rows."""
    for column, cost in zip(model.coupling.shared.T, model.shared_cost, strict=True):
        users = column < 0
        total = float(-column[users] @ nu[users])
        if total > 0:
            nu[users] *= cost / total
    return nu


def _auxiliary_stationary(dense: DenseRows, wanted: Floats) -> Floats:
    """lam >= 0 with Bᵀlam = wanted in every block."""
    lam = np.where(dense.live, np.maximum(dense.lam, 0.0), 0.0)
    for c in range(wanted.shape[1]):
        held = dense.B[:, :, c] != 0
        total = (dense.B[:, :, c] * lam).sum(axis=1)
        usable = total * wanted[:, c] > 0
        factor = np.where(usable, wanted[:, c] / np.where(usable, total, 1.0), 0.0)
        lam = np.where(held, lam * factor[:, None], lam)
    return lam


def _pair_multipliers(
    backend: Backend, state: State, reduced: Floats, projections: int
) -> tuple[Floats, Floats]:
    """Multipliers near the iterate's whose reduced costs are hardly negative, and those costs."""
    rows = state.rows

    def left_by(z: Floats) -> Floats:
        left = reduced.copy()
        backend.charge(rows, z, left)
        return left

    z = rows.z.copy()
    left = left_by(z)
    bearable = TUNING.bearable * float(rows.s @ rows.z)
    for k in range(TUNING.most_projections):
        if k >= projections and -np.minimum(left, 0.0).min(axis=0).sum() <= bearable:
            break
        x = left[:, None, :].copy()
        backend.solve(x)
        z = backend.shifted(rows, z, x[:, 0])
        left = left_by(z)
    z = backend.drain(rows, z, left, TUNING.sweeps)
    return z, left_by(z)
