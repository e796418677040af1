"""Prices against finite differences of the optimum, solved again with the number moved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import optmech as om
from optmech import prices

KM = om.distances.euclidean()
GRID = om.Grid(3, 3, cell=(1.0, 0.7), unit="km")
PRIOR = om.Prior(GRID, np.array([4.0, 1, 2, 7, 3, 1, 2, 5, 6]))
FIRST = np.array([5.0, 1, 1, 1, 2, 1, 1, 1, 1])
SECOND = FIRST[::-1].copy()
STEP = 1e-4


def problem(*constraints: object, **options: object) -> om.Problem:
    loss = options.pop("loss", KM)
    return om.Problem(PRIOR, loss, constraints=list(constraints), **options)


def metric(epsilon: float, **options: object) -> om.MetricPrivacy:
    return om.MetricPrivacy(epsilon, KM, **options)


def joint(epsilon: float, minimum: float) -> om.Problem:
    constraints = metric(epsilon), om.DistortionPrivacy(minimum, KM)
    return problem(*constraints, loss=om.distances.hamming())


def attacked(maximum: float, epsilon: float) -> om.Problem:
    return problem(
        om.LossBound(maximum, loss=om.distances.hamming()),
        metric(epsilon),
        objective=om.MaximizeDistortion(KM),
        loss=om.distances.hamming(),
    )


def distributions(epsilon: float, delta: float = 0.0) -> om.Problem:
    return problem(om.DistributionPrivacy(epsilon, [(FIRST, SECOND)], delta=delta))


def diverging(name: str, epsilon: float) -> om.Problem:
    pairs = [(FIRST, SECOND), (FIRST, np.ones(9))]
    scale = [1.0, 0.5]
    return problem(om.DistributionPrivacy(epsilon, pairs, divergence=name, scale=scale))


def approximate(epsilon: float, delta: float = 0.05) -> om.Problem:
    return problem(om.DifferentialPrivacy(epsilon, delta=delta))


CASES: dict[str, tuple[Callable[[float], om.Problem], float, str]] = {
    "metric": (lambda t: problem(metric(t)), 0.9, "epsilon"),
    "worst loss": (lambda t: problem(metric(t), objective="worst_loss"), 0.9, "epsilon"),
    "differential": (lambda t: problem(om.DifferentialPrivacy(t)), 1.1, "epsilon"),
    "window": (lambda t: problem(metric(t, observable_threshold=1.1)), 0.7, "epsilon"),
    "joint, minimum": (lambda t: joint(1.5, t), 0.62, "minimum"),
    "joint, epsilon": (lambda t: joint(t, 0.62), 1.5, "epsilon"),
    "maximise, maximum": (lambda t: attacked(t, 1.5), 0.6, "maximum"),
    "maximise, epsilon": (lambda t: attacked(0.6, t), 1.5, "epsilon"),
    "distribution": (distributions, 0.1, "epsilon"),
    "distribution, delta": (lambda t: distributions(0.1, t), 0.03, "delta"),
    "kl": (lambda t: diverging("kl", t), 0.05, "epsilon"),
    "chi2": (lambda t: diverging("chi2", t), 0.04, "epsilon"),
    "hellinger": (lambda t: diverging("hellinger", t), 0.01, "epsilon"),
    "total variation": (lambda t: diverging("tv", t), 0.1, "epsilon"),
    "approximate, epsilon": (approximate, 0.7, "epsilon"),
    "approximate, delta": (lambda t: approximate(0.7, t), 0.05, "delta"),
    "loss of every secret": (
        lambda t: problem(metric(0.8), om.LossBound(t, worst_case=True), loss=KM),
        0.93,
        "maximum",
    ),
}


def optimum(stated: om.Problem) -> om.Design:
    design = om.solve(stated, gap=1e-9)
    assert design.status == "optimal", design.reason
    return design


@pytest.mark.parametrize("case", CASES)
def test_prices_are_derivatives_of_the_optimum(case: str) -> None:
    make, value, parameter = CASES[case]
    (found,) = (
        price
        for price in prices.of_constraints(optimum(make(value)))
        if (price.parameter, price.value) == (parameter, value)
    )
    sides = [optimum(make(value + step)).objective for step in (-STEP, 0, STEP)]
    below, above = (sides[1] - sides[0]) / STEP, (sides[2] - sides[1]) / STEP
    least, most = sorted((below, above))
    room = 1e-3 * max(abs(least), abs(most)) + 1e-5
    assert least - room <= found.rate <= most + room
    assert abs(found.rate) > 0.01, "a derivative of zero would show nothing"
    assert found.change() == pytest.approx(found.rate * value / 100)


def test_pairs_add_up_to_the_price_of_epsilon() -> None:
    design = optimum(problem(metric(0.9)))
    pairs = prices.of_pairs(design, count=1000)
    distances = KM(GRID, GRID)
    total = sum(pair.rate * distances[pair.indices[:2]] for pair in pairs)
    (price,) = prices.of_constraints(design)
    assert total == pytest.approx(price.rate, rel=1e-9)
    assert [pair.rate for pair in pairs] == sorted(pair.rate for pair in pairs)
    assert all(pair.allowed == pytest.approx(0.9 * distances[pair.indices[:2]])
               for pair in pairs)  # fmt: skip


def test_two_points_by_hand() -> None:
    """Points 2 apart, equally likely, ε = ln 3: randomised response with e^{2ε} = 9 is optimal."""
    ends = om.Domain(["a", "b"], points=[0, 2])
    even = om.Prior.uniform(ends)
    design = om.solve(om.Problem(even, KM, constraints=[om.MetricPrivacy("ln 3", KM)]), gap=1e-10)
    (price,) = prices.of_constraints(design)
    # V = 2 / (e^{2ε} + 1), so V' = -4 e^{2ε} / (e^{2ε} + 1)^2
    assert price.rate == pytest.approx(-4 * 9 / 100, rel=1e-6)
    both = prices.of_pairs(design)
    assert {(pair.secret, pair.other) for pair in both} == {("a", "b"), ("b", "a")}
    assert all((*pair.indices[:2], pair.observable) == (
        "ab".index(pair.secret), "ab".index(pair.other), "ab"[pair.indices[2]]
    ) for pair in both)  # fmt: skip
    # V = 2 / (e^r + 1) with one r for both pairs: each has half of it
    assert sum(pair.rate for pair in both) == pytest.approx(-2 * 9 / 100, rel=1e-6)


def test_only_constraints_with_numbers_have_prices() -> None:
    stated = problem(om.Support(np.eye(9, dtype=bool)))
    design = om.solve(stated)
    assert prices.of_constraints(design) == ()
    assert prices.of_pairs(design) == ()


def test_no_mechanism_has_no_price() -> None:
    design = om.solve(problem(om.DistortionPrivacy(1e6, KM)))
    with pytest.raises(om.InfeasibleError):
        prices.of_constraints(design)


@pytest.mark.parametrize("name", ["kl", "tv", "chi2", "hellinger"])
def test_no_price_is_stated_where_distributions_are_to_be_equal(name: str) -> None:
    """Two points told apart by Hamming loss: V(0) = 1/2, and outputs that differ by h save h/2,
    for which relative entropy needs h²/2 only: V'(0) is not 0 for any divergence."""
    ends = om.Domain(["a", "b"], points=[0, 1])
    even, loss = om.Prior.uniform(ends), om.distances.hamming()

    def stated(epsilon: float, scale: float) -> om.Problem:
        apart = om.DistributionPrivacy(epsilon, [([1, 0], [0, 1])], divergence=name, scale=[scale])
        return om.Problem(even, loss, constraints=[apart])

    design = optimum(stated(0.0, 1.0))
    assert design.objective == pytest.approx(0.5)
    assert optimum(stated(1e-4, 1.0)).objective < 0.5 - 0.4e-4
    (price,) = prices.of_constraints(design)
    assert np.isnan(price.rate)
    assert np.isnan(price.change())
    (price,) = prices.of_constraints(optimum(stated(0.0, 0.0)))
    assert price.rate == 0, "with scale 0 no ε moves the limit"
