"""A first pair in closed form: asymptotically optimal when every ratio e^r is large.

Each observable is centred on the secret it suits best, and its column falls off from there as
fast as the ratios allow. Solvers cannot see entries far below their tolerances; this pair can.
"""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import Multipliers
from optmech.certificate.families import PairMultipliers
from optmech.certificate.families.ratio import shared_out
from optmech.certificate.statement import Statement
from optmech.repair.cone import Cone

_SWEEPS = 4
_SLACK = 1e-8
"""Keeps the lowered entries this far above the charge, out of reach of cancellation."""


def matrix(statement: Statement, cone: Cone) -> Floats:
    """Columns e^{-r(centre, s)}, rows not yet normalised."""
    centre = statement.loss.argmin(axis=0)
    out: Floats = np.exp(-cone.always[centre]).T
    out[centre, np.arange(len(centre))] = 1.0
    return out


def multipliers(statement: Statement) -> Multipliers:
    """Multipliers that charge every centre with the loss it forces upon the other secrets.

    With y_s the charge of secret s, the pair (centre, s) of block o gets
    max(0, π_s c(s,o) - y_s) e^{-r}, less a hair: L[s,o] falls to y_s, the centre's entry rises.
    """
    if statement.objective != "expected_loss":
        return Multipliers()
    cost = np.where(statement.allowed, statement.cost, np.inf)
    centre = statement.loss.argmin(axis=0)
    blocks = np.arange(len(centre))
    ratio = statement.log_ratio[centre].T
    charge = np.zeros(statement.secrets)
    with np.errstate(invalid="ignore"):
        for _ in range(_SWEEPS):
            excess = np.maximum(np.where(np.isfinite(cost), cost, 0.0) - charge[:, None], 0.0)
            value = np.where(np.isfinite(ratio), (1 - _SLACK) * excess * np.exp(-ratio), 0.0)
            value[centre, blocks] = 0.0
            own = np.array(cost)
            own[centre, blocks] += value.sum(axis=0)
            own[value > 0] = np.inf
            charge = own.min(axis=1)
            charge = np.where(np.isfinite(charge), charge, 0.0)
    s, o = np.nonzero(value)
    found = shared_out(statement, PairMultipliers(centre[o], s, o, value[s, o]))
    return Multipliers(tuple(found.get(place) for place in range(len(statement.families))))
