"""Arrays, lists, pandas and GeoPandas tables wherever a mechanism, a prior or positions are taken.

Results are compared with those of the objects, and with sums that are written out here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import optmech as om

C = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])
PI = np.array([0.5, 0.3, 0.2])
HAMMING: Any = 1 - np.eye(3)
CELLS = om.Grid(2, 2, bounds=(8.4, 47.2, 8.6, 47.4))


def test_two_arrays_and_a_number_as_in_other_libraries() -> None:
    joint = PI[:, None] * C
    of: Any = om.measures
    assert of.bayes_vulnerability(C, PI) == pytest.approx(joint.max(axis=0).sum())
    assert of.expected_loss(C.tolist(), PI.tolist(), HAMMING) == pytest.approx(
        (joint * HAMMING).sum()
    )
    output = joint.sum(axis=0)
    nats = (joint * np.log(C / output)).sum()
    bounds = om.leakage.shannon_leakage(C, PI)  # type: ignore[arg-type]
    # one unit for both: nats
    assert of.mutual_information(C, PI) == pytest.approx(nats)
    assert bounds.lower <= nats * (1 + 1e-12)
    assert nats * (1 - 1e-12) <= bounds.upper
    worst = max(
        math.log(C[i, o] / C[j, o]) for i in range(3) for j in range(3) for o in range(3) if i != j
    )
    assert of.epsilon(C, HAMMING) == pytest.approx(worst)
    attack = om.attacks.optimal_attack(C, PI, HAMMING)  # type: ignore[arg-type]
    assert attack.error == pytest.approx(1 - joint.max(axis=0).sum())
    assert om.leakage.refines(C, C).holds  # type: ignore[arg-type]


def test_a_matrix_is_a_mechanism() -> None:
    plain = om.Mechanism(C)
    assert plain.secrets.labels == plain.observables.labels == (0, 1, 2)
    assert om.Mechanism([[0.5, 0.5]]).observables.labels == (0, 1)
    named = om.Mechanism(["a", "b", "c"], ["x", "y", "z"], C)
    assert named.matrix.tolist() == C.tolist()
    assert named.sample("a", seed=1) in ("x", "y", "z")
    for wrong in ([0.5, 0.5], [[0.5, 0.4]], [[]], [["a"]], [[-1, 2]], 3, "abc"):
        with pytest.raises(om.ProblemError):
            om.Mechanism(wrong)  # type: ignore[arg-type]
    with pytest.raises(om.ProblemError, match="Give secrets, observables and a matrix"):
        om.Mechanism(["a"], ["x"])


def test_a_table_has_its_labels() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(C, index=list("abc"), columns=list("xyz"))
    m = om.Mechanism(table)
    assert (m.secrets.labels, m.observables.labels) == (tuple("abc"), tuple("xyz"))
    weights = pandas.Series(PI, index=list("abc"))
    expected = (PI[:, None] * C).max(axis=0).sum()
    found: Any = om.measures.bayes_vulnerability
    # in whatever order a Series, a table and a mapping are
    for prior in (weights, weights[::-1], dict(zip("abc", PI, strict=True))):
        assert found(m, prior) == pytest.approx(expected)
        assert found(table[::-1], prior) == pytest.approx(expected)
    with pytest.raises(om.ProblemError, match="its index"):
        found(m, weights.rename({"a": "d"}))
    numbered = om.Problem(weights, om.distances.hamming(), constraints=[om.DifferentialPrivacy(1)])  # type: ignore[arg-type]
    assert numbered.secrets.labels == tuple("abc")


def test_an_array_is_over_the_secrets_of_the_other_arguments() -> None:
    cells = om.Grid(1, 3, unit="km")
    km = om.distances.euclidean()
    prior = om.Prior(cells, PI)
    m = om.Mechanism(cells, cells, C)
    for arguments in ((C, prior, km), (m, PI, km), (m, prior, km)):
        found = om.measures.expected_loss(*arguments)  # type: ignore[arg-type]
        apart = np.abs(np.arange(3)[:, None] - np.arange(3))
        assert found == pytest.approx((PI[:, None] * C * apart).sum())
    design = om.solve(om.Problem(prior, km, constraints=[om.MetricPrivacy(1, km)]))
    own = om.measures.expected_loss(design, PI, km)  # type: ignore[arg-type]
    assert own == pytest.approx(design.loss)
    assert m.then(np.eye(3)).matrix.tolist() == C.tolist()  # type: ignore[arg-type]


def test_one_position_has_a_label_and_many_have_indices(tmp_path: Any) -> None:
    cells = om.Grid(2, 3, unit="km")
    km = om.distances.euclidean()
    design = om.solve(
        om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    )
    packed = om.pack(design, tmp_path / "m.omm", outside="refuse")
    for point in ((0.5, 0.5), (2.9, 1.1), (7.0, 0.0)):
        assert cells.locate(point) == packed.locate(point)  # type: ignore[union-attr]
    assert design.mechanism.sample(cells.locate((2.5, 1.5))) in cells.labels
    many = cells.locate([(0.5, 0.5), (2.5, 1.5), (7, 0)])
    assert many.tolist() == [0, 5, -1]
    assert len(design.mechanism.draws(many[:2])) == 2
    towns = om.Domain.geographic(["a", "b"], [[8.5, 47.3], [9.5, 47.3]])
    assert towns.locate((9.4, 47.3)) == "b"
    assert towns.locate((20, 0), max_distance=100) is None


def test_points_of_geopandas_in_any_reference_system() -> None:
    geopandas = pytest.importorskip("geopandas")
    xy = np.array([[8.45, 47.25], [8.55, 47.25], [8.55, 47.37], [8.56, 47.38]])
    frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(*xy.T), crs=4326)
    for given in (frame, frame.to_crs(2056), frame.geometry):
        assert CELLS.locate(given).tolist() == [0, 1, 3, 3]
        assert om.Prior.from_points(CELLS, given).weights.tolist() == [0.25, 0.25, 0, 0.5]
    assert om.Grid(2, 2).locate(geopandas.GeoSeries.from_xy([0.5], [1.5])).tolist() == [2]
    with pytest.raises(om.ProblemError, match="in degrees"):
        om.Grid(2, 2).locate(frame)
    with pytest.raises(om.ProblemError, match="not all points"):
        CELLS.locate(frame.buffer(1))


def test_columns_are_found_by_their_names_as_the_command_finds_them() -> None:
    pandas = pytest.importorskip("pandas")
    km = om.distances.euclidean()
    problem = om.Problem(om.Prior.uniform(CELLS), km, constraints=[om.MetricPrivacy(0.1, km)])
    design = om.solve(problem)
    table = pandas.DataFrame({"user": ["a"], "pos_lng": [8.45], "pos_lat": [47.25]})
    assert list(om.protect(design, table).columns) == ["pos_lng", "pos_lat"]
    with pytest.raises(om.ProblemError, match="no column says where a row is"):
        om.protect(design, table.rename(columns={"pos_lng": "east"}))
