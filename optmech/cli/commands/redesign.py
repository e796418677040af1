"""``optmech redesign``: some rows of a saved design anew, all others kept digit by digit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optmech.cli import output
from optmech.cli.inputs import require_limits
from optmech.errors import InfeasibleError, ProblemError

if TYPE_CHECKING:
    from optmech.show.figures import Measured
    from optmech.spaces.mechanism import Mechanism

SUMMARY = "design some rows of a saved design anew, and keep all others digit by digit"
EXAMPLE = 'optmech redesign old.json new-problem.toml -o new.json --free "new school"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "design",
        metavar="OLD",
        help="a file written by optmech solve -o, or by optmech pack -o (then the rows that "
        "devices have are kept)",
    )
    parser.add_argument(
        "problem", metavar="FILE|NAME", help="what is wanted now: another place, another prior"
    )
    parser.add_argument(
        "--keep",
        nargs="+",
        metavar="LABEL",
        help="secrets whose rows are kept (default: all that both have, at the same place)",
    )
    parser.add_argument(
        "--free", nargs="+", metavar="LABEL", help="secrets whose rows are designed anew, of these"
    )
    parser.add_argument(
        "--profile",
        metavar="NAME|FILE",
        help="solver profile (default: the one that the file recommends, else auto)",
    )
    parser.add_argument("--gap", type=float, metavar="G", help="relative gap to certify")
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="seconds after which the best verified result so far is returned",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="write the design to this file (-: standard output)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")


def _packed_rows(path: str) -> Mechanism:
    """The mechanism of a packed file, which has rows of its own for secrets."""
    from optmech.packed.load import load_packed
    from optmech.spaces.mechanism import Mechanism

    packed = load_packed(path)
    if not isinstance(packed, Mechanism):
        raise ProblemError(
            "is a mechanism for every point of a region: there are no rows of places to keep",
            where=path,
            remedy="Solve its problem again",
        )
    return packed


def run(args: argparse.Namespace) -> int:
    """Solve, save, say what both versions reveal; 0 verified, 1 not, 3 infeasible."""
    from optmech.analysis import leakage
    from optmech.cli.commands.solve import attack_on, attempting, ended, failed, show_design
    from optmech.cli.progress import showing
    from optmech.designs.file import load_mechanism
    from optmech.files import read_problem
    from optmech.packed.load import is_packed_file
    from optmech.pipeline.profiles import load_profile
    from optmech.pipeline.redesigning import redesign
    from optmech.problem.attacked import choose_distance
    from optmech.show.figures import measure_constraints
    from optmech.show.leaks import measured_versions, version_notes, version_rows

    require_limits(args)
    file = read_problem(args.problem)
    output.doubts(file.problem)
    profile = load_profile(args.profile or file.profile or "auto")
    output.claim_outputs(args, (args.design, *file.inputs, args.profile))
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
    if args.output:
        design.save(args.output)
    found, versions, attack = design.matrix is not None, None, None
    failures: list[Exception] = []
    measured: list[Measured] = []
    with attempting(failures):
        measured = measure_constraints(design.problem, design.mechanism) if found else []
    with attempting(failures):
        attack = attack_on(design) if found else None
    with attempting(failures):
        if found:
            before = _packed_rows(args.design) if packed else load_mechanism(args.design)
            pair = leakage.versions(before, design.mechanism)
            versions = measured_versions(design.problem, pair, choose_distance(design.problem))
    if args.json:
        output.print_json(
            {
                **design.summary(),
                "problem": file.title,
                "file": str(file.path),
                "profile": profile.name,
                "privacy": [row.plain() for row in measured],
                "attack": attack,
                "versions": versions,
                "output": args.output,
                **failed(failures),
            }
        )
        return ended(design.verified, failures, args) if found else InfeasibleError.exit_status
    show_design(design, file.title, profile.name, attack, measured)
    if versions is not None:
        output.blank()
        output.title("the old and the new version together")
        output.facts(version_rows(versions))
        for line in version_notes(versions):
            output.note(f"note: {line}")
    output.written("design", args.output)
    if not found:
        raise InfeasibleError(
            f"infeasible: {design.reason}",
            where=str(args.problem),
            remedy="Let the rows of the places around be free as well (--free), or raise ε",
        )
    return ended(design.verified, failures, args)
