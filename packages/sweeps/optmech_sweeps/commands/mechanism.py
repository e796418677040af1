"""``optmech mechanism``: a known mechanism for the secrets of a problem, measured and saved; or
those that its file states, in a table."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from optmech.cli.inputs import option
from optmech.cli.output import Answer, Facts, Grid, claim_outputs, number
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.files.load import ProblemFile

SUMMARY = "make a known mechanism, such as planar Laplace, for the secrets of a problem"
EXAMPLE = "optmech mechanism montreal-small exponential --epsilon 0.6 -o matrix.csv"

ARGUMENTS = {
    "problem FILE|NAME": "the problem whose secrets, distance and loss are meant",
    "mechanism NAME": option(
        "exponential, planar_laplace, planar_geometric, geometric or randomized_response; without "
        "one, all that the [[mechanisms]] tables of the file state",
        nargs="?",
    ),
    "--epsilon E": 'of NAME: per unit of distance, as 0.6 or "ln 2"',
    "--optimum": "of tables: beside the design of least loss",
    "--dummies K:int": "hide the report among so many uniform dummies (tupling): only measured",
    "-o --output OUT": "the matrix: .csv, .npy, .nc or .parquet",
}


def run(args: Namespace) -> Answer:
    """0 where the mechanism exists; what a problem promises is measured and not required."""
    from optmech.analysis import measures
    from optmech.exchange.matrices import write_matrix
    from optmech.files import read_problem
    from optmech.mechanisms import tupling
    from optmech.show.figures import measure_constraints
    from optmech_sweeps.baselines import known

    file = read_problem(args.problem)
    claim_outputs(args, file.inputs)
    if args.mechanism is None:
        return _tables(file, args)
    if args.epsilon is None or args.optimum:
        where, remedy = ("--optimum", "Leave it out") if args.optimum else ("--epsilon", "Give it")
        raise ProblemError("of one mechanism by its name", where=where, remedy=remedy)
    problem = file.problem
    found = known(args.mechanism, problem, args.epsilon)
    values = {
        "mechanism": args.mechanism,
        "loss": measures.expected_loss(found, problem.prior, problem.loss_matrix),
        "worst_loss": measures.worst_loss(found, problem.loss_matrix),
        "secrets": len(problem.secrets),
        "observables": len(problem.observables),
    }
    rows = {"expected loss": number(values["loss"]), "worst loss": number(values["worst_loss"])}
    kept = measure_constraints(problem, found)
    for row in kept:
        rows[f"{row.constraint} {row.kind}, {row.quantity}"] = (
            f"{number(row.measured)} ({row.sense} {number(row.promised)} is asked for)"
        )
    values["constraints"] = [row.plain() for row in kept]
    if args.dummies is not None:
        if not callable(problem.loss):
            raise ProblemError("needs a distance as loss", where="--dummies")
        values["tupling_loss"] = tupling(found, args.dummies).expected_loss(
            problem.prior, problem.loss
        )
        rows[f"loss of the nearest of {args.dummies + 1}"] = number(values["tupling_loss"])
    if args.output is not None:
        write_matrix(found, args.output)
        values["output"] = args.output
        rows["written to"] = args.output
    return Answer(values, [Facts(rows)])


def _tables(file: ProblemFile, args: Namespace) -> Answer:
    """A row for every mechanism that a file states."""
    from optmech_sweeps.stated import beside_optimum, measured, stated_in

    for name in ("epsilon", "dummies", "output"):
        if getattr(args, name) is not None:
            raise ProblemError(
                "goes with the name of a mechanism",
                where=f"--{name}",
                remedy="Name one",
            )
    stated = stated_in(file)
    rows = measured(file.problem, stated)
    if args.optimum:
        rows.insert(0, beside_optimum(file))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(row.get(key)) for key in columns] for row in rows]
    shown = Grid([key.replace("_", " ") for key in columns], cells, range(1, len(columns)))
    return Answer({"mechanisms": rows}, [shown])


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else number(value)
