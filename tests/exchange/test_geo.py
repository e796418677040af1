"""Zones, hexagons and roads: distances against those of pyproj and h3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.files import load_problem
from optmech.spaces.layout import layout

exchange = om.exchange
RADIUS = 6371008.8
"""Mean Earth radius (IUGG) in metres."""


def square(west: float, south: float, side: float) -> list[list[float]]:
    east, north = west + side, south + side
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


@pytest.fixture
def geojson(tmp_path: Path) -> Path:
    """Three zones of Montréal: a square, one with a hole, and two parts."""
    hole = square(-73.58, 45.52, 0.01)[::-1]
    geometries: list[dict[str, Any]] = [
        {"type": "Polygon", "coordinates": [square(-73.70, 45.45, 0.04)]},
        {"type": "Polygon", "coordinates": [square(-73.60, 45.50, 0.05), hole]},
        {
            "type": "MultiPolygon",
            "coordinates": [[square(-73.5, 45.6, 0.02)], [square(-73.46, 45.6, 0.02)]],
        },
    ]
    features = [
        {"type": "Feature", "properties": {"name": name, "trips": trips}, "geometry": geometry}
        for name, trips, geometry in zip(
            ["Lachine", "Plateau", "Anjou"], [3, 5, 2], geometries, strict=True
        )
    ]
    path = tmp_path / "zones.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def on_a_sphere(domain: om.Domain) -> np.ndarray:
    """Great-circle distances in km, by pyproj."""
    geod = pytest.importorskip("pyproj").Geod(a=RADIUS, b=RADIUS)
    lon, lat = domain.points.T
    count = len(domain)
    i, j = np.indices((count, count)).reshape(2, -1)
    return np.asarray(geod.inv(lon[i], lat[i], lon[j], lat[j])[2]).reshape(count, count) / 1000


def test_geojson_zones_have_the_distances_of_a_gis(geojson: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    zones = exchange.read_geojson(geojson, "name")
    assert zones.labels == ("Lachine", "Plateau", "Anjou")
    found = om.distances.haversine()(zones, zones)
    np.testing.assert_allclose(found, on_a_sphere(zones), rtol=1e-9, atol=1e-9)
    # a GIS in metres on the ellipsoid, with centroids of the projected shapes
    projected = geopandas.read_file(geojson).to_crs(32618).centroid
    metres = np.array([[a.distance(b) for b in projected] for a in projected])
    np.testing.assert_allclose(found, metres / 1000, rtol=5e-3)


def test_geojson_and_geopandas_agree_in_any_projection(geojson: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    frame = geopandas.read_file(geojson)
    direct = exchange.read_geojson(geojson, "name")
    for given in (frame, frame.to_crs(32618)):
        domain = exchange.from_geopandas(given, "name")
        assert domain.labels == direct.labels
        np.testing.assert_allclose(domain.points, direct.points, atol=1e-7)


def test_outlines_are_drawn_and_saved(geojson: Path, tmp_path: Path) -> None:
    pytest.importorskip("shapely")
    zones = exchange.read_geojson(geojson, "name")
    drawn = layout(zones)
    assert drawn is not None
    assert drawn.exact
    assert np.diff(drawn.shape_ends, prepend=0).tolist() == [1, 2, 2]
    km = om.distances.haversine()
    stated = om.Problem(om.Prior.uniform(zones), km, constraints=[om.MetricPrivacy(0.1, km)])
    om.solve(stated).save(tmp_path / "design.json")
    kept = om.Design.load(tmp_path / "design.json").problem.secrets
    assert kept.outlines is not None
    np.testing.assert_array_equal(kept.outlines[2][1], zones.outlines[2][1])


def test_hexagons_have_the_distances_of_h3() -> None:
    h3 = pytest.importorskip("h3")
    centre = h3.latlng_to_cell(45.51, -73.57, 7)
    cells = sorted(h3.grid_disk(centre, 2))
    domain = exchange.from_h3(cells)
    found = om.distances.haversine()(domain, domain)
    places = [h3.cell_to_latlng(cell) for cell in cells]
    known = [[h3.great_circle_distance(a, b, unit="km") for b in places] for a in places]
    # h3 takes another mean radius of the Earth: 6371.007180918475 km
    np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-6)
    assert len(domain.outlines[0][0]) == 6


def test_hexagons_across_the_antimeridian_stay_whole() -> None:
    h3 = pytest.importorskip("h3")
    domain = exchange.from_h3([h3.latlng_to_cell(0.0, 179.999, 4)])
    assert np.ptp(domain.outlines[0][0][:, 0]) < 2


OSM = """<?xml version="1.0" encoding="UTF-8"?>
<osm version="0.6">
 <node id="1" lat="45.5000" lon="-73.6000"/><node id="2" lat="45.5000" lon="-73.5900"/>
 <node id="3" lat="45.5050" lon="-73.5900"/><node id="4" lat="45.5050" lon="-73.6000"/>
 <node id="5" lat="45.5100" lon="-73.5950"/><node id="6" lat="45.5020" lon="-73.5800"/>
 <node id="8" lat="45.6" lon="-73.5"/><node id="9" lat="45.6" lon="-73.51"/>
 <way id="10"><nd ref="1"/><nd ref="2"/><nd ref="3"/><tag k="highway" v="residential"/></way>
 <way id="11"><nd ref="3"/><nd ref="4"/><nd ref="1"/><tag k="highway" v="tertiary"/></way>
 <way id="12"><nd ref="3"/><nd ref="5"/><nd ref="99"/><tag k="highway" v="primary"/></way>
 <way id="13"><nd ref="2"/><nd ref="6"/><tag k="highway" v="service"/></way>
 <way id="14"><nd ref="8"/><nd ref="9"/><tag k="highway" v="residential"/></way>
 <way id="15"><nd ref="1"/><nd ref="6"/><tag k="highway" v="residential"/></way>
</osm>
"""


def test_roads_of_an_extract(tmp_path: Path) -> None:
    geod = pytest.importorskip("pyproj").Geod(a=RADIUS, b=RADIUS)
    path = tmp_path / "roads.osm"
    path.write_text(OSM)
    roads = exchange.read_osm(path)
    drawn = roads.__geo_interface__["coordinates"]
    assert len(drawn) == roads.network.number_of_edges()
    ends = {tuple(end) for line in drawn for end in line}
    assert ends == {tuple(place) for place in roads.domain.points.tolist()}
    places = {
        1: (-73.6, 45.5), 2: (-73.59, 45.5), 3: (-73.59, 45.505), 4: (-73.6, 45.505),
        5: (-73.595, 45.51), 6: (-73.58, 45.502),
    }  # fmt: skip

    def length(*nodes: int) -> float:
        lon, lat = zip(*[places[node] for node in nodes], strict=True)
        return float(geod.line_length(lon, lat)) / 1000

    # 2 only bends a road, and 4 the other road between the same crossings, which keeps it; 8 and
    # 9 are apart; service ways and node 99 are left out
    assert roads.domain.labels == (1, 3, 4, 5, 6)
    found = roads.distance(roads.domain, roads.domain)
    around = min(length(1, 2, 3), length(1, 4, 3))
    assert found[0, 1] == pytest.approx(around, rel=1e-9)
    assert found[4, 3] == pytest.approx(length(6, 1) + around + length(3, 5), rel=1e-9)
    whole = sum(w for _, _, w in roads.network.edges(data="weight"))
    assert whole == pytest.approx(
        length(1, 2, 3) + length(1, 4, 3) + length(3, 5) + length(1, 6), rel=1e-9
    )


def test_problem_files_take_zones_hexagons_and_extracts(geojson: Path, tmp_path: Path) -> None:
    pytest.importorskip("h3")
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    (tmp_path / "roads.osm").write_text(OSM)
    table = pandas.DataFrame({"lon": [-73.57, -73.68, -73.57], "lat": [45.53, 45.47, 45.53]})
    table.to_parquet(tmp_path / "seen.parquet")

    def problem(secrets: str, prior: str, distance: str) -> om.Problem:
        path = tmp_path / "p.toml"
        path.write_text(
            f'format = 1\nloss = "{distance}"\nsecrets = {{ {secrets} }}\nprior = {prior}\n'
        )
        return load_problem(path)

    zones = problem(
        'kind = "zones", file = "zones.geojson", label = "name"',
        '{ kind = "column", column = "trips" }',
        "haversine",
    )
    np.testing.assert_allclose(zones.prior.weights, [0.3, 0.5, 0.2])
    assert zones.secrets.outlines is not None
    counted = problem(
        'kind = "zones", file = "zones.geojson"',
        '{ kind = "csv", file = "seen.parquet", x = "lon", y = "lat" }',
        "haversine",
    )
    np.testing.assert_allclose(counted.prior.weights, [1 / 3, 2 / 3, 0])
    places = problem(
        'kind = "table", file = "zones.geojson", x = "longitude", y = "latitude", '
        'coordinates = "lonlat", label = "name"',
        '"uniform"',
        "haversine",
    )
    np.testing.assert_allclose(places.secrets.points, zones.secrets.points)
    hexagons = problem('kind = "h3", cells = ["862baad27ffffff"]', '"uniform"', "haversine")
    assert len(hexagons.secrets) == 1
    roads = problem('kind = "graph", osm = "roads.osm"', '"uniform"', "graph")
    assert roads.secrets.labels == (1, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "feature collection"),
        ("{", "feature collection"),
        ('{"features": []}', "holds nothing"),
        ('{"features": [{"geometry": {"type": "Point"}}]}', "cannot be read"),
        (
            '{"features": [{"geometry": {"type": "LineString", "coordinates": [[0,0],[1,1]]}}]}',
            "holds LineString",
        ),
        ('{"features": [{"geometry": {"type": "Polygon", "coordinates": []}}]}', "is empty"),
    ],
)
def test_bad_geojson_is_refused(tmp_path: Path, content: str, message: str) -> None:
    pytest.importorskip("shapely")
    path = tmp_path / "bad.geojson"
    path.write_text(content)
    with pytest.raises(om.ProblemError, match=message):
        exchange.read_geojson(path)


def test_other_bad_input_is_refused(geojson: Path, tmp_path: Path) -> None:
    pytest.importorskip("h3")
    with pytest.raises(om.ProblemError, match="no property 'size'"):
        exchange.read_geojson(geojson, "size")
    with pytest.raises(om.ProblemError, match="not an H3 cell"):
        exchange.from_h3(["862baad27ffffff", "Montréal"])
    with pytest.raises(om.ProblemError, match="not a GeoDataFrame"):
        exchange.from_geopandas([1])
    for content, message in (("no xml", "not an OpenStreetMap"), ("<osm/>", "holds no road")):
        (tmp_path / "bad.osm").write_text(content)
        with pytest.raises(om.ProblemError, match=message):
            exchange.read_osm(tmp_path / "bad.osm")
    with pytest.raises(om.ProblemError, match="rings"):
        om.Domain("a", [(0, 0)], outlines=[[[(0, 0), (1, 1)]]])
    with pytest.raises(om.ProblemError, match="outlines do not fit"):
        om.Domain("ab", [(0, 0), (1, 1)], outlines=[[[(0, 0), (1, 1), (1, 0)]]])
