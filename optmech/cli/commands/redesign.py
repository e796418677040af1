"""``optmech redesign``: some rows of a saved design anew, all others kept digit by digit."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from optmech.cli.inputs import SOLVING, option
from optmech.cli.output import Answer, Facts, Piece, Title, claim_outputs
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.spaces.mechanism import Mechanism

SUMMARY = "design some rows of a saved design anew, and keep all others digit by digit"
EXAMPLE = 'optmech redesign old.json new-problem.toml -o new.json --free "new school"'


ARGUMENTS = {
    "design OLD": (
        "a file written by optmech solve -o, or by optmech pack -o (then the rows that "
        "devices have are kept)"
    ),
    "problem FILE|NAME": "what is wanted now: another place, another prior",
    "--keep LABEL": option(
        "secrets whose rows are kept (default: all that both have, at the same place)", nargs="+"
    ),
    "--free LABEL": option("secrets whose rows are designed anew, of these", nargs="+"),
    "-o --output OUT": "write the design to this file (-: standard output)",
    **SOLVING,
}


def _packed_rows(path: str) -> Mechanism:
    """The mechanism of a packed file, which has rows of its own for secrets."""
    from optmech.packed.documents import load_packed
    from optmech.spaces.mechanism import Mechanism

    packed = load_packed(path)
    if not isinstance(packed, Mechanism):
        raise ProblemError(
            "is a mechanism for every point of a region: there are no rows of places to keep",
            where=path,
            remedy="Solve its problem again",
        )
    return packed


def run(args: argparse.Namespace) -> Answer:
    """Solve, save, say what both versions reveal; 0 verified, 1 not, 3 infeasible."""
    from optmech.analysis import leakage
    from optmech.cli.commands.solve import Delivery, asked
    from optmech.cli.output import showing
    from optmech.designs.file import load_mechanism
    from optmech.packed.file import is_packed_file
    from optmech.pipeline.redesign import redesign
    from optmech.problem.attack import choose_distance
    from optmech.show.leaks import measured_versions, version_notes, version_rows

    file, profile = asked(args)
    claim_outputs(args, (args.design, *file.inputs, args.profile))
    with showing(args.gap or profile.gap, args.quiet) as progress:
        packed = is_packed_file(args.design)
        design = redesign(
            _packed_rows(args.design) if packed else args.design,
            file.problem,
            keep=args.keep,
            free=args.free,
            profile=profile,
            gap=args.gap,
            time_limit=args.time_limit,
            progress=progress,
        )
    delivery, versions = Delivery(design, args), None
    with delivery.attempting():
        if delivery.found:
            before = _packed_rows(args.design) if packed else load_mechanism(args.design)
            pair = leakage.versions(before, design.mechanism)
            versions = measured_versions(design.problem, pair, choose_distance(design.problem))
    remedy = "Let the rows of the places around be free as well (--free), or raise ε"
    answer = delivery.answer(file, profile.name, {"output": "design"}, remedy)
    values = {**answer.values, "versions": versions}
    if versions is None:
        return replace(answer, values=values)
    together: list[Piece] = [
        Title("the old and the new version together"),
        Facts(version_rows(versions)),
    ]
    notes = [f"note: {line}" for line in version_notes(versions)]
    return replace(
        answer, values=values, shown=[*answer.shown, *together], notes=[*answer.notes, *notes]
    )
