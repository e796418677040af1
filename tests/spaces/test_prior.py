from __future__ import annotations

import csv
import gzip
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import optmech as om

GRID = om.Grid(2, 3)


@given(hnp.arrays(np.float64, 4, elements=st.floats(0, 1.7e308)))
def test_weights_are_proportional_and_sum_to_one(weights):
    domain = om.Domain.range(4)
    if not weights.any():
        with pytest.raises(om.ProblemError, match="sum to 0"):
            om.Prior(domain, weights)
        return
    prior = om.Prior(domain, weights)
    assert prior.weights.sum() == pytest.approx(1, abs=1e-15)
    top = weights.max()
    assert prior.weights / prior.weights.max() == pytest.approx(
        weights / top, rel=1e-14, abs=1e-300
    )
    assert not prior.weights.flags.writeable


def test_does_not_alias_what_it_was_given():
    given_weights = np.array([1.0, 3.0])
    prior = om.Prior(om.Domain("ab"), given_weights)
    given_weights[0] = 100
    assert prior.weights.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "do not fit 3 secrets"),
        (1.0, "do not fit"),
        ([[1, 2, 3]], "do not fit"),
        ([1, -1e-300, 1], r"prior\[1\].*the weight is negative"),
        ([1, math.nan, 1], "NaN"),
        ([1, math.inf, 1], "infinite"),
        ([0, 0, 0], "sum to 0"),
        ([-0.0, 0, 0], "sum to 0"),
        ("abc", "not a rectangular array"),
        (None, "NaN"),
        ([1, 2, 3j], "not a rectangular array"),
    ],
)
def test_refuses_weights(weights, message):
    with pytest.raises(om.ProblemError, match=message):
        om.Prior(om.Domain("abc"), weights)


def test_refuses_what_is_not_a_domain():
    with pytest.raises(om.ProblemError, match="list is not a Domain"):
        om.Prior(["a", "b"], [1, 2])


def test_equality_is_of_content():
    prior = om.Prior(om.Domain("ab"), [1, 3])
    same = om.Prior.from_counts(om.Domain("ab"), {"b": 6, "a": 2})
    assert prior == same
    assert len({prior, same}) == 1
    assert prior != om.Prior(om.Domain("ab"), [3, 1])
    assert prior != om.Prior(om.Domain("ba"), [1, 3])
    assert prior != 3


def test_entropy_in_bits():
    assert om.Prior.uniform(om.Domain.range(8)).entropy == 3
    assert om.Prior(om.Domain("abcd"), [2, 1, 1, 0]).entropy == 1.5
    sure = om.Prior(om.Domain("ab"), [0, 5]).entropy
    assert math.copysign(1, sure) == 1
    assert sure == 0


class TestFromCounts:
    def test_array_and_smoothing(self):
        prior = om.Prior.from_counts(om.Domain("abc"), [0, 1, 3], smoothing=1)
        assert prior.weights.tolist() == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=1e-15)
        assert prior.binning is None

    @pytest.mark.parametrize("make", [dict, Counter])
    def test_mapping_goes_by_label_and_reports_what_is_outside(self, make):
        prior = om.Prior.from_counts(om.Domain("abc"), make({"c": 3, "x": 4, "a": 1}))
        assert prior.weights.tolist() == [0.25, 0, 0.75]
        assert (prior.binning.inside, prior.binning.outside) == (4, 4)
        assert (
            str(prior.binning) == "4 of 8 observations counted; 4 (50.0 %) fall outside the domain"
        )

    def test_pandas_series_goes_by_label_not_by_position(self):
        pandas = pytest.importorskip("pandas")
        visits = pandas.Series(list("cccab")).value_counts()
        prior = om.Prior.from_counts(om.Domain("abc"), visits)
        assert prior.weights.tolist() == pytest.approx([0.2, 0.2, 0.6], abs=1e-15)

    @pytest.mark.parametrize(
        ("counts", "smoothing", "message"),
        [
            ({"a": -1}, 0, r"counts\['a'\]"),
            ({"a": "many"}, 0, r"counts\['a'\]"),
            ({"a": [1, 2]}, 0, r"counts\['a'\]"),
            ({"x": 1}, 0, "none of the counted labels is a secret.*'x'.*'a', 'b', 'c'"),
            ([1, 2, 3], -0.5, "smoothing"),
            ([1, 2, 3], math.nan, "smoothing"),
            ([1, 2, 3], "a lot", "smoothing"),
            ([1, 2], 0, "do not fit"),
        ],
    )
    def test_refuses(self, counts, smoothing, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Prior.from_counts(om.Domain("abc"), counts, smoothing=smoothing)


class TestFromPoints:
    def test_counts_cells_weights_and_the_outside(self):
        xy = [[0.5, 0.5], [2.9, 1.9], [2.9, 1.9], [3.1, 1], [math.nan, 1]]
        prior = om.Prior.from_points(GRID, xy)
        assert prior.weights.tolist() == pytest.approx([1 / 3, 0, 0, 0, 0, 2 / 3], abs=1e-15)
        found = prior.binning
        assert (found.inside, found.outside, found.missing) == (3, 1, 1)
        heavy = om.Prior.from_points(GRID, xy, weights=[6, 1, 1, 10, 0.5])
        assert heavy.weights.tolist() == [0.75, 0, 0, 0, 0, 0.25]
        found = heavy.binning
        assert (found.inside, found.outside, found.missing) == (8, 10, 0.5)

    def test_nearest_point_within_a_limit(self):
        domain = om.Domain("ab", [[0, 0], [10, 0]])
        prior = om.Prior.from_points(domain, [[1, 0], [9, 1], [9, 0], [5, 9]], max_distance=2)
        assert prior.weights.tolist() == pytest.approx([1 / 3, 2 / 3], abs=1e-15)
        assert prior.binning.outside == 1

    def test_smoothing_alone_is_enough(self):
        prior = om.Prior.from_points(GRID, [[99, 99]], smoothing=2)
        assert prior.weights.tolist() == pytest.approx([1 / 6] * 6, abs=1e-15)
        assert prior.binning.outside == 1

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"xy": [[9, 9]]}, "none of the 1 points"),
            ({"xy": []}, "none of the 0 points"),
            ({"xy": [[math.nan, 0], [9, 9]]}, "none of the 2 points.*; 1 have no coordinates"),
            ({"xy": [[0, 0]], "smoothing": -0.1}, "smoothing"),
            ({"xy": [[0, 0]], "smoothing": "x"}, "smoothing"),
            ({"xy": [[0, 0]], "weights": [1, 2]}, "2 weights for 1 points"),
            ({"xy": [[0, 0]], "weights": [-1]}, "negative"),
            ({"xy": [[0, 0]], "weights": [math.nan]}, "NaN"),
            ({"xy": [[0, 0, 0]]}, r"not \(m, 2\)"),
            ({"xy": "everywhere"}, "not an array"),
            ({"xy": [[0, 0]], "max_distance": 1}, "max_distance"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Prior.from_points(GRID, **arguments)


class TestFromCsv:
    @pytest.mark.parametrize("name", ["visits.csv", "visits.csv.gz"])
    def test_reads_columns_by_name(self, tmp_path, name):
        text = "\ufeffid,lat,lon,n\n1,0.5,0.5,2\n2,1.5,2.5,6\n3,,1,5\n4,west,1,1\n5,0.5,7,4\n"
        file = tmp_path / name
        opener = gzip.open if name.endswith("gz") else open
        with opener(file, "wt", encoding="utf-8") as stream:
            stream.write(text)
        prior = om.Prior.from_csv(GRID, file, x="lon", y="lat", weight="n")
        assert prior.weights.tolist() == [0.25, 0, 0, 0, 0, 0.75]
        found = prior.binning
        assert (found.inside, found.outside, found.missing) == (8, 4, 6)
        assert str(found) == (
            "8 of 18 observations counted; 4 (22.2 %) fall outside the domain; "
            "6 (33.3 %) have missing coordinates"
        )

    @pytest.mark.parametrize(
        ("text", "columns", "message"),
        [
            ("lat,lon\n0.5,0.5\n", {"x": "lng", "y": "lat"}, "no column 'lng'.*'lat', 'lon'"),
            ("", {"x": "lon", "y": "lat"}, "columns are none"),
            ("lat,lon\n", {"x": "lon", "y": "lat"}, "none of the 0 points"),
            ("a,b,n\n0,0,\n", {"x": "a", "y": "b", "weight": "n"}, "row 1 has no usable 'n'"),
            ("a,b,n\n0,0,-1\n", {"x": "a", "y": "b", "weight": "n"}, "negative"),
        ],
    )
    def test_refuses_and_names_the_file(self, tmp_path, text, columns, message):
        file = tmp_path / "visits.csv"
        file.write_text(text)
        with pytest.raises(om.ProblemError, match=message):
            om.Prior.from_csv(GRID, file, **columns)

    def test_unreadable_files(self, tmp_path):
        latin = tmp_path / "latin.csv"
        latin.write_bytes(b"a,b\n\xff\xfe,1\n")
        squeezed = tmp_path / "not.csv.gz"
        squeezed.write_text("a,b\n1,2\n")
        for file in (tmp_path / "missing.csv", tmp_path, latin, squeezed):
            with pytest.raises(om.ProblemError, match=r"cannot be read|is not a UTF-8"):
                om.Prior.from_csv(GRID, file, x="a", y="b")

    def test_real_stations_are_all_counted_or_reported(self, shared_data):
        file = shared_data / "citibike_nyc_201807_sample.csv"
        west, south, east, north = bounds = (-74.02, 40.70, -73.93, 40.82)
        prior = om.Prior.from_csv(
            om.Grid.geographic(20, 15, bounds), file, x="start_lon", y="start_lat"
        )
        counts: Counter[tuple[int, int]] = Counter()
        with file.open(encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                lon, lat = float(row["start_lon"]), float(row["start_lat"])
                if west <= lon < east and south <= lat < north:
                    column = math.floor((lon - west) / (east - west) * 15)
                    counts[math.floor((lat - south) / (north - south) * 20), column] += 1
        assert prior.binning.inside == counts.total()
        assert prior.binning.inside + prior.binning.outside == 10_000
        expected = [counts[label] / counts.total() for label in prior.domain.labels]
        assert prior.weights == pytest.approx(np.array(expected), abs=1e-15)

    def test_real_check_ins_match_the_published_figures(self, shared_data):
        """Figures from the README of the data: 77,290 check-ins in 220 cells of 20 x 15."""
        with (shared_data / "fsq_nyc_pois.csv").open(encoding="utf-8") as stream:
            places = {row["poi"]: (row["lon"], row["lat"]) for row in csv.DictReader(stream)}
        with (shared_data / "fsq_nyc_checkins.csv").open(encoding="utf-8") as stream:
            visits = Counter(row["poi"] for row in csv.DictReader(stream))
        grid = om.Grid.geographic(20, 15, (-74.02, 40.70, -73.93, 40.82))
        xy = np.array([places[poi] for poi in visits], dtype=float)
        prior = om.Prior.from_points(grid, xy, weights=list(visits.values()))
        assert prior.binning.inside == 77_290
        assert np.count_nonzero(prior.weights) == 220


def test_weights_that_are_no_counts_are_not_quoted() -> None:
    prior = om.Prior.from_counts(om.Domain("ab"), {"a": 640.07373737, "b": 1.5, "x": 25.07373737})
    assert str(prior.binning) == (
        "641.6 of 666.6 observations counted; 25.07 (3.8 %) fall outside the domain"
    )
