"""``optmech check``: every claim of a saved design, recomputed from its file alone."""

from argparse import Namespace
from dataclasses import asdict

from optmech.cli.inputs import INPUT, option, read_input
from optmech.cli.output import Answer, Facts, checks, faults, named, number
from optmech.errors import ProblemError, VerificationError

SUMMARY = "check every claim of a saved design"
EXAMPLE = "optmech check design.json"


ARGUMENTS = {
    **INPUT,
    "of ITS-DESIGN": option(
        "for a packed mechanism, the design that it was packed from", nargs="?"
    ),
    "--signer KEY": "the public key (PEM) that a packed file is signed with",
}


def run(args: Namespace) -> Answer:
    """0 when every check passes, 1 when one fails."""
    from optmech.designs.documents import check
    from optmech.reading.sealed import packed_reader

    stated = args.of is not None or args.signer is not None
    packed = packed_reader(args.design, needed=stated)
    if packed is not None and args.problem is not None:
        raise ProblemError(
            "a packed mechanism has no problem of its own: it is checked against its design",
            where="--problem",
            remedy="Leave it out: optmech check city.omm design.json",
        )
    if packed is not None:
        report = packed.check(args.design, args.of, args.signer)
    elif args.problem is None:
        report = check(args.design)
    else:
        from optmech.exchange.adoption import judge

        problem, mechanism = read_input(args)
        report = judge(mechanism, problem, args.design)
    tightest, unit = report.tightest, report.unit
    found = {
        **asdict(report),
        **named(report, "passed", "inequalities"),
        "tightest": tightest and tightest.worst,
    }
    total = report.total_gap
    facts = {
        "status": report.status,
        "reason": report.reason,
        "inequalities": f"{report.inequalities:,}, all decided exactly",
        "tightest ratio": None if tightest is None else f"{tightest.worst:.15g} of allowed",
        "loss": f"{number(report.loss)} {unit}".rstrip(),
        "lower bound": f"{number(report.lower_bound, -1)} {unit}".rstrip(),
        "gap" if total is None else "gap on this mesh": number(report.gap, 1),
        "gap to the bound": None if total is None else number(total, 1),
        "passed": "yes" if report.passed else "NO",
    }
    return Answer(
        found,
        [checks(report.checks), Facts(facts)],
        notes=report.notes,
        said=faults(args.design, report.faults),
        status=0 if report.passed else VerificationError.exit_status,
    )
