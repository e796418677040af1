"""Threads and processes that spend from one ledger's file, some of them killed at random.

    python packages/devices/tests/packed/spending.py --seconds 60      # 64 threads and 8 processes

Every draw that was charged is handed out by one byte at the end of a file. When all have ended,
there are no more of these than draws in the ledger, no fewer but for one of each thread that was
killed, and no more draws than the budget has room for.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import optmech as om

VECTORS = Path(__file__).parent / "vectors"


def opened(folder: Path, budget: float | None) -> om.Ledger:
    """The ledger of a folder; ε = 1, so that a draw costs 1."""
    line = om.load_packed(VECTORS / "line.omm")
    return om.Ledger.open(
        folder / "spent.json", line, None, radius=1.0, budget=budget, between="places"
    )


def spend(ledger: om.Ledger, folder: Path, threads: int, until: float) -> None:
    """Draw in some threads until the time, or the budget, is over."""

    def draw() -> None:
        handed = os.open(folder / "handed", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        while time.monotonic() < until and ledger.charge(random.randrange(6)):
            os.write(handed, b".")

    running = [threading.Thread(target=draw) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def shared(
    folder: Path, budget: float, seconds: float, threads: int, processes: int, each: int
) -> tuple[int, int, int]:
    """Draws in the ledger, those handed out, and the threads that were killed."""
    here = opened(folder, budget)
    until = time.monotonic() + seconds
    command = [sys.executable, __file__, "--in", str(folder), "--budget", repr(budget)]
    command += ["--until", repr(until), "--threads", str(each)]
    running = [subprocess.Popen(command) for _ in range(processes)]
    own = threading.Thread(target=spend, args=(here, folder, threads, until))
    own.start()
    killed = 0
    rng = random.Random(5)
    while time.monotonic() < until and own.is_alive():
        time.sleep(rng.uniform(0.0, seconds / 10))
        victim = rng.randrange(processes)
        if running[victim].poll() is None:
            running[victim].send_signal(signal.SIGKILL)
            killed += each
            running[victim].wait()
            running[victim] = subprocess.Popen(command)
    own.join()
    for process in running:
        assert process.wait() == 0
    handed = folder / "handed"
    return sum(opened(folder, budget).draws.values()), handed.stat().st_size, killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in", dest="folder", type=Path)
    parser.add_argument("--budget", type=float, default=1e9)
    parser.add_argument("--until", type=float)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=8)
    args = parser.parse_args()
    if args.folder is not None:
        spend(opened(args.folder, args.budget), args.folder, args.threads, args.until)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = shared(Path(folder), args.budget, args.seconds, 64, 8, args.threads)
    draws, handed, killed = found
    print(f"{draws} draws charged, {handed} handed out, {killed} threads killed")
    assert draws - killed <= handed <= draws <= args.budget


if __name__ == "__main__":
    main()
