"""The least isotropic noise that keeps a promised loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from optmech.errors import ProblemError
from optmech.exact.checked import positive
from optmech.exact.exponentials import bracket
from optmech.exact.number import Number, parse_exact
from optmech.spaces.arguments import checked_arguments
from optmech.traces.gaussian.loss import privacy_loss, renyi_order
from optmech.traces.gaussian.prior import GaussianPrior, secret_steps

_TOLERANCE = 1e-9
_STEPS = 200


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

    More noise never loses more (docs/theory.md), so the search is a bisection. The proved upper
    bound of the loss at the returned σ_z is at most ε; at σ_z (1 − 10⁻⁹) it exceeds ε. Arguments
    and errors as in ``privacy_loss``; ``epsilon`` may be an exact string such as ``"ln 3"``.
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
    if not 0 < start < math.inf:
        raise ProblemError(
            f"the noise that is needed is about {start:g}, which is no float that can be used",
            where="radius",
            remedy="Choose a unit of length in which it can",
        )
    low, high = math.log(start), math.log(start)
    at_low = at_high = _excess(loss, promised, start)
    step = 1e-7
    while at_high > 0:
        low, at_low = high, at_high
        high += max(step, at_high / 2)
        step *= 4
        if high > 700:
            raise ProblemError("no noise suffices", where="epsilon", remedy="Promise less")
        at_high = _excess(loss, promised, math.exp(high))
    if low == high:
        low, at_low = high - 1e-7, _excess(loss, promised, math.exp(high - 1e-7))
        while at_low <= 0:
            high, at_high = low, at_low
            low -= max(step, -at_low)
            step *= 4
            at_low = _excess(loss, promised, math.exp(low))
    for k in range(_STEPS):
        if high - low <= _TOLERANCE:
            break
        # a secant between the ends, kept off them; every third step a bisection
        share = at_low / (at_low - at_high) if k % 3 < 2 else 0.5
        rim = _TOLERANCE / 4 / (high - low)
        middle = low + (high - low) * min(max(share + rim, rim), 1 - rim)
        value = _excess(loss, promised, math.exp(middle))
        if value > 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return math.exp(high)


def promise(epsilon: Number) -> float:
    """ε > 0 as a float that does not exceed it."""
    stated = parse_exact(epsilon, where="epsilon", positive=True)
    low, _ = bracket(stated)
    value = float(low)
    return value if value <= low else math.nextafter(value, 0.0)


def _excess(loss: Callable[[float], float], promised: float, at: float) -> float:
    """log(loss/ε), with a sign that does not depend on rounding."""
    value = loss(at)
    if value <= promised:
        return min(math.log(max(value, 5e-324)) - math.log(promised), 0.0)
    return max(math.log(value) - math.log(promised), 5e-324)
