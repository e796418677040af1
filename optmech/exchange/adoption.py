"""Mechanisms that other tools made, taken over as designs: checked like our own."""

from __future__ import annotations

from dataclasses import replace

from optmech.certificate import Multipliers, check_exact, lower_bound
from optmech.certificate.check import CheckReport
from optmech.certificate.objective import figures_of
from optmech.certificate.proved import report_on
from optmech.certificate.statement import Statement
from optmech.designs.design import Certificate, Design, unit_after
from optmech.designs.notes import design_notes
from optmech.designs.promise import measure_approximations
from optmech.errors import ProblemError, VerificationError
from optmech.exact.numerators import Numerators
from optmech.problem import Problem
from optmech.repair.release import Released, release
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism


@checked_arguments
def adopt(mechanism: Mechanism, problem: Problem, *, repair: bool = False) -> Design:
    """A design from a mechanism of any origin, if it keeps every constraint of ``problem``.

    The matrix is rounded to whole numbers over a power of two and every inequality decided
    exactly, as for designs that optmech finds. Its bound is what follows without a search: solve
    the problem to learn how far from the optimum the mechanism is.

    Parameters
    ----------
    mechanism:
        Over the secrets and observables of ``problem``, in their order.
    repair:
        Change a matrix that breaks a constraint as little as repair manages, instead of refusing
        it. Matrices of solvers break ratios in their last digits. What is private at every point
        of a region is never changed.

    Raises
    ------
    ProblemError
        When the labels are not those of the problem.
    VerificationError
        When a constraint is broken, or cannot be repaired; the message names the first.

    Examples
    --------
    >>> cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> laplace = om.mechanisms.planar_laplace(cells, 1)
    >>> design = om.exchange.adopt(laplace, problem)
    >>> design.verified, design.loss > om.solve(problem).loss
    (True, True)
    """
    for name in ("secrets", "observables"):
        if getattr(mechanism, name).labels != getattr(problem, name).labels:
            raise ProblemError(
                f"the mechanism's {name} are not those of the problem",
                where=name,
                remedy="Use the same labels in the same order",
            )
    statement = problem.statement
    released = _as_it_is(statement, mechanism)
    repair = repair and statement.spread is None
    broken = [check for check in released.checks if not check.passed]
    if broken and repair and (found := _repaired(statement, mechanism)) is not None:
        released, broken = found, []
    if broken:
        raise VerificationError(
            f"{broken[0].name}: {broken[0].detail}",
            where=problem.title or "mechanism",
            remedy="Solve the problem, or adopt it under the constraints that it keeps"
            if statement.spread is not None
            else "Adopt it with repair, or under the constraints that it keeps",
        )
    return _design(problem, released)


def judge(mechanism: Mechanism, problem: Problem, name: str) -> CheckReport:
    """The verdict on every constraint for a mechanism of any origin, as for a design file.

    The bound is what follows without a search. ``name`` stands for the file.
    """
    released = _as_it_is(problem.statement, mechanism)
    design = _design(problem, released)
    report = report_on(
        name, released.checks, [], design.status, design.figures, notes=design.notes,
        unit=unit_after(problem, problem.loss).strip(),
    )  # fmt: skip
    return replace(report, status="adopted" if report.passed else "failed")


def _as_it_is(statement: Statement, mechanism: Mechanism) -> Released:
    exact = mechanism.exact
    if statement.spread is not None:
        exact = mechanism.rows_on(statement.spread.mesh)
        if exact is None:
            raise ProblemError(
                "has no rows for the control points of the mesh that privacy at every point is "
                "stated for",
                where="mechanism",
                remedy="Give one on this mesh, or state the privacy of finitely many secrets",
            )
    if not isinstance(exact, Numerators):
        exact = Numerators.rounded(mechanism.matrix)
    return Released(exact, check_exact(statement, exact))


def _repaired(statement: Statement, mechanism: Mechanism) -> Released | None:
    from optmech.lp.inequalities import Inequalities
    from optmech.repair import Cone, repair

    given = Inequalities.of(statement)
    near = repair(given, Cone.of(given), mechanism.matrix)
    return None if near is None else release(given, near, ())


def _design(problem: Problem, released: Released) -> Design:
    multipliers = Multipliers()
    bound = lower_bound(problem.statement, multipliers)
    figures = figures_of(problem.statement, released.exact, bound, multipliers)
    return Design(
        problem,
        released.exact,
        figures,
        certificate=Certificate(released.checks, multipliers, bound),
        engine="none",
        engine_reason="adopted from elsewhere",
        seconds=0.0,
        reason="adopted, not optimised",
        notes=design_notes(problem, released.exact.matrix),
        approximations=measure_approximations(problem, released.exact.matrix),
    )
