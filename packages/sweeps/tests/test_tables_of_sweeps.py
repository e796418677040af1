"""What the table of a sweep says: names as they were given, and what thresholds leave out."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_sweeps.run import Row, read_table, to_csv
from scipy.optimize import linprog

import optmech as om
from optmech.cli.main import main

H, E = om.distances.hamming(), om.distances.euclidean()
RESPONSE = om.Problem(
    om.Prior.uniform(om.Domain("ab")), H, constraints=[om.DifferentialPrivacy(1.0)]
)
NAMES = ["007", "7", "7.0", "true", "True", "", "1_000", "+1", " 8", "nan", "inf", "1e3", "-0", "٣",
         '"', '""', '"7"', '"a', "a", "a,b", "a\nb", "None", "0x10", "é", "false "]  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_names_of_an_axis_stay_what_they_are(tmp_path: Path, pool: Executor) -> None:
    priors = {name: om.Prior(om.Domain("ab"), [k + 1.0, 5.0]) for k, name in enumerate(NAMES)}
    done = om.sweep(RESPONSE, {"prior": priors}, tmp_path, executor=pool)
    again = om.SweepResult.load(tmp_path)
    assert [
        row["axis_prior"] if "axis_prior" in row else row["prior"] for row in again.rows
    ] == NAMES
    assert done.rows == again.rows
    assert all(
        again.design(k).problem.prior.weights[0] == pytest.approx((k + 1) / (k + 6))
        for k in range(len(NAMES))
    )


def test_cells_of_every_type_are_read_again(tmp_path: Path) -> None:
    """2,000 rows of numbers, truth values, nothing, and texts of letters that make numbers."""
    rng = random.Random(4)
    letters = '0123456789+-_.eE" nanift,\n'
    base: Row = dict.fromkeys(
        ["status", "loss", "lower_bound", "gap", "objective", "bound", "verified", "engine",
         "secrets", "observables", "reason", "design"])  # fmt: skip
    rows: list[Row] = []
    for k in range(2000):
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(5)))
        other = rng.choice([None, True, False, rng.randrange(-9, 9), rng.random() * 1e16, math.inf])
        rows.append({"task": k, "name": rng.choice([text, text, other, *NAMES]), **base})
    (tmp_path / "table.csv").write_bytes(to_csv(rows))
    found = read_table(tmp_path / "table.csv")
    assert found == rows
    assert [type(row["name"]) for row in found] == [type(row["name"]) for row in rows]


# -- thresholds -----------------------------------------------------------------------------------

SIDE, THRESHOLDS = 3, [1, 1.5, 3]
POINTS = np.array([(x, y) for y in range(SIDE) for x in range(SIDE)], dtype=float)
APART = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)


def least_loss(near: np.ndarray) -> tuple[float, np.ndarray]:
    """The least expected distance of mechanisms that are private, with ε = 1, for the pairs in
    ``near``: a linear program of its own."""
    n = len(POINTS)
    rows = []
    for i, j in np.argwhere(near & ~np.eye(n, dtype=bool)):
        for o in range(n):
            row = np.zeros((n, n))
            row[i, o], row[j, o] = 1, -math.exp(APART[i, j])
            rows.append(row.ravel())
    sums = np.kron(np.eye(n), np.ones(n))
    found = linprog(APART.ravel() / n, np.array(rows), np.zeros(len(rows)), sums, np.ones(n))
    return float(found.fun), found.x.reshape(n, n)


def problem() -> om.Problem:
    cells = om.Grid(SIDE, SIDE, unit="km")
    private = om.MetricPrivacy(1, E, threshold=1.0)
    return om.Problem(om.Prior.uniform(cells), E, constraints=[private])


def true_epsilon(matrix: np.ndarray) -> float:
    logs = np.log(matrix)
    pairs = ~np.eye(len(matrix), dtype=bool)
    return float((np.abs(logs[:, None] - logs).max(axis=2)[pairs] / APART[pairs]).max())


def test_a_sweep_over_thresholds_says_what_they_leave_out(
    tmp_path: Path, pool: Executor, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the tables, and in what the command prints and answers."""
    axes: Any = {"constraints[0].threshold": THRESHOLDS}
    done = om.sweep(problem(), axes, tmp_path / "run", executor=pool)
    full, _ = least_loss(APART > 0)
    for k, (row, threshold) in enumerate(zip(done.rows, THRESHOLDS, strict=True)):
        least, _ = least_loss(threshold >= APART)
        assert row["loss"] == pytest.approx(least, rel=1e-6)
        epsilon, repaired = row["true_epsilon"], row["repaired_loss"]
        assert isinstance(epsilon, float)
        assert isinstance(repaired, float)
        # no mechanism that keeps the promise for all pairs has less, and the threshold cheats
        assert repaired >= full * (1 - 1e-9)
        assert epsilon == pytest.approx(true_epsilon(done.design(k).mechanism.matrix), rel=1e-9)
    first: Any = done.rows[0]
    assert first["true_epsilon"] > 1.4
    assert first["loss"] < full * (1 - 1e-3) < first["repaired_loss"]
    assert done.rows[2]["true_epsilon"] == pytest.approx(1, abs=1e-6)
    assert om.SweepResult.load(tmp_path / "run").rows == done.rows
    import pyarrow.parquet as pq

    parquet = pq.read_table(tmp_path / "run" / "table.parquet").to_pydict()
    with open(tmp_path / "run" / "table.csv", encoding="utf-8", newline="") as stream:
        text = list(csv.DictReader(stream))
    for name in ("true_epsilon", "repaired_loss"):
        assert parquet[name] == [row[name] for row in done.rows]
        assert [float(row[name]) for row in text] == parquet[name]


SWEEP = """
format = 1
problem = "threshold"
[[axes]]
kind = "list"
path = "constraints[0].threshold"
values = [1, 1.5]
"""


def test_the_command_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    argv = ["sweep", str(tmp_path / "s.toml"), "-o", str(tmp_path / "run"), "--workers", "1"]
    assert main(argv) == 0
    said = capsys.readouterr()
    assert "true ε" in said.out
    assert "repaired" in said.out
    assert "thresholds leave pairs out in 2 tasks" in said.err + said.out
    assert main([*argv, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = om.SweepResult.load(tmp_path / "run").rows
    named = ("task", "true_epsilon", "repaired_loss")
    assert answer["approximations"] == [{name: row[name] for name in named} for row in rows]
    assert min(row["true_epsilon"] for row in answer["approximations"]) > 1.01
    design = str(tmp_path / "run" / "designs" / "000000.json")
    for command in ("check", "show", "measure"):
        assert main([command, design]) == 0
        told = capsys.readouterr()
        words = " ".join((told.out + told.err).split())
        assert f"{rows[0]['true_epsilon']:.6g}" in words, command
    assert any("with its thresholds" in note for note in om.check(design).notes)


def test_designs_without_thresholds_say_nothing_of_them(tmp_path: Path, pool: Executor) -> None:
    done = om.sweep(RESPONSE, {"constraints[0].epsilon": [1.0]}, tmp_path / "run", executor=pool)
    assert not {"true_epsilon", "repaired_loss"} & set(done.rows[0])
    assert not om.check(tmp_path / "run" / "designs" / "000000.json").notes


def test_pairs_that_a_threshold_leaves_apart_have_no_epsilon(
    tmp_path: Path, pool: Executor
) -> None:
    """Two places beyond it may tell each other apart: inf, in the table and read again."""
    far = om.Domain("ab", [[0, 0], [9, 0]], "km")
    stated = om.Problem(
        om.Prior.uniform(far), E, constraints=[om.MetricPrivacy(1, E, threshold=1.0)]
    )
    done = om.sweep(stated, {"prior": {"007": stated.prior}}, tmp_path, executor=pool)
    assert done.rows[0]["true_epsilon"] == math.inf
    assert om.SweepResult.load(tmp_path).rows == done.rows
