"""Leakage of sequences of releases against enumeration, and the transport bound against closed
forms and random members of the cone."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import trace_enumeration as brute
from hypothesis import given, settings, strategies as st
from optmech_traces import (
    ConditionalPrivacy,
    FixedPolicy,
    MarkovPrior,
    SequentialDesigner,
    enumerate_releases,
    leakage_about,
    step_leakage,
)
from strategies import spread_distributions

import optmech as om
from optmech.transport.gains import Logs, gains


def gain(p: np.ndarray, q: np.ndarray, bound: np.ndarray) -> float:
    """The least r with p·u <= e^r q·u for every u >= 0 with u[y] <= e^{bound[y, y']} u[y']."""
    with np.errstate(divide="ignore"):
        one, two = np.log(p)[None], np.log(q)[None]
    return float(gains(bound[None], Logs(one, one), Logs(two, two)).upper[0])


LINE = om.Domain.range(3)
EUCLIDEAN = om.distances.euclidean()


def brute_force(prior: MarkovPrior, mechanisms: list[om.Mechanism], time: int) -> np.ndarray:
    """max over releases of ln P(z | x) / P(z | x'), by sums over all traces."""
    cells, steps = len(prior), len(mechanisms)
    table = brute.joint(prior.initial, [prior.transition(t) for t in range(steps - 1)])
    at = brute.marginal(table, time, cells)
    worst = np.full((cells, cells), -np.inf)
    for releases in brute.sequences(cells, steps):
        columns = [m.matrix[:, o] for m, o in zip(mechanisms, releases, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(brute.evidence(table, columns, time, cells) / at)
            worst = np.fmax(worst, logs[:, None] - logs[None, :])
    worst[at == 0] = worst[:, at == 0] = -np.inf
    np.fill_diagonal(worst, -np.inf)
    return worst


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), time=st.integers(0, 3))
def test_exact_against_all_releases_and_all_traces(seed: int, time: int) -> None:
    rng = np.random.default_rng(seed)
    stack = rng.dirichlet(np.ones(3), size=(3, 3))
    stack[rng.random(stack.shape) < 0.2] = 0.0
    stack += 0.2 * np.eye(3)
    prior = MarkovPrior(LINE, rng.dirichlet(np.ones(3)), stack / stack.sum(axis=2, keepdims=True))
    mechanisms = [om.Mechanism(LINE, LINE, rng.dirichlet(np.ones(3), size=3)) for _ in range(4)]
    expected = brute_force(prior, mechanisms, time)
    exact = leakage_about(prior, mechanisms, time)
    np.testing.assert_allclose(exact.pair_lower, expected, atol=1e-9)
    np.testing.assert_allclose(exact.pair_upper, expected, atol=1e-9)
    assert (exact.pair_lower <= expected).all()
    assert (exact.pair_upper >= expected).all()
    coarse, finer = (leakage_about(prior, mechanisms, time, limit=limit) for limit in (1, 8))
    for bounds in (coarse, finer):
        assert (bounds.pair_lower <= expected).all()
        assert (bounds.pair_upper >= expected).all()
    # the farther the enumeration gets, the less is left to the relaxation
    assert finer.upper <= coarse.upper + 1e-6
    x, other = exact.pair
    assert expected[x, other] == expected.max()


def test_impossible_locations_are_no_hypotheses() -> None:
    prior = MarkovPrior(LINE, [1, 1, 0], np.eye(3))
    m = om.mechanisms.randomized_response(LINE, 1.0)
    found = leakage_about(prior, [m, m], 1)
    assert found.lower == pytest.approx(2.0)
    assert np.isneginf(found.pair_upper[2]).all()
    assert np.isneginf(found.pair_upper[:, 2]).all()


def test_whoever_stays_put_pays_every_time_and_whoever_forgets_pays_once() -> None:
    m = om.mechanisms.randomized_response(LINE, 0.3)
    stay = MarkovPrior(LINE, [1, 1, 1], np.eye(3))
    forget = MarkovPrior(LINE, [1, 1, 1], np.full((3, 3), 1 / 3))
    for time in (0, 7, 19):
        # 3^19 sequences: far beyond the limit, so that the bounds have to do it
        found = leakage_about(stay, [m] * 20, time, limit=100)
        assert found.lower == pytest.approx(20 * 0.3)
        assert found.upper == pytest.approx(20 * 0.3)
        assert leakage_about(forget, [m] * 20, time, limit=100).upper == pytest.approx(0.3)


def test_leakage_between_those_extremes_settles() -> None:
    """Cao et al.: on a chain that mixes, backward leakage approaches a limit. Two states, stay with
    chance a, ε per release: r' = ε + ln((a e^r + 1 - a) / ((1 - a) e^r + a))."""
    pair = om.Domain.range(2)
    a, epsilon = 0.9, 0.5
    prior = MarkovPrior(pair, [1, 1], [[a, 1 - a], [1 - a, a]])
    m = om.mechanisms.randomized_response(pair, epsilon)
    r = epsilon
    for _ in range(11):
        r = epsilon + np.log((a * np.exp(r) + 1 - a) / ((1 - a) * np.exp(r) + a))
    found = leakage_about(prior, [m] * 12, 11, limit=10)
    assert found.lower == pytest.approx(r)
    assert found.upper == pytest.approx(r)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), bound=st.floats(0.0, 6.0))
def test_transport_with_one_ratio_is_the_two_level_optimum(seed: int, bound: float) -> None:
    """For u between 1 and e^r the ratio p·u / q·u is largest at a two-level u (linear-fractional),
    found here by trying all of them."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(5, 0.5), size=2)
    ratios = np.full((5, 5), bound)
    np.fill_diagonal(ratios, 0.0)
    best = max(
        np.log((p @ u) / (q @ u))
        for mask in range(32)
        for u in [np.where([mask >> k & 1 for k in range(5)], np.exp(bound), 1.0)]
    )
    assert gain(p, q, ratios) == pytest.approx(max(best, 0.0), abs=1e-6)
    assert gain(p, q, ratios) >= best - 1e-12


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_no_member_of_the_cone_exceeds_the_transport_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.cumsum(rng.random(6))
    ratios = 2.0 * np.abs(points[:, None] - points[None, :])
    p, q = rng.dirichlet(np.full(6, 0.3), size=2)
    p[rng.integers(6)] = 0.0
    found = gain(p / p.sum(), q, ratios)
    # extreme members: least majorants of a point, and their maxima
    cones = np.exp(-ratios)
    for _ in range(100):
        u = (cones * rng.random(6) ** 4).max(axis=1)
        assert np.log((p / p.sum() @ u) / (q @ u)) <= found + 1e-12


def test_nowhere_to_go_is_infinite() -> None:
    ratios = np.array([[0.0, np.inf], [np.inf, 0.0]])
    assert gain(np.array([1.0, 0.0]), np.array([0.0, 1.0]), ratios) == np.inf


def test_steps_of_a_design_are_charged_what_they_state() -> None:
    prior = MarkovPrior(LINE, [0.5, 0.3, 0.2], [[0.7, 0.3, 0], [0.2, 0.6, 0.2], [0, 0.5, 0.5]])
    designer = SequentialDesigner(
        prior, EUCLIDEAN, [om.MetricPrivacy(1, EUCLIDEAN), ConditionalPrivacy(0.3, lags=1)]
    )
    state = designer.start().after(1)
    assert step_leakage(state, 0) == pytest.approx(0.3, abs=1e-6)
    assert step_leakage(state, 1) == pytest.approx(om.measures.epsilon(state.mechanism))
    skipped = SequentialDesigner(
        prior, EUCLIDEAN, [om.DistortionPrivacy(9, EUCLIDEAN)], on_infeasible="skip"
    ).start()
    assert step_leakage(skipped, 0) == 0


def test_leakage_of_fixed_mechanisms_is_that_of_the_enumerated_policy() -> None:
    prior = MarkovPrior.random_walk(LINE, EUCLIDEAN, 0.8)
    m = om.mechanisms.exponential(LINE, 1.0)
    report = enumerate_releases(FixedPolicy(prior, m), EUCLIDEAN, 4)
    for time in range(4):
        assert leakage_about(prior, [m] * 4, time).upper == pytest.approx(report.leakage[time])


def test_bad_input_is_named() -> None:
    prior = MarkovPrior(LINE, [1, 1, 1], np.eye(3))
    m = om.mechanisms.randomized_response(LINE, 1.0)
    with pytest.raises(om.ProblemError, match="no release at time 2 among 2"):
        leakage_about(prior, [m, m], 2)
    with pytest.raises(om.ProblemError, match=r"mechanisms\[1\]"):
        leakage_about(prior, [m, om.mechanisms.randomized_response(om.Domain("ab"), 1.0)], 0)


def exact_leakage(prior: MarkovPrior, mechanisms: list[om.Mechanism], time: int) -> np.ndarray:
    """The same in fractions, of the floats as they are: no release is too unlikely to count."""
    cells = range(len(prior))
    steps = len(mechanisms)
    kernels = [_fractions(prior.transition(t)) for t in range(steps - 1)]
    emissions = [_fractions(m.matrix) for m in mechanisms]
    totals = [Fraction(0)] * len(prior)
    paths = []
    for path in itertools.product(cells, repeat=steps):
        chance = Fraction(prior.initial[path[0]])
        for t, step in enumerate(itertools.pairwise(path)):
            chance *= kernels[t][step[0]][step[1]]
        if chance:
            paths.append((path, chance))
            totals[path[time]] += chance
    worst = np.full((len(prior), len(prior)), -np.inf)
    for releases in itertools.product(*(range(len(e[0])) for e in emissions)):
        found = [Fraction(0)] * len(prior)
        for path, chance in paths:
            for t, release in enumerate(releases):
                chance *= emissions[t][path[t]][release]
            found[path[time]] += chance
        for x, other in itertools.permutations(cells, 2):
            if totals[x] and totals[other] and found[x]:
                ratio = found[x] * totals[other] / (totals[x] * found[other]) if found[other] else 0
                worst[x, other] = max(worst[x, other], _log(ratio) if ratio else np.inf)
    return worst


def _fractions(matrix: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(value) for value in row] for row in matrix.tolist()]


def _log(ratio: Fraction) -> float:
    with mpmath.workdps(40):
        return float(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator))


@settings(max_examples=25)
@given(data=st.data(), time=st.integers(0, 2))
def test_bounds_hold_over_six_hundred_orders_of_magnitude(data: st.DataObject, time: int) -> None:
    rows = st.lists(spread_distributions(3), min_size=3, max_size=3)
    prior = MarkovPrior(
        LINE,
        data.draw(spread_distributions(3)),
        [np.array(data.draw(rows)) for _ in range(2)],
    )
    pair = st.lists(spread_distributions(2), min_size=3, max_size=3)
    observed = om.Domain.range(2)
    mechanisms = [om.Mechanism(LINE, observed, np.array(data.draw(pair))) for _ in range(3)]
    expected = exact_leakage(prior, mechanisms, time)
    for limit in (1, 2, 50_000):
        found = leakage_about(prior, mechanisms, time, limit=limit)
        assert (found.pair_lower <= expected).all()
        assert (found.pair_upper >= expected).all()
    # all sequences were gone through: both ends are the truth
    close = np.isfinite(expected)
    np.testing.assert_allclose(found.pair_lower[close], expected[close], atol=1e-9, rtol=1e-12)
    np.testing.assert_allclose(found.pair_upper[close], expected[close], atol=1e-9, rtol=1e-12)
    assert (found.pair_lower[expected == np.inf] == np.inf).all()


def test_long_releases_on_cells_far_apart() -> None:
    """Ratios of e^875 in the transport: beyond the eleventh release the enumeration stops."""
    places = np.array([0.0, 1.0, 150.0])
    apart = om.distances.matrix(np.abs(np.subtract.outer(places, places)))
    m = om.mechanisms.exponential(LINE, 5.0, apart)
    prior = MarkovPrior.random_walk(LINE, apart, scale=0.3)
    exact = leakage_about(prior, [m] * 4, 0)
    for steps in (10, 11, 12, 13, 30):
        found = leakage_about(prior, [m] * steps, 0)
        assert found.lower == pytest.approx(exact.lower, abs=1e-6)
        assert found.upper == pytest.approx(found.lower, abs=1e-6)
    assert exact.lower == pytest.approx(875.1139421, abs=1e-6)


@pytest.mark.parametrize("small", [1e-100, 1e-170, 1e-300])
@pytest.mark.parametrize("steps", [3, 5, 40])
def test_a_ratio_between_two_tiny_likelihoods_is_not_lost(small: float, steps: int) -> None:
    matrix = np.array([[0.5, 0.5], [small, 1.0], [small / 10, 1.0]])
    m = om.Mechanism(LINE, om.Domain.range(2), matrix)
    found = leakage_about(MarkovPrior(LINE, [1, 1, 1], np.eye(3)), [m] * steps, 0)
    truth = steps * np.log(10)
    assert found.pair_lower[1, 2] <= truth * (1 + 1e-15)
    assert found.pair_upper[1, 2] >= truth * (1 - 1e-15)
    assert found.pair_upper[1, 2] == pytest.approx(truth, rel=1e-6)


def test_a_likelihood_of_zero_is_infinite_leakage_at_both_ends() -> None:
    m = om.Mechanism(LINE, om.Domain.range(2), [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
    found = leakage_about(MarkovPrior(LINE, [1, 1, 1], np.eye(3)), [m, m], 0)
    assert found.lower == found.upper == np.inf
    assert found.pair_lower[0, 1] <= 0 <= found.pair_upper[0, 1]


def test_a_cell_that_is_known_leaks_nothing() -> None:
    prior = MarkovPrior(LINE, [1, 0, 0], np.full((3, 3), 1 / 3))
    m = om.Mechanism(LINE, LINE, np.full((3, 3), 0.1) + 0.7 * np.eye(3))
    for steps in (1, 3, 12):
        found = leakage_about(prior, [m] * steps, 0)
        assert found.lower == found.upper == 0
    # one release more, and the chain has forgotten: only the release itself tells
    assert leakage_about(prior, [m] * 12, 5).upper == pytest.approx(np.log(8))


def test_transport_with_ratios_beyond_floats() -> None:
    """Mass moves from 0 to 1 at a factor e until both have the same ratio; 2 is too far."""
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.6, 0.1])
    for far in (50.0, 900.0, 1e6):
        ratios = np.array([[0, 1.0, far], [1.0, 0, far], [far, far, 0.0]])
        # share s of 0 goes to 1: (0.6 - s)/0.3 = (0.3 + e s)/0.6
        s = (2 - 0.5) / (1 / 0.3 + np.e / 0.6)
        assert gain(p, q, ratios) == pytest.approx(np.log((0.6 - s) / 0.3), abs=1e-6)
        assert gain(p, q, ratios) >= np.log((0.6 - s) / 0.3) - 1e-15
