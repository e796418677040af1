"""Gains of guesses about the secret."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from optmech.sections.base import ByKind, Label, Matrix, Spec, either, table_or_name
from optmech.sections.metrics import DistanceSpec


class GainTable(Spec):
    """What every guess gains at every secret: a row for every guess, as ``values`` or in a CSV
    ``file``; guesses of the block of a ``partition``, which names the block of every secret; or
    a ``distance`` between guess and secret, taken as a gain."""

    values: Annotated[Matrix, Field(min_length=1)] | None = None
    file: str | None = None
    partition: list[Label] | None = None
    distance: DistanceSpec | None = None

    _one_form = either("values", "file", "partition", "distance", remedy="Keep one of the forms")


GainSpec = Annotated[Literal["identity"] | GainTable, ByKind(table_or_name)]
GoalSpec = Annotated[Literal["identity", "maximal", "additive"] | GainTable, ByKind(table_or_name)]
