"""``optmech export``: the linear program for other solvers, the mechanism for other tools."""

from argparse import Namespace

from optmech.base.extensions import FILES, extension
from optmech.cli.inputs import option
from optmech.cli.output import Answer, claim_outputs
from optmech.errors import ProblemError, inside

SUMMARY = "write the linear program of a problem, or the matrix or map of a design"
EXAMPLE = "optmech export grid-4x4 --format mps -o grid.mps"


ARGUMENTS = {
    "problem FILE|NAME": "a problem file, or a gallery name; for --format matrix, geojson or "
    "checked a saved design",
    "--format": option(
        "mps (default) or lp: the linear program; matrix: p(o|s) of a design, as .csv, .npy, "
        ".nc (NetCDF) or .parquet, whatever OUT ends in; geojson: the cells of a design over "
        "places with longitude and latitude, with prior and losses, or the triangles of one for "
        "every point, with the probabilities of reports; checked: a design in whole numbers, for "
        "the checker that is itself proved",
        choices=("mps", "lp", "matrix", "geojson", "checked"),
        default="mps",
    ),
    "--report LABEL": "for --format geojson: the probability of this report too, and its posterior",
    "--reports": "for --format geojson: the cells of the reports instead, with how often each is "
    "reported",
    "-o --output OUT": option("the file to write", required=True),
}


def run(args: Namespace) -> Answer:
    """Write the program or the matrix; report its size."""
    from optmech.designs.design import Design

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
    claim_outputs(args, [args.problem])
    match args.format:
        case "matrix":
            from optmech.exchange.matrices import write_matrix

            mechanism = Design.load(args.problem).mechanism
            write_matrix(mechanism, args.output)
            rows, columns = mechanism.matrix.shape
            size = {"rows": rows, "columns": columns}
            text = f"matrix ({rows:,} secrets, {columns:,} observables)"
        case "geojson":
            from optmech.designs.cells import write_geojson
            from optmech.spaces.labels import find_label

            design, report = Design.load(args.problem), args.report
            if report is not None:
                with inside("--report"):
                    report = find_label(design.problem.observables, report)
            count = write_geojson(design, args.output, report, reports=args.reports)
            size = {"features": count}
            text = f"map ({count:,} features in longitude and latitude)"
        case "checked":
            from optmech.designs.file import read_with_digest

            with inside("--format"):
                writer = extension(FILES, "checked")
            size = writer.write_checked(*read_with_digest(args.problem), args.output)
            text = (
                f"design in whole numbers ({size['secrets']:,} secrets, {size['observables']:,} "
                f"observables, {size['promises']} promises) for the proved checker"
            )
        case _:
            from optmech.exchange.linear_program import write_program
            from optmech.files import read_problem

            file = read_problem(args.problem)
            claim_outputs(args, file.inputs)
            size = write_program(file.problem, args.format, args.output)
            text = (
                f"program ({size['rows']:,} rows, {size['columns']:,} columns, "
                f"{size['nonzeros']:,} nonzeros; "
                "column p_S_O is the probability of observable number O for secret number S, both "
                "from 0)"
            )
    return Answer({"format": args.format, **size}, files={"output": text})
