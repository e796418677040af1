"""Multipliers as plain JSON values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.certificate import (
    ApproximateMultipliers,
    AttackMultipliers,
    DivergenceMultipliers,
    Multipliers,
    PairMultipliers,
)
from optmech.certificate.known import require_known
from optmech.designs.encoding.result import require_keys
from optmech.errors import ProblemError
from optmech.statement.statement import Statement

Plain = Any
_FAMILIES = {
    "ratio", "windowed", "lifted", "approximate", "distortion", "loss_limits", "objective",
}  # fmt: skip


def encode_multipliers(multipliers: Multipliers) -> Plain:
    """Multipliers as plain lists; pairs as index lists."""

    def pairs(part: PairMultipliers | None) -> Plain:
        if part is None:
            return None
        return {
            "i": part.i.tolist(),
            "j": part.j.tolist(),
            "o": part.o.tolist(),
            "value": part.value.tolist(),
        }

    def sparse(values: Any) -> Plain:
        kept = sp.coo_array(values)
        row, column = kept.coords
        return {
            "shape": list(kept.shape),
            "row": row.tolist(),
            "column": column.tolist(),
            "value": kept.data.tolist(),
        }

    objective = multipliers.objective
    return {
        "ratio": pairs(multipliers.ratio),
        "windowed": [pairs(part) for part in multipliers.windowed],
        "lifted": [sparse(part) for part in multipliers.lifted],
        "approximate": [
            {"weight": part.weight.tolist(), "test": sparse(part.test)}
            for part in multipliers.approximate
        ],
        "divergence": [
            {"weight": part.weight.tolist(), "slope": sparse(part.slope)}
            for part in multipliers.divergences
        ],
        "distortion": [
            {"weight": part.weight, "strategy": sparse(part.strategy)}
            for part in multipliers.distortion
        ],
        "loss_limits": [np.atleast_1d(part).tolist() for part in multipliers.loss_limits],
        "objective": None if objective is None else sparse(np.atleast_2d(objective)),
    }


def decode_multipliers(plain: Plain, statement: Statement) -> Multipliers:
    """The inverse; indices and shapes are checked against the statement."""
    require_known(statement)
    shape = (statement.secrets, statement.observables)
    attack = (statement.observables, statement.secrets)

    def numbers(values: Plain, count: int | None = None) -> Floats:
        if type(values) is not list or not all(type(value) in (int, float) for value in values):
            raise ProblemError("a multiplier is not a number", where="multipliers")
        if count is not None and len(values) != count:
            raise ProblemError(f"{len(values)} weights for {count}", where="multipliers")
        return finite_array(values, where="multipliers", ndim=1)

    def indices(values: Plain, size: int) -> Ints:
        if type(values) is not list or not all(type(value) is int for value in values):
            raise ProblemError("an index is not a whole number", where="multipliers")
        array = np.asarray(values, dtype=np.int64).reshape(-1)
        if len(array) and not (array.min() >= 0 and array.max() < size):
            raise ProblemError(f"an index is outside 0..{size - 1}", where="multipliers")
        return array

    def pairs(part: Plain) -> PairMultipliers:
        require_keys(part, {"i", "j", "o", "value"}, "multipliers")
        out = PairMultipliers(
            indices(part["i"], shape[0]),
            indices(part["j"], shape[0]),
            indices(part["o"], shape[1]),
            numbers(part["value"]),
        )
        if len({len(out.i), len(out.j), len(out.o), len(out.value)}) != 1:
            raise ProblemError("index lists of different lengths", where="multipliers")
        return out

    def dense(part: Plain, expected: tuple[int, int]) -> Floats:
        require_keys(part, {"shape", "row", "column", "value"}, "multipliers")
        if part["shape"] != list(expected) or any(type(size) is not int for size in part["shape"]):
            raise ProblemError(f"shape {part['shape']} is not {expected}", where="multipliers")
        out = np.zeros(expected)
        row, column = indices(part["row"], expected[0]), indices(part["column"], expected[1])
        values = numbers(part["value"], len(row))
        if len(column) != len(row) or len(np.unique(row * expected[1] + column)) != len(row):
            raise ProblemError("an entry is missing or given twice", where="multipliers")
        out[row, column] = values
        return out

    def listed(name: str, stated: tuple[Any, ...], *keys: str) -> list[tuple[Plain, Any]]:
        """The entries of a family, each with its inequalities; a family may have none."""
        parts = plain.get(name, [])
        if type(parts) is not list or len(parts) > len(stated):
            raise ProblemError(f"{name} has too many entries", where="multipliers")
        for part in parts if keys else ():
            require_keys(part, set(keys), "multipliers")
        return list(zip(parts, stated, strict=False))

    # the divergences are absent from files written before there were any
    require_keys(plain, _FAMILIES, "multipliers", optional="divergence")
    objective = None
    if plain["objective"] is not None and statement.objective == "expected_loss":
        raise ProblemError("an expected loss has no objective weights", where="multipliers")
    if plain["objective"] is not None:
        worst = statement.objective == "worst_loss"
        objective = dense(plain["objective"], (1, shape[0]) if worst else attack)
        objective = objective[0] if worst else objective
    return Multipliers(
        ratio=None if plain["ratio"] is None else pairs(plain["ratio"]),
        windowed=tuple(pairs(part) for part, _ in listed("windowed", statement.windowed)),
        lifted=tuple(
            dense(part, (len(given.log_ratio), shape[1]))
            for part, given in listed("lifted", statement.lifted)
        ),
        approximate=tuple(
            ApproximateMultipliers(
                numbers(part["weight"], len(given.log_ratio)),
                dense(part["test"], (len(given.log_ratio), shape[1])),
            )
            for part, given in listed("approximate", statement.approximate, "weight", "test")
        ),
        divergences=tuple(
            DivergenceMultipliers(
                numbers(part["weight"], len(given.limit)),
                dense(part["slope"], (len(given.limit), shape[1])),
            )
            for part, given in listed("divergence", statement.divergences, "weight", "slope")
        ),
        distortion=tuple(
            AttackMultipliers(float(numbers([part["weight"]])[0]), dense(part["strategy"], attack))
            for part, _ in listed("distortion", statement.distortion, "weight", "strategy")
        ),
        loss_limits=tuple(
            numbers(part, shape[0] if given.per_secret else 1)
            for part, given in listed("loss_limits", statement.loss_limits)
        ),
        objective=objective,
    )
