"""The worst length scale of an interval, found by search and bounded by proof.

TP19 says that privacy at the largest length scale implies privacy at every smaller one. That is
not proved there, and not true in general (docs/theory.md), so nothing here relies on it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.checked import positive
from optmech.spaces.arguments import checked_arguments
from optmech.traces.gaussian.balls import (
    Enclosure,
    at_first_precision,
    enclose,
    of_floats,
    part,
)
from optmech.traces.gaussian.information import Axes, noise_matrix, pin
from optmech.traces.gaussian.kernels import Kernel
from optmech.traces.gaussian.loss import TraceLoss, privacy_loss, renyi_order, worst
from optmech.traces.gaussian.prior import GaussianPrior, secret_steps
from optmech.traces.gaussian.taylor import covariance_model

_GRID = 17
_DEGREE = 8
_BITS = 256


@dataclass(frozen=True, eq=False, repr=False)
class IntervalLoss(Shown):
    """The largest loss over an interval of length scales."""

    length_scale: float
    """The worst one found."""
    loss: TraceLoss
    """At that length scale."""
    upper: float
    """No length scale of the interval loses more: proved. ``inf`` where no bound was found."""
    pieces: int
    """Into how many pieces the interval was cut."""

    @property
    def lower(self) -> float:
        """The loss at the worst length scale found, rounded down."""
        return self.loss.lower


@checked_arguments
def worst_length_scale(
    times: ArrayLike,
    kernel: Callable[[Any], Kernel],
    interval: Sequence[float],
    *,
    noise_covariance: ArrayLike,
    secrets: Iterable[int],
    radius: float,
    order: float,
    ball: bool = False,
    dimensions: int = 1,
    tolerance: float = 0.01,
    pieces: int = 100,
) -> IntervalLoss:
    """The worst length scale between two, and an upper bound of the loss over all of them.

    Parameters
    ----------
    kernel:
        From a length scale to a kernel of om.traces, such as ``om.traces.rbf`` or
        ``lambda l: om.traces.matern(l, 2.5) + om.traces.white(0.1)``. It is called with power
        series too.
    interval:
        Smallest and largest length scale, 0 < low <= high.
    dimensions:
        Independent axes.
    tolerance:
        The interval is cut until the bound is within this of the worst loss found, relatively,
        or into ``pieces`` pieces; ``IntervalLoss.upper`` says what was reached.

    Raises
    ------
    ProblemError
        On bad arguments, and for kernels without an enclosure.
    """
    low, high = length_interval(interval)
    require_family(kernel)
    first = GaussianPrior(times, kernel(low), dimensions)
    if not first.kernel.exact:
        raise ProblemError(
            "a kernel that is known by its matrices cannot be enclosed",
            where="kernel",
            remedy="Use kernels of om.traces",
        )
    steps = secret_steps(first, secrets)
    r, power = positive(radius, "radius"), renyi_order(order)
    noise = noise_matrix(first, noise_covariance)
    chosen = tuple(steps.tolist())

    def at(length: float) -> TraceLoss:
        prior = GaussianPrior(first.times, kernel(length), dimensions)
        return privacy_loss(prior, noise, chosen, r, power, ball=ball)

    def over(a: float, b: float) -> float:
        matrix = at_first_precision(
            lambda: _over(first, kernel, (a, b), noise, steps), least=_BITS, most=4 * _BITS
        )
        if matrix is None:
            return float("inf")
        return worst(first, matrix, chosen, r, power, ball).upper

    return _bisect(at, over, (low, high), tolerance, pieces)


def _bisect(
    at: Callable[[float], TraceLoss],
    over: Callable[[float, float], float],
    interval: tuple[float, float],
    tolerance: float,
    pieces: int,
) -> IntervalLoss:
    """Cut the piece with the largest bound until that is close to the worst loss found; of pieces
    without a bound the widest, and nothing is searched in them before they have one."""
    if interval[0] == interval[1]:
        loss = at(interval[0])
        return IntervalLoss(interval[0], loss, loss.upper, 1)
    cuts = [interval[0], *np.geomspace(*interval, _GRID)[1:-1].tolist(), interval[1]]
    found = {length: at(length) for length in cuts}
    best = max(found, key=lambda length: found[length].lower)
    loss = found[best]
    heap = [(-over(a, b), a - b, a, b) for a, b in pairwise(cuts)]
    heapq.heapify(heap)
    unbounded = sum(math.isinf(bound) for bound, *_ in heap)
    # a piece without a bound must be cut again: past this there is none for the interval
    while len(heap) + max(unbounded, 1) <= pieces and -heap[0][0] > (1 + tolerance) * loss.lower:
        bound, _, a, b = heapq.heappop(heap)
        middle = (a + b) / 2
        unbounded -= math.isinf(bound)
        if math.isfinite(bound) and (tried := at(middle)).lower > loss.lower:
            best, loss = middle, tried
        for left, right in ((a, middle), (middle, b)):
            upper = over(left, right)
            unbounded += math.isinf(upper)
            heapq.heappush(heap, (-upper, left - right, left, right))
    return IntervalLoss(best, loss, max(-heap[0][0], loss.upper), len(heap))


def _over(
    trace: GaussianPrior,
    kernel: Callable[[Any], Kernel],
    interval: tuple[float, float],
    noise: Floats,
    steps: Ints,
) -> Enclosure | None:
    """M for every length scale of an interval at once; None where it is not enclosed."""
    together = Axes(trace, tuple(range(trace.dimensions)))
    sigma = covariance_model(kernel, interval, trace.times, _DEGREE).map(together.covariance)
    secrets = together.of_steps(steps).tolist()
    ahead = sigma.map(lambda a: part(a, range(a.nrows()), secrets))
    mean = ahead * sigma.map(lambda a: part(a, secrets, secrets)).inverse()
    rest = sigma - mean * ahead.map(lambda a: a.transpose())
    for power, known in enumerate(zip(mean.coefficients, rest.coefficients, strict=True)):
        pin(*known, secrets, one=int(power == 0))
    released = rest + of_floats(noise)
    return enclose((mean.map(lambda a: a.transpose()) * (released.inverse() * mean)).range())


def require_family(kernel: object) -> None:
    """Refuse what is not a function of a length scale."""
    if not callable(kernel):
        raise ProblemError(
            f"{type(kernel).__name__} is not a function of the length scale",
            where="kernel",
            remedy="Give om.traces.rbf itself, or lambda l: om.traces.matern(l, 2.5)",
        )


def length_interval(value: Sequence[float]) -> tuple[float, float]:
    """Smallest and largest length scale; refuses what is no interval above 0."""
    ends = finite_array(value, where="interval", ndim=1)
    if ends.shape != (2,) or not 0 < ends[0] <= ends[1]:
        raise ProblemError(
            f"{ends.tolist()} is not an interval of length scales",
            where="interval",
            remedy="Give [low, high] with 0 < low <= high",
        )
    return float(ends[0]), float(ends[1])
