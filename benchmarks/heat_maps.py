"""Heat maps of a city from private reports: what a mechanism designed for them saves.

    python benchmarks/heat_maps.py run             # New York and Beijing, 100 surveys of each size
    python benchmarks/heat_maps.py table           # the table of docs/statistics.md
    python benchmarks/heat_maps.py figure          # docs/figures/heat-maps.svg

Cells of a square of 12 km around the median place. All mechanisms promise the same between cells,
are made for a uniform prior, and see the same people. Errors are means over surveys: half the sum
of the differences from the true shares (total variation), and the root of their mean square.
Results go to results/heat_maps.jsonl; what is there is not done again.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from given import add_files, settle
from privacy_games.store import Record, Store

import optmech as om
from optmech.analysis.surveys import nearest_distribution
from optmech.base.simplex import likeliest
from optmech.base.storage import write_atomically
from optmech.certificate.variance import estimator, spread_value

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "heat_maps.jsonl"
FIGURE = HERE.parent / "docs" / "figures" / "heat-maps.svg"
CITIES = {"New York": "fsq_nyc_checkins.csv", "Beijing": "geolife_beijing_11users.csv"}
SHOWN, SHOWN_PEOPLE = "New York", 20_000
WIDE, EPSILON, SEED = 12.0, 0.3, 51
"""km along an edge; ε per km."""
SIZES = (2_000, 20_000, 200_000)
UPDATED, STEPS = 1e-6, 2_000
"""Nats a report that may be left, and steps, where the iterative update ends."""
KM = om.distances.euclidean()
MADE = {
    "planar Laplace": "planar Laplace, iterative update",
    "least loss": "least loss, iterative update",
    "designed": "designed, iterative update",
    "unbiased": "designed, unbiased",
    "non-negative": "designed, nearest distribution",
    "guess": "everywhere the same",
}
Matrix = np.ndarray


def places(data: Path, city: str) -> Matrix:
    """Longitude and latitude of every check-in or fix."""
    with (data / CITIES[city]).open() as stream:
        rows = list(csv.DictReader(stream))
    if city == "Beijing":
        return np.array([(float(row["lon"]), float(row["lat"])) for row in rows])
    with (data / "fsq_nyc_pois.csv").open() as stream:
        known = {r["poi"]: (float(r["lon"]), float(r["lat"])) for r in csv.DictReader(stream)}
    return np.array([known[row["poi"]] for row in rows])


def shares(points: Matrix, side: int) -> Matrix:
    """Of the cells of the square, row by row from the south."""
    middle = np.median(points, axis=0)
    scale = [111.32 * np.cos(np.radians(middle[1])), 110.57]
    at = np.floor(((points - middle) * scale / WIDE + 0.5) * side).astype(int)
    at = at[((at >= 0) & (at < side)).all(axis=1)]
    counts = np.bincount(at[:, 1] * side + at[:, 0], minlength=side**2)
    return np.asarray(counts / counts.sum())


def mechanisms(side: int, gap: float) -> tuple[dict[str, Matrix], Record]:
    """Probabilities by cells and reports, and how good the designed ones are."""
    cells = om.Grid(side, side, cell=(WIDE / side, WIDE / side), unit="km")
    prior, promise = om.Prior.uniform(cells), [om.MetricPrivacy(EPSILON, KM)]
    goal = om.MinimizeVariance("histogram")
    begun = time.process_time()
    design = om.solve(om.Problem(prior, KM, objective=goal, constraints=promise), gap=gap)
    seconds = time.process_time() - begun
    single = om.solve(om.Problem(prior, KM, constraints=promise), gap=1e-3)
    made = {
        "planar Laplace": om.mechanisms.planar_laplace(cells, EPSILON).matrix,
        "least loss": single.mechanism.matrix,
        "designed": design.mechanism.matrix,
    }
    survey = design.problem.statement.survey
    assert survey is not None
    told = {name: spread_value(survey, np.asarray(m)) for name, m in made.items()}
    found = {
        "variances": {k: v if np.isfinite(v) else None for k, v in told.items()},
        "bound": design.variance_bound,
        "seconds": round(seconds, 1),
        "reports": {name: int((m.max(axis=0) > 0).sum()) for name, m in made.items()},
    }
    return {name: np.asarray(m) for name, m in made.items()}, found


def updated(matrix: Matrix, counts: Matrix) -> Matrix:
    """The likeliest shares, for every row of counts."""
    seen = matrix.max(axis=0) > 0
    total = counts.sum(axis=1, keepdims=True)
    return likeliest(matrix[:, seen], counts[:, seen] / total, UPDATED, STEPS)[0]


def surveys(true: Matrix, made: dict[str, Matrix], people: int, count: int) -> Record:
    """Mean errors of surveys, and the maps of the first."""
    rng = np.random.default_rng([SEED, people])
    drawn = rng.multinomial(people, true, size=count)
    found: dict[str, Matrix] = {}
    for name, matrix in made.items():
        rows = matrix / matrix.sum(axis=1, keepdims=True)
        counts = sum(rng.multinomial(drawn[:, s], rows[s]) for s in range(len(true)))
        found[name] = updated(matrix, np.asarray(counts))
        if name == "designed":
            near = estimator(matrix, np.full(len(true), 1 / len(true)))
            found["unbiased"] = counts / people @ near.T
            found["non-negative"] = np.array([nearest_distribution(v) for v in found["unbiased"]])
    found["guess"] = np.full((count, len(true)), 1 / len(true))
    out: Record = {}
    for name, values in found.items():
        off = values - true
        varied = float(np.abs(off).sum(axis=1).mean() / 2)
        root = float(np.sqrt((off**2).mean(axis=1)).mean())
        out[name] = {"variation": varied, "root": root, "first": values[0].round(5).tolist()}
    return out


def table(store: Store) -> str:
    """Total variation, and in brackets the root of the mean square, in per cent."""
    lines = ["| city, people | " + " | ".join(MADE.values()) + " |", "|---" * (len(MADE) + 1) + "|"]
    for record in store.records.values():
        task, errors = record["task"], record["errors"]
        cells = [f"{errors[n]['variation']:.3f} ({100 * errors[n]['root']:.2f})" for n in MADE]
        lines.append(f"| {task['city']}, {task['people']:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def drawn(store: Store) -> str:
    """Maps of one survey beside the truth."""
    record = next(
        r for r in store.records.values()
        if r["task"]["city"] == SHOWN and r["task"]["people"] == SHOWN_PEOPLE
    )  # fmt: skip
    side, edge, top, errors = 150, 12, 44, record["errors"]
    true = record["true"]
    panels = [("where they are", "", true)]
    panels += [
        (name, f"{errors[key]['variation']:.0%} misplaced", errors[key]["first"])
        for name, key in (
            ("planar Laplace", "planar Laplace"), ("least loss", "least loss"),
            ("designed for the map", "designed"),
        )
    ]  # fmt: skip
    most = max(true)
    inside = "".join(
        panel(edge + k * (side + edge), top, side, *shown, most) for k, shown in enumerate(panels)
    )
    width, height = len(panels) * (side + edge) + edge, side + top + 34
    words = (
        f"{SHOWN} from one private report each of {SHOWN_PEOPLE:,} people, "
        f"the same promise in all three: ε = {EPSILON:g} per km."
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
        f"width='{width}' height='{height}' font-family='sans-serif' font-size='13'>"
        "<title>A heat map by three mechanisms</title>"
        f"<rect width='100%' height='100%' fill='#fff'/>{inside}<text x='{width / 2:.0f}' "
        f"y='{height - 11}' text-anchor='middle' font-size='12'>{words}</text></svg>\n"
    )


def panel(
    left: int, top: int, side: int, title: str, said: str, values: list[float], most: float
) -> str:
    """Cells, darker for larger shares, of the same scale in all panels."""
    count = round(len(values) ** 0.5)
    step = side / count
    cells = "".join(
        f"<rect x='{(k % count) * step:.1f}' y='{side - (k // count + 1) * step:.1f}' "
        f"width='{step:.1f}' height='{step:.1f}' fill='{shade(value / most)}'/>"
        for k, value in enumerate(values)
    )
    return (
        f"<g transform='translate({left} {top})'><text y='-24'>{title}</text>"
        f"<text y='-8' font-size='11' fill='#555'>{said}</text>{cells}"
        f"<path d='M0 0h{side}v{side}h-{side}z' fill='none' stroke='#999'/></g>"
    )


def shade(share: float) -> str:
    """White to dark blue, by the root, so that small shares are seen."""
    level = min(1.0, max(0.0, share)) ** 0.5
    return "#" + "".join(
        f"{round(255 + level * (end - 255)):02x}" for end in (16, 54, 110)
    )  # fmt: skip


def run(args: argparse.Namespace, store: Store, made: Callable[[], Any]) -> None:
    """Every city and size that is not there yet."""
    for city in CITIES:
        true = shares(places(args.data, city), args.side)
        for people in SIZES:
            task = {"city": city, "people": people, "side": args.side, "surveys": args.surveys}
            if store.find(task) is None:
                matrices, told = made()
                errors = surveys(true, matrices, people, args.surveys)
                store.add(task, {**told, "true": true.round(5).tolist(), "errors": errors})
                print(f"{city}, {people:,}: designed, unbiased "
                      f"{errors['unbiased']['variation']:.4f}", file=sys.stderr)  # fmt: skip
    print(table(store))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table", "figure"))
    parser.add_argument("--side", type=int, default=6, help="cells along an edge")
    parser.add_argument("--surveys", type=int, default=100)
    parser.add_argument("--gap", type=float, default=1e-2)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.what == "run":
        settle(args, *CITIES.values(), "fsq_nyc_pois.csv")
    store = Store(args.results)
    kept: list[Any] = []

    def made() -> Any:
        if not kept:
            kept.append(mechanisms(args.side, args.gap))
        return kept[0]

    if args.what == "run":
        run(args, store, made)
    elif args.what == "table":
        print(table(store))
    else:
        write_atomically(args.figure, drawn(store).encode())
        print(args.figure.name, args.figure.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
