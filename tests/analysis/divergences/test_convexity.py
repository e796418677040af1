"""Convex functions are taken, whatever rounds in them near t = 1; others are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optmech as om

f_divergence = om.divergences.f_divergence


def jensen_shannon(t: np.ndarray) -> np.ndarray:
    return t * np.log(t) - (t + 1) * np.log((t + 1) / 2)


def power(t: np.ndarray) -> np.ndarray:
    return (t**0.3 - 0.3 * (t - 1) - 1) / (-0.21)


def normalised_kl(t: np.ndarray) -> np.ndarray:
    return t * np.log(t) - t + 1


CONVEX = {
    "jensen_shannon": jensen_shannon,
    "power": power,
    "normalised_kl": normalised_kl,
    "kl": lambda t: t * np.log(t),
    "far": lambda t: np.maximum(0.0, t - 20.0),
    "many": lambda t: 1e9 * jensen_shannon(t) + 1e-9 * (t - 1) ** 2,
    "lopsided": lambda t: jensen_shannon(t) + 50 * (t - 1),
}


@pytest.mark.parametrize("name", sorted(CONVEX))
@pytest.mark.parametrize("closeness", [1e-2, 1e-5, 1e-8, 1e-11, 1e-14, 0.0])
def test_convex_functions_of_nearly_equal_distributions(name: str, closeness: float) -> None:
    rng = np.random.default_rng(int(-math.log10(closeness + 1e-300)))
    for _ in range(40):
        q = rng.dirichlet(np.ones(8))
        p = q * (1 + closeness * rng.uniform(-1, 1, 8))
        found = f_divergence(p / p.sum(), q, CONVEX[name])
        # at most the largest f''(t)/2 near 1 times the largest (t - 1)², and rounding
        assert 0 <= found <= 3e9 * closeness**2 + (1e-6 if name == "many" else 1e-13)


def test_values_of_functions_that_round() -> None:
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.25, 0.25])
    middle = (p + q) / 2
    expected = om.divergences.kl(p, middle) + om.divergences.kl(q, middle)
    assert f_divergence(p, q, jensen_shannon) == pytest.approx(expected, rel=1e-13)
    assert f_divergence(p, q, normalised_kl) == pytest.approx(om.divergences.kl(p, q), rel=1e-13)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: -np.abs(t - 1),
        lambda t: np.where(t < 1, (t - 1) ** 2, -1e-3 * (t - 1) ** 2),
        lambda t: np.sin(3 * (t - 1)),
        lambda t: 1e-6 * np.minimum(0.0, 1 - t),
        lambda t: -((t - 1) ** 2),
    ],
)
def test_functions_that_are_not_convex(f: object) -> None:
    with pytest.raises(om.ProblemError, match="not convex"):
        f_divergence([0.2, 0.8], [0.5, 0.5], f)
