"""Puts the results of distribution_privacy.py and distribution_figures.py into
docs/distribution-privacy.md, and draws its figures.

    python benchmarks/distribution_tables.py
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from distribution_claims import Results, claims
from distribution_plots import draw
from privacy_games.pages import filled, table

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "distribution-privacy.md"
PAPER = {"male/female": "2", "social/less": "2", "work/non-work": "2", "home/out": "3"}
"""Table 3 of the paper, Manhattan."""


def results() -> Results:
    """The rows of every part."""
    out: Results = {}
    for name in ("distribution_privacy", "distribution_figures"):
        parts = json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))
        out.update({part: found["rows"] for part, found in parts.items()})
    return out


def sections(found: Results) -> dict[str, str]:
    """The generated parts of the page, by name."""
    return {
        "overview": _overview(found),
        "carried": _carried(found),
        "pointwise": _pointwise(found),
        "claims": table(("the paper says", "verdict", "here"), claims(found)),
        "table2": _table2(found),
        "table3": _table3(found),
        "figure2": _figure2(found),
        "losses": _losses(found),
        "figure3": _figure3(found),
        "attack": _attack(found),
        "equal": _equal(found),
        "optima": _optima(found),
        "hours": _hours(found),
    }


def _overview(found: Results) -> str:
    head = ("attribute", "total variation", "W_1 (km)", "W_inf (km)", "diameter (km)")
    keys = ("total_variation", "w_1", "w_inf", "diameter")
    rows = [(row["attribute"], *(_number(row[key]) for key in keys)) for row in found["overview"]]
    return table(head, rows)


def _carried(found: Results) -> str:
    rows = []
    for row in found["carried"]:
        values = [
            f"{_number(at['upper'])} ({_number(at['epsilon'] * row['w_inf'])})"
            for at in row["carried"]
        ]
        rows.append((row["attribute"], *values))
    names = [f"eps {at['epsilon']:g} per km" for at in found["carried"][0]["carried"]]
    return table(("attribute", *names), rows)


def _pointwise(found: Results) -> str:
    rows = [
        (
            row["attribute"],
            *(" / ".join(_number(row[kind][how]) for how in ("exact", "rows", "metric"))
              for kind in ("tv", "kl")),
            " / ".join(_number(row["delta"][how]) for how in ("exact", "rows")),
        )
        for row in found["pointwise"]
    ]  # fmt: skip
    head = ("attribute", "total variation", "KL divergence", "delta at eps 0.5")
    return table(head, rows)


def _table2(found: Results) -> str:
    rows = [
        (
            row["attribute"],
            f"{row['k']}",
            f"{row['delta']:g}",
            _number(row["theorem_3"], "none"),
            _number(row["exact"][1]),
        )
        for row in found["table2"]
    ]
    return table(("attribute", "k", "delta", "Theorem 3", "exact"), rows)


def _table3(found: Results) -> str:
    rows = [
        (row["attribute"], f"{row['epsilon']:g}", f"{row['k']}", PAPER[row["attribute"]])
        for row in found["table3"]
    ]
    return table(("attribute", "eps", "k here", "k in the paper (Manhattan)"), rows)


def _figure2(found: Results) -> str:
    names = list(dict.fromkeys(row["attribute"] for row in found["figure2"]))
    cells: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in found["figure2"]:
        key = (row["k"], row["eps_A_per_degree"], row["radius_degrees"])
        kl = f"{_number(row['kl'], '∞')}, {_number(row['kl_back'], '∞')}"
        cells.setdefault(key, {})[row["attribute"]] = f"{_number(row['epsilon'], 'none')} ({kl})"
    rows = [
        (f"{k}", f"{scale:g}", f"{radius:g}", *(of[name] for name in names))
        for (k, scale, radius), of in cells.items()
    ]
    return table(("k", "eps_A per degree", "r (degrees)", *names), rows)


def _losses(found: Results) -> str:
    rows_ = [row for row in found["losses"] if "k" not in row]
    scales = list(dict.fromkeys(row["eps_A_per_degree"] for row in rows_))
    cells: dict[tuple[str, float], list[str]] = {}
    for row in rows_:
        key = (row["attribute"], row["radius_degrees"])
        cells.setdefault(key, []).append(_number(row["loss_nearest_km"]))
    rows = [(name, f"{radius:g}", *of) for (name, radius), of in cells.items()]
    return table(("attribute", "r (degrees)", *(f"eps_A = {s:g}" for s in scales)), rows)


def _figure3(found: Results) -> str:
    areas = list(dict.fromkeys(row["area"] for row in found["figure3"]))
    cells: dict[int, list[str]] = {}
    for row in found["figure3"]:
        cells.setdefault(row["k"], []).append(_number(row["epsilon"][1]))
    return table(("k", *areas), [(f"{k}", *of) for k, of in cells.items()])


def _attack(found: Results) -> str:
    rows = [
        (
            row["attribute"],
            f"{row['eps_A_per_degree']:g}",
            _number(row["epsilon"]),
            f"{row['success'][1]:.3f}",
            f"{row['success_without'][1]:.3f}",
            f"{row['accuracy']:.3f}",
        )
        for row in found["attack"]
    ]
    head = ("attribute", "eps_A per degree", "eps", "ASR, has it", "has it not", "mean of both")
    return table(head, rows)


def _equal(found: Results) -> str:
    kinds = ("RR", "PL", "PG", "TM")
    rows = [
        (
            row["attribute"],
            f"{row['loss_km']:g}",
            *(_number(row[kind], "") for kind in kinds),
            f"{row['PG'] / row['PL']:.2f}",
        )
        for row in found["equal loss"]
    ]
    return table(("attribute", "loss (km)", *kinds, "PG/PL"), rows)


def _optima(found: Results) -> str:
    parts = {
        "male/female": "figure5",
        "home/out": "figure6",
        "social/less": "figure6 social",
        "work/non-work": "figure6 work",
    }
    rows = []
    for name, part in parts.items():
        for row in found[part]:
            loss = _number(row["loss_km"])
            if "loss_all_km" in row:
                loss += f" ({_number(row['loss_all_km'])})"
            optimum = _number(row["optimum_km"])
            parameter = f"{row['parameter']:g}"
            rows.append((name, row["mechanism"], parameter, _number(row["epsilon"]), loss, optimum))
    head = ("attribute", "mechanism", "parameter", "eps", "loss (km)", "optimum (km)")
    return table(head, rows)


def _hours(found: Results) -> str:
    rows = [
        (
            row["attribute"],
            row["hours"],
            f"{row['has']:,}",
            f"{row['has_not']:,}",
            _number(row["epsilon"]) if "epsilon" in row else "",
            _number(row["shuffled"]) if "epsilon" in row else "",
        )
        for row in found["hours"]
    ]
    head = ("attribute", "hours", "has it", "has it not", "eps", "eps of shuffled labels")
    return table(head, rows)


def _number(value: float | None, none: str = "") -> str:
    return none if value is None else f"{value:.4g}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    page = PAGE.read_text(encoding="utf-8")
    made = filled(page, sections(results()))
    if parser.parse_args().check:
        raise SystemExit("not what the results say" if made != page else None)
    draw(results(), PAGE.parent / "figures")
    PAGE.write_text(made, encoding="utf-8")
