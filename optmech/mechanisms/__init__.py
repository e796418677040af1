"""Known mechanisms as matrices on finite domains, and the tupling mechanism (DP19 §5, §6).

Each docstring says what the mechanism promises; ``om.measures`` says what a matrix really gives.
"""

from __future__ import annotations

from optmech.mechanisms.discrete import (
    exponential,
    geometric,
    randomized_response,
    rappor,
    restricted_laplace,
)
from optmech.mechanisms.planar import planar_gaussian, planar_laplace
from optmech.mechanisms.tupling import Interval, Tupling, theorem3_epsilon, tupling

__all__ = [
    "Interval",
    "Tupling",
    "exponential",
    "geometric",
    "planar_gaussian",
    "planar_laplace",
    "randomized_response",
    "rappor",
    "restricted_laplace",
    "theorem3_epsilon",
    "tupling",
]
