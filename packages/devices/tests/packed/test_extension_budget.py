"""The budget of the extension: one for all files, and every report that was given out is noted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import optmech_devices
import pytest
from optmech_devices.packed.clients import copy_client

import optmech as om

TESTS = Path(__file__).parent
VECTORS = TESTS / "vectors"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two mechanisms of places around one position, one for every point there, and the earth's."""
    folder = tmp_path_factory.mktemp("files")
    cells, km = om.Grid(3, 3, bounds=(16.2, 48.1, 16.5, 48.3)), om.distances.euclidean()
    for name, epsilon in (("one", "ln 2"), ("two", "ln 3")):
        private = om.MetricPrivacy(epsilon, km)
        design = om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[private]))
        om.pack(design, folder / f"{name}.omm", outside="nearest")
    return [*map(str, sorted(folder.glob("*.omm"))), str(VECTORS / "earth.omm")]


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("extension") / "made"
    copy_client("extension", found)
    (found / "package.json").write_text('{"type": "module"}')
    return found


def told(node: str, extension: Path, story: str, files: list[str], seed: int = 1) -> Any:
    run = subprocess.run(
        [node, str(TESTS / "budget.mjs"), str(extension), story, str(seed), *files],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    return json.loads(run.stdout)


def charges(path: str) -> float:
    mechanism: Any = om.Earth.load(path) if "earth" in path else om.load_packed(path)
    return om.Ledger(mechanism, None, radius=1).per_draw


def test_a_budget_goes_on_over_files(node: str, extension: Path, files: list[str]) -> None:
    """Three reports of the first file are the budget; of another only what is left in ε."""
    for pair in (files[:2], files[1::-1], [files[0], files[2]], [files[2], files[1]]):
        each = [charges(path) for path in pair]
        found = told(node, extension, "files", pair)
        total, draws = 0.0, 0
        for turn, (given, noted) in enumerate(found):
            own = each[turn % 2]
            # as many as the budget of three of this file's still allows
            allowed = 0
            while allowed < 6 and total + own <= 3 * own * (1 + 1e-12):
                total, allowed = total + own, allowed + 1
            draws += allowed
            assert given == allowed, (pair, turn)
            assert noted["draws"] == draws
            assert noted["plain"] == pytest.approx(total, rel=1e-9)
        assert found[0][0] == 3


def test_what_was_drawn_for_is_known_after_another_file(
    node: str, extension: Path, files: list[str]
) -> None:
    for pair in (files[:2], files[1:]):
        found = told(node, extension, "back", pair)
        assert found == {"same": True, "given": [True] * 3, "free": True, "draws": 2}


@pytest.mark.parametrize("seed", range(12))
def test_every_report_that_is_given_out_is_noted(
    seed: int, node: str, extension: Path, files: list[str]
) -> None:
    """While budget, file and period change. A report that repeats is not noted again: sixty days
    at one place are sixty draws of a file."""
    found = told(node, extension, "options", files, seed)
    assert found["given"] == found["draws"] == 60


def test_what_was_spent_is_known_or_nothing_is_reported(
    node: str, extension: Path, files: list[str]
) -> None:
    found = told(node, extension, "states", files[:1])
    assert found["found"] == [None] * len(found["found"])
    assert found["old"] is True
    assert found["noted"]["draws"] == 1


def test_the_demonstration_keeps_one_budget(extension: Path) -> None:
    """By the same function, under one name for all files."""
    page = (Path(optmech_devices.__file__).parent / "client" / "demo.html").read_text()
    assert "await budgeted(" in page
    assert "digest" not in page
    background = (extension / "background.js").read_text()
    assert "budgeted(" in background
    assert "Ledger" not in background
