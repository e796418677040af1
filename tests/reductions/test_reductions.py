"""Reductions: what they keep is what theory says, and optima survive the way back."""

from __future__ import annotations

from math import gcd

import networkx as nx
import numpy as np
import pytest
from conformance.problems import prior

import optmech as om
from optmech.errors import ProblemError
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.pipeline.profiles import Profile
from optmech.reductions import ImpliedPairs, parse_reduction
from optmech.reductions.pairs import greedy_spanner, implied

E, H, M = om.distances.euclidean(), om.distances.hamming(), om.distances.manhattan()


def kept_pairs(domain: om.Domain, distance: om.distances.Distance) -> set[tuple[int, int]]:
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(0.7, distance)])
    (reduced,) = ImpliedPairs().apply(compile_lp(Inequalities.of(problem.statement)).lp)
    return set(zip(reduced.lp.cone.i.tolist(), reduced.lp.cone.j.tolist(), strict=True))


@pytest.mark.parametrize("cell", [(1.0, 1.0), (0.75, 0.5333), (0.1, 0.3)])
def test_euclidean_grids_keep_coprime_offsets(cell: tuple[float, float]) -> None:
    grid = om.Grid(5, 6, cell)
    expected = {
        (a, b)
        for a, (r, c) in enumerate(grid.labels)
        for b, (s, d) in enumerate(grid.labels)
        if gcd(abs(r - s), abs(c - d)) == 1
    }
    assert kept_pairs(grid, E) == expected


def test_manhattan_grids_lines_and_graphs_keep_their_edges() -> None:
    grid = om.Grid(4, 5, (0.3, 0.7))
    edges = {
        (a, b)
        for a, (r, c) in enumerate(grid.labels)
        for b, (s, d) in enumerate(grid.labels)
        if abs(r - s) + abs(c - d) == 1
    }
    assert kept_pairs(grid, M) == edges
    assert kept_pairs(om.Domain.range(7), E) == {
        (a, b) for a in range(7) for b in range(7) if abs(a - b) == 1
    }
    network = nx.random_labeled_tree(12, seed=4)
    rng = np.random.default_rng(0)
    for u, v in network.edges:
        network[u][v]["weight"] = rng.uniform(0.5, 2)
    expected = {pair for u, v in network.edges for pair in ((u, v), (v, u))}
    assert kept_pairs(om.Domain(range(12)), om.distances.graph(network)) == expected


def test_implied_against_the_definition_in_loops() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        ratio = rng.integers(1, 6, (6, 6)).astype(float)
        np.fill_diagonal(ratio, np.inf)
        found = implied(ratio)
        for i in range(6):
            for k in range(6):
                expected = any(
                    ratio[i, j] + ratio[j, k] <= ratio[i, k] for j in range(6) if j not in (i, k)
                )
                assert i == k or found[i, k] == expected


def test_points_at_distance_zero_keep_their_equalities() -> None:
    domain = om.Domain("abc", [[0.0], [0.0], [1.0]])
    kept = kept_pairs(domain, E)
    assert {("a", "b"), ("b", "a")} <= {(domain.labels[i], domain.labels[j]) for i, j in kept}


@pytest.mark.parametrize("stretch", [1.0, 1.2, 2.0])
def test_spanner_paths_stay_within_the_stretch(stretch: float) -> None:
    rng = np.random.default_rng(3)
    xy = rng.uniform(0, 1, (25, 2))
    d = np.hypot(*(xy[:, None, k] - xy[None, :, k] for k in range(2)))
    np.fill_diagonal(d, np.inf)
    edge = greedy_spanner(d, stretch)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((a, b, d[a, b]) for a, b in np.argwhere(edge).tolist())
    paths = dict(nx.all_pairs_dijkstra_path_length(graph))
    for a in range(25):
        for b in range(25):
            assert a == b or paths[a][b] <= stretch * d[a, b] * (1 + 1e-9)
    assert stretch == 1 or edge.sum() < 0.5 * 25 * 24


@pytest.mark.parametrize("stretch", [1.1, 1.5])
def test_spanner_designs_keep_epsilon_and_bracket_the_optimum(stretch: float) -> None:
    p = prior(np.random.default_rng(4), om.Grid(3, 4))
    problem = om.Problem(p, E, constraints=[om.MetricPrivacy(1.0, E)])
    exact = om.solve(problem)
    spanned = om.solve(
        problem, Profile(engine="highs", method="ipm", reductions=(f"spanner:{stretch}",))
    )
    assert om.measures.epsilon(spanned.mechanism, E) <= 1 + 1e-12
    assert spanned.lower_bound <= exact.loss * (1 + 1e-9)
    assert exact.lower_bound <= spanned.loss
    assert spanned.verified


def test_no_second_engine_is_asked_for_a_gap_that_a_spanner_gave_up() -> None:
    p = prior(np.random.default_rng(4), om.Grid(3, 4))
    problem = om.Problem(p, E, constraints=[om.MetricPrivacy(1.0, E)])
    design = om.solve(problem, Profile(reductions=("spanner:1.5",)))
    assert design.gap > 1e-3
    assert "ended at a gap" not in design.engine_reason


def test_unknown_reductions_are_refused_with_a_remedy() -> None:
    for text in ("magic", "spanner", "spanner:x", "spanner:0.5", "implied-pairs:2"):
        with pytest.raises(ProblemError, match="spanner"):
            parse_reduction(text)
