"""Every script of the benchmarks: help that does nothing, tables of the right columns."""

from __future__ import annotations

import csv
import gzip
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from programs import ROOT, run

import optmech as om

FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(
    path.relative_to(FOLDER).as_posix()
    for path in FOLDER.rglob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")
)


class Ran(Exception):
    """A benchmark did something."""


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_is_all_that_help_does(
    script: str,
    benchmark_modules: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def caught(*_: object, **__: object) -> None:
        raise Ran

    for owner, name in (
        (om, "solve"), (om.noise, "optimal"), (Path, "write_text"), (Path, "write_bytes"),
        (Path, "mkdir"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, caught)
    path = FOLDER / script
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("usage: ")
