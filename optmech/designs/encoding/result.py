"""What a design file claims of its mechanism, read strictly: types, ranges, and nothing else.

Nothing of it is believed. ``design_file`` computes again what can be computed; what remains
(engine, seconds, ...) is a statement of the file and shown as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from optmech.designs.approximation import MEASURED, Approximation
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys

Plain = Any
RESULT = (
    "status", "objective", "bound", "loss", "lower_bound", "engine", "engine_reason", "seconds",
    "rounding_cost", "reason", "notes", "approximations",
)  # fmt: skip
"""What a file claims: attributes of a design."""
_FIGURES = ("objective", "bound", "loss", "lower_bound")


@dataclass(frozen=True)
class StatedResult:
    """The claims of a file; figures are nan where they are null, as nothing is feasible."""

    status: Literal["optimal", "feasible", "infeasible"]
    objective: float
    bound: float
    loss: float
    lower_bound: float
    engine: str
    engine_reason: str
    seconds: float
    rounding_cost: float
    reason: str
    notes: tuple[str, ...]
    approximations: tuple[Approximation, ...]


def decode_result(plain: Plain, released: bool) -> StatedResult:
    """The claims of a file with a mechanism (``released``) or without one. Raises ProblemError
    where an entry is missing, unknown, of a wrong type or out of range."""
    require_keys(plain, set(RESULT), "result")
    status = plain["status"]
    if status not in (("optimal", "feasible") if released else ("infeasible",)):
        raise ProblemError(f"status {status!r} does not fit the mechanism", where="result")
    figures = {
        name: math.nan if plain[name] is None and not released else _float(plain[name], name)
        for name in _FIGURES
    }
    if released and figures["lower_bound"] < 0:
        raise ProblemError("lower_bound is below 0", where="result")
    for name in ("engine", "engine_reason", "reason"):
        _require(type(plain[name]) is str, name, plain[name], "a text")
    notes, parts = plain["notes"], plain["approximations"]
    _require(type(notes) is list and all(type(n) is str for n in notes), "notes", notes, "texts")
    _require(type(parts) is list and (released or not parts), "approximations", parts, "a list")
    seconds = _number(plain["seconds"], "seconds")
    _require(seconds >= 0, "seconds", seconds, "a number >= 0")
    return StatedResult(
        status=status,
        **figures,
        engine=plain["engine"],
        engine_reason=plain["engine_reason"],
        seconds=seconds,
        rounding_cost=_number(plain["rounding_cost"], "rounding_cost"),
        reason=plain["reason"],
        notes=tuple(notes),
        approximations=tuple(_approximation(part) for part in parts),
    )


def _approximation(plain: Plain) -> Approximation:
    """Its ε is inf where it is null, its loss nan."""
    require_keys(plain, set(MEASURED), "approximations")
    _require(type(plain["constraint"]) is int, "constraint", plain["constraint"], "an index")
    epsilon, loss = plain["epsilon"], plain["repaired_loss"]
    return Approximation(
        constraint=plain["constraint"],
        promised_epsilon=_number(plain["promised_epsilon"], "promised_epsilon"),
        epsilon=math.inf if epsilon is None else _number(epsilon, "epsilon"),
        repaired=None,
        repaired_loss=math.nan if loss is None else _number(loss, "repaired_loss"),
    )


def _number(value: Plain, name: str) -> float:
    _require(type(value) in (int, float) and math.isfinite(value), name, value, "a finite number")
    return float(value)


def _float(value: Plain, name: str) -> float:
    _require(type(value) is float, name, value, "a number with a point")
    return _number(value, name)


def _require(condition: bool, name: str, value: Plain, wanted: str) -> None:
    if not condition:
        raise ProblemError(f"{name} is {value!r} and not {wanted}", where="result")
