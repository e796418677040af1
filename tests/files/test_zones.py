"""Aggregation of points into zones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech.files import build_problem
from optmech.files.extent import merge, zones_of

POINTS = [[10, 0], [0, 0], [11, 0], [0, 2], [0, 1]]


def build(**sections: Any) -> om.Problem:
    document = {"format": 1, "loss": "hamming", **sections}
    return build_problem(document, Path("p.toml")).problem


def secrets(zones: int) -> dict[str, Any]:
    return {"kind": "points", "points": POINTS, "unit": "km", "aggregate": {"zones": zones}}


def test_two_obvious_clusters() -> None:
    built = build(secrets=secrets(2), prior={"kind": "weights", "weights": [1, 2, 3, 1, 1]})
    # zones are numbered in the order in which the points list them
    assert built.secrets.labels == (0, 1)
    np.testing.assert_allclose(built.prior.weights, [4 / 8, 4 / 8])
    np.testing.assert_allclose(built.secrets.points, [[10.75, 0], [0, 0.75]])
    assert built.secrets.unit == "km"


def test_centroids_without_weights_are_plain_means() -> None:
    built = build(secrets=secrets(2), prior="uniform")
    np.testing.assert_allclose(built.secrets.points, [[10.5, 0], [0, 1]])
    np.testing.assert_allclose(built.prior.weights, [0.5, 0.5])


def test_a_zone_without_weight_lies_at_its_mean() -> None:
    built = build(secrets=secrets(2), prior={"kind": "counts", "counts": [0, 2, 0, 1, 1]})
    np.testing.assert_allclose(built.secrets.points, [[10.5, 0], [0, 0.75]])
    np.testing.assert_allclose(built.prior.weights, [0, 1])


def test_weights_by_label_and_smoothing() -> None:
    spec = {**secrets(2), "labels": list("abcde")}
    built = build(
        secrets=spec,
        prior={"kind": "counts", "counts": {"a": 3, "e": 1, "zzz": 4}, "smoothing": 1},
    )
    np.testing.assert_allclose(built.prior.weights, [4 / 6, 2 / 6])
    assert "4 of 8 observations" in built.notes[0]


def test_degrees_are_projected_first() -> None:
    # at 60° north a degree of longitude is half a degree of latitude: 0 and 1 are nearest
    domain = om.Domain.geographic(range(3), [[0, 60], [1.5, 60], [0, 61]])
    assert zones_of(domain, 2).tolist() == [0, 0, 1]
    assert zones_of(om.Domain(range(3), domain.points), 2).tolist() == [0, 1, 0]


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=25),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_zones_are_a_partition_that_keeps_mass_and_centre(points: Any, data: st.DataObject) -> None:
    domain = om.Domain(range(len(points)), np.array(points, dtype=float))
    count = data.draw(st.integers(1, len(set(points))))
    weights = np.arange(1.0, len(points) + 1)
    zone = zones_of(domain, count)
    assert sorted(set(zone.tolist())) == list(range(count))
    assert np.all(np.diff([zone.tolist().index(k) for k in range(count)]) > 0)
    merged = merge(domain, zone, weights)
    mass = np.bincount(zone, weights=weights)
    assert merged.points is not None
    assert domain.points is not None
    np.testing.assert_allclose(mass @ merged.points, weights @ domain.points, atol=1e-9)


def test_as_many_zones_as_points_changes_nothing() -> None:
    built = build(secrets=secrets(5), prior={"kind": "weights", "weights": [1, 2, 3, 4, 5]})
    np.testing.assert_array_equal(built.secrets.points, POINTS)
    np.testing.assert_allclose(built.prior.weights, np.arange(1, 6) / 15)


def test_merging_needs_coordinates_of_the_same_number() -> None:
    with pytest.raises(om.ProblemError, match="6 zones of 5 points"):
        build(secrets=secrets(6), prior="uniform")
