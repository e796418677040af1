"""The families of inequalities as search and repair have them."""

from collections.abc import Callable
from typing import Any

from optmech.certificate.families import (
    Approximate,
    Bias,
    Distortion,
    Divergence,
    Fixed,
    Gradient,
    Information,
    Leakage,
    LiftedRatio,
    Linear,
    LossLimit,
    Ratio,
    Support,
)
from optmech.certificate.statement import Family
from optmech.errors import ProblemError
from optmech.lp.families.base import Part
from optmech.lp.families.divergence import DivergencePart, InformationPart
from optmech.lp.families.limits import BiasPart, DistortionPart, LeakagePart, LinearPart, LossPart
from optmech.lp.families.ratios import ApproximatePart, LiftedPart, Window


def no_part(number: int, family: Gradient) -> None:
    """Refuse what is about control points: programs and repairs here are about secrets."""
    raise ProblemError(
        "privacy at every point is no promise about finitely many secrets",
        where=f"constraints[{family.index}]",
        remedy="Use om.solve or optmech solve, which design for a mesh; leave everywhere out for "
        "what works on secrets",
    )


PROGRAMS: dict[type[Family], Callable[[int, Any], Part | None]] = {
    Ratio: Window.of,
    LiftedRatio: LiftedPart.of,
    Approximate: ApproximatePart.of,
    Divergence: DivergencePart.of,
    Information: InformationPart.of,
    Distortion: DistortionPart.of,
    Leakage: LeakagePart.of,
    LossLimit: LossPart.of,
    Bias: BiasPart.of,
    Linear: LinearPart.of,
    # programs and repairs start from the allowed entries
    Support: lambda number, family: None,
    # their columns are known
    Fixed: lambda number, family: None,
    Gradient: no_part,
}
"""For every class of families its part, from the place in the statement and the family, or None
where it has none of its own; in the order in which programs have their rows."""
