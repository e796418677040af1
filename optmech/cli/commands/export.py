"""``optmech export``: the linear program for other solvers, the mechanism for other tools."""

from __future__ import annotations

import argparse

from optmech.cli import output

SUMMARY = "write the linear program of a problem, or the matrix of a design"
EXAMPLE = "optmech export grid-4x4 --format mps -o grid.mps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "problem",
        metavar="FILE|NAME",
        help="a problem file, or a gallery name; for --format matrix a saved design",
    )
    parser.add_argument(
        "--format",
        choices=("mps", "lp", "matrix"),
        default="mps",
        help="mps (default) or lp: the linear program; matrix: p(o|s) of a design, as .csv, .npy, "
        ".nc (NetCDF) or .parquet, whatever OUT ends in",
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write")


def run(args: argparse.Namespace) -> int:
    """Write the program or the matrix; report its size."""
    size, text = (_matrix if args.format == "matrix" else _program)(args)
    if args.json:
        output.print_json({"output": args.output, "format": args.format, **size})
    else:
        output.note(f"{args.output}: {text}")
    return 0


def _program(args: argparse.Namespace) -> tuple[dict[str, int], str]:
    from optmech.exchange.linear_program import write_program
    from optmech.files import read_problem

    file = read_problem(args.problem)
    output.claim_outputs(args, file.inputs)
    size = write_program(file.problem, args.format, args.output)
    return size, (
        f"{size['rows']:,} rows, {size['columns']:,} columns, {size['nonzeros']:,} nonzeros; "
        "column p_S_O is the probability of observable number O for secret number S, both from 0"
    )


def _matrix(args: argparse.Namespace) -> tuple[dict[str, int], str]:
    from optmech.designs.file import load_design
    from optmech.exchange.numbers import write_matrix

    output.claim_outputs(args, [args.problem])
    mechanism = load_design(args.problem).mechanism
    write_matrix(mechanism, args.output)
    rows, columns = mechanism.matrix.shape
    return {"rows": rows, "columns": columns}, f"{rows:,} secrets, {columns:,} observables"
