"""Times engines and peers on the same problems, one fresh process each, into a JSON-lines file.

    python benchmarks/engines.py --suite small            # n = 64 and 100, engines only
    python benchmarks/engines.py --suite peers            # n = 64, every peer, two losses
    python benchmarks/engines.py --suite paper            # n = 300, metric and joint
    python benchmarks/engines.py --suite scaling          # every peer, n = 16 to ten minutes each
    python benchmarks/engines.py --suite large            # n = 1024, stopped by a time limit
    python benchmarks/engines.py --suite smoke --results FILE     # everything small, in a minute
    python benchmarks/engines.py --suite scaling peers --jobs 8   # side by side, two cores each
    python benchmarks/engines.py --suite scaling --solvers auto   # of a suite, these only
    python benchmarks/engines.py --report                 # a table of what is there

A run that is already in the file is not repeated: interrupt and resume at will; to repeat a run,
delete its line. Every line has the machine, the cores used, the versions, the load, the certified
gap, and what an independent check over all pairs says of the matrix; ``scaling.py`` makes tables.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Collection
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from peers import PEERS
from pool import Cores, Pool, core_groups, memory_share, physical
from registry import OURS, SEED, Task, suite

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "engines.jsonl"
SOLVERS = (*OURS, *PEERS)
PACKAGES = (
    "numpy", "scipy", "highspy", "highspy-extras", "cvxpy", "clarabel", "qif"
)  # fmt: skip


def processor() -> str:
    """The processor's name, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def commit() -> str:
    """What was measured: the commit of this checkout, or what the environment says it is."""
    if stated := os.environ.get("OPTMECH_COMMIT"):
        return stated
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def about(jobs: int) -> dict[str, object]:
    """Machine, versions and seed."""
    found = {"optmech": "0+" + commit()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "machine": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "physical_cores": len({physical(core) for core in range(os.cpu_count() or 1)}),
        "memory_gib": round(memory_share(1) / 0.9 / 1024, 1),
        "jobs": jobs,
        "python": platform.python_version(),
        "versions": found,
        "seed": SEED,
    }


def warm_up(solvers: set[str], group: Cores) -> None:
    """Each solver once on a few cells, and the compiled engine on enough to be used, unrecorded:
    code and files are in their caches then, as they are for a user after the first call."""
    tasks = [
        replace(
            next(suite("smoke")), rows=10, columns=10, solver="structured", distortion=distortion
        )
        for distortion in (0.0, 0.6)
        if solvers & set(OURS)
    ]
    small = {task.solver: task for task in suite("smoke") if task.rows == 3}
    tasks += [replace(task, limit=120.0) for name, task in small.items() if name in solvers]
    for task in tasks:
        silent = Pool([(0, replace(task, limit=300.0))], [group], np.inf, np.inf, lambda *_: None)
        silent.run()


def drive(
    names: list[str],
    path: Path,
    jobs: int = 1,
    seconds: float = np.inf,
    hopeless: float = np.inf,
    solvers: Collection[str] = SOLVERS,
) -> None:
    """Run what is missing of some suites, earlier ones first, each task in a fresh process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as stream:  # a line that was cut off must not spoil the next one
            stream.write("\n")
    deadline = time.monotonic() + seconds
    machine = about(jobs)

    def write(task: Task, cores: Cores, outcome: dict) -> None:
        print(task.key, "\n   ", {k: v for k, v in outcome.items() if k != "history"}, flush=True)
        for seconds, gap in outcome.get("history", ()):
            print(f"    gap {gap:.2e} after {seconds:.0f} s", flush=True)
        load = round(os.getloadavg()[0], 2)
        line = {"task": asdict(task), **machine, "used_cores": list(cores), "load": load, **outcome}
        with path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    wanted = [(rank, task) for rank, name in enumerate(names) for task in suite(name)]
    pool = Pool([], core_groups(jobs), memory_share(jobs), deadline, write, hopeless)
    done = set()
    for line in results(path):
        task = Task.read(line["task"])
        done.add(task.key)
        pool.note(task, line)
    for rank, task in wanted:
        if task.key not in done and task.solver in solvers:
            done.add(task.key)
            pool.waiting.append((rank, task))
    if names != ["smoke"]:
        warm_up({task.solver for _, task in pool.waiting}, pool.groups[0])
    pool.run()
    for _, task in pool.waiting:
        print("not run:", task.key, flush=True)


def results(path: Path) -> list[dict]:
    """The lines of a result file; one that was cut off while it was written does not count."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def report(path: Path) -> None:
    """Medians by size, kind and solver."""
    groups: dict[tuple, list[dict]] = {}
    for line in results(path):
        task = line["task"]
        kind = f"joint {task['distortion']}" if task["distortion"] else "metric"
        groups.setdefault((task["rows"] * task["columns"], kind, task["solver"]), []).append(line)
    print("| n | kind | solver | runs | median s | slowest s | worst gap | private | MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (n, kind, solver), lines in sorted(groups.items()):
        ok = [line for line in lines if "seconds" in line]
        if not ok:
            print(f"| {n} | {kind} | {solver} | {len(lines)} | none finished | | | | |")
            continue
        seconds = [line["seconds"] for line in ok]
        gaps = [line["gap"] for line in ok if line["gap"] is not None]
        print(
            f"| {n} | {kind} | {solver} | {len(ok)} of {len(lines)} | {np.median(seconds):.2f} | "
            f"{max(seconds):.2f} | {f'{max(gaps):.1e}' if gaps else 'not certified'} | "
            f"{sum(line['private'] for line in ok)} of {len(ok)} | "
            f"{max(line['memory_mib'] for line in ok)} |"
        )


def stop(*_: object) -> None:
    raise SystemExit("stopped; what is finished is in the file")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", nargs="+", help="suites, the most important first")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, two cores each")
    parser.add_argument("--seconds", type=float, default=np.inf, help="for everything together")
    parser.add_argument(
        "--hopeless", type=float, default=np.inf, metavar="FACTOR",
        help="leave out sizes that are expected to take so many times the limit",
    )  # fmt: skip
    parser.add_argument(
        "--solvers", nargs="+", choices=SOLVERS, default=SOLVERS, metavar="NAME", help="these only"
    )
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS, help="a file of JSON lines")
    arguments = parser.parse_args()
    if arguments.suite:
        signal.signal(signal.SIGTERM, stop)
        drive(
            arguments.suite, arguments.results, arguments.jobs, arguments.seconds,
            arguments.hopeless, arguments.solvers,
        )  # fmt: skip
    if arguments.report:
        report(arguments.results)


if __name__ == "__main__":
    main()
