"""Rényi privacy: reports of two secrets have a small Rényi divergence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from attrs import field, frozen

from optmech.certificate.families import Approximate, Divergence, LiftedRatio
from optmech.errors import ProblemError
from optmech.exact.number import Exact, Number, parse_exact
from optmech.exact.ratios.powers import MOST, name_of, order_of
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, constraint
from optmech.problem.constraints.distribution import DistributionPrivacy
from optmech.problem.fields import FIELDS, optional_distance
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.mechanism import Mechanism


def as_order(value: Number) -> Exact:
    """A fraction of whole numbers from 1 to 64."""
    order = parse_exact(value, where="", positive=True)
    if order.log_of is not None or (order.factor != 1 and order_of(name_of(order.factor)) is None):
        raise ProblemError(
            f"{value!r} is no fraction of whole numbers up to {MOST}",
            remedy='Give a number such as 2 or 1.5, or "21/10"; for ever larger ones '
            "DifferentialPrivacy is the limit",
        )
    return order


FIELDS[as_order] = FIELDS[fields.number]


@constraint("renyi_privacy")
@frozen(repr=False, field_transformer=fields.placed)
class RenyiPrivacy(Constraint):
    """D_α(p(·|s) ‖ p(·|s')) = ln(Σ_o p(o|s)^α p(o|s')^(1-α)) / (α - 1) <= ε d(s,s') for all s, s',
    in nats (Mironov, *Rényi Differential Privacy*, CSF 2017, Definition 4).

    ``order`` α is 1, where the divergence is that of Kullback and Leibler, or a fraction of whole
    numbers up to 64; ``distance`` is 1 by default, and the smaller of d(s,s') and d(s',s) counts
    where they differ. ε d is at most 10. For pairs of distributions in the place of secrets see
    ``DistributionPrivacy`` with ``divergence="renyi:α"``.
    """

    order: Exact = field(converter=as_order)
    epsilon: Exact = field(converter=fields.number)
    distance: Distance | None = field(default=None, converter=optional_distance)

    @property
    def divergence(self) -> str:
        """Its name among the divergences."""
        order: Fraction = self.order.factor
        return "kl" if order == 1 else name_of(order)

    def _of_points(self, space: Space) -> DistributionPrivacy | None:
        """The same of distributions that are points; None for one secret."""
        count = len(space.secrets)
        unit = np.eye(count)
        i, j = np.triu_indices(count, 1)
        if not len(i):
            return None
        apart = None if self.distance is None else space.apart(self.distance)
        # what is stated holds both ways
        scale = None if apart is None else np.minimum(apart, apart.T)[i, j]
        pairs = list(zip(unit[i], unit[j], strict=True))
        return DistributionPrivacy(self.epsilon, pairs, divergence=self.divergence, scale=scale)

    def families(
        self, index: int, space: Space
    ) -> Iterator[LiftedRatio | Approximate | Divergence]:
        points = self._of_points(space)
        if points is not None:
            yield from points.families(index, space)

    def promise(self, space: Space) -> str:
        per = "" if self.distance is None else f" per {space.per(self.distance)}"
        return f"Rényi divergence of order {self.order.words} at most {self.epsilon.words}{per}"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        points = self._of_points(space)
        if points is None:
            return Kept("divergence", float(self.epsilon), 0.0)
        return points.measured(m, space)

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        return [] if len(space.secrets) > 1 else [("", "there is one secret only")]
