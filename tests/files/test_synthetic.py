"""Seeded recipes: reproducible, and with the properties that they promise."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import optmech as om
from optmech.files.networks import Roads, Seeded
from optmech.files.priors import Dirichlet, Visits

PLAIN = {
    "kind": "visits",
    "seed": 3,
    "visits": 10_000,
    "hotspots": 1,
    "exponent": 1.0,
    "reach": 2.0,
    "background": 0.0,
    "noise": 0.0,
    "empty": 0.0,
}


def uniforms(seed: int, count: int) -> np.ndarray:
    return Seeded(seed=seed).uniforms(count)


def visit_counts(domain: om.Domain, **recipe: Any) -> np.ndarray:
    return Visits(**recipe).counts(domain)


def test_the_stream_is_that_of_pcg64() -> None:
    words = np.random.PCG64(12345).random_raw(3)
    expected = [((int(word) >> 11) + 0.5) / 2**53 for word in words]
    assert uniforms(12345, 3).tolist() == expected
    # numpy's documentation: default_rng(12345).random()
    assert uniforms(12345, 1)[0] == pytest.approx(0.22733602246716966, abs=1e-15)


def test_visits_without_noise_decay_exponentially_around_one_hotspot() -> None:
    grid = om.Grid(5, 5)
    counts = visit_counts(grid, **PLAIN)
    top = int(counts.argmax())
    assert top == int(uniforms(3, 1)[0] * 25)
    share = np.exp(-om.distances.euclidean()(grid, grid)[top] / 2)
    expected = 10_000 * share / share.sum()
    # counts are whole numbers, rounded up or down at random
    assert np.all(np.abs(counts - expected) < 1)
    assert np.all(counts == np.floor(counts))


def test_the_number_of_visits_and_the_empty_share() -> None:
    recipe = {**PLAIN, "hotspots": 6, "background": 0.1, "noise": 0.7}
    grid = om.Grid(20, 20)
    full = visit_counts(grid, **recipe)
    assert abs(full.sum() - 10_000) < 100
    thinned = visit_counts(grid, **{**recipe, "empty": 0.4})
    assert np.count_nonzero(thinned == 0) >= 160
    kept = thinned > 0
    np.testing.assert_array_equal(thinned[kept], full[kept])
    # what was emptied is what was visited least
    assert full[~kept].max() <= full[kept].max()


def test_background_alone_is_even() -> None:
    counts = visit_counts(om.Grid(3, 3), **{**PLAIN, "visits": 9000, "background": 1.0})
    assert np.all(np.abs(counts - 1000) <= 1)


def test_geographic_points_use_great_circles() -> None:
    globe = om.Domain.geographic(range(3), [[0, 60], [1, 60], [0, 61]])
    counts = visit_counts(globe, **{**PLAIN, "reach": 50.0, "visits": 10**6})
    top = int(counts.argmax())
    expected = np.exp(-om.distances.haversine()(globe, globe)[top] / 50)
    np.testing.assert_allclose(counts / counts[top], expected, rtol=1e-4)


def test_a_vanishing_recipe_is_refused() -> None:
    line = om.Domain.range(3)
    # no file may ask for so much noise
    recipe = {**PLAIN, "exponent": 1.0, "reach": 1e-320, "visits": 1, "noise": 1e308}
    section = Visits.model_construct(**recipe)
    with np.errstate(all="ignore"), pytest.raises(om.ProblemError, match="vanish"):
        section.counts(line)


def test_dirichlet_has_the_right_mean_and_variance() -> None:
    size, concentration = 40_000, 0.7
    section = Dirichlet(kind="dirichlet", seed=1, concentration=concentration)
    gammas = section.weights(size)
    assert gammas.mean() == pytest.approx(concentration, rel=0.03)
    assert gammas.var() == pytest.approx(concentration, rel=0.05)


@pytest.mark.parametrize("closed", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", [0, 7])
def test_road_networks_are_connected(seed: int, closed: float) -> None:
    section = Roads(seed=seed, rows=5, columns=7, spacing=0.5, jitter=0.2, closed=closed)
    network, points = section.network()
    assert nx.is_connected(network)
    assert points.shape == (35, 2)
    streets, needed = 5 * 6 + 4 * 7, 34
    assert network.number_of_edges() == streets - int(closed * (streets - needed))
    for a, b, length in network.edges(data="weight"):
        assert length == pytest.approx(float(np.linalg.norm(points[a] - points[b])), rel=1e-15)
        assert 0.5 * 0.6 <= length <= 0.5 * np.hypot(1.4, 0.4)


def test_seeds_matter() -> None:
    first, second = (visit_counts(om.Grid(4, 4), **{**PLAIN, "seed": seed}) for seed in (1, 2))
    assert not np.array_equal(first, second)
