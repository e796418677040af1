"""Every error of a file at once, each with its path and a remedy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from optmech.errors import ProblemError, TooLargeError
from optmech.files import build_problem
from optmech.reading.errors import ProblemFileError

FILE = Path("p.toml")
GRID = {"kind": "grid", "rows": 2, "columns": 2}
METRIC = {"kind": "metric_privacy", "epsilon": 1, "distance": "euclidean"}
BASE: dict[str, Any] = {
    "format": 1,
    "secrets": GRID,
    "prior": "uniform",
    "loss": "euclidean",
    "constraints": [METRIC],
}


def errors(**changes: Any) -> list[str]:
    document = {**copy.deepcopy(BASE), **changes}
    with pytest.raises(ProblemError) as caught:
        build_problem({key: value for key, value in document.items() if value != "gone"}, FILE)
    assert caught.value.exit_status == 2
    lines = str(caught.value).split("\n")
    assert all(line.startswith("p.toml: ") for line in lines)
    return [line.removeprefix("p.toml: ") for line in lines]


def constraint(**keys: Any) -> dict[str, Any]:
    return {"constraints": [METRIC, {"kind": "metric_privacy", "distance": "euclidean"} | keys]}


WEIGHTS = {"kind": "weights"}
BAD = [
    # (changed sections, path, words of the message)
    ({"format": "gone"}, "format", "is missing"),
    ({"format": 2}, "format", "2 is unknown"),
    ({"format": True}, "format", "true is not a format number"),
    ({"format": 1.0}, "format", "is not a format number"),
    ({"secrets": "gone"}, "secrets", "is missing"),
    ({"secrets": None}, "secrets", "is missing"),
    ({"prior": "gone"}, "prior", "is missing"),
    ({"loss": "gone"}, "loss", "is missing"),
    ({"constrains": []}, "constrains", "Did you mean 'constraints'"),
    ({"title": 3}, "title", "is not text"),
    ({"optimum": -1}, "optimum", "Must be >= 0"),
    ({"secrets": {**GRID, "colums": 3}}, "secrets.colums", "Did you mean 'columns'"),
    ({"secrets": {"kind": "gird"}}, "secrets.kind", "Did you mean 'grid'"),
    ({"secrets": {"rows": 2}}, "secrets.kind", "is missing"),
    ({"secrets": {"kind": "grid", "rows": 2}}, "secrets.columns", "is missing"),
    ({"secrets": {**GRID, "rows": 0}}, "secrets.rows", "out of range"),
    ({"secrets": {**GRID, "rows": True}}, "secrets.rows", "not a whole number"),
    ({"secrets": {**GRID, "rows": 2.0}}, "secrets.rows", "not a whole number"),
    ({"secrets": {**GRID, "rows": "2"}}, "secrets.rows", "not a whole number"),
    ({"secrets": {**GRID, "rows": 10**8, "columns": 10**8}}, "secrets.rows", "memory"),
    ({"secrets": {**GRID, "cell": [1, 0]}}, "secrets.cell[1]", "out of range"),
    ({"secrets": {**GRID, "cell": True}}, "secrets.cell", "not an array"),
    ({"secrets": {**GRID, "cell": [1]}}, "secrets.cell", "has 1 entries"),
    ({"secrets": {**GRID, "bounds": [0, 0, 1, 1], "unit": "m"}}, "secrets", "bounds exclude"),
    ({"secrets": {**GRID, "bounds": [1, 0, 0, 1]}}, "secrets.bounds", "not a box of degrees"),
    ({"secrets": {"kind": "labels", "labels": ["a", "a"]}}, "secrets.labels[1]", "occurs twice"),
    ({"secrets": {"kind": "labels", "labels": []}}, "secrets.labels", "is empty"),
    ({"secrets": {"kind": "labels", "labels": ["a", 1.5]}}, "secrets.labels[1]", "not a label"),
    ({"secrets": {"kind": "line"}}, "secrets", "needs either count or values"),
    ({"secrets": {"kind": "line", "values": [1, 2, 1]}}, "secrets.values[2]", "occurs twice"),
    ({"secrets": {"kind": "line", "count": 10**9}}, "secrets.count", "memory"),
    ({"secrets": {"kind": "points", "points": [[0, 1], [2]]}}, "secrets.points", "rectangular"),
    (
        {"secrets": {"kind": "points", "points": [[0, float("nan")]]}},
        "secrets.points[0][1]",
        "nan is not finite",
    ),
    ({"secrets": {"kind": "lonlat", "points": [[45, 120]]}}, "secrets.points[0]", "longitude"),
    (
        {"secrets": {"kind": "points", "points": [[0, 0], [1, 1]], "aggregate": {"zones": 3}}},
        "secrets.aggregate.zones",
        "3 zones of 2 points",
    ),
    ({"secrets": {"kind": "graph"}}, "secrets", "one of edges, file, roads and osm"),
    ({"secrets": {"kind": "graph", "edges": [["a"]]}}, "secrets.edges[0]", "is not an edge"),
    (
        {"secrets": {"kind": "graph", "edges": [["a", "b", -1]]}},
        "secrets.edges[0]",
        "a number below 0 is not a length",
    ),
    (
        {"secrets": {"kind": "tree", "parents": {"a": "b", "b": "a"}}},
        "secrets.parents",
        "is its own ancestor",
    ),
    ({"secrets": {"kind": "table", "x": "a", "y": "b"}}, "secrets", "needs either file"),
    (
        {"secrets": {"kind": "table", "x": "a", "y": "b", "file": "nosuch.csv"}},
        "secrets.file",
        "nosuch.csv: cannot be read",
    ),
    ({"prior": "unifrm"}, "prior", "Did you mean 'uniform'"),
    ({"prior": 3}, "prior", "is not a table"),
    (
        {"prior": {**WEIGHTS, "weights": [1, -2, 3, 4]}},
        "prior.weights[1]",
        "a number below 0 is not a weight",
    ),
    (
        {"prior": {**WEIGHTS, "weights": [1, float("nan"), -1, 4]}},
        "prior.weights[1]",
        "(nor are 1 more)",
    ),
    ({"prior": {**WEIGHTS, "weights": [1, 2, 3]}}, "prior.weights", "3 entries for 4 secrets"),
    ({"prior": {**WEIGHTS, "weights": [0, 0, 0, 0]}}, "prior.weights", "sum to 0"),
    ({"prior": {**WEIGHTS, "weights": {"0,0": 1, "5,5": 1}}}, "prior.weights", "no '5,5'"),
    ({"prior": {"kind": "counts", "counts": {"5,5": 1}}}, "prior", "sum to 0"),
    ({"prior": {"kind": "column", "column": "w"}}, "prior.column", "there is no table"),
    ({"loss": "hamm1ng"}, "loss", "Did you mean 'hamming'"),
    ({"loss": "haversine"}, "loss", "needs longitude and latitude"),
    ({"loss": {"distance": "euclidean", "matrix": [[1]]}}, "loss", "needs one of"),
    ({"loss": {"matrix": [[0, 1], [1, 0]]}}, "loss", "does not fit 4 secrets x 4 observables"),
    ({"loss": {"matrix": [[0, -1]]}}, "loss.matrix", "[0][1] is no finite number >= 0"),
    ({"loss": {"distance": "euclidean", "suppression": 1}}, "loss.suppression", "do not agree"),
    (
        {
            "loss": {"distance": "euclidean", "reduce": "max"},
            "observables": {"kind": "points", "points": [[0, 0]]},
        },
        "loss.reduce",
        "no sets",
    ),
    ({"loss": {"matrix": [[1]], "power": 2}}, "loss", "power need a distance"),
    (
        {"loss": {"distance": {"kind": "matrix", "values": [[0, float("nan")]]}}},
        "loss.distance.values",
        "the entry at [0][1] is no number >= 0",
    ),
    ({"observables": {"kind": "coarser", "rows": 0, "columns": 1}}, "observables.rows", "range"),
    (
        {"observables": {"kind": "subsets", "groups": {"a b": [[9, 9]]}}},
        "observables.groups['a b']",
        "there is no [9, 9]",
    ),
    ({"objective": "least_loss"}, "objective", "'least_loss' is unknown"),
    (
        {"objective": {"kind": "maximize_distortion", "distance": "euclidean"}},
        "objective",
        "needs a limit on the loss",
    ),
    ({"constraints": [None]}, "constraints[0]", "is not a table"),
    ({"constraints": {"kind": "support"}}, "constraints", "is not an array"),
    (constraint(), "constraints[1].epsilon", "is missing"),
    (constraint(epsilon=-1), "constraints[1].epsilon", "-1 is negative"),
    (constraint(epsilon=float("inf")), "constraints[1].epsilon", "inf is not finite"),
    (constraint(epsilon="ln x"), "constraints[1].epsilon", "'ln x' is not a number"),
    (constraint(epsilon=True), "constraints[1].epsilon", "True is not a number"),
    (constraint(epsilon=1, delta=1.5), "constraints[1].delta", "1.5 is above 1"),
    (constraint(epsilon=1, treshold=1), "constraints[1].treshold", "Did you mean 'threshold'"),
    (constraint(epsilon=1, distance="graph"), "constraints[1].distance", "no graph"),
    (
        constraint(epsilon=1, distance={"kind": "matrix", "values": [[0, 1], [1, 0]]}),
        "constraints[1].distance",
        "shape (2, 2) does not fit 4 x 4",
    ),
    (
        {"constraints": [{"kind": "support", "mask": [[1] * 4] * 3 + [[0] * 4]}]},
        "constraints[0].mask",
        "leaves 1 secret(s) without observables",
    ),
    (
        {"constraints": [{"kind": "support", "mask": [[2]]}]},
        "constraints[0].mask[0][0]",
        "a number is not 0, 1",
    ),
    (
        {"constraints": [{"kind": "support", "distance": "euclidean"}]},
        "constraints[0]",
        "go together",
    ),
    (
        {
            "constraints": [
                {
                    "kind": "differential_privacy",
                    "epsilon": 1,
                    "adjacency": {"pairs": [[[0, 0], [7, 7]]]},
                }
            ]
        },
        "constraints[0].adjacency.pairs[0]",
        "there is no [7, 7]",
    ),
    (
        {
            "constraints": [
                {"kind": "distribution_privacy", "epsilon": 1, "pairs": [[[1, 0], [0, 1]]]}
            ]
        },
        "constraints[0].pairs[0][0]",
        "2 entries for 4 secrets",
    ),
    (
        {
            "constraints": [
                {
                    "kind": "distribution_privacy",
                    "epsilon": 1,
                    "pairs": [[[1, 0, 0, 0], [0, 1, 0, 0]]],
                    "divergence": "renyi",
                }
            ]
        },
        "constraints[0].divergence",
        "'renyi' is unknown",
    ),
]


@pytest.mark.parametrize(("changes", "path", "words"), BAD)
def test_one_error_with_its_path_and_a_remedy(
    changes: dict[str, Any], path: str, words: str
) -> None:
    (line,) = errors(**changes)
    place, message = line.split(": ", 1)
    assert place == path
    assert words in message
    sentences = message.split(". ")
    assert len(sentences) > 1
    assert sentences[-1]


def test_all_errors_at_once_across_sections() -> None:
    found = errors(
        titel="x",
        secrets={**GRID, "unit": 1},
        prior={"kind": "weights", "weights": [1, -1]},
        loss={"distance": "euclidaen"},
        constraints=[
            {"kind": "metric_privacy", "epsilon": -1, "distance": "euclid"},
            {"kind": "x"},
        ],
    )
    paths = {line.split(": ")[0] for line in found}
    assert paths == {
        "titel",
        "secrets.unit",
        "prior.weights[1]",
        "loss.distance",
        "constraints[0].epsilon",
        "constraints[0].distance",
        "constraints[1].kind",
    }


def test_errors_of_shape_do_not_hide_errors_of_meaning() -> None:
    found = errors(
        prior={"kind": "weights", "weights": [1, 2]},
        loss={"matrix": [[0]]},
        constraints=[
            {"kind": "support", "mask": [[1]]},
            {"kind": "metric_privacy", "epsilon": "x", "distance": "euclidean"},
            {"kind": "metric_privacy", "epsilon": 1, "distance": "haversine"},
        ],
    )
    paths = {line.split(": ")[0] for line in found}
    assert paths == {
        "prior.weights",
        "loss",
        "constraints[0].mask",
        "constraints[1].epsilon",
        "constraints[2].distance",
    }


def test_very_many_errors_are_cut_off() -> None:
    points = [["x", "y"]] * 1000
    found = errors(secrets={"kind": "points", "points": points})
    assert len(found) == 51
    assert found[-1] == "and 1950 more errors"


def test_the_memory_error_keeps_its_class() -> None:
    with pytest.raises(TooLargeError, match="1,000,000,000,000 secrets"):
        build_problem({**BASE, "secrets": {**GRID, "rows": 10**6, "columns": 10**6}}, FILE)


def test_errors_can_be_handled_one_by_one() -> None:
    with pytest.raises(ProblemFileError) as caught:
        build_problem({**BASE, "loss": "x", "prior": "y"}, FILE)
    assert [error.where for error in caught.value.errors] == ["prior", "loss"]


def test_hostile_text_stays_on_one_line() -> None:
    (line,) = errors(**{"a\nb\x1b[31m": 1})
    assert line.isprintable()
