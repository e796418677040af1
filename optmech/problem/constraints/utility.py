"""Reports stay useful: a bound on the loss, and on the bias; and which observables may be reported
at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis import measures
from optmech.base.arrays import Floats, finite_array
from optmech.base.labels import refuse_unordered
from optmech.base.read_only import Converted, checked, converted, locked, record
from optmech.certificate import families
from optmech.certificate.families import LossLimit
from optmech.errors import ProblemError
from optmech.exact.number import Exact, Number, parse_exact
from optmech.problem import fields
from optmech.problem.constraint import ForUse, Kept, constraint
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.space import Bools, Place, Space
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.tables import distance_words

if TYPE_CHECKING:
    from optmech.reading.sections import Section


@constraint("loss_bound")
@record
class LossBound(ForUse):
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
    >>> print(round(om.attacks.optimal_attack(design.mechanism, problem.prior, d).error, 6))
    0.2
    """

    limits_loss = True

    maximum: Converted[Number, Exact] = converted(fields.number)
    worst_case: bool = checked(fields.flag, default=False, kw_only=True)
    loss: Converted[Distance | ArrayLike | None, Distance | Floats | None] = converted(
        fields.loss, default=None
    )

    def families(self, index: int, space: Space) -> Iterator[LossLimit]:
        values = space.losses(self.loss)
        weighted = values if self.worst_case else values * space.prior.weights[:, None]
        yield LossLimit(index, weighted, self.maximum, self.worst_case, values)

    def promise(self, space: Space) -> str:
        which = "loss of every secret" if self.worst_case else "expected loss"
        own = "" if self.loss is None else " (its own loss)"
        name = distance_words(self.loss) if callable(self.loss) else ""
        unit = space.unit_of(space.lost_by if self.loss is None else name)
        return f"{which} at most {self.maximum.words}{f' {unit}' if unit else ''}{own}"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        loss = space.losses(self.loss)
        value = (
            measures.worst_loss(m, loss)
            if self.worst_case
            else measures.expected_loss(m, space.prior, loss)
        )
        return Kept("loss", float(self.maximum), value)


def positive(value: Number) -> Exact:
    """A finite number > 0, or an exact string."""
    return parse_exact(value, where="", positive=True)


def as_values(value: ArrayLike) -> Floats:
    """A number for every element, shape (n,), or some, shape (n, k)."""
    found = finite_array(value, where="")
    if found.ndim not in (1, 2) or not found.size:
        raise ProblemError("is not a list of numbers", remedy="Give a number for every element")
    return found


FIELDS[positive] = FIELDS[fields.number]
FIELDS[as_values] = Field("values")


@constraint("bias")
@record
class Bias(ForUse):
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
    ...     constraints=[om.DifferentialPrivacy("ln 3"), om.constraints.Bias(0.001)],
    ... )
    >>> m = om.solve(problem).mechanism
    >>> print((m.matrix @ reports).ravel().round(2))  # right on average
    [0. 1.]
    >>> secret, reported = problem.constraints[1].columns(problem.space)
    >>> print(secret.ravel(), reported.ravel())
    [0. 1.] [-1.  0.  1.  2.]
    """

    limits_loss = True

    maximum: Converted[Number, Exact] = converted(positive)
    values: Converted[ArrayLike | None, Floats | None] = converted(as_values, default=None)
    reported: Converted[ArrayLike | None, Floats | None] = converted(as_values, default=None)

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
        unit = "degrees" if space.secrets.coordinates == "lonlat" else space.secrets.unit
        most = f"{self.maximum.words} {'' if self.values is not None else unit}".rstrip()
        return f"reports are right on average, {of} within {most}, for every secret"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        meant, reported = self.columns(space)
        return Kept("bias", float(self.maximum), float(np.abs(m.matrix @ reported - meant).max()))


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


def booleans(value: ArrayLike) -> Bools:
    """A two-dimensional array of truth values, 0 and 1."""
    refuse_unordered(value, where="")
    problem = ProblemError("is not a two-dimensional array of booleans")
    try:
        array = np.array(value)
    except ValueError:
        raise problem from None
    if (
        np.ma.is_masked(value)
        or array.ndim != 2
        or not (array.dtype == bool or np.isin(array, (0, 1)).all())
    ):
        raise problem
    array = array.astype(bool)
    return locked(array)


FIELDS[booleans] = Field("mask")


@constraint("support")
@record
class Support(ForUse):
    """p(o|s) = 0 outside ``mask``, a boolean S x O array in the order of the labels (Shokri, PETS
    2015, Appendix C; Kawamoto and Murakami, ESORICS 2019, Def. 12).

    ``Support.within(distance, radius)`` allows d(s,o) <= radius instead.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> km = om.distances.euclidean()
    >>> near = om.Support.within(km, radius=1)
    >>> problem = om.Problem(
    ...     om.Prior.uniform(line), km, constraints=[near, om.DistortionPrivacy(0.3, km)]
    ... )
    >>> print(om.solve(problem).mechanism.matrix[0, 2])
    0.0
    """

    limits_loss = True

    mask: Converted[ArrayLike | None, Bools | None] = converted(booleans, default=None)
    _: KW_ONLY
    distance: fields.AnyDistance = converted(fields.distance, default=None)
    radius: float | None = checked(fields.limit, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mask is None and (self.distance is None or self.radius is None):
            raise ProblemError("give a mask, or a distance and a radius", where="support")
        if self.mask is not None and not (self.distance is None and self.radius is None):
            raise ProblemError(
                "a mask and a distance are given", where="support", remedy="Drop one of them"
            )

    @classmethod
    def within(cls, distance: Distance, radius: float) -> Self:
        """Allow p(o|s) > 0 only where d(s,o) <= radius."""
        return cls(distance=fields.distance(distance), radius=radius)

    def plain(self, space: Space) -> dict[str, Plain]:
        """The mask, also of a radius."""
        return {"mask": self._allowed(space).astype(int).tolist()}

    @classmethod
    def load(cls, plain: Plain, space: Space) -> Self:
        """A design file has the mask alone."""
        return cls(plain["mask"])

    @classmethod
    def table(cls) -> type[Section]:
        """The table of all fields, or with the name of a CSV file for the mask; one form only."""
        from optmech.reading.sections import refusal

        def one_form(self: Any) -> Any:
            if (self.distance is None) != (self.radius is None):
                raise refusal("distance and radius go together", "Give both or neither")
            if sum(form is not None for form in (self.mask, self.file, self.radius)) != 1:
                raise refusal(
                    "needs one of mask, file, and distance with radius", "Keep one of the forms"
                )
            return self

        return cls._table(one_form, file=(str | None, None))

    @classmethod
    def build(cls, spec: Any, place: Place) -> Self:
        """The record that a validated table stands for, with the mask of a file read."""
        given = cls.built(spec, place)
        if spec.file is not None:
            rows = place.rows(spec.file)
            if not np.isin(rows, (0, 1)).all():
                raise ProblemError(
                    "has entries other than 0 and 1", where="file", remedy="Use 0 and 1"
                )
            given["mask"] = rows
        return cls(**given)

    def _allowed(self, space: Space) -> Bools:
        if self.mask is not None:
            return self.mask
        assert self.distance is not None
        assert self.radius is not None
        return space.reach(self.distance) <= self.radius

    def families(self, index: int, space: Space) -> Iterator[families.Support]:
        allowed = self._allowed(space)
        if allowed.shape != space.loss.shape:
            s, o = space.loss.shape
            raise ProblemError(
                f"shape {allowed.shape} does not fit {s} secrets x {o} observables", where="mask"
            )
        empty = np.flatnonzero(~allowed.any(axis=1))
        if len(empty):
            raise ProblemError(
                f"leaves {len(empty)} secret(s) without observables, the first "
                f"{space.secrets.labels[empty[0]]!r}",
                where="mask" if self.mask is not None else "radius",
                remedy="Allow at least one observable for every secret",
            )
        yield families.Support(index, allowed)

    def promise(self, space: Space) -> str:
        if self.radius is not None:
            return f"observables within {space.length(self.radius, self.distance)} only"
        return "observables of a given mask only"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        outside = m.matrix[~self._allowed(space)]
        return Kept("outside", 0.0, float(outside.max(initial=0.0)))
