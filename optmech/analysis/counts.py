"""How often each report came, in the forms that people have it in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.labels import few, own_labels
from optmech.errors import ProblemError, moved
from optmech.reading.columns import read_text_columns
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_index

Counts = ArrayLike | Mapping[Hashable, float]
"""An array in the order of the observables, or a mapping (a dict, a Counter, a pandas Series) from
label to count; labels that it leaves out count 0."""


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


def read_counts(path: str | Path, observables: Domain) -> Floats:
    """The counts of a CSV file with the columns ``observable`` and ``count``, or ``observable``
    alone, a row for every report; labels as texts."""
    try:
        columns = read_text_columns(path, ["observable", "count"])
    except ProblemError as error:
        if "'count'" not in error.message or "'observable'" in error.message:
            raise
        columns = read_text_columns(path, ["observable"])
    numbers = columns.get("count", ["1"] * len(columns["observable"]))
    found = np.zeros(len(observables))
    for row, (label, text) in enumerate(zip(columns["observable"], numbers, strict=True), start=1):
        try:
            count = float(text)
        except ValueError:
            raise ProblemError(f"data row {row} has no usable count", where=path) from None
        try:
            found[find_index(observables, label)] += count
        except ProblemError:
            raise ProblemError(
                f"data row {row} is of no observable: those are {few(observables.labels)}",
                where=path,
                remedy="Count the labels that the mechanism reports",
            ) from None
    with moved(str(path)):
        return counts_of(found, observables)
