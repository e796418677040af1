"""Mechanisms, priors and their product as whole numbers over one total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optmech.analysis.measures import prior_weights
from optmech.base import memory
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import RationalRows, Shares

Rows = list[list[int]]


@dataclass(frozen=True)
class Scaled:
    """A matrix of rationals: ``rows[s][o] / total``."""

    rows: Rows
    total: int

    @property
    def columns(self) -> list[tuple[int, ...]]:
        """Entry s of column o, as a list of columns."""
        return list(zip(*self.rows, strict=True))

    def fraction(self, s: int, o: int) -> Fraction:
        """One entry."""
        return Fraction(self.rows[s][o], self.total)


def probabilities(m: Mechanism) -> Scaled:
    """p(o|s), shape (S, O), over one total."""
    return _weighted(m, Shares((1,) * len(m.secrets), 1))


def drawn(m: Mechanism) -> Mechanism:
    """The mechanism itself, its probabilities exact: those that are drawn with."""
    return m if m.exact is not None else Mechanism.of(m.secrets, m.observables, m.rational)


def fractions(m: Mechanism) -> list[list[Fraction]]:
    """p(o|s), shape (S, O)."""
    return [[Fraction(v, sum(row)) for v in row] for row in m.rational.rows]


def rational_rows(rows: Sequence[Sequence[Fraction]]) -> RationalRows:
    """Rows of fractions >= 0, each divided by its sum."""
    out = []
    for row in rows:
        scale = math.lcm(*(value.denominator for value in row))
        out.append(Shares.reduced([int(value * scale) for value in row]).units)
    return RationalRows(tuple(out))


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


def shares(m: Mechanism, prior: Prior) -> Shares:
    """π, checked to be over the secrets of ``m``."""
    prior_weights(m, prior)
    return Shares.of(prior, "prior")
