"""``optmech protect``: a report for every row of a table of places."""

from __future__ import annotations

import json
import os
import stat
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.base.storage import plain_values, write_atomically
from optmech.cli.inputs import (
    DRAW_SEED,
    FAMILY_INPUT,
    columns,
    option,
    pairs_of,
    released_mechanism,
    require_seed,
)
from optmech.cli.output import Answer, claim_outputs, named, note
from optmech.errors import ProblemError, moved

if TYPE_CHECKING:
    from optmech.designs.promise import Promise
    from optmech.spaces.mechanism import Mechanism
    from optmech_devices.packed.earth import Earth
    from optmech_devices.protection.columns import Asked

SUMMARY = "draw a report for every row of a table of places"
EXAMPLE = "optmech protect fixes.csv --budget 5 -o protected.csv"
_MOST_KEY = 4096


ARGUMENTS = {
    "design DESIGN": option(
        "a file written by optmech solve -o, transport -o or pack -o (.omm); without one the "
        "mechanism of the whole earth reports at once",
        nargs="?",
    ),
    "data DATA": (
        "a table: .csv (also .gz, .bz2, .xz), .parquet, .geojson of points; - is CSV on "
        "standard input; or a folder of such parts, for tables of any size"
    ),
    **FAMILY_INPUT,
    "--radius R": "without a design: how far apart, as 500m or 2km, two places may differ by a "
    "factor of 4 (default: 1km)",
    "where a row is": {
        "--x COLUMN": "longitude, or the first coordinate (default: with --y, the columns that "
        "are called longitude and latitude, or x and y where the design is not in degrees)",
        "--y COLUMN": "latitude, or the second coordinate",
        "--label COLUMN": "label of the secret, without coordinates",
        "--pair X,Y": option(
            "columns of one of several places of a row, such as start_lon,start_lat; once for each "
            "(default: all that are called so)",
            action="append",
        ),
        "--outside": option(
            "what becomes of rows outside of the domain (default: few, at most one of twenty are "
            "taken to the nearest place, and more are refused)",
            choices=("refuse", "nearest", "drop", "few"),
            default="few",
        ),
        "--missing": option(
            "what becomes of rows without usable coordinates (default: as --outside: few, at "
            "most one of twenty are dropped, and more refused; refuse with --outside nearest)",
            choices=("refuse", "drop", "few"),
        ),
        "--bounds W,S,E,N": "rows outside of west, south, east and north, or of x0,y0,x1,y1, are "
        "left out, and counted",
        "--max-distance D:float": (
            "where secrets are points: rows farther than this from all of them are outside"
        ),
    },
    "whose a row is, and what a person may spend": {
        "--per COLUMN": "the column that says whose a row is (default: the one that is plainly "
        "called so; without any, all rows count as one person's)",
        "--rows-are-people": "every row is another person's",
        "--budget B": "the largest total ε of a person (per km, as the design's), or B/day of a "
        "person's day; without one a person with more than five draws is refused",
        "--no-budget": "no limit; the summary says so",
        "--beyond": option(
            "what becomes of rows beyond the budget (default: repeat, they have the report that "
            "the person had before; drop leaves them out)",
            choices=("repeat", "drop"),
            default="repeat",
        ),
        "--time COLUMN": "the time of a row, for budgets a day (default: the one called so)",
    },
    "what is written": {
        "-o --output OUT=-": (
            "a .csv, .csv.gz, .parquet or .geojson file (default: CSV on standard output); of a "
            "folder, one that is not there yet"
        ),
        "--keep COLUMN": columns(
            "other columns that are kept as they are; all others are left out, as a time or a "
            "speed can give a place away"
        ),
        "--keep-place COLUMN": columns(
            "columns that are kept although they are called like coordinates"
        ),
        "--times": option(
            "cut kept columns that are called like times to the beginning of an hour, a day ..., "
            "as exact ones tie rows together",
            choices=("hour", "day", "week", "month", "year"),
        ),
        "--keep-order": "rows stay in their order, which ties those of one person together "
        "(default: they are shuffled)",
        "--report NAME": "add a column with the reports' labels",
        "--summary FILE": (
            "write what the reports promise to this JSON file; where a kept column says whose a "
            "row is, draws and total ε of the worst and the median person, and what counting finds"
        ),
    },
    "folders": {
        "--processes N:int": "how many work at a time (default: the cores at hand)",
        "--dask ADDRESS": "work on the Dask cluster of this scheduler instead, whose workers find "
        "both folders under the same names",
    },
    "reports that repeat": {
        "--sticky-key-file FILE": "32 random bytes or more, kept secret: a place gets the same "
        "report again and again",
        "--sticky-by COLUMN": columns(
            "as long as these columns are the same, such as a user and a day"
        ),
    },
    **DRAW_SEED,
}


def run(args: Namespace) -> Answer:
    """Reports for all rows; says on standard error what was dropped, moved and left out."""
    from optmech.files.extent import bounds_of
    from optmech_devices.protection.files import protect_file
    from optmech_devices.protection.flow import Flow
    from optmech_devices.protection.folders import protect_folder
    from optmech_devices.protection.persons import Persons, sentences, summed
    from optmech_devices.protection.places import is_geographic
    from optmech_devices.protection.reporter import Reporter
    from optmech_devices.protection.spending import Budget, Spending
    from optmech_devices.protection.spool import Order

    require_seed(args.seed)
    folder = _claimed(args)
    asked, columns = _asked(args), _columns_of_persons(args)
    key = None if args.sticky_key_file is None else _key(args.sticky_key_file)
    budget = Budget.of(args.budget, args.no_budget)
    people = args.rows_are_people
    spending = Spending(args.per, people, budget, args.beyond, key is not None, args.time)
    mechanism, promise, guess = _released(args)
    rate = None if promise is None else promise.epsilon
    limits = args.outside, args.max_distance
    with moved(lambda at: f"{args.data}: {at}" if at[:4] == "row " or at == "points" else at):
        box = None if args.bounds is None else bounds_of(args.bounds, is_geographic(mechanism))
        reporter = Reporter(mechanism, *limits, key, args.seed, args.missing, rate, box)
        persons = [] if folder else list(map(Persons, columns))
        flow = Flow(reporter, asked, spending, promise, persons, command=True, times=args.times)
        if folder:
            written, left = protect_folder(
                flow,
                args.data,
                args.output,
                shuffled=not args.keep_order,
                seed=args.seed,
                processes=args.processes,
                address=args.dask,
                told=_progress(),
                noted=note,
            )
        else:
            order = None if args.keep_order else Order(args.seed)
            written, left = protect_file(
                flow, args.data, args.output, order=order, told=_progress(), noted=note
            )
    found = flow.result(None, left)
    draws, promise = len(flow.places), flow.kept_promise
    said, unit = [found.person.words, *found.notes], "" if promise is None else promise.unit
    reports = draws * (found.rows - found.left_out)
    values = {
        "person": found.plain() | {"budget": budget.plain()},
        **named(reporter, "rows", "dropped", "missing", "snap"),
        "reports": reports,
        "moved": found.moved,
        "columns": written,
        "places": [name for name in written if name not in asked.keep],
        "times": dict.fromkeys(flow.timed if args.times else [], args.times),
        "left_out": left,
        "draws_per_row": draws,
        "shuffled": not args.keep_order,
    }
    if promise is not None:
        anew = ", ".join(sorted(set(args.sticky_by) - set(columns)))
        sticky = promise.sticky
        if anew:
            sticky += f" A place is drawn anew, and counts anew, for every other value of {anew}."
        values |= promise.plain()
        said += _promised(promise, draws, guess, promise.repeats if key is None else sticky)
    counted = summed(flow.persons, rate, unit, key is not None)
    if args.summary is not None:
        content = json.dumps(plain_values({**values, "persons": counted}), indent=1)
        write_atomically(args.summary, content.encode() + b"\n")
    if counted is not None:
        said += sentences(counted)
        values["persons"] = counted
    return Answer(
        values,
        files={"output": f"{reports:,} reports", "summary": "summary"},
        notes=[*said, *_kept_out(args, left)],
    )


def _claimed(args: Namespace) -> bool:
    """Refuse outputs that cannot be written; whether the data are a folder."""
    inputs = [args.design, args.data, args.sticky_key_file]
    if args.data == "-" or not os.path.isdir(args.data):
        for name in ("processes", "dask"):
            if getattr(args, name) is not None:
                raise ProblemError(
                    "is of folders, and the data are one table",
                    where=f"--{name}",
                    remedy="Leave it out, or give a folder of parts",
                )
        claim_outputs(args, inputs)
        return False
    from optmech_devices.protection.folders import claim_folder

    claim_outputs(Namespace(**{**vars(args), "output": None}), inputs)
    claim_folder(args.output, args.data)
    return True


def _asked(args: Namespace) -> Asked:
    """Which columns are read, and which are written."""
    from optmech.reading.errors import by_ending
    from optmech_devices.protection.columns import Asked

    if args.sticky_by and args.sticky_key_file is None:
        raise ProblemError(
            "reports repeat with a key only",
            where="--sticky-by",
            remedy="Give --sticky-key-file, or leave it out",
        )
    wrong = args.design is not None and Path(args.data).suffix.lower() == ".json"
    if wrong and (found := by_ending(args.design)) is not None:
        raise ProblemError(
            f"is {found[0]}, and no design",
            where=args.design,
            remedy=f"Give the design first: optmech protect {args.data} {args.design}",
        )
    pairs, places = tuple(pairs_of(args)), tuple(args.keep_place)
    keep, by = (*args.keep, *places), tuple(args.sticky_by)
    return Asked(args.x, args.y, args.label, keep, by, args.report, pairs, places)


def _kept_out(args: Namespace, left: Sequence[str]) -> Iterator[str]:
    """What is to be known of the columns that are kept, and of those that are not."""
    if left:
        yield f"left out: {', '.join(left)} (--keep COLUMN keeps one)"
    if args.sticky_key_file is not None and not args.sticky_by:
        yield (
            "without --sticky-by a place has one report for all rows, whoever they are of: who "
            "sees it at one person's knows it at everybody's"
        )
    if args.keep_place:
        yield f"written as they are, not protected: {', '.join(args.keep_place)}"
    if args.keep_order:
        yield (
            "rows stay in their order: who knows which stand together averages their reports, "
            "whether they carry a name or not"
        )


def _released(args: Namespace) -> tuple[Mechanism | Earth, Promise | None, str]:
    """What a file releases, what it promises about points and how often the best guess is right,
    where it is a design or packed."""
    from optmech.designs.design import Design
    from optmech.designs.promise import guess_words
    from optmech.reading.sealed import FAMILY, is_of_format, is_packed_file

    if args.design is None:
        from optmech_devices.protection.everywhere import BOUGHT, everywhere, said

        earth = everywhere(args.radius)
        note(said(earth, args.radius))
        if not os.path.isdir(args.data):
            note(BOUGHT.format(data=args.data))
        return earth, earth.promise, earth.guess
    if args.radius is not None:
        raise ProblemError(
            "the design has its own", where="--radius", remedy="Leave the radius or the design out"
        )
    if args.input is None and is_packed_file(args.design):
        from optmech_devices.packed.documents import load_any_packed

        packed = load_any_packed(args.design)
        return packed, packed.promise, packed.guess
    if args.input is not None or is_of_format(args.design, FAMILY):
        return released_mechanism(args.design, args.input), None, ""
    design = Design.load(args.design)
    return design.mechanism, design.promise, guess_words(design.mechanism, design.problem.prior)


def _promised(promise: Promise, draws: int, guess: str, repeats: str) -> Iterator[str]:
    """What the reports of one row promise, in sentences."""
    yield promise.sentence
    if promise.odds:
        yield f"in odds: {promise.odds_words}"
    if draws > 1:
        yield f"a row has {draws} reports: of the row as a whole ε is {draws} times that of one"
    if guess:
        yield f"under the prior: {guess[:1].lower()}{guess[1:]}"
    yield f"repeats: {repeats}"


def _columns_of_persons(args: Namespace) -> tuple[str, ...]:
    """The columns each of which ties the reports of one person together: those that reports repeat
    by and kept ones that are called so, else whatever reports repeat by but times."""
    from optmech_devices.protection.persons import is_epoch, is_key

    keys = tuple(filter(is_key, dict.fromkeys((*args.sticky_by, *args.keep))))
    return keys or tuple(name for name in args.sticky_by if not is_epoch(name))


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
    last = time.monotonic()

    def told(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > 5:
            last = time.monotonic()
            note(text)

    return told
