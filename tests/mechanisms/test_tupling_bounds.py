"""Intervals of the tupling mechanism hold the values of fractions, over entries of any size."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import exact_numbers as exact
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import distributions, spread_distributions

import optmech as om
from optmech import mechanisms
from optmech.mechanisms import hockey_sum

Law = dict[tuple[int, ...], Fraction]


@st.composite
def cases(draw: st.DrawFn) -> tuple[mechanisms.Tupling, np.ndarray, np.ndarray]:
    secrets, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def some(count: int) -> np.ndarray:
        return draw(st.one_of(distributions(count), spread_distributions(count)))

    base = om.Mechanism(
        om.Domain.range(secrets),
        om.Domain.range(outputs),
        np.array([some(outputs) for _ in range(secrets)]),
    )
    made = mechanisms.tupling(base, draw(st.integers(0, 2)), some(outputs))
    return made, some(secrets), some(secrets)


def law(made: mechanisms.Tupling, lam: np.ndarray) -> Law:
    """Q#λ in fractions: the dummies' weights over their exact sum, all else as the floats are."""
    weights = om.Prior(made.base.secrets, lam).weights
    output = exact.push([Fraction(float(x)) for x in weights], made.base.matrix)
    nu, n = exact.shares(made.dummy_weights), made.dummies + 1
    return {
        word: sum(
            output[word[i]]
            * math.prod((nu[word[j]] for j in range(n) if j != i), start=Fraction(1))
            for i in range(n)
        )
        / n
        for word in itertools.product(range(len(nu)), repeat=n)
    }


def both(case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray]) -> tuple[list, list]:
    made, lam0, lam1 = case
    return list(law(made, lam0).values()), list(law(made, lam1).values())


@settings(max_examples=60)
@given(cases(), st.sampled_from([0.0, 0.1, 2.0, 14.0, 40.0]))
def test_delta(case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray], epsilon: float) -> None:
    p, q = both(case)
    expected = max(exact.hockey_stick(p, q, epsilon), exact.hockey_stick(q, p, epsilon))
    found = case[0].delta(*case[1:], epsilon)
    assert found.lower <= expected <= found.upper
    if epsilon <= 14:
        assert found.upper - float(expected) < 4e-14 * (1 + math.exp(epsilon))


@settings(max_examples=25)
@given(case=cases(), epsilon=st.sampled_from([0.0, 0.1, 2.0]))
def test_delta_on_the_lattice(
    case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray], epsilon: float
) -> None:
    p, q = both(case)
    expected = max(exact.hockey_stick(p, q, epsilon), exact.hockey_stick(q, p, epsilon))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hockey_sum, "_MOST_MULTISETS", 0)
        found = case[0].delta(*case[1:], epsilon, nodes=2**12)
    assert found.lower <= expected <= found.upper


@settings(max_examples=100)
@given(cases())
def test_epsilon_without_delta(case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray]) -> None:
    p, q = both(case)
    expected = max(exact.max_divergence(p, q), exact.max_divergence(q, p))
    found = case[0].epsilon(*case[1:], 0)
    assert found.lower <= max(expected, 0) <= found.upper
    assert found.lower == found.upper == math.inf or found.width < 1e-14 * (2 + found.upper)


@settings(max_examples=25)
@given(cases(), st.sampled_from([1e-3, 0.1]))
def test_epsilon(case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray], budget: float) -> None:
    p, q = both(case)
    found = case[0].epsilon(*case[1:], budget)
    delta = Fraction(budget)
    expected = max(exact.least_epsilon(p, q, delta), exact.least_epsilon(q, p, delta))
    assert found.lower <= expected <= found.upper


@settings(max_examples=40)
@given(cases())
def test_kl(case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray]) -> None:
    p, q = both(case)
    found = case[0].kl(*case[1:], nodes=2**12)
    # the formula's value; laws that do not sum to one exactly differ by that from a divergence
    assert found.lower <= max(exact.kl(p, q), 0) + 1e-15
    assert exact.kl(p, q) <= found.upper


def test_ratios_that_differ_in_the_last_digits() -> None:
    """Logarithms of either number alone lose what the two have in common."""
    a = [7.310816383344432e-271, 0.3, 0.7]
    b = [3.3904115917435964e-271, 0.3, 0.7]
    base = om.Mechanism(om.Domain.range(2), om.Domain.range(3), [a, b])
    found = mechanisms.tupling(base, 2).epsilon([1, 0], [0, 1], 0)
    truth = exact.log(Fraction(a[0]) / Fraction(b[0]))
    assert found.lower <= truth <= found.upper
    assert found.width < 1e-14
    near = om.Mechanism(
        om.Domain.range(2), om.Domain.range(2), [[0.5, 0.5], [0.5 - 1e-9, 0.5 + 1e-9]]
    )
    found = mechanisms.tupling(near, 2).epsilon([1, 0], [0, 1], 0)
    truth = exact.log(Fraction(0.5) / Fraction(0.5 - 1e-9))
    assert found.lower <= truth <= found.upper


@pytest.mark.parametrize("count", [3_000, 40_000])
def test_the_sum_over_many_secrets_is_charged(count: int) -> None:
    rng = np.random.default_rng(count)
    column = rng.random(count)
    base = om.Mechanism(
        om.Domain.range(count), om.Domain.range(2), np.column_stack([column, 1 - column])
    )
    made = mechanisms.tupling(base, 0)
    lams = [om.Prior(base.secrets, rng.random(count)).weights for _ in range(2)]
    outputs = [exact.push([Fraction(x) for x in lam.tolist()], base.matrix) for lam in lams]
    for epsilon in (0.0, 0.3):
        truth = max(
            exact.hockey_stick(*outputs, epsilon), exact.hockey_stick(*outputs[::-1], epsilon)
        )
        found = made.delta(*lams, epsilon)
        assert found.lower <= truth <= found.upper
        assert found.width < 1e-12


def test_thousands_of_dummies_over_two_places() -> None:
    """Binomial by hand: the count of the first place under either, summed in fractions."""
    base = om.Mechanism(om.Domain.range(2), om.Domain.range(2), [[0.75, 0.25], [0.25, 0.75]])
    n = 1001
    found = mechanisms.tupling(base, n - 1).delta([1, 0], [0, 1], 0.0)
    expected = sum(
        math.comb(n, i) * max(Fraction(0), Fraction(2 * i - n, n)) for i in range(n + 1)
    ) / Fraction(2**n)
    # terms 0.75/0.5 - 0.25/0.5 = 1 and -1
    assert found.lower <= expected <= found.upper
    assert found.width < 1e-4
