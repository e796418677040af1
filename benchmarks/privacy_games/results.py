"""The tables of docs/reproduction.md, from the experiments on record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from claims import CLAIMS
from experiments import (
    KINDS,
    Experiment,
    approximations,
    experiments,
    metres,
    privacy_errors,
    scenario1,
)
from pages import table
from store import RESULTS, Record, Store
from users import GRIDS

CUT = ("threshold", "joint threshold")


def sections() -> dict[str, str]:
    """The generated parts of docs/reproduction.md, by name."""
    out = {}
    for name, make in _SECTIONS.items():
        text = "\n\n".join(made for made in map(make, GRIDS) if made)
        out[name] = text or "No results yet."
    return out


def _claims(grid: str) -> str:
    rows = [row for claim in CLAIMS for row in claim(grid)]
    if not rows:
        return ""
    return f"**{GRIDS[grid][0]} x {GRIDS[grid][1]} cells**\n\n" + table(
        ("the paper says", "verdict", "here"), rows
    )


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


def _twice(grid: str) -> list[tuple[Record, Record]]:
    """Records of the same problem, with reuse and without."""
    warm = Store(RESULTS / f"designs-{grid}.jsonl").records
    cold = Store(RESULTS / f"designs-{grid}-cold.jsonl").records
    return [(warm[k], cold[k]) for k in cold if k in warm]


def _reuse(grid: str) -> str:
    """Processor time of the same designs with and without what neighbours had found."""
    pairs = _twice(grid)
    if not pairs:
        return ""
    rows = []
    for kind in KINDS:
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
                *(_median(of, lambda e, k=k: getattr(e, k)["loss"]) for k in KINDS),
                *(_median(of, lambda e, k=k: getattr(e, k)["bayesian"]) for k in KINDS[:2]),
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
    return f"{_title(grid, found)} (medians over users)\n\n{table(head, rows)}{_not_unique(grid)}"


def _not_unique(grid: str) -> str:
    """How far apart two optimal mechanisms for one problem are under attack."""
    pairs = [(w, c) for w, c in _twice(grid) if w["task"]["kind"] == "joint"]
    if not pairs:
        return ""
    apart = {
        name: max(abs(w[name] / c[name] - 1) for w, c in pairs)
        for name in ("loss", "optimal", "bayesian")
    }
    return (
        "\n\nOptimal mechanisms are not unique, and all figures about attacks (Figs. 2a, 3, 4, 6) "
        f"are of those that a run found. {len(pairs)} joint designs made twice, with and without "
        f"reuse, have the same loss within {apart['loss']:.0e}. But the error of the optimal "
        f"attack on the two differs by up to {apart['optimal']:.1%}, and that of the Bayesian one "
        f"by up to {apart['bayesian']:.1%}."
    )


def _approximations(grid: str) -> str:
    records = [
        r
        for r in approximations(grid)
        if "failed" not in r and r["task"]["method"] in ("exact", "joint", *CUT)
    ]
    if not records:
        return ""
    errors = privacy_errors(grid)
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
        off = [errors[str(r["task"])] for r in of]
        rows.append(
            (
                method,
                "" if parameter is None else f"{parameter}",
                f"{len(of)}",
                f"{max(gaps):.0e}" if gaps else "",
                f"{np.median(ratios):.4f}" if ratios else "",
                f"{metres(np.median(off))} ({metres(max(off))})",
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
        "privacy error km (largest)",
        "largest true ε",
        "no ε at all",
        "repaired loss / optimum",
        "median s",
    )
    return f"**{GRIDS[grid][0]} x {GRIDS[grid][1]} cells**\n\n{table(head, rows)}"


def _median(of: list[Experiment], value: Callable[[Experiment], float]) -> str:
    return f"{np.median([value(e) for e in of]):.4g}"


_SECTIONS: dict[str, Callable[[str], str]] = {
    "certified": _certified,
    "reuse": _reuse,
    "scenario1": _scenario1,
    "claims": _claims,
    "approximations": _approximations,
}
