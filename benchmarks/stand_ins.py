"""Made-up data of the same columns as the real ones (docs/data.md), so that benchmarks run without.

    python benchmarks/stand_ins.py FOLDER        # writes all files

Every file is drawn by its own generator, from one seed: the same every time. Nobody's positions are
in them. Sizes and places are near those of the real tables, what follows from them is not: a figure
from stand-ins says that a benchmark runs, and nothing of a city.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

SEED = 2012
Rng = np.random.Generator
Table = Iterable[Sequence[Any]]

DISTRICTS = (
    (0.34, (-73.985, 40.750), (0.014, 0.028)),
    (0.20, (-73.970, 40.670), (0.040, 0.035)),
    (0.16, (-73.850, 40.740), (0.045, 0.030)),
    (0.14, (-73.870, 40.850), (0.040, 0.025)),
    (0.16, (-74.060, 40.730), (0.022, 0.022)),
)
"""Share of the places, middle and deviations (degrees): Manhattan and what lies around it."""
POIS, USERS, TRACED, STATIONS = 5_000, 1_000, 190, 500
BEIJING, GEOLIFE_USERS = (116.32, 39.99), 11
ROME, CENTRE = (12.5221, 41.8775), (12.49, 41.9)
ROOTS = {
    "Residence": "Home (private)",
    "Professional & Other Places": "Office",
    "Food": "Deli / Bodega",
    "Nightlife Spot": "Bar",
    "Shop & Service": "Gym",
}
"""What stands in ``root``, and a ``type`` of it."""


def _places(rng: Rng, count: int) -> np.ndarray:
    """Longitudes and latitudes (count, 2)."""
    shares, middles, deviations = (np.array(column) for column in zip(*DISTRICTS, strict=True))
    part = rng.choice(len(shares), count, p=shares)
    return np.round(middles[part] + rng.normal(size=(count, 2)) * deviations[part], 6)


def _favourites(rng: Rng, places: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Places near a home drawn at random, and shares that fall with their rank."""
    home = places[rng.integers(len(places))]
    near = np.exp(-np.hypot(*((places - home).T)) / 0.02)
    chosen = rng.choice(len(places), count, replace=False, p=near / near.sum())
    shares = 1 / (1 + np.arange(count)) ** 1.2
    return chosen, shares / shares.sum()


def pois(rng: Rng) -> Table:
    """poi, lat, lon, category."""
    yield "poi", "lat", "lon", "category"
    for number, (lon, lat) in enumerate(_places(np.random.default_rng(SEED), POIS), start=1):
        yield number, lat, lon, list(ROOTS.values())[int(rng.integers(len(ROOTS)))]


def checkins(rng: Rng) -> Table:
    """user, poi, minute: where the places of ``pois`` were visited."""
    places = _places(np.random.default_rng(SEED), POIS)
    yield "user", "poi", "minute"
    for user in range(1, USERS + 1):
        chosen, shares = _favourites(rng, places, int(rng.integers(8, 60)))
        visits = rng.choice(chosen, int(rng.integers(60, 180)), p=shares)
        for poi, minute in zip(visits, np.sort(rng.integers(0, 450_000, len(visits))), strict=True):
            yield user, poi + 1, minute


def semantic(rng: Rng) -> Table:
    """user, tid, lat, lon, local_time, root, type: the hour says much of what is visited."""
    places = _places(rng, POIS)
    kinds = list(ROOTS)
    start = datetime(2012, 4, 2)
    yield "user", "tid", "lat", "lon", "local_time", "root", "type"
    for user in range(1, TRACED + 1):
        chosen, shares = _favourites(rng, places, 20)
        kind = np.r_[0, 1, rng.integers(1, len(kinds), len(chosen) - 2)]
        for tid in range(16):
            for k in rng.choice(len(chosen), 20, p=shares):
                hour = int(rng.integers(9, 18) if kind[k] == 1 else rng.integers(0, 24))
                minutes = int(rng.integers(0, 7)) * 1440 + hour * 60 + int(rng.integers(60))
                when = start + timedelta(weeks=tid, minutes=minutes)
                lon, lat = places[chosen[k]]
                root = kinds[kind[k]]
                yield user, tid, lat, lon, when.strftime("%Y-%m-%d %H:%M"), root, ROOTS[root]


def rides(rng: Rng) -> Table:
    """Rides between stations that men and women start from in different shares."""
    stations = _places(rng, STATIONS)
    shares = rng.dirichlet(np.ones(STATIONS))
    women = shares * rng.lognormal(0, 0.35, STATIONS)
    yield (
        "starttime", "tripduration", "start_id", "start_lat", "start_lon", "end_id", "end_lat",
        "end_lon", "usertype", "birth_year", "gender",
    )  # fmt: skip
    for _ in range(10_000):
        gender = int(rng.choice(3, p=(0.1, 0.65, 0.25)))
        weights = women / women.sum() if gender == 2 else shares
        a, b = rng.choice(STATIONS, p=weights), rng.choice(STATIONS, p=shares)
        when = datetime(2018, 7, 1) + timedelta(seconds=int(rng.integers(31 * 86_400)))
        yield (
            when.strftime("%m/%d/%y %H:%M:%S"), int(rng.integers(120, 3_600)), a,
            *stations[a][::-1], b, *stations[b][::-1], "Subscriber" if gender else "Customer",
            int(rng.integers(1950, 2002)), gender,
        )  # fmt: skip


def fixes(rng: Rng) -> Table:
    """user, lat, lon, utc: days of staying at one of five places, and walking to the next."""
    scale = np.array([111.32 * np.cos(np.radians(BEIJING[1])), 110.57])
    yield "user", "lat", "lon", "utc"
    for user in range(GEOLIFE_USERS):
        places = np.array(BEIJING) + rng.normal(0, 1.2, (5, 2)) / scale
        for day in range(int(rng.integers(5, 10))):
            at, goal = places[0].copy(), int(rng.integers(1, 5))
            now = datetime(2008, 10, 1 + 2 * day, 0) + timedelta(minutes=int(rng.integers(240)))
            stays = 0
            for _ in range(400):
                step = int(rng.integers(20, 70))
                now += timedelta(seconds=step)
                way = (places[goal] - at) * scale
                far, most = float(np.hypot(*way)), 0.003 * step
                if stays:
                    stays -= 1
                elif far <= most:
                    stays, goal = int(rng.integers(10, 60)), int(rng.integers(5))
                else:
                    at = at + way / far * most / scale
                lon, lat = at + rng.normal(0, 0.008, 2) / scale
                yield f"{user:03d}", f"{lat:.6f}", f"{lon:.6f}", now.strftime("%Y-%m-%dT%H:%M:%S")


def _network() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Crossings (degrees), and undirected roads between them with their metres: a jittered lattice,
    close in the centre and wide around it, whose triangulation loses a third of its other edges
    beside a spanning tree."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(SEED)
    scale = np.array([111.32 * np.cos(np.radians(41.9)), 110.57])
    close = np.stack(np.meshgrid(*[np.arange(-5.5, 5.5, 0.11)] * 2), -1).reshape(-1, 2)
    wide = np.stack(np.meshgrid(*[np.arange(-24, 24, 0.6)] * 2), -1).reshape(-1, 2)
    wide = wide + (np.array(ROME) - CENTRE) * scale
    km = np.vstack([close, wide[np.abs(wide).max(axis=1) > 5.8]])
    apart = np.where(np.abs(km).max(axis=1) < 5.6, 0.11, 0.6)
    km = km + rng.normal(0, 0.25, km.shape) * apart[:, None]
    corners = Delaunay(km).simplices
    sides = [corners[:, pair] for pair in ((0, 1), (1, 2), (0, 2))]
    edges = np.unique(np.sort(np.vstack(sides)), axis=0)
    length = np.hypot(*(km[edges[:, 0]] - km[edges[:, 1]]).T)
    graph = csr_array((length, edges.T), shape=(len(km), len(km)))
    kept = minimum_spanning_tree(graph).tocoo()
    tree = {tuple(sorted(pair)) for pair in zip(kept.row.tolist(), kept.col.tolist(), strict=True)}
    some = (rng.random(len(edges)) < 0.67) & (length < 2)
    some |= np.array([tuple(pair) in tree for pair in edges.tolist()])
    metres = 1_000 * length[some] * rng.uniform(1.02, 1.4, some.sum())
    return np.array(CENTRE) + km / scale, edges[some], metres


def crossings(_: Rng) -> Table:
    """node, longitude, latitude, street_count."""
    points, edges, _lengths = _network()
    degree = np.bincount(edges.ravel(), minlength=len(points))
    yield "node", "longitude", "latitude", "street_count"
    for node, (lon, lat) in enumerate(points):
        yield node, f"{lon:.7f}", f"{lat:.7f}", degree[node]


def segments(_: Rng) -> Table:
    """source, target, metres: every road both ways."""
    _points, edges, lengths = _network()
    yield "source", "target", "metres"
    for (a, b), metres in zip(edges.tolist(), lengths, strict=True):
        yield a, b, f"{metres:.3f}"
        yield b, a, f"{metres:.3f}"


FILES: dict[str, Callable[[Rng], Table]] = {
    "fsq_nyc_pois.csv": pois,
    "fsq_nyc_checkins.csv": checkins,
    "fsq_nyc_semantic.csv": semantic,
    "citibike_nyc_201807_sample.csv": rides,
    "geolife_beijing_11users.csv": fixes,
    "rome_osm_nodes.csv.gz": crossings,
    "rome_osm_edges.csv.gz": segments,
}


def write(folder: Path, names: Iterable[str] = FILES) -> None:
    """Write those of the files that are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        save(folder / name, FILES[name](np.random.default_rng([SEED, list(FILES).index(name)])))


def save(path: Path, table: Table) -> None:
    """A table as CSV, compressed where its name says so; nothing is seen of an unfinished one."""
    if path.exists():
        return
    part = path.with_name(f".{path.name}")
    with gzip.open(part, "wt") if path.suffix == ".gz" else part.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(table)
    part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
