"""The worst length scale of an interval, found by search and bounded by proof.

TP19 says that privacy at the largest length scale implies privacy at every smaller one. That is
not proved there, and not true in general (docs/theory.md), so nothing here relies on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import flint
import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.traces.gaussian.balls import (
    BallMatrix,
    Enclosure,
    at_first_precision,
    enclose,
    of_floats,
    part,
)
from optmech.traces.gaussian.information import noise_matrix
from optmech.traces.gaussian.kernels import Kernel
from optmech.traces.gaussian.loss import TraceLoss, privacy_loss, renyi_order, scale, worst
from optmech.traces.gaussian.prior import GaussianPrior, secret_steps
from optmech.traces.gaussian.taylor import Model, covariance_model

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
    r, power = scale(radius, "radius"), renyi_order(order)
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
    """Cut the piece with the largest bound until that is close to the worst loss found."""
    if interval[0] == interval[1]:
        loss = at(interval[0])
        return IntervalLoss(interval[0], loss, loss.upper, 1)
    ends = np.geomspace(*interval, _GRID)
    ends[0], ends[-1] = interval
    cuts = [float(end) for end in ends]
    found = {length: at(length) for length in cuts}
    best = max(found, key=lambda length: found[length].lower)
    loss = found[best]
    heap = [(-over(a, b), a, b) for a, b in pairwise(cuts)]
    heapq.heapify(heap)
    while len(heap) < pieces and -heap[0][0] > (1 + tolerance) * loss.lower:
        _, a, b = heapq.heappop(heap)
        middle = (a + b) / 2
        tried = at(middle)
        if tried.lower > loss.lower:
            best, loss = middle, tried
        for left, right in ((a, middle), (middle, b)):
            heapq.heappush(heap, (-over(left, right), left, right))
    return IntervalLoss(best, loss, max(-heap[0][0], loss.upper), len(heap))


def _over(
    trace: GaussianPrior,
    kernel: Callable[[Any], Kernel],
    interval: tuple[float, float],
    noise: Floats,
    steps: Ints,
) -> Enclosure | None:
    """M for every length scale of an interval at once; None where it is not enclosed."""
    k = trace.dimensions
    over_time = covariance_model(kernel, interval, trace.times, _DEGREE)
    sigma = over_time if k == 1 else over_time.map(lambda a: _repeated(a, k))
    secrets = (steps[:, None] * k + np.arange(k)).ravel().tolist()
    everything = list(range(sigma.coefficients[0].nrows()))
    ahead = sigma.map(lambda a: part(a, everything, secrets))
    mean = ahead * sigma.map(lambda a: part(a, secrets, secrets)).inverse()
    for power, matrix in enumerate(mean.coefficients):
        for column, s in enumerate(secrets):
            for other in range(len(secrets)):
                matrix[s, other] = flint.arb(int(power == 0 and other == column))
    rest = sigma - mean * ahead.map(lambda a: a.transpose())
    for matrix in rest.coefficients:
        for s in secrets:
            for other in everything:
                matrix[s, other] = matrix[other, s] = flint.arb(0)
    released = _plus(rest, of_floats(noise))
    return enclose((mean.map(lambda a: a.transpose()) * (released.inverse() * mean)).range())


def _plus(model: Model, matrix: BallMatrix) -> Model:
    first, *others = model.coefficients
    return Model((first + matrix, *others), model.width)


def _repeated(matrix: BallMatrix, k: int) -> BallMatrix:
    """The covariance of k independent axes from the one over time."""
    size = matrix.nrows()
    out = flint.arb_mat(size * k, size * k)
    for i in range(size):
        for j in range(size):
            for a in range(k):
                out[i * k + a, j * k + a] = matrix[i, j]
    return out


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
