"""Hostile inputs of every kind that optmech reads, made from a seed: the same seed, the same input.

A kind is a small sound input and the command line that reads it. ``make`` changes the values inside
(most keep a plausible shape), or the bytes, before or after compression.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from optmech.files.gallery import find_problem
from optmech.reading.sealed import seal

from .commands import command, counts, line, packed, places, run_directory, surrounded
from .mutate import TEXTS, change, garble, value
from .pool import Case
from .samples import (
    BESIDE,
    CITY,
    ENCODINGS,
    FIXES,
    GRID,
    MAP,
    PACK,
    POINTS,
    PROBLEMS,
    ROADS,
    SWEEP,
    TARGETS,
    TRACES,
    document_of,
    documents,
    made,
    packed_as,
    secrets_file,
    written,
)  # fmt: skip


def make(seed: int, index: int) -> Case:
    """The input number ``index`` of a seed."""
    rng = random.Random(f"{seed}/{index}")
    kinds, weights = zip(*KINDS, strict=True)
    kind = rng.choices(kinds, weights)[0]
    case = surrounded(kind(rng), rng)
    return replace(case, kind=kind.__name__, files={**BESIDE, **case.files})


def problem(rng: random.Random) -> Case:
    """A problem file: its program, or its solution."""
    content = document_of(rng, documents()[rng.choice(PROBLEMS)])
    files = {"p.json": content, "data.csv": POINTS.encode()}
    if rng.random() < 0.7:
        return Case("", ["export", "p.json", "-o", "out.mps"], files)
    return Case("", ["solve", "p.json", "-q", "--time-limit", "2"], files)


def toml(rng: random.Random) -> Case:
    """A problem file in TOML with changed bytes."""
    content = find_problem(rng.choice(PROBLEMS)).read_bytes()
    return Case("", ["export", "p.toml", "-o", "out.lp"], {"p.toml": garble(content, rng)})


def targets(rng: random.Random) -> Case:
    """A transport file."""
    content = document_of(rng, documents()[rng.choice(TARGETS)])
    return Case("", ["transport", "p.json", "--json"], {"p.json": content})


def trace(rng: random.Random) -> Case:
    """A trace file, with noise or positions from files."""
    document = documents()[rng.choice(TRACES)]
    files = {"noise.json": made().files["noise.json"], "fixes.csv": FIXES.encode()}
    pick = rng.random()
    if pick < 0.2:
        document = {k: v for k, v in document.items() if k not in ("epsilon", "length_scales")}
        document["noise"] = {"file": "noise.json"}
        files["noise.json"] = document_of(rng, json.loads(files["noise.json"]))
        return Case("", ["trace", "t.json"], {"t.json": written(document), **files})
    if pick < 0.3:
        document = {k: v for k, v in document.items() if k not in ("times", "dimensions")}
        document["gps"] = {
            "file": "fixes.csv", "user": "u", "user_column": "user", "time": "time", "x": "x",
            "y": "y", "max_gap": 100, "count": 10,
        }  # fmt: skip
        files["fixes.csv"] = garble(files["fixes.csv"], rng)
        return Case("", ["trace", "t.json"], {"t.json": written(document), **files})
    return Case("", ["trace", "t.json"], {"t.json": document_of(rng, document), **files})


def sweep(rng: random.Random) -> Case:
    """A sweep file."""
    argv = ["sweep", "s.json", "-o", "run", "--workers", "1", "-q"]
    return Case("", argv, {"s.json": document_of(rng, SWEEP)})


def profile(rng: random.Random) -> Case:
    """A solver profile."""
    engines = [
        "highs",
        "structured",
        "lazy",
        "cvxpy",
        "tangents",
        "conic",
        "blahut",
        "auto",
        "spanner",
    ]
    document: dict[str, Any] = {
        "engine": rng.choice(engines),
        "gap": 1e-6,
        "tolerance": 1e-9,
        "time_limit": 5,
        "threads": 1,
        "reductions": ["implied-pairs"],
        "method": "",
        "solver": "",
        "parameters": {},
    }
    names = ["presolve", "threads", "max_iter", "nope", "neighbours", "time_limit", "solver"]
    for _ in range(rng.choice([0, 0, 1, 2])):
        document["parameters"][rng.choice(names)] = value(rng)
    for _ in range(rng.choice([0, 1, 1, 2])):
        document[rng.choice([*document, "zzz"])] = value(rng)
    lines = [f"{key} = {_toml(item)}\n" for key, item in document.items()]
    argv = ["solve", "metric", "-q", "--profile", "p.toml"]
    return Case("", argv, {"p.toml": "".join(lines).encode("utf-8", "surrogatepass")})


def _toml(item: Any) -> str:
    if isinstance(item, dict):
        inside = (f"{json.dumps(key)} = {_toml(inner)}" for key, inner in item.items())
        return f"{{{', '.join(inside)}}}"
    if isinstance(item, list):
        return f"[{', '.join(map(_toml, item))}]"
    if item is None:
        return '"none"'
    if isinstance(item, float):
        return repr(item)
    return json.dumps(item, ensure_ascii=False)


def table(rng: random.Random) -> Case:
    """Secrets and a prior from a CSV file."""
    name, content = packed_as(POINTS.encode(), "data.csv", rng)
    keys = {"file": name, "x": "x", "y": "y"}
    secrets = {"kind": "table", **keys, "label": "name"}
    if rng.random() < 0.3:
        secrets["aggregate"] = {"zones": 3}
    prior: Any = {"kind": "column", "column": "weight"}
    if rng.random() < 0.5:
        secrets, prior = dict(GRID), {"kind": "csv", **keys, "weight": "weight"}
    files = {"p.json": secrets_file(secrets, prior), name: content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def zones(rng: random.Random) -> Case:
    """Secrets from a GeoJSON file."""
    content = document_of(rng, MAP)
    secrets: dict[str, Any] = {"kind": "zones", "file": "map.geojson"}
    if rng.random() < 0.6:
        secrets["label"] = "name"
    if rng.random() < 0.2:
        secrets = {"kind": "table", "file": "map.geojson", "x": "longitude", "y": "n"}
    metric = "euclidean" if secrets["kind"] == "table" else "haversine"
    files = {"p.json": secrets_file(secrets, "uniform", metric), "map.geojson": content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def backdrop(rng: random.Random) -> Case:
    """Lines behind the maps of a report."""
    return Case(
        "",
        ["report", "zones.json", "--backdrop", "map.geojson", "-o", "r.html"],
        {"map.geojson": document_of(rng, MAP), "zones.json": made().files["zones.json"]},
    )


def roads(rng: random.Random) -> Case:
    """Secrets from an OpenStreetMap extract."""
    text = ROADS
    if rng.random() < 0.3:
        text = text.replace("UTF-8", rng.choice(ENCODINGS))
    name, content = packed_as(text.encode(), "map.osm", rng)
    files = {
        "p.json": secrets_file({"kind": "graph", "osm": name}, "uniform", "graph"),
        name: content,
    }
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def edges(rng: random.Random) -> Case:
    """A graph from a list of edges, H3 cells, or a distance from a matrix."""
    pick = rng.randrange(3)
    if pick == 0:
        content = garble(b"source,target,length\na,b,1\nb,c,2\nc,a,2\n", rng)
        secrets = {"kind": "graph", "file": "edges.csv"}
        files = {"p.json": secrets_file(secrets, "uniform", "graph"), "edges.csv": content}
    elif pick == 1:
        cells = ["862baad27ffffff", "862baad07ffffff", value(rng), rng.choice(TEXTS)]
        files = {"p.json": secrets_file({"kind": "h3", "cells": cells}, "uniform", "haversine")}
    else:
        document = json.loads(secrets_file({"kind": "line", "count": 3}, "uniform"))
        document["loss"] = {"file": "loss.csv"}
        content = garble(b"0,1,2\n1,0,1\n2,1,0\n", rng)
        files = {"p.json": written(document), "loss.csv": content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def parquet(rng: random.Random) -> Case:
    """Secrets from a Parquet file, or a matrix."""
    if rng.random() < 0.5:
        return matrix(rng, ".parquet")
    secrets = {"kind": "table", "file": "d.parquet", "x": "x", "y": "y", "label": "name"}
    files = {
        "p.json": secrets_file(secrets, "uniform"),
        "d.parquet": garble(made().files["points.parquet"], rng),
    }
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def netcdf(rng: random.Random) -> Case:
    """A matrix in NetCDF."""
    return matrix(rng, ".nc")


def matrix(rng: random.Random, suffix: str = "") -> Case:
    """A matrix of another tool."""
    suffix = suffix or rng.choice([".csv", ".npy"])
    content = garble(made().files[f"m{suffix}"], rng)
    if suffix == ".npy" and rng.random() < 0.3:
        sink = io.BytesIO()
        shapes: list[Any] = [np.zeros(0), np.zeros((2, 2, 2)), np.array(["a"]), np.eye(4) * np.nan]
        np.save(sink, rng.choice(shapes))
        content = rng.choice([sink.getvalue(), b"PK\x03\x04" + content, b"\x93NUMPY\x01\x00" * 99])
    argv = rng.choice([["check"], ["attack"], ["measure"]])
    return Case("", [*argv, f"m{suffix}", "--problem", "metric"], {f"m{suffix}": content})


def design(rng: random.Random) -> Case:
    """A saved design or family: changed and sealed again, or with changed bytes."""
    name = rng.choice(["metric.json", "approximate.json", "grid.json", "targets.json",
                       "additive.json", "real.json", "staircase.json", "together.json",
                       "renyi.json", "pair.json", "everywhere.json", "beside.json", "mesh.json",
                       "line.json", "streets.json", "city.json", "survey.json"])  # fmt: skip
    content = made().files[name]
    if rng.random() < 0.8:
        document = json.loads(content)
        document.pop("digest")
        changed = change(document, rng, rng.choice([1, 1, 2]))
        content = seal(json.dumps(changed, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    else:
        content = garble(content, rng)
    label = rng.choice(["0", "0,1", *TEXTS])
    argv = rng.choice(
        [
            ["check", "d.json"], ["check", "d.json"], ["check", "d.json", "--json"],
            ["attack", "d.json"], ["measure", "d.json"],
            ["measure", "d.json", "--leakage"], ["compare", "d.json", "d.json"],
            ["measure", "d.json", "--everywhere"], ["pack", "d.json", "-o", "d.omm"],
            ["protect", "d.json", "city.csv", "--outside", "drop", "-o", "o.csv"],
            ["redesign", "d.json", "metric"], ["sample", "d.json", "--at", "1,45"],
            ["sample", "d.json", label.replace("\0", "") or "0"],
            ["export", "d.json", "--format", "matrix", "-o", "m.csv"],
            ["report", "d.json", "-o", "r.html"],
        ]
    )  # fmt: skip
    return Case("", argv, {"d.json": content, "city.csv": CITY.encode()})


def bomb(rng: random.Random) -> Case:
    """Small files that unpack or parse into very much."""
    many = 10**5
    big = rng.choice([2**27, 2**28])
    texts = {
        "keys.toml": "".join(f"k{k} = 1\n" for k in range(many)),
        "tables.toml": "".join(f"[t{k}]\n" for k in range(many)),
        "arrays.toml": "[[constraints]]\n" * many,
        "kinds.toml": '[[constraints]]\nkind = "metric_privacy"\nepsilon = 1\n' * 20_000,
        "dots.toml": "a" + ".a" * many + " = 1\n",
        "deep.toml": "a = " + "[" * many,
        "deep.json": '{"a":' * many,
        "lists.json": '{"a": [' + "[]," * 10**6 + "[]]}",
        "wide.json": '{"a": [' + "0," * 10**6 + "0]}",
    }
    pick = rng.random()
    if pick < 0.4:
        name = rng.choice(sorted(texts))
        return Case("", ["export", name, "-o", "out.mps"], {name: texts[name].encode()})
    pack = rng.choice(sorted(PACK))
    if pick < 0.7:
        head = rng.choice([b"", b"x,y\n", b"x,y,name,weight\n"])
        body = rng.choice([b"0", b"0,0\n", b",", b"\n", b'"', b"\0"])
        content = PACK[pack](head + body * (big // len(body)))
        secrets = {"kind": "table", "file": f"d.csv{pack}", "x": "x", "y": "y"}
        files = {"p.json": secrets_file(secrets, "uniform"), f"d.csv{pack}": content}
        return Case("", ["export", "p.json", "-o", "out.mps"], files)
    body = rng.choice(
        [
            b'<node id="1" lat="1" lon="1"/>',
            b"<way><nd/>",
            b"<a>",
            b'<tag k="highway"/>',
            b" ",
            b"\0",
        ]
    )
    content = PACK[pack](b"<osm><way>" + body * (big // len(body)))
    secrets = {"kind": "graph", "osm": f"m.osm{pack}"}
    files = {"p.json": secrets_file(secrets, "uniform", "graph"), f"m.osm{pack}": content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


KINDS: list[tuple[Callable[[random.Random], Case], float]] = [
    (backdrop, 2), (problem, 18), (toml, 5), (targets, 4), (trace, 5), (sweep, 0.5), (profile, 5),
    (table, 8), (zones, 6), (roads, 5), (edges, 3), (parquet, 2), (netcdf, 1), (matrix, 5),
    (design, 14), (counts, 3), (line, 4), (places, 12), (bomb, 0.4), (packed, 5), (command, 12),
    (run_directory, 1),
]  # fmt: skip
"""What is made how often, in per cent about."""
