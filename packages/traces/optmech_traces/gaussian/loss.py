"""The conditional inferential loss of a released trace (Meehan and Chaudhuri 2019, Definition 2.2,
eqs. 3 and 4), the (ε, δ) that Rényi losses imply, rounded towards more loss, and the least
isotropic noise that keeps a promised loss."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from functools import cache

import flint
import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.bisection import reached
from optmech.base.read_only import locked, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import positive
from optmech.exact.exponentials import stated_down
from optmech.exact.number import Number, float_of, parse_exact
from optmech.spaces.arguments import checked_arguments
from optmech_traces.gaussian.balls import (
    Enclosure,
    above,
    at_first_precision,
    below,
    over_ball,
    over_box,
)
from optmech_traces.gaussian.prior import GaussianPrior, information, noise_matrix, secret_steps

_BITS = 192
_HALVINGS = 2000
"""More than there are powers of two among floats."""


def renyi_delta(loss: float, order: float, epsilon: Number) -> float:
    """δ that a Rényi divergence ≤ ``loss`` of one order λ > 1 implies at ε ≥ 0.

    min(1, e^{(λ−1)(loss−ε)} (1−1/λ)^λ / (λ−1)) (Canonne, Kamath and Steinke, NeurIPS 2020,
    Proposition 12), for any two distributions. ``TraceLoss.delta`` is tighter for Gaussian traces.

    Examples
    --------
    >>> print(round(om.traces.renyi_delta(loss=1, order=2, epsilon=3), 4))  # e^-2 / 4
    0.0338
    """
    value, power, spent = float_of(loss, "loss"), renyi_order(order, above=True), _epsilon(epsilon)
    with flint.ctx.workprec(_BITS):
        a = flint.arb(power)
        log_delta = (a - 1) * (flint.arb(value) - spent) + a * (1 - 1 / a).log() - (a - 1).log()
        return min(1.0, above(log_delta.exp())) if log_delta < 700 else 1.0


def renyi_epsilon(loss: float, order: float, delta: Number) -> float:
    """The least ε ≥ 0 at which ``renyi_delta`` is at most δ, rounded up.

    Examples
    --------
    >>> print(round(om.traces.renyi_epsilon(loss=1, order=2, delta=0.25), 4))  # e^(1 - ε) / 4 = δ
    1.0
    """
    value, power, mass = float_of(loss, "loss"), renyi_order(order, above=True), _delta(delta)
    with flint.ctx.workprec(_BITS):
        a = flint.arb(power)
        log_rest = a * (1 - 1 / a).log() - (a - 1).log() - flint.arb(mass).log()
        return max(0.0, above(flint.arb(value) + log_rest / (a - 1)))


def gaussian_delta(loss: float, order: float, epsilon: Number) -> float:
    """The exact δ at ε of two Gaussians of one covariance whose Rényi loss is ``loss``.

    Their distance is μ = √(2 loss/λ), and δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang,
    ICML 2018, Theorem 8). Rounded up.
    """
    value, rate = float_of(loss, "loss"), _epsilon(epsilon)
    if value == 0:
        return 0.0

    def attempt() -> float | None:
        mu, spent = (2 * flint.arb(value) / flint.arb(order)).sqrt(), flint.arb(rate)
        tail = _below(-mu / 2 - spent / mu)
        delta = _below(mu / 2 - spent / mu) - spent.exp() * tail
        return above(delta) if delta.rel_accuracy_bits() > 60 else None

    found = at_first_precision(attempt)
    return 1.0 if found is None else min(max(found, 0.0), 1.0)


def _below(x: flint.arb) -> flint.arb:
    """The standard normal distribution function."""
    return (-x / flint.arb(2).sqrt()).erfc() / 2


def _epsilon(value: Number) -> float:
    return stated_down(parse_exact(value, where="epsilon"))


def _delta(value: Number) -> float:
    number = stated_down(parse_exact(value, where="delta"))
    if not 0 < number < 1:
        raise ProblemError(f"{number:g} is not between 0 and 1", where="delta")
    return number


@record
class TraceLoss(Shown):
    """Bounds of the worst Rényi loss over all hypotheses about the secret positions.

    Examples
    --------
    >>> trace = om.traces.GaussianPrior([0], om.traces.rbf(1.0))
    >>> loss = om.traces.privacy_loss(trace, 1.0, secrets=[0], radius=1, order=2)
    >>> print(round(loss.lower, 6), round(loss.upper, 6), round(loss.epsilon(delta=1e-6), 3))
    1.0 1.0 4.887
    >>> print(round(loss.delta(epsilon=4.887), 8))
    1e-06
    """

    lower: float
    """The loss at ``hypothesis``, rounded down."""
    upper: float
    """No hypothesis loses more. Equal to ``lower`` but for rounding, except in boxes of more than
    24 linked coordinates."""
    hypothesis: Floats
    """The worst Δ found: by how much the two assumed secrets differ, shape (|S|,), or (|S|, k)."""
    secrets: tuple[int, ...]
    radius: float
    order: float
    ball: bool

    @property
    def expected_gain(self) -> tuple[float, float]:
        """Bounds of how many nats an adversary who compares two hypotheses gains on average for the
        right one, in the worst case: the log-odds of s against s + Δ after the release minus
        before, in expectation when s is true.

        That is KL = loss/λ for Gaussians of one covariance, whatever the prior odds. Meehan and
        Chaudhuri 2019, Corollary 1 takes the expectation when the other one is true, where it is
        -KL (docs/theory/trace-privacy.md)."""
        lower, upper = self.lower / self.order, self.upper / self.order
        return max(0.0, math.nextafter(lower, -math.inf)), math.nextafter(upper, math.inf)

    def delta(self, epsilon: Number) -> float:
        """An upper bound of the δ at which the release keeps (ε, δ) for every hypothesis.

        Exact for the Gaussians at hand (Balle and Wang, ICML 2018, Theorem 8), and so
        far below what a Rényi loss of one order implies.
        """
        return gaussian_delta(self.upper, self.order, epsilon)

    def epsilon(self, delta: Number) -> float:
        """The least ε, rounded up, for which the release keeps (ε, δ) for every hypothesis."""
        mass = _delta(delta)

        def suffices(epsilon: float) -> bool:
            return self.delta(epsilon) <= mass

        return reached(suffices, 0.0, 1.0, _HALVINGS, 1e-12, sys.float_info.max)[1]


@checked_arguments
def privacy_loss(
    trace: GaussianPrior,
    noise_covariance: ArrayLike,
    secrets: Iterable[int],
    radius: float,
    order: float,
    *,
    ball: bool = False,
) -> TraceLoss:
    """The worst Rényi loss of order λ between secrets within ``radius`` of each other.

    (λ/2) max ΔᵀMΔ, M = Bᵀ(N + C)⁻¹B (Meehan and Chaudhuri 2019, eq. 3 for N = σ_z² I), over the box
    ‖Δ‖_∞ ≤ r of Definition 2.2; or over the ball ‖Δ‖² ≤ r² m around it, m the number of secret
    coordinates (eq. 4). Both bounds are rigorous for the prior and the float64 noise given.

    Parameters
    ----------
    noise_covariance:
        A variance for every coordinate; variances by time, shape (d,); or a covariance, shape
        (d, d), or (d·k, d·k) for k axes.
    secrets:
        Indices of the secret times.
    radius:
        r > 0, in the unit of the positions, for every coordinate.
    order:
        λ ≥ 1 as in Meehan and Chaudhuri 2019; 1 stands for its limit, the Kullback-Leibler
        divergence.

    Raises
    ------
    ProblemError
        On bad arguments, and where the loss has no bound.

    Examples
    --------
    >>> alone = om.traces.GaussianPrior([0], om.traces.rbf(1.0))
    >>> loss = om.traces.privacy_loss(alone, 1.0, secrets=[0], radius=1, order=2)
    >>> print(round(loss.upper, 6))  # λ r² / (2 σ²)
    1.0
    >>> beside = om.traces.GaussianPrior([0, 1], om.traces.rbf(1.0))
    >>> print(om.traces.privacy_loss(beside, 1.0, secrets=[0], radius=1, order=2).upper > 1)
    True
    """
    steps = secret_steps(trace, secrets)
    r, power = positive(radius, "radius"), renyi_order(order)
    noise = noise_matrix(trace, noise_covariance)
    return worst(trace, information(trace, noise, steps), tuple(steps.tolist()), r, power, ball)


def worst(
    trace: GaussianPrior,
    matrix: Enclosure,
    secrets: tuple[int, ...],
    radius: float,
    order: float,
    ball: bool,
) -> TraceLoss:
    """The loss of an enclosed M."""
    found = over_ball(matrix) if ball else over_box(matrix)
    size = len(matrix.mid)
    with flint.ctx.workprec(128):
        factor = flint.arb(order) / 2 * flint.arb(radius) ** 2 * (size if ball else 1)
        lower, upper = below(factor * found.lower), above(factor * found.upper)
    if not np.isfinite(upper):
        raise ProblemError(
            "the loss exceeds every float", where="noise_covariance", remedy="Add more noise"
        )
    reach = radius * float(np.sqrt(size)) if ball else radius
    hypothesis = reach * found.point
    if trace.dimensions > 1:
        hypothesis = hypothesis.reshape(-1, trace.dimensions)
    return TraceLoss(max(lower, 0.0), upper, locked(hypothesis), secrets, radius, order, ball)


def renyi_order(value: float, *, above: bool = False) -> float:
    """A finite order of at least 1, or ``above`` it."""
    number = float(finite_array(value, where="order", ndim=0))
    if isinstance(value, bool) or not (number > 1 or (number == 1 and not above)):
        raise ProblemError(
            f"{value!r} is no order above 1" if above else f"{value!r} is below 1",
            where="order",
            remedy="Give the Rényi order: above 1, or 1 for the Kullback-Leibler divergence",
        )
    return number


_TOLERANCE = 1e-9


@checked_arguments
def calibrate(
    trace: GaussianPrior,
    epsilon: Number,
    secrets: Iterable[int],
    radius: float,
    order: float,
    *,
    ball: bool = False,
) -> float:
    """The least standard deviation σ_z of independent noise on every coordinate with loss ≤ ε.

    More noise never loses more (docs/theory/trace-privacy.md), so the search is a bisection. The
    proved upper bound of the loss at the returned σ_z is at most ε; at σ_z (1 − 10⁻⁹) it exceeds ε.
    Arguments and errors as in ``privacy_loss``; ``epsilon`` may be an exact string such as
    ``"ln 3"``.

    Examples
    --------
    >>> trace = om.traces.GaussianPrior([0], om.traces.rbf(1.0))
    >>> sigma = om.traces.calibrate(trace, epsilon=1, secrets=[0], radius=1, order=2)
    >>> print(round(sigma, 6))  # a single position: λ r² / (2 σ²) = 1
    1.0
    """
    steps = secret_steps(trace, secrets).tolist()
    # a hair less than promised: bounds at neighbouring floats differ by their rounding
    promised = promise(epsilon) * (1 - 2.0**-40)
    size = len(steps) * trace.dimensions
    # the noise of the secrets themselves costs (λ/2) r² m / σ², whatever the prior
    reach = positive(radius, "radius") * math.sqrt(renyi_order(order)) * math.sqrt(size / 2)
    start = reach / math.sqrt(promised)

    def loss(deviation: float) -> float:
        variance = np.nextafter(deviation * deviation, 0.0)
        return privacy_loss(trace, variance, steps, radius, order, ball=ball).upper

    return least(loss, promised, start)


def least(loss: Callable[[float], float], promised: float, start: float) -> float:
    """The least argument, within 10⁻⁹ of itself, at which a decreasing positive function is at
    most ``promised``; never one at which it is more. ``start`` is a guess from below."""
    from scipy.optimize import brentq

    if not 0 < start < math.inf:
        raise ProblemError(
            f"the noise that is needed is about {start:g}, which is no float that can be used",
            where="radius",
            remedy="Choose a unit of length in which it can",
        )

    @cache
    def excess(at: float) -> float:
        """log(loss/ε), with a sign that does not depend on rounding."""
        value = loss(math.exp(at))
        over = math.log(max(value, 5e-324)) - math.log(promised)
        return min(over, 0.0) if value <= promised else max(over, 5e-324)

    low = high = math.log(start)
    step = 1e-7
    while excess(high) > 0:
        low, high = high, high + max(step, excess(high) / 2)
        step *= 4
        if high > 700:
            raise ProblemError("no noise suffices", where="epsilon", remedy="Promise less")
    while excess(low) <= 0:
        low -= max(step, -excess(low))
        step *= 4
    high = brentq(excess, low, high, xtol=_TOLERANCE / 8) + _TOLERANCE / 4
    while excess(high) > 0:
        high += _TOLERANCE / 4
    return math.exp(high)


def promise(epsilon: Number) -> float:
    """ε > 0 as a float that does not exceed it."""
    return stated_down(parse_exact(epsilon, where="epsilon", positive=True))
