"""The blocks' work in NumPy against explicit matrices, and what a small program need not load."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

import optmech as om
from optmech.base.arrays import Floats
from optmech.engines.structured.array_backend import ArrayBackend, Inverses
from optmech.engines.structured.arrays import lower_inverse, on_host
from optmech.engines.structured.model import Model, build
from optmech.engines.structured.rows import Cone, Rows, first_rows, gondzio, make_cone
from optmech.lp.inequalities import Inequalities, compile_lp

E = om.distances.euclidean()


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 21, 64])
def test_inverses_of_triangles(size: int) -> None:
    rng = np.random.default_rng(size)
    lower = rng.normal(size=(3, size, size)) / size
    lower[:, range(size), range(size)] = rng.uniform(1, 2, (3, size))
    expected = np.linalg.inv(np.tril(lower))
    np.testing.assert_allclose(lower_inverse(lower), expected, rtol=1e-11, atol=1e-12)


def worst_loss() -> tuple[Model, Cone, Rows]:
    """A 5 x 6 grid with one link per secret, slacks and multipliers at random."""
    grid = om.Grid(5, 6, (1.0, 1.0))
    weights = np.random.default_rng(1).dirichlet(np.ones(30))
    problem = om.Problem(
        om.Prior(grid, weights),
        E,
        objective="worst_loss",
        constraints=[om.MetricPrivacy(0.8, E)],
    )
    model = build(compile_lp(Inequalities.of(problem.statement)).lp)
    cone = make_cone(model)
    rows = first_rows(model, cone)
    rng = np.random.default_rng(2)
    rows.s, rows.z = np.exp(rng.normal(size=(2, len(rows))))
    return model, cone, rows


def explicit(model: Model, rows: Rows) -> list[Floats]:
    """GᵀDG of every block, from the definition."""
    m = model.variables
    found = []
    for o in range(model.blocks):
        H = np.zeros((m + 1, m + 1))
        for k in range(rows.offset[o], rows.offset[o + 1]):
            row = np.zeros(m + 1)
            row[rows.j[k]] += rows.e[k]
            row[rows.i[k]] -= 1.0
            H += rows.z[k] / rows.s[k] * np.outer(row, row)
        found.append(H[:m, :m])
    return found


@pytest.mark.parametrize("workspace", [1, 200_000, 1 << 25])
def test_factors_solve_and_add_up(workspace: int) -> None:
    model, cone, rows = worst_loss()
    m, coupling = model.variables, model.coupling
    assert (coupling.variable < m).any()
    backend = ArrayBackend(model, cone, replace(on_host(), workspace=workspace))
    backend.structure(rows, np.arange(model.blocks))
    schur = backend.factor(rows)
    assert schur is not None
    inverses = [np.linalg.inv(H) for H in explicit(model, rows)]
    np.testing.assert_allclose(schur.sums, sum(inverses), rtol=1e-9, atol=1e-12)
    mixed, squared = np.zeros((len(coupling.rhs), m)), np.zeros((len(coupling.rhs),) * 2)
    for o, inverse in enumerate(inverses):
        A = np.zeros((len(coupling.rhs), m + 1))
        A[range(len(A)), coupling.variable] = coupling.value[:, o]
        A = A[:, :m]
        mixed += A @ inverse
        squared += A @ inverse @ A.T
    np.testing.assert_allclose(schur.mixed, mixed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(schur.coupling, squared, rtol=1e-9, atol=1e-12)
    B = np.zeros((model.blocks, 2, m + 1))
    B[:, :, :m] = np.random.default_rng(3).normal(size=(model.blocks, 2, m))
    expected = np.array([b[:, :m] @ inverse for b, inverse in zip(B, inverses, strict=True)])
    backend.solve(B)
    np.testing.assert_allclose(B[:, :, :m], expected, rtol=1e-8, atol=1e-10)


def test_a_block_that_is_hardly_definite_gets_a_ridge() -> None:
    entries = np.array([[0.0, 0.0, 0.5, 0.0], [0.0, 0.0, -1.0 - 1e-12, 0.0]])
    found, ones = Inverses(on_host(), 2, 2), np.ones((2, 2))
    assert found.factor(0, entries, ones)
    unit = np.broadcast_to(np.eye(2), (2, 2, 2))
    solved = found.solve(unit)
    np.testing.assert_allclose(solved[0], np.linalg.inv([[1, 0.5], [0.5, 1]]), rtol=1e-14)
    # with a ridge of 1e-11 the determinant is 2 (1e-11 - 1e-12)
    np.testing.assert_allclose(solved[1], np.full((2, 2), 1 / 1.8e-11), rtol=1e-4)
    entries[1, 2] = -1.1
    assert not found.factor(0, entries, ones)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40).flatmap(lambda n: arrays(float, (2, n), elements=st.floats(-50, 50))))
def test_longest_steps_for_every_weight(lines: Floats) -> None:
    weights = np.linspace(0.0, 1.0, 11)
    expected = [max(0.0, *(-(a + w * b) for a, b in lines.T)) for w in weights]
    model, cone, _ = worst_loss()
    backend = ArrayBackend(model, cone, on_host())
    found = backend._largest_decrease(lines[0], lines[1], weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_products_are_drawn_towards_the_path() -> None:
    products = np.array([-3.0, 0.0, 0.15, 0.2, 5.0, 20.0, 25.0, 41.0, 1e9])
    expected = [3.2, 0.2, 0.05, 0.0, 0.0, 0.0, -5.0, -20.0, -20.0]
    np.testing.assert_allclose(gondzio(products, 2.0), expected, atol=1e-15)


FRESH = """
import sys
import numpy as np
import optmech as om
grid, distance = om.Grid(8, 8, (1.0, 1.0)), om.distances.euclidean()
weights = np.random.default_rng(0).dirichlet(np.ones(64))
privacy = om.MetricPrivacy(1.0, distance)
design = om.solve(om.Problem(om.Prior(grid, weights), distance, constraints=[privacy]))
assert design.status == "optimal" and design.verified and design.engine == "structured"
names = "scipy.linalg", "scipy.sparse.csgraph"
print(*(name for name in names if name in sys.modules))
"""


def test_sixty_four_cells_load_neither_compiled_code_nor_more_of_scipy() -> None:
    environment = {**os.environ, "OPTMECH_KERNELS": ""}
    run = subprocess.run(
        [sys.executable, "-c", FRESH], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ""
