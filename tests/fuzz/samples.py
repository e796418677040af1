"""Small sound files of every kind, which are changed; those that only optmech writes made once."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from optmech.files.gallery import find_problem
from optmech.reading.source import read_document

from .mutate import change, garble

PROBLEMS = (
    "metric", "grid-4x4", "grid-4x4-hamming", "worst-case", "ages", "approximate", "coarser",
    "differential", "distortion", "distribution", "divergence", "home-out", "joint",
    "line-geometric", "male-female", "max-distortion", "medical-tree", "support", "threshold",
    "square-everywhere", "square-everywhere-joint", "bayes-leakage", "capacities", "kept-rows",
    "least-leakage", "mutual-information", "policy-graph", "pufferfish", "renyi", "survey",
    "unbiased",
)  # fmt: skip
TARGETS = ("home-out-target", "coupling")
TRACES = ("ten-points", "smooth", "length-scales", "measured", "robust", "commuter")
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 1, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
GRID = {"kind": "grid", "rows": 2, "columns": 3}
PLANTED = "7373737"
"""Decimals of every coordinate, by which a message that prints one is found."""
_SHIFT = float(f"0.0{PLANTED}")
_DATA = {
    "points", "bounds", "values", "weights", "matrix", "lengths", "edges", "positions", "counts",
    "origin", "estimates", "vertices",
}  # fmt: skip
"""Keys of documents below which numbers are data."""


def planted(plain: Any, data: bool = False) -> Any:
    """A document whose coordinates, weights and cells of tables have these decimals too; zeros, as
    of a distance from a place to itself, stay."""
    if isinstance(plain, dict):
        return {key: planted(part, data or key in _DATA) for key, part in plain.items()}
    if isinstance(plain, list):
        return [planted(part, data) for part in plain]
    number = isinstance(plain, int | float) and not isinstance(plain, bool)
    return plain + _SHIFT if data and number and plain else plain


POINTS = "x,y,weight,name\n" + "".join(
    f"{k % 3}.{PLANTED},{k // 3}.{PLANTED},{k + 1},p{k}\n" for k in range(6)
)
MAP = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": f"z{k}", "n": k + 1},
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [
                        [x + _SHIFT, y + _SHIFT]
                        for x, y in [(k, 45), (k + 1, 45), (k + 1, 46), (k, 46), (k, 45)]
                    ]
                ],
            },
        }
        for k in range(4)
    ],
}
ROADS = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<osm version="0.6">\n'
    + "".join(
        f'<node id="{k}" lat="45.{k}{PLANTED}" lon="-73.{k}{PLANTED}"/>\n' for k in range(1, 7)
    )
    + "".join(
        f'<way id="{9 + k}"><nd ref="{k}"/><nd ref="{k % 6 + 1}"/><nd ref="{(k + 1) % 6 + 1}"/>'
        '<tag k="highway" v="residential"/></way>\n'
        for k in range(1, 7)
    )
    + "</osm>\n"
)
CITY = "lon,lat,rider,day\n" + "".join(
    f"{k % 4}.{k % 10}{PLANTED},45.{1 + k % 3 * 4}{PLANTED},u{k % 3},{k % 2}\n" for k in range(24)
)
SPOTS = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"rider": f"u{k % 2}", "n": k},
            "geometry": {
                "type": "Point",
                "coordinates": [0.4 * k + _SHIFT, 45.1 + k % 2 / 2 + _SHIFT],
            },
        }
        for k in range(6)
    ],
}
OVER = {"kind": "grid", "rows": 3, "columns": 4, "bounds": [0, 45, 4, 46]}
MESH = {
    "format": 1, "loss": "haversine", "prior": "uniform",
    "secrets": {"kind": "lonlat", "labels": ["a", "b", "c"],
                "points": [[0.5, 45.2], [2.5, 45.7], [3.5, 45.4]]},
    "constraints": [{"kind": "metric_privacy", "epsilon": 0.02, "distance": "haversine",
                     "everywhere": {"kind": "grid", "width": 100, "bounds": [0, 45, 4, 46]}}],
}  # fmt: skip
LINE = {
    "format": 1, "loss": "euclidean", "prior": "uniform", "objective": "worst_loss",
    "secrets": {"kind": "line", "count": 4},
    "constraints": [
        {"kind": "metric_privacy", "epsilon": 1, "everywhere": {"kind": "line"}},
        {"kind": "differential_privacy", "epsilon": 2, "everywhere": {"kind": "line"}},
    ],
}  # fmt: skip
STREETS = {
    "format": 1, "loss": "graph", "prior": "uniform",
    "secrets": {"kind": "graph", "nodes": ["a", "b", "c"], "points": [[0, 0], [1, 0], [1, 2]],
                "edges": [["a", "b", 1], ["b", "c", 2], ["a", "c", 2.5]]},
    "constraints": [{"kind": "metric_privacy", "epsilon": 1, "everywhere": {"kind": "roads"}}],
}  # fmt: skip
SWEEP: dict[str, Any] = {
    "format": 1,
    "problem": {
        "loss": "euclidean", "prior": {"kind": "dirichlet", "seed": 3},
        "secrets": planted({"kind": "points", "labels": [7, 8], "points": [[1, 2], [2, 3]]}),
        "constraints": [{"kind": "metric_privacy", "epsilon": 1, "distance": "euclidean"}],
    },
    "axes": [
        {"kind": "list", "path": "prior.seed", "values": [1, 2]},
        {"kind": "range", "path": "constraints[0].epsilon", "start": 1, "stop": 2, "count": 2},
    ],
}  # fmt: skip
FIXES = "user,time,x,y\n" + "".join(
    f"u,{60 * k},{k}.{PLANTED},{k % 3}.{PLANTED}\n" for k in range(30)
)
ENCODINGS = ["UTF-16", "utf-7", "rot13", "idna", "cp1252", "unicode_escape", "hex", "x" * 90]
BESIDE = {"pipe": b"<pipe>", "folder": b"<folder>", "loop": b"<loop>"}


@dataclass(frozen=True)
class Made:
    """Files that only optmech and its libraries write, as bytes."""

    files: dict[str, bytes]


@cache
def made() -> Made:
    """Saved designs and matrices in every format, made once, by another process: what computes has
    threads, and a process that is forked beside them may never end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.fuzz.samples", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        place = Path(folder)
        return Made(
            {
                path.relative_to(place).as_posix(): path.read_bytes()
                for path in place.rglob("*")
                if path.is_file()
            }
        )


def write_samples(place: Path) -> None:
    """Write the files of ``made`` to a folder."""
    from optmech.cli.main import main

    design = str(place / "metric.json")
    orders = [
        ["solve", str(place / "metric-planted.json"), "-q", "-o", design],
        ["solve", "approximate", "-q", "-o", str(place / "approximate.json")],
        ["solve", "grid-4x4", "-q", "-o", str(place / "grid.json")],
        ["solve", str(place / "survey-planted.json"), "-q", "-o", str(place / "survey.json")],
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
    others = {
        "together": together,
        "renyi": ["--order", "3/2"],
        "divergence": ["--order", "1", "--real", "--cells", "3"],
        "real": ["--real", "--cells", "4"],
        "pair": ["--dimensions", "2"],
        "padding": ["--delta", "0.01", "--support", "0:"],
        "rounded": ["--sensitivity", "2000"],
    }
    orders += [
        ["noise", "--epsilon", "2", *asked, "-o", str(place / f"{name}.json")]
        for name, asked in others.items()
    ]
    asked = {
        "city": secrets_file(OVER, "uniform").replace(b'"epsilon": 1', b'"epsilon": 0.02'),
        "mesh": written(planted(MESH)),
        "line": written(planted(LINE)),
        "streets": written(planted(STREETS)),
        "run": written(SWEEP),
    }
    for name, content in asked.items():
        (place / f"{name}-asked.json").write_bytes(content)
    for name, document in documents().items():
        (place / f"{name}-planted.json").write_bytes(written(document))
    gallery = {
        name: str(place / f"{problem}-planted.json")
        for name, problem in (
            ("everywhere", "square-everywhere"),
            ("beside", "square-everywhere-joint"),
        )
    }
    own = ("city", "mesh", "line", "streets")
    named = gallery | {name: str(place / f"{name}-asked.json") for name in own}
    for name, problem in named.items():
        saved = str(place / f"{name}.json")
        orders += [["solve", problem, "-q", "-o", saved]]
        if name not in ("line", "streets"):
            orders += [["pack", saved, "-o", str(place / f"{name}.omm"), "--bits", "32"]]
    orders += [["pack", design, "-o", str(place / "metric.omm")]]
    orders += [["pack", "--earth", "1", "-o", str(place / "earth.omm")]]
    orders += [["sweep", str(place / "run-asked.json"), "-o", str(place / "run"), "-q",
                "--workers", "1"]]  # fmt: skip
    orders += [
        ["export", design, "--format", "matrix", "-o", str(place / f"m{suffix}")]
        for suffix in (".csv", ".npy", ".nc", ".parquet")
    ]
    (place / "map.geojson").write_text(json.dumps(MAP))
    zoned = {"kind": "zones", "file": "map.geojson"}
    (place / "map.json").write_bytes(secrets_file(zoned, "uniform", "haversine"))
    orders.append(["solve", str(place / "map.json"), "-q", "-o", str(place / "zones.json")])
    for order in orders:
        assert main(order) == 0, order
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
    pq.write_table(table, place / "points.parquet")


@cache
def documents() -> dict[str, Any]:
    """The documents of the gallery that are changed."""
    found = {name: read_document(find_problem(name)) for name in (*PROBLEMS, *TARGETS)}
    found |= {name: read_document(find_problem(name, "trace")) for name in TRACES}
    return {name: planted(document) for name, document in found.items()}


def written(document: Any) -> bytes:
    """As JSON; halves of surrogate pairs as they are."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def document_of(rng: random.Random, document: Any) -> bytes:
    """A document with changed values, or with changed bytes."""
    if rng.random() < 0.8:
        return written(change(document, rng, rng.choice([1, 1, 1, 2, 3])))
    return garble(written(document), rng)


def secrets_file(secrets: dict[str, Any], prior: Any, metric: str = "euclidean") -> bytes:
    constraint = {"kind": "metric_privacy", "epsilon": 1, "distance": metric}
    return written(
        {"format": 1, "secrets": secrets, "prior": prior, "loss": metric,
         "constraints": [constraint]}
    )  # fmt: skip


def packed_as(content: bytes, name: str, rng: random.Random) -> tuple[str, bytes]:
    """Changed before or after it is compressed, or not compressed."""
    suffix = rng.choice(["", "", *PACK])
    if not suffix:
        return name, garble(content, rng)
    if rng.random() < 0.3:
        content = garble(content, rng)
    packed = PACK[suffix](content)
    return name + suffix, garble(packed, rng) if rng.random() < 0.8 else packed


if __name__ == "__main__":
    write_samples(Path(sys.argv[1]))
