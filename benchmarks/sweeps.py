"""What sweeps promise, measured: survival of kills, speed-up, reuse, overhead of Dask.

    python benchmarks/sweeps.py kills       # 50 SIGKILLs of a 60-task sweep, then every check
    python benchmarks/sweeps.py speedup     # 2 processes beside one
    python benchmarks/sweeps.py reuse       # a 20-point curve at n = 100 beside 20 cold solves
    python benchmarks/sweeps.py dask        # seconds that Dask adds to a task
    python benchmarks/sweeps.py --report    # what was measured

Every result is a line of results/sweeps.jsonl with machine, versions and load.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results" / "sweeps.jsonl"

TEMPLATE = """
format = 1
chain = {chain}
[problem]
loss = "{loss}"
prior = {{ kind = "dirichlet", seed = 0 }}
secrets = {{ kind = "grid", rows = {side}, columns = {side} }}
[[problem.constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
{seeds}
[[axes]]
kind = "range"
path = "constraints[0].epsilon"
start = {start}
stop = {stop}
count = {count}
"""


def sweep_file(folder: Path, side: int, count: int, **more: object) -> Path:
    settings = {"loss": "euclidean", "chain": 10, "start": 0.4, "stop": 1.35, "seeds": ""}
    path = folder / "sweep.toml"
    path.write_text(TEMPLATE.format(**{**settings, **more}, side=side, count=count))
    return path


def command(file: Path, out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "optmech", "sweep", str(file), "-o", str(out), "-q", *more]


def timed(argv: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command and its children."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - started, cpu


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as stream:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)]


def numbers(path: Path) -> list[object]:
    body = json.loads(path.read_bytes())
    return [body["problem"], body["mechanism"], body["multipliers"]]


def kills(folder: Path, count: int = 50) -> dict[str, object]:
    """Kill a sweep of 60 tasks so many times, resume, compare with an uninterrupted one."""
    import optmech as om

    seeds = '[[axes]]\nkind = "list"\npath = "prior.seed"\nvalues = [1, 2, 3]\n'
    file = sweep_file(folder, 5, 20, seeds=seeds)
    whole, killed = folder / "whole", folder / "killed"
    started = time.monotonic()
    process = subprocess.Popen(command(file, whole), stdout=subprocess.DEVNULL)
    while not any((whole / "tasks").glob("0*.json")):
        time.sleep(0.01)
    first = time.monotonic() - started
    process.wait()
    # long enough that lives get somewhere, short enough that most kills meet an unfinished sweep
    longest = first + 2 * (time.monotonic() - started - first) / 50
    rng = random.Random(11)
    before_first = progress = 0
    for _ in range(count):
        process = subprocess.Popen(command(file, killed), stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.0, 1.3 * longest))
        process.kill()
        process.wait()
        done = len(list((killed / "tasks").glob("0*.json")))
        before_first += done == 0
        progress += done < 60
    timed(command(file, killed))
    designs = sorted((killed / "designs").glob("*.json"))
    return {
        "kills": count,
        "kills before the first task": before_first,
        "kills of an unfinished sweep": progress,
        "designs": len(designs),
        "checked": sum(om.check(path).passed for path in designs),
        "table equal": table(killed) == table(whole),
        "designs equal": all(numbers(p) == numbers(whole / "designs" / p.name) for p in designs),
        "files left over": len([p for p in killed.rglob(".*") if p.name != ".lock"]),
    }


def speedup(folder: Path) -> dict[str, object]:
    """Independent tasks (chains of one) on one and on two processes."""
    file = sweep_file(folder, 8, 120, chain=1)
    one, one_cpu = timed(command(file, folder / "one", "--workers", "1"))
    two, two_cpu = timed(command(file, folder / "two", "--workers", "2"))
    return {
        "seconds": [one, two],
        "speed-up": one / two,
        "cpu seconds": [one_cpu, two_cpu],
    }


def reuse(folder: Path) -> dict[str, object]:
    """A 20-point curve at n = 100: the sweep, 20 cold commands, 20 cold solves in one process."""
    found: dict[str, object] = {}
    for loss in ("euclidean", "hamming"):
        inside = folder / loss
        inside.mkdir()
        file = sweep_file(inside, 10, 20, loss=loss)
        wall, cpu = timed(command(file, inside / "run", "--workers", "1"))
        rows = table(inside / "run")
        assert all(float(row["gap"]) <= 1e-6 for row in rows)
        cold_wall = cold_cpu = 0.0
        for row in rows:
            text = sweep_file(inside, 10, 1, loss=loss).read_text()
            problem = text.split("[problem]")[1].split("[[axes]]")[0].replace("problem.", "")
            single = inside / "single.toml"
            single.write_text(
                "format = 1\n" + problem.replace("epsilon = 1\n", f"epsilon = {row['epsilon']}\n")
            )
            seconds = timed(
                [sys.executable, "-m", "optmech", "solve", str(single), "-q", "--json",
                 "-o", str(inside / "single.json")]
            )  # fmt: skip
            cold_wall, cold_cpu = cold_wall + seconds[0], cold_cpu + seconds[1]
        solves = _in_one_process(loss)
        found[loss] = {
            "sweep": [wall, cpu], "20 commands": [cold_wall, cold_cpu],
            "share of commands": [wall / cold_wall, cpu / cold_cpu], **solves,
        }  # fmt: skip
    return found


def _in_one_process(loss: str) -> dict[str, float]:
    """CPU seconds of 20 solves, cold and from each other's designs, nothing read or written."""
    import numpy as np

    import optmech as om

    grid, metric = om.Grid(10, 10), om.distances.euclidean()
    weights = np.random.default_rng(0).dirichlet(np.ones(100))

    def problem(epsilon: float) -> om.Problem:
        return om.Problem(
            om.Prior(grid, weights),
            getattr(om.distances, loss)(),
            constraints=[om.MetricPrivacy(epsilon, metric)],
        )

    om.solve(problem(1.0))
    curve = [float(epsilon) for epsilon in np.linspace(0.4, 1.35, 20)]
    started = time.process_time()
    for epsilon in curve:
        om.solve(problem(epsilon))
    cold = time.process_time() - started
    started, design = time.process_time(), None
    for epsilon in curve:
        design = om.solve(problem(epsilon), start=design)
    return {"cold in one process": cold, "started in one process": time.process_time() - started}


def dask(folder: Path) -> dict[str, object]:
    """Wall seconds per task beyond those inside it, for 200 small tasks on two workers."""
    from distributed import Client, LocalCluster

    import optmech as om

    problem = om.Problem(
        om.Prior.uniform(om.Domain.range(8)),
        om.distances.hamming(),
        constraints=[om.DifferentialPrivacy(1.0)],
    )
    axes = {"constraints[0].epsilon": [0.5 + 0.01 * k for k in range(200)]}
    found: dict[str, object] = {}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for name, executor in (("dask", client.get_executor(pure=False)), ("processes", None)):
            om.sweep(problem, axes, folder / f"{name}-warm", executor=executor, workers=2, chain=1)
            started = time.monotonic()
            result = om.sweep(problem, axes, folder / name, executor=executor, workers=2, chain=1)
            wall = time.monotonic() - started
            inside = sum(float(row["seconds"] or 0) for row in result.rows)
            found[name] = {
                "wall": wall, "inside": inside, "overhead per task": (2 * wall - inside) / 200,
            }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("kills", "speedup", "reuse", "dask"))
    parser.add_argument("--kills", type=int, default=50, help="of the part kills")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.report or args.what is None:
        print(args.results.read_text() if args.results.exists() else "nothing measured yet")
        return
    with tempfile.TemporaryDirectory() as folder:
        load = os.getloadavg()[0]
        more = (args.kills,) if args.what == "kills" else ()
        figures = globals()[args.what](Path(folder), *more)
    line = {
        "what": args.what,
        "figures": figures,
        "load before": load,
        "machine": [platform.machine(), os.cpu_count(), platform.python_version()],
        "versions": {name: version(name) for name in ("numpy", "scipy", "highspy")},
        "date": time.strftime("%Y-%m-%d"),
    }
    print(json.dumps(line, indent=1))
    args.results.parent.mkdir(exist_ok=True)
    with args.results.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
