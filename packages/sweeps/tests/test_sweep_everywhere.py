"""Sweeps over problems that are about every point of a region."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import optmech as om
from optmech.cli.main import main

E = om.distances.euclidean()
EPSILON, MESH = "constraints[0].epsilon", "constraints[0].everywhere"


@pytest.fixture(scope="module")
def problem() -> om.Problem:
    places = om.Domain(range(4), [(0, 0), (2, 0), (0, 2), (2, 2)])
    mesh = om.Mesh.grid((0, 0, 2, 2), 1)
    promise = om.MetricPrivacy(1, E, everywhere=mesh)
    return om.Problem(om.Prior.uniform(places), E, constraints=[promise])


def run(problem: om.Problem, axes: dict, folder: Path) -> om.SweepResult:
    with ThreadPoolExecutor(1) as executor:
        return om.sweep(problem, axes, folder, gap=1e-3, executor=executor)


def test_every_epsilon_has_both_gaps(problem: om.Problem, tmp_path: Path) -> None:
    found = run(problem, {EPSILON: [0.5, 1, "ln 4"]}, tmp_path / "run")
    assert not found.failed
    for row in found.rows:
        design = found.design(row["task"])
        assert (row["loss"], row["lower_bound"]) == (design.loss, design.lower_bound)
        assert (row["gap"], row["total_gap"]) == (design.gap, design.total_gap)
        assert row["gap"] <= 1e-3 < row["total_gap"] < 1
        assert row["vertices"] == 9
    # what is private at less is private at more
    losses = [row["loss"] for row in found.rows]
    assert losses == sorted(losses, reverse=True)
    assert om.frontier.pareto_front(found.rows)[0]["epsilon"] == 0.5


def test_a_run_goes_on_and_is_checked_again(
    problem: om.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(problem, {EPSILON: [0.5, 1]}, tmp_path / "run")
    from optmech.pipeline import meshes as everywhere

    monkeypatch.setattr(everywhere, "solve_everywhere", None)
    again = run(problem, {EPSILON: [0.5, 1]}, tmp_path / "run")
    loaded = om.SweepResult.load(tmp_path / "run")
    for row, known, read in zip(again.rows, first.rows, loaded.rows, strict=True):
        # nothing of the words of a file is checked, and they are marked
        told = {name: value for name, value in row.items() if name != "reason"}
        assert told == {name: value for name, value in known.items() if name != "reason"}
        assert read == row


def test_meshes_of_an_axis_may_end_at_the_places(problem: om.Problem, tmp_path: Path) -> None:
    meshes = {"wide": om.Mesh.grid((0, 0, 2, 2), 2), "fine": om.Mesh.grid((0, 0, 2, 2), 1)}
    found = run(problem, {MESH: {**meshes, "places": None}}, tmp_path / "run")
    assert not found.failed
    wide, fine, places = found.rows
    assert [row["vertices"] for row in found.rows] == [4, 9, None]
    assert fine["loss"] <= wide["loss"] * (1 + 1e-3)
    # the places alone are the bound for every mechanism
    assert places["loss"] == pytest.approx(fine["lower_bound"], rel=1e-3)
    assert isinstance(found.design(2), om.Design)


FILE = """
format = 1
[problem]
prior = "uniform"
loss = "euclidean"
secrets = { kind = "points", points = [[0, 0], [2, 0], [0, 2]] }
[[problem.constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
everywhere = { kind = "grid", bounds = [0, 0, 2, 2], width = 2 }
[[axes]]
kind = "list"
path = "constraints[0].everywhere.width"
values = [2, 1]
"""


def test_the_command_varies_the_width(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(FILE)
    out = tmp_path / "run"
    command = ["sweep", str(tmp_path / "s.toml"), "-o", str(out), "--workers", "1"]
    assert main(command) == 0
    rows = om.SweepResult.load(out).rows
    assert [row["vertices"] for row in rows] == [4, 9]
    assert main(["report", *(str(out / str(row["design"])) for row in rows),
                 "-o", str(tmp_path / "p.html")]) == 0  # fmt: skip


def test_a_line_has_the_bound_of_every_mechanism(tmp_path: Path) -> None:
    line = om.Mesh.line(0, 1, 4)
    promise = om.MetricPrivacy(1, everywhere=line)
    stated = om.Problem(om.Prior.uniform(line.domain), E, constraints=[promise])
    found = run(stated, {EPSILON: [2, 4]}, tmp_path / "run")
    assert not found.failed
    for row in found.rows:
        design = found.design(row["task"])
        assert design.lower_bound == row["lower_bound"] < design.bound <= design.loss
