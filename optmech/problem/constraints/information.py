"""Information in reports: Rényi divergences between two secrets, and what is told on average."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from attrs import field, frozen

from optmech.certificate.families import Approximate, Divergence, Information, LiftedRatio
from optmech.errors import ProblemError
from optmech.exact.number import Exact, Number, parse_exact
from optmech.exact.ratios.generators import generator
from optmech.exact.ratios.powers import MOST, name_of, order_of
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.constraints.distribution import LEAST_LIMIT, DistributionPrivacy, equal_laws
from optmech.problem.fields import FIELDS, optional_distance
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior


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

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.RenyiPrivacy(order=2, epsilon=1)
    >>> design = om.solve(
    ...     om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    ... )
    >>> row, other = design.mechanism.matrix
    >>> print(round(om.divergences.renyi(row, other, 2), 4))
    1.0
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
        """The promise as one about distributions that are points; None for one secret."""
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

    def idle(self, space: Space) -> Remarks:
        return [] if len(space.secrets) > 1 else [("", "there is one secret only")]


@constraint("mutual_information")
@frozen(repr=False, field_transformer=fields.placed)
class MutualInformation(Constraint):
    """I(S; O) = Σ_s π(s) Σ_o p(o|s) ln(p(o|s) / p(o)) <= ``maximum``, in nats (Oya, Troncoso and
    Pérez-González, *Back to the Drawing Board*, CCS 2017, section 4.2; the least loss is the
    distortion-rate function of Shannon, Blahut and Arimoto).

    ``prior`` is the one that π is, by default the problem's. It is an average: a secret that is
    seldom may be given away, so that it is best stated together with a promise for all.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin), om.distances.hamming(), constraints=[om.MutualInformation(0.1)]
    ... )
    >>> design = om.solve(problem)
    >>> x = design.loss
    >>> print(round(np.log(2) + x * np.log(x) + (1 - x) * np.log(1 - x), 4))  # Shannon: nats
    0.1
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
            yield equal_laws(index, np.repeat(used[:1], len(used) - 1, axis=0), used[1:])

    def promise(self, space: Space) -> str:
        of = "" if self.prior is None else ", of another prior"
        return f"mutual information at most {self.maximum.words} nats{of}"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        weights = space.adversary(self.prior).weights
        # no difference of entropies, in which small informations drown
        terms = generator("kl").terms(m.matrix, weights @ m.matrix)
        spent = float(weights @ np.where(weights[:, None] > 0, terms, 0.0).sum(axis=1))
        return Kept("information", float(self.maximum), spent)

    def idle(self, space: Space) -> Remarks:
        entropy = space.adversary(self.prior).entropy * math.log(2)
        if self.maximum < entropy:
            return []
        return [("", f"the entropy of the prior is {entropy:.6g} nats")]
