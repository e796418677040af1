"""The experiments, put together from the designs on record."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from store import RESULTS, Record, Store

KINDS = ("differential", "distortion", "joint")
SAME = 1e-5
"""Two figures are called equal within this relative distance: both carry gaps of up to 1e-6."""


@dataclass(frozen=True)
class Experiment:
    """The three optimal mechanisms of one user for one (ε, d_m)."""

    grid: str
    user: int
    epsilon: float
    minimum: float
    differential: Record
    distortion: Record
    joint: Record

    @property
    def three(self) -> tuple[tuple[str, Record], ...]:
        return (
            ("differential", self.differential),
            ("distortion", self.distortion),
            ("joint", self.joint),
        )


@cache
def experiments(grid: str) -> list[Experiment]:
    """Everything that has all three parts."""
    records = Store(RESULTS / f"designs-{grid}.jsonl").records.values()
    by_kind: dict[str, dict[tuple, Record]] = defaultdict(dict)
    for record in records:
        task = record["task"]
        by_kind[task["kind"]][task["user"], task["epsilon"], task["minimum"]] = record
    out = []
    for (user, epsilon, minimum), joint in by_kind["joint"].items():
        differential = by_kind["differential"].get((user, epsilon, None))
        distortion = by_kind["distortion"].get((user, None, minimum))
        if differential and distortion:
            out.append(Experiment(grid, user, epsilon, minimum, differential, distortion, joint))
    return out


def scenario1(grid: str) -> list[Experiment]:
    """Those whose d_m is the distortion that the differential mechanism gives."""
    return [
        e
        for e in experiments(grid)
        if e.minimum == e.differential["optimal"] and round(e.epsilon / 0.15, 6) % 1 == 0
    ]


def scenario2(grid: str) -> list[Experiment]:
    """Those whose d_m lies a quarter, half or three quarters of the way to d_max."""
    out = []
    for e in experiments(grid):
        room = e.joint["blind"] - e.differential["optimal"]
        part = (e.minimum - e.differential["optimal"]) / room if room > 0 else 0.0
        if e.epsilon in (0.3, 0.6, 0.9) and min(abs(part - p) for p in (0.25, 0.5, 0.75)) < 1e-9:
            out.append(e)
    return out


def scenario3(grid: str) -> list[Experiment]:
    """Those whose thresholds are multiples of 0.2 per km and 0.5 km, or d_max; scenario 1 has a few
    of one ε, which are nothing by themselves."""
    found = [
        e
        for e in experiments(grid)
        if round(e.epsilon / 0.2, 6) % 1 == 0
        and (e.minimum % 0.5 == 0 or e.minimum == e.joint["blind"])
    ]
    return found if len({e.epsilon for e in found}) > 1 else []


@cache
def approximations(grid: str) -> list[Record]:
    return list(Store(RESULTS / f"approximations-{grid}.jsonl").records.values())


def reference(record: Record) -> str:
    """The exact method that an approximation stands for."""
    return "joint" if record["task"]["method"].startswith("joint") else "exact"


def privacy_errors(grid: str) -> dict[str, float]:
    """Km by which the optimal attack's error on every approximation is off that on the exact
    mechanism, by its task (PG Fig. 8)."""
    found = [r for r in approximations(grid) if "failed" not in r]
    exact = {(r["task"]["user"], r["task"]["method"]): r["optimal"] for r in found}
    return {
        str(r["task"]): abs(exact[r["task"]["user"], reference(r)] - r["optimal"]) for r in found
    }


def cut_at_thresholds(
    grid: str, method: str
) -> tuple[dict[float, list[float]], dict[float | None, list[float]]]:
    """Errors in privacy and seconds by threshold, for every user; seconds of the exact one, too."""
    errors, seconds = defaultdict(list), defaultdict(list)
    off = privacy_errors(grid)
    for r in approximations(grid):
        if "failed" not in r and r["task"]["method"] == method:
            errors[r["task"]["parameter"]].append(off[str(r["task"])])
            seconds[r["task"]["parameter"]].append(r["seconds"])
            of = reference(r)
    for r in approximations(grid):
        if errors and r["task"]["method"] == of:
            seconds[None].append(r["seconds"])
    return dict(errors), dict(seconds)


def without_epsilon(grid: str, method: str, threshold: float) -> int:
    """For how many users some report is possible from one cell and impossible from another."""
    return sum(
        r["epsilon"] is None
        for r in approximations(grid)
        if "failed" not in r
        and (r["task"]["method"], r["task"]["parameter"]) == (method, threshold)
    )


def same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(abs(a), abs(b), 1e-9)


def metres(error: float) -> str:
    """Km, to a metre."""
    return f"{error:.3f}" if error >= 5e-4 else "0"
