"""Running the task of a ``[transport]`` table from the command line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from optmech.base.storage import write_atomically
from optmech.cli import output
from optmech.spaces.labels import label_text

if TYPE_CHECKING:
    from optmech.files.task import TransportTask
    from optmech.problem import Problem
    from optmech.targets import TargetDesign


def run_task(task: TransportTask, problem: Problem, args: argparse.Namespace) -> int:
    """Design, save, draw and show; 0, as nothing is shown that was not verified."""
    if args.picture is not None:
        from optmech.show.plots import require_matplotlib

        require_matplotlib(args.picture)
    design = task.design(problem)
    frontier = [] if task.epsilons is None else task.frontier(problem)
    if args.output is not None:
        design.save(args.output)
    if args.picture is not None:
        from optmech.show.plots.targets import target_picture

        target_picture(design, args.picture, problem.title)
    if args.plan is not None:
        _write_moves(args.plan, design)
    if args.json:
        output.print_json(
            design.summary()
            | {
                "outputs": design.outputs.tolist(),
                "frontier": [_point(point) for point in frontier],
                "output": args.output,
                "picture": args.picture,
            }
        )
        return 0
    _show(task, problem, design, frontier)
    for what, path in (("mechanisms", args.output), ("picture", args.picture)):
        if path is not None:
            output.written(what, path)
    return 0


def _point(design: TargetDesign) -> dict[str, Any]:
    return {
        "epsilon": design.epsilon.text,
        "status": design.status,
        "loss": design.loss,
        "lower_bound": design.lower_bound,
        "gap": design.gap,
    }


def _show(
    task: TransportTask, problem: Problem, design: TargetDesign, frontier: list[TargetDesign]
) -> None:
    unit = f" {problem.secrets.unit}" if problem.secrets.unit else ""
    output.title(f"{problem.title}: {task.task}")
    closeness = (
        "the outputs are one distribution, exactly"
        if design.is_common
        else f"the outputs are ({design.epsilon.text}, {design.delta.text})-close, exactly"
    )
    output.facts(
        [
            ("status", design.status),
            ("loss", output.number(design.loss) + unit),
            ("lower bound", output.number(design.lower_bound) + unit),
            ("gap", output.number(design.gap)),
            ("privacy", closeness),
            ("time", f"{design.seconds:.2f} s"),
        ]
    )
    rows = zip(design.names, design.losses, design.worst_moves, strict=True)
    output.grid(
        ("input", "loss", "longest move"),
        [(name, output.number(loss), output.number(move)) for name, loss, move in rows],
        right=(1, 2),
    )
    if frontier:
        output.grid(
            ("epsilon", "loss", "lower bound"),
            [
                (str(p.epsilon.text), output.number(p.loss), output.number(p.lower_bound))
                for p in frontier
            ],
            right=(1, 2),
        )


def _write_moves(path: str, design: TargetDesign) -> None:
    secrets = [label_text(label) for label in design.secrets.labels]
    observables = [label_text(label) for label in design.observables.labels]
    rows = [["input", "from", "to", "mass", "distance"]]
    for name, plan in zip(design.names, design.plans, strict=True):
        for (x, y), flow in plan.flows.items():
            mass, length = flow / plan.total, float(design.distance[x, y])
            rows.append([name, secrets[x], observables[y], repr(mass), repr(length)])
    write_atomically(path, output.csv_text(rows))
