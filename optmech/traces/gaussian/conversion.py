"""From Rényi losses to (ε, δ), rounded towards more loss."""

from __future__ import annotations

import math

import flint

from optmech.base.arrays import finite_array
from optmech.errors import ProblemError
from optmech.exact.checked import amount
from optmech.exact.exponentials import stated_down
from optmech.exact.number import Number, parse_exact
from optmech.traces.gaussian.balls import above

_BITS = (192, 768, 3072)


def renyi_delta(loss: float, order: float, epsilon: Number) -> float:
    """δ that a Rényi divergence ≤ ``loss`` of one order λ > 1 implies at ε ≥ 0.

    min(1, e^{(λ−1)(loss−ε)} (1−1/λ)^λ / (λ−1)) (Canonne, Kamath and Steinke, NeurIPS 2020,
    Proposition 12), for any two distributions. ``TraceLoss.delta`` is tighter for Gaussian traces.
    """
    value, power, spent = amount(loss, "loss"), _order(order), _epsilon(epsilon)
    with flint.ctx.workprec(_BITS[0]):
        a = flint.arb(power)
        log_delta = (a - 1) * (flint.arb(value) - spent) + a * (1 - 1 / a).log() - (a - 1).log()
        return min(1.0, above(log_delta.exp())) if log_delta < 700 else 1.0


def renyi_epsilon(loss: float, order: float, delta: Number) -> float:
    """The least ε ≥ 0 at which ``renyi_delta`` is at most δ, rounded up."""
    value, power, mass = amount(loss, "loss"), _order(order), _delta(delta)
    with flint.ctx.workprec(_BITS[0]):
        a = flint.arb(power)
        log_rest = a * (1 - 1 / a).log() - (a - 1).log() - flint.arb(mass).log()
        return max(0.0, above(flint.arb(value) + log_rest / (a - 1)))


def gaussian_delta(loss: float, order: float, epsilon: Number) -> float:
    """The exact δ at ε of two Gaussians of one covariance whose Rényi loss is ``loss``.

    Their distance is μ = √(2 loss/λ), and δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang,
    ICML 2018, Theorem 8). Rounded up.
    """
    value, spent = amount(loss, "loss"), _epsilon(epsilon)
    return _gaussian_delta(value, order, spent)


def gaussian_epsilon(loss: float, order: float, delta: Number) -> float:
    """The least ε ≥ 0 at which ``gaussian_delta`` is at most δ, rounded up."""
    value, mass = amount(loss, "loss"), _delta(delta)
    if _gaussian_delta(value, order, 0.0) <= mass:
        return 0.0
    low, high = 0.0, 1.0
    while _gaussian_delta(value, order, high) > mass:
        low, high = high, 2 * high
        if high == math.inf:
            return high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _gaussian_delta(value, order, middle) > mass:
            low = middle
        else:
            high = middle
    return high


def _gaussian_delta(loss: float, order: float, epsilon: float) -> float:
    if loss == 0:
        return 0.0
    found = 1.0
    for bits in _BITS:
        with flint.ctx.workprec(bits):
            mu, spent = (2 * flint.arb(loss) / flint.arb(order)).sqrt(), flint.arb(epsilon)
            tail = _below(-mu / 2 - spent / mu)
            delta = _below(mu / 2 - spent / mu) - spent.exp() * tail
            found = min(found, above(delta))
            if delta.rel_accuracy_bits() > 60:
                break
    return max(found, 0.0)


def _below(x: flint.arb) -> flint.arb:
    """The standard normal distribution function."""
    return (-x / flint.arb(2).sqrt()).erfc() / 2


def _order(value: float) -> float:
    number = float(finite_array(value, where="order", ndim=0))
    if not number > 1:
        raise ProblemError(f"{number:g} must be above 1", where="order")
    return number


def _epsilon(value: Number) -> float:
    return stated_down(parse_exact(value, where="epsilon"))


def _delta(value: Number) -> float:
    number = stated_down(parse_exact(value, where="delta"))
    if not 0 < number < 1:
        raise ProblemError(f"{number:g} is not between 0 and 1", where="delta")
    return number
