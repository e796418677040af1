"""Numbers known to lie between two floats."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A number known to lie between two floats. An end that is not a number bounds nothing."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name, end in (("lower", -math.inf), ("upper", math.inf)):
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, end)

    def __str__(self) -> str:
        return f"[{self.lower:.9g}, {self.upper:.9g}]"

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        """upper - lower."""
        return self.upper - self.lower
