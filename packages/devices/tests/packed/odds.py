"""Sentences of packed files against drawn pairs: ``python packages/devices/tests/packed/odds.py``.

Designs by random distances, in random units, are packed and read again. What the file says in odds
has to hold of every two positions that are so far apart, measured here by what the sentence names;
and where n reports are said to promise n times ε, of two and three reports, by brute force.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx
import numpy as np

import optmech as om

RADIUS_KM = 6371.0088
_SAID = re.compile(r"([0-9]+) (k?m) (apart[a-zA-Z ]*?) at most ([0-9,.e+]+) times")
_UNITS = ("km", "m", "km", "km (scaled 1:100)", "", "years")
Pair = tuple[float, float]
"""How far apart two positions are, in metres, and the largest log ratio of a report."""


def lengths(said: str) -> Iterator[tuple[float, str, float]]:
    """What is said in odds: metres, how they are measured, and how many times as likely."""
    for number, unit, how, times in _SAID.findall(said):
        yield float(number) * (1000 if unit == "km" else 1), how, float(times.replace(",", ""))


def ratio(p: np.ndarray, q: np.ndarray) -> float:
    used = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(p[used]) - np.log(q[used])).max())


def circle(a: np.ndarray, b: np.ndarray) -> float:
    """Metres along a great circle, by vectors."""
    x, y = (
        np.array([math.cos(v) * math.cos(u), math.cos(v) * math.sin(u), math.sin(v)])
        for u, v in (np.radians(a), np.radians(b))
    )
    return 1000 * RADIUS_KM * 2 * math.asin(min(1.0, float(np.linalg.norm(x - y)) / 2))


def steps(corners: list[list[float]]) -> list[float]:
    """The lengths of the ways from each corner to the next."""
    return [math.dist(a, b) for a, b in itertools.pairwise(corners)]


def scale_of(unit: str) -> float:
    """Metres of a unit; infinite where it is no length that is named in odds."""
    return {"km": 1000.0, "m": 1.0}.get(unit, math.inf)


# -- instances -----------------------------------------------------------------------------------


def places(rng: random.Random, folder: Path) -> tuple[Any, dict[str, list[Pair]]]:
    """Points of the plane, by a distance with a name."""
    unit = rng.choice(_UNITS)
    size = 3.0 if unit.startswith("km") else 3000.0 if unit == "m" else 3.0
    count = rng.randrange(2, 6)
    points = np.array([[rng.uniform(0, size) for _ in range(2)] for _ in range(count)])
    domain = om.Domain(range(count), points, unit)
    name = rng.choice(["euclidean", "manhattan", "graph", "hamming"])
    if name == "graph":
        edges = [(k, k + 1, rng.uniform(0.05, 1) * size) for k in range(count - 1)]
        ways = networkx.Graph()
        ways.add_weighted_edges_from(edges)
        distance = om.distances.graph(ways, weight="weight")
    else:
        distance = getattr(om.distances, name)()
    epsilon = rng.uniform(0.2, 3) * 3 / size
    found = packed(rng, domain, distance, [om.MetricPrivacy(epsilon, distance)], folder)
    pairs: dict[str, list[Pair]] = {"apart": [], "apart by the Manhattan distance": []}
    for i, j in itertools.combinations(range(count), 2):
        step, own = np.abs(points[i] - points[j]), ratio(found.matrix[i], found.matrix[j])
        pairs["apart"].append((float(np.hypot(*step)) * scale_of(unit), own))
        pairs["apart by the Manhattan distance"].append((float(step.sum()) * scale_of(unit), own))
    return found, pairs


def globe(rng: random.Random, folder: Path) -> tuple[Any, dict[str, list[Pair]]]:
    """Points of the globe."""
    x, y, count = rng.uniform(-180, 180), rng.uniform(-80, 80), rng.randrange(2, 6)
    points = np.array([[x + rng.uniform(0, 0.05), y + rng.uniform(0, 0.03)] for _ in range(count)])
    points[:, 0] = np.where(points[:, 0] > 180, points[:, 0] - 360, points[:, 0])
    domain = om.Domain.geographic(range(count), points)
    distance = om.distances.haversine()
    private = [om.MetricPrivacy(rng.uniform(0.2, 3), distance)]
    found = packed(rng, domain, distance, private, folder)
    pairs = [
        (circle(points[i], points[j]), ratio(found.matrix[i], found.matrix[j]))
        for i, j in itertools.combinations(range(count), 2)
    ]
    return found, {"apart": pairs}


def cells(rng: random.Random, folder: Path) -> tuple[Any, dict[str, list[Pair]]]:
    """Positions in cells of the plane, or of a box of degrees, whose map is flat."""
    rows, columns = rng.randrange(1, 3), rng.randrange(1, 4)
    flat = rng.random() < 0.4
    if flat:
        x, y = rng.uniform(-179, 170), rng.uniform(-60, 60)
        box = (x, y, x + rng.uniform(0.01, 0.1), y + rng.uniform(0.01, 0.05))
        grid = om.Grid.geographic(rows, columns, box)
    else:
        grid = om.Grid(rows, columns, (rng.uniform(0.2, 2), rng.uniform(0.2, 2)), unit="km")
    distance = om.distances.euclidean()
    private = [om.MetricPrivacy(rng.uniform(0.2, 2), distance)]
    found = packed(rng, grid, distance, private, folder)
    pairs = []
    for _ in range(60):
        at = np.array([[rng.uniform(0, columns), rng.uniform(0, rows)] for _ in range(2)])
        if rng.random() < 0.5:
            at[1] = np.clip(at[0] + rng.uniform(-0.02, 0.02), 0, [columns - 1e-9, rows - 1e-9])
        own = [found.secrets.index((int(v), int(u))) for u, v in at.tolist()]
        away = float(np.hypot(*((at[0] - at[1]) * np.array(grid.cell)))) * 1000
        pairs.append((away, ratio(*(found.matrix[k] for k in own))))
    return found, {"apart on the flat map" if flat else "apart": pairs}


def everywhere(rng: random.Random, folder: Path) -> tuple[Any, dict[str, list[Pair]]]:
    """Numbers of a line, or points of roads, between the vertices too."""
    if rng.random() < 0.4:
        mesh = om.Mesh.line(0, 2, rng.randrange(1, 5), unit="km")
        ends, network = [(k, k + 1) for k in range(len(mesh) - 1)], mesh
    else:
        corners = [[0, 0], [0, 1], [0.05 + rng.random(), 1], [0.05 + rng.random(), 0]]
        network = om.Network(corners, [[0, 1, 2, 3]], lengths=steps(corners), unit="km")
        ends = [(0, 1), (1, 2), (2, 3)]
    private = [om.MetricPrivacy(rng.uniform(0.2, 3), everywhere=network)]
    secrets = network.domain
    found = packed(rng, secrets, network.distance, private, folder)
    line = network.vertices.shape[1] == 1
    along = np.concatenate([[0.0], np.cumsum(network.widths)])
    pairs = []
    for _ in range(60):
        spots = []
        for _ in range(2):
            k, share = rng.randrange(len(ends)), rng.random()
            a, b = (network.vertices[v] for v in ends[k])
            spots.append((a + share * (b - a), along[k] + share * network.widths[k]))
        p, q = found.at([spots[0][0], spots[1][0]])
        pairs.append((abs(spots[0][1] - spots[1][1]) * 1000, ratio(p, q)))
    return found, {"apart" if line else "apart along the roads": pairs}


def packed(
    rng: random.Random, secrets: Any, loss: Any, constraints: list[Any], folder: Path
) -> om.PackedMechanism:
    """The mechanism of a design, written and read again."""
    prior = om.Prior(secrets, [rng.random() + 0.05 for _ in range(len(secrets))])
    design = om.solve(om.Problem(prior, loss, constraints=constraints))
    path = folder / "m.omm"
    om.pack(design, path, bits=48, max_loss=1)
    return om.load_packed(path)


KINDS: tuple[Callable[[random.Random, Path], tuple[Any, dict[str, list[Pair]]]], ...] = (
    places, globe, cells, everywhere,
)  # fmt: skip


# -- what is said of them ------------------------------------------------------------------------


def odds(found: om.PackedMechanism, pairs: dict[str, list[Pair]]) -> tuple[int, list[str]]:
    """How many pairs were compared with odds, and what is false."""
    said = [text for text in found.protects if text.startswith("in odds")]
    compared, wrong = 0, []
    for metres, how, times in lengths(" ".join(said)):
        if how not in pairs:
            wrong.append(f"{how!r} is none of {sorted(pairs)}")
            continue
        for away, own in pairs[how]:
            if away <= metres:
                compared += 1
                if own > math.log(times) + 1e-9:
                    wrong.append(f"{own} at {away} m, and {times} times are said of {metres} m")
    return compared, wrong


def repeated(found: om.PackedMechanism) -> tuple[int, list[str]]:
    """Two and three reports of a ratio that is said to add up, for every pair that it is about."""
    clause = found.header.promises[0]
    adds = any("promise only n times ε." in text for text in found.against)
    if not adds or isinstance(found, om.PackedEverywhere) or clause.ratio is None:
        return 0, []
    compared, wrong = 0, []
    for p, q in itertools.combinations(found.matrix, 2):
        once = ratio(p, q)
        for n in (2, 3):
            one, other = p, q
            for _ in range(n - 1):
                one, other = np.outer(one, p).ravel(), np.outer(other, q).ravel()
            compared += 1
            if ratio(one, other) > n * once * (1 + 1e-9) + 1e-12:
                wrong.append(f"{n} reports have {ratio(one, other)}, and one {once}")
    return compared, wrong


def run(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """What was compared, and what is false."""
    seen, wrong = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as made:
        for number in range(count):
            rng = random.Random(seed * 1_000_003 + number)
            kind = KINDS[number % len(KINDS)]
            found, pairs = kind(rng, Path(made))
            for name, (compared, faults) in (
                ("odds", odds(found, pairs)),
                ("reports", repeated(found)),
            ):
                seen[name] += compared
                wrong += [f"{kind.__name__} {number}: {fault}" for fault in faults]
            seen["with odds"] += any("in odds" in text for text in found.protects)
    return seen, wrong


def main() -> int:
    """0 where nothing is false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    seen, wrong = run(args.count, args.seed)
    print("\n".join(wrong))
    print(f"{args.count:,} designs, seed {args.seed}: {dict(seen)}; {len(wrong)} false")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
