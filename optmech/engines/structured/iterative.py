"""The row sums' equations by conjugate gradients, where programs are large.

The Schur matrix Σ_o H_o⁻¹ is dense, and making it is most of an iteration's work. Nearly all of a
secret's row of it comes from the few columns that report the secret with some probability: the
inverses' entries between the secrets that a block is among the likeliest reports of make a matrix
that is several times cheaper and so near that a few conjugate gradients on the true one, whose
products are solves in the blocks, are enough. It is a sum of principal parts of positive definite
matrices, hence positive definite itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.engines.structured.backend import Backend
from optmech.engines.structured.model import Model
from optmech.engines.structured.state import State
from optmech.engines.structured.tuning import TUNING

_TINY = 1e-300
_MOST_RIDGE = 1e-5


def accuracy(model: Model, state: State) -> float:
    """What residuals are to fall to: a tenth of the relative gap that the products make."""
    products = float(state.rows.s @ state.rows.z)
    gap = products / max(abs(float((model.cost * state.P).sum())), _TINY)
    return float(np.clip(0.1 * gap, TUNING.iterated_least, TUNING.iterated_to))


def iterates(variables: int, blocks: int) -> bool:
    """Whether row sums are solved for by conjugate gradients: many variables, few blocks."""
    few = 2 * TUNING.likeliest <= blocks <= TUNING.iterated_share * variables
    return few and variables >= TUNING.iterated_from


def likely(P: Floats) -> NDArray[np.bool_] | None:
    """For every variable the blocks where it is likeliest, (blocks, m), of columns P (blocks,
    m + 1); None where the whole Schur matrix is no more work."""
    blocks, m = len(P), P.shape[1] - 1
    few = TUNING.likeliest
    if not iterates(m, blocks):
        return None
    wanted = np.zeros((blocks, m), dtype=np.bool_)
    top = np.argpartition(-P[:, :-1], few, axis=0)[:few]
    np.put_along_axis(wanted, top, True, axis=0)
    wanted &= P[:, :-1] >= TUNING.likely_enough * P[:, :-1].max(axis=0)
    return wanted


class SumsSolver:
    """Solves Σ_o H_o⁻¹ y = right with a part of the matrix as preconditioner, and with all of it
    where that does not lead on."""

    def __init__(
        self, backend: Backend, state: State, wanted: NDArray[np.bool_], part: Floats, goal: float
    ) -> None:
        """``part`` are the sums over ``wanted`` entries, and is used up; residuals are to fall to
        ``goal``, relatively."""
        self._backend, self._rows, self._goal = backend, state.rows, goal
        self._shape = state.P.shape
        squares = state.P[:, :-1] ** 2
        # what the other blocks would add to the diagonal, if inverses go with squared columns
        seen = np.where(wanted, squares, 0.0).sum(axis=0)
        self._whole = False
        self._condition_by(part, squares.sum(axis=0) / np.maximum(seen, _TINY))

    def _condition_by(self, part: Floats, grown: Floats | float) -> None:
        from scipy.linalg import cho_factor

        scale = 1 / np.sqrt(part.diagonal())
        part *= scale[:, None]
        part *= scale
        self._scale = scale / np.sqrt(grown)
        ridge = 1e-15
        index = np.arange(len(part))
        while True:
            part[index, index] = 1.0 + ridge
            try:
                self._factor = cho_factor(part, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                ridge *= 100
                if ridge > _MOST_RIDGE:
                    raise

    def solve(self, right: Floats) -> tuple[Floats, Floats]:
        """y, and H_o⁻¹ y for every block, (blocks, m + 1)."""
        y, residual = np.zeros_like(right), right.copy()
        pushed = np.zeros(self._shape)
        towards = self._preconditioned(residual)
        product = float(residual @ towards)
        goal = self._goal**2 * product
        direction = towards
        for k in range(2 * TUNING.most_iterated):
            if not product > goal:
                break
            if k == TUNING.most_iterated and not self._whole:
                goal *= self._take_whole(residual) / product
                towards = self._preconditioned(residual)
                product = float(residual @ towards)
                direction = towards
            part = np.zeros((self._shape[0], 1, self._shape[1]))
            part[:, 0, :-1] = direction
            self._backend.solve(part)
            moved = part[:, 0, :-1].sum(axis=0)
            step = product / float(direction @ moved)
            y += step * direction
            residual -= step * moved
            part *= step
            pushed += part[:, 0]
            towards = self._preconditioned(residual)
            before, product = product, float(residual @ towards)
            direction = towards + (product / before) * direction
        if not np.isfinite(y).all():
            raise np.linalg.LinAlgError("conjugate gradients broke down")
        return y, pushed

    def _take_whole(self, residual: Floats) -> float:
        """Precondition by the matrix itself; the residual's size in the new norm."""
        schur = self._backend.factor(self._rows)
        if schur is None:
            raise np.linalg.LinAlgError("a block's matrix cannot be factored")
        self._condition_by(schur.sums, 1.0)
        self._whole = True
        return float(residual @ self._preconditioned(residual))

    def _preconditioned(self, residual: Floats) -> Floats:
        from scipy.linalg import cho_solve

        scaled = residual * self._scale
        return np.asarray(cho_solve(self._factor, scaled, check_finite=False) * self._scale)
