"""Runs command lines in forked children of a warm process, each with limits, and judges them."""

from __future__ import annotations

import io
import os
import re
import resource
import signal
import sys
import tempfile
import time
import unicodedata
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SECONDS = 10.0
"""Of computing, its own and its children's."""
BYTES = 2**30
"""Beyond what the warm process has already."""
_PATIENCE = 90.0
_COORDINATE = re.compile(r"\.\d?737[34]")
"""What is left of a planted coordinate where it is printed, however it is rounded."""
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@dataclass(frozen=True)
class Case:
    """A command line with the files that it names, in a folder of its own.

    The content "<pipe>", "<folder>" or "<loop>" stands for such a thing in the place of a file.
    Standard ``streams`` by their numbers are "closed", "full" or "unread"; ``environment`` has
    variables, and the ``encoding`` of the streams.
    """

    kind: str
    argv: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    streams: dict[int, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What came of a case; ``faults`` is empty where all is well."""

    status: int
    seconds: float
    bytes: int
    out: str
    err: str
    faults: tuple[str, ...]


def warm() -> None:
    """Load what commands load, so that children have it from the start."""
    from optmech.cli.main import main

    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as silent:
        held = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = silent
        try:
            design = os.path.join(folder, "d.json")
            for argv in (
                ["solve", "worst-case", "-q", "-o", design],
                ["check", design],
                ["attack", design],
                ["export", "metric", "-o", os.path.join(folder, "x.mps")],
                ["transport", "home-out-target"],
            ):
                main(argv)
        finally:
            sys.stdout, sys.stderr = held
    # loaded, not run: a process forked beside the threads of a solver may never end
    for module in ("h3", "shapely.geometry", "shapely.ops", "optmech.exchange.geo", "cvxpy",
                   "optmech_traces.gaussian.task", "optmech_traces.chains.task",
                   "optmech_devices.protection.files",
                   "optmech.files.first_problem", "optmech_devices.packed.documents"):  # fmt: skip
        try:
            __import__(module)
        except ImportError:
            continue
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads"


def judge(case: Case) -> Verdict:
    """Run a case in a child and say what is wrong with how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        _lay(case, Path(folder))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _run(case, folder, out.fileno(), err.fileno())
            status, usage, late = _wait(child)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read(2**20).decode("utf-8", "replace"))
    seconds = usage.ru_utime + usage.ru_stime
    extra = max(0, usage.ru_maxrss * 1024 - _begins_with())
    faults = _faults(case, status, late, seconds, extra, *texts)
    return Verdict(status, seconds, extra, *texts, faults)


def _faults(
    case: Case, status: int, late: bool, seconds: float, extra: int, out: str, err: str
) -> tuple[str, ...]:
    found = []
    if late:
        found.append(f"not ended after {_PATIENCE:g} s")
    elif status not in (0, 1, 2, 3, 4) and (status, case.streams) != (141, {1: "unread"}):
        found.append(f"status {status}")
    if "Traceback" in err or "Exception ignored" in err:
        found.append("a traceback")
    if status == 2 and not late and 2 not in case.streams and "optmech: error: " not in err:
        found.append("no word on what is wrong")
    if seconds > SECONDS:
        found.append(f"{seconds:.1f} s")
    if extra > BYTES:
        found.append(f"{extra / 2**20:.0f} MiB")
    if _COORDINATE.search(err):
        found.append("a coordinate in a message")
    unseen = {c for c in out + err if c != "\n" and unicodedata.category(c) in _UNSEEN}
    if unseen - {"\r", "\t"}:
        found.append(f"characters that a terminal obeys: {sorted(unseen)!a}")
    return tuple(found)


def _lay(case: Case, folder: Path) -> None:
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content == b"<pipe>":
            os.mkfifo(path)
        elif content == b"<folder>":
            path.mkdir()
        elif content == b"<loop>":
            path.symlink_to(name)
        else:
            path.write_bytes(content)


def _run(case: Case, folder: str, out: int, err: int) -> None:
    """In the child: never returns."""
    status = 99
    try:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_DATA, (_data() + 3 * BYTES, resource.RLIM_INFINITY))
        for descriptor, stream in {0: os.open(os.devnull, os.O_RDONLY), 1: out, 2: err}.items():
            os.dup2(stream, descriptor)
        for descriptor, state in case.streams.items():
            _spoil(descriptor, state)
        encoding = case.environment.get("encoding", "utf-8")
        os.environ.update({k: v for k, v in case.environment.items() if k != "encoding"})
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            closed = case.streams.get(descriptor) == "closed"
            raw = None if closed else io.FileIO(descriptor, "w")
            setattr(sys, name, raw and io.TextIOWrapper(io.BufferedWriter(raw), encoding))
        raw = None if case.streams.get(0) == "closed" else io.FileIO(0)
        sys.stdin = raw and io.TextIOWrapper(io.BufferedReader(raw), encoding)
        sys.argv = ["optmech", *case.argv]
        import warnings

        from optmech.cli.main import entry

        warnings.simplefilter("ignore")
        entry()
    except SystemExit as stop:
        status = int(stop.code or 0)
        # what Python does when it ends
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        import traceback

        status = 99
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)


def _spoil(descriptor: int, state: str) -> None:
    """A standard stream that is closed, takes nothing, or has no reader."""
    if state == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)
    elif state == "unread":
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, descriptor)
    else:
        os.close(descriptor)


def _wait(child: int) -> tuple[int, resource.struct_rusage, bool]:
    deadline, late, pause = time.monotonic() + _PATIENCE, False, 0.001
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage, late
        if time.monotonic() > deadline and not late:
            late = True
            os.kill(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


@cache
def _begins_with() -> int:
    """Resident memory in bytes of a forked child that does nothing."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.wait4(child, 0)[2].ru_maxrss * 1024


def _data() -> int:
    with open("/proc/self/status", encoding="ascii") as stream:
        line = next(line for line in stream if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024
