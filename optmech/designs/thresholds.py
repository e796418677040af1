"""What thresholded constraints of a design really keep, in words and in figures."""

from __future__ import annotations

import math

from optmech.designs.design import Design
from optmech.exact.number import from_above


def threshold_notes(design: Design) -> tuple[str, ...]:
    """What constraints with thresholds really keep; nothing of others."""
    notes = []
    for part in design.approximations:
        repaired = "no repair was found that keeps the promise for all pairs"
        if not math.isnan(part.repaired_loss):
            repaired = (
                "repaired to keep the promise for all pairs its objective would be "
                f"{part.repaired_loss:.9g} and not {abs(design.objective):.9g}"
            )
        notes.append(
            f"constraints[{part.constraint}]: with its thresholds the design has "
            f"ε = {from_above(part.epsilon, 9)} and not {part.promised_epsilon:.9g}; {repaired}"
        )
    return tuple(notes)


def threshold_figures(design: Design) -> dict[str, float | None]:
    """The largest ε that thresholds leave, inf where there is none, and the objective of the
    repaired mechanism, of several constraints the worst one, None where no repair was found; an
    empty table for a design without thresholds."""
    found = design.approximations
    if not found:
        return {}
    worst = max if design.problem.statement.sign > 0 else min
    repaired = worst(part.repaired_loss for part in found)
    lacking = any(math.isnan(part.repaired_loss) for part in found)
    return {
        "true_epsilon": max(part.epsilon for part in found),
        "repaired_loss": None if lacking else repaired,
    }
