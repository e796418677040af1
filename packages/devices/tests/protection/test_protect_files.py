"""``optmech protect``: files in, files out, all of one or none of it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from optmech_devices.protection.files import Asked, protect_file
from optmech_devices.protection.flow import Flow
from optmech_devices.protection.reporter import Reporter
from optmech_devices.protection.spending import Spending
from plainly import ROWS as PLAINLY, main, plainly

import optmech as om
from optmech.base.storage import written_in_parts
from optmech.cli.main import main as command
from optmech.errors import ProblemError
from optmech.reading.columns import csv_parts

BOX = (-74.0, 40.0, -73.0, 42.0)
ROWS = [("a", "-73.9", "40.1", "x"), ("b", "-73.1", "41.9", 'y "2"'), ("a", "-73.5", "40.5", "z\n")]
CENTRES = [["-73.75", "40.25"], ["-73.25", "41.75"], ["-73.25", "40.75"]]


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every report is the place itself: nothing is promised, and the loss is 0."""
    grid = om.Grid(4, 2, bounds=BOX)
    problem = om.Problem(
        om.Prior.uniform(grid), om.distances.euclidean(), constraints=[om.LossBound(0.0)]
    )
    path = tmp_path_factory.mktemp("designs") / "design.json"
    om.solve(problem).save(path)
    return str(path)


@pytest.fixture
def fixes(tmp_path: Path) -> str:
    path = tmp_path / "fixes.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("user", "lon", "lat", "note"), *ROWS])
    return str(path)


def rows_of(path: str | Path) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_csv_to_csv(
    design: str, fixes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    options = ["--x", "lon", "--y", "lat", "-o", str(out)]
    assert main(["protect", design, fixes, *options]) == 0
    assert rows_of(out) == [["lon", "lat"], *CENTRES]
    said = capsys.readouterr()
    assert not said.out
    assert "left out: user, note" in said.err
    assert "3 reports written" in said.err
    assert main(["protect", design, fixes, *options, "--keep", "note", "--report", "cell"]) == 0
    assert rows_of(out)[0] == ["lon", "lat", "note", "cell"]
    assert [row[2] for row in rows_of(out)[1:]] == ["x", 'y "2"', "z\n"]
    assert [row[3] for row in rows_of(out)[1:]] == ["0,0", "3,1", "1,1"]
    assert main(["protect", design, fixes, *options, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["reports"] == 3
    assert plain["left_out"] == ["user", "note"]


def test_standard_input_to_standard_output(design: str, fixes: str) -> None:
    command = [
        sys.executable,
        "-m",
        "optmech",
        "protect",
        design,
        "-",
        "--x",
        "lon",
        "--y",
        "lat",
        *PLAINLY,
    ]
    done = subprocess.run(command, input=Path(fixes).read_bytes(), capture_output=True, check=True)
    assert list(csv.reader(io.StringIO(done.stdout.decode())))[1:] == CENTRES


def test_packed_parquet_and_geojson(design: str, fixes: str, tmp_path: Path) -> None:
    packed, table, points, back, last = (
        str(tmp_path / name)
        for name in ("a.csv.gz", "b.parquet", "c.geojson", "d.csv", "e.geojson")
    )
    place = ["--x", "lon", "--y", "lat"]
    assert main(["protect", design, fixes, *place, "--keep", "user", "-o", packed]) == 0
    assert gzip.decompress(Path(packed).read_bytes()).startswith(b"user,lon,lat\r\na,-73.75")
    assert main(["protect", design, packed, *place, "--keep", "user", "-o", table]) == 0
    frame = pd.read_parquet(table)
    assert frame["user"].tolist() == ["a", "b", "a"]
    assert frame[["lon", "lat"]].to_numpy().tolist() == np.array(CENTRES, dtype=float).tolist()
    assert main(["protect", design, table, *place, "--keep", "user", "-o", points]) == 0
    features = json.loads(Path(points).read_text())["features"]
    assert features[1] == {
        "type": "Feature",
        "properties": {"user": "b"},
        "geometry": {"type": "Point", "coordinates": [-73.25, 41.75]},
    }
    assert main(["protect", design, points, "-o", back]) == 0
    assert rows_of(back) == [["longitude", "latitude"], *CENTRES]
    assert main(["protect", design, points, "--keep", "user", "-o", last]) == 0
    assert Path(last).read_text() == Path(points).read_text()


def test_parquet_columns_keep_their_types(design: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "lon": [-73.9, -73.1],
            "lat": [40.1, 41.9],
            "id": [2**60 + 1, -5],
            "at": pd.to_datetime(["2026-01-01 00:00:00", "2026-02-03 10:20:30"]),
            "text": ["007", ""],
            "ok": [True, False],
        }
    )
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    frame.to_parquet(path)
    keep = ["--keep", "id", "at", "text", "ok"]
    options = ["--x", "lon", "--y", "lat", *keep, "-o", str(out)]
    assert main(["protect", design, str(path), *options]) == 0
    found = pd.read_parquet(out)
    kept = ["id", "at", "text", "ok"]
    assert found[kept].to_numpy().tolist() == frame[kept].to_numpy().tolist()
    assert found["id"].dtype == np.int64


def test_parts_of_any_size_give_the_same(design: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    source = tmp_path / "in.csv"
    xy = rng.uniform(BOX[:2], BOX[2:], (40, 2))
    lines = [f"{lon!r},{lat!r},u{k % 3}" for k, (lon, lat) in enumerate(xy.tolist())]
    source.write_text("\n".join(["lon,lat,user", *lines[:20], "", *lines[20:], ""]))
    grid = om.Grid(4, 2, bounds=BOX)
    m = om.mechanisms.exponential(grid, 0.01, om.distances.euclidean())
    asked = Asked("lon", "lat", by=("user",), keep=("user",))
    found = set()
    for size in (1, 7, 40, 1000):
        out = tmp_path / f"{size}.csv"
        reporter = Reporter(m, key=b"k" * 32)
        protect_file(Flow(reporter, asked, Spending(rows_are_people=True)), source, out, size=size)
        assert reporter.rows == 40
        found.add(out.read_bytes())
    assert len(found) == 1


def test_all_of_a_file_or_none(design: str, tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("lon,lat\n" + "-73.9,40.1\n" * 10 + "0,0\n")
    out.write_text("before")
    reporter = Reporter(om.Design.load(design).mechanism)
    with pytest.raises(ProblemError, match="row 11"):
        protect_file(
            Flow(reporter, Asked("lon", "lat"), Spending(rows_are_people=True)), source, out, size=3
        )
    assert out.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_writing_in_parts(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    os.chmod(path, 0o640)
    link.symlink_to(path)
    with written_in_parts(link) as write:
        write(b"one ")
        write(b"two")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"one two"
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(ZeroDivisionError):
        _fail_while_writing(path)
    assert path.read_bytes() == b"one two"
    with (
        pytest.raises(ProblemError, match="does not exist"),
        written_in_parts(tmp_path / "a" / "b"),
    ):
        pass
    with written_in_parts(os.devnull) as write:
        write(b"gone")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "link"]


def _fail_while_writing(path: Path) -> None:
    with written_in_parts(path) as write:
        write(b"lost")
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b'lon,lat\n"' + b"a\n" * 3000, "row of more than 1,000 lines"),
        (b"lon,lat\n1,2,3\n", "line 2 has 3 cells"),
        (b"lon,lat\n" + b"1" * (2**20 + 2), "more than 1,048,576 characters"),
    ],
)
def test_streams_that_are_no_tables(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(ProblemError, match=said), csv_parts(path, 10) as (_, _, parts):
        list(parts)


def test_short_rows_are_filled_up(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("\ufeffa,b,c\r\n1\r\n\r\n1,2,3\r\n", encoding="utf-8")
    with csv_parts(path, 10) as (_, header, parts):
        assert header == ["a", "b", "c"]
        # with the lines that they are on, an empty one among them
        assert list(parts) == [[(2, ["1", "", ""]), (4, ["1", "2", "3"])]]


def test_columns_called_as_coordinates_are_found(
    design: str, fixes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["protect", design, fixes]) == 0
    said = capsys.readouterr()
    assert [line.split(",") for line in said.out.split()] == [["lon", "lat"], *CENTRES]
    assert "taking 'lon' and 'lat' for the coordinates" in said.err
    # two columns of one kind without a word of their own, or none, say nothing
    for names in ("lon,lat,long,to_lat", "a,b,c,d"):
        path = tmp_path / "other.csv"
        path.write_text(f"{names}\n-73.9,40.1,-73.9,40.1\n")
        assert main(["protect", design, str(path)]) == 2
        assert "--x: no column says where a row is" in capsys.readouterr().err
    # what is named is taken, whatever the others are called
    assert main(["protect", design, fixes, "--label", "user"]) == 2
    assert "taking" not in capsys.readouterr().err


def test_columns_of_the_design_s_kind_are_found(
    design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Metres are no degrees: a design of either kind takes its own columns of a table of both, and
    none of the other's."""
    square = om.Problem(
        om.Prior.uniform(om.Grid(2, 2)), om.distances.euclidean(), constraints=[om.LossBound(0.0)]
    )
    plane = tmp_path / "plane.json"
    om.solve(square).save(plane)
    both = tmp_path / "both.csv"
    both.write_text("x,y,lon,lat\n0.1,0.9,-73.9,40.1\n")
    for own, names in ((design, ["lon", "lat"]), (str(plane), ["x", "y"])):
        assert main(["protect", own, str(both), "--outside", "nearest"]) == 0
        assert capsys.readouterr().out.split()[0].split(",") == names
    for own, names in ((design, "x,y"), (str(plane), "lon,lat")):
        other = tmp_path / "other.csv"
        other.write_text(f"{names}\n0.1,0.9\n")
        assert main(["protect", own, str(other), "--outside", "nearest"]) == 2
        assert "no column says where a row is" in capsys.readouterr().err


MISTAKES = [
    (["--y", "lat"], ["--x", "coordinates or labels", "--label"]),
    (["--x", "lon"], ["coordinate", "Give 2"]),
    (["--x", "lng", "--y", "lat"], ["fixes.csv", "'lng'", "'user', 'lon', 'lat'"]),
    (["--x", "lat", "--y", "lon"], ["fixes.csv", "row 1", "exchanged"]),
    (["--x", "lon", "--y", "lat", "--keep", "speed"], ["fixes.csv", "'speed'"]),
    (["--x", "lon", "--y", "lat", "--keep", "lat"], ["--keep", "'lat' says where a row is"]),
    (["--x", "lon", "--y", "lat", "--keep-place", "lat"], ["--keep", "replaced"]),
    (["--x", "lon", "--y", "lat", "--report", "user"], ["--report", "another name"]),
    (["--x", "lon", "--y", "note"], ["row 1", "no usable coordinates", "--missing drop"]),
    (["--label", "user"], ["fixes.csv: row 1", "the label is none", "--outside drop"]),
    (["--x", "lon", "--y", "lat", "--sticky-by", "user"], ["--sticky-by", "--sticky-key-file"]),
    (["--x", "lon", "--y", "lat", "--sticky-key-file", "KEY"], ["5 bytes", "openssl rand"]),
    (["--x", "lon", "--y", "lat", "--outside", "nearst"], ["Did you mean 'nearest'"]),
    (["--x", "lon", "--y", "lat", "--max-distance", "2"], ["max_distance"]),
    (["--x", "lon", "--y", "lat", "-o", "out.txt"], ["out.txt", ".csv, .csv.gz, .parquet"]),
    (["--x", "lon", "--y", "lat", "-o", "FIXES"], ["is an input file"]),
    (["--x", "lon", "--y", "lat", "--json"], ["standard output", "--json"]),
    (["--x", "lon", "--y", "lat", "--seed", "-1"], ["--seed", "out of range"]),
]


@pytest.mark.parametrize(("options", "said"), MISTAKES)
def test_mistakes_are_named_in_options(
    options: list[str], said: list[str], design: str, fixes: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    key = tmp_path / "key"
    key.write_bytes(b"short")
    known = {"KEY": str(key), "FIXES": fixes, "out.txt": str(tmp_path / "out.txt")}
    assert main(["protect", design, fixes, *(known.get(text, text) for text in options)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for text in said:
        assert text in error
    assert "outside =" not in error


def test_geojson_mistakes(design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "zones.geojson"
    ring = [[0, 0], [1, 0], [1, 1], [0, 0]]
    feature = {"type": "Feature", "properties": {}, "geometry":
               {"type": "Polygon", "coordinates": [ring]}}  # fmt: skip
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    assert main(["protect", design, str(path)]) == 2
    assert "features[0]: is a Polygon" in capsys.readouterr().err
    assert main(["protect", design, str(path), "--x", "lon"]) == 2
    assert "--x: the geometry of GeoJSON" in capsys.readouterr().err


def test_a_key_others_can_read_is_said(
    design: str, fixes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o644)
    options = ["--x", "lon", "--y", "lat", "-o", str(tmp_path / "o.csv")]
    assert main(["protect", design, fixes, *options, "--sticky-key-file", str(key)]) == 0
    assert "chmod 600" in capsys.readouterr().err
    key.chmod(0o600)
    assert main(["protect", design, fixes, *options, "--sticky-key-file", str(key)]) == 0
    assert "chmod" not in capsys.readouterr().err


APART = "lon,lat,note\n{0}\n,,no fix\n{0}\n50,10,stray\n{0}\nx,y,text\n"


@pytest.mark.parametrize(
    ("options", "kept", "said"),
    [
        (["--missing", "drop", "--outside", "nearest"], 4, "2 of 6 rows were dropped"),
        (["--missing", "drop", "--outside", "drop"], 3, "3 of 6 rows were dropped"),
        (["--outside", "drop"], 3, "3 of 6 rows were dropped"),
    ],
)
def test_rows_without_a_place_and_rows_outside_are_treated_apart(
    options: list[str], kept: int, said: str, design: str, fixes: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "rows.csv"
    path.write_text(APART.format(f"{_place_of(fixes)},in"))
    out = tmp_path / "out.csv"
    assert main(["protect", design, str(path), *options, "-o", str(out)]) == 0
    assert len(out.read_text().splitlines()) == kept + 1
    err = capsys.readouterr().err
    assert said in err
    # a row that is dropped as it has no place does not say that it lay outside
    assert ("says that it lay outside" in err) == (options[-1] == "drop")


@pytest.mark.parametrize(
    ("options", "where", "why"),
    [
        (["--missing", "refuse", "--outside", "drop"], "row 2 (line 3)", "2 without any"),
        (
            ["--missing", "drop", "--outside", "refuse"],
            "row 4 (line 5)",
            "outside of the domain (of rows 1",
        ),
        (["--outside", "nearest"], "row 2 (line 3)", "--missing drop"),
        ([], "row 2 (line 3)", "--missing drop"),
    ],
)
def test_refused_rows_are_found_in_their_file(
    options: list[str], where: str, why: str, design: str, fixes: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "rows.csv"
    path.write_text(APART.format(f"{_place_of(fixes)},in"))
    assert main(["protect", design, str(path), *options]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"rows.csv: {where}: " in error
    assert why in error


def test_lines_are_those_of_the_file(
    design: str, fixes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """With empty lines, and cells of several lines, in parts of two rows."""
    monkeypatch.setattr("optmech_devices.protection.files.PART", 2)
    place = _place_of(fixes)
    path = tmp_path / "rows.csv"
    path.write_text(f'lon,lat,note\n\n{place},"two\nlines"\n{place},\n\n{place},\n,,\n')
    assert main(["protect", design, str(path)]) == 2
    assert "rows.csv: row 4 (line 8): " in capsys.readouterr().err


def _place_of(fixes: str) -> str:
    header, first, *_ = Path(fixes).read_text().splitlines()
    row = dict(zip(header.split(","), first.split(","), strict=True))
    return f"{row['lon']},{row['lat']}"


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("digits", [310, 400, 4000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_coordinates_beyond_all_floats_are_no_place(
    digits: int, sign: str, design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = f"{sign}1{'0' * digits}"
    text = (
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"n": NUM}, '
        '"geometry": {"type": "Point", "coordinates": [NUM, 1]}}]}'
    )
    path = tmp_path / "far.geojson"
    path.write_text(text.replace("NUM", number))
    assert main(["protect", design, str(path)]) == 2
    assert "has no usable coordinates" in capsys.readouterr().err
    dropped = ["protect", design, str(path), "--outside", "drop", "--keep", "n", "-o"]
    for out in ("o.csv", "o.parquet", "o.geojson"):
        assert main([*dropped, str(tmp_path / out)]) == 0


@pytest.mark.parametrize("name", ["\x85\u2028", "\x1b[2J", "a\nb", "a\u202eb", "\x00"])
def test_names_of_new_columns_can_be_seen(
    design: str, fixes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    out = tmp_path / "out.csv"
    argv = ["protect", design, fixes, "--x", "lon", "--y", "lat", "--report", name, "-o", str(out)]
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert "--report" in said
    assert name not in said
    assert not out.exists()


@pytest.mark.parametrize("sticky", [False, True])
def test_a_summary_of_rows_that_nothing_ties_together(
    design: str, fixes: str, tmp_path: Path, sticky: bool
) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    argv = ["protect", design, fixes, "--x", "lon", "--y", "lat", "-o", str(tmp_path / "out.csv")]
    argv += ["--summary", str(tmp_path / "s.json")]
    argv += ["--sticky-key-file", str(tmp_path / "key")] if sticky else []
    assert main(argv) == 0
    found = json.loads((tmp_path / "s.json").read_text())
    assert (found["rows"], found["reports"], found["persons"]) == (3, 3, None)


CALLED_LIKE_PLACES = """lon Lat endLon startLatitude GPSLongitude home_address zip street_name
Straße Strasse PLZ Ziel_Breitengrad Ziel_Längengrad Laengengrad Wohnort Zieladresse Hausnummer
adresse rue code_postal longitude_depart latitude_fin coordonnées
calle dirección domicilio longitud_fin código_postal latitud
indirizzo via latitudine_arrivo longitudine CAP
straat breedtegraad lengtegraad eind_lengtegraad postcode huisnummer"""
OTHERS = "note speed Sitzplatz transport composition reports_made Bemerkung Umsatz durée prix"


@pytest.mark.parametrize("name", CALLED_LIKE_PLACES.split())
def test_what_is_called_like_a_place_in_any_language_is_not_kept(
    design: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    table.write_text(f"{name},a,b\nsecret,-73.9,40.1\n", encoding="utf-8")
    argv = ["protect", design, str(table), "--x", "a", "--y", "b", "-o", str(out)]
    assert main([*argv, "--keep", name]) == 2
    assert f"'{name}' is called like a coordinate or an address" in capsys.readouterr().err
    assert not out.exists()
    # what is written all the same is named
    assert main([*argv, "--keep-place", name]) == 0
    assert f"written as they are, not protected: {name}\n" in capsys.readouterr().err
    assert rows_of(out)[1][0] == "secret"


@pytest.mark.parametrize("name", OTHERS.split())
def test_what_is_not_called_like_a_place_is_kept(
    design: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    table.write_text(f"{name},lon,lat\n3,-73.9,40.1\n", encoding="utf-8")
    assert main(["protect", design, str(table), "--keep", name, "-o", str(out)]) == 0
    assert rows_of(out)[1][0] == "3"
    assert "not protected" not in capsys.readouterr().err


RNG = np.random.default_rng(3)
LONS = (-73.5 + 0.4 * RNG.uniform(-1, 1, 60)).round(5).tolist()
LATS = (41 + 0.8 * RNG.uniform(-1, 1, 60)).round(5).tolist()
TELLING = {
    "end": [f"{lon:.4f}" for lon in reversed(LONS)],
    "up": [f"{lat:.2f}" for lat in reversed(LATS)],
    "shape": [f"POINT ({x} {y})" for x, y in zip(LONS, LATS, strict=True)],
    "both": [f"{y}, {x}" for x, y in zip(reversed(LONS), reversed(LATS), strict=True)],
    "gaps": ["" if k % 5 == 0 else f"{x}" for k, x in enumerate(LONS)],
}
SILENT = {
    "whole": [str(40 + k % 2) for k in range(60)],
    "speed": [f"{50 * k / 60:.3f}" for k in range(60)],
    "clock": [f"2024-03-01T10:{k:02d}:{k:02d}.125Z" for k in range(60)],
    "text": ["at home"] * 60,
    "empty": [""] * 60,
}


def kept_table(path: Path, column: list[str]) -> None:
    """A table of 60 rows, by its ending, with a column that is to be kept."""
    frame = pd.DataFrame({"a": LONS, "b": LATS, "kept": column})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".geojson":
        features = [
            {"type": "Feature", "properties": {"kept": cell},
             "geometry": {"type": "Point", "coordinates": [x, y]}}
            for x, y, cell in zip(LONS, LATS, column, strict=True)
        ]  # fmt: skip
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    else:
        mark = ";" if path.stem == "semicolons" else ","
        frame.to_csv(path, index=False, sep=mark, decimal="," if mark == ";" else ".")


@pytest.mark.parametrize(
    ("content", "file"),
    [
        *product([*TELLING, *SILENT], ["t.csv", "semicolons.csv", "t.geojson"]),
        # each is read by a process of its own, three times
        *product(["end", "empty"], ["t.parquet"]),
    ],
)
def test_numbers_where_the_rows_are_give_a_place_away(
    design: str, content: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    column = {**TELLING, **SILENT}[content]
    if file == "semicolons.csv" and content in ("end", "up"):
        column = [cell.replace(".", ",") for cell in column]
    kept_table(tmp_path / file, column)
    out = tmp_path / "out.csv"
    argv = ["protect", design, str(tmp_path / file), "--outside", "nearest", "-o", str(out)]
    argv += [] if file == "t.geojson" else ["--x", "a", "--y", "b"]
    assert main([*argv, "--keep", "kept"]) == (2 if content in TELLING else 0)
    said = capsys.readouterr().err
    assert ("may give away what the report hides" in " ".join(said.split())) == (content in TELLING)
    assert ("--keep-place" in said) == (content in TELLING)
    assert out.exists() == (content in SILENT)
    assert main([*argv, "--keep-place", "kept"]) == 0


@pytest.mark.parametrize(
    ("names", "kept", "person"),
    [
        ("start_time,note", ["start_time", "note"], None),
        ("note,Uhrzeit", ["note", "Uhrzeit"], None),
        ("note,rider", ["note", "rider"], "rider"),
        ("Startzeit,Kundennummer", ["Startzeit", "Kundennummer"], "Kundennummer"),
        ("heure,utilisateur", ["heure", "utilisateur"], "utilisateur"),
        ("userId,when", ["when", "userId"], "userId"),
    ],
)
def test_only_what_is_called_like_a_person_is_one(
    design: str, names: str, kept: list[str], person: str | None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    table = tmp_path / "t.csv"
    table.write_text(f"{names},lon,lat\n1,1,-73.9,40.1\n1,1,-73.5,40.5\n", encoding="utf-8")
    argv = ["protect", design, str(table), "--keep", *kept, "-o", str(tmp_path / "out.csv")]
    assert command([*argv, "--summary", str(tmp_path / "s.json")]) == 0
    said, found = capsys.readouterr().err, json.loads((tmp_path / "s.json").read_text())["persons"]
    assert ("nothing says whose a row is" in said) == (not person)
    assert (found and found["columns"]) == (person and [person])
    assert ("draws about the worst of" in said) == (person is not None)


@pytest.mark.parametrize(
    ("x", "y", "mixed"),
    [
        ("end_lon", "start_lat", True),
        ("endLon", "startLat", True),
        ("lon1", "lat2", True),
        ("Ziel_Längengrad", "Start_Breitengrad", True),
        ("end_lon", "end_lat", False),
        ("lon_start", "start_lat", False),
        ("pickupLongitude", "pickupLatitude", False),
        ("Längengrad", "Breitengrad", False),
        ("a", "b", False),
    ],
)
def test_coordinates_of_two_places_are_not_mixed_silently(
    design: str, x: str, y: str, mixed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    rows = "".join(f"{-73.9 + k / 100},{40.1 + k % 7 / 50}\n" for k in range(50))
    table.write_text(f"{x},{y}\n{rows}", encoding="utf-8")
    said = f"'{x}' and '{y}' are taken for one place, and are called like those of two"
    out = ["-o", str(tmp_path / "out.csv")]
    for columns in (["--x", x, "--y", y], ["--pair", f"{x},{y}"]):
        assert main(["protect", design, str(table), *columns, *out]) == 0
        assert (said in capsys.readouterr().err) == mixed
        problem = ["--cells", "4", "--force", "-o", str(tmp_path / "p.toml")]
        assert main(["init", str(table), *columns, "--degrees", *problem]) == 0
        assert (said in capsys.readouterr().err) == mixed


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "lon"),
        (["--x", "lon", "--y", "lat"], "lon"),
        (["--pair", "lon,lat"], "lon"),
        (["--x", "a", "--y", "b", "--keep", "note"], "note"),
        (["--x", "a", "--y", "b", "--sticky-key-file", "KEY", "--sticky-by", "note"], "note"),
        (["--x", "a", "--y", "b"], ""),
    ],
)
def test_two_columns_of_one_name_are_refused(
    design: str, options: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    rows = "".join(
        f"1,2,{-73.9 + k / 100},40.1,-73.2,41.9,{-73.8 + k / 100},40.{k}\n" for k in range(9)
    )
    table.write_text(f"note,note,lon,lat,lon,lat,a,b\n{rows}")
    given = [str(tmp_path / "key") if text == "KEY" else text for text in options]
    assert main(["protect", design, str(table), *given, "-o", str(out)]) == (2 if named else 0)
    said = capsys.readouterr().err
    assert (f"t.csv: has two columns '{named}'" in said) == bool(named)
    assert out.exists() == (not named)
    if "--keep" not in options and "--sticky-by" not in options:
        argv = ["init", str(table), *options, "--degrees", "--cells", "4"]
        assert main([*argv, "-o", str(tmp_path / "p.toml")]) == (2 if named else 0)
        assert (f"t.csv: has two columns '{named}'" in capsys.readouterr().err) == bool(named)


def test_two_columns_of_a_frame_are_refused(design: str) -> None:
    frame = pd.DataFrame([[-73.9, 40.1, 1, 2]] * 3, columns=["lon", "lat", "note", "note"])
    kept = om.Design.load(design)
    assert list(plainly(kept, frame, x="lon", y="lat").columns) == ["lon", "lat"]
    with pytest.raises(ProblemError, match="has two columns 'note'"):
        plainly(kept, frame, x="lon", y="lat", keep="note")
    twice = pd.DataFrame([[-73.9, 40.1, -73.2]] * 3, columns=["lon", "lat", "lon"])
    with pytest.raises(ProblemError, match="has two columns 'lon'"):
        plainly(kept, twice, x="lon", y="lat")


def test_features_of_every_kind(
    design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Null and empty geometries count as empty cells do, for both commands; middles are said."""
    pytest.importorskip("shapely")
    points = [
        {"type": "Point", "coordinates": [-73.9 + k / 50, 40.1 + k % 7 / 4]} for k in range(40)
    ]
    line = {"type": "LineString", "coordinates": [[-73.9, 40.1], [-73.5, 40.5]]}
    several = {"type": "MultiPoint", "coordinates": [[-73.9, 40.1], [-73.5, 40.5]]}
    path, out = tmp_path / "t.geojson", tmp_path / "out.geojson"
    for more, lost, middles in (
        ([None], 1, ""),
        ([{"type": "Point", "coordinates": []}], 1, ""),
        ([line, line, several], 0, "2 LineString, 1 MultiPoint"),
        ([{"type": "Point", "coordinates": [-73.5, 40.5]}], 0, ""),
    ):
        features = [
            {"type": "Feature", "properties": {"n": k}, "geometry": geometry}
            for k, geometry in enumerate([*points, *more])
        ]
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        problem = ["--cells", "4", "--force", "-o", str(tmp_path / "p.toml")]
        assert main(["init", str(path), *problem]) == 0
        said = capsys.readouterr().err
        assert (f"{lost} of 41 rows" in said and "have no coordinates" in said) == bool(lost)
        assert ("middles of features that are no points" in said) == bool(middles)
        assert middles in said
        assert main(["protect", design, str(path), "-o", str(out)]) == (2 if middles else 0)
        said = capsys.readouterr().err
        assert ("features[40]: is a LineString, and no point" in said) == bool(middles)
        if not middles:
            assert f"{41 - lost} reports" in said


@pytest.mark.parametrize("ending", [".csv", ".geojson"])
def test_coordinates_have_no_digits_of_sums(ending: str, tmp_path: Path) -> None:
    """Centres of tenths of a degree; as sums of floats, 4.1499999999999995 is one of them."""
    grid = om.Grid.geographic(7, 7, (4.1, 52.1, 4.8, 52.8))
    centres = [(round(4.15 + k / 10, 2), round(52.15 + j / 10, 2))
               for j in range(7) for k in range(7)]  # fmt: skip
    truth = om.Mechanism(grid, grid, np.eye(49))
    (tmp_path / "t.csv").write_text("lon,lat\n" + "".join(f"{x},{y}\n" for x, y in centres))
    out = tmp_path / f"o{ending}"
    flow = Flow(Reporter(truth), Asked("lon", "lat"), Spending(rows_are_people=True))
    protect_file(flow, tmp_path / "t.csv", out)
    if ending == ".csv":
        assert [tuple(map(float, row)) for row in rows_of(out)[1:]] == centres
        assert max(len(cell) for row in rows_of(out)[1:] for cell in row) == 5
        return
    found = json.loads(out.read_text())["features"]
    assert [tuple(each["geometry"]["coordinates"]) for each in found] == centres


def test_statistics_and_packed_files_are_not_loaded_for_a_design(tmp_path: Path) -> None:
    """scipy.stats alone took longer than reading and drawing 100,000 rows."""
    grid, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    private = om.MetricPrivacy(1, km)
    design, points = tmp_path / "design.json", tmp_path / "points.csv"
    om.solve(om.Problem(om.Prior.uniform(grid), km, constraints=[private])).save(design)
    points.write_text("x,y\n0.5,1.5\n", encoding="utf-8")
    code = (
        "import sys; from optmech.cli.main import main; main(sys.argv[1:]); "
        "print(*{'scipy.special', 'scipy.stats', 'optmech_devices.packed.file'} & set(sys.modules))"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "protect",
        design,
        points,
        *PLAINLY,
        "-o",
        tmp_path / "out.csv",
    ]
    home = Path(om.__file__).parents[1]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=True)
    assert "random pairs of positions exceed ε" in done.stderr
    assert done.stdout.strip() == ""
