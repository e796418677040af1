"""What is refused everywhere: budgets beyond [0, 1], and numbers that are not whole."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from each import each
from optmech_traces import ConditionalPrivacy, GaussianPrior, MarkovPrior, leakage_about, rbf
from optmech_traces.gaussian.subsets import worst_subset

import optmech as om
from optmech import guarantees
from optmech.exact import arguments

M = om.mechanisms.randomized_response(om.Domain("ab"), 1.0)
PAIR = ([1, 0], [0, 1])
APART = np.array([[0.0, 1.0], [1.0, 0.0]])
WALK = MarkovPrior(om.Domain("ab"), [1, 1], np.full((2, 2), 0.5))

DELTAS: dict[str, Callable[[object], object]] = {
    "epsilon_for_delta": lambda x: om.measures.epsilon_for_delta(M, x),
    "distribution_epsilon": lambda x: om.measures.distribution_epsilon(M, *PAIR, x),
    "curve": lambda x: om.measures.hockey_stick_curve([0.5, 0.5], [0.1, 0.9]).epsilon(x),
    "pairwise_epsilon": lambda x: om.distributional.pairwise_epsilon(M, PAIR, x),
    "extended_epsilon": lambda x: om.distributional.extended_epsilon(M, PAIR, APART, delta=x),
    "probabilistic_epsilon": lambda x: om.distributional.probabilistic_epsilon(M, *PAIR, x),
    "max_divergence": lambda x: om.divergences.max_divergence([0.5, 0.5], [0.1, 0.9], x),
    "tupling": lambda x: om.mechanisms.tupling(M, 1).epsilon(*PAIR, x),
    "theorem3": lambda x: om.mechanisms.theorem3_epsilon(10, 5, 0.1, delta=x),
    "points": lambda x: guarantees.points(1.0, x),
    "distributions": lambda x: guarantees.distributions(1.0, x, "all"),
    "optimal_target": lambda x: om.mechanisms.optimal_target(PAIR, APART, 0.1, delta=x),
    "conditional": lambda x: ConditionalPrivacy(1.0, lags=1, delta=x),
    "metric": lambda x: om.MetricPrivacy(1.0, om.distances.hamming(), delta=x),
    "differential": lambda x: om.DifferentialPrivacy(1.0, delta=x),
    "distribution": lambda x: om.DistributionPrivacy(1.0, [PAIR], delta=x),
}


@each("name", sorted(DELTAS))
@each("value", [5, 1.0000000000000002, "3/2", -0.1, math.nan, math.inf, True])
def test_budgets_are_probabilities(name: str, value: object) -> None:
    with pytest.raises(om.ProblemError, match=r"^delta: .*(above 1|not|negative)"):
        DELTAS[name](value)


WHOLES: dict[str, Callable[[object], object]] = {
    "dummies": lambda x: om.mechanisms.tupling(M, x),
    "nodes": lambda x: om.mechanisms.tupling(M, 1).delta(*PAIR, 0.1, nodes=x),
    "samples": lambda x: om.distributional.simulated_success(M, PAIR, x),
    "stability": lambda x: guarantees.pre_process(guarantees.distributions(1, 0, "all"), x),
    "steps": lambda x: om.guarantees.pre_process(
        om.guarantees.distributions(1, 0, "all", divergence="tv"), x
    ),
    "count": om.Domain.range,
    "time": lambda x: leakage_about(WALK, [M, M], x),
    "limit": lambda x: leakage_about(WALK, [M, M], 0, limit=x),
    "marginals": WALK.marginals,
    "conditional": lambda x: WALK.conditional(1, x),
    "lags": lambda x: ConditionalPrivacy(1.0, times=x),
    "size": lambda x: worst_subset(GaussianPrior([0, 1, 2], rbf(1.0)), 1.0, x, 1.0, 2.0),
    "sample": lambda x: M.sample("a", size=x),
    "seed": lambda x: M.sample("a", seed=x),
}


@each("name", sorted(WHOLES))
@each("value", [1.5, -1, True, "3", math.nan, None])
def test_whole_numbers(name: str, value: object) -> None:
    if value is None and name in ("sample", "seed", "size"):
        return
    with pytest.raises(om.ProblemError, match="not a whole number"):
        WHOLES[name](value)


def test_the_readers_themselves() -> None:
    assert arguments.whole(np.int64(3), "x") == 3
    assert arguments.whole(-3, "x", least=None) == -3
    with pytest.raises(om.ProblemError, match=r"x: 11 is not a whole number from 1 to 10"):
        arguments.whole(11, "x", least=1, most=10)
    with pytest.raises(om.ProblemError, match="a number of 20001 bits"):
        arguments.whole(2**20000, "x", most=10)
    assert arguments.probability(1) == arguments.probability("1/1") == 1
    assert arguments.probability(0) == 0
    with pytest.raises(om.ProblemError, match="above 0"):
        arguments.probability(0, positive=True)
    # a little more than one whose float is one
    with pytest.raises(om.ProblemError, match="above 1"):
        arguments.probability("1.00000000000000000001")
    with pytest.raises(om.ProblemError, match="not 2 numbers >= 0"):
        arguments.weights([1.0, 2.0, 3.0], "x", 2)
    with pytest.raises(om.ProblemError, match="least entry -1"):
        arguments.weights([1.0, -1.0], "x")
    with pytest.raises(om.ProblemError, match="sum inf"):
        arguments.distribution([1e308, 1e308], "x")
    with pytest.raises(om.ProblemError, match="least entry -1"):
        arguments.nonnegative([[0.0, -1.0]], "x", (1, 2))
