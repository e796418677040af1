"""Products over (min, +) and (max, x) against loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from optmech.base import minplus
from optmech.base.minplus import max_times, near_detour, shortest_detour, shortest_paths


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
    lengths, matrix = rng.exponential(1.0, (shape[0], shape[0])), rng.random(shape)
    factor = np.exp(-lengths)
    expected = np.maximum((factor.T[:, :, None] * matrix[None]).max(axis=1), matrix)
    assert (max_times(lengths, matrix) == expected).all()


@pytest.mark.parametrize(("count", "share"), [(1, 0.3), (7, 0.3), (40, 0.3), (300, 0.01)])
def test_shortest_paths_are_those_of_scipy(count: int, share: float) -> None:
    rng = np.random.default_rng(count)
    some = rng.random((count, count)) < share
    length = np.where(some, rng.uniform(0.1, 2, (count, count)), np.inf)
    found = shortest_paths(length)
    np.fill_diagonal(found, 0.0)
    np.testing.assert_allclose(found, dijkstra(sp.csr_array(np.where(length < 9, length, 0))))


def test_steps_of_length_zero_count() -> None:
    inf = np.inf
    found = shortest_paths(np.array([[inf, 0.0, inf], [inf, inf, 0.5], [inf, inf, inf]]))
    assert found[0].tolist() == [inf, 0.0, 0.5]


def test_along_few_steps_paths_are_those_along_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    length = np.where(rng.random((300, 300)) < 0.02, rng.uniform(0, 2, (300, 300)), np.inf)
    length[rng.random((300, 300)) < 0.001] = 0.0
    few = shortest_paths(length)
    monkeypatch.setattr(minplus, "_SPARSE", 1000)
    every = shortest_paths(length)
    for found in (few, every):
        np.fill_diagonal(found, 0.0)
    np.testing.assert_allclose(few, every, rtol=1e-12)


def test_of_many_points_detours_are_detours(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    length = rng.uniform(0.1, 2, (60, 60))
    length[rng.random((60, 60)) < 0.2] = np.inf
    np.fill_diagonal(length, np.inf)
    everywhere = shortest_detour(length)
    monkeypatch.setattr(minplus, "MANY", 10)
    monkeypatch.setattr(minplus, "_NEAREST", 8)
    found = near_detour(length)
    assert (found >= everywhere).all()
    some = np.argwhere(np.isfinite(found))
    assert len(some) > 1000
    for i, j in some[:: len(some) // 50].tolist():
        assert (length[i] + length[:, j] == found[i, j]).any()


@pytest.mark.parametrize("kind", ["euclidean", "grid", "shortcut", "unlimited"])
def test_of_many_points_distances_are_known_to_be_closed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    points = rng.uniform(0, 9, (49, 2))
    if kind == "grid":
        points = np.stack(np.divmod(np.arange(49.0), 7), axis=1)
    length = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    np.fill_diagonal(length, np.inf)
    if kind == "shortcut":
        nearest = int(length[3].argmin())
        length[3, nearest] *= 0.5
    elif kind == "unlimited":
        length[7, 8] = np.inf
    assert not minplus.is_closed(length)
    exact = shortest_paths(length)
    monkeypatch.setattr(minplus, "MANY", 10)
    assert minplus.is_closed(length) == (kind in ("euclidean", "grid"))
    found = shortest_paths(length)
    off = ~np.eye(49, dtype=bool)
    assert np.allclose(found[off], exact[off], rtol=1e-12)


def test_steps_that_are_missing_leave_the_others_shortest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minplus, "MANY", 10)
    points = np.random.default_rng(5).uniform(0, 1, (120, 2))
    length = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    np.fill_diagonal(length, np.inf)
    assert minplus.is_closed(length)
    assert 0 <= minplus.open_by(length) <= 1e-15
    some = np.where(length > 1.0, np.inf, length)
    assert np.isinf(some[~np.eye(120, dtype=bool)]).any()
    assert minplus.steps_are_shortest(some)
    assert not minplus.is_closed(some)
    assert minplus.open_by(some) == np.inf
    near, far = np.unravel_index(np.where(length < 1.0, length, 0).argmax(), length.shape)
    some[near, far] *= 1.5
    assert not minplus.steps_are_shortest(some)
    monkeypatch.setattr(minplus, "MANY", 1_000)
    assert not minplus.steps_are_shortest(length)


@pytest.mark.parametrize("few", [0, 64])
def test_steps_that_chains_of_others_imply_are_filled(
    monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(minplus, "_FEW", few)
    x, y = (part.ravel() for part in np.meshgrid(np.arange(9.0), np.arange(7.0)))
    length = np.hypot(x[:, None] - x, y[:, None] - y)
    steps = np.abs(np.stack([x[:, None] - x, y[:, None] - y])).astype(int)
    held = np.where(np.gcd(*steps) == 1, length, np.inf)
    assert np.isinf(held).sum() > 63 * 10
    away = length > 0
    assert np.allclose(minplus.filled(held)[away], length[away], rtol=1e-14)
    apart = np.where((x[:, None] < 4) == (x < 4), held, np.inf)  # two parts that nothing joins
    found = minplus.filled(apart)
    assert np.isinf(found[(x[:, None] < 4) != (x < 4)]).all()


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.6])
def test_compiled_loops_find_what_arrays_find(
    missing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = np.random.default_rng(8).uniform(0, 1, (150, 2))
    length = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    np.fill_diagonal(length, np.inf)
    far = np.quantile(length[np.isfinite(length)], 1 - missing)
    length[length > far] = np.inf
    monkeypatch.setattr(minplus, "MANY", 10)
    monkeypatch.setattr(minplus, "_FEW", 0)
    compiled = near_detour(length), minplus.filled(length), minplus.slackness(length, whole=False)
    monkeypatch.setenv("OPTMECH_KERNELS", "numpy")
    arrays = near_detour(length), minplus.filled(length), minplus.slackness(length, whole=False)
    for one, other in zip(compiled, arrays, strict=True):
        np.testing.assert_array_equal(one, other)
