"""Noise for histograms, sums, means and several numbers, and what numbers reveal together."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from optmech_noise.repeated import Repeated
from scipy.stats import norm

import optmech as om


def _of_all(laws: list[Any], shifts: tuple[int, ...], rate: float) -> float:
    """δ of all sequences of outcomes."""
    p, q = np.ones(1), np.ones(1)
    for law, s in zip(laws, shifts, strict=True):
        places = range(-law.n - abs(s), law.n + abs(s) + 1)
        here = np.array([float(law.at(k)) for k in places])
        there = np.array([float(law.at(k + s)) for k in places])
        p, q = np.outer(p, here).ravel(), np.outer(q, there).ravel()
    return float(np.maximum(p - math.exp(rate) * q, 0).sum())


def test_histograms_are_geometric_without_delta() -> None:
    """Ghosh, Roughgarden and Sundararajan: the best for one count, at ε/k for k of them."""
    for change, bins in (("add or remove", 2), ("replace", 4)):
        found = om.noise.histogram("ln 16", per_person=2, change=change)
        r = 16 ** (-1 / bins)
        assert found.numbers == bins
        assert found.loss == pytest.approx(2 * r / (1 - r * r), rel=1e-6)
        assert found.status == "optimal"
    assert om.noise.histogram(1, per_person=9, bins=3).numbers == 3


def test_counts_of_one_person_keep_delta_together() -> None:
    found = om.noise.histogram(1, "1/20", per_person=2)
    law = found.noise[0].law
    for shifts in itertools.product((-1, 0, 1), repeat=2):
        assert _of_all([law, law], shifts, 1.0) <= 0.05 * (1 + 1e-9)
    assert found.lower_bound <= found.loss
    # two counts need more noise than one
    assert found.lower_bound > om.noise.optimal(1, "1/20").lower_bound


def test_sums_change_by_what_is_said() -> None:
    asked: list[tuple[Any, float]] = [
        (om.noise.clipped_sum(0, 7, "ln 3"), 7),
        (om.noise.clipped_sum(-3, 7, "ln 3", change="replace"), 10),
        (om.noise.clipped_sum(0, 2.5, "ln 3", per_person=3), 7.5),
        (om.noise.clipped_sum(0, 10**9, "ln 3", loss="square"), 10**9),
        (om.noise.mean(0, 100, "ln 3", people=50), 2),
    ]
    for found, most in asked:
        assert float(found.noise[0].sensitivity) == most
        assert f"{most:,}".removesuffix(".0") in found.assumes
        assert found.gap < 1e-3
    # Geng and Viswanath: the staircase of ln 3 at sensitivity 1 has E|Z| = √3/2
    assert asked[-1][0].loss == pytest.approx(math.sqrt(3), rel=1e-5)
    assert isinstance(asked[3][0].release(5), int)


def test_gaussian_noise_for_l2_is_that_of_balle_and_wang() -> None:
    found = om.noise.together(1, 1e-5, l2=2, numbers=50)
    law = found.noise[0].law
    sigma = math.sqrt(float(law.expected(om.noise.NoiseLoss.of("square"))) - 1 / 12)
    mu = 2 / sigma
    delta = norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu)
    assert delta == pytest.approx(1e-5, rel=1e-3)
    assert found.spent is not None
    assert delta * (1 - 1e-3) <= float(found.spent) <= 1e-5
    # in directions with two and three numbers, of smaller noise, by all outcomes
    small = om.noise.together(3, "1/50", l2=2, numbers=2).noise[0].law
    z = np.array([float(small.at(k)) for k in range(-small.n, small.n + 1)])
    for shifts in ((2, 0), (1, 1)):
        p, q = (np.pad(z, 3), np.pad(z, 3))
        there = [np.roll(q, -s) for s in shifts]
        excess = np.maximum(np.outer(p, p) - math.exp(3) * np.outer(*there), 0).sum()
        assert excess <= 0.02


def test_what_is_released_is_what_is_asked() -> None:
    found = om.noise.together(1, bounds=[1, 20])
    assert len(found.release([3, 4], seed=1)) == 2
    with pytest.raises(om.ProblemError, match="values"):
        found.release([3])
    with pytest.raises(om.ProblemError, match="Save each"):
        found.save("noise.json")
    with pytest.raises(om.ProblemError, match="together"):
        om.noise.together(1)
    with pytest.raises(om.ProblemError, match="delta"):
        om.noise.together(1, l2=1, numbers=2)
    with pytest.raises(om.ProblemError, match="high"):
        om.noise.clipped_sum(3, 3, 1)
    with pytest.raises(om.ProblemError, match="change"):
        om.noise.histogram(1, change="other")


def test_opendp_states_no_more_than_is_kept() -> None:
    pytest.importorskip("opendp")
    counts = om.noise.histogram(1, per_person=2).opendp()
    assert counts.map((2, 2, 1)) == pytest.approx(1)
    assert counts.map((3, 3, 1)) == math.inf
    vector = om.noise.together(1, 1e-3, l2=2, numbers=8).opendp()
    assert vector.map((4, 4, 1)) == pytest.approx((1, 1e-3))
    assert vector.map((8, 16, 2))[0] == math.inf
    assert len(vector([10**10] * 8)) == 8


def test_compositions_hold_what_all_outcomes_say() -> None:
    one = om.noise.optimal(1, "1/10")
    other = om.noise.optimal("1/2", "1/5", sensitivity=2)
    third = om.noise.optimal(1, "1/10", support=(0, None))
    for noises in ([one, other], [one, one, third]):
        laws = [n.law for n in noises]
        ranges = [[s for s in range(-n.steps, n.steps + 1) if s] for n in noises]
        together = om.noise.compose(noises)
        for rate in (0.0, 0.7, 2.0):
            worst = max(_of_all(laws, shifts, rate) for shifts in itertools.product(*ranges))
            found = together.delta(rate)
            assert found.lower - 1e-9 <= worst <= found.upper + 1e-9
            assert found.upper <= worst * 1.1 + 1e-3


def test_several_releases_are_bounded_by_what_each_keeps() -> None:
    """Pairs that are necessary: what keeps the promise together keeps them."""
    pairs = om.noise.curve(releases=(1, 0.01, 3))
    good = om.noise.for_releases(1, 0.01, 3)
    law = good.together.law
    z = np.pad(np.array([float(law.at(k)) for k in range(-law.n, law.n + 1)]), 1)
    for rate, part in pairs:
        assert np.maximum(z - math.exp(rate) * np.roll(z, 1), 0).sum() <= part
    assert om.noise.optimal(1, 0.01).loss < good.lower_bound <= good.loss


@pytest.mark.parametrize("seed", range(24))
def test_what_several_releases_allow_holds_for_laws_that_just_keep_it(seed: int) -> None:
    """δ of all releases from all outcomes; whatever total
    variation below its own a law is looked at for."""
    rng = np.random.default_rng(seed)
    count, reach = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    steep, power = rng.uniform(0.1, 2), rng.choice([1.0, 1.0, 1.6])
    half = np.exp(-((steep * np.arange(reach + 1)) ** power)) * rng.choice([1, rng.random()])
    half[-1] *= rng.random()
    z = np.concatenate([half[:0:-1], half])
    z /= z.sum()
    one, other = np.append(z, 0), np.append(0, z)
    rate = float(rng.uniform(0.02, 0.8) * count)
    all_one, all_other = np.ones(1), np.ones(1)
    for _ in range(count):
        all_one, all_other = np.outer(all_one, one).ravel(), np.outer(all_other, other).ravel()
    delta = float(np.maximum(all_one - math.exp(rate) * all_other, 0).sum()) * (1 + 1e-9)
    apart = float(np.maximum(one - other, 0).sum())
    kept = Repeated(rate, delta, count)
    for least in (0.0, 0.6 * apart, apart * (1 - 1e-9)):
        pairs = kept.pairs(least)
        assert pairs
        for epsilon, part in pairs:
            own = float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
            assert own <= part * (1 + 1e-9)
