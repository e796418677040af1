"""``optmech measure --leakage``: what a report leaks, and several."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from optmech.cli.inputs import require_beside
from optmech.cli.output import Piece, Title, figures, plain_figures
from optmech.errors import inside

if TYPE_CHECKING:
    from optmech.problem import Problem
    from optmech.spaces.mechanism import Mechanism

ARGUMENTS = {
    "--leakage": "also report what a report leaks: vulnerabilities, leakage, capacities",
    "--reports K:int": "with --leakage: also what K independent reports about one secret leak",
}


def measured(
    args: Namespace, problem: Problem, m: Mechanism
) -> tuple[dict[str, Any], list[Piece]] | None:
    """The figures, for JSON and for people; None where nobody asked."""
    require_beside(args, "reports", "leakage")
    if not args.leakage:
        return None
    from optmech.problem.attack import choose_distance
    from optmech_leakage.leaks import measured_leakage, measured_repetition

    found = measured_leakage(problem, m)
    if args.reports is not None:
        with inside("--reports"):
            named = choose_distance(problem, args.distance)
            found |= measured_repetition(problem, m, args.reports, named)
    return plain_figures(found), [Title("Leakage"), figures(found)]
