"""k independent reports, against sums over all sequences and binomial closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech.spaces.rationals import RationalRows

F = Fraction
CUBE = st.lists(
    st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any), min_size=3, max_size=3
)


def whole(rows: list[list[int]]) -> om.Mechanism:
    secrets, seen = om.Domain(range(len(rows))), om.Domain(range(len(rows[0])))
    return om.Mechanism.of(secrets, seen, RationalRows(tuple(map(tuple, rows))))


def sequences(rows: list[list[int]], k: int) -> list[list[Fraction]]:
    """p^k of every sequence of reports, a row for every secret."""
    exact = [[F(v, sum(row)) for v in row] for row in rows]
    return [[math.prod(row[o] for o in seen) for seen in product(range(len(row)), repeat=k)]
            for row in exact]  # fmt: skip


@settings(max_examples=25)
@given(CUBE, st.integers(1, 3), st.sampled_from([F(0), F(1, 4), F(2)]))
def test_all_sequences_are_summed(rows: list[list[int]], k: int, rate: Fraction) -> None:
    found, wanted = om.leakage.repeated(whole(rows), k), sequences(rows, k)
    factor = math.exp(rate)
    worst = max(
        sum(max(0.0, p - factor * q) for p, q in zip(map(float, a), map(float, b), strict=True))
        for a in wanted
        for b in wanted
    )
    bounds = found.delta(rate)
    assert bounds.lower - 1e-12 <= worst <= bounds.upper + 1e-12
    assert bounds.width < 0.01
    weights = [F(1, 8), F(2, 8), F(5, 8)]
    prior = om.Prior(om.Domain(range(3)), [1, 2, 5])
    right = sum(
        max(w * p for w, p in zip(weights, c, strict=True)) for c in zip(*wanted, strict=True)
    )
    assert found.vulnerability(prior).lower <= right <= found.vulnerability(prior).upper
    assert found.vulnerability(prior).width < 1e-15
    apart = np.array([[0, 1, 4], [1, 0, 2], [4, 2, 0]])
    error = sum(
        min(
            sum(w * p * F(int(d)) for w, p, d in zip(weights, c, row, strict=True)) for row in apart
        )
        for c in zip(*wanted, strict=True)
    )
    spent = found.error(prior, apart)
    assert spent.lower - 1e-15 <= error <= spent.upper + 1e-15
    one = max(
        max((a / b if b else math.inf) for a, b in zip(p, q, strict=True) if a)
        for p in wanted
        for q in wanted
    )
    assert found.epsilon == pytest.approx(math.log(one) if one < math.inf else math.inf)


@pytest.mark.parametrize(("k", "rate"), [(1, 0.5), (20, 3.0), (300, 20.0), (1000, 30.0)])
def test_randomized_response_is_binomial(k: int, rate: float) -> None:
    """δ and the error of the best guess of k answers, one of 2, each true with probability 3/5."""
    m = whole([[3, 2], [2, 3]])
    chance = [math.comb(k, j) * F(3, 5) ** j * F(2, 5) ** (k - j) for j in range(k + 1)]
    losses = [(2 * j - k) * math.log(1.5) for j in range(k + 1)]
    delta = math.fsum(
        float(p) * max(0.0, 1 - math.exp(rate - loss))
        for p, loss in zip(chance, losses, strict=True)
    )
    found = om.leakage.repeated(m, k)
    bounds = found.delta(rate)
    assert bounds.lower * (1 - 1e-9) <= delta <= bounds.upper * (1 + 1e-9)
    assert bounds.upper <= 1.3 * delta + 1e-3
    assert found.delta(rate, points=64).width >= bounds.width
    assert found.epsilon == pytest.approx(k * math.log(1.5))
    uniform = om.Prior.uniform(m.secrets)
    right = float(sum(max(chance[j], chance[k - j]) for j in range(k + 1)) / 2)
    assert found.vulnerability(uniform).lower <= right <= found.vulnerability(uniform).upper


def test_many_observables_are_bounded() -> None:
    """15 answers with 8 observables: 170,544 multisets, summed exactly here for 2 secrets."""
    rows = [[8, 7, 6, 5, 4, 3, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8]]
    k = 15
    m = whole(rows)
    uniform = om.Prior.uniform(m.secrets)
    found = om.leakage.repeated(m, k).vulnerability(uniform)
    # ln(p/q) of one answer is antisymmetric: the right guess is the sign of the sum, by sampling
    rng = np.random.default_rng(1)
    draws = rng.choice(8, size=(200_000, k), p=np.array(rows[0]) / 36)
    logs = np.log(np.array(rows[0]) / np.array(rows[1]))[draws].sum(axis=1)
    seen = np.mean(logs > 1e-9) + np.mean(np.abs(logs) <= 1e-9) / 2
    assert found.width < 1e-9
    assert found.lower == pytest.approx(seen, abs=5 * math.sqrt(0.25 / 200_000))
    exact = om.leakage.repeated(m, 3).vulnerability(uniform)
    assert exact.width < 1e-15


def test_what_is_left_out_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from optmech_leakage import repetition

    m = whole([[5, 3, 2, 1], [1, 2, 3, 5], [2, 4, 4, 1]])
    prior = om.Prior(m.secrets, [3, 2, 1])
    gain = [[3, -1, 0], [0, 2, -2], [-1, 0, 1]]
    exact = om.leakage.repeated(m, 12).vulnerability(prior, gain)
    weighted = np.array(gain) * prior.weights
    least = weighted.min(axis=0)
    whole_ = repetition.nearly_earned(m.matrix, weighted - least, 12)
    assert whole_[0] <= exact.upper - least.sum() + 1e-12
    assert whole_[1] >= exact.lower - least.sum() - 1e-12
    assert whole_[1] - whole_[0] < 1e-11
    monkeypatch.setattr(repetition, "_FORGOTTEN", 1e-3)
    part = repetition.nearly_earned(m.matrix, weighted - least, 12)
    assert part[0] < whole_[0] <= whole_[1] < part[1]


def test_mistakes_are_answered() -> None:
    m = whole([[3, 2], [2, 3]])
    for k in (0, 1001, 2.5, True):
        with pytest.raises(om.ProblemError, match=r"k: .* is not a whole number from 1 to 1,000"):
            om.leakage.repeated(m, k)
    with pytest.raises(om.ProblemError, match="points"):
        om.leakage.repeated(m, 2).delta(1, points=3)
    with pytest.raises(om.ProblemError, match="epsilon"):
        om.leakage.repeated(m, 2).delta(-1)


@pytest.mark.parametrize("k", [64, 100, 200, 1000])
def test_reports_that_tell_two_secrets_apart_for_sure(k: int) -> None:
    # all but 2^-k of the reports: δ is 1 - 2^-k, as those that are left have no loss
    shared = whole([[1, 1, 0], [0, 1, 1]])
    found = om.leakage.repeated(shared, k).delta(1)
    assert found.lower <= 1 - 0.5**k <= found.upper <= 1
    assert found.lower > 1 - 0.5**k - 1e-12
