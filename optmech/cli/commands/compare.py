"""``optmech compare``: two saved designs for the same secrets, side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.cli import output
from optmech.cli.inputs import read_design
from optmech.cli.output import Answer, Facts, Grid, Piece, Title
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.problem import Problem
    from optmech.spaces.distances import Distance
    from optmech.spaces.mechanism import Mechanism

SUMMARY = "compare two designs: which leaks more, and what each costs"
EXAMPLE = "optmech compare first.json second.json --picture compared.png"


_MATRIX = "or, with --problem, a matrix p(o|s): .csv, .npy, .nc or .parquet"
ARGUMENTS = {
    "first FIRST": f"a file written by optmech solve -o; {_MATRIX}",
    "second SECOND": f"another; {_MATRIX}",
    "--problem FILE|NAME": "the problem that matrices of other tools belong to",
    "--distance NAME": "distance of ε and of the attack, as for measure",
    "--picture PNG": "draw both as .png, .pdf or .svg",
}


def _distances(
    args: argparse.Namespace, first: Problem, second: Problem
) -> tuple[tuple[str, Distance], tuple[str, Distance]]:
    """The distance that both are measured with, of each with its own places."""
    from optmech.problem.attack import choose_distance
    from optmech.spaces.distances import distance_name

    mine = choose_distance(first, args.distance)
    theirs = choose_distance(second, args.distance)
    if mine[0] != theirs[0]:
        theirs = choose_distance(second, args.distance or distance_name(mine[1]))
    units = [p.space.per(d) for p, (_, d) in ((first, mine), (second, theirs))]
    if units[0] != units[1]:
        raise ProblemError(
            f"ε and errors are per {units[0]} in the first and per {units[1]} in the second: they "
            "cannot be compared",
            where="--distance",
            remedy="Use --distance hamming, or design both in one unit",
        )
    return mine, theirs


def _versions(
    args: argparse.Namespace, other: Problem, problem: Problem, pair: tuple[Mechanism, Mechanism]
) -> Answer:
    """Two versions with some secrets in common: what their reports reveal about these."""
    from optmech.analysis import leakage
    from optmech.show.leaks import measured_versions, version_rows

    _, named = _distances(args, other, problem)
    found = measured_versions(problem, leakage.versions(*pair), named, other)
    title = Title("two versions: a report of each about the same secret, drawn independently")
    rows = version_rows(found, ("first", "second"))
    return Answer({"distance": named[0], "together": found}, [title, Facts(rows)])


def run(args: argparse.Namespace) -> Answer:
    """Always 0: designs are compared, not judged."""
    from optmech.analysis import leakage, measures
    from optmech.show import leaks

    output.claim_outputs(args, [args.first, args.second, args.problem])
    problem, a = read_design(args.first, args.problem)
    other, b = read_design(args.second, args.problem)
    if a.secrets.labels != b.secrets.labels:
        if set(a.secrets.labels) & set(b.secrets.labels) and args.picture is None:
            return _versions(args, problem, other, (a, b))
        raise ProblemError(
            f"{args.second}: has other secrets than {args.first}",
            where="SECOND",
            remedy="Compare designs for the same secrets in the same order",
        )
    named = _distances(args, problem, other)
    name, per = named[0][0], problem.space.per(named[0][1])
    unit = problem.space.unit_of(name)
    sides = []
    for m, own, (_, distance) in ((a, problem, named[0]), (b, other, named[1])):
        # both under the first one's prior: otherwise leakage could not be compared
        found: leaks.Found = {
            "expected_loss": (
                "expected loss, its own",
                measures.expected_loss(m, own.prior, own.loss),
            ),
            "worst_loss": ("worst-case loss, its own", measures.worst_loss(m, own.loss)),
            "metric_epsilon": (f"ε of metric privacy per {per}", measures.epsilon(m, distance)),
            "epsilon": ("ε of differential privacy (all pairs)", measures.epsilon(m)),
            "distortion": (
                f"error of the optimal attack{f' in {unit}' if unit else ''} ({name})",
                measures.distortion(m, problem.prior, distance),
            ),
        }
        sides.append(found | leaks.measured_leakage(problem, m))
    forth, back = leaks.direction(a, b), leaks.direction(b, a)
    words = leaks.verdict(forth, back)
    pair = leaks.measured_versions(problem, leakage.versions(a, b), named[0], other)
    if args.picture is not None:
        from optmech.show.plots import compared, save

        names = [Path(path).stem for path in (args.first, args.second)]
        if names[0] == names[1]:
            names = ["first", "second"]
        save(compared(a, b, problem.prior, names=names), args.picture)
    values = {
        "distance": name,
        "unit": unit,
        "first": output.plain_figures(sides[0]),
        "second": output.plain_figures(sides[1]),
        "second_refines_first": forth.plain(),
        "first_refines_second": back.plain(),
        "verdict": words,
        "together": pair,
    }
    rows = [
        (title, output.either(value), output.either(sides[1][key][1]))
        for key, (title, value) in sides[0].items()
    ]
    more = [
        (f"the {which} earns an adversary more, by up to", output.either(way.deficiency))
        for which, way in (("second", forth), ("first", back))
        if way.relation == "fails" and way.gap > 0
    ]
    shown: list[Piece] = [
        Grid(("", "first", "second"), rows, right=(1, 2)),
        Title(words),
        *([Facts(more)] if more else []),
        Title("a report of each about the same secret, drawn independently"),
        Facts(leaks.version_rows(pair, ("first", "second"))),
    ]
    return Answer(values, shown, {"picture": "picture"})
