"""``optmech export``: the linear program for other solvers."""

from __future__ import annotations

import argparse

SUMMARY = "write the linear program of a problem as MPS or LP"
EXAMPLE = "optmech export grid-4x4 --format mps -o grid.mps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("problem", metavar="FILE|NAME", help="a problem file, or a gallery name")
    parser.add_argument("--format", choices=("mps", "lp"), default="mps", help="(default: mps)")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write")


def run(args: argparse.Namespace) -> int:
    """Write the program; report its size."""
    from optmech.cli.export_lp import write_program
    from optmech.cli.output import note, print_json, require_writable
    from optmech.files import read_problem

    file = read_problem(args.problem)
    require_writable(args.output, where="--output", apart_from=file.path)
    size = write_program(file.problem, args.format, args.output)
    if args.json:
        print_json({"output": args.output, "format": args.format, **size})
    else:
        note(
            f"{args.output}: {size['rows']:,} rows, {size['columns']:,} columns, "
            f"{size['nonzeros']:,} nonzeros; column p_S_O is the probability of observable "
            "number O for secret number S, both from 0"
        )
    return 0
