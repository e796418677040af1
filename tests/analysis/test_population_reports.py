"""δ of independent reports about a population, and of tuples, against full enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om


def enumerated(p: np.ndarray, q: np.ndarray, k: int, epsilon: float) -> float:
    """The larger of Σ max(0, p^k - e^ε q^k) and the same the other way, over all sequences."""
    found = 0.0
    for a, b in ((p, q), (q, p)):
        first, second = np.ones(1), np.ones(1)
        for _ in range(k):
            first, second = np.outer(first, a).ravel(), np.outer(second, b).ravel()
        found = max(found, math.fsum(np.maximum(first - math.exp(epsilon) * second, 0.0).tolist()))
    return found


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([0.0, 0.3, 1.0]))
def test_reports_about_a_population(seed: int, k: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    n, m = (int(v) for v in rng.integers(2, 5, 2))
    rows = rng.integers(0, 6, (n, m))
    rows[:, 0] += 1
    mechanism = om.Mechanism(
        om.Domain.range(n), om.Domain.range(m), rows / rows.sum(axis=1, keepdims=True)
    )
    lam, mu = rng.integers(0, 4, (2, n))
    lam[0] += 1
    mu[-1] += 1
    truth = enumerated(
        lam / lam.sum() @ mechanism.matrix, mu / mu.sum() @ mechanism.matrix, k, epsilon
    )
    found = om.leakage.repeated(mechanism, k).distribution_delta(lam, mu, epsilon)
    assert found.lower <= truth + 1e-12
    assert truth <= found.upper + 1e-12
    assert found.upper - found.lower <= 2e-3


def test_one_report_is_the_measure() -> None:
    line = om.Domain.range(4)
    m = om.mechanisms.geometric(line, 0.8)
    a, b = [4, 3, 2, 1], [1, 2, 3, 4]
    found = om.leakage.repeated(m, 1).distribution_delta(a, b, "ln 3/2")
    truth = om.measures.distribution_delta(m, np.array(a) / 10, np.array(b) / 10, math.log(1.5))
    assert found.lower - 1e-3 <= truth <= found.upper + 1e-3
    many = om.leakage.repeated(m, 40).distribution_delta(a, b, 1)
    assert found.upper < many.lower <= many.upper <= 1
    with pytest.raises(om.ProblemError, match="3 weights for 4 secrets"):
        om.leakage.repeated(m, 2).distribution_delta(a, [1, 2, 3], 1)


@pytest.mark.parametrize("weights", [None, [2, 1, 1], [1, 1, 0]])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_tuples_against_all_tuples(weights, epsilon: float) -> None:
    """Q_λ(t) = (1/n) Σ_i (λA)(t_i) Π_{j≠i} ν(t_j), for all tuples, twice."""
    a = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    base = om.Mechanism(om.Domain.range(2), om.Domain.range(3), a)
    lam, mu = np.array([0.8, 0.2]), np.array([0.3, 0.7])
    nu = np.ones(3) / 3 if weights is None else np.array(weights) / sum(weights)
    laws = []
    for given_law in (lam, mu):
        out = given_law @ a
        laws.append(
            [
                sum(out[t[i]] * math.prod(nu[t[j]] for j in range(3) if j != i) for i in range(3))
                / 3
                for t in itertools.product(range(3), repeat=3)
            ]
        )
    p, q = (np.array(law) for law in laws)
    tupling = om.mechanisms.tupling(base, 2, weights)
    for count in (1, 2, 3):
        truth = enumerated(p, q, count, epsilon)
        found = tupling.repeated_delta(lam, mu, epsilon, tuples=count)
        assert found.lower <= truth + 1e-12
        assert truth <= found.upper + 1e-12
        assert found.upper - found.lower <= 5e-3


def test_tuples_that_one_law_never_makes() -> None:
    """The identity, two dummies of two places: λ' never makes the third, which λ reports half of
    the time; and with uniform dummies tuples without place 1 tell the first from the second."""
    same = om.Mechanism(om.Domain.range(3), om.Domain.range(3), np.eye(3))
    found = om.mechanisms.tupling(same, 2, [1, 1, 0]).repeated_delta(
        [1, 1, 2], [1, 1, 0], 0.5, tuples=3
    )
    assert found.lower == pytest.approx(1 - 0.5**3, rel=1e-6)
    assert found.upper == pytest.approx(1 - 0.5**3, rel=1e-6)
    # (2/3)^2 of the tuples of the first have no place 1
    many = om.mechanisms.tupling(same, 2).repeated_delta([1, 0, 0], [0, 1, 0], 9, tuples=5)
    assert 1 - (5 / 9) ** 5 - 1e-6 <= many.lower <= many.upper <= 1
    alike = om.mechanisms.tupling(same, 2).repeated_delta([1, 2, 1], [1, 2, 1], 0.1, tuples=4)
    assert alike.lower == 0
    assert alike.upper < 1e-9


def test_more_tuples_tell_more_and_more_knots_tell_it_closer() -> None:
    m = om.mechanisms.geometric(om.Domain.range(6), 1.0)
    lam, mu = [5, 4, 3, 2, 1, 1], [1, 1, 2, 3, 4, 5]
    tupling = om.mechanisms.tupling(m, 12)
    ends = [tupling.repeated_delta(lam, mu, 0.3, tuples=k, knots=64) for k in (1, 4, 16)]
    assert ends[0].upper < ends[1].lower <= ends[1].upper < ends[2].lower
    fine = tupling.repeated_delta(lam, mu, 0.3, tuples=4, knots=256)
    assert fine.upper - fine.lower < ends[1].upper - ends[1].lower
    assert fine.lower <= ends[1].upper
    assert ends[1].lower <= fine.upper
    with pytest.raises(om.ProblemError, match="tuples"):
        tupling.repeated_delta(lam, mu, 0.3, tuples=0)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_the_geometric_mechanism_in_closed_form(n: int) -> None:
    """With α = e^-ε the columns' maxima are 1/(1+α) at both ends and (1-α)/(1+α) between, the
    minima those times α^(distance to the farthest secret): maximal leakage, additive capacity, and
    ε after k reports."""
    a = math.exp(-0.7)
    m = om.mechanisms.geometric(om.Domain.range(n), 0.7)
    most = (2 + (n - 2) * (1 - a)) / (1 + a)
    assert om.leakage.maximal_leakage(m) == pytest.approx(math.log(most), rel=1e-12)
    ends = 2 * a ** (n - 1) / (1 + a)
    inner = sum((1 - a) / (1 + a) * a ** max(o, n - 1 - o) for o in range(1, n - 1))
    assert om.leakage.additive_capacity(m) == pytest.approx(1 - ends - inner, rel=1e-12)
    assert om.leakage.repeated(m, 6).epsilon == pytest.approx(6 * 0.7 * (n - 1), rel=1e-12)
