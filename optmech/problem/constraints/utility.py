"""Reports stay useful: a bound on the loss, and on the bias."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike

from optmech.analysis import measures
from optmech.base.arrays import Floats, finite_array
from optmech.certificate import families
from optmech.certificate.families import LossLimit
from optmech.errors import ProblemError
from optmech.exact.number import Exact, Number, parse_exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism


@constraint("loss_bound")
@frozen(eq=False, repr=False, field_transformer=fields.placed)
class LossBound(Constraint):
    """Expected loss Σ π(s) p(o|s) c(s,o) <= q, or with ``worst_case`` Σ_o p(o|s) c(s,o) <= q for
    every s (Shokri, PETS 2015, eq. 3, 4). ``loss`` is a distance or an S x O array, by default the
    problem's.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> d = om.distances.hamming()
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin),
    ...     d,
    ...     objective=om.MaximizeDistortion(d),
    ...     constraints=[om.LossBound(0.2)],
    ... )
    >>> design = om.solve(problem)
    >>> print(round(om.attacks.optimal(design.mechanism, problem.prior, d).error, 6))
    0.2
    """

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

    def idle(self, space: Space) -> Remarks:
        return []


def positive(value: Number) -> Exact:
    """A finite number > 0, or an exact string."""
    return parse_exact(value, where="", positive=True)


def as_values(value: ArrayLike | None) -> Floats | None:
    """A number for every element, shape (n,), or some, shape (n, k); or None."""
    if value is None:
        return None
    found = finite_array(value, where="")
    if found.ndim not in (1, 2) or not found.size:
        raise ProblemError("is not a list of numbers", remedy="Give a number for every element")
    return found


FIELDS[positive] = FIELDS[fields.number]
FIELDS[as_values] = Field("values", lambda value, _: value.tolist())


@constraint("bias")
@frozen(eq=False, repr=False, field_transformer=fields.placed)
class Bias(Constraint):
    """|Σ_o value(o) p(o|s) - value(s)| <= ``maximum`` for every s, and every coordinate of the
    values (Ghazi et al., *Regression with Label Differential Privacy*, ICLR 2023).

    ``values`` are those of the secrets, shape (S,) or (S, k), and ``reported`` those of the
    observables, by default the same; without either they are the coordinates. ``maximum`` > 0 is in
    the unit of the values: averages of reports err by no more than this in the end.

    Examples
    --------
    >>> line = om.Domain.range(2)
    >>> reports = om.Domain.range(4).points - 1  # -1, 0, 1, 2
    >>> problem = om.Problem(
    ...     om.Prior.uniform(line),
    ...     om.losses.powered(om.distances.euclidean(), 2),
    ...     om.Domain(["-1", "0", "1", "2"], points=reports),
    ...     constraints=[om.DifferentialPrivacy("ln 3"), om.Bias(0.001)],
    ... )
    >>> m = om.solve(problem).mechanism
    >>> print((m.matrix @ reports).ravel().round(2))  # right on average
    [0. 1.]
    >>> secret, reported = problem.constraints[1].columns(problem.space)
    >>> print(secret.ravel(), reported.ravel())
    [0. 1.] [-1.  0.  1.  2.]
    """

    limits_loss = True

    maximum: Exact = field(converter=positive)
    values: Floats | None = field(default=None, converter=as_values)
    reported: Floats | None = field(default=None, converter=as_values)

    def columns(self, space: Space) -> tuple[Floats, Floats]:
        """Values of the secrets (S, k) and of the observables (O, k). Raises ProblemError where
        they do not fit."""
        meant = _of(self.values, space.secrets, "values")
        same = self.values is not None and self.reported is None
        if same and len(space.observables) != len(space.secrets):
            raise ProblemError(
                f"there are {len(space.observables)} observables and {len(space.secrets)} secrets",
                where="reported",
                remedy="Give the values of the observables too",
            )
        reported = meant if same else _of(self.reported, space.observables, "reported")
        if meant.shape[1] != reported.shape[1]:
            raise ProblemError(
                f"{reported.shape[1]} values of an observable and {meant.shape[1]} of a secret",
                where="reported",
                remedy="Give as many for both",
            )
        return meant, reported

    def families(self, index: int, space: Space) -> Iterator[families.Bias]:
        meant, reported = self.columns(space)
        for k in range(meant.shape[1]):
            yield families.Bias(index, reported[:, k], meant[:, k], self.maximum)

    def promise(self, space: Space) -> str:
        of = "the coordinates" if self.values is None else "a value"
        return f"reports are right on average, {of} within {self.maximum.words}, for every secret"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        meant, reported = self.columns(space)
        return Kept("bias", float(self.maximum), float(np.abs(m.matrix @ reported - meant).max()))

    def idle(self, space: Space) -> Remarks:
        return []


def _of(given: Floats | None, domain: Domain, where: str) -> Floats:
    values = domain.points if given is None else given
    if values is None:
        raise ProblemError(
            "there are no coordinates to take", where=where, remedy="Give a number per element"
        )
    values = values[:, None] if values.ndim == 1 else values
    if len(values) != len(domain):
        raise ProblemError(f"{len(values)} values for {len(domain)} elements", where=where)
    return np.asarray(values, dtype=np.float64)
