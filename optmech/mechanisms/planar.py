"""Planar Laplace and Gaussian noise on rectangular cells, by the exact mass of every cell.

The noise is added to the centre of the secret's cell; the cell that the noisy point falls into is
reported. **Tails**: a point outside the area is moved to the nearest point of it, so that a cell on
the border receives all beyond it.

Laplace (Andrés et al., CCS 2013): density ε²/(2π) e^{-ε|z|}. The mass of a rectangle seen from the
origin is ∫ (G(near(θ)) - G(far(θ))) dθ/2π over the directions that meet it, with
G(r) = (1 + εr) e^{-εr} the mass beyond radius r. Between the directions of the four corners the
integrand is smooth, and Gauss–Legendre nodes are doubled until no mass changes by more than
10⁻¹² of itself, so that ratios of small masses are right as well. Where ε is small against a cell
that reaches to infinity all changes near the end of a range; a rule that is dense there takes over.
"""

from __future__ import annotations

import math
from itertools import chain, product

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints, normalised_rows, slices, sums_from
from optmech.errors import ProblemError, SolverError, TooLargeError
from optmech.exact.arguments import positive
from optmech.exact.number import Number, float_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.observables import Regions, grid_boxes

ACCURACY = 1e-12
"""Relative accuracy of every cell mass of the Laplace noise above 10⁻²⁵⁰."""

_LEGENDRE = (16, 32, 64, 128)
_LOGISTIC = (257, 513, 1025, 2049)
Rule = tuple[Floats, Floats]
"""Nodes in (0, 1) and weights."""

_BATCH = 2**21
_NEGLIGIBLE = 1e-250
_REACH = 40.0
"""Weights beyond e^{-40} add nothing."""
_TERMS = 14
"""0.5^14 / 15! is below 10⁻¹⁶ of the first term."""


def planar_laplace(cells: Grid | Regions, epsilon: Number) -> Mechanism:
    """Planar Laplace noise of rate ε > 0 per unit, on cells (Kawamoto and Murakami, ESORICS 2019,
    §5.2, §7.4).

    ε-private per unit of Euclidean distance of the centres: the density is, and reporting cells
    is post-processing. Masses are accurate to 10⁻¹² relative, and those below 10⁻²⁵⁰ count as that;
    tails go to the nearest cell.

    Raises
    ------
    ProblemError
        Unless ``cells`` is a Grid or Regions.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> m = om.mechanisms.planar_laplace(cells, epsilon=1.0)
    >>> print(om.measures.epsilon(m, om.distances.euclidean()) <= 1)  # per km
    True
    >>> uniform = om.Prior.uniform(cells)
    >>> print(round(om.measures.expected_loss(m, uniform, om.distances.euclidean()), 3))  # km
    0.628
    """
    rate = float_of(epsilon, "epsilon", positive=True)
    boxes, points = _extended(cells)
    offsets = (boxes - np.tile(points, 2)[:, None, :]).reshape(-1, 4)
    # those that differ by 10⁻¹² of the extent are rounding of the same offset on a grid
    unit = (np.abs(offsets[np.isfinite(offsets)]).max(initial=0.0) or 1.0) * 1e-12
    keys = np.rint(offsets / unit)
    _, first, where = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    masses = np.maximum(_laplace(rate * offsets[first]), _NEGLIGIBLE)[where.ravel()]
    return Mechanism(cells, cells, normalised_rows(masses.reshape(len(cells), -1)))


def planar_gaussian(cells: Grid | Regions, sigma: float) -> Mechanism:
    """Gaussian noise of standard deviation ``sigma`` > 0 per coordinate, on cells (Kawamoto and
    Murakami, ESORICS 2019, §7.4).

    Never private with δ = 0 in the plane; ``measures.delta`` gives its (ε, δ) on the cells. Masses
    are products of differences of the normal distribution function; tails go to the nearest cell.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> m = om.mechanisms.planar_gaussian(cells, sigma=1.0)
    >>> print(m.matrix[0].round(4))  # Φ(1/2)² stays: 0.6915 * 0.6915
    [0.4781 0.2133 0.2133 0.0952]
    """
    from scipy.special import ndtr

    spread = positive(sigma, "sigma")
    boxes, points = _extended(cells)
    matrix = np.ones((len(cells), len(cells)))
    for axis in (0, 1):
        low = (boxes[None, :, axis] - points[:, None, axis]) / spread
        high = (boxes[None, :, axis + 2] - points[:, None, axis]) / spread
        # on the side where both tails are small, their difference loses nothing
        flip = low > 0
        matrix *= ndtr(np.where(flip, -low, high)) - ndtr(np.where(flip, -high, low))
    return Mechanism(cells, cells, normalised_rows(matrix))


def _extended(cells: Grid | Regions) -> tuple[Floats, Floats]:
    """(west, south, east, north) of every cell, outer borders moved to infinity, and its centre."""
    if isinstance(cells, Regions):
        boxes = cells.boxes.copy()
    elif isinstance(cells, Grid):
        boxes = grid_boxes(cells)
    else:
        raise ProblemError(
            f"{type(cells).__name__} has no rectangular cells",
            where="cells",
            remedy="Use a Grid or Regions, or the exponential mechanism",
        )
    for column, outwards in zip(boxes.T, (-np.inf, -np.inf, np.inf, np.inf), strict=True):
        border = column.min() if outwards < 0 else column.max()
        span = np.ptp(column) or 1.0
        column[np.abs(column - border) <= 1e-9 * span] = outwards
    return boxes, cells.require_points("add planar noise")


def _laplace(boxes: Floats) -> Floats:
    """Mass of every box under the density e^{-|z|}/2π, shape (k,)."""
    total = np.zeros(len(boxes))
    for signs in product((1.0, -1.0), repeat=2):
        # the part of every box in one quadrant, mirrored into the first
        corners = np.maximum(np.sort(boxes.reshape(-1, 2, 2) * signs, axis=1), 0.0)
        live = (corners[:, 0] < corners[:, 1]).all(axis=1)
        total[live] += _quadrant_mass(corners[live].reshape(-1, 4))
    return total


def _quadrant_mass(boxes: Floats) -> Floats:
    """Mass of boxes x0 <= x <= x1, y0 <= y <= y1 with x0, y0 >= 0; x1 and y1 may be infinite."""
    # directions near 0 are resolved on any scale, those near π/2 are not
    upright = np.isinf(boxes[:, 3]) & np.isfinite(boxes[:, 2])
    boxes = np.where(upright[:, None], boxes[:, [1, 0, 3, 2]], boxes)
    rules = chain(map(_legendre, _LEGENDRE), map(_logistic, _LOGISTIC))
    values = _integrate(boxes, next(rules))
    open_ = np.arange(len(boxes))
    for rule in rules:
        finer = _integrate(boxes[open_], rule)
        moved = np.abs(finer - values[open_]) > ACCURACY * finer
        values[open_] = finer
        open_ = open_[moved & (finer > _NEGLIGIBLE)]
        if not len(open_):
            return values
    raise SolverError(
        "the mass of a cell did not converge",
        where="planar_laplace",
        remedy="Use cells of less extreme proportions, or the exponential mechanism",
    )


def _integrate(boxes: Floats, rule: Rule) -> Floats:
    """A rule on (0, 1), applied to each of the three ranges of directions between corners."""
    share_of_range, weight = rule
    out = np.empty(len(boxes))
    for part in slices(len(boxes), 3 * len(weight), _BATCH):
        x0, y0, x1, y1 = boxes[part].T[:, :, None, None]
        corners = [_angle(y, x) for y, x in product((y0, y1), (x1, x0))]
        angles = np.sort(np.concatenate(corners, axis=1), axis=1)
        low, high = angles[:, :-1], angles[:, 1:]
        theta = low + (high - low) * share_of_range
        with np.errstate(all="ignore"):
            cosine, sine = np.cos(theta), np.sin(theta)
            near = np.maximum(x0 / cosine, y0 / sine)
            far = np.minimum(x1 / cosine, y1 / sine)
            share = _between(near, np.maximum(near, far)) * weight * (high - low)
        # a range without width, between corners in one direction, may have no radius at all
        share = np.where(high > low, share, 0.0)
        out[part] = share.sum(axis=(1, 2)) / (2 * np.pi)
    return out


def _legendre(nodes: int) -> Rule:
    x, weight = np.polynomial.legendre.leggauss(nodes)
    return (1 + x) / 2, weight / 2


def _logistic(nodes: int) -> Rule:
    """The trapezoidal rule after θ = 1/(1 + e^{-u}): what changes at an end of the range, on
    whatever scale, changes on the scale 1 of u."""
    u = np.linspace(-_REACH, _REACH, nodes)
    tail = np.exp(-np.abs(u))
    return np.where(u > 0, 1.0, tail) / (1 + tail), tail / (1 + tail) ** 2 * (u[1] - u[0])


def _angle(y: Floats, x: Floats) -> Floats:
    """Direction of a corner; at infinity in both coordinates any direction between will do."""
    both = np.isinf(x) & np.isinf(y)
    return np.where(both, np.pi / 4, np.arctan2(y, x))


def _between(near: Floats, far: Floats) -> Floats:
    """(1 + a) e^{-a} - (1 + b) e^{-b} for a <= b, without cancellation where b - a is small."""
    with np.errstate(all="ignore"):
        width = far - near
        # (1 + b)(1 - e^{-w}) - w, in two terms of which the second is at most half the first
        inner = -far * np.expm1(-width) - _above_tangent(width)
        inner = np.where(np.isinf(far), 1 + near, inner)
        return np.where(np.isinf(near), 0.0, np.exp(-near) * inner)


def _above_tangent(w: Floats) -> Floats:
    """e^{-w} - 1 + w for w >= 0, accurately: by its series where the terms would cancel."""
    small = np.minimum(w, 0.5)
    series = np.zeros_like(small)
    for k in range(_TERMS, 1, -1):
        series = (1.0 - series) * small / k
    return np.where(w < 0.5, series * small, np.expm1(-w) + w)


_REST = 48.0
"""What lies farther than this many units of 1/ε beyond the grid is less than 10⁻¹⁸ of any cell."""
_MOST = 8000
"""Steps that are summed in each direction."""


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

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> m = om.mechanisms.planar_geometric(cells, epsilon=1.0)
    >>> print(round(om.measures.epsilon(m, om.distances.euclidean()), 4) <= 1)  # per km
    True
    """
    rate = float_of(epsilon, "epsilon", positive=True)
    if not isinstance(cells, Grid):
        raise ProblemError(
            f"{type(cells).__name__} is not a grid",
            where="cells",
            remedy="Use a Grid, or planar_laplace or exponential",
        )
    counts, sides = (cells.rows, cells.columns), cells.cell[::-1]
    reach = [n + math.ceil(_REST / (rate * side)) for n, side in zip(counts, sides, strict=True)]
    if max(reach) > _MOST:
        raise TooLargeError(
            f"the noise reaches {max(reach):,} cells",
            where="epsilon",
            remedy="Use a larger ε, larger cells, or planar_laplace",
        )
    if min(counts) == 1:
        raise ProblemError(
            "the grid is a line",
            where="cells",
            remedy="Use mechanisms.geometric, or at least 2 rows and columns",
        )
    y, x = (np.arange(steps + 1) * side for steps, side in zip(reach, sides, strict=True))
    kernel = np.maximum(np.exp(-rate * np.hypot(x, y[:, None])), _NEGLIGIBLE)
    across = sums_from(kernel, 1)
    # the mass at an offset, or of all beyond it: in columns, in rows, in both
    masses = [kernel, across, sums_from(kernel, 0), sums_from(across, 0)]
    near = np.stack([mass[: cells.rows, : cells.columns] for mass in masses])
    (rows, top), (columns, side) = map(_steps, counts)
    # of secret (r, c) and cell (r', c'), shape (R, C, R', C')
    matrix = near[2 * top[:, None] + side, rows[:, None, :, None], columns[:, None, :]]
    return Mechanism(cells, cells, normalised_rows(matrix.reshape(len(cells), len(cells))))


def _steps(count: int) -> tuple[Ints, Bools]:
    """Steps between places of a line, and which of them are its ends."""
    place = np.arange(count)
    return np.abs(place[:, None] - place), (place == 0) | (place == count - 1)
