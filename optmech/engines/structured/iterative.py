"""The row sums' equations by conjugate gradients, where programs are large.

The Schur matrix Σ_o H_o⁻¹ is dense, and making it is most of an iteration's work. Nearly all of a
secret's row of it comes from the few columns that report the secret with some probability: the
inverses' entries between the secrets that a block is among the likeliest reports of make a matrix
that is several times cheaper and so near that a few conjugate gradients on the true one, whose
products are solves in the blocks, are enough. It is a sum of principal parts of positive definite
matrices, hence positive definite itself.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from optmech.base.arrays import Floats
from optmech.engines.structured.backend import Backend, Schur
from optmech.engines.structured.model import Model
from optmech.engines.structured.state import State
from optmech.engines.structured.tuning import TUNING

_TINY = 1e-300
_MOST_RIDGE = 1e-5


def accuracy(model: Model, state: State, most: float) -> float:
    """What residuals are to fall to: a tenth of the relative gap that the products make, or
    ``most``."""
    products = float(state.rows.s @ state.rows.z)
    gap = products / max(abs(float((model.cost * state.P).sum())), _TINY)
    return float(np.clip(0.1 * gap, TUNING.iterated_least, most))


def iterates(variables: int, blocks: int) -> bool:
    """Whether row sums are solved for by conjugate gradients: many variables, few blocks."""
    few = 2 * TUNING.likeliest <= blocks <= TUNING.iterated_share * variables
    return few and variables >= TUNING.iterated_from


def likely(P: Floats) -> NDArray[np.bool_]:
    """For every variable the blocks where it is likeliest, (blocks, m), of columns P (blocks,
    m + 1)."""
    blocks, m = len(P), P.shape[1] - 1
    few = TUNING.likeliest
    wanted = np.zeros((blocks, m), dtype=np.bool_)
    top = np.argpartition(-P[:, :-1], few, axis=0)[:few]
    np.put_along_axis(wanted, top, True, axis=0)
    wanted &= P[:, :-1] >= TUNING.likely_enough * P[:, :-1].max(axis=0)
    return wanted


class Conditioner(Protocol):
    """A matrix near the inverse of the Schur matrix, for the iterate it was made at and others."""

    def scale(self, P: Floats) -> Floats:
        """What its rows and columns are scaled by at the columns P, (m,): inverses go with the
        squares of columns."""

    def apply(self, scale: Floats, residual: Floats) -> Floats:
        """Its product with a residual (m,), with the scale of an iterate."""


def require(schur: Schur | None) -> Floats:
    """The sums of factored blocks. Raises LinAlgError where there are none."""
    if schur is None or not np.isfinite(schur.sums).all():
        raise np.linalg.LinAlgError("a block's matrix cannot be factored")
    return schur.sums


def part_of(backend: Backend, state: State) -> Conditioner:
    """From the inverses' entries between the likeliest reports of each variable."""
    P, wanted = state.P, likely(state.P)
    # what the other blocks would add to the diagonal, if inverses go with squared columns
    seen = np.where(wanted, P[:, :-1] ** 2, 0.0).sum(axis=0)
    grown = squares(P) / np.maximum(seen, _TINY)
    return Preconditioner(require(backend.factor(state.rows, wanted)), P, grown, backend.threads)


def whole_of(backend: Backend, state: State) -> Conditioner:
    """From the inverses."""
    return Preconditioner(require(backend.factor(state.rows)), state.P, 1.0, backend.threads)


class Preconditioner:
    """The Cholesky factor of part of the Schur matrix, for the iterate of columns P and others."""

    def __init__(self, part: Floats, P: Floats, grown: Floats | float, threads: int) -> None:
        """``part`` (m, m) is used up; the matrix has ``grown`` times its diagonal."""
        from scipy.linalg import cho_factor

        scale = 1 / np.sqrt(part.diagonal())
        part *= scale[:, None]
        part *= scale
        self._squares = squares(P)
        self._scale = scale / np.sqrt(grown)
        ridge = 1e-15
        index = np.arange(len(part))
        while True:
            part[index, index] = 1.0 + ridge
            try:
                with threadpool_limits(threads, user_api="blas"):
                    self._factor = cho_factor(part, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                ridge *= 100
                if ridge > _MOST_RIDGE:
                    raise

    def scale(self, P: Floats) -> Floats:
        """What the factor's rows and columns are scaled by at the columns P, (m,): inverses go
        with the squares of columns."""
        return self._scale * np.sqrt(self._squares / np.maximum(squares(P), _TINY))

    def apply(self, scale: Floats, residual: Floats) -> Floats:
        """The factor's solution for a residual (m,), with the scale of an iterate."""
        from scipy.linalg import cho_solve

        return np.asarray(
            cho_solve(self._factor, residual * scale, check_finite=False) * scale, np.float64
        )


def squares(P: Floats) -> Floats:
    """Of every variable, over all blocks, (m,)."""
    return np.asarray((P[:, :-1] ** 2).sum(axis=0))


def pushed(backend: Backend, y: Floats, shape: tuple[int, int]) -> Floats:
    """H_o⁻¹ y for every block, of the shape of the columns (blocks, m + 1)."""
    part = np.zeros((shape[0], 1, shape[1]))
    part[:, 0, :-1] = y
    backend.solve(part)
    return part[:, 0]


class Parts(Backend, Protocol):
    """A backend whose row sums are iterated on."""

    stages: int
    """How many preconditioners there are for an iterate, one better than the other."""
    roughest: float
    """What residuals fall to at least."""
    lasting: int
    """Gradients up to which one is kept for the next iterate."""

    def conditioner(self, state: State, stage: int) -> Conditioner:
        """Factor the blocks and make a preconditioner. Raises LinAlgError where that cannot be."""

    def summed(self, y: Floats, rough: bool) -> Floats:
        """Σ_o H_o⁻¹ y, (m,); ``rough`` where half the digits will do."""


class SumsSolver:
    """Solves Σ_o H_o⁻¹ y = right by conjugate gradients, preconditioned by part of the matrix, of
    this iterate or an earlier one, and by a better one where that does not lead on."""

    def __init__(
        self, backend: Parts, state: State, goal: float, kept: Conditioner | None = None
    ) -> None:
        """Factors the blocks. Residuals are to fall to ``goal``, relatively. Raises LinAlgError
        where a block cannot be factored."""
        self._backend, self._state, self._goal = backend, state, goal
        self._stage, self._gradients = 0, 0
        if kept is None:
            self._advance()
        else:
            none = np.zeros((len(state.P), state.P.shape[1] - 1), dtype=np.bool_)
            require(backend.factor(state.rows, none))
            self._take(kept)

    @property
    def lasting(self) -> Conditioner | None:
        """The preconditioner, where it is likely to do for the next iterate."""
        return self._conditioner if self._gradients <= self._backend.lasting else None

    def _take(self, conditioner: Conditioner) -> None:
        self._conditioner = conditioner
        self._scale = conditioner.scale(self._state.P)

    def _advance(self) -> None:
        """Take the next better preconditioner."""
        self._take(self._backend.conditioner(self._state, self._stage))
        self._stage += 1

    def solve(self, right: Floats) -> tuple[Floats, Floats]:
        """y, and H_o⁻¹ y for every block, (blocks, m + 1)."""
        y, residual = np.zeros_like(right), right.copy()
        towards = self._conditioner.apply(self._scale, residual)
        product = float(residual @ towards)
        goal = self._goal**2 * product
        direction = towards
        taken = 0
        while product > goal:
            last = self._stage == self._backend.stages
            if taken == (TUNING.most_at_last if last else TUNING.most_iterated):
                if last:
                    break
                self._advance()
                taken = 0
                towards = self._conditioner.apply(self._scale, residual)
                before, product = product, float(residual @ towards)
                goal *= product / before
                direction = towards
            moved = self._backend.summed(direction, self._goal >= TUNING.rough)
            step = product / float(direction @ moved)
            y += step * direction
            residual -= step * moved
            towards = self._conditioner.apply(self._scale, residual)
            before, product = product, float(residual @ towards)
            direction = towards + (product / before) * direction
            taken += 1
        self._gradients = max(self._gradients, taken)
        if not np.isfinite(y).all():
            raise np.linalg.LinAlgError("conjugate gradients broke down")
        return y, pushed(self._backend, y, self._state.P.shape)
