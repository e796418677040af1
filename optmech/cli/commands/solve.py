"""``optmech solve``: from a problem to a verified mechanism."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from optmech.cli import output
from optmech.cli.inputs import require_limits
from optmech.errors import InfeasibleError, OptmechError, ProblemError

if TYPE_CHECKING:
    from optmech.designs.design import Design
    from optmech.files import ProblemFile
    from optmech.show.figures import Measured

SUMMARY = "solve a problem and verify the mechanism found"
EXAMPLE = "optmech solve montreal-small -o design.json --report report.html"
_PAGE = "report"
_LONG = 20.0
"""Seconds after which it is worth saying what would make it faster."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problem", metavar="FILE|NAME", help="a problem file, or a gallery name")
    parser.add_argument(
        "--profile",
        metavar="NAME|FILE",
        help="solver profile (default: the one that the file recommends, else auto)",
    )
    parser.add_argument("--gap", type=float, metavar="G", help="relative gap to certify")
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="seconds after which the best verified result so far is returned",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="compute on cuda, cuda:1, cupy, cpu, ... (extra gpu; default: compiled code here)",
    )
    parser.add_argument(
        "--resolution",
        type=int,
        metavar="CELLS",
        help="for problems too large to solve: a bound from so many cells, a mechanism from a mesh "
        "or landmarks (0: the whole program; default: before it where that takes long, instead of "
        "it where that does not fit)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="write the design to this file (-: standard output)",
    )
    parser.add_argument("--picture", metavar="PNG", help="draw the mechanism to this file")
    parser.add_argument(
        "--report",
        metavar="HTML",
        dest="page",
        help="write the page of optmech report too; a design that was written is read and checked "
        "again for it",
    )
    parser.add_argument(
        "--backdrop", metavar="GEOJSON", help="lines behind the page's maps, as for optmech report"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")


def run(args: argparse.Namespace) -> int:
    """Solve, report, save; 0 when verified, 1 when not, 3 when infeasible."""
    from optmech.cli.progress import showing
    from optmech.files import read_problem
    from optmech.pipeline.profiles import load_profile
    from optmech.pipeline.solve import solve
    from optmech.show.figures import measure_constraints

    require_limits(args)
    file = read_problem(args.problem)
    output.doubts(file.problem)
    profile = load_profile(args.profile or file.profile or "auto")
    _check_outputs(args, file)
    with showing(args.gap or profile.gap, args.quiet) as progress:
        design = solve(
            file.problem,
            profile=profile,
            gap=args.gap,
            time_limit=args.time_limit,
            progress=progress,
            device=args.device,
            resolution=args.resolution,
        )
    if args.output:
        design.save(args.output)
    # whatever fails from here on, the design that was found is shown first
    failures: list[Exception] = []
    found = design.matrix is not None
    with attempting(failures):
        if args.page:
            _write_page(design, args)
    args.page = None if failures else args.page
    before = len(failures)
    with attempting(failures):
        if args.picture and found:
            from optmech.show.plots import mechanism_picture

            mechanism_picture(design, args.picture)
    args.picture = args.picture if found and len(failures) == before else None
    measured: list[Measured] = []
    attack: dict[str, Any] | None = None
    with attempting(failures):
        measured = measure_constraints(design.problem, design.mechanism) if found else []
    with attempting(failures):
        attack = attack_on(design) if found else None
    if args.json:
        checks = [
            {"name": c.name, "constraint": c.constraint, "passed": c.passed, "detail": c.detail}
            for c in design.certificate.checks
        ]
        output.print_json(
            {
                **design.summary(),
                "problem": file.title,
                "file": str(file.path),
                "profile": profile.name,
                "privacy": [row.plain() for row in measured],
                "attack": attack,
                "checks": checks,
                "output": args.output,
                "picture": args.picture,
                "report": args.page,
                **failed(failures),
            }
        )
        if design.status == "infeasible":
            return InfeasibleError.exit_status
    else:
        show_design(design, file.title, profile.name, attack, measured)
        output.written("design", args.output)
        output.written("picture", args.picture)
        output.written(_PAGE, args.page)
        if design.status == "infeasible":
            raise InfeasibleError(f"infeasible: {design.reason}", where=str(args.problem))
    return ended(design.verified, failures, args)


@contextmanager
def attempting(failures: list[Exception]) -> Iterator[None]:
    """What fails inside joins ``failures``, and ends nothing else."""
    try:
        yield
    except Exception as error:
        failures.append(error)


def failed(failures: list[Exception]) -> dict[str, list[str]]:
    """For JSON: what failed beside the design, where something did."""
    from optmech.pipeline.beyond import told

    return {"failed": [told(failure) for failure in failures]} if failures else {}


def ended(verified: bool, failures: list[Exception], args: argparse.Namespace) -> int:
    """The status of a command that has shown a design; raises the first of ``failures``, unless
    JSON said it."""
    if failures and not (args.json and isinstance(failures[0], OptmechError)):
        raise failures[0]
    if failures:
        return getattr(failures[0], "exit_status", 1)
    return 0 if verified else 1


def attack_on(design: Design) -> dict[str, Any]:
    """What the optimal attack and the best guess are left with."""
    from optmech.analysis import attacks, measures
    from optmech.problem.attacked import choose_distance
    from optmech.show.figures import blind_error

    problem, mechanism = design.problem, design.mechanism
    name, distance = choose_distance(problem)
    return {
        "distance": name,
        "error": attacks.optimal(mechanism, problem.prior, distance).error,
        "blind_error": blind_error(problem, distance),
        "bayes_vulnerability": measures.bayes_vulnerability(mechanism, problem.prior),
    }


def _write_page(design: Design, args: argparse.Namespace) -> None:
    """The page, of what the file says where there is one: reading it decides every claim again."""
    from optmech.designs.design import Design
    from optmech.show.reports import report

    again = args.output is not None and os.path.isfile(args.output)
    report(Design.load(args.output) if again else design, args.page, backdrop=args.backdrop)


def _check_outputs(args: argparse.Namespace, file: ProblemFile) -> None:
    from optmech.reading.recognised import by_ending

    output.claim_outputs(args, (*file.inputs, args.profile, args.backdrop))
    if args.backdrop is not None:
        _require_shown(args, file)
    other = None if args.output is None else by_ending(args.output)
    if other is not None:
        raise ProblemError(
            f"{args.output}: is the name of {other[0]}, and a design is JSON",
            where="--output",
            remedy="Use a name that ends in .json",
        )
    if args.page is not None:
        output.require_page(args.page, "--report")


def _require_shown(args: argparse.Namespace, file: ProblemFile) -> None:
    """Refuse a backdrop that no page would show, before the time to solve is spent."""
    from optmech.show.backdrop import require_backdrop
    from optmech.spaces.layout import layout

    if args.page is None:
        raise ProblemError(
            "lines are drawn behind the maps of a page",
            where="--backdrop",
            remedy="Name the page with --report, or leave it out",
        )
    require_backdrop(args.backdrop)
    drawn = [layout(domain) for domain in (file.problem.secrets, file.problem.observables)]
    if not any(where is not None and where.degrees for where in drawn):
        raise ProblemError(
            "the places of this problem have no longitudes and latitudes",
            where="--backdrop",
            remedy="Leave it out, or use points in degrees, or a grid over bounds in degrees",
        )


def show_design(
    design: Design,
    title: str,
    profile: str,
    attack: dict[str, Any] | None,
    measured: list[Measured],
) -> None:
    """Print a design: what was asked for, what came out, what was checked."""
    from optmech.designs.notes import about_bounds
    from optmech.show import words
    from optmech.show.words import threshold_notes

    output.title(title)
    output.facts(words.describe(design.problem))
    output.blank()
    output.facts(_result(design, profile, attack))
    output.promises("measured from the matrix", measured)
    if design.certificate.checks:
        output.blank()
        output.checks(design.certificate.checks)
    for line in (*design.notes, *about_bounds(design), *threshold_notes(design)):
        output.note(f"note: {line}")
    if design.seconds > _LONG and design.engine == "structured" and find_spec("numba") is None:
        output.note("note: NumPy did the work; compiled, with numba, it takes half the time")


def _result(design: Design, profile: str, attack: dict[str, Any] | None) -> list[tuple[str, str]]:
    from optmech.cli.output import number
    from optmech.show.words import nearness, unit_of

    best = "(no mechanism can do better)"
    rows = [("status", design.status + (f" ({design.reason})" if design.reason else ""))]
    if design.status == "feasible":
        rows.append(("", nearness(design)))
    if design.matrix is not None:
        rows.append(("loss", number(design.loss)))
        if design.mesh is not None:
            rows.append(("gap on this mesh", f"{design.gap:.2g}"))
        rows.append(("lower bound", f"{number(design.lower_bound)} {best}"))
        if design.problem.statement.objective == "maximize_distortion":
            rows += [
                ("distortion", number(design.objective)),
                ("upper bound", f"{number(design.bound)} {best}"),
            ]
        if design.problem.statement.objective == "minimize_leakage":
            rows += [
                ("leakage", number(design.objective)),
                ("least leakage", f"{number(design.bound)} {best}"),
            ]
        whole = f"{design.total_gap:.2g} (less on a finer mesh)"
        rows += [
            ("gap", f"{design.gap:.2g}") if design.mesh is None else ("gap to it", whole),
            ("verified", "yes" if design.verified else "NO"),
        ]
    if attack is not None:
        unit = unit_of(design.problem, attack["distance"])
        rows += [
            (
                "optimal attack",
                f"error {number(attack['error'])}{unit} ({attack['distance']}), "
                f"{number(attack['blind_error'])} without seeing anything; "
                f"best guess right with {attack['bayes_vulnerability']:.1%}",
            ),
        ]
    rows.append(("engine", f"{design.engine} ({design.engine_reason}); profile {profile}"))
    rows.append(("time", f"{design.seconds:.2f} s"))
    return rows
