"""``om.protect``: tables in, tables out; with the identity every report is the place itself."""

from __future__ import annotations

import re
import warnings
from typing import Any, Literal

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from optmech_devices.protection.places import Snap
from optmech_devices.protection.reporter import Reporter
from plainly import plainly

import optmech as om
from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators
from optmech.spaces.mesh.mechanism import MeshMechanism

BOX = (-74.0, 40.0, -73.0, 42.0)
GRID = om.Grid(4, 2, bounds=BOX)
"""Cells of half a degree."""
POINTS = [(-73.9, 40.1), (-73.1, 41.9), (-73.5, 40.5), (-73.0, 42.0)]
CENTRES = [(-73.75, 40.25), (-73.25, 41.75), (-73.25, 40.75), (-73.25, 41.75)]
LABELS = [(0, 0), (3, 1), (1, 1), (3, 1)]
KEY = b"0123456789abcdef0123456789abcdef"


def identity(domain: om.Domain) -> om.Mechanism:
    return om.Mechanism(domain, domain, np.eye(len(domain)))


def noisy(domain: om.Domain) -> om.Mechanism:
    return om.mechanisms.exponential(domain, 0.01, om.distances.euclidean())


def table() -> pd.DataFrame:
    out = pd.DataFrame(POINTS, columns=["lon", "lat"])
    out["time"], out["user"] = pd.date_range("2026-01-01", periods=4), list("abca")
    return out.set_index("time")


def test_a_table_keeps_only_what_is_asked() -> None:
    drawn = plainly(identity(GRID), table(), x="lon", y="lat")
    assert list(drawn.columns) == ["lon", "lat"]
    # columns that are called so are found, the only pair of them
    assert plainly(identity(GRID), table()).equals(drawn)
    with pytest.raises(ProblemError, match="no column says where a row is"):
        plainly(identity(GRID), table().rename(columns={"lon": "a"}))
    # an index of times would give away what the column would
    assert list(drawn.index) == [0, 1, 2, 3]
    np.testing.assert_allclose(drawn.to_numpy(), CENTRES, rtol=0, atol=1e-12)
    kept = plainly(identity(GRID), table(), x="lon", y="lat", keep="user", report="cell")
    assert list(kept.columns) == ["lon", "lat", "user", "cell"]
    assert list(kept["cell"]) == LABELS
    assert list(kept["user"]) == list("abca")


def test_labels_of_a_table_and_alone() -> None:
    names = om.Domain(["home", "work"])
    m = om.Mechanism(names, om.Domain(["x", "y"]), [[0, 1], [1, 0]])
    frame = pd.DataFrame({"where": ["work", "home", "work"], "n": [1, 2, 3]})
    assert plainly(m, frame, label="where")["where"].tolist() == ["x", "y", "x"]
    assert plainly(m, ["home", "work"]) == ["y", "x"]
    series = plainly(m, frame["where"])
    assert isinstance(series, pd.Series)
    assert series.tolist() == ["x", "y", "x"]
    assert plainly(m, np.array(["home"])).tolist() == ["y"]
    # cells as tables of text have them
    assert plainly(identity(GRID), ["3,1", (0, 0)]) == [(3, 1), (0, 0)]


def test_arrays_are_in_the_coordinates_of_the_data() -> None:
    np.testing.assert_allclose(plainly(identity(GRID), np.array(POINTS)), CENTRES, atol=1e-12)
    plane = om.Grid(2, 2, cell=(2.0, 1.0), origin=(10.0, 5.0))
    found = plainly(identity(plane), np.array([[13.9, 5.2], [10.0, 6.9]]))
    assert found.tolist() == [[13.0, 5.5], [11.0, 6.5]]
    line = om.Domain(["a", "b"], [0.0, 10.0])
    assert plainly(identity(line), np.array([[1.0], [9.0]])).tolist() == [[0.0], [10.0]]


def test_regions_subsets_and_suppression_have_their_places() -> None:
    xy = np.array(POINTS)
    regions = om.regions.quadrisect(
        GRID, np.repeat(xy[:1], 5, axis=0) + [[k / 99, 0] for k in range(5)], 11
    )
    found = plainly(identity(regions), xy[:1])
    # one cell was split: its south-west quarter holds the point
    np.testing.assert_allclose(found, [(-73.875, 40.125)], atol=1e-12)
    pairs = om.observables.coarser(GRID, 2, 2)
    m = om.Mechanism(GRID, pairs, np.repeat(np.eye(2), 4, axis=0))
    np.testing.assert_allclose(plainly(m, xy[:2]), [(-73.5, 40.5), (-73.5, 41.5)], atol=1e-12)
    said = om.observables.suppressible(GRID)
    nothing = np.zeros((8, 9))
    nothing[:, 8] = 1
    frame = plainly(om.Mechanism(GRID, said, nothing), table(), x="lon", y="lat", report="r")
    assert frame[["lon", "lat"]].isna().all(axis=None)
    assert set(frame["r"]) == {"suppressed"}


def test_reports_without_coordinates_are_labels() -> None:
    m = om.Mechanism(GRID, om.Domain(["low", "high"]), np.repeat(np.eye(2), 4, axis=0))
    found = plainly(m, table(), x="lon", y="lat")
    assert list(found.columns) == ["report"]
    assert found["report"].tolist() == ["low", "high", "low", "high"]
    assert plainly(m, np.array(POINTS)) == ["low", "high", "low", "high"]


def test_xarray_and_its_coordinates() -> None:
    data = xr.Dataset(
        {"lon": ("fix", [p[0] for p in POINTS]), "lat": ("fix", [p[1] for p in POINTS])},
        coords={"time": ("fix", [1, 2, 3, 4])},
    )
    found = plainly(identity(GRID), data, x="lon", y="lat")
    assert set(found.variables) == {"lon", "lat"}
    assert set(plainly(identity(GRID), data, x="lon", y="lat", keep="time").variables) == {
        "lon", "lat", "time",
    }  # fmt: skip
    np.testing.assert_allclose(found["lat"], [c[1] for c in CENTRES], atol=1e-12)
    square = xr.Dataset({"lon": (("a", "b"), np.zeros((2, 2))), "lat": ("a", [0.0, 1.0])})
    with pytest.raises(ProblemError, match="dimensions"):
        plainly(identity(GRID), square, x="lon", y="lat")


def test_geopandas_in_any_reference_system() -> None:
    # away from the borders of cells, which a point may leave on its way there and back
    xy = np.array(POINTS) + np.array([(0, 0), (0, 0), (0.1, 0.1), (-0.1, -0.1)])
    frame = gpd.GeoDataFrame(
        {"user": list("abcd")}, geometry=gpd.points_from_xy(*xy.T), crs=4326
    ).to_crs(3857)
    found = plainly(identity(GRID), frame, keep="user", report="cell")
    assert found.crs == frame.crs
    assert list(found["cell"]) == LABELS
    back = found.to_crs(4326).geometry
    np.testing.assert_allclose(np.column_stack([back.x, back.y]), CENTRES, atol=1e-9)
    lines = gpd.GeoDataFrame(geometry=frame.buffer(1.0), crs=3857)
    with pytest.raises(ProblemError, match="Polygon"):
        plainly(identity(GRID), lines)


def test_what_lies_outside() -> None:
    xy = np.array([(-73.9, 40.1), (-75.0, 40.1), (-73.1, 50.0), (np.nan, 40.0), (-73.5, 95.0)])
    m = identity(GRID)
    with pytest.raises(
        ProblemError, match=r"row 4: has no usable coordinates \(of rows 1 to \d+: 2 without"
    ):
        plainly(m, xy)
    with pytest.raises(ProblemError, match=r"row 2: .*outside.*\(of rows 1 to \d+: 2 outside\)"):
        plainly(m, xy[:3])
    with pytest.warns(UserWarning, match="4 of 5 rows were dropped, 2 of them without"):
        assert len(plainly(m, xy, outside="drop")) == 1
    with pytest.warns(UserWarning, match="2 of 3 rows lay outside"):
        moved = plainly(m, xy[:3], outside="nearest")
    np.testing.assert_allclose(moved, [CENTRES[0], CENTRES[0], (-73.25, 41.75)], atol=1e-12)
    with pytest.raises(ProblemError, match="no usable coordinates"):
        plainly(m, xy[3:], outside="nearest")
    with pytest.raises(ProblemError, match="exchanged"):
        plainly(m, np.array(POINTS)[:, ::-1])


@pytest.mark.parametrize("outside", ["refuse", "nearest"])
def test_errors_say_nothing_of_what_rows_hold(outside: Literal["refuse", "nearest"]) -> None:
    """They are printed, and logged where others read them."""
    wrong = [(1.23456789, 77.654321), (1.23456789, 97.654321), (np.nan, 77.654321), (2e40, 77.654)]
    for mechanism in (identity(GRID), region()):
        for row in wrong[1 if outside == "nearest" else 0 :]:
            with pytest.raises(ProblemError) as caught:
                plainly(mechanism, np.array([row]), outside=outside)
            assert not re.search("1.23|654|e[+]40", str(caught.value))
    labels = om.Domain(["ill", "well"])
    with pytest.raises(ProblemError) as caught:
        plainly(identity(labels), ["pregnant"], outside="refuse")
    assert "pregnant" not in str(caught.value)


def region() -> MeshMechanism:
    """A square degree in two triangles, reported with certainty of nothing."""
    mesh = om.Mesh.grid((10, 50, 11, 51), 200, coordinates="lonlat")
    rows = tuple((1, 1) for _ in range(mesh.rows))
    reports = om.Domain.geographic("ab", [(10.2, 50.2), (10.8, 50.8)])
    return MeshMechanism(mesh, reports, Numerators(1, rows))


def test_places_of_points_and_how_far_they_reach() -> None:
    stations = om.Domain.geographic(["a", "b"], [(0.0, 0.0), (1.0, 0.0)])
    far = np.array([[0.2, 0.0], [3.0, 0.0]])
    # a degree of the equator is 111.195 km
    assert plainly(identity(stations), far).tolist() == [[0.0, 0.0], [1.0, 0.0]]
    with pytest.raises(ProblemError, match=r"row 2: lies outside"):
        plainly(identity(stations), far, max_distance=222.3)
    with pytest.warns(UserWarning, match="1 of 2 rows lay outside"):
        plainly(identity(stations), far, max_distance=222.3, outside="nearest")
    assert len(plainly(identity(stations), far, max_distance=222.4)) == 2
    with pytest.raises(ProblemError, match="grid takes no max_distance"):
        plainly(identity(GRID), far, max_distance=1.0)


def test_every_point_of_a_region() -> None:
    mesh = om.Mesh([[0, 0], [2, 0], [2, 2], [0, 2]], [[0, 1, 2], [0, 2, 3]])
    corners = om.Domain("abcd", mesh.vertices)
    m = MeshMechanism(mesh, corners, Numerators.rounded(np.eye(4)))
    at_corners = np.array([[0, 0], [2, 2], [2, 0]], dtype=float)
    assert plainly(m, at_corners).tolist() == at_corners.tolist()
    with pytest.raises(ProblemError, match="row 1"):
        plainly(m, np.array([[2.0, np.nextafter(2.0, 3.0)]]))
    xy = np.array([[9.0, 9.0], [-1.0, -1.0], [1.0, -5.0], [1.0, 1.0]])
    with pytest.warns(UserWarning, match="3 of 4 rows lay outside"):
        found = plainly(m, xy, outside="nearest")
    # a billionth of the way from the corner, another corner is hardly ever drawn
    assert found[:2].tolist() == [[2.0, 2.0], [0.0, 0.0]]
    assert found[2].tolist() in ([0.0, 0.0], [2.0, 0.0])
    with pytest.raises(ProblemError, match="no labels"):
        plainly(m, ["a"])


def test_a_key_repeats_reports_and_tells_users_and_designs_apart() -> None:
    xy = np.tile(POINTS, (50, 1))
    frame = pd.DataFrame(xy, columns=["lon", "lat"])
    frame["user"] = np.repeat([f"u{k}" for k in range(50)], 4)
    options: dict[str, Any] = {"x": "lon", "y": "lat", "key": KEY}
    m = noisy(GRID)
    plain = plainly(m, frame, **options)
    assert plain.equals(plainly(m, frame, **options))
    # one place, one report: rows 2 and 4 of every user are in one cell
    assert plain.drop_duplicates().shape[0] <= 3
    mine = plainly(m, frame, by="user", **options)
    assert not mine.equals(plain)
    assert mine.iloc[1::4].reset_index(drop=True).equals(mine.iloc[3::4].reset_index(drop=True))
    assert len(mine.iloc[1::4].drop_duplicates()) > 3
    shuffled = frame.sample(frac=1, random_state=1)
    again = plainly(m, shuffled, by="user", keep="user", **options)
    kept = plainly(m, frame, by="user", keep="user", **options)
    assert again.sort_values(list(again)).to_numpy().tolist() == (
        kept.sort_values(list(kept)).to_numpy().tolist()
    )
    others = plainly(om.mechanisms.exponential(GRID, 0.011, om.distances.euclidean()), frame,
                        by="user", **options)  # fmt: skip
    assert not others.equals(mine)
    options["key"] = KEY[::-1]
    assert not plainly(m, frame, by="user", **options).equals(mine)


def test_a_key_for_every_point_repeats_on_a_lattice() -> None:
    """Of a mechanism that states its ε; the lattice's diagonal times ε is 0.1."""
    mesh = om.Mesh([[0, 0], [2, 0], [2, 2], [0, 2]], [[0, 1, 2], [0, 2, 3]])
    m = MeshMechanism(mesh, om.Domain("abcd", mesh.vertices), Numerators.rounded(np.eye(4)))
    with pytest.raises(ProblemError, match="this one states none"):
        plainly(m, np.array([[0.5, 0.5]]), key=KEY)
    # a design of ε = 1/4 on a square of side 8: a lattice of 0.1/0.25/sqrt(2) = 0.2828
    places = om.Domain("ab", [[1.0, 1.0], [7.0, 7.0]])
    square = om.Mesh.grid((0, 0, 8, 8), 4, degree=2)
    near = om.distances.euclidean()
    private = om.MetricPrivacy("1/4", near, everywhere=square)
    reports = om.Domain(range(9), [[1 + 3 * (k % 3), 1 + 3 * (k // 3)] for k in range(9)])
    problem = om.Problem(om.Prior.uniform(places), near, reports, constraints=[private])
    design = om.solve(problem)
    step = 0.1 / 0.25 / np.sqrt(2)
    rng = np.random.default_rng(2)
    centres = step * rng.integers(1, 27, (200, 2))
    moved = np.clip(centres[:, None] + rng.uniform(-0.49, 0.49, (200, 5, 2)) * step, 0, 8)
    drawn = plainly(design, moved.reshape(-1, 2), key=KEY).reshape(200, 5, 2)
    assert (drawn == drawn[:, :1]).all()
    # other places, other draws: 200 places do not all report the same
    assert len(np.unique(drawn[:, 0], axis=0)) > 1
    border = np.array([[0.0, 0.0], [-0.0, -0.0], [8.0, 8.0], [0.0, 8.0]])
    out = plainly(design, border, key=KEY)
    assert (out[0] == out[1]).all()
    # another key, other reports somewhere
    other = plainly(design, moved.reshape(-1, 2), key=bytes(40)).reshape(200, 5, 2)
    assert (other != drawn).any()


def test_what_the_lattice_adds_is_charged() -> None:
    """Two fixes d apart have places at most d + the slack apart, whatever the region."""
    rng = np.random.default_rng(4)
    boxed = om.Mesh.grid((0, 0, 8, 8), 4)
    slanted = om.Mesh([[0, 0], [8, 0], [0, 8]], [[0, 1, 2]])
    globe = om.Mesh.grid((179.9, 60, 180.2, 60.2), 5, coordinates="lonlat")
    for mesh in (boxed, slanted, globe):
        snap = Snap.of(mesh, 0.5)
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        points = rng.uniform(low, high, (4000, 2))
        points = points[mesh.locate(points)[0] >= 0]
        snapped, _, numbers = snap(points)
        assert (mesh.locate(snapped)[0] >= 0).mean() > 0.99
        if mesh is globe:
            # haversine, here and written the other way around
            moved = _haversine(points, snapped)
            again = snap(np.column_stack([points[:, 0] - 360, points[:, 1]]))
            assert (again[2] == numbers).all()
        else:
            moved = np.hypot(*(points - snapped).T)
        assert moved.max() <= 0.25
        # and no finer than it has to be
        assert moved.max() > 0.1
        assert len(np.unique(numbers)) == len(np.unique(snapped, axis=0)) or mesh is slanted


def _haversine(p: Floats, q: Floats) -> Floats:
    a, b = np.radians(p), np.radians(q)
    part = np.sin((b[:, 1] - a[:, 1]) / 2) ** 2
    part = part + np.cos(a[:, 1]) * np.cos(b[:, 1]) * np.sin((b[:, 0] - a[:, 0]) / 2) ** 2
    return np.asarray(2 * 6371.0088 * np.arcsin(np.sqrt(part)))


def test_one_place_is_one_report_however_it_is_written() -> None:
    """Zero with either sign, a meridian from either side and once around, and the poles."""
    globe = om.Domain.geographic(
        range(5), [[179.9, 0.0], [-179.8, 3.0], [0.0, 0.0], [0.0, 89.9], [0.0, -89.9]]
    )
    plane = om.Grid(2, 2, origin=(-1.0, -1.0))
    alike = {
        globe: [
            [[180.0, 1.0], [-180.0, 1.0]],
            [[0.0, 1.0], [-0.0, 1.0], [360.0, 1.0], [-360.0, 1.0]],
            [[0.0, 0.0], [-0.0, -0.0]],
            [[0.0, 90.0], [77.0, 90.0], [180.0, 90.0]],
            [[0.0, -90.0], [-120.0, -90.0]],
        ],
        plane: [[[0.0, 0.0], [-0.0, -0.0], [0.0, -0.0], [-0.0, 0.0]]],
    }
    for domain, groups in alike.items():
        m = om.Mechanism(domain, domain, np.full((len(domain), len(domain)), 1 / len(domain)))
        for number in range(40):
            for group in groups:
                found = plainly(m, np.array(group), key=bytes([number]) * 32)
                assert len({tuple(row) for row in found.tolist()}) == 1


def test_without_a_key_draws_are_new_and_a_seed_says_so() -> None:
    xy = np.tile(POINTS, (50, 1))
    m = noisy(GRID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plainly(m, xy).tolist() != plainly(m, xy).tolist()
    with pytest.warns(UserWarning, match="unfit for release"):
        one, other = plainly(m, xy, seed=3), plainly(m, xy, seed=3)
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize("kind", ["pandas", "xarray", "geopandas"])
def test_places_are_kept_only_where_they_are_named_as_such(kind: str) -> None:
    """As the command has it: by what a column is called, and by where its numbers lie."""
    rows = pd.DataFrame({"lon": [0.4, 1.2, 2.9] * 20, "lat": [0.3, 1.1, 0.8] * 20,
                         "zip": [8000] * 60, "other": [0.41, 1.23, 2.84] * 20,
                         "note": ["at home"] * 60})  # fmt: skip
    data: Any = rows
    where = {"x": "lon", "y": "lat"}
    degrees = om.Grid.geographic(3, 3, (0, 0, 3, 3))
    if kind == "xarray":
        xarray = pytest.importorskip("xarray")
        data = xarray.Dataset({name: ("row", rows[name].to_numpy()) for name in rows})
    elif kind == "geopandas":
        geopandas = pytest.importorskip("geopandas")
        data = geopandas.GeoDataFrame(
            rows, geometry=geopandas.points_from_xy(rows["lon"], rows["lat"]), crs=4326
        )
        where = {}
    for name, said in (("zip", "called like a coordinate"), ("other", "lie where the coord")):
        with pytest.raises(ProblemError, match=f"{said}.*keep_place = '{name}'"):
            plainly(identity(degrees), data, **where, keep=[name, "note"])
        out = plainly(identity(degrees), data, **where, keep="note", keep_place=name)
        assert list(out[name].to_numpy()) == rows[name].tolist()
        assert list(out["note"].to_numpy()) == rows["note"].tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"x": "lon", "label": "user"}, "not both"),
        ({"y": "lat"}, "have to say"),
        ({"x": "lon", "y": "lon"}, "both x and y"),
        ({"x": "lon", "y": "height"}, "no column 'height'"),
        ({"x": "lon"}, "points of 1 coordinate"),
        ({"x": "lat", "y": "lon"}, "the latitude comes first"),
        ({"x": "lon", "y": "user"}, "not a column of numbers"),
        ({"x": "lon", "y": "lat", "keep": "speed"}, "no column 'speed'"),
        ({"x": "lon", "y": "lat", "keep": "lon"}, "replaced by the report's"),
        ({"x": "lon", "y": "lat", "by": "day", "key": KEY}, "no column 'day'"),
        ({"x": "lon", "y": "lat", "report": "user"}, "have a column 'user'"),
        ({"x": "lon", "y": "lat", "outside": "near"}, "'near' is unknown"),
        ({"x": "lon", "y": "lat", "key": b"short"}, "at least 32 bytes"),
        ({"x": "lon", "y": "lat", "key": KEY, "seed": 1}, "reproducible without one"),
        ({"x": "lon", "y": "lat", "max_distance": -1.0}, "must be above 0"),
        ({"label": "user"}, "none of the 8 labels"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemError, match=said) as caught:
        plainly(identity(GRID), table(), **options)
    assert caught.value.where
    assert caught.value.remedy


def test_other_mistakes() -> None:
    with pytest.raises(
        ProblemError, match="is not a Design, a Mechanism or a mechanism for the whole earth"
    ):
        plainly("design.json", table())  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="no such columns"):
        plainly(identity(GRID), np.array(POINTS), x="lon")
    with pytest.raises(ProblemError, match="no table and no list"):
        plainly(identity(GRID), 7)
    names = identity(om.Domain(["a", "b"]))
    with pytest.raises(ProblemError, match="no coordinates"):
        plainly(names, np.array(POINTS))
    with pytest.warns(UserWarning, match="1 of 2 rows were dropped"):
        assert plainly(names, ["a", "z"], outside="drop") == ["a"]


def test_parts_are_counted_together() -> None:
    reporter = Reporter(identity(GRID), "drop")
    for part in (POINTS[:2], [(0.0, 0.0)], POINTS[2:]):
        reporter.at_points(np.array(part))
    assert (reporter.rows, reporter.dropped, reporter.missing, reporter.moved) == (5, 1, 0, 0)
    reporter.outside = "refuse"
    with pytest.raises(ProblemError, match="row 7"):
        reporter.at_points(np.array([POINTS[0], (0.0, 0.0)]))


def test_a_list_of_points_is_one_of_points_and_one_of_cells_one_of_labels() -> None:
    """Over a grid labels are pairs too: whole numbers are cells, others coordinates."""
    grid = om.Grid.geographic(2, 2, (8.5, 47.3, 8.6, 47.4))
    told = om.Mechanism(grid, grid, np.eye(4))
    points = [(8.54, 47.37), (8.56, 47.31)]
    centres = [(8.525, 47.375), (8.575, 47.325)]
    assert plainly(told, points) == pytest.approx(np.array(centres))
    assert plainly(told, [list(point) for point in points]) == pytest.approx(np.array(centres))
    assert plainly(told, np.array(points)) == pytest.approx(np.array(centres))
    assert plainly(told, [(0, 1), (1, 0)]) == [(0, 1), (1, 0)]
    halves = om.Domain([(0.5, 1.5), (1.5, 0.5)], [[0.0, 0.0], [1.0, 1.0]])
    assert plainly(om.Mechanism(halves, halves, np.eye(2)), [(0.5, 1.5)]) == [(0.5, 1.5)]
    with pytest.raises(om.ProblemError, match="none of the 4 labels"):
        plainly(told, [(0, 9)])


def test_an_index_is_no_label_and_the_error_says_what_is() -> None:
    grid = om.Grid(2, 2)
    with pytest.raises(om.ProblemError, match=r"the label at index 2 is labels\[2\]"):
        om.Mechanism(grid, grid, np.eye(4)).sample(2)


def across_the_antimeridian() -> dict[str, om.Mechanism]:
    """Domains that are stated by longitudes beyond 180, each from three points to themselves."""
    grid = om.Grid.geographic(1, 3, bounds=(179.5, 10.0, 181.0, 10.5))
    points = om.Domain.geographic("abc", [[179.75, 10.25], [180.25, 10.25], [180.75, 10.25]])
    mesh = om.Mesh.grid((179.5, 10.0, 181.0, 10.5), 60, coordinates="lonlat")
    rows = om.Prior.uniform(points)
    haversine = om.distances.haversine()
    private = om.MetricPrivacy(0.02, haversine, everywhere=mesh)
    return {
        "grid": identity(grid),
        "points": identity(points),
        "mesh": om.solve(om.Problem(rows, haversine, constraints=[private]), gap=0.1).mechanism,
    }


@pytest.mark.parametrize("name", across_the_antimeridian())
def test_reports_have_longitudes_of_half_a_turn_at_most(name: str) -> None:
    """Also where the region was stated by others; places are the same."""
    m = across_the_antimeridian()[name]
    fixes = np.array([[179.75, 10.25], [-179.75, 10.25], [180.25, 10.25], [-179.25, 10.25]] * 20)
    found = plainly(m, fixes)
    assert (np.abs(found[:, 0]) <= 180).all()
    known = {179.75, -179.75, -179.25}
    assert {round(x, 9) for x in found[:, 0].tolist()} <= known
    if name != "mesh":
        np.testing.assert_allclose(found[:, 0], [179.75, -179.75, -179.75, -179.25] * 20, atol=1e-9)


def test_a_warning_is_about_the_line_that_asked() -> None:
    with pytest.warns(UserWarning, match="unfit for release") as caught:
        om.protect(identity(GRID), CENTRES, seed=1)
    assert [warning.filename for warning in caught] == [__file__]
