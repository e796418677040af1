"""Shannon's mutual information and capacity, between proved bounds (nats)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.analysis.leakage.joint import probabilities, shares
from optmech.analysis.simplex import concave_maximum
from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.exact.checked import positive, whole
from optmech.exact.number import Interval
from optmech.exact.rounding import above, below
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import Shares

_PATIENCE, _NEWTON = 500, 100
_BITS = 192
"""Of the ball arithmetic: sums of 10,000 terms keep far more digits than a float has."""


@dataclass(frozen=True, eq=False, repr=False)
class ShannonCapacity(Shown):
    """Bounds of max_π I(S;O) in nats, and the prior that the lower one is proved with."""

    lower: float
    """I(S;O) under ``prior``, rounded down."""
    upper: float
    """max_s KL(p(·|s) ‖ q) for the output distribution q under ``prior``, rounded up."""
    prior: Prior
    iterations: int


@checked_arguments
def mutual_information(m: Mechanism, prior: Prior) -> Interval:
    """I(S;O) = Σ_{s,o} π(s) p(o|s) ln(p(o|s) / (πP)(o)) in nats, between two floats:
    what ``measures.mutual_information`` computes in floating point."""
    return _Enclosed(m).information(shares(m, prior))


@checked_arguments
def shannon_capacity(m: Mechanism, *, gap: float = 1e-9, iterations: int = 1000) -> ShannonCapacity:
    """max_π I(S;O), Shannon's capacity, between certified bounds, in nats.

    The prior is proposed by the Blahut-Arimoto iteration (Arimoto 1972, Blahut 1972) in floats, and
    by Newton's method where that is slow, until its own bounds are ``gap`` apart or after so many
    ``iterations``; the bounds that are returned are enclosures for that prior and hold whatever
    was proposed: for every q, max_π I <= max_s KL(p(·|s) ‖ q) (Gallager 1968, Thm. 4.5.1).
    """
    weights, steps = _proposed(m.matrix, positive(gap, "gap"), whole(iterations, "iterations"))
    proposed = Prior(m.secrets, weights)
    enclosed, drawn = _Enclosed(m), Shares.of(proposed, "prior")
    upper = max(high for _, high in enclosed.losses(drawn))
    lower = enclosed.information(drawn).lower
    return ShannonCapacity(max(0.0, lower), upper, proposed, steps)


def _proposed(matrix: Floats, gap: float, most: int) -> tuple[Floats, int]:
    """A prior under which the mutual information is nearly largest: by the iteration of Blahut and
    Arimoto, and where that is slow by Newton's method."""
    seen = matrix[:, matrix.max(axis=0) > 0]
    own = np.where(seen > 0, seen * np.log(np.where(seen > 0, seen, 1.0)), 0.0).sum(axis=1)
    prior = np.full(len(seen), 1 / len(seen))

    def learnt(weights: Floats) -> Floats:
        """KL(p(·|s) ‖ πP) for every s."""
        return np.asarray(own - seen @ np.log(np.maximum(weights @ seen, np.finfo(float).tiny)))

    for step in range(min(most, _PATIENCE)):
        losses = learnt(prior)
        if losses.max() - prior @ losses <= gap:
            return prior, step
        scaled = prior * np.exp(losses - losses.max())
        prior = np.maximum(scaled / scaled.sum(), 1e-300)
    if most <= _PATIENCE:
        return prior, most

    def value(weights: Floats) -> tuple[Floats, Floats, float]:
        losses = learnt(weights)
        curved = (seen / np.maximum(weights @ seen, np.finfo(float).tiny)) @ seen.T
        return losses, curved, float(losses.max() - weights @ losses / weights.sum())

    found, steps = concave_maximum(prior, value, gap, min(most - _PATIENCE, _NEWTON))
    return found, _PATIENCE + steps


class _Enclosed:
    """Entropies of the rows and logarithms of output probabilities as balls."""

    def __init__(self, m: Mechanism) -> None:
        import flint

        memory.require(
            600.0 * len(m.secrets) * len(m.observables),
            what=f"balls for {len(m.secrets):,} x {len(m.observables):,} probabilities",
            where="leakage",
            remedy="Use a coarser domain, or measures.mutual_information",
        )
        self.scaled = probabilities(m)
        with flint.ctx.workprec(_BITS):
            total = flint.arb(self.scaled.total)
            self.rows = [
                {o: flint.arb(v) / total for o, v in enumerate(row) if v}
                for row in self.scaled.rows
            ]
            # Σ_o p ln p of every row
            self.own = [sum((p * p.log() for p in row.values()), flint.arb(0)) for row in self.rows]

    def losses(self, drawn: Shares) -> list[tuple[float, float]]:
        """Bounds of KL(p(·|s) ‖ πP) for every s; π needs no support beyond that."""
        import flint

        with flint.ctx.workprec(_BITS):
            return [(below(ball), above(ball)) for ball in self._balls(drawn)]

    def information(self, drawn: Shares) -> Interval:
        """I(S;O) under π."""
        import flint

        with flint.ctx.workprec(_BITS):
            total = flint.arb(0)
            for unit, ball in zip(drawn.units, self._balls(drawn), strict=True):
                if unit:
                    total += flint.arb(unit) / drawn.total * ball
            return Interval(max(0.0, below(total)), above(total))

    def _balls(self, drawn: Shares) -> list[Any]:
        import flint

        logs = []
        over = flint.arb(self.scaled.total) * drawn.total
        for column in zip(*self.scaled.rows, strict=True):
            told = sum(u * v for u, v in zip(drawn.units, column, strict=True))
            # an observable that only impossible secrets produce: their loss is infinite
            logs.append((flint.arb(told) / over).log() if told else None)
        out = []
        for row, own in zip(self.rows, self.own, strict=True):
            ball = own
            for o, p in row.items():
                log = logs[o]
                ball = flint.arb("inf") if log is None else ball - p * log
            out.append(ball)
        return out
