from __future__ import annotations

import numpy as np
import pytest

import optmech as om
from optmech import losses, observables


class TestCoarser:
    def test_blocks_partition_the_grid_and_may_be_cut_at_the_far_border(self):
        grid = om.Grid(3, 5, cell=(1.0, 2.0))
        blocks = observables.coarser(grid, 2, 2)
        assert blocks.labels == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))
        assert sorted(k for group in blocks.members for k in group) == list(range(15))
        for label, group in zip(blocks.labels, blocks.members, strict=True):
            assert {(grid.labels[k][0] // 2, grid.labels[k][1] // 2) for k in group} == {label}
        assert blocks.points[0].tolist() == [1, 2]
        assert blocks.points[-1].tolist() == [4.5, 5]

    def test_a_block_as_large_as_the_grid(self):
        assert observables.coarser(om.Grid(2, 2), 9, 9).members == ((0, 1, 2, 3),)

    @pytest.mark.parametrize("size", [0, -1, 1.5, True, "2", None])
    def test_refuses_block_sizes(self, size):
        with pytest.raises(om.ProblemError, match=r"coarser\.columns"):
            observables.coarser(om.Grid(2, 2), 1, size)

    def test_refuses_other_domains(self):
        with pytest.raises(om.ProblemError, match="Domain is not a Grid"):
            observables.coarser(om.Domain.range(4), 2, 2)


class TestSubsets:
    def test_by_label(self):
        made = observables.subsets(om.Domain("abc", [[0], [2], [10]]), {"low": "ab", "all": "abc"})
        assert made.labels == ("low", "all")
        assert made.members == ((0, 1), (0, 1, 2))
        assert made.points.tolist() == [[1], [4]]
        assert observables.subsets(om.Domain("ab"), {"x": ["a"]}).points is None

    @pytest.mark.parametrize(
        ("groups", "message"),
        [({"x": []}, r"observables\[0\].*empty"), ({"x": "az"}, "there is no 'z'"), ({}, "empty")],
    )
    def test_refuses_groups(self, groups, message):
        with pytest.raises(om.ProblemError, match=message):
            observables.subsets(om.Domain("abc"), groups)

    @pytest.mark.parametrize(
        ("labels", "members", "message"),
        [
            ("x", [[3]], r"observables\[0\].*not indices of the 3"),
            ("x", [[-1]], "not indices"),
            ("xy", [[0]], "does not fit|1 subsets for 2"),
            ("xx", [[0], [1]], "occurs twice"),
        ],
    )
    def test_refuses_members(self, labels, members, message):
        for base in (om.Domain("abc"), om.Domain.range(3)):
            with pytest.raises(om.ProblemError, match=message):
                observables.Subsets(base, labels, members)


class TestSuppressible:
    def test_adds_the_symbol_last(self):
        made = observables.suppressible(om.Domain("ab", [0, 1]))
        assert made.labels == ("a", "b", "suppressed")
        assert made.points is None
        with pytest.raises(om.ProblemError, match="occurs twice"):
            observables.suppressible(om.Domain("ab"), "a")


class TestLosses:
    def test_over_members(self):
        line = om.Domain.range(4)
        halves = observables.subsets(line, {"low": [0, 1], "high": [2, 3]})
        expected = {
            "mean": [[0.5, 2.5], [0.5, 1.5], [1.5, 0.5], [2.5, 0.5]],
            "max": [[1, 3], [1, 2], [2, 1], [3, 1]],
            "min": [[0, 2], [0, 1], [1, 0], [2, 0]],
        }
        for how, table in expected.items():
            loss = losses.over_members(om.distances.euclidean(), how)
            assert loss(line, halves).tolist() == table

    def test_suppression_costs_a_number_or_one_per_secret(self):
        line = om.Domain.range(2)
        outputs = observables.suppressible(line)
        base = om.distances.euclidean()
        assert losses.with_suppression(base, 5)(line, outputs).tolist() == [[0, 1, 5], [1, 0, 5]]
        each = losses.with_suppression(base, [5, 7])(line, outputs)
        assert each.tolist() == [[0, 1, 5], [1, 0, 7]]

    @pytest.mark.parametrize(
        "use",
        [
            lambda d: losses.over_members(om.distances.hamming(), "median"),
            lambda d: losses.over_members(om.distances.hamming())(d, d),
            lambda d: losses.with_suppression(om.distances.hamming(), -1),
            lambda d: losses.with_suppression(om.distances.hamming(), np.nan),
            lambda d: losses.with_suppression(om.distances.hamming(), 1)(d, d),
            lambda d: losses.with_suppression(om.distances.hamming(), [1, 2, 3])(
                d, observables.suppressible(d)
            ),
        ],
    )
    def test_refuses(self, use):
        with pytest.raises(om.ProblemError, match="loss"):
            use(om.Domain.range(2))
