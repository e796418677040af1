"""``optmech protect``: a report for every row of a table of places."""

from __future__ import annotations

import argparse
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.cli import output
from optmech.cli.inputs import add_draw_seed, add_family_input, released_mechanism
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.protection.reporter import Reporter

SUMMARY = "draw a report for every row of a table of places"
EXAMPLE = "optmech protect design.json fixes.csv --outside nearest -o protected.csv"
_IN_PYTHON = {
    'outside = "nearest" or "drop"': "--outside nearest or --outside drop",
    'outside = "drop"': "--outside drop",
    'missing = "drop"': "--missing drop",
    "Name x and y, or label": "Give --x and --y, or --label",
}
_OPTIONS = {"x", "y", "label", "keep", "report", "outside", "max_distance", "seed"}
_MOST_KEY = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "design",
        metavar="DESIGN",
        help="a file written by optmech solve -o, transport -o or pack -o (.omm)",
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a table: .csv (also .gz, .bz2, .xz), .parquet, .geojson of points; - is CSV on "
        "standard input",
    )
    add_family_input(parser)
    place = parser.add_argument_group("where a row is")
    place.add_argument(
        "--x",
        metavar="COLUMN",
        help="longitude, or the first coordinate (default: with --y, the columns that are called "
        "longitude and latitude, or x and y where the design is not in degrees)",
    )
    place.add_argument("--y", metavar="COLUMN", help="latitude, or the second coordinate")
    place.add_argument("--label", metavar="COLUMN", help="label of the secret, without coordinates")
    place.add_argument(
        "--outside",
        choices=("refuse", "nearest", "drop"),
        default="refuse",
        help="what becomes of rows outside of the domain (default: refuse)",
    )
    place.add_argument(
        "--missing",
        choices=("refuse", "drop"),
        help="what becomes of rows without usable coordinates (default: they are dropped with "
        "--outside drop, and refused else)",
    )
    place.add_argument(
        "--max-distance",
        type=float,
        metavar="D",
        help="where secrets are points: rows farther than this from all of them are outside",
    )
    result = parser.add_argument_group("what is written")
    result.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        default="-",
        help="a .csv, .csv.gz, .parquet or .geojson file (default: CSV on standard output)",
    )
    result.add_argument(
        "--keep",
        metavar="COLUMN",
        nargs="+",
        action="extend",
        default=[],
        help="other columns that are kept as they are; all others are left out, as a time or a "
        "speed can give a place away",
    )
    result.add_argument("--report", metavar="NAME", help="add a column with the reports' labels")
    sticky = parser.add_argument_group("reports that repeat")
    sticky.add_argument(
        "--sticky-key-file",
        metavar="FILE",
        help="32 random bytes or more, kept secret: a place gets the same report again and again",
    )
    sticky.add_argument(
        "--sticky-by",
        metavar="COLUMN",
        nargs="+",
        action="extend",
        default=[],
        help="as long as these columns are the same, such as a user and a day",
    )
    add_draw_seed(parser)


def run(args: argparse.Namespace) -> int:
    """Reports for all rows; says on standard error what was dropped, moved and left out."""
    from optmech.protection.files import Asked, protect_file
    from optmech.protection.reporter import Reporter

    output.require_seed(args.seed)
    output.claim_outputs(args, [args.design, args.data, args.sticky_key_file])
    if args.sticky_by and args.sticky_key_file is None:
        raise ProblemError(
            "reports repeat with a key only",
            where="--sticky-by",
            remedy="Give --sticky-key-file, or leave it out",
        )
    _refuse_exchanged(args.design, args.data)
    try:
        reporter = Reporter(
            released_mechanism(args.design, args.input),
            args.outside,
            args.max_distance,
            None if args.sticky_key_file is None else _key(args.sticky_key_file),
            args.seed,
            args.missing,
        )
        asked = Asked(
            args.x, args.y, args.label, tuple(args.keep), tuple(args.sticky_by), args.report
        )
        written, left = protect_file(
            reporter, args.data, args.output, asked, told=_progress(), noted=output.note
        )
    except ProblemError as error:
        raise _in_options(error, args.data) from error
    _say(args, reporter, written, left)
    return 0


def _refuse_exchanged(design: str, data: str) -> None:
    """Refuse a table where the design is expected."""
    from optmech.reading.recognised import by_ending

    found = by_ending(design)
    if found is not None and Path(data).suffix.lower() == ".json":
        raise ProblemError(
            f"is {found[0]}, and no design",
            where=design,
            remedy=f"Give the design first: optmech protect {data} {design}",
        )


def _say(args: argparse.Namespace, reporter: Reporter, written: list[str], left: list[str]) -> None:
    for line in reporter.said():
        output.note(f"note: {line}")
    if left:
        output.note(f"note: left out: {', '.join(left)} (--keep COLUMN keeps one)")
    if args.json:
        output.print_json(
            {
                "rows": reporter.rows,
                "reports": reporter.rows - reporter.dropped,
                "dropped": reporter.dropped,
                "missing": reporter.missing,
                "moved": reporter.moved,
                "columns": written,
                "left_out": left,
                "output": args.output,
            }
        )
    output.written(f"{reporter.rows - reporter.dropped:,} reports", args.output)


def _key(path: str) -> bytes:
    """The bytes of a key file; says so where others can read it."""
    from optmech.exact.sampler import LEAST_KEY
    from optmech.reading.bounded import read_bytes

    key = read_bytes(path, _MOST_KEY)
    if len(key) < LEAST_KEY:
        raise ProblemError(
            f"has {len(key)} bytes, and a key has at least {LEAST_KEY}",
            where=path,
            remedy=f"Make one: openssl rand -out {path} {LEAST_KEY}",
        )
    if os.name == "posix" and os.stat(path).st_mode & (stat.S_IRGRP | stat.S_IROTH):
        output.note(f"note: {path}: others can read the key: chmod 600 {path}")
    return key


def _progress() -> Callable[[str], None]:
    """A line on standard error every few seconds."""
    last = [time.monotonic()]

    def told(text: str) -> None:
        now = time.monotonic()
        if now - last[0] > 5:
            last[0] = now
            output.note(f"{text} so far")

    return told


def _in_options(error: ProblemError, data: str) -> ProblemError:
    """An error in the words of the command line."""
    remedy = error.remedy
    for python, option in _IN_PYTHON.items():
        remedy = remedy.replace(python, option)
    where = error.where
    if where in _OPTIONS:
        where = f"--{where.replace('_', '-')}"
    elif where.startswith("row ") or where == "points":
        where = f"{data}: {where}"
    return type(error)(error.message, where=where, remedy=remedy)
