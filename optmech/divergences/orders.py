"""Rényi divergences of every order from 0 to infinity."""

from __future__ import annotations

import math

import numpy as np

from optmech.base.arrays import Floats
from optmech.divergences.named import both, kl, max_divergence
from optmech.errors import ProblemError
from optmech.exact.checked import float_or_nan
from optmech.exact.ratios.generators import excess_log
from optmech.exact.ratios.hockey_stick import log_ratio
from optmech.spaces.prior import Distribution

_LARGE = 500.0
"""Powers of e up to this leave room for products and sums."""
_HUGE = 1e10
"""Orders beyond this, with log ratios of up to 1500, would leave logarithms few digits."""


def renyi(p: Distribution, q: Distribution, order: float) -> float:
    """ln(Σ p^α q^(1-α)) / (α - 1), in nats, for ``order`` α from 0 to ``math.inf``.

    By its limits: Kullback-Leibler at 1, -ln q(p > 0) at 0, max divergence at infinity. inf where
    p > 0 = q somewhere (α >= 1), or everywhere on p's support (α < 1). It grows with α. (CM19 §VII
    points to it; Mironov, CSF 2017; van Erven and Harremoës 2014.)

    Raises
    ------
    ProblemError
        On an order that is negative or not a number.
    """
    alpha = _order(order)
    first, second = both(p, q)
    if alpha == 1:
        return kl(first, second)
    if alpha == math.inf:
        return max_divergence(first, second)
    joint = (first > 0) & (second > 0)
    if not joint.any() or (alpha > 1 and (first[~joint] > 0).any()):
        return math.inf
    if alpha == 0:
        kept, lost = float(second[first > 0].sum()), float(second[first == 0].sum())
        return -math.log(kept) if kept < 0.5 else -math.log1p(-lost)
    if alpha < 0.5:
        # skew symmetry keeps away from the cancellation near 0
        return alpha / (1 - alpha) * _of_order(second, first, 1 - alpha)
    return _of_order(first, second, alpha)


def _order(order: float) -> float:
    alpha = math.nan if isinstance(order, bool | str) else float_or_nan(order)
    if not alpha >= 0:
        raise ProblemError(
            f"{order!r} is not an order", where="order", remedy="Give a number >= 0, or math.inf"
        )
    return alpha


def _of_order(p: Floats, q: Floats, alpha: float) -> float:
    """For α >= ½, α ≠ 1, with c = α - 1: ln(1 + c M) / c, where c M = Σ q (t^α - 1 - α(t - 1)).

    M = Σ q (t ln t - t + 1) + p ln t (E - 1), E = (e^{c ln t} - 1) / (c ln t): no term loses digits
    where p and q nearly agree. Where they hardly overlap, or powers overflow, the plain sum.
    """
    c = alpha - 1
    joint = (p > 0) & (q > 0)
    logs = log_ratio(p[joint], q[joint])
    if np.abs(logs).max() <= _LARGE / abs(c):
        near = (logs > -0.69) & (logs < 0.69)
        with np.errstate(all="ignore"):
            entropy = np.where(
                near,
                q[joint] * excess_log((p[joint] - q[joint]) / q[joint]),
                p[joint] * logs - p[joint] + q[joint],
            )
        rest = p[joint] * logs * _mean_growth(c * logs)
        # lone masses of q give q, those of p (only where α < 1) p α / (1 - α)
        lone = float(q[p == 0].sum()) - float(p[q == 0].sum()) * alpha / c
        grown = c * (float((entropy + rest).sum()) + lone)
        if grown > -0.5:
            return max(0.0, math.log1p(grown) / c)
    if alpha > _HUGE:
        # the powers are no floats: all in terms of their αth roots
        roots = np.log(p[joint]) / c + logs
        top = float(roots.max())
        with np.errstate(over="ignore"):
            return max(0.0, top + math.log(float(np.exp(c * (roots - top)).sum())) / c)
    exponents = np.log(p[joint]) + c * logs
    top = float(exponents.max())
    return max(0.0, (top + math.log(float(np.exp(exponents - top).sum()))) / c)


def _mean_growth(z: Floats) -> Floats:
    """(e^z - 1)/z - 1, accurate relatively."""
    near = np.abs(z) <= 0.5
    small = np.where(near, z, 0.0)
    series, power = np.zeros_like(z), np.ones_like(z)
    for k in range(2, 18):
        power = power * small / k
        series += power
    far = np.where(near, 1.0, z)
    return np.where(near, series, np.expm1(far) / far - 1)
