"""Small pictures in SVG for the gallery: matrices in shades, weights on maps.

Without scripts, and of bounded size.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from optmech.base.arrays import Floats
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.observables import Regions

_SIDE = 32
"""Blocks along a side of a picture, at most."""
_MARKS = 400
"""Points of a map, at most."""
_SHADES = 8
_WIDTH, _HEIGHT = 240, 200


def picture(domain: Domain, values: Floats) -> str:
    """Numbers >= 0, one for every label, on a map where there is one, else in a row."""
    if isinstance(domain, Grid):
        label = f"{domain.rows} x {domain.columns} cells"
        return shades(values.reshape(domain.rows, domain.columns)[::-1], label, domain.cell)
    if isinstance(domain, Regions):
        return boxes(domain.boxes, values.tolist(), f"{len(domain)} regions")
    label = f"a shade for each of {len(domain)} labels"
    if domain.points is None or domain.points.shape[1] > 2:
        return shades(values[None, :], label)
    return marks(domain.points, values.tolist(), label)


def shades(values: Floats, label: str, cell: tuple[float, float] = (1.0, 1.0)) -> str:
    """A matrix of numbers >= 0 as a picture of cells of this width and height, darker for larger
    numbers, with row 0 at the top; a large one in blocks with their largest entries."""
    small = _blocks(values)
    rows, columns = small.shape
    width = cell[0] / cell[1] * (values.shape[1] / columns) / (values.shape[0] / rows)
    cells = [(x * width, float(y), width, 1.0) for y, x in np.ndindex(rows, columns)]
    return _svg(_shaded(cells, small.ravel().tolist()), (columns * width, rows), label)


def boxes(edges: Floats, values: Sequence[float], label: str) -> str:
    """Rectangles (west, south, east, north), shape (n, 4), on a map with north up, darker for
    larger numbers >= 0."""
    west, north = float(edges[:, 0].min()), float(edges[:, 3].max())
    east, south = float(edges[:, 2].max()), float(edges[:, 1].min())
    cells = [(x0 - west, north - y1, x1 - x0, y1 - y0) for x0, y0, x1, y1 in edges.tolist()]
    return _svg(_shaded(cells, values), (east - west, north - south), label)


def marks(points: Floats, values: Sequence[float], label: str) -> str:
    """Points, shape (n, 1) or (n, 2), on a map with north up, darker for larger numbers >= 0; of
    many the heaviest."""
    heaviest = np.sort(np.argsort(-np.asarray(values), kind="stable")[:_MARKS])
    plane = np.column_stack([points, np.zeros(len(points))])[heaviest, :2]
    extent = float(np.ptp(plane, axis=0).max()) or 1.0
    side = extent / max(8.0, min(40.0, 2.0 * float(np.sqrt(len(heaviest)))))
    edges = np.hstack([plane - side / 2, plane + side / 2])
    return boxes(edges, [float(values[k]) for k in heaviest], label)


def _shaded(cells: Sequence[tuple[float, float, float, float]], values: Sequence[float]) -> str:
    """One path for every shade, with light lines between the cells."""
    top = max(values, default=0.0)
    paths: dict[int, list[str]] = {}
    for (x, y, width, height), value in zip(cells, values, strict=True):
        shade = int(np.ceil(_SHADES * value / top)) if top > 0 else 0
        paths.setdefault(shade, []).append(
            f"M{x:.6g} {y:.6g}h{width:.6g}v{height:.6g}h{-width:.6g}z"
        )
    return "".join(
        f"<path fill='rgb({247 - 30 * shade},{251 - 22 * shade},{255 - 12 * shade})' stroke='#fff' "
        "stroke-width='0.5' vector-effect='non-scaling-stroke' "
        f"d='{''.join(parts)}'/>"
        for shade, parts in sorted(paths.items())
    )


def _svg(inside: str, size: tuple[float, float], label: str) -> str:
    width, height = size
    scale = min(_WIDTH / max(width, 1e-300), _HEIGHT / max(height, 1e-300))
    return (
        f"<svg width='{width * scale:.0f}' height='{height * scale:.0f}' "
        f"viewBox='0 0 {width:.6g} {height:.6g}' preserveAspectRatio='none' role='img' "
        f"aria-label='{escape(label)}' style='border:1px solid #999'>"
        f"<title>{escape(label)}</title>{inside}</svg>"
    )


def _blocks(values: Floats) -> Floats:
    """At most ``_SIDE`` rows and columns, each the largest of a block."""
    for axis in (0, 1):
        count = values.shape[axis]
        if count > _SIDE:
            starts = np.unique(np.arange(_SIDE) * count // _SIDE)
            values = np.maximum.reduceat(values, starts, axis=axis)
    return values
