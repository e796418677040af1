"""The row sums' equations by conjugate gradients, where programs are large.

The Schur matrix Σ_o H_o⁻¹ is dense, and making it is most of an iteration's work. Nearly all of a
secret's row of it comes from the few columns that report the secret with some probability: the
inverses' entries between the secrets that a block is among the likeliest reports of make a matrix
that is several times cheaper and so near that a few conjugate gradients on the true one, whose
products are solves in the blocks, are enough. It is a sum of principal parts of positive definite
matrices, hence positive definite itself.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from optmech.base.arrays import Bools, Floats
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import NOTHING, Backend, Schur
from optmech.engines.structured.state import State
from optmech.engines.structured.tuning import TUNING

_TINY = 1e-300
_RIDGES = (
    (1e-6, np.float32),
    *((1e-15 * 100.0**k, np.float64) for k in range(6)),
)
"""What is added to a diagonal of ones, and the digits of the factor, one after the other."""


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


def likely(P: Floats) -> Bools:
    """For every variable the blocks where it is likeliest, (blocks, m), of columns P (blocks,
    m + 1). Of columns that are all alike one stands for all."""
    blocks, m = len(P), P.shape[1] - 1
    few = TUNING.likeliest if np.ptp(P, axis=0).any() else 1
    wanted = np.zeros((blocks, m), dtype=bool)
    top = np.argpartition(-P[:, :-1], few, axis=0)[:few]
    np.put_along_axis(wanted, top, True, axis=0)
    wanted &= P[:, :-1] >= TUNING.likely_enough * P[:, :-1].max(axis=0)
    return wanted


Inverse = Callable[[Floats], Floats]
"""The product of a residual (m,) with a symmetric matrix near the inverse of the Schur matrix."""


class Conditioner(Protocol):
    """What was made at one iterate and preconditions there and at others."""

    updated: bool
    """Whether directions of the iterate before make it better where it was made anew."""
    most: int
    """Gradients after which it is given up for a better one ..."""
    lasting: int
    """... and up to which it is kept for the next iterate."""

    def at(self, P: Floats) -> Inverse:
        """The preconditioner at the iterate of columns P (blocks, m + 1): inverses go with the
        squares of columns."""


def require(schur: Schur | None) -> Floats:
    """The sums of factored blocks. Raises LinAlgError where there are none."""
    if schur is None or not np.isfinite(schur.sums).all():
        raise np.linalg.LinAlgError("a block's matrix cannot be factored")
    return schur.sums


def part_of(backend: Backend, state: State, *, whole: bool) -> Conditioner:
    """From the inverses, or their entries between the likeliest reports of each variable."""
    P, wanted = state.P, likely(state.P)
    if whole:
        return Preconditioner(require(backend.factor(state.rows)), P, 1.0)
    # what the other blocks would add to the diagonal, if inverses go with squared columns
    seen = np.where(wanted, P[:, :-1] ** 2, 0.0).sum(axis=0)
    grown = squares(P) / np.maximum(seen, _TINY)
    return Preconditioner(require(backend.factor(state.rows, wanted)), P, grown)


class Preconditioner:
    """The Cholesky factor of part of the Schur matrix, for the iterate of columns P and others."""

    updated = False
    most, lasting = TUNING.most_iterated, TUNING.lasting

    def __init__(self, part: Floats, P: Floats, grown: Floats | float) -> None:
        """``part`` (m, m) is used up; the matrix has ``grown`` times its diagonal."""
        from scipy.linalg import cho_factor

        scale = 1 / np.sqrt(part.diagonal())
        part *= scale[:, None]
        part *= scale
        self._squares = squares(P)
        self._scale = scale / np.sqrt(grown)
        index = np.arange(len(part))
        # half the digits are half the work, and half the memory to go through, and enough here
        for ridge, digits in _RIDGES:
            part[index, index] = 1.0 + ridge
            try:
                own = part.T.astype(digits)
                factor, _ = cho_factor(own, lower=True, overwrite_a=True, check_finite=False)
                self._factor = np.asfortranarray(factor, np.float32)
                return
            except np.linalg.LinAlgError:
                continue
        raise np.linalg.LinAlgError("part of the row sums' matrix cannot be factored")

    def at(self, P: Floats) -> Inverse:
        """See ``Conditioner``."""
        from scipy.linalg.blas import strsv

        scale = self._scale * moved_by(self._squares, P)

        def inverse(residual: Floats) -> Floats:
            # lengths may lie outside of what these digits can be
            length = float(np.abs(given := residual * scale).max()) or 1.0
            # LAPACK's solve is for many right-hand sides, and takes five times as long for one
            inner = strsv(self._factor, given / length, lower=1)
            found = strsv(self._factor, inner, lower=1, trans=1)
            return np.asarray(found * (length * scale), np.float64)

        return inverse


def squares(P: Floats) -> Floats:
    """Of every variable, over all blocks, (m,)."""
    return np.asarray((P[:, :-1] ** 2).sum(axis=0))


def moved_by(then: Floats, P: Floats) -> Floats:
    """What scales rows and columns of an inverse from an iterate with the squares ``then`` to that
    of the columns P, (m,)."""
    return np.sqrt(then / np.maximum(squares(P), _TINY))


class Directions:
    """Directions w of one Schur matrix S that gradients went along, (count, m), and S w: all
    wᵀS w are one, and they are conjugate, so that W Wᵀ is the inverse on what they span (Erhel and
    Guyomarc'h, 2000). As many as there is room for are kept, the latest ones."""

    def __init__(self, P: Floats) -> None:
        m = P.shape[1] - 1
        self._most = int(max(TUNING.least_directions, TUNING.direction_entries // m))
        self._w, self._image = np.empty((2, 0, m))
        self._count, self._squares = 0, squares(P)

    def __len__(self) -> int:
        return int(min(self._count, self._most))

    def add(self, direction: Floats, image: Floats) -> None:
        """Take a direction of length one."""
        size = len(self._w)
        if self._count == size < self._most:
            more = np.empty((min(max(size, 32), self._most - size), len(direction)))
            self._w, self._image = np.vstack([self._w, more]), np.vstack([self._image, more])
        place = self._count % self._most
        self._w[place], self._image[place] = direction, image
        self._count += 1

    @property
    def _kept(self) -> tuple[Floats, Floats]:
        return self._w[: len(self)], self._image[: len(self)]

    def part(self, right: Floats) -> tuple[Floats, Floats]:
        """The solution for a right-hand side (m,) on their span, and what it leaves."""
        w, image = self._kept
        share = w @ right
        return share @ w, right - share @ image

    def conjugate(self, towards: Floats) -> Floats:
        """A direction (m,) made conjugate to all of them."""
        w, image = self._kept
        return np.asarray(towards - (image @ towards) @ w, np.float64)

    def updated(self, inverse: Inverse, P: Floats) -> Inverse:
        """A preconditioner that is the inverse on their span, for the matrix that they belong to
        (Gratton, Sartenaer and Tshimanga, 2011), scaled to the columns P."""
        if not len(self):
            return inverse
        scale = moved_by(self._squares, P)
        w, image = self._kept
        w, image = (w * scale).astype(np.float32), (image / scale).astype(np.float32)

        def better(residual: Floats) -> Floats:
            share = w @ residual.astype(np.float32)
            found = inverse(residual - share @ image)
            return np.asarray(found + (share - image @ found.astype(np.float32)) @ w, np.float64)

        return better


class Earlier(NamedTuple):
    """What one iterate leaves to the next: the kind of its preconditioner, itself, where that will
    do, and the directions of its gradients."""

    stage: int
    conditioner: Conditioner | None = None
    directions: Directions | None = None


def pushed(backend: Backend, y: Floats, shape: tuple[int, int]) -> Floats:
    """H_o⁻¹ y for every block, of the shape of the columns (blocks, m + 1)."""
    part = np.zeros((shape[0], 1, shape[1]))
    part[:, 0, :-1] = y
    backend.solve(part)
    return part[:, 0]


class Parts(Backend, Protocol):
    """A backend whose row sums are iterated on."""

    stages: range
    """The preconditioners that there are for an iterate, one better than the other; one begins with
    the last that was needed before, but for the very last of several."""
    roughest: float
    """What residuals fall to at least."""

    def conditioner(self, state: State, stage: int) -> Conditioner:
        """Factor the blocks and make a preconditioner. Raises LinAlgError where that cannot be."""

    def summed(self, y: Floats, rough: bool) -> Floats:
        """Σ_o H_o⁻¹ y, (m,); ``rough`` where half the digits will do."""


class SumsSolver:
    """Solves Σ_o H_o⁻¹ y = right by conjugate gradients, preconditioned by part of the matrix, of
    this iterate or an earlier one, and by a better one where that does not lead on. What gradients
    went along is kept for later right-hand sides, and updates the next iterate's preconditioner."""

    def __init__(
        self, backend: Parts, state: State, goal: float, earlier: Earlier | None = None
    ) -> None:
        """Factors the blocks. Residuals are to fall to ``goal``, relatively. Raises LinAlgError
        where a block cannot be factored."""
        self._backend, self._state, self._goal = backend, state, goal
        self._gradients, self._directions = 0, Directions(state.P)
        earlier = earlier or Earlier(backend.stages.start)
        self._stage, conditioner, self._before = earlier
        self._made = conditioner is None
        if conditioner is None:
            self._make_again()
        else:
            require(backend.factor(state.rows, NOTHING))
            self._take(conditioner)

    @property
    def left(self) -> Earlier:
        """What the next iterate may use."""
        lasts = self._gradients <= self._conditioner.lasting
        return Earlier(self._stage, self._conditioner if lasts else None, self._directions)

    def _take(self, conditioner: Conditioner) -> None:
        self._conditioner = conditioner
        self._inverse = conditioner.at(self._state.P)
        if self._before is not None and (conditioner.updated or not self._made):
            self._inverse = self._before.updated(self._inverse, self._state.P)

    def _make(self) -> None:
        self._made = True
        self._take(self._backend.conditioner(self._state, self._stage))

    def _make_again(self) -> None:
        """Make the kind that was needed last; the best of several was for that iterate only."""
        stages = self._backend.stages
        self._stage = min(self._stage, max(stages.start, stages.stop - 2))
        self._make()

    def solve(self, right: Floats) -> tuple[Floats, Floats]:
        """y, and H_o⁻¹ y for every block, (blocks, m + 1)."""
        known = self._directions
        towards = self._inverse(right)
        goal = self._goal**2 * float(right @ towards)
        y, residual = known.part(right)
        if len(known):
            towards = self._inverse(residual)
        product, taken = float(residual @ towards), 0
        while product > goal:
            last = self._made and self._stage == self._backend.stages.stop - 1
            if taken == (TUNING.most_at_last if last else self._conditioner.most):
                if last:
                    break
                if self._made:
                    self._stage += 1
                    self._make()
                else:
                    self._make_again()
                taken = 0
                towards = self._inverse(residual)
                before, product = product, float(residual @ towards)
                goal *= product / before
            direction = known.conjugate(towards)
            image = self._backend.summed(direction, self._goal >= TUNING.rough)
            length = float(np.sqrt(direction @ image))
            direction /= length
            image /= length
            known.add(direction, image)
            step = float(residual @ direction)
            y += step * direction
            residual -= step * image
            towards = self._inverse(residual)
            product = float(residual @ towards)
            taken += 1
        self._gradients = max(self._gradients, taken)
        if not np.isfinite(y).all():
            raise np.linalg.LinAlgError("conjugate gradients broke down")
        return y, pushed(self._backend, y, self._state.P.shape)
