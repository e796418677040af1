"""DP19 Figs. 2, 4, 5, 6 and 9 to 12 from the results on open data, as SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distribution_claims import Results

PANELS = (
    ("a", "k", "dummies k", "log"),
    ("b", "eps_A_per_degree", "eps_A (per degree)", "log"),
    ("c", "radius_degrees", "radius r (degrees)", "linear"),
)
MARKS = dict(
    zip(
        ("male/female", "social/less", "work/non-work", "home/out", "north/south"),
        "os^Dv",
        strict=True,
    )
)


def draw(found: Results, folder: Path) -> None:
    """Write distribution-privacy-fig2.svg, -fig4.svg and -fig5.svg."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"font.size": 9, "svg.hashsalt": "optmech", "axes.grid": True})
    mpl.rcParams.update({"grid.alpha": 0.25, "axes.spines.top": False, "axes.spines.right": False})
    for name, make in (("fig2", _figure2), ("fig4", _figure4), ("fig5", _figure5)):
        make(found).savefig(folder / f"distribution-privacy-{name}.svg", metadata={"Date": None})


def _figure2(found: Results) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12, 6.4), layout="constrained")
    for column, (panel, key, label, scale) in enumerate(PANELS):
        for name, mark in MARKS.items():
            rows = [r for r in found["figure2"] if (r["attribute"], r["panel"]) == (name, panel)]
            for axis, value in ((axes[0][column], _epsilon), (axes[1][column], _kl)):
                points = [(r[key], y) for r in rows if (y := value(r)) is not None]
                axis.plot(*zip(*points, strict=True), marker=mark, label=name)
                axis.set_xscale(scale)
                axis.set_yscale("log")
                axis.set_xlabel(label)
    axes[0][0].set_ylabel("eps at delta = 0.001")
    axes[1][0].set_ylabel("KL (nats), where finite")
    axes[0][2].legend(fontsize=8)
    return figure


def _figure4(found: Results) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained", sharey=True)
    for axis, name in zip(axes, MARKS, strict=False):
        rows = [r for r in found["attack"] if r["attribute"] == name]
        x = [r["epsilon"] for r in rows]
        axis.plot(x, [r["success"][1] for r in rows], "o-", label="has it (ASR)")
        axis.plot(x, [r["success_without"][1] for r in rows], "s--", label="has it not")
        axis.axhline(0.5, color="black", linewidth=0.7)
        axis.axvline(1.0, color="black", linewidth=0.7, linestyle=":")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("eps at delta = 0.001")
    axes[0].set_ylabel("success of the attack")
    axes[0].legend(fontsize=8)
    return figure


EQUAL = {
    "male/female": "figure5",
    "social/less": "figure6 social",
    "work/non-work": "figure6 work",
    "home/out": "figure6",
}
"""The part of the results that has each attribute."""


def _figure5(found: Results) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained", sharex=True)
    for axis, (name, part) in zip(axes, EQUAL.items(), strict=True):
        for mechanism, mark in zip(("RR", "PL", "PG", "TM"), "os^D", strict=True):
            rows = [r for r in found[part] if r["mechanism"] == mechanism]
            points = sorted((r["loss_km"], r["epsilon"]) for r in rows if r["epsilon"] is not None)
            axis.plot(*zip(*points, strict=True), marker=mark, label=mechanism)
        best = sorted((r["optimum_km"], r["epsilon"]) for r in found[part] if r["optimum_verified"])
        axis.plot(*zip(*best, strict=True), "k:", label="optimum")
        axis.set(yscale="log", title=name, xlabel="expected loss (km)")
    axes[0].set_ylabel("eps at delta = 0.001")
    axes[0].legend(fontsize=8)
    return figure


def _epsilon(row: dict[str, Any]) -> float | None:
    return row["epsilon"]


def _kl(row: dict[str, Any]) -> float | None:
    """The larger way round of those that are finite."""
    return max((x for x in (row["kl"], row["kl_back"]) if x is not None), default=None)
