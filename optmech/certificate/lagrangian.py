"""The Lagrangian of a statement, summed up with a bound of its rounding (theory: "The Lagrangian
bound")."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.certificate import values
from optmech.certificate.statement import Held, Statement
from optmech.exact.rounding import UNIT

LARGEST = 2.0**100
"""Multipliers are cut to this: any numbers >= 0 are valid."""
_TINY = 2.0**-900
"""Per entry, for what underflow may have lost: roundings of 2^-1075, times such a multiplier."""
LEAST_WEIGHT = Fraction(1, 2**100)
"""Of the objective: of weights that sum to less, what underflow may have lost is all there is."""
LEAST_MARGIN = 2.0**-800
"""Of a proof that nothing is feasible, for the same reason; both are rules of the audit, too."""
_HUGE = 1e300
"""Terms of a row that is held sum to less, or prove nothing."""
_MARGINS = 3
"""A bound is reported with three times its rounding error taken off, and checked with once: so
that a machine which adds in another order proves what this one reports."""


@dataclass(frozen=True)
class Bound:
    """A lower bound on the minimised objective (minus the distortion, where that is maximised)."""

    value: float
    """What is reported."""
    rounding: float
    """Upper bound of what rounding can have added before it was taken off."""
    proved: float = -math.inf
    """What this machine's arithmetic proves: at least ``value``."""


class Lagrangian:
    """L[s,o], the constant, and the same with absolute values, for the rounding bound."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.terms = np.zeros(statement.loss.shape)
        self.magnitude = np.zeros(statement.loss.shape)
        self.roundings = np.full(statement.loss.shape, 8.0)
        self.constant = Fraction(0)
        self.weight = Fraction(1)
        """What the objective was multiplied with."""
        self.spread: Callable[[], Bound] | None = None
        """The minimum over rows of control points, where these are what is released."""

    def add(self, part: Floats, magnitude: Floats, roundings: Floats | float) -> None:
        """``roundings`` bounds how many any single product of ``part`` went through."""
        self.terms += part
        self.magnitude += magnitude
        self.roundings += roundings + 2.0

    def add_errors(self, weighted: Floats, strategy: Floats, price: float = 1.0) -> None:
        """-ν Σ_o min_t Σ_s weighted[t,s] P[s,o] at least, for weights >= 0 and any attack."""
        part = price * (attack(strategy) @ weighted).T
        self.add(-part, part, weighted.shape[1] + 5.0)

    def add_gains(self, weighted: Floats, strategy: Floats, price: float = 1.0) -> None:
        """ν Σ_o max_w Σ_s weighted[w,s] P[s,o] at least, for weights of any sign and any strategy
        q(w|o)."""
        shares, roundings = mixture(strategy)
        part, size = (price * (shares @ part).T for part in (weighted, np.abs(weighted)))
        self.add(part, size, roundings + 3.0)

    def add_sums(
        self, left: Floats | sp.csr_array, right: Floats | sp.csr_array, factor: Floats, value: Any
    ) -> None:
        """Σ_k v_ko ((left_k P)[o] - f_k (right_k P)[o]) for any f_k >= the exact factor."""
        value = np.where(np.isfinite(factor)[:, None], value, 0.0)
        back = np.where(np.isfinite(factor), factor, 0.0)[:, None] * value
        plus, minus = left.T @ value, right.T @ back
        self.add(plus - minus, plus + minus, len(value) + 4.0)

    @property
    def error(self) -> Floats:
        """What rounding can have added to the terms."""
        # 1.01: the magnitudes themselves, and the terms of higher order
        return 1.01 * UNIT * self.roundings * self.magnitude + _TINY

    def below(self) -> tuple[Floats, Floats]:
        """Numbers that the exact L is not below, (S, O): what this machine's arithmetic proves, and
        what is to be reported (``Bound``)."""
        with np.errstate(all="ignore"):
            # the difference is rounded, too
            proved, value = (self.terms - k * self.error for k in (1, _MARGINS))
            return np.nextafter(proved, -np.inf), np.nextafter(value, -np.inf)

    def minimum(self) -> Bound:
        """The constant and the least of every row over the allowed observables; for a row that is
        held its value there, the only one that it has."""
        if self.spread is not None:
            return self.spread()
        allowed, held = self.statement.allowed, self.statement.held
        with np.errstate(all="ignore"):
            error = self.error
            low = [
                np.where(allowed, self.terms - k * error, np.inf).min(axis=1) for k in (1, _MARGINS)
            ]
            off = np.where(allowed, error, 0.0).max(axis=1)
            if held is not None:
                known, off[held.secrets] = self._at(held, error)
                for k, part in zip((1, _MARGINS), low, strict=True):
                    part[held.secrets] = known - k * off[held.secrets]
            proved, value = (self._value(part) for part in low)
        return Bound(value, float(off.sum()), proved)

    def _at(self, held: Held, error: Floats) -> tuple[Floats, Floats]:
        """Σ_o L[s,o] P[s,o] of the rows that are held, and how far rounding can be off, (k,)."""
        shares = held.matrix
        used = shares > 0
        terms = np.where(used, self.terms[held.secrets], 0.0)
        around = np.where(used, error[held.secrets], 0.0)
        size = np.abs(terms)
        sound = (size + around).sum(axis=1) < _HUGE
        products = np.where(sound[:, None], shares * terms, 0.0).tolist()
        value = np.where(sound, [math.fsum(row) for row in products], -np.inf)
        # nearest floats, products and the subtraction that follows: four roundings and some room
        # for the sums below, which are themselves rounded; what underflow takes is below 2^-1000
        off = 1.01 * (shares * around).sum(axis=1) + 8 * UNIT * (shares * size).sum(axis=1)
        return value, off + 2.0**-1000 * (size + around).sum(axis=1) + _TINY

    def _value(self, low: Floats) -> float:
        if not np.isfinite(low).all():
            return -math.inf
        return self.bound(Fraction(math.nextafter(math.fsum(low.tolist()), -math.inf)))

    def bound(self, least: Fraction) -> float:
        """What the rows' sum and the constant say of the objective."""
        if self.weight < LEAST_WEIGHT:
            return -math.inf
        return values.rounded_down((least + self.constant) / self.weight)


def positive(value: Floats | float) -> Floats:
    """Multipliers as numbers from 0 to 2^100."""
    return np.asarray(np.clip(value, 0.0, LARGEST))


def attack(strategy: Floats) -> Floats:
    """Rows (guesses for an observable) scaled to sums of at least one, by a hair.

    min_t x_t <= Σ_t α_t x_t for x >= 0 needs Σ_t α_t >= 1, and no more.
    """
    shares, count = _shares(np.maximum(strategy, 0.0)), strategy.shape[1]
    return np.asarray(shares * (1 + 4 * (count + 8) * UNIT))


def mixture(strategy: Floats) -> tuple[Floats, float]:
    """Rows (guesses for an observable) divided by their sums, and how many roundings a product with
    them counts for, so that it is as if the sums were exactly one.

    max_w x_w >= Σ_w q_w x_w for x of any sign needs Σ_w q_w = 1: the sum of quotients misses it by
    less than (W + 2) roundings, relatively.
    """
    guesses = np.where(np.isfinite(strategy), np.maximum(strategy, 0.0), 0.0)
    return _shares(guesses), 2.0 * strategy.shape[1] + 6.0


def _shares(guesses: Floats) -> Floats:
    """Rows divided by their sums; equal shares where the sum is no number to divide by."""
    with np.errstate(all="ignore"):
        totals = guesses.sum(axis=1, keepdims=True)
    usable = np.isfinite(totals) & (totals > 2.0**-900)
    equal = 1.0 / guesses.shape[1]
    return np.where(usable, guesses / np.where(usable, totals, 1.0), equal)
