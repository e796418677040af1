"""The design file: one JSON document with the problem, the matrix, the multipliers, a digest.

Self-contained (distances are written as matrices), inspectable, and loaded without executing
anything. Floats are written so that they read back bit by bit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from optmech.approximation import Approximation
from optmech.certificate import Check, check_exact, lower_bound
from optmech.certificate.exact import tightest
from optmech.certificate.figures import figures_of
from optmech.certificate.infeasible import closed_form_reason, multiplier_reason, support_reason
from optmech.certificate.objective import relative_gap
from optmech.design import Certificate, Design, Status
from optmech.encoding import (
    decode_multipliers,
    decode_numerators,
    decode_problem,
    encode_multipliers,
    encode_numerators,
    encode_problem,
)
from optmech.errors import ProblemError, VerificationError
from optmech.sealed import DESIGN, FAMILY, decoding, parse_sealed, read_sealed, seal
from optmech.storage import write_atomically

_REWRITE = "Solve the problem again and save the design"


def save_design(design: Design, path: str | Path) -> None:
    """Write a design; raises ProblemError where labels cannot be written or the path cannot."""
    write_atomically(path, encode_design(design))


def encode_design(design: Design) -> bytes:
    """The content of a design's file; raises ProblemError where labels cannot be written."""
    body = {
        "format": DESIGN,
        "problem": encode_problem(design.problem),
        "result": {
            "status": design.status,
            "objective": _number(design.objective),
            "bound": _number(design.bound),
            "loss": _number(design.loss),
            "lower_bound": _number(design.lower_bound),
            "engine": design.engine,
            "engine_reason": design.engine_reason,
            "seconds": design.seconds,
            "rounding_cost": design.rounding_cost,
            "reason": design.reason,
            "notes": list(design.notes),
            "approximations": [
                {
                    "constraint": part.constraint,
                    "promised_epsilon": part.promised_epsilon,
                    "epsilon": _number(part.epsilon),
                    "repaired_loss": _number(part.repaired_loss),
                }
                for part in design.approximations
            ],
        },
        "mechanism": None if design.exact is None else encode_numerators(design.exact),
        "multipliers": encode_multipliers(design.certificate.multipliers),
    }
    return seal(json.dumps(body, allow_nan=False).encode())


@dataclass(frozen=True)
class CheckReport:
    """What ``check`` found in a design file."""

    path: str
    status: str
    checks: tuple[Check, ...]
    """One verdict per family of inequalities, recomputed from the file's numbers."""
    objective: float
    bound: float
    gap: float
    loss: float
    lower_bound: float
    faults: tuple[str, ...]
    """What does not hold, in words; empty when the design passes."""

    @property
    def inequalities(self) -> int:
        """How many inequalities were checked."""
        return sum(check.inequalities for check in self.checks)

    @property
    def tightest(self) -> Check | None:
        """The check whose likelihood ratios come closest to their limit, if there is one."""
        return tightest(self.checks)

    @property
    def passed(self) -> bool:
        return not self.faults


def load_design(path: str | Path) -> Design:
    """Read a design and check it again.

    Raises
    ------
    ProblemError
        If the file cannot be read or is not a design file.
    VerificationError
        If it was altered, or does not hold what it claims.
    """
    return _examined(read_sealed(path, (DESIGN,), _REWRITE), str(path))


def decode_design(content: bytes, where: str) -> Design:
    """As ``load_design``, from a file's content; ``where`` names it in messages."""
    return _examined(parse_sealed(content, where, (DESIGN,), _REWRITE), where)


def _examined(body: dict[str, Any], where: str) -> Design:
    design = _decode(body, where)
    report = _examine(design, where)
    if not report.passed:
        raise VerificationError(report.faults[0], where=where, remedy=_REWRITE)
    return design


def check_design(path: str | Path) -> CheckReport:
    """Recompute every inequality, the value and the bound from a design file alone.

    Raises ProblemError if the file cannot be read, VerificationError if it is altered or
    malformed; what merely does not hold is reported in ``faults``.
    """
    body = read_sealed(path, (DESIGN, FAMILY), _REWRITE)
    if body["format"] == FAMILY:
        from optmech.targets.file import examine_target

        return examine_target(body, str(path))
    return _examine(_decode(body, str(path)), str(path))


def _examine(design: Design, path: str) -> CheckReport:
    statement = design.problem.statement
    multipliers = design.certificate.multipliers
    if design.exact is None:
        nan = float("nan")
        proof = (
            closed_form_reason(statement)
            or support_reason(statement)
            or multiplier_reason(statement, multipliers)
        )
        unproved = "the file says that the problem is infeasible and has no proof of it"
        missing = () if proof else (unproved,)
        return CheckReport(path, design.status, (), nan, nan, nan, nan, nan, missing)
    checks = design.certificate.checks
    # what the stored multipliers prove here; the file may claim less, never more
    bound = design.certificate.bound
    proved = replace(bound, value=bound.proved)
    found = figures_of(statement, design.exact, proved, multipliers)
    faults = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    sign = -1.0 if statement.target_factors is not None else 1.0
    for name, claimed, proper, sense in (
        ("objective", design.objective, found.objective, 0),
        ("loss", design.loss, found.loss, 0),
        ("bound", sign * design.bound, sign * found.bound, 1),
        ("lower bound", design.lower_bound, found.lower_bound, 1),
    ):
        if not (claimed == proper or (sense and claimed <= proper)):
            faults.append(f"{name} is {claimed!r} in the file and {proper!r} recomputed")
    return CheckReport(
        path=path,
        status=design.status,
        checks=checks,
        objective=found.objective,
        bound=design.bound,
        gap=design.gap,
        loss=found.loss,
        lower_bound=design.lower_bound,
        faults=tuple(faults),
    )


def _decode(body: dict[str, Any], path: str) -> Design:
    with decoding(path, _REWRITE):
        problem = decode_problem(body["problem"])
        result = body["result"]
        exact = None
        if body["mechanism"] is not None:
            shape = problem.loss_matrix.shape
            exact = decode_numerators(body["mechanism"], *shape)
        multipliers = decode_multipliers(body["multipliers"], problem.statement)
        value, bound = _float(result["objective"]), _float(result["bound"])
        checks = () if exact is None else check_exact(problem.statement, exact)
        return Design(
            problem=problem,
            status=_status(result["status"], exact is not None),
            exact=exact,
            objective=value,
            bound=bound,
            loss=_float(result["loss"]),
            lower_bound=_float(result["lower_bound"]),
            gap=relative_gap(*_minimised(problem.statement.objective, value, bound)),
            verified=bool(checks) and all(check.passed for check in checks),
            certificate=Certificate(
                checks, multipliers, lower_bound(problem.statement, multipliers)
            ),
            engine=str(result["engine"]),
            engine_reason=str(result["engine_reason"]),
            seconds=float(result["seconds"]),
            reason=str(result["reason"]),
            notes=tuple(map(str, result["notes"])),
            approximations=tuple(
                Approximation(
                    constraint=int(part["constraint"]),
                    promised_epsilon=float(part["promised_epsilon"]),
                    epsilon=_float(part["epsilon"], default=np.inf),
                    repaired=None,
                    repaired_loss=_float(part["repaired_loss"]),
                )
                for part in result["approximations"]
            ),
            rounding_cost=_float(result["rounding_cost"]),
        )


def _status(status: object, released: bool) -> Status:
    if status == "infeasible" and not released:
        return "infeasible"
    if status in ("optimal", "feasible") and released:
        return "optimal" if status == "optimal" else "feasible"
    raise ProblemError(f"status {status!r} does not fit the mechanism", where="result")


def _minimised(objective: str, value: float, bound: float) -> tuple[float, float]:
    return (-value, -bound) if objective == "maximize_distortion" else (value, bound)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _float(value: object, default: float = float("nan")) -> float:
    return default if value is None else float(value)  # type: ignore[arg-type]
