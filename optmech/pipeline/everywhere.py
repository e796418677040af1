"""Solving for privacy at every point: the program of a mesh, and a bound for every mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optmech.base import memory
from optmech.base.interrupts import noticed
from optmech.certificate import Multipliers, check_exact, lower_bound
from optmech.certificate.bound import closed_form_reason, multiplier_reason
from optmech.certificate.families import MeshMultipliers
from optmech.certificate.objective import claimable, figures_of
from optmech.designs.design import Certificate, Design, OuterProof, mechanism_of
from optmech.designs.notes import design_notes
from optmech.designs.outer import FEW, counts_of, has_outer, outer_problem
from optmech.engines import cones
from optmech.lp.gradients import row_costs
from optmech.pipeline.beside import Found, Infeasible, solve_beside, with_vectors
from optmech.pipeline.beyond import attempted
from optmech.pipeline.by_cells import Bounded, Clock, bound_by_cells
from optmech.pipeline.finish import ending, infeasible_design
from optmech.pipeline.profiles import Profile
from optmech.pipeline.search import solve
from optmech.pipeline.session import Progress
from optmech.problem import Problem
from optmech.problem.regions import gradient_in
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

    def stop(point: cones.ConePoint) -> bool:
        clock.report(
            f"step {point.iterations}: loss {point.value:.6g}, bound {point.bound:.6g}, "
            f"gap {point.gap:.1e} on the mesh"
        )
        return clock.stops(_MESH_TIME)

    reason = closed_form_reason(statement)
    if reason:
        why = "no search was needed"
        return infeasible_design(problem, Multipliers(), reason, "closed form", why, clock.seconds)
    try:
        found, notes = _on_mesh(problem, cone_program, profile, stop)
    except Infeasible as proof:
        reason = multiplier_reason(statement, proof.multipliers)
        return infeasible_design(
            problem, proof.multipliers, reason, "cones", _why(profile), clock.seconds
        )
    released, multipliers = found.released, found.multipliers
    checks = check_exact(statement, released)
    bound, unproved = attempted(
        lambda: lower_bound(statement, multipliers), "the bound on this mesh"
    )
    if bound is None:
        multipliers = Multipliers()
        bound = lower_bound(statement, multipliers)
    figures = figures_of(statement, released, bound, multipliers)
    bounded: Bounded | None = None
    failed: tuple[str, ...] = ()
    if figures.loss > 0:
        what = "the lower bound for every mechanism"
        bounded, failed = attempted(lambda: _outer(problem, profile, clock), what)
    outer, lower, said = bounded or (None, 0.0, ())
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
        notes=(
            *design_notes(problem, mechanism_of(problem, released).matrix),
            *notes,
            *unproved,
            *said,
            *failed,
        ),
    )


def _on_mesh(
    problem: Problem,
    cone_program: cones.ConeProgram,
    profile: Profile,
    stop: Callable[[cones.ConePoint], bool],
) -> tuple[Found, tuple[str, ...]]:
    """The best matrix of the mesh that was found, released, what bounds the others, and notes."""
    statement, gap, threads = problem.statement, profile.gap * _ROOM, profile.threads
    promise = gradient_in(statement)
    mesh = promise.mesh
    costs = row_costs(mesh, promise.places, statement.prior, statement.loss)
    if len(statement.families) > 1:
        return solve_beside(statement, cone_program, costs, gap, stop, threads), ()
    # a report that is always made is private everywhere, and no loss of 0 is private otherwise
    cheapest = int(costs.sum(axis=0).argmin())
    matrix, found = np.zeros_like(costs), None
    notes: tuple[str, ...] = ()
    matrix[:, cheapest] = 1.0
    if costs[:, cheapest].any():
        found, notes = attempted(
            lambda: cones.solve(cone_program, costs, gap, stop, threads), "the search"
        )
    multipliers = Multipliers()
    if found is not None:
        vectors = MeshMultipliers.rounded(mesh, found.multipliers)
        multipliers = with_vectors(statement, multipliers, vectors)
        if found.value < costs[:, cheapest].sum():
            matrix = found.matrix
    released, _ = released_inside(mesh, promise.epsilon, matrix, promise.index)
    return Found(released, multipliers), notes


def _outer(problem: Problem, profile: Profile, clock: Clock) -> Bounded:
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
    # of many places a closer bound takes longer than it is worth
    asked = min(profile.gap, _OUTER_GAP if len(problem.secrets) <= FEW else _BESIDE_GAP)
    found = solve(outer, "auto", gap=asked, time_limit=None if left == math.inf else left)
    proof = OuterProof(None, outer.statement, found.certificate.multipliers)
    return proof, claimable(found.bound), ()


def _why(profile: Profile) -> str:
    why = "the engine for privacy at every point"
    if profile.engine != "auto":
        why += f"; {profile.engine}, asked for by profile {profile.name}, has no such program"
    return why
