"""``optmech init``: a first problem file, from a table."""

from __future__ import annotations

import math
import os
import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.base.numerals import float_of_text
from optmech.cli.inputs import option, pairs_of
from optmech.cli.output import Answer, claim_outputs, note
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.files.draft import Wanted
    from optmech.files.reference import Reference

SUMMARY = "write a first problem file for a table of places"
EXAMPLE = "optmech init fixes.csv --x lon --y lat -o problem.toml"


ARGUMENTS = {
    "data DATA": "a table: .csv, .parquet or .geojson",
    "--x COLUMN": "longitude, or the first coordinate",
    "--y COLUMN": "latitude, or the second coordinate",
    "--label COLUMN": "labels: with --x and --y the secrets are the labelled places, alone the "
    "labels",
    "--pair X,Y": option(
        "columns of one of several places of a row, such as start_lon,start_lat; once for each",
        action="append",
    ),
    "--cells N:int": (
        "promise privacy between the centres of about N cells of a grid only (default: at "
        "every point of the region)"
    ),
    "--radius R": (
        "distance, as 500m or 2km, at which two places may differ by the factor (a number "
        "alone: in the unit of the plane; default: a fifth of what most rows reach over)"
    ),
    "--degrees": "the coordinates are longitude and latitude, whatever they are called",
    "--crs EPSG:CODE": (
        "reference system of the coordinates, as EPSG:2056: it says their unit, and what lies "
        "where it is not used, or is stretched there, is refused"
    ),
    "--bounds W,S,E,N": "of the region: west, south, east and north, or x0,y0,x1,y1; rows outside "
    "of it do not count (default: around the rows that are not wild)",
    "--factor F:float=4.0": "the factor (default: 4)",
    "--unit U=": "of coordinates in the plane",
    "--uniform": "a uniform prior, so that the design says nothing about these data",
    "-o --output OUT=problem.toml": "default: problem.toml",
    "--force": "replace OUT, whatever was changed in it",
}


def run(args: Namespace) -> Answer:
    """Write the file, read it again, say how to go on."""
    from optmech.base.storage import ending, is_standard_output, write_atomically
    from optmech.files.first_problem import first_problem
    from optmech.files.load import read_text
    from optmech.reading.bounded import read_bytes
    from optmech.spaces.mesh.covering import TOO_LARGE

    wanted = _wanted(args)
    claim_outputs(args, [args.data])
    if ending(args.output, ".toml") != ".toml":
        raise ProblemError(
            f"{args.output}: is not the name of a problem file",
            where="--output",
            remedy="Use a name that ends in .toml",
        )
    text, notes = first_problem(wanted, Path(args.output))
    # whatever the data are called, and hold: a file that cannot be read is not written
    try:
        secrets = len(read_text(text, Path(args.output)).problem.secrets)
    except ProblemError as error:
        if TOO_LARGE not in error.message:
            raise
        raise ProblemError(
            "its rows reach too far for one region",
            where=args.data,
            remedy="Name a smaller one: --bounds W,S,E,N; or protect all of it by the mechanism "
            f"for the whole earth, without a design: optmech protect {args.data} --budget 5 -o OUT",
        ) from error
    content = text.encode()
    # somebody may have worked on the file that is there
    if not args.force and os.path.isfile(args.output) and read_bytes(args.output) != content:
        raise ProblemError(
            f"{args.output}: is there already",
            where="--output",
            remedy="Name another file with -o, or replace this one with --force",
        )
    write_atomically(args.output, content)
    values = {"output": args.output, "secrets": secrets, "notes": notes}
    written = [
        f"problem with {secrets:,} secrets written to {args.output}",
        f"next: optmech solve {args.output} -o design.json --report report.html",
    ]
    told = args.json or is_standard_output(args.output)
    return Answer(values, notes=notes, said=[] if told else written)


def _wanted(args: Namespace) -> Wanted:
    """The columns that are named, or guessed from their names, or asked for on a terminal."""
    from optmech.base.labels import coordinate_pairs, other_words
    from optmech.files.draft import Wanted
    from optmech.files.extent import bounds_of
    from optmech.reading.tables import DEGREES, PointTable, opened_table, separator_words

    with opened_table(args.data, 1) as table:
        known = list(table.known)
        if words := separator_words(table):
            note(words)
        middles = table.middles() if isinstance(table, PointTable) else ""
        # a geometry says where a point is, whatever the properties beside it are called
        guesses = [DEGREES] if isinstance(table, PointTable) else coordinate_pairs(known)
    x, y, label = args.x, args.y, args.label
    more: list[tuple[str, str]] = []
    if pairs := pairs_of(args):
        (x, y), *more = pairs
    elif x is None and y is None and label is None:
        if guesses:
            (x, y), *more = guesses
            said = "; ".join(f"{a!r} and {b!r}" for a, b in guesses)
            several = f": a row has {len(guesses)} places" if more else ""
            note(f"taking {said} for the coordinates (--x and --y name others){several}")
        elif sys.stdin.isatty() and sys.stderr.isatty():
            x, y, label = _asked(known)
    if (x is None) != (y is None):
        raise ProblemError(
            "one coordinate is no place in the plane", where="--x", remedy="Give --x and --y"
        )
    for pair in [(x, y), *more] if x is not None and y is not None else []:
        if mixed := other_words(*pair):
            note(mixed)
        if middles and not set(pair).isdisjoint(DEGREES):
            note(f"{middles}; protect takes points only")
    crs = None if args.crs is None else _reference(args)
    radius = None if args.radius is None else _length(args.radius, args, x, y)
    bounds = None if args.bounds is None else bounds_of(args.bounds, _in_degrees(args, x, y))
    wanted = Wanted(
        Path(args.data), x, y, label, args.cells, radius, args.factor, args.unit, args.uniform,
        tuple(more), args.degrees, crs, bounds,
    )  # fmt: skip
    wanted.refuse_unknown(known)
    return wanted


def _reference(args: Namespace) -> Reference:
    """What --crs names, with its unit as that of the coordinates."""
    from optmech.files.reference import Reference

    found = Reference.of(args.crs, "--crs")
    if args.degrees and not found.degrees:
        raise ProblemError(
            f"{found.words} has no degrees", where="--degrees", remedy="Leave one of the two out"
        )
    if not found.degrees and args.unit not in ("", found.unit):
        raise ProblemError(
            f"{found.words} is in {found.unit}", where="--unit", remedy="Leave one of the two out"
        )
    args.degrees, args.unit = found.degrees, "" if found.degrees else found.unit
    return found


_LENGTH = re.compile(r"\s*([-+.\w]*?)\s*(km|m)?\s*")
_METRES = {"m": 1.0, "km": 1000.0}


def _in_degrees(args: Namespace, x: str | None, y: str | None) -> bool:
    """Whether coordinates are longitude and latitude."""
    from optmech.base.labels import is_degrees

    called = args.crs is None and x is not None and y is not None and is_degrees(x, y)
    return bool(args.degrees or called)


def _length(text: str, args: Namespace, x: str | None, y: str | None) -> float:
    """A length as 500m or 2km, in the unit of the coordinates; a number alone as it is, where no
    other unit would do as well."""
    found = _LENGTH.fullmatch(text)
    try:
        value = float_of_text(found[1]) if found else math.nan
    except ValueError:
        found = None
    if found is None:
        raise ProblemError(
            f"{text[:40]!r} is no length", where="--radius", remedy="Give one, as 500m, 2km or 2"
        )
    degrees = _in_degrees(args, x, y)
    unit = "km" if degrees else args.unit
    if found[2] is None:
        if degrees and value > 0:
            raise ProblemError(
                f"{found[1]} may be metres or kilometres",
                where="--radius",
                remedy=f"Give {found[1]}m or {found[1]}km",
            )
        return value
    if unit not in _METRES:
        raise ProblemError(
            f"{text} is in {found[2]}, and the coordinates in {unit or 'no unit'}",
            where="--radius",
            remedy="Say what the coordinates are in: --degrees, --unit m or --unit km",
        )
    return value * _METRES[found[2]] / _METRES[unit]


def _asked(known: list[str]) -> tuple[str | None, str | None, str | None]:
    """Answers from a terminal: two coordinates, or a column of labels."""
    note(f"columns: {', '.join(known)}")

    def answer(question: str) -> str | None:
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip() or None

    x = answer("column with the longitude or x (empty: the places are labels): ")
    if x is None:
        return None, None, answer("column with the labels: ")
    return x, answer("column with the latitude or y: "), None
