"""What devices ship, as mechanisms: against the definitions, simulated or written out again."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from optmech_sweeps.coarsening import compare_coarsening

import optmech as om
from optmech.cli.main import main

CITY = om.Grid.geographic(6, 7, (116.26, 39.94, 116.38, 40.03))


def test_snapping_reports_the_nearest_node() -> None:
    found = om.mechanisms.snapped(CITY, 2.0)
    for place, row in zip(CITY.points, found.matrix, strict=True):
        node = found.observables.points[int(row.argmax())]
        assert row.max() == 1
        assert np.allclose(node, [2 * round(v / 2) for v in place])
    assert found.matrix.sum() == len(CITY)


def test_an_offset_grid_is_an_offset_and_a_grid() -> None:
    """Simulated as LocationFudger does it: an offset of a quarter of the size, then the grid."""
    found = om.mechanisms.offset_snapped(CITY, 2.0)
    rng = np.random.default_rng(4)
    number = {tuple(point): k for k, point in enumerate(found.observables.points.tolist())}
    for s in (0, 20, 41):
        moved = CITY.points[s] + rng.normal(0, 0.5, (40_000, 2))
        drawn = [number[tuple(node)] for node in (2.0 * np.rint(moved / 2.0)).tolist()]
        share = np.bincount(drawn, minlength=len(number)) / len(drawn)
        assert np.abs(share - found.matrix[s]).max() < 5 * math.sqrt(0.25 / len(drawn))


def test_decimals_are_those_of_degrees() -> None:
    west, south, east, north = CITY.bounds
    for decimals, truncated, keep in ((2, False, round), (2, True, math.trunc), (1, False, round)):
        found = om.mechanisms.rounded_degrees(CITY, decimals, truncated=truncated)
        for k, (row, column) in enumerate(CITY.labels):
            degrees = (
                west + (column + 0.5) / 7 * (east - west),
                south + (row + 0.5) / 6 * (north - south),
            )
            kept = [keep(v * 10**decimals) / 10**decimals for v in degrees]
            x = (kept[0] - west) / (east - west) * 7 * CITY.cell[0]
            y = (kept[1] - south) / (north - south) * 6 * CITY.cell[1]
            node = found.observables.points[int(found.matrix[k].argmax())]
            assert np.allclose(node, (x, y), atol=1e-6)


def test_areas_hold_their_share() -> None:
    rng = np.random.default_rng(5)
    weights = rng.gamma(2.0, size=len(CITY))
    prior = om.Prior(CITY, weights / weights.sum())
    found = om.mechanisms.dense_areas(prior, "1/8")
    held = prior.weights @ found.matrix
    assert len(held) > 2
    assert held.min() >= 1 / 8
    for o, point in enumerate(found.observables.points):
        own = prior.weights * found.matrix[:, o]
        assert np.allclose(own @ CITY.points / own.sum(), point, atol=1e-6)


def test_what_is_deterministic_has_no_epsilon() -> None:
    euclidean = om.distances.euclidean()
    for found in (
        om.mechanisms.snapped(CITY, 5.0),
        om.mechanisms.rounded_degrees(CITY, 1),
        om.mechanisms.dense_areas(om.Prior.uniform(CITY), 0.1),
    ):
        assert om.measures.epsilon(found, euclidean) == math.inf


def test_certified_designs_lose_no_more_and_hide_more() -> None:
    prior = om.Prior.uniform(om.Grid(3, 3, 2.0, unit="km"))
    said: list[str] = []
    found = {row.name: row for row in compare_coarsening(prior, progress=said.append)}
    assert len(said) == 25
    assert "one decimal, rounded" not in found
    euclidean = om.distances.euclidean()
    for row in found.values():
        if row.loss == 0:  # every place is its own area, and no private mechanism is that good
            assert (row.design, row.attack) == (None, 0)
            continue
        assert row.design is not None
        assert row.design.verified
        assert row.design_loss <= row.loss
        assert om.measures.epsilon(row.design.mechanism, euclidean) <= row.design_epsilon * 1.001
        assert row.design_epsilon < row.epsilon
        # at equal loss: a rate 1.1 % lower is proved to lose more, but where reports tell nothing
        least = om.MetricPrivacy(row.design_epsilon / 1.011, euclidean)
        lower = om.solve(om.Problem(prior, euclidean, constraints=[least]))
        assert lower.lower_bound > row.loss or row.design_epsilon < 0.1
    laplace = found["planar Laplace, ln 2 per km"]
    assert laplace.epsilon <= math.log(2) + 1e-9
    assert laplace.design_epsilon < laplace.epsilon


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare-coarsening", "grid-4x4", "-q", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["epsilon"] for row in rows if row["name"].startswith("snapping")] == [None, None]
    assert main(["compare-coarsening", "ages", "-q"]) == 2
    assert "two plane coordinates" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: om.mechanisms.snapped(om.Domain("ab"), 1.0), "coordinates"),
        (lambda: om.mechanisms.snapped(CITY, 0.0), "size"),
        (lambda: om.mechanisms.offset_snapped(CITY, 1.0, -1.0), "deviation"),
        (lambda: om.mechanisms.rounded_degrees(om.Grid(2, 2), 2), "degrees"),
        (lambda: om.mechanisms.rounded_degrees(CITY, -1), "decimals"),
        (lambda: om.mechanisms.dense_areas(om.Prior.uniform(CITY), 0), "share"),
        (lambda: om.mechanisms.snapped(om.Domain.geographic("ab", [[0, 0], [1, 1]]), 1.0), "plane"),
    ],
)
def test_bad_arguments(make: object, said: str) -> None:
    with pytest.raises(om.ProblemError, match=said):
        make()  # type: ignore[operator]
