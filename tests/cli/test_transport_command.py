"""``optmech transport``, and distributions in problem files by recipe."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.files import read_problem

LINE = """
format = 1
title = "Three points"
loss = "euclidean"
prior = "uniform"
[secrets]
kind = "line"
values = [0, 1, 3]
unit = "km"
[[constraints]]
kind = "distribution_privacy"
epsilon = 1
pairs = [[PAIR]]
"""


def write(tmp_path: Path, pair: str) -> str:
    path = tmp_path / "p.toml"
    path.write_text(LINE.replace("PAIR", pair), encoding="utf-8")
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = main(["transport", *argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_distances_of_a_pair_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "[3, 1, 0], [1, 1, 2]")
    plan = tmp_path / "plan.csv"
    status, out, _ = output(
        capsys, path, "--p", "1", "--p", "2", "--p", "inf", "--plan", str(plan), "--json"
    )
    (pair,) = json.loads(out)["pairs"]
    assert status == 0
    assert pair["pair"] == "constraints[0].pairs[0]"
    # a quarter moves from 0 to 1 and a half from there, or from 0, to 3: on a line, in order
    assert pair["wasserstein"]["1"] == pytest.approx((1 + 2 + 3) / 4)
    assert pair["wasserstein"]["2"] == pytest.approx(np.sqrt((1 + 4 + 9) / 4))
    assert pair["wasserstein"]["inf"] == 3
    assert (pair["diameter"], pair["total_variation"]) == (3, 0.5)
    assert pair["epsilon_unprotected"] is None
    with plan.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert sum(float(row["mass"]) for row in rows) == pytest.approx(1)
    assert max(float(row["distance"]) for row in rows) == 3


@pytest.mark.parametrize(("radius", "status"), [("3", 0), ("2", 1)])
def test_radius_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], radius: str, status: int
) -> None:
    path = write(tmp_path, "[3, 1, 0], [1, 1, 2]")
    found, out, _ = output(capsys, path, "--radius", radius, "--json")
    within = json.loads(out)["pairs"][0]["within_radius"]
    assert found == status
    assert within["coupling"] is (status == 0)
    if status:
        # 0 holds 3/4 and reaches 0 and 1, which take 1/2
        assert (within["sources"], within["neighbours"]) == ([0], [0, 1])
        assert (within["mass"], within["capacity"], within["missing"]) == (0.75, 0.5, 0.25)
    _, text, _ = output(capsys, path, "--radius", radius)
    assert ("cannot be moved" in text) is bool(status)


@pytest.mark.parametrize(("distance", "unit"), [("euclidean", "km"), ("hamming", "")])
def test_a_distance_has_the_unit_that_it_is_of(
    distance: str, unit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("home-out", "--distance", distance, "--radius", "1")
    out = output(capsys, *argv)[1]
    assert json.loads(output(capsys, *argv, "--json")[1])["unit"] == unit
    for name in ("diameter", "W_1", "W_inf"):
        (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
        assert line.split()[2:] == [unit] * bool(unit)
    assert f"within 1{' ' * bool(unit)}{unit} " in out


def test_a_recipe_is_the_prior_of_the_same_recipe(tmp_path: Path) -> None:
    path = write(tmp_path, '{ kind = "dirichlet", seed = 4 }, "uniform"')
    first, second = read_problem(path).problem.constraints[0].pairs[0]
    text = Path(path).read_text().replace('prior = "uniform"', "")
    text += '[prior]\nkind = "dirichlet"\nseed = 4\n'
    Path(path).write_text(text)
    np.testing.assert_array_equal(first, read_problem(path).problem.prior.weights)
    np.testing.assert_array_equal(second, np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("pair", "where", "message"),
    [
        ('{ kind = "dirichlet" }, [1, 1, 1]', "constraints[0].pairs[0][0].seed", "is missing"),
        (
            '{ kind = "dirichlte", seed = 1 }, [1, 1, 1]',
            "constraints[0].pairs[0][0].kind",
            "unknown",
        ),
        ("[1, 1], [1, 1, 1]", "constraints[0].pairs[0][0]", "2 entries for 3"),
        ('"unifrom", [1, 1, 1]', "constraints[0].pairs[0][0]", "unknown"),
    ],
)
def test_mistakes_in_pairs_are_placed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pair: str, where: str, message: str
) -> None:
    status, _, err = output(capsys, write(tmp_path, pair))
    assert status == 2
    assert where in err
    assert message in err


@pytest.mark.parametrize(
    "argv",
    [
        ("metric",),
        ("home-out", "--p", "0.5"),
        ("home-out", "--radius", "-1"),
        ("home-out", "--plan", "/"),
    ],
)
def test_misuse_is_one_line(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    status, out, err = output(capsys, *argv)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["home-out", "male-female"])
def test_gallery_designs_hide_the_attribute(name: str) -> None:
    problem = read_problem(name).problem
    design = om.solve(problem)
    assert design.status == "optimal"
    assert design.verified
    promise = problem.constraints[0]
    ((lam0, lam1),) = promise.pairs
    spent = om.measures.distribution_delta(design.mechanism, lam0, lam1, promise.epsilon)
    assert spent <= float(promise.delta) + 1e-12
