"""``optmech protect``: a report for every row of a table of places."""

from __future__ import annotations

import argparse
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.base.storage import plain_values, write_atomically
from optmech.cli.inputs import (
    add_draw_seed,
    add_family_input,
    argument,
    pair_of,
    released_mechanism,
    require_seed,
)
from optmech.cli.output import Answer, claim_outputs, note
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.designs.promise import Promise
    from optmech.packed.earth import Earth
    from optmech.spaces.mechanism import Mechanism

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
        "--pair X,Y",
        "columns of one of several places of a row, such as start_lon,start_lat; once for each "
        "(default: all that are called so)",
        action="append",
    )
    argument(
        place,
        "--outside",
        "what becomes of rows outside of the domain (default: few, at most one of twenty are "
        "taken to the nearest place, and more are refused)",
        choices=("refuse", "nearest", "drop", "few"),
        default="few",
    )
    argument(
        place,
        "--missing",
        "what becomes of rows without usable coordinates (default: as --outside: few, at most one "
        "of twenty are dropped, and more refused; refuse with --outside nearest)",
        choices=("refuse", "drop", "few"),
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
    argument(
        result,
        "--keep-place COLUMN",
        "columns that are kept although they are called like coordinates",
        nargs="+",
        action="extend",
        default=[],
    )
    argument(result, "--report NAME", "add a column with the reports' labels")
    argument(
        result,
        "--summary FILE",
        "write what the reports promise to this JSON file; where a kept column says whose a row "
        "is, draws and total ε of the worst and the median person, and what counting finds",
    )
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
    from optmech.protection.persons import Persons, sentences
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
    keep = _kept(args)
    columns = _columns_of_persons(args)
    persons = Persons(columns) if columns else None
    promise: Promise | None = None
    try:
        key = None if args.sticky_key_file is None else _key(args.sticky_key_file)
        mechanism, promise, guess = _released(args)
        reporter = Reporter(
            mechanism,
            args.outside,
            args.max_distance,
            key,
            args.seed,
            args.missing,
            None if promise is None else promise.epsilon,
        )
        pairs = tuple(map(pair_of, args.pair or ()))
        if pairs and (args.x, args.y, args.label) != (None, None, None):
            raise ProblemError(
                "says where a row is, as do --x, --y and --label",
                where="--pair",
                remedy="Give one or the other",
            )
        asked = Asked(
            args.x, args.y, args.label, keep, tuple(args.sticky_by), args.report, pairs,
            tuple(args.keep_place),
        )  # fmt: skip
        written, left = protect_file(
            reporter, args.data, args.output, asked, told=_progress(), noted=note, persons=persons
        )
    except ProblemError as error:
        if error.where.startswith("row ") or error.where == "points":
            raise error.moved(f"{args.data}: {error.where}") from error
        raise
    out = [f"note: left out: {', '.join(left)} (--keep COLUMN keeps one)"] if left else []
    if args.keep_place:
        out.append(f"note: written as they are, not protected: {', '.join(args.keep_place)}")
    if keep and not columns:
        out.append(
            "note: no kept column is called like one that says whose a row is (user, id): what "
            "rows of one person tell together is not counted"
        )
    draws = 1 + len(reporter.others)
    if promise is not None:
        promise = promise.snapped(reporter.snap)
    reports = draws * (reporter.rows - reporter.dropped)
    lines = [] if promise is None else _promised(promise, draws)
    lines += [f"under the prior: {guess}"] if guess else []
    rate = None if promise is None else promise.epsilon
    unit = "" if promise is None else promise.unit
    sticky = key is not None
    counted = None if persons is None else persons.summary(rate, unit, sticky)
    values = {
        "rows": reporter.rows,
        "reports": reports,
        "dropped": reporter.dropped,
        "missing": reporter.missing,
        "moved": reporter.moved + sum(each.moved for each in reporter.others),
        "columns": written,
        "left_out": left,
        "draws_per_row": draws,
        "snap": reporter.snap,
        **({} if promise is None else promise.plain()),
    }
    if args.summary is not None:
        content = json.dumps(plain_values({**values, "persons": counted}), indent=1)
        write_atomically(args.summary, content.encode() + b"\n")
    said = [*reporter.said(), *lines, *(sentences(counted) if counted is not None else [])]
    if counted is not None:
        values["persons"] = counted
    return Answer(
        values,
        files={"output": f"{reports:,} reports", "summary": "summary"},
        notes=[*(f"note: {line}" for line in said), *out],
    )


def _released(args: argparse.Namespace) -> tuple[Mechanism | Earth, Promise | None, str]:
    """What a file releases, what it promises about points, where it is a design or packed, and of a
    design how often the best guess is right."""
    from optmech.designs.design import Design
    from optmech.designs.promise import guess_words
    from optmech.packed.documents import load_any_packed
    from optmech.packed.load import is_packed_file
    from optmech.reading.sealed import FAMILY, is_of_format
    from optmech.show.described import of_packed

    if args.input is None and is_packed_file(args.design):
        packed = load_any_packed(args.design)
        return packed, of_packed(packed), ""
    if args.input is not None or is_of_format(args.design, FAMILY):
        return released_mechanism(args.design, args.input), None, ""
    design = Design.load(args.design)
    return design.mechanism, design.promise, guess_words(design.mechanism, design.problem.prior)


def _promised(promise: Promise, draws: int) -> list[str]:
    """What the reports of one row promise, in sentences."""
    lines = [promise.sentence]
    if promise.odds:
        lines.append(f"in odds: {promise.odds_words}")
    if draws > 1:
        lines.append(
            f"a row has {draws} reports: of the row as a whole ε is {draws} times that of one"
        )
    return lines


def _kept(args: argparse.Namespace) -> tuple[str, ...]:
    """The columns that are kept; those that are called like coordinates only where they are named
    as such."""
    from optmech.protection.persons import is_place

    place = next((name for name in args.keep if is_place(name)), None)
    if place is not None:
        raise ProblemError(
            f"{place!r} is called like a coordinate or an address, which gives away what the "
            "report hides",
            where="--keep",
            remedy="Leave it out, protect it too (--pair), or keep it all the same with "
            f"--keep-place {place}",
        )
    return (*args.keep, *args.keep_place)


def _columns_of_persons(args: argparse.Namespace) -> tuple[str, ...]:
    """The columns that tie the reports of one person together: those that reports repeat by, or
    kept ones that are called so."""
    from optmech.protection.persons import is_key, is_time

    keys = tuple(name for name in args.sticky_by or args.keep if is_key(name))
    return keys or tuple(name for name in args.sticky_by if not is_time(name))


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
