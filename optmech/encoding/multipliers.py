"""Multipliers as plain JSON values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.certificate import (
    ApproximateMultipliers,
    AttackMultipliers,
    DivergenceMultipliers,
    Multipliers,
    PairMultipliers,
)
from optmech.domain import Floats, Ints, finite_array
from optmech.errors import ProblemError
from optmech.statement import Statement

Plain = Any


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
    shape = (statement.secrets, statement.observables)
    attack = (statement.observables, statement.secrets)

    def numbers(values: Plain) -> Floats:
        if not all(type(value) in (int, float) for value in values):
            raise ProblemError("a multiplier is not a number", where="multipliers")
        return finite_array(values, where="multipliers", ndim=1)

    def indices(values: Plain, size: int) -> Ints:
        if not all(type(value) is int for value in values):
            raise ProblemError("an index is not a whole number", where="multipliers")
        array = np.asarray(values, dtype=np.int64).reshape(-1)
        if len(array) and not (array.min() >= 0 and array.max() < size):
            raise ProblemError(f"an index is outside 0..{size - 1}", where="multipliers")
        return array

    def pairs(part: Plain) -> PairMultipliers:
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
        if tuple(part["shape"]) != expected:
            raise ProblemError(f"shape {part['shape']} is not {expected}", where="multipliers")
        out = np.zeros(expected)
        row, column = indices(part["row"], expected[0]), indices(part["column"], expected[1])
        out[row, column] = numbers(part["value"])
        return out

    objective = None
    if plain["objective"] is not None:
        worst = statement.objective == "worst_loss"
        objective = dense(plain["objective"], (1, shape[0]) if worst else attack)
        objective = objective[0] if worst else objective
    return Multipliers(
        ratio=None if plain["ratio"] is None else pairs(plain["ratio"]),
        windowed=tuple(pairs(part) for part in plain["windowed"]),
        lifted=tuple(
            dense(part, (len(given.log_ratio), shape[1]))
            for part, given in zip(plain["lifted"], statement.lifted, strict=False)
        ),
        approximate=tuple(
            ApproximateMultipliers(
                numbers(part["weight"]),
                dense(part["test"], (len(given.log_ratio), shape[1])),
            )
            for part, given in zip(plain["approximate"], statement.approximate, strict=False)
        ),
        divergences=tuple(
            DivergenceMultipliers(
                numbers(part["weight"]),
                dense(part["slope"], (len(given.limit), shape[1])),
            )
            # absent from files written before there were any
            for part, given in zip(plain.get("divergence", []), statement.divergences, strict=False)
        ),
        distortion=tuple(
            AttackMultipliers(float(numbers([part["weight"]])[0]), dense(part["strategy"], attack))
            for part in plain["distortion"]
        ),
        loss_limits=tuple(numbers(part) for part in plain["loss_limits"]),
        objective=objective,
    )
