"""Quadrisection: tiles, populations, and where points are found."""

from __future__ import annotations

import numpy as np
import pytest

import optmech as om
from optmech.spaces.observables import attribute_distributions, quadrisect


def test_splits_where_the_points_are() -> None:
    grid = om.Grid(2, 2)
    crowd = [[0.1, 0.1], [0.4, 0.1], [0.1, 0.4], [0.9, 0.9], [1.5, 0.5]]
    regions = quadrisect(grid, crowd, 7)
    assert len(regions) == 7
    assert [label for label in regions.labels if label[:2] == (0, 0)] == [
        (0, 0, "0"), (0, 0, "1"), (0, 0, "2"), (0, 0, "3"),
    ]  # fmt: skip
    assert (0, 1, "") in regions.labels
    counts = np.bincount(regions.locate(crowd), minlength=7)
    assert counts[regions.index((0, 0, "0"))] == 3
    assert counts[regions.index((0, 0, "3"))] == 1
    assert counts[regions.index((0, 1, ""))] == 1


@pytest.mark.parametrize("seed", range(3))
def test_regions_tile_the_grid_and_balance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = om.Grid(11, 10, (1.0, 0.5), origin=(3.0, -2.0))
    crowd = [6, 1] + rng.normal(size=(5000, 2)) * [2, 1]
    inside = crowd[grid.locate(crowd) >= 0]
    regions = quadrisect(grid, crowd, 276)
    assert 273 < len(regions) <= 276
    west, south, east, north = regions.boxes.T
    assert ((east - west) * (north - south)).sum() == pytest.approx(11 * 10 * 0.5)
    found = regions.locate(crowd)
    assert ((found >= 0) == (grid.locate(crowd) >= 0)).all()
    boxes = regions.boxes[regions.locate(inside)]
    assert (inside >= boxes[:, :2]).all()
    assert (inside <= boxes[:, 2:]).all()
    coarse = np.bincount(grid.locate(inside), minlength=110).max()
    fine = np.bincount(regions.locate(inside), minlength=len(regions)).max()
    assert fine < coarse / 2


def test_geographic_grids_are_located_in_degrees() -> None:
    grid = om.Grid.geographic(4, 4, (-74.02, 40.70, -73.93, 40.82))
    rng = np.random.default_rng(1)
    crowd = rng.uniform((-74.02, 40.70), (-73.93, 40.82), (500, 2))
    regions = quadrisect(grid, crowd, 40)
    cells = grid.locate(crowd)
    found = regions.locate(crowd)
    assert [regions.labels[k][:2] for k in found] == [grid.labels[k] for k in cells]
    assert regions.unit == "km"
    assert regions.locate([[-75.0, 40.75]]).tolist() == [-1]


def test_points_on_top_of_each_other_end_the_splitting() -> None:
    regions = quadrisect(om.Grid(1, 1), [[0.3, 0.3]] * 50, 1000)
    assert len(regions) == 1 + 3 * 12
    assert len(quadrisect(om.Grid(1, 1), [[0.3, 0.3]], 1000)) == 1


def test_attributes_are_counted_apart() -> None:
    grid = om.Grid(1, 2)
    lams = attribute_distributions(
        grid, [[0.5, 0.5], [1.5, 0.5], [1.5, 0.2], [9, 9]], ["home", "out", "home", "out"]
    )
    assert lams["home"].weights.tolist() == [0.5, 0.5]
    assert lams["out"].weights.tolist() == [0.0, 1.0]
    assert lams["out"].binning is not None
    assert lams["out"].binning.outside == 1


def test_misuse_is_refused() -> None:
    with pytest.raises(om.ProblemError, match="fewer than"):
        quadrisect(om.Grid(2, 2), [[0.5, 0.5]], 3)
    with pytest.raises(om.ProblemError, match="no point"):
        quadrisect(om.Grid(2, 2), [[5, 5]], 10)
    with pytest.raises(om.ProblemError, match="values for"):
        attribute_distributions(om.Grid(1, 1), [[0.5, 0.5]], ["a", "b"])
