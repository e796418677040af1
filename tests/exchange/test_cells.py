"""Designs as GeoJSON and GeoDataFrames: the cells, and numbers from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main

AWAY, KM = om.distances.haversine(), om.distances.euclidean()
POINTS = [(12.40, 41.80), (12.44, 41.80), (12.40, 41.83), (12.45, 41.84)]


@pytest.fixture(scope="module")
def design() -> om.Design:
    places = om.Domain.geographic(["a", "b", "c", "d"], POINTS)
    prior = om.Prior(places, [1, 2, 3, 4])
    return om.solve(om.Problem(prior, AWAY, constraints=[om.MetricPrivacy(0.5, AWAY)]))


def area(ring: list) -> float:
    x, y = np.array(ring[:-1]).T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def test_cells_have_their_numbers(design: om.Design) -> None:
    found = om.exchange.features(design, "c")
    matrix = design.mechanism.matrix
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    joint = weights[:, None] * matrix
    for k, feature in enumerate(found):
        told = feature["properties"]
        assert told["label"] == "abcd"[k]
        assert told["prior"] == pytest.approx(weights[k])
        apart = AWAY(design.problem.secrets, design.problem.secrets)
        assert told["loss"] == pytest.approx(matrix[k] @ apart[k])
        assert told["reported"] == pytest.approx(joint[:, k].sum())
        assert told["probability"] == matrix[k, 2]
        assert told["posterior"] == pytest.approx(joint[k, 2] / joint[:, 2].sum())
        ring = feature["geometry"]["coordinates"][0]
        assert ring[0] == ring[-1]
        assert area(ring) > 0
        # what is nearest to a point holds the point
        middle = np.mean(ring[:-1], axis=0)
        assert np.hypot(*(middle - POINTS[k])) < 0.04
    best = om.attacks.optimal_attack(design.mechanism, design.problem.prior, AWAY)
    errors = [feature["properties"]["attack_error"] for feature in found]
    assert errors == pytest.approx(best.error_per_secret.tolist())


def test_cells_of_a_grid_over_degrees_tile_its_box(tmp_path: Path) -> None:
    grid = om.Grid.geographic(2, 3, (10.0, 50.0, 10.6, 50.2))
    stated = om.Problem(om.Prior.uniform(grid), KM, constraints=[om.MetricPrivacy(0.1, KM)])
    found = om.solve(stated)
    assert om.exchange.write_geojson(found, tmp_path / "x.geojson") == 6
    features = json.loads((tmp_path / "x.geojson").read_text())["features"]
    rings = np.array([f["geometry"]["coordinates"][0] for f in features])
    np.testing.assert_allclose(rings.min(axis=(0, 1)), (10.0, 50.0), atol=1e-9)
    np.testing.assert_allclose(rings.max(axis=(0, 1)), (10.6, 50.2), atol=1e-9)
    assert sum(map(area, rings.tolist())) == pytest.approx(0.6 * 0.2)


def test_zones_keep_their_parts_and_holes(tmp_path: Path) -> None:
    shapely = pytest.importorskip("shapely.geometry")
    outer = [(0, 0), (0.03, 0), (0.03, 0.03), (0, 0.03)]
    hole = [(0.01, 0.01), (0.02, 0.01), (0.02, 0.02), (0.01, 0.02)]
    other = [(0.05, 0), (0.06, 0), (0.06, 0.01)]
    zones = om.Domain(
        ["ring", "yolk"], [(0.005, 0.005), (0.015, 0.015)], coordinates="lonlat",
        outlines=[[outer, hole, other], [hole]],
    )  # fmt: skip
    stated = om.Problem(om.Prior.uniform(zones), AWAY, constraints=[om.MetricPrivacy(1, AWAY)])
    ring, yolk = om.exchange.features(om.solve(stated))
    shape = shapely.shape(ring["geometry"])
    assert shape.area == pytest.approx(0.03**2 - 0.01**2 + 0.01**2 / 2)
    assert shapely.shape(yolk["geometry"]).area == pytest.approx(0.01**2)


def test_a_geodataframe_knows_where_it_is(design: om.Design) -> None:
    pytest.importorskip("geopandas")
    frame = om.exchange.to_geopandas(design)
    assert frame.crs.to_epsg() == 4326
    assert frame["prior"].sum() == pytest.approx(1)
    domain = om.exchange.from_geopandas(frame, label="label")
    assert domain.labels == ("a", "b", "c", "d")


def test_a_row_of_a_mechanism_as_a_geodataframe(design: om.Design) -> None:
    pytest.importorskip("geopandas")
    frame = design.mechanism.to_geopandas("b")
    assert frame["label"].tolist() == ["a", "b", "c", "d"]
    assert frame["probability"].tolist() == design.mechanism.matrix[1].tolist()
    assert frame.geometry.iloc[2].contains(frame.geometry.iloc[2].centroid)
    with pytest.raises(om.ProblemError, match="there is no 'z'"):
        design.mechanism.to_geopandas("z")
    line = om.mechanisms.geometric(om.Domain.range(3), 1.0)
    with pytest.raises(om.ProblemError, match="no longitudes"):
        line.to_geopandas(1)


def test_a_region_is_exported_by_its_triangles(tmp_path: Path) -> None:
    places = om.Domain.geographic(range(4), POINTS)
    mesh = om.Mesh.around(places, 4)
    promise = om.MetricPrivacy(0.5, AWAY, everywhere=mesh)
    design = om.solve(om.Problem(om.Prior.uniform(places), AWAY, constraints=[promise]), gap=1e-2)
    design.save(tmp_path / "d.json")
    out = tmp_path / "x.geojson"
    assert main(["export", str(tmp_path / "d.json"), "--format", "geojson", "-o", str(out)]) == 0
    features = json.loads(out.read_text())["features"]
    assert len(features) == len(mesh.triangles)
    for feature in features[::5]:
        middle = np.mean(feature["geometry"]["coordinates"][0][:3], axis=0)
        row = design.mechanism.at([middle])[0]
        told = feature["properties"]
        assert [told[f"p_{o}"] for o in range(4)] == pytest.approx(row.tolist(), abs=1e-9)
        assert told["probability"] == pytest.approx(row.max(), abs=1e-9)
    flags = ["--format", "geojson", "--report", "2", "-o", str(out)]
    assert main(["export", str(tmp_path / "d.json"), *flags]) == 0
    told = json.loads(out.read_text())["features"][0]["properties"]
    assert "p_2" in told
    assert "p_1" not in told


def test_what_cannot_be_put_on_a_map_is_refused(tmp_path: Path, capsys) -> None:
    line = om.Domain.range(3)
    flat = om.solve(om.Problem(om.Prior.uniform(line), KM, constraints=[om.MetricPrivacy(1, KM)]))
    with pytest.raises(om.ProblemError, match="no longitudes"):
        om.exchange.features(flat)
    flat.save(tmp_path / "d.json")
    out = str(tmp_path / "x.geojson")
    assert main(["export", str(tmp_path / "d.json"), "--format", "geojson", "-o", out]) == 2
    assert main(["export", "metric", "--report", "1", "-o", out]) == 2
    assert "--report" in capsys.readouterr().err


def test_a_map_of_folium(design: om.Design) -> None:
    pytest.importorskip("folium")
    text = om.exchange.explore(design, "c").get_root().render()
    # what the map is given, read back from the page: the posterior is Bayes' theorem
    given = json.loads(next(re.finditer(r"_add\((\{.*\})\);", text))[1])
    matrix, prior = design.mechanism.matrix, design.problem.prior.weights
    column = matrix[:, 2] * prior
    found = [feature["properties"]["posterior"] for feature in given["features"]]
    assert found == pytest.approx((column / column.sum()).tolist(), abs=1e-9)
    assert {feature["geometry"]["type"] for feature in given["features"]} == {"Polygon"}
    # nobody's server learns what is looked at, unless tiles are asked for
    assert "tile.openstreetmap.org" not in text
    tiles = om.exchange.explore(design, "c", tiles="OpenStreetMap").get_root().render()
    assert "tile.openstreetmap.org" in tiles
    with pytest.raises(om.ProblemError, match="column"):
        om.exchange.explore(design, column="height")


def test_without_folium_the_remedy_is_named(
    design: om.Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    from optmech.designs import cells

    monkeypatch.setattr(cells, "find_spec", lambda name: None)
    with pytest.raises(om.ProblemError, match=r"pip install folium"):
        om.exchange.explore(design)
