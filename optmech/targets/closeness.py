"""Whether outputs are pairwise (ε, δ)-close, exactly; and making them so (docs/theory.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import SolverError
from optmech.exact.exponentials import at_most, bracket, exp_lower
from optmech.exact.number import Exact
from optmech.exact.rounding import above
from optmech.spaces.prior import Distribution
from optmech.spaces.rationals import Shares
from optmech.transport.barycenters import rounded_outputs

_FIRST_SHARE = 48
_STEP = 4
_WHOLE_STEP = 16
_EXCESSES = (45, 40, 35, 30, 20, 10, 0)


def are_close(outputs: Sequence[Shares], epsilon: Exact, delta: Exact) -> bool:
    """Whether Σ_y max(0, μ_t[y] − e^ε μ_t'[y]) <= δ for all t ≠ t', decided exactly."""
    return all(_is_close(p, q, epsilon, delta) for p, q in itertools.permutations(outputs, 2))


def _is_close(p: Shares, q: Shares, epsilon: Exact, delta: Exact) -> bool:
    if p.total == q.total and p.units == q.units:
        return True
    sides = [(a * q.total, b * p.total) for a, b in zip(p.units, q.units, strict=True)]
    if not float(delta):
        return all(at_most(left, right, epsilon, 1.0) for left, right in sides)
    factor = exp_lower(epsilon, 1.0, (p.total * q.total).bit_length() + 256)
    spent = sum((max(Fraction(0), left - factor * right) for left, right in sides), Fraction(0))
    return spent <= bracket(delta)[0] * p.total * q.total


def max_divergence(p: Shares, q: Shares) -> float:
    """D_∞(p ‖ q) = max_y ln(p[y] / q[y]) of the exact ratio, rounded upwards; inf where q excludes
    what p has."""
    worst = Fraction(0)
    for y in p.support:
        if not q.units[y]:
            return math.inf
        worst = max(worst, p[y] / q[y])
    return _log_above(worst)


def largest_divergence(outputs: Sequence[Shares]) -> float:
    """The largest ``max_divergence`` of two of them; 0 for one alone."""
    return max((max_divergence(p, q) for p, q in itertools.permutations(outputs, 2)), default=0.0)


def _log_above(ratio: Fraction) -> float:
    """A float >= ln of a ratio >= 1, and less than two units in the last place above it."""
    if ratio == 1:
        return 0.0
    # as many digits as a ratio close to 1 has in common with it, and a float's
    bits = ratio.numerator.bit_length() + ratio.denominator.bit_length() + 128
    with flint.ctx.workprec(bits):
        return above(flint.arb(flint.fmpq(ratio.numerator, ratio.denominator)).log())


def no_obfuscation_epsilon(inputs: Sequence[Distribution]) -> float:
    """The least ε at which nothing need be changed: max_{t,t'} D_∞(λ_t ‖ λ_t'), rounded upwards.

    inf where supports differ. ``optimal_target`` loses 0 from there on, and more than 0 below if
    d(x,y) > 0 for x ≠ y.
    """
    return largest_divergence([Shares.of(lam, f"inputs[{t}]") for t, lam in enumerate(inputs)])


def made_close(outputs: Floats, epsilon: Exact, delta: Exact) -> list[Shares]:
    """About-distributions, shape (T, m), as whole numbers that are close exactly.

    A share of the mean of all is mixed in, the least of 0, 2^-48, 2^-44, …, 1 that suffices (1
    always does). So it is with every output first raised to e^{-ε} of the others, which needs no
    δ; what changes the outputs less is returned.
    """
    plain = np.maximum(outputs, 0.0)
    raised = np.maximum(plain, math.exp(-float(epsilon)) * plain.max(axis=0))
    starts = [plain, raised] if float(delta) else [raised]
    found = [_mixed(start, epsilon, delta) for start in starts]
    return min(found, key=lambda made: _change(made, outputs))


def _mixed(start: Floats, epsilon: Exact, delta: Exact) -> list[Shares]:
    whole = start / start.sum(axis=1, keepdims=True)
    mean = whole.mean(axis=0)
    for share in [0.0] + [2.0**-k for k in range(_FIRST_SHARE, -1, -_STEP)]:
        made = rounded_outputs((1 - share) * whole + share * mean)
        if are_close(made, epsilon, delta):
            return made
    raise SolverError("the outputs could not be made close", where="optimal target")


def _change(made: list[Shares], outputs: Floats) -> float:
    return float(np.abs(np.array([output.weights for output in made]) - outputs).sum())


def closed(
    outputs: list[list[int]], factor: Fraction | None, epsilon: Exact, delta: Exact
) -> list[Shares]:
    """About-distributions, shape (T, m), in units of about one sum, as outputs that are close.

    With a ``factor`` (at most e^ε) every output is first raised to the others' over it, which
    needs no δ. Then sums are made equal, and a share of the mean of all is mixed in, the least of
    0, 2^-k, 2^-(k-16), …, 1 that suffices (1 always does).
    """
    units = outputs
    if factor is not None:
        tops = [max(column) for column in zip(*units, strict=True)]
        least = [-(-top * factor.denominator // factor.numerator) for top in tops]
        units = [[max(pair) for pair in zip(row, least, strict=True)] for row in units]
    total = max(map(sum, units))
    for row in units:
        row[row.index(max(row))] += total - sum(row)
    mean = [sum(column) for column in zip(*units, strict=True)]
    shifts = range(total.bit_length(), -_WHOLE_STEP, -_WHOLE_STEP)
    for keep, mixed in [(1, 0)] + [(((1 << max(0, k)) - 1) * len(units), 1) for k in shifts]:
        whole = [
            Shares.reduced([keep * own + mixed * all_ for own, all_ in zip(row, mean, strict=True)])
            for row in units
        ]
        if are_close(whole, epsilon, delta):
            return whole
    raise SolverError("the outputs could not be made close", where="optimal target")


def diluted(
    outputs: list[Shares], others: list[Shares], share: Fraction, epsilon: Exact, delta: Exact
) -> list[list[Shares]]:
    """``others`` with a share of ``outputs``, or little more, where that is close; else nothing."""
    for shift in _EXCESSES:
        part = share * (1 + Fraction(1, 1 << shift))
        if not 0 < part <= 1:
            continue
        mixed = [
            Shares.of(
                [part * a + (1 - part) * b for a, b in zip(p.fractions, q.fractions, strict=True)],
                "outputs",
            )
            for p, q in zip(outputs, others, strict=True)
        ]
        if are_close(mixed, epsilon, delta):
            return [mixed]
    return []
