"""Every benchmark in a short form, and one table: script, data, main figure, seconds, status.

    python benchmarks/short.py                     # as `make benchmarks`
    python benchmarks/short.py --stand-ins         # on made-up data, whatever is there
    python benchmarks/short.py --only city traces  # scripts with this in their name

Short forms are smaller than what the pages show, so that their figures are others: they say that a
benchmark runs. Results go to a folder that is deleted. Ends with 1 where a script failed.
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
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 1_800.0
"""Seconds of any one script."""
NUMBER = r"(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)"
FOLDER = "--results {folder}/results"
WRITES = {"child.py": "one task of engines.py", "guarded.py": "one task of guard.py",
          "data.py": "converts downloads", "stand_ins.py": "writes made-up data",
          "short.py": "this one"}  # fmt: skip
"""Scripts that are no benchmarks."""


@dataclass(frozen=True)
class Short:
    """A short form: arguments, what the main figure is called and the pattern of it in what is
    printed (the last match counts), and a module that must be there."""

    arguments: str
    figure: str
    pattern: str
    needs: str = ""
    data: bool = False


def _of_data(arguments: str, figure: str, pattern: str, needs: str = "") -> Short:
    return Short(f"{arguments} {FOLDER}", figure, pattern, needs, data=True)


SCRIPTS = {
    "approximations.py": _of_data(
        "--grid small --users 1", "loss / optimum of a 1.05-spanner",
        rf"spanner \| 1\.05(?: \|[^|]*){{3}}\| {NUMBER}",
    ),
    "blocks_apart.py": _of_data("profile 60", "gap", rf'"gap": {NUMBER}'),
    "certificates.py": Short(
        "--every 40", "designs that pass, of the last group",
        rf"\| {NUMBER} \|[^|]*\|[^|]*\|[^|]*\|$",
    ),
    "city.py": _of_data("rome 60", "gap", rf'"gap": {NUMBER}'),
    "city_peers.py": _of_data("20 --only optmech", "loss", rf'"loss": {NUMBER}', "highspy"),
    "coarsening.py": _of_data("--traces 5 --side 5", "of the table", rf"\| {NUMBER} \|"),
    "coupling.py": _of_data(
        "--part estimated", "ε at δ = 0.001", rf'"epsilon at delta 0.001": {NUMBER}'
    ),
    "devices.py": _of_data("--users 1", "of the last odds: mean distance", rf"\| {NUMBER} \|$"),
    "discrete_traces.py": _of_data("--part overview --traces 2", "seconds", rf"overview: {NUMBER}"),
    "distribution_figures.py": _of_data(
        "--part losses", "loss, km", rf"'loss_nearest_km': {NUMBER}"
    ),
    "distribution_privacy.py": _of_data("--part table3", "dummies", rf"'k': {NUMBER}"),
    "distribution_tables.py": Short("--check", "the page", "()$"),
    "districts.py": _of_data(
        "sweep --places 4", "designs that pass", rf'"checked": {NUMBER}', "distributed"
    ),
    "engines.py": Short(
        f"--suite smoke --solvers auto highs-simplex {FOLDER}", "loss", rf"'loss': {NUMBER}"
    ),
    "everywhere.py": Short(
        f"square --first 2 {FOLDER}", "lower bound", rf"'lower_bound': {NUMBER}"
    ),
    "gallery.py": Short("metric joint coupling --only-print", "loss", rf'"loss": {NUMBER}'),
    "gap_figure.py": Short(
        "{folder}/gap.svg", "s to a gap of 1e-6 (on record)", rf"1e-06: median {NUMBER}",
        "matplotlib",
    ),
    "guard.py": Short(
        "--only import start-up --history {folder}/none.jsonl", "start-up, in units", rf"{NUMBER}"
    ),
    "heat_maps.py": _of_data(
        "run --side 3 --surveys 5 --gap 0.5", "total variation, designed",
        rf"Beijing, 200,000: designed, unbiased {NUMBER}",
    ),
    "libqif.py": Short("--problems 2 --only vulner", "compared", rf"\| {NUMBER} \|", "qif"),
    "literature.py": Short(
        f"mind-the-gap --every 40 {FOLDER}", "s of the last", rf" {NUMBER} s$"
    ),
    "noise.py": Short(f"run --every 12 {FOLDER}", "gap of the last", rf"gap {NUMBER}$"),
    "noise_documented.py": Short(
        "--only 1 9", "% less of the last", rf"\| {NUMBER} % \|", "opendp"
    ),
    "noise_gaps.py": Short(
        f"run --groups histogram --every 13 {FOLDER}", "gap of the last", rf"gap {NUMBER}, "
    ),
    "packed.py": Short("mutations --count 100", "altered files passed", rf'"passed": {NUMBER}'),
    "people.py": Short("--figure {folder}/people.svg", "bytes", rf"{NUMBER} bytes"),
    "privacy_games": _of_data(
        "scenario1 --grid small --users 1", "parts done", r"part \d+: (\d+) of"
    ),
    "pufferfish.py": Short(f"--part pufferfish {FOLDER}", "of the table", rf"\| {NUMBER} \|"),
    "report_pages.py": Short("--runs 1", "s to open", rf"{NUMBER} \|$", "selenium"),
    "radial_peers.py": Short("--cases 1 --shapes 1", "E r^2", rf"1 1e-05 \| {NUMBER}"),
    "roads.py": _of_data("rome 60 --reports 10", "gap", rf'"gap": {NUMBER}'),
    "sampler_timing.py": Short(
        "--places 10 --draws 200", "accuracy, first against last",
        rf'"accuracy, first against last": {NUMBER}',
    ),
    "scaling.py": Short("--check", "the tables", "()$"),
    "sticky.py": _of_data(
        "--users 1", "loss for the month, km", rf"sticky for the month \|[^|]*\| {NUMBER} \|"
    ),
    "surveys.py": Short(
        f"run '2 × 2' '8 values' {FOLDER}", "bound of the last", rf"cdf: [\d.]+ {NUMBER}"
    ),
    "sweeps.py": Short(f"kills --kills 2 {FOLDER}", "designs that pass", rf'"checked": {NUMBER}'),
    "tiny_losses.py": Short("--every 20", "within 1e-6", r"(\d+ of \d+) within"),
    "traces.py": _of_data("--part monotone", "s", rf"monotone: {NUMBER} s"),
    "transport.py": Short("--smoke", "W_1", rf'"w1": {NUMBER}', "ot"),
    "weighed.py": _of_data("new-york 12 --limit 20", "loss", rf'"loss": {NUMBER}'),
}  # fmt: skip


def ran(script: str, where: list[str]) -> tuple[str, ...]:
    """A line of the table."""
    short = SCRIPTS[script]
    if short.needs and importlib.util.find_spec(short.needs) is None:
        return script, "", "", "", f"skipped: needs {short.needs}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / script)]
        command += shlex.split(short.arguments.format(folder=folder))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(
                command + where * short.data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=LIMIT, check=False,
                env={**os.environ, "PYTHONPATH": str(HERE.parent)},
            )  # fmt: skip
            printed, status = done.stdout, "ok" if done.returncode == 0 else "FAILED"
        except subprocess.TimeoutExpired:
            printed, status = "", f"FAILED: more than {LIMIT:.0f} s"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if status != "ok":
        print(printed[-2_000:], file=sys.stderr)
    used = re.findall(r"^data: (.*)$", printed, re.M)
    found = re.findall(short.pattern, printed, re.M)
    main_figure = f"{short.figure} {found[-1]}".strip() if found else ""
    return script, used[0] if used else "", main_figure, f"{seconds:.1f}", status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="scripts with this in their name")
    parser.add_argument("--stand-ins", action="store_true", help="made-up data, whatever is there")
    parser.add_argument("--data", help="a folder of the tables of docs/data.md")
    args = parser.parse_args()
    where = ["--stand-ins"] if args.stand_ins else ["--data", args.data] if args.data else []
    rows = []
    for script in SCRIPTS:
        if any(part in script for part in args.only):
            rows.append(ran(script, where))
            print(*rows[-1], sep="; ", file=sys.stderr, flush=True)
    head = "script", "data", "main figure", "s (processor)", "status"
    for row in (head, ("---",) * len(head), *rows):
        print(f"| {' | '.join(row)} |")
    print(f"{sum(float(row[3] or 0) for row in rows):.0f} s of processor time")
    raise SystemExit(any("FAILED" in row[4] for row in rows))


if __name__ == "__main__":
    main()
