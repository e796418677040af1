"""Sweep files: a problem template and the axes along which it is varied; and tables of known
mechanisms in problem files."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from optmech.errors import ProblemError
from optmech.reading.data import DataFile
from optmech.reading.sections import (
    ByKind,
    ExactNumber,
    FormatNumber,
    NonNegative,
    Positive,
    Section,
    Some,
    either,
    must,
    refusal,
)

PLACE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[0-9]+\]|\.[A-Za-z_][A-Za-z0-9_]*)*")
_MOST_POINTS = 1_000_000


def _not_empty(value: object) -> object:
    if not value:
        raise refusal("is empty", "Give at least one value")
    return value


Place = Annotated[
    Any,
    must(
        lambda value: isinstance(value, str) and PLACE.fullmatch(value) is not None,
        "not a place in a problem",
        "Write it like constraints[0].epsilon",
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{PLACE.pattern}$"}),
]
"""A place in the problem file, like constraints[0].epsilon."""

Values = Annotated[
    Any,
    # the last validator is asked first
    BeforeValidator(_not_empty),
    must(lambda value: isinstance(value, list), "not an array", "Write [...]"),
    WithJsonSchema({"type": "array", "minItems": 1}),
]


class Varied(Section):
    """A place and its values."""

    path: Place
    name: str | None = None

    @property
    def column(self) -> str:
        """The name in the table; that of the place where it is empty."""
        return self.name or ""


class ListAxis(Varied):
    """The values as they are listed."""

    kind: Literal["list"]
    values: Values

    def listed(self, folder: Path) -> Any:
        """The values of the axis, or a table of them by what the sweep's table shows."""
        return self.values


class RangeAxis(Varied):
    """``count`` numbers from ``start`` to ``stop``, both included, evenly or by equal factors."""

    kind: Literal["range"]
    start: float
    stop: float
    count: Annotated[int, Field(ge=1, le=_MOST_POINTS)]
    scale: Literal["linear", "log"] = "linear"

    def refuse_misfits(self) -> None:
        if self.scale == "log" and (self.start <= 0 or self.stop <= 0):
            raise refusal("needs start and stop above 0 for a log scale", 'Use scale = "linear"')
        if self.count > 1 and self.start == self.stop:
            raise refusal("starts where it stops", "Give two ends, or count = 1")
        if self.count == 1 and self.start != self.stop:
            raise refusal("has two ends for one value", "Give count >= 2, or stop = start")

    def listed(self, folder: Path) -> list[float]:
        """The numbers: twelve digits, 0.1, 0.2, 0.3 and not 0.30000000000000004."""
        spaced = np.geomspace if self.scale == "log" else np.linspace
        return [float(f"{value:.12g}") for value in spaced(self.start, self.stop, self.count)]


class PriorsAxis(Varied):
    """One prior per user, from one CSV table of rows (user, visit).

    Visits are points (``x``, ``y``) or secrets (``secret``: labels), of weight one or that of a
    column.
    """

    kind: Literal["priors"]
    file: str
    user: str
    x: str | None = None
    y: str | None = None
    secret: str | None = None
    weight: str | None = None
    users: Some[str] | None = None
    minimum: Annotated[int, Field(ge=1)] = 1
    smoothing: NonNegative = 0.0
    max_distance: NonNegative | None = None
    path: Place = "prior"

    _one_form = either("x y", "secret", remedy="Keep one of the two forms")

    @property
    def column(self) -> str:
        return self.name or self.user

    def listed(self, folder: Path) -> dict[str, dict[str, Any]]:
        """A prior for every user of the table with enough rows, in the order of the file."""
        table, secret = DataFile(self.file), self.secret
        columns = table.text_columns(folder, [self.user, *([] if secret is None else [secret])])
        rows = Counter(columns[self.user])
        chosen = self.users or [user for user, count in rows.items() if count >= self.minimum]
        if not chosen:
            raise ProblemError(
                f"no user has {self.minimum} rows in {self.file}",
                where="minimum",
                remedy="Lower it",
            )
        if unknown := [user for user in chosen if user not in rows]:
            raise ProblemError(
                f"{self.file} has no rows of user {unknown[0]!r}",
                where="users",
                remedy="The names must be written as in the file",
            )
        if secret is None:
            return {user: self._visits(folder, user) for user in chosen}
        weights = np.ones(len(columns[secret]))
        if self.weight is not None:
            weights = table.columns(folder, [self.weight], [self.weight])[self.weight]
        counts = {user: defaultdict[str, float](float) for user in chosen}
        for user, label, weight in zip(
            columns[self.user], columns[secret], weights.tolist(), strict=True
        ):
            if user in counts:
                counts[user][label] += weight
        return {
            user: {"kind": "counts", "counts": dict(own), "smoothing": self.smoothing}
            for user, own in counts.items()
        }

    def _visits(self, folder: Path, user: str) -> dict[str, Any]:
        """A user's rows as a prior of kind "csv"."""
        shared = self.model_dump(
            include={"x", "y", "weight", "smoothing", "max_distance"}, exclude_none=True
        )
        file = str((folder / self.file).absolute())
        return {"kind": "csv", "file": file, "only": {self.user: [user]}, **shared}


Single = Annotated[ListAxis | RangeAxis | PriorsAxis, ByKind()]


class ZipAxis(Section):
    """Axes of equal length that move together."""

    kind: Literal["zip"]
    axes: Annotated[list[Single], Field(min_length=2)]


AnyAxis = Annotated[ListAxis | RangeAxis | PriorsAxis | ZipAxis, ByKind()]


class SweepSection(Section):
    """A whole sweep file."""

    model_config = ConfigDict(title="optmech sweep file")

    format: FormatNumber
    title: str = ""
    description: str = ""
    problem: Annotated[
        Any,
        must(
            lambda value: isinstance(value, str | dict) and bool(value),
            "not a problem",
            "Give a file, a gallery name, or a table",
        ),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
    ]
    profile: str | None = None
    gap: Positive | None = None
    time_limit: Positive | None = None
    chain: Annotated[int, Field(ge=1)] = 10
    axes: Some[AnyAxis]


KnownName = Literal[
    "exponential", "geometric", "planar_geometric", "planar_laplace", "randomized_response",
    "restricted_laplace", "planar_gaussian",
]  # fmt: skip


class Known(Section):
    """A mechanism by its name, with its parameters; with ``dummies`` its report is hidden among so
    many uniform ones, which have an ε at ``delta`` only."""

    name: KnownName
    epsilon: ExactNumber | None = None
    radius: Positive | None = None
    sigma: Positive | None = None
    dummies: Annotated[int, Field(ge=1, le=10_000)] | None = None
    delta: ExactNumber | None = None

    @property
    def called(self) -> str:
        """The name, with what tells it from others."""
        keys = ("epsilon", "radius", "sigma", "dummies", "delta")
        given = {key: getattr(self, key) for key in keys if getattr(self, key) is not None}
        return f"{self.name} ({', '.join(f'{k} = {_words(v)}' for k, v in given.items())})"


class KnownTables(Section):
    """The ``[[mechanisms]]`` of a problem file."""

    mechanisms: list[Known]


def _words(value: Any) -> str:
    return str(getattr(value, "words", f"{value:g}" if isinstance(value, float) else value))
