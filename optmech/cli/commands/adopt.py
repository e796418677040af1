"""``optmech adopt``: a matrix of another tool, checked exactly and saved as a design."""

from __future__ import annotations

import argparse

from optmech.cli.inputs import add_input
from optmech.errors import ProblemError

SUMMARY = "check a matrix of another tool against a problem and save it as a design"
EXAMPLE = "optmech adopt matrix.csv --problem montreal-small -o design.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add_input(parser)
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the design file")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="change a matrix that breaks a constraint as little as repair manages",
    )


def run(args: argparse.Namespace) -> int:
    """0 when every constraint holds; otherwise nothing is written."""
    from optmech.cli.output import claim_outputs, facts, number, print_json, written
    from optmech.exchange.adoption import adopt
    from optmech.exchange.numbers import read_matrix
    from optmech.files import read_problem
    from optmech.show.nearness import nearness

    if args.problem is None:
        raise ProblemError("is missing", where="--problem", remedy="Name the matrix's problem")
    file = read_problem(args.problem)
    claim_outputs({"--output": args.output}, [args.design, *file.inputs], as_json=args.json)
    problem = file.problem
    mechanism = read_matrix(args.design, problem.secrets, problem.observables)
    design = adopt(mechanism, problem, repair=args.repair)
    design.save(args.output)
    if args.json:
        print_json(design.summary() | {"output": args.output})
        return 0
    facts(
        [
            ("verified", "yes"),
            ("loss", number(design.loss)),
            ("lower bound", f"{number(design.lower_bound)} (without a search)"),
            ("status", f"{design.status}: {nearness(design)}"),
        ]
    )
    written("design", args.output)
    return 0
