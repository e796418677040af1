"""What has labels of its own is read by them or refused; never by silent position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import optmech as om
from optmech.certificate.families import LossLimit

pandas = pytest.importorskip("pandas")
xarray = pytest.importorskip("xarray")

ABC = om.Domain("abc")
GRID = om.Grid(2, 2)


def series(values, index):
    return pandas.Series(list(values), index=list(index))


def table(values, rows, columns):
    return pandas.DataFrame(values, index=list(rows), columns=list(columns))


class TestPriors:
    @given(st.permutations(range(5)))
    def test_order_of_rows_does_not_matter(self, order):
        """A frame sorted by any column, over labels that are numbers."""
        weights = [5, 1, 4, 2, 8]
        domain = om.Domain.range(5)
        shuffled = series((weights[k] for k in order), order)
        expected = [w / 20 for w in weights]
        assert om.Prior(domain, shuffled).weights.tolist() == expected
        assert om.Prior.from_counts(domain, shuffled).weights.tolist() == expected
        assert om.Prior(domain, shuffled.to_dict()).weights.tolist() == expected
        array = xarray.DataArray([weights[k] for k in order], dims="x", coords={"x": list(order)})
        assert om.Prior(domain, array).weights.tolist() == expected
        assert om.Prior.from_counts(domain, array).weights.tolist() == expected

    def test_grid_cells_by_two_columns_or_by_text(self):
        index = pandas.MultiIndex.from_tuples([(1, 1), (0, 1), (1, 0), (0, 0)])
        counts = pandas.Series([4, 2, 3, 1], index=index)
        by_text = series([4, 2, 3, 1], ["1,1", "0,1", "1,0", "0,0"])
        for given_counts in (counts, by_text):
            for made in (om.Prior(GRID, given_counts), om.Prior.from_counts(GRID, given_counts)):
                assert made.weights.tolist() == [0.1, 0.2, 0.3, 0.4]

    def test_without_labels_the_order_is_the_domain_s(self):
        bare = xarray.DataArray([1, 1, 2], dims="x")
        for weights in ([1, 1, 2], np.array([1, 1, 2]), bare, series([1, 1, 2], "abc").to_numpy()):
            assert om.Prior(ABC, weights).weights.tolist() == [0.25, 0.25, 0.5]

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (series([3, 2, 1], [0, 1, 2]), "index has 0, 1, 2, which are no labels.*'a', 'b', 'c'"),
            (series([3, 2], "ab"), "lacks 'c'"),
            (series([3, 2, 1, 0], "abcd"), "'d', which is no label"),
            (series([3, 2, 1], "aab"), "lacks 'c'"),
            (series([3, 2, 1, 1], "abca"), "twice"),
            ({"a": 1, "b": 2}, "lacks 'c'"),
            ({"a": 1, "b": 2, "d": 1}, "'d', which is no label"),
            (table([[1], [2], [3]], "abc", ["n"]), "2 dimension"),
            (series([1, 2, None], "abc"), "NaN"),
        ],
    )
    def test_refuses_a_mismatch(self, weights, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Prior(ABC, weights)

    @pytest.mark.parametrize(
        ("domain", "counts", "message"),
        [
            (ABC, series([3, 2, 1], [0, 1, 2]), "none of the counted labels is a secret"),
            # a filtered frame: rows 3 and 1 of it are not secrets 3 and 1
            (om.Domain.range(2), series([3, 2], [3, 1]), "2 entries for 2 secrets.*to_numpy"),
            (ABC, table([[1], [2], [3]], "abc", ["n"]), "one column is needed.*'n'"),
            (ABC, series(["x", 1, 2], "abc"), r"counts\['a'\]"),
            (ABC, series([1, -1, 2], "abc"), "negative"),
        ],
    )
    def test_counts_refuse_a_mismatch(self, domain, counts, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Prior.from_counts(domain, counts)

    def test_counts_leave_out_and_report(self):
        made = om.Prior.from_counts(ABC, series([3, 1, 4], "caz"))
        assert made.weights.tolist() == [0.25, 0, 0.75]
        assert (made.binning.inside, made.binning.outside) == (4, 4)
        cells = om.Prior.from_counts(om.Domain.range(3), series([5, 3, 1], [-1, 0, 1]).to_dict())
        assert (cells.binning.inside, cells.binning.outside) == (4, 5)

    def test_counted_points_and_weights_come_from_one_table(self):
        frame = pandas.DataFrame({"x": [0.5, 1.5, 1.5], "y": [0.5, 0.5, 1.5], "n": [1, 2, 5]})
        few = frame[frame.n > 1]
        made = om.Prior.from_points(GRID, few[["x", "y"]], few["n"])
        assert made.weights.tolist() == pytest.approx([0, 2 / 7, 0, 5 / 7], abs=1e-15)
        with pytest.raises(om.ProblemError, match="another index than the points"):
            om.Prior.from_points(GRID, few[["x", "y"]], frame["n"][:2])
        with pytest.raises(om.ProblemError, match="another index than the points"):
            om.observables.attribute_distributions(GRID, few[["x", "y"]], frame["n"][:2])


class TestMatrices:
    SQUARE = table([[0, 1, 2], [1, 0, 4], [2, 4, 0]], "bca", "bca")
    """d(b,c) = 1, d(b,a) = 2, d(c,a) = 4."""
    ORDERED = ((0, 2, 4), (2, 0, 1), (4, 1, 0))

    def test_distances_go_by_label(self):
        found = om.distances.matrix(self.SQUARE)(ABC, ABC)
        assert found.tolist() == [list(row) for row in self.ORDERED]
        array = xarray.DataArray(self.SQUARE)
        assert (om.distances.matrix(array)(ABC, ABC) == found).all()

    def test_losses_and_promises_go_by_label(self):
        costs = table([[0, 9], [9, 0], [5, 5]], "bca", "yx")
        prior, outputs = om.Prior.uniform(ABC), om.Domain("xy")
        problem = om.Problem(
            prior,
            costs,
            outputs,
            constraints=[
                om.MetricPrivacy(1.0, om.distances.matrix(self.SQUARE)),
                om.LossBound(8, loss=costs),
            ],
        )
        assert problem.loss_matrix.tolist() == [[5, 5], [9, 0], [0, 9]]
        off = ~np.eye(3, dtype=bool)
        assert problem.statement.log_ratio[off].tolist() == np.array(self.ORDERED)[off].tolist()
        assert problem.statement.of_kind(LossLimit)[0].loss.tolist() == [[5, 5], [9, 0], [0, 9]]

    def test_mechanisms_go_by_label(self):
        p = table([[0, 1], [0.5, 0.5], [1, 0]], "bca", "yx")
        m = om.Mechanism(ABC, om.Domain("xy"), p)
        assert m.matrix.tolist() == [[0, 1], [1, 0], [0.5, 0.5]]
        assert m.push(series([0.25, 0.75, 0], "cba")).tolist() == [0.875, 0.125]
        assert m.push({"a": 0, "b": 1, "c": 0}).tolist() == [1, 0]
        by_label = om.measures.distribution_epsilon(m, series([0, 0, 1], "acb"), [1, 0, 3])
        by_hand = om.measures.distribution_epsilon(m, [0, 1, 0], [1, 0, 3])
        assert by_label == by_hand
        again = om.Mechanism(ABC, om.Domain("xy"), om.exchange.to_xarray(m)[::-1])
        assert (again.matrix == m.matrix).all()

    @pytest.mark.parametrize(
        "use",
        [
            lambda t: om.distances.matrix(t)(om.Domain("abx"), om.Domain("abx")),
            lambda t: om.Problem(om.Prior.uniform(om.Domain("abx")), t),
            lambda t: om.Mechanism(om.Domain("abx"), ABC, t),
            lambda t: om.Problem(
                om.Prior.uniform(om.Domain("abx")),
                np.zeros((3, 3)),
                constraints=[om.LossBound(1, loss=t)],
            ),
        ],
    )
    def test_refuses_a_mismatch(self, use):
        with pytest.raises(om.ProblemError, match="'c', which is no label"):
            use(self.SQUARE)

    @pytest.mark.parametrize(
        ("use", "place"),
        [
            (lambda: om.Support(TestMatrices.SQUARE > 1), "mask"),
            (lambda: om.DistributionPrivacy(1, [(series([1, 2], "ba"), [1, 2])]), "pairs"),
            (lambda: om.DistributionPrivacy(1, [([1], [2])], scale=series([1], "p")), "scale"),
            (lambda: om.losses.with_suppression(om.distances.hamming(), series([1], "p")), "loss"),
            (lambda: om.divergences.kl(series([1, 2], "ab"), series([1, 2], "ba")), ""),
            (lambda: om.transport.wasserstein([1, 1, 1], [1, 1, 1], TestMatrices.SQUARE), ""),
        ],
    )  # fmt: skip
    def test_refused_where_the_labels_are_not_known(self, use, place):
        with pytest.raises(om.ProblemError, match=rf"{place}.*labels of its own"):
            use()


class TestPoints:
    def test_rows_go_by_label_where_the_index_has_them(self):
        xy = table([[1, 1], [2, 2], [3, 3]], "cab", "xy")
        assert om.Domain("abc", xy).points.tolist() == [[2, 2], [3, 3], [1, 1]]

    def test_rows_of_a_filtered_table_are_in_order(self):
        xy = table([[1, 1], [2, 2], [3, 3]], [4, 7, 9], "xy")
        assert om.Domain("abc", xy).points.tolist() == [[1, 1], [2, 2], [3, 3]]

    def test_an_index_with_some_of_the_labels_is_refused(self):
        with pytest.raises(om.ProblemError, match=r"points: .*'d', which is no label"):
            om.Domain("abc", table([[1, 1], [2, 2], [3, 3]], "abd", "xy"))

    @pytest.mark.parametrize("names", [("lat", "lon"), ("start_Latitude", "start_lng")])
    def test_latitude_first_is_refused_where_the_columns_say_so(self, names):
        frame = pandas.DataFrame([[40.7, -74.0], [40.8, -73.95]], columns=list(names))
        grid = om.Grid.geographic(2, 2, (-74.02, 40.70, -73.93, 40.82))
        domain = om.Domain.geographic("ab", frame[[names[1], names[0]]])
        for use in (
            lambda: om.Domain.geographic("ab", frame),
            lambda: domain.locate(frame),
            lambda: om.Prior.from_points(grid, frame),
        ):
            with pytest.raises(om.ProblemError, match="the latitude comes first"):
                use()
        assert om.Prior.from_points(grid, frame[[names[1], names[0]]]).binning.inside == 2
