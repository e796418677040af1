"""One trace from a table, released: step by step under a chain, or with Gaussian noise."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.labels import few
from optmech.errors import ProblemError
from optmech.reading.chosen import Chosen, chosen_of, column_of
from optmech.reading.tables import Table, kind_of, opened_sink, opened_table, row_words
from optmech.spaces.labels import find_label
from optmech.spaces.observables import data_coordinates
from optmech_traces.chains.policy import release
from optmech_traces.chains.task import ChainAnswer
from optmech_traces.gaussian.task import GaussianAnswer

_MOST_STEPS = 100_000
Asked = tuple[str | None, str | None, str | None]
"""The columns that are longitude, latitude and label, of those that say where a row is."""
RowWords = Callable[[int], str]
"""From the index of a row to how it is found in its file."""


def release_trace(
    answer: ChainAnswer | GaussianAnswer, source: str | Path, target: str | Path, asked: Asked
) -> list[str]:
    """Write the trace in ``source``, whose rows are in the order of time, as it may be released.

    Returns notes. Under a chain every row is released by the mechanism that its designer makes for
    that time, with the operating system's entropy; the column ``action`` says how it was designed.
    Gaussian noise is drawn in floating point.

    Raises
    ------
    ProblemError
        On a table that is no such trace, and where the noise does not keep its promise.
    """
    kind_of(target)
    chosen, part, table = _read(source, asked)
    if isinstance(answer, ChainAnswer):
        columns, notes = _chain(
            answer, chosen, part, lambda k: f"{source}: {row_words(table, k + 1)}"
        )
    else:
        columns, notes = _gaussian(answer, chosen, part, str(source))
    with opened_sink(target, list(columns), None, {}) as put:
        put(columns)
    return notes


def _read(source: str | Path, asked: Asked) -> tuple[Chosen, list[Any], Table]:
    """The columns that say where the trace is, their rows, and the table that has them."""
    with opened_table(source, _MOST_STEPS + 1) as table:
        chosen = chosen_of(table, *asked, source)
        numbers, others = ((), chosen.names) if chosen.labelled else (chosen.names, ())
        part = next(table.parts(numbers, others), None)
    if part is None or not len(part[chosen.names[0]]):
        raise ProblemError("has no rows", where=source, remedy="Give a row for every time")
    if len(part[chosen.names[0]]) > _MOST_STEPS:
        raise ProblemError(
            f"has more than {_MOST_STEPS:,} rows", where=source, remedy="Give one trace"
        )
    return chosen, [part[name] for name in chosen.names], table


def _chain(
    answer: ChainAnswer, chosen: Chosen, columns: list[Any], row: RowWords
) -> tuple[dict[str, Any], list[str]]:
    designer = answer.task.designer
    domain = designer.prior.domain
    labels: list[Hashable] = []
    if not chosen.labelled:
        found = domain.locate(np.column_stack(columns))
        lost = np.flatnonzero(found < 0)
        if len(lost):
            raise ProblemError(
                "lies outside of the domain, or has no numbers",
                where=row(int(lost[0])),
                remedy="Give a trace inside of the domain",
            )
        labels = [domain.labels[k] for k in found.tolist()]
    for k, text in enumerate(columns[0] if chosen.labelled else ()):
        try:
            labels.append(find_label(domain, text))
        except ProblemError:
            raise ProblemError(
                f"the label is none of the {len(domain)} labels",
                where=row(k),
                remedy=f"They are {few(domain.labels)}",
            ) from None
    released = release(designer, labels)
    places = data_coordinates(domain)
    index = [None if r is None else domain.index(r) for r in released.releases]
    out: dict[str, Any] = {}
    if not chosen.labelled and places is not None:
        for k, name in enumerate(chosen.names):
            out[name] = np.array([np.nan if i is None else places[i, k] for i in index])
    name = chosen.names[0] if chosen.labelled else "report"
    out[name] = column_of(list(released.releases))
    out["action"] = [state.action for state in released.states]
    none = index.count(None)
    notes = [f"{none} of {len(index)} times: nothing could be released"] if none else []
    return out, notes


def _gaussian(
    answer: GaussianAnswer, chosen: Chosen, columns: list[Any], where: str
) -> tuple[dict[str, Any], list[str]]:
    trace = answer.task.trace
    if chosen.labelled or len(columns) != trace.dimensions:
        raise ProblemError(
            f"the trace has {trace.dimensions} coordinate(s)",
            where=where,
            remedy="Name --x and --y" if trace.dimensions == 2 else "Name --x alone",
        )
    points = np.column_stack(columns)
    if len(points) != len(trace) or not np.isfinite(points).all():
        raise ProblemError(
            f"has {int(np.isfinite(points).all(axis=1).sum())} usable rows, and the noise is for "
            f"{len(trace)} times",
            where=where,
            remedy="Give a row with numbers for every time of the trace",
        )
    if answer.task.epsilon is not None and not answer.kept:
        raise ProblemError(
            "the noise does not keep its promise",
            where=answer.task.title,
            remedy="Design it: leave the noise out of the trace file",
        )
    # smooth noise is indefinite by rounding
    noisy = np.random.default_rng().multivariate_normal(
        points.ravel(), answer.noise, method="eigh", check_valid="ignore"
    )
    noisy = noisy.reshape(points.shape)
    return dict(zip(chosen.names, noisy.T, strict=True)), [
        "Gaussian noise is drawn in floating point: what is proved is about real numbers"
    ]
