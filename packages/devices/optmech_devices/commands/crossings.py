"""``optmech measure --crossings``: how often reports of people who move change."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from optmech.cli.output import Grid, Piece, Title, named, note
from optmech.errors import ProblemError, moved

if TYPE_CHECKING:
    from optmech.problem import Problem
    from optmech.spaces.mechanism import Mechanism

ARGUMENTS = {
    "--crossings TRACES": (
        "also report how often reports of the persons in this table change, whose rows are in the "
        "order of time, where a place repeats its report; and what a change tells, beside square "
        "cells that report themselves at the same mean error; bare numbers of a column of "
        "times are seconds"
    ),
    "--x COLUMN": (
        "with --crossings or --averaging: longitude, or the first coordinate (default: with --y, "
        "the columns that are called so)"
    ),
    "--y COLUMN": "with --crossings or --averaging: latitude, or the second coordinate",
}


def measured(
    args: Namespace, problem: Problem, m: Mechanism
) -> tuple[dict[str, Any], list[Piece]] | None:
    """What changes, for JSON and for people; None where nobody asked."""
    if (args.x is None) != (args.y is None) or (
        args.x is not None and not (args.crossings or getattr(args, "averaging", None))
    ):
        raise ProblemError(
            "count together, with --crossings or --averaging only",
            where="--x" if args.x is not None else "--y",
            remedy="Give --crossings or --averaging, --x and --y",
        )
    if not args.crossings:
        return None
    from optmech.analysis import measures
    from optmech.designs.promise import promise_of
    from optmech.show.words import after, loss_unit
    from optmech_devices.protection.columns import Asked
    from optmech_devices.protection.traces import crossings

    loss = measures.expected_loss(m, problem.prior, problem.loss)
    path, asked, length = args.crossings, Asked(args.x, args.y), after(loss_unit(problem).strip())
    with moved(lambda where: f"{path}: {where}" if where != path else path):
        found = crossings(m, promise_of(problem).epsilon, loss, path, asked, note)
    values = {
        **named(found, "per", "fixes", "persons"),
        "sticky": found.sticky.plain(),
        "cells": {**found.cells.plain(), "side": found.side},
    }
    cells = f"cells of {found.side:.3g}{length}, reported as they are"
    rows = []
    for name, one in (("sticky reports", found.sticky), (cells, found.cells)):
        line = "none is seen" if one.line is None else f"{one.line:.3g}{length}"
        changes = f"{one.places:.3g}", f"{one.reports:.3g}", f"{one.off:.3g}{length}"
        rows.append((name, *changes, line))
    header = (
        f"{found.fixes:,} fixes of {found.persons:,}",
        f"place changes per {found.per}",
        f"report changes per {found.per}",
        "off at a change",
        "off the border crossed",
    )
    table = Grid(header, rows, right=(1, 2, 3, 4))
    return values, [Title("Reports of people who move"), table]
