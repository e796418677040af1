"""What is known of one smooth convex generator f of an f-divergence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly

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
