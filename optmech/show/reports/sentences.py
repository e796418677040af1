"""A problem and what is known of its design, in sentences."""

from __future__ import annotations

import math

from optmech.designs.design import Design
from optmech.problem import MaximizeDistortion, MinimizeLeakage
from optmech.problem.gains import gain_words
from optmech.show import words
from optmech.show.words import nearness
from optmech.spaces.tabulated import distance_words


def lead(design: Design, loss: str) -> str:
    """What the mechanism does and how good it is proved to be, in two sentences."""
    problem = design.problem
    secrets = words.domain(problem.secrets)
    if problem.observables == problem.secrets:
        reports = "one of them, chosen at random"
    else:
        reports = f"a random one of {words.domain(problem.observables)}"
    return (
        f"The secret is one of {secrets}; what is reported is {reports}. {_reached(design, loss)}"
    )


def _reached(design: Design, loss: str) -> str:
    problem = design.problem
    count = len(problem.constraints)
    limits = {0: "", 1: " under one constraint"}.get(count, f" under {count} constraints")
    if design.status == "infeasible":
        kept = {1: "the constraint"}.get(count, f"all {count} constraints")
        return f"No mechanism keeps {kept}."
    if isinstance(problem.objective, MaximizeDistortion):
        name = distance_words(problem.objective.distance)
        what, best = f"the error that it leaves the best attack ({name})", "largest"
        superlative = f"leaves the best attack the largest error ({name})"
    elif isinstance(problem.objective, MinimizeLeakage):
        name = gain_words(problem.objective.gain)
        what, best = f"what the best guess gains ({name})", "least"
        superlative = f"leaves the best guess the least to gain ({name})"
    else:
        which = "worst-case" if problem.objective == "worst_loss" else "expected"
        what, best = f"its {which} loss ({loss})", "least"
        superlative = f"has the least {which} loss ({loss})"
    if design.status == "optimal":
        return f"Of all mechanisms{limits}, this one {superlative}."
    found = nearness(design)
    if found.startswith("nothing"):
        return f"Nothing is known about how far {what} is from the {best}{limits}."
    return f"Among all mechanisms{limits}, {what} is {found}."


def threshold_notes(design: Design) -> list[str]:
    """What constraints with thresholds really keep."""
    return [
        f"constraints[{part.constraint}]: with its thresholds the design has "
        f"ε = {part.epsilon:.9g} and not {part.promised_epsilon:.9g}; "
        + _repaired(design, part.repaired_loss)
        for part in design.approximations
    ]


def _repaired(design: Design, value: float) -> str:
    if math.isnan(value):
        return "no repair was found that keeps the promise for all pairs"
    what = f"have loss {value:.9g}"
    if isinstance(design.problem.objective, MaximizeDistortion):
        what = f"leave the best attack the error {value:.9g}"
    elif isinstance(design.problem.objective, MinimizeLeakage):
        what = f"leave the best guess {value:.9g} to gain"
    return f"repaired to keep the promise for all pairs it would {what}"
