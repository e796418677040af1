"""``optmech solve``: from a problem to a verified mechanism."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from optmech.errors import InfeasibleError, ProblemError

if TYPE_CHECKING:
    from optmech.designs.design import Design
    from optmech.designs.everywhere import EverywhereDesign
    from optmech.files import ProblemFile
    from optmech.show.measured import Measured

SUMMARY = "solve a problem and verify the mechanism found"
EXAMPLE = "optmech solve montreal-small -o design.json --picture design.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
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
        "-o",
        "--output",
        metavar="OUT",
        help="write the design to this file (-: standard output)",
    )
    parser.add_argument("--picture", metavar="PNG", help="draw the mechanism to this file")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")


def run(args: argparse.Namespace) -> int:
    """Solve, report, save; 0 when verified, 1 when not, 3 when infeasible."""
    from optmech.cli.output import print_json, written
    from optmech.cli.progress import showing
    from optmech.designs.everywhere import EverywhereDesign
    from optmech.files import read_problem
    from optmech.pipeline.profiles import load_profile
    from optmech.pipeline.solve import solve

    file = read_problem(args.problem)
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
        )
    if args.output:
        design.save(args.output)
    given: object = design
    if isinstance(given, EverywhereDesign):
        return _everywhere(given, file, args)
    if args.picture and design.matrix is not None:
        from optmech.show.plots import mechanism_picture

        mechanism_picture(design, args.picture)
    report = _Report(file, design, profile.name)
    if args.json:
        print_json(report.plain() | {"output": args.output, "picture": args.picture})
    else:
        report.show()
        for what, path in (("design", args.output), ("picture", args.picture)):
            if path and (what == "design" or design.matrix is not None):
                written(what, path)
    if design.status == "infeasible":
        if not args.json:
            raise InfeasibleError(f"infeasible: {design.reason}", where=str(args.problem))
        return InfeasibleError.exit_status
    return 0 if design.verified else 1


def _everywhere(design: EverywhereDesign, file: ProblemFile, args: argparse.Namespace) -> int:
    """Report a design that is private at every point."""
    from optmech.cli import everywhere
    from optmech.cli.output import print_json, written

    if args.json:
        print_json(everywhere.plain(design, file) | {"output": args.output})
    else:
        everywhere.show(design, file)
        if args.output:
            written("design", args.output)
    return 0 if design.verified else 1


def _check_outputs(args: argparse.Namespace, file: ProblemFile) -> None:
    from optmech.cli.output import claim_outputs
    from optmech.problem.everywhere import gradient_of

    claim_outputs(
        {"--output": args.output, "--picture": args.picture},
        (*file.inputs, args.profile),
        as_json=args.json,
    )
    if args.picture is not None:
        if gradient_of(file.problem.statement.families) is not None:
            raise ProblemError(
                "there is no picture of a mechanism for every point",
                where="--picture",
                remedy="Leave it out, and draw design.mechanism.at(points)",
            )
        from optmech.show.plots.drawing import require_matplotlib

        require_matplotlib(args.picture)


class _Report:
    """A design with everything that is measured of it."""

    def __init__(self, file: ProblemFile, design: Design, profile: str) -> None:
        self.file, self.design, self.profile = file, design, profile
        self.measured: list[Measured] = []
        self.attack: dict[str, Any] | None = None
        if design.matrix is not None:
            self._measure()

    def _measure(self) -> None:
        from optmech.analysis import attacks, measures
        from optmech.show.measured import blind_error, choose_distance, measure_constraints

        problem, mechanism = self.design.problem, self.design.mechanism
        self.measured = measure_constraints(problem, mechanism)
        name, distance = choose_distance(problem)
        self.attack = {
            "distance": name,
            "error": attacks.optimal(mechanism, problem.prior, distance).error,
            "blind_error": blind_error(problem, distance),
            "bayes_vulnerability": measures.bayes_vulnerability(mechanism, problem.prior),
        }

    def plain(self) -> dict[str, Any]:
        """For JSON: the design's summary, what was measured, and the checks."""
        checks = [
            {"name": c.name, "constraint": c.constraint, "passed": c.passed, "detail": c.detail}
            for c in self.design.certificate.checks
        ]
        return {
            **self.design.summary(),
            "problem": self.file.title,
            "file": str(self.file.path),
            "profile": self.profile,
            "privacy": [row.plain() for row in self.measured],
            "attack": self.attack,
            "checks": checks,
        }

    def show(self) -> None:
        """For people."""
        from optmech.cli import output
        from optmech.show import words

        design = self.design
        output.title(self.file.title)
        output.facts(words.describe(design.problem))
        output.blank()
        output.facts(self._result())
        if self.measured:
            output.blank()
            output.grid(
                ("measured from the matrix", "promised", "measured"),
                [
                    (
                        f"{row.constraint} {row.kind}, {row.quantity}",
                        f"{row.sense} {output.number(row.promised)}",
                        output.number(row.measured),
                    )
                    for row in self.measured
                ],
                right=(1, 2),
            )
        if design.certificate.checks:
            output.blank()
            output.grid(
                ("check", "inequalities", "passed", "tightest"),
                [
                    (c.name, f"{c.inequalities:,}", "yes" if c.passed else "NO", c.detail)
                    for c in design.certificate.checks
                ],
                right=(1,),
            )
        for line in (*design.notes, *self._warnings()):
            output.note(f"note: {line}")

    def _result(self) -> list[tuple[str, str]]:
        from optmech.cli.output import number
        from optmech.show.nearness import nearness

        design = self.design
        rows = [("status", design.status + (f" ({design.reason})" if design.reason else ""))]
        if design.status == "feasible":
            rows.append(("", nearness(design)))
        if design.matrix is not None and self.attack is not None:
            rows += [
                ("loss", number(design.loss)),
                ("lower bound", f"{number(design.lower_bound)} (no mechanism can do better)"),
            ]
            if design.problem.statement.objective == "maximize_distortion":
                rows += [
                    ("distortion", number(design.objective)),
                    ("upper bound", f"{number(design.bound)} (no mechanism can do better)"),
                ]
            rows += [
                ("gap", f"{design.gap:.2g}"),
                ("verified", "yes" if design.verified else "NO"),
                ("optimal attack", self._attack_words(self.attack)),
            ]
        rows.append(("engine", f"{design.engine} ({design.engine_reason}); profile {self.profile}"))
        rows.append(("time", f"{design.seconds:.2f} s"))
        return rows

    def _attack_words(self, attack: dict[str, Any]) -> str:
        from optmech.cli.output import number
        from optmech.show.words import unit_of

        unit = unit_of(self.design.problem, attack["distance"])
        return (
            f"error {number(attack['error'])}{unit} ({attack['distance']}), "
            f"{number(attack['blind_error'])} without seeing anything; "
            f"best guess right with {attack['bayes_vulnerability']:.1%}"
        )

    def _warnings(self) -> list[str]:
        from optmech.show.reports.sentences import threshold_notes

        return threshold_notes(self.design)
