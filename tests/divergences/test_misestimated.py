"""The bounds of CM19 Theorem 3 against linear programs over all distributions in question."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import optmech as om

GENERATORS = {
    "kl": lambda t: t * math.log(t),
    "reverse_kl": lambda t: -math.log(t),
    "tv": lambda t: abs(t - 1) / 2,
    "chi2": lambda t: (t - 1) ** 2,
    "hellinger": lambda t: (math.sqrt(t) - 1) ** 2 / 2,
}


def largest_mean(values: np.ndarray, moments: np.ndarray) -> float:
    """The largest mean of ``values`` over distributions whose ``moments`` all have mean 1."""
    top, apart = np.abs(values).max(), moments - 1
    found = linprog(
        -values / top,
        A_eq=np.vstack([np.ones(len(values)), apart / np.abs(apart).max()]),
        b_eq=np.append(1.0, np.zeros(len(moments))),
    )
    return -float(found.fun) * float(top)


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("ratio", [1e-3, 0.3, 1.0, 2.5])
def test_chord_is_the_largest_divergence_with_bounded_ratios(name: str, ratio: float) -> None:
    t = np.exp(np.linspace(-ratio, ratio, 401))
    f = GENERATORS[name]
    best = largest_mean(np.array([f(x) for x in t]), t[None])
    assert om.divergences.chord(f, ratio) == pytest.approx(best, rel=1e-7, abs=1e-12)
    assert om.divergences.named_chord(name, ratio) == pytest.approx(best, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("closeness", [0.05, 0.4, 1.2])
def test_equal_outputs_reveal_no_more_than_the_tight_bound(name: str, closeness: float) -> None:
    steps = np.exp(np.linspace(-closeness, closeness, 41))
    p, q = (side.ravel() for side in np.meshgrid(steps, steps))
    f = GENERATORS[name]
    best = largest_mean(q * np.array([f(x) for x in p / q]), np.array([p, q]))
    found = om.divergences.misestimated(name, closeness)
    assert found.epsilon == pytest.approx(best, rel=1e-7)
    assert "tight" in found.theorem
    assert found.epsilon < om.divergences.named_chord(name, 2 * closeness)


def test_closed_forms() -> None:
    for e in (0.01, 0.3, 2.0):
        assert om.divergences.named_chord("kl", 2 * e) == pytest.approx(2 * e * math.tanh(e))
        assert om.divergences.misestimated("kl", e).epsilon == pytest.approx(
            2 * e * (1 - math.exp(-e))
        )
        assert om.divergences.misestimated("max", e).epsilon == 2 * e
        # the bound of the paper is looser
        assert 2 * e * math.tanh(e) < 2 * e * math.exp(e)
    assert om.divergences.misestimated("kl", 0.5, promised=1.0).epsilon == pytest.approx(
        2 * math.tanh(1)
    )
    assert om.divergences.misestimated("tv", math.inf).epsilon == 1.0
    assert om.divergences.misestimated("chi2", math.inf).epsilon == math.inf
    assert om.divergences.chord(lambda t: t * math.log(t), 0.0) == 0.0


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(om.ProblemError, match="closeness"):
        om.divergences.misestimated("kl", -1.0)
    with pytest.raises(om.ProblemError, match="unknown"):
        om.divergences.misestimated("wasserstein", 1.0)
    with pytest.raises(om.ProblemError, match="not a function"):
        om.divergences.chord(3, 1.0)
    with pytest.raises(om.ProblemError, match="f\\(0"):
        om.divergences.chord(lambda t: math.inf, 1.0)
    with pytest.raises(om.ProblemError, match="no float"):
        om.divergences.chord(lambda t: t - 1, 1e4)
