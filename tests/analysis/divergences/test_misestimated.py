"""The bounds of CM19 Theorem 3 against linear programs over all distributions in question."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

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


@pytest.mark.parametrize(
    ("f", "stated", "actual"),
    [
        (lambda t: max(0.0, 1 - t), 0.0, 1 - math.exp(-1)),
        (lambda t: (1 - t) ** 2 * (1 if t < 1 else 1e-3), 0.11096, 0.55061),
    ],
)
def test_theorem_3_3_as_printed_is_exceeded(
    f: Callable[[float], float], stated: float, actual: float
) -> None:
    """e^ε f(e^{2ε}) against a coupling mechanism whose target is the assumed input, so that it
    reports the truth, with actual inputs within max divergence ε = 1 of it."""
    grown = math.e
    assumed = np.array([1, 1, grown - 1]) / (grown + 1)
    actuals = [assumed * [grown, 1 / grown, 1 / grown], assumed * [1 / grown, grown, 1 / grown]]
    same = 1 - np.eye(3)
    for made, lam in zip(
        om.mechanisms.coupling([assumed] * 2, assumed, same), actuals, strict=True
    ):
        assert lam.sum() == pytest.approx(1)
        assert np.abs(np.log(lam / assumed)).max() == pytest.approx(1)
        np.testing.assert_allclose(made.push(lam), lam, rtol=1e-12)
    spent = om.divergences.f_divergence(*actuals, f)
    assert math.e * f(math.e**2) == pytest.approx(stated, rel=1e-4)
    assert spent == pytest.approx(actual, rel=1e-4)
    assert spent > stated + 0.4
    assert spent <= om.divergences.chord(f, 2.0)


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


@pytest.mark.parametrize("closeness", [1e-3, 1e-100, 1e-161, 1e-170, 1e-300, 5e-324])
@pytest.mark.parametrize("promised", [0.0, 1e-200])
def test_squares_that_underflow_are_not_nothing(closeness: float, promised: float) -> None:
    """With r = 2ε + promised: r²/2 for "kl", r² for "chi2", r²/8 for "hellinger", to first order;
    half of each where the assumed outputs are equal, at ε = 0."""
    for name, factor in (("kl", 0.5), ("chi2", 1.0), ("hellinger", 0.125)):
        found = om.divergences.misestimated(name, closeness, promised).epsilon
        ratio = 2 * Fraction(closeness) + Fraction(promised)
        assert Fraction(found) >= Fraction(factor) * ratio**2 * (1 - ratio) * (
            1 - Fraction(1, 1000)
        )
        assert found <= factor * float(ratio) ** 2 * 1.01 + 1e-321
