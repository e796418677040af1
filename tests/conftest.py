"""Fixtures shared by all tests, and the hypothesis profile that they run under."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import optmech as om

settings.register_profile(
    "optmech", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("optmech")

_SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240611)


@pytest.fixture
def line() -> om.Domain:
    """0, 1, ..., 5."""
    return om.Domain.range(6)


@pytest.fixture
def grid() -> om.Grid:
    """Three rows, four columns, cells that are not square."""
    return om.Grid(3, 4, cell=(0.75, 0.5), unit="km")


@pytest.fixture
def prior(grid: om.Grid, rng: np.random.Generator) -> om.Prior:
    """Uneven, with one secret that never occurs."""
    weights = rng.dirichlet(np.full(len(grid), 0.6))
    weights[5] = 0.0
    return om.Prior(grid, weights)


@pytest.fixture
def mechanism(grid: om.Grid) -> om.Mechanism:
    """The planar exponential mechanism on ``grid``: full support, not optimal."""
    kernel = np.exp(-0.8 * om.distances.euclidean()(grid, grid))
    return om.Mechanism(grid, grid, kernel / kernel.sum(axis=1, keepdims=True))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real location data beside the repository."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the real location data (../shared/data) is not at hand")
    return _SHARED_DATA
