"""Prior distributions over a domain (PG eq. 1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from optmech.domain import Domain, Floats, finite_array, normalised
from optmech.errors import ProblemError


@dataclass(frozen=True)
class Binning:
    """What became of the observations from which a prior was counted."""

    inside: float
    """Total weight that fell into the domain."""
    outside: float
    """Total weight that did not, and is not part of the prior."""

    def __str__(self) -> str:
        total = self.inside + self.outside
        share = 100 * self.outside / total if total else 0.0
        return (
            f"{self.inside:g} of {total:g} observations counted; "
            f"{self.outside:g} ({share:.1f} %) fall outside the domain"
        )


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior π(s) over a domain: non-negative weights, normalised to sum to one.

    Parameters
    ----------
    domain:
        The secrets, n of them.
    weights:
        Shape (n,), finite, non-negative, with a positive sum; normalised here.
    binning:
        How many observations were counted and how many fell outside, where it was counted.

    Raises
    ------
    ProblemError
        On a wrong shape, a negative or NaN weight, or a zero sum.
    """

    domain: Domain
    weights: Floats
    binning: Binning | None = None

    def __init__(self, domain: Domain, weights: ArrayLike, binning: Binning | None = None) -> None:
        if not isinstance(domain, Domain):
            raise ProblemError(
                f"{type(domain).__name__} is not a Domain",
                where="prior",
                remedy="Make one with om.Domain(labels)",
            )
        array = finite_array(weights, where="prior")
        if array.shape != (len(domain),):
            raise ProblemError(
                f"weights of shape {array.shape} do not fit {len(domain)} secrets",
                where="prior",
                remedy=f"Give {len(domain)} weights",
            )
        negative = np.flatnonzero(array < 0)
        if len(negative):
            raise ProblemError(
                f"weight {array[negative[0]]:g} of {domain.labels[negative[0]]!r} is negative",
                where=f"prior[{negative[0]}]",
                remedy="Weights must be >= 0",
            )
        if array.max() == 0:
            raise ProblemError(
                "the weights sum to 0",
                where="prior",
                remedy="Give at least one positive weight; if it was counted from data, "
                "check that the data fall into the domain",
            )
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "weights", normalised(array))
        object.__setattr__(self, "binning", binning)

    def __len__(self) -> int:
        return len(self.domain)

    @classmethod
    def uniform(cls, domain: Domain) -> Prior:
        """The same weight for every secret."""
        return cls(domain, np.ones(len(domain)))

    @classmethod
    def from_counts(
        cls,
        domain: Domain,
        counts: ArrayLike | Mapping[Hashable, float],
        smoothing: float = 0.0,
    ) -> Prior:
        """Proportional to counts, an array of shape (n,) or a mapping from label to count (a dict,
        a Counter or a pandas Series).

        ``smoothing`` is added to every count (Laplace smoothing). Labels of a mapping that are
        not in the domain are counted as outside and reported in ``binning``.
        """
        binning = None
        if hasattr(counts, "items"):
            array = np.zeros(len(domain))
            outside = 0.0
            known = {label: k for k, label in enumerate(domain.labels)}
            for label, count in counts.items():
                value = float(finite_array(count, where=f"counts[{label!r}]", ndim=0))
                if value < 0:
                    raise ProblemError(f"{value:g} is negative", where=f"counts[{label!r}]")
                if label in known:
                    array[known[label]] += value
                else:
                    outside += value
            binning = Binning(inside=float(array.sum()), outside=outside)
        else:
            array = finite_array(counts, where="counts")
        return cls(domain, array + _smoothing(smoothing), binning)

    @classmethod
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

        Points outside a grid, farther than ``max_distance`` from every domain point, or with a
        missing coordinate are counted in ``binning.outside``.
        """
        found = domain.locate(xy, max_distance)
        heavy = np.ones(len(found)) if weights is None else finite_array(weights, where="weights")
        if heavy.shape != found.shape:
            raise ProblemError(f"{heavy.size} weights for {found.size} points", where="weights")
        if (heavy < 0).any():
            raise ProblemError("a weight is negative", where="weights")
        inside = found >= 0
        counts = np.bincount(found[inside], weights=heavy[inside], minlength=len(domain))
        binning = Binning(inside=float(heavy[inside].sum()), outside=float(heavy[~inside].sum()))
        extra = _smoothing(smoothing)
        if binning.inside == 0 and extra == 0:
            raise ProblemError(
                f"none of the {len(found)} points falls into the domain",
                where="prior",
                remedy="Check units, the order (x, y) or (longitude, latitude), and the bounds",
            )
        return cls(domain, counts + extra, binning)

    @classmethod
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
        coordinates are missing or not numbers are counted as outside.
        """
        from optmech.tables import read_columns

        columns = read_columns(path, [x, y] + ([weight] if weight else []))
        xy = np.column_stack([columns[x], columns[y]])
        heavy = None
        if weight is not None:
            heavy = columns[weight]
            bad = np.flatnonzero(~np.isfinite(heavy))
            if len(bad):
                raise ProblemError(
                    f"data row {bad[0] + 1} has no usable {weight!r}", where=str(path)
                )
        return cls.from_points(domain, xy, heavy, max_distance=max_distance, smoothing=smoothing)

    @property
    def entropy(self) -> float:
        """Shannon entropy in bits."""
        positive = self.weights[self.weights > 0]
        return abs(float((positive * np.log2(positive)).sum()))


def _smoothing(value: float) -> float:
    extra = float(finite_array(value, where="smoothing", ndim=0))
    if extra < 0:
        raise ProblemError(f"{extra:g} is negative", where="smoothing")
    return extra
