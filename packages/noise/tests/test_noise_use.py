"""What people do with noise: intervals, estimates, other tools, and noise that others use."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import optmech as om

GEOMETRIC = om.noise.optimal("ln 2")
JAGGED = om.noise.optimal(1, 0.02, sensitivity=2, loss="threshold", width=3)


def test_quantiles_of_two_sided_geometric_noise() -> None:
    """P(|Z| <= k) = 1 - 2 b^{k+1} / (1 + b) with b = 1/2."""
    for level in (0.3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9):
        k = 0
        while 1 - 2 * 0.5 ** (k + 1) / 1.5 < level:
            k += 1
        assert GEOMETRIC.quantile(level) == k
    with pytest.raises(om.ProblemError):
        GEOMETRIC.quantile(1)
    assert om.noise.optimal(0, 0.125).quantile(1) == 4


@pytest.mark.parametrize("level", [Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(99, 100)])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_intervals_hold_the_truth_as_often_as_they_say(level: Fraction, m: int) -> None:
    wide = JAGGED.quantile(1 - (1 - level) / m)
    missed = 2 * sum((JAGGED.pmf(k) for k in range(wide + 1, wide + 100)), Fraction(0))
    assert m * missed <= (1 - level) * (1 + Fraction(1, 10**9))
    released = [10 + k for k in range(m)]
    low, high = JAGGED.interval(released, level)
    if low < high:
        assert (low, high) == (10 + m - 1 - wide, 10 + wide)


def test_intervals_know_what_is_possible() -> None:
    assert GEOMETRIC.interval(1, 0.95, low=0) == (0, 1 + GEOMETRIC.quantile(0.95))
    assert GEOMETRIC.interval(-30, 0.95, low=0) == (0, 0)
    low, high = GEOMETRIC.interval([0, 100], 0.9)
    assert low == high
    for bad in ([], [1.5], "12"):
        with pytest.raises(om.ProblemError):
            GEOMETRIC.interval(bad)  # type: ignore[arg-type]
    with pytest.raises(om.ProblemError):
        GEOMETRIC.interval(1, 2)


def test_the_most_likely_number() -> None:
    """Geometric noise: the median; jagged noise: not what was released, but beside it."""
    assert GEOMETRIC.most_likely(7) == 7
    assert GEOMETRIC.most_likely([1, 5, 6]) == 5
    assert GEOMETRIC.most_likely(-7, low=0) == 0
    assert GEOMETRIC.most_likely(90, low=0, high=30) == 30
    at = max(range(-6, 7), key=lambda k: (JAGGED.pmf(k), -abs(k), -k))
    assert JAGGED.pmf(at) > JAGGED.pmf(0)
    assert JAGGED.most_likely(20) in (20 - at, 20 + at)
    flat = om.noise.optimal(0, 0.125)
    assert flat.most_likely(3, low=1) in range(1, 8)
    with pytest.raises(om.ProblemError):
        flat.most_likely(100, low=0, high=10)
    with pytest.raises(om.ProblemError):
        flat.most_likely(1, low=5, high=2)


def test_scipy_has_the_same_probabilities() -> None:
    made = om.exchange.noise_to_scipy(GEOMETRIC)
    k = np.arange(-30, 31)
    assert made.pmf(k) == pytest.approx(0.5 ** np.abs(k) / 3, rel=1e-6)
    assert made.cdf(k) == pytest.approx(np.cumsum(made.pmf(k)) + float(made.cdf(-31)), rel=1e-9)
    assert made.std() == pytest.approx(2.0, rel=1e-5)  # variance 2b/(1 - b)² = 4
    assert made.ppf(0.5) == 0


def test_dp_accounting_gets_a_pessimistic_distribution() -> None:
    pytest.importorskip("dp_accounting")
    for design in (GEOMETRIC, JAGGED):
        made = om.exchange.noise_to_dp_accounting(design)
        for epsilon in (0.2, 0.6, 1.0):
            exact = design.privacy().delta(epsilon).lower
            given_ = made.get_delta_for_epsilon(epsilon)
            assert exact - 1e-12 <= given_ <= exact + 2e-4
        many = design.privacy(20).delta(3.0)
        assert many.lower <= made.self_compose(20).get_delta_for_epsilon(3.0)


def test_opendp_adds_the_noise_and_knows_its_privacy() -> None:
    pytest.importorskip("opendp")
    pure = om.exchange.noise_to_opendp(GEOMETRIC)
    assert pure.map(1) == pytest.approx(math.log(2))
    assert pure.map(3) == pytest.approx(3 * math.log(2))
    assert abs(pure(1000) - 1000) < 60
    both = om.exchange.noise_to_opendp(JAGGED)
    epsilon, delta = both.map(2)
    assert (epsilon, delta) == (1.0, pytest.approx(0.02, rel=1e-6))
    assert delta <= 0.02
    assert both.map(5)[1] > 0.02
    assert isinstance(both(5), int)


def test_tables_have_exact_probabilities(tmp_path: Path) -> None:
    path = tmp_path / "noise.csv"
    om.exchange.write_noise_table(JAGGED, path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    exact = {int(r["noise"]): Fraction(int(r["numerator"]), int(r["denominator"])) for r in rows}
    assert exact[0] == JAGGED.pmf(0)
    assert 1 - sum(exact.values()) < 1e-16
    om.exchange.write_noise_table(JAGGED, path, last=2)
    assert len(path.read_text().splitlines()) == 6
    with pytest.raises(om.ProblemError):
        om.exchange.write_noise_table(JAGGED, path, last=-1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"), [(1, 1e-6, 1), (0.5, 1e-3, 3), (2, 0.01, 5), (0.1, 1e-5, 1)]
)
def test_peers_keep_the_promise_and_none_beats_the_bound(
    epsilon: float, delta: float, steps: int
) -> None:
    peers = om.noise.peers(epsilon, delta, sensitivity=steps)
    assert len(peers) == 7
    for loss in ("absolute", "square", "threshold"):
        width = 2 if loss == "threshold" else None
        design = om.noise.optimal(epsilon, delta, sensitivity=steps, loss=loss, width=width)
        for peer in peers.values():
            assert 2 * peer.pmf.sum() - peer.pmf[0] == pytest.approx(1, abs=1e-12)
            for s in range(1, steps + 1):
                assert peer.delta(epsilon, s) <= delta * (1 + 1e-6) + 1e-14, (peer.name, s)
            assert peer.loss(design.measure) >= design.lower_bound * (1 - 1e-9), peer.name


def test_peers_against_their_sources() -> None:
    """Balle and Wang: σ of (1, 1e-5) is 3.7305…; the discrete Gaussian needs about as much."""
    peers = om.noise.peers(1, 1e-5)
    sigma = float(peers["analytic Gaussian"].parameters.split()[2].rstrip(","))
    assert sigma == pytest.approx(3.7305, abs=2e-3)
    other = float(peers["discrete Gaussian"].parameters.split()[2])
    assert other == pytest.approx(sigma, rel=0.02)
    pure = om.noise.peers("ln 2")
    assert set(pure) == {"discrete Laplace", "staircase"}
    assert pure["discrete Laplace"].loss(om.noise.NoiseLoss.of("absolute")) == pytest.approx(4 / 3)
    assert set(om.noise.peers(0, 0.1)) == {"uniform"}
    with pytest.raises(om.ProblemError):
        om.noise.peers(0)
