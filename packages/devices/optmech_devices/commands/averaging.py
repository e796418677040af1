"""``optmech measure --averaging``: what many reports of one person tell together."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from optmech.cli.output import Grid, Piece, Title, note
from optmech.errors import moved

if TYPE_CHECKING:
    from optmech.problem import Problem
    from optmech.spaces.mechanism import Mechanism

ARGUMENTS = {
    "--averaging TRACES": (
        "also report how near an adversary comes who takes 1, 10 and 100 rows of this table for "
        "reports of one place: rows of one name, rows that stand together, and shuffled ones"
    ),
}


def measured(
    args: Namespace, problem: Problem, m: Mechanism
) -> tuple[dict[str, Any], list[Piece]] | None:
    """The errors, for JSON and for people; None where nobody asked."""
    if not args.averaging:
        return None
    from optmech.show.words import after, loss_unit
    from optmech_devices.protection.columns import Asked
    from optmech_devices.protection.traces import WAYS, averaging

    path, length = args.averaging, after(loss_unit(problem).strip())
    with moved(lambda where: f"{path}: {where}" if where != path else path):
        found = averaging(m, problem.prior.weights, path, Asked(args.x, args.y), note)
    rows = [
        (WAYS[one.way], f"{one.rows}", f"{one.mean:.3g}{length}", f"{one.median:.3g}{length}")
        for one in found
    ]
    table = Grid(("what ties rows", "rows", "mean error", "median"), rows, right=(1, 2, 3))
    return {"errors": [one.plain() for one in found]}, [Title("Reports that are averaged"), table]
