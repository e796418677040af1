"""Hostile inputs of every kind that optmech reads, made from a seed: the same seed, the same input.

A kind is a small sound input and the command line that reads it. ``make`` changes the values inside
(most keep a plausible shape), or the bytes, before or after compression.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from optmech.files.gallery import find_problem
from optmech.reading.sealed import seal
from optmech.reading.source import read_document

from .mutate import NUMBERS, TEXTS, change, garble, value
from .pool import Case

PROBLEMS = (
    "metric", "grid-4x4", "grid-4x4-hamming", "worst-case", "ages", "approximate", "coarser",
    "differential", "distortion", "distribution", "divergence", "home-out", "joint",
    "line-geometric", "male-female", "max-distortion", "medical-tree", "support", "threshold",
)  # fmt: skip
TARGETS = ("home-out-target", "coupling")
TRACES = ("ten-points", "smooth", "length-scales", "measured")
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 1, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
GRID = {"kind": "grid", "rows": 2, "columns": 3}
POINTS = "x,y,weight,name\n" + "".join(f"{k % 3},{k // 3},{k + 1},p{k}\n" for k in range(6))
MAP = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": f"z{k}", "n": k + 1},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[k, 45], [k + 1, 45], [k + 1, 46], [k, 46], [k, 45]]],
            },
        }
        for k in range(4)
    ],
}
ROADS = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<osm version="0.6">\n'
    + "".join(f'<node id="{k}" lat="45.{k}" lon="-73.{k}"/>\n' for k in range(1, 7))
    + "".join(
        f'<way id="{9 + k}"><nd ref="{k}"/><nd ref="{k % 6 + 1}"/><nd ref="{(k + 1) % 6 + 1}"/>'
        '<tag k="highway" v="residential"/></way>\n'
        for k in range(1, 7)
    )
    + "</osm>\n"
)
FIXES = "user,time,x,y\n" + "".join(f"u,{60 * k},{k},{k % 3}\n" for k in range(30))
ENCODINGS = ["UTF-16", "utf-7", "rot13", "idna", "cp1252", "unicode_escape", "hex", "x" * 90]
BESIDE = {"pipe": b"<pipe>", "folder": b"<folder>", "loop": b"<loop>"}


@dataclass(frozen=True)
class Made:
    """Files that only optmech and its libraries write, as bytes."""

    files: dict[str, bytes]


@cache
def made() -> Made:
    """Saved designs and matrices in every format, made once."""
    from optmech.cli.main import main

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        design = str(place / "metric.json")
        orders = [
            ["solve", "metric", "-q", "-o", design],
            ["solve", "approximate", "-q", "-o", str(place / "approximate.json")],
            ["solve", "grid-4x4", "-q", "-o", str(place / "grid.json")],
            ["transport", "home-out-target", "-o", str(place / "targets.json")],
            ["trace", "ten-points", "-o", str(place / "noise.json")],
            ["noise", "--epsilon", "1", "--delta", "0.01", "-o", str(place / "additive.json")],
            [
                "noise",
                "--epsilon",
                "ln 3",
                "--sensitivity",
                "2",
                "--loss",
                "square",
                "-o",
                str(place / "staircase.json"),
            ],
        ]
        together = ["--delta", "0.01", "--for-releases", "3"]
        others = {"together": together, "renyi": ["--order", "3/2"], "pair": ["--dimensions", "2"]}
        orders += [
            ["noise", "--epsilon", "2", *asked, "-o", str(place / f"{name}.json")]
            for name, asked in others.items()
        ]
        orders += [["pack", design, "-o", str(place / "metric.omm")]]
        orders += [
            ["export", design, "--format", "matrix", "-o", str(place / f"m{suffix}")]
            for suffix in (".csv", ".npy", ".nc", ".parquet")
        ]
        (place / "map.geojson").write_text(json.dumps(MAP))
        zoned = {"kind": "zones", "file": "map.geojson"}
        (place / "map.json").write_bytes(_secrets(zoned, "uniform", "haversine"))
        orders.append(["solve", str(place / "map.json"), "-q", "-o", str(place / "zones.json")])
        silent = os.open(os.devnull, os.O_WRONLY)
        held = os.dup(1), os.dup(2)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            for order in orders:
                main(order)
        finally:
            os.dup2(held[0], 1)
            os.dup2(held[1], 2)
        files = {path.name: path.read_bytes() for path in place.iterdir()}
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [line.split(",") for line in POINTS.splitlines()[1:]]
    table = pa.table(
        {
            "x": pa.array([float(row[0]) for row in rows]),
            "y": pa.array([float(row[1]) for row in rows]),
            "weight": pa.array([int(row[2]) for row in rows]),
            "name": [row[3] for row in rows],
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    files["points.parquet"] = sink.getvalue()
    return Made(files)


@cache
def documents() -> dict[str, Any]:
    """The documents of the gallery that are changed."""
    found = {name: read_document(find_problem(name)) for name in (*PROBLEMS, *TARGETS)}
    return found | {name: read_document(find_problem(name, "traces")) for name in TRACES}


def make(seed: int, index: int) -> Case:
    """The input number ``index`` of a seed."""
    rng = random.Random(f"{seed}/{index}")
    kinds, weights = zip(*KINDS, strict=True)
    kind = rng.choices(kinds, weights)[0]
    case = kind(rng)
    return Case(kind.__name__.strip("_"), case.argv, {**BESIDE, **case.files})


def written(document: Any) -> bytes:
    """As JSON; halves of surrogate pairs as they are."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _document(rng: random.Random, document: Any) -> bytes:
    """A document with changed values, or with changed bytes."""
    if rng.random() < 0.8:
        return written(change(document, rng, rng.choice([1, 1, 1, 2, 3])))
    return garble(written(document), rng)


def problem(rng: random.Random) -> Case:
    """A problem file: its program, or its solution."""
    content = _document(rng, documents()[rng.choice(PROBLEMS)])
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
    content = _document(rng, documents()[rng.choice(TARGETS)])
    return Case("", ["transport", "p.json", "--json"], {"p.json": content})


def trace(rng: random.Random) -> Case:
    """A trace file, with noise or positions from files."""
    document = documents()[rng.choice(TRACES)]
    files = {"noise.json": made().files["noise.json"], "fixes.csv": FIXES.encode()}
    pick = rng.random()
    if pick < 0.2:
        document = {k: v for k, v in document.items() if k not in ("epsilon", "length_scales")}
        document["noise"] = {"file": "noise.json"}
        files["noise.json"] = _document(rng, json.loads(files["noise.json"]))
        return Case("", ["trace", "t.json"], {"t.json": written(document), **files})
    if pick < 0.3:
        document = {k: v for k, v in document.items() if k not in ("times", "dimensions")}
        document["gps"] = {
            "file": "fixes.csv", "user": "u", "user_column": "user", "time": "time", "x": "x",
            "y": "y", "max_gap": 100, "count": 10,
        }  # fmt: skip
        files["fixes.csv"] = garble(files["fixes.csv"], rng)
        return Case("", ["trace", "t.json"], {"t.json": written(document), **files})
    return Case("", ["trace", "t.json"], {"t.json": _document(rng, document), **files})


def sweep(rng: random.Random) -> Case:
    """A sweep file."""
    document = {
        "format": 1,
        "problem": {
            "loss": "euclidean", "prior": {"kind": "dirichlet", "seed": 3}, "secrets": GRID,
            "constraints": [{"kind": "metric_privacy", "epsilon": 1, "distance": "euclidean"}],
        },
        "axes": [
            {"kind": "list", "path": "prior.seed", "values": [1, 2]},
            {"kind": "range", "path": "constraints[0].epsilon", "start": 1, "stop": 2, "count": 2},
        ],
    }  # fmt: skip
    argv = ["sweep", "s.json", "-o", "run", "--workers", "1", "-q"]
    return Case("", argv, {"s.json": _document(rng, document)})


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


def _secrets(secrets: dict[str, Any], prior: Any, metric: str = "euclidean") -> bytes:
    constraint = {"kind": "metric_privacy", "epsilon": 1, "distance": metric}
    return written(
        {"format": 1, "secrets": secrets, "prior": prior, "loss": metric,
         "constraints": [constraint]}
    )  # fmt: skip


def _packed(content: bytes, name: str, rng: random.Random) -> tuple[str, bytes]:
    """Changed before or after it is compressed, or not compressed."""
    suffix = rng.choice(["", "", *PACK])
    if not suffix:
        return name, garble(content, rng)
    if rng.random() < 0.3:
        content = garble(content, rng)
    packed = PACK[suffix](content)
    return name + suffix, garble(packed, rng) if rng.random() < 0.8 else packed


def table(rng: random.Random) -> Case:
    """Secrets and a prior from a CSV file."""
    name, content = _packed(POINTS.encode(), "data.csv", rng)
    keys = {"file": name, "x": "x", "y": "y"}
    secrets = {"kind": "table", **keys, "label": "name"}
    if rng.random() < 0.3:
        secrets["aggregate"] = {"zones": 3}
    prior: Any = {"kind": "column", "column": "weight"}
    if rng.random() < 0.5:
        secrets, prior = dict(GRID), {"kind": "csv", **keys, "weight": "weight"}
    files = {"p.json": _secrets(secrets, prior), name: content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def zones(rng: random.Random) -> Case:
    """Secrets from a GeoJSON file."""
    content = _document(rng, MAP)
    secrets: dict[str, Any] = {"kind": "zones", "file": "map.geojson"}
    if rng.random() < 0.6:
        secrets["label"] = "name"
    if rng.random() < 0.2:
        secrets = {"kind": "table", "file": "map.geojson", "x": "longitude", "y": "n"}
    metric = "euclidean" if secrets["kind"] == "table" else "haversine"
    files = {"p.json": _secrets(secrets, "uniform", metric), "map.geojson": content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def backdrop(rng: random.Random) -> Case:
    """Lines behind the maps of a report."""
    return Case(
        "",
        ["report", "zones.json", "--backdrop", "map.geojson", "-o", "r.html"],
        {"map.geojson": _document(rng, MAP), "zones.json": made().files["zones.json"]},
    )


def roads(rng: random.Random) -> Case:
    """Secrets from an OpenStreetMap extract."""
    text = ROADS
    if rng.random() < 0.3:
        text = text.replace("UTF-8", rng.choice(ENCODINGS))
    name, content = _packed(text.encode(), "map.osm", rng)
    files = {"p.json": _secrets({"kind": "graph", "osm": name}, "uniform", "graph"), name: content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


def edges(rng: random.Random) -> Case:
    """A graph from a list of edges, H3 cells, or a distance from a matrix."""
    pick = rng.randrange(3)
    if pick == 0:
        content = garble(b"source,target,length\na,b,1\nb,c,2\nc,a,2\n", rng)
        secrets = {"kind": "graph", "file": "edges.csv"}
        files = {"p.json": _secrets(secrets, "uniform", "graph"), "edges.csv": content}
    elif pick == 1:
        cells = ["862baad27ffffff", "862baad07ffffff", value(rng), rng.choice(TEXTS)]
        files = {"p.json": _secrets({"kind": "h3", "cells": cells}, "uniform", "haversine")}
    else:
        document = json.loads(_secrets({"kind": "line", "count": 3}, "uniform"))
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
        "p.json": _secrets(secrets, "uniform"),
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
                       "additive.json", "staircase.json", "together.json", "renyi.json",
                       "pair.json"])  # fmt: skip
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
            ["sample", "d.json", label.replace("\0", "") or "0"],
            ["export", "d.json", "--format", "matrix", "-o", "m.csv"],
            ["report", "d.json", "-o", "r.html"],
        ]
    )  # fmt: skip
    return Case("", argv, {"d.json": content})


def counts(rng: random.Random) -> Case:
    """How often each report was seen, for a saved design."""
    labels = ["station", "market", "school", "0", *TEXTS]
    rows = [f"{rng.choice(labels)},{rng.choice([1, 2.5, 0, *NUMBERS])}" for _ in range(5)]
    sound = "observable,count\nstation,4\nmarket,9\n"
    text = "\n".join([rng.choice(["observable,count", "observable", "a,b", ""]), *rows])
    content = rng.choice([sound, text]).encode("utf-8", "surrogatepass")
    more = rng.choice([[], ["--bootstrap", "5"], ["--json"], ["-o", "e.csv"]])
    files = {"metric.json": made().files["metric.json"], "c.csv": garble(content, rng)}
    return Case("", ["estimate", "metric.json", "c.csv", *more], files)


def packed(rng: random.Random) -> Case:
    """A packed mechanism with changed bytes, half of them under a digest that fits."""
    content = bytearray(garble(made().files["metric.omm"], rng))
    if rng.random() < 0.5 and len(content) > 32:
        content[-32:] = hashlib.sha256(content[:-32]).digest()
    argv = rng.choice([["check", "c.omm", "metric.json"], ["sample", "c.omm", "0"]])
    files = {"c.omm": bytes(content), "metric.json": made().files["metric.json"]}
    return Case("", argv, files)


def places(rng: random.Random) -> Case:
    """A table that is protected, or that a first problem is written for."""
    name, content = _packed(POINTS.encode(), "data.csv", rng)
    place = rng.choice([["--x", "x", "--y", "y"], ["--label", "name"], ["--x", "weight"]])
    files = {"metric.json": made().files["metric.json"], "key": bytes(range(40)), name: content}
    if rng.random() < 0.2:
        name = "map.geojson"
        files[name], place = _document(rng, MAP), []
    if rng.random() < 0.3:
        return Case("", ["init", name, *place, "--cells", "9", "-o", "made.toml"], files)
    outside = ["--outside", rng.choice(["refuse", "nearest", "drop"])]
    sticky = rng.choice([[], ["--sticky-key-file", "key", "--sticky-by", "weight"]])
    out = ["-o", rng.choice(["out.csv", "out.csv.gz", "out.geojson", "-"])]
    return Case("", ["protect", "metric.json", name, *place, *outside, *sticky, *out], files)


def line(rng: random.Random) -> Case:
    """A command line with hostile arguments, and inputs that are no files."""
    names = ["pipe", "folder", "loop", "/dev/zero", "/dev/null", "/dev/stdin", "/proc/self/mem"]
    bad = rng.choice([*names, *TEXTS, str(rng.choice(NUMBERS[:16] + NUMBERS[17:]))])
    bad = bad.replace("\0", "?")
    text = "?" if bad.startswith("-") else bad
    argv = rng.choice(
        [
            ["solve", text],
            ["check", text],
            ["attack", text],
            ["sample", text, "0"],
            ["measure", text],
            ["report", text, "-o", "r.html"],
            ["trace", text],
            ["sweep", text],
            ["transport", text],
            ["export", text, "-o", "x.mps"],
            ["solve", "metric", "-q", "--profile", text],
            ["solve", "metric", "-q", "--profile", "pipe.toml"],
            ["check", "pipe.npy", "--problem", "metric"],
            ["check", "pipe.nc", "--problem", "metric"],
            ["check", "pipe.csv", "--problem", "metric"],
            ["check", "pipe.parquet", "--problem", "metric"],
            ["check", "metric.json", "--problem", text],
            ["sample", "metric.json", text],
            ["sample", "metric.json", "0", "--seed", text],
            ["sample", "metric.json", "0", "-n", text],
            ["solve", "metric", "-q", "--gap", text],
            ["solve", "metric", "-q", "--time-limit", text],
            ["trace", "ten-points", "--seed", text],
            ["noise", "--epsilon", text],
            ["noise", "--epsilon", "1", "--delta", text, "--sensitivity", "2"],
            ["noise", "--epsilon", "1", "--loss", text],
            ["noise", "--epsilon", "1", "--loss", "threshold", "--width", text],
            ["noise", "--epsilon", "1", "--sensitivity", text],
            ["transport", "home-out", "--p", text],
            ["transport", "home-out", "--radius", text],
            ["transport", "home-out", "--distance", text],
            ["measure", "metric.json", "--delta", text],
            ["measure", "metric.json", "--leakage", "--reports", text],
            ["compare", "metric.json", text],
            ["estimate", "metric.json", text],
            ["estimate", "metric.json", text, "--bootstrap", text],
            ["adopt", text, "--problem", "metric", "-o", "x.json"],
            ["solve", "metric", "-q", "--device", text],
            ["sweep", "epsilon-curve", "-o", "run", "--workers", "0", "--gap", text],
        ]
    )
    files = {"metric.json": made().files["metric.json"]}
    for suffix in (".toml", ".npy", ".nc", ".csv", ".parquet"):
        files[f"pipe{suffix}"] = b"<pipe>"
    return Case("", argv, files)


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
        files = {"p.json": _secrets(secrets, "uniform"), f"d.csv{pack}": content}
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
    files = {"p.json": _secrets(secrets, "uniform", "graph"), f"m.osm{pack}": content}
    return Case("", ["export", "p.json", "-o", "out.mps"], files)


KINDS: list[tuple[Callable[[random.Random], Case], float]] = [
    (backdrop, 3),
    (problem, 22), (toml, 6), (targets, 5), (trace, 6), (sweep, 0.5), (profile, 6), (table, 10),
    (zones, 8), (roads, 6), (edges, 4), (parquet, 2), (netcdf, 1), (matrix, 6), (design, 12),
    (counts, 3), (line, 5), (places, 5), (bomb, 0.4), (packed, 4),
]  # fmt: skip
"""What is made how often, in per cent about."""
