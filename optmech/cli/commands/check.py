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
    from optmech.designs.design import Design
    from optmech.packed.documents import check
    from optmech.reading.sealed import is_packed_file

    if args.of is not None or args.signer is not None or is_packed_file(args.design):
        from optmech.packed.earth import Earth, is_earth_file
        from optmech.packed.make import check_packed

        if args.of is not None and args.problem is None:
            report = check_packed(args.design, Design.load(args.of), signer=args.signer)
        elif args.problem is None and is_earth_file(args.design):
            report = Earth.load(args.design, signer=args.signer).check()
        else:
            raise ProblemError(
                "a packed mechanism is checked against its design",
                where=args.design,
                remedy="Give both: optmech check city.omm design.json",
            )
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
        "lower bound": f"{number(report.lower_bound)} {unit}".rstrip(),
        "gap" if total is None else "gap on this mesh": number(report.gap),
        "gap to the bound": None if total is None else number(total),
        "passed": "yes" if report.passed else "NO",
    }
    return Answer(
        found,
        [checks(report.checks), Facts(facts)],
        notes=report.notes,
        said=faults(args.design, report.faults),
        status=0 if report.passed else VerificationError.exit_status,
    )
