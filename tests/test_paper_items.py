"""Items of the papers against sums, enumerations and linear programs of the tests' own."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import optmech as om

LINE = om.Domain.range(4)
KM = om.distances.euclidean()
D = np.abs(np.subtract.outer(range(4), range(4))).astype(float)


def drawn(seed: int, rows: int = 4, columns: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(columns), rows)


def cost_of(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> float:
    """The least Σ γ cost over couplings, by HiGHS."""
    n = len(a)
    sums = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    return linprog(cost.ravel(), A_eq=sums, b_eq=np.concatenate([a, b])).fun


def test_utility_distance_and_sensitivity() -> None:
    u = np.random.default_rng(0).normal(size=(4, 3))
    by_hand = [[max(abs(x - y)) for y in u] for x in u]
    apart = om.distances.utility(u)
    assert np.allclose(apart(LINE, LINE), by_hand)
    pairs = [(0, 2), (3, 1)]
    largest = max(by_hand[i][j] for i, j in pairs)
    assert om.distances.sensitivity(apart, LINE, pairs) == largest
    with pytest.raises(om.ProblemError, match="pairs"):
        om.distances.sensitivity(apart, LINE, [(0, 4)])


def test_composed_mechanisms_by_sums() -> None:
    first = om.Mechanism(LINE, om.Domain("xy"), drawn(1, 4, 2))
    after = {
        label: om.Mechanism(LINE, om.Domain("abc"), drawn(k, 4, 3)) for k, label in enumerate("xy")
    }
    shared = om.mechanisms.composed(first, after)
    apart = om.mechanisms.composed(first, after.__getitem__, shared=False)
    for s, t, o in product(range(4), range(4), range(3)):
        total = sum(first.matrix[s, k] * after[y].matrix[t, o] for k, y in enumerate("xy"))
        assert apart.matrix[4 * s + t, o] == pytest.approx(total)
        if s == t:
            assert shared.matrix[s, o] == pytest.approx(total)
    with pytest.raises(om.ProblemError, match=r"second\[y\]"):
        om.mechanisms.composed(first, {"x": after["x"]})


def test_stability_is_the_largest_ratio() -> None:
    moved = om.Mechanism(LINE, LINE, drawn(2))
    lams = [row / row.sum() for row in drawn(3, 3)]
    ratios = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        far = cost_of(lams[i] @ moved.matrix, lams[j] @ moved.matrix, D)
        ratios.append(far / cost_of(lams[i], lams[j], D))
    found = om.distributional.stability(moved, lams, KM, p=1)
    assert found == pytest.approx(max(ratios), rel=1e-6)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_lifted_relations_of_optimal_couplings(p: float) -> None:
    """A program that pays for what lies outside of the relation, at the least cost."""
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(30):
        counts = rng.integers(0, 4, (2, 4)) + np.eye(4, dtype=int)[:2]
        a, b = counts[0] / counts[0].sum(), counts[1] / counts[1].sum()
        phi = rng.uniform(size=(4, 4)) < 0.75
        found = om.transport.lifted(a, b, phi, distance=D, p=p)
        if p == np.inf:
            reach = om.transport.wasserstein(a, b, D, np.inf).value
            least, most = 0.0, cost_of(a, b, (~(phi & (reach >= D))).astype(float))
        else:
            least, most = cost_of(a, b, D**p), cost_of(a, b, np.where(phi, D**p, 1e4))
        inside = most <= least + 1e-7
        assert isinstance(found, om.transport.Coupling) == inside
        seen.add(inside)
    assert seen == {True, False}


def test_sets_and_wasserstein_scales() -> None:
    grid = om.Grid(2, 2, unit="km")
    rows = [om.Prior(grid, row) for row in drawn(5, 3)]
    apart = KM(grid, grid)
    stated = om.DistributionPrivacy(0.7, among=rows, scale="W_1", distance=KM)
    space = om.Problem(om.Prior.uniform(grid), KM, constraints=[stated]).space
    pairs = [(0, 1), (0, 2), (1, 2)]
    by_hand = [cost_of(rows[i].weights, rows[j].weights, apart) for i, j in pairs]
    assert stated.resolved(space).scales == pytest.approx(by_hand, rel=1e-7)
    written = om.DistributionPrivacy(
        0.7,
        [(rows[i].weights, rows[j].weights) for i, j in pairs],
        scale=stated.resolved(space).scales,
    )
    make = lambda c: om.Problem(om.Prior.uniform(grid), KM, constraints=[c])  # noqa: E731
    assert make(stated) == make(written)
    far = om.DistributionPrivacy(0.7, [tuple(rows[:2])], scale=KM)
    assert far.resolved(space).scales[0] == om.transport.wasserstein(*rows[:2], KM, np.inf).value
    other = om.Prior(om.Domain("abcd"), rows[0].weights)
    with pytest.raises(om.ProblemError, match="secrets of the problem"):
        make(om.DistributionPrivacy(1, [(other, other)]))


def test_proposition_11_holds_of_all_tuples() -> None:
    """All tuples of a base with two outputs, by the number of the first among them."""
    from math import comb

    base = om.mechanisms.randomized_response(om.Domain("ab"), 1)
    k, delta = 600, 0.05
    tuples = om.mechanisms.tupling(base, k)
    epsilon = tuples.proposition11([0.9, 0.1], [0.1, 0.9], delta)
    assert np.isfinite(epsilon)
    p, q = (float(base.push(lam)[0]) for lam in ([0.9, 0.1], [0.1, 0.9]))
    beyond = [0.0, 0.0]
    for c in range(k + 2):
        laws = []
        for first in (p, q):
            own = comb(k, c - 1) * first if c else 0
            rest = comb(k, c) * (1 - first) if c <= k else 0
            laws.append((own + rest) / 2**k)
        if abs(np.log(laws[0] / laws[1])) > epsilon:
            beyond = [x + y for x, y in zip(beyond, laws, strict=True)]
    assert max(beyond) <= delta
    assert tuples.exceeding([0.9, 0.1], p - 1e-9) == 0.5
    assert tuples.exceeding([0.9, 0.1], p + 1e-9) == 0


def test_terms_of_a_trace_loss() -> None:
    """Equation 2 by conditioning with NumPy, and the largest over signs of the box."""
    times = np.arange(4.0)
    trace = om.traces.GaussianPrior(times, om.traces.rbf(1.0))
    cov, s, u, variance = trace.covariance, [0, 2], [1, 3], 0.5
    b = cov[np.ix_(u, s)] @ np.linalg.inv(cov[np.ix_(s, s)])
    rest = cov[np.ix_(u, u)] - b @ cov[np.ix_(s, u)]
    effective = b.T @ np.linalg.inv(rest + variance * np.eye(2)) @ b
    worst = 0.0
    for delta in product((-1.0, 1.0), repeat=2):
        terms = om.traces.loss_terms(trace, variance, s, difference=delta, order=3)
        assert terms.inferred == pytest.approx(1.5 * np.array(delta) @ effective @ delta)
        assert terms.direct == pytest.approx(1.5 * 2 / variance)
        worst = max(worst, terms.total)
    assert terms.alpha == pytest.approx(np.linalg.eigvalsh(effective)[-1])
    assert worst == pytest.approx(om.traces.privacy_loss(trace, variance, s, 1, 3).upper)


def test_losses_adjacency_and_domains_by_labels() -> None:
    pd = pytest.importorskip("pandas")
    people = om.Domain.product(["young", "old"], ["cook", "nurse"])
    assert om.Domain(pd.DataFrame(list(people.labels))) == people
    prior = om.Prior.uniform(people)
    loss = lambda s, o: (s[0] != o[0]) + 2.0 * (s[1] != o[1])  # noqa: E731
    table = [[loss(s, o) for o in people.labels] for s in people.labels]
    near = [(people.labels[0], people.labels[1])]
    named = om.Problem(prior, loss, constraints=[om.DifferentialPrivacy(1, near)])
    assert named == om.Problem(prior, table, constraints=[om.DifferentialPrivacy(1, [(0, 1)])])
    with pytest.raises(om.ProblemError, match="adjacency"):
        om.Problem(prior, loss, constraints=[om.DifferentialPrivacy(1, [("x", "y")])])
    with pytest.raises(om.ProblemError, match="two labels"):
        om.Problem(prior, lambda s, o: s.nothing)
    design = om.solve(named)
    row = design.mechanism[people.labels[0]]
    assert row[people.labels[1]] == design.mechanism.matrix[0, 1]


def test_a_comparison_has_the_losses_of_the_mechanisms() -> None:
    grid = om.Grid(2, 3, unit="km")
    problem = om.Problem(om.Prior.uniform(grid), KM, constraints=[om.MetricPrivacy(1, KM)])
    found = om.compare(problem, epsilons=[0.5, 1.5], mechanisms=["optimum", "planar_laplace"])
    assert [row["epsilon"] for row in found.rows] == [0.5, 0.5, 1.5, 1.5]
    for epsilon, row in zip((0.5, 1.5), found.rows[1::2], strict=True):
        own = om.mechanisms.planar_laplace(grid, epsilon)
        lost = (own.matrix * KM(grid, grid)).sum() / 6
        assert row["loss"] == pytest.approx(lost)
        assert row["above"] >= 0
        assert row["uses"] <= 1 + 1e-9
    with pytest.raises(om.ProblemError, match="unknown"):
        om.compare(problem, [1], ["gauss"])
    with pytest.raises(om.ProblemError, match=r"^epsilons: is empty"):
        om.compare(problem, [])


def test_privacy_of_distributions_is_none_of_points() -> None:
    """Section 3.5: a mechanism that makes two distributions alike can tell points apart entirely,
    and a central mechanism's ε says nothing of it: here both halves of a line are one report."""
    first, second = [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]
    told = om.Mechanism(LINE, om.Domain("ab"), [[1, 0], [1, 0], [0, 1], [0, 1]])
    assert np.array_equal(np.array(first) @ told.matrix, np.array(second) @ told.matrix)
    assert om.measures.distribution_epsilon(told, first, second) == 0
    assert om.measures.epsilon(told) == np.inf
