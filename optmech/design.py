"""A design: the mechanism, its value, the bound that was proved, and the proof."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from optmech.approximation import Approximation, measure_approximations
from optmech.certificate import Bound, Check, Multipliers
from optmech.certificate.objective import relative_gap
from optmech.constraints import LossBound
from optmech.domain import Floats
from optmech.errors import InfeasibleError
from optmech.mechanism import Mechanism
from optmech.problem import Problem

if TYPE_CHECKING:
    from optmech.session import Session

Status = Literal["optimal", "feasible", "infeasible"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What a third party needs to check the design: verdicts, bound and multipliers."""

    checks: tuple[Check, ...]
    multipliers: Multipliers
    bound: Bound


@dataclass(frozen=True, eq=False)
class Design:
    """The result of ``solve``. Numbers are nan where the problem is infeasible.

    ``objective`` is the optimised quantity of the released matrix and ``bound`` what was proved
    about it: no feasible mechanism has less loss (or more distortion, where that is maximised).
    ``gap`` is their relative difference.

    ``loss`` is the released matrix's loss: worst case where that is the objective, expected
    otherwise. ``lower_bound`` bounds that loss from below. When distortion is maximised, it is
    the least loss at which the released distortion could be had, by the same multipliers.
    """

    problem: Problem
    status: Status
    matrix: Floats | None
    objective: float
    bound: float
    loss: float
    lower_bound: float
    gap: float
    verified: bool
    certificate: Certificate
    engine: str
    engine_reason: str
    seconds: float
    reason: str = ""
    notes: tuple[str, ...] = ()
    approximations: tuple[Approximation, ...] = ()

    @property
    def mechanism(self) -> Mechanism:
        """The released mechanism; raises InfeasibleError, with the reason, where there is none."""
        if self.matrix is None:
            raise InfeasibleError(self.reason, where=self.problem.title)
        return Mechanism(self.problem.secrets, self.problem.observables, self.matrix)

    @property
    def approximation(self) -> Approximation | None:
        """The first entry of ``approximations``."""
        return self.approximations[0] if self.approximations else None

    def summary(self) -> dict[str, Any]:
        """The design's figures as plain values, ready for JSON (nan and inf become None)."""

        def plain(value: float) -> float | None:
            return float(value) if np.isfinite(value) else None

        out: dict[str, Any] = {
            "status": self.status,
            "loss": plain(self.loss),
            "lower_bound": plain(self.lower_bound),
            "gap": plain(self.gap),
            "objective": plain(self.objective),
            "bound": plain(self.bound),
            "verified": self.verified,
            "engine": self.engine,
            "engine_reason": self.engine_reason,
            "seconds": self.seconds,
            "secrets": len(self.problem.secrets),
            "observables": len(self.problem.observables),
            "reason": self.reason,
            "notes": list(self.notes),
        }
        if self.approximations:
            out["approximations"] = [
                {
                    "constraint": part.constraint,
                    "promised_epsilon": plain(part.promised_epsilon),
                    "epsilon": plain(part.epsilon),
                    "repaired_loss": plain(part.repaired_loss),
                }
                for part in self.approximations
            ]
        return out

    def save(self, path: str | Path) -> None:
        """Write the design to one JSON file, atomically."""
        from optmech.design_file import save_design

        save_design(self, path)

    @staticmethod
    def load(path: str | Path) -> Design:
        """Read a design written by ``save``; raises VerificationError when it was altered."""
        from optmech.design_file import load_design

        return load_design(path)


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
            problem=problem,
            status="infeasible",
            matrix=None,
            objective=nan,
            bound=nan,
            loss=nan,
            lower_bound=nan,
            gap=nan,
            verified=False,
            certificate=Certificate((), session.multipliers, Bound(nan, nan)),
            engine=engine,
            engine_reason=engine_reason,
            seconds=session.seconds,
            reason=infeasible,
            notes=problem.notes,
        )
    assert session.matrix is not None
    reached = session.gap <= session.gap_asked
    sign = -1.0 if problem.statement.objective == "maximize_distortion" else 1.0
    loss, lower = _loss_and_bound(problem, session)
    return Design(
        problem=problem,
        status="optimal" if reached else "feasible",
        matrix=session.matrix,
        objective=sign * session.value,
        bound=sign * session.bound.value,
        loss=loss,
        lower_bound=lower,
        gap=relative_gap(session.value, session.bound.value),
        verified=all(check.passed for check in session.checks),
        certificate=Certificate(session.checks, session.multipliers, session.bound),
        engine=engine,
        engine_reason=engine_reason,
        seconds=session.seconds,
        reason="" if reached else message,
        notes=problem.notes,
        approximations=measure_approximations(problem, session.matrix),
    )


def _loss_and_bound(problem: Problem, session: Session) -> tuple[float, float]:
    statement, matrix = problem.statement, session.matrix
    assert matrix is not None
    if statement.objective != "maximize_distortion":
        return session.value, session.bound.value
    loss = float(statement.prior @ (statement.loss * matrix).sum(axis=1))
    return loss, min(loss, _least_loss(problem, session))


def _least_loss(problem: Problem, session: Session) -> float:
    """With D <= U + μ (loss - q) for every mechanism that keeps the other constraints, distortion
    D costs at least q - (U - D) / μ. Known where one expected-loss bound on the problem's own
    loss is stated; 0 otherwise."""
    stated = [c for c in problem.constraints if isinstance(c, LossBound)]
    weights = session.multipliers.loss_limits
    if len(stated) != 1 or stated[0].worst_case or stated[0].loss is not None or not weights:
        return 0.0
    price = float(np.max(weights[0]))
    slack = session.value - session.bound.value
    return max(0.0, float(stated[0].maximum) - slack / price) if price > 0 else 0.0


def check(path: str | Path) -> Any:
    """Check a saved design from its file alone; see ``optmech.design_file.check_design``."""
    from optmech.design_file import check_design

    return check_design(path)
