"""Sizes, losses, distances, weights and limits at the ends of what floats hold, in every section of
problem files: solved, and then proved by both readers, or refused in words; never a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import optmech_audit as audit
import pytest

from optmech.cli.main import main
from optmech.engines.structured import engine

SIZES = ("1e154", "1e300", "1.7e308", "1e-160", "5e-324")
HEAD = "format = 1\n"
GRID = 'loss = "euclidean"\n[secrets]\nkind = "grid"\nrows = 2\ncolumns = 3\n'
UNIFORM = '[prior]\nkind = "uniform"\n'
RATIO = '[[constraints]]\nkind = "metric_privacy"\ndistance = "euclidean"\n'


def grid(cell: str = "1", prior: str = UNIFORM, ratio: str = "epsilon = 1\n") -> str:
    return f"{HEAD}{GRID}cell = {cell}\n{prior}{RATIO}{ratio}"


def labels(loss: str, distance: str, objective: str = "expected_loss") -> str:
    return (
        f'{HEAD}objective = "{objective}"\nloss = {loss}\n[secrets]\nkind = "labels"\n'
        f'labels = ["a", "b", "c"]\n{UNIFORM}[[constraints]]\nkind = "metric_privacy"\n'
        f"epsilon = 1\ndistance = {distance}\n"
    )


def table(value: str) -> str:
    return f"{{matrix = [[0, {value}, 1], [{value}, 0, 1], [1, 1, 0]]}}"


def weights(first: str, other: str) -> str:
    return f'[prior]\nkind = "weights"\nweights = [{", ".join([first, *[other] * 5])}]\n'


def also(kind: str, fields: str) -> str:
    return f'[[constraints]]\nkind = "{kind}"\n{fields}\n'


SECTIONS: dict[str, Callable[[str], str]] = {
    "cells": grid,
    "long cells": lambda v: grid(f"[{v}, 1]"),
    "cells of two sizes": lambda v: grid(f"[{v}, 1e-300]"),
    "an origin": lambda v: grid(f"1\norigin = [{v}, 0]"),
    "a rate": lambda v: grid(ratio=f"epsilon = {v}\n"),
    "a rate and cells": lambda v: grid(v, ratio=f"epsilon = {v}\n"),
    "a threshold": lambda v: grid(ratio=f"epsilon = 1\nthreshold = {v}\n"),
    "a weight": lambda v: grid(prior=weights(v, "1")),
    "weights": lambda v: grid(prior=weights(v, v)),
    "a bound": lambda v: grid() + also("loss_bound", f"maximum = {v}"),
    "a bound and cells": lambda v: grid(v) + also("loss_bound", f"maximum = {v}"),
    "a radius": lambda v: grid(v) + also("support", f'radius = {v}\ndistance = "euclidean"'),
    "an error": lambda v: grid(v) + also(
        "distortion_privacy", f'minimum = {v}\ndistance = "euclidean"'
    ),
    "a share of the error": lambda v: grid(v) + also(
        "distortion_privacy", 'minimum = {fraction_of_blind = 0.5}\ndistance = "euclidean"'
    ),
    "a distance": lambda v: labels('"hamming"', table(v)),
    "a loss": lambda v: labels(table(v), '"hamming"'),
    "both": lambda v: labels(table(v), table(v)),
    "a worst loss": lambda v: labels(table(v), '"hamming"', "worst_loss"),
    "a line": lambda v: (
        f'{HEAD}loss = "euclidean"\n[secrets]\nkind = "line"\nvalues = [0, {v}, 1]\n{UNIFORM}'
        f"{RATIO}epsilon = 1\n"
    ),
    "reports": lambda v: grid(
        prior=f'[observables]\nkind = "grid"\nrows = 2\ncolumns = 2\ncell = {v}\n{UNIFORM}'
    ),
    "a mesh": lambda v: grid(
        ratio=f'epsilon = 1\neverywhere = {{kind = "grid", bounds = [0, 0, {v}, {v}], '
        f"width = {v}}}\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_they_are_solved_or_refused(
    section: Callable[[str], str],
    size: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    # what gets anywhere has after twenty steps or so; the rest would go on to six hundred
    monkeypatch.setattr(engine, "TUNING", replace(engine.TUNING, most_iterations=60))
    Path("p.toml").write_text(section(size))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = main(["solve", "p.toml", "-q", "-o", "d.json"])
    said = capsys.readouterr().err
    assert status in (0, 2, 3, 4), said
    assert "known key" not in said
    assert "is not a table" not in said
    assert Path("d.json").exists() == (status in (0, 3))
    if status == 0:
        assert main(["check", "d.json"]) == 0
        assert audit.main(["d.json"]) == 0
