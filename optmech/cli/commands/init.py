"""``optmech init``: a first problem file, from a table."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.cli import output
from optmech.cli.output import Answer
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.files.starting import Wanted

SUMMARY = "write a first problem file for a table of places"
EXAMPLE = "optmech init fixes.csv --x lon --y lat -o problem.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a table: .csv, .parquet or .geojson")
    parser.add_argument("--x", metavar="COLUMN", help="longitude, or the first coordinate")
    parser.add_argument("--y", metavar="COLUMN", help="latitude, or the second coordinate")
    parser.add_argument(
        "--label",
        metavar="COLUMN",
        help="labels: with --x and --y the secrets are the labelled places, alone the labels",
    )
    parser.add_argument(
        "--cells", type=int, default=64, metavar="N", help="cells of the grid (default: about 64)"
    )
    parser.add_argument(
        "--radius",
        type=float,
        metavar="R",
        help="distance (km for degrees) at which two places may differ by the factor (default: a "
        "fifth of the shorter side)",
    )
    parser.add_argument(
        "--factor", type=float, default=4.0, metavar="F", help="the factor (default: 4)"
    )
    parser.add_argument("--unit", default="", metavar="U", help="of coordinates in the plane")
    parser.add_argument(
        "--uniform",
        action="store_true",
        help="a uniform prior, so that the design says nothing about these data",
    )
    parser.add_argument(
        "-o", "--output", default="problem.toml", metavar="OUT", help="default: problem.toml"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace OUT, whatever was changed in it"
    )


def run(args: argparse.Namespace) -> Answer:
    """Write the file, read it again, say how to go on."""
    from optmech.base.storage import ending, is_standard_output, write_atomically
    from optmech.files.load import read_text
    from optmech.files.starting import first_problem

    wanted = _wanted(args)
    output.claim_outputs(args, [args.data])
    if ending(args.output, ".toml") != ".toml":
        raise ProblemError(
            f"{args.output}: is not the name of a problem file",
            where="--output",
            remedy="Use a name that ends in .toml",
        )
    text, notes = first_problem(wanted, Path(args.output))
    # whatever the data are called, and hold: a file that cannot be read is not written
    secrets = len(read_text(text, Path(args.output)).problem.secrets)
    if not args.force:
        _refuse_another(args.output, text.encode())
    write_atomically(args.output, text.encode())
    said = [f"note: {line}" for line in notes]
    if not args.json and not is_standard_output(args.output):
        said.append(f"problem with {secrets:,} secrets written to {args.output}")
        said.append(f"next: optmech solve {args.output} -o design.json --report report.html")
    return Answer({"output": args.output, "secrets": secrets, "notes": notes}, notes=said)


def _refuse_another(path: str, content: bytes) -> None:
    """Refuse to replace a file with another content: somebody may have worked on it."""
    from optmech.reading.bounded import read_bytes

    if os.path.isfile(path) and read_bytes(path) != content:
        raise ProblemError(
            f"{path}: is there already",
            where="--output",
            remedy="Name another file with -o, or replace this one with --force",
        )


def _wanted(args: argparse.Namespace) -> Wanted:
    """The columns that are named, or guessed from their names, or asked for on a terminal."""
    from optmech.base.labelled import coordinate_names
    from optmech.files.starting import Wanted, refuse_unknown
    from optmech.protection.tables import opened_table

    with opened_table(args.data, 1) as table:
        known = list(table.known)
    x, y, label = args.x, args.y, args.label
    if x is None and y is None and label is None:
        guess = coordinate_names(known)
        if guess is not None:
            x, y = guess
            output.note(f"taking {x!r} and {y!r} for the coordinates (--x and --y name others)")
        elif sys.stdin.isatty() and sys.stderr.isatty():
            x, y, label = _asked(known)
    if (x is None) != (y is None):
        raise ProblemError(
            "one coordinate is no place in the plane", where="--x", remedy="Give --x and --y"
        )
    wanted = Wanted(
        Path(args.data), x, y, label, args.cells, args.radius, args.factor, args.unit, args.uniform
    )
    try:
        refuse_unknown(wanted, known)
    except ProblemError as error:
        raise error.moved("--y") if error.where == "y" else error from error
    return wanted


def _asked(known: list[str]) -> tuple[str | None, str | None, str | None]:
    """Answers from a terminal: two coordinates, or a column of labels."""
    output.note(f"columns: {', '.join(known)}")

    def answer(question: str) -> str | None:
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip() or None

    x = answer("column with the longitude or x (empty: the places are labels): ")
    if x is None:
        return None, None, answer("column with the labels: ")
    return x, answer("column with the latitude or y: "), None
