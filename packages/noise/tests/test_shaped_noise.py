"""Noise of any shape and for whole curves, against linear programs and closed forms of our own."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from judged import refused_alike, verdicts
from optmech_noise import shaped
from scipy.optimize import linprog
from scipy.stats import norm

import optmech as om

Pairs = list[tuple[float, float]]


def own(curve: Pairs, low: int, high: int, steps: int, cost: Any) -> float:
    """The least loss of noise on [low, high] that keeps every pair at every shift."""
    places = np.arange(low, high + 1)
    n = len(places)
    rows: list[tuple[int, int, float]] = []
    right: list[float] = []
    columns, row = n, 0
    for rate, part in curve:
        for s in [*range(-steps, 0), *range(1, steps + 1)]:
            start = columns
            for i in range(n):
                rows.append((row, i, 1.0))
                if 0 <= i + s < n:
                    rows.append((row, i + s, -math.exp(rate)))
                rows.append((row, columns, -1.0))
                right.append(0.0)
                columns, row = columns + 1, row + 1
            rows += [(row, k, 1.0) for k in range(start, columns)]
            right.append(part)
            row += 1
    at, across, values = zip(*rows, strict=True)
    matrix = sp.csr_matrix((values, (at, across)), shape=(row, columns))
    costs = np.append([cost(int(k)) for k in places], np.zeros(columns - n))
    mass = np.append(np.ones(n), np.zeros(columns - n))[None]
    found = linprog(costs, A_ub=matrix, b_ub=right, A_eq=mass, b_eq=[1.0], method="highs")
    return float(found.fun) if found.status == 0 else math.inf


def gaussian(rate: float, mu: float) -> float:
    return float(norm.cdf(-rate / mu + mu / 2) - math.exp(rate) * norm.cdf(-rate / mu - mu / 2))


RATES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)


def asked() -> dict[str, Any]:
    """Noise of every sort, small."""
    nine = [(rate, gaussian(rate, 1)) for rate in RATES]
    best = om.noise.optimal
    return {
        "adds": best(1, 1e-3, support=(0, None)),
        "takes": best(1, "1/100", support=(None, 2), sensitivity=2),
        "range": best(0.5, 0.05, support=(-4, 9), loss="square"),
        "sides": best("ln 3", 0.01, loss=("absolute", [0, 3])),
        "curve": best(curve=nine, loss="square"),
        "flat": best(curve=[(0, 0.2), (1, 0.05)], sensitivity=2, loss="threshold", width=2),
        "function": best(curve=[(0.5, 0.1)], loss=math.sqrt),
        "real": om.noise.real(curve=[(0, 0.25), (1, 0.05)], cells=4, loss="square"),
        "rounded": om.noise.optimal(1, "1/20", sensitivity=4000, gap=0.05),
        "staircase": om.noise.optimal("ln 3", sensitivity=2000, loss="square"),
    }


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return asked()


def test_brackets_hold_the_optimum_of_a_program_of_our_own(made: dict[str, Any]) -> None:
    nine = [(rate, gaussian(rate, 1)) for rate in RATES]
    wanted = {
        "adds": own([(1, 1e-3)], 0, 40, 1, abs),
        "takes": own([(1, 0.01)], -30, 2, 2, abs),
        "range": own([(0.5, 0.05)], -4, 9, 1, lambda k: k * k),
        "sides": own([(math.log(3), 0.01)], -12, 12, 1, lambda k: 3 * k if k > 0 else -k),
        "curve": own(nine, -14, 14, 1, lambda k: k * k),
        "flat": own([(0, 0.2), (1, 0.05)], -30, 30, 2, lambda k: float(abs(k) > 2)),
    }
    for name, least in wanted.items():
        noise = made[name]
        assert noise.lower_bound <= least * (1 + 1e-7), name
        assert noise.loss >= least * (1 - 1e-7), name
        assert noise.gap < 1e-3, name


def test_known_optima_are_met(made: dict[str, Any]) -> None:
    # frontier: the Gaussian of μ = 1, rounded, has variance 13/12, and nine points ask for no less
    assert made["curve"].loss == pytest.approx(13 / 12, rel=1e-5)
    # one pair, even and unbounded: the noise of om.noise.optimal
    one = om.noise.optimal(curve=[(1, 1e-3)], sensitivity=3)
    other = om.noise.optimal(1, 1e-3, sensitivity=3)
    assert one.lower_bound <= other.loss
    assert other.lower_bound <= one.loss
    # total variation δ: uniform on 1/δ places loses about 1/4δ
    flat = om.noise.optimal(curve=[(0, "1/21")])
    assert flat.loss == pytest.approx(sum(abs(k) for k in range(-10, 11)) / 21, rel=1e-6)


def test_every_pair_is_kept_by_sums_of_our_own(made: dict[str, Any]) -> None:
    for name in ("adds", "takes", "range", "sides", "curve", "flat", "real"):
        noise = made[name]
        steps = noise.steps
        z = np.array([float(noise.law.at(k)) for k in range(noise.law.low, noise.law.high + 1)])
        assert z.sum() == pytest.approx(1)
        wide = np.pad(z, steps)
        for rate, part in noise.curve:
            for s in range(-steps, steps + 1):
                there = np.roll(wide, -s)
                excess = np.maximum(wide - math.exp(float(rate)) * there, 0).sum()
                assert excess <= float(part) * (1 + 1e-9), (name, s)


def test_support_is_kept(made: dict[str, Any]) -> None:
    assert made["adds"].law.low >= 0
    assert made["takes"].law.high <= 2
    assert min(made["adds"].sample(200, seed=1)) >= 0
    assert set(made["range"].sample(300, seed=1)) <= set(range(-4, 10))


def test_rounded_noise_costs_no_more_than_stated(made: dict[str, Any]) -> None:
    """Σ c(k) P(round Z = k) from the density, cell by cell."""
    noise = made["rounded"]
    step, n = float(noise.step), noise.law.n
    z = np.array([float(noise.law.at(k)) for k in range(n + 1)])
    edges = (np.arange(n + 1) + 0.5) * step

    def below(x: np.ndarray) -> np.ndarray:
        """P(0 < Z <= x)."""
        return np.interp(x, np.append(0, edges), np.append(0, np.cumsum(z) - z[0] / 2))

    k = np.arange(1, int(edges[-1]) + 2)
    exact = float((2 * (below(k + 0.5) - below(k - 0.5)) * k).sum())
    assert exact <= noise.loss * (1 + 1e-12)
    assert exact > noise.loss * (1 - 1e-3)
    r = math.exp(-1 / 4000)
    assert noise.lower_bound < 2 * r / (1 - r * r)  # two-sided geometric noise
    assert isinstance(noise.release(5), int)


def test_files_are_proved_by_both_and_come_back(made: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    for name, noise in made.items():
        assert verdicts(noise.document(), path) == (True, True), name
        again = om.load(path)
        assert again == noise
        assert again.document() == noise.document()


def test_altered_files_are_judged_alike(made: dict[str, Any], tmp_path: Path) -> None:
    files = {name: noise.document() for name, noise in made.items()}
    assert refused_alike(files, 250, 5, tmp_path / "noise.json") > 150


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"epsilon": 1, "delta": 0.1, "support": (3, 1)}, "support"),
        ({"epsilon": 1, "delta": 0.1, "support": (0,)}, "support"),
        ({"curve": [(0, 0.1)], "epsilon": 1}, "epsilon"),
        ({"curve": []}, "curve"),
        ({"curve": [(1, 0)]}, "curve"),
        ({"epsilon": 1, "support": (0, None)}, "delta"),
        ({"epsilon": 1, "delta": 0.1, "support": (0, None), "for_releases": 2}, "for_releases"),
        ({}, "epsilon"),
    ],
)
def test_what_is_refused_says_where(given: dict[str, Any], where: str) -> None:
    with pytest.raises(om.ProblemError, match=where):
        om.noise.optimal(**given)


@pytest.mark.parametrize(
    "call",
    [
        lambda: om.noise.optimal(1, 0.01, support=(0, 40)),
        lambda: om.noise.optimal(1, 0.01, support=(0, None)),
        lambda: om.noise.real(curve=[(0, 0.05), (1, 0.01)], cells=3),
    ],
)
def test_a_solver_that_is_stopped_does_not_say_that_there_is_no_noise(
    call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shaped, "_LIMIT", 1e-9)
    with pytest.raises(om.SolverError, match="Time limit"):
        call()


@pytest.mark.parametrize(
    ("support", "near"),
    [
        ((0, 10**9), (0, None)),
        ((-(10**9), 0), (None, 0)),
        ((-(10**9), 10**9), (-60, 60)),
        ((-2, 10**6), (-2, 60)),
        ((-(10**6), None), (-60, None)),
        ((None, 10**6), (None, 60)),
    ],
)
def test_a_range_beyond_what_noise_reaches_is_as_good_as_a_near_one(
    support: tuple[int | None, int | None], near: tuple[int | None, int | None]
) -> None:
    far, close = (om.noise.optimal(1, "1/100", support=s) for s in (support, near))
    assert far.loss == pytest.approx(close.loss, rel=1e-4)
    assert far.lower_bound == pytest.approx(close.lower_bound, rel=1e-4)


def test_of_a_range_far_from_zero_all_noise_is_at_its_near_end() -> None:
    plain = om.noise.optimal(1, "1/100", support=(0, None))
    for sign in (1, -1):
        ends = sorted((sign * 10**8, sign * 10**9))
        far = om.noise.optimal(1, "1/100", support=(ends[0], ends[1]))
        assert far.loss - 10**8 == pytest.approx(plain.loss, abs=1e-3)
        assert far.lower_bound <= far.loss


def test_no_noise_in_too_small_a_range() -> None:
    with pytest.raises(om.InfeasibleError):
        om.noise.optimal(1, 1e-3, support=(0, 12))  # it takes 14 places


def test_other_libraries_know_what_noise_of_any_shape_reveals() -> None:
    """δ of shifts of either sign from the masses, in floats; losses of dp-accounting are rounded
    up."""
    pytest.importorskip("opendp")
    pytest.importorskip("dp_accounting")
    asked: list[Any] = [
        om.noise.optimal(1, 0.01, support=(0, None), sensitivity=2),
        om.noise.optimal(curve=[(0, 0.3), (1, 0.05)], loss="square"),
    ]
    for noise in asked:
        masses = np.pad(np.array([v / 2.0**noise.law.bits for v in noise.law.masses]), 3)
        rate = float(noise.epsilon)

        def spent(most: int, rate: float, masses: Any = masses) -> float:
            shifts = [s for s in range(-most, most + 1) if s]
            moved = [masses - math.exp(rate) * np.roll(masses, s) for s in shifts]
            return max(float(np.maximum(m, 0).sum()) for m in moved)

        measurement = om.exchange.noise_to_opendp(noise)
        for distance in (1, noise.steps, 3):
            found = measurement.map(distance)
            assert found == pytest.approx((rate, spent(distance, rate)), rel=1e-9)
        assert measurement(41) - 41 in range(noise.law.low, noise.law.high + 1)
        pld = om.exchange.noise_to_dp_accounting(noise)
        for other in (0.2, 1.0, 1.7):
            least = spent(noise.steps, other)
            assert least <= pld.get_delta_for_epsilon(other) + 1e-12 <= least * 1.01 + 2e-4
