"""Meshes: making, refining, finding points in them, degrees, and files."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

import optmech as om
from optmech.spaces.mesh.covering import least_share

RADIUS = 6371.0088


def haversine(x, y):
    (a, b), (c, d) = np.radians(x), np.radians(y)
    half = math.sin((d - b) / 2) ** 2 + math.cos(b) * math.cos(d) * math.sin((c - a) / 2) ** 2
    return 2 * RADIUS * math.asin(math.sqrt(half))


def area(mesh):
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    first, second = b - a, c - a
    return float((first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]).sum()) / 2


def test_a_grid_is_halved_squares():
    mesh = om.Mesh.grid(bounds=(0, 0, 4, 4), width=0.5)
    assert (len(mesh), len(mesh.triangles), area(mesh)) == (81, 128, 16.0)
    assert mesh.widths.max() == pytest.approx(math.sqrt(0.5), rel=1e-15)


def test_a_width_that_does_not_divide_is_made_smaller():
    mesh = om.Mesh.grid((0, 0, 1, 1), 0.3)
    assert len(mesh) == 25
    assert mesh.vertices.max() == 1.0


def test_a_region_around_points_holds_them_and_cuts_corners():
    rng = np.random.default_rng(0)
    angle, radius = rng.random(500) * 2 * np.pi, 5 * np.sqrt(rng.random(500))
    points = np.column_stack([7 + radius * np.cos(angle), radius * np.sin(angle)])
    mesh = om.Mesh.around(points, 0.5)
    assert (mesh.locate(points)[0] >= 0).all()
    # an octagon around the disc of radius 5, and a lattice step
    assert math.pi * 25 < area(mesh) < 8 * (math.sqrt(2) - 1) * 6.2**2
    assert mesh.widths.max() <= 0.5 * math.sqrt(2) * (1 + 1e-12)


@pytest.mark.parametrize("points", [[[3.0, 4.0]], [[0.0, 0.0], [10.0, 0.0]], [[0, 0], [7, 7.0]]])
def test_points_without_area_get_a_region_with_one(points):
    mesh = om.Mesh.around(np.array(points), 1.0)
    assert area(mesh) > 0
    assert (mesh.locate(points)[0] >= 0).all()


def test_triangles_are_small_where_the_mass_is():
    rng = np.random.default_rng(1)
    points = np.vstack([rng.normal(0, 0.3, (900, 2)), rng.uniform(-8, 8, (100, 2))])
    mesh = om.Mesh.around(points, 4.0, vertices=400)
    near = mesh.locate([[0.0, 0.0]])[0][0]
    far = mesh.locate([[6.0, 6.0]])[0][0]
    assert len(mesh) == 400
    assert mesh.widths[near] < mesh.widths[far] / 4
    coarse = om.Mesh.around(points, 4.0)
    assert area(mesh) == pytest.approx(area(coarse), rel=1e-12)


def test_refining_halves_the_marked_triangles_only():
    mesh = om.Mesh.grid((0, 0, 4, 4), 1)
    mark = np.zeros(len(mesh.triangles))
    mark[5] = 1
    finer = mesh.refine(mark)
    assert len(finer) == len(mesh) + 1
    assert area(finer) == area(mesh)


def test_points_are_found_with_their_weights():
    mesh = om.Mesh.around(np.random.default_rng(2).normal(size=(300, 2)), 0.5, vertices=500)
    rng = np.random.default_rng(4)
    corners = rng.integers(len(mesh.triangles), size=2000)
    weights = rng.dirichlet([0.5] * 3, 2000)
    points = np.einsum("kc,kcd->kd", weights, mesh.vertices[mesh.triangles[corners]])
    found, own = mesh.locate(points)
    back = np.einsum("kc,kcd->kd", own, mesh.vertices[mesh.triangles[found]])
    assert (found >= 0).all()
    assert np.abs(back - points).max() < 1e-14
    assert (mesh.locate([[100.0, 0.0], [np.nan, 0.0]])[0] == -1).all()


def test_exact_weights_are_those_of_fractions():
    mesh = om.Mesh.grid((0, 0, 3, 3), 1)
    point = (Fraction(1, 3), Fraction(7, 5))
    t, weights = mesh.locate_exactly(point)
    total = sum(weights)
    back = [
        sum(Fraction(w, total) * Fraction(float(mesh.vertices[k, axis])) for w, k in
            zip(weights, mesh.corners[t], strict=True))
        for axis in (0, 1)
    ]  # fmt: skip
    assert tuple(back) == point
    assert min(weights) >= 0
    assert mesh.locate_exactly((Fraction(3) + Fraction(1, 10**30), 1.0)) is None
    assert mesh.locate_exactly((3.0, 3.0)) is not None


def spherical_length(x, y):
    """Of the straight line of the map between two places, in km, by quadrature."""
    (a, b), (c, d) = np.radians(x), np.radians(y)
    value, _ = quad(
        lambda t: math.hypot(math.cos(b + t * (d - b)) * (c - a), d - b), 0, 1, epsabs=1e-15
    )
    return RADIUS * value


@pytest.mark.parametrize("latitude", [-75.0, -2.0, 0.0, 42.0, 60.0, 80.0])
@pytest.mark.parametrize("size", [0.1, 1.0, 4.0])
def test_straight_lines_of_the_map_are_not_much_longer_than_great_circles(latitude, size):
    box = np.array([[10.0, latitude], [10.0 + size, latitude + size]])
    share = least_share(box)
    rng = np.random.default_rng(5)
    least = 1.0
    for _ in range(300):
        x, y = 10 + rng.random(2) * size, latitude + rng.random(2) * size
        one, other = np.array([x[0], y[0]]), np.array([x[1], y[1]])
        least = min(least, haversine(one, other) / spherical_length(one, other))
    top = math.tan(math.radians(max(abs(latitude), abs(latitude + size))))
    assert share <= least + 1e-13
    # second order in the size of the region
    assert 1 - share < 1.2 * (math.radians(size) * top) ** 2 * 32 / 27 / 12 + 1e-15


def test_lengths_in_degrees_are_at_most_great_circles():
    points = np.array([12.49, 41.9]) + np.random.default_rng(6).uniform(-0.2, 0.2, (50, 2))
    mesh = om.Mesh.around(points, 1.5, coordinates="lonlat")
    rng = np.random.default_rng(7)
    fine = (np.arange(20_000) + 0.5) / 20_000
    for _ in range(20):
        one, other = points[rng.integers(len(points), size=2)]
        along = one + fine[:, None] * (other - one)
        units = mesh.units[mesh.locate(along)[0]]
        length = np.linalg.norm((other - one) * units, axis=1).mean()
        distance = haversine(one, other)
        assert distance * (1 - mesh.distortion) * (1 - 1e-9) <= length <= distance * (1 + 1e-12)
    assert mesh.distortion < 5e-4


def test_longitudes_may_go_around_the_globe():
    mesh = om.Mesh.grid((179, -1, 181, 1), 50, coordinates="lonlat")
    found = mesh.locate([[-179.5, 0.25], [180.5, 0.25]])[0]
    assert found[0] == found[1] >= 0
    assert mesh.locate_exactly((-179.5, 0.25)) == mesh.locate_exactly((180.5, 0.25))


@pytest.mark.parametrize("bounds", [(0, 80, 10, 89), (0, 0, 179, 60), (-100, -60, 70, 60)])
def test_regions_too_large_for_a_map_are_refused(bounds):
    with pytest.raises(om.ProblemError, match="too large"):
        om.Mesh.grid(bounds, 1000, coordinates="lonlat")


@pytest.mark.parametrize("ending", ["json", "geojson"])
def test_files_keep_every_digit(tmp_path, ending):
    points = np.array([12.49, 41.9]) + np.random.default_rng(8).uniform(-0.1, 0.1, (50, 2))
    mesh = om.Mesh.around(points, 2, coordinates="lonlat")
    path = tmp_path / f"mesh.{ending}"
    mesh.write(path)
    back = om.Mesh.read(path)
    assert sorted(map(tuple, back.vertices.tolist())) == sorted(map(tuple, mesh.vertices.tolist()))
    assert len(back.triangles) == len(mesh.triangles)
    assert back.coordinates == "lonlat"
    assert (back == mesh) or ending == "geojson"


def test_plain_values_read_back():
    mesh = om.Mesh.grid((0, 0, 0.3, 0.7), 0.1, unit="km")
    assert om.Mesh.from_dict(json.loads(json.dumps(mesh.to_dict()))) == mesh


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "is no mesh"),
        ({"vertices": [[0, 0], [1, 0], [0, 1]]}, "is no mesh"),
        ({"vertices": [[0, 0], [1, 0], [0, 1]], "triangles": [[0, 1, 3]]}, "not three of the 3"),
        ({"vertices": [[0, 0], [1, 0], [0, 1]], "triangles": [[0, 1, 1.5]]}, "not three of the 3"),
        ({"vertices": [[0, 0], [1, 0], [0, 1]], "triangles": [[0, 1]]}, "shape"),
        ({"vertices": [[0, 0], [1, 0], [0, "x"]], "triangles": [[0, 1, 2]]}, "numbers"),
        ({"vertices": [[0, 0], [1, 0], [0, 1]], "triangles": [[0, 1, 2]], "x": 1}, "unknown"),
        (
            {"vertices": [[0, 0], [1, 0], [0, 1]], "triangles": [[0, 1, 2]], "coordinates": "m"},
            "unknown",
        ),
    ],
)
def test_what_is_no_mesh(content, words):
    with pytest.raises(om.ProblemError, match=words) as caught:
        om.Mesh.from_dict(content, where="file: mesh")
    assert caught.value.where.startswith("file: mesh")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"type": "FeatureCollection", "features": []}',
        '{"type": "FeatureCollection", "features": [{"properties": {}, "geometry": '
        '{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}}]}',
        '{"type": "FeatureCollection", "features": [{"properties": {}, "geometry": {}}]}',
    ],
)
def test_damaged_geojson(tmp_path, content):
    path = tmp_path / "mesh.geojson"
    path.write_text(content)
    with pytest.raises(om.ProblemError, match=r"GeoJSON|triangle") as caught:
        om.Mesh.read(path)
    assert caught.value.where.startswith(str(path))


def test_other_formats_need_meshio_or_read_back(tmp_path):
    mesh = om.Mesh.grid((0, 0, 2, 1), 0.5)
    path, damaged = tmp_path / "mesh.vtk", tmp_path / "mesh.msh"
    damaged.write_text("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n99999999 9")
    try:
        import meshio  # noqa: F401
    except ImportError:
        for use in (mesh.write, om.Mesh.read):
            with pytest.raises(om.ProblemError, match=r"needs meshio"):
                use(path)
        return
    mesh.write(path)
    assert om.Mesh.read(path) == mesh
    with pytest.raises(om.ProblemError, match=r"cannot be read"):
        om.Mesh.read(damaged)


@pytest.mark.parametrize("line", [
    "*INCLUDE,INPUT=/etc/other", "*include, input=other.inp", "* Include,INPUT=x", "***INCLUDE",
    "*\u0131nclude,INPUT=x", "*INCLUDE",
])  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_mesh_that_includes_another_file_is_refused(tmp_path, line, end):
    path = tmp_path / "mesh.INP"
    path.write_text(end.join(["*HEADING", "a mesh", line, "*NODE", "1, 0, 0"]), encoding="utf-8")
    with pytest.raises(om.ProblemError, match="includes another file"):
        om.Mesh.read(path)


@pytest.mark.parametrize("name", ["mesh.xdmf", "mesh", "mesh.xyz"])
def test_formats_of_several_files_are_refused(tmp_path, name):
    for use in (om.Mesh.grid((0, 0, 2, 1), 0.5).write, om.Mesh.read):
        with pytest.raises(om.ProblemError, match=r"stands for no format"):
            use(tmp_path / name)
