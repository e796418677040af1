"""Rigorous enclosures of f-divergences, by ball arithmetic (python-flint)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.exact.exponentials import ball_of
from optmech.exact.rounding import above, below

Ball = Any
"""A real number with an error bound: ``flint.arb``."""


@dataclass(frozen=True)
class Generator(ReadOnly):
    """One f, in floating point and in ball arithmetic."""

    name: str
    terms: Callable[[Floats, Floats], Floats]
    """q f(p/q) elementwise for p, q >= 0, to a few units in the last place; inf where due."""
    slope: Callable[[Floats], Floats]
    """f'(t) for t >= 0, not yet cut to ``lowest`` and ``highest``."""
    intercept: Callable[[Floats], Floats]
    """-f*(α) for slopes within the limits, in floating point."""
    intercept_ball: Callable[[Ball], Ball]
    """-f*(α), enclosed."""
    term_ball: Callable[[Ball, Ball], Ball]
    """An enclosure of a term for p, q > 0, up to a multiple of p - q."""
    at_zero: float
    """f(0) of the form that ``term_ball`` uses, inf included."""
    recession: float
    """lim f(t)/t of the same form, inf included."""
    lowest: float
    highest: float
    """Slopes beyond these are cut to them: those that remain are supporting planes too."""

    def cut(self, slopes: Floats) -> Floats:
        """Slopes within the limits."""
        return np.asarray(np.clip(np.nan_to_num(slopes), self.lowest, self.highest))

    def tangents(self, ratios: Floats) -> tuple[Floats, Floats]:
        """α and β of the planes that touch q f(p/q) where p/q is one of ``ratios`` (0 to inf)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slopes = self.cut(self.slope(ratios))
        return slopes, self.intercept(slopes)


def divergence_ball(generator: Generator, p: Sequence[int], q: Sequence[int]) -> Ball | None:
    """D_f of the distributions p / Σp and q / Σq of whole numbers >= 0, at the current precision;
    None where it is infinite."""
    total_p, total_q = sum(p), sum(q)
    out: Any = flint.arb(0)
    for a, b in zip(p, q, strict=True):
        if a == 0 and b == 0:
            continue
        left, right = flint.arb(a) / total_p, flint.arb(b) / total_q
        if a and b:
            out += generator.term_ball(left, right)
            continue
        # what is left of q f(p/q): q f(0), or p times the recession slope
        share, weight = (right, generator.at_zero) if b else (left, generator.recession)
        if weight == float("inf"):
            return None
        out += share * flint.arb(weight)
    return out


def intercepts_below(generator: Generator, slopes: Floats) -> Floats:
    """Floats <= -f*(α) for slopes α within the generator's limits, of the same shape."""
    distinct, back = np.unique(slopes, return_inverse=True)
    with flint.ctx.workprec(128):
        low = [below(generator.intercept_ball(flint.arb(a))) for a in distinct.tolist()]
    return np.array(low, dtype=np.float64)[back].reshape(slopes.shape)


def average_at_most(
    generator: Generator,
    parts: Sequence[tuple[Fraction, Sequence[int], Sequence[int]]],
    limit: Fraction,
) -> tuple[bool, float]:
    """Whether Σ share · D_f(p / Σp ‖ q / Σq), for parts (share, p, q), is at most ``limit``, and a
    float at least as large.

    False also where 8192 bits do not separate the two; inf where a divergence is.
    """
    bits = 192
    while True:
        with flint.ctx.workprec(bits):
            total: Any = flint.arb(0)
            for share, p, q in parts:
                ball = divergence_ball(generator, p, q)
                if ball is None:
                    return False, math.inf
                total += ball * ball_of(share)
            most = above(total)
            edge = ball_of(limit)
            if total <= edge:
                return True, most
            if total > edge or bits >= 8192:
                return False, most
        bits *= 4
