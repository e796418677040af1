"""Maximal leakage: the most that a report multiplies any adversary's chance of a right guess."""

from __future__ import annotations

import math
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


@constraint("maximal_leakage")
@frozen(repr=False, field_transformer=fields.placed)
class MaximalLeakage(Constraint):
    """ln Σ_o max_s p(o|s) <= ``maximum``, in nats (Issa, Wagner and Kamath, *An Operational
    Approach to Information Leakage*, IEEE Trans. Inf. Theory 2020, Theorem 1).

    It bounds, for every prior and whatever function of the secret is guessed, the logarithm of how
    many times likelier a right guess becomes with the report; it is also the largest min-entropy
    leakage of all priors. ``"ln 2"`` is one bit.
    """

    maximum: Exact = field(converter=fields.number)

    def families(self, index: int, space: Space) -> Iterator[Leakage]:
        count = len(space.secrets)
        gain = PRIOR_FREE["maximal"](count)
        yield Leakage(index, gain, self.maximum, True, gain, np.ones(count))

    def promise(self, space: Space) -> str:
        return f"maximal leakage at most {self.maximum.words} nats, for every prior"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        value = math.log(max(1.0, float(m.matrix.max(axis=0).sum())))
        return Kept("leakage", float(self.maximum), value)

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        most = min(space.loss.shape)
        if self.maximum < math.log(most):
            return []
        return [("", f"it never exceeds ln {most}")]
