"""The pages of the gallery: every problem file with its picture and how long it takes.

    python benchmarks/gallery.py [NAME ...]

writes ``docs/gallery.md``, ``docs/gallery-more.md`` and ``docs/gallery/*.svg``; with names only
these are solved again. Times are processor seconds of this run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import optmech as om
from optmech.base.machine import data_folder
from optmech.base.storage import write_atomically
from optmech.files import read_problem
from optmech.files.gallery import gallery_names
from optmech.mechanisms.targets.design import TargetDesign
from optmech.spaces.labels import label_text

sys.path.append(str(Path(__file__).resolve().parent))
import svg

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES = DOCS / "gallery"
RECORDS = FIGURES / "records.json"
_HEAD = """\
# Gallery
Every problem that comes with optmech: the command, the picture, the loss of what was designed
for it, and the file. Twelve that show one idea each are here, [the others](gallery-more.md) on a
page of their own. Seconds are processor seconds on one core, measured by
`python benchmarks/gallery.py`, which writes both pages.

A picture shows the prior, or the secrets, on the left. On the right are the reports of the
likeliest secret, darker for more. Where there is no map, it is the matrix, with a row for every
secret.

```sh
optmech problems
optmech solve metric -o metric.json
optmech report metric.json
```

In Python, for any of them:

```python
import optmech as om

problem = om.load_problem("metric")
design = om.solve(problem)
print(design)
report = design.mechanism.sample("home")
om.report(design, "metric.html")
```
"""
_MORE = """\
# More of the gallery
Further problems, like those of the [gallery](gallery.md), with their commands, pictures and files.
"""


FIRST = {
    "montreal": (
        "All 249 zones of a city's shared cars: a report from one zone is at most twice as "
        "likely as from a zone 1 km away."
    ),
    "square-everywhere": (
        "A promise for every point of a square, and not only for the places that were listed."
    ),
    "road-network": "Privacy fades along the roads, as people move, and not by straight lines.",
    "joint": (
        "Two promises at once: reports of near places are alike, and the best attack errs by "
        "a stated distance."
    ),
    "least-leakage": (
        "The other way round: reports may be wrong in one of three cases, and tell as little "
        "as possible."
    ),
    "medical-tree": (
        "Diagnoses are no places: two kinds of flu are confused sooner than flu and a fracture."
    ),
    "ages": "Ages in classes of five years, where neighbouring classes are hard to tell apart.",
    "unbiased": "A rating is reported so that averages of many reports are right.",
    "home-out": "No single place is hidden, but whether somebody is at home.",
    "coupling": (
        "The reports of a population are moved onto a stated distribution, by the least "
        "distance, so that they look the same whoever sends them."
    ),
    "pufferfish": "How many of four people have the flu, where they catch it together.",
    "policy-graph": "Places of one kind must not be told apart, while the kinds may be.",
}
"""The entries of the first page, and what each shows."""


def main() -> None:
    """Solve what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every problem")
    parser.add_argument("--only-print", action="store_true", help="write nothing")
    args = parser.parse_args()
    names = args.names
    if args.only_print:
        for name in names or gallery_names():
            print(name, json.dumps(solved(name)[0]), flush=True)
        return
    FIGURES.mkdir(exist_ok=True)
    known = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    for name in names or gallery_names():
        print(name, flush=True)
        record, picture = solved(name)
        known[name] = record
        write_atomically(FIGURES / f"{name}.svg", picture.encode())
    guides()
    known = {name: known[name] for name in gallery_names() if name in known}
    write_atomically(RECORDS, (json.dumps(known, indent=1, ensure_ascii=False) + "\n").encode())
    for name, text in pages(known).items():
        write_atomically(DOCS / name, text.encode())


def pages(known: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The text of both pages, from what was measured of every problem."""
    further = [name for name in known if name not in FIRST]
    parts = {"gallery.md": (_HEAD, FIRST), "gallery-more.md": (_MORE, further)}
    return {
        page: "\n".join([head, *(section(name, known[name]) for name in names)])
        for page, (head, names) in parts.items()
    }


def solved(name: str) -> tuple[dict[str, Any], str]:
    """What the page says of a problem, and its picture."""
    file = read_problem(name)
    begin = time.process_time()
    design: Any
    if file.transport is not None:
        design = file.transport.solve()
    else:
        design = om.solve(file.problem, file.profile or "auto")
    seconds = time.process_time() - begin
    record = {
        "title": file.title,
        "source": file.source,
        "transport": file.transport is not None,
        "secrets": len(file.problem.secrets),
        "status": design.status,
        "loss": design.loss,
        "gap": design.gap,
        "seconds": round(seconds, 2 if seconds < 10 else 0),
    }
    if isinstance(file.problem.objective, om.MinimizeVariance):
        record["variance"] = design.variance
    return record, picture_of(design)


def picture_of(design: Any) -> str:
    """Two panels in one drawing: what is secret, and what is reported."""
    if isinstance(design, TargetDesign):
        mechanism = design.mechanisms[0]
        return panels(svg.shades(mechanism.matrix, "p(o|s) for the first input"))
    prior = design.problem.prior
    place = int(prior.weights.argmax())
    secrets, observables = design.problem.secrets, design.problem.observables
    if design.mesh is not None:
        points = secrets.require_points("draw")
        row = design.mechanism.at(points[[place]])[0]
    else:
        row = design.matrix[place]
    if secrets.points is None or observables.points is None:
        return panels(svg.shades(np.asarray(design.matrix), "p(o|s)"))
    return panels(svg.picture(secrets, prior.weights), svg.picture(observables, np.asarray(row)))


def panels(*pictures: str) -> str:
    """Drawings beside each other, as a file of their own."""
    parts, at = [], 0.0
    for picture in pictures:
        width = float(picture.split("width='")[1].split("'")[0])
        parts.append(picture.replace("<svg ", f"<svg x='{at:.0f}' y='0' ", 1))
        at += width + 20
    tall = max(float(p.split("height='")[1].split("'")[0]) for p in pictures)
    size = f"width='{at - 20:.0f}' height='{tall:.0f}'"
    inside = "".join(parts)
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{inside}</svg>\n"


def number() -> None:
    """The mechanism of the guide about a number: a row for a number, a column for a report."""
    line = om.Mesh.line(0, 1, 20)
    promise = om.DifferentialPrivacy(1, everywhere=line)
    error, prior = om.distances.euclidean(), om.Prior.uniform(line.domain)
    problem = om.Problem(prior, error, constraints=[promise], objective="worst_loss")
    matrix = om.solve(problem).mechanism.matrix
    drawn = panels(svg.shades(matrix, "numbers and reports"))
    write_atomically(FIGURES / "number.svg", drawn.encode())


def guides() -> None:
    """The drawings of the guides."""
    cells = om.Grid(rows=4, columns=5, cell=(3.0, 2.0), unit="km")
    visits = [9, 1, 0, 2, 1, 4, 8, 2, 1, 0, 3, 6, 12, 2, 1, 1, 2, 5, 3, 2]
    km = om.distances.euclidean()
    prior = om.Prior.from_counts(cells, visits)
    design = om.solve(om.Problem(prior, km, constraints=[om.MetricPrivacy(0.4, km)]))
    write_atomically(FIGURES / "first-design.svg", picture_of(design).encode())
    rng = np.random.default_rng(7)
    xy = np.column_stack([rng.normal(-74.05, 0.02, 500), rng.normal(40.72, 0.015, 500)])
    city = om.Grid(6, 6, bounds=(-74.11, 40.67, -73.99, 40.77))
    home = om.Prior.from_points(city, xy, smoothing=1.0)
    found = om.solve(om.Problem(home, km, constraints=[om.MetricPrivacy(0.5, km)]))
    reports = om.protect(found, xy, rows_are_people=True, outside="nearest", seed=1).table
    after = np.bincount(city.locate(reports), minlength=len(city)).astype(float)
    before = np.bincount(np.maximum(city.locate(xy), 0), minlength=len(city)).astype(float)
    drawn = panels(svg.picture(city, before), svg.picture(city, after))
    write_atomically(FIGURES / "protecting.svg", drawn.encode())
    number()
    curve()


def curve() -> None:
    """Loss against ε, as the notebook has it."""
    cells, km = om.Grid(4, 4, unit="km"), om.distances.euclidean()
    prior = om.Prior.from_counts(cells, [4, 1, 1, 2, 1, 6, 9, 1, 2, 8, 3, 1, 1, 1, 2, 5])
    designs = [
        om.solve(om.Problem(prior, km, constraints=[om.MetricPrivacy(rate, km)]))
        for rate in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    ]
    om.plots.save(om.plots.tradeoff(designs), FIGURES / "notebook-frontier.svg")


def section(name: str, record: dict[str, Any]) -> str:
    """A problem on the page."""
    text = (data_folder("problems") / f"{name}.toml").read_text(encoding="utf-8").strip()
    unit = f"{record['seconds']:g} s"
    gap = "exact" if record["gap"] == 0 else f"gap {record['gap']:.1g}"
    command = "transport" if record["transport"] else "solve"
    varies = f"variance {record['variance']:.6g}, " if "variance" in record else ""
    lines = [
        f"## {record['title']}",
        *([FIRST[name], ""] if name in FIRST else []),
        f"![What is secret, and what is reported: {escape(record['title'])}](gallery/{name}.svg)",
        "",
        f"`optmech {command} {name}`: {label_text(record['secrets'])} secrets, {varies}loss "
        f"{record['loss']:.6g} ({record['status']}, {gap}), {unit}.",
        "",
        f'??? example "{name}.toml"',
        "    ```toml",
        *(f"    {line}".rstrip() for line in text.splitlines()),
        "    ```",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
