"""Mechanisms, priors and their product as whole numbers over one total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optmech.analysis.measures import prior_weights
from optmech.exact.numerators import Numerators
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
    exact = probabilities_by_row(m)
    if isinstance(exact, Numerators):
        return Scaled([list(row) for row in exact.rows], 1 << exact.bits)
    sums = [sum(row) for row in exact.rows]
    total = math.lcm(*sums)
    rows = [[v * (total // own) for v in row] for row, own in zip(exact.rows, sums, strict=True)]
    return Scaled(rows, total)


def probabilities_by_row(m: Mechanism) -> Numerators | RationalRows:
    """The same, every row over its own sum."""
    return m._probabilities() or Numerators.rounded(m.matrix)


def drawn(m: Mechanism) -> Mechanism:
    """The mechanism itself, its probabilities exact: those that are drawn with."""
    return (
        m
        if m.exact is not None
        else Mechanism.of(m.secrets, m.observables, probabilities_by_row(m))
    )


def fractions(m: Mechanism) -> list[list[Fraction]]:
    """p(o|s), shape (S, O)."""
    return [[Fraction(v, sum(row)) for v in row] for row in probabilities_by_row(m).rows]


def rational_rows(rows: Sequence[Sequence[Fraction]]) -> RationalRows:
    """Rows of fractions >= 0, each divided by its sum."""
    out = []
    for row in rows:
        scale = math.lcm(*(value.denominator for value in row))
        out.append(Shares.reduced([int(value * scale) for value in row]).units)
    return RationalRows(tuple(out))


def joint(m: Mechanism, prior: Prior) -> Scaled:
    """π(s) p(o|s), shape (S, O)."""
    found, drawn = probabilities(m), shares(m, prior)
    rows = [[unit * v for v in row] for row, unit in zip(found.rows, drawn.units, strict=True)]
    return Scaled(rows, found.total * drawn.total)


def shares(m: Mechanism, prior: Prior) -> Shares:
    """π, checked to be over the secrets of ``m``."""
    prior_weights(m, prior)
    return Shares.of(prior, "prior")
