"""``optmech sweep``: many designs from one template, resumable."""

from argparse import Namespace
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from optmech.cli.inputs import SOLVING, require_limits
from optmech.cli.output import Answer, Facts, Grid, Piece, note
from optmech.errors import ProblemError
from optmech.exact.number import from_above, from_below

SUMMARY = "solve a problem for many values, into a directory that survives interruptions"
EXAMPLE = "optmech sweep epsilon-curve -o curve"
_LISTED = 20
_HEADS = {"true_epsilon": "true ε", "repaired_loss": "repaired loss", "lower_bound": "lower bound"}


ARGUMENTS = {
    "sweep FILE|NAME": "a sweep file, or a gallery name",
    "-o --output DIR": (
        "directory of the results (default: the file's name with -run); the same command "
        "goes on where an interrupted one was"
    ),
    **SOLVING,
    "--workers N:int": "processes (default: the cores at hand)",
    "--dask ADDRESS": "run on the Dask cluster of this scheduler instead",
}


def run(args: Namespace) -> Answer:
    """Solve all tasks; 0 when every one has a result, infeasible ones included, 1 otherwise."""
    from optmech.base.machine import dask_executor
    from optmech.base.storage import is_standard_output
    from optmech_sweeps import sweep

    require_limits(args)
    folder = f"{Path(args.sweep).stem}-run" if args.output is None else args.output
    if not folder or is_standard_output(folder):
        what = f"{folder}: is standard output" if folder else "the path is empty"
        raise ProblemError(what, where="--output", remedy="Name a directory")
    try:
        with nullcontext() if args.dask is None else dask_executor(args.dask) as executor:
            result = sweep(
                args.sweep,
                directory=folder,
                profile=args.profile,
                gap=args.gap,
                time_limit=args.time_limit,
                workers=args.workers,
                executor=executor,
                progress=None if args.quiet else note,
            )
    except KeyboardInterrupt:
        note(f"what is done is kept in {folder}; the same command goes on from there")
        raise
    failed = result.failed
    counts = Counter(str(row["status"]) for row in result.rows)
    approximate = [row for row in result.rows if row.get("true_epsilon") is not None]
    figures = ("task", "true_epsilon", "repaired_loss")
    values = {
        "status": "failed" if failed else "done",
        "directory": str(result.directory),
        "tasks": len(result.rows),
        "counts": counts,
        "verified": all(row["verified"] for row in result.rows if row["loss"] is not None),
        "failed": [{name: row[name] for name in ("task", "reason")} for row in failed],
        "approximations": [{name: row[name] for name in figures} for row in approximate],
    }
    notes = [f"failed: task {row['task']}: {row['reason']}" for row in failed[:_LISTED]]
    if len(failed) > _LISTED:
        notes.append(f"failed: and {len(failed) - _LISTED} more, see table.csv")
    if len(result.rows) > _LISTED:
        notes.append(f"the first {_LISTED} rows; all are in {result.directory / 'table.csv'}")
    if approximate:
        notes.append(
            f"thresholds leave pairs out in {len(approximate)} tasks: the ε that these designs "
            "really have is in the column true_epsilon, and their objective once every pair keeps "
            "what is promised in repaired_loss"
        )
    done = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    facts = {"tasks": f"{len(result.rows)}: {done}", "directory": str(result.directory)}
    # the axes' columns and the most wanted figures
    names = list(result.rows[0])
    wanted = {"task", "status", "loss", "lower_bound", "gap", "seconds", *figures}
    wanted.update(names[1 : names.index("status")])
    columns = [name for name in names if name in wanted]
    rows = [[_text(row[name], name) for name in columns] for row in result.rows[:_LISTED]]
    heads = [_HEADS.get(name, name) for name in columns]
    shown: list[Piece] = [Facts(facts), Grid(heads, rows, right=range(len(heads)))]
    return Answer(values, shown, said=notes, status=1 if failed else 0)


def _text(value: object, name: str) -> str:
    if isinstance(value, float):
        sided = {"lower_bound": from_below, "gap": from_above, "true_epsilon": from_above}.get(name)
        return f"{value:.6g}" if sided is None else sided(value)
    return "" if value is None else str(value)
