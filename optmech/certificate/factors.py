"""What bound and check need of a statement's limits, evaluated once: floats proved to be at least
e^{εd}, and the exact right-hand sides."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import values
from optmech.exact.exponentials import bracket, exp_range
from optmech.statement.statement import Approximate, LiftedRatio, Statement

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Factors:
    """f with P[i,o] <= f P[j,o] implied by the statement; inf where nothing finite is."""

    ratio: Floats
    windowed: tuple[Floats, ...]
    lifted: tuple[Floats, ...]
    approximate: tuple[Floats, ...]
    divergences: tuple[tuple[tuple[Fraction, Fraction], ...], ...]
    """Bounds of every ε · scale."""
    minima: tuple[tuple[Fraction, Fraction], ...]
    """Bounds of every d_m; see ``values.distortion_limit``."""
    maxima: tuple[tuple[Fraction, Fraction], ...]
    """Bounds of every q; see ``values.loss_limit``."""

    @staticmethod
    def of(statement: Statement) -> Factors:
        """Evaluated once per statement."""
        found = _KNOWN.get(statement)
        if found is None:
            found = _KNOWN[statement] = _evaluate(statement)
        return found


_KNOWN: WeakKeyDictionary[Statement, Factors] = WeakKeyDictionary()


def _evaluate(statement: Statement) -> Factors:
    ratio = np.full((statement.secrets, statement.secrets), np.inf)
    windowed = []
    for part in statement.ratios:
        high = exp_range(part.epsilon, part.distance)[1]
        if part.window is None:
            ratio = np.minimum(ratio, high)
        else:
            windowed.append(high)
    return Factors(
        ratio,
        tuple(windowed),
        tuple(_of_sums(part) for part in statement.lifted),
        tuple(_of_sums(part) for part in statement.approximate),
        tuple(
            tuple(bracket(part.epsilon.times(scale)) for scale in part.scale.tolist())
            for part in statement.divergences
        ),
        tuple(values.distortion_limit(part) for part in statement.distortion),
        tuple(values.loss_limit(statement, part) for part in statement.loss_limits),
    )


def _of_sums(part: LiftedRatio | Approximate) -> Floats:
    """At least e^{ε d} Σa / Σb: (aP)/Σa <= e^r (bP)/Σb is meant."""
    high = exp_range(part.epsilon, part.scale)[1]
    left, right = (np.asarray(side.sum(axis=1)).reshape(-1) for side in (part.left, part.right))
    return np.asarray(high * (left / right) * (1 + (2 * part.left.shape[1] + 16) * _UNIT))
