"""Mutual information: what a report tells of the secret on average."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import field, frozen

from optmech.certificate.families import Information, LiftedRatio
from optmech.errors import ProblemError
from optmech.exact.number import Exact
from optmech.exact.ratios.generators import generator
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, constraint
from optmech.problem.constraints.distribution import LEAST_LIMIT
from optmech.problem.fields import ZERO
from optmech.problem.space import Space
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior


@constraint("mutual_information")
@frozen(repr=False, field_transformer=fields.placed)
class MutualInformation(Constraint):
    """I(S; O) = Σ_s π(s) Σ_o p(o|s) ln(p(o|s) / p(o)) <= ``maximum``, in nats (Oya, Troncoso and
    Pérez-González, *Back to the Drawing Board*, CCS 2017, section 4.2; the least loss is the
    distortion-rate function of Shannon, Blahut and Arimoto).

    ``prior`` is the one that π is, by default the problem's. It is an average: a secret that is
    seldom may be given away, so that it is best stated together with a promise for all.
    """

    maximum: Exact = field(converter=fields.number)
    prior: Prior | None = field(default=None, converter=fields.adversary)

    def families(self, index: int, space: Space) -> Iterator[Information | LiftedRatio]:
        weights = space.adversary(self.prior).weights
        if not (self.maximum.factor == 0 or self.maximum.log_of == 1):
            if self.maximum < LEAST_LIMIT:
                raise ProblemError(
                    f"is {float(self.maximum):g}, too small to be told from 0",
                    where="maximum",
                    remedy=f"Give 0, or at least {LEAST_LIMIT:g}",
                )
            yield Information(index, weights, self.maximum)
            return
        # nothing is told: all rows that count are one
        used = np.eye(len(weights))[weights > 0]
        if len(used) > 1:
            first, second = np.repeat(used[:1], len(used) - 1, axis=0), used[1:]
            left, right = np.vstack([first, second]), np.vstack([second, first])
            one = np.ones(len(left))
            yield LiftedRatio(index, left, right, 0 * one, ZERO, one)

    def promise(self, space: Space) -> str:
        of = "" if self.prior is None else ", of another prior"
        return f"mutual information at most {self.maximum.words} nats{of}"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        weights = space.adversary(self.prior).weights
        # no difference of entropies, in which small informations drown
        terms = generator("kl").terms(m.matrix, weights @ m.matrix)
        spent = float(weights @ np.where(weights[:, None] > 0, terms, 0.0).sum(axis=1))
        return Kept("information", float(self.maximum), spent)

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        entropy = space.adversary(self.prior).entropy * math.log(2)
        if self.maximum < entropy:
            return []
        return [("", f"the entropy of the prior is {entropy:.6g} nats")]
