"""Noise that keeps its promise for every length scale of an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from optmech.base.shown import Shown
from optmech.errors import ProblemError, VerificationError
from optmech.exact.number import Number
from optmech.spaces.arguments import checked_arguments
from optmech.traces.gaussian.calibration import promise
from optmech.traces.gaussian.intervals import (
    IntervalLoss,
    length_interval,
    require_family,
    worst_length_scale,
)
from optmech.traces.gaussian.kernels import Kernel
from optmech.traces.gaussian.noise import NoiseDesign, Structure, optimal_noise
from optmech.traces.gaussian.prior import GaussianPrior, secret_steps

_ROUNDS = 20
_PIECES = 500
"""Of the interval, enclosed in all rounds together: what a proof may take."""


@dataclass(frozen=True, eq=False, repr=False)
class RobustNoise(Shown):
    """A design, and the proof over the interval."""

    design: NoiseDesign
    """Its losses are those at ``length_scales``; ``lower_bound`` holds for the whole interval."""
    interval: IntervalLoss
    """No length scale loses more than its ``upper``, which is at most ε."""
    length_scales: tuple[float, ...]
    """The length scales that the design was made for."""


@checked_arguments
def robust_noise(
    times: ArrayLike,
    kernel: Callable[[Any], Kernel],
    interval: Sequence[float],
    *,
    epsilon: Number,
    secrets: Iterable[int],
    radius: float,
    order: float,
    dimensions: int = 1,
    structure: Structure = "full",
    margin: float = 0.02,
) -> RobustNoise:
    """Noise with loss ≤ ε (ball bound) for every length scale between two.

    TP19's class of priors has every length scale up to a largest one, which is not enough to
    look at. Here the worst length scale of the interval is found, added to those that the noise is
    designed for, and so on until interval arithmetic proves the promise for all. ``margin`` is what
    the proof may cost: noise is designed for ε/(1 + margin).

    Raises
    ------
    VerificationError
        Where the promise could not be proved, with a bounded number of enclosures.
    """
    low, high = length_interval(interval)
    require_family(kernel)
    promised = promise(epsilon)
    if not 0 < margin <= 1:
        raise ProblemError(f"{margin!r} is not between 0 and 1", where="margin")
    lengths = [high] if low == high else [high, low]
    chosen = secret_steps(GaussianPrior(times, kernel(high)), secrets).tolist()

    def design(value: Number) -> NoiseDesign:
        priors = [GaussianPrior(times, kernel(length), dimensions) for length in lengths]
        return optimal_noise(
            priors[0], value, [chosen], radius, order, also=priors[1:], structure=structure
        )

    pieces = 0
    for _ in range(_ROUNDS):
        found = design(promised / (1 + margin))
        worst = worst_length_scale(
            times, kernel, (low, high), noise_covariance=found.covariance,
            secrets=chosen, radius=radius, order=order, ball=True, dimensions=dimensions,
            tolerance=margin / 3,
        )  # fmt: skip
        if worst.upper <= promised:
            bound = design(epsilon).lower_bound
            proved = replace(found, lower_bound=bound)
            return RobustNoise(proved, worst, tuple(sorted(lengths)))
        pieces += worst.pieces
        # more noise encloses nothing that these pieces leave without a bound
        if worst.length_scale in lengths or not math.isfinite(worst.upper) or pieces > _PIECES:
            break
        lengths.append(worst.length_scale)
    raise VerificationError(
        f"the loss could not be proved to stay below {promised:g} on the interval",
        where="robust_noise",
        remedy="Give a shorter interval, or a larger margin",
    )
