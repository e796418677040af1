"""``optmech export``: the linear program for other solvers, the mechanism for other tools."""

from __future__ import annotations

import argparse

from optmech.cli import output
from optmech.errors import ProblemError

SUMMARY = "write the linear program of a problem, or the matrix or map of a design"
EXAMPLE = "optmech export grid-4x4 --format mps -o grid.mps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "problem",
        metavar="FILE|NAME",
        help="a problem file, or a gallery name; for --format matrix or geojson a saved design",
    )
    parser.add_argument(
        "--format",
        choices=("mps", "lp", "matrix", "geojson"),
        default="mps",
        help="mps (default) or lp: the linear program; matrix: p(o|s) of a design, as .csv, .npy, "
        ".nc (NetCDF) or .parquet, whatever OUT ends in; geojson: the cells of a design over "
        "places with longitude and latitude, with prior and losses, or the triangles of one for "
        "every point, with the probabilities of reports",
    )
    parser.add_argument(
        "--report",
        metavar="LABEL",
        help="for --format geojson: the probability of this report too, and its posterior",
    )
    parser.add_argument(
        "--reports",
        action="store_true",
        help="for --format geojson: the cells of the reports instead, with how often each is "
        "reported",
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write")


def run(args: argparse.Namespace) -> int:
    """Write the program or the matrix; report its size."""
    if args.report is not None and args.format != "geojson":
        raise ProblemError(
            "is about cells", where="--report", remedy="Use it with --format geojson"
        )
    if args.reports and (args.format != "geojson" or args.report is not None):
        raise ProblemError(
            "is about the cells of all reports",
            where="--reports",
            remedy="Use it with --format geojson, without --report",
        )
    size, text = {"matrix": _matrix, "geojson": _cells}.get(args.format, _program)(args)
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
    from optmech.designs.design import Design
    from optmech.exchange.numbers import write_matrix

    output.claim_outputs(args, [args.problem])
    mechanism = Design.load(args.problem).mechanism
    write_matrix(mechanism, args.output)
    rows, columns = mechanism.matrix.shape
    return {"rows": rows, "columns": columns}, f"{rows:,} secrets, {columns:,} observables"


def _cells(args: argparse.Namespace) -> tuple[dict[str, int], str]:
    from optmech.designs.cells import write_geojson
    from optmech.designs.design import Design
    from optmech.spaces.labels import find_label

    output.claim_outputs(args, [args.problem])
    design = Design.load(args.problem)
    report = args.report
    if report is not None:
        try:
            report = find_label(design.problem.observables, report)
        except ProblemError as error:
            raise error.at("--report") from error
    count = write_geojson(design, args.output, report, reports=args.reports)
    return {"features": count}, f"{count:,} features in longitude and latitude"
