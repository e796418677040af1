"""``optmech adopt``: a matrix of another tool, checked exactly and saved as a design."""

from __future__ import annotations

import argparse

from optmech.cli import output
from optmech.cli.inputs import add_input
from optmech.errors import ProblemError

SUMMARY = "check a matrix of another tool against a problem and save it as a design"
EXAMPLE = "optmech adopt matrix.csv --problem montreal-small -o design.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the design file")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="change a matrix that breaks a constraint as little as repair manages",
    )


def run(args: argparse.Namespace) -> int:
    """0 when every constraint holds; otherwise nothing is written."""
    from optmech.exchange.adoption import adopt
    from optmech.exchange.numbers import read_matrix
    from optmech.files import read_problem
    from optmech.show.words import nearness

    if args.problem is None:
        raise ProblemError("is missing", where="--problem", remedy="Name the matrix's problem")
    file = read_problem(args.problem)
    output.claim_outputs(args, [args.design, *file.inputs])
    problem = file.problem
    mechanism = read_matrix(args.design, problem.secrets, problem.observables)
    design = adopt(mechanism, problem, repair=args.repair)
    design.save(args.output)
    if args.json:
        output.print_json(design.summary() | {"output": args.output})
        return 0
    output.facts(
        [
            ("verified", "yes"),
            ("loss", output.number(design.loss)),
            ("lower bound", f"{output.number(design.lower_bound)} (without a search)"),
            ("status", f"{design.status}: {nearness(design)}"),
        ]
    )
    output.written("design", args.output)
    return 0
