"""Hyper-distributions and reduced mechanisms (QIF chapter 4): what a mechanism says,
whatever its observables are called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optmech.analysis.leakage.joint import joint
from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import RationalRows, Shares


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
