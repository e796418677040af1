"""Mechanisms from landmarks and bounds from cells, for problems that are too large to solve."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import optmech as om
from optmech.base.watch import Line
from optmech.certificate import check_exact
from optmech.designs.outer import Coarsening, limits_of
from optmech.exact.numerators import Numerators
from optmech.pipeline import search, sizes
from optmech.pipeline.landmarks import Carried, Places, lifted
from optmech.reading.sealed import seal
from optmech.reductions.aggregation import Members, box_radii, boxed_costs, radii

E = om.distances.euclidean()


def grid_problem(n: int, epsilon: float, seed: int | None = None) -> om.Problem:
    grid = om.Grid(n, n)
    if seed is None:
        prior = om.Prior.uniform(grid)
    else:
        prior = om.Prior(grid, np.random.default_rng(seed).dirichlet(np.ones(n * n)))
    return om.Problem(prior, E, constraints=[om.MetricPrivacy(epsilon, E)])


def least_mean_cost(weight: Any, cost: Any, ratio: Any) -> float:
    """min Σ a c v over columns with v_i <= e^{r_ij} v_j and Σ a v = 1, by a linear program."""
    count = len(weight)
    rows = [
        np.eye(count)[i] - np.exp(ratio[i, j]) * np.eye(count)[j]
        for i in range(count)
        for j in range(count)
        if i != j
    ]
    found = linprog(
        weight * cost, np.array(rows) if rows else None, np.zeros(len(rows)) if rows else None,
        A_eq=weight[None], b_eq=[1.0],
    )  # fmt: skip
    return float(found.fun)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000), st.floats(0.05, 2.0))
def test_costs_of_cells_are_below_the_least_of_any_column(
    count: int, seed: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 2, (count, 2))
    ratio = epsilon * np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    weight = rng.dirichlet(np.ones(count))
    cost = rng.uniform(0, 3, (count, 2))
    prior, cells = om.Prior(om.Domain(range(count)), weight), np.zeros(count, dtype=np.int64)
    members = Members.of(prior, cost, lambda i, j: ratio[i, j], cells)
    found = boxed_costs(members, box_radii(members))[0]
    f = radii(ratio.copy())
    apart = ratio - f[:, None] - f
    assert (f >= 0).all()
    assert (apart[~np.eye(count, dtype=bool)] <= 0).all()
    for o in range(2):
        exact = least_mean_cost(weight, cost[:, o], ratio)
        assert found[o] <= exact * (1 + 1e-9)
        # no worse than letting every column differ by the widest ratio both ways
        assert found[o] >= cost[:, o].min() * (1 - 1e-12)
        assert found[o] >= np.exp(-4 * ratio.max()) * (weight @ cost[:, o]) * (1 - 1e-9)


@pytest.mark.parametrize("apart", [1385.0, 1390.0, 1399.0, 1500.0, 1e6])
def test_costs_of_cells_too_wide_for_floats_are_no_more_than_the_cheapest(apart: float) -> None:
    # p = (1, e^-apart) keeps the ratios, and its mean cost is the first one's up to e^-1000
    ratio = np.array([[0.0, apart], [apart, 0.0]])
    prior, cells = om.Prior.uniform(om.Domain(range(2))), np.zeros(2, dtype=np.int64)
    for cheap in (0.0, 1.0, 1e10):
        cost = np.array([[cheap], [cheap + 1e10]])
        members = Members.of(prior, cost, lambda i, j: ratio[i, j], cells)
        found = boxed_costs(members, box_radii(members))
        assert 0 <= found[0, 0] <= cheap
        assert found[0, 0] == pytest.approx(cheap)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_lifted_columns_keep_all_ratios_and_the_landmarks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 5, (25, 2))
    ratio = 0.7 * np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    chosen = rng.choice(25, 6, replace=False)
    raw = rng.uniform(0.1, 1.0, (6, 3))
    own = ratio[np.ix_(chosen, chosen)]
    columns = (np.exp(-own)[:, :, None] * raw[:, None]).max(axis=0)
    out = lifted(columns, lambda i, j: ratio[i, j], chosen, 25)
    assert np.allclose(out[chosen], columns, rtol=1e-12)
    assert (out[:, None] <= np.exp(ratio)[:, :, None] * out[None] * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", [None, 3])
def test_a_design_from_cells_brackets_the_optimum(seed: int | None, tmp_path: Path) -> None:
    problem = grid_problem(8, 0.4, seed)
    best = om.solve(problem, gap=1e-6, resolution=0)
    design = om.solve(problem, resolution=16)
    assert design.verified
    assert design.engine == "resolution"
    assert 0.9 * best.loss < design.lower_bound <= best.loss
    assert best.lower_bound <= design.loss < 1.2 * best.loss
    path = tmp_path / "design.json"
    design.save(path)
    report = om.check(path)
    assert report.passed, report.faults
    assert report.lower_bound == design.lower_bound
    loaded = om.Design.load(path)
    assert loaded.gap == design.gap
    assert np.array_equal(np.asarray(loaded.matrix), np.asarray(design.matrix))


def placed(points: Any, epsilon: float) -> om.Problem:
    domain = om.Domain(range(len(points)), points=points)
    return om.Problem(om.Prior.uniform(domain), E, constraints=[om.MetricPrivacy(epsilon, E)])


@pytest.mark.parametrize(("shape", "within"), [("grid", 1.12), ("line", 1.25), ("twice", 1.25)])
def test_a_mechanism_from_a_mesh_keeps_all_ratios_and_is_near_the_optimum(
    shape: str, within: float
) -> None:
    rng = np.random.default_rng(8)
    line = np.column_stack([np.linspace(0, 6, 40), np.zeros(40)])
    drawn = rng.uniform(0, 5, (20, 2))
    points = {
        "grid": np.array(om.Grid(7, 7).points),
        "line": line,
        "twice": np.vstack([drawn, drawn]),
    }[shape]
    problem = placed(points, 0.4)
    best = om.solve(problem, gap=1e-3, resolution=0)
    said: list[str] = []
    design = om.solve(problem, resolution=9, progress=said.append)
    assert any("from a mesh of" in line for line in said)
    matrix = np.asarray(design.matrix)
    allowed = np.exp(0.4 * np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1)))
    for column in matrix.T:
        assert (column[:, None] <= allowed * column[None, :] * (1 + 1e-12)).all()
    assert best.lower_bound <= design.loss <= within * best.loss
    assert design.lower_bound <= best.loss


def test_points_in_space_have_landmarks_and_no_mesh() -> None:
    points = np.random.default_rng(9).uniform(0, 3, (40, 3))
    design = om.solve(placed(points, 0.5), resolution=9)
    assert design.verified


def test_a_bound_above_what_cells_prove_is_refused(tmp_path: Path) -> None:
    design = om.solve(grid_problem(5, 0.5), resolution=9)
    path = tmp_path / "design.json"
    design.save(path)
    body = json.loads(path.read_text())
    del body["digest"]
    for change in ("bound", "cells", "multipliers"):
        altered = json.loads(json.dumps(body))
        if change == "bound":
            raised = altered["result"]["bound"] * (1 + 1e-6)
            altered["result"]["bound"] = altered["result"]["lower_bound"] = raised
        elif change == "cells":
            del altered["outer"]["plans"], altered["outer"]["costs"]
            altered["outer"]["cells"] = [0] * 25
            pairs = altered["outer"]["multipliers"]["ratio"]
            altered["outer"]["multipliers"]["ratio"] = {name: [] for name in pairs}
        else:
            pairs = altered["outer"]["multipliers"]["ratio"]
            pairs["value"] = [0.5 * value for value in pairs["value"]]
        path.write_bytes(seal(json.dumps(altered).encode()))
        report = om.check(path)
        assert not report.passed
        assert any("bound" in fault for fault in report.faults), report.faults
    body["outer"]["cells"] = [0] * 24
    path.write_bytes(seal(json.dumps(body).encode()))
    with pytest.raises(om.VerificationError, match="24 entries"):
        om.check(path)


def test_the_audit_does_not_say_what_only_cells_prove(tmp_path: Path) -> None:
    design = om.solve(grid_problem(4, 0.5), resolution=9)
    path = tmp_path / "design.json"
    design.save(path)
    body = json.loads(path.read_text())
    del body["digest"], body["outer"]["plans"], body["outer"]["costs"]
    result = body["result"]
    result["bound"] = result["lower_bound"] = result["loss"]
    result["status"] = "optimal"
    path.write_bytes(seal(json.dumps(body).encode()))
    assert not om.check(path).passed
    lines, unchecked = audit.judge(str(path))
    assert not any("bound" in line or "optimal" in line for line in lines)
    assert "the lower bound, gap and status, by cells" in unchecked


def test_the_problem_of_one_cell_per_secret_is_the_problem() -> None:
    problem = grid_problem(4, 0.6, 5)
    cells = Coarsening.of(problem).over(np.arange(16))
    assert np.allclose(cells.statement.cost, problem.statement.cost, rtol=1e-12)
    limits = limits_of(problem.statement)(np.arange(16)[:, None], np.arange(16)[None, :])
    found = np.where(np.eye(16, dtype=bool), 0.0, cells.statement.log_ratio)
    assert np.allclose(found, limits, rtol=1e-9)


def test_places_in_parts_far_apart_have_cells() -> None:
    rng = np.random.default_rng(1)
    near = rng.uniform(0, 4, (60, 2))
    points = np.vstack([near, near + 30])
    problem = om.Problem(
        om.Prior.uniform(om.Domain(range(120), points=points)),
        E,
        constraints=[om.MetricPrivacy(0.5, E)],
    )
    # more than a cell's nearest ones lie in its own part
    cells = Coarsening.of(problem).over(np.arange(120))
    found = cells.statement.log_ratio
    assert np.isfinite(found[~np.eye(120, dtype=bool)]).all()
    assert (found >= 0.5 * E(problem.secrets, problem.secrets)).all()
    pairs = Coarsening.of(problem).over(np.arange(120) // 2).statement.log_ratio
    apart = 0.5 * E(problem.secrets, problem.secrets)
    # what columns in the cone have, which fall off around a place
    means = np.exp(-apart).reshape(60, 2, 120).mean(axis=1)
    assert (pairs >= np.log(means[:, None] / means[None, :]).max(axis=2) - 1e-12).all()
    most = 1.1 * apart.reshape(60, 2, 60, 2).max(axis=(1, 3))
    assert (pairs <= most)[~np.eye(60, dtype=bool)].all()


def test_what_does_not_fit_is_solved_by_cells_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = grid_problem(6, 0.5)
    monkeypatch.setattr(sizes.memory, "available_bytes", lambda: 2**20)
    monkeypatch.setattr(sizes, "CELLS", 9)
    monkeypatch.setattr("optmech.base.memory.require", lambda *_, **__: None)
    design = om.solve(problem)
    assert design.engine == "resolution"
    assert "are available: 9 cells instead" in design.engine_reason
    whole = om.solve(problem, resolution=0, gap=1e-3)
    assert whole.engine != "resolution"
    assert whole.gap <= 1e-3


def test_what_takes_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "_LARGE", 30)
    monkeypatch.setattr(sizes, "CELLS", 9)
    monkeypatch.setattr(sizes, "whole_seconds", lambda *_: 1e6)
    design = om.solve(grid_problem(6, 0.5), time_limit=30)
    assert design.engine == "resolution"
    assert "1,000,000 processor seconds, for 30 s: 9 cells instead" in design.engine_reason
    assert om.solve(grid_problem(5, 0.5), time_limit=30).engine != "resolution"


def test_cells_come_first_where_time_may_not_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "_LARGE", 30)
    monkeypatch.setattr(sizes, "CELLS", 9)
    monkeypatch.setattr(sizes, "whole_seconds", lambda *_: 100.0)
    problem = grid_problem(6, 0.5)
    short = om.solve(problem, time_limit=60)
    assert "about 100 processor seconds: 9 cells first" in short.engine_reason
    assert short.gap <= 1e-6
    for limit in (None, 100):
        assert "cells" not in om.solve(problem, time_limit=limit, gap=1e-2).engine_reason


def test_too_many_cells_are_refused_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optmech.base.memory.available_bytes", lambda: 2**20)
    with pytest.raises(
        om.errors.TooLargeError, match=r"9 cells of 36 secrets .* MiB are available"
    ):
        om.solve(grid_problem(6, 0.5), resolution=9)


def test_a_resolution_that_is_not_used_is_refused() -> None:
    problem = grid_problem(3, 0.5)
    design = om.solve(problem, gap=1e-2)
    with pytest.raises(om.ProblemError, match="resolution: is not used with a start"):
        om.solve(problem, start=design, resolution=4)
    with pytest.raises(om.ProblemError, match="resolution: is not used with a start"):
        om.solve(problem, device="numpy", resolution=4)
    mesh = om.Mesh.grid((0, 0, 3, 3), 1)
    everywhere = om.Problem(
        problem.prior, E, constraints=[om.MetricPrivacy(0.5, E, everywhere=mesh)]
    )
    with pytest.raises(om.ProblemError, match="resolution: is not used for privacy at every"):
        om.solve(everywhere, resolution=4)


def test_problems_without_cells_are_refused() -> None:
    line = om.Domain(["a", "b"])
    hamming = om.distances.hamming()
    problem = om.Problem(
        om.Prior.uniform(line), hamming, constraints=[om.MetricPrivacy(1, hamming)]
    )
    with pytest.raises(om.ProblemError, match="cells"):
        om.solve(problem, resolution=2)
    grid = om.Grid(3, 3)
    both = om.Problem(
        om.Prior.uniform(grid),
        E,
        constraints=[om.MetricPrivacy(1, E), om.DistortionPrivacy(0.5, E)],
    )
    with pytest.raises(om.ProblemError, match="only ratios"):
        om.solve(both, resolution=4)
    with pytest.raises(om.ProblemError, match="resolution"):
        om.solve(grid_problem(3, 0.5), resolution=-1)


def by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems count as long ones: eight cells first, then the whole program."""
    monkeypatch.setattr(sizes, "_LARGE", 30)
    monkeypatch.setattr(sizes, "_LONG", 0.0)
    monkeypatch.setattr(sizes, "CELLS", 8)


def test_long_programs_follow_cells_and_the_better_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem = grid_problem(6, 0.5, 2)
    best = om.solve(problem, "highs", gap=1e-7)
    by_itself(monkeypatch)
    said: list[str] = []
    design = om.solve(problem, gap=1e-4, progress=said.append)
    assert "processor seconds: 8 cells first" in design.engine_reason
    assert any("of the whole program is better" in note for note in design.notes)
    order = ["mechanism from", "bound from 8 cells", "going on to the whole program"]
    places = [next(k for k, line in enumerate(said) if line.startswith(text)) for text in order]
    assert places == sorted(places)
    assert design.verified
    assert design.gap <= 1e-4
    assert best.lower_bound <= design.loss <= best.loss * (1 + 1e-4)
    assert design.lower_bound <= best.loss
    path = tmp_path / "design.json"
    design.save(path)
    assert om.check(path).passed
    lines, unchecked = audit.judge(str(path))
    assert any("bound" in line for line in lines)
    assert not any("bound" in line for line in unchecked)


def test_a_whole_program_that_is_stopped_leaves_the_best_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    by_itself(monkeypatch)
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        if line.startswith("going on to the whole program"):
            os.kill(os.getpid(), signal.SIGINT)

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        design = om.solve(grid_problem(6, 0.5, 2), gap=1e-6, progress=stop)
    finally:
        signal.signal(signal.SIGINT, previous)
    before = next(line for line in said if line.startswith("going on"))
    value, bound = map(float, re.findall(r"(?:value|bound) ([\d.e+-]+)", before))
    assert design.verified
    assert design.loss <= value * (1 + 1e-8)
    assert design.lower_bound >= bound * (1 - 1e-8) > 0
    path = tmp_path / "design.json"
    design.save(path)
    assert om.check(path).passed


@pytest.mark.parametrize("whole", ["fails", "is too large"])
def test_a_whole_program_without_a_result_is_told(
    whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_itself(monkeypatch)
    problem, solved = grid_problem(6, 0.5, 2), search.solve

    def only_small(given: om.Problem, *args: Any, **how: Any) -> om.Design:
        if given is problem:
            raise om.SolverError("no luck", where="here", remedy="None")
        found: om.Design = solved(given, *args, **how)
        return found

    def full() -> int:
        return 2**20

    def follow(line: str) -> None:
        if whole == "is too large" and line.startswith("bound from 8"):
            monkeypatch.setattr("optmech.base.memory.available_bytes", full)

    monkeypatch.setattr("optmech.pipeline.search.solve", only_small)
    design = om.solve(problem, progress=follow)
    assert design.verified
    assert 0 < design.lower_bound < design.loss
    words = {
        "fails": "whole program failed: here: no luck",
        "is too large": "was not begun: the whole",
    }
    assert any(words[whole] in note for note in design.notes)


def test_no_cells_are_solved_for_twice_and_only_this_problems_gaps_are_told() -> None:
    said: list[str] = []
    design = om.solve(grid_problem(5, 0.5), resolution=16, progress=said.append)
    assert sum(line.startswith("bound from 16 cells") for line in said) == 1
    gaps = [line.gap for line in said if isinstance(line, Line) and line.gap < np.inf]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == pytest.approx(design.gap, rel=1e-9)
    assert any(line.startswith("smaller: ") for line in said)


def test_there_are_as_many_cells_as_were_asked_for() -> None:
    places = Places(grid_problem(30, 0.1))
    for count in (1, 2, 5, 9):
        # more than 64 secrets in a cell
        assert len(np.unique(places.cells(np.full(900, 1 / 900), count))) == count


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_completed_columns_are_a_mechanism_that_keeps_all_ratios(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = grid_problem(5, 0.6, seed)
    points = np.asarray(problem.secrets.points)
    apart = 0.6 * np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    raw = rng.uniform(0.1, 1.0, (25, 4))
    columns = (np.exp(-apart)[:, :, None] * raw[:, None]).max(axis=0)
    reports = np.sort(rng.choice(25, 4, replace=False))
    found = Places(problem).completed(Carried(columns, reports, "a draw"))
    assert np.allclose(found.columns.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diff(found.reports) > 0).all()
    allowed = np.exp(apart)[:, :, None] * found.columns[None]
    assert (found.columns[:, None] <= allowed * (1 + 1e-12)).all()
    # no report of theirs has a posterior under which another costs less
    joint = problem.prior.weights[:, None] * found.columns
    costs = joint.T @ problem.loss_matrix
    assert np.allclose(costs[np.arange(len(costs)), found.reports], costs.min(axis=1), rtol=1e-12)


def test_reports_are_where_they_are_used() -> None:
    problem = grid_problem(8, 0.5)
    used = np.zeros(64)
    used[[3, 17, 40, 63]] = 0.4, 0.3, 0.2, 0.1
    assert Places(problem).reports(4, used).tolist() == [3, 17, 40, 63]
    assert set(Places(problem).reports(2, used)) < {3, 17, 40, 63}


def test_large_tables_are_decided_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = grid_problem(5, 0.5, 1)
    exact = om.solve(problem, gap=1e-3).exact
    assert exact is not None
    swapped = Numerators(exact.bits, (*exact.rows[5:], *exact.rows[:5]))
    for released, passes in ((exact, True), (swapped, False)):
        whole = check_exact(grid_problem(5, 0.5, 1).statement, released)
        with monkeypatch.context() as patch:
            patch.setattr("optmech.certificate.families.ratio._LARGE", 0)
            patch.setattr("optmech.certificate.families.ratio._AT_A_TIME", 60)
            parts = check_exact(grid_problem(5, 0.5, 1).statement, released)
        assert [check.passed for check in parts] == [True, passes]
        assert [check.passed for check in whole] == [True, passes]
        assert [check.inequalities for check in parts] == [check.inequalities for check in whole]
        assert parts[1].worst == pytest.approx(whole[1].worst, rel=1e-12)


def test_placed_columns_are_those_of_the_matrix_with_zeros() -> None:
    rng = np.random.default_rng(3)
    columns = rng.dirichlet(np.ones(3), 6) * rng.uniform(0.9, 1.1, (6, 1))
    matrix = np.zeros((6, 9))
    matrix[:, [1, 4, 8]] = columns
    placed, rounded = Numerators.placed(columns, np.array([1, 4, 8]), 9), Numerators.rounded(matrix)
    assert placed.bits == rounded.bits
    assert placed.rows == rounded.rows
    assert np.allclose(placed.matrix, matrix / matrix.sum(axis=1, keepdims=True), rtol=1e-15)
