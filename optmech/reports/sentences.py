"""A problem and what is known of its design, in sentences."""

from __future__ import annotations

from optmech.cli import words
from optmech.constraints import MaximizeDistortion
from optmech.design import Design
from optmech.distances import distance_name
from optmech.problem import Problem


def lead(problem: Problem, loss: str) -> str:
    """What the mechanism does and what was asked of it, in two sentences."""
    secrets = words.domain(problem.secrets)
    if problem.observables == problem.secrets:
        reports = "one of them, chosen at random"
    else:
        reports = f"a random one of {words.domain(problem.observables)}"
    return (
        f"The secret is one of {secrets}; what is reported is {reports}. {_wanted(problem, loss)}"
    )


def _wanted(problem: Problem, loss: str) -> str:
    count = len(problem.constraints)
    limits = {0: "", 1: " under one constraint"}.get(count, f" under {count} constraints")
    if isinstance(problem.objective, MaximizeDistortion):
        name = distance_name(problem.objective.distance)
        best = f"this one leaves the best attack the largest error ({name})"
        return f"Of all mechanisms{limits}, {best}."
    which = "worst-case" if problem.objective == "worst_loss" else "expected"
    named = "" if loss == "given" else f" ({loss})"
    return f"Of all mechanisms{limits}, this one has the least {which} loss{named}."


def threshold_notes(design: Design) -> list[str]:
    """What constraints with thresholds really keep."""
    return [
        f"constraints[{part.constraint}]: with its thresholds the design has "
        f"ε = {part.epsilon:.9g} and not {part.promised_epsilon:.9g}; repaired to keep the "
        f"promise for all pairs it would have loss {part.repaired_loss:.9g}"
        for part in design.approximations
    ]
