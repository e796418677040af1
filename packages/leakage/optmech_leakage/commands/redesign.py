"""``optmech redesign``: some rows of a saved design anew, all others kept digit by digit."""

from argparse import Namespace
from dataclasses import replace

from optmech.cli.inputs import SOLVING, option
from optmech.cli.output import Answer, Facts, Title, claim_outputs, showing
from optmech.errors import ProblemError

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


def run(args: Namespace) -> Answer:
    """Solve, save, say what both versions reveal; 0 verified, 1 not, 3 infeasible."""
    import optmech_leakage as leakage
    from optmech.cli.commands.solve import Delivery, asked, search_seconds
    from optmech.designs.file import load_mechanism
    from optmech.problem.attack import choose_distance
    from optmech.reading.sealed import packed_reader
    from optmech.spaces.mechanism import Mechanism
    from optmech_leakage.leaks import measured_versions, version_notes, version_rows
    from optmech_leakage.redesign import redesign

    file, profile = asked(args)
    claim_outputs(args, (args.design, *file.inputs, args.profile))
    reader = packed_reader(args.design)
    packed = None if reader is None else reader.load(args.design)
    if packed is not None and not isinstance(packed, Mechanism):
        raise ProblemError(
            "is a mechanism for the whole earth: there are no rows of places to keep",
            where=args.design,
            remedy="Solve its problem again",
        )
    with showing(args.gap or profile.gap, args.quiet) as progress:
        design = redesign(
            packed or args.design,
            file.problem,
            keep=args.keep,
            free=args.free,
            profile=profile,
            gap=args.gap,
            time_limit=search_seconds(args, file.problem),
            progress=progress,
        )
    delivery, versions = Delivery(design, args), None
    with delivery.attempting():
        if delivery.in_time():
            before = packed or load_mechanism(args.design)
            pair = leakage.versions(before, design.mechanism)
            versions = measured_versions(design.problem, pair, choose_distance(design.problem))
    remedy = "Let the rows of the places around be free as well (--free), or raise ε"
    answer = delivery.answer(file, profile.name, {"output": "design"}, remedy)
    values = {**answer.values, "versions": versions}
    if versions is None:
        return replace(answer, values=values)
    together = Title("the old and the new version together"), Facts(version_rows(versions))
    return replace(
        answer,
        values=values,
        shown=[*answer.shown, *together],
        notes=[*answer.notes, *version_notes(versions)],
    )
