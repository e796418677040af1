"""k releases: against every outcome listed, against dp-accounting, and against closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import optmech as om

MADE = {
    "pure": {"epsilon": 0.1},
    "square": {"epsilon": 0.05, "delta": 1e-6, "loss": "square"},
    "jagged": {"epsilon": 0.5, "delta": 0.01, "sensitivity": 3},
    "threshold": {
        "epsilon": 1, "delta": 1e-3, "sensitivity": 2, "loss": "threshold", "width": 2,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def made() -> dict[str, om.noise.NoiseDesign]:
    return {name: om.noise.optimal(**asked) for name, asked in MADE.items()}  # type: ignore[arg-type]


def listed(design: om.noise.NoiseDesign, shifts: tuple[int, ...], epsilon: float) -> float:
    """Σ max(0, Π z(i_j) - e^ε Π z(i_j + s_j)) over all outcomes of some releases."""
    period = len(design.law.tails)
    far = design.law.n + (250 if len(shifts) < 3 else 10) * period
    z = np.array([float(design.pmf(k)) for k in range(far + 5)])
    both = np.concatenate([z[:0:-1], z])
    first = second = np.ones(1)
    for s in shifts:
        kept, moved = both[4:-4], both[4 + s : len(both) - 4 + s]
        first = np.outer(first, kept).ravel()
        second = np.outer(second, moved).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize("epsilon", [0.05, 0.6, 1.2])
@pytest.mark.parametrize("name", MADE)
def test_two_and_three_releases_against_all_outcomes(
    made: dict[str, om.noise.NoiseDesign], name: str, epsilon: float
) -> None:
    design = made[name]
    for k in (2, 3) if name == "threshold" and epsilon == 0.6 else (2,):
        steps = [s for s in range(-design.sensitivity, design.sensitivity + 1) if s]
        worst = max(
            listed(design, pair, epsilon)
            for pair in itertools.combinations_with_replacement(steps, k)
        )
        found = design.privacy(k).delta(epsilon)
        # what is not listed of tails
        cut = 1e-9 if not design.law.tails else 1e-3 * worst + 1e-9
        assert found.upper >= worst - 1e-13
        assert found.lower <= worst + cut
        if design.sensitivity == 1 and not design.law.tails:
            assert found.width < 1e-6


@pytest.mark.parametrize("k", [1, 2, 10, 100, 1000])
@pytest.mark.parametrize("name", ["pure", "square"])
def test_dp_accounting_lies_around(
    made: dict[str, om.noise.NoiseDesign], name: str, k: int
) -> None:
    """Its optimistic and pessimistic estimates enclose δ, and so do our bounds: they overlap, and
    ours are the narrower."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    design = made[name]
    far = design.law.n + (450 if design.law.tails else 0)
    lower = {i: math.log(v) for i in range(-far, far + 1) if (v := float(design.pmf(i))) > 0}
    upper = {i + 1: v for i, v in lower.items()}
    epsilon = 0.8 * float(design.epsilon) * math.sqrt(k)
    ends = []
    for pessimistic in (False, True):
        one = pld.from_two_probability_mass_functions(
            lower, upper, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        )
        ends.append(one.self_compose(k).get_delta_for_epsilon(epsilon))
    found = design.privacy(k).delta(epsilon)
    assert ends[0] - 1e-12 <= found.upper
    assert found.lower <= ends[1] + 1e-12
    assert found.width <= max(ends[1] - ends[0], 1e-12)
    assert found.width < 2e-4 * found.upper + 1e-12


def test_a_composed_pure_law_meets_randomised_response() -> None:
    """Two-sided geometric noise at sensitivity 1 loses ε, -ε or a mix: like randomised response at
    the ends, so that δ at kε is 0 and below (k - 2)ε is at least what all k ends make of it."""
    design = om.noise.optimal("ln 2")
    b = 1 / 2
    one = 1 / (1 + b)  # P(Z <= 0): loss ln 2
    for k in (2, 5, 10):
        privacy = design.privacy(k)
        assert privacy.delta(k * math.log(2) + 1e-6).upper < 1e-5
        exact = sum(
            math.comb(k, j) * one**j * (1 - one) ** (k - j)
            * max(0.0, 1 - math.exp(0.3 - (2 * j - k) * math.log(2)))
            for j in range(k + 1)
        )  # fmt: skip
        found = privacy.delta(0.3)
        assert found.lower <= exact * (1 + 1e-6)
        assert exact <= found.upper * (1 + 1e-6)
        assert found.width < 1e-4


def test_epsilon_is_the_inverse_of_delta(made: dict[str, om.noise.NoiseDesign]) -> None:
    privacy = made["square"].privacy(20)
    found = privacy.epsilon(1e-3)
    assert found.lower <= found.upper
    assert found.width < 1e-3 * found.upper
    assert privacy.delta(found.upper).upper <= 1e-3
    assert privacy.delta(found.lower * (1 - 1e-6)).lower >= 1e-3 * (1 - 1e-2)
    once = made["square"].privacy()
    assert once.epsilon(1e-6).upper == pytest.approx(0.05, rel=1e-6)
    assert once.epsilon(1).upper == 0
    assert once.epsilon(0).upper == math.inf


def test_more_releases_reveal_more(made: dict[str, om.noise.NoiseDesign]) -> None:
    found = [made["jagged"].privacy(k).delta(1.0) for k in (1, 2, 4, 8, 16)]
    assert all(a.lower <= b.upper for a, b in itertools.pairwise(found))
    assert found[-1].lower > found[0].upper
    with pytest.raises(om.ProblemError):
        made["pure"].privacy(0)
    with pytest.raises(om.ProblemError):
        made["pure"].privacy(2).delta(-1)
