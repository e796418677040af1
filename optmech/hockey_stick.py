"""Likelihood ratios of two distributions, and their hockey-stick curve, exactly.

δ(ε) = Σ_o max(0, p_o - e^ε q_o) is what (ε, δ)-privacy bounds (DP19 Def. 1). In t = e^ε it is
convex and piecewise linear with a breakpoint at every likelihood ratio p_o / q_o, so that both
δ(ε) and its inverse have closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optmech.domain import Floats
from optmech.exact import parse_exact

_SHIFT = 100
"""p / (2^100 q) neither overflows nor loses digits, for every ratio above 1 of floats <= 1."""

_ALWAYS_ABOVE_ONE = 1400.0
"""e^1400 times the least positive float is above 1, and e^700 is finite."""


def log_ratio(p: Floats, q: Floats) -> Floats:
    """ln(p / q) elementwise to about one unit in the last place, denormals included.

    inf where only q is 0; -inf where p is 0, and then also where both are: an event that p
    excludes is never evidence for p.
    """
    p, q = np.broadcast_arrays(p, q)
    with np.errstate(all="ignore"):
        quotient = p / q
        out = np.log(quotient)
        # p - q is exact within a factor of two, so that nothing is lost for ratios close to 1
        near = (quotient >= 0.5) & (quotient <= 2)
        out[near] = np.log1p((p[near] - q[near]) / q[near])
        extreme = (quotient < 1e-300) | (quotient > 1e300)
        out[extreme] = np.log(p[extreme]) - np.log(q[extreme])
    out[p == 0] = -np.inf
    return np.asarray(out)


def most_revealing(p: Floats, q: Floats) -> tuple[np.ndarray, Floats]:
    """For every row: the index of the largest p / q, and its logarithm.

    ``p`` and ``q`` broadcast to (k, m); both results have shape (k,).
    """
    with np.errstate(all="ignore"):
        ratio = p / np.ldexp(q, _SHIFT)
    ratio[np.isnan(ratio)] = 0.0
    best = ratio.argmax(axis=1)
    rows = np.arange(len(best))
    p, q = np.broadcast_arrays(p, q)
    return best, log_ratio(p[rows, best], q[rows, best])


def excess_mass(p: Floats, q: Floats, ratio: Floats) -> Floats:
    """Σ_o max(0, p_o - e^ratio q_o) for every row of (k, m) arrays; ``ratio`` has shape (k,)."""
    half = np.exp(np.minimum(ratio, _ALWAYS_ABOVE_ONE) / 2)[:, None]
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(p - (q * half) * half, 0.0).sum(axis=1))


def least_log_ratio(p: Floats, q: Floats, delta: float) -> Floats:
    """Least r >= 0 with Σ_o max(0, p_o - e^r q_o) <= delta, for every row of (k, m) arrays.

    With the terms in order of decreasing ratio, the first k of them are the active ones between
    the breakpoints k and k + 1; the sum there is A_k - e^r B_k, and r solves one linear equation.
    inf where p puts more than ``delta`` on what q excludes.
    """
    covered = q > 0
    p = np.broadcast_to(p, q.shape)
    excluded = np.where(covered, 0.0, p).sum(axis=1)
    with np.errstate(all="ignore"):
        ratio = np.where(covered, p / np.ldexp(q, _SHIFT), 0.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    ratio = np.take_along_axis(ratio, order, axis=1)
    heads = np.cumsum(np.take_along_axis(np.where(covered, p, 0.0), order, axis=1), axis=1)
    tails = np.cumsum(np.take_along_axis(q, order, axis=1), axis=1)
    spare = delta - excluded
    above = heads - ratio * np.ldexp(tails, _SHIFT) > spare[:, None]
    active = np.where(above.any(axis=1), above.argmax(axis=1), above.shape[1])
    # the first breakpoint lies at `excluded` exactly; rounding must not deny that
    last = np.maximum(active, 1) - 1
    rows = np.arange(len(last))
    left = np.maximum(heads[rows, last] - spare, 0.0)
    least = np.maximum(log_ratio(left, tails[rows, last]), 0.0)
    return np.where(spare < 0, np.inf, least)


@dataclass(frozen=True, eq=False)
class HockeyStick:
    """δ(ε) = Σ_o max(0, p_o - e^ε q_o) for ε >= 0, one direction of one pair (DP19 Def. 1).

    ``p`` and ``q`` are non-negative arrays of shape (m,).
    """

    p: Floats
    q: Floats

    def delta(self, epsilon: float | str) -> float:
        """δ at ``epsilon`` >= 0 (a number or an exact string)."""
        ratio = np.array([float(parse_exact(epsilon, where="epsilon"))])
        return float(excess_mass(self.p[None, :], self.q[None, :], ratio)[0])

    def epsilon(self, delta: float | str) -> float:
        """Least ε >= 0 with δ(ε) <= ``delta``; inf where there is none."""
        budget = float(parse_exact(delta, where="delta"))
        return float(least_log_ratio(self.p[None, :], self.q[None, :], budget)[0])

    @property
    def residual(self) -> float:
        """δ as ε grows without bound: what p gives to events that q excludes."""
        return float(self.p[self.q == 0].sum())

    @cached_property
    def breakpoints(self) -> tuple[Floats, Floats]:
        """(ε, δ) at 0 and at every finite log-ratio above 0, in order of increasing ε.

        Between neighbours δ is linear in e^ε; from the last one on it is ``residual``.
        """
        ratios = log_ratio(self.p, self.q)
        kept = np.unique(ratios[np.isfinite(ratios) & (ratios > 0)])
        epsilons = np.concatenate([[0.0], kept])
        deltas = excess_mass(self.p[None, :], self.q[None, :], epsilons)
        return epsilons, deltas
