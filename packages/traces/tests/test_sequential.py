"""Sequential designs: what is promised, verified by summing over all traces and all releases."""

from __future__ import annotations

import numpy as np
import pytest
import trace_enumeration as brute
from optmech_traces import (
    ConditionalDistortion,
    ConditionalPrivacy,
    FixedPolicy,
    MarkovPrior,
    SequentialDesigner,
    enumerate_releases,
    release,
    simulate,
)

import optmech as om

EUCLIDEAN = om.distances.euclidean()
LINE = om.Domain.range(3)
MATRIX = np.array([[0.7, 0.3, 0.0], [0.2, 0.6, 0.2], [0.0, 0.5, 0.5]])
WALK = MarkovPrior(LINE, [0.5, 0.3, 0.2], np.array([MATRIX, MATRIX.T / MATRIX.T.sum(1)[:, None]]))
TABLE = brute.joint(WALK.initial, list(WALK.transitions))
STEPS = 3
METRIC = om.MetricPrivacy(1.5, EUCLIDEAN)


def released(policy: SequentialDesigner) -> dict[tuple[int, ...], list[np.ndarray]]:
    return brute.release_table(policy, STEPS, TABLE, 3)


def prefixes(
    sequences: dict[tuple[int, ...], list[np.ndarray]], length: int
) -> dict[tuple[int, ...], list[np.ndarray]]:
    return {history[:length]: columns[:length] for history, columns in sequences.items()}


def learnt(columns: list[np.ndarray], time: int, about: int) -> np.ndarray:
    """ln P(z_time | X_about = x, earlier releases) for every x; nan where x is impossible."""
    before = brute.evidence(TABLE, columns[:time], about, 3)
    after = brute.evidence(TABLE, columns[: time + 1], about, 3)
    before[before == 0] = np.nan
    return np.log(after / before)


def log_ratios(designer: SequentialDesigner, time: int) -> float:
    """max over releases and x, x' of ln P(z | X_time = x) / P(z | X_time = x'), by brute force."""
    worst = 0.0
    at = brute.marginal(TABLE, time, 3)
    for columns in released(designer).values():
        chance = brute.evidence(TABLE, columns, time, 3) / at
        worst = max(worst, float(np.log(chance.max() / chance.min())))
    return worst


def test_conditional_privacy_adds_up_to_a_bound_on_everything_learnt() -> None:
    """ε at every step, about now, the time before and the time after: the ratio of the whole
    sequence of releases stays below 3ε for every time, and comes near to it."""
    epsilon = 0.4
    designer = SequentialDesigner(WALK, EUCLIDEAN, [ConditionalPrivacy(epsilon, lags=(-1, 0, 1))])
    found = [log_ratios(designer, time) for time in range(STEPS)]
    assert max(found) <= STEPS * epsilon + 1e-9
    assert min(found) > epsilon


@pytest.mark.parametrize("lag", [1, -1])
def test_each_step_tells_no_more_than_stated_about_the_other_time(lag: int) -> None:
    """P(z_t | X_t' = x, earlier releases) from the joint table, for every history; lag 1 with all
    pairs covers lag 2."""
    epsilon = 0.3
    designer = SequentialDesigner(WALK, EUCLIDEAN, [METRIC, ConditionalPrivacy(epsilon, lags=lag)])
    tight = 0.0
    for columns in released(designer).values():
        for t in range(STEPS):
            for about in range(t) if lag == 1 else range(t + 1, STEPS):
                told = learnt(columns, t, about)
                spread = np.nanmax(told) - np.nanmin(told)
                assert spread <= epsilon + 1e-9
                if abs(t - about) == 1:
                    tight = max(tight, spread)
    assert tight == pytest.approx(epsilon, abs=1e-6)


def test_scaled_by_distance_every_pair_keeps_its_own_bound() -> None:
    designer = SequentialDesigner(
        WALK, EUCLIDEAN, [METRIC, ConditionalPrivacy(0.2, lags=1, distance=EUCLIDEAN)]
    )
    near = 0.0
    for columns in released(designer).values():
        for t in (1, 2):
            told = learnt(columns, t, t - 1)
            apart = np.abs(told[:, None] - told[None, :])
            assert np.nanmax(apart - 0.2 * EUCLIDEAN(LINE, LINE)) <= 1e-9
            near = np.nanmax([near, apart[0, 1]])
    assert near == pytest.approx(0.2, abs=1e-6)


def test_pairs_within_a_radius_only() -> None:
    constraint = ConditionalPrivacy(0.1, times=0, distance=EUCLIDEAN, radius=1)
    (stated,) = constraint.at(WALK, 1)
    assert len(stated.pairs) == 2
    np.testing.assert_allclose(stated.pairs[0], MATRIX[:2])
    np.testing.assert_allclose(stated.pairs[1], MATRIX[1:])


def test_rows_that_no_mechanism_can_tell_apart_are_left_out() -> None:
    same = MarkovPrior(LINE, [1, 1, 1], np.full((3, 3), 1 / 3))
    assert ConditionalPrivacy(0.1, lags=1).at(same, 1) == []
    one = MarkovPrior(LINE, [1, 0, 0], MATRIX)
    assert ConditionalPrivacy(0.1, lags=1).at(one, 1) == []
    assert ConditionalPrivacy(0.1, lags=1).at(WALK, 0) == []
    # the largest ratio of the rows is 3 for 0 and 1 within the support; the others have zeros
    assert len(ConditionalPrivacy("ln 5", times=1).at(WALK, 1)[0].pairs) == 3


def test_lagged_distortion_holds_against_whoever_waits_a_step() -> None:
    """The expected error about X_{t-1} of an attack that sees the releases up to t, by sums over
    all traces, for every history up to t - 1: at least the minimum, or 95 % of what the history
    leaves, where that is less. The plain constraint about X_t does not achieve it."""
    minimum, d = 0.35, EUCLIDEAN(LINE, LINE)
    first = om.MetricPrivacy(0.8, EUCLIDEAN)

    def shortage(constraint: object) -> float:
        designer = SequentialDesigner(
            WALK,
            EUCLIDEAN,
            lambda t: [constraint] if t else [first],
            on_infeasible="relax",
            fraction=0.95,
        )
        worst = 0.0
        sequences = released(designer)
        for t in (1, 2):
            left: dict[tuple[int, ...], float] = {}
            for following, columns in prefixes(sequences, t + 1).items():
                error = brute.least_error(brute.evidence(TABLE, columns, t - 1, 3), d)
                left[following[:t]] = left.get(following[:t], 0.0) + error
            for history, columns in prefixes(sequences, t).items():
                before = brute.evidence(TABLE, columns, t - 1, 3)
                wanted = min(minimum * before.sum(), 0.95 * brute.least_error(before, d))
                worst = max(worst, (wanted - left[history]) / before.sum())
        return worst

    assert shortage(ConditionalDistortion(minimum, EUCLIDEAN, lags=(0, 1))) <= 1e-9
    assert shortage(ConditionalDistortion(minimum, EUCLIDEAN, lags=0)) > 1e-3
    assert shortage(om.DistortionPrivacy(minimum, EUCLIDEAN)) > 1e-3


def test_exact_report_against_brute_force() -> None:
    designer = SequentialDesigner(
        WALK,
        EUCLIDEAN,
        [om.LossBound(0.4)],
        objective=om.MaximizeDistortion(EUCLIDEAN),
    )
    report = enumerate_releases(designer, EUCLIDEAN, STEPS)
    d = EUCLIDEAN(LINE, LINE)
    sequences = released(designer)
    for t in range(STEPS):
        smooth = sum(
            brute.least_error(brute.evidence(TABLE, columns, t, 3), d)
            for columns in sequences.values()
        )
        known = prefixes(sequences, t + 1)
        filtered = sum(brute.least_error(brute.evidence(TABLE, c, t, 3), d) for c in known.values())
        loss = sum((brute.evidence(TABLE, c, t, 3) * d[:, h[t]]).sum() for h, c in known.items())
        assert report.smoothing.mean[t] == pytest.approx(smooth, abs=1e-12)
        assert report.filtering.mean[t] == pytest.approx(filtered, abs=1e-12)
        assert report.loss.mean[t] == pytest.approx(loss, abs=1e-12)
        assert report.leakage[t] == pytest.approx(log_ratios(designer, t), abs=1e-9)
        assert report.blind[t] == pytest.approx(brute.least_error(brute.marginal(TABLE, t, 3), d))
    assert report.loss.mean.max() <= 0.4 + 1e-9
    assert (report.smoothing.mean <= report.filtering.mean + 1e-12).all()


def test_simulation_estimates_the_exact_report() -> None:
    mechanism = om.mechanisms.randomized_response(LINE, 1.0)
    policy = FixedPolicy(WALK, mechanism)
    exact = enumerate_releases(policy, EUCLIDEAN, STEPS)
    found = simulate(policy, EUCLIDEAN, steps=STEPS, count=1200, seed=11)
    for name in ("filtering", "smoothing", "loss"):
        estimate, truth = getattr(found, name), getattr(exact, name)
        # the loss of a fixed mechanism varies with the belief only, not at time 0
        assert (np.abs(estimate.mean - truth.mean) <= 4 * estimate.standard_error + 1e-12).all(), (
            name
        )
        off = abs(estimate.average - truth.average)
        assert off <= 4 * estimate.average_error + 1e-12
    for name in ("filtering", "smoothing"):
        on_traces = getattr(found, f"{name}_on_traces")
        assert (
            np.abs(on_traces.mean - getattr(exact, name).mean) <= 4 * on_traces.standard_error
        ).all()
        assert (on_traces.standard_error > 0).all()
    np.testing.assert_allclose(found.leakage, exact.leakage)
    found, again = (simulate(policy, EUCLIDEAN, steps=STEPS, count=60, seed=11) for _ in range(2))
    np.testing.assert_array_equal(found.filtering.mean, again.filtering.mean)


def test_no_policy_of_equal_loss_is_better_now_than_the_greedy_one() -> None:
    """At time 0 the sequential design is the optimum of PG; a single mechanism for all times at the
    same expected loss protects less against the filter, later too on this chain."""
    prior = MarkovPrior(LINE, WALK.initial, MATRIX)
    still = prior.stationary()
    objective = om.MaximizeDistortion(EUCLIDEAN)
    single = om.solve(
        om.Problem(still, EUCLIDEAN, objective=objective, constraints=[om.LossBound(0.4)])
    )
    at_rest = MarkovPrior(LINE, still, MATRIX)
    repeated = enumerate_releases(FixedPolicy(at_rest, single.mechanism), EUCLIDEAN, 4)
    designer = SequentialDesigner(at_rest, EUCLIDEAN, [om.LossBound(0.4)], objective=objective)
    sequential = enumerate_releases(designer, EUCLIDEAN, 4)
    np.testing.assert_allclose(repeated.loss.mean, 0.4, atol=1e-6)
    assert (sequential.loss.mean <= 0.4 + 1e-9).all()
    assert sequential.filtering.mean[0] == pytest.approx(repeated.filtering.mean[0], abs=1e-6)
    assert (sequential.filtering.mean[1:] > repeated.filtering.mean[1:] + 0.02).all()


@pytest.mark.parametrize("fallback", ["stop", "skip", "relax"])
def test_what_happens_when_the_adversary_knows_too_much(fallback: str) -> None:
    """Nobody moves: after a telling release the error left is below the minimum asked for."""
    stay = MarkovPrior(LINE, [1, 1, 1], np.eye(3))
    designer = SequentialDesigner(
        stay,
        EUCLIDEAN,
        lambda t: [om.DistortionPrivacy(0.3 if t == 0 else 0.6, EUCLIDEAN)],
        on_infeasible=fallback,
        fraction=0.5,
    )
    state = designer.start()
    assert state.action == "design"
    assert state.design.verified
    state = state.after(0)
    left = (EUCLIDEAN(LINE, LINE) @ state.prior.weights).min()
    assert left < 0.6
    assert "0.6" in state.reason
    if fallback == "relax":
        assert state.action == "relax"
        assert state.design.verified
        assert om.measures.distortion(state.mechanism, state.prior, EUCLIDEAN) == pytest.approx(
            left / 2, rel=1e-5
        )
        return
    assert state.action == fallback
    assert state.mechanism is None
    following = state.after()
    np.testing.assert_array_equal(following.prior.weights, state.prior.weights)
    assert following.action == fallback
    with pytest.raises(om.ProblemError, match="there is no mechanism"):
        state.after(0)
    report = enumerate_releases(designer, EUCLIDEAN, 2)
    np.testing.assert_allclose(report.filtering.mean[1], report.filtering.mean[0])


def test_the_budget_of_epsilon_is_kept_and_then_nothing_is_released() -> None:
    designer = SequentialDesigner(
        WALK,
        EUCLIDEAN,
        [om.MetricPrivacy("1/2", EUCLIDEAN)],
        total_epsilon=1.2,
        on_infeasible="skip",
    )
    longer = SequentialDesigner(
        MarkovPrior(LINE, WALK.initial, MATRIX),
        EUCLIDEAN,
        designer.constraints,
        total_epsilon=1.2,
        on_infeasible="skip",
    )
    state = longer.start()
    spent = []
    for _ in range(5):
        spent.append(state.epsilon)
        if state.mechanism is not None:
            assert om.measures.epsilon(state.mechanism, EUCLIDEAN) <= state.epsilon + 1e-12
        state = state.after(None if state.mechanism is None else 1)
    assert spent[:2] == [0.5, 0.5]
    assert spent[2] == pytest.approx(0.2)
    assert spent[3:] == [None, None]
    assert sum(e for e in spent if e) <= 1.2
    assert "1.2 is used up" in state.reason
    assert release(designer, [0, 1, 2], seed=1).states[2].total_epsilon <= 1.2


def test_a_protected_trace_can_be_checked_afterwards() -> None:
    designer = SequentialDesigner(WALK, EUCLIDEAN, [om.MetricPrivacy(1.0, EUCLIDEAN)])
    done = release(designer, [0, 1, 1], seed=7)
    assert done.releases == release(designer, [0, 1, 1], seed=7).releases
    columns = {}
    for t, (state, label) in enumerate(zip(done.states, done.releases, strict=True)):
        assert state.design.verified
        columns[t] = state.mechanism.matrix[:, LINE.index(label)]
    expected = brute.weighted(TABLE, columns)
    for t in range(STEPS):
        np.testing.assert_allclose(
            done.posterior.marginal(t).weights, brute.marginal(expected, t, 3)
        )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SequentialDesigner(om.Prior.uniform(LINE), EUCLIDEAN), "MarkovPrior"),
        (lambda: SequentialDesigner(WALK, EUCLIDEAN, on_infeasible="wait"), "stop"),
        (lambda: SequentialDesigner(WALK, EUCLIDEAN, fraction=1), "below 1"),
        (lambda: SequentialDesigner(WALK, EUCLIDEAN, total_epsilon=0), "total_epsilon"),
        (
            lambda: SequentialDesigner(WALK, EUCLIDEAN, total_epsilon=1).start().action,
            "needs a metric privacy",
        ),
        (lambda: SequentialDesigner(WALK, EUCLIDEAN, [3]).start().action, "constraints"),
        (lambda: ConditionalPrivacy(1.0), "no time"),
        (lambda: ConditionalPrivacy(-1.0, lags=1), "negative"),
        (lambda: ConditionalPrivacy(1.0, lags=0.5), "whole number|lags"),
        (lambda: ConditionalPrivacy(1.0, times=-1), "whole number"),
        (lambda: ConditionalPrivacy(1.0, lags=1, radius=2), "distance"),
        (lambda: ConditionalDistortion(1.0, EUCLIDEAN), "no time"),
        (lambda: FixedPolicy(WALK, []), "mechanisms"),
        (
            lambda: FixedPolicy(WALK, om.mechanisms.randomized_response(om.Domain("ab"), 1)),
            "cells",
        ),
        (lambda: release(SequentialDesigner(WALK, EUCLIDEAN), [0, 7, 0]), "no 7"),
        (lambda: release(SequentialDesigner(WALK, EUCLIDEAN), [0] * 4), "no time 3"),
        (lambda: release(SequentialDesigner(WALK, EUCLIDEAN), "abc"), "list of labels"),
        (lambda: SequentialDesigner(WALK, EUCLIDEAN).start().after(), "missing"),
        (lambda: SequentialDesigner(WALK, EUCLIDEAN).start().after(9), "no 9"),
        (lambda: simulate(SequentialDesigner(WALK, EUCLIDEAN), EUCLIDEAN), "steps"),
        (
            lambda: simulate(SequentialDesigner(WALK, EUCLIDEAN), EUCLIDEAN, traces=[[0], [0, 1]]),
            "one length",
        ),
        (
            lambda: enumerate_releases(
                FixedPolicy(WALK, om.mechanisms.randomized_response(LINE, 1)), EUCLIDEAN, 3, limit=9
            ),
            "more than 9",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named(make: object, words: str) -> None:
    with pytest.raises(om.ProblemError, match=words):
        make()  # type: ignore[operator]
