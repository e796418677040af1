"""From a session that has ended to its design."""

from __future__ import annotations

from optmech.base.machine import has_numba
from optmech.certificate import Bound, Multipliers, lower_bound, values
from optmech.certificate.bound import pairs_of
from optmech.certificate.families.ratio import everywhere, shared_out
from optmech.certificate.objective import Figures, figures_of, is_optimal, relative_gap
from optmech.certificate.statement import Statement
from optmech.designs.approximation import measure_approximations
from optmech.designs.design import Certificate, Design
from optmech.designs.notes import design_notes
from optmech.pipeline.beyond import attempted
from optmech.pipeline.session import Session
from optmech.problem import Problem

_MANY = 2
"""Multipliers of ratios for every entry of the matrix; without cycles there is at most one."""
_WORTH = 100_000
"""Multipliers up to which loading compiled code takes longer than writing them."""


def make_design(
    problem: Problem,
    session: Session,
    engine: str,
    engine_reason: str,
    infeasible: str = "",
    message: str = "",
) -> Design:
    """The design that a session ends with."""
    if infeasible:
        return infeasible_design(
            problem, session.multipliers, infeasible, engine, engine_reason, session.seconds
        )
    unseen = attempted(session.serve_unseen, "better rows for secrets without prior weight")
    assert session.released is not None
    released = session.released
    thin = attempted(lambda: _thin(session), "leaving out multipliers that prove nothing")
    approximations, unmeasured = attempted(
        lambda: measure_approximations(problem, released.exact.matrix),
        "measuring what thresholds leave out",
    )
    figures = figures_of(problem.statement, released.exact, session.bound, session.multipliers)
    return Design(
        problem,
        released.exact,
        *figures,
        verified=True,
        certificate=Certificate(released.checks, session.multipliers, session.bound),
        engine=engine,
        engine_reason=engine_reason,
        seconds=session.seconds,
        reason=ending(figures.gap, session.gap_asked, message),
        notes=(*design_notes(problem, released.exact.matrix), *unseen[1], *thin[1], *unmeasured),
        approximations=approximations or (),
        rounding_cost=_rounding_cost(problem.statement, session),
    )


def infeasible_design(
    problem: Problem,
    multipliers: Multipliers,
    reason: str,
    engine: str,
    engine_reason: str,
    seconds: float,
) -> Design:
    """The result where ``reason`` proves that nothing is feasible."""
    nan = float("nan")
    return Design(
        problem,
        None,
        *Figures(nan, nan, nan, nan, nan),
        verified=False,
        certificate=Certificate((), multipliers, Bound(nan, nan)),
        engine=engine,
        engine_reason=engine_reason,
        seconds=seconds,
        reason=reason,
        notes=problem.notes,
    )


def ending(gap: float, asked: float, message: str) -> str:
    """Why the search ended before the mechanism was optimal, or short of what was asked for."""
    if gap > asked:
        return message
    return "" if is_optimal(gap) else f"stopped at the gap asked for, {asked:g}"


def _thin(session: Session) -> None:
    """Leave out multipliers that prove nothing, where there are so many that a file shows it."""
    statement = session.statement
    pairs = pairs_of(statement, session.multipliers)
    least = max(_WORTH, _MANY * statement.loss.size)
    if pairs is None or len(pairs.value) <= least or not has_numba():
        return
    # compiled, and needed for large problems only
    from optmech.reductions.thinning import thinned

    fewer = shared_out(statement, thinned(pairs, statement.log_ratio))
    joint = everywhere(statement)
    given = [part for _, part in session.multipliers.of(statement)]
    families = tuple(fewer.get(k) if k in joint else part for k, part in enumerate(given))
    multipliers = Multipliers(families, session.multipliers.objective)
    bound = lower_bound(statement, multipliers)
    allowed = max(session.gap_asked, session.gap)
    # rounding may take from the bound what nobody asked for, and no more
    if relative_gap(session.value, bound.value) <= allowed:
        session.bound, session.multipliers = bound, multipliers


def _rounding_cost(statement: Statement, session: Session) -> float:
    """What release cost relative to the repaired matrix before it was rounded."""
    assert session.released is not None
    exact = float(values.objective(statement, session.released.exact))
    change = exact - session.value
    return change / abs(session.value) if session.value else change
