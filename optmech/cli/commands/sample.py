"""``optmech sample``: draw reports for a secret."""

from __future__ import annotations

import argparse
from collections.abc import Hashable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from optmech.cli.inputs import (
    add_draw_seed,
    add_family_input,
    argument,
    point,
    released_mechanism,
    require_seed,
)
from optmech.cli.output import Answer, Lines, note
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.spaces.mechanism import Mechanism

SUMMARY = "draw observables for a secret"
EXAMPLE = "optmech sample design.json 3,4 -n 5"
MAX_DRAWS = 10**7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument(parser, "design DESIGN", "a file written by optmech solve -o, or pack")
    argument(
        parser,
        "secret SECRET",
        "label of the secret; a grid cell is ROW,COLUMN; for a design that is private at "
        "every point the point itself, X,Y; for noise the number it is added to",
        nargs="?",
    )
    argument(
        parser,
        "--at X,Y",
        "instead of SECRET a position: of a packed mechanism, or of a design that is private "
        "at every point; longitude and latitude where that has degrees (--at=X,Y where X is "
        "negative)",
    )
    add_family_input(parser)
    argument(parser, "--signer KEY", "the public key (PEM) that a packed file is signed with")
    argument(parser, "-n N", "how many (default: 1)", type=int, default=1)
    add_draw_seed(parser)


def run(args: argparse.Namespace) -> Answer:
    """One label a line."""
    from optmech.packed.earth import is_earth_file
    from optmech.reading.errors import printable
    from optmech.reading.sealed import NOISE, is_of_format
    from optmech.spaces.labels import find_label, label_text
    from optmech.spaces.mesh.mechanism import MeshMechanism

    if not 1 <= args.n <= MAX_DRAWS:
        raise ProblemError(
            f"{args.n} is out of range", where="-n", remedy=f"Give 1 to {MAX_DRAWS:,}"
        )
    require_seed(args.seed)
    if (args.secret is None) == (args.at is None):
        raise ProblemError(
            "give a secret, or a position with --at, and not both",
            where="SECRET",
            remedy=EXAMPLE,
        )
    drawn: list[Hashable]
    shown: Any = args.secret if args.at is None else args.at
    if args.input is None and is_earth_file(args.design):
        return _on_earth(args)
    noise = args.input is None and is_of_format(args.design, NOISE)
    mechanism = None if noise else released_mechanism(args.design, args.input, args.signer)
    if mechanism is None:
        drawn = _noisy(args.design, shown, args.n, args.seed)
    elif isinstance(mechanism, MeshMechanism):
        drawn = mechanism.sample_at(point(shown, mechanism.mesh), args.n, args.seed)
    elif args.at is not None:
        shown = _place_at(mechanism, args.at)
        drawn = mechanism.sample(shown, size=args.n, seed=args.seed)
    else:
        try:
            shown = find_label(mechanism.secrets, args.secret)
        except ProblemError as error:
            raise error.at("SECRET") from error
        drawn = mechanism.sample(shown, size=args.n, seed=args.seed)
    if args.seed is not None:
        note("note: --seed makes the draws predictable: unfit for release")
    return Answer(
        {"secret": shown, "observables": drawn},
        [Lines("\n".join(printable(label_text(label)) for label in drawn))],
    )


def _on_earth(args: argparse.Namespace) -> Answer:
    """Longitude and latitude of a report, one a line."""
    from optmech.packed.earth import Earth

    earth = Earth.load(args.design, signer=args.signer)
    if args.at is None:
        raise ProblemError(
            "a file for the whole earth has no labels", where="SECRET", remedy="Give --at=X,Y"
        )
    try:
        x, y = map(float, point(args.at))
    except OverflowError as error:
        raise ProblemError(f"{args.at[:40]} is too large", where="--at") from error
    drawn = earth.sample(earth.locate((x, y)), args.n, args.seed)
    found = [earth.coordinates(place) for place in drawn]
    if args.seed is not None:
        note("note: --seed makes the draws predictable: unfit for release")
    lines = "\n".join(f"{longitude:.7f},{latitude:.7f}" for longitude, latitude in found)
    return Answer({"secret": args.at, "observables": found}, [Lines(lines)])


def _place_at(mechanism: Mechanism, text: str) -> Hashable:
    """The label of the place that a position belongs to."""
    from optmech.packed.load import PackedMechanism

    if not isinstance(mechanism, PackedMechanism):
        raise ProblemError(
            "is a table of secrets, which says nothing of positions",
            where="--at",
            remedy="Give the secret's label, or pack the design",
        )
    try:
        x, y = map(float, point(text))
    except OverflowError as error:
        raise ProblemError(f"{text[:40]} is too large for a position", where="--at") from error
    found = mechanism.locate((x, y))
    if found is None:
        raise ProblemError(
            f"({text}) lies outside of the region",
            where="--at",
            remedy="Choose a position of the region, or pack with --outside nearest",
        )
    return found


def _noisy(path: str, secret: str, count: int, seed: int | None) -> list[Hashable]:
    """A whole number, or a pair of them, with noise, ``count`` times."""
    from optmech.noise.additive.cells import CellNoise
    from optmech.noise.additive.certified import CertifiedNoise, ProvedNoise

    design = ProvedNoise.load(path)
    if isinstance(design, CellNoise):
        try:
            released = design.release(secret, count, seed=seed)
        except ProblemError as error:
            raise error.at("SECRET") from error
        return [float(value) for value in cast("list[Fraction]", released)]
    planar = not isinstance(design, CertifiedNoise)
    try:
        values = [int(part) for part in secret.split(",")]
    except ValueError:
        values = []
    if len(values) != 1 + planar:
        raise ProblemError(
            f"{secret[:60]!r} is no {'pair of whole numbers' if planar else 'whole number'}",
            where="SECRET",
            remedy="Give what the noise is added to" + (": X,Y" if planar else ""),
        )
    noise = design.drawn(count, seed).reshape(count, len(values)).tolist()
    drawn = [tuple(v + n for v, n in zip(values, row, strict=True)) for row in noise]
    return [pair if planar else pair[0] for pair in drawn]
