"""A line says what goes on where somebody looks, and nothing is said where nobody does."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import optmech as om
from optmech.base import watch

PTY = pytest.importorskip("pty")


class Terminal(io.StringIO):
    """Keeps what a terminal would show, and says when there is something."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        found = super().write(text)
        self.drawn.set()
        return found


def looked_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in the place of standard error, outside of tests."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
    return found


def test_the_line_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    with watch.Ticker("at work", 0.0, terminal) as line:
        assert terminal.drawn.wait(60)
        line("further on")
    shown = terminal.getvalue()
    assert "at work" in shown
    left = shown.rsplit("\r", 2)[-2:]
    assert left[0].strip() == left[1] == ""
    assert "\n" not in shown


def test_nothing_is_drawn_while_something_else_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    with watch.Ticker("at work", 0.0, terminal) as line, line.held("after"):
        terminal.truncate(0)
        terminal.drawn.clear()
        assert not terminal.drawn.wait(1.5 * watch._TICK)
    assert "at work" not in terminal.getvalue()


def test_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at(monkeypatch)
    assert watch.is_watched()
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(watch.is_watched()))
    thread.start()
    thread.join()
    assert seen == [False]
    monkeypatch.setenv("TERM", "dumb")
    assert not watch.is_watched()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not watch.is_watched()
    monkeypatch.setattr(sys, "stderr", None)
    assert not watch.is_watched()


def test_a_notebook_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at(monkeypatch)
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", stream)
    assert watch.is_watched()


@pytest.mark.parametrize("given", [True, False])
def test_a_solve_in_python(given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    monkeypatch.setattr(watch, "_PATIENCE", 0.0)
    places = om.Domain.range(6)
    d = om.distances.euclidean()
    problem = om.Problem(om.Prior.uniform(places), d, constraints=[om.MetricPrivacy(1, d)])
    said: list[str] = []
    assert om.solve(problem, progress=said.append if given else None).status == "optimal"
    assert bool(said) == given
    assert bool(terminal.getvalue()) != given
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "this one")
    before = terminal.getvalue()
    om.solve(problem)
    assert terminal.getvalue() == before


def shown_on_a_terminal(*command: str) -> str:
    """What a command writes to a terminal that is its standard error."""
    own, other = PTY.openpty()
    env = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(Path(om.__file__).parents[1])}
    env.pop("PYTEST_CURRENT_TEST", None)
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=other, env=env
    )
    os.close(other)
    shown = b""
    while True:
        try:
            piece = os.read(own, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(own)
    assert process.wait(300) == 0
    return shown.decode()


SLOW = "import time, optmech.cli.commands.{0} as c; run = c.run; import optmech.cli.main as m; "
SLOW += "c.run = lambda args: (time.sleep(1.2), run(args))[1]; m.main({1})"


@pytest.mark.parametrize(
    ("command", "options"),
    [("solve", ["grid-4x4"]), ("problems", []), ("measure", ["--help"])],
)
def test_commands_say_that_they_work(command: str, options: list[str]) -> None:
    shown = shown_on_a_terminal("-c", SLOW.format(command, [command, *options]))
    assert (f"optmech {command}" in shown) == ("--help" not in options)


@pytest.mark.parametrize("options", [["-q"], ["--json"], ["-o", "-"]])
def test_commands_are_silent_where_it_is_asked(options: list[str]) -> None:
    shown = shown_on_a_terminal("-c", SLOW.format("solve", ["solve", "grid-4x4", *options]))
    assert "optmech solve" not in shown


@pytest.mark.parametrize("solver", ["HIGHS", "CLARABEL"])
def test_solvers_print_nothing(solver: str, capfd: pytest.CaptureFixture[str]) -> None:
    """By way of cvxpy too, where HiGHS 1.16 printed its name on standard output."""
    pytest.importorskip("cvxpy")
    highspy = pytest.importorskip("highspy")
    loud, places = highspy.Highs, om.Grid(2, 2)
    e = om.distances.euclidean()
    problem = om.Problem(om.Prior.uniform(places), e, constraints=[om.MetricPrivacy(1, e)])
    assert om.solve(problem, profile=om.Profile(engine="cvxpy", solver=solver)).verified
    assert om.solve(problem, profile="highs").verified
    assert capfd.readouterr() == ("", "")
    assert highspy.Highs is loud
