"""Transition counts of visit sequences, and the chains estimated from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.errors import ProblemError
from optmech.spaces.domain import Domain


def transition_counts(
    sequences: Sequence[ArrayLike], cells: int, classes: Sequence[ArrayLike] | None = None
) -> tuple[Floats, Floats]:
    """Visits to each cell, shape (n,), and steps from x to y by class of the departure, shape
    (classes, n, n). An entry of -1 is no visit, and steps to and from it do not count. Raises
    ProblemError on entries that are not -1 or the index of a cell, and classes of another shape."""
    if isinstance(sequences, str) or not hasattr(sequences, "__len__"):
        raise ProblemError("is not a list of sequences", where="sequences")
    if classes is not None and len(classes) != len(sequences):
        raise ProblemError(f"{len(classes)} lists for {len(sequences)} sequences", where="classes")
    visits = np.zeros(cells)
    moves: list[Ints] = []
    for k, sequence in enumerate(sequences):
        path = whole_indices(sequence, -1, cells, f"sequences[{k}]")
        kind = np.zeros(len(path)) if classes is None else classes[k]
        kind = whole_indices(kind, 0, None, f"classes[{k}]")
        if kind.shape != path.shape:
            raise ProblemError(
                f"{len(kind)} classes for a sequence of {len(path)}", where=f"classes[{k}]"
            )
        known = path >= 0
        visits += np.bincount(path[known], minlength=cells)
        both = known[:-1] & known[1:]
        moves.append(np.column_stack([kind[:-1], path[:-1], path[1:]])[both])
    every = np.concatenate(moves) if moves else np.empty((0, 3), dtype=np.int64)
    size = 1 + int(every[:, 0].max(initial=0))
    steps = np.zeros((size, cells, cells))
    np.add.at(steps, tuple(every.T), 1.0)
    return visits, steps


def smoothed_chain(
    visits: Floats,
    steps: Floats,
    smoothing: float,
    base: tuple[Floats, Floats] | None,
    domain: Domain,
) -> tuple[Floats, Floats]:
    """Initial distribution and transition matrices, shape (classes, n, n): posterior means under
    a Dirichlet prior of weight ``smoothing`` per row around ``base`` (uniform where None)."""
    cells = len(domain)
    if base is None:
        base = (np.full(cells, 1 / cells), np.full((cells, cells), 1 / cells))
    if base[0].shape != (cells,):
        raise ProblemError(f"is over {len(base[0])} cells, not {cells}", where="base")
    if not visits.any():
        raise ProblemError(
            "no visit falls into the domain",
            where="sequences",
            remedy="Check how positions were turned into cells",
        )
    rows = steps.sum(axis=2) + smoothing
    empty = np.argwhere(rows == 0)
    if len(empty):
        raise ProblemError(
            f"{len(empty)} cell(s) are never left, the first {domain.labels[empty[0, 1]]!r}",
            where="sequences",
            remedy="Give smoothing > 0, or drop these cells from the domain",
        )
    start = visits + smoothing * cells * base[0]
    return start / start.sum(), (steps + smoothing * base[1]) / rows[:, :, None]


def whole_indices(values: ArrayLike, least: int, beyond: int | None, where: str) -> Ints:
    """A list of whole numbers from ``least``, and below ``beyond`` where that is given; raises
    ProblemError on anything else."""
    array = finite_array(values, where=where, ndim=1)
    top = np.inf if beyond is None else beyond
    wrong = np.flatnonzero((array != np.floor(array)) | (array < least) | (array >= top))
    if len(wrong):
        raise ProblemError(
            f"has {array[wrong[0]]:g} at {wrong[0]} where an index is needed",
            where=where,
            remedy=f"Use whole numbers from {least}"
            + ("" if beyond is None else f" to {beyond - 1}"),
        )
    return array.astype(np.int64)
