"""How much more one mechanism can leak for a known prior: closed forms, brute force, refinement."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import optmech as om


def mechanism(rows: np.ndarray) -> om.Mechanism:
    n, k = rows.shape
    return om.Mechanism(om.Domain.range(n), om.Domain.range(k), rows / rows.sum(1, keepdims=True))


def vulnerability(m: om.Mechanism, prior: om.Prior, gain: np.ndarray) -> float:
    joint = prior.weights[:, None] * m.matrix
    return float((gain @ joint).max(axis=0).sum())


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_bounds_enclose_the_program_of_gains(seed: int) -> None:
    """Written out over gains: one guess for every observable of both, at most 1, and 0."""
    rng = np.random.default_rng(seed)
    n, k, z = (int(v) for v in rng.integers(2, 5, 3))
    a = mechanism(rng.integers(0, 5, (n, k)) + np.eye(n, k, dtype=int) + (np.arange(k) == 0))
    b = mechanism(rng.integers(0, 5, (n, z)) + (np.arange(z) == 0))
    weights = rng.integers(0, 5, n)
    weights[0] += 1
    prior = om.Prior(a.secrets, weights)
    first, second = (prior.weights[:, None] * m.matrix for m in (a, b))
    # variables: gains of the guesses for b (z, n), then what a earns at each observable (k,)
    cost = np.concatenate([-second.T.ravel(), np.ones(k)])
    rows = np.zeros((k * z, z * n + k))
    for y in range(k):
        for w in range(z):
            rows[y * z + w, w * n : (w + 1) * n] = first[:, y]
            rows[y * z + w, z * n + y] = -1
    limits = [(None, 1)] * (z * n) + [(0, None)] * k
    best = -linprog(cost, rows, np.zeros(k * z), bounds=limits).fun
    found = om.leakage.refinement_distance(a, b, prior)
    assert found.lower - 1e-9 <= best <= found.upper + 1e-9
    assert found.upper - found.lower <= 1e-9
    assert found.gain.max() <= 1
    more = vulnerability(b, prior, found.gain) - vulnerability(a, prior, found.gain)
    assert more == pytest.approx(found.lower, abs=1e-9)


def test_nothing_against_the_identity() -> None:
    """What tells nothing of a uniform secret makes 1/n of the identity: gains 1 if right, and
    -(n - 1) less if wrong."""
    domain = om.Domain.range(5)
    prior = om.Prior.uniform(domain)
    blind = mechanism(np.ones((5, 1)))
    sharp = mechanism(np.eye(5))
    found = om.leakage.refinement_distance(blind, sharp, prior)
    assert found.lower == pytest.approx(1, abs=1e-9)
    assert found.upper == 1
    back = om.leakage.refinement_distance(sharp, blind, prior)
    assert (back.lower, back.upper) == (0, 0)


def test_what_is_refined_leaks_no_more() -> None:
    rng = np.random.default_rng(3)
    a = mechanism(rng.integers(1, 6, (4, 3)))
    blur = mechanism(rng.integers(1, 4, (3, 2)))
    b = a.then(om.Mechanism(a.observables, om.Domain.range(2), blur.matrix))
    prior = om.Prior(a.secrets, [4, 1, 2, 2])
    found = om.leakage.refinement_distance(a, b, prior)
    assert found.lower == 0
    assert found.upper < 1e-9
    ever = om.leakage.refinement_distance(b, a, prior)
    assert ever.lower >= 0.01
    other = om.Mechanism(om.Domain(list("abcd")), a.observables, a.matrix)
    with pytest.raises(om.ProblemError, match="different secrets"):
        om.leakage.refinement_distance(a, other, prior)


def test_priors_over_other_secrets_are_refused() -> None:
    a = om.Mechanism(om.Domain(["a", "b"]), om.Domain([0, 1]), [[0.7, 0.3], [0.2, 0.8]])
    other = om.Prior(om.Domain(["b", "a"]), [0.2, 0.8])
    even = om.leakage.refinement_distance(a, a, [0.5, 0.5])  # type: ignore[arg-type]
    assert even == om.leakage.refinement_distance(a, a, om.Prior.uniform(a.secrets))
    for prior in (None, [0.5, 0.2, 0.3], other):
        with pytest.raises(om.ProblemError, match="prior"):
            om.leakage.refinement_distance(a, a, prior)  # type: ignore[arg-type]
    several = om.leakage.repeated(a, 3)
    uniform = om.Prior.uniform(a.secrets)
    with pytest.raises(om.ProblemError, match="second"):
        several.distribution_delta(uniform, other, 1)
    swapped = several.distribution_delta(uniform, om.Prior(a.secrets, [0.8, 0.2]), 1)
    assert swapped == several.distribution_delta(uniform, [0.8, 0.2], 1)


def test_beyond_the_range_of_floats_there_is_nothing_left() -> None:
    a = om.Mechanism(om.Domain(["a", "b"]), om.Domain([0, 1]), [[0.7, 0.3], [0.2, 0.8]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = om.leakage.repeated(a, 2).delta(1e6)
    assert (found.lower, found.upper) == (0.0, 0.0)
