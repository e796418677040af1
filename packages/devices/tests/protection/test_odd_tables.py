"""Tables as libraries make them: cells that are missing or masked, indexes, attributes, geometries
in other systems, numbers that are none; and messages that say nothing of what tables hold."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr
from plainly import main, plainly, proved_once

import optmech as om
from optmech.errors import ProblemError

BOX = (16.2, 48.1, 16.5, 48.3)
CELLS = om.Grid(4, 4, unit="km")
KM = om.distances.euclidean()
PLANE = om.mechanisms.exponential(CELLS, 0.1, KM)
GLOBE = om.mechanisms.exponential(om.Grid(4, 4, bounds=BOX), 0.1, KM)
NAMED = om.mechanisms.exponential(om.Domain("abcd", [[0, 0], [1, 0], [0, 1], [1, 1]]), 0.1, KM)
XY = np.array([[0.5, 0.5], [1.5, 2.5], [2.5, 3.5], [3.5, 0.5]])

KEPT: dict[str, Any] = {
    "string": pd.array(["a", None, "c", "d"], dtype="string"),
    "boolean": pd.array([True, None, False, True], dtype="boolean"),
    "Int64": pd.array([1, None, 3, 4], dtype="Int64"),
    "Float64": pd.array([1.5, None, 3.0, 4.0], dtype="Float64"),
    "category": pd.Categorical(["a", None, "c", "d"]),
    "times": pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"]),
    "times of a zone": pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"], utc=True),
    "periods": pd.PeriodIndex(["2020-01", None, "2020-02", "2020-03"], freq="M"),
    "lengths of time": pd.to_timedelta([1, None, 3, 4], unit="s"),
    "intervals": pd.interval_range(0, 4),
    "sparse": pd.arrays.SparseArray([0, 0, 1, 2]),
    "NA among objects": pd.Series([pd.NA, 1, "a", None], dtype=object),
    "arrays": pd.Series([np.array([1, 2]), np.array([3]), None, np.array([])], dtype=object),
    "lists": pd.Series([[1, 2], [3], None, []], dtype=object),
    "masked": pd.Series([np.ma.masked, 1, 2, 3], dtype=object),
    "tables": pd.Series([{}, {"a": 1}, None, set()], dtype=object),
    "bytes": pd.Series([b"a", b"", None, b"\xff"], dtype=object),
    "large numbers": pd.Series([10**400, 1, 2, 3], dtype=object),
}


def quiet(design: Any, data: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plainly(design, data, **more)


@pytest.mark.parametrize("kind", KEPT)
def test_columns_of_every_type_are_kept(kind: str) -> None:
    frame = pd.DataFrame({"x": XY[:, 0], "y": XY[:, 1], "user": KEPT[kind]})
    kept = quiet(PLANE, frame, keep="user")["user"]
    assert len(kept) == 4
    assert kept.dtype == frame["user"].dtype
    assert kept.isna().tolist() == frame["user"].isna().tolist()


@pytest.mark.parametrize("kind", ["Int64", "Float64", "objects", "NA", "masked"])
def test_missing_coordinates_of_every_type_are_dropped_or_refused(kind: str) -> None:
    cells = [1, None, 3, 2]
    column: Any = {
        "objects": np.array(cells, dtype=object),
        "NA": pd.Series([pd.NA if v is None else v for v in cells], dtype=object),
        "masked": pd.Series([np.ma.masked if v is None else v for v in cells], dtype=object),
    }.get(kind, pd.array(cells, dtype=kind) if kind.endswith("64") else None)
    frame = pd.DataFrame({"x": column, "y": XY[:, 1]})
    assert len(quiet(PLANE, frame, missing="drop")) == 3
    with pytest.raises(ProblemError, match="row 2: has no usable coordinates"):
        plainly(PLANE, frame)


def test_labels_that_are_missing_or_no_labels_are_no_secrets() -> None:
    label: Any
    for label in (np.ma.masked, pd.NA, None, float("nan"), ["b"], (np.ma.masked, 1), {}, b"a"):
        listed = ["a", label, "c"]
        wanted = 3 if label == ["b"] else 2
        column = pd.Series(listed, dtype=object)
        frame = pd.DataFrame({"l": column})
        assert len(quiet(NAMED, listed, outside="drop")) <= wanted
        assert len(quiet(NAMED, column, outside="drop")) <= wanted
        assert len(quiet(NAMED, frame, label="l", outside="drop")) <= wanted


# -- masks ----------------------------------------------------------------------------------------

_HIDDEN = np.array([[1, 1], [0, 0], [1, 0], [0, 0]], dtype=bool)
MASKED: Any = np.ma.masked_array(XY, mask=_HIDDEN)
"""Rows 1 and 3 have a coordinate that is masked."""
GIVEN: dict[str, Any] = {
    "array": MASKED,
    "rows": list(MASKED),
    "lists": [[np.ma.masked, 0.5], [1.5, 2.5], [2.5, np.ma.masked], [3.5, 0.5]],
    "whole numbers": np.ma.masked_array(XY.astype(int), mask=_HIDDEN),
}


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A mechanism for every point, and the same packed."""
    promise = om.MetricPrivacy(1, KM, everywhere=om.Mesh.grid((0, 0, 4, 4), width=2, unit="km"))
    design = om.solve(om.Problem(om.Prior.uniform(CELLS), KM, constraints=[promise]))
    path = tmp_path_factory.mktemp("packed") / "m.omm"
    return design.mechanism, om.pack(design, path)


@pytest.mark.parametrize("kind", GIVEN)
def test_masked_points_are_nowhere_or_refused(kind: str, everywhere: tuple[Any, Any]) -> None:
    """Whatever takes points: none of a mask is looked at as if it were there."""
    masked = GIVEN[kind]
    assert (np.asarray(CELLS.locate(masked)) >= 0).tolist() == [False, True, False, True]
    counted = om.Prior.from_points(CELLS, masked)
    assert np.count_nonzero(counted.weights) == 2
    mechanism, packed = everywhere
    takers: list[Callable[[Any], Any]] = [
        lambda points: om.Domain("abcd", points),
        lambda points: om.Mesh.around(points, width=1),
        lambda points: om.Mesh(points, [[0, 1, 2], [2, 3, 0]]),
        mechanism.draws_at,
        packed.draws_at,
        om.Earth.of("ln 2").cells_of,
        mechanism.mesh.listed,
        lambda points: om.Prior(om.Domain("abcd"), _first(points)),
        lambda points: om.Mechanism(["a"], om.Domain("abcd"), [_first(points)]),
    ]
    sound = np.array([[0.25, 0.25], [0.75, 0.25], [0.75, 0.75], [0.25, 0.75]])
    for taker in takers:
        taker(sound / sound[:, 0].sum() if taker in takers[-2:] else sound)
        with pytest.raises(ProblemError):
            taker(masked)


def _first(points: Any) -> Any:
    """The first column, masked where it is."""
    if isinstance(points, np.ndarray):
        return points[:, 0] if np.ma.isMaskedArray(points) else points[:, 0].tolist()
    return [row[0] for row in points]


def test_masked_points_have_no_report(everywhere: tuple[Any, Any]) -> None:
    for design, masked in product((PLANE, *everywhere), (GIVEN["array"], GIVEN["whole numbers"])):
        assert len(quiet(design, masked, missing="drop")) == 2
        with pytest.raises(ProblemError, match="row 1: has no usable coordinates"):
            plainly(design, masked)


# -- numbers that are none ------------------------------------------------------------------------

ODD: dict[str, Any] = {
    "complex": np.full((4, 2), 1 + 2j),
    "truth": np.ones((4, 2), dtype=bool),
    "lengths of time": np.ones((4, 2), dtype="m8[s]"),
    "times": np.ones((4, 2), dtype="M8[s]"),
    "structures": np.ones(4, dtype="f8,f8"),
    "lists of truth": [[True, 0.5]] * 4,
    "lists of complex": [(1j, 0.5)] * 4,
    "lists of lengths": [[timedelta(1), 0.5]] * 4,
    "numpy scalars": [[np.timedelta64(1, "s"), 0.5]] * 4,
    "objects": np.array([[np.True_, 0.5]] * 4, dtype=object),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_number_is_no_coordinate_no_weight_and_no_entry(kind: str) -> None:
    odd = ODD[kind]
    column = odd if kind == "structures" else [row[0] for row in odd]
    ends, spots = om.Domain("ab", [[0, 0], [1, 1]]), om.Domain("abcd")
    points, rows = XY, np.full((4, 2), 0.5)
    takers: list[tuple[Callable[[Any], Any], Any, Any]] = [
        (CELLS.locate, points, odd),
        (lambda given: om.Domain("abcd", given), points, odd),
        (lambda given: om.Prior.from_points(CELLS, given), points, odd),
        (lambda given: om.Mesh.around(given, width=1), points, odd),
        (om.Mechanism, rows, odd),
        (lambda given: om.Mechanism(spots, ["x", "y"], given), rows, odd),
        (lambda given: om.Prior(spots, given), rows[:, 0], column),
        (lambda given: om.distances.matrix(given)(spots, ends), rows, odd),
        (lambda given: ends.locate((0, 0), max_distance=given), 1.0, column[0]),
    ]
    for taker, sound, other in takers:
        taker(sound)
        with pytest.raises(ProblemError):
            taker(other)
    if isinstance(odd, np.ndarray) and odd.dtype.kind != "O":
        with pytest.raises(ProblemError):
            plainly(PLANE, odd)
        if odd.ndim == 2:
            frame = pd.DataFrame({"x": odd[:, 0], "y": XY[:, 1]})
            with pytest.raises(ProblemError, match="x: is not a column of numbers"):
                plainly(PLANE, frame)


# -- what tables carry with them ------------------------------------------------------------------


def test_levels_of_an_index_say_where_rows_are() -> None:
    index = pd.MultiIndex.from_arrays(XY.T, names=["x", "y"])
    frame = pd.DataFrame({"user": list("abcd")}, index=index)
    data = xr.Dataset.from_dataframe(frame.rename_axis(["x", "y"])).stack(row=["x", "y"])
    data = data.dropna("row")
    assert hasattr(data.indexes["row"], "levels")
    out = quiet(om.Mechanism(CELLS, CELLS, np.eye(16)), data, x="x", y="y", keep="user")
    found = sorted(zip(out["x"].values, out["y"].values, out["user"].values, strict=True))
    assert found == sorted((*row, user) for row, user in zip(XY.tolist(), "abcd", strict=True))


def test_attributes_are_left_out_with_a_word() -> None:
    home = {"comment": "home at 16.3512", "geospatial_lat_min": 48.2012}
    frame = pd.DataFrame({"lon": [16.31, 16.42], "lat": [48.2, 48.25], "user": ["a", "b"]})
    points = gpd.GeoDataFrame(frame, geometry=gpd.points_from_xy(frame.lon, frame.lat), crs=4326)
    data = xr.Dataset({name: ("row", frame[name].to_numpy()) for name in frame})
    frame.attrs, points.attrs, data.attrs = home, dict(home), dict(home)
    data["user"].attrs = dict(home)
    data.encoding = {"source": "/home/16.3512"}
    for given, named in ((frame, {}), (points, {}), (data, {"x": "lon", "y": "lat"})):
        with pytest.warns(UserWarning, match="attributes of the data are left out"):
            out = plainly(GLOBE, given, keep="user", **named)  # type: ignore[arg-type]
        every = [out, *getattr(out, "variables", {}).values()]
        assert not any(each.attrs or getattr(each, "encoding", {}) for each in every)
        assert given.attrs == home
        given.attrs = {}
    for name in data.variables:
        data[name].attrs = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plainly(GLOBE, frame)
        plainly(GLOBE, data, x="lon", y="lat")


def test_a_geometry_that_is_missing_is_a_row_without_coordinates() -> None:
    points = gpd.GeoSeries([shapely.Point(16.3, 48.2), None, shapely.Point()], crs=4326)
    data = gpd.GeoDataFrame({"user": [1, 2, 3]}, geometry=points)
    assert quiet(GLOBE, data, keep="user", missing="drop")["user"].tolist() == [1]
    with pytest.raises(ProblemError, match="row 2: has no usable coordinates"):
        plainly(GLOBE, data)


def shapes() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    lon, lat = 16.2 + 0.3 * rng.random(50), 48.1 + 0.2 * rng.random(50)
    data = gpd.GeoDataFrame(
        {"lon": lon, "lat": lat}, geometry=gpd.points_from_xy(lon, lat), crs=4326
    )
    other = data.geometry.to_crs(3857)
    return {
        "frame": data,
        "geometry elsewhere": other,
        "objects": pd.Series(list(other), dtype=object),
        "WKB": pd.Series(list(other.to_wkb()), dtype=object),
        "WKB in hexadecimal": pd.Series(list(other.to_wkb(hex=True)), dtype=object),
        "EWKB": pd.Series([shapely.to_wkb(p, hex=True, include_srid=True, byte_order=0)
                           for p in shapely.set_srid(other.to_numpy(), 3857)], dtype=object),
        "WKT": other.to_wkt(),
        "EWKT": "SRID=3857;" + other.to_wkt().str.lower(),
        "GeoJSON": pd.Series([json.dumps(shapely.geometry.mapping(p)) for p in other]),
        "tables": pd.Series([shapely.geometry.mapping(p) for p in other], dtype=object),
        "lines": gpd.GeoSeries([shapely.LineString([p.coords[0], (0, 0)]) for p in other]).to_wkt(),
        "times 10^7": pd.Series((lon * 1e7).astype(int)),
        "times 10^6": pd.Series((lat * 1e6).astype(int)),
        "both in a text": pd.Series(
            [f"{int(a * 1e7)}_{int(b * 1e7)}" for a, b in zip(lon, lat, strict=True)]),
        "texts": pd.Series([f"s{int(a * 1e5)}" for a in lon]),
    }  # fmt: skip


SHAPES = shapes()


@pytest.mark.parametrize("kind", [name for name in SHAPES if name != "frame"])
def test_shapes_and_scaled_degrees_are_no_columns_to_keep(kind: str, tmp_path: Path) -> None:
    data = SHAPES["frame"].copy()
    data["thing"] = SHAPES[kind].to_numpy()
    frame = pd.DataFrame(data.drop(columns="geometry"))
    for given in (data, frame):
        with pytest.raises(ProblemError, match="may give away what the report hides"):
            plainly(GLOBE, given, keep="thing")
        assert "thing" in quiet(GLOBE, given, keep_place="thing")
    if kind in ("objects", "geometry elsewhere", "WKB", "tables"):
        return
    frame.to_csv(tmp_path / "data.csv", index=False)
    cells = om.Grid(4, 4, bounds=BOX)
    problem = om.Problem(om.Prior.uniform(cells), KM, constraints=[om.LossBound(0.0)])
    om.solve(problem).save(tmp_path / "design.json")
    argv = ["protect", str(tmp_path / "design.json"), str(tmp_path / "data.csv"), "--keep", "thing"]
    assert main([*argv, "-o", str(tmp_path / "out.csv")]) == 2


def test_numbers_and_texts_that_tell_no_place_are_kept() -> None:
    """Names, whole numbers in any order, digests, words like those of shapes."""
    rng = np.random.default_rng(5)
    data = SHAPES["frame"].drop(columns="geometry")
    others = {
        "user": [f"u{k}" for k in range(50)],
        "count": rng.integers(0, 100, 50),
        "ticket": 4_000_000 + np.arange(50),
        "digest": [bytes(rng.integers(0, 256, 32, dtype=np.uint8)).hex() for _ in range(50)],
        "hash": [b"\x01" + bytes(rng.integers(128, 256, 31, dtype=np.uint8)) for _ in range(50)],
        "word": ["point of interest", "Multiplex (new)"] * 25,
    }
    for name, column in others.items():
        assert name in quiet(GLOBE, data.assign(**{name: column}), keep=name)


# -- messages -------------------------------------------------------------------------------------

SECRET = "16.35127"
TRACK = (
    '<?xml version="1.0"?><gpx><trk><trkseg>'
    + "".join(f'<trkpt lat="48.20{k:02}" lon="{SECRET}"/>' for k in range(80))
    + "</trkseg></trk></gpx>"
)
COMMA = SECRET.replace(".", ",")
TABLES = {
    "one line of XML": TRACK,
    "rows without a header": f"u1,{SECRET},48.2012\nu2,{SECRET},48.21\n",
    "one column": f"{SECRET}\n{SECRET}\n",
    "JSON": json.dumps({"lon": SECRET, "points": [[SECRET, 48.2]] * 40}),
    "marks of two kinds": f"lon;lat;u\n{COMMA};48,2;1\n{SECRET};48,3;2\n",
    "thousands": f"lon;lat;u\n{COMMA};48,2;1\n{COMMA},5;48,3;2\n",
    "cells too many": f"lon,lat\n{SECRET},48.2,{SECRET}\n",
    "words": f"lon,lat,u\n{SECRET} E,48.2 N,1\n",
    "outside": f"lon,lat,u\n{SECRET},12,1\n",
    "a long cell": f"lon,lat,u\n{SECRET},48.2,{SECRET * 40}\n",
    "an open quotation mark": f'lon,lat,u\n"{SECRET},48.2,1\n' + f"{SECRET},48.2,1\n" * 1200,
    "labels": f"label,lat,u\n{SECRET},48.2,1\n",
    "counts": f"observable,count\n{SECRET},4\nstation,{SECRET}x\n",
    "times": f"time,user,lon,lat\n{SECRET} o'clock,1,{SECRET},48.2\nat {SECRET},1,{SECRET},48.2\n",
    "dates": f"lon,lat,u\n{SECRET},48.2,2024-01-31 {SECRET}\n",
}
COMMANDS = (
    ["protect", "D", "T", "-o", "out.csv"],
    ["protect", "D", "T", "-o", "out.csv", "--x", "lon", "--y", "lat", "--keep", "u"],
    ["protect", "D", "T", "-o", "out.csv", "--x", "lon", "--y", "lat", "--sticky-by", "u",
     "--sticky-key-file", "key"],
    ["protect", "D", "T", "-o", "out.csv", "--label", "label"],
    ["measure", "D", "--crossings", "T"],
    ["estimate", "D", "T"],
    ["init", "T", "-o", "new.toml"],
    ["init", "T", "--label", "label", "-o", "new.toml"],
    ["adopt", "T", "--problem", "metric", "-o", "adopted.json"],
    ["check", "T", "--problem", "metric"],
    ["trace", "commuter", "--release", "T", "-o", "out.csv"],
    ["trace", "commuter", "--release", "T", "--label", "label", "-o", "out.csv"],
)  # fmt: skip


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A design, which is proved once."""
    cells = om.Grid(4, 4, bounds=BOX)
    problem = om.Problem(om.Prior.uniform(cells), KM, constraints=[om.MetricPrivacy(1, KM)])
    path = tmp_path_factory.mktemp("odd") / "D.json"
    om.solve(problem).save(path)
    with proved_once():
        yield path


@pytest.mark.parametrize("kind", TABLES)
def test_no_message_holds_a_cell(
    kind: str,
    sixteen: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every command that reads tables, with a table that it takes or refuses."""
    monkeypatch.chdir(tmp_path)
    Path("key").write_bytes(bytes(range(40)))
    for ending, argv in product((".csv", ".gpx", ".json"), COMMANDS):
        Path(f"T{ending}").write_text(TABLES[kind])
        line = [{"T": f"T{ending}", "D": str(sixteen)}.get(word, word) for word in argv]
        assert main(line) in range(5)
        said = capsys.readouterr().err
        assert "Traceback" not in said
        assert SECRET not in said, line
        assert COMMA not in said, line
