"""Hypothesis strategies for the objects of the theory, and mechanisms with known measures."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import optmech as om


@st.composite
def distributions(draw: st.DrawFn, count: int, zeros: bool = True) -> np.ndarray:
    """A distribution of shape (count,); small whole numbers make ties and zeros frequent."""
    least = 0 if zeros else 1
    weights = draw(hnp.arrays(np.int64, count, elements=st.integers(least, 12)))
    if not weights.any():
        weights[draw(st.integers(0, count - 1))] = 1
    return weights / weights.sum()


@st.composite
def stochastic_matrices(draw: st.DrawFn, rows: int, columns: int, zeros: bool = True) -> np.ndarray:
    """A row-stochastic matrix of shape (rows, columns)."""
    return np.array([draw(distributions(columns, zeros)) for _ in range(rows)])


@st.composite
def mechanisms(draw: st.DrawFn, least: int = 1, most: int = 6, zeros: bool = True) -> om.Mechanism:
    """A mechanism on Domain.range secrets and observables, ``least`` to ``most`` of each."""
    rows, columns = draw(st.integers(least, most)), draw(st.integers(least, most))
    return om.Mechanism(
        om.Domain.range(rows),
        om.Domain.range(columns),
        draw(stochastic_matrices(rows, columns, zeros)),
    )


@st.composite
def priors(draw: st.DrawFn, domain: om.Domain, zeros: bool = True) -> om.Prior:
    """A prior over ``domain``."""
    return om.Prior(domain, draw(distributions(len(domain), zeros)))


@st.composite
def metrics(draw: st.DrawFn, count: int) -> np.ndarray:
    """A metric of shape (count, count): random lengths, closed under shortest paths."""
    lengths = draw(hnp.arrays(np.int64, (count, count), elements=st.integers(1, 9))) / 4.0
    values = np.minimum(lengths, lengths.T)
    np.fill_diagonal(values, 0.0)
    for j in range(count):
        values = np.minimum(values, values[:, [j]] + values[[j], :])
    return values


@st.composite
def nonnegative_matrices(draw: st.DrawFn, rows: int, columns: int) -> np.ndarray:
    """Any loss or (asymmetric) distance: entries 0, 1/4, ..., 5."""
    return draw(hnp.arrays(np.int64, (rows, columns), elements=st.integers(0, 20))) / 4.0


def randomized_response(count: int, epsilon: float) -> om.Mechanism:
    """Says the truth with probability e^ε / (e^ε + n - 1), else any other label."""
    domain = om.Domain.range(count)
    matrix = np.full((count, count), 1.0) + (np.exp(epsilon) - 1) * np.eye(count)
    return om.Mechanism(domain, domain, matrix / (np.exp(epsilon) + count - 1))


def truncated_geometric(count: int, alpha: float) -> om.Mechanism:
    """Two-sided geometric noise on 0..n-1 with the tails put on the ends: -ln α per unit."""
    domain = om.Domain.range(count)
    steps = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    matrix = (1 - alpha) / (1 + alpha) * alpha**steps
    matrix[:, [0, -1]] = alpha ** steps[:, [0, -1]] / (1 + alpha)
    return om.Mechanism(domain, domain, matrix)


@st.composite
def spread_distributions(draw: st.DrawFn, count: int, zeros: bool = True) -> np.ndarray:
    """A distribution whose entries range over 300 orders of magnitude, so that ratios of two of
    them range over 600; clusters of nearly equal entries and zeros included."""
    exponents = st.one_of(
        st.integers(-300, 0), st.sampled_from([0, -1, -15, -16, -17, -18, -100, -299, -300])
    )
    powers = np.array([draw(exponents) for _ in range(count)])
    weights = np.array([draw(st.integers(1, 9999)) for _ in range(count)]) * 10.0**powers
    if zeros and draw(st.booleans()):
        weights[draw(st.integers(0, count - 1))] = 0.0
    if not weights.any():
        weights[draw(st.integers(0, count - 1))] = 1.0
    return weights / weights.sum()
