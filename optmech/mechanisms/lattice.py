"""Planar geometric noise: the discrete counterpart of planar Laplace noise on a grid."""

from __future__ import annotations

import math

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.number import Number, parse_exact
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Grid
from optmech.spaces.mechanism import Mechanism

_REST = 48.0
"""What lies farther than this many units of 1/ε beyond the grid is less than 10⁻¹⁸ of any cell."""
_MOST = 8000
"""Steps that are summed in each direction."""
_LEAST = 1e-250


@checked_arguments
def planar_geometric(cells: Grid, epsilon: Number) -> Mechanism:
    """Planar geometric noise on the cells of a grid: on the infinite grid p(o|s) is proportional to
    e^{-ε ‖s - o‖}, and what falls beyond the border is reported as the nearest cell
    (Chatzikokolakis, ElSalamouny and Palamidessi, Efficient Utility Improvement for Location
    Privacy, PETS 2017).

    ε-private per unit of Euclidean distance of the centres: e^{-ε‖s - o‖} is, up to one constant
    for all secrets, and moving reports to the border is post-processing. Masses below 10⁻²⁵⁰
    count as that.

    Raises
    ------
    ProblemError
        Unless ``cells`` is a Grid; ``TooLargeError`` where ε times the cell is so small that the
        noise reaches 8000 cells beyond the grid.
    """
    rate = float(parse_exact(epsilon, where="epsilon", positive=True))
    if not isinstance(cells, Grid):
        raise ProblemError(
            f"{type(cells).__name__} is not a grid",
            where="cells",
            remedy="Use a Grid, or planar_laplace or exponential",
        )
    width, height = (float(side) for side in cells.cell)
    reach = [
        count + math.ceil(_REST / (rate * side))
        for count, side in ((cells.columns, width), (cells.rows, height))
    ]
    if max(reach) > _MOST:
        raise TooLargeError(
            f"the noise reaches {max(reach):,} cells",
            where="epsilon",
            remedy="Use a larger ε, larger cells, or planar_laplace",
        )
    x, y = np.arange(reach[0] + 1) * width, np.arange(reach[1] + 1) * height
    kernel = np.maximum(np.exp(-rate * np.hypot(x[:, None], y[None, :])), _LEAST)
    # mass at i or beyond in one direction, and in both
    beyond_x = _suffix(kernel, 0)
    beyond_y = _suffix(kernel, 1)
    beyond = _suffix(beyond_x, 1)
    columns, rows = np.arange(cells.columns), np.arange(cells.rows)
    dx = np.abs(columns[:, None] - columns)
    dy = np.abs(rows[:, None] - rows)
    edge_x = (columns == 0) | (columns == cells.columns - 1)
    edge_y = (rows == 0) | (rows == cells.rows - 1)
    if cells.columns == 1 or cells.rows == 1:
        raise ProblemError(
            "the grid is a line",
            where="cells",
            remedy="Use mechanisms.geometric, or at least 2 rows and columns",
        )
    # offsets of secret (r, c) and cell (r', c'), shape (R, C, R', C')
    i, j = dx[None, :, None, :], dy[:, None, :, None]
    at_x, at_y = edge_x[None, None, None, :], edge_y[None, None, :, None]
    matrix = np.where(
        at_x & at_y,
        beyond[i, j],
        np.where(at_x, beyond_x[i, j], np.where(at_y, beyond_y[i, j], kernel[i, j])),
    ).reshape(len(cells), len(cells))
    return Mechanism(cells, cells, matrix / matrix.sum(axis=1, keepdims=True))


def _suffix(values: Floats, axis: int) -> Floats:
    return np.flip(np.cumsum(np.flip(values, axis), axis=axis), axis)
