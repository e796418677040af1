"""An engine that breaks off is followed by another, which is said first; where all of them do there
is an error, and never the design that nobody searched for."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import optmech as om
from optmech.base import native
from optmech.base.machine import data_folder
from optmech.cli.main import main
from optmech.engines import structured

E = om.distances.euclidean()
POINTS = np.random.default_rng(5).uniform(0, 4, (9, 2))
PLACES = om.Domain(range(9), POINTS)
PAIRS = om.MetricPrivacy(1, E)
WORDS = "the library cannot be loaded"
ENGINES = {
    "highs": "optmech.engines.highs.HighsEngine.run",
    "lazy": "optmech.engines.cutting_planes.LazyEngine.run",
    "structured": "optmech.engines.structured.StructuredEngine.run",
    "conic": "optmech.engines.conic.ConicEngine.run",
    "tangents": "optmech.engines.cutting_planes.TangentEngine.run",
    "cvxpy": "optmech.engines.conic.CvxpyEngine.run",
}


def breaks(*_: object, **__: object) -> NoReturn:
    raise RuntimeError(WORDS)


def is_full(*_: object, **__: object) -> NoReturn:
    raise MemoryError


def is_not_there(*_: object, **__: object) -> NoReturn:
    raise ImportError(WORDS)


def refuses(*_: object, **__: object) -> NoReturn:
    raise om.SolverError(WORDS)


HOW = [breaks, is_full, is_not_there, refuses]


def problem() -> om.Problem:
    return om.Problem(om.Prior(PLACES, np.arange(1.0, 10)), E, constraints=[PAIRS])


@pytest.fixture(scope="module")
def optimum() -> float:
    return om.solve(problem(), "cvxpy").loss


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["highs", "lazy", "structured", "cvxpy"])
def test_the_next_engine_does_the_work(
    name: str, how: Callable[..., NoReturn], optimum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ENGINES[name], how)
    design = om.solve(problem(), name)
    assert design.status == "optimal"
    assert design.engine != name
    assert design.loss == pytest.approx(optimum, rel=2e-6)
    assert design.notes[0].startswith(f"{name} broke off (")
    assert f"in the place of {name}, which broke off" in design.engine_reason


@pytest.mark.parametrize("how", [breaks, is_not_there, refuses])
def test_the_next_backend_does_the_work(
    how: Callable[..., NoReturn], optimum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the first backend is made of, it breaks at its first use."""
    made = structured.engine.make_backend
    times = []

    def backend(*args: Any) -> Any:
        times.append(1)
        return how() if len(times) == 1 else made(*args)

    monkeypatch.setattr(structured.engine, "make_backend", backend)
    said: list[str] = []
    design = om.solve(problem(), "structured", progress=said.append)
    assert design.status == "optimal"
    assert design.loss == pytest.approx(optimum, rel=2e-6)
    assert design.notes[0].startswith("structured broke off (")
    if native.has_kernels():
        assert design.engine == "structured"
        assert any("NumPy does the work" in line for line in said)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("asked", ["auto", "structured", "cvxpy"])
def test_nothing_was_searched(
    asked: str, how: Callable[..., NoReturn], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ENGINES.values():
        monkeypatch.setattr(place, how)
    with pytest.raises(
        om.errors.EngineError, match=r"nothing was searched: .* broke off"
    ) as caught:
        om.solve(problem(), asked)
    assert caught.value.remedy
    assert "broke off" in caught.value.message


@pytest.mark.parametrize(
    "where", ["optmech.pipeline.search.compile_lp", "optmech.pipeline.search._recovering"]
)
def test_what_breaks_before_an_engine(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, breaks)
    with pytest.raises(om.errors.EngineError, match=WORDS):
        om.solve(problem())


@pytest.mark.parametrize("how", HOW)
def test_every_point_of_a_region(
    how: Callable[..., NoReturn], monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = om.Mesh.grid((0, 0, 4, 4), 2)
    promise = om.MetricPrivacy(1, E, everywhere=mesh)
    given = om.Problem(om.Prior.uniform(PLACES), E, constraints=[promise])
    monkeypatch.setattr("optmech.engines.cones.solve", how)
    with pytest.raises(om.SolverError if how is refuses else om.errors.EngineError):
        om.solve(given)


def test_cells_and_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ENGINES.values():
        monkeypatch.setattr(place, breaks)
    with pytest.raises(om.errors.EngineError, match=WORDS):
        om.solve(problem(), resolution=3)


def test_what_needs_no_search_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ENGINES.values():
        monkeypatch.setattr(place, breaks)
    alone = om.Domain([0], [[2.0, 2.0]])
    design = om.solve(om.Problem(om.Prior.uniform(PLACES), E, alone, constraints=[PAIRS]))
    assert design.loss == pytest.approx(np.hypot(*(POINTS - 2).T).mean())
    assert design.status == "optimal"
    assert not design.notes or WORDS not in design.notes[0]


def test_an_engine_that_gives_up_is_none_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that leave an engine at a loss are no fault of the installation."""

    def singular(*_: object, **__: object) -> NoReturn:
        raise np.linalg.LinAlgError("singular")

    for place in ENGINES.values():
        monkeypatch.setattr(place, singular)
    design = om.solve(problem())
    assert design.status == "feasible"
    assert "singular" in design.reason


@pytest.mark.parametrize("json_", [False, True])
def test_the_command(
    json_: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ENGINES.values():
        monkeypatch.setattr(place, breaks)
    out = tmp_path / "d.json"
    given = ["solve", "grid-4x4-hamming", "-q", "-o", str(out), *["--json"] * json_]
    assert main(given) == om.errors.EngineError.exit_status == 5
    shown = capsys.readouterr()
    assert WORDS in shown.err
    assert not out.exists()
    if json_:
        assert json.loads(shown.out)["status"] == "error"


def test_the_command_says_what_broke(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ENGINES["highs"], breaks)
    assert main(["solve", "grid-4x4-hamming", "-q"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert WORDS in notes[0]


PROGRAM = """
import json, resource, sys
import numpy as np
limits = json.loads(sys.argv[1])
import optmech as om
points = np.random.default_rng(0).uniform(0, 4, (147, 2))
places = om.Domain(range(147), points)
prior = om.Prior(places, np.random.default_rng(1).dirichlet(np.full(147, 0.3)))
km = om.distances.euclidean()
given = om.Problem(prior, km, constraints=[om.MetricPrivacy(1, km)])
for name, value in limits.items():
    resource.setrlimit(getattr(resource, name), (value, value))
try:
    design = om.solve(given, gap=0.2)
except om.OptmechError as error:
    print(json.dumps({"error": str(error), "status": error.exit_status}))
except MemoryError as error:
    # of which the command says that the memory at hand does not suffice
    print(json.dumps({"error": str(error), "status": 2}))
else:
    print(json.dumps({"gap": design.gap, "asked": 0.2, "notes": design.notes}))
"""
_ALLOWED_ANYTHING = 1
"""CAP_DAC_OVERRIDE, by which a superuser writes where nobody may."""
_DROP = 24
"""PR_CAPBSET_DROP."""


def as_others() -> None:
    """A superuser becomes one who minds permissions."""
    ctypes.CDLL(None).prctl(_DROP, _ALLOWED_ANYTHING, 0, 0, 0)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A copy of the package in which nothing can be written, beside a home that is the same."""
    root = tmp_path / "installed"
    shutil.copytree(
        Path(om.__file__).parent, root / "optmech", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(data_folder("solvers"), root / "solvers")
    (root / "home").mkdir()
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    yield root
    for folder in folders:
        folder.chmod(0o755)


@pytest.mark.parametrize(
    ("environment", "limits"),
    [
        ({}, {}),
        ({"OPTMECH_KERNELS": "numpy"}, {}),
        ({"PATH": "/nonexistent", "CC": "/nonexistent"}, {}),
        ({}, {"RLIMIT_FSIZE": 0}),
        ({}, {"RLIMIT_AS": 2**29}),
    ],
    ids=["read-only, without home", "no kernels", "no compiler", "full disk", "512 MiB"],
)
def test_hardened_environments(
    environment: dict[str, str], limits: dict[str, int], read_only: Path
) -> None:
    """147 rough places, which compiled kernels do where they can: the gap asked for, or an error,
    whatever kernels are made of."""
    pytest.importorskip("resource")
    given = {name: value for name, value in os.environ.items() if name != "OPTMECH_KERNELS"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(limits)],
        check=False,
        env={**given, "PYTHONPATH": str(read_only), "HOME": str(read_only / "home")} | environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=as_others if os.geteuid() == 0 else None,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    said = json.loads(found.stdout)
    if "error" in said:
        assert said["status"] in (2, 5), said
        assert "RLIMIT_AS" in limits, said
    else:
        assert said["gap"] <= said["asked"], said
