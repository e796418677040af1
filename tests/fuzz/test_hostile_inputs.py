"""The first inputs of the fuzzer, one seed for every kind; see ``run.py`` for many more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INPUTS = [*range(40), 52, 58, 75, 82, 86]
"""The last are of kinds that are not among the first."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="inputs run in forked processes")
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
