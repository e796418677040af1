"""The families of inequalities as search and repair have them, one module each."""

from collections.abc import Callable
from typing import Any

from optmech.certificate.families import (
    Approximate,
    Distortion,
    Divergence,
    LiftedRatio,
    LossLimit,
    Ratio,
    Support,
)
from optmech.lp.families.approximate import ApproximatePart
from optmech.lp.families.base import ROUNDING, ColumnRows, Part, Reader
from optmech.lp.families.distortion import DistortionPart
from optmech.lp.families.divergence import DivergencePart
from optmech.lp.families.lifted import LiftedPart
from optmech.lp.families.loss import LossPart
from optmech.lp.families.ratio import Ratios, Window
from optmech.statement import Family

__all__ = ["PROGRAMS", "ROUNDING", "ColumnRows", "Part", "Ratios", "Reader", "Window"]

PROGRAMS: dict[type[Family], Callable[[int, Any], Part | None]] = {
    Ratio: Window.of,
    LiftedRatio: LiftedPart.of,
    Approximate: ApproximatePart.of,
    Divergence: DivergencePart.of,
    Distortion: DistortionPart.of,
    LossLimit: LossPart.of,
    # programs and repairs start from the allowed entries
    Support: lambda number, family: None,
}
"""For every class of families its part, from the place in the statement and the family, or None
where it has none of its own; in the order in which programs have their rows."""
