"""One sweep over the districts of ten areas: one process, two, Dask, and Dask that loses a worker.

    python benchmarks/districts.py sweep            # the four runs, and what they have in common
    python benchmarks/districts.py table            # the table of docs/machines.md

The areas are of the five cities that there is data of: three of Rome (road crossings), four of New
York and one of Jersey City (check-ins), Beijing (GPS fixes in cells of 250 m) and Montréal (car
sharing, which optmech ships). An area is halved twice at the median place into four districts; the
secrets of a district are its hundred most visited places, or a hundred crossings drawn, the loss
and the distance are great circles. Results go to results/districts.jsonl; what is there is not
done again.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from given import add_files, settle
from privacy_games.store import Store

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "districts.jsonl"
NEEDED = (
    "rome_osm_nodes.csv.gz", "fsq_nyc_checkins.csv", "fsq_nyc_pois.csv",
    "geolife_beijing_11users.csv",
)  # fmt: skip
PLACES, DISTRICTS, SEED = 100, 4, 7
EPSILONS = (1.0, 1.5, 2.0, 3.0)
"""Per km, a chain of neighbours in every district."""
CELL = 0.25
"""km, of the cells that GPS fixes are counted in."""
AREAS = {
    "rome-centre": ("crossings", (12.43, 41.86, 12.55, 41.94)),
    "rome-north": ("crossings", (12.40, 41.94, 12.60, 42.05)),
    "rome-south": ("crossings", (12.40, 41.75, 12.60, 41.86)),
    "manhattan": ("checkins", (-74.02, 40.70, -73.93, 40.80)),
    "brooklyn": ("checkins", (-74.04, 40.57, -73.90, 40.70)),
    "queens": ("checkins", (-73.93, 40.70, -73.75, 40.80)),
    "bronx": ("checkins", (-73.93, 40.80, -73.78, 40.91)),
    "jersey-city": ("checkins", (-74.11, 40.68, -74.02, 40.78)),
    "beijing": ("fixes", (116.20, 39.83, 116.50, 40.07)),
    "montreal": ("zones", (-74.0, 45.0, -73.0, 46.0)),
}
"""Where places come from, and west, south, east, north."""
RUNS = ("one process", "two processes", "dask", "dask, a worker killed")
SWEEP = """
format = 1
title = "Districts of ten areas"
chain = {chain}
[problem]
prior = {{ kind = "column", column = "weight" }}
loss = {{ distance = "haversine" }}
[problem.secrets]
kind = "table"
file = "{first}"
x = "lon"
y = "lat"
coordinates = "lonlat"
[[problem.constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "haversine"
[[axes]]
kind = "list"
name = "district"
path = "secrets.file"
values = {files}
[[axes]]
kind = "list"
path = "constraints[0].epsilon"
values = {epsilons}
"""
Places = tuple[np.ndarray, np.ndarray]
"""Degrees (n, 2) as longitude and latitude, and weights (n,)."""


def read_places(data: Path) -> dict[str, Places]:
    """What is known of every kind of place."""
    from everywhere_rome import read

    import optmech as om

    crossings = read(data / "rome_osm_nodes.csv.gz")[:, 1:3]
    with (data / "fsq_nyc_pois.csv").open() as stream:
        known = {r["poi"]: (float(r["lon"]), float(r["lat"])) for r in csv.DictReader(stream)}
    with (data / "fsq_nyc_checkins.csv").open() as stream:
        visits = np.array([known[row["poi"]] for row in csv.DictReader(stream)])
    with (data / "geolife_beijing_11users.csv").open() as stream:
        fixes = np.array([(float(r["lon"]), float(r["lat"])) for r in csv.DictReader(stream)])
    size = np.array([CELL / (111.32 * np.cos(np.radians(39.95))), CELL / 110.57])
    zones = om.load_problem("montreal").prior
    return {
        "crossings": (crossings, np.ones(len(crossings))),
        "checkins": counted(visits),
        "fixes": counted((np.floor(fixes / size) + 0.5) * size),
        "zones": (zones.domain.require_points("draw"), zones.weights),
    }


def counted(points: np.ndarray) -> Places:
    """Different points, and how often each occurs."""
    found, times = np.unique(points, axis=0, return_counts=True)
    return found, times.astype(float)


def halved(points: np.ndarray, parts: int) -> Iterator[np.ndarray]:
    """Indices of ``parts`` (a power of two) districts: halves at the median of the longer side,
    halved again."""
    chosen = np.arange(len(points))
    if parts == 1:
        yield chosen
        return
    order = np.argsort(points[:, int(np.ptp(points, axis=0).argmax())], kind="stable")
    for half in (order[: len(order) // 2], order[len(order) // 2 :]):
        for inner in halved(points[half], parts // 2):
            yield half[inner]


def districts(places: dict[str, Places], most: int = PLACES) -> dict[str, Places]:
    """The places and weights of every district."""
    rng = np.random.default_rng(SEED)
    found = {}
    for name, (kind, (west, south, east, north)) in AREAS.items():
        points, weights = places[kind]
        inside = ((points >= [west, south]) & (points < [east, north])).all(axis=1)
        points, weights = points[inside], weights[inside]
        for number, part in enumerate(halved(points, DISTRICTS), start=1):
            if kind == "crossings":
                part = rng.choice(part, min(most, len(part)), replace=False)
            else:
                part = part[np.argsort(-weights[part], kind="stable")[:most]]
            found[f"{name}-{number}"] = points[part], weights[part]
    return found


def written(folder: Path, found: dict[str, Places]) -> Path:
    """The districts as tables, and the sweep over them."""
    for name, (points, weights) in found.items():
        with (folder / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["lon", "lat", "weight"])
            writer.writerows(zip(*points.T.tolist(), weights.tolist(), strict=True))
    files = [f"{name}.csv" for name in found]
    path = folder / "districts.toml"
    path.write_text(
        SWEEP.format(
            chain=len(EPSILONS), first=files[0], files=json.dumps(files), epsilons=list(EPSILONS)
        )
    )
    return path


@contextmanager
def cluster() -> Iterator[Any]:
    """Two Dask workers of one thread each, in processes of their own, and a client."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=True, **options) as both, Client(both) as client:
        yield client


def run(name: str, file: Path, out: Path) -> dict[str, Any]:
    """One sweep. ``wall`` is of the sweep alone, ``start`` of the cluster."""
    import optmech as om

    begun = time.monotonic()
    if not name.startswith("dask"):
        workers = 1 + RUNS.index(name)
        result = om.sweep(file, directory=out, workers=workers)
        wall, start, killed = time.monotonic() - begun, 0.0, None
    else:
        workers, killed = 2, None
        with cluster() as client:
            start, begun = time.monotonic() - begun, time.monotonic()
            watch = None
            if "killed" in name:
                watch = Killer(client, out)
                watch.start()
            executor = client.get_executor(pure=False, retries=2)
            result = om.sweep(file, directory=out, executor=executor, workers=4)
            wall = time.monotonic() - begun
            if watch is not None:
                watch.join()
                killed = {"pid_gone": watch.gone, "after_tasks": watch.done}
    inside = sum(float(row["seconds"] or 0) for row in result.rows)
    found = {
        "wall": round(wall, 2), "start": round(start, 2), "inside": round(inside, 2),
        "overhead_per_task": round((workers * wall - inside) / len(result.rows), 3),
        "tasks": len(result.rows),
        "optimal": sum(row["status"] == "optimal" for row in result.rows),
    }  # fmt: skip
    return found | ({"killed": killed} if killed else {})


class Killer(threading.Thread):
    """Kills one of the workers when a third of the tasks are done."""

    def __init__(self, client: Any, out: Path) -> None:
        super().__init__(daemon=True)
        self.pid = min(client.run(os.getpid).values())
        self.tasks = out / "tasks"
        self.done = 0
        self.gone = False

    def run(self) -> None:
        third = len(AREAS) * DISTRICTS * len(EPSILONS) // 3
        while self.done < third:
            time.sleep(0.2)
            self.done = len(list(self.tasks.glob("0*.json")))
        os.kill(self.pid, signal.SIGKILL)
        while not self.gone:
            time.sleep(0.2)
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                self.gone = True


def content(folder: Path) -> str:
    """A digest of all designs: problems, mechanisms and multipliers, without seconds."""
    from sweeps import numbers

    found = hashlib.sha256()
    for path in sorted((folder / "designs").glob("*.json")):
        found.update(json.dumps([path.name, numbers(path)], sort_keys=True).encode())
    return found.hexdigest()


def swept(data: Path, store: Store, most: int) -> None:
    """All runs, each from a process of its own, over the same files."""
    from sweeps import timed

    import optmech as om

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = districts(read_places(data), most)
        file = written(folder, found)
        sizes = [len(weights) for _, weights in found.values()]
        for number, what in enumerate(RUNS):
            task = {"part": "sweep", "run": what}
            if most != PLACES:
                task["places"] = most
            if store.find(task):
                continue
            out, log = folder / f"out-{number}", folder / f"log-{number}.json"
            wall, cpu = timed(
                [sys.executable, __file__, "run", str(number), str(file), str(out), str(log)]
            )
            designs = sorted((out / "designs").glob("*.json"))
            figures = json.loads(log.read_text()) | {
                "command_wall": round(wall, 2), "processor": round(cpu, 2),
                "secrets": [min(sizes), max(sizes)],
                "mib": round(sum(path.stat().st_size for path in designs) / 2**20, 1),
                "checked": sum(om.check(path).passed for path in designs),
                "content": content(out),
            }  # fmt: skip
            print(json.dumps(store.add(task, figures)), flush=True)


def table(store: Store) -> str:
    """Markdown of what was measured."""
    first = store.find({"part": "sweep", "run": RUNS[0]})
    lines = [
        "| run | wall | processor | inside tasks | overhead a task | optimal, checked | the same |",
        "|---|" + "---|" * 6,
    ]
    for what in RUNS:
        found = store.find({"part": "sweep", "run": what})
        if first is None or found is None:
            continue
        same = "yes" if found["content"] == first["content"] else "**no**"
        lines.append(
            f"| {what} | {found['wall']:.1f} | {found['processor']:.1f} | {found['inside']:.1f} | "
            f"{found['overhead_per_task']:.2f} | {found['optimal']}, {found['checked']} of "
            f"{found['tasks']} | {same} |"
        )
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["run"]:
        number, file, out, log = sys.argv[2:]
        Path(log).write_text(json.dumps(run(RUNS[int(number)], Path(file), Path(out))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("sweep", "table"))
    parser.add_argument("--places", type=int, default=PLACES, help="of a district, at most")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.what == "table":
        print(table(Store(args.results)))
        return
    settle(args, *NEEDED)
    swept(args.data, Store(args.results), args.places)


if __name__ == "__main__":
    main()
