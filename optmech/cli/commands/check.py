"""``optmech check``: every claim of a saved design, recomputed from its file alone."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from optmech.cli.inputs import INPUT, option, read_input
from optmech.cli.output import Answer, Facts, checks, number
from optmech.errors import ProblemError, VerificationError

if TYPE_CHECKING:
    from optmech.certificate.check import CheckReport

SUMMARY = "check every claim of a saved design"
EXAMPLE = "optmech check design.json"


ARGUMENTS = {
    **INPUT,
    "of ITS-DESIGN": option(
        "for a packed mechanism, the design that it was packed from", nargs="?"
    ),
    "--signer KEY": "the public key (PEM) that a packed file is signed with",
}


def run(args: argparse.Namespace) -> Answer:
    """0 when every check passes, 1 when one fails."""
    report = _report(args)
    status = 0 if report.passed else VerificationError.exit_status
    tightest = report.tightest
    found = {
        **asdict(report),
        "passed": report.passed,
        "inequalities": report.inequalities,
        "tightest": None if tightest is None else tightest.worst,
    }
    gaps = [("gap", number(report.gap))]
    if report.total_gap is not None:
        gaps = [
            ("gap on this mesh", number(report.gap)),
            ("gap to the bound", number(report.total_gap)),
        ]
    facts = [
        ("status", report.status),
        *([("reason", report.reason)] if report.reason else []),
        ("inequalities", f"{report.inequalities:,}, all decided exactly"),
        *([] if tightest is None else [("tightest ratio", f"{tightest.worst:.15g} of allowed")]),
        ("loss", f"{number(report.loss)} {report.unit}".rstrip()),
        ("lower bound", f"{number(report.lower_bound)} {report.unit}".rstrip()),
        *gaps,
        ("passed", "yes" if report.passed else "NO"),
    ]
    faults = [f"optmech: error: {args.design}: {fault}" for fault in report.faults]
    return Answer(
        found,
        [checks(report.checks), Facts(facts)],
        notes=[*(f"note: {line}" for line in report.notes), *faults],
        status=status,
    )


def _report(args: argparse.Namespace) -> CheckReport:
    from optmech.reading.sealed import is_packed_file

    if args.of is not None or args.signer is not None or is_packed_file(args.design):
        return _packed(args)
    if args.problem is None:
        from optmech.packed.documents import check

        return check(args.design)
    from optmech.exchange.adoption import judge

    problem, mechanism = read_input(args)
    return judge(mechanism, problem, args.design)


def _packed(args: argparse.Namespace) -> CheckReport:
    from optmech.designs.design import Design
    from optmech.packed.earth import Earth, is_earth_file
    from optmech.packed.make import check_packed

    if args.of is None and args.problem is None and is_earth_file(args.design):
        return Earth.load(args.design, signer=args.signer).check()

    if args.of is None or args.problem is not None:
        raise ProblemError(
            "a packed mechanism is checked against its design",
            where=args.design,
            remedy="Give both: optmech check city.omm design.json",
        )
    return check_packed(args.design, Design.load(args.of), signer=args.signer)
