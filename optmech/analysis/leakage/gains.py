"""Gains g(w, s): what a guess w earns when the secret is s."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.leakage.joint import Rows, Scaled
from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError
from optmech.exact.numerators import integers
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain

Gain = str | ArrayLike | Sequence[Sequence[Fraction]]
"""``"identity"`` (a guess earns 1 where it is right), or an array of shape (guesses, secrets)."""

IDENTITY = "identity"


@checked_arguments
def predicate(secrets: Domain, members: Iterable[Hashable] | Callable[[Hashable], bool]) -> Floats:
    """The gain of an adversary who guesses whether the secret is among ``members``, an array of
    shape (2, n): row 0 guesses that it is (``pred_vuln`` of libqif).

    ``members`` are labels of secrets, or a function of a label.

    Raises
    ------
    ProblemError
        When a member is no secret.
    """
    if callable(members):
        inside = [bool(members(label)) for label in secrets.labels]
    else:
        chosen = {secrets.index(label) for label in members}
        inside = [k in chosen for k in range(len(secrets))]
    row = np.array(inside, dtype=np.float64)
    return np.stack([row, 1 - row])


@checked_arguments
def partition(
    secrets: Domain, blocks: Mapping[Hashable, Hashable] | Callable[[Hashable], Hashable]
) -> Floats:
    """The gain of an adversary who guesses the block that the secret is in, an array of shape
    (blocks, n), blocks in the order in which they occur.

    ``blocks`` gives the name of the block of every label, as a mapping or a function.

    Raises
    ------
    ProblemError
        When a secret has no block.
    """
    names: list[Hashable] = []
    for label in secrets.labels:
        if callable(blocks):
            names.append(blocks(label))
        elif label in blocks:
            names.append(blocks[label])
        else:
            raise ProblemError(
                f"{label!r} has no block", where="blocks", remedy="Name the block of every secret"
            )
    rows = {name: k for k, name in enumerate(dict.fromkeys(names))}
    out = np.zeros((len(rows), len(names)))
    out[[rows[name] for name in names], np.arange(len(names))] = 1.0
    return out


def gain_of(gain: Gain, count: int, *, where: str = "gain") -> Scaled | None:
    """An exact gain for ``count`` secrets, shape (W, S); None is the identity.

    Fractions and whole numbers count as what they are, floats as the binary fractions that they
    are.

    Raises
    ------
    ProblemError
        On another text, an entry that is no finite number, no guesses, or a wrong shape.
    """
    if isinstance(gain, str):
        if gain != IDENTITY:
            raise ProblemError(
                f"{gain!r} is unknown", where=where, remedy='Use "identity" or an array'
            )
        return None
    exact, given = _fractions(gain), cast(ArrayLike, gain)
    values = np.empty((0, 0)) if exact is not None else finite_array(given, where=where)
    shape = values.shape if exact is None else (len(exact), len(exact[0]))
    if len(shape) != 2 or shape[1] != count or not shape[0]:
        raise ProblemError(
            f"shape {shape} is not (guesses, {count})",
            where=where,
            remedy="Give a row for every guess and a column for every secret",
        )
    if exact is None:
        rows, exponent = integers(values)
        return Scaled(rows, 1 << exponent)
    total = math.lcm(*(value.denominator for row in exact for value in row))
    return Scaled([[int(value * total) for value in row] for row in exact], total)


def gained(gain: Scaled | None, columns: Rows, total: int) -> tuple[Rows, int]:
    """Σ_s g(w,s) x(s,o) for a matrix ``columns`` [s][o] over ``total``: rows for every guess w,
    over the total that is returned."""
    if gain is None:
        return columns, total
    import flint

    product = flint.fmpz_mat(gain.rows) * flint.fmpz_mat(columns)
    return [[int(v) for v in row] for row in product.tolist()], gain.total * total


def _fractions(gain: Any) -> list[list[Fraction]] | None:
    """Nested lists of numbers among which there is a fraction; None for anything else."""
    rows = (
        [row for row in gain if isinstance(row, list | tuple)]
        if isinstance(gain, list | tuple)
        else []
    )
    if not any(isinstance(value, Fraction) for row in rows for value in row):
        return None
    try:
        exact = [[Fraction(value) for value in row] for row in rows]
    except (TypeError, ValueError, OverflowError):
        return None
    return exact if len(rows) == len(gain) and len({len(row) for row in rows}) == 1 else None
