"""Solving for privacy at every point: the program of a mesh, and a bound for every mechanism."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats, Ints
from optmech.certificate import Multipliers, check_exact, lower_bound
from optmech.certificate.bound import (
    closed_form_reason,
    infeasibility_margin,
    multiplier_reason,
    support_reason,
)
from optmech.certificate.families import MeshMultipliers, Ratio
from optmech.certificate.objective import claimable, objective_value, trivial_bound
from optmech.designs.design import Design, OuterProof, mechanism_of
from optmech.designs.outer import (
    FEW,
    FEW_BESIDE,
    Coarsening,
    bytes_of,
    cells_of,
    counts_of,
    has_outer,
    is_large,
    middles_of,
    outer_network,
    over_places,
)
from optmech.engines import cones, pairs
from optmech.exact.number import from_below
from optmech.lp.gradients import row_costs
from optmech.pipeline.mesh_search import SLACK, Found, Infeasible, Stop, solve_beside, with_vectors
from optmech.pipeline.networks import MESH_TIME, by_edges
from optmech.pipeline.profiles import Profile
from optmech.pipeline.search import NoMechanismError, over_secrets, solve
from optmech.pipeline.session import (
    CLOSED_FORM,
    NUMERICAL,
    Clock,
    Outer,
    Progress,
    attempted,
    feasible_design,
    infeasible_design,
    searching,
    told,
)
from optmech.problem import Problem
from optmech.problem.ratios import gradient_in
from optmech.repair.gradients import released_inside
from optmech.repair.mixing import always_cheapest
from optmech.repair.release import Released

_ROOM = 0.5
"""Share of the gap for the search; the rest is for repair and rounding."""
_OUTER_GAP, _BESIDE_GAP = 1e-5, 5e-4
"""Of the problem behind the lower bound, over few places and over more of them: less than the
distance of its optimum to every mechanism."""
_GAP = 2e-3
"""Of the program over cells: less than the distance of its optimum to every mechanism."""
_POWER = 1.6
"""Seconds grow with this power of the number of cells; measured 1.4 from 1,050 to 3,000."""
_SHARE = 0.8
"""Of the time that is left, for what is begun in it."""
_WORTH = 1.3
"""Times as many cells as before are worth another program."""
_LATE = "no lower bound for every mechanism was proved in the time there was"
_MEMORY = 0.6
"""Share of the available memory that cells may take."""


def solve_everywhere(problem: Problem, profile: Profile, progress: Progress | None) -> Design:
    """The best mechanism on the mesh that the problem states, with what is proved about it.

    Raises
    ------
    TooLargeError
        On a mesh too large for the memory at hand.
    VerificationError
        Where the triangles are too small for floating point.
    """
    clock = Clock(profile.time_limit, progress)
    with clock.interruptible():
        return _solved(problem, profile, clock)


def solve_network(
    problem: Problem,
    profile: Profile,
    progress: Progress | None,
    start: Design | None,
    device: str | None,
) -> Design:
    """The best mechanism on a line or network, with what is proved about it: a program over its
    vertices, and another for the bound of every mechanism that is private at every point."""
    large = is_large(problem)
    if (
        large
        and start is None
        and device is None
        and (found := by_edges(problem, profile, progress))
    ):
        return found
    outer = None if large else outer_network(problem)
    limit, clock = profile.time_limit, Clock(profile.time_limit)
    own = (
        profile if outer is None or limit is None else profile.with_limits(None, MESH_TIME * limit)
    )
    design = over_secrets(problem, own, progress, start, device)
    if outer is None:
        return design
    left = clock.remaining()
    if design.exact is None:
        refuted, given = _refuted(outer, profile, left), design.certificate.multipliers
        reason = refuted and multiplier_reason(problem.statement, given)
        if not reason:
            return design
        how = design.engine, design.engine_reason, clock.seconds
        return infeasible_design(problem, given, reason, *how, refuted)
    proof, lower, found = None, 0.0, None
    notes: tuple[str, ...] = (_LATE,)
    if left > 0:
        second = profile.with_limits(min(profile.gap, _BESIDE_GAP), None if limit is None else left)
        found, notes = attempted(
            lambda: solve(outer, second, progress=progress, device=device),
            "the lower bound for every mechanism",
        )
    if found is not None and found.exact is not None:
        proof = OuterProof(None, outer.statement, found.certificate.multipliers)
        lower = claimable(found.bound)
    return replace(
        design,
        figures=design.figures._replace(lower_bound=lower),
        certificate=replace(design.certificate, outer=proof),
        seconds=clock.seconds,
        notes=(*design.notes, *notes),
    )


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

    def stop(point: cones.ConePoint, program: str = "") -> bool:
        least = f"bound on this mesh {from_below(point.bound)}"
        found = f"loss {point.value:.6g}, {least}, gap {point.gap:.1e}"
        if program == SLACK:
            found = f"{point.value:.3g} beyond the other constraints at most"
        reached = np.inf if program == SLACK else point.gap
        clock.report(f"step {point.iterations}{program}: {found}", reached)
        return clock.remaining() <= 0

    reason = closed_form_reason(statement) or support_reason(statement)
    if reason:
        why = "no search was needed"
        return infeasible_design(problem, Multipliers(), reason, CLOSED_FORM, why, clock.seconds)
    clock.share = MESH_TIME
    try:
        (released, multipliers), notes = _on_mesh(problem, cone_program, profile, stop)
    except Infeasible as proof:
        reason = multiplier_reason(statement, proof.multipliers)
        few = has_outer(problem) and len(problem.secrets) <= FEW_BESIDE
        outer_proof = _refuted(over_places(problem), profile, clock.remaining()) if few else None
        return infeasible_design(
            problem, proof.multipliers, reason, "cones", _why(profile), clock.seconds, outer_proof
        )
    clock.share = 1.0
    checks = check_exact(statement, released)
    bound, unproved = attempted(
        lambda: lower_bound(statement, multipliers), "the bound on this mesh"
    )
    if bound is None:
        multipliers = Multipliers()
        bound = lower_bound(statement, multipliers)
    outer: Outer = None, 0.0
    said: tuple[str, ...] = ()
    if objective_value(statement, mechanism_of(problem, released).matrix) > 0:
        what = "the lower bound for every mechanism"
        bounded, said = attempted(lambda: _outer(problem, profile, clock), what)
        outer, said = bounded or (outer, said)
    return feasible_design(
        problem,
        Released(released, checks),
        bound,
        multipliers,
        clock,
        gap=profile.gap,
        outer=outer,
        notes=(*notes, *unproved, *said),
        engine="cones",
        engine_reason=_why(profile),
    )


def _on_mesh(
    problem: Problem,
    cone_program: cones.ConeProgram,
    profile: Profile,
    stop: Stop,
) -> tuple[Found, tuple[str, ...]]:
    """The best matrix of the mesh that was found, released, what bounds the others, and notes."""
    statement, gap, threads = problem.statement, profile.gap * _ROOM, profile.threads
    promise = gradient_in(statement)
    mesh = promise.mesh
    costs = row_costs(mesh, promise.places, statement.prior, statement.loss)
    if len(statement.families) > 1:
        return solve_beside(statement, cone_program, costs, gap, stop, threads), ()
    # a report that is always made is private everywhere, and no loss of 0 is private otherwise
    cheapest = costs.sum(axis=0).argmin()
    matrix, found = always_cheapest(costs), None
    notes: tuple[str, ...] = ()
    if costs[:, cheapest].any():
        with searching("the engine for privacy at every point"):
            try:
                found = cones.solve(cone_program, costs, gap, stop, threads)
            except NUMERICAL as error:
                notes = (f"the search failed: {told(error)}",)
    multipliers = Multipliers()
    if found is not None:
        vectors = MeshMultipliers.rounded(mesh, found.multipliers)
        multipliers = with_vectors(statement, multipliers, vectors)
        if found.value < costs[:, cheapest].sum():
            matrix = found.matrix
    released, _ = released_inside(mesh, promise.epsilon, matrix, promise.index)
    return (released, multipliers), notes


def _outer(problem: Problem, profile: Profile, clock: Clock) -> Bounded:
    """The proof of a bound for every mechanism, the bound, and notes on it."""
    if not has_outer(problem) or clock.interrupted:
        return (None, 0.0), ()
    clock.report("now a lower bound for every mechanism, on this mesh or not")
    first, most = counts_of(problem)
    if most:
        if profile.resolution:
            first = most = min(profile.resolution, len(problem.secrets))
        return bound_by_cells(problem, profile, clock, first, most)
    outer = over_places(problem)
    left = clock.remaining()
    # of many places a closer bound takes longer than it is worth
    asked = min(profile.gap, _OUTER_GAP if len(problem.secrets) <= FEW else _BESIDE_GAP)
    try:
        found = solve(outer, "auto", gap=asked, time_limit=None if left == math.inf else left)
        multipliers, bound = found.certificate.multipliers, found.bound
    except NoMechanismError as without:
        # multipliers prove their bound without a mechanism beside them
        multipliers = without.multipliers
        bound = lower_bound(outer.statement, multipliers).value
    return (OuterProof(None, outer.statement, multipliers), claimable(bound)), ()


def _refuted(outer: Problem, profile: Profile, left: float) -> OuterProof | None:
    """The proof that no mechanism keeps at the vertices alone what is asked for; None where none
    was found in the seconds that are ``left``."""
    limit = None if left == math.inf else left
    own = profile.with_limits(1.0, limit)
    found, _ = attempted(lambda: solve(outer, own), "a proof for every mechanism")
    if found is None or found.exact is not None:
        return None
    proof = OuterProof(None, outer.statement, found.certificate.multipliers)
    return proof if infeasibility_margin(proof.statement, proof.multipliers) > 0 else None


def _why(profile: Profile) -> str:
    why = "the engine for privacy at every point"
    if profile.engine != "auto":
        why += f"; {profile.engine}, asked for by profile {profile.name}, has no such program"
    return why


Bounded = tuple[Outer, tuple[str, ...]]


class _Stopped(Exception):  # noqa: N818
    """Before there were multipliers."""


def bound_by_cells(
    problem: Problem, profile: Profile, clock: Clock, count: int, wanted: int
) -> Bounded:
    """The best proof that was found, its bound, and notes; by ``count`` cells to begin and by those
    ``wanted`` to end with. A bound that was proved is kept when the time is over or somebody stops
    it."""
    room = _MEMORY * memory.available_bytes() / bytes_of(1, len(problem.observables))
    most = min(wanted, max(count, math.isqrt(int(room))))
    best: Outer = None, 0.0
    made, late = 0, False
    said: tuple[str, ...] = ()
    while not late:
        begun = time.monotonic()
        cells = cells_of(problem, count)
        own = len(np.unique(cells[problem.prior.weights > 0]))
        if own <= made:
            break
        work = partial(_proved, problem, profile, clock, cells)
        found, said = attempted(work, f"the lower bound by {own:,} cells")
        if found is None:
            late = not said
            break
        made = own
        if found[1] > best[1] or best[0] is None:
            best = found
        clock.report(f"bound from {made:,} cells: no mechanism below {from_below(best[1])}")
        if count >= most:
            break
        left = _SHARE * clock.remaining() / (time.monotonic() - begun)
        count = most if left == math.inf else min(most, int(made * left ** (1 / _POWER)))
        late = count < min(_WORTH * made, most)
    if best[0] is None:
        return best, said or (_LATE,)
    by = f"the lower bound is by {made:,} cells, where it may use {wanted:,}"
    if late:
        said = (f"{by}: there was no time for more",)
    elif most < wanted:
        said = (*said, f"{by}: the memory at hand allows no more")
    return best, said


def _proved(problem: Problem, profile: Profile, clock: Clock, cells: Ints) -> Outer | None:
    """The bound of one partition, as good as there is time for; None without any."""
    begun = time.monotonic()
    coarse = Coarsening.of(problem)

    def watched(i: Ints, j: Ints) -> Floats:
        if clock.remaining() <= 0:
            raise _Stopped
        return coarse.limits(i, j)

    try:
        statement = replace(coarse, limits=watched).over(cells).statement
    except _Stopped:
        return None
    ratio = statement.families[0]
    assert isinstance(ratio, Ratio)
    # the numbers are proved again at the end, which takes about as long
    prepared = time.monotonic() - begun
    count = statement.secrets

    def stop(point: cones.ConePoint) -> bool:
        bound = max(point.bound, trivial_bound(statement))
        clock.report(
            f"{count:,} cells, step {point.iterations}: no mechanism below {from_below(bound)}"
        )
        return clock.remaining() <= prepared

    middles = middles_of(problem, cells)
    log_ratio = np.array(ratio.log_ratio)
    found = pairs.solve(log_ratio, middles, statement.cost, _GAP, stop, profile.threads)
    return coarse.proof(cells, Multipliers((found,)))
