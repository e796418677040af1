"""The benchmark of privacy at every point: its pieces at small size, and what its page says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from programs import ROOT, run

RESULTS = ROOT / "benchmarks" / "results" / "everywhere.jsonl"


def lines(part: str) -> list[dict]:
    found = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return [line for line in found if line["task"]["part"] == part]


def test_the_page_says_what_the_results_say() -> None:
    run("benchmarks/everywhere.py", "figures", "--check")
    page = (ROOT / "docs" / "everywhere.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "figures" / "everywhere-convergence.svg").exists()
    for part in ("convergence", "adaptive", "rome", "others", "grids", "limits", "effort", "joint"):
        body = page.split(f"<!-- begin {part} -->")[1].split(f"<!-- end {part} -->")[0]
        assert body.count("\n|") >= 3, part


def test_no_loss_is_below_a_bound() -> None:
    for prior in ("uniform", "rough"):
        least = max(
            line["lower_bound"] for line in lines("bound") if line["task"]["prior"] == prior
        )
        for degree in (1, 2, 3):
            uniform = [
                line
                for line in lines("uniform")
                if line["task"]["prior"] == prior and line["task"].get("degree", 1) == degree
            ]
            uniform.sort(key=lambda line: -line["task"]["width"])
            losses = [line["loss"] for line in uniform]
            assert len(losses) == 4
            assert losses == sorted(losses, reverse=True)
            assert losses[-1] > least
    lower = {line["task"]["epsilon"]: line["lower_bound"] for line in lines("rome lower")}
    linear = {line["task"]["epsilon"]: line["loss"] for line in lines("rome upper")}
    upper = {line["task"]["epsilon"]: line["loss"] for line in lines("rome cubic")}
    more = {line["task"]["epsilon"]: line["lower_bound"] for line in lines("rome bound")}
    remapped = {line["task"]["epsilon"]: line for line in lines("rome exponential")}
    assert lower.keys() == upper.keys() == remapped.keys() == {0.2, 0.4, 0.8, 1.6}
    for epsilon in upper:
        assert linear[epsilon] > upper[epsilon] > lower[epsilon]
        # what is claimed on the page
        assert upper[epsilon] > more.get(epsilon, lower[epsilon]) >= lower[epsilon]
        assert lower[epsilon] < remapped[epsilon]["remapped"] <= remapped[epsilon]["loss"]
    # privacy costs less where ε is larger, at least as far as these numbers can tell
    for found in (lower, linear, upper):
        values = [found[epsilon] for epsilon in sorted(found)]
        assert values == sorted(values, reverse=True)


def test_more_wrong_guesses_cost_more() -> None:
    for part in ("joint square", "joint city"):
        found = sorted(lines(part), key=lambda line: line["task"]["share"])
        assert len(found) >= 3
        for line in found:
            assert line["lower_bound"] < line["loss"] <= line["bound"] * (1 + 1.1e-3)
            assert line["task"]["share"] * line["blind"] <= line["wrong"] <= line["blind"]
        losses = [line["loss"] for line in found]
        assert losses[-1] > losses[0]
        assert all(b > a * (1 - 1e-3) for a, b in itertools.pairwise(losses))


def test_a_small_square(tmp_path: Path) -> None:
    """One report only: the loss is the prior's mean distance to it, on any mesh."""
    code = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "import json, numpy as np; from everywhere_mesh import Places, adapted, certified\n"
        "from optmech.spaces.mesh import Mesh\n"
        "points = np.array([[0.25, 0.5], [3.0, 1.0]]); costs = np.array([[1.0], [2.0]])\n"
        "places = Places(points, np.array([0.25, 0.75]), costs)\n"
        "mesh = Mesh.grid((0, 0, 4, 4), 2)\n"
        "print(json.dumps([certified(places, m, 0.5, p) for m, p in "
        "adapted(places, mesh, 0.5, 9, 1e-4)]))\n"
    )
    assert json.loads(run("-c", code)) == pytest.approx([1.75], rel=1e-12)


def test_halved_triangles_keep_the_area() -> None:
    code = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "import json, numpy as np; from everywhere_mesh import area, finer\n"
        "from optmech.spaces.mesh import Mesh\n"
        "mesh = Mesh.grid((0, 0, 4, 4), 2); weight = np.zeros(len(mesh.triangles)); weight[0] = 1\n"
        "after = finer(mesh, weight, 40)\n"
        "print(json.dumps([float(area(after).sum()), len(after), area(after).min()]))\n"
    )
    total, count, least = json.loads(run("-c", code))
    assert total == pytest.approx(16.0, rel=1e-12)
    assert count >= 40
    assert least < np.float64(2.0) / 8
