"""Mechanisms, priors and their product as whole numbers over one total, hyper-distributions and
reduced mechanisms (QIF chapter 4): what a mechanism says, whatever its observables are called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.analysis.measures import prior_weights
from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
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


@dataclass(frozen=True, eq=False, repr=False)
class Hyper(Shown):
    """A distribution over posteriors, exactly: every posterior once, with its probability."""

    outer: Shares
    """The probability of each posterior."""
    inners: tuple[Shares, ...]
    """The posteriors π(s|o), each over the secrets, all different."""
    groups: tuple[tuple[int, ...], ...]
    """For every posterior the observables (indices) after which it is believed."""

    @cached_property
    def matrix(self) -> Floats:
        """The posteriors as rows of floats, shape (posteriors, S)."""
        return np.array([inner.weights for inner in self.inners])


@checked_arguments
def hyper(m: Mechanism, prior: Prior) -> Hyper:
    """[π ▹ P]: the posteriors of ``m`` and how likely each is. Observables with the
    same posterior are one, and impossible ones are left out."""
    columns = joint(m, prior).columns
    groups = proportional(columns)
    summed = [[sum(parts) for parts in zip(*(columns[o] for o in g), strict=True)] for g in groups]
    return Hyper(
        Shares.reduced([sum(column) for column in summed]),
        tuple(Shares.reduced(column) for column in summed),
        groups,
    )


@checked_arguments
def reduced(m: Mechanism) -> Mechanism:
    """The mechanism with proportional columns merged and columns of zeros left out: it leaks the
    same under every prior and gain, with the least number of observables.

    Each observable of the result has the label of the first one that is merged into it.
    Probabilities are exact.
    """
    exact = m.rational
    columns = list(zip(*exact.rows, strict=True))
    groups = proportional(columns)
    rows = zip(*(map(sum, zip(*(columns[o] for o in g), strict=True)) for g in groups), strict=True)
    known, first = m.observables, [group[0] for group in groups]
    points = None if known.points is None else known.points[first]
    labels = [known.labels[o] for o in first]
    outputs = Domain(labels, points, known.unit, coordinates=known.coordinates)
    return Mechanism.of(m.secrets, outputs, RationalRows(tuple(rows)))


def proportional(columns: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Indices of the columns that are no zeros, those that are multiples of each other together,
    in the order of their first ones."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for o, column in enumerate(columns):
        divisor = math.gcd(*column)
        if divisor:
            groups.setdefault(tuple(value // divisor for value in column), []).append(o)
    return tuple(map(tuple, groups.values()))
