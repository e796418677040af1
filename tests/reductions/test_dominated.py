"""Observables and estimates that others can stand in for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conformance.problems import FEW_USEFUL, Make
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from oracle import optimum

import optmech as om
from optmech.lp.blocks import Start
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.pipeline.profiles import Profile
from optmech.reductions import DominatedEstimates, DominatedObservables
from optmech.reductions.dominance import dominators

E, H = om.distances.euclidean(), om.distances.hamming()


@given(arrays(float, st.tuples(st.integers(1, 7), st.integers(1, 4)), elements=st.integers(0, 3)))
def test_dominators_against_the_definition_in_loops(features: np.ndarray) -> None:
    count = len(features)

    def beats(a: int, b: int) -> bool:
        less = all(x <= y for x, y in zip(features[a], features[b], strict=True))
        return less and (a < b or any(features[a] != features[b]))

    found = dominators(features)
    for k in range(count):
        if not any(beats(other, k) for other in range(count)):
            assert found[k] == k
        else:
            assert found[k] != k
            assert beats(found[k], k)
            assert found[found[k]] == found[k]


def blocks(problem: om.Problem) -> int:
    (reduced,) = DominatedObservables().apply(compile_lp(Inequalities.of(problem.statement)).lp)
    return reduced.lp.blocks


def test_places_that_are_never_visited_need_not_be_reported_under_hamming_loss() -> None:
    weights = np.zeros(30)
    weights[[3, 11, 12, 27]] = [4, 1, 2, 2]
    p = om.Prior(om.Grid(5, 6), weights)
    private = om.MetricPrivacy(1.0, E)
    assert blocks(om.Problem(p, H, constraints=[private])) == 4
    assert blocks(om.Problem(p, H, constraints=[private, om.DistortionPrivacy(0.1, E)])) == 4
    # the worst case is over all places, visited or not
    assert blocks(om.Problem(p, H, objective="worst_loss", constraints=[private])) == 30
    assert blocks(om.Problem(om.Prior.uniform(om.Grid(5, 6)), H, constraints=[private])) == 30


def test_only_places_between_those_visited_matter_on_a_line() -> None:
    weights = np.zeros(9)
    weights[[2, 5]] = [1, 3]
    p = om.Prior(om.Domain.range(9), weights)
    problem = om.Problem(p, E, constraints=[om.DistortionPrivacy(0.2, E)])
    lp = compile_lp(Inequalities.of(problem.statement)).lp
    (few,) = DominatedObservables().apply(lp)
    (fewer,) = DominatedEstimates().apply(few.lp)
    assert few.lp.blocks == 4
    (rows,) = (part.matrix.toarray() for part in fewer.lp.local)
    at = (rows[:, 2] / -p.weights[2], rows[:, 5] / -p.weights[5])
    assert np.allclose(np.column_stack(at), [[0, 3], [1, 2], [2, 1], [3, 0]])


def test_limited_places_only_give_way_to_those_that_are_allowed_as_much() -> None:
    weights = np.array([1.0, 1.0, 0.0, 0.0])
    p = om.Prior(om.Domain.range(4), weights)
    mask = np.ones((4, 4), dtype=bool)
    mask[3, :2] = False  # from place 3 only 2 and 3 may be reported
    assert blocks(om.Problem(p, H, constraints=[om.Support(mask)])) == 3
    # each observable is held to the pairs of its own place only, and no two to the same
    windowed = om.MetricPrivacy(1.0, E, threshold=1.0, observable_threshold=0.0)
    assert blocks(om.Problem(p, H, constraints=[windowed])) == 4


@pytest.mark.parametrize("make", FEW_USEFUL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_the_whole_program(make: Make, seed: int) -> None:
    problem = make(np.random.default_rng([seed, 5]))
    assert blocks(problem) < problem.statement.observables
    whole = om.solve(problem, Profile(reductions=()))
    design = om.solve(problem)
    expected = optimum(problem)
    if expected is None:
        assert design.status == whole.status == "infeasible"
        return
    assert design.status == whole.status == "optimal"
    assert design.objective == pytest.approx(expected, rel=2e-6, abs=1e-9)
    assert whole.objective == pytest.approx(expected, rel=2e-6, abs=1e-9)


def test_a_proof_of_infeasibility_survives_the_way_back(tmp_path: Path) -> None:
    weights = np.zeros(12)
    weights[[0, 5, 11]] = 1
    p = om.Prior(om.Grid(3, 4), weights)
    private = om.MetricPrivacy(0.3, E)
    least = om.solve(om.Problem(p, H, constraints=[private])).loss
    design = om.solve(om.Problem(p, H, constraints=[private, om.LossBound(0.99 * least)]))
    assert design.status == "infeasible"
    design.save(tmp_path / "design.json")
    assert om.check(tmp_path / "design.json").passed


def test_a_neighbours_reports_are_handed_on() -> None:
    weights = np.zeros(8)
    weights[[1, 6]] = [2, 1]
    problem = om.Problem(
        om.Prior(om.Grid(2, 4), weights), H, constraints=[om.MetricPrivacy(0.7, E)]
    )
    (reduced,) = DominatedObservables().apply(compile_lp(Inequalities.of(problem.statement)).lp)
    matrix = np.random.default_rng(0).dirichlet(np.ones(8), 8)
    i, j, block = np.array([0, 3, 2]), np.array([1, 2, 5]), np.array([1, 4, 6])
    ratio = problem.statement.log_ratio
    found = reduced.enter(Start(matrix, ratio, i, j, block, np.array([0.5, 0.25, 0.125])))
    assert np.allclose(found.matrix.sum(axis=1), 1)
    # unvisited places go to the visited one that costs more in all, the rarer one
    assert np.allclose(found.matrix[:, 0], matrix[:, 1])
    assert found.block.tolist() == [0, 1]
    assert found.weight.tolist() == [0.5, 0.125]
    neighbour = om.solve(
        om.Problem(problem.prior, H, constraints=[om.MetricPrivacy(0.75, E)]),
    )
    again = om.solve(problem, "structured", start=neighbour)
    assert again.loss == pytest.approx(optimum(problem), rel=2e-6)
