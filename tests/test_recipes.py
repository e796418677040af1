"""The worked examples of CONTRIBUTING.md: a loss, and a format of files."""

from __future__ import annotations

import sys
from fractions import Fraction
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from optmech_audit import main as audited
from scipy.optimize import linprog

import optmech as om
from optmech.base import extensions
from optmech.base.extensions import CODECS
from optmech.reading import sealed

PAGE = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"

pytestmark = pytest.mark.skipif(
    not PAGE.is_file(), reason="CONTRIBUTING.md is not beside the tests"
)


@pytest.fixture
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The block of Python of a section, as a module."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {request.param}\n")[2]
    module = ModuleType("somebody_else")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(section.partition("```python\n")[2].partition("```")[0], vars(module))
    return module


@pytest.mark.parametrize("made", ["A new loss"], indirect=True)
def test_a_loss_of_somebody_else(made: Any, tmp_path: Path) -> None:
    problem = made.problem
    steps = np.abs(problem.secrets.points[:, None] - problem.secrets.points).sum(axis=2)
    forgiven = np.maximum(0, steps - 1)  # only the far corner costs, and that 1 km
    assert np.array_equal(problem.loss_matrix, forgiven)
    design = om.solve(problem)
    # the same program, row by row
    pairs = [(i, j, o) for i in range(4) for j in range(4) for o in range(4) if i != j]
    rows = np.zeros((len(pairs), 4, 4))
    for row, (i, j, o) in zip(rows, pairs, strict=True):
        row[i, o], row[j, o] = 1, -(2.0 ** steps[i, j])
    sums = np.kron(np.eye(4), np.ones(4))
    best = linprog(
        forgiven.ravel() / 4, rows.reshape(len(pairs), 16), np.zeros(len(pairs)), sums, np.ones(4)
    )
    assert (design.status, design.loss) == ("optimal", pytest.approx(best.fun, rel=1e-6))
    path = tmp_path / "design.json"
    design.save(path)
    assert om.check(path).passed
    assert om.load(path).loss == design.loss
    assert audited([str(path)]) == 0


@pytest.mark.parametrize("made", ["A new file format"], indirect=True)
def test_a_format_of_somebody_else(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sealed.FORMATS, made.FORMAT.name, made.FORMAT)
    entry = EntryPoint(made.FORMAT.name, made.__name__, CODECS)
    monkeypatch.setitem(extensions.added(CODECS), made.FORMAT.name, entry)
    path = tmp_path / "coin.json"
    coin = made.Coin(3, Fraction(1, 4))
    assert (coin.loss, coin.lower_bound, coin.status) == (0.25, 0.25, "optimal")
    coin.save(path)
    assert made.Coin.load(path) == coin
    # a coin that lies too rarely, and one that lies more than it claims
    made.Coin(3, Fraction(1, 5)).save(path)
    with pytest.raises(om.VerificationError, match="odds: 1 - p <= odds p"):
        made.Coin.load(path)
    dull = made.Coin(3, Fraction(1, 3))
    assert (dull.status, dull.gap) == ("feasible", pytest.approx(0.25))
    body = made.encode(dull)
    path.write_bytes(sealed.written({**body, "claims": {**body["claims"], "loss": 0.25}}))
    with pytest.raises(om.VerificationError, match=r"loss is 0\.25 in the file"):
        made.Coin.load(path)
    path.write_bytes(path.read_bytes().replace(b'"odds": 3', b'"odds": 2'))
    with pytest.raises(om.VerificationError, match="was altered"):
        made.Coin.load(path)
