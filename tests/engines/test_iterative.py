"""Row sums by conjugate gradients: parts of the Schur matrix against dense inverses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engines.test_structured import Recorder

import optmech as om
from optmech.base.native import has_kernels
from optmech.engines.base import Options
from optmech.engines.structured import compiled, engine, iterative, run
from optmech.engines.structured.compiled import SparseBackend
from optmech.engines.structured.model import build
from optmech.engines.structured.newton import factored
from optmech.engines.structured.rows import Rows, make_cone
from optmech.engines.structured.state import start
from optmech.engines.structured.tuning import TUNING
from optmech.lp.inequalities import Inequalities, compile_lp

pytestmark = pytest.mark.skipif(not has_kernels(), reason="no kernels are compiled")
E = om.distances.euclidean()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of any size are compiled and iterated on."""
    tuned = replace(TUNING, iterated_from=1, iterated_share=1e9, likeliest=3)
    monkeypatch.setattr(iterative, "TUNING", tuned)
    monkeypatch.setattr(engine, "SMALL", 0)


def problem(rows: int, columns: int, reports: int, epsilon: float, seed: int) -> om.Problem:
    rng = np.random.default_rng(seed)
    grid = om.Grid(rows, columns)
    secrets = om.Domain(grid.labels, points=grid.points)
    chosen = rng.choice(len(secrets), reports, replace=False)
    assert grid.points is not None
    observables = om.Domain(chosen.tolist(), points=grid.points[chosen])
    prior = om.Prior(secrets, rng.dirichlet(np.ones(len(secrets))))
    return om.Problem(prior, E, observables, constraints=[om.MetricPrivacy(epsilon, E)])


def state_of(stated: om.Problem) -> tuple[Any, Any, Any]:
    model = build(compile_lp(Inequalities.of(stated.statement)).lp)
    cone = make_cone(model)
    backend = SparseBackend(model, cone, 2)
    state = start(model, cone)
    rng = np.random.default_rng(1)
    state.P[:, :-1] *= rng.uniform(0.2, 5.0, state.P[:, :-1].shape)
    state.rows.z *= rng.uniform(0.1, 10.0, len(state.rows))
    backend.structure(state.rows, np.arange(model.blocks))
    return model, backend, state


def test_a_part_has_the_likeliest_reports_and_one_of_reports_that_are_alike() -> None:
    P = np.random.default_rng(2).uniform(0.5, 1.0, (60, 8))
    found = iterative.likely(P)
    for s in range(7):
        best = sorted(range(60), key=lambda o: -P[o, s])[: TUNING.likeliest]
        assert np.flatnonzero(found[:, s]).tolist() == sorted(best)
    P[:] = 1 / 60
    assert iterative.likely(P).sum(axis=0).tolist() == [1] * 7


@pytest.mark.parametrize(("rows", "columns"), [(1, 9), (7, 8), (12, 13)])
def test_parts_of_inverses_are_those_of_the_inverses(rows: int, columns: int) -> None:
    model, backend, state = state_of(problem(rows, columns, 8, 0.7, 2))
    m = model.variables
    wanted = np.random.default_rng(3).random((8, m)) < 0.3
    wanted[2] = False
    wanted[5] = True
    found = backend.factor(state.rows, wanted)
    unit = np.zeros((8, m, m + 1))
    unit[:, np.arange(m), np.arange(m)] = 1.0
    backend.solve(unit)
    inverse = unit[:, :, :m]
    expected = (inverse * wanted[:, :, None] * wanted[:, None, :]).sum(axis=0)
    assert np.allclose(found.sums, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def matrix_of(state: Any, o: int) -> Any:
    """A block's matrix Gᵀ diag(z/s) G, row by row."""
    rows, m = state.rows, state.P.shape[1] - 1
    total = np.zeros((m, m))
    for k in range(rows.offset[o], rows.offset[o + 1]):
        row = np.zeros(m)
        row[rows.j[k]] = rows.e[k]
        if rows.i[k] < m:
            row[rows.i[k]] = -1.0
        total += rows.z[k] / rows.s[k] * np.outer(row, row)
    return total


def with_long_pairs(state: Any, count: int) -> Any:
    """The state with pairs of far ends in every block, which no order was made for."""
    rows, rng = state.rows, np.random.default_rng(6)
    blocks, m = len(state.P), state.P.shape[1] - 1
    parts = []
    for o in range(blocks):
        own = slice(rows.offset[o], rows.offset[o + 1])
        i, j = rng.integers(0, m, (2, count))
        more = (i, j, np.full(count, 9.0), rng.uniform(0.1, 1, count), rng.uniform(0.1, 1, count))
        held = (rows.i[own], rows.j[own], rows.e[own], rows.s[own], rows.z[own])
        kept = i != j
        parts.append([np.concatenate([a, b[kept]]) for a, b in zip(held, more, strict=True)])
    offset = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])])
    i, j, e, s, z = (np.concatenate(column) for column in zip(*parts, strict=True))
    state.rows = Rows(offset, i.astype(np.int32), j.astype(np.int32), e, s, z)
    return state


@pytest.mark.parametrize("more", [0, 40])
def test_sparse_factors_solve_with_the_matrices_of_the_blocks(more: int) -> None:
    model, backend, state = state_of(problem(9, 7, 5, 0.7, 2))
    state = with_long_pairs(state, more)
    every = np.arange(model.blocks)
    backend.structure(state.rows, every)
    backend.structure(state.rows, every)  # as it stays, and is ordered no more
    assert backend.factor(state.rows, np.zeros((model.blocks, model.variables), bool)) is not None
    right = np.random.default_rng(7).standard_normal((model.blocks, 2, model.variables + 1))
    found = right.copy()
    backend.solve(found)
    for o in range(model.blocks):
        matrix = matrix_of(state, o)
        expected = np.linalg.solve(matrix, right[o, :, :-1].T).T
        assert np.allclose(found[o, :, :-1], expected, rtol=1e-8, atol=1e-10 * abs(expected).max())


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    _, backend, state = state_of(problem(5, 5, 3, 0.7, 2))
    state.rows.z[:] = np.nan
    assert backend.factor(state.rows) is None


def solved(backend: Any, model: Any, system: Any) -> None:
    """Row sums against dense inverses."""
    right = np.random.default_rng(4).standard_normal(model.variables)
    solver = system._sums
    assert solver is not None
    y, pushed = solver.solve(right)
    unit = np.zeros((8, model.variables, model.variables + 1))
    unit[:, np.arange(model.variables), np.arange(model.variables)] = 1.0
    backend.solve(unit)
    inverse = unit[:, :, :-1]
    assert np.allclose(inverse.sum(axis=0) @ y, right, atol=1e-2 * np.abs(right).max())
    assert np.allclose(pushed[:, :-1], inverse @ y, rtol=1e-8, atol=1e-10 * np.abs(pushed).max())


def test_row_sums_are_solved_for(small: None) -> None:
    model, backend, state = state_of(problem(7, 8, 8, 0.7, 2))
    solved(backend, model, factored(model, backend, state))


@pytest.mark.parametrize("change", [1.5, 1e6])
def test_a_preconditioner_of_another_iterate_does_as_well(small: None, change: float) -> None:
    model, backend, state = state_of(problem(7, 8, 8, 0.7, 2))
    system = factored(model, backend, state)
    solved(backend, model, system)
    left = system.left._replace(conditioner=system._sums._conditioner)
    rng = np.random.default_rng(5)
    state.P[:, :-1] *= rng.uniform(1 / change, change, state.P[:, :-1].shape)
    state.rows.s *= rng.uniform(1 / change, change, len(state.rows))
    system = factored(model, backend, state, left)
    solved(backend, model, system)
    assert change > 2 or system._sums._conditioner is left.conditioner


def test_the_field_of_the_first_pairs_preconditions(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many variables it comes first, and solves the same equations; it is exact, one gradient,
    where all columns are alike and no pair has joined."""
    monkeypatch.setattr(compiled, "TUNING", replace(TUNING, field_from=1, most_by_field=1.0))
    model, backend, state = state_of(problem(7, 8, 8, 0.7, 2))
    system = factored(model, backend, state)
    assert isinstance(system._sums._conditioner, compiled.Field)
    solved(backend, model, system)
    blocks = len(state.P)
    state.P[:, :-1] = state.P[:, :-1].mean()
    for name in "sz":
        own = getattr(state.rows, name)
        own[:] = np.tile(own[: len(own) // blocks], blocks)
    solver = factored(model, backend, state)._sums
    solver.solve(np.random.default_rng(4).standard_normal(model.variables))
    assert len(solver._directions) <= 2


def test_a_right_hand_side_that_comes_again_costs_nothing(small: None) -> None:
    model, backend, state = state_of(problem(7, 8, 8, 0.7, 2))
    solver = factored(model, backend, state)._sums
    right = np.random.default_rng(4).standard_normal(model.variables)
    y, _ = solver.solve(right)
    taken = len(solver._directions)
    again, _ = solver.solve(right)
    assert 0 < taken == len(solver._directions)
    assert np.allclose(again, y, rtol=1e-9, atol=1e-12 * np.abs(y).max())


def directions(count: int, most: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Any]:
    """Conjugate directions of a matrix, that matrix, and columns whose squares are one."""
    size, rng = 30, np.random.default_rng(8)
    tuned = replace(TUNING, direction_entries=most * size, least_directions=1)
    monkeypatch.setattr(iterative, "TUNING", tuned)
    root = rng.standard_normal((size, size))
    matrix = root @ root.T + 0.1 * np.eye(size)
    P = np.ones((1, size + 1))
    found = iterative.Directions(P)
    for _ in range(count):
        direction = found.conjugate(rng.standard_normal(size))
        direction /= np.sqrt(direction @ matrix @ direction)
        found.add(direction, matrix @ direction)
    return found, matrix, P


@pytest.mark.parametrize("count", [0, 1, 7, 29])
def test_directions_solve_on_their_span(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, matrix, P = directions(count, 100, monkeypatch)
    right = np.random.default_rng(9).standard_normal(len(matrix))
    W = found._w[:count]
    expected = W.T @ np.linalg.solve(W @ matrix @ W.T, W @ right) if count else 0 * right
    y, residual = found.part(right)
    assert np.allclose(y, expected, atol=1e-9)
    assert np.allclose(residual, right - matrix @ expected, atol=1e-8)

    base = np.diag(np.random.default_rng(10).uniform(0.5, 2.0, len(matrix)))
    better = found.updated(lambda r: base @ r, P)
    whole = np.array([better(e) for e in np.eye(len(matrix))])
    assert np.allclose(whole, whole.T, atol=1e-4 * np.abs(whole).max())
    assert np.linalg.eigvalsh(0.5 * (whole + whole.T)).min() > 0
    for w in W:  # the inverse on their span, in the digits of half precision
        assert np.allclose(better(matrix @ w), w, atol=1e-4 * np.abs(W).max() * 30)


def test_directions_follow_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    found, matrix, P = directions(5, 100, monkeypatch)
    scale = np.random.default_rng(11).uniform(0.5, 2.0, len(matrix))
    P[:, :-1] /= scale  # inverses go with the squares of columns
    better = found.updated(lambda r: r, P)
    for w in found._w[:5]:
        assert np.allclose(better(matrix @ w / scale), w * scale, atol=1e-3)


def test_the_latest_directions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found, matrix, _ = directions(9, 4, monkeypatch)
    assert len(found) == 4
    W = found._w[:4]
    assert np.allclose(W @ matrix @ W.T, np.eye(4), atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_the_optimum_is_that_of_another_solver(
    small: None, monkeypatch: pytest.MonkeyPatch, epsilon: float, sparse: bool
) -> None:
    monkeypatch.setattr(engine, "iterates", lambda *sizes: sparse)
    stated = problem(6, 6, 10, epsilon, 5)
    found = om.solve(stated, "structured", gap=1e-6)
    other = om.solve(stated, "highs", gap=1e-7)
    assert found.gap <= 1e-6
    assert found.engine == "structured"
    assert abs(found.loss - other.loss) <= 2e-6 * other.loss


def test_a_run_that_is_stopped_ends_with_whole_bounds(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rough ones on the way are not what it ends with, wherever it stops: they cost 2e-4 more,
    where gradients that are solved for otherwise change 2e-5."""
    stated = problem(6, 6, 10, 0.6, 5)
    compiled = compile_lp(Inequalities.of(stated.statement))

    def best(often: float, stop: int) -> float:
        monkeypatch.setattr(run, "TUNING", replace(TUNING, rough_bounds=often, quick=0))
        recorder = Recorder(compiled, stated.statement, stop)
        engine.StructuredEngine().run(compiled.lp, Options(gap=1e-9), recorder)
        return recorder.value

    for stop in (3, 5, 8, 11):
        assert best(30.0, stop) == pytest.approx(best(np.inf, stop), rel=1e-4)
