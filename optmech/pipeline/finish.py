"""From a session that has ended to its design."""

from __future__ import annotations

from optmech.certificate import Bound, values
from optmech.certificate.objective import Figures, figures_of, is_optimal
from optmech.designs.approximation import measure_approximations
from optmech.designs.design import Certificate, Design
from optmech.designs.notes import design_notes
from optmech.pipeline.session import Session
from optmech.problem import Problem
from optmech.statement import Statement


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
        nan = float("nan")
        return Design(
            problem,
            None,
            *Figures(nan, nan, nan, nan, nan),
            verified=False,
            certificate=Certificate((), session.multipliers, Bound(nan, nan)),
            engine=engine,
            engine_reason=engine_reason,
            seconds=session.seconds,
            reason=infeasible,
            notes=problem.notes,
        )
    session.serve_unseen()
    assert session.released is not None
    released = session.released
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
        notes=design_notes(problem, released.exact.matrix),
        approximations=measure_approximations(problem, released.exact.matrix),
        rounding_cost=_rounding_cost(problem.statement, session),
    )


def ending(gap: float, asked: float, message: str) -> str:
    """Why the search ended before the mechanism was optimal, or short of what was asked for."""
    if gap > asked:
        return message
    return "" if is_optimal(gap) else f"stopped at the gap asked for, {asked:g}"


def _rounding_cost(statement: Statement, session: Session) -> float:
    """What release cost relative to the repaired matrix before it was rounded."""
    assert session.released is not None
    exact = float(values.objective(statement, session.released.exact))
    change = exact - session.value
    return change / abs(session.value) if session.value else change
