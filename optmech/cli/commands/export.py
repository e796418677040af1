"""``optmech export``: the linear program for other solvers, the mechanism for other tools."""

from __future__ import annotations

import argparse

SUMMARY = "write the linear program of a problem, or the matrix of a design"
EXAMPLE = "optmech export grid-4x4 --format mps -o grid.mps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
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
    if args.format == "matrix":
        return _matrix(args)
    from optmech.cli.output import claim_outputs, note, print_json
    from optmech.exchange.linear_program import write_program
    from optmech.files import read_problem

    file = read_problem(args.problem)
    claim_outputs({"--output": args.output}, file.inputs, as_json=args.json)
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


def _matrix(args: argparse.Namespace) -> int:
    from optmech.cli.output import claim_outputs, note, print_json
    from optmech.designs.file import load_design
    from optmech.exchange.numbers import write_matrix

    claim_outputs({"--output": args.output}, [args.problem], as_json=args.json)
    mechanism = load_design(args.problem).mechanism
    write_matrix(mechanism, args.output)
    rows, columns = mechanism.matrix.shape
    if args.json:
        print_json({"output": args.output, "format": "matrix", "rows": rows, "columns": columns})
    else:
        note(f"{args.output}: {rows:,} secrets, {columns:,} observables")
    return 0
