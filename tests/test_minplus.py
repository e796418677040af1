"""Products over (min, +) and (max, x) against loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from optmech.base.minplus import max_times, shortest_detour, shortest_paths


@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_detours_go_over_points_closer_to_both_ends(count: int) -> None:
    rng = np.random.default_rng(count)
    length = rng.integers(1, 6, (count, count)).astype(float)
    length[rng.random((count, count)) < 0.2] = np.inf
    np.fill_diagonal(length, np.inf)
    found = shortest_detour(length)
    for i, j in rng.integers(0, count, (60, 2)).tolist():
        sums = [
            length[i, k] + length[k, j]
            for k in range(count)
            if length[i, k] < length[i, j] and length[k, j] < length[i, j]
        ]
        assert found[i, j] == min(sums, default=np.inf)


@pytest.mark.parametrize("shape", [(1, 3), (5, 2), (90, 500)])
def test_max_times_is_the_largest_product(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    factor, matrix = rng.random((shape[0], shape[0])), rng.random(shape)
    expected = np.maximum((factor.T[:, :, None] * matrix[None]).max(axis=1), matrix)
    assert (max_times(factor, matrix) == expected).all()


@pytest.mark.parametrize("count", [1, 7, 40])
def test_shortest_paths_are_those_of_scipy(count: int) -> None:
    rng = np.random.default_rng(count)
    length = np.where(rng.random((count, count)) < 0.3, rng.uniform(0.1, 2, (count, count)), np.inf)
    found = shortest_paths(length)
    np.fill_diagonal(found, 0.0)
    np.testing.assert_allclose(found, dijkstra(sp.csr_array(np.where(length < 9, length, 0))))


def test_steps_of_length_zero_count() -> None:
    inf = np.inf
    found = shortest_paths(np.array([[inf, 0.0, inf], [inf, inf, 0.5], [inf, inf, inf]]))
    assert found[0].tolist() == [inf, 0.0, 0.5]
