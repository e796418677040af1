"""Thirty-odd mistakes of a first hour: each is answered with its place, the reason and a remedy."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.base.machine import data_folder
from optmech.cli.main import main

PROBLEM = """
format = 1
prior = "uniform"
loss = "euclidean"
[secrets]
kind = "grid"
rows = 2
columns = 2
[[constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What somebody has after an hour: a table, a problem, a design, and what came of them."""
    place = tmp_path_factory.mktemp("hour")
    (place / "fixes.csv").write_text("user,lon,lat\na,0.5,0.5\nb,1.5,1.5\n")
    (place / "problem.toml").write_text(PROBLEM)
    (place / "with space.toml").write_text(PROBLEM)
    (place / "key").write_bytes(bytes(range(128, 160)))
    (place / "map.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    (place / "notes.json").write_text('{"hello": 1}')
    design = om.solve(om.load_problem(place / "problem.toml"))
    design.save(place / "design.json")
    np.save(place / "matrix.npy", design.mechanism.matrix)
    (place / "page.html").write_text("<!doctype html><title>page</title>")
    (place / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n0000")
    for name, old, new in (
        ("mesh", 'distance = "euclidean"\n', 'distance = "manhattan"\neverywhere = { kind = '
         '"grid", bounds = [0, 0, 2, 2], width = 1 }\n'),
        ("globe", 'distance = "euclidean"\n', 'distance = "haversine"\n'),
        ("sizes", "rows = 2", "rows = 2.5"),
        ("typo", "epsilon = 1", "epsilom = 1"),
        ("text", "epsilon = 1", 'epsilon = "1 per km"'),
        ("sets", 'loss = "euclidean"', 'loss = { distance = "euclidean", reduce = "median" }'),
    ):  # fmt: skip
        assert old in PROBLEM
        (place / f"{name}.toml").write_text(PROBLEM.replace(old, new))
    return place


MISTAKES = [
    # the command
    (["sovle", "problem.toml"], "optmech", "unknown", "Did you mean 'solve'"),
    (["protct", "design.json"], "optmech", "unknown", "Did you mean 'protect'"),
    (["solve", "problem.toml", "--profle", "exact"], "optmech", "--profle",
     "Did you mean --profile?"),
    (["solve", "with", "space.toml"], "optmech", "space.toml", "Quote what has spaces"),
    (["solve", "problem.toml", " "], "optmech", "unrecognized arguments", "Quote what has spaces"),
    (["solve", "problem.toml", "--gap", "1%"], "--gap", "'1%'", "Write 0.01"),
    (["solve", "problem.toml", "--gap", "0,001"], "--gap", "'0,001'", "Write 0.001"),
    (["solve", "problem.toml", "--time-limit", "2min"], "--time-limit", "'2min'",
     "Write 120, in seconds"),
    (["sample", "design.json", "0,0", "-n", "many"], "-n", "'many'", "a whole number such as 10"),
    (["sample", "design.json", "-1,0"],
     *(("SECRET", "no '-1,0'", "The first ones are") if sys.version_info >= (3, 14)
       else ("optmech", "unrecognized arguments: -1,0", "Write -- before"))),
    (["completion", "bsh"], "optmech completion", "'bsh'", "Did you mean 'bash'"),
    # the file
    (["check", "desgin.json"], "desgin.json", "No such file", "Did you mean design.json?"),
    (["solve", "problm.toml"], "problm.toml", "no such file", "Did you mean problem.toml?"),
    (["check", "montreal"], "montreal", "a problem of the gallery", "optmech solve montreal -o"),
    (["report", "ten-points"], "ten-points", "a trace of the gallery", "optmech trace ten-points"),
    (["solve", "commuter"], "commuter", "a trace of the gallery", "optmech trace commuter"),
    (["trace", "paper"], "paper", "a problem of the gallery", "optmech solve paper"),
    (["solve", "fixes.csv"], "fixes.csv", "a table of data", "optmech init"),
    (["check", "fixes.csv"], "fixes.csv", "a table of data, and no design", "--problem"),
    (["attack", "fixes.csv"], "--problem", "a matrix needs its problem", "Give the problem file"),
    (["report", "page.html"], "page.html", "a page, and no design", "Give the design"),
    (["report", "fixes.csv"], "fixes.csv", "a table of data, and no design", "optmech init"),
    (["solve", "picture.png"], "picture.png", "UTF-8", "Save it as UTF-8"),
    (["check", "map.geojson"], "map.geojson", "this is a map, and no design", "optmech protect"),
    (["check", "notes.json"], "notes.json", "no design of format", "written by optmech solve"),
    (["measure", "key"], "key", "not JSON, and so no design", "written by optmech solve"),
    (["init", "problem.toml"], "problem.toml", "a document, and no table", ".csv"),
    (["protect", "fixes.csv", "design.json"], "fixes.csv", "no design",
     "optmech protect design.json fixes.csv"),
    (["protect", "design.json", "page.html", "--x", "a"], "page.html", "a page, and no table",
     ".csv"),
    (["protect", "problem.toml", "fixes.csv", "--x", "lon", "--y", "lat"], "problem.toml",
     "what is wanted, and no design", "optmech solve problem.toml -o"),
    (["solve", "problem.toml", "-o", "design.csv"], "--output", "a table of data", ".json"),
    (["solve", "problem.toml", "-o", "problem.html"], "--output", "a page", ".json"),
    # what stands in it
    (["solve", "mesh.toml"], "mesh.toml: constraints[0].distance", "the euclidean distance",
     'distance = "euclidean"'),
    (["solve", "globe.toml"], "globe.toml: constraints[0].distance", "longitude and latitude",
     "euclidean"),
    (["solve", "sizes.toml"], "sizes.toml: secrets.rows", "2.5", ""),
    (["solve", "typo.toml"], "typo.toml: constraints[0].epsilom", "", "Did you mean 'epsilon'"),
    (["solve", "text.toml"], "text.toml: constraints[0].epsilon", "1 per km", '"ln 3"'),
    (["solve", "sets.toml"], "sets.toml: loss.reduce", "'median' is unknown", "mean 'mean'?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "place", "reason", "remedy"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES]
)
def test_a_mistake_is_answered(
    command: list[str], place: str, reason: str, remedy: str, folder: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    assert main(command) == 2
    said = capsys.readouterr()
    assert not said.out
    lines = [line for line in said.err.splitlines() if line.startswith("optmech: error: ")]
    assert len(lines) == len(said.err.splitlines()) >= 1
    (line,) = [line for line in lines if place in line]
    assert reason in line
    assert remedy in line
    # it ends in what to do, in the words of the command line and of files
    assert not re.search(r"\bom\.|Domain\.|observables\.(coarser|subsets)|None\b", line)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_there_are_thirty_of_them() -> None:
    assert len(MISTAKES) >= 30


def test_remedies_for_files_are_in_the_words_of_files(tmp_path: Path) -> None:
    """Every remedy in the errors of the gallery's problems with one value changed."""
    from optmech.reading.errors import Collector

    for python, words in (
        ("Use om.distances.haversine()", 'Use distance = "haversine"'),
        ("Make them with observables.coarser", 'Make them with [observables] kind = "coarser"'),
        ("Make one with om.Mesh.grid or om.Mesh.around", "Make one with everywhere = {"),
    ):
        errors = Collector()
        errors.add(om.ProblemError("wrong", where="loss", remedy=python))
        assert words in errors.errors[0].remedy
    names = {path.stem for path in data_folder("problems").glob("*.toml")}
    assert {"paper", "montreal"} <= names
