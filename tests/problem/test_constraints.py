from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import optmech as om

E, H = om.distances.euclidean(), om.distances.hamming()
LINE = om.Domain.range(3)
PRIOR = om.Prior(LINE, [1, 2, 1])


def statement(*constraints, **arguments):
    return om.Problem(
        PRIOR, arguments.pop("loss", H), constraints=constraints, **arguments
    ).statement


NOT_EPSILON = [-1, math.nan, math.inf, "many", None, "-1", True, [1]]


class TestNumbers:
    @pytest.mark.parametrize("value", NOT_EPSILON)
    @pytest.mark.parametrize(
        ("make", "where"),
        [
            (lambda v: om.MetricPrivacy(v, E), "epsilon"),
            (om.DifferentialPrivacy, "epsilon"),
            (lambda v: om.DistributionPrivacy(v, [([1, 0], [0, 1])]), "epsilon"),
            (lambda v: om.DistortionPrivacy(v, E), "minimum"),
            (om.LossBound, "maximum"),
            (lambda v: om.MetricPrivacy(1, E, delta=v), "delta"),
            (lambda v: om.DifferentialPrivacy(1, delta=v), "delta"),
            (lambda v: om.DistributionPrivacy(1, [([1, 0], [0, 1])], delta=v), "delta"),
            (lambda v: om.DifferentialPrivacy(1, (E, v)), "adjacency.radius"),
        ],
    )
    def test_refused_with_their_place(self, make, where, value):
        with pytest.raises(om.ProblemError) as caught:
            make(value)
        assert caught.value.where == where

    @pytest.mark.parametrize("value", [-1, math.nan, math.inf, "near"])
    @pytest.mark.parametrize("where", ["threshold", "observable_threshold"])
    def test_thresholds(self, where, value):
        with pytest.raises(om.ProblemError, match=f"^{where}"):
            om.MetricPrivacy(1, E, **{where: value})

    def test_delta_is_at_most_one(self):
        assert om.DifferentialPrivacy(1, delta="1/3").delta.factor == Fraction(1, 3)
        with pytest.raises(om.ProblemError, match=r"delta: 1\.5 is above 1"):
            om.DifferentialPrivacy(1, delta=1.5)

    def test_exact_strings_stay_exact(self):
        epsilon = om.MetricPrivacy("2 ln 3", E).epsilon
        assert (epsilon.factor, epsilon.log_of) == (2, 3)


class TestMetricPrivacy:
    @pytest.mark.parametrize("distance", [None, "euclidean", 4])
    def test_needs_a_distance(self, distance):
        for make in (om.MetricPrivacy, om.DistortionPrivacy):
            with pytest.raises(om.ProblemError, match=r"is not a distance\. Use .*om\.distances"):
                make(1, distance)

    def test_a_table_is_a_distance(self):
        table = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
        for make in (om.MetricPrivacy, om.DistortionPrivacy):
            assert make(0.5, table).distance(LINE, LINE).tolist() == table

    def test_bounds_every_ordered_pair(self):
        skewed = om.distances.matrix([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
        found = statement(om.MetricPrivacy(0.5, skewed)).log_ratio
        inf = math.inf
        assert found.tolist() == [[inf, 0.5, 1], [1.5, inf, 2], [2.5, 3, inf]]

    def test_the_tightest_of_several_wins(self):
        found = statement(
            om.MetricPrivacy(1, E), om.DifferentialPrivacy(1.5), om.MetricPrivacy(3, E, threshold=1)
        ).log_ratio
        assert found[0].tolist() == [math.inf, 1, 1.5]

    def test_threshold_includes_its_border(self):
        found = statement(om.MetricPrivacy(1, E, threshold=1)).log_ratio
        assert np.isfinite(found).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]

    def test_observable_threshold_excludes_delta(self):
        with pytest.raises(om.ProblemError, match="observable_threshold"):
            om.MetricPrivacy(1, E, observable_threshold=1, delta=0.1)


class TestDifferentialPrivacy:
    @pytest.mark.parametrize(
        "pairs", [[(0, 1)], [(1, 0)], np.array([[0, 1]]), [[0.0, 1.0]], {(0, 1)}]
    )
    def test_pairs_go_both_ways(self, pairs):
        found = statement(om.DifferentialPrivacy("ln 3", pairs)).log_ratio
        assert np.argwhere(np.isfinite(found)).tolist() == [[0, 1], [1, 0]]
        assert found[0, 1] == pytest.approx(math.log(3), rel=1e-15)

    def test_radius_includes_its_border(self):
        found = statement(om.DifferentialPrivacy(1, (E, 1))).log_ratio
        assert np.argwhere(np.isfinite(found)).tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]

    @pytest.mark.parametrize(
        "adjacency",
        ["ring", 5, None, [], [(0,)], [(0, 1, 2)], [(0, 1.5)], [(0, -1)], [("a", 1)], [("a", "a")],
         [None], [(0, math.nan)], [(0, math.inf)], (E, None)],
    )  # fmt: skip
    def test_refuses_adjacency(self, adjacency):
        with pytest.raises(om.ProblemError, match=r"^adjacency"):
            om.DifferentialPrivacy(1, adjacency)

    def test_refuses_pairs_outside_the_domain(self):
        with pytest.raises(om.ProblemError, match=r"^constraints\[0\]\.adjacency\[1\].*\(0, 3\)"):
            statement(om.DifferentialPrivacy(1, [(0, 1), (0, 3)]))


class TestDistortionPrivacy:
    def test_weights_are_estimate_by_secret(self):
        skewed = om.distances.matrix([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
        (found,) = statement(om.DistortionPrivacy(0.1, skewed)).families
        assert found.weighted.tolist() == [[0, 0.5, 0.5], [0.75, 0, 1], [1.25, 3, 0]]
        assert found.blind == 1.0

    def test_adversary_may_have_another_prior(self):
        other = om.Prior(LINE, [0, 0, 1])
        (found,) = statement(om.DistortionPrivacy(0, E, prior=other)).families
        assert found.weighted[:, 2].tolist() == [2, 1, 0]

    @pytest.mark.parametrize(
        "adversary",
        [[1, 2, 1], om.Prior.uniform(om.Domain.range(4)), om.Prior.uniform(om.Domain("abc"))],
    )
    def test_refuses_priors_that_are_not_over_the_secrets(self, adversary):
        with pytest.raises(om.ProblemError, match=r"^constraints\[0\]\.prior"):
            statement(om.DistortionPrivacy(0, E, prior=adversary))
        with pytest.raises(om.ProblemError, match=r"^objective\.prior"):
            statement(om.LossBound(1), objective=om.MaximizeDistortion(E, prior=adversary))


class TestDistributionPrivacy:
    def test_normalises_and_goes_both_ways(self):
        (found,) = statement(
            om.DistributionPrivacy(2, [([1, 1, 2], [0, 0, 5])], scale=[0.25])
        ).families
        assert found.left.tolist() == [[0.25, 0.25, 0.5], [0, 0, 1]]
        assert found.right.tolist() == [[0, 0, 1], [0.25, 0.25, 0.5]]
        assert found.log_ratio.tolist() == [0.5, 0.5]

    @pytest.mark.parametrize(
        ("arguments", "where"),
        [
            ({"pairs": []}, "pairs"),
            ({"pairs": None}, "pairs"),
            ({"pairs": [1, 2]}, "pairs"),
            ({"pairs": [([1, 0],)]}, "pairs[0]"),
            ({"pairs": [([1, 0], [0, 0])]}, "pairs[0][1]"),
            ({"pairs": [([1, -1], [1, 0])]}, "pairs[0][0]"),
            ({"pairs": [([1, math.nan], [1, 0])]}, "pairs[0][0]"),
            ({"pairs": [([1, 0], [0, 1])], "scale": [1, 2]}, "scale"),
            ({"pairs": [([1, 0], [0, 1])], "scale": [-1]}, "scale"),
            ({"pairs": [([1, 0], [0, 1])], "divergence": "renyi"}, "divergence"),
        ],
    )
    def test_refuses(self, arguments, where):
        with pytest.raises(om.ProblemError) as caught:
            om.DistributionPrivacy(1, **arguments)
        assert caught.value.where == where

    def test_refuses_sizes_that_do_not_fit(self):
        with pytest.raises(om.ProblemError, match=r"^constraints\[0\]\.pairs\[0\]\[1\]"):
            statement(om.DistributionPrivacy(1, [([1, 0, 0], [0, 1])]))


class TestLossBound:
    def test_expected_and_worst_case(self):
        expected, worst = statement(
            om.LossBound(1), om.LossBound(2, worst_case=True, loss=np.full((3, 3), 4.0))
        ).families
        assert expected.weighted[1].tolist() == [0.5, 0, 0.5]
        assert (worst.weighted == 4).all()
        assert (expected.per_secret, worst.per_secret) == (False, True)

    @pytest.mark.parametrize(
        ("loss", "message"),
        [(np.ones((2, 3)), "does not fit"), (-np.ones((3, 3)), "below 0"), ([1, 2], "dimension")],
    )
    def test_refuses_losses(self, loss, message):
        with pytest.raises(om.ProblemError, match=message):
            statement(om.LossBound(1, loss=loss))


class TestSupport:
    def test_masks_and_radii_meet(self):
        mask = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1]])
        found = statement(om.Support(mask), om.Support.within(E, 1)).allowed
        assert found.tolist() == [[True, True, False], [True, True, False], [False, True, True]]

    @pytest.mark.parametrize(
        "mask", [[1, 0], [[0.5, 1]], [["yes", "no"]], [[True], [True, False]], "all", [[math.nan]]]
    )
    def test_refuses_masks(self, mask):
        with pytest.raises(om.ProblemError, match=r"^mask"):
            om.Support(mask)

    def test_needs_exactly_one_way_to_say_it(self):
        for arguments in ({}, {"distance": E}, {"radius": 1}, {"mask": np.eye(3), "radius": 1}):
            with pytest.raises(om.ProblemError, match=r"^support"):
                om.Support(**arguments)

    def test_refuses_secrets_without_observables(self):
        with pytest.raises(om.ProblemError, match=r"^constraints\[0\]\.mask.*1 secret.*first 2"):
            statement(om.Support([[1, 1, 1], [1, 0, 0], [0, 0, 0]]))
        with pytest.raises(om.ProblemError, match="does not fit"):
            statement(om.Support(np.ones((3, 2))))


class TestProblem:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"prior": "uniform"}, "^prior: str is not a Prior"),
            ({"loss": "hamming"}, "^loss"),
            ({"loss": np.ones((2, 3))}, "^loss.*does not fit"),
            ({"loss": np.full((3, 3), np.nan)}, "^loss.*NaN"),
            ({"observables": 3}, "^observables"),
            ({"objective": "utility"}, "^objective"),
            ({"objective": om.MaximizeDistortion(E)}, "^objective.*LossBound"),
            ({"constraints": om.LossBound(1)}, "^constraints.*not a list"),
            ({"constraints": ["private"]}, r"^constraints\[0\].*str is not a constraint"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Problem(**{"prior": PRIOR, "loss": H, **arguments})

    def test_refuses_what_cannot_fit_into_memory(self, monkeypatch):
        monkeypatch.setattr("optmech.base.memory.available_bytes", lambda: 10_000)
        vast = om.Prior.uniform(om.Domain.range(50))
        with pytest.raises(om.errors.TooLargeError, match=r"78.1 KiB .* 9.77 KiB .*coarser"):
            om.Problem(vast, H)

    def test_notes_report_what_is_no_metric(self):
        skewed = om.distances.matrix([[0, 1, 9], [1, 0, 1], [9, 1, 0]])
        (note,) = om.Problem(PRIOR, H, constraints=[om.MetricPrivacy(1, skewed)]).notes
        assert "exceeds d(0, 1) + d(1, 2) by 7" in note
