"""Divergences of exact distributions: never below the truth, and what follows from that."""

from __future__ import annotations

from fractions import Fraction

import exact_numbers as exact
import numpy as np
from hypothesis import given, settings, strategies as st
from strategies import distributions, spread_distributions

import optmech as om
from optmech.spaces.rationals import Shares
from optmech.transport.outputs import max_divergence

LINE = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
ANY = st.one_of(distributions(4, zeros=False), spread_distributions(4, zeros=False))


@given(ANY, ANY)
def test_rounded_upwards_from_the_exact_ratio(p: np.ndarray, q: np.ndarray) -> None:
    one, two = Shares.of(p, "p"), Shares.of(q, "q")
    truth = exact.max_divergence(one.fractions, two.fractions)
    found = max_divergence(one, two)
    assert truth <= found <= truth * (1 + 1e-15)


def test_neighbours_of_two_hundred_bits() -> None:
    base = 3**120
    p = Shares.reduced([base + 1, base])
    q = Shares.reduced([base, base + 1])
    truth = exact.log(Fraction(base + 1, base))
    assert truth <= max_divergence(p, q) <= truth * (1 + 1e-15)
    assert max_divergence(p, p) == 0


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_nothing_is_lost_where_nothing_need_be_changed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = list(rng.dirichlet(np.ones(4), 3))
    least = om.mechanisms.no_obfuscation_epsilon(inputs)
    assert om.mechanisms.optimal_target(inputs, LINE, least).loss == 0


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(1e-9, 1.0))
def test_no_misestimation_exceeds_its_bound(seed: int, closeness: float) -> None:
    rng = np.random.default_rng(seed)
    inputs = rng.dirichlet(np.ones(4), 2)
    design = om.mechanisms.optimal_target(list(inputs), LINE)
    actual = inputs * np.exp(closeness * rng.choice([-1.0, 1.0], inputs.shape))
    found = design.under(list(actual / actual.sum(axis=1, keepdims=True)))
    for name, value in found.divergences.items():
        assert value <= found.bound(name).epsilon
