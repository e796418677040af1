"""``optmech transport``: the task of a ``[transport]`` table, or how far apart the distributions of
a problem's constraints are."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from optmech.cli import output
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.base.arrays import Floats
    from optmech.problem import Problem

SUMMARY = "coupling mechanisms and optimal targets, or distances between distributions"
EXAMPLE = "optmech transport home-out-target -o family.json --picture family.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "problem",
        metavar="FILE|NAME",
        help="a problem file with a [transport] table, or with distribution privacy constraints",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="of a task: save the mechanisms with their proof"
    )
    parser.add_argument("--picture", metavar="PNG", help="of a task: draw inputs and outputs")
    parser.add_argument(
        "--p",
        action="append",
        metavar="P",
        help="show distances between distributions, of this order, at least 1 or inf; may be "
        "repeated (default: 1 and inf)",
    )
    parser.add_argument(
        "--distance",
        metavar="NAME",
        help="euclidean, manhattan, hamming, haversine, loss, or one of the problem's own "
        "(default: the one its constraints use)",
    )
    parser.add_argument(
        "--radius",
        metavar="R",
        help="also decide whether all mass can be moved within R, with a violating set if not",
    )
    parser.add_argument(
        "--plan",
        metavar="OUT",
        help="write moves to a CSV file: those of a task, or of the first pair's last plan",
    )


def run(args: argparse.Namespace) -> int:
    """0, or 1 where --radius asks for a coupling and there is none."""
    from optmech.files import read_problem

    file = read_problem(args.problem)
    if file.transport is not None and (args.p, args.distance, args.radius) == (None,) * 3:
        from optmech.cli.task import run_task

        output.claim_outputs(args, file.inputs)
        return run_task(file.transport, args)
    for name in ("output", "picture"):
        if getattr(args, name) is not None:
            raise ProblemError(
                "needs a [transport] table in the file, and no --p, --distance or --radius",
                where=f"--{name}",
                remedy="Try optmech transport home-out-target",
            )
    output.claim_outputs(args, file.inputs)
    return _compare(args, file.problem)


def _compare(args: argparse.Namespace, problem: Problem) -> int:
    """Distances between the distributions of every pair."""
    from optmech import transport
    from optmech.analysis import measures
    from optmech.exact.number import parse_exact
    from optmech.problem.attacked import choose_distance
    from optmech.spaces.distances import evaluate

    radius = None if args.radius is None else float(parse_exact(args.radius, where="--radius"))
    orders = [_order(text) for text in args.p or ["1", "inf"]]
    name, distance = choose_distance(problem, args.distance)
    values = evaluate(distance, problem.secrets, problem.secrets, where="--distance")
    found: list[dict[str, Any]] = []
    for place, a, b in _pairs(problem, args.problem):
        couplings = [transport.wasserstein(a, b, values, p) for p in orders]
        row = {
            "pair": place,
            "total_variation": float(abs(a / a.sum() - b / b.sum()).sum() / 2),
            "epsilon_unprotected": max(
                measures.hockey_stick_curve(*sides).epsilon(0.0) for sides in ((a, b), (b, a))
            ),
            "diameter": transport.diameter(a, b, values),
            "wasserstein": {_text(p): c.value for p, c in zip(orders, couplings, strict=True)},
        }
        if radius is not None:
            row["within_radius"] = _within(transport.lifted(a, b, values <= radius))
        if not found and args.plan is not None:
            labels, plan = problem.secrets.labels, couplings[-1].plan
            places = zip(*plan.nonzero(), strict=True)
            moves = ((labels[i], labels[j], plan[i, j], values[i, j]) for i, j in places)
            output.write_moves(args.plan, moves)
        found.append(row)
    if args.json:
        output.print_json(
            {"distance": name, "unit": problem.secrets.unit, "radius": radius, "pairs": found}
        )
    else:
        _show(name, problem.secrets.unit, radius, found)
    refused = any(row.get("within_radius", {}).get("coupling") is False for row in found)
    return 1 if refused else 0


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
            where=str(file),
            remedy="Try optmech transport home-out",
        )
    return pairs


def _order(text: str) -> float:
    try:
        order = float(text)
    except ValueError:
        order = math.nan
    if not order >= 1:
        raise ProblemError(f"{text!r} is not a number >= 1", where="--p", remedy="Use 1, 2 or inf")
    return order


def _text(order: float) -> str:
    return "inf" if math.isinf(order) else f"{order:g}"


def _within(found: Any) -> dict[str, Any]:
    from optmech.transport import Violation

    if not isinstance(found, Violation):
        return {"coupling": True}
    places = {name: getattr(found, name).tolist() for name in ("sources", "neighbours")}
    masses = {name: getattr(found, name) for name in ("missing", "mass", "capacity")}
    return {"coupling": False, **places, **masses}


def _show(name: str, unit: str, radius: float | None, found: list[dict[str, Any]]) -> None:
    from optmech.show import words

    suffix = words.after(unit)
    for row in found:
        output.title(row["pair"])
        facts = [
            ("distance", name),
            ("total variation", output.number(row["total_variation"])),
            ("ε without any protection", output.number(row["epsilon_unprotected"])),
            ("diameter", output.number(row["diameter"]) + suffix),
        ]
        facts += [
            (f"W_{order}", output.number(value) + suffix)
            for order, value in row["wasserstein"].items()
        ]
        if radius is not None:
            facts.append((f"within {radius:g}{suffix}", _verdict(row["within_radius"])))
        output.facts(facts)


def _verdict(found: dict[str, Any]) -> str:
    if found["coupling"]:
        return "all mass can be moved"
    return (
        f"{found['missing']:.6g} of the mass cannot be moved: {len(found['sources'])} secrets hold "
        f"{found['mass']:.6g}, and all that is near them {found['capacity']:.6g}"
    )
