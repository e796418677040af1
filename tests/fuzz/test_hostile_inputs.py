"""Inputs of the fuzzer, of every kind; see ``run.py`` for many more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INPUTS = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 16, 18, 19, 21, 24, 26, 28, 35, 36, 38, 52,
    58, 75, 82, 86,
]  # fmt: skip
"""Two of each kind where there are two among the first forty, and one of every other."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_hostile_inputs_end_well() -> None:
    # in a process of its own: this one has threads by now, and forks of it might never end
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", "--seed", "0", "--only", *map(str, INPUTS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(INPUTS)} inputs" in done.stdout
    assert "faults: 0" in done.stdout
