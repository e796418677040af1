"""A first problem that promises privacy at every point: a region that wild rows do not move, places
that stand for the fixes, reports where people are, and a mesh that is finer there."""

from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.files.lattice import Lattice

PLACES = 280
"""At most, that stand for the fixes: each is a cell of a lattice that holds some."""
REPORTS = 36
_VERTICES, _MOST_VERTICES = 36, 72
"""Of the mesh, for a radius of a fifth of the region, and for smaller ones."""
DEGREE = 3
_PARTS = 64
"""Of the region's extent, at least, that its bounds are whole multiples of: powers of two, so that
triangles can be halved exactly."""
_FINEST = 8.0
"""Cells of the lattice in the radius, at most: few places, such as homes, would each be the middle
of a cell of a metre otherwise, and reported as such."""
_PASSES = 40
_MOST_ROWS = 1e9
"""Of a lattice in a file."""


def whole_bounds(box: Floats) -> Floats:
    """The box grown to multiples of a power of two, a sixty-fourth of it at most."""
    out = np.array(box)
    for k in range(2):
        unit = 2.0 ** np.floor(np.log2((box[k + 2] - box[k]) / _PARTS))
        out[k], out[k + 2] = np.floor(box[k] / unit) * unit, np.ceil(box[k + 2] / unit) * unit
    return out


def lattice_over(
    points: Floats, box: Floats, unit: Floats, degrees: bool, radius: float
) -> Lattice:
    """The finest lattice of about square cells whose occupied ones are few enough, and that are no
    small part of the ``radius``; ``unit`` are the lengths of one of each coordinate."""
    size = (box[2:] - box[:2]) * unit

    def of(count: float) -> Lattice:
        rows, columns = np.maximum(np.rint(count * size[::-1] / size.max()), 1).astype(int).tolist()
        return Lattice(
            kind="lattice", bounds=box.tolist(), rows=rows, columns=columns,
            coordinates="lonlat" if degrees else "plane",
        )  # fmt: skip

    low, high = 1.0, min(max(_FINEST * size.max() / radius, 1.0), _MOST_ROWS)
    if _occupied(of(high), points) <= PLACES:
        return of(high)
    # occupied cells grow with the count, nearly: the last that was few enough is taken
    best = of(low)
    for _ in range(_PASSES):
        count = np.sqrt(low * high)
        found = of(count)
        if _occupied(found, points) <= PLACES:
            best, low = found, count
        else:
            high = count
        if high / low < 1.01:
            break
    return best


def _occupied(lattice: Lattice, points: Floats) -> int:
    cells = lattice.cells_of(points)
    return len(np.unique(cells[cells >= 0]))


def busiest(places: Floats, counts: Floats, unit: Floats, count: int) -> Floats:
    """``count`` of the places around which the others lie, as Lloyd's method finds them from the
    same start every time; where more are, these are closer together."""
    rng = np.random.default_rng(0)
    count = min(count, len(places))
    centres = places[rng.choice(len(places), count, replace=False, p=counts / counts.sum())]
    # distances, not their squares, are what is lost: less weight for what is crowded
    weights = np.sqrt(counts)
    for _ in range(_PASSES):
        nearest = _apart(places, centres, unit).argmin(axis=1)
        moved = centres.copy()
        for k in range(count):
            mine = nearest == k
            if mine.any():
                moved[k] = np.average(places[mine], axis=0, weights=weights[mine])
        if np.array_equal(moved, centres):
            break
        centres = moved
    # the places themselves: no mean of a few rows, which would be a finer point than any cell
    chosen = np.unique(_apart(places, centres, unit).argmin(axis=0))
    return np.asarray(places[chosen])


def _apart(places: Floats, centres: Floats, unit: Floats) -> Floats:
    return np.asarray((((places[:, None] - centres) * unit) ** 2).sum(axis=2))


def vertices_for(radius: float, size: Floats) -> int:
    """Of a mesh: more for a radius that is small beside the region."""
    share = 0.2 * float(size.min()) / radius
    return int(min(_MOST_VERTICES, max(_VERTICES, round(_VERTICES * np.sqrt(share)))))


def rate_of(factor: float, radius: float) -> str:
    """The ε that allows a factor at a radius, exactly: a multiple of a logarithm."""
    part = 1 / Fraction(f"{radius:.12g}")
    head = "" if part == 1 else f"{part} "
    return f"{head}ln {Fraction(f'{factor:.12g}')}"
