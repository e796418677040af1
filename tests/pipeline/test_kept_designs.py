"""Whatever fails beside a verified mechanism or after it leaves the mechanism, says what failed,
and leaves a file that is right."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech.cli.main import main

E = om.distances.euclidean()
POINTS = np.random.default_rng(0).uniform(0, 4, (12, 2))
PLACES = om.Domain(range(12), POINTS)
MESH = om.Mesh.grid((0, 0, 4, 4), 2)
PROMISE = om.MetricPrivacy(1, E, everywhere=MESH)


def fails(*_: object, **__: object) -> NoReturn:
    raise ValueError("list index out of range")


def is_full(*_: object, **__: object) -> NoReturn:
    raise MemoryError


def refuses(*_: object, **__: object) -> NoReturn:
    raise om.SolverError("nothing was found")


def problem(*constraints: om.Constraint, weights: Any = None) -> om.Problem:
    prior = om.Prior.uniform(PLACES) if weights is None else om.Prior(PLACES, weights)
    reports = om.Domain(range(3), POINTS[:3])
    return om.Problem(prior, E, reports, constraints=constraints)


def judge(design: om.Design, words: str, path: Path) -> None:
    """The design stands, says what failed, and so does its file."""
    assert design.verified
    assert 0 <= design.lower_bound <= design.loss < np.inf
    said = [*design.notes, design.reason]
    assert any(words in line and "list index out of range" in line for line in said), said
    design.save(path)
    assert om.check(path).passed
    assert audit.main([str(path)]) == 0


@functools.cache
def plainly(few: int) -> om.Design:
    """With nothing that fails; ``few`` says which cells there are by now."""
    del few
    return om.solve(problem(PROMISE), gap=1e-2)


@pytest.mark.parametrize("how", [fails, is_full, refuses])
@pytest.mark.parametrize("few", [0, 150])
@pytest.mark.parametrize(
    "where",
    [
        "optmech.pipeline.meshes.counts_of",
        "optmech.pipeline.meshes.over_places",
        "optmech.designs.outer.Coarsening.over",
        "optmech.pipeline.meshes.solve",
        "optmech.pipeline.meshes.bound_by_cells",
        "optmech.pipeline.meshes.cells_of",
        "optmech.designs.outer.Coarsening.proof",
        "optmech.engines.pairs.solve",
        "optmech.certificate.families.gradient.Gradient._least",
    ],
)
def test_a_bound_at_every_point(
    where: str, few: int, how: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("optmech.designs.outer.FEW", few)
    plain = plainly(few)
    calls: list[int] = []

    def counted(*_: object, **__: object) -> NoReturn:
        calls.append(1)
        # once: what is written is bounded again
        if where.endswith("Gradient._least"):
            monkeypatch.undo()
            monkeypatch.setattr("optmech.designs.outer.FEW", few)
        how()

    monkeypatch.setattr(where, counted)
    design = om.solve(problem(PROMISE), gap=1e-2)
    monkeypatch.undo()
    monkeypatch.setattr("optmech.designs.outer.FEW", few)
    if not calls:
        assert design.loss == plain.loss
        return
    assert design.verified
    assert any("failed" in note for note in design.notes)
    assert design.lower_bound <= plain.loss
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert audit.main([str(tmp_path / "d.json")]) == 0


def test_a_finer_bound_that_fails_leaves_the_coarser(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, value in (("FEW", 0), ("_CELLS", 3), ("_MEMBERS", 1)):
        monkeypatch.setattr(f"optmech.designs.outer.{number}", value)
    from optmech.pipeline import meshes as everywhere

    proved, times = everywhere._proved, []

    def once(*args: Any) -> Any:
        times.append(1)
        return proved(*args) if len(times) == 1 else fails()

    monkeypatch.setattr(everywhere, "_proved", once)
    design = om.solve(problem(PROMISE), gap=1e-2)
    assert len(times) == 2
    assert design.lower_bound > 0
    judge(design, "the lower bound by 12 cells failed", tmp_path / "d.json")


UNWEIGHED = np.r_[np.full(8, 1 / 8), np.zeros(4)]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("optmech.engines.highs.HighsEngine.run", "highs broke off"),
        ("optmech.pipeline.session.improved", "without prior weight"),
        ("optmech.pipeline.session._thin", "multipliers"),
    ],
)
def test_finite_designs(
    where: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = problem(om.MetricPrivacy(1, E), weights=UNWEIGHED)
    with monkeypatch.context() as patch:
        patch.setattr(where, fails)
        patch.setattr("optmech.pipeline.search.second", lambda *_: "")
        design = om.solve(given)
    judge(design, words, tmp_path / "d.json")


def test_measuring_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optmech.pipeline.session.measure_approximations", fails)
    design = om.solve(problem(om.MetricPrivacy(1, E, threshold=2)))
    assert design.verified
    assert any("thresholds leave out failed" in note for note in design.notes)


@pytest.mark.parametrize(
    "where", ["_prove", "_landmarks", "_whole", "Places.from_landmarks", "Coarsening.over"]
)
def test_steps_of_a_resolution(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    of_cells = where.startswith("Coarsening")
    place = "optmech.designs.outer." if of_cells else "optmech.pipeline.resolution."
    own = where.startswith("_")
    monkeypatch.setattr(place + ("_Resolved." if own else "") + where, fails)
    given = problem(om.MetricPrivacy(1, E))
    if where in ("_landmarks", "Places.from_landmarks"):
        # the only step there is
        with pytest.raises(
            om.errors.EngineError, match=r"nothing was searched: .* list index out of range"
        ):
            om.solve(given, resolution=3)
        return
    design = om.solve(given, resolution=3)
    assert design.verified
    assert where == "_whole" or "list index out of range" in design.reason
    monkeypatch.undo()
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed


def test_an_engine_that_fails_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optmech.engines.highs.HighsEngine.run", fails)
    design = om.solve(problem(om.MetricPrivacy(1, E)))
    assert design.status == "optimal"
    assert design.engine == "structured"


@pytest.mark.parametrize(
    ("name", "json_", "saved"),
    [("grid-4x4-hamming", True, False), ("square-everywhere", False, True)],
)
@pytest.mark.parametrize(
    "where",
    [
        "optmech.cli.commands.solve._write_page",
        "optmech.show.plots.mechanism_picture",
        "optmech.cli.commands.solve.attack_on",
    ],
)
def test_the_command_shows_the_design(
    where: str,
    name: str,
    json_: bool,
    saved: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> NoReturn:
        raise om.SolverError("list index out of range")

    monkeypatch.setattr(where, fail)
    files = ["--report", str(tmp_path / "p.html"), "--picture", str(tmp_path / "p.png")]
    if saved:
        files += ["-o", str(tmp_path / "d.json")]
    status = main(["solve", name, "-q", "--gap", "0.01", *["--json"] * json_, *files])
    out = capsys.readouterr()
    assert status == om.SolverError.exit_status
    assert (tmp_path / "d.json").exists() == saved
    if json_:
        found = json.loads(out.out)
        assert "list index out of range" in found["failed"][0]
        assert found["verified"]
        assert found["loss"] > 0
        assert (found["report"] is None) == where.endswith("_write_page")
    else:
        assert "list index out of range" in out.err
        assert "lower bound" in out.out
        assert "verified" in out.out
