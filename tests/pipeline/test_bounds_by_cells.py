"""The bound by cells as time, memory and Ctrl-C allow: what was proved is kept."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech.base.watch import noticed
from optmech.designs import outer
from optmech.pipeline import meshes as everywhere

E = om.distances.euclidean()


def problem(count: int = 384) -> om.Problem:
    rng = np.random.default_rng(6)
    points = rng.uniform(0.1, 3.9, (count, 2))
    promise = om.MetricPrivacy(1, E, everywhere=om.Mesh.grid((0, 0, 4, 4), 2))
    places = om.Domain(range(count), points)
    return om.Problem(
        om.Prior.uniform(places), E, om.Domain(range(4), points[:4]), constraints=[promise]
    )


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 16 cells to 64."""
    monkeypatch.setattr(outer, "_CELLS", 16)
    monkeypatch.setattr(outer, "_MEMBERS", 6)


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def cells(design: om.Design) -> int:
    assert design.certificate.outer is not None
    assert design.certificate.outer.cells is not None
    return len(np.unique(design.certificate.outer.cells))


def solved(progress: Callable[[str], None] | None = None) -> om.Design:
    found = om.solve(problem(), gap=1e-2, progress=progress)
    assert isinstance(found, om.Design)
    return found


def saved_and_proved(design: om.Design, path: Path) -> None:
    design.save(path)
    assert om.check(path).passed
    assert om.check(path).lower_bound == design.lower_bound
    words = " ".join(audit.audit(str(path)))
    assert f"{cells(design)} cells of the 384 places" in words


def test_more_cells_prove_more() -> None:
    said: list[str] = []
    design = solved(said.append)
    assert cells(design) == 64
    bounds = [line for line in said if line.startswith("bound from")]
    assert [line.split()[2] for line in bounds] == ["16", "64"]
    first, last = (float(line.split()[-1]) for line in bounds)
    assert 0 < first < last
    assert last == pytest.approx(design.lower_bound, rel=1e-5)
    assert any("64 cells, step" in line for line in said)
    assert not any("cells" in note for note in design.notes)


def test_an_interrupt_keeps_what_was_proved(tmp_path: Path, interruptible: None) -> None:
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        if line.startswith("64 cells, step 1:"):
            os.kill(os.getpid(), signal.SIGINT)

    design = solved(stop)
    assert any("interrupted" in line for line in said)
    assert cells(design) in (16, 64)
    assert 0 < design.lower_bound < design.loss
    saved_and_proved(design, tmp_path / "d.json")


def test_an_interrupt_of_the_mesh_keeps_the_mechanism(tmp_path: Path, interruptible: None) -> None:
    def stop(line: str) -> None:
        if line.startswith("step 4:"):
            os.kill(os.getpid(), signal.SIGINT)

    design = solved(stop)
    assert design.verified
    assert design.certificate.outer is None
    assert design.lower_bound == 0
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed


def test_the_second_interrupt_is_as_usual(interruptible: None) -> None:
    def stop(line: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        solved(stop)


def test_memory_limits_the_cells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    room = outer.bytes_of(40, 4) / everywhere._MEMORY
    monkeypatch.setattr(everywhere.memory, "available_bytes", lambda: int(room) + 1)
    monkeypatch.setattr("optmech.base.memory.require", lambda *_, **__: None)
    design = solved()
    assert cells(design) == 40
    assert any("by 40 cells, where it may use 64: the memory" in note for note in design.notes)
    saved_and_proved(design, tmp_path / "d.json")


def test_time_limits_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everywhere.Clock, "remaining", lambda *_: 1e-3)
    design = solved()
    assert cells(design) == 16
    assert any("by 16 cells, where it may use 64: there was no time" in n for n in design.notes)


def test_without_any_time_there_is_no_bound() -> None:
    found = om.solve(problem(), time_limit=1e-9)
    assert isinstance(found, om.Design)
    assert found.verified
    assert found.certificate.outer is None
    assert any("no lower bound for every mechanism was proved" in note for note in found.notes)


def test_whoever_listens_around_hears_it_too(interruptible: None) -> None:
    heard: list[str] = []
    with noticed(lambda: heard.append("outer")):
        with noticed(lambda: heard.append("inner")):
            os.kill(os.getpid(), signal.SIGINT)
        assert heard == ["inner", "outer"]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_resolution_ends(interruptible: None) -> None:
    grid = om.Grid(8, 8)
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        if line.startswith("bound from"):
            os.kill(os.getpid(), signal.SIGINT)

    design = om.solve(
        om.Problem(om.Prior.uniform(grid), E, constraints=[om.MetricPrivacy(0.4, E)]),
        gap=1e-4, resolution=64, progress=stop,
    )  # fmt: skip
    assert design.verified
    assert design.lower_bound > 0
    assert sum(line.startswith("bound from") for line in said) == 1


@pytest.mark.parametrize(("towns", "globe"), [(2, False), (4, True)])
def test_towns_far_apart_have_a_bound(towns: int, globe: bool) -> None:
    rng = np.random.default_rng(towns)
    middles = np.array([[2.0, 2], [8, 8], [2, 8], [8, 2]])[np.arange(160) % towns]
    points = middles + 0.3 * rng.normal(size=(160, 2))
    kind, box, width = {}, (0.0, 0.0, 10.0, 10.0), 5.0
    marks = middles[:4] + 1.0
    cost = np.hypot(*(points[:, None] - marks).transpose(2, 0, 1))
    distance = om.distances.euclidean()
    if globe:
        # a hundredth of a degree is about a kilometre
        points, box, width = [10.0, 45.0] + 0.01 * points, (10.0, 45.0, 10.1, 45.1), 6.0
        kind, distance = {"coordinates": "lonlat"}, om.distances.haversine()
    prior = om.Prior.uniform(om.Domain(range(160), points, **kind))
    reports = om.Domain(range(4))
    mesh = om.Mesh.grid(box, width, degree=2, **kind)
    design, best = (
        om.solve(om.Problem(prior, cost, reports, constraints=[stated]), gap=1e-3)
        for stated in (
            om.MetricPrivacy(1, distance, everywhere=mesh),
            om.MetricPrivacy(1, distance),
        )
    )
    assert design.verified
    assert not [note for note in design.notes if "failed" in note]
    # a little less than that of the places, whose program is solved at once
    assert 0.95 * best.lower_bound <= design.lower_bound <= best.loss * (1 + 1e-6)
