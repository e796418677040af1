"""``optmech transport``: the task of a ``[transport]`` table, or how far apart the distributions of
a problem's constraints are."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from optmech.base.numerals import float_of_text
from optmech.cli.inputs import option
from optmech.cli.output import (
    Answer,
    Facts,
    Grid,
    Piece,
    Title,
    claim_outputs,
    named,
    number,
)
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.base.arrays import Floats
    from optmech.files.transport import TransportTask
    from optmech.mechanisms.targets.design import TargetDesign
    from optmech.problem import Problem

SUMMARY = "coupling mechanisms and optimal targets, or distances between distributions"
EXAMPLE = "optmech transport home-out-target -o family.json --picture family.png"


ARGUMENTS = {
    "problem FILE|NAME": "a problem file with a [transport] table, or with distribution privacy "
    "constraints",
    "-o --output OUT": "of a task: save the mechanisms with their proof",
    "--picture PNG": "of a task: draw inputs and outputs",
    "--p P": option(
        "show distances between distributions, of this order, at least 1 or inf; may be "
        "repeated (default: 1 and inf)",
        action="append",
    ),
    "--distance NAME": (
        "euclidean, manhattan, hamming, haversine, loss, or one of the problem's own "
        "(default: the one its constraints use)"
    ),
    "--radius R": "also decide whether all mass can be moved within R, with a violating set if not",
    "--plan OUT": "write moves to a CSV file: those of a task, or of the first pair's last plan",
}


def run(args: Namespace) -> Answer:
    """0, or 1 where --radius asks for a coupling and there is none."""
    from optmech.files import read_problem

    file = read_problem(args.problem)
    claim_outputs(args, file.inputs)
    if file.transport is not None and (args.p, args.distance, args.radius) == (None,) * 3:
        return _task(file.transport, args)
    for name in ("output", "picture"):
        if getattr(args, name) is not None:
            raise ProblemError(
                "needs a [transport] table in the file, and no --p, --distance or --radius",
                where=f"--{name}",
                remedy="Try optmech transport home-out-target",
            )
    return _compare(args, file.problem)


def _compare(args: Namespace, problem: Problem) -> Answer:
    """Distances between the distributions of every pair."""
    from optmech import transport
    from optmech.analysis import measures
    from optmech.exact.number import float_of
    from optmech.problem.attack import choose_distance
    from optmech.show.words import after
    from optmech.spaces.distances import evaluate

    radius = None if args.radius is None else float_of(args.radius, "--radius")
    orders = [_order(text) for text in args.p or ["1", "inf"]]
    name, distance = choose_distance(problem, args.distance)
    values = evaluate(distance, problem.secrets, problem.secrets, where="--distance")
    unit = problem.space.unit_of(name)
    suffix = after(unit)
    found: list[dict[str, Any]] = []
    shown: list[Piece] = []
    status = 0
    for place, a, b in _pairs(problem, args.problem):
        couplings = [transport.wasserstein(a, b, values, p) for p in orders]
        apart = float(abs(a / a.sum() - b / b.sum()).sum() / 2)
        curves = [measures.hockey_stick_curve(*sides) for sides in ((a, b), (b, a))]
        unprotected = max(curve.epsilon(0.0) for curve in curves)
        diameter = transport.diameter(a, b, values)
        row = {
            "pair": place,
            "total_variation": apart,
            "epsilon_unprotected": unprotected,
            "diameter": diameter,
            "wasserstein": {f"{p:g}": c.value for p, c in zip(orders, couplings, strict=True)},
        }
        facts = {
            "distance": name,
            "total variation": number(apart),
            "ε without any protection": number(unprotected),
            "diameter": number(diameter) + suffix,
            **{
                f"W_{p:g}": number(c.value) + suffix for p, c in zip(orders, couplings, strict=True)
            },
        }
        if radius is not None:
            moved = transport.lifted(a, b, values <= radius)
            row["within_radius"], said = {"coupling": True}, "all mass can be moved"
            if isinstance(moved, transport.Violation):
                status = 1
                row["within_radius"] = {
                    "coupling": False,
                    "sources": moved.sources.tolist(),
                    "neighbours": moved.neighbours.tolist(),
                    **named(moved, "missing", "mass", "capacity"),
                }
                said = (
                    f"{moved.missing:.6g} of the mass cannot be moved: {len(moved.sources)} "
                    f"secrets hold {moved.mass:.6g}, and all that is near them {moved.capacity:.6g}"
                )
            facts[f"within {radius:g}{suffix}"] = said
        if not found and args.plan is not None:
            labels, plan = problem.secrets.labels, couplings[-1].plan
            places = zip(*plan.nonzero(), strict=True)
            moves = ((labels[i], labels[j], plan[i, j], values[i, j]) for i, j in places)
            _write_moves(args.plan, moves)
        found.append(row)
        shown += [Title(place), Facts(facts)]
    figures = {"distance": name, "unit": unit, "radius": radius, "pairs": found}
    return Answer(figures, shown, status=status)


def _pairs(problem: Any, file: str) -> list[tuple[str, Floats, Floats]]:
    from optmech.problem import DistributionPrivacy

    pairs = [
        (f"constraints[{k}].pairs[{n}]", a, b)
        for k, constraint in enumerate(problem.constraints)
        if isinstance(constraint, DistributionPrivacy)
        for n, (a, b) in enumerate(constraint.pairs)
    ]
    if not pairs:
        raise ProblemError(
            "there is neither a [transport] table nor a distribution_privacy constraint",
            where=file,
            remedy="Try optmech transport home-out",
        )
    return pairs


def _order(text: str) -> float:
    try:
        order = float_of_text(text)
    except ValueError:
        order = math.nan
    if not order >= 1:
        raise ProblemError(f"{text!r} is not a number >= 1", where="--p", remedy="Use 1, 2 or inf")
    return order


def _task(task: TransportTask, args: Namespace) -> Answer:
    """Design, save and draw; nothing is shown that was not verified."""
    design, frontier = task.solve(), task.frontier()
    if args.output is not None:
        design.save(args.output)
    if args.picture is not None:
        from optmech.show.plots.figures import target_picture

        target_picture(design, args.picture, task.title)
    if args.plan is not None:
        secrets, observables = design.secrets.labels, design.observables.labels
        moves = (
            (name, secrets[x], observables[y], flow / plan.total, design.distance[x, y])
            for name, plan in zip(design.names, design.plans, strict=True)
            for (x, y), flow in plan.flows.items()
        )
        _write_moves(args.plan, moves, "input")
    points = [
        {"epsilon": p.epsilon.text, **named(p, "status", "loss", "lower_bound", "gap")}
        for p in frontier
    ]
    values = {**design.summary(), "outputs": design.outputs.tolist(), "frontier": points}
    files = {"output": "mechanisms", "picture": "picture"}
    return Answer(values, _mechanisms(task, design, frontier), files)


def _mechanisms(
    task: TransportTask, design: TargetDesign, frontier: list[TargetDesign]
) -> Iterator[Piece]:
    from optmech.show import words

    unit = words.loss_unit(task.problem)
    yield Title(f"{task.title}: {task.asked.task}")
    closeness = (
        "the outputs are one distribution, exactly"
        if design.is_common
        else f"the outputs are ({design.epsilon.text}, {design.delta.text})-close, exactly"
    )
    yield Facts(
        {
            "status": design.status,
            "loss": number(design.loss) + unit,
            "lower bound": number(design.lower_bound, -1) + unit,
            "gap": number(design.gap, 1),
            "privacy": closeness,
            "time": f"{design.seconds:.2f} s",
        }
    )
    rows = zip(design.names, design.losses, design.worst_moves, strict=True)
    yield Grid(
        ("input", "loss", "longest move"),
        [(name, number(loss), number(move)) for name, loss, move in rows],
        right=(1, 2),
    )
    if frontier:
        points = [
            (str(p.epsilon.text), number(p.loss), number(p.lower_bound, -1)) for p in frontier
        ]
        yield Grid(("epsilon", "loss", "lower bound"), points, right=(1, 2))


def _write_moves(path: str, moves: Iterable[tuple[Any, ...]], *names: str) -> None:
    """A CSV file of moved mass, in UTF-8: ``names``, then two labels, mass and distance."""
    from optmech.base.storage import csv_bytes, write_atomically
    from optmech.spaces.labels import label_text

    rows: list[list[Any]] = [[*names, "from", "to", "mass", "distance"]]
    for *first, start, end, mass, distance in moves:
        rows.append([*first, label_text(start), label_text(end), float(mass), float(distance)])
    write_atomically(path, csv_bytes(rows))
