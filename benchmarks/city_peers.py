"""Rome's crossings for other solvers: the same program, seconds, memory, loss, and the true ε.

    python benchmarks/city_peers.py 100             # 100 secrets, 100 reports, every solver
    python benchmarks/city_peers.py 200 50 --epsilon 1
    python benchmarks/city_peers.py 100 --only Clarabel SCS
    python benchmarks/city_peers.py table           # the tables of docs/city.md

Every solver has a process, a core, a time limit and a memory limit of its own (two run beside each
other where there are two cores), and its own tolerances; optmech is asked for a gap of 1e-6. What
it returned is judged over all pairs. Results go to results/city_peers.jsonl; what is there is not
done again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
from child import SPAWNED, checked, peak_memory
from everywhere_rome import FILES
from given import add_files, settle
from peers import Peer, cvxpy, highs, libqif
from pool import Run, core_groups
from privacy_games.store import Store
from registry import Arrays

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "city_peers.jsonl"
GAP = 1e-6
MEMORY = 5 * 1024
"""MiB that a process may take."""


def ours(given: Path, limit: float) -> tuple[np.ndarray, str, float]:
    """optmech on the arrays: the matrix, its status and its bound."""
    import optmech as om

    arrays = np.load(given)
    secrets = om.Domain(range(len(arrays["prior"])))
    problem = om.Problem(
        om.Prior(secrets, arrays["prior"]),
        arrays["loss"],
        om.Domain(range(arrays["loss"].shape[1])),
        constraints=[om.MetricPrivacy(1, om.distances.matrix(arrays["log_ratio"]))],
    )
    design = om.solve(problem, gap=GAP, time_limit=limit)
    return design.mechanism.matrix, design.status, design.lower_bound


SOLVERS: dict[str, Peer | None] = {
    "optmech": None,
    "libqif (CLP)": libqif("AUTO"),
    "libqif (GLOP)": libqif("GLOP"),
    "libqif (SoPlex)": libqif("SOPLEX"),
    "HiGHS simplex": highs("simplex"),
    "HiGHS simplex, scaled": highs("simplex", scaled=True),
    "HiGHS interior point, scaled": highs("ipm", scaled=True),
    "cvxpy (Clarabel)": cvxpy("CLARABEL"),
    "cvxpy (Clarabel), scaled": cvxpy("CLARABEL", scaled=True),
    "cvxpy (SCS)": cvxpy("SCS"),
    "cvxpy (SCS), scaled": cvxpy("SCS", scaled=True),
}


@dataclass(frozen=True)
class Task:
    """A solver and the arrays it is given."""

    solver: str
    given: str
    limit: float

    @property
    def key(self) -> str:
        return json.dumps(asdict(self))


def one(task: Task) -> None:
    """A line when the matrix is there, another when it has been judged."""
    started = float(os.environ.get(SPAWNED, time.monotonic()))
    read = np.load(task.given)
    given = Arrays(read["prior"], read["loss"], read["log_ratio"], read["log_ratio"])
    begun, bound, peer = time.monotonic(), None, SOLVERS[task.solver]
    if peer is None:
        matrix, claim, bound = ours(Path(task.given), task.limit)
    else:
        matrix, claim = peer(given.weights, given.loss, given.log_ratio)
        if matrix.shape != given.loss.shape:
            raise SystemExit("an empty matrix was returned")
    found = {
        "seconds": round(time.monotonic() - begun, 2),
        "process_seconds": round(time.monotonic() - started, 2),
        "processor_seconds": round(time.process_time(), 2),
        "memory_mib": peak_memory("self"),
        "claim": claim,
        "lower_bound": bound,
    }
    print(json.dumps({"solved": found}), flush=True)
    print(json.dumps({"checked": checked(task, given, matrix, bound)}), flush=True)


def written(folder: Path, data: Path, size: int, reports: int, epsilon: float) -> Path:
    """Prior, loss and log ratios of Rome as arrays."""
    from city import EPSILON, rome

    statement = rome(data, size, reports).statement
    path, log_ratio = folder / "rome.npz", np.array(statement.log_ratio) * (epsilon / EPSILON)
    np.fill_diagonal(log_ratio, 0.0)
    np.savez(path, prior=statement.prior, loss=statement.loss, log_ratio=log_ratio)
    return path


def outcome(task: Task, cores: Queue[tuple[int, ...]]) -> dict[str, Any]:
    """What a process of its own made of a task on a core of its own."""
    own = cores.get()
    running = Run.start(task, own, Path(__file__))
    try:
        while (found := running.outcome(MEMORY)) is None:
            time.sleep(0.25)
    finally:
        running.end()
        cores.put(own)
    return found


def measured(names: list[str], known: dict[str, Any], given: Path, store: Store) -> None:
    """Every solver on the same arrays, as many at once as there are cores."""
    cores: Queue[tuple[int, ...]] = Queue()
    groups = core_groups(len(os.sched_getaffinity(0)), 1)
    for group in groups:
        cores.put(group)

    def run(name: str) -> None:
        found = outcome(Task(name, str(given), known["limit"]), cores)
        print(json.dumps(store.add(known | {"solver": name}, found)), flush=True)

    with ThreadPoolExecutor(len(groups)) as threads:
        list(threads.map(run, names))


def table(store: Store) -> str:
    """Markdown, a table for every size."""
    sizes: dict[tuple[float, ...], dict[str, Any]] = {}
    for record in store.records.values():
        task = record["task"]
        size = task["secrets"], task["reports"], task["epsilon"]
        sizes.setdefault(size, {})[task["solver"]] = record
    return "\n\n".join(_lines(size, found) for size, found in sizes.items())


def _lines(size: tuple[float, ...], found: dict[str, Any]) -> str:
    own = found["optmech"]
    lines = [
        f"**{size[0]} secrets, {size[1]} reports, ε = {size[2]:g} per km**: a loss of "
        f"{own['loss']:.7f}, a bound of {own['lower_bound']:.7f}:",
        "",
        "| solver | says | wall s | processor s | ratio | MiB | loss, over ours | true ε | δ |",
        "|---|" + "---|" * 8,
    ]
    for name in SOLVERS:
        if name not in found:
            continue
        its = found[name]
        if "failed" in its:
            seconds = f"{its['process_seconds']:.0f}"
            lines.append(
                f"| {name} | {its['failed']} | {seconds} | | | {its['memory_mib']:,} | | | |"
            )
            continue
        ratio = its["processor_seconds"] / own["processor_seconds"]
        factor = its["epsilon_factor"]
        lines.append(
            f"| {name} | {its['claim'].split(' (')[0]} | {its['process_seconds']:.1f} | "
            f"{its['processor_seconds']:.1f} | {ratio:.1f} | {its['memory_mib']:,} | "
            f"{its['loss'] / own['loss'] - 1:+.1e} | {'∞' if factor is None else _near(factor)} | "
            f"{its['delta']:.0e} |"
        )
    return "\n".join(lines)


def _near(factor: float) -> str:
    """A multiple of the stated ε."""
    off = factor - 1
    if abs(off) <= 1e-12:
        return "1"
    return f"1 {'+' if off > 0 else '−'} {abs(off):.0e}" if abs(off) < 1e-3 else f"{factor:.4g}"


def main() -> None:
    if sys.argv[1:2] and sys.argv[1].startswith("{"):
        one(Task(**json.loads(sys.argv[1])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", help="the number of secrets, or table")
    parser.add_argument("reports", type=int, nargs="?", default=0, help="default: all secrets")
    parser.add_argument("--epsilon", type=float, default=5.0, help="per km")
    parser.add_argument("--only", nargs="+", default=[""], help="solvers with this in their name")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of any one solver")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.what == "table":
        print(table(Store(args.results)))
        return
    settle(args, *FILES)
    store = Store(args.results)
    size = int(args.what)
    known = {
        "secrets": size, "reports": args.reports or size, "epsilon": args.epsilon,
        "limit": args.limit,
    }  # fmt: skip
    names = [
        name
        for name in SOLVERS
        if any(part in name for part in args.only) and not store.find(known | {"solver": name})
    ]
    with tempfile.TemporaryDirectory() as folder:
        given = written(Path(folder), args.data, size, known["reports"], args.epsilon)
        measured(names, known, given, store)


if __name__ == "__main__":
    main()
