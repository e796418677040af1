"""Markov priors against sums over all traces, and estimates against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
import trace_enumeration as brute
from hypothesis import given, settings, strategies as st
from optmech_traces import MarkovPrior

import optmech as om

LINE = om.Domain.range(3)


def chain(rng: np.random.Generator, cells: int = 3, steps: int = 3, zeros: bool = True) -> tuple:
    """A chain with different matrices, some impossible moves, and its joint distribution."""
    initial = rng.dirichlet(np.ones(cells))
    stack = rng.dirichlet(np.ones(cells), size=(steps, cells))
    if zeros:
        initial[rng.integers(cells)] = 0.0
        stack[rng.random(stack.shape) < 0.2] = 0.0
        stack[:, np.arange(cells), np.arange(cells)] += 0.1
        initial[0] += 0.1
    initial, stack = initial / initial.sum(), stack / stack.sum(axis=2, keepdims=True)
    prior = MarkovPrior(om.Domain.range(cells), initial, stack)
    return prior, brute.joint(initial, list(stack))


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_marginals_and_conditionals_are_those_of_all_traces(seed: int) -> None:
    prior, table = chain(np.random.default_rng(seed))
    for t in range(4):
        np.testing.assert_allclose(prior.marginal(t).weights, brute.marginal(table, t, 3))
        for other in range(4):
            np.testing.assert_allclose(
                prior.conditional(t, other), brute.conditional(table, t, other, 3), atol=1e-15
            )


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), times=st.sets(st.integers(0, 3)))
def test_posterior_is_the_markov_chain_of_all_traces_given_the_releases(
    seed: int, times: set[int]
) -> None:
    """Filtering, prediction and smoothing at once: releases at any times, every marginal and every
    conditional of the posterior."""
    rng = np.random.default_rng(seed)
    prior, table = chain(rng)
    seen = {t: rng.random(3) * (rng.random(3) < 0.8) + 1e-3 for t in times}
    posterior = prior.given(seen)
    table = brute.weighted(table, seen)
    for t in range(4):
        np.testing.assert_allclose(posterior.marginal(t).weights, brute.marginal(table, t, 3))
        for other in range(4):
            np.testing.assert_allclose(
                posterior.conditional(t, other), brute.conditional(table, t, other, 3), atol=1e-14
            )


def test_releases_one_after_the_other_or_all_at_once(rng: np.random.Generator) -> None:
    prior, _ = chain(rng, cells=4, steps=5, zeros=False)
    columns = {t: rng.random(4) for t in range(6)}
    step_by_step = prior
    for t in rng.permutation(6).tolist():
        step_by_step = step_by_step.given({t: columns[t]})
    at_once = prior.given(columns)
    np.testing.assert_allclose(step_by_step.initial, at_once.initial)
    np.testing.assert_allclose(step_by_step.transitions, at_once.transitions)


def test_repeating_matrices_go_on_after_the_posterior() -> None:
    """Two matrices that alternate: after releases up to time 4 the right one comes next."""
    rng = np.random.default_rng(3)
    pair = rng.dirichlet(np.ones(3), size=(2, 3))
    prior = MarkovPrior(LINE, np.ones(3), pair, repeat=2)
    assert prior.horizon is None
    columns = {t: rng.random(3) for t in (1, 4)}
    posterior = prior.given(columns)
    table = brute.weighted(brute.joint(prior.initial, [pair[t % 2] for t in range(7)]), columns)
    for t in range(8):
        np.testing.assert_allclose(posterior.marginal(t).weights, brute.marginal(table, t, 3))
    np.testing.assert_array_equal(posterior.transition(6), prior.transition(6))
    np.testing.assert_array_equal(posterior.transition(5), pair[1])


def test_long_traces_do_not_underflow() -> None:
    sticky = MarkovPrior(LINE, [1, 1, 1], 0.98 * np.eye(3) + 0.02 / 3)
    column = np.array([1e-8, 2e-8, 1e-8])
    posterior = sticky.given(dict.fromkeys(range(2000), column))
    weights = posterior.marginal(1000).weights
    # the middle cell is about twice as likely at every step, whatever the chain does
    assert weights[1] > 0.9
    assert weights[0] == pytest.approx(weights[2])


def test_estimate_is_the_hand_count() -> None:
    """0 0 1 | 1 2 (the -1 cuts), 2 2: steps 00, 01, 12, 22; visits 2, 2, 3."""
    sequences = [[0, 0, 1, -1, 1, 2], [2, 2]]
    prior = MarkovPrior.from_sequences(LINE, sequences)
    np.testing.assert_allclose(prior.transition(0), [[1 / 2, 1 / 2, 0], [0, 0, 1], [0, 0, 1]])
    np.testing.assert_allclose(prior.initial, np.array([2, 2, 3]) / 7)
    smooth = MarkovPrior.from_sequences(LINE, sequences, smoothing=1.5)
    np.testing.assert_allclose(
        smooth.transition(0),
        [[3 / 7, 3 / 7, 1 / 7], [1 / 5, 1 / 5, 3 / 5], [1 / 5, 1 / 5, 3 / 5]],
    )
    base = MarkovPrior(LINE, [0, 1, 0], np.eye(3))
    own = MarkovPrior.from_sequences(LINE, [[0, 1]], smoothing=1, base=base)
    np.testing.assert_allclose(own.transition(0), [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(own.initial, np.array([1, 4, 0]) / 5)


def test_classes_of_the_day_are_counted_apart() -> None:
    prior = MarkovPrior.from_sequences(
        om.Domain.range(2),
        [[0, 0, 1, 1], [1, 0]],
        smoothing=0,
        classes=[[0, 1, 1, 0], [0, 0]],
        schedule=[0, 1, 1],
    )
    # class 0: 00 and 10; class 1: 01 and 11
    np.testing.assert_allclose(prior.transition(0), [[1, 0], [1, 0]])
    np.testing.assert_allclose(prior.transition(1), [[0, 1], [0, 1]])
    np.testing.assert_array_equal(prior.transition(5), prior.transition(2))
    np.testing.assert_array_equal(prior.transition(6), prior.transition(0))


def test_estimates_approach_the_chain_that_made_the_data() -> None:
    truth = MarkovPrior(LINE, [1, 1, 1], [[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.3, 0.7]])
    traces = truth.sample(200, 500, seed=5)
    found = MarkovPrior.from_sequences(LINE, list(traces))
    np.testing.assert_allclose(found.transition(0), truth.transition(0), atol=0.01)
    # birth and death: detailed balance gives weights 1, 2, 2/3
    np.testing.assert_allclose(truth.stationary().weights, np.array([3, 6, 2]) / 11, atol=1e-12)
    frequency = np.bincount(traces[:, -1], minlength=3) / 500
    np.testing.assert_allclose(frequency, truth.stationary().weights, atol=0.08)


def test_likelihood_of_a_trace_is_its_place_in_the_joint_table(rng: np.random.Generator) -> None:
    prior, table = chain(rng)
    for trace, chance in table.items():
        assert np.exp(prior.log_likelihood(trace)) == pytest.approx(chance)


def test_random_walk_prefers_near_cells() -> None:
    walk = MarkovPrior.random_walk(LINE, om.distances.euclidean(), 2.0)
    row = np.exp([0, -0.5, -1.0])
    np.testing.assert_allclose(walk.transition(7)[0], row / row.sum())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MarkovPrior(LINE, [1, 1], np.eye(3)), "initial"),
        (lambda: MarkovPrior(LINE, [1, 1, -1], np.eye(3)), "negative"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.eye(2)), "does not fit 3 cells"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.ones((3, 3))), "sum 3"),
        (lambda: MarkovPrior(LINE, np.ones(3), 2 * np.eye(3) - 1 / 3), "least entry"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.full((3, 3), np.nan)), "NaN"),
        (lambda: MarkovPrior(LINE, np.ones(3), "moves"), "numbers"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.eye(3), repeat=2), "cannot repeat"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.empty((0, 3, 3))), "no matrix"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.eye(3)[None]).marginal(2), "last one is 1"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.eye(3)).stationary(), "separate parts"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.eye(3)).conditional(-1, 0), "whole number"),
        (lambda: MarkovPrior(LINE, np.ones(3), np.eye(3)).given({0: [0, 0, 0]}), "likelihoods"),
        (
            lambda: MarkovPrior(LINE, [1, 0, 0], np.eye(3)).given({2: [0, 1, 1]}),
            "impossible under the prior",
        ),
        (lambda: MarkovPrior.from_sequences(LINE, [[0, 3]]), "index"),
        (lambda: MarkovPrior.from_sequences(LINE, [[0, 0.5]]), "index"),
        (lambda: MarkovPrior.from_sequences(LINE, [[0, 1]]), "never left"),
        (lambda: MarkovPrior.from_sequences(LINE, [], 1.0), "no visit"),
        (lambda: MarkovPrior.from_sequences(LINE, [[-1, -1]], 1.0), "no visit"),
        (lambda: MarkovPrior.from_sequences(LINE, "abc", 1.0), "list of sequences"),
        (lambda: MarkovPrior.from_sequences(LINE, [[0, 1]], -1.0), "negative"),
        (lambda: MarkovPrior.from_sequences(LINE, [[0, 1]], 1, classes=[[0]]), "classes"),
        (lambda: MarkovPrior.from_sequences(LINE, [[0, 1]], 1, classes=[[0, 0]]), "schedule"),
        (lambda: MarkovPrior.from_sequences(LINE, [[0, 1]], 1, schedule=[0]), "needs classes"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make: object, words: str) -> None:
    with pytest.raises(om.ProblemError, match=words):
        make()  # type: ignore[operator]
