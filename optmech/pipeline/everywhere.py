"""Solving for privacy at every point: the program of a mesh, and a bound for every mechanism."""

from __future__ import annotations

import math

from optmech.base import memory
from optmech.base.interrupts import noticed
from optmech.certificate import Multipliers, check_exact, lower_bound
from optmech.certificate.families import MeshMultipliers
from optmech.certificate.infeasible import closed_form_reason, multiplier_reason
from optmech.certificate.objective import claimable, figures_of
from optmech.designs.design import Certificate, Design, OuterProof, mechanism_of
from optmech.designs.notes import design_notes
from optmech.designs.outer import FEW, counts_of, has_outer, outer_problem
from optmech.engines import cones
from optmech.errors import SolverError
from optmech.exact.numerators import Numerators
from optmech.lp.gradients import row_costs
from optmech.pipeline.beside import Infeasible, solve_beside, with_vectors
from optmech.pipeline.by_cells import Clock, bound_by_cells
from optmech.pipeline.finish import ending, infeasible_design
from optmech.pipeline.profiles import Profile
from optmech.pipeline.search import solve
from optmech.pipeline.session import Progress
from optmech.problem import Problem
from optmech.problem.regions import gradient_in, over_places
from optmech.repair.gradients import released_inside

_SHORT = "stopped by the time limit, or as far as floating point leads"
_ROOM = 0.5
"""Share of the gap for the search; the rest is for repair and rounding."""
_OUTER_GAP, _BESIDE_GAP = 1e-5, 5e-4
"""Of the problem behind the lower bound, over few places and over more of them: less than the
distance of its optimum to every mechanism."""
_MESH_TIME = 0.7
"""Share of the time for the program of the mesh; the bound for every mechanism has the rest."""


def solve_everywhere(
    problem: Problem, profile: Profile, progress: Progress | None = None
) -> Design:
    """The best mechanism on the mesh that the problem states, with what is proved about it.

    Raises
    ------
    TooLargeError
        On a mesh too large for the memory at hand.
    VerificationError
        Where the triangles are too small for floating point.
    """
    clock = Clock(profile.time_limit, progress)
    with noticed(clock.interrupt):
        return _solved(problem, profile, clock)


def _solved(problem: Problem, profile: Profile, clock: Clock) -> Design:
    gradient = gradient_in(problem.statement)
    mesh, statement = gradient.mesh, problem.statement
    reports = len(problem.observables)
    cone_program = cones.ConeProgram.of(mesh, float(gradient.epsilon))
    memory.require(
        cone_program.memory(reports),
        what=f"a mesh of {mesh.rows:,} control points with {reports:,} observables",
        where="everywhere",
        remedy="Use a wider mesh or fewer observables",
    )
    costs = row_costs(mesh, gradient.places, statement.prior, statement.loss)

    def stop(point: cones.ConePoint) -> bool:
        clock.report(
            f"step {point.iterations}: loss {point.value:.6g}, bound {point.bound:.6g}, "
            f"gap {point.gap:.1e} on the mesh"
        )
        return clock.stops(_MESH_TIME)

    own, places = profile.gap * _ROOM, over_places(problem.statement)
    joint = Multipliers()
    if places.families:
        reason = closed_form_reason(statement)
        if reason:
            return infeasible_design(
                problem, joint, reason, "closed form", "no search was needed", clock.seconds
            )
        try:
            besides = solve_beside(statement, cone_program, costs, own, stop, profile.threads)
        except Infeasible as proof:
            reason = multiplier_reason(statement, proof.multipliers)
            return infeasible_design(
                problem, proof.multipliers, reason, "cones", _why(profile), clock.seconds
            )
        released, multipliers = besides.released, besides.multipliers
    else:
        found = cones.solve(cone_program, costs, own, stop, profile.threads)
        released, _ = released_inside(mesh, gradient.epsilon, found.matrix, gradient.index)
        vectors = MeshMultipliers.rounded(mesh, found.multipliers)
        multipliers = with_vectors(problem.statement, joint, vectors)
    return _design(problem, released, multipliers, profile, clock)


def _design(
    problem: Problem,
    released: Numerators,
    multipliers: Multipliers,
    profile: Profile,
    clock: Clock,
) -> Design:
    """The design with released rows, and a bound for every mechanism beside it."""
    statement = problem.statement
    bound = lower_bound(statement, multipliers)
    figures = figures_of(statement, released, bound, multipliers)
    outer, lower, notes = _outer(problem, profile, clock)
    checks = check_exact(statement, released)
    return Design(
        problem,
        released,
        *figures._replace(lower_bound=lower),
        verified=all(check.passed for check in checks),
        certificate=Certificate(checks, multipliers, bound, outer),
        engine="cones",
        engine_reason=_why(profile),
        seconds=clock.seconds,
        reason=ending(figures.gap, profile.gap, _SHORT),
        notes=(*design_notes(problem, mechanism_of(problem, released).matrix), *notes),
    )


def _outer(
    problem: Problem, profile: Profile, clock: Clock
) -> tuple[OuterProof | None, float, tuple[str, ...]]:
    """The proof of a bound for every mechanism, the bound, and notes on it."""
    gradient = gradient_in(problem.statement)
    if not has_outer(problem, gradient) or clock.interrupted:
        return None, 0.0, ()
    clock.report("a lower bound for every mechanism")
    first, most = counts_of(problem, gradient)
    if most:
        return bound_by_cells(problem, gradient, profile, clock, (first, most))
    outer = outer_problem(problem, gradient, None)
    left = clock.remaining()
    try:
        # of many places a closer bound takes longer than it is worth
        asked = min(profile.gap, _OUTER_GAP if len(problem.secrets) <= FEW else _BESIDE_GAP)
        found = solve(outer, "auto", gap=asked, time_limit=None if left == math.inf else left)
    except SolverError:
        return None, 0.0, ()
    if found.exact is None:
        # the mechanism that was found says otherwise
        return None, 0.0, ()
    proof = OuterProof(None, outer.statement, found.certificate.multipliers)
    return proof, claimable(found.bound), ()


def _why(profile: Profile) -> str:
    why = "the engine for privacy at every point"
    if profile.engine != "auto":
        why += f"; {profile.engine}, asked for by profile {profile.name}, has no such program"
    return why
