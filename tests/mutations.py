"""Altered design files with a good digest: do the check and the stand-alone audit agree?

    python tests/mutations.py --count 5000 --seed 1

Values, keys and bytes of a dozen designs of all kinds are changed at random places, and the digest
is made to fit. Both checkers judge every file; whatever they accept is examined a third time, from
the numbers in the file and by code that shares nothing with either.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit

import optmech as om
from optmech.errors import OptmechError
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()
Body = dict[str, Any]
Way = Callable[[np.random.Generator, Body], str]


def _line() -> om.Prior:
    return om.Prior(om.Domain.range(4, unit="km"), [1, 2, 3, 2])


def _grid() -> om.Prior:
    return om.Prior(om.Grid(2, 3, cell=(0.5, 0.8), unit="km"), [3, 1, 2, 2, 1, 1])


def _globe() -> om.Prior:
    places = om.Domain.geographic(["x", "y", "z"], [[2.35, 48.85], [2.36, 48.86], [2.34, 48.87]])
    return om.Prior(places, [2, 1, 1])


def problems() -> dict[str, om.Problem]:
    """Small problems of every kind of constraint, objective and domain."""
    line, grid, globe = _line(), _grid(), _globe()
    one, other = [0.5, 0.5, 0, 0], [0, 0.25, 0.25, 0.5]
    table = om.distances.matrix([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0.0]])
    three = om.Prior(om.Domain(["a", "b", 3]), [1, 1, 2])
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    geographic = om.Prior.uniform(om.Grid.geographic(2, 2, (2.3, 48.8, 2.4, 48.9)))
    return {
        "metric": om.Problem(grid, H, constraints=[om.MetricPrivacy("ln 3", E)]),
        "haversine": om.Problem(
            globe, om.distances.haversine(),
            constraints=[om.MetricPrivacy(0.7, om.distances.haversine())],
        ),
        "bounds": om.Problem(geographic, E, constraints=[om.MetricPrivacy(0.2, E)]),
        "matrix": om.Problem(line, E, constraints=[om.MetricPrivacy(0.5, table)]),
        "adjacency": om.Problem(
            three, H, constraints=[om.DifferentialPrivacy("1/3", [(0, 1), (1, 2)])]
        ),
        "delta": om.Problem(line, E, constraints=[om.DifferentialPrivacy(1.0, (E, 1.0), 0.05)]),
        "thresholds": om.Problem(
            grid, E, constraints=[om.MetricPrivacy(1.0, E, 0.9, 1.2), om.MetricPrivacy(2.0, E, 0.6)]
        ),
        "populations": om.Problem(
            line, E, constraints=[om.DistributionPrivacy(0.4, [(one, other)], scale=[1.5])]
        ),
        "divergences": om.Problem(
            line, E,
            constraints=[
                om.DistributionPrivacy(0.1, [(one, other)], divergence="kl"),
                om.DistributionPrivacy(0.2, [(one, other)], divergence="tv"),
            ],
        ),
        "worst": om.Problem(
            three, H, objective="worst_loss",
            constraints=[om.DifferentialPrivacy(2.0), om.Support(mask)],
        ),
        "attack": om.Problem(
            line, E, objective=om.MaximizeDistortion(E),
            constraints=[om.LossBound(0.6), om.MetricPrivacy(2.0, E)],
        ),
        "least": om.Problem(
            line, E, objective=om.MinimizeLeakage([[1, 0.5, 0, -1], [0, 0, 0.5, 1.0]]),
            constraints=[om.LossBound(0.6), om.MetricPrivacy(2.0, E)],
        ),
        "variance": om.Problem(
            om.Prior(line.domain, [1, 2, 2, 3]), E, objective=om.MinimizeVariance("cdf"),
            constraints=[om.MetricPrivacy("1/2", E)],
        ),
        "worst variance": om.Problem(
            three, H, objective=om.MinimizeVariance("histogram", "worst", [1, 2, 1]),
            constraints=[om.DifferentialPrivacy(1.0)],
        ),
        "joint": om.Problem(
            line, E,
            constraints=[om.DistortionPrivacy(0.5, E), om.LossBound(1.5, worst_case=True)],
        ),
        "bias": om.Problem(
            line, E, om.Domain.range(6),
            constraints=[
                om.DifferentialPrivacy(2.0),
                om.constraints.Bias(0.5, [1, 2, 2, 3], [0, 1, 2, 3, 4, 5]),
            ],
        ),
        "own": om.Problem(
            three, H,
            constraints=[
                om.Linear([[1, "-1/2", "ln 2"], [0, 1, 1]], upper=[0.9, 1.2], per="secret"),
                om.Linear([[1, 0, 0], [0, 1, -1], [0, 0, 1]], equal=1.25, title="a sum"),
                om.Ratios([[0, "ln 2", 1.5], ["inf", 0, "1/2"], [1, "inf", 0]]),
                om.Ratios(["ln 3", 0.5], of=[[1, 1, 0], [0, 1, 1]], to=[[0, 1, 1], [1, 0, 0]],
                          reports=list(three.domain.labels[:2])),
            ],
        ),
        "robust": om.Problem(
            three, H,
            constraints=[
                om.constraints.GainLeakage(0.7, radius="1/10"),
                om.constraints.RenyiPrivacy("3/2", 0.9),
            ],
        ),
        "kept": om.Problem(
            line, E,
            constraints=[
                om.MetricPrivacy("ln 2", E),
                om.constraints.FixedRows(
                    {0: ["1/2", "1/4", "1/8", "1/8"], 3: ["1/8", "1/8", "1/4", "1/2"]}
                ),
            ],
        ),
        "errors": om.Problem(
            line, E, constraints=[om.DistortionPrivacy(0.5, E, radius="1/20", within=E)]
        ),
        "information": om.Problem(
            three, H,
            constraints=[om.constraints.MutualInformation("1/4"), om.DifferentialPrivacy(2.0)]
        ),
        "pufferfish": om.Problem(
            line, E,
            constraints=[
                om.constraints.Pufferfish("ln 2", [(one, other)]),
                om.constraints.PolicyGraph("1/2", [(0, 1), (1, 2, 0.5)]),
            ],
        ),
        "leakage": om.Problem(
            line, E,
            constraints=[
                om.constraints.GainLeakage("2/5", [[1, 0.5, 0, -1], [0, 0, 0.5, 1.0]]),
                om.constraints.GainLeakage(0.5, prior=om.Prior(line.domain, [1, 1, 1, 2])),
                om.constraints.MaximalLeakage("ln 3/2"), om.constraints.AdditiveCapacity(0.4),
            ],
        ),
        "infeasible": om.Problem(
            line, E, constraints=[om.MetricPrivacy(0.1, E), om.LossBound(0.2)]
        ),
    }  # fmt: skip


def designs() -> dict[str, bytes]:
    """Their files; one of them adopted at a gap, and not solved."""
    found = {name: om.solve(problem).document() for name, problem in problems().items()}
    noise = om.mechanisms.exponential(_line().domain, 1.0, E)
    stated = om.Problem(_line(), E, constraints=[om.MetricPrivacy(1.0, E)])
    found["adopted"] = om.exchange.adopt(noise, stated).document()
    return found


def _beside(prior: om.Prior) -> dict[str, tuple[int, list[om.Constraint]]]:
    """What stands beside the promise at three places, with the degree of the mesh."""
    one, other = [0.5, 0.5, 0], [0, 0.25, 0.75]
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0]])
    return {
        "ratios": (1, [om.MetricPrivacy("1/3", E), om.DifferentialPrivacy("1/4", [(0, 1)])]),
        "delta": (1, [om.DifferentialPrivacy("1/10", delta=0.01)]),
        "populations": (2, [om.DistributionPrivacy("1/10", [(one, other)])]),
        "bias": (1, [om.constraints.Bias(0.7, [0, 1, 2])]),
        "leakage": (
            1,
            [
                om.constraints.GainLeakage("51/100"),
                om.Support(mask),
                om.constraints.MaximalLeakage("1/8"),
            ],
        ),
        "thresholds": (1, [om.MetricPrivacy("1/3", E, 1.1), om.MetricPrivacy("1/4", E, None, 1.5)]),
        "none for losses": (1, [om.LossBound(0.2, worst_case=True)]),
        "none in common": (1, [om.Support(np.eye(3))]),
        "none together": (3, [om.DistortionPrivacy(0.7, E), om.LossBound(0.1)]),
    }


def regions() -> dict[str, bytes]:
    """Designs for every point of a region, alone and beside other constraints, in the plane and in
    degrees, and designs whose bound is that of cells of many places."""
    places = om.Domain(range(3), [[0.2, 0.3], [1.1, 0.6], [1.7, 1.6]], unit="km")
    prior = om.Prior(places, [1, 2, 1])
    globe = om.Domain.geographic(["a", "b", "c"], [[2.31, 48.81], [2.34, 48.82], [2.38, 48.88]])
    haversine = om.distances.haversine()

    def square(**options: Any) -> om.MetricPrivacy:
        return om.MetricPrivacy("1/2", E, everywhere=om.Mesh.grid((0, 0, 2, 2), 2, **options))

    around = om.Mesh.grid((2.3, 48.8, 2.4, 48.9), 20, coordinates="lonlat")
    rng = np.random.default_rng(3)
    grid = om.Prior(om.Grid(4, 4), rng.dirichlet([0.5] * 16))
    solved = {
        "every point": om.solve(om.Problem(prior, E, constraints=[square()])),
        "cubic": om.solve(om.Problem(prior, E, constraints=[square(degree=3)])),
        "degrees": om.solve(
            om.Problem(
                om.Prior.uniform(globe), haversine,
                constraints=[om.MetricPrivacy(0.2, haversine, everywhere=around)],
            )
        ),
        "beside": om.solve(
            om.Problem(
                prior, E,
                constraints=[
                    square(), om.LossBound(1.4, worst_case=True), om.DistortionPrivacy(0.3, E),
                ],
            )
        ),
        "cells": om.solve(
            om.Problem(grid, E, constraints=[om.MetricPrivacy(0.4, E)]), resolution=4
        ),
    }  # fmt: skip
    solved |= {
        name: om.solve(om.Problem(prior, E, constraints=[square(degree=degree), *stated]))
        for name, (degree, stated) in _beside(prior).items()
    }
    twice = om.Domain(range(4), [[0.2, 0.3], [1.1, 0.6], [1.1, 0.6], [1.7, 1.6]], unit="km")
    beside = [
        om.MetricPrivacy("1/3", E),
        om.DistributionPrivacy("1/4", [([1, 2, 0, 1], [1, 0, 2, 1])]),
    ]
    solved["coincide"] = om.solve(
        om.Problem(om.Prior(twice, [1, 1, 1, 1]), E, constraints=[square(), *beside])
    )
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder) / "d.json", {}
        for name, design in solved.items():
            design.save(path)
            found[name] = path.read_bytes()
    return found


def networks() -> dict[str, bytes]:
    """Designs for every point of a line and of roads, alone and beside other constraints."""
    line = om.Mesh.line(0, 2, 3, unit="km")
    given = om.Prior(line.domain, [1, 2, 1, 3])
    nodes = {"node": ["a", "b", "c"], "x": [0, 3, 3], "y": [0, 0, 4]}
    edges = {"source": ["a", "b", "a"], "target": ["b", "c", "c"], "length": [3.0, 4.5, 5.5]}
    roads = om.Mesh.roads((nodes, edges), divide=3, coordinates="plane", unit="km")
    metric, same = (
        om.MetricPrivacy("1/2", everywhere=line),
        om.DifferentialPrivacy("ln 3", everywhere=line),
    )
    some = om.DifferentialPrivacy("1/2", delta="1/20", everywhere=line)
    uneven, inner = (
        om.Network([[0], [0.5], [2]], [[0, 1, 2]]),
        om.Domain(range(3), [[0.25], [0.5], [1.5]]),
    )
    along = om.MetricPrivacy("ln 2", everywhere=roads)
    ends, places = roads.prior("crossings"), om.Domain(["a", "b", "c"])
    stated = {
        "line": om.Problem(given, E, constraints=[metric]),
        "worst": om.Problem(given, E, constraints=[metric, same], objective="worst_loss"),
        "squares": om.Problem(
            om.Prior.uniform(uneven.domain),
            om.losses.powered(E, 2),
            inner,
            constraints=[om.MetricPrivacy(2, everywhere=uneven)],
            objective="worst_loss",
        ),
        "delta": om.Problem(given, E, constraints=[some, om.LossBound(1.2, worst_case=True)]),
        "roads": om.Problem(ends, roads.distance, places, constraints=[along]),
    }
    return {name: om.solve(problem).document() for name, problem in stated.items()}


def surveys() -> dict[str, bytes]:
    """Designs for statistics: bounds of all extreme rays, of the cone and of two levels, alone and
    beside limits on losses, on an attack and on reports, of a population and of the worst."""
    line, square, many = om.Domain.range(4), om.Grid(2, 2, unit="km"), om.Domain.range(11)
    near, local = om.MetricPrivacy("1/2", E), om.DifferentialPrivacy("ln 3")
    prior, eleven = om.Prior(line, [1, 2, 2, 3]), om.Prior.uniform(many)
    cdf, histogram = om.MinimizeVariance("cdf"), om.MinimizeVariance("histogram")
    worst = om.MinimizeVariance("histogram", "worst", [1, 2, 1, 1])
    steps = om.MinimizeVariance([[1.0, 0, 0, -1], [0, 1, 1, 0]], om.Prior(line, [2, 1, 1, 2]))
    stated = {
        "cells": (om.Prior.uniform(square), E, histogram, [near]),
        "mean": (om.Prior.uniform(square), E, om.MinimizeVariance("mean"), [near]),
        "rows": (prior, E, steps, [near]),
        "worst": (prior, H, worst, [local]),
        "cone": (eleven, E, cdf, [near]),
        "levels": (eleven, H, histogram, [local]),
        "losses": (prior, E, cdf, [near, om.LossBound(0.76)]),
        "each loss": (prior, E, cdf, [near, om.LossBound(0.95, worst_case=True)]),
        "attack": (prior, E, cdf, [near, om.DistortionPrivacy(0.86, E)]),
        "support": (
            prior, H, histogram, [local, om.Support([[1, 1, 0, 1]] * 4), om.LossBound(0.6)],
        ),
        "ratios": (
            prior, H, histogram, [om.Ratios(np.log(2.0) * (1.5 - np.tri(4)) * (1 - np.eye(4)))],
        ),
    }  # fmt: skip
    return {
        name: om.solve(
            om.Problem(people, loss, objective=goal, constraints=beside), gap=1e-2
        ).document()
        for name, (people, loss, goal, beside) in stated.items()
    }


# ---------------------------------------------------------------- mutations
_VALUES = [
    None, True, False, 0, 1, -1, 2, 0.0, -0.0, 1.0, 0.5, -1.0, 1e-300, 5e-324, 1e300, 1e999,
    10**400, 2**53 + 1, "", "0", "1", "1.0", "ln 3", "2 ln 3", "1/2", "2/6", " ln 3", "ln 1",
    "1/3", "4/12", "1/3 ln 3/2", "3 ln 2", "00/1", "1e400/1",
    "euclidean",
    "manhattan", "hamming", "haversine", "matrix", "graph", "given", "all", "optimal", "feasible",
    "infeasible", "km", "plane", "lonlat", "tv", "kl", "max", "é\u202e", [], {}, [0, 0], [[0, 0]],
    [None], ["x"], [1.0], [0.5, 0.5], {"a": 1},
]  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(part, (*path, key))


def _at(body: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        body = body[key]
    return body


def _number(rng: np.random.Generator, value: float) -> Any:
    factor = [0.1, 0.5, 0.99, 1 - 1e-9, 1 + 1e-9, 1.01, 2.0, 10.0, -1.0][int(rng.integers(9))]
    changed: list[Any] = [value * factor, float(np.nextafter(value, 9e9)), value + 1, str(value)]
    if float(value).is_integer() and abs(value) < 2**53:
        changed.append(float(value) if isinstance(value, int) else int(value))
    return changed[int(rng.integers(len(changed)))]


def change(rng: np.random.Generator, value: Any) -> Any:
    if rng.random() < 0.35:
        return _VALUES[int(rng.integers(len(_VALUES)))]
    if isinstance(value, bool) or value is None:
        return _VALUES[int(rng.integers(len(_VALUES)))]
    if isinstance(value, int | float):
        return _number(rng, value)
    if isinstance(value, str):
        k = int(rng.integers(len(value) + 1))
        return [value + "0", value[:k] + value[k + 1 :], value[:k] + "1" + value[k:]][
            int(rng.integers(3))
        ]
    if isinstance(value, list) and value:
        i, j = (int(k) for k in rng.integers(len(value), size=2))
        swapped = list(value)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        options = [value[:-1], [*value, value[i]], swapped, value[::-1], [], value[i]]
        if all(isinstance(row, list) for row in value):
            options.append([list(column) for column in zip(*value, strict=False)])
            factor = float(rng.choice([0.1, 2.0, 10.0]))
            options.append(_scaled(value, factor))
        return options[int(rng.integers(len(options)))]
    if isinstance(value, dict) and value:
        keys = list(value)
        key = keys[int(rng.integers(len(keys)))]
        without = {k: v for k, v in value.items() if k != key}
        return [without, {**value, "extra": 1}, {**without, "x": value[key]}][int(rng.integers(3))]
    return _VALUES[int(rng.integers(len(_VALUES)))]


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, list):
        return [_scaled(part, factor) for part in value]
    return value * factor if isinstance(value, float) else value


def anywhere(rng: np.random.Generator, body: Body) -> str:
    """One value somewhere; all levels alike, lest the largest arrays get all of it."""
    path: tuple[Any, ...] = ()
    while True:
        inner = _at(body, path)
        end = not isinstance(inner, dict | list) or not inner
        if path and (end or rng.random() < 0.15):
            break
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        path = (*path, keys[int(rng.integers(len(keys)))])
    parent = _at(body, path[:-1])
    parent[path[-1]] = change(rng, parent[path[-1]])
    return ".".join(map(str, path))


def _geometry(rng: np.random.Generator, body: Body) -> str:
    """A matrix, a name or coordinates that do not belong together."""
    problem = body["problem"]
    which = int(rng.integers(5))
    named = [p for p in _places(problem) if p and p[-1] in ("name", "loss_name")]
    if which == 0 and named:
        path = named[int(rng.integers(len(named)))]
        _at(problem, path[:-1])[path[-1]] = str(
            rng.choice(
                ["euclidean", "manhattan", "hamming", "haversine", "graph", "matrix", "euclidean^2"]
            )
        )
        return f"renamed {path}"
    if which == 1:
        tables = [p for p in _places(problem) if p and p[-1] == "secrets" and len(p) > 1]
        for path in tables or [("loss",)]:
            _at(problem, path[:-1])[path[-1]] = _scaled(_at(problem, path), 10.0)
        return "scaled distances"
    domain = problem[str(rng.choice(["secrets", "observables"]))]
    if "grid" in domain:
        if which == 2:
            domain["cell"] = domain["cell"][::-1] if rng.random() < 0.5 else [2.0, 2.0]
        elif which == 3:
            rows, columns = domain["grid"]
            domain["grid"] = [columns, rows] if rng.random() < 0.5 else [rows * columns, 1]
        else:
            domain["bounds"] = [2.0, 48.0, 3.0, 49.0]
        return "another grid"
    key = "points" if which == 2 and domain["points"] else "labels"
    rng.shuffle(domain[key])
    return f"shuffled {key}"


def _claims(rng: np.random.Generator, body: Body) -> str:
    result = body["result"]
    name = str(rng.choice(list(result)))
    result[name] = change(rng, result[name])
    if name in ("objective", "bound") and rng.random() < 0.7:
        result["loss" if name == "objective" else "lower_bound"] = result[name]
    return f"result.{name}"


def _numerators(rng: np.random.Generator, body: Body) -> str:
    """Probability moved within a row, by as much as nothing or a lot."""
    if body["mechanism"] is None:
        return anywhere(rng, body)
    rows = body["mechanism"]["rows"]
    texts = rows[int(rng.integers(len(rows)))][1]
    i, j = (int(k) for k in rng.integers(len(texts), size=2))
    moved = int(texts[i], 16) >> int(rng.choice([1, 8, 40, 60, 400]))
    if i != j:
        texts[i], texts[j] = f"{int(texts[i], 16) - moved:x}", f"{int(texts[j], 16) + moved:x}"
    return "moved probability"


def _proof(rng: np.random.Generator, body: Body) -> str:
    """Multipliers, or a vector of those of a gradient, or what a result has beside them."""
    which, multipliers = int(rng.integers(4)), body["multipliers"]
    if which == 0 or not multipliers:
        said = [[], None, [{"constraint": 0, "promised_epsilon": 0.5, "epsilon": 0.5,
                            "repaired_loss": 1.0}]]  # fmt: skip
        body["result"]["approximations"] = said[int(rng.integers(3))]
        return "approximations"
    used = [name for name, part in multipliers.items() if part]
    name = str(rng.choice(used)) if used else "gradient"
    if which == 1:
        multipliers[name] = change(rng, multipliers[name])
        return f"multipliers.{name}"
    if which == 2:
        other = str(rng.choice(list(multipliers)))
        multipliers[name], multipliers[other] = multipliers[other], multipliers[name]
        return f"multipliers.{name} and {other} exchanged"
    leaves = [path for path in _places(multipliers[name]) if path and isinstance(path[-1], int)]
    path = leaves[int(rng.integers(len(leaves)))]
    _at(multipliers[name], path[:-1])[path[-1]] = change(rng, _at(multipliers[name], path))
    return f"multipliers.{name}.{path}"


def _weights(rng: np.random.Generator, body: Body) -> str:
    """Of the worst loss: weights of vertices and of points between them, in another place, order or
    number, with what they would prove if they were true."""
    given, result = body["multipliers"]["objective"], body["result"]
    if body["problem"]["objective"] != "worst_loss" or not given:
        return anywhere(rng, body)
    which, (_, terms) = int(rng.integers(5)), given["shape"]
    secrets = len(body["problem"]["prior"])
    half = (terms - secrets) // 2
    if which == 0:  # the two ends of every point exchanged, or points that are others
        move = half if rng.random() < 0.5 else 1
        given["column"] = [
            c if c < secrets else secrets + (c - secrets + move) % max(2 * half, 1)
            for c in given["column"]
        ]
    elif which == 1:  # one number of a segment, as in files that took coefficients for values
        given["shape"] = [1, terms - half]
        kept = [k for k, c in enumerate(given["column"]) if c < terms - half]
        for name in ("row", "column", "value"):
            given[name] = [given[name][k] for k in kept]
    elif which == 2:
        k = int(rng.integers(len(given["value"])))
        given["value"][k] = float(rng.choice([-1.0, 0.0, 1e-320, 1e-250, 1e30, 2.0**100, 1e300]))
    elif which == 3:
        given["value"] = [float(v) for v in rng.permutation(given["value"])]
    if which == 4 or rng.random() < 0.5:
        higher = result["bound"] * float(rng.choice([1 + 1e-9, 1 + 1e-6, 1.2]))
        if rng.random() < 0.5:
            result["bound"] = higher
        else:
            result["objective"] = result["loss"] = higher
    return f"weights, way {which}"


def _nothing(rng: np.random.Generator, body: Body) -> str:
    """No mechanism where there is one, or another status beside it."""
    if rng.random() < 0.5:
        body["mechanism"] = None
    if rng.random() < 0.7:
        body["result"]["status"] = str(rng.choice(["infeasible", "optimal", "feasible"]))
        for name in ("objective", "bound", "loss", "lower_bound"):
            body["result"][name] = None
    return "no mechanism"


_WAYS: tuple[Way, ...] = (
    anywhere, anywhere, anywhere, _geometry, _claims, _numerators, _proof, _proof, _nothing,
    _weights,
)  # fmt: skip


def _bytes(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    rest = bytearray(content.partition(b"\n")[2])
    for _ in range(int(rng.integers(1, 3))):
        k, way = int(rng.integers(len(rest))), int(rng.integers(4))
        if way == 0:
            rest[k] ^= 1 << int(rng.integers(8))
        elif way == 1:
            rest[k : k + 1] = b""
        elif way == 2:
            rest[k:k] = bytes([int(rng.choice(list(b'0123456789.,-eE[]{}":nt ')))])
        else:
            end = min(len(rest), k + int(rng.integers(1, 40)))
            rest[end:end] = rest[k:end]
    return seal(b"{" + bytes(rest)), "bytes"


def mutate(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    """A changed file with a good digest, and what was done to it."""
    return altered(rng, content, _WAYS, raw=0.25, again=0.2)


def altered(
    rng: np.random.Generator, content: bytes, ways: tuple[Way, ...], *, raw: float, again: float
) -> tuple[bytes, str]:
    """A file changed in one of these ways, in two with probability ``again``, or in its bytes with
    probability ``raw``; with a good digest, and what was done to it."""
    if rng.random() < raw:
        return _bytes(rng, content)
    body = json.loads(content)
    del body["digest"]
    done = []
    for _ in range(1 + int(rng.random() < again)):
        # a second change may find nothing that it knows
        with suppress(TypeError, ValueError, LookupError, AttributeError, OverflowError):
            done.append(ways[int(rng.integers(len(ways)))](rng, body))
    text = json.dumps(body).replace("Infinity", "1e999")
    return seal(text.encode()), ", ".join(done)


# ---------------------------------------------------------------- verdicts
@dataclass
class Verdict:
    """What both checkers say; faults are empty where they accept."""

    check: list[str]
    audit: list[str]

    @property
    def agree(self) -> bool:
        """Whether both accept or both refuse, but for what only one of them can tell: a bound
        within the rounding of the faster evaluation, and the loss after repair, which the audit
        names as not checked."""
        if bool(self.check) == bool(self.audit):
            return True
        return all(self._finer(fault) for fault in self.check) and not self.audit

    @staticmethod
    def _finer(fault: str) -> bool:
        if "repaired_loss" in fault:
            return True
        words = fault.split()
        if not fault.startswith(("bound is", "lower bound is", "lower_bound is")):
            return False
        stated, proper = float(words[words.index("is") + 1]), float(words[-2])
        return abs(stated - proper) <= 1e-10 * max(abs(proper), 1e-300)


def judge(path: Path) -> Verdict:
    """Both verdicts on a file; anything but an orderly refusal is raised."""
    try:
        refused = list(om.check(path).faults)
    except OptmechError as error:
        refused = [str(error)]
    try:
        audit.audit(str(path))
        faulty: list[str] = []
    except audit.Fault as fault:
        faulty = [str(fault)]
    return Verdict(refused, faulty)


def falsehood(content: bytes, original: Body) -> str:
    """What an accepted file says that is not so, by formulas of its own in floating point."""
    body = json.loads(content)
    result, problem = body["result"], body["problem"]
    if body["mechanism"] is None:
        same = json.dumps(problem) == json.dumps(original["problem"])
        return "" if not same or original["mechanism"] is None else "feasible after all"
    meshes = [c["everywhere"] for c in problem["constraints"] if c.get("everywhere")]
    if any("triangles" in mesh for mesh in meshes):
        return _falsehood_of_region(content, original)
    if meshes:
        return _falsehood_of_network(body, meshes[0], original)
    unit = 1 << body["mechanism"]["bits"]
    p = np.zeros((len(problem["prior"]), len(problem["loss"][0])))
    for s, (columns, texts) in enumerate(body["mechanism"]["rows"]):
        for o, text in zip(columns, texts, strict=True):
            p[s, o] = int(text, 16) / unit
    gap = abs(result["objective"] - result["bound"]) / (abs(result["objective"]) or 1.0)
    if result["status"] == "optimal" and gap > 1.0001e-6:
        return "not optimal"
    per_secret = (p * problem["loss"]).sum(axis=1)
    worst = problem["objective"] == "worst_loss"
    loss = per_secret.max() if worst else per_secret @ problem["prior"]
    if not math.isclose(result["loss"], loss, rel_tol=1e-9):
        return "another loss"
    if json.dumps(problem) == json.dumps(original["problem"]):
        sign = -1 if "distance" in problem["objective"] else 1
        if sign * result["bound"] > sign * original["result"]["objective"] + 1e-12:
            return "a bound beyond what is attained"
    for constraint in problem["constraints"]:
        wrong = _broken(constraint, problem, p)
        if wrong:
            return wrong
    goal = problem["objective"]
    return _variance(problem, p, result) if "statistic" in goal and "weights" in goal else ""


def _variance(problem: Any, p: np.ndarray, result: Any) -> str:
    """What is wrong with figures of a variance, beside that of the best unbiased estimate."""
    goal, n = problem["objective"], len(p)
    statistic = {"histogram": np.eye(n), "cdf": np.tri(n)}.get(str(goal["statistic"]))
    if statistic is None and isinstance(goal["statistic"], str):
        return ""
    table = np.array(goal["statistic"], dtype=float) if statistic is None else statistic
    rows = np.ones(len(table)) if goal["weights"] is None else np.array(goal["weights"])
    people = np.array(problem["prior"] if goal["population"] is None else goal["population"])
    if worst := goal["population"] == "worst":
        people = np.full(n, 1 / n)
    seen, gram = people @ p, (table.T * rows) @ table
    kept = p[:, seen > 0]
    least = np.trace(gram @ np.linalg.pinv((kept / seen[seen > 0]) @ kept.T))
    least = float(least - people @ gram @ people)
    if result["objective"] < least - 1e-7 * abs(least):
        return "less than the best estimate varies"
    if not worst and result["bound"] > least + 1e-7 * abs(least):
        return "a bound above what is attained"
    return ""


def _falsehood_of_network(body: Any, mesh: Any, original: Body) -> str:
    """The same of a design for a line or roads, at points of all segments."""
    result, problem = body["result"], body["problem"]
    unit, n = 1 << body["mechanism"]["bits"], len(problem["prior"])
    rows = np.zeros((n, len(problem["loss"][0])))
    for s, (columns, texts) in enumerate(body["mechanism"]["rows"]):
        for o, text in zip(columns, texts, strict=True):
            rows[s, o] = int(text, 16) / unit
    steps = [step for way in mesh["ways"] for step in pairwise(way)]
    places = np.array(mesh["vertices"])
    lengths = mesh.get("lengths") or [float(places[b, 0] - places[a, 0]) for a, b in steps]
    far = np.full((n, n), np.inf)
    np.fill_diagonal(far, 0.0)
    for (a, b), length in zip(steps, lengths, strict=True):
        far[a, b] = far[b, a] = min(far[a, b], length)
    for k in range(n):
        far = np.minimum(far, far[:, k, None] + far[None, k])
    gap = abs(result["loss"] - result["bound"]) / (abs(result["loss"]) or 1.0)
    if result["status"] == "optimal" and gap > 1.0001e-6:
        return "not optimal"
    loss = np.array(problem["loss"])
    paid = (rows * loss).sum(axis=1)
    value = paid @ problem["prior"]
    if problem["objective"] == "worst_loss":
        value = paid.max()
        squares = problem.get("loss_name") == "euclidean^2"
        reports = np.array(problem["observables"]["points"])[:, 0] if squares else None
        for a, b in steps if places.shape[1] == 1 else ():
            between = (loss[a] + loss[b]) / 2
            if reports is not None:
                between = ((places[a, 0] + places[b, 0]) / 2 - reports) ** 2
            # the parabola through the losses at both ends and in the middle
            half = (rows[a] + rows[b]) / 2 @ between
            slope, bend = 4 * half - 3 * paid[a] - paid[b], 2 * (paid[a] + paid[b] - 2 * half)
            if bend < 0 and 0 < -slope / (2 * bend) < 1:
                value = max(value, paid[a] - slope**2 / (4 * bend))
    if not math.isclose(result["loss"], value, rel_tol=1e-9):
        return "another loss"
    if json.dumps(problem) == json.dumps(original["problem"]):
        for name in ("bound", "lower_bound"):
            if result[name] > original["result"]["loss"] + 1e-12:
                return f"a {name} beyond what is attained"
    # points of all segments: ends, weights and distances to all vertices
    at = [(a, b, length, t) for (a, b), length in zip(steps, lengths, strict=True)
          for t in (0.0, 1e-6, 0.3, 0.5, 1.0)]  # fmt: skip
    p = np.array([(1 - t) * rows[a] + t * rows[b] for a, b, _, t in at])
    to = np.array([np.minimum(far[a] + t * m, far[b] + (1 - t) * m) for a, b, m, t in at])
    apart = np.array(
        [
            [
                min(to[i][c] + s * m, to[i][d] + (1 - s) * m, abs(t - s) * m if i // 5 == j // 5
                    else np.inf)
                for j, (c, d, m, s) in enumerate(at)
            ]
            for i, (_, _, _, t) in enumerate(at)
        ]
    )  # fmt: skip
    for constraint in problem["constraints"]:
        if not constraint.get("everywhere"):
            if wrong := _broken(constraint, problem, rows):
                return wrong
            continue
        metric = constraint["kind"] == "metric_privacy"
        epsilon = _value(constraint["epsilon"])
        ratio = np.exp(np.minimum(epsilon * (apart if metric else np.ones_like(apart)), 600))
        spent = np.maximum(p[:, None] - ratio[:, :, None] * p[None] * (1 + 1e-9), 0).sum(axis=2)
        allowed = 1e-300 if metric else _value(constraint["delta"]) * (1 + 1e-9) + 1e-12
        if (spent > allowed).any():
            return "more than the promised ratio"
    return ""


def _falsehood_of_region(content: bytes, original: Body) -> str:
    """The same of a design for every point, at random points of its region."""
    body = json.loads(content)
    result, problem = body["result"], body["problem"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d.json"
        path.write_bytes(content)
        mechanism = om.Design.load(path).mechanism
    gap = abs(result["loss"] - result["bound"]) / (abs(result["loss"]) or 1.0)
    if result["status"] == "optimal" and gap > 1.0001e-6:
        return "not optimal"
    p = mechanism.at(np.array(problem["secrets"]["points"]))
    loss = (p * problem["loss"]).sum(axis=1) @ problem["prior"]
    if not math.isclose(result["loss"], loss, rel_tol=1e-9):
        return "another loss"
    if json.dumps(problem) == json.dumps(original["problem"]):
        for name in ("bound", "lower_bound"):
            if result[name] > original["result"]["loss"] + 1e-12:
                return f"a {name} beyond what is attained"
    for constraint in problem["constraints"]:
        if not constraint.get("everywhere"):
            if wrong := _broken(constraint, problem, p):
                return wrong
            continue
        mesh = constraint["everywhere"]
        vertices = np.array(mesh["vertices"])
        mixed = np.random.default_rng(1).dirichlet(np.full(len(vertices), 0.4), 60)
        points = np.vstack([vertices, mixed @ vertices])
        found = mechanism.at(points)
        kept = np.isfinite(found).all(axis=1)
        apart = _distances({"name": constraint["distance"]}, {"points": points[kept]})
        ratio = np.exp(np.minimum(_value(constraint["epsilon"]) * apart, 600))[:, :, None]
        if (found[kept][:, None] > ratio * found[kept][None] * (1 + 1e-9) + 1e-300).any():
            return "more than the promised ratio"
    return ""


def _leaks(constraint: Any, problem: Any, p: np.ndarray) -> str:
    most, n = _value(constraint["maximum"]), len(p)
    if constraint["kind"] == "maximal_leakage":
        spent = math.log(p.max(axis=0).sum())
    elif constraint["kind"] == "additive_capacity":
        spent = 1 - p.min(axis=0).sum()
    else:
        prior = np.array(constraint["prior"] or problem["prior"])
        gain = np.eye(n) if constraint["gain"] == "identity" else np.array(constraint["gain"])
        spent = sum(max(row @ (prior * column) for row in gain) for column in p.T)
    return f"{constraint['kind']} is broken" if spent > most + 1e-9 * (1 + most) else ""


def _broken(constraint: Any, problem: Any, p: np.ndarray) -> str:
    if constraint["kind"] == "bias" and constraint["reported"] is not None:
        off = np.abs(p @ np.array(constraint["reported"]) - np.array(constraint["values"])).max()
        return "bias is broken" if off > _value(constraint["maximum"]) * (1 + 1e-9) else ""
    if constraint["kind"] in ("gain_leakage", "maximal_leakage", "additive_capacity"):
        return _leaks(constraint, problem, p)
    if constraint["kind"] not in ("metric_privacy", "differential_privacy"):
        return ""
    if constraint["kind"] == "metric_privacy":
        d = _distances(constraint["distance"], problem["secrets"])
        kept = d <= (np.inf if constraint["threshold"] is None else constraint["threshold"])
    else:
        d, kept = np.ones((len(p), len(p))), _adjacent(constraint["adjacency"], problem, len(p))
    if constraint.get("observable_threshold") is not None:
        return ""
    epsilon, delta = _value(constraint["epsilon"]), _value(constraint["delta"])
    for i, j in np.argwhere(kept):
        if i == j:
            continue
        over = np.maximum(0, p[i] - np.exp(min(epsilon * d[i, j], 700.0)) * p[j] * (1 + 1e-9))
        if over.sum() > delta + (1e-12 if delta else 0):
            return f"{constraint['kind']} is broken at {i}, {j}"
    return ""


def _adjacent(adjacency: Any, problem: Any, count: int) -> np.ndarray:
    if adjacency == "all":
        return np.ones((count, count), dtype=bool)
    if isinstance(adjacency, dict):
        return _distances(adjacency["distance"], problem["secrets"]) <= adjacency["radius"]
    kept = np.zeros((count, count), dtype=bool)
    for i, j in adjacency:
        kept[i, j] = kept[j, i] = True
    return kept


def _distances(distance: Any, domain: Any) -> np.ndarray:
    """By name from the coordinates; only what has no such name is taken from the file."""
    name = distance["name"]
    if name == "hamming":
        return 1.0 - np.eye(len(distance["secrets"]))
    if name not in ("euclidean", "manhattan", "haversine"):
        return np.array(distance["secrets"])
    if "grid" in domain:
        rows, columns = domain["grid"]
        row, column = np.divmod(np.arange(rows * columns), columns)
        points = np.column_stack([column * domain["cell"][0], row * domain["cell"][1]])
    else:
        points = np.array(domain["points"])
    steps = points[:, None] - points[None]
    if name != "haversine":
        return np.linalg.norm(steps, ord=2 if name == "euclidean" else 1, axis=2)
    lon, lat = np.radians(points).T
    unit = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    chord = np.linalg.norm(unit[:, None] - unit[None], axis=2)
    return 2 * 6371.0088 * np.arcsin(np.minimum(chord / 2, 1))


def _value(text: Any) -> float:
    if not isinstance(text, str):
        return float(text)
    factor, _, log = text.rpartition("ln ")
    number = [float(part) if part else 1.0 for part in (log + "/1").split("/")[:2]]
    value = number[0] / number[1]
    if "ln" not in text:
        return value
    top, _, bottom = (factor.strip() or "1").partition("/")
    return float(top) / float(bottom or 1) * math.log(value)


@dataclass
class Tally:
    """What came of many mutations."""

    counts: Counter[str]
    wrong: list[str]


def run(files: dict[str, bytes], count: int, seed: int, folder: Path) -> Tally:
    """Judge ``count`` mutations; ``wrong`` tells every disagreement and every false claim."""
    rng, tally = np.random.default_rng(seed), Tally(Counter(), [])
    names, path = list(files), folder / "mutated.json"
    for k in range(count):
        name = names[int(rng.integers(len(names)))]
        content, done = mutate(rng, files[name])
        path.write_bytes(content)
        where = f"{k} {name}: {done}"
        try:
            verdict = judge(path)
        except Exception as error:
            tally.wrong.append(f"{where}: {type(error).__name__}: {error}")
            continue
        accepted = not verdict.check or not verdict.audit
        exact = bool(verdict.check) == bool(verdict.audit)
        tally.counts["accepted" if accepted else "refused"] += 1
        tally.counts["within rounding or repair"] += verdict.agree and not exact
        if not verdict.agree:
            tally.wrong.append(f"{where}: check {verdict.check}, audit {verdict.audit}")
        if accepted and exact:
            try:
                false = falsehood(content, json.loads(files[name]))
            except (LookupError, ValueError) as error:
                false = f"unreadable: {error!r}"
            if false:
                tally.wrong.append(f"{where}: accepted and {false}")
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--regions", action="store_true", help="for every point, and of cells")
    parser.add_argument("--surveys", action="store_true", help="for statistics")
    parser.add_argument("--only", nargs="+", help="files of these names alone")
    args = parser.parse_args()
    files = regions() | networks() if args.regions else surveys() if args.surveys else designs()
    if args.only is not None:
        files = {name: files[name] for name in args.only}
    with tempfile.TemporaryDirectory() as folder:
        tally = run(files, args.count, args.seed, Path(folder))
    print(dict(tally.counts), f"{len(tally.wrong)} wrong")
    print("\n".join(tally.wrong))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
