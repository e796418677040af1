"""The time limit bounds a whole command: reading, search, verification, writing. Clocks are those
of the tests, so that nothing here depends on how fast a machine is."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from optmech_sweeps import worker
from optmech_sweeps.worker import Job, run

import optmech as om
from optmech import files
from optmech.cli.main import main
from optmech.errors import SolverError
from optmech.pipeline import plan, search, sizes, solve as solving

NAME = "line-geometric"


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1e6
        patch.setattr(time, "monotonic", lambda: self.now)

    def after(self, seconds: float, work: Any) -> Any:
        """``work``, which takes so long."""

        def slow(*args: Any, **options: Any) -> Any:
            self.now += seconds
            return work(*args, **options)

        return slow


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits that searches get."""
    seen = list[float]()
    real = solving.solve

    def solve(*args: Any, time_limit: float, **options: Any) -> om.Design:
        seen.append(time_limit)
        return real(*args, time_limit=time_limit, **options)

    monkeypatch.setattr(solving, "solve", solve)
    return seen


def test_reading_and_writing_come_out_of_the_limit(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, limits: list[float], tmp_path: Path
) -> None:
    monkeypatch.setattr(files, "read_problem", clock.after(40, files.read_problem))
    monkeypatch.setattr(sizes, "writing_seconds", lambda _: 15.0)
    out = str(tmp_path / "d.json")
    assert main(["solve", NAME, "-q", "--time-limit", "100", "-o", out]) == 0
    assert main(["solve", NAME, "-q", "--time-limit", "100"]) == 0
    assert limits == [45.0, 60.0]


def test_a_limit_that_does_not_suffice_for_writing_is_no_search(
    monkeypatch: pytest.MonkeyPatch,
    limits: list[float],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sizes, "writing_seconds", lambda _: 1e4)
    out = tmp_path / "d.json"
    assert main(["solve", NAME, "-q", "--time-limit", "100", "-o", str(out)]) == 4
    assert not limits
    assert not out.exists()
    error = capsys.readouterr().err
    assert "--time-limit" in error
    assert "10,000 s" in error


def test_what_was_found_is_measured_only_where_there_is_time(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sizes, "measuring_seconds", lambda _: 5.0)
    line = ["solve", NAME, "--json", "-q", "--time-limit", "100"]
    assert main(line) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["privacy"]
    assert measured["attack"]
    monkeypatch.setattr(solving, "solve", clock.after(100, solving.solve))
    assert main(line) == 0
    found = capsys.readouterr()
    late = json.loads(found.out)
    assert (late["privacy"], late["attack"]) == ([], None)
    assert (late["loss"], late["status"]) == (measured["loss"], "optimal")
    assert "the time did not suffice to measure" in found.err


def problem() -> om.Problem:
    km = om.distances.euclidean()
    prior = om.Prior.uniform(om.Grid(4, 5))
    return om.Problem(prior, km, constraints=[om.MetricPrivacy(0.7, km)])


def test_setting_up_and_verifying_come_out_of_the_limit_of_a_search(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """Of 100 s 30 are gone before the search and 20 are kept: an engine sees 50."""
    seen = list[float]()
    real = search.load_engine

    def load(name: str) -> Any:
        engine = real(name)

        class Watched:
            refusal = staticmethod(engine.refusal)

            @staticmethod
            def run(lp: Any, options: Any, monitor: Any) -> Any:
                seen.append(monitor.remaining())
                return engine.run(lp, options, monitor)

        return Watched

    monkeypatch.setattr(search, "load_engine", load)
    monkeypatch.setattr(search, "finishing_seconds", lambda _: 20.0)
    monkeypatch.setattr(plan, "resolution_for", clock.after(30, plan.resolution_for))
    assert om.solve(problem(), profile="highs", time_limit=100).status == "optimal"
    assert seen[0] == 50.0


def test_a_search_without_time_for_any_mechanism_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "opening_seconds", lambda _: 500.0)
    with pytest.raises(SolverError, match=r"takes about 500 s, and 20 s are left") as caught:
        om.solve(problem(), time_limit=20)
    assert caught.value.exit_status == 4
    assert om.solve(problem()).status == "optimal"


def test_without_time_for_a_search_there_is_a_verified_mechanism(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No engine is begun where verifying takes what there is."""
    monkeypatch.setattr(search, "finishing_seconds", lambda _: 30.0)
    monkeypatch.setattr(search, "load_engine", lambda _: pytest.fail("was begun"))
    design = om.solve(problem(), time_limit=20)
    assert design.verified
    assert design.status == "feasible"


def test_building_a_task_comes_out_of_its_limit(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    seen = list[float]()

    class Source:
        def build(self) -> om.Problem:
            clock.now += 40
            return problem()

    real = search.solve

    def solve(stated: om.Problem, profile: om.Profile, start: om.Design | None) -> om.Design:
        assert profile.time_limit is not None
        seen.append(profile.time_limit)
        return real(stated, profile, start=start)

    monkeypatch.setattr(search, "solve", solve)
    monkeypatch.setattr(worker, "_keep_memory", lambda: None)
    source: Any = Source()
    assert not run(Job(0, source, om.Profile(time_limit=100), None)).reason
    assert seen == [60.0]


@pytest.mark.parametrize("side", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("epsilon", ["1/100", "1", "40"])
def test_estimates_grow_with_a_problem(side: int, epsilon: str) -> None:
    """Pairs times reports for what compares, entries for what is written, cubes for closures."""

    def of(n: int, own: str) -> list[float]:
        km = om.distances.euclidean()
        prior = om.Prior.uniform(om.Grid(n, 1))
        stated = om.Problem(prior, km, constraints=[om.MetricPrivacy(own, km)]).statement
        works = (
            sizes.opening_seconds,
            sizes.deciding_seconds,
            sizes.finishing_seconds,
            sizes.measuring_seconds,
            sizes.writing_seconds,
        )
        return [work(stated) for work in works]

    for small, large in zip(of(10 * side, epsilon), of(20 * side, epsilon), strict=True):
        assert 4 * small <= large * (1 + 1e-9) <= 9 * small * (1 + 1e-9)
    assert of(10 * side, epsilon)[-1] <= of(10 * side, "50")[-1]
