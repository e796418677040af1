"""Cells as reports: distances to areas, designs for every point with them, maps and pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech.cli.main import main
from optmech.designs.cells import features, write_geojson

E = om.distances.euclidean()
KM = om.distances.haversine()
SQUARE = [[(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]]
RING = [*SQUARE, [(0.5, 0.5), (1.5, 0.5), (1.5, 1.5), (0.5, 1.5)]]


def to(points: Any, rings: Any, reduce: Any, power: float = 1) -> np.ndarray:
    places = om.Domain(range(len(points)), points)
    middles = np.array([np.mean(rings[0], axis=0)])
    cell = om.Domain(["cell"], middles, outlines=[[np.array(ring) for ring in rings]])
    loss = om.losses.powered(E, power) if power != 1 else E
    return om.losses.over_cells(loss, reduce)(places, cell)[:, 0]


def test_the_mean_distance_from_the_middle_and_a_corner_of_a_square() -> None:
    # side 2: from the middle (√2 + ln(1 + √2))/3 · 1, from a corner twice that
    known = (np.sqrt(2) + np.log(1 + np.sqrt(2))) / 3
    found = to([(1, 1), (0, 0)], SQUARE, "mean")
    assert found == pytest.approx([known, 2 * known], rel=1e-13)
    # squares: twice the variance of a side, and the distance of the middle on top
    squared = to([(1, 1), (4, 5)], SQUARE, "mean", 2)
    assert squared == pytest.approx([2 / 3, 2 / 3 + 9 + 16], rel=1e-13)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("rings", [SQUARE, RING, [[(0, 0), (3, 0), (3, 1), (0, 2)]]])
def test_means_far_away_lie_between_the_least_and_the_largest(rings: Any, power: int) -> None:
    """The closed form alone has no digit left at 10^9 times the size."""
    for far in (1e4, 2e4, 4e4, 1e6, 1e9, 1e150):
        points = [(far, 0.3 * far), (-0.6 * far, 0.8 * far)]
        least, mean, most = (to(points, rings, name, power) for name in ("min", "mean", "max"))
        assert mean == pytest.approx(least, rel=5 / far)
        assert (mean >= least * (1 - 1e-15)).all()
        assert (mean <= most * (1 + 1e-15)).all()


def test_least_and_largest_distances() -> None:
    at = [(1, 1), (3, 1), (3, 3), (0, 0), (-3, -4)]
    assert to(at, SQUARE, "min") == pytest.approx([0, 1, np.sqrt(2), 0, 5])
    assert to(at, SQUARE, "max") == pytest.approx(
        [np.sqrt(2), np.sqrt(10), np.sqrt(18), np.sqrt(8), np.hypot(5, 6)]
    )
    # a hole is not part of the cell
    assert to([(1, 1)], RING, "min") == pytest.approx([0.5])
    assert to([(1, 1)], SQUARE, "max", 3) == pytest.approx([2**1.5])


@pytest.mark.parametrize("rings", [SQUARE, RING, [SQUARE[0][::-1]], [RING[1][::-1], RING[0]]])
@pytest.mark.parametrize("power", [1, 2])
def test_means_are_those_of_a_fine_lattice(rings: Any, power: int) -> None:
    step = (np.arange(400) + 0.5) / 200
    x, y = np.meshgrid(step, step)
    kept = (np.maximum(abs(x - 1), abs(y - 1)) > 0.5) | (len(rings) == 1)
    places = [(1.0, 1.0), (0.3, 1.7), (2.0, 1.0), (5.0, -3.0)]
    wanted = [(np.hypot(x - a, y - b)[kept] ** power).mean() for a, b in places]
    assert to(places, rings, "mean", power) == pytest.approx(wanted, rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_triangles_in_parts_have_the_mean_of_the_parts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, 2)) * 10 ** rng.uniform(-3, 3)
    share = rng.uniform(0.1, 0.9)
    middle = a + share * (b - a)
    place = [tuple(rng.normal(size=2) * 5)]
    # the area of a part is its share of the side
    parts = [to(place, [part], "mean") for part in ([a, middle, c], [middle, b, c])]
    whole = to(place, [[a, b, c]], "mean")
    assert whole == pytest.approx(share * parts[0] + (1 - share) * parts[1], rel=1e-6)
    assert to(place, [[a, b, c]], "min")[0] <= whole[0] <= to(place, [[a, b, c]], "max")[0]


def test_cells_of_a_grid_over_bounds_from_degrees() -> None:
    bounds = (12.4, 41.8, 12.6, 42.0)
    grid = om.Grid(4, 4, bounds=bounds)
    rng = np.random.default_rng(0)
    lonlat = rng.uniform((12.4, 41.8), (12.6, 42.0), (20, 2))
    found = om.losses.over_cells(KM, "min")(om.Domain.geographic(range(20), lonlat), grid)
    own = grid.locate(lonlat)
    assert (found[np.arange(20), own] == 0).all()
    assert ((found == 0).sum(axis=1) == 1).all()
    # a place in the middle of the south-western corner's cell, to that of the north-east
    west = om.Domain.geographic(["a"], [(12.425, 41.825)])
    far = om.losses.over_cells(KM, "mean")(west, grid)[0, -1]
    there = om.Domain.geographic(["b"], [(12.575, 41.975)])
    assert far == pytest.approx(float(KM(west, there)[0, 0]), rel=0.01)
    # and across the line of dates
    east = om.Domain.geographic(["c"], [(-179.95, 10.0)])
    ring = [(179.8, 9.9), (180, 9.9), (180, 10.1), (179.8, 10.1)]
    zone = om.Domain(["z"], [(179.9, 10.0)], coordinates="lonlat", outlines=[[ring]])
    assert om.losses.over_cells(KM, "min")(east, zone)[0, 0] == pytest.approx(5.48, rel=0.01)


def test_what_has_no_area_is_refused() -> None:
    points = om.Domain(range(2), [(0, 0), (1, 1)])
    grid = om.Grid(2, 2)
    for match, loss, a, b in (
        ("needs observables that are cells", om.losses.over_cells(E), points, points),
        ("not known for 'manhattan'", om.losses.over_cells(om.distances.manhattan()), points, grid),
        ("not known for 'haversine'", om.losses.over_cells(KM), points, grid),
        ("to the power 1.5", om.losses.over_cells(om.losses.powered(E, 1.5)), points, grid),
        ("has no coordinates", om.losses.over_cells(E), om.Domain(["a"]), grid),
        ("in 'km' and in 'm'", om.losses.over_cells(E), om.Domain(["a"], [(0, 0)], "km"),
         om.Grid(2, 2, unit="m")),
    ):  # fmt: skip
        with pytest.raises(om.ProblemError, match=match):
            loss(a, b)
    with pytest.raises(om.ProblemError, match="median"):
        om.losses.over_cells(E, "median")  # type: ignore[arg-type]
    flat = om.Domain(["a"], [(1, 0)], outlines=[[[(0, 0), (1, 0), (2, 0)]]])
    with pytest.raises(om.ProblemError, match="no area"):
        om.losses.over_cells(E)(points, flat)


FILE = """
format = 1
title = "Cells of a square"
prior = "uniform"
loss = { distance = "euclidean", reduce = "REDUCE" }

[secrets]
kind = "points"
points = [[0.5, 0.5], [1.5, 0.5], [2.5, 1.5], [3.5, 3.5], [0.5, 3.5]]

[observables]
kind = "grid"
rows = 2
columns = 2
cell = 2

[[constraints]]
kind = "metric_privacy"
epsilon = "ln 2"
distance = "euclidean"
everywhere = { kind = "grid", bounds = [0, 0, 4, 4], width = 2, degree = 2 }
"""


@pytest.mark.parametrize("reduce", ["mean", "max", "min"])
def test_a_design_for_every_point_reports_cells(reduce: str, tmp_path: Path) -> None:
    file, saved = tmp_path / "cells.toml", tmp_path / "design.json"
    file.write_text(FILE.replace("REDUCE", reduce))
    assert main(["solve", str(file), "-q", "--gap", "1e-3", "-o", str(saved)]) == 0
    design = om.Design.load(saved)
    assert isinstance(design.problem.observables, om.Grid)
    points = design.problem.secrets.points
    assert points is not None
    # the square's other corner, the nearest point, or the mean over a lattice in each cell
    step = (np.arange(100) + 0.5) / 50
    x, y = (part.ravel() for part in np.meshgrid(step, step))
    for cell, (a, b) in enumerate([(0, 0), (2, 0), (0, 2), (2, 2)]):
        away = np.hypot(points[:, :1] - a - x, points[:, 1:] - b - y)
        wanted = {"mean": away.mean, "max": away.max, "min": away.min}[reduce](axis=1)
        assert design.problem.loss_matrix[:, cell] == pytest.approx(wanted, abs=0.03)
    assert om.check(saved).passed
    lines, _ = audit.judge(str(saved))
    assert any("a lower bound of every mechanism" in line for line in lines)
    row = design.mechanism.at([(1.0, 1.0)])[0]
    assert row.argmax() == 0
    assert design.mechanism.sample_at((1.0, 1.0), seed=3) in {(0, 0), (0, 1), (1, 0), (1, 1)}


def degrees() -> om.Design:
    rng = np.random.default_rng(5)
    bounds = (12.40, 41.85, 12.50, 41.95)
    places = om.Domain.geographic(range(30), rng.uniform((12.41, 41.86), (12.49, 41.94), (30, 2)))
    mesh = om.Mesh.around(places, 6, degree=2)
    promise = om.MetricPrivacy(0.6, KM, everywhere=mesh)
    loss = om.losses.over_cells(KM, "mean")
    cells = om.Grid(2, 3, bounds=bounds)
    return om.solve(om.Problem(om.Prior.uniform(places), loss, cells, constraints=[promise]),
                    gap=1e-2)  # fmt: skip


def test_reports_on_a_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = degrees()
    saved, out = tmp_path / "d.json", tmp_path / "cells.geojson"
    design.save(saved)
    assert om.check(saved).passed
    assert audit.audit(str(saved))
    assert main(["export", str(saved), "--format", "geojson", "--reports", "-o", str(out)]) == 0
    found = json.loads(out.read_text())["features"]
    assert len(found) == 6
    rows = design.mechanism.at(design.problem.secrets.points)
    shares = [one["properties"]["reported"] for one in found]
    assert shares == pytest.approx(rows.mean(axis=0))
    paid = sum(one["properties"]["reported"] * one["properties"]["loss"] for one in found)
    assert paid == pytest.approx(design.loss, rel=1e-9)
    corners = np.array([one["geometry"]["coordinates"][0] for one in found])
    assert corners.shape == (6, 5, 2)
    assert corners.min(axis=(0, 1)) == pytest.approx([12.40, 41.85])
    assert corners.max(axis=(0, 1)) == pytest.approx([12.50, 41.95])
    assert np.ptp(corners[0], axis=0) == pytest.approx([0.1 / 3, 0.05])
    assert write_geojson(design, out) == len(design.mesh.triangles)
    capsys.readouterr()
    for flags in (["--reports", "--report", "0,0"], ["--reports"]):
        more = ["--format", "matrix"] if len(flags) == 1 else ["--format", "geojson"]
        assert main(["export", str(saved), *more, *flags, "-o", str(out)]) == 2
        assert "--reports" in capsys.readouterr().err
    with pytest.raises(om.ProblemError, match="one report and all"):
        features(design, (0, 0), reports=True)


def test_reports_of_a_design_on_finitely_many_secrets() -> None:
    grid = om.Grid(3, 3)
    promise = om.MetricPrivacy(1, E)
    problem = om.Problem(om.Prior.uniform(grid), om.losses.over_cells(E), constraints=[promise])
    design = om.solve(problem)
    found = features(design, degrees=False, reports=True)
    assert sum(one["properties"]["reported"] for one in found) == pytest.approx(1)
    paid = sum(one["properties"]["reported"] * one["properties"]["loss"] for one in found)
    assert paid == pytest.approx(design.loss)
    assert found[0]["geometry"]["coordinates"][0][0] == [0.0, 0.0]


def test_zones_as_observables_of_a_file(tmp_path: Path) -> None:
    shapes = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": {"name": name}, "geometry": {
                "type": "Polygon", "coordinates": [[
                    [x, 41.8], [x + 0.1, 41.8], [x + 0.1, 42.0], [x, 42.0], [x, 41.8]]]}}
            for name, x in (("west", 12.4), ("east", 12.5))
        ],
    }  # fmt: skip
    (tmp_path / "zones.geojson").write_text(json.dumps(shapes))
    file = tmp_path / "zones.toml"
    file.write_text(
        'format = 1\nprior = "uniform"\nloss = { distance = "haversine", reduce = "min" }\n'
        '[secrets]\nkind = "lonlat"\npoints = [[12.45, 41.9], [12.55, 41.9]]\n'
        '[observables]\nkind = "zones"\nfile = "zones.geojson"\nlabel = "name"\n'
        '[[constraints]]\nkind = "metric_privacy"\nepsilon = 1\ndistance = "haversine"\n'
    )
    problem = om.load_problem(file)
    assert problem.observables.labels == ("west", "east")
    away = 0.05 * np.pi / 180 * 6371.0088 * np.cos(np.radians(41.9))
    assert problem.loss_matrix == pytest.approx(np.array([[0, away], [away, 0]]), rel=1e-3)


def test_points_have_nothing_to_reduce_over(tmp_path: Path) -> None:
    file = tmp_path / "points.toml"
    file.write_text(
        FILE.replace("REDUCE", "mean").replace(
            'kind = "grid"\nrows = 2\ncolumns = 2\ncell = 2\n', 'kind = "same"\n'
        )
    )
    with pytest.raises(om.ProblemError, match="no sets or cells"):
        om.load_problem(file)
