"""Positions as they are written on the command line."""

from __future__ import annotations

from fractions import Fraction

from optmech.errors import ProblemError


def point(text: str) -> tuple[Fraction, Fraction]:
    """Two coordinates as they are written, exactly: ``1.25,3/2``."""
    parts = text.split(",")
    try:
        if len(parts) == 2 and len(text) <= 200:
            return Fraction(parts[0].strip()), Fraction(parts[1].strip())
    except (ValueError, ZeroDivisionError):
        pass
    raise ProblemError(
        f"{text[:40]!r} is no point: this design reports from any point of a region",
        where="POINT",
        remedy="Give two coordinates, as 1.25,3.5 (-- before them where the first is negative)",
    )
