"""Transport against scipy, closed forms and brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance
from strategies import distributions, nonnegative_matrices

import optmech as om
from optmech.transport.couplings import Masses, Tree, optimise


def by_linprog(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> float:
    n, m = cost.shape
    rows = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    found = linprog(cost.ravel(), A_eq=rows[:-1], b_eq=np.append(a, b)[:-1], method="highs")
    return float(found.fun)


def matching_bottleneck(a: list[int], b: list[int], distance: np.ndarray) -> float:
    """W_∞ of counts of one total: every unit of mass by itself, all assignments tried."""
    sources = [i for i, count in enumerate(a) for _ in range(count)]
    sinks = [j for j, count in enumerate(b) for _ in range(count)]
    return min(
        max(float(distance[i, j]) for i, j in zip(sources, order, strict=True))
        for order in set(itertools.permutations(sinks))
    )


def assert_couples(plan: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    assert (plan >= 0).all()
    np.testing.assert_allclose(plan.sum(axis=1), a / a.sum(), atol=1e-15)
    np.testing.assert_allclose(plan.sum(axis=0), b / b.sum(), atol=1e-15)


def assert_proves(coupling: om.transport.Coupling, cost: np.ndarray) -> None:
    """The potentials bound every plan from below and touch this one."""
    u, v = coupling.potentials
    slack = cost - u[:, None] - v
    room = 1e-14 * (np.abs(cost) + np.abs(u[:, None]) + np.abs(v))
    assert (slack >= -room).all()
    assert (slack <= room)[coupling.plan > 0].all()


@given(st.data(), st.integers(1, 6), st.integers(1, 6), st.sampled_from([1, 1.5, 2, 7]))
def test_cost_is_that_of_linear_programming(data: st.DataObject, n: int, m: int, p: float) -> None:
    a, b = data.draw(distributions(n)), data.draw(distributions(m))
    d = data.draw(nonnegative_matrices(n, m))
    found = om.transport.wasserstein(a, b, d, p)
    assert_couples(found.plan, a, b)
    assert (found.plan * d**p).sum() == pytest.approx(found.value**p, rel=1e-12, abs=1e-12)
    assert found.value**p == pytest.approx(by_linprog(a, b, d**p), rel=1e-9, abs=1e-9)


@given(st.data(), st.integers(1, 20), st.integers(1, 20))
def test_potentials_prove_the_plan(data: st.DataObject, n: int, m: int) -> None:
    a, b = data.draw(distributions(n)), data.draw(distributions(m))
    d = data.draw(nonnegative_matrices(n, m))
    assert_proves(om.transport.wasserstein(a, b, d), d)


def test_points_of_a_line_as_scipy() -> None:
    rng = np.random.default_rng(3)
    x, y, a, b = rng.normal(size=(4, 200)) ** 2
    found = om.transport.wasserstein(a, b, np.abs(x[:, None] - y))
    assert found.value == pytest.approx(wasserstein_distance(x, y, a, b), rel=1e-12)


def test_squares_of_a_line_by_sorting() -> None:
    rng = np.random.default_rng(4)
    x, y = np.sort(rng.random((2, 50)), axis=1)
    found = om.transport.wasserstein(np.ones(50), np.ones(50), np.abs(x[:, None] - y), 2)
    assert found.value == pytest.approx(math.sqrt(((x - y) ** 2).mean()), rel=1e-12)


@pytest.mark.parametrize("p", [1, math.inf])
def test_disjoint_points(p: float) -> None:
    found = om.transport.wasserstein([1, 0], [0, 1], [[0, 7.5], [7.5, 0]], p)
    assert found.value == 7.5
    assert found.plan.tolist() == [[0, 1], [0, 0]]


def test_masses_that_are_equal_on_paper_only() -> None:
    far = 1 - np.eye(3)
    far[0, 1] = far[1, 0] = 1e-3
    a, b = [0.1 + 0.2, 0.7, 0.0], [0.3, 0.7, 0.0]
    assert a[0] != b[0]
    found = om.transport.wasserstein(a, b, far, math.inf)
    assert found.value == 0
    assert found.missing < 1e-15
    # counts leave no room: one in 2^30 has to go
    big = 2**29
    assert (
        om.transport.wasserstein([big + 1, big - 1], [big, big], far[:2, :2], math.inf).value
        == 1e-3
    )


@pytest.mark.parametrize("seed", range(6))
def test_costs_over_many_orders_of_magnitude(seed: int) -> None:
    """Exactly optimal where double precision sees only the largest costs."""
    rng = np.random.default_rng(seed)
    n = 6
    cost = 10.0 ** rng.uniform(-12, 12, (n, n))
    found = om.transport.wasserstein(np.ones(n), np.ones(n), cost)
    best = min(
        sum(Fraction(cost[i, j]) for i, j in enumerate(order))
        for order in itertools.permutations(range(n))
    )
    assert found.value == float(best / n)


@pytest.mark.parametrize("power", [0, 280])
def test_nested_scales(power: int) -> None:
    """A small saving beside costs 10^20 times larger, which cancel: a known failure elsewhere."""
    big = 10.0**power * 1e20
    cost = np.array([[big, big + 2**30, 0.0], [big, big + 2**30, 1.0], [0.0, 0.0, big]])
    found = om.transport.wasserstein([1, 1, 2], [1, 1, 2], cost)
    best = min(
        sum(Fraction(cost[i, j]) for i, j in zip((0, 1, 2, 2), order, strict=True))
        for order in itertools.permutations((0, 1, 2, 2))
    )
    assert found.value == float(best / 4)


def test_exact_phase_mends_a_wrong_tree() -> None:
    """The exact phase alone, from the north-west corner, reaches the optimum."""
    rng = np.random.default_rng(8)
    cost = rng.random((9, 11))
    a, b = rng.integers(1, 9, 9).astype(float), rng.integers(1, 9, 11).astype(float)
    masses = Masses.balance(a, b)
    tree = Tree(masses.supply, masses.demand)
    tree.solve = lambda _: None  # type: ignore[method-assign]
    value, _, _ = optimise(tree, cost)
    expected = by_linprog(a / a.sum(), b / b.sum(), cost)
    assert float(value / masses.total) == pytest.approx(expected, rel=1e-9)


@given(st.data(), st.integers(1, 4), st.integers(1, 4))
def test_bottleneck_by_brute_force(data: st.DataObject, n: int, m: int) -> None:
    total = 6
    a, b = data.draw(parts(total, n)), data.draw(parts(total, m))
    d = data.draw(nonnegative_matrices(n, m))
    found = om.transport.wasserstein(a, b, d, math.inf)
    assert found.value == matching_bottleneck(a, b, d)
    assert_couples(found.plan, np.array(a), np.array(b))
    assert d[found.plan > 0].max() == found.value
    if found.below is not None:
        assert_hall(found.below, np.array(a) / total, np.array(b) / total, d < found.value)


@st.composite
def parts(draw: st.DrawFn, total: int, count: int) -> list[int]:
    cuts = sorted(draw(st.lists(st.integers(0, total), min_size=count - 1, max_size=count - 1)))
    return np.diff([0, *cuts, total]).tolist()


def assert_hall(
    found: om.transport.Violation, a: np.ndarray, b: np.ndarray, relation: np.ndarray
) -> None:
    reached = relation[found.sources].any(axis=0) & (b > 0)
    assert set(np.flatnonzero(reached)) == set(found.neighbours.tolist())
    assert found.mass == pytest.approx(a[found.sources].sum(), abs=1e-14)
    assert found.capacity == pytest.approx(b[reached].sum(), abs=1e-14)
    assert found.missing == pytest.approx(found.mass - found.capacity, abs=1e-14)
    assert found.missing > 1e-12


@given(st.data(), st.integers(1, 7), st.integers(1, 7))
def test_lifting_is_decided_with_a_proof(data: st.DataObject, n: int, m: int) -> None:
    a, b = data.draw(distributions(n)), data.draw(distributions(m))
    relation = data.draw(nonnegative_matrices(n, m)) < 2
    found = om.transport.lifted(a, b, relation)
    if isinstance(found, om.transport.Coupling):
        assert_couples(found.plan, a, b)
        assert (found.plan[~relation] == 0).all()
    else:
        assert_hall(found, a, b, relation)
        # the missing mass is what linear programming cannot place either
        assert found.missing == pytest.approx(by_linprog(a, b, 1.0 - relation), abs=1e-9)
        assert "points hold" in str(found)


def test_bottleneck_lies_between_orders_and_diameter() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random((2, 40))
    a[:5] = 0
    points = rng.random((40, 2))
    d = np.hypot(*(points[:, None] - points).T)
    values = [om.transport.wasserstein(a, b, d, p).value for p in (1, 2, 8, 64, math.inf)]
    assert values == sorted(values)
    assert values[-1] in d
    diameter = om.transport.diameter(a, b, d)
    assert diameter == d[5:].max()
    assert values[-1] <= diameter


def test_large_bottleneck_against_assignment() -> None:
    """300 points of equal mass: feasible at the value, infeasible below, by bipartite matching."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rng = np.random.default_rng(6)
    x, y = rng.random((2, 300, 2))
    d = np.hypot(*(x[:, None] - y).T).T
    value = om.transport.wasserstein(np.ones(300), np.ones(300), d, "inf").value
    assert (maximum_bipartite_matching(csr_array(d <= value)) >= 0).all()
    assert (maximum_bipartite_matching(csr_array(d < value)) < 0).any()


@pytest.mark.parametrize(
    ("a", "b", "d", "p", "where"),
    [
        ([1, -1], [1, 1], np.zeros((2, 2)), 1, "a"),
        ([0, 0], [1, 1], np.zeros((2, 2)), 1, "a"),
        ([1, 1], [np.nan, 1], np.zeros((2, 2)), 1, "b"),
        ([[1, 1]], [1, 1], np.zeros((2, 2)), 1, "a"),
        ([1, 1], [1, 1], np.zeros((2, 3)), 1, "distance"),
        ([1, 1], [1, 1], [[0, -1], [1, 0]], 1, "distance"),
        ([1, 1], [1, 1], [[0, np.inf], [1, 0]], 1, "distance"),
        ([1, 1], [1, 1], np.zeros((2, 2)), 0.5, "p"),
        ([1, 1], [1, 1], np.zeros((2, 2)), "two", "p"),
        ([1, 1], [1, 1], np.zeros((2, 2)), math.nan, "p"),
    ],
)
def test_bad_input_is_named(a: object, b: object, d: object, p: object, where: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        om.transport.wasserstein(a, b, d, p)  # type: ignore[arg-type]
    assert caught.value.where == where


def test_relations_must_be_boolean() -> None:
    with pytest.raises(om.ProblemError, match="boolean"):
        om.transport.lifted([1, 1], [1, 1], np.ones((2, 2)))


def test_extreme_masses_and_costs() -> None:
    tiny = om.transport.wasserstein([1.0, 1e-300], [1.0, 0.0], [[0.0, 1], [2, 1]])
    assert tiny.value == pytest.approx(0, abs=1e-17)
    huge = om.transport.wasserstein([1, 0], [0, 1], [[0, 1e308], [1, 0]], 3)
    assert huge.value == pytest.approx(1e308)
    small = om.transport.wasserstein([1, 0], [0, 1], [[0, 5e-324], [1, 0]])
    assert small.value == 5e-324


def test_plane_as_pot() -> None:
    ot = pytest.importorskip("ot", reason="POT is not installed: pip install pot")
    rng = np.random.default_rng(7)
    x, y = rng.random((2, 150, 2))
    a, b = rng.dirichlet(np.ones(150), 2)
    d = np.hypot(*np.moveaxis(x[:, None] - y, 2, 0))
    assert om.transport.wasserstein(a, b, d).value == pytest.approx(ot.emd2(a, b, d), rel=1e-12)


def test_the_name_of_a_distance_is_no_distance() -> None:
    line = om.Prior.uniform(om.Domain.range(3))
    for take in (
        lambda: om.transport.wasserstein(line, line, distance="euclidean"),
        lambda: om.transport.barycenter([line, line], distance="euclidean"),
        lambda: om.mechanisms.coupling([line], line, "euclidean"),
    ):
        with pytest.raises(om.ProblemError, match=r"Use om\.distances\.euclidean\(\)"):
            take()
