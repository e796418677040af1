"""P[s,o] = 0 wherever an entry is not allowed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optmech.base.read_only import ReadOnly
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Trusted, trusted
from optmech.certificate.lagrangian import Lagrangian
from optmech.certificate.values import Scaled
from optmech.exact.numerators import Numerators
from optmech.statement import Statement


@trusted
@dataclass(frozen=True, eq=False)
class Support(ReadOnly, Trusted):
    """P[s,o] = 0 where not ``allowed`` (S, O).

    The bound keeps it as it is, in its minimum over allowed observables: no multipliers.
    """

    kind = "support"
    index: int
    allowed: NDArray[np.bool_]

    @property
    def written(self) -> str:
        return ""

    def fits(self, statement: Statement) -> dict[str, bool]:
        return {"allowed": fits.mask(self.allowed, statement.loss.shape)}

    def signature(self) -> Hashable:
        return self.kind

    def forced_zeros(self, zero: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return zero | ~self.allowed

    def decide(self, statement: Statement, released: Numerators) -> Check:
        return self.decide_between(statement, released, released)

    def decide_between(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        outside = [high.rows[s][o] for s, o in np.argwhere(~self.allowed).tolist()]
        most = max(outside, default=0)
        worst = most / (1 << high.bits)
        detail = f"largest entry {worst:.3g}" if outside else "constrains nothing"
        return Check("support", self.index, len(outside), most == 0, worst, detail)

    def charge(self, statement: Statement, lagrangian: Lagrangian, given: object) -> None:
        """Nothing: ``Lagrangian.minimum`` runs over allowed observables."""

    def in_words(self, given: object) -> str:
        return "" if self.allowed.all() else "the support"

    def zeros(self, statement: Statement) -> None:
        return None
