"""What the results say: experiments put together, and the paper's claims held against them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from store import RESULTS, Record, Store
from users import GRIDS

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


Rows = list[tuple[str, ...]]


def table(head: tuple[str, ...], rows: Rows) -> str:
    """Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def sections() -> dict[str, str]:
    """The generated parts of docs/reproduction.md, by name."""
    out = {}
    for name, make in _SECTIONS.items():
        text = "\n\n".join(made for made in map(make, GRIDS) if made)
        out[name] = text or "No results yet."
    return out


def _title(grid: str, found: list[Experiment]) -> str:
    users = len({e.user for e in found})
    rows, columns = GRIDS[grid]
    return f"**{rows} x {columns} cells, {users} users, {len(found)} experiments**"


def _designs(found: list[Experiment]) -> list[Record]:
    """Every design once."""
    unique = {str(r["task"]): r for e in found for _, r in e.three}
    return list(unique.values())


def _certified(grid: str) -> str:
    found = experiments(grid)
    if not found:
        return ""
    designs = _designs(found)
    seconds = np.array([r["seconds"] for r in designs])
    rows = []
    for kind in ("differential", "distortion", "joint"):
        of = [r for r in designs if r["task"]["kind"] == kind]
        times = np.array([r["seconds"] for r in of])
        rows.append(
            (
                kind,
                f"{len(of):,}",
                f"{sum(r['verified'] for r in of):,}",
                f"{max(r['gap'] for r in of):.1e}",
                f"{np.median(times):.2f}",
                f"{times.max():.1f}",
            )
        )
    head = ("kind", "designs", "exact check passed", "largest gap", "median s", "slowest s")
    hours = sum(r["cpu"] for r in designs) / 3600
    return (
        f"{_title(grid, found)}, {seconds.sum() / 3600:.2f} h of solving, {hours:.2f} h of "
        f"processor time\n\n{table(head, rows)}"
    )


def _reuse(grid: str) -> str:
    """Processor time of the same designs with and without what neighbours had found."""
    warm = Store(RESULTS / f"designs-{grid}.jsonl").records
    cold = Store(RESULTS / f"designs-{grid}-cold.jsonl").records
    pairs = [(warm[k], cold[k]) for k in cold if k in warm]
    if not pairs:
        return ""
    rows = []
    for kind in _KINDS:
        of = [(w, c) for w, c in pairs if w["task"]["kind"] == kind]
        with_reuse, without = (sum(r["cpu"] for r in side) for side in zip(*of, strict=True))
        rows.append(
            (
                kind,
                f"{len(of)}",
                f"{sum(w['warm'] for w, _ in of)}",
                f"{sum(w['engine'] == 'start' for w, _ in of)}",
                f"{with_reuse:,.0f}",
                f"{without:,.0f}",
            )
        )
    head = ("kind", "designs", "started", "already optimal", "with reuse s", "without s")
    with_reuse, without = (sum(r["cpu"] for r in side) for side in zip(*pairs, strict=True))
    return (
        f"**{GRIDS[grid][0]} x {GRIDS[grid][1]} cells, scenario 1**: {len(pairs)} designs take "
        f"{with_reuse / 60:.1f} minutes of processor time with reuse, {without / 60:.1f} without: "
        f"{1 - with_reuse / without:.0%} saved\n\n{table(head, rows)}"
    )


def _scenario1(grid: str) -> str:
    found = scenario1(grid)
    if not found:
        return ""
    rows = []
    for epsilon in sorted({e.epsilon for e in found}):
        of = [e for e in found if e.epsilon == epsilon]
        rows.append(
            (
                f"{epsilon:g}",
                _median(of, lambda e: e.differential["optimal"]),
                *(_median(of, lambda e, k=k: getattr(e, k)["loss"]) for k in _KINDS),
                *(_median(of, lambda e, k=k: getattr(e, k)["bayesian"]) for k in _KINDS[:2]),
            )
        )
    head = (
        "ε per km",
        "distortion km",
        "loss, differential",
        "loss, distortion",
        "loss, joint",
        "Bayesian error, differential",
        "Bayesian error, distortion",
    )
    return f"{_title(grid, found)} (medians over users)\n\n{table(head, rows)}"


def _claims(grid: str) -> str:
    rows = [row for claim in _CLAIMS for row in claim(grid)]
    if not rows:
        return ""
    return f"**{GRIDS[grid][0]} x {GRIDS[grid][1]} cells**\n\n" + table(
        ("the paper says", "verdict", "here"), rows
    )


Claim = tuple[str, str, str]
"""What the paper says, the verdict, and the figures."""

MUCH = 1.2
"""How many times as dear is "much more"."""
MOSTLY = 2 / 3
"""A claim that holds in this share of the experiments counts as confirmed with qualification."""


def _verdict(holds: list[bool]) -> str:
    if all(holds):
        return "confirmed"
    return "with qualification" if np.mean(holds) >= MOSTLY else "not confirmed"


def _claims1(grid: str) -> Iterator[Claim]:
    found = scenario1(grid)
    if not found:
        return
    most = max(e.epsilon for e in found)
    last = [e.differential["optimal"] for e in found if e.epsilon == most]
    yield (
        "As ε grows, the expected error converges to below 1 km (Fig. 2a)",
        _verdict([error < 1 for error in last]),
        f"at ε = {most:g} per km median {np.median(last):.2f} km, largest {max(last):.2f} km, "
        f"below 1 km for {np.mean(np.array(last) < 1):.0%} of users",
    )
    # who was in one cell only loses nothing with either
    worse = [
        e.differential["loss"] / max(e.distortion["loss"], 1e-300)
        for e in found
        if e.differential["loss"] > 0
    ]
    yield (
        "Equal distortion costs much more with differential privacy than without (Fig. 2b)",
        _verdict([ratio > MUCH for ratio in worse]),
        f"loss ratio median {np.median(worse):.2f}, at most {max(worse):.3g}; never below "
        f"{min(worse):.6f}",
    )
    same = [_same(e.joint["loss"], e.differential["loss"]) for e in found]
    yield (
        "Differential and joint mechanisms cost the same (Fig. 2b)",
        _verdict(same),
        f"in {sum(same)} of {len(same)} experiments",
    )
    more = [e.differential["bayesian"] > e.distortion["bayesian"] * (1 + SAME) for e in found]
    less = [e.differential["bayesian"] < e.distortion["bayesian"] * (1 - SAME) for e in found]
    yield (
        "Against the Bayesian attack the differential mechanism is more robust (Fig. 3)",
        _verdict(more),
        f"larger error in {sum(more)}, smaller in {sum(less)}, equal in "
        f"{len(found) - sum(more) - sum(less)} of {len(found)}",
    )
    beaten = [r["bayesian"] >= r["optimal"] * (1 - 1e-9) for e in found for _, r in e.three]
    over = {
        k: np.median(
            [getattr(e, k)["bayesian"] / max(getattr(e, k)["optimal"], 1e-9) for e in found]
        )
        for k in _KINDS
    }
    yield (
        "The optimal attack is at least as strong as the Bayesian one, the more so against "
        "differential and joint mechanisms (Fig. 4)",
        _verdict([*beaten, over["differential"] > over["distortion"] < over["joint"]]),
        f"at least as strong in {sum(beaten)} of {len(beaten)}; median ratio of errors "
        + ", ".join(f"{over[k]:.3f} ({k})" for k in _KINDS),
    )
    for evidence in ("0.25", "0.5", "0.75"):
        robust = [
            e.differential["informed"][evidence] >= e.distortion["informed"][evidence] * (1 - SAME)
            for e in found
        ]
        lost = [np.mean([getattr(e, k)["informed"][evidence] for e in found]) for k in _KINDS[:2]]
        yield (
            f"The differential mechanism is more robust to an adversary who knows more (Fig. 6), "
            f"evidence {evidence}",
            _verdict(robust),
            f"in {sum(robust)} of {len(robust)}; mean error {lost[0]:.3f} km against {lost[1]:.3f}",
        )


def _claims2(grid: str) -> Iterator[Claim]:
    found = scenario2(grid)
    if not found:
        return
    reached = [_same(e.joint["optimal"], e.distortion["optimal"]) for e in found]
    extra = [e.joint["loss"] / max(e.differential["loss"], 1e-300) - 1 for e in found]
    yield (
        "With d_m above what differential privacy gives, the joint mechanism gives d_m (Fig. 5)",
        _verdict(reached),
        f"in {sum(reached)} of {len(reached)}",
    )
    yield (
        "… with the same utility cost as the differential mechanism",
        _verdict([x <= SAME for x in extra]),
        f"in {sum(x <= SAME for x in extra)} of {len(extra)}; extra cost median "
        f"{np.median(extra):.1%}, at most {max(extra):.0%}",
    )


def _claims3(grid: str) -> Iterator[Claim]:
    found = scenario3(grid)
    if not found:
        return
    privacy = [
        _same(e.joint["optimal"], max(e.differential["optimal"], e.distortion["optimal"]))
        for e in found
    ]
    cost = [
        e.joint["loss"] / max(e.differential["loss"], e.distortion["loss"], 1e-300) - 1
        for e in found
    ]
    first = [e.differential["loss"] >= e.distortion["loss"] * (1 - SAME) for e in found]
    yield (
        "Privacy of the joint mechanism is the larger of the two (Fig. 7)",
        _verdict(privacy),
        f"in {sum(privacy)} of {len(privacy)}",
    )
    yield (
        "Its cost is the larger of the two: nothing extra",
        _verdict([x <= SAME for x in cost]),
        f"in {sum(x <= SAME for x in cost)} of {len(cost)}; otherwise extra cost median "
        f"{np.median([x for x in cost if x > SAME] or [0]):.1%}, at most {max(cost):.0%}",
    )
    yield (
        "… which is the differential mechanism's in all experiments",
        _verdict(first),
        f"the differential mechanism is the dearer one in {sum(first)} of {len(first)}",
    )


def _approximations(grid: str) -> str:
    records = [r for r in approximations(grid) if "failed" not in r]
    if not records:
        return ""
    groups: dict[tuple, list[Record]] = defaultdict(list)
    for r in records:
        groups[r["task"]["method"], r["task"]["parameter"]].append(r)
    rows = []
    for (method, parameter), of in groups.items():
        ratios = [r["loss"] / r["exact_loss"] for r in of if r["exact_loss"] > 0]
        broken = sum(r["epsilon"] is None for r in of)
        finite = [r["epsilon"] for r in of if r["epsilon"] is not None]
        gaps = [
            max(0.0, r["loss"] - r["lower_bound"]) / r["loss"]
            for r in of
            if r.get("lower_bound") is not None and r["loss"] > 0
        ]
        repaired = [
            r["repaired_loss"] / r["exact_loss"]
            for r in of
            if r.get("repaired_loss") is not None and r["exact_loss"] > 0
        ]
        rows.append(
            (
                method,
                "" if parameter is None else f"{parameter}",
                f"{len(of)}",
                f"{max(gaps):.0e}" if gaps else "",
                f"{np.median(ratios):.4f}" if ratios else "",
                f"{max(finite):.3g}" if finite else "",
                f"{broken}",
                f"{np.median(repaired):.4f}" if repaired else "",
                f"{np.median([r['seconds'] for r in of]):.2f}",
            )
        )
    head = (
        "method",
        "parameter",
        "users",
        "largest gap",
        "loss / optimum",
        "largest true ε",
        "no ε at all",
        "repaired loss / optimum",
        "median s",
    )
    return f"**{GRIDS[grid][0]} x {GRIDS[grid][1]} cells**\n\n{table(head, rows)}"


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(abs(a), abs(b), 1e-9)


def _median(of: list[Experiment], value: Callable[[Experiment], float]) -> str:
    return f"{np.median([value(e) for e in of]):.4g}"


_KINDS = ("differential", "distortion", "joint")
_CLAIMS = (_claims1, _claims2, _claims3)
_SECTIONS: dict[str, Callable[[str], str]] = {
    "certified": _certified,
    "reuse": _reuse,
    "scenario1": _scenario1,
    "claims": _claims,
    "approximations": _approximations,
}
