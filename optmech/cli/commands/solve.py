"""``optmech solve``: from a problem to a verified mechanism."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from optmech.cli.inputs import SOLVING, option, require_limits
from optmech.cli.output import (
    Answer,
    Facts,
    Piece,
    Title,
    checks,
    claim_outputs,
    note,
    number,
    promises,
    require_page,
    showing,
)
from optmech.errors import InfeasibleError, ProblemError
from optmech.exact.number import from_above

if TYPE_CHECKING:
    from optmech.designs.design import Design
    from optmech.files import ProblemFile
    from optmech.pipeline.profiles import Profile
    from optmech.problem import Problem
    from optmech.show.figures import Measured

SUMMARY = "solve a problem and verify the mechanism found"
EXAMPLE = "optmech solve montreal-small -o design.json --report report.html"
_LONG = 2.0
"""Seconds after which it is worth saying what would make it faster."""
_ON_MESH = 1e-3
"""A gap on a mesh beyond which further digits are useless: the mesh's own is larger."""
_INSTANT = 0.01
"""Seconds of a time that is over."""
_UNMEASURED = (
    "the time did not suffice to measure what was promised, nor the best attack: optmech show and "
    "optmech attack do so"
)
_CLOSER = (
    "optmech solve --bound proves a closer lower bound, by as many cells as help: it takes longer "
    "than the rest"
)


ARGUMENTS = {
    "problem FILE|NAME": "a problem file, or a gallery name",
    **SOLVING,
    "--device NAME": "compute on cuda, cuda:1, cupy, cpu, ... (extra gpu; default: compiled code "
    "here)",
    "--resolution CELLS:int": (
        "for problems too large to solve: a bound from so many cells, a mechanism from a mesh "
        "or landmarks (0: the whole program; default: before it where that takes long, instead of "
        "it where that does not fit)"
    ),
    "--bound": "at every point of a region: the closest lower bound for every mechanism, which "
    "takes longer than the mechanism itself",
    "-o --output OUT": "write the design to this file (-: standard output)",
    "--picture PNG": "draw the mechanism to this file",
    "--report HTML": option(
        "write the page of optmech report too; a design that was written is read and checked "
        "again for it",
        dest="page",
    ),
    "--backdrop GEOJSON": "lines behind the page's maps, as for optmech report",
}


def run(args: Namespace) -> Answer:
    """Solve, report, save; 0 when verified, 1 when not, 3 when infeasible."""
    from optmech.pipeline.solve import solve

    file, profile = asked(args)
    _check_outputs(args, file)
    if args.bound:
        if file.problem.mesh is None:
            raise ProblemError(
                "is of designs that are private at every point: of others the bound is always made",
                where="--bound",
                remedy="Leave it out",
            )
        profile = profile.at_resolution(0)
    if not args.quiet:
        _tell_before(file.problem)
    with showing(args.gap or profile.gap, args.quiet) as progress:
        design = solve(
            file.problem,
            profile=profile,
            gap=args.gap,
            time_limit=search_seconds(args, file.problem),
            progress=progress,
            device=args.device,
            resolution=args.resolution,
        )
    delivery = Delivery(design, args)
    with delivery.attempting("page"):
        if args.page:
            _write_page(design, args)
    with delivery.attempting("picture"):
        if args.picture and delivery.found:
            from optmech.show.plots import mechanism_picture

            mechanism_picture(design, args.picture)
    if not delivery.found:
        args.picture = None
    files = {"output": "design", "picture": "picture", "page": "report"}
    return delivery.answer(file, profile.name, files)


def _tell_before(problem: Problem) -> None:
    """What there is at once, and what a search may buy."""
    from optmech.designs.promise import promise_of
    from optmech.designs.sentences import laplace_of
    from optmech.show.words import loss_unit

    if (found := laplace_of(problem, promise_of(problem, None))) is not None:
        note(
            f"planar Laplace with the same promise, which needs no search, errs by {found:.4g}"
            f"{loss_unit(problem)}: how much less a design for this prior does follows"
        )


def asked(args: Namespace) -> tuple[ProblemFile, Profile]:
    """The problem and the profile; says what can hardly be meant, before a search that would answer
    it all the same."""
    from optmech.files import read_problem
    from optmech.pipeline.profiles import load_profile

    require_limits(args)
    file = read_problem(args.problem)
    for line in file.problem.doubts:
        note(f"warning: {line}")
    return file, load_profile(args.profile or file.profile or "auto")


def search_seconds(args: Namespace, problem: Problem) -> float | None:
    """Seconds for the search, of those that the command has; the rest is for writing what was
    asked for. Raises NoMechanismError where there is no time for that."""
    left = _time_left(args)
    if left is None:
        return None
    from optmech.pipeline.search import require_time
    from optmech.pipeline.sizes import measuring_seconds, writing_seconds

    needed = writing_seconds(problem.statement) if args.output else 0.0
    if getattr(args, "page", None):
        # what was written is read and decided again, and measured
        needed = 2 * needed + 2 * measuring_seconds(problem.statement)
    require_time(left, needed, "to write what is found", "--time-limit")
    return max(left - needed, _INSTANT)


def _time_left(args: Namespace) -> float | None:
    """Seconds of the time of the command that are left; None without a limit."""
    if args.time_limit is None:
        return None
    until: float = args.begun + args.time_limit
    return max(0.0, until - time.monotonic())


class Delivery:
    """A design that was found: saved first, and shown whatever fails from then on."""

    def __init__(self, design: Design, args: Namespace) -> None:
        self.design, self.args = design, args
        self.found = design.matrix is not None
        self.failures: list[Exception] = []
        if args.output:
            design.save(args.output)

    @contextmanager
    def attempting(self, option: str = "") -> Iterator[None]:
        """What fails inside ends nothing else; the file of an ``option`` is then none."""
        try:
            yield
        except Exception as error:
            self.failures.append(error)
            if option:
                setattr(self.args, option, None)

    def answer(
        self, file: ProblemFile, profile: str, files: Mapping[str, str], remedy: str = ""
    ) -> Answer:
        """What was asked for, what came out, what was checked."""
        from optmech.pipeline.session import told
        from optmech.show.figures import measure_constraints

        design, measured, attack = self.design, list[Any](), None
        measuring = self.in_time()
        with self.attempting():
            measured = measure_constraints(design.problem, design.mechanism) if measuring else []
        with self.attempting():
            attack = attack_on(design) if measuring else None
        values = {
            **design.summary(),
            **({"points": design.promise.plain()} if self.found else {}),
            "problem": file.title,
            "file": str(file.path),
            "profile": profile,
            "privacy": [row.plain() for row in measured],
            "attack": attack,
            "checks": list(map(asdict, design.certificate.checks)),
        }
        if self.failures:
            values["failed"] = [told(failure) for failure in self.failures]
        error = next(iter(self.failures), None)
        if design.status == "infeasible":
            where = str(self.args.problem)
            error = InfeasibleError(f"infeasible: {design.reason}", where=where, remedy=remedy)
        shown = _shown(design, file.title, profile, attack, measured)
        status = 0 if design.verified else 1
        coarse = getattr(self.args, "bound", True) is False and _coarse(design)
        notes = [
            *_notes(design),
            *([_CLOSER] if coarse else []),
            *([_UNMEASURED] if self.found and not measuring else []),
        ]
        return Answer(values, shown, files, notes, status=status, error=error)

    def in_time(self) -> bool:
        """Whether something was found, and the time suffices to measure it."""
        left = _time_left(self.args)
        if left is None or not self.found:
            return self.found
        from optmech.pipeline.sizes import measuring_seconds

        return measuring_seconds(self.design.problem.statement) <= max(left, _INSTANT)


def _coarse(design: Design) -> bool:
    """Whether the bound of every mechanism is by fewer cells than there are places."""
    from optmech.designs.facts import facts_of

    cells = facts_of(design.problem, design).cells if design.mesh is not None else None
    return cells is not None and cells < len(design.problem.secrets)


def attack_on(design: Design) -> dict[str, Any]:
    """What the optimal attack and the best guess are left with."""
    from optmech.analysis import attacks, measures
    from optmech.problem.attack import choose_distance
    from optmech.show.figures import blind_error

    problem, mechanism = design.problem, design.mechanism
    name, distance = choose_distance(problem)
    return {
        "distance": name,
        "error": attacks.optimal_attack(mechanism, problem.prior, distance).error,
        "blind_error": blind_error(problem, distance),
        "bayes_vulnerability": measures.bayes_vulnerability(mechanism, problem.prior),
    }


def _write_page(design: Design, args: Namespace) -> None:
    """The page, of what the file says where there is one: reading it decides every claim again."""
    from optmech.designs.design import Design
    from optmech.show.reports import report

    again = args.output is not None and os.path.isfile(args.output)
    report(Design.load(args.output) if again else design, args.page, backdrop=args.backdrop)


def _check_outputs(args: Namespace, file: ProblemFile) -> None:
    from optmech.reading.errors import by_ending
    from optmech.show.backdrop import require_backdrop
    from optmech.spaces.layout import layout

    claim_outputs(args, (*file.inputs, args.profile, args.backdrop))
    if args.backdrop is not None:
        # a backdrop that no page would show is refused before the time to solve is spent
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
    if args.output is not None and (other := by_ending(args.output)) is not None:
        raise ProblemError(
            f"{args.output}: is the name of {other[0]}, and a design is JSON",
            where="--output",
            remedy="Use a name that ends in .json",
        )
    if args.page is not None:
        require_page(args.page, "--report")


def _notes(design: Design) -> list[str]:
    from optmech.base.native import has_kernels, words
    from optmech.designs.notes import about_bounds, threshold_notes

    lines = [*design.notes, *about_bounds(design), *threshold_notes(design)]
    if design.seconds > _LONG and design.engine == "structured" and not has_kernels():
        lines.append(words())
    return lines


def _shown(
    design: Design,
    title: str,
    profile: str,
    attack: dict[str, Any] | None,
    measured: list[Measured],
) -> Iterator[Piece]:
    from optmech.designs.sentences import (
        figure_words,
        figures,
        from_best,
        nearness,
        planar_laplace,
    )
    from optmech.show import words

    rows: dict[str, str | None] = {
        "status": design.status + (f" ({design.reason})" if design.reason else ""),
    }
    if design.mesh is not None and design.gap <= _ON_MESH:
        rows["status"] = (
            f"optimal on this mesh (gap {from_above(design.gap, 2)}){from_best(design)}"
        )
    if design.matrix is not None:
        rows[""] = nearness(design) if design.status == "feasible" or design.mesh else None
        rows |= {own.name: figure_words(own) for own in figures(design)}
        rows["gap"] = from_above(design.gap, 2)
        if design.mesh is not None:
            rows["gap on this mesh"] = rows.pop("gap")
            rows["gap to the lower bound"] = (
                f"{from_above(design.total_gap, 2)} (less on a finer mesh)"
            )
        rows["verified"] = "yes" if design.verified else "NO"
    if (other := planar_laplace(design)) is not None:
        rows["planar Laplace"] = (
            f"{other:.4g}{words.loss_unit(design.problem)}, with the same promise"
        )
    if attack is not None:
        unit = words.unit_of(design.problem, attack["distance"])
        rows["optimal attack"] = (
            f"error {number(attack['error'])}{unit} ({attack['distance']}), "
            f"{number(attack['blind_error'])}{unit} without seeing anything; "
            f"best guess right with {attack['bayes_vulnerability']:.1%}"
        )
    rows["engine"] = f"{design.engine} ({design.engine_reason}); profile {profile}"
    rows["time"] = f"{design.seconds:.2f} s"
    yield Title(title)
    yield Facts(words.describe(design.problem))
    if design.matrix is not None:
        yield Facts(design.promise.facts)
    yield Facts(rows)
    yield from promises("measured from the matrix", measured)
    if design.certificate.checks:
        yield checks(design.certificate.checks)
