"""e^ε and δ as rational numbers from below and from above, the same for every reader of a file."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint

from optmech.exact.exponentials import exact_exp, log_ball
from optmech.exact.number import Exact

BITS = 256
"""Bits behind the point."""
_PRECISION = 4096
LARGEST = 1000
"""An ε above this is as good as infinite: bounds do not use its multipliers."""


def exp_ends(epsilon: Exact) -> tuple[Fraction, Fraction] | None:
    """e^ε where it is rational, else rounded down and up to multiples of 2^-256; None above
    e^1000."""
    with flint.ctx.workprec(128):
        if log_ball(epsilon, 1.0) > LARGEST:
            return None
    known = exact_exp(epsilon, 1.0)
    return (known, known) if known is not None else _ends(lambda: log_ball(epsilon, 1.0).exp())


def ends(value: Exact) -> tuple[Fraction, Fraction]:
    """A stated number where it is rational, else rounded down and up to multiples of 2^-256."""
    if value.log_of is None or value.log_of == 1:
        exact = value.factor if value.log_of is None else Fraction(0)
        return exact, exact
    return _ends(lambda: log_ball(value, 1.0))


def _ends(ball: Any) -> tuple[Fraction, Fraction]:
    """Of an irrational number below 2^1500."""
    with flint.ctx.workprec(_PRECISION):
        scaled = ball() * flint.arb(2) ** BITS
        low, high = (int(end.floor().fmpz()) for end in (scaled.lower(), scaled.upper()))
    return Fraction(low, 1 << BITS), Fraction(high + 1, 1 << BITS)
