"""Noise for an interval of length scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optmech_traces.gaussian import intervals

import optmech as om
from optmech import traces

TIMES = np.arange(6.0)


def test_the_promise_holds_for_every_length_scale() -> None:
    found = traces.robust_noise(
        TIMES, traces.rbf, (0.5, 2.0), epsilon="ln 3", secrets=[0, 2, 4], radius=1.0, order=2.0
    )
    assert found.interval.upper <= np.log(3)
    for length in np.linspace(0.5, 2.0, 40).tolist():
        prior = traces.GaussianPrior(TIMES, traces.rbf(length))
        loss = traces.privacy_loss(prior, found.design.covariance, [0, 2, 4], 1.0, 2.0, ball=True)
        assert loss.upper <= found.interval.upper
        # protecting against one of them alone is never dearer than the bound for all
        alone = traces.optimal_noise(prior, "ln 3", [[0, 2, 4]], 1.0, 2.0)
        assert alone.lower_bound <= found.design.lower_bound * (1 + 1e-2)
    assert found.design.lower_bound <= found.design.trace <= 1.04 * found.design.lower_bound
    assert {0.5, 2.0} <= set(found.length_scales)


def test_two_axes_and_a_single_length_scale() -> None:
    found = traces.robust_noise(
        TIMES[:4],
        traces.ornstein_uhlenbeck,
        (1.0, 1.0),
        epsilon=1.0,
        secrets=[1],
        radius=1.0,
        order=2.0,
        dimensions=2,
    )
    plain = traces.optimal_noise(
        traces.GaussianPrior(TIMES[:4], traces.ornstein_uhlenbeck(1.0), dimensions=2),
        1.0 / 1.02, [[1]], 1.0, 2.0,
    )  # fmt: skip
    assert found.design.trace == pytest.approx(plain.trace, rel=1e-9)
    assert found.interval.upper <= 1.0


def test_an_interval_that_cannot_be_enclosed_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions so close that a hundred pieces are too few: no round follows the first one."""
    times = [0.0, 0.009, 0.0167, 1.0, 2.0, 3.0]
    widths, over = [], intervals._over

    def counted(*args: Any) -> Any:
        widths.append(args[2][1] - args[2][0])
        return over(*args)

    monkeypatch.setattr(intervals, "_over", counted)
    with pytest.raises(om.errors.VerificationError, match="a shorter interval"):
        traces.robust_noise(
            times, traces.rbf, (0.5, 1.5), epsilon=1, secrets=[0, 2, 4], radius=1.0, order=2.0
        )
    # each a piece, or half of one, at every precision
    assert len(set(widths)) > 1
    assert len(widths) <= 3 * 2 * 100


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"interval": (2.0, 1.0)}, "interval"),
        ({"margin": 0.0}, "margin"),
        ({"epsilon": -1}, "epsilon"),
        ({"secrets": [9]}, r"secrets\[0\]"),
    ],
)
def test_bad_arguments_are_placed(change: dict[str, object], where: str) -> None:
    good: dict[str, object] = {
        "times": TIMES, "kernel": traces.rbf, "interval": (1.0, 2.0), "epsilon": 1.0,
        "secrets": [0, 2], "radius": 1.0, "order": 2.0,
    }  # fmt: skip
    with pytest.raises(om.ProblemError, match=f"^{where}"):
        traces.robust_noise(**{**good, **change})  # type: ignore[arg-type]
