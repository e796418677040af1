"""``optmech check``: every claim of a saved design, recomputed from its file alone."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optmech.cli.inputs import add_input, read_input
from optmech.errors import VerificationError

if TYPE_CHECKING:
    from optmech.certificate.check import CheckReport

SUMMARY = "check every claim of a saved design"
EXAMPLE = "optmech check design.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add_input(parser)


def run(args: argparse.Namespace) -> int:
    """0 when every check passes, 1 when one fails."""
    from optmech.cli.output import facts, grid, note, number, print_json
    from optmech.reading.errors import printable

    report = _report(args)
    tightest = report.tightest
    if args.json:
        listed = [
            {
                "name": c.name,
                "constraint": c.constraint,
                "inequalities": c.inequalities,
                "passed": c.passed,
                "worst": c.worst,
                "detail": c.detail,
            }
            for c in report.checks
        ]
        print_json(
            {
                "passed": report.passed,
                "status": report.status,
                "loss": report.loss,
                "lower_bound": report.lower_bound,
                "objective": report.objective,
                "bound": report.bound,
                "gap": report.gap,
                "inequalities": report.inequalities,
                "tightest": None if tightest is None else tightest.worst,
                "checks": listed,
                "faults": list(report.faults),
                "reason": report.reason,
                "notes": list(report.notes),
            }
        )
        return 0 if report.passed else VerificationError.exit_status
    grid(
        ("check", "inequalities", "passed", "tightest"),
        [
            (c.name, f"{c.inequalities:,}", "yes" if c.passed else "NO", c.detail)
            for c in report.checks
        ],
        right=(1,),
    )
    proof = [("reason", report.reason)] if report.reason else []
    facts(
        [
            ("status", report.status),
            *proof,
            ("inequalities", f"{report.inequalities:,}, all decided exactly"),
            ("tightest ratio", "none" if tightest is None else f"{tightest.worst:.15g} of allowed"),
            ("loss", number(report.loss)),
            ("lower bound", number(report.lower_bound)),
            ("gap", number(report.gap)),
            ("passed", "yes" if report.passed else "NO"),
        ]
    )
    for line in report.notes:
        note(f"note: {printable(line)}")
    for fault in report.faults:
        note(f"optmech: error: {args.design}: {fault}")
    return 0 if report.passed else VerificationError.exit_status


def _report(args: argparse.Namespace) -> CheckReport:
    if args.problem is None:
        from optmech.pipeline.verify import check

        return check(args.design)
    from optmech.exchange.adoption import judge

    problem, mechanism = read_input(args)
    return judge(mechanism, problem, args.design)
