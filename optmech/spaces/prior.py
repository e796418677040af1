"""Prior distributions over a domain (Shokri, PETS 2015, eq. 1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, coordinate_rows, finite_array, normalised
from optmech.base.labels import few, in_order, label_text, own_labels, refuse_other_rows
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import SameFields, card
from optmech.errors import ProblemError
from optmech.exact.number import float_of
from optmech.spaces.arguments import READERS, checked_arguments, kind
from optmech.spaces.domain import Domain

_FEW = 0.1
"""Of the points that lie elsewhere: so few inside are a sign that something is not as meant."""


@dataclass(frozen=True)
class Binning:
    """What became of the observations from which a prior was counted."""

    inside: float
    """Total weight that fell into the domain."""
    outside: float
    """Total weight that lies elsewhere, and is not part of the prior."""
    missing: float = 0.0
    """Total weight of rows without usable coordinates, not part of the prior either."""

    @property
    def left_out(self) -> float:
        """Total weight that is not part of the prior."""
        return self.outside + self.missing

    def __str__(self) -> str:
        total = self.inside + self.left_out
        parts = [f"{_count(self.inside)} of {_count(total)} observations counted"]
        if self.outside or not self.missing:
            parts.append(f"{_share(self.outside, total)} fall outside the domain")
        if self.missing:
            parts.append(f"{_share(self.missing, total)} have missing coordinates")
        return "; ".join(parts)


@kind("Make one with om.Prior(secrets, weights)")
@record
class Prior(SameFields, ReadOnly):
    """The prior π(s) over a domain: non-negative weights, normalised to sum to one.

    Parameters
    ----------
    domain:
        The secrets, n of them.
    weights:
        Shape (n,), finite, non-negative, with a positive sum; normalised here. An array or a list
        is in the order of the domain; a pandas Series, a mapping or whatever else has labels is
        read by them, and they must be those of the domain, each once.
    binning:
        How many observations were counted and how many were not, where it was counted.

    Raises
    ------
    ProblemError
        On a wrong shape, other labels, a negative or NaN weight, or a zero sum.

    Examples
    --------
    >>> line = om.Domain.range(4)
    >>> prior = om.Prior(line, [1, 1, 1, 1])
    >>> print(prior.weights, prior.entropy)  # bits
    [0.25 0.25 0.25 0.25] 2.0
    >>> visits = om.Prior.from_counts(line, [3, 1, 0, 0])
    >>> print(visits.weights)
    [0.75 0.25 0.   0.  ]
    >>> near = om.Prior.from_points(om.Grid(1, 2), [[0.2, 0.5], [0.7, 0.1], [1.5, 0.5], [7.0, 0.0]])
    >>> print(near.weights.round(4), near.binning.outside)
    [0.6667 0.3333] 1.0
    >>> om.Prior.uniform(line) == prior
    True
    >>> with open("fixes.csv", "w") as file:
    ...     for row in ("lon,lat", "0.2,0.5", "0.7,0.1", "1.5,0.5"):
    ...         print(row, file=file)
    ...
    >>> read = om.Prior.from_csv(om.Grid(1, 2), "fixes.csv", x="lon", y="lat")
    >>> read.weights.round(4).tolist()
    [0.6667, 0.3333]
    """

    _apart = frozenset({"binning"})
    domain: Domain
    weights: Floats
    binning: Binning | None = None

    @checked_arguments
    def __init__(self, domain: Domain, weights: ArrayLike, binning: Binning | None = None) -> None:
        array = finite_array(in_order(weights, domain.labels, where="prior"), where="prior")
        if array.shape != (len(domain),):
            raise ProblemError(
                f"weights of shape {array.shape} do not fit {len(domain)} secrets",
                where="prior",
                remedy=f"Give {len(domain)} weights",
            )
        negative = np.flatnonzero(array < 0)
        if len(negative):
            raise ProblemError(
                "the weight is negative",
                where=f"prior[{negative[0]}]",
                remedy="Weights must be >= 0",
            )
        if array.max() == 0:
            raise ProblemError(
                "the weights sum to 0",
                where="prior",
                remedy="Give at least one positive weight",
            )
        vars(self).update(domain=domain, weights=normalised(array), binning=binning)

    def __len__(self) -> int:
        return len(self.domain)

    def __repr__(self) -> str:
        counted = "" if self.binning is None else f"; {self.binning}"
        return (
            f"Prior(over {self.domain!r}; {np.count_nonzero(self.weights)} of positive weight, "
            f"entropy {self.entropy:.4g} bits{counted})"
        )

    def _repr_html_(self) -> str:
        heaviest = int(self.weights.argmax())
        facts: list[tuple[str, object]] = [
            ("over", repr(self.domain)),
            ("positive", f"{np.count_nonzero(self.weights)} of {len(self)}"),
            ("entropy", f"{self.entropy:.4g} bits"),
            ("heaviest", f"{self.domain.labels[heaviest]!r}: {self.weights[heaviest]:.4g}"),
        ]
        if self.binning is not None:
            facts.append(("counted", self.binning))
        return card("Prior", facts)

    @classmethod
    @checked_arguments
    def uniform(cls, domain: Domain) -> Prior:
        """A prior of one weight for every secret."""
        return cls(domain, np.ones(len(domain)))

    @classmethod
    @checked_arguments
    def from_counts(
        cls,
        domain: Domain,
        counts: ArrayLike | Mapping[Hashable, float],
        smoothing: float = 0.0,
    ) -> Prior:
        """Proportional to counts, an array of shape (n,) or a mapping from label to count (a dict,
        a Counter or a pandas Series, whose index are the labels, as they are or as text).

        ``smoothing`` is added to every count (Laplace smoothing). Labels of a mapping that are
        not in the domain are counted as outside and reported in ``binning``; labels that it leaves
        out count 0.

        Raises
        ------
        ProblemError
            As ``Prior``; and when no counted label is in the domain, or the index of a Series
            numbers its rows and not the secrets.
        """
        extra = float_of(smoothing, "smoothing")
        labels = own_labels(counts)
        if labels is not None:
            items = _labelled_counts(counts, labels, domain)
        elif isinstance(counts, Mapping):
            items = list(counts.items())
        else:
            return cls(domain, finite_array(counts, where="counts") + extra)
        array, outside = _by_label(domain, items)
        binning = Binning(inside=float(array.sum()), outside=outside)
        if binning.inside == 0 and outside > 0 and extra == 0:
            raise ProblemError(
                "none of the counted labels is a secret: counted are "
                f"{few(label for label, _ in items)}, and the secrets are {few(domain.labels)}",
                where="counts",
                remedy="Count by label, or give an array in the order of the secrets",
            )
        return cls(domain, array + extra, binning)

    @classmethod
    @checked_arguments
    def from_points(
        cls,
        domain: Domain,
        xy: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        max_distance: float | None = None,
        smoothing: float = 0.0,
    ) -> Prior:
        """Count points, shape (m, 2), into the cells of a grid or to the nearest domain point.

        Points outside a grid or farther than ``max_distance`` from every domain point are counted
        in ``binning.outside``, those with a missing coordinate in ``binning.missing``.
        """
        refuse_other_rows(xy, weights, where="weights")
        xy = domain.coordinates_of(xy)
        found = domain.located(xy, max_distance)
        heavy = np.ones(len(found))
        if weights is not None:
            heavy = finite_array(weights, where="weights", observations=True)
        if heavy.shape != found.shape:
            raise ProblemError(f"{heavy.size} weights for {found.size} points", where="weights")
        if (heavy < 0).any():
            raise ProblemError("a weight is negative", where="weights")
        inside = found >= 0
        counts = np.bincount(found[inside], weights=heavy[inside], minlength=len(domain))
        width = domain.require_points("locate points").shape[1]
        lacking = np.isnan(coordinate_rows(xy, width)).any(axis=1)
        binning = Binning(
            inside=float(heavy[inside].sum()),
            outside=float(heavy[~inside & ~lacking].sum()),
            missing=float(heavy[lacking].sum()),
        )
        if binning.inside < _FEW * binning.outside and _are_exchanged(domain, xy, max_distance):
            raise ProblemError(
                f"{binning}: once their two coordinates change places, nearly all lie in it",
                where="prior",
                remedy="Give x, the longitude, first and y, the latitude, second; bounds are west, "
                "south, east, north",
            )
        extra = float_of(smoothing, "smoothing")
        if binning.inside == 0 and extra == 0:
            without = f"; {int(lacking.sum())} have no coordinates" if lacking.any() else ""
            raise ProblemError(
                f"none of the {len(found)} points falls into the domain{without}",
                where="prior",
                remedy="Check units, the order (x, y) or (longitude, latitude), and the bounds",
            )
        return cls(domain, counts + extra, binning)

    @classmethod
    @checked_arguments
    def from_csv(
        cls,
        domain: Domain,
        path: str | Path,
        *,
        x: str,
        y: str,
        weight: str | None = None,
        max_distance: float | None = None,
        smoothing: float = 0.0,
    ) -> Prior:
        """Count the rows of a CSV file with a header; ``x``, ``y``, ``weight`` name its columns.

        For geographic domains ``x`` is the longitude and ``y`` the latitude. Rows whose
        coordinates are empty or not numbers are counted as missing.
        """
        from optmech.reading.columns import read_columns

        columns = read_columns(path, [x, y] + ([weight] if weight else []))
        xy = np.column_stack([columns[x], columns[y]])
        heavy = None
        if weight is not None:
            heavy = columns[weight]
            bad = np.flatnonzero(~np.isfinite(heavy))
            if len(bad):
                raise ProblemError(f"data row {bad[0] + 1} has no usable {weight!r}", where=path)
        return cls.from_points(domain, xy, heavy, max_distance=max_distance, smoothing=smoothing)

    @property
    def entropy(self) -> float:
        """Shannon entropy in bits."""
        positive = self.weights[self.weights > 0]
        return abs(float((positive * np.log2(positive)).sum()))


def _of_weights(value: Any, domain: Domain | None, where: str) -> Prior:
    """A prior of weights: over ``domain``, or what they are labelled by, or 0, 1, ..."""
    if domain is None:
        labels = list(value) if isinstance(value, Mapping) else (own_labels(value) or (None,))[0]
        count = np.size(value) if labels is None else len(labels)
        if not count:
            raise ProblemError("has no weights", where=where, remedy="Give one for every secret")
        domain = Domain.range(count) if labels is None else Domain(labels)
    return Prior(domain, value)


READERS["Prior"] = _of_weights

Distribution = Prior | ArrayLike
"""What a distribution is given as: a prior, or weights in the order of its domain."""


def weights_of(value: Distribution) -> ArrayLike:
    """The weights of a prior; anything else as it is, unchecked."""
    return value.weights if isinstance(value, Prior) else value


def domain_of(value: Distribution) -> Domain | None:
    """The domain of a prior; None for plain weights."""
    return value.domain if isinstance(value, Prior) else None


def _labelled_counts(
    counts: Any, labels: tuple[list[Hashable] | None, ...], domain: Domain
) -> list[tuple[Hashable, Any]]:
    """Label and count of every entry of a pandas or xarray vector."""
    if len(labels) != 1:
        columns = "" if labels[1] is None else f": its columns are {few(labels[1])}"
        raise ProblemError(
            f"is a table, and one column is needed{columns}",
            where="counts",
            remedy='Choose one, such as frame["visits"]',
        )
    numbered = list(domain.labels) == list(range(len(domain)))
    mine = list(range(len(counts))) if labels[0] is None else labels[0]
    if numbered and len(mine) == len(domain) and not set(mine) <= set(domain.labels):
        raise ProblemError(
            f"has {len(mine)} entries for {len(domain)} secrets, and its index ({few(mine)}) is "
            "not theirs (0, 1, ...)",
            where="counts",
            remedy="Give .to_numpy() to take the counts by position, or .to_dict() to go by index",
        )
    return list(zip(mine, counts.to_numpy().tolist(), strict=True))


def _are_exchanged(domain: Domain, xy: ArrayLike, max_distance: float | None) -> bool:
    """Whether nearly all points lie in the domain once their two coordinates change places."""
    if domain.require_points("locate points").shape[1] != 2:
        return False
    points = coordinate_rows(xy, 2)
    return bool((domain.located(points[:, ::-1], max_distance) >= 0).mean() > 1 - _FEW)


def _by_label(domain: Domain, counts: Iterable[tuple[Hashable, Any]]) -> tuple[Floats, float]:
    """Counts in the order of the domain, and the total of labels that it does not have."""
    array = np.zeros(len(domain))
    outside = 0.0
    known: dict[Hashable, int] = {label_text(label): k for k, label in enumerate(domain.labels)}
    known |= domain._index
    for label, count in counts:
        value = float(finite_array(count, where=f"counts[{label!r}]", ndim=0))
        if value < 0:
            raise ProblemError("is negative", where=f"counts[{label!r}]")
        if label in known:
            array[known[label]] += value
        else:
            outside += value
    return array, outside


def _share(part: float, total: float) -> str:
    return f"{_count(part)} ({100 * part / total if total else 0.0:.1f} %)"


def _count(weight: float) -> str:
    """Weights of a file are its user's: those that are no counts are not shown in full."""
    return f"{weight:.10g}" if float(weight).is_integer() else f"{weight:.4g}"
