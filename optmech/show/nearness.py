"""How near a design is to the best possible, in words that never say more than was proved."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from optmech.designs.design import Design
from optmech.problem import MaximizeDistortion

_DIGITS = 2


def nearness(design: Design) -> str:
    """ "the least possible", "within 13 % of the least", or that nothing is known; of the largest
    where the attack's error is maximised. The words of a design with a mechanism."""
    maximised = isinstance(design.problem.objective, MaximizeDistortion)
    best = "largest" if maximised else "least"
    if design.status == "optimal":
        return f"the {best} possible"
    high, low = (design.bound, design.objective) if maximised else (design.objective, design.bound)
    if not (math.isfinite(high) and low > 0):
        return f"nothing is known about how far from the {best}"
    if maximised:
        return f"within {percent(1 - Fraction(low) / Fraction(high))} of the {best}"
    above = Fraction(high) / Fraction(low) - 1
    if above > 1:
        return f"at most {_up(above + 1)} times the {best}"
    return f"within {percent(above)} of the {best}"


def within_least(value: float, bound: float) -> str:
    """How near a value >= 0 is to the least, of which ``bound`` is a lower bound."""
    if bound <= 0:
        return "nothing is known about how far from the least" if value else "the least possible"
    above = Fraction(value) / Fraction(bound) - 1
    return f"within {percent(above)} of the least" if above > 0 else "the least possible"


def percent(share: Fraction) -> str:
    """A share > 0 with two digits, rounded up."""
    return f"{_up(100 * share)} %"


def _up(value: Fraction) -> str:
    place = _DIGITS - 1 - math.floor(math.log10(value))
    scaled = math.ceil(value * Fraction(10) ** place)
    return f"{Decimal(scaled).scaleb(-place).normalize():f}"
