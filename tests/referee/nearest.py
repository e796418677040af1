"""Nearest places and nearest points of regions, against brute force on vectors of 40 digits: in the
plane and on the globe, over 180 degrees, at poles, of degenerate sizes; and pairs of positions
against what a packed file says of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import mpmath
import numpy as np
from optmech_devices.packed.meshes import Areas
from optmech_devices.packed.places import Finder, reach_of

import optmech as om

mpmath.mp.dps = 40
EARTH = mpmath.mpf("6371.0088")
SLACK = 1e-9
"""Kilometres, or units: of positions in float64."""
Point = Sequence[float]


@cache
def vector(longitude: float, latitude: float) -> tuple[Any, Any, Any]:
    a, b = (mpmath.mpf(v) * mpmath.pi / 180 for v in (longitude, latitude))
    return mpmath.cos(a) * mpmath.cos(b), mpmath.sin(a) * mpmath.cos(b), mpmath.sin(b)


def apart(p: Point, q: Point, globe: bool) -> Any:
    """Kilometres of the straight line through the globe, which grows with the great circle's; units
    in the plane."""
    a, b = (vector(*p), vector(*q)) if globe else (map(mpmath.mpf, p), map(mpmath.mpf, q))
    line = mpmath.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))
    return EARTH * line if globe else line


def positions(rng: np.random.Generator, box: Point, globe: bool, count: int) -> list[list[float]]:
    """In and around a box, far away, at its corners and borders, at poles, a turn further."""
    west, south, east, north = box
    wide, high = east - west, north - south
    out = []
    for _ in range(count):
        stretch = rng.choice([0.0, 0.3, 3.0])
        x = rng.uniform(west - stretch * wide, east + stretch * wide)
        y = rng.uniform(south - stretch * high, north + stretch * high)
        kind = rng.integers(8)
        if kind == 0:
            x, y = rng.choice([west, east]), rng.choice([south, north])
        elif kind == 1:
            x = rng.choice([west, east])
        elif kind == 2 and globe:
            x, y = rng.uniform(-180, 180), rng.choice([-90.0, 90.0, 0.0, rng.uniform(-90, 90)])
        elif kind == 3 and globe:
            # from the antipode of the region the farthest and the nearest change places
            x, y = (west + east) / 2 + 180 + rng.normal(0, 5), -(south + north) / 2
        elif kind == 4:
            x = x + 360 * rng.integers(-1, 2) if globe else x * 1e6
        out.append([float(x), float(min(max(y, -90), 90)) if globe else float(y)])
    return out


def boxes(rng: np.random.Generator, globe: bool) -> tuple[float, float, float, float]:
    """Of all sizes, also very thin; over 180 degrees, or up to a pole."""
    if not globe:
        x, y = rng.normal(0, 10.0 ** rng.integers(-3, 4), 2)
        wide, high = 10.0 ** rng.uniform(-3, 3, 2)
        return float(x), float(y), float(x + wide), float(y + high)
    wide, high = 10.0 ** rng.uniform(-4, 1.5, 2)
    west = rng.choice([rng.uniform(-180, 180 - wide), 180 - wide, 180 - wide / 2, -180.0])
    south = rng.choice([rng.uniform(-80, 80 - high), -90.0, 90 - high, 0.0])
    return float(west), float(south), float(west + wide), float(south + high)


def of_points(rng: np.random.Generator, globe: bool) -> Iterator[str]:
    """Domains of points: equal ones, one alone, lattices with ties."""
    box = boxes(rng, globe)
    n = int(rng.choice([1, 2, 5, 40]))
    points = rng.uniform(box[:2], box[2:], (n, 2))
    if rng.random() < 0.3:
        points = np.round(points, 1)
    points[:, 1] = np.clip(points[:, 1], -90, 90) if globe else points[:, 1]
    if globe and rng.random() < 0.5:
        points[:, 0] = (points[:, 0] + 180) % 360 - 180
    kind = "lonlat" if globe else "plane"
    domain = om.Domain(range(n), points, coordinates=kind)
    asked = np.array(positions(rng, box, globe, 6))
    if rng.random() < 0.3:
        asked[0] = points[:2].mean(axis=0)
    packed = Finder(domain, reach_of(domain), "nearest").find(asked)
    protected = domain.locate(asked)
    if not np.array_equal(packed, protected):
        yield f"packed {packed}, protect {protected} of {asked.tolist()} in {points.tolist()}"
    for position, found in zip(asked.tolist(), packed.tolist(), strict=True):
        away = [apart(position, p, globe) for p in points.tolist()]
        slack = SLACK * (1 + max(map(abs, position)))
        if away[found] > min(away) + slack:
            yield f"{position}: place {found} is {away[found]} away, the nearest {min(away)}"


def of_grid(rng: np.random.Generator, globe: bool) -> Iterator[str]:
    """The cell of the nearest point of a rectangle."""
    box = boxes(rng, globe)
    rows, columns = (int(v) for v in rng.integers(1, 7, 2))
    if globe:
        if rng.random() < 0.2:
            box = (box[0], box[1], box[0] + 350, box[3])
            box = (box[0] - 360, *box[1:3], box[3]) if box[2] > 360 else box
            box = (box[0], box[1], box[0] + 350, box[3])
        grid = om.Grid.geographic(rows, columns, box)
    else:
        cell = (box[2] - box[0]) / columns, (box[3] - box[1]) / rows
        grid = om.Grid(rows, columns, cell, origin=box[:2])
        box = (*box[:2], box[0] + columns * cell[0], box[1] + rows * cell[1])
    asked = np.array(positions(rng, box, globe, 6))
    inside = grid.nearest(asked)
    if (grid.locate(inside) < 0).any():
        yield f"{inside.tolist()} is not in {box}"
    if not np.array_equal(Finder(grid, None, "nearest").find(asked), grid.locate(inside)):
        yield f"another cell in a packed file for {asked.tolist()} in {box}"
    yield from feet(asked, inside, ring(box), box, globe)


def ring(box: Point) -> list[tuple[Point, Point]]:
    west, south, east, north = box
    corners = [(west, south), (east, south), (east, north), (west, north)]
    return list(zip(corners, corners[1:] + corners[:1], strict=True))


def of_mesh(rng: np.random.Generator, globe: bool) -> Iterator[str]:
    """The nearest point of a polygon, for protect and for packed files; and pairs of positions."""
    mesh = polygon(rng, globe)
    if mesh is None:
        return
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    box = (*low.tolist(), *high.tolist())
    asked = np.array(positions(rng, box, globe, 5))
    try:
        snap = Areas(mesh).snap
    except om.ProblemError:
        return
    triangles, weights = Areas(mesh).of(asked, "nearest")
    shares = weights / 2.0**24
    moved = np.einsum("nk,nkd->nd", shares, mesh.vertices[mesh.triangles[triangles]])
    held = [mesh.locate_exactly(p) is not None for p in asked.tolist()]
    led = asked.copy()
    lost = ~np.array(held)
    led[lost] = mesh.nearest(asked[lost]) if lost.any() else led[lost]
    wide = max(box[2] - box[0], box[3] - box[1])
    for k, (position, own, other) in enumerate(
        zip(asked.tolist(), moved.tolist(), led.tolist(), strict=True)
    ):
        if mesh.locate_exactly(other) is None:
            yield f"{other} is not in the region"
        if held[k]:
            off = apart(position, own, globe)
            if off > snap + 1e-12 * (1 + max(map(abs, position))):
                yield f"{position} is moved by {off}, not by {snap} at most"
            continue
        away = apart(own, other, globe) / (111.2 if globe else 1)
        if away > 1e-8 * wide + snap:
            yield f"{position}: packed {own}, protect {other}"
    own_feet = np.array([own for own, ok in zip(moved, held, strict=True) if not ok]).reshape(-1, 2)
    yield from feet(asked[lost], own_feet, outline(mesh), None, globe, 2 * snap)


def feet(
    asked: np.ndarray, found: np.ndarray, edges: list[tuple[Point, Point]], box: Point | None,
    globe: bool, slack: float = 0.0,
) -> Iterator[str]:  # fmt: skip
    """No foot is further away than the nearest of many points of the border, by more than the
    theory allows for chords."""
    for position, foot in zip(asked.tolist(), found.tolist(), strict=True):
        if box is not None and inside(position, box, globe):
            if apart(position, foot, globe) > SLACK * (1 + abs(position[0])):
                yield f"{position} lies inside of {box}, and is led to {foot}"
            continue
        own = apart(position, foot, globe)
        least, chords = nearest_of(position, edges, globe)
        size = 1e-14 * (abs(position[0]) + abs(position[1]) + abs(foot[0]) + abs(foot[1]))
        allowed = slack + chords + size + SLACK * own
        if own > least + allowed:
            yield f"{position} is led to {foot}, {own} away, and {least} would do: {edges}"


def inside(position: Point, box: Point, globe: bool) -> bool:
    """Whether a rectangle holds a position, whichever way around the globe it is written."""
    x, y = position
    turns = (0, -360, 360, -720, 720) if globe else (0,)
    return any(box[0] <= x + t <= box[2] for t in turns) and box[1] <= y <= box[3]


def nearest_of(position: Point, edges: list[tuple[Point, Point]], globe: bool) -> tuple[Any, Any]:
    """The least distance to a border, by a golden section around the best of points along each
    edge; and by how much chords of its parts may miss that."""
    least, chords = mpmath.inf, mpmath.mpf(0)
    for start, end in edges:
        step = [b - a for a, b in zip(start, end, strict=True)]

        def at(t: float, start: Point = start, step: Point = step) -> float:
            p = [a + t * d for a, d in zip(start, step, strict=True)]
            return quick(position, p, globe)

        grid = np.linspace(0, 1, 41)
        best = int(np.argmin([at(t) for t in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
        for _ in range(45):
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, b) if at(a) < at(b) else (a, high)
        for t in (0.0, 1.0, (low + high) / 2):
            point = [a + t * d for a, d in zip(start, step, strict=True)]
            least = min(least, apart(position, point, globe))
        if globe:
            parts = min(max(math.ceil(max(map(abs, step)) * 16), 1), 256)
            turn = mpmath.mpf(sum(map(abs, step))) * mpmath.pi / 180 / parts
            chords = max(chords, EARTH * turn**2 / 4)
    return least, chords


def quick(p: Point, q: Point, globe: bool) -> float:
    """What grows with it, in floats, for searching."""
    if not globe:
        return math.hypot(p[0] - q[0], p[1] - q[1])
    a, b = math.radians(p[1]), math.radians(q[1])
    lon = math.radians(p[0] - q[0])
    return math.sin((a - b) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(lon / 2) ** 2


def polygon(rng: np.random.Generator, globe: bool) -> om.Mesh | None:
    """A convex polygon in a fan or in squares; None where a region is none."""
    box = boxes(rng, globe)
    kind = "lonlat" if globe else "plane"
    if globe and (abs(box[1]) > 84 or abs(box[3]) > 84):
        box = (box[0], max(box[1] * 0.9, -84.0), box[2], min(box[3] * 0.9, 84.0))
    if not box[1] < box[3]:
        return None
    try:
        if rng.random() < 0.5:
            size = max((box[2] - box[0]), (box[3] - box[1])) / 2
            return om.Mesh.grid(box, size * (111 if globe else 1), coordinates=kind)
        count = int(rng.integers(3, 7))
        turns = 2 * np.pi * (np.arange(count) + rng.uniform(0, 0.9, count)) / count
        middle = np.array([(box[0] + box[2]) / 2, (box[1] + box[3]) / 2])
        half = np.array([box[2] - box[0], box[3] - box[1]]) / 2
        corners = middle + half * np.column_stack([np.cos(turns), np.sin(turns)])
        return om.Mesh(corners, [(0, k, k + 1) for k in range(1, count - 1)], coordinates=kind)
    except om.ProblemError:
        return None


def outline(mesh: om.Mesh) -> list[tuple[Point, Point]]:
    edges = [(int(t[k]), int(t[(k + 1) % 3])) for t in mesh.triangles for k in range(3)]
    known = set(edges)
    at = mesh.vertices.tolist()
    return [(at[a], at[b]) for a, b in edges if (b, a) not in known]


def judge(rng: np.random.Generator) -> Iterator[str]:
    globe = bool(rng.random() < 0.7)
    kind = rng.integers(3)
    yield from (of_points, of_grid, of_mesh)[kind](rng, globe)
