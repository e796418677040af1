"""The fields of constraints: each is checked, written to a design file and read from a problem
file in the same way wherever it occurs, and says so here once.

A field is made by ``converted`` or ``checked`` with one of these converters. A constraint with a
field of another sort adds its converter to ``FIELDS``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats
from optmech.base.read_only import Converted
from optmech.exact.arguments import probability, truth
from optmech.exact.number import Exact, Number, float_of, parse_exact, parse_signed
from optmech.problem.space import Place, Space
from optmech.spaces.distances import Distance, DistanceLike, as_distance
from optmech.spaces.losses import as_loss
from optmech.spaces.mesh import Mesh
from optmech.spaces.prior import Prior
from optmech.spaces.tables import table

Plain = Any
"""What JSON can hold."""
ZERO = Exact(Fraction(0))


def built(spec: Any, place: Place) -> Any:
    """What a validated value stands for: what a section builds, and else the value itself."""
    return spec.build(place) if hasattr(spec, "build") else spec


def written(value: Any, space: Space) -> Plain:
    """Numbers as they were stated, arrays and tuples as lists, priors as their weights."""
    match value:
        case Exact():
            return value.text
        case np.ndarray():
            return value.tolist()
        case list() | tuple():
            return [written(one, space) for one in value]
        case Prior():
            return value.weights.tolist()
    return value


class Field(NamedTuple):
    """How the values of a converter are written and read.

    ``plain`` and ``load`` are the way to a design file, where distances are matrices, and back;
    ``load`` and ``build`` return what the converter takes.
    """

    key: str | Callable[[], Any]
    """The type of the key in problem files, for pydantic: its name among the ``SORTS`` of
    ``optmech.reading.sections``, or a function, called when the first file is read."""
    plain: Callable[[Any, Space], Plain] = written
    load: Callable[[Plain, Space], Any] = lambda plain, _: plain
    build: Callable[[Any, Place], Any] = built
    """From a value of the key's type."""

    def type_of_key(self) -> Any:
        """What ``key`` says, imported."""
        if not isinstance(self.key, str):
            return self.key()
        from optmech.reading.sections import SORTS

        return SORTS[self.key]


FIELDS: dict[Any, Field] = {}
"""The fields by the converter of their values."""


def number(value: Number) -> Exact:
    """A finite number >= 0, or an exact string such as "ln 3"."""
    return parse_exact(value, where="")


def signed_number(value: Number) -> Exact:
    """A finite number of any sign, or an exact string such as "-1/2"."""
    return parse_signed(value, where="")


def delta(value: Number) -> Exact:
    """A number from 0 to 1."""
    return probability(value, where="")


def limit(value: float) -> float:
    """A finite number >= 0 as a float."""
    return float_of(value, "")


def flag(value: bool) -> bool:
    """True or false, and nothing that merely counts as one of them."""
    return truth(value, "")


def distance(value: DistanceLike) -> Distance:
    """A member of ``om.distances``, another callable of two domains, or a table of values."""
    return as_distance(value, where="")


AnyDistance = Converted[DistanceLike | None, Distance | None]
"""A distance, or none."""


def adversary(value: Prior) -> Prior:
    """A prior over the secrets, with which it is compared later."""
    return value


def loss(value: Distance | ArrayLike) -> Distance | Floats:
    """A distance or an S x O array."""
    return as_loss(value, "")


def mesh(value: Mesh) -> Mesh:
    """A mesh of the region where a promise holds at every point."""
    return value


def write_distance(value: Distance, space: Space, *, reach: bool = False) -> Plain:
    """A distance as its matrix between secrets, with ``reach`` also that to the observables; where
    it is infinite there is null."""
    tables = [(space.secrets, space.apart(value, infinite=True))]
    out: Plain = {"name": "", "secrets": None}
    absent: Any = None
    if reach:
        tables.append((space.observables, space.reach(value)))
    for key, (_, values) in zip(("secrets", "observables"), tables, strict=False):
        finite = np.isfinite(values)
        out[key] = (values if finite.all() else np.where(finite, values, absent)).tolist()
    out["name"] = space.name_to_write(value, *tables)
    return out


def read_distance(plain: Plain, space: Space) -> Distance:
    """The distance that ``write_distance`` wrote."""
    # the table of secrets comes first: it is the one meant where both domains are equal
    tables = [(space.secrets, space.secrets, _finite(plain["secrets"]))]
    if "observables" in plain:
        tables.append((space.secrets, space.observables, _finite(plain["observables"])))
    return table(str(plain["name"]), tables)


def _finite(rows: Plain) -> Plain:
    return [[math.inf if v is None else v for v in row] if None in row else row for row in rows]


FIELDS |= {
    number: Field("number"),
    signed_number: Field("signed number"),
    delta: Field("number"),
    limit: Field("bound"),
    flag: Field(lambda: bool),
    distance: Field("distance", write_distance, read_distance),
    adversary: Field("prior", load=lambda plain, space: Prior(space.secrets, plain)),
    mesh: Field(
        "mesh",
        lambda value, _: value.to_dict(),
        lambda plain, _: Mesh.from_dict(plain, "everywhere"),
    ),
    loss: Field("loss", lambda value, space: space.losses(value).tolist()),
}
