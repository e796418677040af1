"""What the constraints and the objective of a problem share: one list of fields is the signature
in Python, the JSON form of design files, and a table of problem files."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import attrs

from optmech.base.shown import SameFields, Shown
from optmech.errors import inside
from optmech.problem.fields import Field, Plain
from optmech.problem.space import Place, Space

if TYPE_CHECKING:
    from optmech.sections.base import Spec


class Record(SameFields, Shown):
    """A frozen attrs class whose fields have converters of ``optmech.problem.fields``.

    The methods follow from the fields; a class whose file form is not its fields overrides them.
    """

    kind: ClassVar[str]
    """The name in files."""

    def plain(self, space: Space) -> dict[str, Plain]:
        """The fields as JSON values, with every distance written out as matrices."""
        return {name: f.plain(getattr(self, name), space) for name, f, _ in _fields(type(self))}

    @classmethod
    def load(cls, plain: Plain, space: Space) -> Self:
        """The inverse of ``plain``; KeyError where a field is missing."""
        return cls(**{name: f.load(plain[name], space) for name, f, _ in _fields(cls)})

    @classmethod
    def table(cls) -> type[Spec]:
        """The pydantic model of the table in problem files. A field with a default is optional
        there, and a default that is a text or a truth value is shown."""
        from pydantic import create_model

        from optmech.sections.base import Spec

        keys: dict[str, Any] = {"kind": (Literal[cls.kind], ...)}
        for name, found, default in _fields(cls):
            key = found.type_of_key()
            if default is attrs.NOTHING:
                keys[name] = (key, ...)
            elif isinstance(default, str | bool):
                keys[name] = (key, default)
            else:
                keys[name] = (key | None, None)
        about = cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        return create_model(cls.__name__, __base__=Spec, __doc__=about, **keys)

    @classmethod
    def build(cls, spec: Any, place: Place) -> Self:
        """The record that a validated table stands for."""
        return cls(**cls.built(spec, place))

    @classmethod
    def built(cls, spec: Any, place: Place) -> dict[str, Any]:
        """The arguments that a validated table stands for; errors name the key."""
        values = {}
        for name, found, _ in _fields(cls):
            given = getattr(spec, name)
            if given is None:
                continue
            with inside(name):
                values[name] = found.build(given, place)
        return values


def _fields(cls: type) -> list[tuple[str, Field, Any]]:
    """Name, field and default of every attribute."""
    return [(a.name, a.metadata["field"], a.default) for a in attrs.fields(cls)]
