"""Calibration against closed forms, and subsets against brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from optmech_traces.gaussian.loss import least

import optmech as om
from optmech import traces

TEN = np.arange(10.0)


@pytest.mark.parametrize("ball", [False, True])
def test_one_secret_of_independent_points(ball: bool) -> None:
    trace = traces.GaussianPrior(TEN, traces.white(1.0))
    sigma = traces.calibrate(trace, 0.5, [4], 2.0, 3.0, ball=ball)
    assert sigma == pytest.approx(math.sqrt(3 * 4 / (2 * 0.5)), rel=1e-8)


@settings(max_examples=20)
@given(st.floats(0.01, 20), st.floats(0.3, 4), st.booleans())
def test_the_loss_at_the_returned_deviation_is_kept(
    epsilon: float, length: float, ball: bool
) -> None:
    trace = traces.GaussianPrior(TEN[:6], traces.rbf(length))
    sigma = traces.calibrate(trace, epsilon, [0, 2, 4], 1.0, 2.0, ball=ball)
    for variance in (sigma**2, sigma * sigma, np.float64(sigma) ** 2):
        assert traces.privacy_loss(trace, variance, [0, 2, 4], 1.0, 2.0, ball=ball).upper <= epsilon
    less = (sigma * (1 - 2e-9)) ** 2
    assert traces.privacy_loss(trace, less, [0, 2, 4], 1.0, 2.0, ball=ball).upper > epsilon


def test_the_ball_has_a_closed_form() -> None:
    """σ² is the top eigenvalue of B Bᵀ/κ − C, κ = 2ε/(λ r² m)."""
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    s, u = [0, 2, 4, 6, 8], [1, 3, 5, 7, 9]
    k = trace.covariance
    gain = k[np.ix_(u, s)] @ np.linalg.inv(k[np.ix_(s, s)])
    b, c = np.zeros((10, 5)), np.zeros((10, 10))
    b[s], b[u] = np.eye(5), gain
    c[np.ix_(u, u)] = k[np.ix_(u, u)] - gain @ k[np.ix_(s, u)]
    kappa = 2 * 1.0 / (2 * 1.0 * 5)
    expected = float(np.linalg.eigvalsh(b @ b.T / kappa - c)[-1])
    assert traces.calibrate(trace, 1.0, s, 1.0, 2.0, ball=True) ** 2 == pytest.approx(
        expected, rel=1e-8
    )


def test_exact_strings_are_kept() -> None:
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    sigma = traces.calibrate(trace, "ln 3", [0], 1.0, 2.0)
    assert traces.privacy_loss(trace, sigma**2, [0], 1.0, 2.0).upper <= math.log(3)


@pytest.mark.parametrize("start", [1e-3, 1.0, 2.0, 50.0])
def test_the_search_does_not_depend_on_its_start(start: float) -> None:
    assert least(lambda x: 8 / x**3, 1.0, start) == pytest.approx(2.0, rel=2e-9)
    assert 8 / least(lambda x: 8 / x**3, 1.0, start) ** 3 <= 1.0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, "two"])
def test_bad_promises_are_refused(epsilon: object) -> None:
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    with pytest.raises(om.ProblemError, match=r"^epsilon"):
        traces.calibrate(trace, epsilon, [0], 1.0, 2.0)  # type: ignore[arg-type]


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.booleans())
def test_subsets_against_brute_force(seed: int, ball: bool) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.2, 1.5, 5))
    dimensions = int(rng.integers(1, 3))
    trace = traces.GaussianPrior(times, traces.rbf(rng.uniform(0.3, 2)), dimensions)
    root = rng.standard_normal((5, 5))
    noise = root @ root.T + 0.2 * np.eye(5)
    found = traces.worst_subset(trace, noise, 4, 1.0, 2.0, ball=ball)
    # one by one, through the formula of the paper instead of the posterior
    losses = {
        chosen: traces.privacy_loss(trace, noise, chosen, 1.0, 2.0, ball=ball)
        for k in range(1, 5)
        for chosen in itertools.combinations(range(5), k)
    }
    worst = max(losses, key=lambda chosen: losses[chosen].lower)
    assert found.count == len(losses) == 30
    assert found.secrets == worst
    assert found.loss.lower == pytest.approx(losses[worst].lower, rel=1e-11)
    assert found.upper >= max(loss.lower for loss in losses.values())
    for size, loss in found.by_size:
        expected = max(v.lower for c, v in losses.items() if len(c) == size)
        assert loss.lower == pytest.approx(expected, rel=1e-11)


def test_more_secrets_can_be_protected_better() -> None:
    """Why every subset has to be looked at: the loss does not grow with the set."""
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    found = traces.worst_subset(trace, 1.0, 10, 1.0, 2.0)
    everything = traces.privacy_loss(trace, 1.0, range(10), 1.0, 2.0)
    assert found.count == 1023
    assert len(found.secrets) == 8
    assert found.loss.lower > 1.9 * everything.upper


def test_subsets_that_cannot_be_counted_are_refused() -> None:
    trace = traces.GaussianPrior(np.arange(50.0), traces.rbf(1.0))
    with pytest.raises(om.ProblemError, match="20,875 sets"):
        traces.worst_subset(trace, 1.0, 3, 1.0, 2.0)
    with pytest.raises(om.ProblemError, match=r"^size"):
        traces.worst_subset(trace, 1.0, 0, 1.0, 2.0)
    with pytest.raises(om.ProblemError, match=r"^among\[1\]"):
        traces.worst_subset(trace, 1.0, 1, 1.0, 2.0, among=[0, 70])
    with pytest.raises(om.ProblemError, match="no bound"):
        traces.worst_subset(trace, 0.0, 1, 1.0, 2.0)
    assert traces.worst_subset(trace, 1.0, 2, 1.0, 2.0, among=[3, 4, 9]).count == 6


@pytest.mark.parametrize("variance", [1e300, 8e307, 1e308, 1.7e308])
@pytest.mark.parametrize("ball", [False, True])
def test_the_largest_noise_is_not_infinite(variance: float, ball: bool) -> None:
    """Positions without correlation: λ r²/(2 σ²)."""
    trace = traces.GaussianPrior(TEN[:2], traces.white(1.0))
    found = traces.privacy_loss(trace, variance, [0], 1e150, 2.0, ball=ball)
    exact = Fraction(1e150) ** 2 / Fraction(variance)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)
    assert found.upper == pytest.approx(float(exact), rel=1e-12)


def test_the_least_normal_variance_is_not_rounded() -> None:
    """Half of it is denormal, and has a digit less."""
    trace = traces.GaussianPrior(TEN[:2], traces.white(1.0))
    variance = math.ldexp(2**52 + 3, -1074)
    found = traces.privacy_loss(trace, variance, [0], 1e-154, 2.0)
    exact = Fraction(1e-154) ** 2 / Fraction(variance)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)


@pytest.mark.parametrize("epsilon", [1e-250, 1.0, 1e250])
@pytest.mark.parametrize("radius", [1e-200, 1e-120, 1.0, 1e120, 1e200])
@pytest.mark.parametrize("order", [1.0, 1e300])
def test_noise_of_any_magnitude_keeps_the_promise_or_is_refused(
    epsilon: float, radius: float, order: float
) -> None:
    """Positions without correlation need σ² = λ r²/(2ε) on the secret."""
    trace = traces.GaussianPrior(TEN[:2], traces.white(1.0))
    variance = Fraction(order) * Fraction(radius) ** 2 / (2 * Fraction(epsilon))
    try:
        sigma = traces.calibrate(trace, epsilon, [0], radius, order)
    except om.OptmechError:
        assert not Fraction(10) ** -290 < variance < Fraction(10) ** 290
    else:
        assert Fraction(sigma) ** 2 >= variance
    try:
        design = traces.optimal_noise(trace, epsilon, [[0]], radius, order)
    except om.OptmechError:
        assert not Fraction(10) ** -290 < variance < Fraction(10) ** 290
    else:
        assert Fraction(design.covariance[0, 0]) >= variance
        assert Fraction(design.lower_bound) <= variance
