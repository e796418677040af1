"""Runs tasks side by side, each in a fresh process pinned to cores of its own.

A run that takes longer than its limit, or more memory than its share, is killed, and that is its
result. What is interrupted leaves no result and is done again next time.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from child import SPAWNED, peak_memory
from registry import Task, expected_seconds

CHILD = Path(__file__).resolve().parent / "child.py"
QUICK = 20.0  # seconds
CHECKING = 300.0  # seconds for the check of a matrix, which counts for no solver
Cores = tuple[int, ...]
Report = Callable[[Task, Cores, dict], None]


def core_groups(jobs: int, each: int = 2) -> list[Cores]:
    """Cores of the runs side by side; threads of one core stay together."""
    if not hasattr(os, "sched_getaffinity"):
        return [()] * jobs
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (physical(core), core))
    each = min(each, len(cores))
    if jobs * each > len(cores):
        raise SystemExit(f"{jobs} runs of {each} cores need more than the {len(cores)} there are")
    return [tuple(cores[k * each : (k + 1) * each]) for k in range(jobs)]


def physical(core: int) -> tuple[int, int]:
    """Package and core to which a hardware thread belongs."""
    folder = Path(f"/sys/devices/system/cpu/cpu{core}/topology")
    try:
        package, own = (
            int((folder / name).read_text()) for name in ("physical_package_id", "core_id")
        )
    except (OSError, ValueError):
        return 0, core
    return package, own


def memory_share(jobs: int) -> float:
    """MiB that a run may take: its part of nine tenths of what the machine, or its group, has."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    group = Path("/sys/fs/cgroup/memory.max")
    if group.exists() and group.read_text().strip().isdigit():
        most = min(most, int(group.read_text()))
    return 0.9 * most / jobs / 2**20


def _scratch() -> IO[str]:
    """A file without a name, for what a child prints; ``Run.end`` closes it."""
    handle, name = tempfile.mkstemp()
    os.unlink(name)
    return os.fdopen(handle, "w+")


@dataclass
class Run:
    """A child at work."""

    task: Task
    cores: Cores
    process: subprocess.Popen
    out: IO[str]
    err: IO[str]
    started: float
    peak: int = 0

    @classmethod
    def start(cls, task: Task, cores: Cores, child: Path = CHILD) -> Run:
        """``child`` is the program that is given the task's ``key``."""
        out, err = _scratch(), _scratch()
        before = os.sched_getaffinity(0) if cores else set()
        if cores:
            os.sched_setaffinity(0, cores)
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                [sys.executable, str(child), task.key],
                stdout=out,
                stderr=err,
                # with bytecode kept, as where the package is installed
                env={**os.environ, SPAWNED: str(started), "PYTHONDONTWRITEBYTECODE": ""},
            )
        finally:
            if cores:
                os.sched_setaffinity(0, before)
        return cls(task, cores, process, out, err, started)

    def said(self) -> dict:
        """What the child has printed so far."""
        # the child writes at the offset that both share: reading must not move it
        handle = self.out.fileno()
        content = os.pread(handle, os.fstat(handle).st_size, 0).decode()
        found: dict = {}
        for line in content.splitlines(keepends=True):
            if line.startswith('{"') and line.endswith("}\n"):
                found |= json.loads(line)
        return found

    def outcome(self, memory: float) -> dict | None:
        """The result, once there is one."""
        self.peak = max(self.peak, peak_memory(self.process.pid))
        ended = self.process.poll() is not None
        said = self.said()
        if "checked" in said and ended:
            return {**said["solved"], **said["checked"]}
        seconds = time.monotonic() - self.started
        if ended:
            self.err.seek(0)
            last = self.err.read().strip().splitlines()[-1:] or [f"exit {self.process.returncode}"]
            return self.failure(last[0])
        if self.peak > memory:
            return self.failure(f"more than {memory / 1024:.1f} GiB")
        if "solved" not in said and seconds > self.task.limit:
            return self.failure(f"not finished in {self.task.limit:.0f} s")
        if seconds > self.task.limit + CHECKING:
            return self.failure(f"not checked in {CHECKING:.0f} s")
        return None

    def failure(self, reason: str) -> dict:
        seconds = round(time.monotonic() - self.started, 1)
        self.end()
        return {"failed": reason, "process_seconds": seconds, "memory_mib": self.peak}

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.out.close()
        self.err.close()


@dataclass
class Pool:
    """Tasks that are still to be done, by what is known of their ladders."""

    waiting: list[tuple[int, Task]]  # with the rank of their suite: lower ones first
    groups: list[Cores]
    memory: float
    deadline: float
    report: Report
    hopeless: float = math.inf  # expected seconds, as multiples of the limit, not worth a try
    finished: dict[tuple, dict[int, float]] = field(default_factory=dict)
    failed: dict[tuple, int] = field(default_factory=dict)

    def note(self, task: Task, outcome: dict) -> None:
        """Remember the seconds, or the least size that failed or fell short."""
        if "failed" in outcome or (outcome.get("gap") or 0.0) > task.gap:
            least = self.failed.get(task.ladder, task.size)
            self.failed[task.ladder] = min(least, task.size)
        else:
            seconds = outcome.get("process_seconds", outcome["seconds"])
            self.finished.setdefault(task.ladder, {})[task.size] = seconds

    def expected(self, task: Task) -> float:
        return expected_seconds(task, self.finished.get(task.ladder, {}))

    def next(self, running: list[Run]) -> Task | None:
        """Within a suite what is quick comes first, since more is known afterwards, then the
        longest expected; what looks too large comes last, the smallest of it only. Nothing is
        started above a size that failed, nor what would be cut off by the deadline."""
        self.waiting = [
            (rank, task)
            for rank, task in self.waiting
            if task.size < self.failed.get(task.ladder, sys.maxsize)
        ]
        left = self.deadline - time.monotonic()
        others = [task for _, task in self.waiting] + [run.task for run in running]
        best: tuple[tuple, Task] | None = None
        for rank, task in self.waiting:
            seconds = self.expected(task)
            if min(1.3 * seconds, task.limit) + 5 > left or seconds > self.hopeless * task.limit:
                continue
            if seconds > task.limit and any(
                other.ladder == task.ladder and other.size < task.size for other in others
            ):
                continue
            phase = 0 if seconds < QUICK else 1 if seconds <= task.limit else 2
            order = (rank, phase, -seconds if phase else seconds)
            if best is None or order < best[0]:
                best = order, task
        return best[1] if best else None

    def run(self) -> None:
        """Until nothing is left that can be started in time."""
        free, running = list(self.groups), []
        try:
            while time.monotonic() < self.deadline:
                while free and (task := self.next(running)) is not None:
                    self.waiting = [(rank, own) for rank, own in self.waiting if own != task]
                    running.append(Run.start(task, free.pop(0)))
                if not running:
                    return
                time.sleep(0.1)
                for run in list(running):
                    outcome = run.outcome(self.memory)
                    if outcome is None:
                        continue
                    run.end()
                    running.remove(run)
                    free.append(run.cores)
                    self.note(run.task, outcome)
                    self.report(run.task, run.cores, outcome)
        finally:
            for run in running:
                run.end()
