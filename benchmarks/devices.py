"""What devices send of a position, beside packed files (docs/coarsening.md).

    python benchmarks/devices.py             # ../shared/data, results/devices.json
    python benchmarks/devices.py --table

Fixes of eleven users of GeoLife in a box of Beijing, those within two minutes of each other. For
every rule: the mean distance of what is sent from where somebody was, by how much a report can be
likelier from one of two positions 1 km apart, how often the report changes in an hour on the way,
and how far from the truth that puts somebody: for a grid the distance of the middle of the two
fixes from the line that was crossed, as the report shows it; else from the middle of both reports.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from given import add_files, settle

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "devices.json"
FIXES = "geolife_beijing_11users.csv"
BOX = (116.27, 39.95, 116.39, 40.04)
SIDE, PAUSE, SEED = 10, 120, 5
DEGREE = math.radians(6371.0088)
LN2 = math.log(2)
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class Fixes:
    """Rows in the order of users and times, and those that the next one follows."""

    user: Any
    time: Floats
    points: Floats
    follows: Any

    @property
    def hours(self) -> float:
        return float((self.time[self.follows + 1] - self.time[self.follows]).sum()) / 3600


def read(data: Path, users: int | None) -> Fixes:
    import pandas as pd

    table = pd.read_csv(data / FIXES, parse_dates=["utc"])
    table = table[table.user.isin(sorted(table.user.unique())[:users])]
    west, south, east, north = BOX
    table = table[table.lon.between(west, east) & table.lat.between(south, north)]
    table = table.sort_values(["user", "utc"], kind="stable").reset_index(drop=True)
    time = (table.utc - table.utc.min()).dt.total_seconds().to_numpy() + 1.2e9
    user = table.user.to_numpy()
    gap = np.diff(time)
    follows = np.flatnonzero((user[1:] == user[:-1]) & (gap > 0) & (gap <= PAUSE))
    return Fixes(user, time, table[["lon", "lat"]].to_numpy(), follows)


def apart(a: Floats, b: Floats) -> Floats:
    """Kilometres along great circles."""
    (x, y), (u, v) = np.radians(a).T, np.radians(b).T
    h = np.sin((v - y) / 2) ** 2 + np.cos(y) * np.cos(v) * np.sin((u - x) / 2) ** 2
    return np.asarray(2 * 6371.0088 * np.arcsin(np.sqrt(h)))


# -- rules: what is sent, and whether a change shows a line ----------------------------------------


def masked(bits: int) -> Callable[[Fixes], Floats]:
    """Meshtastic: so many of 32 bits of degrees in parts of 10^7, moved to the middle."""
    size = 2 ** (32 - bits)

    def rule(fixes: Fixes) -> Floats:
        whole = np.floor(fixes.points * 1e7)
        return np.asarray((np.floor(whole / size) + 0.5) * size / 1e7)

    return rule


def snapped(points: Floats, km: float) -> Floats:
    """The nearest node of a grid whose columns are as wide at the row's latitude."""
    step = km / DEGREE
    north = np.rint(points[:, 1] / step) * step
    across = step / np.cos(np.radians(north))
    return np.column_stack([np.rint(points[:, 0] / across) * across, north])


def five_km(fixes: Fixes) -> Floats:
    """A grid of 5 km, as proposed for browsers."""
    return snapped(fixes.points, 5.0)


def android(fixes: Fixes) -> Floats:
    """Android's LocationFudger: an offset of 500 m each way, 3 % new every hour, then 2 km."""
    rng, out = np.random.default_rng(SEED), np.empty_like(fixes.points)
    for user in np.unique(fixes.user):
        rows = np.flatnonzero(fixes.user == user)
        hour = ((fixes.time[rows] - fixes.time[rows[0]]) // 3600).astype(int)
        offset, known = rng.normal(0, 0.5, 2), 0
        for row, own in zip(rows, hour, strict=True):
            # after ten thousand hours nothing is left of the first
            for _ in range(min(own - known, 10_000)):
                offset = math.sqrt(1 - 0.03**2) * offset + 0.03 * rng.normal(0, 0.5, 2)
            known = own
            x, y = fixes.points[row]
            moved = [x + offset[0] / DEGREE / math.cos(math.radians(y)), y + offset[1] / DEGREE]
            out[row] = snapped(np.array([moved]), 2.0)[0]
    return out


def sticky(mechanism: Any) -> Callable[[Fixes], Floats]:
    """A packed file, a report a day and place under a key of each user."""

    def rule(fixes: Fixes) -> Floats:
        out = np.empty_like(fixes.points)
        for user in np.unique(fixes.user):
            key = hashlib.sha256(f"{SEED} {user}".encode()).digest()
            own = om.devices.StickyReports(mechanism, key)
            for row in np.flatnonzero(fixes.user == user).tolist():
                place = mechanism.locate(fixes.points[row])
                out[row] = mechanism.coordinates(own.report(place, fixes.time[row]))
        return out

    return rule


def figures(fixes: Fixes, sent: Floats, line: bool) -> dict[str, float | None]:
    loss = float(apart(fixes.points, sent).mean())
    a, b = fixes.follows, fixes.follows + 1
    moved = np.flatnonzero(np.abs(sent[a] - sent[b]).max(axis=1) > 1e-9)
    here = (fixes.points[a] + fixes.points[b])[moved] / 2
    before, after = sent[a][moved], sent[b][moved]
    if line:
        # of a border between neighbours: from where the change was to the line half-way
        scale = np.array([DEGREE * math.cos(math.radians(40)), DEGREE])
        off = np.abs((here - (before + after) / 2) * scale)
        off = np.where(np.abs(before - after) * scale > 0.1, off, np.inf).min(axis=1)
    else:
        off = apart(here, (before + after) / 2)
    known = float(np.median(off)) if len(off) else None
    return {"loss": loss, "changes": len(moved) / fixes.hours, "off": known}


def odds_of(packed: Any) -> float:
    """How much likelier a report can be from one of two positions that are 1 km apart: their cells
    are any two that come as close."""
    cells, rows = packed.secrets, packed.matrix
    index = np.array(cells.labels)
    gaps = np.maximum(np.abs(index[:, None] - index[None]) - 1, 0) * np.array(cells.cell)[::-1]
    near = (gaps**2).sum(axis=2) <= 1
    used = rows[:, rows.any(axis=0)]
    return float(max((used[a] / used[near[a]]).max() for a in range(len(used))))


def designs(fixes: Fixes) -> dict[str, Any]:
    """The least losses in the box under the users' own prior: metric privacy, and only within 2 km
    the same odds; both proved to a gap of 1 in 1,000, and planar Laplace with its best remap."""
    grid = om.Grid.geographic(SIDE, SIDE, BOX)
    cells = grid.locate(fixes.points)
    counts = np.bincount(cells[cells >= 0], minlength=len(grid)) + 0.5
    prior, km = om.Prior(grid, counts / counts.sum()), om.distances.euclidean()
    laplace = om.mechanisms.planar_laplace(grid, LN2)
    metric = om.MetricPrivacy("ln 2", km)
    within = om.DifferentialPrivacy("ln 4", (km, 2.0))
    found = {"laplace": om.measures.expected_loss(laplace, prior, km)}
    for name, constraint in (("metric", metric), ("within", within)):
        design = om.solve(om.Problem(prior, km, constraints=[constraint]), gap=1e-3)
        found[name] = {"loss": design.loss, "bound": design.lower_bound, "design": design}
    return found


def step_mean(odds: float) -> tuple[float, float]:
    """The least mean distance, beside the radius, of laws with these odds within it: densities of
    steps of the radius, the first one narrower, each below the one before by the odds
    (docs/theory/files.md); and that share."""
    from scipy.optimize import minimize_scalar

    def mean(first: float) -> float:
        k = np.arange(4000)
        ends = np.concatenate([[0.0], first + k])
        level = float(odds) ** -k
        mass = (level * (ends[1:] ** 2 - ends[:-1] ** 2)).sum() / 2
        return float((level * (ends[1:] ** 3 - ends[:-1] ** 3)).sum() / 3 / mass)

    best = minimize_scalar(mean, bounds=(1e-6, 1), method="bounded", options={"xatol": 1e-9})
    return float(best.fun), float(best.x)


EARTHS = ((None, "0.14"), (1.0, "1"), (5.0, "5"))


def run(data: Path, users: int | None = None) -> dict[str, Any]:
    """All figures, of the first users or of all."""
    fixes = read(data, users)
    rows: list[dict[str, Any]] = []

    def add(name: str, sent: Floats, line: bool, odds: float | None) -> None:
        rows.append({"name": name, **figures(fixes, sent, line), "odds": odds})
        print(rows[-1], flush=True)

    for bits in (11, 13, 15):
        add(f"Meshtastic, {bits} bits", masked(bits)(fixes), True, None)
    add("grid of 5 km", five_km(fixes), True, None)
    add("Android: offset, grid of 2 km", android(fixes), True, None)
    for cell, said in EARTHS:
        earth = om.devices.Earth.of("ln 2", cell=cell)
        assert earth.header.snap is not None
        odds = 2 ** (1 + 2 * earth.header.snap)
        add(f"earth, ln 2 per km, cells of {said} km", sticky(earth)(fixes), False, odds)
    found = designs(fixes)
    with tempfile.TemporaryDirectory() as folder:
        for name, said in (("metric", "ln 2 per km"), ("within", "ln 4 within 2 km")):
            path = Path(folder) / f"{name}.omm"
            packed = om.pack(found[name].pop("design"), path, bits=24, outside="nearest")
            found[name]["bytes"] = path.stat().st_size
            add(f"prior, {said}", sticky(packed)(fixes), False, odds_of(packed))
    steps = {str(odds): step_mean(odds) for odds in (1.5, 2, 4, 16, 100)}
    return {"fixes": len(fixes.user), "users": len(set(fixes.user)), "hours": fixes.hours,
            "rows": rows, "designs": found, "within": steps}  # fmt: skip


def table(found: dict[str, Any]) -> None:
    """What docs/coarsening.md has."""
    for row in found["rows"]:
        odds = "∞" if row["odds"] is None else f"{row['odds']:.3g}"
        off = "" if row["off"] is None else f"{1000 * row['off']:,.0f} m"
        print(f"| {row['name']} | {row['loss']:.2f} | {odds} | {row['changes']:.2f} "
              f"| {off} |")  # fmt: skip
    for odds, (mean, first) in found["within"].items():
        laplace = 2 / math.log(float(odds))
        print(f"| {odds} | {laplace:.4f} | {mean:.4f} | {100 * (1 - mean / laplace):.2f} % "
              f"| {first:.3f} |")  # fmt: skip
    print(found["designs"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, help="the first so many; default: all")
    add_files(parser, RESULTS)
    parser.add_argument("--table", action="store_true", help="of the results that are there")
    args = parser.parse_args()
    if not args.table:
        settle(args, FIXES)
        args.results.write_text(json.dumps(run(args.data, args.users), indent=1) + "\n")
    table(json.loads(args.results.read_text()))


if __name__ == "__main__":
    main()
