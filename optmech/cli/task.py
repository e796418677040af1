"""Running the task of a ``[transport]`` table from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from optmech.cli import output
from optmech.show import words

if TYPE_CHECKING:
    from optmech.mechanisms.targets.design import TargetDesign
    from optmech.tasks.coupling import TransportTask


def run_task(task: TransportTask, args: argparse.Namespace) -> int:
    """Design, save, draw and show; 0, as nothing is shown that was not verified."""
    design, frontier = task.solve(), task.frontier()
    if args.output is not None:
        design.save(args.output)
    if args.picture is not None:
        from optmech.show.plots.targets import target_picture

        target_picture(design, args.picture, task.title)
    if args.plan is not None:
        output.write_moves(args.plan, _moves(design), "input")
    if args.json:
        wanted = ("status", "loss", "lower_bound", "gap")
        points = [
            {"epsilon": p.epsilon.text} | {name: getattr(p, name) for name in wanted}
            for p in frontier
        ]
        output.print_json(
            {
                **design.summary(),
                "outputs": design.outputs.tolist(),
                "frontier": points,
                "output": args.output,
                "picture": args.picture,
            }
        )
        return 0
    _show(task, design, frontier)
    output.written("mechanisms", args.output)
    output.written("picture", args.picture)
    return 0


def _show(task: TransportTask, design: TargetDesign, frontier: list[TargetDesign]) -> None:
    unit = words.after(design.secrets.unit)
    output.title(f"{task.title}: {task.asked.task}")
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
        points = [
            (str(p.epsilon.text), output.number(p.loss), output.number(p.lower_bound))
            for p in frontier
        ]
        output.grid(("epsilon", "loss", "lower bound"), points, right=(1, 2))


def _moves(design: TargetDesign) -> Iterator[tuple[object, ...]]:
    secrets, observables = design.secrets.labels, design.observables.labels
    for name, plan in zip(design.names, design.plans, strict=True):
        for (x, y), flow in plan.flows.items():
            yield name, secrets[x], observables[y], flow / plan.total, design.distance[x, y]
