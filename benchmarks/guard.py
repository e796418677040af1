"""Has anything become slower? A fixed set of tasks, beside what they took before.

    python benchmarks/guard.py                     # beside the last line of history/guard.jsonl
    python benchmarks/guard.py --short             # what takes seconds, as continuous integration
    python benchmarks/guard.py --beside HEAD~1     # another commit in the same run, task by task
    python benchmarks/guard.py --record            # and a new line for the history
    python benchmarks/guard.py --figure            # docs/figures/guard.svg, from the history

Every task has a fresh process. What counts is processor time, over all threads, in units of a fixed
piece of work (``calibrate``) done right before: other jobs and slower clocks change both. Of
several runs the least is taken; beside another commit what looks slower is run again. Ends with 1
where something takes more than 1.3 times as long as before, and more than a twentieth of a second
longer. A history of another kind of processor is shown, but nothing fails for it: compare with a
commit there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
HISTORY = HERE / "history" / "guard.jsonl"
FIGURE = ROOT / "docs" / "figures" / "guard.svg"
SLOWER = 1.3
AGAIN = 4  # more runs of what looks slower than beside another commit
LEAST = 0.05  # seconds that processes of the same code differ by
Ratios = dict[str, float | None]


@dataclass(frozen=True)
class Task:
    """A command for Python, and how often it is run."""

    arguments: tuple[str, ...]
    runs: int = 3
    short: bool = True


def _solved(name: str, runs: int = 1, short: bool = False) -> Task:
    return Task((str(HERE / "guarded.py"), name), runs, short)


def _command(*arguments: str, short: bool = True) -> Task:
    return Task(("-m", "optmech", *arguments), short=short)


TASKS: dict[str, Task] = {
    "import": Task(("-c", "import optmech"), 5),
    "start-up": _command("--version"),
    "check": _command("check", "design.json"),
    "audit": Task(("-m", "optmech_audit", "design.json")),
    "pack": _command("pack", "design.json", "-o", "packed.cbor"),
    "protect 100,000": _command(
        "protect", "design.json", "points.csv", "--outside", "nearest", "-o", "out.csv"
    ),
    "noise": _command("noise", "--epsilon", "1", "--delta", "1e-6", "--loss", "square"),
    "64 uniform": _solved("64 uniform", 3, True),
    "100 uniform": _solved("100 uniform", 3, True),
    "100 rough": _solved("100 rough", 3, True),
    "169 rough": _solved("169 rough", 2, True),
    "64 joint": _solved("64 joint", 3, True),
    "mesh": _solved("mesh", 2, True),
    "289 uniform": _solved("289 uniform"),
    "300 hamming": _solved("300 hamming"),
    "300 euclidean": _solved("300 euclidean"),
    "300 joint": _solved("300 joint"),
    "montreal": _solved("montreal"),
    "rome 1,000": _solved("rome 1,000"),
}


def calibrate() -> float:
    """Processor seconds of a fixed piece of work: loops of Python, and NumPy out of its caches."""
    code = (
        "import time, numpy as np; r = np.random.default_rng(0); a = r.random((250, 250)); "
        "b = r.random(2_000_000); t = time.process_time()\n"
        "for _ in range(12):\n"
        "    np.linalg.cholesky(a @ a.T + np.eye(250)); b.cumsum(); np.sort(b[::9])\n"
        "x = 0\n"
        "for k in range(1_500_000): x += k % 7\n"
        "print(time.process_time() - t)"
    )
    own = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=own, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def seconds(arguments: Sequence[str], checkout: Path, folder: Path) -> float | None:
    """Processor seconds of a process with the package of a checkout; None where it failed."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{HERE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    if done.returncode:
        print(f"    failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    return (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
    )


def measured(names: Sequence[str], checkouts: dict[str, Path]) -> dict[str, Ratios]:
    """Of every checkout the tasks' seconds, in units of the calibration; taken in turns."""
    found: dict[str, Ratios] = {label: {} for label in checkouts}
    unit = 1.0
    with tempfile.TemporaryDirectory() as scratch:
        folders = {label: Path(scratch) / str(k) for k, label in enumerate(checkouts)}
        for label, checkout in checkouts.items():
            folders[label].mkdir()
            if "rome 1,000" in names and not (Path(scratch) / "rome.npz").exists():
                seconds([str(HERE / "guarded.py"), "rome"], ROOT, folders[label])
            seconds([str(HERE / "guarded.py"), "prepare"], checkout, folders[label])
        for name in names:
            task = TASKS[name]
            for run in range(task.runs + (AGAIN if len(checkouts) > 1 else 0)):
                first, *_, own = [*found.values(), *found.values()]
                # what looks slower is measured again: a real loss stays, that of a busy moment goes
                if run >= task.runs and not slower({name: own[name]}, first, unit):
                    break
                for label, checkout in checkouts.items():
                    unit = calibrate()
                    taken = seconds(task.arguments, checkout, folders[label])
                    least = found[label].setdefault(name, None)
                    if taken is not None:
                        ratio = taken / unit
                        found[label][name] = ratio if least is None else min(ratio, least)
            print(f"{name:16}", *(words(own[name]) for own in found.values()), flush=True)
    return found


def words(ratio: float | None) -> str:
    return f"{'—' if ratio is None else f'{ratio:.3f}':>10}"


def slower(now: Ratios, before: Ratios, unit: float) -> list[str]:
    """The tasks that take longer than they may."""
    worse = []
    for name, ratio in now.items():
        then = before.get(name)
        if ratio is None or then is None:
            continue
        if ratio > SLOWER * then and (ratio - then) * unit > LEAST:
            worse.append(f"{name}: {ratio / then:.2f} times as long")
    return worse


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Another commit's files, for a while."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(place), commit], check=True)
        build = place / "native" / "build.py"
        try:
            if build.exists():
                subprocess.run([sys.executable, str(build)], check=True)
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def history(path: Path = HISTORY) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def last(lines: Sequence[dict], own: str) -> dict | None:
    """The line to compare with: the last of this processor, else the last."""
    alike = [line for line in lines if line["processor"] == own]
    return (alike or list(lines) or [None])[-1]


def table(columns: dict[str, Ratios]) -> str:
    """A row for every task; columns of ratios, and how many times the first the last takes."""
    labels = list(columns)
    names = list(dict.fromkeys(name for own in columns.values() for name in own))
    lines = [f"| task | {' | '.join(labels)} | times |", "|---" * (len(labels) + 2) + "|"]
    for name in names:
        values = [columns[label].get(name) for label in labels]
        first, final = values[0], values[-1]
        times = f"{final / first:.2f}" if first and final and len(values) > 1 else ""
        shown = " | ".join("—" if value is None else f"{value:.2f}" for value in values)
        lines.append(f"| {name} | {shown} | {times} |")
    return "\n".join(lines)


def draw(lines: Sequence[dict], path: Path) -> None:
    """One line a task, over the commits of the history."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "optmech"
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for number, name in enumerate(TASKS):
        values = [line["ratios"].get(name) or float("nan") for line in lines]
        axes.plot(values, marker="os^v"[number % 4], label=name, color=f"C{number % 10}", lw=1)
    axes.set_yscale("log")
    axes.set_ylabel("processor time, calibrations")
    axes.set_xticks(range(len(lines)), [line["commit"] for line in lines], rotation=45, ha="right")
    axes.legend(fontsize=7, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="what takes seconds")
    parser.add_argument("--only", nargs="+", choices=TASKS, metavar="TASK")
    parser.add_argument("--beside", nargs="+", metavar="COMMIT", help="measured in the same run")
    parser.add_argument("--record", action="store_true", help="add a line to the history")
    parser.add_argument("--history", type=Path, default=HISTORY)
    parser.add_argument("--figure", nargs="?", type=Path, const=FIGURE, metavar="SVG")
    given = parser.parse_args()
    if given.figure:
        draw(history(given.history), given.figure)
        return
    names = given.only or [n for n, task in TASKS.items() if task.short or not given.short]
    unit = calibrate()
    with contextlib.ExitStack() as stack:
        others = {c: stack.enter_context(checkout(c)) for c in given.beside or ()}
        found = measured(names, {**others, "now": ROOT})
    now = found["now"]
    own, lines = processor(), history(given.history)
    then = None if given.beside else last(lines, own)
    columns = {then["commit"]: then["ratios"], **found} if then else found
    print("\n" + table({k: {n: v.get(n) for n in names} for k, v in columns.items()}))
    worse = slower(now, next(iter(columns.values())), unit) if len(columns) > 1 else []
    print(*worse, sep="\n")
    if given.record:
        entry = {
            "commit": commit(), "date": time.strftime("%Y-%m-%d"), "processor": own,
            "calibration": round(unit, 3), "ratios": {n: r and round(r, 3) for n, r in now.items()},
        }  # fmt: skip
        given.history.parent.mkdir(parents=True, exist_ok=True)
        with given.history.open("a") as stream:
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")
    if then and then["processor"] != own:
        print(f"(the history is of another processor, {then['processor']})")
        return
    raise SystemExit(1 if worse else 0)


if __name__ == "__main__":
    main()
