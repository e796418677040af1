"""The worst length scale of an interval, found by search and bounded by proof, and noise that keeps
its promise for every length scale.

Meehan and Chaudhuri 2019 says that privacy at the largest length scale implies privacy at every
smaller one. That is not proved there, and not true in general (docs/theory/trace-privacy.md), so
nothing here relies on it.

Matrices that depend on the length scale are enclosed by polynomials with a rigorous remainder. A
model of degree p on |δ| ≤ w is a list of p + 1 matrices of balls, and stands for every matrix
function F with F(δ) in Σ_k A_k δᵏ there. The last matrix takes up what is cut off. Interval
matrices alone would lose how their entries move together, and with it every inverse of a smooth
kernel's covariance.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, reduce
from itertools import pairwise
from typing import Any

import flint
import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, VerificationError
from optmech.exact.arguments import positive
from optmech.exact.exponentials import ball_of
from optmech.exact.number import Number
from optmech.spaces.arguments import checked_arguments
from optmech_traces.gaussian.balls import (
    Ball,
    BallMatrix,
    Enclosure,
    at_first_precision,
    enclose,
    of_floats,
    part,
)
from optmech_traces.gaussian.kernels import Kernel
from optmech_traces.gaussian.loss import TraceLoss, privacy_loss, promise, renyi_order, worst
from optmech_traces.gaussian.noise import GaussianNoise, Structure, optimal_noise
from optmech_traces.gaussian.prior import Axes, GaussianPrior, noise_matrix, pin, secret_steps


@record
class Model:
    """Σ_k coefficients[k] δᵏ for |δ| ≤ width."""

    coefficients: tuple[BallMatrix, ...]
    width: Ball

    @property
    def degree(self) -> int:
        """p."""
        return len(self.coefficients) - 1

    def map(self, change: Callable[[BallMatrix], BallMatrix]) -> Model:
        """A linear change of every coefficient."""
        return Model(tuple(change(a) for a in self.coefficients), self.width)

    def __add__(self, matrix: BallMatrix) -> Model:
        """The model and a matrix that does not depend on δ."""
        first, *others = self.coefficients
        return Model((first + matrix, *others), self.width)

    def __sub__(self, other: Model) -> Model:
        pairs = zip(self.coefficients, other.coefficients, strict=True)
        return Model(tuple(a - b for a, b in pairs), self.width)

    def __mul__(self, other: Model) -> Model:
        p = self.degree
        rows, columns = self.coefficients[0].nrows(), other.coefficients[0].ncols()
        out = [flint.arb_mat(rows, columns) for _ in range(2 * p + 1)]
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(other.coefficients):
                out[i + j] += a * b
        # what is beyond the degree becomes part of the last coefficient
        return Model((*out[:p], Model(tuple(out[p:]), self.width).range()), self.width)

    def range(self) -> BallMatrix:
        """Every matrix that the model takes."""
        span = flint.arb(0, 1) * self.width
        return reduce(lambda total, a: total * span + a, reversed(self.coefficients))

    def inverse(self) -> Model:
        """The inverse, proved to exist on the whole interval.

        With Y the truncated series of the inverse and A Y = I − E, ‖E‖ = e < 1, the inverse is Y +
        Y E(I − E)⁻¹, whose last factor has entries of at most e/(1 − e). Raises ZeroDivisionError
        where it cannot be proved to exist.
        """
        size = self.coefficients[0].nrows()
        first = self.coefficients[0].inv()
        series = [first]
        for k in range(1, self.degree):
            total = flint.arb_mat(size, size)
            for j in range(1, k + 1):
                total += self.coefficients[j] * series[k - j]
            series.append(-1 * (first * total))
        series.append(flint.arb_mat(size, size))
        near = Model(tuple(series), self.width)
        unit = [flint.arb_mat(size, size, 1), *[flint.arb_mat(size, size)] * self.degree]
        rows = _row_sums((Model(tuple(unit), self.width) - self * near).range())
        error = reduce(lambda most, row: most.max(row), rows)
        if not error < 1:
            raise ZeroDivisionError
        left = error / (1 - error)
        for i, row in enumerate(_row_sums(near.range())):
            for j in range(size):
                series[0][i, j] += flint.arb(0, 1) * (row * left)
        return Model(tuple(series), self.width)


def covariance_model(
    kernel: Callable[[Any], Kernel],
    interval: tuple[float, float],
    times: Floats,
    degree: int,
) -> Model:
    """Covariances of all pairs of times for every length scale of an interval.

    Coefficients below the degree are those of the Taylor series at the middle, and the last is
    the one over the whole interval (Taylor's theorem with Lagrange's remainder).
    """
    low, high = flint.arb(interval[0]), flint.arb(interval[1])
    middle, width = (low + high) / 2, (high - low) / 2
    exact = flint.arb(middle.mid())
    width = width + (middle - exact).abs_upper()
    whole = exact + flint.arb(0, 1) * width
    if not whole > 0:
        # an interval too wide for these digits: no precision, or a narrower piece
        raise ZeroDivisionError

    def series(length: Ball, lag: Fraction) -> list[Ball]:
        """The Taylor coefficients of the kernel in its length scale, at a lag."""
        before, flint.ctx.cap = flint.ctx.cap, degree + 1
        try:
            made = kernel(flint.arb_series([length, 1], degree + 1)).ball(ball_of(lag))
        except (AttributeError, TypeError, NotImplementedError) as error:
            raise ProblemError(
                "this kernel has no enclosure over an interval of length scales",
                where="kernel",
                remedy="Use rbf, periodic, or matern with smoothness 1/2, 3/2, 5/2, ...",
            ) from error
        finally:
            flint.ctx.cap = before
        if not isinstance(made, flint.arb_series):
            return [made] + [flint.arb(0)] * degree
        return [made[k] for k in range(degree + 1)]

    @cache
    def coefficients(lag: Fraction) -> list[Ball]:
        return [*series(exact, lag)[:degree], series(whole, lag)[degree]]

    size = len(times)
    out = [flint.arb_mat(size, size) for _ in range(degree + 1)]
    moments = [Fraction(t) for t in times.tolist()]
    for i in range(size):
        for j in range(i + 1):
            for matrix, value in zip(out, coefficients(moments[i] - moments[j]), strict=True):
                matrix[i, j] = matrix[j, i] = value
    return Model(tuple(out), width)


def _row_sums(matrix: BallMatrix) -> list[Ball]:
    """Upper bounds of the sums of moduli."""
    return [sum((x.abs_upper() for x in row), flint.arb(0)) for row in matrix.table()]


_GRID = 17
_DEGREE = 8
_BITS = 256


@record
class IntervalLoss(Shown):
    """The largest loss over an interval of length scales.

    Examples
    --------
    >>> worst = om.traces.worst_length_scale(
    ...     [0, 1], om.traces.rbf, (0.5, 2), noise_covariance=1.0, secrets=[0], radius=1, order=2
    ... )
    >>> print(worst.lower <= worst.upper, worst.pieces >= 1)
    True True
    """

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

    Examples
    --------
    >>> worst = om.traces.worst_length_scale(
    ...     [0, 1], om.traces.rbf, (0.5, 2), noise_covariance=1.0, secrets=[0], radius=1, order=2
    ... )
    >>> print(round(worst.length_scale, 3), round(worst.lower, 4))
    2.0 1.6377
    """
    low, high = length_interval(interval)
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
    heap = [(-over(a, b), a - b, a, b) for a, b in pairwise(cuts)]
    heapq.heapify(heap)
    while -heap[0][0] > (1 + tolerance) * found[best].lower:
        # a piece without a bound must be cut again: past this there is none for the interval
        if len(heap) + max(1, sum(math.isinf(bound) for bound, *_ in heap)) > pieces:
            break
        bound, _, a, b = heapq.heappop(heap)
        middle = (a + b) / 2
        if math.isfinite(bound):
            found[middle] = at(middle)
            best = max(best, middle, key=lambda length: found[length].lower)
        for left, right in pairwise((a, middle, b)):
            heapq.heappush(heap, (-over(left, right), left - right, left, right))
    loss = found[best]
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


def length_interval(value: Sequence[float], where: str = "interval") -> tuple[float, float]:
    """Smallest and largest length scale; refuses what is no interval above 0."""
    ends = finite_array(value, where=where, ndim=1)
    if ends.shape != (2,) or not 0 < ends[0] <= ends[1]:
        raise ProblemError(
            f"{ends.tolist()} is not an interval of length scales",
            where=where,
            remedy="Give [low, high] with 0 < low <= high",
        )
    return float(ends[0]), float(ends[1])


_ROUNDS = 20
_PIECES = 500
"""Pieces of the interval, enclosed in all rounds together: what a proof may take."""


@record
class RobustNoise(Shown):
    """A design, and the proof over the interval.

    Examples
    --------
    >>> robust = om.traces.robust_noise(
    ...     [0, 1], om.traces.rbf, (0.5, 2), epsilon=1, secrets=[0], radius=1, order=2
    ... )
    >>> print(robust.interval.upper <= 1, robust.design.covariance.shape)
    True (2, 2)
    """

    design: GaussianNoise
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

    Meehan and Chaudhuri 2019's class of priors has every length scale up to a largest one, which is
    not enough to look at. Here the worst length scale of the interval is found, added to those that
    the noise is designed for, and so on until interval arithmetic proves the promise for all.
    ``margin`` is what the proof may cost: noise is designed for ε/(1 + margin).

    Raises
    ------
    VerificationError
        Where the promise could not be proved, with a bounded number of enclosures.

    Examples
    --------
    >>> robust = om.traces.robust_noise(
    ...     [0, 1], om.traces.rbf, (0.5, 2), epsilon=1, secrets=[0], radius=1, order=2
    ... )
    >>> print(robust.interval.upper <= 1, len(robust.length_scales) >= 1)
    True True
    """
    low, high = length_interval(interval)
    promised = promise(epsilon)
    if not 0 < margin <= 1:
        raise ProblemError(f"{margin!r} is not between 0 and 1", where="margin")
    lengths = [high] if low == high else [high, low]
    chosen = secret_steps(GaussianPrior(times, kernel(high)), secrets).tolist()

    def design(value: Number) -> GaussianNoise:
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
