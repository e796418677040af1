"""Brute force for discrete traces: the joint distribution of whole traces, written out. Shares no
code with optmech_traces."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np


def joint(initial: np.ndarray, matrices: Sequence[np.ndarray]) -> dict[tuple[int, ...], float]:
    """P(x_0, ..., x_T) of every trace, T the number of matrices."""
    cells = range(len(initial))
    out = {}
    for trace in itertools.product(cells, repeat=len(matrices) + 1):
        chance = initial[trace[0]]
        for t, matrix in enumerate(matrices):
            chance *= matrix[trace[t], trace[t + 1]]
        out[trace] = chance
    return out


def weighted(
    table: dict[tuple[int, ...], float], likelihoods: dict[int, np.ndarray]
) -> dict[tuple[int, ...], float]:
    """The joint with the chance of the releases: P(trace, z)."""
    return {
        trace: chance * float(np.prod([column[trace[t]] for t, column in likelihoods.items()]))
        for trace, chance in table.items()
    }


def marginal(table: dict[tuple[int, ...], float], time: int, cells: int) -> np.ndarray:
    out = np.zeros(cells)
    for trace, chance in table.items():
        out[trace[time]] += chance
    return out / out.sum()


def conditional(
    table: dict[tuple[int, ...], float], time: int, given: int, cells: int
) -> np.ndarray:
    """P(x_time = column | x_given = row); zero rows where that is impossible."""
    out = np.zeros((cells, cells))
    for trace, chance in table.items():
        out[trace[given], trace[time]] += chance
    sums = out.sum(axis=1, keepdims=True)
    return np.divide(out, sums, out=np.zeros_like(out), where=sums > 0)


def least_error(weights: np.ndarray, distances: np.ndarray) -> float:
    """min over estimates of the expected distance."""
    return min(
        sum(weights[s] * distances[guess, s] for s in range(len(weights)))
        for guess in range(len(weights))
    )


def sequences(observables: int, steps: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(observables), repeat=steps)


def release_table(
    policy: object, steps: int, table: dict[tuple[int, ...], float], cells: int
) -> dict[tuple[int, ...], list[np.ndarray]]:
    """For every possible sequence of releases the columns P(z_t | X_t = ·) along it; -1 and a
    column of ones where nothing is released. Walks the policy's states, label by label."""
    out: dict[tuple[int, ...], list[np.ndarray]] = {}
    pending = [((), [], policy.start())]
    while pending:
        history, columns, state = pending.pop()
        if len(history) == steps:
            out[history] = columns
        elif state.mechanism is None:
            ones = np.ones(cells)
            pending.append(((*history, -1), [*columns, ones], state.after(None)))
        else:
            for o, label in enumerate(state.mechanism.observables.labels):
                column = state.mechanism.matrix[:, o]
                if evidence(table, [*columns, column], 0, cells).any():
                    pending.append(((*history, o), [*columns, column], state.after(label)))
    return out


def evidence(
    table: dict[tuple[int, ...], float], columns: Sequence[np.ndarray], time: int, cells: int
) -> np.ndarray:
    """P(z, X_time = x), shape (cells,), from the columns of the first releases."""
    out = np.zeros(cells)
    for trace, chance in table.items():
        for t, column in enumerate(columns):
            chance *= column[trace[t]]
        out[trace[time]] += chance
    return out
