"""Transport between rows, and populations that are known roughly, against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from strategies import distributions, mechanisms

import optmech as om
from optmech import divergences as d, guarantees

few = settings(max_examples=25, deadline=None)
SETS = [list(s) for k in range(4) for s in itertools.combinations(range(3), k)]
NAMES = ("kl", "reverse_kl", "tv", "chi2", "hellinger")


def close(p: np.ndarray, q: np.ndarray, epsilon: float, delta: float) -> bool:
    """p(S) <= e^ε q(S) + δ for all sets S, one by one."""
    return all(p[s].sum() <= math.exp(epsilon) * q[s].sum() + delta + 1e-12 for s in SETS)


def transported(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> float:
    """The least Σ γ c by a solver of linear programs."""
    n, m = cost.shape
    rows = [np.kron(np.eye(n)[i], np.ones(m)) for i in range(n)]
    rows += [np.kron(np.ones(n), np.eye(m)[j]) for j in range(m)]
    found = linprog(cost.ravel(), A_eq=np.array(rows), b_eq=np.concatenate([a, b]))
    return float(found.fun)


def around(lam: np.ndarray, rho: float) -> list[np.ndarray]:
    """The corners of the ball of total variation, by brute force: mass taken from one order of
    places, put on one."""
    out = []
    for order in itertools.permutations(range(len(lam))):
        for target in range(len(lam)):
            moved, left = lam.copy(), rho
            for k in order:
                taken = min(left, moved[k])
                moved[k] -= taken
                left -= taken
            moved[target] += rho - left
            out.append(moved)
    return out


@few
@given(m=mechanisms(least=3, most=3), data=st.data(), name=st.sampled_from(NAMES))
def test_transport_between_rows_is_the_least_and_holds(m, data, name) -> None:
    a, b = data.draw(distributions(3)), data.draw(distributions(3))
    found = d.by_transport(m, a, b, divergence=name)
    measure = {"kl": d.kl, "reverse_kl": d.reverse_kl, "tv": d.total_variation,
               "chi2": d.chi_squared, "hellinger": d.squared_hellinger}[name]  # fmt: skip
    assert measure(m.push(a), m.push(b)) <= found.epsilon * (1 + 1e-9) + 1e-12
    cost = np.array([[measure(p, q) for q in m.matrix] for p in m.matrix])
    if np.isfinite(cost).all():
        assert found.epsilon == pytest.approx(transported(a, b, cost), rel=1e-6, abs=1e-9)
    assert "in this order" in found.pairs


@few
@given(m=mechanisms(least=3, most=3), data=st.data(), epsilon=st.sampled_from([0.0, 0.1, 0.7, 2.0]))
def test_each_epsilon_has_its_delta(m, data, epsilon) -> None:
    a, b = data.draw(distributions(3)), data.draw(distributions(3))
    found = d.by_transport(m, a, b, epsilon=epsilon)
    assert close(m.push(a), m.push(b), found.epsilon, found.delta)
    cost = np.array(
        [[np.maximum(p - math.exp(epsilon) * q, 0).sum() for q in m.matrix] for p in m.matrix]
    )
    assert found.delta == pytest.approx(transported(a, b, cost), abs=1e-9)


def test_infinite_costs_are_avoided_where_they_can_be() -> None:
    domain = om.Domain("abc")
    m = om.Mechanism(domain, domain, [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]])
    # a to b and c to c: KL(a || b) = ln 2
    found = d.by_transport(m, ["1/2", 0, "1/2"], [0, "1/2", "1/2"], divergence="kl")
    assert found.epsilon == pytest.approx(math.log(2) / 2, rel=1e-9)
    far = d.by_transport(m, [0, 0.5, 0.5], [0.5, 0, 0.5], divergence="kl")
    assert far.epsilon == math.inf
    assert d.by_transport(m, [1, 0, 0], [0, 0, 1], divergence="tv").epsilon == 1


def test_transport_beats_what_w_infinity_and_w_1_say() -> None:
    line = om.Domain.range(12)
    m = om.mechanisms.geometric(line, 0.5)
    apart = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    rng = np.random.default_rng(4)
    a, b = rng.dirichlet(np.ones(12), 2)
    euclidean = om.distances.euclidean()
    for name in ("tv", "kl"):
        rate = d.point_epsilon(m, name, euclidean)
        known = guarantees.lift_metric_pair(
            guarantees.points(rate, per="d", divergence=name), a, b, apart
        ).epsilon
        assert d.by_transport(m, a, b, divergence=name).epsilon < known


def test_what_does_not_fit_is_refused() -> None:
    m = om.mechanisms.geometric(om.Domain.range(3), 1.0)
    for arguments in ({}, {"divergence": "kl", "epsilon": 1}, {"divergence": "wave"}):
        with pytest.raises(om.ProblemError):
            d.by_transport(m, [1, 0, 0], [0, 0, 1], **arguments)
    with pytest.raises(om.ProblemError, match="2 weights for 3 secrets"):
        d.by_transport(m, [1, 0], [0, 0, 1], divergence="kl")
    with pytest.raises(om.ProblemError):
        guarantees.estimated(guarantees.points(1), 0.1, 0.1)
    with pytest.raises(om.ProblemError):
        guarantees.estimated(guarantees.distributions(1, 0, "p"), 1.5, 0.1)
    with pytest.raises(om.ProblemError):
        guarantees.mixtures(guarantees.probabilistic(1, 0.1, "p"))


@few
@given(
    m=mechanisms(least=3, most=3), data=st.data(),
    first=st.sampled_from([0.0, 0.05, 0.3]), second=st.sampled_from([0.0, 0.1]),
)  # fmt: skip
def test_the_worst_populations_of_two_balls(m, data, first, second) -> None:
    a, b = data.draw(distributions(3)), data.draw(distributions(3))
    found = guarantees.estimated_pair(m, a, b, first=first, second=second)
    one = np.array(around(np.asarray(a) / np.sum(a), first)) @ m.matrix
    other = np.array(around(np.asarray(b) / np.sum(b), second)) @ m.matrix
    top, bottom = one.max(axis=0), other.min(axis=0)
    used = top > 1e-15
    if (bottom[used] > 1e-12).all():
        worst = max(0.0, float(np.log(top[used] / bottom[used]).max()))
        assert found.epsilon == pytest.approx(worst, rel=1e-9, abs=1e-9)
    rough = guarantees.estimated(guarantees.distributions(0.4, 0.01, "the pair"), first, second)
    if close(m.push(a), m.push(b), 0.4, 0.01):
        for p in one:
            for q in other:
                assert close(p, q, rough.epsilon, rough.delta)


def test_total_variation_around_estimates_is_attained() -> None:
    premise = guarantees.distributions(0, 0, "the pair")
    found = guarantees.estimated(premise, 0.1, 0.2)
    # two reports, the identity, equal estimates: 0.5 + 0.1 against 0.5 - 0.2
    assert found.delta == pytest.approx(0.3)
    assert guarantees.estimated(
        guarantees.distributions(0.25, 0, "the pair", divergence="tv"), 0.1, 0.2
    ).epsilon == pytest.approx(0.55)


@few
@given(data=st.data(), epsilons=st.tuples(*[st.sampled_from([0.0, 0.2, 1.0])] * 2))
def test_estimated_inputs_of_two_kernels(data, epsilons) -> None:
    kernels = [data.draw(mechanisms(least=3, most=3)) for _ in range(2)]
    actual = [np.asarray(data.draw(distributions(3))) for _ in range(2)]
    assumed = [np.asarray(data.draw(distributions(3))) for _ in range(2)]
    out = [kernel.push(lam) for kernel, lam in zip(kernels, assumed, strict=True)]
    between = d.hockey_stick(out[0], out[1], 0.3)
    near = d.hockey_stick(actual[0], assumed[0], epsilons[0])
    far = d.hockey_stick(assumed[1], actual[1], epsilons[1])
    premise = guarantees.distributions(0.3, between, "the estimates")
    found = guarantees.misestimated_inputs(premise, (epsilons[0], near), (epsilons[1], far))
    assert found.epsilon == pytest.approx(0.3 + sum(epsilons))
    outputs = [kernel.push(lam) for kernel, lam in zip(kernels, actual, strict=True)]
    assert close(outputs[0], outputs[1], found.epsilon, found.delta)
    plain = guarantees.misestimated_inputs(
        guarantees.distributions(0, 0, "equal outputs"), (0, 0.1), (0, 0.02)
    )
    assert (plain.epsilon, plain.delta) == (0, pytest.approx(0.12))


@few
@given(m=mechanisms(least=3, most=3), data=st.data())
def test_mixtures_of_two_sets_cost_nothing(m, data) -> None:
    sides = [[np.asarray(data.draw(distributions(3))) for _ in range(2)] for _ in range(2)]
    shares = [np.asarray(data.draw(distributions(2))) for _ in range(2)]
    worst = max(d.hockey_stick(m.push(a), m.push(b), 0.2) for a in sides[0] for b in sides[1])
    found = guarantees.mixtures(guarantees.distributions(0.2, worst, "the towns"))
    one, other = (share @ np.array(side) for share, side in zip(shares, sides, strict=True))
    assert close(m.push(one), m.push(other), found.epsilon, found.delta)
    assert found.pairs == "mixtures of the sides of the towns"
    most = max(d.squared_hellinger(m.push(a), m.push(b)) for a in sides[0] for b in sides[1])
    assert d.squared_hellinger(m.push(one), m.push(other)) <= most + 1e-12


@few
@given(data=st.data(), epsilon=st.sampled_from([0.3, 1.0]))
def test_carrying_over_is_between_the_truth_and_w_infinity(data, epsilon) -> None:
    line = om.Domain.range(5)
    m = om.mechanisms.geometric(line, epsilon)
    apart = om.distances.euclidean()(line, line)
    a, b = data.draw(distributions(5)), data.draw(distributions(5))
    exactly = guarantees.lift_metric_pair(guarantees.points(epsilon, per="d"), a, b, apart)
    roughly = guarantees.lift_metric_pair(guarantees.points(epsilon, 0.01, per="d"), a, b, apart)
    longest = om.transport.wasserstein(a, b, apart, math.inf).value
    spent = max(d.max_divergence(m.push(a), m.push(b)), d.max_divergence(m.push(b), m.push(a)))
    assert spent <= exactly.epsilon + 1e-9
    assert exactly.epsilon <= epsilon * longest * (1 + 1e-9) + 1e-9
    assert roughly.epsilon == pytest.approx(exactly.epsilon, rel=1e-9, abs=1e-12)
    assert roughly.delta == pytest.approx(0.01)
    known = (
        guarantees.carry_over(epsilon * apart, a, b),
        guarantees.carry_over(epsilon * apart, b, a),
    )
    assert exactly.epsilon == pytest.approx(max(k.upper for k in known), rel=1e-9, abs=1e-9)
