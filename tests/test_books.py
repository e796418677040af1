"""Notebooks of the documents run, and what they show is so: by linear programs of these tests, by
sums in loops and in closed form."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

import optmech as om

NOTEBOOKS = Path(__file__).resolve().parent.parent / "docs" / "notebooks"

pytestmark = pytest.mark.skipif(not NOTEBOOKS.is_dir(), reason="docs/ is not beside the tests")

JUPYTER = [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))]


def definitions(name: str) -> dict[str, Any]:
    """What the cells of a marimo notebook define."""
    pytest.importorskip("marimo")
    spec = importlib.util.spec_from_file_location(name, NOTEBOOKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, found = module.app.run()
    return dict(found)


def test_the_frontier_notebook_falls_and_its_prices_are_slopes() -> None:
    pytest.importorskip("matplotlib")
    found = definitions("frontier")
    assert (np.diff(found["losses"]) < 0).all()
    problem = found["designs"][2].problem
    km = om.distances.euclidean()
    below, above = (
        om.solve(om.Problem(problem.prior, km, constraints=[om.MetricPrivacy(epsilon, km)])).loss
        for epsilon in (0.999, 1.001)
    )
    assert found["prices"][2] == pytest.approx((above - below) / 0.002, rel=1e-2)


def test_the_adversary_notebook_keeps_both_promises() -> None:
    found = definitions("adversary")
    assert found["expected"].error >= 1.0 - 1e-9
    assert found["better"].error < found["expected"].error
    assert found["moved"] <= np.log(2) + 1e-9


@cache
def run(name: str) -> dict[str, Any]:
    """What the cells of a Jupyter notebook define, run in their order in a space of its own."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    book = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    space: dict[str, Any] = {"__name__": "__main__"}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, {cell['id']}", "exec"), space)
    return space


def least(prior: np.ndarray, cost: np.ndarray, pairs: Any, odds: np.ndarray) -> float:
    """The least mean cost of any mechanism with (aP)_o <= odds (bP)_o for all pairs of
    distributions, by a linear program of its own."""
    secrets, reports = cost.shape
    rows, columns, values = [], [], []
    for number, ((a, b), odd) in enumerate(zip(pairs, odds, strict=True)):
        weights = np.asarray(a) - odd * np.asarray(b)
        for report in range(reports):
            for secret in np.flatnonzero(weights):
                rows.append(number * reports + report)
                columns.append(secret * reports + report)
                values.append(weights[secret])
    kept = coo_matrix((values, (rows, columns)), (len(odds) * reports, secrets * reports))
    done = linprog(
        (prior[:, None] * cost).ravel(),
        A_ub=kept.tocsr(),
        b_ub=np.zeros(kept.shape[0]),
        A_eq=np.kron(np.eye(secrets), np.ones(reports)),
        b_eq=np.ones(secrets),
        method="highs",
    )
    assert done.status == 0
    return float(done.fun)


def points(distance: np.ndarray, epsilon: float) -> tuple[Any, np.ndarray]:
    """Every two secrets, and the odds that they may have."""
    units = np.eye(len(distance))
    two = list(permutations(range(len(distance)), 2))
    odds = np.exp(epsilon * np.array([distance[i, j] for i, j in two]))
    return [(units[i], units[j]) for i, j in two], odds


@pytest.mark.parametrize("name", JUPYTER)
def test_a_notebook_is_one_of_few_cells_without_outputs(name: str) -> None:
    book = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    cells = book["cells"]
    assert 6 <= len(cells) <= 20
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert cells[0]["cell_type"] == "markdown"
    for cell in cells:
        assert re.fullmatch(r"[\w-]{1,64}", cell["id"])
        assert isinstance(cell["metadata"], dict)
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
        else:
            assert cell.keys() == {"cell_type", "id", "metadata", "source"}
    page = (NOTEBOOKS.parent / "notebooks.md").read_text(encoding="utf-8")
    title = "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ")
    assert f"[{title}](notebooks/{name}.ipynb)" in page


def by_guesses(design: Any, prior: om.Prior, distance: np.ndarray) -> float:
    """The mean error of the best guess at every report."""
    joint = prior.weights[:, None] * design.mechanism.matrix
    return sum(min(distance[:, t] @ column for t in range(len(column))) for column in joint.T)


def test_privacy_games_in_a_notebook() -> None:
    shown = run("privacy-games")
    distance = shown["km"](shown["cells"], shown["cells"])
    wrong = 1 - np.eye(len(distance))
    for row in shown["scenario1"]:
        assert row["least"] == pytest.approx(
            by_guesses(row["differential"], row["prior"], distance)
        )
        assert by_guesses(row["distortion"], row["prior"], distance) >= row["least"] - 1e-9
        # the differential mechanism keeps both, and the distortion mechanism is asked for less
        assert row["loss, joint"] == pytest.approx(row["loss, differential"], rel=1e-5)
        assert row["loss, distortion"] <= row["loss, joint"] + 1e-9
        for name in ("differential", "distortion"):
            optimal = by_guesses(row[name], row["prior"], distance)
            assert row[f"Bayesian, {name}"] >= optimal - 1e-9
    first = shown["scenario1"][1]
    program = least(first["prior"].weights, wrong, *points(distance, first["epsilon"]))
    assert first["loss, differential"] == pytest.approx(program, rel=1e-5)
    for before, row in zip(shown["scenario1"], shown["scenario2"], strict=True):
        most = (before["prior"].weights @ distance).min()
        assert row["joint"] >= (before["least"] + most) / 2 - 1e-6
        assert row["extra cost"] >= -1e-5
    assert np.median([row["extra cost"] for row in shown["scenario2"]]) > 0.01
    assert all(row["joint"] >= row["larger"] * (1 - 1e-5) for row in shown["scenario3"])
    kept = [row["epsilon"] for row in shown["thresholds"]]
    assert kept[0] == np.inf
    assert kept[1] > 1.1 * shown["asked"]
    assert kept[-1] == pytest.approx(shown["asked"], rel=1e-5)
    assert shown["thresholds"][0]["off"] > 0.1 > shown["thresholds"][-1]["off"] == 0


def test_distribution_privacy_in_a_notebook() -> None:
    shown = run("distribution-privacy")
    distance, weights = shown["km"](shown["cells"], shown["cells"]), shown["prior"].weights
    home, out = shown["home"].weights, shown["out"].weights
    assert shown["measured"] <= shown["promised"] <= shown["theorem2"]
    ratio = np.log((home @ shown["laplace"].matrix) / (out @ shown["laplace"].matrix))
    assert shown["measured"] == pytest.approx(abs(ratio).max())
    for epsilon, design in zip(shown["epsilons"], shown["designs"], strict=True):
        both = [(home, out), (out, home)]
        program = least(weights, distance, both, np.exp([epsilon, epsilon]))
        assert design.loss == pytest.approx(program, rel=1e-5)
    losses = [(a.loss, b.loss) for a, b in zip(shown["designs"], shown["for_points"], strict=True)]
    assert all(attribute < cells for attribute, cells in losses)
    upper = [row["upper"] for row in shown["rounds"]]
    assert (np.diff(upper) < 0).all()
    assert (np.diff([row["nearest"] for row in shown["rounds"]]) < 0).all()
    assert all(row["lower"] <= row["upper"] for row in shown["rounds"])
    apart = np.abs(home @ shown["laplace"].matrix - out @ shown["laplace"].matrix).sum() / 2
    assert shown["rounds"][0]["attack"] == pytest.approx((1 + apart) / 2, abs=1e-6)
    assert shown["family"].loss == pytest.approx(shown["apart"] / 2)


def test_a_survey_in_a_notebook() -> None:
    shown = run("survey")
    size, weights = len(shown["pairs"]), shown["prior"].weights
    cost = shown["decades"] + 2 * shown["changed"]
    alike = least(weights, cost, *points(1 - np.eye(size), 2))
    assert shown["alike"].loss == pytest.approx(alike, rel=1e-5)
    graded = least(weights, cost, *points(0.5 * shown["decades"] + shown["changed"], 1))
    assert shown["by_answer"].loss == pytest.approx(graded, rel=1e-5)
    right = np.exp(2) / (np.exp(2) + size - 1)
    response = (1 - right) * (weights @ cost.sum(axis=1)) / (size - 1)
    prior, given = shown["prior"], om.distances.matrix(cost)
    assert om.measures.expected_loss(shown["response"], prior, given) == pytest.approx(response)
    assert shown["alike"].loss < response
    # (count/n - q) / (p - q), without bias
    other = (1 - right) / (size - 1)
    share = (shown["counts"] / shown["counts"].sum() - other) / (right - other)
    np.testing.assert_allclose(shown["found"].values, share, atol=1e-9)
    assert np.abs(share - weights).max() < 5 * shown["errors"].max()
    years = np.abs(np.subtract.outer(shown["ages"], shown["ages"])).astype(float)
    both = [pair for a, b in shown["apart"] for pair in ((a, b), (b, a))]
    hidden = least(shown["everybody"].weights, years, both, np.exp(np.full(len(both), 0.1)))
    assert shown["hidden"].loss == pytest.approx(hidden, rel=1e-5)
    assert shown["hidden"].loss < shown["every"].loss
    table = shown["shares"].reshape(5, 3) / shown["shares"].sum()
    ratios = [np.log(table[:, i] / table[:, i].sum()) for i in range(3)]
    told = max(np.abs(a - b).max() for a, b in permutations(ratios, 2))
    assert shown["told"] <= 0.1 + 1e-9 < told
