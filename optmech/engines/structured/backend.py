"""What the Newton iteration asks of the blocks."""

from typing import Any, Protocol

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.engines.structured.rows import Rows

RIDGES = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)
"""What is added to a unit diagonal, one after the other, until a block can be factored."""

Both = tuple[float, float]
"""A number for slacks, and one for multipliers."""

NOTHING: Bools = np.zeros((0, 0), dtype=bool)
"""``wanted`` of inverses where factors are all that is."""


Affine = tuple[float, float, tuple[float, ...]]
"""A predictor: largest -ds/s and -dz/z, and the sums of s z, s dz, ds z and ds dz."""


@record
class Schur:
    """Σ_o A_o H_o⁻¹ A_oᵀ: over row sums (m, m), coupling rows by row sums (N, m),
    coupling rows (N, N)."""

    sums: Floats
    mixed: Floats
    coupling: Floats


class Backend(Protocol):
    """Work on all blocks. Arrays over variables are (blocks, m + 1) with a last column of zeros."""

    correctors: tuple[int, float]
    """Most correctors in an iteration, and the gain in step length below which no more follow:
    they pay where solving costs far less than factoring."""
    parts: bool
    """Whether it makes parts of inverses, with which row sums are iterated on."""
    threads: int
    """How many work at once."""

    def structure(self, rows: Rows, changed: Ints) -> None:
        """Prepare for the rows, which what follows is about; ``changed`` are the blocks whose pairs
        are new."""

    def factor(self, rows: Rows, wanted: Bools | None = None) -> Schur | None:
        """Factor every H_o of the rows, or of the same pairs with other values, which what follows
        is about then; None when a block cannot be. Of the inverses the entries between ``wanted``
        variables (blocks, m) will do."""

    def solve(self, B: Floats) -> None:
        """B[o, q] <- H_o⁻¹ B[o, q] in place, B of shape (blocks, q, m + 1)."""

    def affine_rhs(self, P: Floats, rd: Floats, B: Floats) -> None:
        """B = Gᵀ((-s z - z·residual)/s) - rd."""

    def corrector_rhs(self, weights: Both | None, mu: float, B: Floats) -> None:
        """B = Gᵀ(T/s) with the ``target`` T of a corrector, which is kept in ds2: of the first one,
        or of one after the last was added to the direction with ``weights``."""

    def affine_step(self, P: Floats, dP: Floats) -> Affine:
        """ds, dz from dP."""

    def corrector_step(self, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """ds2, dz2 from dP; per weight w the largest -(ds + w ds2)/s and the same of z."""

    def move(self, weights: Both, step: Both) -> None:
        """s += step·(ds + weight·ds2), and the same for z."""

    def violations(self, P: Floats, level: float) -> tuple[Ints, Ints]:
        """Worst later pair above ``level`` that is not among the rows, for every (block, i) and
        every (block, j), or -1."""

    def majorant(self, P: Floats) -> Floats:
        """The least majorant of every block in the cone."""

    def charge(self, z: Floats, R: Floats) -> None:
        """Subtract Gᵀz from R."""

    def shifted(self, z: Floats, x: Floats) -> Floats:
        """max(0, z + (rows.z/rows.s) G x)."""

    def drain(self, z: Floats, rd: Floats, sweeps: int) -> Floats:
        """Multipliers <= z with which negative reduced costs have gone upstream."""


def target(
    at: tuple[Any, Any], change: tuple[Any, Any], mu: float, first: bool, xp: Any = np
) -> Any:
    """By how much a corrector is to move products s z, arrays of the namespace ``xp``, beside what
    s, z and their changes do to first order: the ``first`` one to mu, the others only towards
    [mu/10, 10 mu] where full steps would lead elsewhere (``gondzio``)."""
    if first:
        return mu - change[0] * change[1]
    return gondzio((at[0] + change[0]) * (at[1] + change[1]), mu, xp)


def gondzio(product: Any, mu: float, xp: Any = np) -> Any:
    """How far products s z, arrays of the namespace ``xp``, are to be moved towards
    [mu/10, 10 mu], and down by no more than 10 mu (Gondzio, 1996)."""
    return xp.clip(xp.clip(product, 0.1 * mu, 10 * mu) - product, -10 * mu, None)
