"""The bound over an interval of length scales against a fine grid, and Taylor models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flint
import numpy as np
import pytest
from optmech_traces.gaussian import intervals

import optmech as om
from optmech import traces

TEN = np.arange(10.0)
EVEN = range(0, 10, 2)
FAMILIES: list[tuple[Callable[[Any], traces.Kernel], tuple[float, float]]] = [
    (traces.rbf, (0.3, 4.0)),
    (lambda length: traces.matern(length, 2.5, 2.0), (0.2, 6.0)),
    (lambda length: traces.ornstein_uhlenbeck(length) + traces.white(0.1), (0.5, 20.0)),
    (lambda length: traces.periodic(length, 7.0) * traces.rbf(9.0), (0.4, 3.0)),
]


@pytest.mark.parametrize(("family", "interval"), FAMILIES)
def test_no_length_scale_of_a_grid_exceeds_the_bound(
    family: Callable[[Any], traces.Kernel], interval: tuple[float, float]
) -> None:
    found = traces.worst_length_scale(
        TEN, family, interval, noise_covariance=1.0, secrets=EVEN, radius=1.0, order=2.0
    )
    losses = {
        length: traces.privacy_loss(
            traces.GaussianPrior(TEN, family(length)), 1.0, EVEN, 1.0, 2.0
        ).lower
        for length in np.linspace(*interval, 60).tolist()
    }
    assert max(losses.values()) <= found.upper <= found.lower * 1.011
    assert found.lower >= max(losses.values()) * (1 - 1e-3)
    assert interval[0] <= found.length_scale <= interval[1]


def test_the_worst_length_scale_can_lie_inside() -> None:
    """TP19 takes the largest one. Three positions, the outer two secret: the middle one is
    2ρ/(1 + ρ⁴) times their common shift, ρ = exp(−1/(2ℓ²)), which exceeds its limit 1."""
    times, noise = [0.0, 1.0, 2.0], 10.0

    def closed(length: float) -> float:
        rho = np.exp(-1 / (2 * length**2))
        rest = 1 - 2 * rho**2 / (1 + rho**4)
        return float(2 / noise + (2 * rho / (1 + rho**4)) ** 2 / (noise + rest))

    for ball in (False, True):
        found = traces.worst_length_scale(
            times,
            traces.rbf,
            (0.3, 6.0),
            noise_covariance=noise,
            secrets=[0, 2],
            radius=1.0,
            order=2.0,
            ball=ball,
        )
        assert found.lower == pytest.approx(closed(found.length_scale), rel=1e-9)
        assert found.lower > 1.05 * max(closed(0.3), closed(6.0))
        assert found.upper >= max(closed(x) for x in np.linspace(0.3, 6.0, 1000))


def test_axes_and_a_single_length_scale() -> None:
    one = traces.worst_length_scale(
        TEN[:5], traces.rbf, (1.0, 1.0), noise_covariance=1.0, secrets=[0, 2], radius=1.0, order=2.0
    )
    direct = traces.privacy_loss(
        traces.GaussianPrior(TEN[:5], traces.rbf(1.0)), 1.0, [0, 2], 1.0, 2.0
    )
    assert one.upper == direct.upper
    single, double = (
        traces.worst_length_scale(
            TEN[:4],
            traces.rbf,
            (0.8, 1.2),
            noise_covariance=1.0,
            secrets=[0, 2],
            radius=1.0,
            order=2.0,
            dimensions=k,
        )
        for k in (1, 2)
    )
    assert double.lower == pytest.approx(2 * single.lower)
    assert double.upper >= double.lower


def test_models_of_inverses_hold_every_inverse() -> None:
    with flint.ctx.workprec(256):
        model = intervals.covariance_model(traces.rbf, (1.98, 2.02), TEN[:6], 8)
        inverse = model.inverse().range()
        for length in (1.98, 1.99, 2.0, 2.013, 2.02):
            exact = traces.GaussianPrior(TEN[:6], traces.rbf(length)).balls().inv()
            for i in range(6):
                for j in range(6):
                    assert inverse[i, j].overlaps(exact[i, j])
                    assert inverse[i, j].contains(exact[i, j].mid())
        product = (model * model.inverse()).range()
        assert float((product[0, 0] - 1).abs_upper()) < 1e-3
        assert float(product[0, 1].abs_upper()) < 1e-3


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"interval": (2.0, 1.0)}, "interval"),
        ({"interval": (0.0, 1.0)}, "interval"),
        ({"interval": (1.0,)}, "interval"),
        ({"kernel": lambda length: traces.matern(length, 1.7)}, "kernel"),
        ({"kernel": lambda length: traces.custom(lambda s, t: 1.0 * (s == t))}, "kernel"),
        ({"secrets": [11]}, r"secrets\[0\]"),
        ({"kernel": traces.rbf(1.0)}, "kernel"),
    ],
)
def test_bad_arguments_are_placed(change: dict[str, object], where: str) -> None:
    good: dict[str, object] = {
        "times": TEN, "kernel": traces.rbf, "interval": (1.0, 2.0), "noise_covariance": 1.0,
        "secrets": [0, 2], "radius": 1.0, "order": 2.0,
    }  # fmt: skip
    with pytest.raises(om.ProblemError, match=f"^{where}"):
        traces.worst_length_scale(**{**good, **change})  # type: ignore[arg-type]


def test_an_interval_over_hundreds_of_powers_of_ten() -> None:
    """Balls of its pieces reach 0 at few digits: they are cut, or their bound is none."""
    found = traces.worst_length_scale(
        [0.0, 1.0, 2.0], traces.rbf, [0.5, 1e200],
        noise_covariance=4.0 * np.eye(3), secrets=[1], radius=1.0, order=2.0,
    )  # fmt: skip
    assert found.loss.upper <= found.upper
    # at long length scales all three positions move together by 1, at noise of variance 4:
    # order · 3 · 1² / (2 · 4)
    assert found.loss.lower == pytest.approx(0.75, rel=1e-9)
