"""Outlines: areas and neighbourhoods known from elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

import optmech as om
from optmech.spaces.layout import Layout, layout


def rings(drawn: Layout) -> list[np.ndarray]:
    return np.split(drawn.corners, drawn.ring_ends[:-1])


def area(ring: np.ndarray) -> float:
    x, y = ring.T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def test_grid_cells_are_rectangles() -> None:
    drawn = layout(om.Grid(2, 3, cell=(2.0, 0.5), origin=(1.0, 1.0), unit="km"))
    assert drawn is not None
    assert drawn.exact
    np.testing.assert_allclose([area(ring) for ring in rings(drawn)], 1.0)
    np.testing.assert_array_equal(drawn.corners.min(axis=0), (1.0, 1.0))
    np.testing.assert_array_equal(drawn.corners.max(axis=0), (7.0, 2.0))


def test_a_square_lattice_of_points_is_drawn_as_squares() -> None:
    lattice = np.array([(x, y) for x in range(5) for y in range(5)], dtype=float)
    drawn = layout(om.Domain(range(25), lattice))
    assert drawn is not None
    inner = rings(drawn)[12]
    assert area(inner) == pytest.approx(1.0)


def test_what_is_drawn_is_nearest_to_its_point(rng: np.random.Generator) -> None:
    points = rng.uniform(size=(60, 2))
    drawn = layout(om.Domain(range(60), points))
    assert drawn is not None
    assert not drawn.exact
    tree = cKDTree(points)
    for k, ring in enumerate(rings(drawn)):
        middle = ring.mean(axis=0)
        for corner in ring:
            # a hair inside
            assert tree.query(corner + 1e-6 * (middle - corner))[1] == k


def test_degrees_become_kilometres() -> None:
    """One degree of latitude is 111.195 km on the sphere of radius 6371.0088 km; at 60 degrees
    one of longitude is half of that."""
    drawn = layout(om.Domain.geographic("ab", [(10, 59.5), (11, 60.5)]))
    assert drawn is not None
    assert drawn.unit == "km"
    width, height = np.ptp(drawn.centres, axis=0)
    assert height == pytest.approx(111.195, rel=1e-5)
    assert width == pytest.approx(111.195 / 2, rel=1e-5)


def test_equal_points_share_an_outline() -> None:
    drawn = layout(om.Domain("abc", [(0, 0), (0, 0), (1, 0)]))
    assert drawn is not None
    first, second, _ = rings(drawn)
    np.testing.assert_array_equal(first, second)
    assert layout(om.Domain("ab", [(3, 3), (3, 3)])) is not None


@pytest.mark.parametrize(
    "domain", [om.Domain("ab"), om.Domain.range(4), om.Domain("ab", [(0, 0, 1)] * 2)]
)
def test_what_has_no_place_in_the_plane(domain: om.Domain) -> None:
    assert layout(domain) is None
