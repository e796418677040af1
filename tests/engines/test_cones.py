"""The interior-point method with cones: against HiGHS on tangents, Clarabel, and dense algebra."""

from __future__ import annotations

import clarabel
import everywhere_program
import numpy as np
import pytest
import scipy.sparse as sp

import optmech as om
from optmech.certificate.families.gradient import check_gradients
from optmech.engines import cones
from optmech.engines.mesh_equations import Fronts, Levels, Summed
from optmech.exact.number import parse_exact
from optmech.lp import gradients
from optmech.repair.gradients import released_inside


def problem(seed, reports=6):
    """Random places in a random region, with a prior of their own."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(60, 2)) * [2.0, 1.0]
    mesh = om.Mesh.around(places, 1.0)
    prior = rng.dirichlet([0.5] * 60)
    costs = np.hypot(*(places[:, None] - places[:reports]).transpose(2, 0, 1))
    return mesh, gradients.row_costs(mesh, places, prior, costs)


def by_clarabel(mesh, epsilon, costs):
    """The same program, every cone written out."""
    count, reports = costs.shape
    rows = []
    for corners in mesh.triangles:
        inverse = np.linalg.inv(np.column_stack([mesh.vertices[corners], np.ones(3)]))[:2]
        for v in corners:
            block = np.zeros((3, count))
            block[0, v] = epsilon
            block[1:, corners] = inverse
            rows.append(block)
    cone = sp.block_diag([sp.csc_array(np.vstack(rows))] * reports)
    sums = sp.hstack([sp.eye_array(count)] * reports)
    table = sp.csc_matrix(sp.vstack([sums, -cone]))
    right = np.concatenate([np.ones(count), np.zeros(cone.shape[0])])
    shapes = [clarabel.ZeroConeT(count)]
    shapes += [clarabel.SecondOrderConeT(3)] * (cone.shape[0] // 3)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        sp.csc_matrix((costs.size, costs.size)), costs.T.ravel(), table, right, shapes, settings
    ).solve()
    assert str(found.status) == "Solved"
    return found.obj_val


@pytest.mark.parametrize(("seed", "epsilon"), [(0, 0.3), (1, 1.0), (2, 4.0)])
def test_the_optimum_is_clarabel_s(seed, epsilon):
    mesh, costs = problem(seed)
    found = cones.solve(cones.ConeProgram.of(mesh, epsilon), costs, gap=1e-6)
    expected = by_clarabel(mesh, epsilon, costs)
    assert found.gap <= 1e-6
    assert found.bound <= expected * (1 + 1e-7)
    assert found.value >= expected * (1 - 1e-7)
    released, check = released_inside(mesh, parse_exact(epsilon, where=""), found.matrix)
    assert check.passed
    assert (costs * released.matrix).sum() == pytest.approx(expected, rel=2e-6)


def test_the_square_of_the_design_page():
    """Below 16 directions on unit squares (1.73212 and 1.51280), as tangents are."""
    places = np.array([(x, y) for y in range(5) for x in range(5)], dtype=float)
    apart = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    mesh = om.Mesh.grid((0, 0, 4, 4), 1)
    costs = gradients.row_costs(mesh, places, np.full(25, 1 / 25), apart)
    found = cones.solve(cones.ConeProgram.of(mesh, 0.5), costs, gap=1e-5)
    tangents = everywhere_program.solve(mesh, 0.5, costs, directions=8, rounds=4)
    assert tangents.value <= found.value <= tangents.value * (1 + 1e-4)
    assert found.value < 1.7294
    assert cones.solve(cones.ConeProgram.of(mesh, 1.0), costs, gap=1e-5).value < 1.5087


def test_every_step_bounds_the_optimum():
    mesh, costs = problem(3)
    best = by_clarabel(mesh, 1.0, costs)
    seen = []
    program = cones.ConeProgram.of(mesh, 1.0)
    cones.solve(program, costs, 1e-6, lambda point: bool(seen.append(point)))
    assert len(seen) > 5
    for point in seen:
        assert point.bound <= best * (1 + 1e-7)
        assert point.value >= best * (1 - 1e-7)
        assert point.matrix.min() > 0
        assert np.abs(point.matrix.sum(axis=1) - 1).max() < 1e-12
    for point in (seen[0], seen[-1]):
        released, _ = released_inside(mesh, parse_exact(1.0, where=""), point.matrix)
        assert check_gradients(mesh, parse_exact(1.0, where=""), released).passed
    # ... as soon as it is asked to stop
    first = cones.solve(program, costs, 1e-6, lambda _: True)
    assert first.iterations == 1


def test_levels_factor_and_invert():
    mesh, _ = problem(4)
    rng = np.random.default_rng(5)
    count = len(mesh)
    half = rng.normal(size=(3, len(mesh.triangles), 3, 3))
    local = half @ half.transpose(0, 1, 3, 2) + 0.1 * np.eye(3)
    dense = np.zeros((3, count, count))
    for o in range(3):
        for t, corners in enumerate(mesh.triangles):
            dense[o][np.ix_(corners, corners)] += local[o, t]
    levels = Levels(mesh.triangles, count)
    assert 3 < len(levels) < count
    factor = levels.factor(local)
    right = rng.normal(size=(3, count))
    expected = np.linalg.solve(dense, right[..., None])[..., 0]
    assert np.abs(factor.solve(right) - expected).max() < 1e-9 * np.abs(expected).max()
    assert np.abs(factor.summed_inverse(2) - factor.summed_inverse()).max() < 1e-12
    summed = np.linalg.inv(dense).sum(axis=0)[np.ix_(levels.order, levels.order)]
    assert np.abs(np.tril(factor.summed_inverse() - summed)).max() < 1e-9 * np.abs(summed).max()


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_both_ways_solve_newton_s_equations(degree):
    """Σ_o x_o = 0 and M_o x_o − r_o the same for all reports, by dense algebra."""
    rng = np.random.default_rng(6)
    mesh = problem(7)[0].with_degree(degree)
    each, count, reports = mesh.control.shape[1], mesh.rows, 4
    half = rng.normal(size=(reports, len(mesh.triangles), each, each))
    local = half @ half.transpose(0, 1, 3, 2) + 0.1 * np.eye(each)
    # reports of very different size, as they are near an optimum
    local *= np.array([1.0, 1e-3, 1e3, 1e6])[:, None, None, None]
    dense = np.zeros((reports, count, count))
    for t, control in enumerate(mesh.control):
        dense[:, control[:, None], control] += local[:, t]
    right = rng.normal(size=(reports, count))
    inverses = np.linalg.inv(dense)
    same = -np.linalg.solve(inverses.sum(axis=0), np.einsum("okl,ol->k", inverses, right))
    expected = np.einsum("okl,ol->ok", inverses, right + same)
    fronts = Fronts(mesh.control, count, mesh.vertices[mesh.triangles].mean(axis=1))
    assert sum(len(part.eliminated) for part in fronts.parts) == count
    levels = Levels(mesh.control, count)
    pivots = rng.integers(reports, size=count)
    for way in (
        fronts.factor(local, pivots),
        Summed(levels.factor(local)),
    ):
        found = way.solve(right)
        assert np.abs(found.sum(axis=0)).max() < 1e-9 * np.abs(expected).max()
        assert np.abs(found - expected).max() < 1e-7 * np.abs(expected).max()


def test_meshes_refined_where_it_helps_lose_less():
    """A prior in one corner of the square: 44 vertices do better than 289 equal ones."""
    places = np.array([(x, y) for y in range(3) for x in range(3)], dtype=float) / 2
    apart = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))

    def solved(mesh):
        costs = gradients.row_costs(mesh, places, np.full(9, 1 / 9), apart)
        return cones.solve(cones.ConeProgram.of(mesh, 4.0), costs, gap=1e-5)

    uniform = om.Mesh.grid((0, 0, 4, 4), 0.25)
    mesh = om.Mesh.grid((0, 0, 4, 4), 2)
    while len(mesh) < 44:
        found = solved(mesh)
        mesh = mesh.refine(gradients.indicator(mesh, 4.0, found.matrix, found.multipliers[..., 0]))
    assert len(mesh) < len(uniform) / 6
    assert solved(mesh).value < solved(uniform).value * 0.99


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_both_ways_solve_what_falls_into_parts(count):
    rng = np.random.default_rng(count)
    one, _ = problem(4)
    size = len(one)
    control = np.concatenate([one.triangles + k * size for k in range(count)])
    middles = one.vertices[control % size].mean(axis=1)
    # numbers of points are shuffled: parts are not one after the other
    control = rng.permutation(count * size)[control]
    half = rng.normal(size=(3, len(control), 3, 3))
    local = half @ half.transpose(0, 1, 3, 2) + 0.1 * np.eye(3)
    dense = np.zeros((3, count * size, count * size))
    for o in range(3):
        for t, corners in enumerate(control):
            dense[o][np.ix_(corners, corners)] += local[o, t]
    right = rng.normal(size=(3, count * size))
    inverse = np.linalg.inv(dense)
    same = np.linalg.solve(inverse.sum(axis=0), -np.einsum("oij,oj->i", inverse, right))
    expected = np.einsum("oij,oj->oi", inverse, right + same)
    levels, fronts = Levels(control, count * size), Fronts(control, count * size, middles)
    ways = (
        Summed(levels.factor(local)),
        fronts.factor(local, np.zeros(count * size, dtype=np.int64)),
    )
    for way in ways:
        assert np.abs(way.solve(right) - expected).max() < 1e-8 * np.abs(expected).max()
