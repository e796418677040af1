"""``odds``: what a promise says in odds, "places 1 km apart at most 7.39 times", against lengths
measured here: straight, along great circles, on a flat map, along roads, by coordinates.

Two positions lie as far apart as the sentence has it, by its own words. The largest ratio that the
statement allows there may not be larger than what is said; and where the distance of the promise
is no length, or in another unit than m and km, nothing may be said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import networkx as nx
import numpy as np

import optmech as om
from optmech.designs.promise import promise_of

RADIUS = 6371.0088
SAID = re.compile(
    r"(?P<far>[\d.]+) (?P<unit>km|m) (?P<how>apart[^;]*?) "
    r"(?:at most (?P<factor>[\d,.]+) times|over a million times)"
)
METRES = {"km": 1000.0, "m": 1.0}
seen: Counter[str] = Counter()
"""How many sentences and numbers were checked, by the distance."""
Length = Callable[[np.ndarray, np.ndarray], float]
Case = tuple[om.Problem, Callable[[float], Iterator[tuple[np.ndarray, np.ndarray, float]]]]
"""A problem, and pairs of positions that are so many metres apart by the words of its sentence,
with the log ratio that is allowed between them."""


def straight(a: np.ndarray, b: np.ndarray) -> float:
    return math.dist(a, b)


def along_axes(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.subtract(a, b)).sum())


def arc(a: np.ndarray, b: np.ndarray) -> float:
    """Along a great circle, in km, by the angle between two unit vectors."""
    p, q = (_vector(v) for v in (a, b))
    return RADIUS * math.atan2(float(np.linalg.norm(np.cross(p, q))), float(p @ q))


def _vector(lonlat: np.ndarray) -> np.ndarray:
    lon, lat = np.radians(lonlat)
    return np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])


def flat(middle: float) -> Length:
    """On the map of a box whose middle latitude this is, in km."""
    scale = np.radians(RADIUS) * np.array([math.cos(math.radians(middle)), 1.0])
    return lambda a, b: float(np.hypot(*(np.subtract(a, b) * scale)))


def _epsilon(rng: np.random.Generator, unit: str) -> float:
    """Such that some of the odds are numbers and not "over a million"."""
    return float(10.0 ** rng.uniform(-3, 1.3) / (1 if unit != "m" else 1000))


def _turned(rng: np.random.Generator, length: float) -> np.ndarray:
    angle = rng.choice([0, math.pi / 2, rng.uniform(0, 2 * math.pi)])
    return length * np.array([math.cos(angle), math.sin(angle)])


def _places(rng: np.random.Generator, metres: float, unit: str, globe: bool) -> np.ndarray:
    """Three places, two of them about so far apart; by coordinates not farther."""
    if globe:
        start = np.array([rng.uniform(-180, 180), rng.uniform(-80, 80)])
        step = np.degrees(_turned(rng, metres / 1000 / RADIUS)) * [
            1 / math.cos(math.radians(start[1])), 1
        ]  # fmt: skip
        points = np.array([start, start + step * (1 - 1e-6), start - 3 * step])
        points[:, 0] = (points[:, 0] + 180) % 360 - 180
        return points
    step = _turned(rng, metres / METRES.get(unit, 1.0))
    return np.array([step * 0, step * (1 - 1e-9), -3 * step]) + rng.uniform(-5, 5, 2)


def of_places(rng: np.random.Generator, name: str, unit: str) -> Case:
    """Finitely many places and a distance between them; the sentence is of these."""
    metres = float(rng.choice([100, 1000, 10_000]))
    globe = name == "haversine"
    points = _places(rng, metres, unit, globe)
    if globe:
        domain = om.Domain.geographic(list("abc"), points)
    else:
        domain = om.Domain(list("abc"), points, unit)
    distance = _distance(name, domain, rng)
    stated = om.MetricPrivacy(_epsilon(rng, domain.unit), distance)
    problem = om.Problem(om.Prior.uniform(domain), om.distances.hamming(), constraints=[stated])
    allowed = float(stated.epsilon) * distance(domain, domain)

    def pairs(_: float) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        for i in range(3):
            for j in range(3):
                yield points[i], points[j], allowed[i, j]

    return problem, pairs


def _distance(name: str, domain: om.Domain, rng: np.random.Generator) -> om.spaces.Distance:
    if name == "graph":
        graph: nx.Graph = nx.Graph()
        graph.add_weighted_edges_from([("a", "b", rng.uniform(0, 9)), ("b", "c", 1.0)])
        return om.distances.graph(graph)
    if name == "matrix":
        away = rng.uniform(0, 9, (3, 3))
        return om.distances.matrix(np.where(np.eye(3) > 0, 0, away + away.T))
    if name.startswith("own"):

        def own(a: om.Domain, b: om.Domain) -> np.ndarray:
            return 5.0 * (1 - np.eye(len(a), len(b)))

        own.name = name.removeprefix("own ")  # type: ignore[attr-defined]
        return own
    return getattr(om.distances, name)()


def of_cells(rng: np.random.Generator, name: str, unit: str) -> Case:
    """Cells, and positions in them; over a box of degrees these are measured on its flat map."""
    rows, columns = rng.integers(1, 4, 2)
    if name == "flat":
        west, south = rng.uniform(-170, 150), rng.uniform(-75, 60)
        size = 10.0 ** rng.uniform(-2, 1.2)
        box = (west, south, west + size, south + size)
        cells = om.Grid(int(rows), int(columns), bounds=box)
        length = flat((box[1] + box[3]) / 2)
        low, high = np.array(box[:2]), np.array(box[2:])
    else:
        cell = 10.0 ** rng.uniform(-2, 1, 2) / METRES.get(unit, 1.0) * 1000
        cells = om.Grid(int(rows), int(columns), cell=tuple(cell.tolist()), unit=unit)
        low, high, length = np.zeros(2), cell * [columns, rows], straight
    stated = om.MetricPrivacy(_epsilon(rng, cells.unit), om.distances.euclidean())
    problem = om.Problem(om.Prior.uniform(cells), om.distances.hamming(), constraints=[stated])
    allowed = float(stated.epsilon) * om.distances.euclidean()(cells, cells)
    share = 1 / np.array([columns, rows])

    def cell_of(at: np.ndarray) -> int:
        column, row = np.minimum((at - low) / ((high - low) * share), [columns - 1, rows - 1])
        return int(row) * int(columns) + int(column)

    def pairs(metres: float) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        for _ in range(20):
            a = low + (high - low) * rng.random(2)
            unit_step = rng.normal(size=2) * (high - low)
            far = length(a, a + unit_step) * METRES.get(cells.unit, 1.0)
            b = a + unit_step * metres / far * rng.choice([0.9999999, rng.random()])
            if ((b >= low) & (b <= high)).all():
                yield a, b, allowed[cell_of(a), cell_of(b)]

    return problem, pairs


def of_mesh(rng: np.random.Generator, name: str, unit: str) -> Case:
    """Every point of a line, of roads, or of a region in the plane or of degrees."""
    if name == "roads":
        return _of_roads(rng, unit)
    size = 30_000 / METRES.get(unit, 1000.0)
    length: Length = straight
    if name == "line":
        mesh = om.Mesh.line(0, size, 3, unit=unit)
        domain, low, high = mesh.domain, np.zeros(1), np.array([size])
    elif name == "region":
        mesh = om.Mesh.grid((0, 0, size, size), size, unit=unit)
        low, high = np.zeros(2), np.array([size, size])
        domain = om.Domain(["a", "b"], [[0, 0], [size, size]], unit)
    else:
        south = float(rng.choice([-80, -45.5, 0, 30.25, 60, 79]))
        mesh = _globe(south)
        low, high, length = np.array([10, south]), np.array([11, south + 1]), arc
        domain = om.Domain.geographic(["a", "b"], [low, high])
    epsilon = _epsilon(rng, domain.unit)
    stated = om.MetricPrivacy(epsilon, everywhere=mesh)
    problem = om.Problem(om.Prior.uniform(domain), om.distances.hamming(), constraints=[stated])

    def pairs(metres: float) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        for _ in range(20):
            a, b = low + (high - low) * rng.random((2, len(low)))
            for _ in range(60):
                far = length(a, b) * METRES.get(domain.unit, 1.0)
                if far <= metres:
                    break
                b = a + (b - a) * 0.999 * metres / far
            yield a, b, epsilon * length(a, b)

    return problem, pairs


@cache
def _globe(south: float) -> om.Mesh:
    return om.Mesh.grid((10, south, 11, south + 1), 200, coordinates="lonlat")


def _of_roads(rng: np.random.Generator, unit: str) -> Case:
    """A road around a river: its two banks are near, and far along it."""
    scale = 1000.0 / METRES.get(unit, 1000.0)
    across = float(10.0 ** rng.uniform(-2, 0)) * scale
    corners = np.array([[0, 0], [2 * scale, 0], [2 * scale, across], [0, across]])
    sides = [2 * scale, across, 2 * scale]
    roads = om.Network(corners, [[0, 1], [1, 2], [2, 3]], lengths=sides, unit=unit)
    epsilon = _epsilon(rng, unit)
    problem = om.Problem(
        om.Prior.uniform(roads.domain),
        roads.distance,
        constraints=[om.MetricPrivacy(epsilon, everywhere=roads)],
    )
    ends = np.concatenate([[0.0], np.cumsum(sides)])

    def at(far: float) -> np.ndarray:
        return np.array([np.interp(far, ends, corners[:, k]) for k in range(2)])

    def pairs(metres: float) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        for _ in range(20):
            start = rng.uniform(0, ends[-1])
            other = min(start + metres / METRES.get(unit, 1000.0), ends[-1])
            # and the other bank
            for s, t in ((start, other), (start, ends[-1] - start)):
                a, b = np.append(at(s), s), np.append(at(t), t)
                yield a, b, epsilon * abs(s - t)

    return problem, pairs


def along_road(a: np.ndarray, b: np.ndarray) -> float:
    """Of positions that end with how far along the road they are."""
    return abs(a[-1] - b[-1])


PLACES = ("euclidean", "manhattan", "haversine", "hamming", "graph", "matrix", "own euclidean",
          "own roads", "own haversine")  # fmt: skip
LENGTHS = {"euclidean", "manhattan", "haversine", "cells", "flat", "line", "roads", "region",
           "globe"}  # fmt: skip
CASES: dict[str, Callable[[np.random.Generator, str, str], Case]] = (
    dict.fromkeys(PLACES, of_places)
    | dict.fromkeys(("cells", "flat"), of_cells)
    | dict.fromkeys(("line", "roads", "region", "globe"), of_mesh)
)


def length_of(how: str, name: str, problem: om.Problem) -> Length | None:
    """The length that the words of a sentence mean; None for words that nobody knows."""
    if how == "apart":
        globe = problem.secrets.coordinates == "lonlat" or name == "flat"
        return arc if globe else (lambda a, b: straight(a[:2], b[:2]))
    return {
        "apart by the Manhattan distance": along_axes,
        "apart along the roads": along_road,
        "apart on the flat map": flat(sum(_latitudes(problem)) / 2),
    }.get(how)


def _latitudes(problem: om.Problem) -> tuple[float, float]:
    bounds = getattr(problem.secrets, "bounds", None) or (0, 0, 0, 0)
    return bounds[1], bounds[3]


def violations(rng: np.random.Generator, name: str, unit: str) -> Iterator[str]:
    """What is false in the odds of one problem with this distance."""
    problem, pairs = CASES[name](rng, name, unit)
    promise = promise_of(problem)
    said = list(SAID.finditer(promise.odds_words))
    own = problem.secrets.unit
    meant = name in LENGTHS and own in METRES
    seen[f"{name}, sentences"] += 1
    if meant != bool(said) or meant != bool(promise.plain()["odds"]):
        yield f"{name} in {own!r}: odds are {promise.odds_words!r}"
    for entry in said:
        length = length_of(entry["how"], name, problem)
        if length is None:
            yield f"unknown words {entry['how']!r}"
            continue
        metres = float(entry["far"]) * METRES[entry["unit"]]
        factor = float((entry["factor"] or "inf").replace(",", ""))
        if promise.odds[int(metres)] > factor * (1 + 1e-8):
            yield f"{entry[0]!r} is not {promise.odds[int(metres)]}"
        for a, b, allowed in pairs(metres):
            if length(a, b) * METRES[own] <= metres * (1 + 1e-12):
                seen[f"{name}, numbers"] += 1
                if allowed > math.log(factor) + 1e-6 * (1 + allowed):
                    yield f"{name}: {entry[0]!r}, and {math.exp(min(allowed, 700)):.6g} is allowed"


def judge(rng: np.random.Generator) -> Iterator[str]:
    """One problem of each of the named distances, in some unit."""
    for name in CASES:
        yield from violations(
            rng, name, str(rng.choice(["km", "m", "", "miles"], p=[0.5, 0.3, 0.1, 0.1]))
        )
