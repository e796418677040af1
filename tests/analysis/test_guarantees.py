"""Guarantees against mechanisms: what is derived holds, and the constants are attained."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import distributions, mechanisms

import optmech as om
from optmech import guarantees


@given(st.data(), mechanisms(least=2, most=4), st.sampled_from([0.0, 0.2, 1.0]))
def test_theorem_1_without_its_factor(data: st.DataObject, m: om.Mechanism, epsilon: float) -> None:
    """(ε, δ)-DP for all pairs gives (ε, δ)-DistP with the same δ."""
    delta = om.measures.delta(m, epsilon)
    lam0, lam1 = data.draw(distributions(len(m.secrets))), data.draw(distributions(len(m.secrets)))
    lifted = guarantees.lift(guarantees.points(epsilon, min(1.0, delta)))
    assert (lifted.of, lifted.epsilon, lifted.delta) == ("distributions", epsilon, min(1.0, delta))
    assert om.measures.distribution_delta(m, lam0, lam1, epsilon) <= lifted.delta + 1e-12


def test_theorem_1_is_attained_by_points() -> None:
    m = om.Mechanism(om.Domain("ab"), om.Domain("xy"), [[0.7, 0.3], [0.4, 0.6]])
    delta = om.measures.delta(m, 0.1)
    assert om.measures.distribution_delta(m, [1, 0], [0, 1], 0.1) == pytest.approx(delta)


def test_pairs_couple_or_are_refused_with_a_set() -> None:
    near = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1
    premise = guarantees.points(0.5, 0.01, "neighbours on a line")
    found = guarantees.lift_pair(premise, [1, 1, 0, 0], [0, 1, 1, 0], near)
    assert isinstance(found, guarantees.Guarantee)
    assert (found.epsilon, found.delta) == (0.5, 0.01)
    refused = guarantees.lift_pair(premise, [1, 0, 0, 0], [0, 0, 1, 0], near)
    assert isinstance(refused, om.transport.Violation)
    assert refused.sources.tolist() == [0]
    assert refused.missing == 1


@given(st.data())
def test_metric_pairs_hold_for_the_geometric_mechanism(data: st.DataObject) -> None:
    line = om.Domain.range(5)
    m = om.mechanisms.geometric(line, 0.8)
    d = om.distances.euclidean()(line, line)
    lam0, lam1 = data.draw(distributions(5)), data.draw(distributions(5))
    found = guarantees.lift_metric_pair(guarantees.points(0.8, per="km"), lam0, lam1, d)
    assert found.delta < 1e-14
    spent = om.measures.distribution_delta(m, lam0, lam1, found.epsilon + 1e-12)
    assert spent <= found.delta + 1e-13


@given(mechanisms(least=3, most=3), mechanisms(least=3, most=3), st.data())
def test_shared_input_composes_points(
    first: om.Mechanism, second: om.Mechanism, data: st.DataObject
) -> None:
    rates = data.draw(st.sampled_from([(0.0, 0.3), (0.5, 0.5), (1.0, 0.1)]))
    spent = [om.measures.delta(m, e) for m, e in zip((first, second), rates, strict=True)]
    premises = [guarantees.points(e, min(1.0, x)) for e, x in zip(rates, spent, strict=True)]
    both = guarantees.compose_shared(*premises)
    joint = joint_mechanism(first, second)
    assert om.measures.delta(joint, both.epsilon) <= both.delta + 1e-12


def joint_mechanism(first: om.Mechanism, second: om.Mechanism) -> om.Mechanism:
    """Both outputs on the same input."""
    matrix = np.einsum("so,sp->sop", first.matrix, second.matrix).reshape(len(first.matrix), -1)
    return om.Mechanism(first.secrets, om.Domain.range(matrix.shape[1]), matrix)


def test_shared_input_fails_for_given_distributions() -> None:
    """Two bits, each of which says nothing about their exclusive or, and together say all."""
    bits = om.Domain([(0, 0), (0, 1), (1, 0), (1, 1)])
    one, two = (
        om.Mechanism(bits, om.Domain((0, 1)), [[1.0 - w[k], w[k]] for w in bits.labels])
        for k in (0, 1)
    )
    even, odd = [0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0]
    for m in (one, two):
        assert om.measures.distribution_epsilon(m, even, odd) == 0
    assert om.measures.distribution_epsilon(joint_mechanism(one, two), even, odd) == math.inf
    premise = guarantees.distributions(0.0, 0.0, "even and odd")
    with pytest.raises(om.ProblemError, match="one of points is needed"):
        guarantees.compose_shared(premise, premise)


@given(mechanisms(least=2, most=3), mechanisms(least=2, most=3), st.data())
def test_independent_inputs_compose_distributions(
    first: om.Mechanism, second: om.Mechanism, data: st.DataObject
) -> None:
    outputs, premises = [], []
    for m in (first, second):
        lams = [data.draw(distributions(len(m.secrets))) for _ in range(2)]
        e = data.draw(st.sampled_from([0.0, 0.4]))
        spent = om.measures.distribution_delta(m, *lams, e)
        premises.append(guarantees.distributions(e, min(1.0, spent), "the two"))
        outputs.append([m.push(lam) for lam in lams])
    both = guarantees.compose_independent(*premises)
    p = np.outer(outputs[0][0], outputs[1][0]).ravel()
    q = np.outer(outputs[0][1], outputs[1][1]).ravel()
    for a, b in ((p, q), (q, p)):
        assert np.maximum(a - math.exp(both.epsilon) * b, 0).sum() <= both.delta + 1e-12


def test_post_processing_keeps_and_says_so() -> None:
    premise = guarantees.distributions(0.3, 0.01, "men and women")
    found = guarantees.post_process(premise)
    assert (found.epsilon, found.delta) == (0.3, 0.01)
    assert "Proposition 6" in str(found)
    assert "men and women" in str(found)


def test_pre_processing_compounds_delta() -> None:
    """A chain of three neighbours that attains the two-step bound."""
    e, delta = math.log(2), 0.1
    a = delta + 2 * (delta + 2 * 0.1)
    rows = [[a, 1 - a], [delta + 2 * 0.1, 1 - delta - 0.2], [0.1, 0.9]]
    m = om.Mechanism(om.Domain.range(3), om.Domain.range(2), rows)
    assert om.measures.delta(m, e, pairs=[(0, 1), (1, 2)]) == pytest.approx(delta)
    premise = guarantees.distributions("ln 2", delta, "neighbours")
    found = guarantees.pre_process(premise, 2)
    assert found.epsilon == pytest.approx(2 * e)
    assert found.delta == pytest.approx(delta * 3)
    assert om.measures.delta(m, found.epsilon, pairs=[(0, 2)]) == pytest.approx(found.delta)
    extended = guarantees.pre_process(guarantees.distributions(0.2, 0.1, "all", per="W_1"), 3)
    assert (extended.epsilon, extended.delta) == (pytest.approx(0.6), 0.1)


def test_close_beliefs() -> None:
    found = guarantees.close_beliefs(guarantees.distributions("ln 2", 0.01, "Ψ"))
    assert found.epsilon == pytest.approx(3 * math.log(2))
    assert found.delta == pytest.approx(0.01 * (1 + 2 + 4))
    metric = guarantees.distributions(0.5, 0.0, "all", per="W_∞")
    assert guarantees.close_beliefs_metric(metric, 3.0, 0.25).epsilon == pytest.approx(0.5 * 3.5)
    loose = guarantees.distributions(0.5, 0.01, "all", per="W_∞")
    assert guarantees.close_beliefs_metric(loose, 3.0, 0.25).delta == pytest.approx(
        0.01 * (1 + math.exp(0.125) + math.exp(1.625))
    )


def test_misuse_is_refused() -> None:
    plain, metric = guarantees.points(0.5), guarantees.points(0.5, per="km")
    with pytest.raises(om.ProblemError, match="same pairs"):
        guarantees.compose_shared(plain, metric)
    with pytest.raises(om.ProblemError, match="lift_metric_pair"):
        guarantees.lift_pair(metric, [1, 0], [0, 1], np.ones((2, 2), dtype=bool))
    with pytest.raises(om.ProblemError, match="lift_pair"):
        guarantees.lift_metric_pair(plain, [1, 0], [0, 1], np.ones((2, 2)))
    with pytest.raises(om.ProblemError, match="above 1"):
        guarantees.points(0.5, 1.5)
    with pytest.raises(om.ProblemError, match="whole number"):
        guarantees.pre_process(guarantees.lift(plain), 0)
    with pytest.raises(om.ProblemError, match="close_beliefs_metric"):
        guarantees.close_beliefs(guarantees.lift(metric))
    with pytest.raises(om.ProblemError, match="close_beliefs"):
        guarantees.close_beliefs_metric(guarantees.lift(plain), 1.0, 1.0)


@given(st.data(), mechanisms(least=2, most=4), st.sampled_from([0.0, 0.3, 1.0]))
def test_probabilistic_and_plain_distribution_privacy(
    data: st.DataObject, m: om.Mechanism, epsilon: float
) -> None:
    """DP19 Prop. 8 and 9 against the exact measures; at δ = 0 they are the same."""
    from optmech.analysis.distributional import probabilistic_delta

    pair = data.draw(distributions(len(m.secrets))), data.draw(distributions(len(m.secrets)))
    delta = min(1.0, om.measures.distribution_delta(m, *pair, epsilon))
    loud = min(1.0, probabilistic_delta(m, *pair, epsilon))
    plain = guarantees.from_probabilistic(guarantees.probabilistic(epsilon, loud, "the pair"))
    assert (plain.of, plain.epsilon, plain.delta) == ("distributions", epsilon, loud)
    assert delta <= plain.delta + 1e-12
    premise = guarantees.distributions(epsilon, delta, "the pair")
    for more in (0.1, 1.0, 5.0):
        found = guarantees.to_probabilistic(premise, epsilon + more)
        assert found.of == "probabilistic"
        assert probabilistic_delta(m, *pair, epsilon + more) <= found.delta + 1e-12
    if delta == 0:
        assert guarantees.to_probabilistic(premise).delta == 0
        # ratios of exactly e^ε are decided by rounding
        assert probabilistic_delta(m, *pair, epsilon + 1e-9) == 0


def test_from_plain_to_probabilistic_is_attained() -> None:
    """Two reports with ratios just beyond e^{ε'} and e^{-ε'}: both are left out."""
    epsilon, more = 0.5, 0.1
    beyond = epsilon + more + 1e-9
    t = 1e-3
    p = np.array([t, math.exp(-beyond) * t, 0])
    q = np.array([math.exp(-beyond) * t, t, 0])
    p[2], q[2] = 1 - p.sum(), 1 - q.sum()
    m = om.Mechanism(om.Domain("ab"), om.Domain.range(3), [p, q])
    delta = om.measures.distribution_delta(m, [1, 0], [0, 1], epsilon)
    assert delta == pytest.approx(t * (1 - math.exp(-more)), rel=1e-6)
    found = guarantees.to_probabilistic(
        guarantees.distributions(epsilon, delta, "the pair"), epsilon + more
    )
    assert found.delta == pytest.approx(t + math.exp(-beyond) * t, rel=1e-6)


@given(mechanisms(least=2, most=3), st.integers(0, 3), st.sampled_from([0.0, 0.3, 1.0]))
def test_dummies_keep_every_guarantee(m: om.Mechanism, dummies: int, epsilon: float) -> None:
    """DP19 Prop. 10, for δ > 0 and any dummies as well."""
    delta = min(1.0, om.measures.delta(m, epsilon))
    around = guarantees.with_dummies(guarantees.lift(guarantees.points(epsilon, delta)))
    assert "Proposition 10" in around.theorem
    count = len(m.secrets)
    weights = np.arange(1.0, len(m.observables) + 1)
    made = om.mechanisms.tupling(m, dummies, weights)
    first, last = np.eye(count)[0], np.eye(count)[-1]
    assert made.delta(first, last, epsilon).lower <= around.delta + 1e-12


def test_points_from_distributions() -> None:
    """DP19 Theorem 4: the (ε, δ) of all pairs of distributions is that of the points."""
    plain = guarantees.points(0.5, 0.1, "neighbours")
    back = guarantees.restrict(guarantees.lift(plain))
    assert (back.of, back.pairs, back.epsilon, back.delta) == ("points", "neighbours", 0.5, 0.1)
    metric = guarantees.restrict(guarantees.lift(guarantees.points(0.5, 0.1, per="km")))
    assert (metric.per, metric.pairs) == ("km", "all pairs of points")
    earth = guarantees.distributions(0.5, 0.0, "all pairs of distributions", per="W_1 of km")
    assert guarantees.weaken_metric(earth).per == "W_∞ of km"
    with pytest.raises(om.ProblemError, match="Wasserstein"):
        guarantees.weaken_metric(guarantees.lift(plain))
    with pytest.raises(om.ProblemError, match="distributions is needed"):
        guarantees.restrict(plain)
    with pytest.raises(om.ProblemError, match="not above"):
        guarantees.to_probabilistic(guarantees.distributions(0.5, 0.1, "Ψ"), 0.5)
    with pytest.raises(om.ProblemError, match="own ε"):
        guarantees.to_probabilistic(earth)
    assert "probabilistic distribution privacy" in str(guarantees.probabilistic(1, 0.1, "Ψ"))


def test_a_probabilistic_guarantee_does_not_survive_post_processing() -> None:
    """Reports 0 and 1 told apart: ratios up to 5/4 outside {1}, which has probability 1/25. As one
    report: a ratio of 13/10 with probability 13/25."""
    outputs = om.Domain.range(3)
    m = om.Mechanism(om.Domain.range(2), outputs, [[0.48, 0.04, 0.48], [0.4, 0.0, 0.6]])
    merged = om.Mechanism(om.Domain.range(2), om.Domain.range(2), [[0.52, 0.48], [0.4, 0.6]])
    epsilon = math.log(1.2500001)
    premise = guarantees.probabilistic(epsilon, 0.04, "the two")
    known = om.distributional.probabilistic_delta(m, [1, 0], [0, 1], epsilon)
    assert known == pytest.approx(0.04)
    assert om.distributional.probabilistic_delta(merged, [1, 0], [0, 1], epsilon) > 0.5
    for derive in (guarantees.post_process, guarantees.with_dummies):
        with pytest.raises(om.ProblemError, match="post-processing"):
            derive(premise)
        kept = derive(guarantees.from_probabilistic(premise))
        assert om.measures.distribution_delta(merged, [1, 0], [0, 1], epsilon) <= kept.delta


@pytest.mark.parametrize("divergence", ["max", "kl"])
def test_stated_fractions_are_rounded_up(divergence: str) -> None:
    """1/3 and 2/3 are no floats; what is claimed of them is never less than they are."""
    for top, bottom in ((1, 3), (2, 3), (1, 10), (7, 10), (1, 7), (5, 7)):
        found = guarantees.points(f"{top}/{bottom}", divergence=divergence)
        assert Fraction(found.epsilon) >= Fraction(top, bottom)
        assert found.epsilon <= math.nextafter(top / bottom, math.inf)
    assert Fraction(guarantees.points(0, "1/3").delta) >= Fraction(1, 3)


@pytest.mark.parametrize("units", range(1, 12))
def test_the_least_floats_are_rounded_up(units: int) -> None:
    least = Fraction(math.ulp(0.0))
    premise = guarantees.distributions(0.1, units * math.ulp(0.0), "pairs")
    for steps in range(2, 8):
        grown = sum(Fraction(math.exp(0.1 * k)) for k in range(steps))
        found = guarantees.pre_process(premise, steps).delta
        assert Fraction(found) >= units * least * grown * (1 - Fraction(1, 10**12))
    for rate in (0.11, 0.2, 0.5, 3.0):
        share = (1 + math.exp(-rate)) / (1 - math.exp(0.1 - rate))
        found = guarantees.to_probabilistic(premise, rate).delta
        assert Fraction(found) >= units * least * Fraction(share) * (1 - Fraction(1, 10**12))


def test_one_algebra_for_every_divergence() -> None:
    """Randomised response on a bit that tells the truth with probability 3/4: ε = ln 3, and a KL
    divergence of (1/2) ln 3, twice as much for two answers."""
    m = om.mechanisms.randomized_response(om.Domain("ab"), "ln 3")
    known = om.divergences.kl(*m.matrix)
    assert known == pytest.approx(math.log(3) / 2)
    premise = guarantees.points("ln 3")
    for found in (guarantees.weaken(premise, "kl"), guarantees.points("ln 3", divergence="kl")):
        assert (found.divergence, found.delta) == ("kl", 0)
        assert known <= found.epsilon == pytest.approx(math.log(3))
    measured = guarantees.points(known, divergence="kl")
    twice = guarantees.lift(guarantees.compose_shared(measured, measured))
    assert twice.epsilon == pytest.approx(math.log(3))
    assert "kl divergence at most" in str(twice)
    assert "differential privacy" in str(guarantees.points(1))


def test_only_the_max_divergence_sets_mass_aside() -> None:
    """0.01 of mass on a report that the other input never gives: KL is infinite, whatever ε is."""
    assert om.divergences.kl([0.01, 0.99, 0.0], [0.0, 0.99, 0.01]) == math.inf
    aside = guarantees.points(0.5, 0.01)
    for name in ("kl", "tv", "chi2"):
        with pytest.raises(om.ProblemError, match="set aside"):
            guarantees.weaken(aside, name)
        with pytest.raises(om.ProblemError, match="no mass aside"):
            guarantees.points(0.5, 0.01, divergence=name)
    with pytest.raises(om.ProblemError, match="not probabilistic"):
        guarantees.weaken(guarantees.probabilistic(0.5, 0, "Ψ"), "kl")
    with pytest.raises(om.ProblemError, match="same divergence"):
        guarantees.compose_shared(aside, guarantees.points(0.5, divergence="tv"))
    spread = guarantees.distributions(0.5, 0, "Ψ", divergence="kl")
    for derive in (guarantees.close_beliefs, guarantees.to_probabilistic):
        with pytest.raises(om.ProblemError, match="one of max is needed"):
            derive(spread)
    with pytest.raises(om.ProblemError, match="unknown"):
        guarantees.points(0.5, divergence="renyi")


def test_mass_that_leaves_a_coupling_goes_where_there_is_room() -> None:
    """A mass of 2^-53 has to stay outside: δ holds it for "max", ε for "tv", and nothing for
    "kl"."""
    pair = [0.5, 0.5 - 2.0**-53, 2.0**-53], [0.5, 0.5, 0.0]
    same = np.eye(3, dtype=bool)
    found = guarantees.lift_pair(guarantees.points(1.0, 0.25, "Φ"), *pair, same)
    assert isinstance(found, guarantees.Guarantee)
    assert (found.epsilon, found.divergence) == (1.0, "max")
    assert Fraction(found.delta) + Fraction(2) ** -60 >= 0.25 + 2.0**-53
    moved = guarantees.lift_pair(guarantees.points(0.5, divergence="tv"), *pair, same)
    assert isinstance(moved, guarantees.Guarantee)
    assert Fraction(moved.epsilon) >= Fraction(1, 2) + Fraction(2) ** -53
    assert moved.delta == 0
    with pytest.raises(om.ProblemError, match="too small to matter"):
        guarantees.lift_pair(guarantees.points(0.5, divergence="kl"), *pair, same)
