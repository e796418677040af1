"""Floats around what ball arithmetic (python-flint) encloses.

Conversion to a float rounds to the nearest, and may so leave the ball by half a unit in the last
place: one step outwards is always enough.
"""

from __future__ import annotations

import math
from typing import Any


def below(ball: Any) -> float:
    """A float <= every number in a ball."""
    return math.nextafter(float(ball.lower()), -math.inf)


def above(ball: Any) -> float:
    """A float >= every number in a ball."""
    return math.nextafter(float(ball.upper()), math.inf)
