"""What ``om.protect`` and ``optmech protect`` promise of persons, beside counts made here.

A random table is protected with both; tables, summaries, budgets and odds are compared.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import optmech as om
from optmech.cli.main import main as command


def table_of(rng: np.random.Generator) -> pd.DataFrame:
    """Rows of some persons, some of them at home again and again, some without a name."""
    rows, users = int(rng.integers(1, 80)), int(rng.integers(1, 9))
    who = rng.integers(0, users, rows)
    home = rng.uniform([-179, -70], [179, 70], 2) + rng.normal(size=(users, 2)) / 20
    stays = rng.random((rows, 1)) < rng.random()
    places = np.where(stays, home[who], home[who] + rng.normal(size=(rows, 2)) / 10)
    hours = rng.integers(0, 72, rows)
    return pd.DataFrame(
        {
            "user": [f"u{k}" if rng.random() > 0.03 else "" for k in who],
            "when": [f"2026-03-{1 + h // 24:02}T{h % 24:02}:30:00" for h in hours],
            "lon": np.round(places[:, 0], 6),
            "lat": np.round(places[:, 1], 6),
            "n": range(rows),
        }
    )


def faults(rng: np.random.Generator, folder: Path, seed: int) -> Iterator[str]:
    """What is not as it should be of one table."""
    epsilon = float(rng.choice([0.25, 0.5, 1.0]))
    earth, table = om.devices.Earth.of(str(epsilon)), table_of(rng)
    earth.save(folder / "e.omm")
    table.to_csv(folder / "t.csv", index=False)
    budget = float(rng.integers(1, 9)) * epsilon + 0.1
    daily, beyond = bool(rng.random() < 0.3), str(rng.choice(["repeat", "drop"]))
    given: Any = [{}, {"no_budget": True}, {"budget": f"{budget}/day" if daily else budget}]
    options = {**given[int(rng.integers(3))], "beyond": beyond}
    key = bytes(rng.integers(0, 256, 32, dtype=np.uint8)) if rng.random() < 0.4 else None
    argv = ["protect", str(folder / "e.omm"), str(folder / "t.csv"), "-o", str(folder / "o.csv")]
    argv += ["--summary", str(folder / "s.json"), "--keep", "user", "when", "n", "--keep-order"]
    argv += ["--beyond", beyond, *(["--no-budget"] if "no_budget" in options else [])]
    argv += ["--budget", str(options["budget"])] if "budget" in options else []
    if key is None:
        argv += ["--seed", str(seed)]
        options["seed"] = seed
    else:
        (folder / "key").write_bytes(key)
        (folder / "key").chmod(0o600)
        argv += ["--sticky-key-file", str(folder / "key"), "--sticky-by", "user"]
        options |= {"key": key, "by": "user"}
    for name in ("o.csv", "s.json"):
        (folder / name).unlink(missing_ok=True)
    with contextlib.redirect_stderr(io.StringIO()):
        status = command(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = om.protect(earth, table, keep=["user", "when", "n"], keep_order=True, **options)
    except om.ProblemError:
        found = None
    if (found is None) != (status != 0) or (status != 0) != (not (folder / "o.csv").exists()):
        yield f"Python {found!r}, the command {status}"
        return
    cells = earth.cells_of(table[["lon", "lat"]].to_numpy()).tolist()
    wanted: defaultdict[str, set[Any]] = defaultdict(set)
    for row, cell in zip(table.itertuples(), cells, strict=True):
        wanted[row.user].add(cell if key is not None else row.n)
    worst = max(map(len, wanted.values()))
    if found is None:
        if worst <= 5 or "budget" in options or "no_budget" in options:
            yield f"refused {worst} draws"
        return
    with (folder / "o.csv").open(newline="", encoding="utf-8") as stream:
        written = [
            (r["user"], r["when"], int(r["n"]), float(r["lon"]), float(r["lat"]))
            for r in csv.DictReader(stream)
        ]
    own = [
        (u, w, int(n), float(f"{x:.12g}"), float(f"{y:.12g}"))
        for u, w, n, x, y in found.table[["user", "when", "n", "lon", "lat"]].to_numpy().tolist()
    ]
    if written != own:
        yield "the tables differ"
    summary = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    if summary["person"]["worst"]["draws"] != found.person.worst.draws:
        yield "the summaries differ"
    reports: defaultdict[str, set[Any]] = defaultdict(set)
    days: defaultdict[Any, set[Any]] = defaultdict(set)
    for user, when, _, x, y in own:
        reports[user].add((x, y))
        days[user, when[:10]].add((x, y))
    counted = found.person.worst
    if max(map(len, reports.values()), default=0) > counted.draws:
        yield "a person has more reports than are counted"
    if "budget" not in options and counted.draws != worst:
        yield f"{counted.draws} draws are counted, and there are {worst}"
    if "no_budget" not in options and "budget" not in options and counted.draws > 5:
        yield "a person has more than five draws"
    if "budget" in options:
        one = found.person.worst_day if daily else counted
        if one.epsilon > budget:
            yield f"ε = {one.epsilon} is beyond the budget {budget}"
        if daily and beyond == "drop" and key is None:
            most = max(map(len, days.values()), default=0)
            if most * epsilon > budget:
                yield "a day has more reports than the budget allows"
    for metres, factor in counted.odds.items():
        log_ratio = counted.draws * epsilon * (metres / 1000 + 2 * earth.header.snap)
        if log_ratio < 600 and not math.isclose(math.log(factor), log_ratio, rel_tol=1e-9):
            yield f"the odds at {metres} m are {factor}"
    if len(own) != len(table) - found.left_out:
        yield "rows are lost"


def judge(rng: np.random.Generator) -> Iterator[str]:
    """One table, protected by both."""
    with tempfile.TemporaryDirectory() as folder:
        yield from faults(rng, Path(folder), int(rng.integers(2**31)))
