"""Which observables may be reported at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike

from optmech.base.labelled import refuse_unordered
from optmech.base.read_only import locked
from optmech.certificate import families
from optmech.errors import ProblemError
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field, Plain, optional_distance
from optmech.problem.space import Bools, Place, Space
from optmech.spaces.distances import Distance
from optmech.spaces.mechanism import Mechanism

if TYPE_CHECKING:
    from optmech.reading.sections import Section


def booleans(value: ArrayLike | None) -> Bools | None:
    """A two-dimensional array of truth values, 0 and 1; or None."""
    if value is None:
        return None
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
@frozen(eq=False, repr=False, field_transformer=fields.placed)
class Support(Constraint):
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

    mask: Bools | None = field(default=None, converter=booleans)
    distance: Distance | None = field(default=None, converter=optional_distance, kw_only=True)
    radius: float | None = field(default=None, converter=fields.limit, kw_only=True)

    def __attrs_post_init__(self) -> None:
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
            return f"observables within {self.radius:g} only"
        return "observables of a given mask only"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        outside = m.matrix[~self._allowed(space)]
        return Kept("outside", 0.0, float(outside.max(initial=0.0)))

    def idle(self, space: Space) -> Remarks:
        return []
