"""Which inequalities the certificate decides: a statement with others is refused."""

from __future__ import annotations

from dataclasses import fields

from optmech.errors import VerificationError
from optmech.statement.statement import (
    Approximate,
    Distortion,
    Divergence,
    LiftedRatio,
    LossLimit,
    Ratio,
    Statement,
    WindowedRatio,
)

_FAMILIES = {
    "ratios": Ratio, "windowed": WindowedRatio, "lifted": LiftedRatio, "approximate": Approximate,
    "divergences": Divergence, "distortion": Distortion, "loss_limits": LossLimit,
}  # fmt: skip
_OTHERS = {"prior", "loss", "objective", "target", "log_ratio", "allowed", "target_factors"}
_OBJECTIVES = ("expected_loss", "worst_loss", "maximize_distortion")


def require_known(statement: Statement) -> None:
    """Raise VerificationError unless the certificate knows every part of a statement."""
    names = {field.name for field in fields(statement)}
    unknown = sorted(names - _FAMILIES.keys() - _OTHERS)
    for name, kind in _FAMILIES.items():
        unknown += [
            f"{name}: {type(p).__name__}" for p in getattr(statement, name) if type(p) is not kind
        ]
    if statement.objective not in _OBJECTIVES:
        unknown.append(f"objective: {statement.objective!r}")
    if unknown:
        raise VerificationError(
            f"the certificate does not know {', '.join(unknown)} and proves nothing of it",
            where="statement",
            remedy="Teach the certificate this family (CONTRIBUTING.md), or leave it out",
        )
