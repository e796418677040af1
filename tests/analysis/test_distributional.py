"""Numbers of distribution privacy against their definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import distributions, mechanisms, randomized_response, spread_distributions

import optmech as om
from optmech import distributional


def subsets(count: int) -> list[np.ndarray]:
    chosen = itertools.chain.from_iterable(
        itertools.combinations(range(count), r) for r in range(count + 1)
    )
    return [np.array(c, dtype=int) for c in chosen]


def is_private(p: np.ndarray, q: np.ndarray, epsilon: float, delta: float) -> bool:
    """DP19 Def. 8 over every event, both ways."""
    factor = math.exp(epsilon)
    return all(
        p[r].sum() <= factor * q[r].sum() + delta and q[r].sum() <= factor * p[r].sum() + delta
        for r in subsets(len(p))
    )


@given(st.data(), mechanisms(most=4))
def test_all_pairs_by_events(data: st.DataObject, m: om.Mechanism) -> None:
    lams = [data.draw(distributions(len(m.secrets))) for _ in range(3)]
    for delta in (0.0, 0.1):
        found = distributional.pairwise_epsilon(m, lams, delta)
        assert (found.values == found.values.T).all()
        for i, j in itertools.combinations(range(3), 2):
            p, q = m.push(lams[i]), m.push(lams[j])
            if found.values[i, j] < math.inf:
                assert is_private(p, q, found.values[i, j] + 1e-12, delta + 1e-12)
            if found.values[i, j] > 1e-6:
                below = min(found.values[i, j], 50.0) - 1e-6
                assert not is_private(p, q, below, delta)
        i, j = found.worst_pair
        assert found.values[i, j] == found.worst


def rational(values: np.ndarray) -> list[Fraction]:
    """The small fractions that drawn floats stand for."""
    return [Fraction(value).limit_denominator(100) for value in values.tolist()]


def least_exception(p: list[Fraction], q: list[Fraction], factor: Fraction) -> Fraction:
    """The least δ of DP19 Def. 16, word for word and in fractions: of all exceptional sets outside
    which all events, and that is all points, are private, the one of least probability."""
    return min(
        max(sum((p[o] for o in out), Fraction(0)), sum((q[o] for o in out), Fraction(0)))
        for out in (set(chosen.tolist()) for chosen in subsets(len(p)))
        if all(
            p[o] <= factor * q[o] and q[o] <= factor * p[o] for o in range(len(p)) if o not in out
        )
    )


@given(st.data(), mechanisms(most=4), st.sampled_from(["1", "21/20", "4/3", "2"]))
def test_probabilistic_by_its_definition(data: st.DataObject, m: om.Mechanism, factor: str) -> None:
    """Ratios of the drawn fractions are e^ε or differ from it by far more than floats round."""
    epsilon = f"ln {factor}"
    lams = [data.draw(distributions(len(m.secrets))) for _ in range(2)]
    rows = [rational(row) for row in m.matrix]
    p, q = (
        [
            sum(w * x for w, x in zip(rational(lam), column, strict=True))
            for column in zip(*rows, strict=True)
        ]
        for lam in lams
    )
    delta = distributional.probabilistic_delta(m, *lams, epsilon)
    assert delta == pytest.approx(float(least_exception(p, q, Fraction(factor))), abs=1e-14)
    # Proposition 9
    assert om.measures.distribution_delta(m, *lams, epsilon) <= delta + 1e-12
    back = distributional.probabilistic_epsilon(m, *lams, min(delta, 1.0))
    assert back <= math.log(Fraction(factor))
    assert distributional.probabilistic_delta(m, *lams, back) <= delta * (1 + 1e-14)


@given(st.data(), st.integers(2, 40))
def test_a_constant_mechanism_tells_nothing(data: st.DataObject, count: int) -> None:
    """Both pushes are the row, but for the rounding of their sums."""
    row = data.draw(st.one_of(distributions(5), spread_distributions(5)))
    m = om.Mechanism(om.Domain.range(count), om.Domain.range(5), np.tile(row, (count, 1)))
    seed = data.draw(st.integers(0, 10**6))
    lam0, lam1 = np.random.default_rng(seed).dirichlet(np.full(count, 0.3), 2)
    assert distributional.probabilistic_delta(m, lam0, lam1, 0.0) == 0
    assert distributional.probabilistic_epsilon(m, lam0, lam1, 0.0) == 0


def test_probabilistic_by_hand() -> None:
    m = om.Mechanism(om.Domain("ab"), om.Domain.range(3), [[0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
    a, b = [1, 0], [0, 1]
    assert distributional.probabilistic_delta(m, a, b, 0.0) == pytest.approx(0.7)
    assert distributional.probabilistic_delta(m, a, b, "ln 2") == pytest.approx(0.4)
    assert distributional.probabilistic_delta(m, a, b, "ln 4") == 0
    assert distributional.probabilistic_epsilon(m, a, b, 0.4) == pytest.approx(math.log(2))
    assert distributional.probabilistic_epsilon(m, a, b, 0.39) == pytest.approx(math.log(4))


def test_extended_per_unit_of_distance() -> None:
    m = randomized_response(3, 1.2)
    lams = list(np.eye(3))
    apart = np.array([[0, 1, 4], [1, 0, 2], [4, 2, 0.0]])
    assert distributional.extended_epsilon(m, lams, apart) == pytest.approx(1.2)
    assert distributional.extended_epsilon(m, lams, apart * 0) == math.inf
    flat = randomized_response(3, 0.0)
    assert distributional.extended_epsilon(flat, lams, apart * 0) == 0
    with pytest.raises(om.ProblemError, match="Give"):
        distributional.extended_epsilon(m, lams, apart[:2])


def test_metric_privacy_gives_w_infinity() -> None:
    """DP19 Theorem 2 with its tight constant, on random distributions."""
    line = om.Domain.range(6)
    m = om.mechanisms.geometric(line, 0.7)
    rng = np.random.default_rng(0)
    lams = list(rng.dirichlet(np.full(6, 0.4), 5))
    d = om.distances.euclidean()(line, line)
    apart = [[om.transport.wasserstein(a, b, d, math.inf).value for a in lams] for b in lams]
    assert distributional.extended_epsilon(m, lams, apart) <= 0.7 * (1 + 1e-12)


def test_bayes_factors_move_the_odds() -> None:
    m = randomized_response(2, math.log(3))
    factors = distributional.bayes_factors(m, [0.9, 0.1], [0.2, 0.8])
    p, q = m.push([0.9, 0.1]), m.push([0.2, 0.8])
    odds = 0.3 / 0.7
    posterior = 0.3 * p / (0.3 * p + 0.7 * q)
    np.testing.assert_allclose(factors * odds, posterior / (1 - posterior))


@given(st.data(), mechanisms(most=5))
def test_attack_of_two_is_total_variation(data: st.DataObject, m: om.Mechanism) -> None:
    lams = [data.draw(distributions(len(m.secrets))) for _ in range(2)]
    found = distributional.attack_success(m, lams)
    tv = 0.5 * np.abs(m.push(lams[0]) - m.push(lams[1])).sum()
    assert found.accuracy == pytest.approx((1 + tv) / 2)
    assert found.per_distribution.mean() == pytest.approx(found.accuracy)


def test_attack_beats_every_other_rule() -> None:
    rng = np.random.default_rng(1)
    m = om.Mechanism(om.Domain.range(3), om.Domain.range(4), rng.dirichlet(np.ones(4), 3))
    lams, share = list(rng.dirichlet(np.ones(3), 3)), np.array([0.5, 0.3, 0.2])
    found = distributional.attack_success(m, lams, [5, 3, 2])
    outputs = np.array([m.push(lam) for lam in lams])
    best = max(
        sum(share[t] * outputs[t, o] for o, t in enumerate(rule))
        for rule in itertools.product(range(3), repeat=4)
    )
    assert found.accuracy == pytest.approx(best)
    assert found.blind == 0.5
    simulated = distributional.simulated_success(m, lams, 100_000, weights=[5, 3, 2], seed=3)
    assert simulated == pytest.approx(best, abs=5 * 0.5 / math.sqrt(100_000))


def test_errors_name_the_distribution() -> None:
    m = randomized_response(2, 1.0)
    with pytest.raises(om.ProblemError) as caught:
        distributional.attack_success(m, [[1, 0], [1, 0, 0]])
    assert caught.value.where == "lams[1]"
    with pytest.raises(om.ProblemError, match="positive sum"):
        distributional.attack_success(m, [[1, 0], [0, 1]], [0, 0])


def test_no_distributions_are_refused() -> None:
    m = om.Mechanism(om.Domain.range(2), om.Domain.range(2), [[0.5, 0.5], [0.25, 0.75]])
    with pytest.raises(om.ProblemError, match="no distribution"):
        om.distributional.pairwise_epsilon(m, [])
    with pytest.raises(om.ProblemError, match="no distribution"):
        om.distributional.extended_epsilon(m, [], np.zeros((0, 0)))
