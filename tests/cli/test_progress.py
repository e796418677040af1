"""Progress on a terminal, on a pipe, and without colours."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest
from rich.console import Console

from optmech.base.watch import Line
from optmech.cli.output import GapAgainstTime

COMMAND = [sys.executable, "-m", "optmech", "solve", "montreal-small"]
COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-9][0-9;]*m")


def test_the_gap_falls_with_time() -> None:
    now = [0.0]
    shown = GapAgainstTime(1e-4, clock=lambda: now[0])
    assert set(shown.bars()) == {"█"}
    for at, text in ((6.0, Line("iteration 1", 1e-2)), (12.0, Line("found", 1e-4)), (18.0, "done")):
        now[0] = at
        shown(text)
    now[0] = 24.0
    bars = shown.bars()
    # 24 seconds in 24 steps: no gap for 5, then half the decades, then none
    assert bars == "█" * 5 + bars[5] * 6 + "▁" * 13
    assert bars[5] in "▄▅"
    assert shown.message == "done"


def test_it_is_drawn_in_plain_letters_where_needed() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=out, force_terminal=False, width=80)
    shown = GapAgainstTime(1e-6, clock=lambda: 1.0)
    shown(Line("nearer \x1b[31mred", 1e-3))
    console.print(shown)
    out.flush()
    text = out.buffer.getvalue().decode("ascii")
    assert "gap 1.0e-03 (asked 1e-06)" in text
    assert "\x1b" not in text


def on_a_terminal(**environment: str) -> bytes:
    """Standard error of a solve whose standard error is a terminal."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    known = {**os.environ, "TERM": "xterm-256color", **environment}
    done = subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL, stderr=follower, env=known)
    os.close(follower)
    content = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        content += part
    os.close(leader)
    assert done.wait() == 0
    return content


def test_a_terminal_gets_one_block_that_is_redrawn_and_removed() -> None:
    content = on_a_terminal()
    assert b"asked 1e-06" in content
    assert b"\x1b[2K" in content
    assert COLOUR.search(content)


def test_no_color_is_respected() -> None:
    content = on_a_terminal(NO_COLOR="1")
    assert b"asked 1e-06" in content
    assert not COLOUR.search(content)


def test_pipes_and_dumb_terminals_get_lines() -> None:
    piped = subprocess.run(COMMAND, capture_output=True, check=True).stderr
    for content in (piped, on_a_terminal(TERM="dumb")):
        assert b"\x1b" not in content
        assert re.search(rb"iteration \d+: .* gap ", content)
