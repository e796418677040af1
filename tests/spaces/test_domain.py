from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import optmech as om
from optmech.base.arrays import finite_array
from optmech.spaces.domain import EARTH_RADIUS_KM


def great_circle(a, b):
    """Angle between unit vectors by atan2, an independent and everywhere accurate formula."""
    vectors = []
    for lon, lat in (a, b):
        x, y = math.radians(lon), math.radians(lat)
        vectors.append((math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)))
    u, v = vectors
    return EARTH_RADIUS_KM * math.atan2(float(np.linalg.norm(np.cross(u, v))), float(np.dot(u, v)))


class TestDomain:
    def test_keeps_labels_points_and_indices(self):
        domain = om.Domain(["a", ("b", 2), 3], [[0, 1], [2, 3], [4, 5]], unit="km")
        assert len(domain) == 3
        assert [domain.index(label) for label in domain.labels] == [0, 1, 2]
        assert domain.points.tolist() == [[0, 1], [2, 3], [4, 5]]

    def test_points_are_a_read_only_copy(self):
        given_points = np.zeros((2, 2))
        domain = om.Domain("ab", given_points)
        given_points[0, 0] = 7
        assert domain.points[0, 0] == 0
        with pytest.raises(ValueError):
            domain.points[0, 0] = 1

    def test_flat_points_are_a_line(self):
        assert om.Domain("abc", [1, 2, 4]).points.shape == (3, 1)
        assert om.Domain.range(3).points.ravel().tolist() == [0, 1, 2]

    def test_equality_is_of_content(self):
        a = om.Domain("ab", [[0], [1]], "km")
        assert a == om.Domain("ab", [[0], [1]], "km")
        assert a != om.Domain("ab", [[0], [2]], "km")
        assert a != om.Domain("ab", [[0], [1]], "m")
        assert a != om.Domain("ab")
        assert a != "ab"

    @pytest.mark.parametrize(
        "make",
        [
            lambda: om.Domain("ab", [[0], [1]], "km"),
            lambda: om.Domain("ab"),
            lambda: om.Domain.geographic("ab", [[0, 1], [2, 3]]),
            lambda: om.Grid(2, 3),
            lambda: om.Grid(2, 3, 0.5, unit="km"),
            lambda: om.Grid(2, 3, origin=(1, 1)),
            lambda: om.Grid.geographic(2, 3, (0, 0, 1, 1)),
            lambda: om.Grid.geographic(2, 3, (10, 0, 11, 1)),
            lambda: om.observables.coarser(om.Grid(2, 4), 1, 2),
            lambda: om.observables.coarser(om.Grid(4, 2), 2, 1),
            lambda: om.observables.suppressible(om.Grid(2, 3)),
            lambda: om.observables.quadrisect(om.Grid(1, 1), [[0.1, 0.1], [0.9, 0.9]], 4),
        ],
    )
    def test_equal_content_has_equal_hashes_and_other_content_differs(self, make):
        others = [
            om.Domain("ab", [[0], [1]]),
            om.Domain(om.Grid(2, 3).labels, om.Grid(2, 3).points),
            om.Grid(3, 2),
        ]
        assert make() == make()
        assert hash(make()) == hash(make())
        assert len({make(), make(), *others}) == 4

    def test_grids_in_other_places_differ(self):
        """Cells and coordinates in km agree; what the degrees mean does not."""
        west, east = (om.Grid.geographic(2, 3, (x, 0, x + 1, 1)) for x in (0, 10))
        assert np.array_equal(west.points, east.points)
        assert west != east

    @pytest.mark.parametrize("unit", [None, 5, True, {"km": 1}, b"km"])
    def test_a_unit_is_text(self, unit):
        with pytest.raises(om.ProblemError, match=r"unit: .* is not text"):
            om.Domain("ab", [[0], [1]], unit=unit)
        if unit is not None:
            with pytest.raises(om.ProblemError, match=r"unit: .* is not text"):
                om.Grid(1, 2, unit=unit)

    def test_degrees_are_measured_in_km_and_in_nothing_else(self):
        made = [
            om.Domain("ab", [[0, 1], [2, 3]], unit, coordinates="lonlat").unit
            for unit in ("", "km")
        ]
        assert made == ["km", "km"]
        with pytest.raises(om.ProblemError, match="'degrees' is not the unit of distances"):
            om.Domain("ab", [[0, 1], [2, 3]], "degrees", coordinates="lonlat")

    @pytest.mark.parametrize(
        ("domain", "text"),
        [
            (om.Domain("ab"), "Domain(2 labels: 'a', 'b')"),
            (
                om.Domain.range(9, "years"),
                "Domain(9 labels: 0, 1, 2, ..., 8, 1-dimensional points in years)",
            ),
            (
                om.Domain.geographic("a", [[1, 2]]),
                "Domain(1 labels: 'a', longitude and latitude)",
            ),
            (om.Grid(20, 15, (0.5, 0.25), unit="km"), "Grid(20 x 15 cells of 0.5 x 0.25 km)"),
            (om.Grid(2, 1, origin=(1, 2)), "Grid(2 x 1 cells of 1 x 1, origin=(1.0, 2.0))"),
        ],
    )
    def test_short_in_an_interpreter(self, domain, text):
        assert repr(domain) == text
        assert len(repr(om.Domain(["x" * 5000, "y" * 5000], unit="z" * 5000))) < 200

    def test_survives_pickling(self):
        assert pickle.loads(pickle.dumps(om.Grid(2, 3))).labels == om.Grid(2, 3).labels

    @pytest.mark.parametrize(
        ("labels", "points", "message"),
        [
            ([], None, "empty"),
            (5, None, "not a list of labels"),
            ([1, 1.0], None, r"labels\[1\]: the label occurs twice: entry 0 is the same"),
            ([True, 1], None, "occurs twice"),
            ([[1], [2]], None, "not hashable"),
            ("ab", [[0, 1]], r"shape \(1, 2\) does not fit 2 labels"),
            ("ab", np.zeros((2, 2, 2)), "does not fit"),
            ("ab", np.zeros((2, 0)), "does not fit"),
            ("ab", 3.0, "does not fit"),
            ("ab", [[0, 1], [2]], "not a rectangular array"),
            ("ab", ["x", "y"], "not a rectangular array"),
            ("ab", np.array([1j, 2]), "not a rectangular array"),
            ("ab", [[0, math.nan], [1, 2]], r"first at index \[0, 1\]"),
            ("ab", [0, math.inf], "NaN or infinite"),
        ],
    )
    def test_refuses(self, labels, points, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Domain(labels, points)

    @pytest.mark.parametrize("coordinates", ["LonLat", "degrees", None, 4])
    def test_refuses_unknown_coordinates(self, coordinates):
        with pytest.raises(om.ProblemError, match="coordinates"):
            om.Domain("ab", [[0, 1], [2, 3]], coordinates=coordinates)

    @pytest.mark.parametrize("label", ["z", None, [1], {}])
    def test_unknown_label(self, label):
        with pytest.raises(om.ProblemError, match="there is no"):
            om.Domain("abc").index(label)

    @pytest.mark.parametrize("count", [0, -1, 2.0, "3", True, None])
    def test_range_needs_a_count(self, count):
        with pytest.raises(om.ProblemError, match="count"):
            om.Domain.range(count)

    @given(
        hnp.arrays(np.float64, (5, 2), elements=st.floats(-9, 9), unique=True),
        hnp.arrays(np.float64, (7, 2), elements=st.floats(-9, 9)),
    )
    def test_locates_the_nearest_point(self, own, query):
        distance = np.hypot(*(query[:, None, :] - own[None, :, :]).transpose(2, 0, 1))
        found = om.Domain(range(5), own).locate(query)
        assert np.allclose(distance[np.arange(7), found], distance.min(axis=1), atol=1e-12)

    def test_locate_counts_what_is_missing_or_far_as_outside(self):
        domain = om.Domain.range(3)
        found = domain.locate([0.4, math.nan, 2.4, 2.6, math.inf, -0.6], max_distance=0.5)
        assert found.tolist() == [0, -1, 2, -1, -1, -1]
        assert domain.locate([]).shape == (0,)

    @pytest.mark.parametrize("limit", [math.nan, "far", [1, 2]])
    def test_locate_refuses_an_unusable_limit(self, limit):
        with pytest.raises(om.ProblemError, match="max_distance"):
            om.Domain.range(3).locate([0.0], max_distance=limit)

    @pytest.mark.parametrize("query", [[[0, 1]], "a", [[[0]]], [["x"]]])
    def test_locate_refuses_a_wrong_shape(self, query):
        with pytest.raises(om.ProblemError, match="points"):
            om.Domain.range(3).locate(query)

    def test_locate_needs_points(self):
        with pytest.raises(om.ProblemError, match="no coordinates"):
            om.Domain("ab").locate([[0, 0]])


class TestGeographicPoints:
    def test_limit_is_a_great_circle_in_km(self, rng):
        own = np.column_stack([rng.uniform(-180, 180, 8), rng.uniform(-89, 89, 8)])
        query = np.column_stack([rng.uniform(-180, 180, 40), rng.uniform(-90, 90, 40)])
        domain = om.Domain.geographic(range(8), own)
        table = np.array([[great_circle(q, p) for p in own] for q in query])
        for limit in (0.0, 500.0, 3000.0, 1e6):
            expected = np.where(table.min(axis=1) <= limit, table.argmin(axis=1), -1)
            assert domain.locate(query, max_distance=limit).tolist() == expected.tolist()

    def test_nearest_across_the_date_line(self):
        domain = om.Domain.geographic("ab", [[179.9, 0], [170, 0]])
        assert domain.locate([[-179.9, 0]]).tolist() == [0]

    @pytest.mark.parametrize("lonlat", [[[39.9, 116.4]], [[400, 0]], [[0, -90.5]]])
    def test_refuses_latitude_first_where_it_can_tell(self, lonlat):
        with pytest.raises(om.ProblemError, match="longitude"):
            om.Domain.geographic(["beijing"], lonlat)

    def test_queries_off_the_globe_are_outside(self):
        domain = om.Domain.geographic("ab", [[116.4, 39.9], [116.5, 40.0]])
        assert domain.locate([[39.9, 116.4], [116.41, 39.9]]).tolist() == [-1, 0]

    @pytest.mark.parametrize("points", [None, [1, 2], [[1, 2, 3], [1, 2, 3]]])
    def test_needs_two_columns(self, points):
        with pytest.raises(om.ProblemError, match=r"\(n, 2\)"):
            om.Domain("ab", points, coordinates="lonlat")


class TestGrid:
    def test_order_centres_and_labels(self):
        grid = om.Grid(2, 3, cell=(2.0, 10.0), origin=(100.0, 0.0))
        assert grid.labels == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))
        assert grid.points.tolist() == [
            [101, 5], [103, 5], [105, 5], [101, 15], [103, 15], [105, 15],
        ]  # fmt: skip
        assert all(grid.index((r, c)) == r * 3 + c for r in range(2) for c in range(3))

    def test_square_cells_from_one_number(self):
        assert om.Grid(1, 2, cell=0.5).points.tolist() == [[0.25, 0.25], [0.75, 0.25]]

    def test_locates_borders_on_the_low_side_and_keeps_the_outer_one(self):
        grid = om.Grid(2, 2, cell=(1.0, 2.0))
        query = [[0, 0], [1, 0], [0, 2], [1, 2], [2, 4], [2, 0], [0, 4]]
        assert grid.locate(query).tolist() == [0, 1, 2, 3, 3, 1, 2]
        outside = [[-1e-9, 0], [2 + 1e-9, 0], [0, 4.001], [math.nan, 1], [math.inf, 1]]
        assert grid.locate(outside).tolist() == [-1] * 5

    @given(
        st.integers(1, 30), st.integers(1, 30),
        st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3),
    )  # fmt: skip
    def test_every_centre_lies_in_its_own_cell(self, rows, columns, width, height, x0, y0):
        grid = om.Grid(rows, columns, cell=(width, height), origin=(x0, y0))
        assert grid.locate(grid.points).tolist() == list(range(rows * columns))

    def test_agrees_with_histogram2d(self, rng):
        grid = om.Grid(4, 5, cell=(0.3, 0.7), origin=(-1.0, 2.0))
        xy = np.column_stack([rng.uniform(-1.5, 1.0, 4000), rng.uniform(1.5, 5.5, 4000)])
        found = grid.locate(xy)
        counts = np.bincount(found[found >= 0], minlength=20).reshape(4, 5)
        edges = [np.linspace(2.0, 4.8, 5), np.linspace(-1.0, 0.5, 6)]
        expected, _, _ = np.histogram2d(xy[:, 1], xy[:, 0], bins=edges)
        assert counts.tolist() == expected.tolist()

    BOX = (-74.02, 40.70, -73.93, 40.82)

    def test_bounds_are_measured_in_km(self):
        """By an independent great circle along the edges; asked ln 2 per km means per km."""
        grid = om.Grid(20, 15, bounds=self.BOX)
        west, south, east, north = self.BOX
        middle = (south + north) / 2
        assert grid.unit == "km"
        width, height = grid.cell
        assert 15 * width == pytest.approx(great_circle((west, middle), (east, middle)), rel=1e-6)
        assert 20 * height == pytest.approx(great_circle((west, south), (west, north)), rel=1e-12)
        assert grid == om.Grid.geographic(20, 15, self.BOX)
        small = om.Grid(2, 2, bounds=(0, 0, 0.018, 0.018))
        problem = om.Problem(
            om.Prior.uniform(small),
            om.distances.euclidean(),
            constraints=[om.MetricPrivacy("ln 2", om.distances.euclidean())],
        )
        side = great_circle((0, 0), (0.009, 0))
        assert problem.statement.log_ratio[0, 1] == pytest.approx(math.log(2) * side, rel=1e-6)

    @pytest.mark.parametrize(
        "given_too",
        [{"cell": 1}, {"cell": (1, 1)}, {"unit": ""}, {"unit": "m"}, {"origin": (1, 0)}],
    )
    def test_bounds_exclude_other_measures(self, given_too):
        with pytest.raises(om.ProblemError, match=r"bounds: .*measured in km.*Drop cell, unit"):
            om.Grid(2, 2, bounds=self.BOX, **given_too)

    def test_bounds_with_their_own_measures_are_what_files_hold(self):
        grid = om.Grid(20, 15, bounds=self.BOX)
        near = tuple(math.nextafter(x, 0) for x in grid.cell)
        again = om.Grid(20, 15, near, unit="km", origin=(0.0, 0.0), bounds=self.BOX)
        assert again.cell == near

    def test_geographic_reads_degrees_and_measures_km(self):
        bounds = (-74.02, 40.70, -73.93, 40.82)
        grid = om.Grid.geographic(20, 15, bounds)
        lon = -74.02 + 0.09 / 15 * (np.arange(300) % 15 + 0.5)
        lat = 40.70 + 0.12 / 20 * (np.arange(300) // 15 + 0.5)
        assert grid.locate(np.column_stack([lon, lat])).tolist() == list(range(300))
        assert grid.locate([[40.75, -74.0], [-74.02, 40.82], [-74.03, 40.75]]).tolist() == [
            -1, 285, -1,
        ]  # fmt: skip
        plane = om.distances.euclidean()(grid, grid)
        ends = [(lon[0], lat[0]), (lon[-1], lat[-1])]
        assert plane[0, -1] == pytest.approx(great_circle(*ends), rel=1e-3)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"rows": 0, "columns": 1}, "rows"),
            ({"rows": 2.0, "columns": 1}, "rows"),
            ({"rows": 1, "columns": True}, "columns"),
            ({"rows": 10**5, "columns": 10**5}, "cells"),
            ({"rows": 1, "columns": 1, "cell": 0}, "positive"),
            ({"rows": 1, "columns": 1, "cell": (1, -1)}, "positive"),
            ({"rows": 1, "columns": 1, "cell": (1, 2, 3)}, "two numbers"),
            ({"rows": 1, "columns": 1, "cell": math.nan}, "NaN"),
            ({"rows": 1, "columns": 1, "origin": ("a", 0)}, "origin"),
            ({"rows": 1, "columns": 1, "bounds": (0, 0, 1)}, "bounds"),
            ({"rows": 1, "columns": 1, "bounds": (1, 0, 0, 1)}, "bounds"),
            ({"rows": 1, "columns": 1, "bounds": (40, -74, 41, 100)}, "bounds"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Grid(**arguments)

    def test_observables_over_other_bounds_have_no_distance(self):
        a, b = (om.Grid.geographic(2, 2, (x, 0, x + 1, 1)) for x in (0, 10))
        euclidean = om.distances.euclidean()
        with pytest.raises(om.ProblemError, match=r"different bounds.*own corner"):
            euclidean(a, b)
        with pytest.raises(om.ProblemError, match="different bounds"):
            om.distances.manhattan()(a, om.observables.coarser(b, 1, 2))
        finer = om.Grid.geographic(4, 4, (0, 0, 1, 1))
        assert euclidean(a, finer).shape == (4, 16)
        assert euclidean(a, om.observables.coarser(a, 1, 2)).shape == (4, 2)

    def test_points_without_a_unit_are_not_measured_against_km_from_a_corner(self):
        grid = om.Grid.geographic(2, 2, (0, 0, 1, 1))
        with pytest.raises(om.ProblemError, match="have no unit"):
            om.distances.euclidean()(grid, om.Domain("ab", [[0.1, 0.2], [0.3, 0.4]]))
        with pytest.raises(om.ProblemError, match="'km' and in 'm'"):
            om.distances.euclidean()(grid, om.Domain("ab", [[1, 2], [3, 4]], "m"))
        assert om.distances.euclidean()(grid, om.Domain("ab", [[1, 2], [3, 4]], "km")).min() > 0

    def test_takes_no_max_distance(self):
        with pytest.raises(om.ProblemError, match="max_distance"):
            om.Grid(2, 2).locate([[0, 0]], max_distance=1)

    def test_alternative_makers_make_ordinary_domains(self):
        assert om.Grid.range(3) == om.Domain.range(3)


@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_finite_array_lets_finite_numbers_through_and_nothing_else(values):
    if np.isfinite(values).all():
        kept = finite_array(values, where="x", ndim=2)
        assert (kept == values).all()
        assert not kept.flags.writeable
        with pytest.raises(om.ProblemError, match="dimension"):
            finite_array(values, where="x", ndim=1)
    else:
        with pytest.raises(om.ProblemError, match=r"^x: "):
            finite_array(values, where="x")
