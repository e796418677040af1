"""Known mechanisms as matrices on finite domains, the tupling mechanism (DP19 §5, §6), coupling
mechanisms and optimal targets (CM19 §VI).

Each docstring says what the mechanism promises; ``om.measures`` says what a matrix really gives.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from optmech.mechanisms.discrete import (
    exponential,
    geometric,
    randomized_response,
    rappor,
    restricted_laplace,
)
from optmech.mechanisms.planar import planar_gaussian, planar_laplace
from optmech.mechanisms.tupling import Interval, Tupling, theorem3_epsilon, tupling

if TYPE_CHECKING:
    from optmech.targets import TargetDesign as TargetDesign
    from optmech.targets import coupling as coupling
    from optmech.targets import coupling_design as coupling_design
    from optmech.targets import no_obfuscation_epsilon as no_obfuscation_epsilon
    from optmech.targets import optimal_target as optimal_target
    from optmech.targets import target_frontier as target_frontier

_TARGETS = (
    "TargetDesign",
    "coupling",
    "coupling_design",
    "no_obfuscation_epsilon",
    "optimal_target",
    "target_frontier",
)

__all__ = [
    "Interval",
    "TargetDesign",
    "Tupling",
    "coupling",
    "coupling_design",
    "exponential",
    "geometric",
    "no_obfuscation_epsilon",
    "optimal_target",
    "planar_gaussian",
    "planar_laplace",
    "randomized_response",
    "rappor",
    "restricted_laplace",
    "target_frontier",
    "theorem3_epsilon",
    "tupling",
]


def __getattr__(name: str) -> object:
    """Designed mechanisms live with the proofs that they rest on, further down; see ``targets``."""
    if name in _TARGETS:
        return getattr(import_module("optmech.targets"), name)
    raise AttributeError(f"module 'optmech.mechanisms' has no attribute {name!r}")
