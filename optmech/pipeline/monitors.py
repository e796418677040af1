"""Monitors of programs that are not the stated one: proofs of infeasibility, relaxed programs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from optmech.certificate.bound import Multipliers, multiplier_reason
from optmech.certificate.statement import Statement
from optmech.lp.blocks import Point
from optmech.lp.inequalities import Inequalities
from optmech.pipeline.session import Channel

_BINDING = 1e-3
"""Constraints that were left out bind once they are broken by this share."""


@dataclass(eq=False)
class Witness:
    """The first multipliers that prove infeasibility."""

    statement: Statement
    reason: str = ""
    multipliers: Multipliers = field(default_factory=Multipliers)


@dataclass(eq=False)
class WitnessChannel(Channel):
    """The monitor of a feasibility program: looks for a proof, offers matrices all the same."""

    witness: Witness = field(kw_only=True)

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        matrix, multipliers = self.recover(point)
        reason = multiplier_reason(self.witness.statement, multipliers)
        if reason and not self.witness.reason:
            self.witness.reason, self.witness.multipliers = reason, multipliers
        elif not reason:
            self.session.offer_matrix(matrix)
        return 0.0 if reason else math.inf


@dataclass(eq=False)
class RelaxedChannel(Channel):
    """The monitor of a program without some constraints, ``left_out``: stops once they bind."""

    left_out: Inequalities = field(kw_only=True)
    binding: bool = False

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        matrix, multipliers = self.recover(point)
        if dual and self.dual:
            self.session.offer_bound(multipliers)
        if primal and self.primal:
            sums = np.maximum(matrix.sum(axis=1, keepdims=True), 1e-300)
            self.binding |= self.left_out.violation(matrix / sums) > _BINDING
            self.session.offer_matrix(matrix)
        return self.session.gap

    def should_stop(self) -> bool:
        return self.binding or self.session.should_stop()
