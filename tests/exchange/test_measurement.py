"""Designs inside OpenDP: its privacy map is ε·d, its results are drawn from the row."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

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


def test_the_measurement_carries_the_digest_of_its_certificate(tmp_path: Path) -> None:
    pytest.importorskip("opendp")
    design = solved(om.MetricPrivacy(0.7, KM))
    design.save(tmp_path / "d.json")
    digest = json.loads((tmp_path / "d.json").read_text())["digest"]
    assert om.check(tmp_path / "d.json").passed
    assert digest in str(om.exchange.to_opendp(om.load(tmp_path / "d.json")).input_domain)


def test_a_hundred_releases_beside_exact_convolution() -> None:
    """Of randomised response: k of n reports are the truth's, of which losses are (2k - n) ε."""
    pytest.importorskip("dp_accounting")
    coin = om.Domain(["yes", "no"])
    problem = om.Problem(
        om.Prior.uniform(coin), om.distances.hamming(), constraints=[om.DifferentialPrivacy("1/5")]
    )
    design = om.solve(problem)
    many = om.exchange.to_dp_accounting(design).self_compose(100)
    p = float(design.mechanism.matrix[0, 0])
    rate = math.log(p / (1 - p))
    for epsilon in (0.5, 2.0, 5.0):
        exact = math.fsum(
            math.comb(100, k) * p**k * (1 - p) ** (100 - k)
            * max(0.0, -math.expm1(epsilon - (2 * k - 100) * rate))
            for k in range(101)
        )  # fmt: skip
        found = many.get_delta_for_epsilon(epsilon)
        assert exact <= found * (1 + 1e-12)
        # each of a hundred losses is rounded up by at most 1e-4
        assert found <= exact + 100 * 1e-4


def test_the_losses_of_a_design_are_those_of_its_worst_pair() -> None:
    """At every ε at least the largest hockey stick of all pairs, and hardly more."""
    pytest.importorskip("dp_accounting")
    design = solved(om.MetricPrivacy(0.7, KM), om.DistortionPrivacy(0.3, KM))
    p = design.mechanism.matrix
    every = om.exchange.to_dp_accounting(design)
    some = om.exchange.to_dp_accounting(design, [("a", "b")])
    for epsilon in (0.0, 0.3, 0.7, 1.5, 2.1):
        curve = {
            (i, j): sum(
                max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p[i], p[j], strict=True)
            )
            for i in range(3)
            for j in range(3)
        }
        found = every.get_delta_for_epsilon(epsilon)
        assert max(curve.values()) <= found + 1e-12
        assert found <= max(curve.values()) + 1e-3
        near = some.get_delta_for_epsilon(epsilon)
        largest = max(curve[0, 1], curve[1, 0])
        assert largest - 1e-12 <= near <= largest + 1e-3
    with pytest.raises(om.ProblemError, match="nowhere"):
        om.exchange.to_dp_accounting(design, [("a", "nowhere")])
    with pytest.raises(om.ProblemError, match="no list of pairs"):
        om.exchange.to_dp_accounting(design, ["ab"])
    many = om.Domain.range(60)
    loss = om.distances.hamming()
    promise = om.DifferentialPrivacy(1)
    large = om.solve(om.Problem(om.Prior.uniform(many), loss, constraints=[promise]))
    with pytest.raises(om.errors.TooLargeError):
        om.exchange.to_dp_accounting(large)
    one = om.Problem(om.Prior.uniform(om.Domain(["a"])), loss, constraints=[promise])
    assert om.exchange.to_dp_accounting(om.solve(one)).get_epsilon_for_delta(1e-12) < 2e-4
