"""Mistakes with tables, and in problem files: each is answered with place, reason and remedy."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main

CITY = """
format = 1
prior = "uniform"
loss = "euclidean"
[secrets]
kind = "grid"
rows = 2
columns = 2
bounds = [5.0, 45.0, 5.1, 45.1]
[[constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
"""
TABLES = {
    "empty": "",
    "header": "lon,lat\n",
    "twice": "lon,lon,lat\n5,5,45\n",
    "ragged": "lon,lat\n5.05,45.05\n5.01,45.02,9\n",
    "comma": 'lon,lat\n"5,05","45,05"\n',
    "swapped": "lon,lat\n45.05,5.05\n",
    "thousands": "E;N\n2,683,141;1,247,500\n",
    "marks": "lon;lat\n5,05;45,05\n5,06;45.06\n",
    "minutes": "lon,lat\n5°03'E,45°03'N\n",
    "metres": "lon,lat\n651234,4987654\n",
    "fixes": "user,lon,lat\na,5.05,45.05\nb,5.06,45.06\n",
}
PRIOR = '[prior]\nkind = "csv"\nfile = "fixes.csv"\nx = "lon"\ny = "lat"'
CHANGED = {
    "negative": ("epsilon = 1", "epsilon = -1"),
    "nan": ("epsilon = 1", "epsilon = nan"),
    "percent": ("epsilon = 1", 'epsilon = "50%"'),
    "logarithm": ("epsilon = 1", 'epsilon = "log(3)"'),
    "truth": ("epsilon = 1", "epsilon = true"),
    "kind": ('"metric_privacy"', '"metric_privcy"'),
    "double": ('prior = "uniform"', 'prior = "uniform"\nprior = "uniform"'),
    "west": ("[5.0, 45.0, 5.1, 45.1]", "[5.1, 45.0, 5.0, 45.1]"),
    "pole": ("[5.0, 45.0, 5.1, 45.1]", "[5.0, 45.0, 5.1, 95.1]"),
    "version": ("format = 1", "format = 2"),
    "quotes": ('"uniform"', "“uniform”"),
    "capital": ('prior = "uniform"', 'Prior = "uniform"'),
    "large": ("rows = 2\ncolumns = 2", "rows = 2000\ncolumns = 2000"),
    "below": ('prior = "uniform"\nloss = "euclidean"', PRIOR + '\nloss = "euclidean"'),
    "bracket": ("[[constraints]]", "[constraints]"),
    "section": ("[secrets]", "[secret]"),
}

MISTAKES = [
    # the table
    ("init empty.csv", "empty.csv", "is empty", "names of its columns"),
    ("init header.csv", "header.csv", "no row has numbers", "Name the columns"),
    ("init twice.csv", "twice.csv", "has two columns 'lon'", "Rename all but one of them"),
    ("init comma.csv", "comma.csv", "no row has numbers", "5.05, with a point"),
    ("init thousands.csv", "thousands.csv", "'E' has numbers with points and with commas",
     "nothing between thousands"),
    ("init metres.csv", "metres.csv", "1 of 1 rows have none in degrees",
     "Call the columns of a projection x and y"),
    ("init latin.csv", "latin.csv", "not a UTF-8 CSV file", "Save it as UTF-8"),
    ("init cut.csv.gz", "cut.csv.gz", "packed as its name says", "Pack it again"),
    ("init plain.csv.gz", "plain.csv.gz", "packed as its name says", "give it plain"),
    ("init book.xlsx", "book.xlsx", "a spreadsheet, and no table", ".csv"),
    ("init folder", "folder", "this is a folder", "Name a file in it"),
    ("init fixes.csv --x lon --y lon", "--y", "'lon' is both x and y", "Name two columns"),
    ("init fixes.csv --radius 0", "--radius", "must be above 0", "positive number"),
    ("init fixes.csv --radius nan", "--radius", "nan is NaN or infinite", "Give a finite number"),
    ("init fixes.csv --factor inf", "--factor", "inf is NaN or infinite", "Give a finite number"),
    ("init fixes.csv --cells 9.5", "--cells", "'9.5'", "a whole number such as 10"),
    # reports
    ("protect design.json ragged.csv", "ragged.csv: line 3", "3 cells, and there are 2 columns",
     "Quote the cells"),
    ("protect design.json minutes.csv", "minutes.csv: row 1", "no usable",
     "5.05, with a point"),
    ("protect design.json metres.csv --outside nearest", "metres.csv: row 1", "has no usable",
     "longitude and latitude in degrees"),
    ("protect design.json swapped.csv", "swapped.csv: row 1", "outside of the domain",
     "seem to be exchanged"),
    ("protect design.json marks.csv", "marks.csv", "'lat' has numbers with points and with commas",
     "one decimal mark"),
    ("protect design.json fixes.csv -o folder", "--output: folder", "it is a folder",
     "Choose another path"),
    ("protect design.json fixes.csv --x 2 --y 3", "fixes.csv", "no column '2'",
     "'user', 'lon', 'lat'"),
    ("protect design.json fixes.csv --keep User", "fixes.csv", "no column 'User'", "'user'"),
    ("protect design.json fixes.csv --sticky-key-file nokey", "nokey", "No such file",
     "Check the path"),
    # the problem file
    ("solve negative.toml", "constraints[0].epsilon", "-1 is negative", ">= 0"),
    ("solve nan.toml", "constraints[0].epsilon", "nan is not finite", "Give a finite number"),
    ("solve percent.toml", "constraints[0].epsilon", "'50%' is not a number", "Write 0.5"),
    ("solve logarithm.toml", "constraints[0].epsilon", "'log(3)'", 'Write "ln 3"'),
    ("solve truth.toml", "constraints[0].epsilon", "True is not a number", '"ln 3"'),
    ("solve kind.toml", "constraints[0].kind", "'metric_privcy' is unknown", "Did you mean"),
    ("solve double.toml", "double.toml", "line 4, column 18", "Correct the syntax"),
    ("solve west.toml", "secrets.bounds", "not a box of degrees", "west < east"),
    ("solve pole.toml", "secrets.bounds", "not a box of degrees", "south < north"),
    ("solve version.toml", "version.toml: format", "2 is unknown", "Known are 1"),
    ("solve quotes.toml", "quotes.toml", "line 3, column 9", "Write quotes straight"),
    ("solve capital.toml", "capital.toml: Prior", "not a known key", "Did you mean 'prior'"),
    ("solve large.toml", "secrets.rows", "4,000,000 secrets", "coarser domain"),
    ("solve below.toml", "prior.loss", "not a known key", "above the first [table]"),
    ("solve bracket.toml", "bracket.toml: constraints", "is not an array", "[[...]]"),
    ("solve section.toml", "section.toml: secret", "not a known key", "Did you mean 'secrets'"),
    # options
    ("solve city.toml --gap -1", "--gap", "-1 is not a positive number", "such as 0.01"),
    ("solve city.toml --time-limit 0", "--time-limit", "0 is not a positive", "such as 60"),
    ("solve city.toml --gap nan", "--gap", "nan is not a positive number", "such as 0.01"),
    ("solve city.toml --report page.pdf", "--report: page.pdf", "not the name of a page", ".html"),
    ("--verison", "optmech", "--verison", "Did you mean --version?"),
    ("problems montreal", "optmech", "montreal", "takes options only"),
    ("sample design.json 9,9", "SECRET", "no '9,9' among the 4 labels", "The first ones are"),
    ("sample design.json 0,0 -n 0", "-n", "0 is out of range", "Give 1 to"),
    ("attack design.json --distance km", "--distance", "'km' is unknown", "euclidean"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("further")
    for name, text in TABLES.items():
        (place / f"{name}.csv").write_text(text, encoding="utf-8")
    (place / "latin.csv").write_bytes("name,lon,lat\nGenève,5,45\n".encode("latin-1"))
    (place / "cut.csv.gz").write_bytes(gzip.compress(b"lon,lat\n" + b"5.05,45.05\n" * 999)[:40])
    (place / "plain.csv.gz").write_bytes(b"lon,lat\n5,45\n")
    (place / "book.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    (place / "folder").mkdir()
    (place / "city.toml").write_text(CITY)
    for name, (old, new) in CHANGED.items():
        assert old in CITY
        (place / f"{name}.toml").write_text(CITY.replace(old, new), encoding="utf-8")
    om.solve(om.load_problem(place / "city.toml")).save(place / "design.json")
    return place


@pytest.mark.parametrize(
    ("command", "place", "reason", "remedy"), MISTAKES, ids=[m[0] for m in MISTAKES]
)
def test_a_mistake_is_answered(
    command: str, place: str, reason: str, remedy: str, folder: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    assert main(command.split()) == 2
    said = capsys.readouterr().err.splitlines()
    lines = [line for line in said if line.startswith("optmech: error: ")]
    # beside errors there is only what was guessed of columns
    assert all(line in lines or line.startswith(("taking ", "columns are")) for line in said)
    (line,) = [line for line in lines if place in line and reason in line]
    assert remedy in line.partition(reason)[2]
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_point_with_its_coordinates_exchanged_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a region of the globe, where the exchanged point lies inside: not in the plane, and not
    of a point that lies nowhere."""
    for box, exchanged, unit in (
        ((2.2, 48.8, 2.5, 49.0), "48.9,2.3", "lonlat"),
        ((2.0, 48.0, 3.0, 49.0), "48.5,2.5", "plane"),
    ):
        mesh = om.Mesh.grid(box, 1, coordinates=unit)
        places = np.asarray(mesh.vertices[:2])
        secrets = om.Domain(["a", "b"], places, coordinates=unit)
        distance = om.distances.haversine() if unit == "lonlat" else om.distances.euclidean()
        privacy = om.MetricPrivacy("1/10", distance, everywhere=mesh)
        problem = om.Problem(om.Prior.uniform(secrets), distance, constraints=[privacy])
        om.solve(problem).save(tmp_path / "design.json")
        for point in (exchanged, "80,80"):
            assert main(["sample", str(tmp_path / "design.json"), point]) == 2
            said = capsys.readouterr().err
            assert "lies outside of the region" in said
            assert ("the other way around" in said) == (unit == "lonlat" and point == exchanged)
            assert point.split(",")[0] not in said
