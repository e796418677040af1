"""Every benchmark in a short form, and one table: script, data, main figure, seconds, status.

    python benchmarks/short.py                     # as `make benchmarks`
    python benchmarks/short.py --stand-ins         # on made-up data, whatever is there
    python benchmarks/short.py --only city traces  # scripts with this in their name

Short forms are smaller than what the pages show: figures differ from these, and nothing here is a
claim. Results go to a folder that is deleted.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 240.0
"""Seconds of any one script."""


@dataclass(frozen=True)
class Short:
    """A short form: arguments, the pattern of the main figure in what is printed (the last match
    counts) and what that is, whether data are read, and modules that must be there."""

    arguments: str
    pattern: str = ""
    figure: str = ""
    data: bool = False
    results: bool = False
    needs: tuple[str, ...] = ()


NUMBER = r"(-?[\d.,]+(?:e[-+]?\d+)?)"
SCRIPTS = {
    "approximations.py": Short(
        "--grid small --users 1",
        rf"early stop \| 0.01 \| \S+ \| \S+ \| {NUMBER}",
        "loss / optimum, stopped at 1 %",
        data=True,
        results=True,
    ),
    "blocks_apart.py": Short("profile 60", rf'"gap": {NUMBER}', "gap", data=True, results=True),
    "certificates.py": Short(
        "--every 25", r"\n\| [^\n|]* \| (\d+ \| \d+) \|", "designs | that pass"
    ),
    "city.py": Short("rome 60 --limit 60", rf'"gap": {NUMBER}', "gap", data=True, results=True),
    "city_peers.py": Short("20 --only optmech HiGHS", rf"{NUMBER}", "", data=True, results=True),
    "coarsening.py": Short("--traces 10", "", "", data=True, results=True),
    "coupling.py": Short("--part estimated", "", "", data=True, results=True),
    "devices.py": Short("", "", "", data=True, results=True),
    "discrete_traces.py": Short("--part overview", "", "", data=True, results=True),
    "distribution_figures.py": Short("--part losses", "", "", data=True, results=True),
    "distribution_privacy.py": Short("--part table2", "", "", data=True, results=True),
    "distribution_tables.py": Short("--check"),
    "districts.py": Short(
        "sweep --places 6", "", "", data=True, results=True, needs=("distributed",)
    ),
    "engines.py": Short("--suite smoke --solvers auto highs-simplex", "", "", results=True),
    "everywhere.py": Short("square --only uniform", "", "", results=True),
    "gallery.py": Short("metric joint coupling --only-print", "", ""),
    "gap_figure.py": Short("{folder}/gap.svg", "", "", needs=("matplotlib",)),
    "guard.py": Short("--only import start-up '64 uniform' --history {folder}/guard.jsonl"),
    "libqif.py": Short("--problems 2 --only vulnerability", needs=("qif",)),
    "literature.py": Short("mind-the-gap --every 15", "", "", results=True),
    "noise.py": Short("run --every 9", "", "", results=True),
    "packed.py": Short("mutations --count 200"),
    "people.py": Short("--figure {folder}/people.svg"),
    "privacy_games": Short("scenario1 --grid small --users 2", data=True, results=True),
    "pufferfish.py": Short("--part pufferfish", results=True),
    "report_pages.py": Short("--runs 1", needs=("selenium",)),
    "roads.py": Short("rome 60 --reports 20", data=True, results=True),
    "sampler_timing.py": Short("--places 20 --draws 400"),
    "scaling.py": Short("--check"),
    "sticky.py": Short("--users 2", data=True, results=True),
    "sweeps.py": Short("kills --kills 3", results=True),
    "tiny_losses.py": Short("--every 12"),
    "traces.py": Short("--part gps", data=True, results=True),
    "transport.py": Short("--smoke", needs=("ot",)),
    "weighed.py": Short("new-york 20 --limit 30", data=True, results=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="scripts with this in their name")
    parser.add_argument("--stand-ins", action="store_true", help="made-up data, whatever is there")
    parser.add_argument("--data", help="a folder of the tables of docs/data.md")
    parser.add_argument("--log", type=Path, help="append what the scripts print")
    args = parser.parse_args()
    where = ["--stand-ins"] if args.stand_ins else ["--data", args.data] if args.data else []
    for script, short in SCRIPTS.items():
        if any(part in script for part in args.only):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, str(HERE / script)]
                command += shlex.split(short.arguments.format(folder=folder))
                command += where if short.data else []
                if short.results:
                    command += ["--results", f"{folder}/results.jsonl"]
                env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
                t = time.time()
                c = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run(
                    command,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=900,
                    env=env,
                )
                c2 = resource.getrusage(resource.RUSAGE_CHILDREN)
                print(
                    "=====",
                    script,
                    done.returncode,
                    "wall",
                    round(time.time() - t, 1),
                    "cpu",
                    round(c2.ru_utime - c.ru_utime + c2.ru_stime - c.ru_stime, 1),
                    flush=True,
                )
                print(done.stdout[-900:], flush=True)


if __name__ == "__main__":
    main()
