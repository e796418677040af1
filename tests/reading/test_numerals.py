"""What is read as a number from texts, by every door alike: 1_0 is no ten."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.analysis.counts import read_counts
from optmech.base.numerals import float_of_text, fraction_of_text, int_of_text
from optmech.cli.main import main
from optmech.errors import OptmechError, ProblemError
from optmech.exact.number import parse_exact, parse_signed
from optmech.files.extent import bounds_of
from optmech.reading.columns import read_columns, read_rows
from optmech.spaces.labels import find_label
from optmech.spaces.mesh.triangulation import rational

NUMERALS = [("10", 10.0), ("+10", 10.0), (" 10 ", 10.0), ("1e1", 10.0), ("10.0", 10.0)]
ODD = [
    "1_0",
    "1_0.0",
    "10_0e1_0",
    "１０",
    "１０.５",
    "١٠",
    "1 0",
    "1 e1",
    "0x10",
    "1e1_0",
    "1'000",
    "10½",
]


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_no_numbers(text: str) -> None:
    for read in (float_of_text, int_of_text, fraction_of_text):
        with pytest.raises(ValueError):
            read(text)
    for parse in (parse_exact, parse_signed):
        with pytest.raises(ProblemError):
            parse(text, where="")
    with pytest.raises(ProblemError):
        rational(text)


def test_numerals_are_read() -> None:
    for text, value in NUMERALS:
        assert float_of_text(text) == value
    assert int_of_text(" -7 ") == -7
    assert fraction_of_text("1/3") * 3 == 1
    assert float_of_text("-inf") == -np.inf
    assert np.isnan(float_of_text("NaN"))


def _cells(folder: Path, text: str) -> float:
    path = folder / "table.csv"
    path.write_text(f"x,y\n{text},1\n", encoding="utf-8")
    return float(read_columns(path, ["x"])["x"][0])


def _semicolons(folder: Path, text: str) -> float:
    path = folder / "table.csv"
    path.write_text(f"x;y\n{text};1\n", encoding="utf-8")
    return float(read_columns(path, ["x"])["x"][0])


def _rows(folder: Path, text: str) -> float:
    path = folder / "matrix.csv"
    path.write_text(f"{text},1\n2,3\n", encoding="utf-8")
    return float(read_rows(path)[0][0])


def _array(folder: Path, text: str) -> float:
    return float(om.Prior(om.Domain(["a", "b"]), np.array([text, "10"])).weights[0] * 20)


def _listed(folder: Path, text: str) -> float:
    points = om.Domain(["a", "b"], [[text, 1], ["2", 3]]).points
    assert points is not None
    return float(points[0, 0])


def _label(folder: Path, text: str) -> float:
    return float(str(find_label(om.Domain([10, 20]), text)))


def _features(folder: Path, text: str) -> float:
    path = folder / "map.geojson"
    point = {"type": "Point", "coordinates": [1, 2]}
    feature = {"type": "Feature", "properties": {"n": text}, "geometry": point}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return float(read_columns(path, ["n"])["n"][0])


DOORS: list[Callable[[Path, str], float]] = [
    _cells, _semicolons, _rows, _array, _listed, _label, _features,
]  # fmt: skip


@pytest.mark.parametrize("door", DOORS, ids=[door.__name__ for door in DOORS])
def test_every_door_reads_the_same(door: Callable[[Path, str], float], tmp_path: Path) -> None:
    assert door(tmp_path, " 10 " if door is not _label else "10") == 10.0
    for text in ODD:
        try:
            found = door(tmp_path, text)
        except (OptmechError, ValueError):
            continue
        assert np.isnan(found), text


@pytest.mark.parametrize("text", ["1_0", "１０", "0_1"])
@pytest.mark.parametrize(
    "words",
    [
        "solve home-out --gap {}", "solve home-out --time-limit {}",
        "sample nothing.json --seed {}", "init fixes.csv --x lon --y lat --radius {}km",
        "transport home-out-target --p {}", "noise --epsilon {}",
        "noise --epsilon 1 --sensitivity {}",
        "noise --epsilon 1 --width {}", "noise --epsilon 1 --loss 0,{}",
    ],
)  # fmt: skip
def test_options_take_numerals(
    words: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("fixes.csv").write_text("lon,lat\n0.5,0.5\n0.6,0.6\n")
    assert main(words.format(text).split()) == 2
    said = capsys.readouterr().err
    assert text in said
    assert "nothing.json" not in said
    assert "there is no" not in said


def test_a_cell_too_long_is_said_with_its_row_and_column(tmp_path: Path) -> None:
    most = csv.field_size_limit()
    for separator in ",;\t":
        path = tmp_path / "table.csv"
        long = f'"one, {separator} ""two"""{separator}{"x" * (most + 1)}{separator}3'
        path.write_text(separator.join("abc") + f"\n1{separator}2{separator}3\n\n{long}\n")
        with pytest.raises(ProblemError) as caught:
            read_columns(path, ["c"])
        said = str(caught.value)
        assert f"row 2 (line 4) has more than {most:,} characters in column 2" in said
        assert "quotation mark" in said
        assert "field" not in said
    # an open quotation mark, in the header, and in a table without one
    path.write_text('a,b\n1,"open\n' + ("2,3" * 400 + "\n") * (most // 1000))
    with pytest.raises(ProblemError, match=r"row 1 \(line 2\) .* in column 2"):
        read_columns(path, ["a"])
    path.write_text("a," + "b" * (most + 1) + "\n1,2\n")
    with pytest.raises(ProblemError, match=r"the header has more than .* in column 2"):
        read_columns(path, ["a"])
    path.write_text("1,2\n3,4" + "0" * most + "\n")
    with pytest.raises(ProblemError, match=r"row 2 \(line 2\) .* in column 2"):
        read_rows(path)


def test_boxes_and_counts_take_numerals(tmp_path: Path) -> None:
    """What the command line has as texts, and tables of reports."""
    assert bounds_of("-74.1,40.6,-73.9,40.9", True)[0] == -74.1
    with pytest.raises(ProblemError, match="is no box"):
        bounds_of("-7_4.1,40.6,-73.9,40.9", True)
    path, places = tmp_path / "reports.csv", om.Domain(["a", "b"])
    for text, sound in (("10", True), ("1_0", False)):
        path.write_text(f"observable,count\na,{text}\nb,2\n")
        if sound:
            assert read_counts(path, places).tolist() == [10, 2]
        else:
            with pytest.raises(ProblemError, match="no usable count"):
                read_counts(path, places)


@pytest.mark.parametrize("read", [float_of_text, int_of_text, fraction_of_text])
@pytest.mark.parametrize("text", ["45.173737-92", "1_0", "8.5.1", "9" * 5000 + "x", "x"])
def test_what_is_no_number_is_not_quoted(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not a number$"):
        read(text)
