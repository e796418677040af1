"""``om.solve``: a design for a problem of any sort."""

from pathlib import Path

from optmech.base.watch import watched
from optmech.designs.design import Design
from optmech.pipeline.plan import Asked, plans
from optmech.pipeline.profiles import Profile, load_profile
from optmech.pipeline.session import Clock, Progress, noting_breakage
from optmech.problem import Problem
from optmech.spaces.arguments import checked_arguments


@checked_arguments
@noting_breakage
def solve(
    problem: Problem,
    profile: str | Path | Profile = "auto",
    *,
    gap: float | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: Design | None = None,
    device: str | None = None,
    resolution: int | None = None,
) -> Design:
    """Find the best mechanism for a problem, and prove how good it is.

    Parameters
    ----------
    problem:
        What is wanted.
    profile:
        How to find it: a name from ``solvers/``, a TOML file, or a ``Profile``.
    gap:
        Relative gap to certify; default the profile's (1e-6).
    time_limit:
        Seconds after which the best verified result so far is returned; default the profile's.
        What setting up and deciding every inequality take comes out of them, as estimated.
    progress:
        Called with short lines of text while solving, such as ``print``. Without one, what takes
        longer than two seconds says on one line how far it is, on a terminal and in notebooks: it
        is gone at the end, and nothing is said in pipes, tests, threads and workers.
        ``lambda line: None`` says nothing anywhere.
    start:
        The design of a neighbouring problem (another ε, d_m, prior or loss over as many secrets
        and observables): a hint. Its matrix is repaired and checked and its multipliers are
        evaluated like any engine's; where that closes the gap, nothing is searched.
    device:
        Where the structured engine computes: ``"cuda"``, ``"cuda:1"`` or ``"cpu"`` through
        PyTorch, ``"cupy"`` or ``"cupy:1"`` through CuPy, ``"numpy"``, or ``""`` for compiled code
        on this machine's processors; default the profile's. With a device ``auto`` takes the
        structured engine wherever it can.
    resolution:
        So many cells of the secrets for a lower bound, and a mesh or four times as many landmarks
        for a mechanism, instead of the whole program (``docs/city.md``): for problems that are too
        large to solve. 0 for the whole program; default the profile's. ``auto`` takes 256 where the
        whole program does not fit into memory or would take too long, and says so; where it is
        long but fits, it goes on to the whole program and keeps what is better.

    Returns
    -------
    Design
        With status "optimal" (certified gap at most 1e-6), "feasible" (stopped early, at the gap
        asked for or before) or "infeasible". Its matrix satisfies every stated inequality,
        checked after repair; its bound was evaluated from multipliers that need not be trusted.
        Ctrl-C ends the search like a time limit. For ``MetricPrivacy(…, everywhere=mesh)`` the
        gap is about the mechanisms on that mesh, and the lower bound holds for every mechanism
        that is private at every point, by as many cells of the places as time and memory allow.

    Raises
    ------
    ProblemError
        On unusable arguments, a device that is not there or whose library is not installed, or
        a problem too large for the memory at hand.
    SolverError
        When the search ended without any verified mechanism and without a proof that none exists,
        or where the time does not suffice to verify one.
    EngineError
        When every engine that could do the work broke off, so that nothing was searched. Where one
        breaks off and another does the work, the first of the design's notes says so.

    Examples
    --------
    >>> cells = om.Grid(rows=2, columns=2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(
    ...     prior=om.Prior.from_counts(cells, [4, 1, 0, 3]),
    ...     loss=km,
    ...     constraints=[om.MetricPrivacy("ln 2", km)],
    ... )
    >>> design = om.solve(problem)
    >>> print(design.status, round(design.loss, 3), design.gap <= 1e-6)
    optimal 0.463 True
    >>> print(round(om.measures.epsilon(design.mechanism, km), 4))  # recomputed: ln 2 per km
    0.6931
    """
    chosen = load_profile(profile).with_limits(gap, time_limit)
    if problem.mesh is None:
        chosen = chosen.at_resolution(resolution)
    clock = Clock(chosen.time_limit)
    with watched(progress, "solving") as told:
        asked = Asked(problem, chosen, clock, told, start, device, resolution)
        # the last one always has an answer
        return next(filter(None, (way.work() for way in plans(asked))))
