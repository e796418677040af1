"""Estimates from counts of reports: closed forms, likelihoods on a grid, exact expectations."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import optmech as om

estimate = om.estimate


def log_likelihood(m: om.Mechanism, weights: np.ndarray, counts: list[int]) -> float:
    output = weights @ m.matrix
    return sum(
        n * (math.log(p) if p > 0 else -math.inf) for n, p in zip(counts, output, strict=True) if n
    )


@settings(max_examples=40)
@example(7, [1, 1, 1, 1], 5000)  # a weight goes to 0 that hardly matters
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any),
    st.sampled_from([0, 2, 5000]),
)
def test_no_prior_is_likelier_than_the_bound_says(seed: int, counts: list[int], steps: int) -> None:
    rng = np.random.default_rng(seed)
    m = om.Mechanism(om.Domain("abc"), om.Domain(range(4)), rng.dirichlet(np.ones(4), size=3))
    found = estimate.prior(m, counts, iterations=steps)
    reached = log_likelihood(m, found.prior.weights, counts)
    assert found.log_likelihood == pytest.approx(reached, rel=1e-12)
    assert found.reports == sum(counts)
    for i, j in product(range(13), repeat=2):
        if i + j <= 12:
            other = np.array([i, j, 12 - i - j]) / 12
            gain = log_likelihood(m, other, counts) - reached
            assert gain <= found.reports * found.gap + 1e-9
    if steps == 5000:
        assert found.gap <= 1e-8
        assert found.iterations <= 5000


def test_the_likeliest_prior_solves_the_equations_where_it_can() -> None:
    """Randomised response with frequencies inside the simplex: (r - q)/(p - q)."""
    m = om.mechanisms.randomized_response(om.Domain("abc"), "ln 4")
    p, q = 4 / 6, 1 / 6
    counts = {"a": 500, "b": 300, "c": 200}
    wanted = [(share - q) / (p - q) for share in (0.5, 0.3, 0.2)]
    found = estimate.prior(m, counts, gap=1e-13)
    assert found.prior.weights == pytest.approx(wanted, abs=1e-6)
    flat = estimate.frequencies(m, [500, 300, 200])
    assert flat.values == pytest.approx(wanted, abs=1e-12)
    # a report is a with chance r: r (1 - r) / (n - 1) / (p - q)^2
    variances = [r * (1 - r) / 999 / (p - q) ** 2 for r in (0.5, 0.3, 0.2)]
    assert flat.variances == pytest.approx(variances, rel=1e-9)
    assert flat.errors == pytest.approx(np.sqrt(variances), rel=1e-9)


def test_frequencies_of_subset_selection_count_supports() -> None:
    """(share of sets that hold s - q)/(p - q), as in the literature."""
    n, rate = 6, 0.8
    m = om.mechanisms.subset_selection(om.Domain.range(n), rate)
    rng = np.random.default_rng(3)
    counts = rng.multinomial(2000, rng.dirichlet(np.ones(n)) @ m.matrix)
    holds = np.array([[s in label for label in m.observables.labels] for s in range(n)])
    p, q = (m.matrix[0] @ holds[0]), (m.matrix[0] @ holds[1])
    wanted = (holds @ (counts / 2000) - q) / (p - q)
    found = estimate.frequencies(m, counts)
    assert found.values == pytest.approx(wanted, abs=1e-10)
    assert found.values.sum() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("make", ["optimised_unary_encoding", "rappor", "geometric"])
def test_estimators_are_unbiased_and_their_variances_too(make: str) -> None:
    """Expectations over all pairs of reports of two people, exactly."""
    line = om.Domain.range(3)
    m = getattr(om.mechanisms, make)(line, 1.0)
    truth = np.array([0.6, 0.3, 0.1])
    output = truth @ m.matrix
    mean, spread, claimed = np.zeros(3), np.zeros(3), np.zeros(3)
    for i, j in product(range(len(output)), repeat=2):
        counts = np.bincount([i, j], minlength=len(output))
        found = estimate.frequencies(m, counts)
        weight = output[i] * output[j]
        mean += weight * found.values
        spread += weight * found.values**2
        claimed += weight * found.variances
    assert mean == pytest.approx(truth, abs=1e-10)
    assert claimed == pytest.approx(spread - mean**2, rel=1e-8)
    better = estimate.frequencies(m, np.ones(len(output)), prior=om.Prior(line, truth))
    plain = estimate.frequencies(m, np.ones(len(output)))
    # least variance where it was asked for (Gauss, Markov)
    own = [(e.estimator**2 @ output - truth**2).sum() for e in (better, plain)]
    assert own[0] <= own[1] + 1e-12


def test_bootstrap_intervals_cover_and_repeat() -> None:
    line = om.Domain.range(5)
    m = om.mechanisms.geometric(line, 1.0)
    truth, rng = np.array([0.1, 0.15, 0.4, 0.2, 0.15]), np.random.default_rng(5)
    inside = 0
    for _ in range(20):
        counts = rng.multinomial(3000, truth @ m.matrix)
        found = estimate.prior(m, counts, bootstrap=100, confidence=0.9)
        inside += int(((found.lower <= truth) & (truth <= found.upper)).sum())
        assert (found.lower <= found.prior.weights + 1e-6).all()
    assert 75 <= inside <= 100
    again = estimate.prior(m, counts, bootstrap=100, confidence=0.9)
    assert (again.lower == found.lower).all()
    wide = estimate.prior(m, counts, bootstrap=100, confidence=0.99)
    assert ((wide.upper - wide.lower) >= (found.upper - found.lower)).all()


def test_counts_in_every_form(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from optmech.analysis.counts import read_counts

    m = om.mechanisms.randomized_response(om.Domain([10, 20, 30]), 1.0)
    by_label = {20: 7, 10: 5}
    wanted = estimate.prior(m, [5, 7, 0]).prior
    assert estimate.prior(m, by_label).prior == wanted
    assert estimate.prior(m, pandas.Series(by_label)).prior == wanted
    assert estimate.prior(m, pandas.Series([5, 7, 0], index=[10, 20, 30])).prior == wanted
    table = tmp_path / "counts.csv"
    table.write_text("count,observable\n7,20\n3,10\n2,10\n")
    assert read_counts(table, m.observables).tolist() == [5, 7, 0]
    table.write_text("observable\n" + "20\n" * 7 + "10\n" * 5)
    assert read_counts(table, m.observables).tolist() == [5, 7, 0]


def test_mistakes_are_answered_with_places(tmp_path: Path) -> None:
    from optmech.analysis.counts import read_counts

    line = om.Domain("ab")
    m = om.mechanisms.randomized_response(line, 1.0)
    with pytest.raises(om.ProblemError, match="counts: 'z' is no observable: those are 'a', 'b'"):
        estimate.prior(m, {"z": 1})
    with pytest.raises(om.ProblemError, match="counts: -1 is negative"):
        estimate.prior(m, [-1, 2])
    with pytest.raises(om.ProblemError, match="counts: there is no report"):
        estimate.frequencies(m, [0, 0])
    with pytest.raises(om.ProblemError, match=r"counts: shape \(3,\) does not fit 2"):
        estimate.frequencies(m, [1, 2, 3])
    with pytest.raises(om.ProblemError, match="counts: are not whole"):
        estimate.prior(m, [1.5, 2], bootstrap=3)
    with pytest.raises(om.ProblemError, match="gap"):
        estimate.prior(m, [1, 2], gap=0)
    silent = om.Mechanism(line, om.Domain("xyz"), [[1, 0, 0], [0.5, 0.5, 0]])
    with pytest.raises(om.ProblemError, match="counts: 'z' was reported, and no secret"):
        estimate.prior(silent, [1, 1, 1])
    with pytest.raises(om.ProblemError, match="counts: 'z' was reported, and cannot be"):
        estimate.frequencies(silent, [1, 1, 1])
    with pytest.raises(om.ProblemError, match="mechanism: some mixtures of secrets"):
        estimate.frequencies(om.Mechanism(line, line, [[0.5, 0.5], [0.5, 0.5]]), [1, 1])
    table = tmp_path / "counts.csv"
    table.write_text("observable,count\na,many\n")
    with pytest.raises(om.ProblemError, match=r"data row 1 has no usable count(?!.*many)"):
        read_counts(table, line)
    table.write_text("observable,count\nc,1\n")
    with pytest.raises(om.ProblemError, match=r"counts\.csv: data row 1 is of no observable"):
        read_counts(table, line)
    table.write_text("report,count\nc,1\n")
    with pytest.raises(om.ProblemError, match="observable"):
        read_counts(table, line)


def test_supports_of_unary_encodings() -> None:
    """Expectations over all words of four bits: frequencies, and the variance of one report."""
    rate, truth = 1.5, np.array([0.4, 0.3, 0.2, 0.1])
    q = 1 / (math.exp(rate) + 1)
    m = om.mechanisms.optimised_unary_encoding(om.Domain.range(4), rate)
    output = truth @ m.matrix
    mean = np.zeros(4)
    for chance, word in zip(output, m.observables.labels, strict=True):
        mean += chance * estimate.from_supports(word, 1, own="1/2", other=q)[0]
    assert mean == pytest.approx(truth, abs=1e-12)
    held = np.array([40, 10, 20, 0])
    values, variances = estimate.from_supports(held, 50, own=0.5, other=q)
    one = [1] * 40 + [0] * 10
    assert values[0] == pytest.approx(np.mean([(v - q) / (0.5 - q) for v in one]))
    assert variances[0] == pytest.approx(np.var([v / (0.5 - q) for v in one], ddof=1) / 50)
    for wrong in ({"own": 0.2, "other": 0.3}, {"own": 2, "other": 0.1}):
        with pytest.raises(om.ProblemError, match="own"):
            estimate.from_supports(held, 50, **wrong)
    with pytest.raises(om.ProblemError, match="held: not from 0 to 30"):
        estimate.from_supports(held, 30, own=0.5, other=0.1)
