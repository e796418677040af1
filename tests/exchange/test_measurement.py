"""Designs inside OpenDP: its privacy map is ε·d, its results are drawn from the row."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

import optmech as om

KM = om.distances.euclidean()
LINE = om.Domain(["a", "b", "c"], points=[0, 1, 3], unit="km")


def solved(*constraints: object) -> om.Design:
    return om.solve(om.Problem(om.Prior.uniform(LINE), KM, constraints=list(constraints)))


def test_the_map_is_epsilon_times_distance() -> None:
    pytest.importorskip("opendp")
    measurement = om.exchange.to_opendp(solved(om.MetricPrivacy(0.7, KM)))
    for d in (0.0, 0.1, 1.0, 3.0, 1e6):
        found = measurement.map(d)
        # rounded up, by no more than a unit in the last place
        assert Fraction(found) >= Fraction(0.7) * Fraction(d)
        assert found == pytest.approx(0.7 * d, rel=3e-16)
    assert measurement.check(3.0, 2.2)
    assert not measurement.check(3.0, 2.0)
    logarithm = om.exchange.to_opendp(solved(om.MetricPrivacy("ln 2", KM)))
    assert logarithm.map(2.0) == pytest.approx(1.3862943611198906, rel=3e-16)


def test_all_pairs_are_at_distance_one() -> None:
    pytest.importorskip("opendp")
    measurement = om.exchange.to_opendp(solved(om.DifferentialPrivacy(0.5)))
    assert [measurement.map(d) for d in (0.0, 1.0, 7.0)] == [0.0, 0.5, 0.5]


def test_results_follow_the_row_and_can_be_processed_further() -> None:
    dp = pytest.importorskip("opendp.prelude")
    design = solved(om.MetricPrivacy(0.7, KM))
    measurement = om.exchange.to_opendp(design)
    drawn = Counter(measurement("b") for _ in range(4000))
    row = design.mechanism.matrix[1]
    for label, probability in zip("abc", row, strict=True):
        spread = (probability * (1 - probability) / 4000) ** 0.5
        assert abs(drawn[label] / 4000 - probability) < 6 * spread + 1e-9
    shouted = measurement >> dp.new_function(str.upper, TO="ExtrinsicObject")
    assert shouted("b") in {"A", "B", "C"}
    assert shouted.map(1.0) == measurement.map(1.0)
    with pytest.raises(Exception, match="d"):
        measurement("nowhere")


def test_what_gives_no_map_is_refused() -> None:
    pytest.importorskip("opendp")
    for design in (
        solved(om.MetricPrivacy(0.7, KM, threshold=1.5)),
        solved(om.DifferentialPrivacy(0.7, delta=0.1)),
        solved(om.DifferentialPrivacy(0.7, adjacency=[(0, 1)])),
        solved(om.DistortionPrivacy(0.5, KM)),
    ):
        with pytest.raises(om.ProblemError, match="no constraint limits all pairs"):
            om.exchange.to_opendp(design)
    with pytest.raises(om.ProblemError, match="no constraint 3"):
        om.exchange.to_opendp(solved(om.MetricPrivacy(0.7, KM)), constraint=3)
