"""What benchmarks say of peers: checks of matrices, runs that are stopped, generated tables."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from test_benchmarks import run


def test_arrays_of_a_task_are_the_problem_that_optmech_gets(benchmark_modules: None) -> None:
    from registry import Task, arrays

    import optmech as om

    given = arrays(Task(3, 4, (0.75, 0.5), 0.7, "euclidean", "dirichlet", 0.0, "auto"))
    grid = om.Grid(3, 4, (0.75, 0.5))
    d = om.distances.euclidean()(grid, grid)
    assert given.distance == pytest.approx(d, rel=1e-14)
    assert given.log_ratio == pytest.approx(0.7 * d, rel=1e-14)
    assert given.weights.sum() == pytest.approx(1)


def test_violation_is_what_its_definition_says(benchmark_modules: None) -> None:
    from child import violation

    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.ones(5), 5)
    allowed = np.abs(np.arange(5.0)[:, None] - np.arange(5.0)) * 0.3
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    factor = max(
        math.log(matrix[i, o] / matrix[j, o]) / allowed[i, j] for i, j in pairs for o in range(5)
    )
    delta = max(
        sum(max(0.0, matrix[i, o] - math.exp(allowed[i, j]) * matrix[j, o]) for o in range(5))
        for i, j in pairs
    )
    assert violation(matrix, allowed) == pytest.approx((factor, delta), rel=1e-12)
    matrix[2, 0], matrix[2, 1] = 0.0, matrix[2, :2].sum()
    assert violation(matrix, allowed)[0] == math.inf
    matrix[:, 1] += matrix[:, 0]
    matrix[:, 0] = 0.0  # a report that nobody gives
    assert violation(matrix, allowed)[0] < math.inf


def test_runs_out_of_time_or_memory_are_results_and_end_their_ladder(
    benchmark_modules: None,
) -> None:
    from dataclasses import replace

    from pool import Pool
    from registry import Task

    task = Task(5, 5, (1.0, 1.0), 1.0, "euclidean", "uniform", 0.0, "highs-simplex", limit=0.01)
    ladder = [(0, task), (0, replace(task, rows=6))]
    found: list[tuple] = []

    def note(*run: object) -> None:
        found.append(run)

    Pool(list(ladder), [(0,)], math.inf, math.inf, note).run()
    assert [(run[0], run[2]["failed"]) for run in found] == [(task, "not finished in 0 s")]
    found.clear()
    roomy = replace(task, limit=60.0)
    Pool([(0, roomy)], [(0,)], 1.0, math.inf, note).run()
    assert found[0][2]["failed"].startswith("more than")
    assert found[0][2]["memory_mib"] > 1
    found.clear()
    late = Pool([(0, roomy)], [(0,)], math.inf, -math.inf, note)
    late.run()
    assert not found
    assert late.waiting


def test_growth_is_fitted_over_the_larger_half(benchmark_modules: None) -> None:
    from compared import exponent

    sizes = [16, 25, 36, 49, 64, 81]
    seconds = [5.0, 5.0, 5.0, *(3e-6 * n**4.5 for n in sizes[3:])]
    slope, first, last = exponent(sizes, seconds)
    assert (slope, first, last) == (pytest.approx(4.5), 49, 81)
    assert exponent([16, 25], [1.0, 2.0]) is None


def test_every_peer_has_a_name_a_line_and_an_expectation(benchmark_modules: None) -> None:
    from compared import NAMES
    from peers import PEERS
    from registry import EXPECTED, OURS
    from scaling_figure import STYLES

    assert set(NAMES) == set(EXPECTED) == {*OURS, *PEERS}
    assert set(STYLES) == {"auto", *PEERS}
    assert len({style[:2] for style in STYLES.values()}) == len(STYLES)


def made_up(solver: str, side: int, **values: object) -> str:
    task = {
        "rows": side, "columns": side, "cell": [1.0, 1.0], "epsilon": 1.0, "loss": "euclidean",
        "prior": "uniform", "distortion": 0.0, "solver": solver, "gap": 1e-6, "limit": 600.0,
    }  # fmt: skip
    line = {
        "processor": "A", "cores": 4, "physical_cores": 2, "memory_gib": 8.0,
        "jobs": 2, "python": "3.12",
        "versions": {"optmech": "0+abc", "qif": "1"}, "used_cores": [0, 1], "history": [],
        "memory_mib": 512, "lower_bound": None, "gap": None, "claim": "optimal", "private": True,
        "epsilon_factor": 1.0, "delta": 0.0,
    }  # fmt: skip
    return json.dumps({"task": task, **line, **values})


def test_tables_come_from_the_result_file_and_cannot_drift(tmp_path: Path) -> None:
    into = tmp_path / "into"
    (into / "docs").mkdir(parents=True)
    mark = "before <!-- begin benchmarks:{0} -->old<!-- end benchmarks:{0} --> after"
    (into / "README.md").write_text(mark.format("readme"))
    (into / "docs" / "benchmarks.md").write_text(mark.format("sizes") + mark.format("peers"))
    rows = [
        made_up("auto", 8, process_seconds=1.25, loss=2.0, lower_bound=1.999999, gap=5e-7),
        made_up("libqif", 8, process_seconds=43.2, loss=2.002),
        made_up(
            "highs-simplex", 8, process_seconds=51.0, loss=1.9,
            private=False, epsilon_factor=None, delta=3e-12,
        ),
        made_up("highs-simplex", 9, process_seconds=600.0, failed="not finished in 600 s"),
    ]  # fmt: skip
    (tmp_path / "engines.jsonl").write_text("\n".join(rows))
    command = ["benchmarks/scaling.py", "--results", str(tmp_path), "--into", str(into)]
    run(*command)
    text = (into / "README.md").read_text()
    assert text.startswith("before ")
    assert text.endswith(" after")
    assert "|  | optmech | libqif, default (CLP) |" in text
    assert "| 64 places, s | 1.25 | 43.2 |" in text
    assert "| private, of those solved | 1 of 1 | 1 of 1 |" in text
    page = (into / "docs" / "benchmarks.md").read_text()
    row = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in page.splitlines()}
    assert row["optmech"][1] == "1.25"
    assert row["optmech"][6] == "5e−7"
    assert row["libqif, default (CLP)"][3:7] == ["64 in 43.2 s", "81: not tried", "0.5", "1e−3"]
    assert row["HiGHS simplex"][4:8] == [
        "81: not finished in 600 s", "0.5", "−5e−2", "0 of 1; worst ε = ∞ (δ = 3e−12)",
    ]  # fmt: skip
    assert "43.2 (512)" in (into / "docs" / "benchmarks.md").read_text()
    assert (into / "docs" / "figures" / "scaling.svg").stat().st_size > 1000
    run(*command, "--check")
    (into / "README.md").write_text(text.replace("43.2", "43.1"))
    with pytest.raises(AssertionError, match="README"):
        run(*command, "--check")


def test_documents_say_what_the_result_files_say() -> None:
    run("benchmarks/scaling.py", "--check")


def test_transport_agrees_with_pot() -> None:
    pytest.importorskip("ot", reason="POT is not installed: pip install pot")
    run("benchmarks/transport.py", "--smoke")
