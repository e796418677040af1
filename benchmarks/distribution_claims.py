"""What DP19 section 7 and Appendix A claim, held against the results on open data."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

Rows = list[dict[str, Any]]
Results = dict[str, Rows]
Claim = tuple[str, str, str]
"""What the paper says, the verdict, and the figures."""

MOSTLY = 2 / 3
"""A claim that holds in this share of the cases counts as confirmed with qualification."""
NOTHING = 0.05
"""An attack that is right this much more often than a coin has learnt nothing to speak of."""
ENOUGH = 500
"""Observations of the smaller class, below which chance decides the ε of a period."""
SIMILAR = 1.5


def verdict(holds: Iterable[bool]) -> str:
    """In all cases, in two thirds of them, or less."""
    found = list(holds)
    if all(found):
        return "confirmed"
    return "with qualification" if sum(found) / len(found) >= MOSTLY else "not confirmed"


def claims(results: Results) -> list[Claim]:
    """All of them, in the order of the paper."""
    return [claim for make in _CLAIMS for claim in make(results)]


def _panels(results: Results) -> Iterator[Claim]:
    """Figs. 2 and 9 to 12, (a) to (c)."""
    for panel, text, falls in (
        ("a", "More dummies k, stronger privacy (Figs. 2a, 9a to 12a)", True),
        ("b", "Larger eps_A, weaker privacy (Figs. 2b, 9b to 12b)", False),
        ("c", "Larger radius r, stronger privacy (Figs. 2c, 9c to 12c)", True),
    ):
        curves = defaultdict(list)
        for row in results["figure2"]:
            if row["panel"] == panel:
                curves[row["attribute"]].append(
                    math.inf if row["epsilon"] is None else row["epsilon"]
                )
        steps = {
            name: [b < a if falls else b > a for a, b in itertools.pairwise(curve)]
            for name, curve in curves.items()
        }
        both = [step for of in steps.values() for step in of]
        yield (
            text,
            verdict(both),
            f"in {sum(both)} of {len(both)} steps, {len(steps)} attributes",
        )
    least = {
        row["attribute"]: row["epsilon"]
        for row in results["attack"]
        if row["eps_A_per_degree"] == 1.0
    }
    yield (
        "For r = 0.020 degrees eps does not converge to 0 as eps_A does (footnote 5)",
        verdict(value > 0.05 for value in least.values()),
        "at eps_A = 1: " + ", ".join(f"{v:.3f} ({name})" for name, v in least.items()),
    )


def _losses(results: Results) -> Iterator[Claim]:
    """Fig. 2d."""
    table = {
        (row["attribute"], row["radius_degrees"], row["eps_A_per_degree"]): row["loss_nearest_km"]
        for row in results["losses"]
        if "k" not in row
    }
    noise, radius = [], []
    for (name, r, scale), loss in table.items():
        noise += [loss > v for (n, q, s), v in table.items() if (n, q) == (name, r) and s > scale]
        radius += [loss < v for (n, q, s), v in table.items() if (n, s) == (name, scale) and q > r]
    yield (
        "Larger eps_A, smaller loss (Fig. 2d)",
        verdict(noise),
        f"in {sum(noise)} of {len(noise)} pairs of settings",
    )
    yield (
        "Smaller radius, smaller loss (Fig. 2d)",
        verdict(radius),
        f"in {sum(radius)} of {len(radius)} pairs of settings",
    )
    more = [row["loss_nearest_km"] for row in results["losses"] if "k" in row]
    yield (
        "More dummies, smaller loss",
        verdict(b < a for a, b in itertools.pairwise(more)),
        " km, ".join(f"{loss:.3f}" for loss in more) + " km, to the nearest point",
    )


def _attack(results: Results) -> Iterator[Claim]:
    """Fig. 4: the largest eps up to 1 that was looked at, in either class."""
    seen: dict[str, dict[str, Any]] = {}
    for row in results["attack"]:
        if row["epsilon"] <= 1:
            seen[row["attribute"]] = row
    rates = {name: (row["success"][1], row["success_without"][1]) for name, row in seen.items()}
    yield (
        "eps = 1 is appropriate for ASR = 0.5 (Fig. 4), also for other attributes",
        verdict(max(pair) <= 0.5 + NOTHING for pair in rates.values()),
        "; ".join(
            f"{name}: {rates[name][0]:.3f} and {rates[name][1]:.3f} at eps {row['epsilon']:.2f}"
            for name, row in seen.items()
        ),
    )


def _mechanisms(results: Results) -> Iterator[Claim]:
    """Figs. 5 and 6."""
    rows = results["equal loss"]
    names = list(dict.fromkeys(row["attribute"] for row in rows))
    beaten = [
        row["TM"] < min(row["RR"], row["PL"], row["PG"]) for row in rows if row["TM"] is not None
    ]
    points = [
        row["loss_all_km"]
        for part in ("figure5", "figure6", "figure6 social", "figure6 work")
        for row in results[part]
        if row["mechanism"] == "TM"
    ]
    least = min(min(r["RR"], r["PL"], r["PG"]) / r["TM"] for r in rows if r["TM"] is not None)
    yield (
        "TM has less eps than RR, PL and PG at the same loss (Figs. 5, 6)",
        verdict(beaten),
        f"in {sum(beaten)} of {len(beaten)} cases, at 0.7 km to the nearest point, by {least:.1f} "
        f"times at least; not where all points count: it then loses {min(points):.1f} km and more",
    )
    for text, other, than in (
        ("PG has more eps than PL at the same loss (Figs. 5, 6)", "PG", "PL"),
        ("RR has more eps than PL at the same loss (Figs. 5, 6)", "RR", "PL"),
    ):
        for name in names:
            ratios = [row[other] / row[than] for row in rows if row["attribute"] == name]
            yield (
                f"{text}: {name}",
                verdict(ratio > 1 for ratio in ratios),
                f"{other}/{than} {min(ratios):.2f} to {max(ratios):.2f} between "
                f"{rows[0]['loss_km']:g} and {rows[-1]['loss_km']:g} km",
            )


def _attributes(results: Results) -> Iterator[Claim]:
    """Appendix A.1."""
    eps: dict[str, dict[tuple[Any, ...], float]] = defaultdict(dict)
    for row in results["figure2"]:
        eps[row["attribute"]][_key(row)] = math.inf if row["epsilon"] is None else row["epsilon"]
    male = eps["male/female"]
    w1 = {row["attribute"]: row["w_1"] for row in results["overview"]}
    for name in ("home/out", "north/south"):
        more = [eps[name][key] > value for key, value in male.items()]
        yield (
            f"{name} needs more noise than male/female, as its distributions are farther apart "
            "(A.1)",
            verdict(more),
            f"larger eps in {sum(more)} of {len(more)} settings; W_1 {w1[name]:.2f} km "
            f"against {w1['male/female']:.2f}",
        )


def _hours(results: Results) -> Iterator[Claim]:
    """Appendix A.2, of periods with enough observations where chance would decide."""
    periods: dict[str, Rows] = defaultdict(list)
    for row in results["hours"]:
        if "epsilon" in row:
            periods[row["attribute"]].append(row)
    spread = {
        name: (min(r["epsilon"] for r in of), max(r["epsilon"] for r in of))
        for name, of in periods.items()
    }
    yield (
        "eps depends on the period of the day (A.2)",
        verdict(high > SIMILAR * low for low, high in spread.values()),
        ", ".join(f"{low:.2f} to {high:.2f} ({name})" for name, (low, high) in spread.items()),
    )
    for name in ("male/female", "social/less"):
        of = [r for r in periods[name] if min(r["has"], r["has_not"]) >= ENOUGH]
        order = sorted(of, key=lambda r: -r["epsilon"])
        place = [r["hours"] for r in order].index("06h-11h")
        yield (
            f"{name} needs more noise in 06h-11h (A.2)",
            ("confirmed", "with qualification", "not confirmed", "not confirmed")[place],
            "in this order: " + ", ".join(f"{r['hours']} ({r['epsilon']:.2f})" for r in order),
        )
    low, high = spread["home/out"]
    yield (
        "home/out needs a similar amount of noise in any period (A.2)",
        verdict([high <= SIMILAR * low]),
        ", ".join(f"{r['hours']}: {r['epsilon']:.2f}" for r in periods["home/out"]),
    )


def _bounds(results: Results) -> Iterator[Claim]:
    """Table 2."""
    rows = [row for row in results["table2"] if row["k"] == 10]
    loose = [row["theorem_3"] is None or row["theorem_3"] > 10 * row["exact"][1] for row in rows]
    yield (
        "Theorem 3 gives loose upper bounds only (Table 2)",
        verdict(loose),
        f"k = 10: nothing in {sum(row['theorem_3'] is None for row in rows)} of {len(rows)} cases, "
        "more than ten times the exact eps in the others",
    )


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["k"], row["eps_A_per_degree"], row["radius_degrees"]


_CLAIMS = (_panels, _losses, _attack, _mechanisms, _attributes, _hours, _bounds)
