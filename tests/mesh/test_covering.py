"""Which triangles tile a convex region: against polygon geometry (shapely), and by construction."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from shapely.geometry import Polygon

import optmech as om
from optmech.spaces.mesh.covering import covering_flaw

SQUARE = [(0, 0), (2, 0), (2, 2), (0, 2), (1, 1)]
FAN = [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]


def tiles(places, triangles):
    """Whether areas add up to that of the convex hull without overlap, and edges meet whole."""
    shapes = [Polygon([places[k] for k in corners]) for corners in triangles]
    hull = shapely.MultiPoint(places).convex_hull
    total = sum(shape.area for shape in shapes)
    union = shapely.union_all(shapes)
    hanging = any(
        shape.exterior.distance(shapely.Point(place)) == 0
        for shape, corners in zip(shapes, triangles, strict=True)
        for k, place in enumerate(places)
        if k not in corners
    )
    return (
        min(shape.area for shape in shapes) > 0
        and abs(total - union.area) < 1e-9
        and abs(union.area - hull.area) < 1e-9
        and not hanging
    )


def counterclockwise(places, triangles):
    out = []
    for a, b, c in triangles:
        (ax, ay), (bx, by), (cx, cy) = places[a], places[b], places[c]
        out.append((a, b, c) if (bx - ax) * (cy - ay) > (by - ay) * (cx - ax) else (a, c, b))
    return out


def test_a_fan_tiles_a_square():
    assert covering_flaw(SQUARE, FAN) == ""


@pytest.mark.parametrize("dropped", range(4))
def test_a_triangle_dropped_leaves_a_region_that_is_not_convex(dropped):
    assert "convex" in covering_flaw(SQUARE, FAN[:dropped] + FAN[dropped + 1 :])


@pytest.mark.parametrize(
    ("places", "triangles", "words"),
    [
        (SQUARE, [*FAN, FAN[0]], "on one side"),
        (SQUARE, [*FAN[:3], (0, 3, 4)], "clockwise"),
        (SQUARE, [*FAN, (0, 1, 2)], "on one side"),
        ([*SQUARE, (5, 5)], FAN, "in no triangle"),
        (SQUARE, [], "no triangles"),
        # the middle of the lower side is a corner of a triangle beyond it only
        (
            [*SQUARE, (1, 0), (1, -1)],
            [*FAN, (0, 6, 5), (5, 6, 1)],
            "meets itself",
        ),
        # the centre lies on an edge of the first triangle
        (SQUARE, [(0, 1, 2), (0, 4, 3), (4, 2, 3)], "meets itself"),
        # two squares that share a corner, and two that share nothing
        ([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)], [(0, 1, 2), (0, 3, 4)], "meets itself"),
        ([(0, 0), (1, 0), (0, 1), (9, 9), (9, 8), (10, 9)], [(0, 1, 2), (3, 4, 5)], "one ring"),
        # no area
        ([(0, 0), (1, 1), (2, 2)], [(0, 1, 2)], "no area"),
    ],
)
def test_what_does_not_tile(places, triangles, words):
    assert words in covering_flaw(places, triangles)


def test_a_ring_with_a_hole_is_refused():
    places = [(0, 0), (6, 0), (0, 6), (1, 1), (3, 1), (1, 3)]
    ring = [(0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4), (2, 0, 3), (2, 3, 5)]
    assert "ring" in covering_flaw(places, ring)
    assert covering_flaw(places, [*ring, (3, 4, 5)]) == ""


def test_going_around_twice_is_refused():
    """A fan of ten triangles around one vertex that covers the disc twice."""
    turns = [(10, 0), (3, 9), (-8, 6), (-8, -6), (3, -9)]
    fan = [(0, 1 + k, 1 + (k + 1) % 10) for k in range(10)]
    assert "more than once" in covering_flaw([(0, 0), *turns, *turns], fan)


def test_moved_vertices_are_judged_as_polygon_geometry_judges_them():
    mesh = om.Mesh.grid((0, 0, 4, 3), 1)
    places = [(int(x), int(y)) for x, y in (12 * mesh.vertices).tolist()]
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(150):
        moved = list(places)
        k = int(rng.integers(len(moved)))
        shift = rng.integers(-14, 15, 2)
        moved[k] = (moved[k][0] + int(shift[0]), moved[k][1] + int(shift[1]))
        expected = tiles(moved, mesh.corners)
        # a corner of the region moved outwards stays convex, so its triangles keep their sense
        assert (covering_flaw(moved, mesh.corners) == "") == (
            expected and counterclockwise(moved, mesh.corners) == list(mesh.corners)
        )
        seen.add(expected)
    assert seen == {True, False}


def test_a_last_digit_decides():
    """The middle of a border may bend outwards by the last digit of a float, and not inwards."""
    up, down = np.nextafter(0.0, 1.0), -np.nextafter(0.0, 1.0)
    corners = [(0, 1, 3), (1, 2, 3)]
    for bend, tiled in ((0.0, True), (down, True), (up, False)):
        vertices = [[-1.0, 0.0], [0.0, bend], [1.0, 0.0], [0.0, 1.0]]
        if tiled:
            assert len(om.Mesh(vertices, corners)) == 4
        else:
            with pytest.raises(om.ProblemError, match="not convex"):
                om.Mesh(vertices, corners)
