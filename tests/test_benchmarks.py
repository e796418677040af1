"""The benchmarks run, resume, and say what is true; nothing here looks at times."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from programs import ROOT, run


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_smoke_suite_agrees_with_every_peer_that_is_installed(tmp_path: Path) -> None:
    out = tmp_path / "smoke.jsonl"
    run("benchmarks/engines.py", "--suite", "smoke", "--results", str(out))
    found = [line for line in lines(out) if "failed" not in line]
    ours = {line["task"]["rows"]: line for line in found if line["task"]["solver"] == "auto"}
    assert set(ours) == {3, 4}
    assert all(line["private"] and line["gap"] <= 1e-6 for line in ours.values())
    peers = [line for line in found if line["task"]["solver"] in ("highs-simplex", "cvxpy-default")]
    assert len(peers) == 4
    for line in peers:
        assert line["loss"] == pytest.approx(ours[line["task"]["rows"]]["loss"], rel=1e-6)
    for line in found:
        assert 0 < line["process_seconds"] < line["task"]["limit"]
        assert line["memory_mib"] > 10
        assert line["delta"] < 1e-6


@pytest.fixture
def city(tmp_path: Path) -> Path:
    """Two users: one at two places five rows apart, one at three."""
    places = {"south": (40.705, -74.015), "north": (40.785, -74.015), "east": (40.745, -73.95)}
    visits = {1: ["south"] * 12 + ["north"] * 12, 2: ["south"] * 10 + ["north"] * 8 + ["east"] * 9}
    with (tmp_path / "fsq_nyc_pois.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["poi", "lat", "lon", "category"])
        writer.writerows([name, *at, "x"] for name, at in places.items())
    with (tmp_path / "fsq_nyc_checkins.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["user", "poi", "minute"])
        writer.writerows([user, name, 0] for user, names in visits.items() for name in names)
    return tmp_path


def test_privacy_games_on_a_made_up_city(city: Path) -> None:
    command = ["benchmarks/privacy_games", "scenario1", "--grid", "small", "--users", "0"]
    command += ["--data", str(city), "--results", str(city / "out"), "--designs", str(city / "d")]
    run(*command)
    found = lines(city / "out" / "designs-small.jsonl")
    assert all(line["verified"] and line["gap"] <= 1e-6 for line in found)
    of = {(*line["task"].values(),): line for line in found}
    for (grid, user, kind, epsilon, minimum), line in of.items():
        if kind != "joint":
            continue
        differential = of[grid, user, "differential", epsilon, None]
        distortion = of[grid, user, "distortion", None, minimum]
        assert line["optimal"] >= minimum * (1 - 1e-9)
        assert distortion["loss"] <= line["loss"] * (1 + 1e-6)
        assert line["loss"] == pytest.approx(differential["loss"], rel=1e-5)
    # two places, evenly visited, five rows of 0.12/8 degrees apart on a line: the truncated
    # geometric mechanism, remapped to the nearer one, errs with probability a^3 / (1 + a)
    row = 0.015 * math.radians(6371.0088)
    for epsilon in (0.15, 0.9):
        loss = of["small", 1, "differential", epsilon, None]["loss"]
        a = math.exp(-epsilon * row)
        assert loss == pytest.approx(a**3 / (1 + a), rel=2e-6)
    path = city / "out" / "designs-small.jsonl"
    before = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in before if '"joint"' not in line))
    run(*command)
    after = lines(path)
    assert {str(line["task"]) for line in after} == {str(line["task"]) for line in of.values()}
    assert len(after) == len(of)
    assert all(line["warm"] for line in after if line["task"]["kind"] == "joint")


def test_reproduction_says_what_its_results_say() -> None:
    """The generated parts of docs/reproduction.md, made again from the committed results."""
    code = (
        "import sys; sys.path.insert(0, 'benchmarks/privacy_games')\n"
        "from pathlib import Path; from pages import filled; from results import sections\n"
        "page = Path('docs/reproduction.md').read_text(encoding='utf-8')\n"
        "assert 'No results yet' not in page\n"
        "assert filled(page, sections()) == page\n"
    )
    run("-c", code)
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    for figure in re.findall(r"\]\((figures/[^)]*)\)", page):
        assert (ROOT / "docs" / figure).exists()


def test_distribution_privacy_says_what_its_results_say() -> None:
    """The generated parts of docs/distribution-privacy.md, made again from its results."""
    run(
        "-c",
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "from distribution_tables import PAGE, filled, results, sections\n"
        "page, parts = PAGE.read_text(encoding='utf-8'), sections(results())\n"
        "assert all(f'<!-- begin {name} -->' in page for name in parts), parts.keys()\n"
        "assert filled(page, parts) == page\n",
    )


def test_packed_results_are_found_again(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, 'benchmarks/privacy_games')\n"
        "from pathlib import Path; from store import Store\n"
        f"path = Path({str(tmp_path)!r}) / 'some.jsonl'\n"
        "store = Store(path); store.add({'user': 1}, {'loss': 0.1}); store.pack()\n"
        "assert not path.exists()\n"
        "store = Store(path); store.add({'user': 2}, {'loss': 0.2})\n"
        "store.add({'user': 1}, {'loss': 0.3})\n"
        "store = Store(path)\n"
        "assert store.find({'user': 2})['loss'] == 0.2\n"
        "assert store.find({'user': 1})['loss'] == 0.3\n"
        "first = store.pack() or store.packed.read_bytes()\n"
        "Store(path).pack(); assert store.packed.read_bytes() == first\n"
    )
    run("-c", code)


@pytest.mark.parametrize("page", ["sticky", "coarsening"])
def test_pages_have_the_tables_of_their_results(page: str) -> None:
    """The tables of docs/sticky.md and docs/coarsening.md, printed again."""
    done = subprocess.run(
        [sys.executable, f"benchmarks/{page}.py", "--table"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert done.stdout.count("\n") > 5
    assert done.stdout.strip() in text


def test_benchmarks_import_one_another_whatever_a_test_imported(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    names = sorted(file.stem for file in (ROOT / "benchmarks").glob("*.py"))
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    request.getfixturevalue("benchmark_modules")
    for name in names:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin == str(ROOT / "benchmarks" / f"{name}.py")
