"""Monitors of programs that are not the stated one: proofs of infeasibility, relaxed programs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from optmech.certificate.infeasible import multiplier_reason
from optmech.certificate.multipliers import AttackMultipliers, Multipliers
from optmech.lp.blocks import Point
from optmech.pipeline.session import Channel
from optmech.repair.mixing import shortage
from optmech.statement.statement import Statement

_BINDING = 1e-3
"""Distortion constraints bind once they fall short by this share."""


@dataclass(eq=False)
class Witness:
    """The first multipliers that prove infeasibility."""

    statement: Statement
    reason: str = ""
    multipliers: Multipliers = field(default_factory=Multipliers)


@dataclass(eq=False)
class WitnessChannel(Channel):
    """The monitor of a feasibility program: looks for a proof, offers matrices all the same."""

    witness: Witness | None = None

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        assert self.witness is not None
        matrix, multipliers = self.recover(point)
        reason = multiplier_reason(self.witness.statement, multipliers)
        if reason and not self.witness.reason:
            self.witness.reason, self.witness.multipliers = reason, multipliers
        elif not reason:
            self.session.offer_matrix(matrix)
        return 0.0 if reason else math.inf


@dataclass(eq=False)
class RelaxedChannel(Channel):
    """The monitor of a program without its distortion constraints: stops once they bind."""

    full: Statement | None = None
    binding: bool = False

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        assert self.full is not None
        matrix, multipliers = self.recover(point)
        weightless = tuple(
            AttackMultipliers(0.0, np.ones(part.weighted.shape[::-1]))
            for part in self.full.distortion
        )
        if dual and self.dual:
            self.session.offer_bound(replace(multipliers, distortion=weightless))
        if primal and self.primal:
            sums = np.maximum(matrix.sum(axis=1, keepdims=True), 1e-300)
            self.binding |= shortage(self.full, matrix / sums) > _BINDING
            self.session.offer_matrix(matrix)
        return self.session.gap

    def should_stop(self) -> bool:
        return self.binding or self.session.should_stop()
