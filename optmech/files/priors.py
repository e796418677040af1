"""``[prior]``, and the adversary's priors of constraints, as sections of files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, described, inside, moved
from optmech.files.domains import DataFileKeys
from optmech.files.networks import Seeded
from optmech.files.place import Listed, Place
from optmech.reading.sections import (
    SORTS,
    TAG,
    ByKind,
    NonNegative,
    Positive,
    Section,
    Some,
    bare,
    is_number,
    kind_of,
    refusal,
)
from optmech.spaces.distances import euclidean, haversine
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_index
from optmech.spaces.prior import Binning, Prior

_WEIGHTS_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1},
        {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
    ]
}


def _weights(value: object) -> Any:
    if not isinstance(value, list | dict):
        raise refusal("is neither an array nor a table", "Give [1, 2, ...] or {label = 1, ...}")
    items: list[tuple[Any, Any]] = list(
        value.items() if isinstance(value, dict) else enumerate(value)
    )
    if not items:
        raise refusal("is empty", "Give a weight for every secret")
    bad = [(key, x) for key, x in items if not (is_number(x) and 0 <= x < float("inf"))]
    if bad:
        key, weight = bad[0]
        others = f" (nor are {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise refusal(
            f"{described(weight)} is not a weight{others}", "Give finite numbers >= 0", (key,)
        )
    if not any(weight > 0 for _, weight in items):
        raise refusal("the weights sum to 0", "Give at least one positive weight")
    return value


Weights = Annotated[Any, BeforeValidator(_weights), WithJsonSchema(_WEIGHTS_SCHEMA)]
"""An array in the order of the secrets, or a table from label to weight."""


Texts = dict[str, Some[str]]
"""Texts by column."""


class Recipe(Section):
    """What makes a prior."""

    def build(self, place: Place) -> Prior:
        """The prior over the secrets; errors are placed inside the table."""
        raise NotImplementedError

    def distribution(self, place: Place) -> Floats:
        """The prior's weights, for what may also be a bare list of them."""
        return self.build(place).weights


class Uniform(Recipe):
    """A prior of one weight for every secret."""

    kind: Literal["uniform"]

    def build(self, place: Place) -> Prior:
        return Prior.uniform(place.secrets)


class ListedWeights(Recipe):
    """A weight for every listed point."""

    def of_rows(self, listed: Listed, directory: Path) -> tuple[Floats, Binning | None]:
        """The weights by secret, and what became of observations that were counted."""
        raise NotImplementedError

    def build(self, place: Place) -> Prior:
        found, binning = self.of_rows(place.listed, place.directory)
        return _prior(place, place.per_secret(found) + getattr(self, "smoothing", 0.0), binning)


class Given(ListedWeights):
    """Weights; labels of a table that are no secrets are refused."""

    kind: Literal["weights"]
    weights: Weights

    def of_rows(self, listed: Listed, directory: Path) -> tuple[Floats, None]:
        return _by_row(self.weights, listed, "weights")[0], None


class Counts(ListedWeights):
    """Counted observations; labels that are no secrets are counted as outside and reported.
    Without ``counts``, the rows (points) that every secret stands for."""

    kind: Literal["counts"]
    counts: Weights | None = None
    smoothing: NonNegative = 0.0

    def of_rows(self, listed: Listed, directory: Path) -> tuple[Floats, Binning | None]:
        if self.counts is not None:
            found, beyond = _by_row(self.counts, listed, "counts")
            by_label = isinstance(self.counts, dict)
            return found, Binning(float(found.sum()), beyond) if by_label else None
        if listed.rows is None:
            raise ProblemError(
                "there are no rows to count",
                where="counts",
                remedy='Give counts, or use secrets of kind = "table", "points" or "lonlat"',
            )
        found = listed.by_secret(np.ones(listed.count))
        if listed.outside is None:
            return found, None
        outside, missing = float(listed.outside), float(listed.missing)
        return found, Binning(float(found.sum()), outside, missing)


class Observations(DataFileKeys, Recipe):
    """Rows of a CSV file (check-ins, trips, ...) counted into the secrets."""

    kind: Literal["csv"]
    x: str
    y: str
    weight: str | None = None
    only: Texts = Field(default_factory=dict)
    without: Texts = Field(default_factory=dict)
    smoothing: NonNegative = 0.0
    max_distance: NonNegative | None = None

    def build(self, place: Place) -> Prior:
        weight = [] if self.weight is None else [self.weight]
        columns = self.source.columns(place.directory, [self.x, self.y, *weight], weight)
        kept = self._selected(place.directory, len(columns[self.x]))
        with moved(_below_prior):
            return Prior.from_points(
                place.secrets,
                np.column_stack([columns[self.x], columns[self.y]])[kept],
                None if self.weight is None else columns[self.weight][kept],
                max_distance=self.max_distance,
                smoothing=self.smoothing,
            )

    def _selected(self, directory: Path, count: int) -> Any:
        """The rows whose texts are among those of ``only`` and not among those of ``without``."""
        kept = np.ones(count, dtype=bool)
        if not self.only and not self.without:
            return kept
        texts = self.source.text_columns(directory, sorted({*self.only, *self.without}))
        for chosen, wanted in ((self.only, True), (self.without, False)):
            for name, values in chosen.items():
                kept &= np.isin(texts[name], values) == wanted
        if not kept.any():
            raise ProblemError(
                f"{self.source.name}: no row is left",
                where="only" if self.only else "without",
                remedy="The texts must be written as in the file",
            )
        return kept


class Column(ListedWeights):
    """A column of the table that the secrets come from."""

    kind: Literal["column"]
    column: str
    smoothing: NonNegative = 0.0

    def of_rows(self, listed: Listed, directory: Path) -> tuple[Floats, None]:
        if listed.table is None:
            raise ProblemError(
                "there is no table to take a column from",
                where="column",
                remedy='Use secrets of kind = "table", or a prior of kind = "weights"',
            )
        weights = listed.table.columns(directory, [self.column], [self.column])[self.column]
        negative = np.flatnonzero(weights < 0)
        if len(negative):
            raise ProblemError(
                f"{listed.table.name}: data row {negative[0] + 1} has a negative weight",
                where="column",
                remedy="Weights must be >= 0",
            )
        return listed.by_secret(weights), None


class Visits(Seeded, Recipe):
    """Made-up but realistic visit counts around hotspots of Zipf-like popularity."""

    kind: Literal["visits"]
    visits: Annotated[int, Field(ge=1, le=10**12)] = 10_000
    hotspots: Annotated[int, Field(ge=1, le=10_000)] = 8
    exponent: NonNegative = 1.0
    reach: Positive = 1.0
    background: Annotated[float, Field(ge=0, le=1)] = 0.05
    noise: Annotated[float, Field(ge=0, le=10)] = 0.5
    empty: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def build(self, place: Place) -> Prior:
        return _prior(place, self.counts(place.secrets))

    def counts(self, domain: Domain) -> Floats:
        """Whole visit counts, shape (n,), around hotspots of popularity 1/rank^exponent.

        Attraction decays exponentially with the distance to a hotspot, by e within ``reach``. A
        share ``background`` is spread evenly, log-normal ``noise`` is laid over all, and the least
        visited fraction ``empty`` of the domain gets nothing.
        """
        from scipy.special import ndtri

        size, hotspots, background = len(domain), self.hotspots, self.background
        starts, middle, rest = np.split(
            self.uniforms(hotspots + 2 * size), [hotspots, hotspots + size]
        )
        points = domain.require_points("spread visits around hotspots")
        centres = points[(starts * size).astype(np.int64)]
        places = Domain(range(hotspots), centres, domain.unit, coordinates=domain.coordinates)
        distance = haversine() if domain.coordinates == "lonlat" else euclidean()
        popularity = np.arange(1, hotspots + 1, dtype=np.float64) ** -self.exponent
        attraction = np.exp(-distance(domain, places) / self.reach) @ popularity
        share = _normal(attraction) * (1 - background) + background / size
        share = _normal(share * np.exp(self.noise * ndtri(middle)))
        counts = np.floor(self.visits * share + rest)
        counts[np.argsort(share, kind="stable")[: int(self.empty * size)]] = 0.0
        return counts


def _normal(values: Floats) -> Floats:
    total = float(values.sum())
    if not (np.isfinite(total) and total > 0):
        raise ProblemError(
            "the visits vanish everywhere",
            remedy="Give a larger reach, or some background",
        )
    return values / total


class Dirichlet(Seeded, Recipe):
    """A random distribution: a symmetric Dirichlet one."""

    kind: Literal["dirichlet"]
    concentration: Annotated[float, Field(gt=0, le=1e6)] = 1.0

    def build(self, place: Place) -> Prior:
        return _prior(place, self.weights(len(place.secrets)))

    def weights(self, size: int) -> Floats:
        """Gamma distributed numbers, shape (size,), whose shares are Dirichlet distributed."""
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self.concentration, self.uniforms(size)))


_Name: Any = bare(Literal["uniform"], lambda name: Uniform(kind="uniform"))
_Kinds: Any = _Name | Uniform | Given | Counts | Observations | Column | Visits | Dirichlet

PriorSection = Annotated[_Kinds, ByKind()]


@dataclass(frozen=True)
class BareWeights:
    """Weights that stand where a prior could."""

    given: Any

    def distribution(self, place: Place) -> Floats:
        """In the order of the secrets, as they are written."""
        given, count = self.given, len(place.secrets)
        if isinstance(given, dict):
            return _by_label(given, place.secrets, strict=True)[0]
        if len(given) != count:
            raise ProblemError(
                f"has {len(given)} entries for {count} secrets",
                remedy=f"Give {count}, or a table from label to weight",
            )
        return np.array(given, dtype=np.float64)


def _weights_or_prior(value: object) -> str | None:
    given = isinstance(value, str) or (
        isinstance(value, dict) and isinstance(value.get("kind"), str)
    )
    return kind_of(value) if given or isinstance(value, Section) else f"{TAG}table"


_Bare = Annotated[Weights, AfterValidator(BareWeights)]
Distribution = Annotated[_Bare | _Kinds, ByKind(_weights_or_prior)]
"""Bare weights (an array, or a table from label to weight), or anything that makes a prior."""
_Pair = Annotated[list[Distribution], Field(min_length=2, max_length=2)]
SORTS |= {
    "prior": PriorSection,
    "distribution": Distribution,
    "pairs": Annotated[list[_Pair], Field(min_length=1)],
    "mixtures": Annotated[list[Distribution], Field(min_length=1)],
}


def _by_row(given: Any, listed: Listed, key: str) -> tuple[Floats, float]:
    """Weights by secret, of a list or table that stands under a ``key``, and those of labels that
    are no secrets where these are counted."""
    if isinstance(given, Mapping):
        with inside(key):
            return _by_label(given, listed.domain, strict=key == "weights")
    if len(given) != listed.count:
        kind = "secrets" if listed.count == len(listed.domain) else "points"
        raise ProblemError(
            f"has {len(given)} entries for {listed.count} {kind}",
            where=key,
            remedy=f"Give {listed.count}",
        )
    return listed.by_secret(np.array(given, dtype=np.float64)), 0.0


def _by_label(given: Mapping[str, float], domain: Domain, *, strict: bool) -> tuple[Floats, float]:
    """Weights in the order of the domain, and of labels that it does not have, or an error."""
    weights = np.zeros(len(domain))
    outside = 0.0
    for label, weight in given.items():
        try:
            weights[find_index(domain, label)] += weight
        except ProblemError:
            if strict:
                raise
            outside += weight
    return weights, outside


def _prior(place: Place, weights: Floats, binning: Binning | None = None) -> Prior:
    with moved(_below_prior):
        return Prior(place.secrets, weights, binning)


def _below_prior(where: str) -> str:
    """A place relative to the table that describes the prior."""
    return where.removeprefix("prior").removeprefix(".")
