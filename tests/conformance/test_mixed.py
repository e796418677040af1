"""Mixed, degenerate problems against an independent solver; where equalities hold in disguise."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.mixed import mixed
from oracle import optimum

import optmech as om
from optmech.certificate import lower_bound
from optmech.lp.inequalities import Inequalities, ProgramMultipliers, compile_lp
from optmech.repair import Implied

E, H = om.distances.euclidean(), om.distances.hamming()
DISGUISED = [
    53, 54, 81, 131, 169, 173, 190, 220, 275, 280, 286, 309, 328, 346, 349, 422, 434, 444, 463,
    489, 516, 526, 554, 579, 582, 597, 631, 744, 799, 815, 868, 869, 881, 891, 896, 906, 916, 923,
]  # fmt: skip
"""Supports that leave no constant, zeros one way, windows at distance 0, equal distributions,
limits at their extremes, ε of 1e-12, optima of 0."""


@pytest.mark.parametrize("seed", [*range(1000, 1040), *DISGUISED])
def test_mixed_problems_are_certified_at_the_optimum(seed: int) -> None:
    problem = mixed(seed)
    expected = optimum(problem)
    design = om.solve(problem)
    if expected is None:
        assert design.status == "infeasible"
        return
    assert design.gap <= 1e-6
    assert design.objective == pytest.approx(expected, rel=2e-6, abs=2e-9)


def test_a_slow_solver_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked for once the gap is reached is not broken off by its being reached, which a
    machine shows that is slow enough for somebody to ask on the way."""
    monkeypatch.setattr("optmech.base.highs._TICK", 1e-5)
    test_mixed_problems_are_certified_at_the_optimum(173)


def one_way(prior: list[float], forth: float, back: float) -> om.Problem:
    """Two secrets whose distance is ``forth`` one way and ``back`` the other."""
    domain = om.Domain.range(2)
    private = om.MetricPrivacy(1.0, om.distances.matrix([[0.0, forth], [back, 0.0]]))
    return om.Problem(om.Prior(domain, prior), H, constraints=[private])


@pytest.mark.parametrize("profile", ["highs", "structured", "lazy"])
def test_a_distance_of_zero_one_way_makes_rows_equal(profile: str) -> None:
    """The best constant errs with the rarer secret, however large the other distance is."""
    design = om.solve(one_way([0.3, 0.7], 0.0, 2.0), profile=profile)
    assert design.loss == pytest.approx(0.3, rel=1e-6)
    assert design.gap <= 1e-6
    first, second = design.exact.rows
    assert first == second


def test_multipliers_of_what_is_implied_prove_the_same_bound() -> None:
    """A bound of the statement with both ways is one of the statement with one way."""
    rng = np.random.default_rng(1)
    distance = rng.uniform(0.5, 2, (4, 4))
    distance[0, 1] = distance[2, 3] = 0.0
    np.fill_diagonal(distance, 0.0)
    private = om.MetricPrivacy(1.0, om.distances.matrix(distance))
    prior = om.Prior(om.Domain.range(4), [1, 2, 3, 4])
    statement = om.Problem(prior, rng.uniform(0, 1, (4, 4)), constraints=[private]).statement
    source = Inequalities.of(statement)
    implied = Implied.of(source)
    assert implied.given.log_ratio[1, 0] == implied.given.log_ratio[3, 2] == 0.0
    both, one = multipliers(implied.given), multipliers(source)
    value = bound_in_floats(implied.given, both)
    assert lower_bound(statement, implied.recover(both)).value == pytest.approx(value)
    assert value == pytest.approx(lower_bound(statement, one.stated(statement)).value, rel=1e-7)


def multipliers(given: Inequalities) -> ProgramMultipliers:
    """Those of an optimum, by HiGHS."""
    from optmech.engines.base import Options
    from optmech.engines.highs import HighsSession
    from optmech.lp.flatten import flatten

    compiled = compile_lp(given)
    flat = flatten(compiled.lp)
    solved = HighsSession(flat, Options())
    assert solved.solve({"solver": "simplex"}, Patient()) == "Optimal"
    return compiled.recover(flat.point(*solved.solution()))[1]


class Patient:
    """A monitor that never stops."""

    def should_stop(self) -> bool:
        return False

    def remaining(self) -> float:
        return float("inf")


def bound_in_floats(given: Inequalities, found: ProgramMultipliers) -> float:
    """Theorem 1 with ratios only, term by term."""
    cost = given.statement.prior[:, None] * given.statement.loss
    ratio = found.pairs
    for i, j, o, z in zip(ratio.i, ratio.j, ratio.o, ratio.value, strict=True):
        cost[i, o] += z
        cost[j, o] -= z * np.exp(given.log_ratio[i, j])
    return float(cost.min(axis=1).sum())


@pytest.mark.parametrize("epsilon", [1e-14, 1e-12, 1e-11, 1e-10, 1e-9])
def test_a_tiny_epsilon_is_no_worse_than_none(epsilon: float) -> None:
    rng = np.random.default_rng(7)
    prior = om.Prior(om.Domain(range(5), rng.uniform(0, 2, (5, 2))), rng.dirichlet(np.ones(5)))
    pairs = [tuple(rng.dirichlet(np.ones(5), 2)) for _ in range(2)]

    def loss(value: float) -> om.Design:
        return om.solve(om.Problem(prior, E, constraints=[om.DistributionPrivacy(value, pairs)]))

    tiny, none = loss(epsilon), loss(0.0)
    assert tiny.loss <= none.loss * (1 + 1e-12)
    assert tiny.gap <= 1e-6


def test_an_optimum_of_zero_is_reached_exactly() -> None:
    """Every place may be told, as δ = 1 constrains nothing."""
    prior = om.Prior(om.Domain.range(3), [0.2, 0.3, 0.5])
    design = om.solve(om.Problem(prior, H, constraints=[om.DifferentialPrivacy(1.0, delta=1.0)]))
    assert design.loss == 0.0
    assert design.status == "optimal"
    np.testing.assert_array_equal(design.matrix, np.eye(3))


def test_a_weight_far_below_all_others_does_not_hide_them() -> None:
    """Beside 1e-200, weights of order one are to stay within the range that solvers take. With
    ε = 0 rows are equal, and none loses less than the best constant: half of that is refuted."""
    places = om.Grid(2, 3, cell=(1.0, 0.5))
    prior = om.Prior(places, [1e-200, 0.16, 0.7, 0.03, 0.08, 0.03])
    best = float((prior.weights @ E(places, places)).min())
    constraints = [om.LossBound(best / 2), om.DifferentialPrivacy(0)]
    assert om.solve(om.Problem(prior, E, constraints=constraints)).status == "infeasible"
