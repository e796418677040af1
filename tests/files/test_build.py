"""What the keys of a problem file mean: compared with the same problem made in Python."""

from __future__ import annotations

import gzip
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import optmech as om
from optmech.files import build_problem

D = om.distances


def build(tmp_path: Path = Path(), **sections: Any) -> om.Problem:
    document = {"format": 1, "prior": "uniform", "loss": "hamming", **sections}
    return build_problem(document, tmp_path / "p.toml").problem


def same(built: om.Problem, made: om.Problem) -> None:
    assert built.secrets == made.secrets
    assert built.observables == made.observables
    a, b = built.statement, made.statement
    for name in ("prior", "loss", "log_ratio", "allowed"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.objective == b.objective
    assert [family.kind for family in a.families] == [family.kind for family in b.families]
    for ours, theirs in zip(a.families, b.families, strict=True):
        for field in fields(theirs):
            left, right = (getattr(family, field.name) for family in (ours, theirs))
            if sp.issparse(right):
                left, right = left.toarray(), right.toarray()
            np.testing.assert_array_equal(left, right, err_msg=f"{theirs.kind}.{field.name}")


GRID = {"kind": "grid", "rows": 2, "columns": 3, "cell": [2, 0.5], "unit": "km", "origin": [1, -1]}


def test_grid() -> None:
    grid = om.Grid(2, 3, (2, 0.5), unit="km", origin=(1, -1))
    same(build(secrets=GRID, loss="euclidean"), om.Problem(om.Prior.uniform(grid), D.euclidean()))


def test_square_and_geographic_grids() -> None:
    assert build(secrets={"kind": "grid", "rows": 1, "columns": 2, "cell": 3}).secrets == om.Grid(
        1, 2, 3.0
    )
    box = [-74.02, 40.70, -73.93, 40.82]
    built = build(secrets={"kind": "grid", "rows": 3, "columns": 2, "bounds": box}).secrets
    assert built == om.Grid.geographic(3, 2, box)


def test_points_lines_labels() -> None:
    points = [[0, 0, 1], [1, 0, 2]]
    assert build(
        secrets={"kind": "points", "points": points, "labels": ["a", 7], "unit": "m"}
    ).secrets == om.Domain(["a", 7], points, "m")
    assert build(secrets={"kind": "line", "count": 3, "unit": "y"}).secrets == om.Domain.range(
        3, "y"
    )
    line = build(secrets={"kind": "line", "values": [2, 4.5]}).secrets
    assert line == om.Domain([2, 4.5], [2, 4.5])
    assert [type(label) for label in line.labels] == [int, float]
    named = build(secrets={"kind": "line", "values": [2, 4.5], "labels": ["x", "y"]}).secrets
    assert named == om.Domain(["x", "y"], [2, 4.5])
    assert build(secrets={"kind": "labels", "labels": ["a", "b"]}).secrets == om.Domain(["a", "b"])
    globe = build(secrets={"kind": "lonlat", "points": [[-73, 45], [2, 48]]}).secrets
    assert globe == om.Domain.geographic(range(2), [[-73, 45], [2, 48]])


def test_table_and_column(tmp_path: Path) -> None:
    text = "name,x,y,w\na,0,1,3\nb,2,3,1\n"
    with gzip.open(tmp_path / "t.csv.gz", "wt") as stream:
        stream.write(text)
    built = build(
        tmp_path,
        secrets={"kind": "table", "file": "t.csv.gz", "x": "x", "y": "y", "label": "name"},
        prior={"kind": "column", "column": "w", "smoothing": 1},
        loss="manhattan",
    )
    domain = om.Domain(["a", "b"], [[0, 1], [2, 3]])
    same(built, om.Problem(om.Prior(domain, [4, 2]), D.manhattan()))


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("x,y,w\n0,1,2\n,3,1\n", "secrets.file", "data row 2 has no usable 'x'"),
        ("x,y,w\n0,1,2\n1,3,\n", "prior.file", "data row 2 has no usable 'w'"),
        ("x,y,w\n0,1,2\n1,3,-4\n", "prior.column", "data row 2 has a negative weight"),
        ("x,y\n0,1\n", "prior.file", "there is no column 'w'"),
        ("u,y,w\n0,1,1\n", "secrets.file", "there is no column 'x'"),
    ],
)
def test_faulty_tables(tmp_path: Path, text: str, path: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(om.ProblemError, match=message) as caught:
        build(
            tmp_path,
            secrets={"kind": "table", "file": "t.csv", "x": "x", "y": "y"},
            prior={"kind": "column", "column": "w"},
        )
    assert path in caught.value.where


@pytest.mark.parametrize(
    ("package", "resource", "message"),
    [
        ("nosuchpackage", "a.csv", r"is not installed.*pip install nosuchpackage"),
        ("math", "a.csv", "is not installed"),
        ("os.path", "a.csv", "not the name of a package"),
        ("__main__", "a.csv", "is not installed"),
        ("numpy", "../secret.csv", "lies outside the package"),
        ("numpy", "nosuch.csv", "no usable data file"),
        ("numpy", "\0", "not the name of a file"),
        ("numpy", "core", "no usable data file"),
    ],
)
def test_faulty_packages(package: str, resource: str, message: str) -> None:
    with pytest.raises(om.ProblemError, match=message) as caught:
        build(
            secrets={"kind": "table", "package": package, "resource": resource, "x": "x", "y": "y"}
        )
    assert caught.value.where.split(": ")[1].startswith("secrets.")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optmech.reading.data.find_spec", lambda name: None)
    absent = {"package": "plotly", "resource": "a.csv"}
    with pytest.raises(om.ProblemError, match="Run: pip install plotly"):
        build(secrets={"kind": "table", "x": "x", "y": "y", **absent})


def test_graph_tree_and_edges(tmp_path: Path) -> None:
    edges = [["a", "b", 2.0], ["b", "c"], ["a", "c", 7]]
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 7.0)])
    made = om.Problem(om.Prior.uniform(om.Domain(["a", "b", "c"])), D.graph(graph))
    same(build(secrets={"kind": "graph", "edges": edges}, loss="graph"), made)
    np.testing.assert_array_equal(made.loss_matrix, [[0, 2, 3], [2, 0, 1], [3, 1, 0]])
    (tmp_path / "e.csv").write_text("source,target,length\na,b,2\nb,c,1\na,c,7\n")
    same(build(tmp_path, secrets={"kind": "graph", "file": "e.csv"}, loss="graph"), made)
    labels = {"kind": "labels", "labels": ["a", "b", "c"]}
    for table in ({"kind": "graph", "edges": edges}, {"kind": "graph", "file": "e.csv"}):
        same(build(tmp_path, secrets=labels, loss={"distance": table}), made)


def test_parallel_edges_keep_the_shortest_and_numbers_stay_numbers(tmp_path: Path) -> None:
    built = build(
        secrets={"kind": "graph", "nodes": [2, 1], "edges": [[1, 2, 5], [2, 1, 3]]}, loss="graph"
    )
    assert built.secrets.labels == (2, 1)
    assert built.loss_matrix[0, 1] == 3
    (tmp_path / "e.csv").write_text("source,target,length\n1,2,4\n")
    text = build(
        tmp_path, secrets={"kind": "graph", "nodes": [1, 2], "file": "e.csv"}, loss="graph"
    )
    assert text.loss_matrix[0, 1] == 4


def test_trees_measure_path_lengths() -> None:
    parents = {"a": "x", "b": "x", "x": "root", "c": "root"}
    built = build(secrets={"kind": "tree", "parents": parents, "lengths": {"a": 3}}, loss="graph")
    assert built.secrets.labels == ("a", "b", "c")
    np.testing.assert_array_equal(built.loss_matrix, [[0, 4, 5], [4, 0, 3], [5, 3, 0]])
    tree = {"kind": "tree", "parents": parents, "lengths": {"a": 3}}
    alone = build(secrets={"kind": "labels", "labels": ["a", "b", "c"]}, loss={"distance": tree})
    np.testing.assert_array_equal(alone.loss_matrix, built.loss_matrix)


def test_elastic_distances_hold_a_share_of_the_mass() -> None:
    places = {"kind": "line", "values": [0, 1, 2, 4]}
    mass = {"kind": "weights", "weights": [4, 2, 1, 1]}
    elastic = {"kind": "elastic", "mass": mass, "share": 0.125, "exponent": 1}
    built = build(secrets=places, loss={"distance": elastic})
    # steps: the mass that is closer, in eighths; shorter ways around where there are some
    wanted = [[0, 2, 3, 4], [2, 0, 1, 2], [3, 1, 0, 1], [4, 2, 1, 0]]
    np.testing.assert_allclose(built.loss_matrix, wanted)
    few = {"kind": "weights", "weights": [1, 2, 3]}
    with pytest.raises(om.ProblemError, match=r"loss\.distance\.mass\.weights: has 3 entries"):
        build(secrets=places, loss={"distance": {**elastic, "mass": few}})
    with pytest.raises(om.ProblemError, match="share"):
        build(secrets=places, loss={"distance": {**elastic, "share": 0}})


def test_observables() -> None:
    grid = om.Grid(2, 3, (2, 0.5), unit="km", origin=(1, -1))
    prior = om.Prior.uniform(grid)
    blocks = om.observables.coarser(grid, 1, 2)
    same(
        build(
            secrets=GRID,
            observables={"kind": "coarser", "rows": 1, "columns": 2, "suppress": "?"},
            loss={"distance": "euclidean", "reduce": "max", "suppression": 9},
        ),
        om.Problem(
            prior,
            om.losses.with_suppression(om.losses.over_members(D.euclidean(), "max"), 9),
            om.observables.suppressible(blocks, "?"),
        ),
    )
    sets = om.observables.subsets(grid, {"u": [(0, 0), (0, 1)], "v": [(1, 2)]})
    same(
        build(
            secrets=GRID,
            observables={"kind": "subsets", "groups": {"u": [[0, 0], "0,1"], "v": [[1, 2]]}},
            loss={"distance": "euclidean", "reduce": "min"},
        ),
        om.Problem(prior, om.losses.over_members(D.euclidean(), "min"), sets),
    )
    same(
        build(
            secrets=GRID,
            observables={"kind": "points", "points": [[0, 0], [5, 5]], "labels": ["p", "q"]},
            loss="euclidean",
        ),
        om.Problem(prior, D.euclidean(), om.Domain(["p", "q"], [[0, 0], [5, 5]])),
    )
    same(build(secrets=GRID, observables={"kind": "same"}), om.Problem(prior, D.hamming()))


def test_priors(tmp_path: Path) -> None:
    secrets = {"kind": "grid", "rows": 1, "columns": 3}

    def weights(prior: Any) -> list[float]:
        built = build(tmp_path, secrets=secrets, prior=prior)
        return [round(float(w), 12) for w in built.prior.weights]

    assert weights({"kind": "uniform"}) == [round(1 / 3, 12)] * 3
    assert weights({"kind": "weights", "weights": [1, 3, 0]}) == [0.25, 0.75, 0]
    assert weights({"kind": "weights", "weights": {"0,1": 1}}) == [0, 1, 0]
    assert weights({"kind": "counts", "counts": [3, 0, 0], "smoothing": 1}) == [
        round(x, 12) for x in (4 / 6, 1 / 6, 1 / 6)
    ]
    (tmp_path / "c.csv").write_text("a,b,n\n0.5,0.5,2\n2.5,0.1,6\n9,9,4\nx,0.5,4\n")
    assert weights({"kind": "csv", "file": "c.csv", "x": "a", "y": "b", "weight": "n"}) == [
        0.25,
        0,
        0.75,
    ]


def test_observations_outside_are_reported(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("a,b,n\n0.5,0.5,2\n2.5,0.1,6\n9,9,4\nx,0.5,4\n")
    counted = build(
        tmp_path,
        secrets={"kind": "grid", "rows": 1, "columns": 3},
        prior={"kind": "csv", "file": "c.csv", "x": "a", "y": "b", "weight": "n"},
    )
    assert counted.notes == (
        "prior: 8 of 16 observations counted; 4 (25.0 %) fall outside the domain; "
        "4 (25.0 %) have missing coordinates",
    )
    unknown = build(
        secrets={"kind": "labels", "labels": ["a", "b"]},
        prior={"kind": "counts", "counts": {"a": 1, "b": 2, "z": 1}},
    )
    assert "1 (25.0 %) fall outside" in unknown.notes[0]
    np.testing.assert_allclose(unknown.prior.weights, [1 / 3, 2 / 3])


def test_losses(tmp_path: Path) -> None:
    secrets = {"kind": "line", "count": 2}
    (tmp_path / "l.csv").write_text("0, 1.5\n2,0\n")
    for loss in ({"matrix": [[0, 1.5], [2, 0]]}, {"file": "l.csv"}):
        built = build(tmp_path, secrets=secrets, loss=loss)
        np.testing.assert_array_equal(built.loss_matrix, [[0, 1.5], [2, 0]])
    squared = build(
        secrets={"kind": "line", "values": [0, 3]}, loss={"distance": "euclidean", "power": 2}
    )
    np.testing.assert_array_equal(squared.loss_matrix, [[0, 9], [9, 0]])
    (tmp_path / "l.csv").write_text("a,b\n2,0\n")
    with pytest.raises(
        om.ProblemError, match=r"loss.file: l.csv: line 1 has a cell that is not a number"
    ):
        build(tmp_path, secrets=secrets, loss={"file": "l.csv"})


E, H = D.euclidean(), D.hamming()
PAIR = ([1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 3])


@pytest.mark.parametrize(
    ("table", "made"),
    [
        (
            {"kind": "metric_privacy", "epsilon": "ln 3", "distance": "euclidean"},
            om.MetricPrivacy("ln 3", E),
        ),
        (
            {
                "kind": "metric_privacy",
                "epsilon": 0.5,
                "distance": "euclidean",
                "threshold": 3,
                "observable_threshold": 2,
            },
            om.MetricPrivacy(0.5, E, 3, 2),
        ),
        (
            {"kind": "metric_privacy", "epsilon": 1, "distance": "manhattan", "delta": "1/8"},
            om.MetricPrivacy(1, D.manhattan(), delta=0.125),
        ),
        ({"kind": "differential_privacy", "epsilon": "1/3"}, om.DifferentialPrivacy("1/3")),
        (
            {
                "kind": "differential_privacy",
                "epsilon": 2,
                "adjacency": {"pairs": [[[0, 0], [0, 1]], ["1,2", "0,0"]]},
                "delta": 0.1,
            },
            om.DifferentialPrivacy(2, [(0, 1), (5, 0)], 0.1),
        ),
        (
            {
                "kind": "differential_privacy",
                "epsilon": 2,
                "adjacency": {"distance": "euclidean", "radius": 2},
            },
            om.DifferentialPrivacy(2, (E, 2.0)),
        ),
        (
            {"kind": "distortion_privacy", "minimum": 0.25, "distance": "euclidean"},
            om.DistortionPrivacy(0.25, E),
        ),
        (
            {
                "kind": "distribution_privacy",
                "epsilon": 1,
                "pairs": [[{"0,0": 1, "0,1": 1}, list(PAIR[1])]],
                "scale": [2],
            },
            om.DistributionPrivacy(1, [PAIR], scale=[2]),
        ),
        (
            {"kind": "distribution_privacy", "epsilon": 1, "pairs": [list(PAIR)], "delta": 0.2},
            om.DistributionPrivacy(1, [PAIR], 0.2),
        ),
        (
            {"kind": "loss_bound", "maximum": "3/4", "worst_case": True},
            om.LossBound(0.75, worst_case=True),
        ),
        (
            {"kind": "loss_bound", "maximum": 2, "loss": "euclidean"},
            om.LossBound(2, loss=E),
        ),
        ({"kind": "support", "distance": "euclidean", "radius": 2}, om.Support.within(E, 2)),
        (
            {"kind": "support", "mask": [[1, 0, True, False, 0, 1]] * 6},
            om.Support([[1, 0, 1, 0, 0, 1]] * 6),
        ),
    ],
)
def test_constraints(table: dict[str, Any], made: om.constraints.Constraint) -> None:
    grid = om.Grid(2, 3, (2, 0.5), unit="km", origin=(1, -1))
    prior = {"kind": "weights", "weights": [1, 2, 3, 4, 5, 6]}
    same(
        build(secrets=GRID, prior=prior, constraints=[table]),
        om.Problem(om.Prior(grid, [1, 2, 3, 4, 5, 6]), H, constraints=[made]),
    )


def test_support_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("1,0\n1,1\n")
    built = build(
        tmp_path,
        secrets={"kind": "line", "count": 2},
        constraints=[{"kind": "support", "file": "m.csv"}],
    )
    np.testing.assert_array_equal(built.statement.allowed, [[True, False], [True, True]])
    (tmp_path / "m.csv").write_text("1,0\n1,2\n")
    with pytest.raises(om.ProblemError, match=r"constraints\[0\].file: has entries other than"):
        build(
            tmp_path,
            secrets={"kind": "line", "count": 2},
            constraints=[{"kind": "support", "file": "m.csv"}],
        )


def test_a_fraction_of_the_blind_error() -> None:
    # line 0, 1, 2 with weights 1/4, 1/4, 1/2: guessing 1 errs by 3/4, as does guessing 2
    built = build(
        secrets={"kind": "line", "count": 3},
        prior={"kind": "weights", "weights": [1, 1, 2]},
        constraints=[
            {
                "kind": "distortion_privacy",
                "minimum": {"fraction_of_blind": 0.5},
                "distance": "euclidean",
            },
            {
                "kind": "distortion_privacy",
                "minimum": {"fraction_of_blind": 1},
                "distance": "euclidean",
                "prior": "uniform",
            },
        ],
    )
    assert built.statement.families[0].minimum == pytest.approx(0.375, rel=1e-15)
    assert built.statement.families[1].minimum == pytest.approx(2 / 3, rel=1e-15)


def test_objectives() -> None:
    assert build(secrets=GRID, objective="worst_loss").statement.objective == "worst_loss"
    table = {"kind": "maximize_distortion", "distance": "euclidean", "prior": "uniform"}
    bound = [{"kind": "loss_bound", "maximum": 1}]
    prior = {"kind": "weights", "weights": [1, 2, 3, 4, 5, 6]}
    built = build(secrets=GRID, prior=prior, objective=table, constraints=bound)
    distances = E(built.secrets, built.secrets)
    assert built.statement.target == pytest.approx(distances / 6)


def test_exact_numbers_stay_exact() -> None:
    built = build(secrets=GRID, constraints=[{"kind": "differential_privacy", "epsilon": "2 ln 3"}])
    (constraint,) = built.constraints
    assert isinstance(constraint, om.DifferentialPrivacy)
    assert constraint.epsilon.text == "2 ln 3"
    assert float(constraint.epsilon) == pytest.approx(2 * math.log(3), rel=1e-15)
