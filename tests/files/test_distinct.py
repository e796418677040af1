"""One secret of several rows: trips, check-ins, inline points."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.base import memory
from optmech.files import build_problem
from optmech.files.extent import zones_of

EVENTS = "station,x,y,n\nb,2,0,1\na,0,0,2\nb,2,0,4\na,0,1,8\nc,2,0,16\n"
TABLE = {"kind": "table", "file": "e.csv", "x": "x", "y": "y"}


def build(folder: Path, **sections: Any) -> om.Problem:
    document = {"format": 1, "loss": "hamming", "prior": "uniform", **sections}
    return build_problem(document, folder / "p.toml").problem


@pytest.fixture
def events(tmp_path: Path) -> Path:
    (tmp_path / "e.csv").write_text(EVENTS)
    return tmp_path


def test_rows_of_one_place_are_one_secret(events: Path) -> None:
    built = build(events, secrets={**TABLE, "distinct": True}, prior={"kind": "counts"})
    assert built.secrets.labels == (0, 1, 2)
    assert built.secrets.points.tolist() == [[2, 0], [0, 0], [0, 1]]
    assert built.prior.weights.tolist() == pytest.approx([3 / 5, 1 / 5, 1 / 5], abs=1e-15)


def test_rows_of_one_label_are_one_secret_at_their_mean(events: Path) -> None:
    secrets = {**TABLE, "label": "station", "distinct": True}
    built = build(events, secrets=secrets, prior={"kind": "column", "column": "n"})
    assert built.secrets.labels == ("b", "a", "c")
    assert built.secrets.points.tolist() == [[2, 0], [0, 0.5], [2, 0]]
    assert built.prior.weights.tolist() == [5 / 31, 10 / 31, 16 / 31]
    by_row = build(events, secrets=secrets, prior={"kind": "weights", "weights": [1, 2, 4, 8, 16]})
    assert by_row.prior == built.prior
    counted = build(events, secrets=secrets, prior={"kind": "counts", "smoothing": 1})
    assert counted.prior.weights.tolist() == [3 / 8, 3 / 8, 2 / 8]


@pytest.mark.parametrize("kind", ["points", "lonlat"])
def test_inline_points_too(tmp_path: Path, kind: str) -> None:
    secrets = {"kind": kind, "points": [[1, 2], [3, 4], [1, 2]], "distinct": True}
    built = build(tmp_path, secrets=secrets, prior={"kind": "counts"})
    assert built.secrets.points.tolist() == [[1, 2], [3, 4]]
    assert built.prior.weights.tolist() == [2 / 3, 1 / 3]
    named = build(tmp_path, secrets={**secrets, "labels": ["a", "b", "a"]})
    assert named.secrets.labels == ("a", "b")


def test_zones_of_distinct_places(events: Path) -> None:
    """Two clusters; what the rows weigh is added up through both steps."""
    built = build(
        events,
        secrets={**TABLE, "distinct": True, "aggregate": {"zones": 2}},
        prior={"kind": "column", "column": "n"},
    )
    assert built.prior.weights.tolist() == [21 / 31, 10 / 31]
    np.testing.assert_allclose(built.secrets.points, [[2, 0], [0, 0.8]])


def test_a_mean_across_the_antimeridian_stays_there(tmp_path: Path) -> None:
    secrets = {
        "kind": "lonlat",
        "points": [[179, 0], [-179, 2], [0, 0]],
        "labels": ["fiji", "fiji", "null"],
        "distinct": True,
    }
    built = build(tmp_path, secrets=secrets, loss="haversine")
    assert built.secrets.points.tolist() == [[180, 1], [0, 0]]
    # 179 and -179 are two degrees apart, and nearer than either is to 0
    far = om.Domain.geographic(range(3), [[179, 0], [0, 0], [-179, 0]])
    assert zones_of(far, 2).tolist() == [0, 1, 0]


def test_a_label_that_occurs_twice_names_the_remedy(events: Path) -> None:
    with pytest.raises(om.ProblemError, match=r"secrets\.label\[2\]: label 'b'.*distinct = true"):
        build(events, secrets={**TABLE, "label": "station"})
    inline = {"kind": "points", "points": [[1, 2], [3, 4]], "labels": ["a", "a"]}
    with pytest.raises(om.ProblemError, match=r"secrets\.labels\[1\]: .*distinct = true"):
        build(events, secrets=inline)


@pytest.mark.parametrize(
    "secrets", [{"kind": "grid", "rows": 1, "columns": 2}, {"kind": "labels", "labels": ["a"]}]
)
def test_only_rows_can_be_counted(tmp_path: Path, secrets: dict[str, Any]) -> None:
    with pytest.raises(om.ProblemError, match=r"prior\.counts: there are no rows to count"):
        build(tmp_path, secrets=secrets, prior={"kind": "counts"})


def test_too_many_rows_are_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 events at 50 places on a machine of 24 GiB, with both figures and the way out."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 24 * 2**30)
    rows = "".join(f"{k % 50},0\n" for k in range(5_000))
    (tmp_path / "e.csv").write_text("x,y\n" + rows)
    message = r"5,000 secrets needs about .* GiB.*24 GiB are.*50 different places.*distinct = true"
    with pytest.raises(om.ProblemError, match=message):
        build(tmp_path, secrets=TABLE)
    built = build(tmp_path, secrets={**TABLE, "distinct": True}, prior={"kind": "counts"})
    assert len(built.secrets) == 50
    zones = build(tmp_path, secrets={**TABLE, "aggregate": {"zones": 5}})
    assert len(zones.secrets) == 5


def test_zones_cannot_be_more_than_places(events: Path) -> None:
    with pytest.raises(om.ProblemError, match="4 zones of 5 points at 3 different places"):
        build(events, secrets={**TABLE, "aggregate": {"zones": 4}})


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e200, 1e307])
def test_zones_of_any_scale(size: float) -> None:
    points = size * np.array([[0, 0], [1, 0], [9, 0], [9, 1.0], [0, 0]])
    assert zones_of(om.Domain(range(5), points), 2).tolist() == [0, 0, 1, 1, 0]


def test_real_trips_have_their_stations(shared_data: Path, tmp_path: Path) -> None:
    file = shared_data / "citibike_nyc_201807_sample.csv"
    with file.open(encoding="utf-8") as stream:
        places = Counter((r["start_lon"], r["start_lat"]) for r in csv.DictReader(stream))
    common = {place for place, count in places.items() if count >= 25}
    chosen = tmp_path / "trips.csv"
    with file.open(encoding="utf-8") as stream, chosen.open("w", encoding="utf-8") as out:
        out.write("lon,lat\n")
        out.writelines(
            f"{r['start_lon']},{r['start_lat']}\n"
            for r in csv.DictReader(stream)
            if (r["start_lon"], r["start_lat"]) in common
        )
    secrets = {
        "kind": "table",
        "file": "trips.csv",
        "x": "lon",
        "y": "lat",
        "coordinates": "lonlat",
        "distinct": True,
    }
    built = build(tmp_path, secrets=secrets, prior={"kind": "counts"}, loss="haversine")
    assert len(built.secrets) == len(common)
    assert built.secrets.unit == "km"
    total = sum(places[place] for place in common)
    expected = {tuple(map(float, place)): places[place] / total for place in common}
    for point, weight in zip(built.secrets.points.tolist(), built.prior.weights, strict=True):
        assert math.isclose(weight, expected[tuple(point)], rel_tol=1e-12)
