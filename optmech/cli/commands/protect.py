"""``optmech protect``: a report for every row of a table of places."""

import argparse
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from optmech.cli.inputs import (
    add_draw_seed,
    add_family_input,
    argument,
    released_mechanism,
    require_seed,
)
from optmech.cli.output import Answer, claim_outputs, note
from optmech.errors import ProblemError

SUMMARY = "draw a report for every row of a table of places"
EXAMPLE = "optmech protect design.json fixes.csv --outside nearest -o protected.csv"
_MOST_KEY = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument(
        parser,
        "design DESIGN",
        "a file written by optmech solve -o, transport -o or pack -o (.omm)",
    )
    argument(
        parser,
        "data DATA",
        "a table: .csv (also .gz, .bz2, .xz), .parquet, .geojson of points; - is CSV on "
        "standard input",
    )
    add_family_input(parser)
    place = parser.add_argument_group("where a row is")
    argument(
        place,
        "--x COLUMN",
        "longitude, or the first coordinate (default: with --y, the columns that are called "
        "longitude and latitude, or x and y where the design is not in degrees)",
    )
    argument(place, "--y COLUMN", "latitude, or the second coordinate")
    argument(place, "--label COLUMN", "label of the secret, without coordinates")
    argument(
        place,
        "--outside",
        "what becomes of rows outside of the domain (default: refuse)",
        choices=("refuse", "nearest", "drop"),
        default="refuse",
    )
    argument(
        place,
        "--missing",
        "what becomes of rows without usable coordinates (default: they are dropped with "
        "--outside drop, and refused else)",
        choices=("refuse", "drop"),
    )
    argument(
        place,
        "--max-distance D",
        "where secrets are points: rows farther than this from all of them are outside",
        type=float,
    )
    result = parser.add_argument_group("what is written")
    written = "a .csv, .csv.gz, .parquet or .geojson file (default: CSV on standard output)"
    argument(result, "-o --output OUT", written, default="-")
    argument(
        result,
        "--keep COLUMN",
        "other columns that are kept as they are; all others are left out, as a time or a "
        "speed can give a place away",
        nargs="+",
        action="extend",
        default=[],
    )
    argument(result, "--report NAME", "add a column with the reports' labels")
    sticky = parser.add_argument_group("reports that repeat")
    argument(
        sticky,
        "--sticky-key-file FILE",
        "32 random bytes or more, kept secret: a place gets the same report again and again",
    )
    argument(
        sticky,
        "--sticky-by COLUMN",
        "as long as these columns are the same, such as a user and a day",
        nargs="+",
        action="extend",
        default=[],
    )
    add_draw_seed(parser)


def run(args: argparse.Namespace) -> Answer:
    """Reports for all rows; says on standard error what was dropped, moved and left out."""
    from optmech.protection.columns import Asked
    from optmech.protection.files import protect_file
    from optmech.protection.reporter import Reporter

    require_seed(args.seed)
    claim_outputs(args, [args.design, args.data, args.sticky_key_file])
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
            reporter, args.data, args.output, asked, told=_progress(), noted=note
        )
    except ProblemError as error:
        if error.where.startswith("row ") or error.where == "points":
            raise error.moved(f"{args.data}: {error.where}") from error
        raise
    out = [f"note: left out: {', '.join(left)} (--keep COLUMN keeps one)"] if left else []
    return Answer(
        {
            "rows": reporter.rows,
            "reports": reporter.rows - reporter.dropped,
            "dropped": reporter.dropped,
            "missing": reporter.missing,
            "moved": reporter.moved,
            "columns": written,
            "left_out": left,
        },
        files={"output": f"{reporter.rows - reporter.dropped:,} reports"},
        notes=[*(f"note: {line}" for line in reporter.said()), *out],
    )


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
        note(f"note: {path}: others can read the key: chmod 600 {path}")
    return key


def _progress() -> Callable[[str], None]:
    """A line on standard error every few seconds."""
    last = [time.monotonic()]

    def told(text: str) -> None:
        now = time.monotonic()
        if now - last[0] > 5:
            last[0] = now
            note(f"{text} so far")

    return told
