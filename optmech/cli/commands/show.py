"""``optmech show``: what a file is, what it promises about points, and whether it was checked."""

from argparse import Namespace

from optmech.cli.output import Answer, Facts, Title, faults
from optmech.errors import VerificationError

SUMMARY = "say what a file is and what it promises about points"
EXAMPLE = "optmech show city.omm"


ARGUMENTS = {
    "file FILE": (
        "a design, coupling mechanisms, noise, a packed mechanism, a ledger, the directory of a "
        "sweep, or a problem file"
    ),
}


def run(args: Namespace) -> Answer:
    """0; 1 where the file claims what does not hold."""
    from optmech.show.description import described

    found = described(args.file)
    facts = [
        ("kind", found.what),
        ("title", found.title),
        *found.promise.facts,
        *found.more,
        ("holds", found.size),
        ("file", f"{found.bytes:,} bytes, {found.digest}"),
        ("checked", found.verdict),
    ]
    return Answer(
        found.plain(),
        [Title(found.title or str(args.file)), Facts(facts)],
        said=faults(args.file, found.faults),
        status=VerificationError.exit_status if found.faults else 0,
    )
