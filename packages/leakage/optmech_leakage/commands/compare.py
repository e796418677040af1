"""``optmech compare``: two saved designs for the same secrets, side by side."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from optmech.cli import output
from optmech.cli.inputs import read_design
from optmech.cli.output import Answer, Facts, Grid, Piece, Title
from optmech.errors import ProblemError

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


def run(args: Namespace) -> Answer:
    """Always 0: designs are compared, not judged."""
    import optmech_leakage as leakage
    from optmech.analysis import measures
    from optmech.problem.attack import choose_distance
    from optmech.spaces.distances import distance_name
    from optmech_leakage import leaks

    output.claim_outputs(args, [args.first, args.second, args.problem])
    problem, a = read_design(args.first, args.problem)
    other, b = read_design(args.second, args.problem)
    same = a.secrets.labels == b.secrets.labels
    if not same and not (set(a.secrets.labels) & set(b.secrets.labels) and args.picture is None):
        raise ProblemError(
            f"{args.second}: has other secrets than {args.first}",
            where="SECOND",
            remedy="Compare designs for the same secrets in the same order",
        )
    # one distance, of each with its own places
    mine = choose_distance(problem, args.distance)
    theirs = choose_distance(other, args.distance)
    if mine[0] != theirs[0]:
        theirs = choose_distance(other, args.distance or distance_name(mine[1]))
    units = [p.space.per(d) for p, (_, d) in ((problem, mine), (other, theirs))]
    if units[0] != units[1]:
        raise ProblemError(
            f"ε and errors are per {units[0]} in the first and per {units[1]} in the second: they "
            "cannot be compared",
            where="--distance",
            remedy="Use --distance hamming, or design both in one unit",
        )
    versions = leakage.versions(a, b)
    if not same:
        # two versions with some secrets in common: what their reports reveal about these
        pair = leaks.measured_versions(other, versions, theirs, problem)
        values: dict[str, Any] = {"distance": theirs[0], "together": pair}
        return Answer(values, _together("two versions: a report of each", pair))
    name, per = mine[0], units[0]
    unit = problem.space.unit_of(name)
    in_unit = f" in {unit}" if unit else ""
    sides = []
    for m, own, (_, distance) in ((a, problem, mine), (b, other, theirs)):
        expected = measures.expected_loss(m, own.prior, own.loss)
        # both under the first one's prior: otherwise leakage could not be compared
        error = measures.distortion(m, problem.prior, distance)
        found: leaks.Found = {
            "expected_loss": ("expected loss, its own", expected),
            "worst_loss": ("worst-case loss, its own", measures.worst_loss(m, own.loss)),
            "metric_epsilon": (f"ε of metric privacy per {per}", measures.epsilon(m, distance)),
            "epsilon": ("ε of differential privacy (all pairs)", measures.epsilon(m)),
            "distortion": (f"error of the optimal attack{in_unit} ({name})", error),
        }
        sides.append(found | leaks.measured_leakage(problem, m))
    forth, back = leaks.direction(a, b), leaks.direction(b, a)
    words = leaks.verdict(forth, back)
    pair = leaks.measured_versions(problem, versions, mine, other)
    if args.picture is not None:
        from optmech.show.plots import save
        from optmech_leakage.picture import compared

        names = [Path(args.first).stem, Path(args.second).stem]
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
        *_together("a report of each", pair),
    ]
    return Answer(values, shown, {"picture": "picture"})


def _together(reports: str, found: dict[str, Any]) -> list[Piece]:
    """What a report of each version reveals."""
    from optmech_leakage.leaks import version_rows

    title = Title(f"{reports} about the same secret, drawn independently")
    return [title, Facts(version_rows(found, ("first", "second")))]
