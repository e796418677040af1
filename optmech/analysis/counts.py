"""How often each report came, in the forms that people have it in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.labels import coordinate_names, few, own_labels
from optmech.base.numerals import float_of_text
from optmech.errors import ProblemError, moved
from optmech.reading.tables import Table, opened_table
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_index

Counts = ArrayLike | Mapping[Hashable, float]
"""An array in the order of the observables, or a mapping (a dict, a Counter, a pandas Series) from
label to count; labels that it leaves out count 0."""

_LABELS = ("observable", "report")
"""What the column with the labels of reports is called."""
_ROWS = 50_000
_WRITTEN = 1e-3
"""Of the distance between two observables, by which the coordinates of one may differ from it."""


def counts_of(counts: Counts, observables: Domain) -> Floats:
    """The counts in the order of the observables, finite and >= 0 with a positive sum.

    Raises
    ------
    ProblemError
        On a wrong shape, a label that is no observable, a negative count, or no report at all.
    """
    mapping: Any = counts
    labels = own_labels(counts)
    if labels is not None:
        if len(labels) != 1:
            raise ProblemError(
                "is a table, and one column is needed", where="counts", remedy="Choose a column"
            )
        if labels[0] is not None:
            mapping = dict(zip(labels[0], mapping.to_numpy().tolist(), strict=True))
    if isinstance(mapping, Mapping):
        values = np.zeros(len(observables))
        for label, count in mapping.items():
            try:
                k = find_index(observables, label)
            except ProblemError as error:
                raise ProblemError(
                    f"{label!r} is no observable: those are {few(observables.labels)}",
                    where="counts",
                    remedy="Count the labels that the mechanism reports",
                ) from error
            values[k] += float(finite_array(count, where=f"counts[{label!r}]", ndim=0))
    else:
        values = np.array(finite_array(counts, where="counts"))  # type: ignore[arg-type]
    if values.shape != (len(observables),):
        raise ProblemError(
            f"shape {values.shape} does not fit {len(observables)} observables",
            where="counts",
            remedy="Give a count for every observable, or a mapping from label to count",
        )
    if (values < 0).any():
        raise ProblemError(
            f"{values.min():g} is negative", where="counts", remedy="Counts are >= 0"
        )
    if not values.any():
        raise ProblemError("there is no report", where="counts", remedy="Give a positive count")
    return values


def read_counts(path: str | Path, observables: Domain, report: str | None = None) -> Floats:
    """How often each report stands in a table.

    A CSV file has the columns ``observable`` and ``count``. Any table that ``optmech protect``
    writes has a row for every report: the label in the column ``report`` (by default the one that
    is called observable or report), or else the coordinates of the observable.
    """
    with opened_table(path, _ROWS) as table:
        known = [str(name) for name in table.known]
        label = report or next((own for own in _LABELS if own in known), None)
        if label is None and observables.points is not None:
            pair = coordinate_names(known, observables.coordinates == "lonlat")
            if pair is not None and observables.points.shape[1] == 2:
                return _counts_of_places(table, pair, observables, path)
        counted = report is None and label == "observable" and "count" in known
        found = np.zeros(len(observables))
        row = 0
        for part in table.parts([], [label or "observable", *(["count"] if counted else [])]):
            labels = part[label or "observable"]
            numbers = part["count"] if counted else ["1"] * len(labels)
            for text, number in zip(labels, numbers, strict=True):
                row += 1
                found[_of_label(text, row, observables, path)] += _count(number, row, path)
    with moved(str(path)):
        return counts_of(found, observables)


def _count(text: str, row: int, path: str | Path) -> float:
    try:
        return float_of_text(text)
    except ValueError:
        raise ProblemError(f"data row {row} has no usable count", where=path) from None


def _of_label(text: str, row: int, observables: Domain, path: str | Path) -> int:
    try:
        return find_index(observables, text)
    except ProblemError:
        raise ProblemError(
            f"data row {row} is of no observable: those are {few(observables.labels)}",
            where=path,
            remedy="Count the labels that the mechanism reports",
        ) from None


def _counts_of_places(
    table: Table, names: Sequence[str], observables: Domain, path: str | Path
) -> Floats:
    """Of rows with the coordinates of observables, as they were written."""
    points = observables.require_points("count reports")
    from scipy.spatial import KDTree

    tree = KDTree(points)
    near = tree.query(points, k=2)[0][:, 1].min() if len(points) > 1 else 1.0
    found, first = np.zeros(len(points)), 1
    for part in table.parts(list(names), []):
        rows = np.column_stack([part[name] for name in names])
        usable = np.isfinite(rows).all(axis=1)
        away, index = tree.query(np.where(usable[:, None], rows, 0.0))
        wrong = np.flatnonzero(~usable | (away > near * _WRITTEN))
        if len(wrong):
            raise ProblemError(
                f"data row {first + int(wrong[0])} is at no observable",
                where=path,
                remedy="Give the table of reports, of this design",
            )
        found += np.bincount(index, minlength=len(points))
        first += len(rows)
    with moved(str(path)):
        return counts_of(found, observables)
