"""The guard against growing slow: what it compares, when it fails. Nothing here looks at times."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from programs import ROOT, run

if not (ROOT / "benchmarks" / "guard.py").is_file():
    pytest.skip("not a checkout", allow_module_level=True)

sys.path.insert(0, str(ROOT / "benchmarks"))
import guard
import guarded

sys.path.pop(0)


def test_what_takes_longer_is_named_and_nothing_else() -> None:
    before = {"a": 1.0, "b": 1.0, "c": 1.0, "gone": 1.0, "tiny": 0.01, "failed": 1.0}
    now = {"a": 1.29, "b": 1.31, "c": 0.5, "new": 9.0, "tiny": 0.02, "failed": None}
    assert guard.slower(now, before, unit=1.0) == ["b: 1.31 times as long"]


def test_the_history_of_this_processor_is_preferred() -> None:
    lines = [{"processor": "x", "n": 1}, {"processor": "y", "n": 2}, {"processor": "z", "n": 3}]
    assert guard.last(lines, "y") == lines[1]
    assert guard.last(lines, "none") == lines[2]
    assert guard.last([], "x") is None


def test_the_table_has_every_task_and_the_ratio_of_its_ends() -> None:
    text = guard.table({"old": {"a": 2.0, "b": None}, "now": {"a": 3.0, "b": 1.0}})
    assert "| a | 2.00 | 3.00 | 1.50 |" in text
    assert "| b | — | 1.00 |  |" in text


def test_every_problem_has_its_task_and_every_task_its_problem() -> None:
    solved = {task.arguments[1] for task in guard.TASKS.values() if "guarded" in task.arguments[0]}
    assert solved == set(guarded.PROBLEMS)
    assert any(not task.short for task in guard.TASKS.values())


def test_a_line_a_run_and_a_figure(tmp_path: Path) -> None:
    lines = tmp_path / "guard.jsonl"
    run(
        "-c",
        "import sys; sys.path.insert(0, 'benchmarks'); import guard\n"
        "one = lambda names, places: {place: {name: 1.0 for name in names} for place in places}\n"
        "guard.measured = one\n"
        f"sys.argv = ['guard', '--only', 'import', '--record', '--history', {str(lines)!r}]\n"
        "try: guard.main()\n"
        "except SystemExit as end: assert not end.code\n",
    )
    (line,) = [json.loads(text) for text in lines.read_text().splitlines()]
    assert line["ratios"] == {"import": 1.0}
    assert line["commit"]
    assert line["calibration"] > 0
    guard.draw(guard.history(lines), tmp_path / "guard.svg")
    assert "import" in (tmp_path / "guard.svg").read_text()


def test_what_looks_slower_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slow moments in a row are none of the code's; a loss that stays is."""
    monkeypatch.setattr(guard, "calibrate", lambda: 1.0)
    runs: list[str] = []

    def seconds(arguments: object, checkout: Path, folder: Path) -> float:
        runs.append(str(checkout))
        busy = checkout == Path("now") and runs.count("now") <= 4
        return {Path("old"): 1.0, Path("now"): 2.0 if busy else 1.1}[checkout]

    monkeypatch.setattr(guard, "seconds", seconds)
    monkeypatch.setitem(guard.TASKS, "check", guard.Task((), runs=1))
    found = guard.measured(["check"], {"old": Path("old"), "now": Path("now")})
    assert not guard.slower(found["now"], found["old"], 1.0)
    assert runs.count("now") == 1 + 1 + 3  # prepared, as often as stated, and again
    monkeypatch.setattr(guard, "seconds", lambda _, checkout, __: len(str(checkout)) / 2)
    found = guard.measured(["check"], {"old": Path("old"), "later": Path("later")})
    assert guard.slower(found["later"], found["old"], 1.0)
