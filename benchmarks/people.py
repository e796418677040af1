"""The picture of the README: where people are, and where their reports say that they are.

    python benchmarks/people.py

writes ``docs/figures/people.svg``, and with ``--paper`` also ``paper/people.png`` (by Chromium).
People are drawn at random, the same every time; the design is ``om.solve``'s for a grid over them.
"""

from __future__ import annotations

import argparse
import math
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np

import optmech as om
from optmech.base.storage import write_atomically

ROOT = Path(__file__).resolve().parent.parent
FIGURE = ROOT / "docs" / "figures" / "people.svg"
PAPER = ROOT / "paper" / "people.png"
_SIDE, _EDGE, _TOP = 300, 14, 34
"""Pixels: of a map, around it, above it."""
_EPSILON = 1.0


def drawn() -> str:
    """Two maps of a town of 8 x 8 km: a dot for every person, a disc for every reported cell."""
    rng = np.random.default_rng(4)
    centres = np.array([(2.6, 5.2), (5.4, 3.0), (4.0, 4.2)])
    people = centres[rng.integers(0, 3, 500)] + rng.normal(0, (0.9, 0.75), (500, 2))
    people = people[((people > 0) & (people < 8)).all(axis=1)]
    cells = om.Grid(12, 12, cell=(8 / 12, 8 / 12), unit="km")
    km = om.distances.euclidean()
    prior = om.Prior.from_points(cells, people, smoothing=1.0)
    design = om.solve(om.Problem(prior, km, constraints=[om.MetricPrivacy(_EPSILON, km)]))
    drawn_at = om.protect(design, people, rows_are_people=True, keep_order=True, seed=4).table
    away = float(np.linalg.norm(people - drawn_at, axis=1).mean())
    reports = Counter(map(tuple, drawn_at.tolist()))
    shown = "".join(f"<circle {at(x, y)} r='1.6'/>" for x, y in people)
    # a disc's area is that of as many dots
    discs = "".join(
        f"<circle {at(x, y)} r='{1.6 * math.sqrt(count):.1f}'/>"
        for (x, y), count in sorted(reports.items())
    )
    factor = f"{math.exp(_EPSILON):.1f}"
    left = panel(0, f"{len(people)} people", shown, "#b3470f")
    right = panel(_SIDE + _EDGE, f"their reports, {away:.1f} km away on average", discs, "#1f5fa8")
    width, height = 2 * _SIDE + 3 * _EDGE, _SIDE + _TOP + 40
    words = (
        f"Cells 1 km apart make any report at most {factor} times as likely; "
        "no mechanism that keeps this has a smaller expected loss."
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
        f"width='{width}' height='{height}' font-family='sans-serif' font-size='13'>"
        f"<title>People and their reports</title><rect width='100%' height='100%' fill='#fff'/>"
        f"{left}{right}<text x='{width / 2:.0f}' y='{height - 10}' text-anchor='middle' "
        f"font-size='12'>{words}</text></svg>\n"
    )


def at(x: float, y: float) -> str:
    return f"cx='{x / 8 * _SIDE:.1f}' cy='{(1 - y / 8) * _SIDE:.1f}'"


def panel(left: int, title: str, marks: str, colour: str) -> str:
    """A map with its title, faint edges of cells, and a bar of 2 km."""
    step = _SIDE / 12
    lines = "".join(f"M{k * step:.0f} 0V{_SIDE}M0 {k * step:.0f}H{_SIDE}" for k in range(13))
    bar = f"M8 {_SIDE - 8}h{_SIDE / 4:.0f}"
    return (
        f"<g transform='translate({left + _EDGE} {_TOP})'><text y='-10'>{title}</text>"
        f"<path d='{lines}' stroke='#d8dde3' fill='none'/>"
        f"<g fill='{colour}' fill-opacity='0.7'>{marks}</g>"
        f"<path d='{bar}' stroke='#222' stroke-width='2'/>"
        f"<text x='12' y='{_SIDE - 13}' font-size='11'>2 km</text></g>"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path, default=FIGURE)
    parser.add_argument("--paper", action="store_true", help="also paper/people.png, by Chromium")
    args = parser.parse_args()
    write_atomically(args.figure, drawn().encode())
    print(args.figure.name, args.figure.stat().st_size, "bytes")
    if args.paper:
        options = [
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--force-device-scale-factor=2",
        ]
        size = f"--window-size={2 * _SIDE + 3 * _EDGE},{_SIDE + _TOP + 40}"
        subprocess.run(
            ["chromium", *options, size, f"--screenshot={PAPER}", args.figure.as_uri()], check=True
        )


if __name__ == "__main__":
    main()
