"""Divergence privacy of mechanisms, and the theorems that carry it, on random mechanisms; with
counterexamples to what CM19 states too widely."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import distributions, mechanisms

import optmech as om
from optmech import divergences as d, guarantees

few = settings(max_examples=20)
F_DIVERGENCES = ["kl", "reverse_kl", "tv", "chi2", "hellinger"]
NAMES = [*F_DIVERGENCES, "max"]
FUNCTION = {
    "kl": d.kl,
    "reverse_kl": d.reverse_kl,
    "tv": d.total_variation,
    "chi2": d.chi_squared,
    "hellinger": d.squared_hellinger,
    "max": d.max_divergence,
}


def joint(first: om.Mechanism, second: om.Mechanism) -> om.Mechanism:
    """Both outputs on the same input."""
    matrix = np.einsum("so,sp->sop", first.matrix, second.matrix).reshape(len(first.matrix), -1)
    return om.Mechanism(first.secrets, om.Domain.range(matrix.shape[1]), matrix)


def test_least_epsilon_of_points_and_pairs() -> None:
    line = om.Domain.range(3)
    rows = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])
    m = om.Mechanism(line, line, rows)
    by_hand = max(d.kl(rows[i], rows[j]) / abs(i - j) for i in range(3) for j in range(3) if i != j)
    assert d.point_epsilon(m, "kl", om.distances.euclidean()) == by_hand
    assert d.point_epsilon(m, "kl", pairs=[(0, 1)]) == pytest.approx(0.25 * math.log(2))
    lam, other = [1, 0, 0], [0, 1, 1]
    there, back = (FUNCTION["chi2"](*pair) for pair in ((rows[0], rows[1:].mean(axis=0)),) * 2)
    back = d.chi_squared(rows[1:].mean(axis=0), rows[0])
    assert d.epsilon_of_distributions(m, [(lam, other)], "chi2") == max(there, back)
    halved = d.epsilon_of_distributions(m, [(lam, other)], "chi2", scale=[2.0])
    assert halved == max(there, back) / 2
    assert d.epsilon_of_distributions(m, [(lam, other)], "chi_squared", scale=[0.0]) == math.inf
    assert d.epsilon_of_distributions(m, [(lam, lam)], "kl", scale=[0.0]) == 0
    assert d.epsilon_of_distributions(m, [(lam, other)], "max") == pytest.approx(
        om.measures.distribution_epsilon(m, lam, other)
    )
    table = d.pairwise(m, [lam, other, [0, 0, 1]], lambda p, q: d.renyi(p, q, 2))
    assert table.values.shape == (3, 3)
    assert table.worst == pytest.approx(max(d.renyi(rows[0], rows[2], 2),
                                            d.renyi(rows[2], rows[0], 2)))  # fmt: skip


def test_bad_arguments_are_refused() -> None:
    m = om.mechanisms.randomized_response(om.Domain("ab"), 1.0)
    with pytest.raises(om.ProblemError, match="divergence 'renyi' is unknown"):
        d.point_epsilon(m, "renyi")
    with pytest.raises(om.ProblemError, match="scale"):
        d.epsilon_of_distributions(m, [([1, 0], [0, 1])], "kl", scale=[1.0, 2.0])
    with pytest.raises(om.ProblemError, match=r"pairs\[0\]"):
        d.epsilon_of_distributions(m, [([1, 0, 0], [0, 1])], "kl")
    with pytest.raises(om.ProblemError, match="there is no pair"):
        d.epsilon_of_distributions(m, [], "kl")


@pytest.mark.parametrize("name", NAMES)
@few
@given(data=st.data(), m=mechanisms(least=2, most=4))
def test_points_lift_to_distributions(name: str, data: st.DataObject, m: om.Mechanism) -> None:
    """CM19 Theorem 1, with all pairs adjacent."""
    epsilon = d.point_epsilon(m, name)
    pair = tuple(data.draw(distributions(len(m.secrets))) for _ in range(2))
    found = d.epsilon_of_distributions(m, [pair], name)
    assert found <= epsilon * (1 + 1e-12) + 1e-12
    if math.isfinite(epsilon):
        lifted = guarantees.lift(guarantees.points(epsilon, divergence=name))
        assert (lifted.epsilon, lifted.of) == (epsilon, "distributions")


@pytest.mark.parametrize("name", NAMES)
@few
@given(data=st.data())
def test_metric_guarantees_lift_with_the_earth_mover(name: str, data: st.DataObject) -> None:
    """CM19 Theorem 2 with W_1, and W_∞ for the max divergence."""
    line = om.Domain.range(4)
    m = om.mechanisms.geometric(line, 0.7)
    euclidean = om.distances.euclidean()
    table = euclidean(line, line)
    premise = guarantees.points(d.point_epsilon(m, name, euclidean), per="km", divergence=name)
    pair = tuple(data.draw(distributions(4)) for _ in range(2))
    found = guarantees.lift_metric_pair(premise, *pair, table)
    assert d.epsilon_of_distributions(m, [pair], name) <= found.epsilon * (1 + 1e-9) + 1e-12
    assert guarantees.lift(premise).per == ("W_∞ of km" if name == "max" else "W_1 of km")


def test_max_divergence_does_not_lift_with_the_earth_mover() -> None:
    """λ0 = (1-α) δ_0 + α δ_2, λ1 = δ_0: ln(1 - α + α e^{2ε}) > 2 α ε by convexity."""
    line, epsilon, share = om.Domain.range(3), 1.0, 0.1
    m = om.mechanisms.geometric(line, epsilon)
    lam0, lam1 = [1 - share, 0.0, share], [1.0, 0.0, 0.0]
    moved = om.transport.wasserstein(lam0, lam1, om.distances.euclidean()(line, line)).value
    assert moved == pytest.approx(2 * share)
    found = d.epsilon_of_distributions(m, [(lam0, lam1)], "max")
    assert found == pytest.approx(math.log(1 - share + share * math.exp(2 * epsilon)))
    assert found > epsilon * moved * 1.5


@pytest.mark.parametrize("name", NAMES)
@few
@given(data=st.data(), first=mechanisms(3, 3, zeros=False), second=mechanisms(3, 3, zeros=False))
def test_composition(
    name: str, data: st.DataObject, first: om.Mechanism, second: om.Mechanism
) -> None:
    """Without zeros every divergence is finite, and no example is vacuous."""
    rates = [d.point_epsilon(m, name) for m in (first, second)]
    spent = d.point_epsilon(joint(first, second), name)
    bound = guarantees.compose_shared(
        *(guarantees.points(rate, divergence=name) for rate in rates)
    ).epsilon
    assert spent <= bound * (1 + 1e-12) + 1e-12
    assert math.isfinite(bound)
    outputs, rates = [], []
    for m in (first, second):
        lams = [data.draw(distributions(3)) for _ in range(2)]
        outputs.append([m.push(lam) for lam in lams])
        rates.append(d.epsilon_of_distributions(m, [tuple(lams)], name))
    both = guarantees.compose_independent(
        *(guarantees.distributions(rate, 0, "the two", divergence=name) for rate in rates)
    )
    assert math.isfinite(both.epsilon)
    p = np.outer(outputs[0][0], outputs[1][0]).ravel()
    q = np.outer(outputs[0][1], outputs[1][1]).ravel()
    for pair in ((p, q), (q, p)):
        assert FUNCTION[name](*pair) <= both.epsilon * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_composition_is_attained(name: str) -> None:
    """Two points; noise that is the same part of the time attains the bound also for "tv"."""
    rows = [[0.75, 0.25, 0.0], [0.75, 0.0, 0.25]] if name == "tv" else [[0.7, 0.3], [0.4, 0.6]]
    m = om.Mechanism(om.Domain("ab"), om.Domain.range(len(rows[0])), rows)
    pair = (np.array(rows[0]), np.array(rows[1]))
    rate = FUNCTION[name](*pair)
    both = tuple(np.outer(side, side).ravel() for side in pair)
    bound = guarantees.compose_shared(
        guarantees.points(rate, divergence=name), guarantees.points(rate, divergence=name)
    ).epsilon
    assert FUNCTION[name](*both) == pytest.approx(bound, rel=1e-12)
    assert d.point_epsilon(joint(m, m), name) >= bound * (1 - 1e-12)


@few
@given(data=st.data(), first=mechanisms(2, 3, zeros=False))
def test_shared_inputs_compose_within_a_lifted_relation(
    data: st.DataObject, first: om.Mechanism
) -> None:
    """CM19 Prop. 3: all pairs of points, a second mechanism that looks at the first one's output,
    any two distributions."""
    count = len(first.secrets)
    later = [
        np.array([data.draw(distributions(2, zeros=False)) for _ in range(count)])
        for _ in first.observables.labels
    ]
    rates = [d.point_epsilon(first, "kl")]
    rates.append(
        max(d.point_epsilon(om.Mechanism(first.secrets, om.Domain("xy"), k), "kl") for k in later)
    )
    both = np.hstack([first.matrix[:, [y]] * k for y, k in enumerate(later)])
    lam0, lam1 = data.draw(distributions(count)), data.draw(distributions(count))
    bound = guarantees.lift(
        guarantees.compose_shared(*(guarantees.points(rate, divergence="kl") for rate in rates))
    )
    assert bound.of == "distributions"
    assert d.kl(lam0 @ both, lam1 @ both) <= bound.epsilon * (1 + 1e-12) + 1e-12


def test_shared_inputs_do_not_compose_for_arbitrary_pairs() -> None:
    """Two bits say nothing about their exclusive or, together they say all. CM19 Prop. 3 is about
    Φ#, and no Φ within which this pair couples leaves both bits private."""
    bits = om.Domain([(0, 0), (0, 1), (1, 0), (1, 1)])
    one, two = (
        om.Mechanism(bits, om.Domain((0, 1)), [[1.0 - w[k], w[k]] for w in bits.labels])
        for k in (0, 1)
    )
    pair = ([0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0])
    assert d.epsilon_of_distributions(one, [pair], "kl") == 0
    assert d.epsilon_of_distributions(two, [pair], "kl") == 0
    assert d.epsilon_of_distributions(joint(one, two), [pair], "kl") == math.inf
    crossed = itertools.product([(0, 1), (0, 2)], [(3, 1), (3, 2)])
    for relation in ([*ways] for ways in crossed if len({j for _, j in ways}) == 2):
        phi = np.zeros((4, 4), bool)
        phi[tuple(zip(*relation, strict=True))] = True
        assert isinstance(om.transport.lifted(*pair, phi), om.transport.Coupling)
        assert math.inf in [d.point_epsilon(m, "kl", pairs=relation) for m in (one, two)]
    premise = guarantees.distributions(0.0, 0, "even and odd", divergence="kl")
    with pytest.raises(om.ProblemError, match="one of points is needed"):
        guarantees.compose_shared(premise, premise)


def test_pre_processing_needs_a_triangle_inequality() -> None:
    """CM19 Prop. 8 (1) is false: two steps of KL at most 1/2 that are more than 4 apart."""
    tiny = 2e-3
    near = np.array([0.05, 0.95])
    middle = np.array([tiny, 1 - tiny])
    far = np.array([tiny * math.exp(-0.4 / tiny), 1.0])
    assert max(d.kl(near, middle), d.kl(middle, far)) <= 0.5
    assert d.kl(near, far) > 4
    for name in ("kl", "reverse_kl", "chi2"):
        with pytest.raises(om.ProblemError, match="no triangle inequality"):
            guarantees.pre_process(guarantees.distributions(0.5, 0, "Ψ", divergence=name), 2)
    assert (
        guarantees.pre_process(
            guarantees.distributions(0.5, 0, "all", per="W_1", divergence="kl"), 2
        ).epsilon
        == 1.0
    )
    assert (
        guarantees.pre_process(guarantees.distributions(0.6, 0, "Ψ", divergence="tv"), 2).epsilon
        == 1.0
    )
    assert guarantees.pre_process(
        guarantees.distributions(0.05, 0, "Ψ", divergence="hellinger"), 3
    ).epsilon == pytest.approx(0.45)
    with pytest.raises(om.ProblemError, match="whole number"):
        guarantees.pre_process(guarantees.distributions(0.5, 0, "Ψ", divergence="tv"), 1.5)


@few
@given(data=st.data(), steps=st.integers(1, 3))
def test_hellinger_steps_add_as_roots(data: st.DataObject, steps: int) -> None:
    chain = [data.draw(distributions(4)) for _ in range(steps + 1)]
    step = max(d.squared_hellinger(a, b) for a, b in itertools.pairwise(chain))
    bound = guarantees.pre_process(
        guarantees.distributions(step, 0, "Ψ", divergence="hellinger"), steps
    ).epsilon
    assert d.squared_hellinger(chain[0], chain[-1]) <= bound + 1e-12


def test_pairs_couple_or_are_refused_with_a_set() -> None:
    near = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1
    premise = guarantees.points(0.5, 0, "neighbours on a line", divergence="kl")
    found = guarantees.lift_pair(premise, [1, 1, 0, 0], [0, 1, 1, 0], near)
    assert isinstance(found, om.guarantees.Guarantee)
    assert found.epsilon == 0.5
    assert isinstance(
        guarantees.lift_pair(premise, [1, 0, 0, 0], [0, 0, 1, 0], near), om.transport.Violation
    )
    assert "CM19 Theorem 1" in str(guarantees.post_process(found))
    metric = guarantees.points(0.5, per="km", divergence="kl")
    with pytest.raises(om.ProblemError, match="lift_metric_pair"):
        guarantees.lift_pair(metric, [1, 0, 0, 0], [0, 1, 0, 0], near)
    with pytest.raises(om.ProblemError, match="lift_pair"):
        guarantees.lift_metric_pair(premise, [1, 0], [0, 1], np.ones((2, 2)))
    with pytest.raises(om.ProblemError, match="same divergence"):
        guarantees.compose_shared(
            premise, guarantees.points(0.5, 0, "neighbours on a line", divergence="tv")
        )
    chi = guarantees.points(0.5, per="km", divergence="chi2")
    with pytest.raises(om.ProblemError, match="faster"):
        guarantees.compose_shared(chi, chi)
