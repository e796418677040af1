"""``optmech trace``: noise for a trace of positions, or the loss of given noise; or mechanisms for
the steps of a Markov chain, and what an adversary learns."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optmech.cli import output

if TYPE_CHECKING:
    from optmech.files.traces import TraceFile
    from optmech.tasks.chain import ChainAnswer
    from optmech.tasks.gaussian import GaussianAnswer

SUMMARY = "protect a trace of positions that depend on each other"
EXAMPLE = "optmech trace ten-points -o noise.json --picture trace.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="FILE|NAME", help="a trace file, or a gallery name")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="write the noise, or the figures, to this JSON file"
    )
    parser.add_argument(
        "--picture",
        metavar="PNG",
        help="draw the trace and the worst hypothesis, or errors over time",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of what is drawn and simulated"
    )
    release = parser.add_argument_group("releasing a trace")
    release.add_argument(
        "--release",
        metavar="TABLE",
        help="a table with a row for every time: it is released as designed, to OUT (.csv)",
    )
    release.add_argument("--x", metavar="COLUMN", help="longitude, or the first coordinate")
    release.add_argument("--y", metavar="COLUMN", help="latitude, or the second coordinate")
    release.add_argument("--label", metavar="COLUMN", help="labels, instead of coordinates")


def run(args: argparse.Namespace) -> int:
    """0 where the promised loss is proved, or there is none to keep; 1 otherwise."""
    from optmech.cli.traces import show_chain, show_noise
    from optmech.files.traces import read_trace
    from optmech.tasks.chain import ChainAnswer, ChainTask

    file = read_trace(args.trace)
    task = file.task
    output.require_seed(args.seed)
    output.claim_outputs(args, [*file.inputs, args.release])
    if args.release is not None:
        return _release(file, args)
    answer: ChainAnswer | GaussianAnswer
    if isinstance(task, ChainTask):
        if task.counted:
            output.note(task.counted)
        answer = task.solve(args.seed, output.note)
    else:
        output.note(f"computing losses of {len(task.trace)} positions")
        answer = task.solve()
    summary = answer.summary()
    for line in summary.get("notes", ()):
        output.note(f"note: {line}")
    if args.output:
        answer.save(args.output)
    if args.picture:
        _draw(answer, args)
    if args.json:
        places = {"file": str(file.path), "output": args.output, "picture": args.picture}
        output.print_json(summary | places)
    else:
        if isinstance(answer, ChainAnswer):
            show_chain(answer)
        else:
            show_noise(answer)
        output.written("figures" if isinstance(answer, ChainAnswer) else "noise", args.output)
        output.written("picture", args.picture)
    return 0 if summary["verified"] else 1


def _release(file: TraceFile, args: argparse.Namespace) -> int:
    """Release a trace of one's own instead of showing what an adversary learns of others."""
    from optmech.errors import ProblemError
    from optmech.protection.files import Asked
    from optmech.protection.traces import release_trace
    from optmech.tasks.chain import ChainTask

    target = args.output or "-"
    task = file.task
    answer: ChainAnswer | GaussianAnswer
    if isinstance(task, ChainTask):
        if task.counted:
            output.note(task.counted)
        answer = task.solve(args.seed, output.note)
    else:
        answer = task.solve()
    try:
        notes = release_trace(answer, args.release, target, Asked(args.x, args.y, args.label))
    except ProblemError as error:
        where = f"--{error.where}" if error.where in ("x", "y", "label") else error.where
        remedy = error.remedy.replace("Name x and y, or label", "Give --x and --y, or --label")
        raise type(error)(error.message, where=where, remedy=remedy) from error
    for line in notes:
        output.note(f"note: {line}")
    output.written("released trace", target)
    return 0


def _draw(answer: ChainAnswer | GaussianAnswer, args: argparse.Namespace) -> None:
    from optmech.show.plots.chains import chain_picture
    from optmech.show.plots.traces import trace_picture
    from optmech.tasks.chain import ChainAnswer

    task = answer.task
    if isinstance(answer, ChainAnswer):
        chain_picture(answer.sequential, answer.repeated, args.picture, task.unit, task.title)
    else:
        trace_picture(answer.task, answer.noise, answer.worst, args.picture, seed=args.seed)
