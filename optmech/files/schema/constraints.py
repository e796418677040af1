"""``objective`` and ``[[constraints]]``: the tables of all kinds that are registered."""

from __future__ import annotations

from copy import copy
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Tag, create_model

from optmech.problem import Constraint, MaximizeDistortion, MinimizeLeakage
from optmech.problem.constraint import kinds
from optmech.sections.base import ByKind, Spec, kind_of

_DISTORTION: Any = MaximizeDistortion.table()
_LEAKAGE: Any = MinimizeLeakage.table()
ObjectiveSpec = Annotated[Literal["expected_loss", "worst_loss"] | _DISTORTION | _LEAKAGE, ByKind()]


S = TypeVar("S", bound=Spec)


def with_constraints(model: type[S], *, gaps: bool = False, **others: type[Spec]) -> type[S]:
    """A model of files whose ``constraints`` are of the kinds that are registered now, or of
    ``others``; with ``gaps``, a reader may put None in the place of a wrong one."""
    made: type[S] = _with_kinds(model, gaps, tuple(kinds().items()), tuple(others.items()))
    return made


@cache
def _with_kinds(model: Any, gaps: bool, stated: Any, others: Any) -> Any:
    tables = {name: _table(cls) for name, cls in stated} | dict(others)
    tagged = [Annotated[table, Tag(f"kind={name}")] for name, table in tables.items()]
    item: Any = Annotated[reduce(or_, tagged), Discriminator(kind_of)]
    items: Any = list[item | None if gaps else item]  # type: ignore[misc]
    constraints: Any = (items, copy(model.model_fields["constraints"]))
    return create_model(
        model.__name__, __base__=model, __doc__=model.__doc__, constraints=constraints
    )


@cache
def _table(cls: type[Constraint]) -> Any:
    """The table of a kind, made once: all models have the same."""
    return cls.table()
