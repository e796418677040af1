"""The fields of constraints: each is checked, written to a design file and read from a problem
file in the same way wherever it occurs, and says so here once.

A field is an ``attrs.field`` with one of these converters. A constraint with a field of another
sort adds its converter to ``FIELDS``.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any, NamedTuple

import attrs
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats
from optmech.errors import inside
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


class Field(NamedTuple):
    """How the values of a converter are written and read.

    ``plain`` and ``load`` are the way to a design file, where distances are matrices, and back;
    ``load`` and ``build`` return what the converter takes.
    """

    key: str | Callable[[], Any]
    """The type of the key in problem files, for pydantic: its name among the ``SORTS`` of
    ``optmech.reading.sections``, or a function, called when the first file is read."""
    plain: Callable[[Any, Space], Plain] = lambda value, _: value
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


def placed(cls: type, attributes: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """The ``field_transformer`` of constraints: errors of a converter name the field. Raises
    TypeError where ``FIELDS`` lacks the converter of a field."""
    for a in attributes:
        if a.converter not in FIELDS:
            raise TypeError(f"FIELDS lacks the converter of {cls.__name__}.{a.name}")
    known = [a.evolve(metadata={"field": FIELDS[a.converter]}) for a in attributes]
    return named(cls, known)


def named(_: type, attributes: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """A ``field_transformer``: errors of a converter name the field."""

    def within(name: str, converter: Any) -> Any:
        @wraps(converter)
        def converted(value: Any) -> Any:
            with inside(name):
                return converter(value)

        return converted

    return [a.evolve(converter=within(a.name, a.converter)) for a in attributes]


def number(value: Number) -> Exact:
    """A finite number >= 0, or an exact string such as "ln 3"."""
    return parse_exact(value, where="")


def signed_number(value: Number) -> Exact:
    """A finite number of any sign, or an exact string such as "-1/2"."""
    return parse_signed(value, where="")


def delta(value: Number) -> Exact:
    """A number from 0 to 1."""
    return probability(value, where="")


def limit(value: float | None) -> float | None:
    """A finite number >= 0 as a float, or None."""
    return None if value is None else float_of(value, "")


def flag(value: bool) -> bool:
    """True or false, and nothing that merely counts as one of them."""
    return truth(value, "")


def distance(value: DistanceLike) -> Distance:
    """A member of ``om.distances``, another callable of two domains, or a table of values."""
    return as_distance(value, where="")


def optional_number(value: Number | None) -> Exact | None:
    """A finite number >= 0, an exact string, or None."""
    return None if value is None else number(value)


def optional_distance(value: DistanceLike | None) -> Distance | None:
    """A distance, or None."""
    return None if value is None else distance(value)


def adversary(value: Prior | None) -> Prior | None:
    """A prior over the secrets, or None for the problem's; compared with them later."""
    return value


def loss(value: Distance | ArrayLike | None) -> Distance | Floats | None:
    """A distance or an S x O array, or None for the problem's loss."""
    return None if value is None else as_loss(value, "")


def mesh(value: Mesh | None) -> Mesh | None:
    """A mesh of the region where a promise holds at every point, or None for the secrets alone."""
    return value


def write_distance(value: Distance, space: Space, *, reach: bool = False) -> Plain:
    """A distance as its matrix between secrets, with ``reach`` also that to the observables."""
    values = space.apart(value)
    tables = [(space.secrets, values)]
    out: Plain = {"name": "", "secrets": values.tolist()}
    if reach:
        across = space.reach(value)
        out["observables"] = across.tolist()
        tables.append((space.observables, across))
    out["name"] = space.name_to_write(value, *tables)
    return out


def read_distance(plain: Plain, space: Space) -> Distance:
    """The distance that ``write_distance`` wrote."""
    # the table of secrets comes first: it is the one meant where both domains are equal
    tables = [(space.secrets, space.secrets, plain["secrets"])]
    if "observables" in plain:
        tables.append((space.secrets, space.observables, plain["observables"]))
    return table(str(plain["name"]), tables)


FIELDS |= {
    number: Field("number", lambda value, _: value.text),
    signed_number: Field("signed number", lambda value, _: value.text),
    delta: Field("number", lambda value, _: value.text),
    limit: Field("bound"),
    flag: Field(lambda: bool),
    distance: Field("distance", write_distance, read_distance),
    adversary: Field(
        "prior",
        lambda value, _: value.weights.tolist(),
        lambda plain, space: None if plain is None else Prior(space.secrets, plain),
    ),
    mesh: Field(
        "mesh",
        lambda value, _: value.to_dict(),
        lambda plain, _: Mesh.from_dict(plain, "everywhere"),
    ),
    loss: Field("loss", lambda value, space: space.losses(value).tolist()),
}
FIELDS |= {
    optional_number: FIELDS[number],
    optional_distance: Field(
        "distance",
        write_distance,
        lambda plain, space: None if plain is None else read_distance(plain, space),
    ),
}
