"""Mechanisms, priors and their product as whole numbers over one total; gains g(w, s), what a guess
w earns when the secret is s, and the best guesses after a report (QIF chapter 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.measures import weights_over
from optmech.base import memory
from optmech.base.arrays import finite_array
from optmech.errors import ProblemError
from optmech.exact.numerators import integers
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution, Prior
from optmech.spaces.rationals import Shares

Rows = list[list[int]]
Columns = list[tuple[int, ...]]


@dataclass(frozen=True)
class Scaled:
    """A matrix of rationals: ``rows[s][o] / total``."""

    rows: Rows
    total: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[Fraction]]) -> Scaled:
        """Rows of fractions over their common denominator."""
        total = math.lcm(*(value.denominator for row in rows for value in row))
        return cls([[int(value * total) for value in row] for row in rows], total)

    @property
    def columns(self) -> Columns:
        """Entry s of column o, as a list of columns."""
        return list(zip(*self.rows, strict=True))


def probabilities(m: Mechanism) -> Scaled:
    """p(o|s), shape (S, O), over one total."""
    return _weighted(m, Shares((1,) * len(m.secrets), 1))


def joint(m: Mechanism, prior: Prior) -> Scaled:
    """π(s) p(o|s), shape (S, O)."""
    return _weighted(m, shares(m, prior))


def _weighted(m: Mechanism, drawn: Shares) -> Scaled:
    """w(s) p(o|s) for weights w, over one total: rows of floats have sums with hardly a common
    divisor, so that it grows with the secrets."""
    exact = m.rational.rows
    sums = [sum(row) // math.gcd(*row) for row in exact]
    total = math.lcm(*sums)
    size = (total.bit_length() + drawn.total.bit_length()) / 8 + 40
    memory.require(
        size * len(exact) * len(exact[0]),
        what=f"the probabilities of {len(exact):,} x {len(exact[0]):,} as whole numbers over one "
        f"total of {total.bit_length():,} bits",
        where="leakage",
        remedy="Use a coarser domain, or probabilities over a power of two, as designs have them",
    )
    rows = []
    for row, own, unit in zip(exact, sums, drawn.units, strict=True):
        factor, divisor = unit * (total // own), math.gcd(*row)
        rows.append([value // divisor * factor for value in row])
    return Scaled(rows, total * drawn.total)


def shares(m: Mechanism, given: Distribution, where: str = "prior") -> Shares:
    """A distribution, checked to be over the secrets of ``m``."""
    if isinstance(given, Prior):
        weights_over(m, given, where)
    found = Shares.of(given, where)
    if len(found) != len(m.secrets):
        raise ProblemError(f"{len(found)} weights for {len(m.secrets)} secrets", where=where)
    return found


Gain = str | ArrayLike | Sequence[Sequence[Fraction]]
"""``"identity"`` (a guess earns 1 where it is right), or an array of shape (guesses, secrets)."""

IDENTITY = "identity"


def gain_of(gain: Gain, count: int) -> Scaled | None:
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
                f"{gain!r} is unknown", where="gain", remedy='Use "identity" or an array'
            )
        return None
    exact = _fractions(gain)
    values = np.array(exact, dtype=object)
    if exact is None:
        values = finite_array(cast(ArrayLike, gain), where="gain")
    if values.ndim != 2 or values.shape[1] != count or not len(values):
        raise ProblemError(
            f"shape {values.shape} is not (guesses, {count})",
            where="gain",
            remedy="Give a row for every guess and a column for every secret",
        )
    if exact is not None:
        return Scaled.of(exact)
    rows, exponent = integers(values)
    return Scaled(rows, 1 << exponent)


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


@checked_arguments
def best_guesses(m: Mechanism, prior: Prior, gain: Gain = IDENTITY) -> tuple[int, ...]:
    """For every observable the first guess w (an index of the gain's rows, or of the secrets) that
    earns most after it.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.leakage.best_guesses(m, om.Prior(sides, [0.9, 0.1]))  # "left", whatever is reported
    (0, 0)
    """
    return tuple(
        column.index(max(column)) for column in zip(*_earned(m, prior, gain)[0], strict=True)
    )


def _earned(m: Mechanism, prior: Prior, gain: Gain) -> tuple[Rows, int]:
    """Σ_s π(s) p(o|s) g(w,s), shape (W, O)."""
    found = joint(m, prior)
    return gained(gain_of(gain, len(m.secrets)), found.rows, found.total)
