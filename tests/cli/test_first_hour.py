"""From a table of points to protected points, a page and a checked design; ``optmech init``."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main

DEGREE = 111.19508
"""Kilometres, on a sphere of 6371.0088 km."""


@pytest.fixture
def fixes(tmp_path: Path) -> Path:
    rng = np.random.default_rng(11)
    path = tmp_path / "fixes.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["user", "when", "start_lng", "start_lat", "station"])
        for k in range(315):
            x, y = rng.normal((-74.05, 40.72), 0.02).tolist()
            rows.writerow([f"u{k % 5}", k, f"{x:.6f}", f"{y:.6f}", f"s{k % 7 if k < 308 else 0}"])
    return path


def test_four_commands_and_a_page(
    fixes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of theirs; as processes commands like these are run in test_bare_machine."""
    folder = fixes.parent
    monkeypatch.chdir(folder)
    assert main(["init", "fixes.csv", "--cells", "25"]) == 0
    said = capsys.readouterr().err
    assert "taking 'start_lng' and 'start_lat'" in said
    assert "the design's file and page will contain it" in said
    assert main(["solve", "problem.toml", "-q", "-o", "design.json"]) == 0
    place = ["--x", "start_lng", "--y", "start_lat"]
    more = ["--outside", "nearest", "--no-budget", "-o", "protected.csv"]
    capsys.readouterr()
    assert main(["protect", "design.json", "fixes.csv", *place, *more]) == 0
    assert "left out: user, when, station" in capsys.readouterr().err
    assert main(["check", "design.json"]) == 0
    assert "passed" in capsys.readouterr().out
    assert main(["report", "design.json", "-o", "report.html"]) == 0
    assert (folder / "report.html").read_bytes().lower().startswith(b"<!doctype html>")

    # the reports are centres of the grid's cells, worked out from the problem file alone
    text = (folder / "problem.toml").read_text(encoding="utf-8")
    known = dict(line.partition("#")[0].split(" = ") for line in text.splitlines() if " = " in line)
    rows, columns = int(known["rows"]), int(known["columns"])
    west, south, east, north = json.loads(known["bounds"])
    with open(folder / "protected.csv", newline="", encoding="utf-8") as stream:
        header, *reports = csv.reader(stream)
    assert header == ["start_lng", "start_lat"]
    assert len(reports) == 315
    across = (np.array([float(x) for x, _ in reports]) - west) / (east - west) * columns
    along = (np.array([float(y) for _, y in reports]) - south) / (north - south) * rows
    for cells, count in ((across, columns), (along, rows)):
        assert np.allclose(cells % 1, 0.5, atol=1e-6)
        assert ((cells > 0) & (cells < count)).all()
    # about square in km, and no more of them than were asked for
    width = (east - west) / columns * DEGREE * np.cos(np.radians((south + north) / 2))
    height = (north - south) / rows * DEGREE
    assert 0.6 < width / height < 1.7
    assert 15 <= rows * columns <= 25


def made(fixes: Path, *options: str) -> om.Problem:
    out = fixes.parent / "made.toml"
    assert main(["init", str(fixes), "-o", str(out), "--force", *options]) == 0
    return om.load_problem(out)


def test_the_grid_holds_all_points_and_the_rate_is_as_asked(fixes: Path) -> None:
    problem = made(fixes, "--cells", "64", "--factor", "2", "--radius", "3km")
    binning = problem.prior.binning
    assert binning is not None
    assert binning.outside == 0
    assert float(problem.constraints[0].epsilon) == pytest.approx(np.log(2) / 3, rel=5e-3)
    # every cell has been counted once more than it was visited
    counts = problem.prior.weights * (315 - binning.outside + len(problem.secrets))
    assert np.allclose(counts, np.round(counts))
    assert counts.min() >= 1 - 1e-9
    uniform = made(fixes, "--cells", "64", "--uniform").prior.weights
    assert np.allclose(uniform, 1 / len(uniform))


def test_labelled_places_and_labels_alone(fixes: Path) -> None:
    place = ["--x", "start_lng", "--y", "start_lat", "--label", "station"]
    problem = made(fixes, *place)
    assert set(problem.secrets.labels) == {f"s{k}" for k in range(7)}
    assert problem.secrets.coordinates == "lonlat"
    # 315 rows: station 0 occurs 51 times, the others 44 times, and each once more
    assert np.allclose(np.sort(problem.prior.weights)[::-1] * 322, [52] + [45] * 6)
    alone = made(fixes, "--label", "user")
    assert alone.secrets.points is None
    # randomised response over five labels: 4 / (4 + 4)
    assert om.solve(alone).loss == pytest.approx(0.5, abs=1e-6)


def test_coordinates_in_the_plane(tmp_path: Path) -> None:
    path = tmp_path / "plane.csv"
    path.write_text("x,y\n" + "".join(f"{k % 10},{k // 10}\n" for k in range(100)))
    problem = made(path, "--unit", "m", "--cells", "16")
    assert isinstance(problem.secrets, om.Grid)
    assert problem.secrets.bounds is None
    assert problem.secrets.unit == "m"
    assert problem.prior.binning is not None
    assert problem.prior.binning.outside == 0


def test_one_place_and_empty_rows(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("lon,lat\n5.5,45.5\n,\n5.5,45.5\n")
    problem = made(path, "--cells", "4", "--radius", "2km")
    assert problem.secrets.locate([[5.5, 45.5]])[0] >= 0
    assert len(problem.secrets) <= 4


def test_answers_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("a,b,c\n1,2,home\n3,4,work\n5,8,home\n")
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    answers = io.StringIO("a\nb\n")
    answers.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", answers)
    problem = made(path, "--cells", "4")
    assert isinstance(problem.secrets, om.Grid)
    assert "columns: a, b, c" in capsys.readouterr().err
    labels = io.StringIO("\nc\n")
    labels.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", labels)
    assert set(made(path).secrets.labels) == {"home", "work"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--x", "lng"], ["--x", "one coordinate"]),
        (["--x", "lng", "--y", "start_lat"], ["'lng'", "'start_lng'"]),
        (["--label", "when"], ["315 different labels", "2 to 300"]),
        (["--x", "user", "--y", "station"], ["no row has numbers"]),
        (["--cells", "1"], ["--cells"]),
        (["--cells", "9999999"], ["--cells"]),
        (["--factor", "1"], ["--factor"]),
        (["--radius", "-2"], ["--radius"]),
        (["-o", "problem.json"], ["problem.json", ".toml"]),
    ],
)
def test_mistakes(
    options: list[str], said: list[str], fixes: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(fixes.parent)
    assert main(["init", str(fixes), *options]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    for text in said:
        assert text in error
    assert not (fixes.parent / "problem.toml").exists()


def test_a_problem_file_is_not_replaced(
    fixes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fixes.parent)
    (fixes.parent / "problem.toml").write_text("mine")
    assert main(["init", str(fixes)]) == 2
    assert "there already" in capsys.readouterr().err
    assert (fixes.parent / "problem.toml").read_text() == "mine"
