"""``optmech trace``: noise for a trace of positions, or the loss of given noise; or mechanisms for
the steps of a Markov chain, and what an adversary learns."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "protect a trace of positions that depend on each other"
EXAMPLE = "optmech trace ten-points -o noise.json --picture trace.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
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


def run(args: argparse.Namespace) -> int:
    """0 where the promised loss is proved, or there is none to keep; 1 otherwise."""
    from optmech.cli.chained import ChainAnswer
    from optmech.cli.output import note, print_json, written
    from optmech.cli.traced import Answer
    from optmech.files.make.markov import ChainProblem
    from optmech.files.traces import read_trace

    file = read_trace(args.trace)
    _check_outputs(args, file.inputs)
    chain = isinstance(file.problem, ChainProblem)
    answer: ChainAnswer | Answer
    if isinstance(file.problem, ChainProblem):
        if file.problem.counted:
            note(file.problem.counted)
        answer = ChainAnswer(file, args.seed, note)
    else:
        note(f"computing losses of {len(file.problem.trace)} positions")
        answer = Answer(file, args.seed)
    plain = answer.plain()
    for line in plain.get("notes", ()):
        note(f"note: {line}")
    if args.output:
        answer.save(args.output)
    if args.picture:
        answer.picture(args.picture)
    if args.json:
        print_json(plain | {"output": args.output, "picture": args.picture})
    else:
        answer.show()
        for what, path in (
            ("figures" if chain else "noise", args.output),
            ("picture", args.picture),
        ):
            if path:
                written(what, path)
    return 0 if plain["verified"] else 1


def _check_outputs(args: argparse.Namespace, sources: tuple[Path, ...]) -> None:
    from optmech.cli.output import claim_outputs, require_seed

    require_seed(args.seed)
    outputs = {"--output": args.output, "--picture": args.picture}
    claim_outputs(outputs, sources, as_json=args.json)
    if args.picture is not None:
        from optmech.show.plots.drawing import require_matplotlib

        require_matplotlib(args.picture)
