"""Rows across the reports of a program over a mesh, B p + E u <= h with free unknowns u: bounds on
a loss, and the adversary's guesses, which u is the least error or the largest gain of.

Newton's equations with them are those without, changed by the weight v/s of every row: with K their
inverse, the rows' own are I + √D (B K Bᵀ) √D, as many as there are rows. (Woodbury's identity; D
enters through its roots, so that neither tight nor slack rows make it badly scaled.)
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from optmech.base.arrays import Floats
from optmech.lp.place_rows import Links

_ROWS = 32
"""Rows whose solutions are held at a time."""
_LEAST = 0.1
"""The least slack at the start, in units of a row."""


class Linked:
    """u, the slacks s and the multipliers v of the rows, and steps of these."""

    def __init__(self, links: Links, p: Floats, mu: float) -> None:
        self.links, self._shape = links, p.shape
        self.u = links.start.copy()
        left = self.left(p)
        self.s = left if (left > 0).all() else np.maximum(left, _LEAST)
        self.v = mu / self.s
        if links.free.size:
            # nearly f + Eᵀ v = 0: u would run away where all rows weigh little
            scaled = links.free / self.s[:, None]
            step = np.linalg.lstsq(scaled.T @ scaled, -self.dual, rcond=None)[0]
            self.v = np.maximum(self.v + scaled @ step / self.s, self.v / 10)

    def left(self, p: Floats) -> Floats:
        """h − B p − E u."""
        links = self.links
        return np.asarray(links.most - links.rows @ p.ravel() - links.free @ self.u)

    def columns(self, v: Floats) -> Floats:
        """Bᵀ v, (O, N)."""
        return np.asarray(self.links.rows.T @ v).reshape(self._shape)

    @property
    def dual(self) -> Floats:
        """What multipliers miss of the equations of u: f + Eᵀ v."""
        return self.links.costs + self.links.free.T @ self.v

    def move(self, p: Floats, primal: float, du: Floats, ds: Floats) -> None:
        """u and s along their directions; where s is what is left of the rows but for rounding, it
        becomes that."""
        self.u += primal * du
        self.s += primal * ds
        left = self.left(p)
        if (np.abs(left - self.s) <= 0.1 * self.s).all():
            self.s = left


class Bordered:
    """The equations of reports and row sums, and of the rows across them."""

    def __init__(self, linked: Linked, solve: Callable[[Floats], Floats]) -> None:
        self._linked, self._solve = linked, solve
        self.root = np.sqrt(linked.v / linked.s)
        rows = sp.diags_array(self.root) @ linked.links.rows
        self._rows, self._free = rows, self.root[:, None] * linked.links.free
        count, shape = rows.shape[0], linked._shape
        inner = np.eye(count)
        for begin in range(0, count, _ROWS):
            part = rows[begin : begin + _ROWS].toarray()
            found = solve(np.ascontiguousarray(part.T).reshape(*shape, len(part)))
            inner[:, begin : begin + _ROWS] += rows @ found.reshape(-1, len(part))
        self._inner = cho_factor((inner + inner.T) / 2, lower=True, check_finite=False)
        self._through = cho_solve(self._inner, self._free, check_finite=False)
        own = _finite(self._free.T @ self._through)
        self._own = cho_factor(own, lower=True) if own.size else None

    def solved(self, right: Floats, free: Floats) -> tuple[Floats, Floats, Floats]:
        """x, du and w with M x + Bᵀ w − r the same for all reports, Σ_o x_o = 0,
        w = D (B x + E du) and Eᵀ w = ``free``."""
        start = self._rows @ self._solve(right).ravel()
        w = cho_solve(self._inner, start, check_finite=False)
        du = np.zeros(len(free))
        if self._own is not None:
            du = cho_solve(self._own, _finite(free - self._free.T @ w))
            w = w + self._through @ du
        weight = self.root * w
        return self._solve(right - self._linked.columns(_finite(weight))), du, weight


def _finite(values: Floats) -> Floats:
    """Numbers as they are; LinAlgError, as of equations without a solution, where some are none."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError("numbers that are not finite")
    return values
