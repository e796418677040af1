"""The verdict on one family of inequalities."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """The verdict on one family of inequalities."""

    name: str
    constraint: int | None
    """Index of the constraint it comes from; None for what holds of every mechanism."""
    inequalities: int
    passed: bool
    worst: float
    """Tightest value found, in the family's own measure; see ``detail``."""
    detail: str
    ratios: bool = False
    """Whether ``worst`` is a likelihood ratio as a share of what is allowed."""


def tightest(checks: tuple[Check, ...]) -> Check | None:
    """The check whose likelihood ratios come closest to their limit, if there is one."""
    return max((c for c in checks if c.ratios), key=lambda c: c.worst, default=None)
