"""Kernels beside the same loops in Python: detours, cycles of multipliers, transport."""

from __future__ import annotations

import numpy as np
import pytest
from each import each

from optmech.base import minplus, native
from optmech.transport import pivots
from optmech.transport.couplings import Tree

pytestmark = pytest.mark.skipif(not native.has_kernels(), reason="no kernels are compiled")
FASTEST = (native.variants() or ("",))[-1]


@pytest.fixture(params=[*native.variants()[:-1], FASTEST])
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@each("seed", range(15))
def test_detours(seed: int, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.choice([2, 3, 17, 60]))
    length = rng.uniform(0.5, 1.5, (count, count))
    length[rng.random((count, count)) < (0.0, 0.5, 0.95)[seed % 3]] = np.inf
    np.fill_diagonal(length, np.inf)
    monkeypatch.setattr(minplus, "MANY", 0)
    monkeypatch.setattr(minplus, "_FEW", 0)
    found = []
    for kernels in (variant, native.NUMPY):
        monkeypatch.setenv(native.CHOICE, kernels)
        found.append((minplus.near_detour(length), minplus.filled(length)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(25))
def test_trees(seed: int, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pivots, flows and potentials, with ties and without."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 30, 2).tolist()
    cost = rng.integers(0, 4, (n, m)).astype(float) if seed % 2 else rng.random((n, m))
    total = int(rng.integers(max(n, m), 1000))
    masses = [1 + rng.multinomial(total - k, np.full(k, 1 / k)) for k in (n, m)]
    found = []
    for kernels in (variant, native.NUMPY):
        monkeypatch.setenv(native.CHOICE, kernels)
        tree = Tree(*masses)
        tree.solve(cost)
        if n + m - 1 not in (tree.parent[n - 1], *np.flatnonzero(tree.parent == n - 1)):
            tree.enter(n - 1, m - 1)
        found.append((tree.plan(), tree.parent.copy()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@each("seed", range(25))
def test_least_arrivals(seed: int, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    count, n, m = rng.integers(1, 12, 3).tolist()
    w = rng.normal(size=(count, n, m)) * (1.0, 8.0)[seed % 2]
    rows, columns = (rng.random((count, k)) < 0.8 for k in (n, m))
    found = []
    for kernels in (variant, native.NUMPY):
        monkeypatch.setenv(native.CHOICE, kernels)
        first, second = np.zeros((2, count, n + m), dtype=np.int64)
        share, q = np.zeros((count, n + m)), np.zeros((count, m))
        pivots.least_arrivals(w, rows, columns, first, second, share, q)
        arrival = np.zeros((count, m))
        for p in range(count):
            weights = share[p] * np.exp(w[p][first[p], second[p]])
            np.add.at(arrival[p], second[p], weights)
            if rows[p].any() and columns[p].any():
                sent = np.bincount(first[p], share[p], n)[rows[p]]
                np.testing.assert_allclose(sent, 1, rtol=1e-10)
        found.append((arrival, q))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.max(axis=1), other.max(axis=1), rtol=1e-9, atol=1e-12)
