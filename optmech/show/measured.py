"""What every constraint of a problem amounts to in a given mechanism, measured from the matrix."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from optmech.problem import Problem
from optmech.spaces.distances import Distance, evaluate
from optmech.spaces.mechanism import Mechanism


@dataclass(frozen=True)
class Measured:
    """One promise and what the matrix keeps of it."""

    constraint: int
    kind: str
    quantity: str
    """ "epsilon", "delta", "divergence", "distortion", "leakage", "bias", "information", "loss"
    or "outside"."""
    sense: str
    """ "at most" or "at least"."""
    promised: float
    measured: float

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def measure_constraints(problem: Problem, mechanism: Mechanism) -> list[Measured]:
    """A row for every constraint whose promise is a number."""
    rows = []
    for k, constraint in enumerate(problem.constraints):
        kept = constraint.measured(mechanism, problem.space)
        if kept is not None:
            quantity, promised, measured, sense = kept
            rows.append(Measured(k, constraint.title, quantity, sense, promised, measured))
    return rows


def blind_error(problem: Problem, distance: Distance) -> float:
    """d_max: the error of an adversary who sees nothing."""
    values = evaluate(distance, problem.secrets, problem.secrets, where="distance")
    return float((values @ problem.prior.weights).min())
