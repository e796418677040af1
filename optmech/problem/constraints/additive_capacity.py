"""Additive capacity: the most that a report adds to any adversary's gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import field, frozen

from optmech.certificate.families import Leakage
from optmech.exact.number import Exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, constraint
from optmech.problem.gains import PRIOR_FREE
from optmech.problem.space import Space
from optmech.spaces.mechanism import Mechanism


@constraint("additive_capacity")
@frozen(repr=False, field_transformer=fields.placed)
class AdditiveCapacity(Constraint):
    """1 - Σ_o min_s p(o|s) <= ``maximum`` (Alvim et al., *The Science of Quantitative Information
    Flow*, 2020, chapter 7; Doeblin's coefficient).

    No adversary with gains from 0 to 1 gains more than ``maximum`` by the report, whatever the
    prior: all rows share the mass 1 - ``maximum``, which says nothing of the secret.
    """

    maximum: Exact = field(converter=fields.delta)

    def families(self, index: int, space: Space) -> Iterator[Leakage]:
        count = len(space.secrets)
        gain = PRIOR_FREE["additive"](count)
        yield Leakage(index, gain, self.maximum, False, gain, np.ones(count))

    def promise(self, space: Space) -> str:
        return f"additive capacity at most {self.maximum.words}, for every prior and gain up to 1"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        value = max(0.0, 1.0 - float(m.matrix.min(axis=0).sum()))
        return Kept("leakage", float(self.maximum), value)

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        if len(space.secrets) == 1:
            return [("", "there is one secret only")]
        return [("", "it never exceeds 1")] if self.maximum >= 1 else []
