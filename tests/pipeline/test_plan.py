"""How a problem is solved is said before it is, and is what is done."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.base import memory
from optmech.cli.main import main
from optmech.engines.highs import HighsEngine
from optmech.pipeline import plan

KM = om.distances.euclidean()
PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
PROMISE = om.MetricPrivacy("ln 2", KM)


def over(rows: int, *constraints: object) -> om.Problem:
    cells = om.Grid(rows, rows, unit="km")
    prior = om.Prior(cells, np.arange(1.0, rows * rows + 1))
    return om.Problem(prior, KM, constraints=constraints or [PROMISE])


@pytest.mark.parametrize(
    "problem",
    [
        over(2),
        over(6),
        over(2, om.constraints.RenyiPrivacy(1, 2)),
        over(2, om.constraints.MutualInformation(0.3)),
        over(3, PROMISE, om.DistortionPrivacy(0.5, KM)),
    ],
)
@pytest.mark.parametrize("profile", ["auto", "lazy"])
def test_the_engine_is_the_one_that_is_named(problem: om.Problem, profile: str) -> None:
    said, design = om.plan(problem, profile), om.solve(problem, profile, gap=0.1)
    assert said.name == "whole program"
    assert said.reason.endswith(f"engine {design.engine}: {design.engine_reason}")
    assert str(said) == f"{said.name}: {said.reason}"


def test_what_needs_no_search_is_said() -> None:
    nowhere = over(2, om.DistortionPrivacy(100, KM))
    assert om.plan(nowhere).reason == f"no search is needed: {om.solve(nowhere).reason}"


def test_every_point_has_plans_of_its_own() -> None:
    square, line = om.Mesh.grid((0, 0, 2, 2), 1), om.Mesh.line(0, 1, 4)
    everywhere = om.MetricPrivacy(1, KM, everywhere=square)
    prior = om.Prior.uniform(om.Domain(range(3), [[0, 0], [1, 1], [2, 1]]))
    said = om.plan(om.Problem(prior, KM, constraints=[everywhere]))
    assert said.name == "every point"
    assert square.words in said.reason
    along = om.MetricPrivacy(1, everywhere=line)
    said = om.plan(om.Problem(om.Prior.uniform(line.domain), KM, constraints=[along]))
    assert said.name == "along a network"
    assert line.words in said.reason


def test_scarce_memory_leads_to_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = over(5)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e4)
    said = om.plan(problem)
    assert said.name == "at a resolution"
    assert "25 cells instead" in said.reason


def test_nothing_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    run = HighsEngine.run
    monkeypatch.setattr(HighsEngine, "run", lambda *given: (runs.append(1), run(*given))[1])
    problem = over(2)
    assert "engine highs" in om.plan(problem).reason
    assert not runs
    om.solve(problem)
    assert runs


def test_the_command_says_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "grid-4x4", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert main(["solve", "grid-4x4", "-q", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert said["name"] == "whole program"
    assert f"engine {done['engine']}: " in said["reason"]
    assert main(["plan", "no-such"]) == 2


@pytest.mark.skipif(not PAGE.is_file(), reason="CONTRIBUTING.md is not beside the tests")
def test_a_plan_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## A new plan\n")[2]
    made: dict[str, type[plan.Plan]] = {}
    exec(section.partition("```python\n")[2].partition("```")[0], made)
    one, cells = om.Domain(["here"], [[0, 0]]), om.Grid(2, 2)
    problem = om.Problem(om.Prior(cells, [1, 2, 3, 4]), KM, one, constraints=[PROMISE])
    before = om.solve(problem)
    monkeypatch.setattr(plan, "PLANS", (made["OneReport"], *plan.PLANS))
    assert om.plan(problem).name == "one report"
    assert om.plan(over(2)).name == "whole program"
    design = om.solve(problem)
    assert design.engine_reason == om.plan(problem).reason
    assert (design.loss, design.lower_bound, design.status) == (
        before.loss, before.lower_bound, "optimal",
    )  # fmt: skip
    with monkeypatch.context() as broken:
        broken.setattr(made["OneReport"], "work", lambda self: None)
        assert om.solve(problem).engine_reason == before.engine_reason
