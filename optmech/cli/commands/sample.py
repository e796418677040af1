"""``optmech sample``: draw reports for a secret."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

from optmech.cli.inputs import (
    DRAW_SEED,
    FAMILY_INPUT,
    option,
    point,
    released_mechanism,
    require_seed,
)
from optmech.cli.output import Answer, Lines, note
from optmech.errors import ProblemError, inside

SUMMARY = "draw observables for a secret"
EXAMPLE = "optmech sample design.json 3,4 -n 5"
MAX_DRAWS = 10**7


ARGUMENTS = {
    "design DESIGN": "a file written by optmech solve -o, or pack",
    "secret SECRET": option(
        "label of the secret; a grid cell is ROW,COLUMN; for a design that is private at "
        "every point the point itself, X,Y; for noise the number it is added to",
        nargs="?",
    ),
    "--at X,Y": (
        "instead of SECRET a position: of a packed mechanism, or of a design that is private "
        "at every point; longitude and latitude where that has degrees"
    ),
    **FAMILY_INPUT,
    "--signer KEY": "the public key (PEM) that a packed file is signed with",
    "-n N:int=1": "how many (default: 1)",
    **DRAW_SEED,
}


def run(args: Namespace) -> Answer:
    """One label a line."""
    from optmech.base.extensions import CODECS, extension
    from optmech.reading.errors import printable
    from optmech.reading.sealed import NOISE, is_of_format, packed_reader
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
    drawn: Sequence[Any]
    shown: Any = args.secret if args.at is None else args.at
    written: Callable[[Any], str] = label_text
    packed = None
    if args.input is None or args.signer is not None:
        packed = packed_reader(args.design, needed=args.signer is not None)
    if packed is not None:
        shown, drawn, written = packed.sampled(
            args.design, args.secret, args.at, args.n, args.seed, args.signer
        )
    elif args.input is None and is_of_format(args.design, NOISE):
        with inside("SECRET"):
            drawn = extension(CODECS, NOISE).sampled(args.design, shown, args.n, args.seed)
    elif isinstance(mechanism := released_mechanism(args.design, args.input), MeshMechanism):
        drawn = mechanism.sample_at(point(shown, mechanism.mesh), args.n, args.seed)
    else:
        if args.at is not None:
            raise ProblemError(
                "is a table of secrets, which says nothing of positions",
                where="--at",
                remedy="Give the secret's label, or pack the design",
            )
        with inside("SECRET"):
            shown = find_label(mechanism.secrets, args.secret)
        drawn = mechanism.sample(shown, size=args.n, seed=args.seed)
    if args.seed is not None:
        note("note: --seed makes the draws predictable: unfit for release")
    lines = "\n".join(printable(written(report)) for report in drawn)
    return Answer({"secret": shown, "observables": drawn}, [Lines(lines)])
