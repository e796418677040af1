"""Sweeps: what they compute, how they resume, and what they refuse."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from optmech_sweeps import worker
from optmech_sweeps.run import read_table

import optmech as om
from optmech.base.lock import locked
from optmech.errors import ProblemError

Run = Callable[[worker.Job], worker.Outcome]
E, H = om.distances.euclidean(), om.distances.hamming()
RESPONSE = om.Problem(
    om.Prior.uniform(om.Domain("abcd")), H, constraints=[om.DifferentialPrivacy(1.0)]
)
EPSILONS = [0.25, 0.5, 1.0, 2.0]
PLACE = "constraints[0].epsilon"

SWEEP = """
format = 1
[problem]
loss = "euclidean"
prior = "uniform"
secrets = { kind = "line", values = [0, 1, 3] }
[[problem.constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
[[problem.constraints]]
kind = "distortion_privacy"
minimum = 0.1
distance = "euclidean"
"""
EPSILON_AXIS = """
[[axes]]
kind = "list"
path = "constraints[0].epsilon"
values = [0.3, "ln 2", 1]
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def write(folder: Path, text: str, name: str = "s.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def without_times(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as stream:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)]


def numbers(folder: Path) -> list[str]:
    """Every design's problem, matrix and multipliers, as text."""
    found = []
    for path in sorted((folder / "designs").iterdir()):
        body = json.loads(path.read_bytes())
        found.append(json.dumps([body["problem"], body["mechanism"], body["multipliers"]]))
    return found


def test_losses_are_those_of_randomised_response(tmp_path: Path, pool: Executor) -> None:
    result = om.sweep(RESPONSE, {PLACE: EPSILONS}, tmp_path / "run", executor=pool)
    assert [row["epsilon"] for row in result.rows] == EPSILONS
    for row, epsilon in zip(result.rows, EPSILONS, strict=True):
        assert row["loss"] == pytest.approx(3 / (math.exp(epsilon) + 3), rel=1e-6)
        assert row["lower_bound"] <= row["loss"]
        assert row["verified"] is True
        assert om.check(tmp_path / "run" / str(row["design"])).passed
        assert result.design(int(row["task"])).loss == row["loss"]
    assert [row["start"] for row in result.rows] == [None, 0, 1, 2]


def test_both_tables_say_the_same(tmp_path: Path, pool: Executor) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    result = om.sweep(RESPONSE, {PLACE: [0.5, "ln 3"]}, tmp_path / "run", executor=pool)
    rows = pq.read_table(tmp_path / "run" / "table.parquet").to_pylist()
    assert [row["epsilon"] for row in rows] == ["0.5", "ln 3"]
    assert [row["loss"] for row in rows] == [row["loss"] for row in result.rows]
    assert [row["loss"] for row in read_table(tmp_path / "run" / "table.csv")] == [
        row["loss"] for row in rows
    ]


def test_places_that_move_together_and_a_grid_of_two_axes(tmp_path: Path, pool: Executor) -> None:
    problem = om.Problem(
        om.Prior.uniform(om.Domain.range(3)),
        E,
        constraints=[om.MetricPrivacy(1.0, E), om.LossBound(2.0, worst_case=True)],
    )
    axes = {
        "loss": {"metric": E, "whether": H},
        (PLACE, "constraints[1].maximum"): [(0.5, 2.0), (1.0, 1.5)],
    }
    result = om.sweep(problem, axes, tmp_path / "run", executor=pool)
    shown = [(row["loss"], row["epsilon"], row["maximum"]) for row in result.rows]
    assert [row["epsilon"] for row in result.rows] == [0.5, 1.0, 0.5, 1.0]
    assert [row["axis_loss"] for row in result.rows] == ["metric"] * 2 + ["whether"] * 2
    assert [row["maximum"] for row in result.rows] == [2.0, 1.5, 2.0, 1.5]
    direct = om.Problem(
        problem.prior,
        H,
        constraints=[om.MetricPrivacy(1.0, E), om.LossBound(1.5, worst_case=True)],
    )
    assert shown[3][0] == pytest.approx(om.solve(direct).loss, rel=2e-6)


def test_priors_of_users_from_one_table(tmp_path: Path, pool: Executor) -> None:
    """Two users over two places: with weights w the least loss under ε = ln 3 on points 2 apart
    is worked out by hand."""
    write(tmp_path, "who,place,times\nann,0,1\nbob,2,1\nann,2,3\nbob,0,1\n", "visits.csv")
    path = write(
        tmp_path,
        """
format = 1
[problem]
loss = "euclidean"
prior = "uniform"
secrets = { kind = "line", values = [0, 2] }
[[problem.constraints]]
kind = "metric_privacy"
epsilon = "1/2 ln 3"
distance = "euclidean"
[[axes]]
kind = "priors"
file = "visits.csv"
user = "who"
secret = "place"
weight = "times"
""",
    )
    result = om.sweep(path, directory=tmp_path / "run", executor=pool)
    assert [row["who"] for row in result.rows] == ["ann", "bob"]
    # ann: weights 1/4, 3/4: reporting 2 always costs 1/2; bob: 1/2, 1/2: response costs 2/4
    assert [row["loss"] for row in result.rows] == pytest.approx([0.5, 0.5], rel=1e-6)
    assert result.design(0).problem.prior.weights == pytest.approx([0.25, 0.75])


def test_an_infeasible_task_is_a_result_and_the_others_are_done(
    tmp_path: Path, pool: Executor
) -> None:
    axis = '[[axes]]\nkind = "list"\npath = "constraints[1].minimum"\nvalues = [0.2, 99, 0.3]\n'
    result = om.sweep(write(tmp_path, SWEEP + axis), directory=tmp_path / "run", executor=pool)
    assert [row["status"] for row in result.rows] == ["optimal", "infeasible", "optimal"]
    assert "99" in str(result.rows[1]["reason"])
    assert result.rows[1]["loss"] is None
    assert om.check(tmp_path / "run" / str(result.rows[1]["design"])).passed
    assert not result.failed


def test_a_failing_task_is_tried_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: Executor
) -> None:
    def fails(job: worker.Job) -> worker.Outcome:
        if job.task == 1:
            return worker.Outcome(1, {}, None, "out of luck")
        return worker._solved(job)

    monkeypatch.setattr(worker, "run", fails)
    axes = {PLACE: EPSILONS}
    result = om.sweep(RESPONSE, axes, tmp_path / "run", executor=pool)
    assert [row["status"] for row in result.rows] == ["optimal", "failed", "optimal", "optimal"]
    assert result.failed[0]["reason"] == "out of luck"
    monkeypatch.undo()
    assert not om.sweep(RESPONSE, axes, tmp_path / "run", executor=pool).failed


def test_nothing_done_is_done_twice_and_the_end_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: Executor
) -> None:
    axes = {"loss": {"h": H, "e": om.distances.matrix([[0, 1], [3, 0]])}, PLACE: EPSILONS}
    problem = om.Problem(
        om.Prior.uniform(om.Domain("ab")), H, constraints=[om.DifferentialPrivacy(1.0)]
    )
    om.sweep(problem, axes, tmp_path / "whole", executor=pool, chain=3)
    solved: list[int] = []

    def stops(job: worker.Job) -> worker.Outcome:
        if len(solved) == 3:
            raise KeyboardInterrupt
        solved.append(job.task)
        return worker._solved(job)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "run", stops)
        with pytest.raises(KeyboardInterrupt):
            om.sweep(problem, axes, tmp_path / "halves", executor=Inline(), chain=3)
    done = len(list((tmp_path / "halves" / "tasks").iterdir()))
    assert done == 3
    assert len(without_times(tmp_path / "halves")) == 3
    (tmp_path / "halves" / "designs" / ".000004.json.half").write_text("{")
    om.sweep(problem, axes, tmp_path / "halves", executor=Counting(solved), chain=3)
    assert sorted(solved) == list(range(8))
    assert without_times(tmp_path / "halves") == without_times(tmp_path / "whole")
    assert numbers(tmp_path / "halves") == numbers(tmp_path / "whole")
    assert not list((tmp_path / "halves" / "designs").glob(".*.*"))


class Inline(Executor):
    """Runs a task where it is submitted, so that Ctrl-C in it reaches the sweep."""

    def submit(self, call: Run, job: worker.Job) -> Future[worker.Outcome]:
        future: Future[worker.Outcome] = Future()
        future.set_result(worker.run(job))
        return future


class Counting(Executor):
    def __init__(self, solved: list[int]) -> None:
        self.solved = solved

    def submit(self, call: Run, job: worker.Job) -> Future[worker.Outcome]:
        self.solved.append(job.task)
        future: Future[worker.Outcome] = Future()
        future.set_result(call(job))
        return future


def test_a_damaged_design_or_record_is_made_again(tmp_path: Path, pool: Executor) -> None:
    axes = {PLACE: EPSILONS}
    run = tmp_path / "run"
    om.sweep(RESPONSE, axes, run, executor=pool)
    before = numbers(run)
    (run / "designs" / "000001.json").write_bytes(b"{}")
    (run / "tasks" / "000003.json").write_bytes(b'{"record": {"ta')
    (run / "table.csv").unlink()
    om.sweep(RESPONSE, axes, run, executor=pool)
    assert numbers(run) == before
    assert len(without_times(run)) == 4


def test_a_full_disk_stops_the_run_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: Executor
) -> None:
    axes, run = {PLACE: EPSILONS}, tmp_path / "run"
    real, writes = os.fsync, []

    def full(handle: int) -> None:
        writes.append(handle)
        if len(writes) > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ProblemError, match="No space left"):
            om.sweep(RESPONSE, axes, run, executor=pool)
    kept = sorted(path.name for path in (run / "tasks").iterdir())
    assert kept == ["000000.json"]
    om.sweep(RESPONSE, axes, run, executor=pool)
    om.sweep(RESPONSE, axes, tmp_path / "whole", executor=pool)
    assert numbers(run) == numbers(tmp_path / "whole")
    assert without_times(run) == without_times(tmp_path / "whole")


def test_two_runs_do_not_share_a_directory(tmp_path: Path, pool: Executor) -> None:
    om.sweep(RESPONSE, {PLACE: [1.0]}, tmp_path / "run", executor=pool)
    with (
        locked(tmp_path / "run" / ".lock"),
        pytest.raises(ProblemError, match=f"another run .process {os.getpid()}."),
    ):
        om.sweep(RESPONSE, {PLACE: [1.0]}, tmp_path / "run", executor=pool)
    om.sweep(RESPONSE, {PLACE: [1.0]}, tmp_path / "run", executor=pool)


def test_the_directory_of_another_sweep_is_refused(tmp_path: Path, pool: Executor) -> None:
    run = tmp_path / "run"
    om.sweep(RESPONSE, {PLACE: [1.0]}, run, executor=pool)
    with pytest.raises(ProblemError, match="another sweep: the axes differ"):
        om.sweep(RESPONSE, {PLACE: [1.5]}, run, executor=pool)
    with pytest.raises(ProblemError, match="the profile, gap or time limit differ"):
        om.sweep(RESPONSE, {PLACE: [1.0]}, run, executor=pool, gap=1e-3)
    other = om.Problem(RESPONSE.prior, H, constraints=[om.DifferentialPrivacy(2.0)])
    with pytest.raises(ProblemError, match="another sweep: the problem"):
        om.sweep(other, {PLACE: [1.0]}, run, executor=pool)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear")
    with pytest.raises(ProblemError, match="neither empty nor the directory of a sweep"):
        om.sweep(RESPONSE, {PLACE: [1.0]}, tmp_path / "full", executor=pool)
    with pytest.raises(ProblemError, match="cannot be made"):
        om.sweep(RESPONSE, {PLACE: [1.0]}, tmp_path / "no" / "where", executor=pool)


class Breaking(Executor):
    """Loses the first ``times`` tasks."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.times = error, times

    def submit(self, call: Run, job: worker.Job) -> Future[worker.Outcome]:
        future: Future[worker.Outcome] = Future()
        self.times -= 1
        if self.times >= 0:
            future.set_exception(self.error)
        else:
            future.set_result(call(job))
        return future


def test_lost_tasks_are_tried_again_a_few_times(tmp_path: Path) -> None:
    axes = {PLACE: EPSILONS}
    lost = Breaking(ConnectionError("worker gone"), 2)
    assert not om.sweep(RESPONSE, axes, tmp_path / "a", executor=lost).failed
    lost = Breaking(ConnectionError("worker gone"), 99)
    result = om.sweep(RESPONSE, axes, tmp_path / "b", executor=lost)
    assert len(result.failed) == 4
    assert "died 3 times" in str(result.failed[0]["reason"])
    broken = Breaking(BrokenProcessPool("pool is gone"), 99)
    result = om.sweep(RESPONSE, axes, tmp_path / "c", executor=broken)
    assert len(result.failed) == 4
    assert "executor does not work any more" in str(result.failed[0]["reason"])


BAD = [
    ("format = 2", "format"),
    (SWEEP, "axes: is missing"),
    (SWEEP + EPSILON_AXIS.replace('"list"', '"lisst"'), "axes[0].kind: 'lisst' is unknown"),
    (SWEEP + EPSILON_AXIS.replace('[0.3, "ln 2", 1]', "[]"), "values: is empty"),
    (SWEEP + EPSILON_AXIS.replace("[0].epsilon", "[7].epsilon"), "constraints[7]: does not exist"),
    (SWEEP + EPSILON_AXIS.replace("epsilon", "epsilom"), "epsilom: is not a known key"),
    (SWEEP + EPSILON_AXIS.replace("0.3", "-0.3"), "axes[0], value 1.constraints[0].epsilon"),
    (SWEEP + EPSILON_AXIS.replace("constraints[0].epsilon", "[0]"), "is not a place"),
    (SWEEP + EPSILON_AXIS + EPSILON_AXIS, "the name 'constraints[0].epsilon' is taken"),
    (SWEEP + EPSILON_AXIS + 'name = "loss"', "the name 'loss' is taken"),
    (
        SWEEP + '[[axes]]\nkind = "range"\npath = "constraints[0].epsilon"\n'
        'start = 0\nstop = 1\ncount = 3\nscale = "log"',
        "above 0 for a log scale",
    ),
    (
        SWEEP + '[[axes]]\nkind = "range"\npath = "constraints[0].epsilon"\n'
        "start = 1\nstop = 1\ncount = 0",
        "count: 0 is out of range",
    ),
    (
        SWEEP + '[[axes]]\nkind = "priors"\nfile = "none.csv"\nuser = "u"\nsecret = "s"',
        "none.csv",
    ),
    (SWEEP.replace("euclidean", "euclidian", 1) + EPSILON_AXIS, "euclidian"),
]


@pytest.mark.parametrize(("text", "wanted"), BAD)
def test_bad_sweep_files_are_refused_with_the_place(
    tmp_path: Path, text: str, wanted: str, pool: Executor
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ProblemError) as caught:
        om.sweep(path, directory=tmp_path / "run", executor=pool)
    assert str(path) in str(caught.value)
    assert wanted in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for call, wanted in (
        (lambda: om.sweep(RESPONSE, {PLACE: []}, run), "is empty"),
        (lambda: om.sweep(RESPONSE, {"constraints[1].epsilon": [1]}, run), "does not exist"),
        (lambda: om.sweep(RESPONSE, {"constraints[0].radius": [1]}, run), "no argument 'radius'"),
        (lambda: om.sweep(RESPONSE, {"title": ["a"]}, run), "is no place in a Problem"),
        (lambda: om.sweep(RESPONSE, {PLACE: "abc"}, run), "not a list of values"),
        (lambda: om.sweep(RESPONSE, {}, run), "not a mapping"),
        (lambda: om.sweep(RESPONSE, {PLACE: [1]}, run, chain=0), "chain: 0"),
        (lambda: om.sweep(RESPONSE, {PLACE: [1]}, run, workers=0), "workers: 0"),
        (lambda: om.sweep(RESPONSE, {"loss": [object()]}, run), "cannot be told"),
        (lambda: om.sweep(RESPONSE, directory=run), "is not a sweep file"),
        (lambda: om.sweep("no-such-sweep", directory=run), "no such problem in the gallery"),
    ):
        with pytest.raises(ProblemError) as caught:
            call()
        assert wanted in str(caught.value)


def test_the_attack_is_in_the_table(tmp_path: Path, pool: Executor) -> None:
    """Of randomised response over four secrets the best guess is the report: it errs as often as
    the report is another, at ε = 0 as often as a blind guess, and what is done again errs alike."""
    first = om.sweep(RESPONSE, {PLACE: [0.0, 1.0]}, tmp_path / "run", executor=pool)
    again = om.sweep(RESPONSE, {PLACE: [0.0, 1.0]}, tmp_path / "run", executor=pool)
    for result in (first, again, om.SweepResult.load(tmp_path / "run")):
        blind, seen = (row["attack_error"] for row in result.rows)
        assert blind == pytest.approx(0.75, rel=1e-6)
        assert seen == pytest.approx(3 / (math.e + 3), rel=1e-6)
        assert result.design(1).loss == result.rows[1]["loss"]
