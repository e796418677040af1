"""A bound on the loss: reports stay useful."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field, frozen

from optmech.analysis import measures
from optmech.base.arrays import Floats
from optmech.certificate.families import LossLimit
from optmech.exact.number import Exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, constraint
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.mechanism import Mechanism


@constraint("loss_bound")
@frozen(eq=False, repr=False, field_transformer=fields.placed)
class LossBound(Constraint):
    """Expected loss Σ π(s) p(o|s) c(s,o) <= q, or with ``worst_case`` Σ_o p(o|s) c(s,o) <= q for
    every s (PG 3, 4). ``loss`` is a distance or an S x O array, by default the problem's."""

    limits_loss = True

    maximum: Exact = field(converter=fields.number)
    worst_case: bool = field(default=False, converter=fields.flag, kw_only=True)
    loss: Distance | Floats | None = field(default=None, converter=fields.loss)

    def families(self, index: int, space: Space) -> Iterator[LossLimit]:
        values = space.losses(self.loss)
        weighted = values if self.worst_case else values * space.prior.weights[:, None]
        yield LossLimit(index, weighted, self.maximum, self.worst_case, values)

    def promise(self, space: Space) -> str:
        which = "loss of every secret" if self.worst_case else "expected loss"
        own = "" if self.loss is None else " (its own loss)"
        return f"{which} at most {self.maximum.words}{own}"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        loss = space.losses(self.loss)
        value = (
            measures.worst_loss(m, loss)
            if self.worst_case
            else measures.expected_loss(m, space.prior, loss)
        )
        return Kept("loss", float(self.maximum), value)

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        return []
