"""Smaller programs, equivalent or safely approximate, by name."""

from __future__ import annotations

from optmech.errors import ProblemError
from optmech.reductions.base import Reduced, Reduction
from optmech.reductions.implied_pairs import ImpliedPairs
from optmech.reductions.spanner import Spanner

__all__ = ["ImpliedPairs", "Reduced", "Reduction", "Spanner", "parse_reduction"]


def parse_reduction(text: str) -> Reduction:
    """``"implied-pairs"`` or ``"spanner:T"``, as profiles write them."""
    name, _, argument = text.partition(":")
    if name == "implied-pairs" and not argument:
        return ImpliedPairs()
    if name == "spanner":
        try:
            return Spanner(float(argument))
        except ValueError:
            pass
    raise ProblemError(
        f"{text!r} is unknown",
        where="reductions",
        remedy='Use "implied-pairs" or "spanner:T" with a stretch T >= 1',
    )
