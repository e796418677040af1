"""What each way to approximate an optimal mechanism costs, and what it still promises.

    python benchmarks/approximations.py                           # ten users, 300 cells
    python benchmarks/approximations.py --grid small --users 12   # 40 cells
    python benchmarks/approximations.py --joint --users 1         # thresholds beside d_m: PG Fig. 8
    python benchmarks/approximations.py --table          # the tables of docs/approximations.md

Metric privacy of 0.6 per km, Hamming loss, users as in privacy_games. Results go to
results/approximations.jsonl as they come; what is there is not done again.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from given import add_files, settle
from privacy_games.pages import filled, table
from privacy_games.store import Record, Store
from privacy_games.users import EUCLIDEAN, FILES, GRIDS, HAMMING, City

import optmech as om
from optmech.lp.inequalities import Inequalities, compile_lp

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "approximations.jsonl"
PAGE = HERE.parent / "docs" / "approximations.md"
EPSILON = 0.6
BINDING = 0.5
"""d_m lies this part of the way from what metric privacy gives by itself to d_max."""
THRESHOLDS = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0)
WINDOWS = (1.0, 3.0)
"""km, thresholds of both kinds at once, where no observable can stand in for another."""
LIMIT = 600.0
"""Seconds for one approximation; the best verified mechanism by then counts."""
GENERAL_LIMIT = 60.0
"""Of general solvers on programs that are too large for them."""
COARSEST = 4
EXACT = tuple(name for name in om.Profile().reductions if name != "implied-pairs")
PROMISES = {
    "exact": "ε, and the optimum to the gap",
    "threshold": "ε of near pairs; of all pairs the true ε",
    "both thresholds": "ε of near pairs in windows; of all pairs the true ε",
    "support": "ε",
    "observables": "ε",
    "coarse": "ε",
    "spanner": "ε, and the gap to the optimum",
    "resolution": "ε, and the gap to the optimum",
    "early stop": "ε, and the gap to the optimum",
    "cvxpy": "ε, and the gap to the optimum",
    "coarse, cvxpy": "ε",
    "planar_laplace": "ε",
    "exponential": "ε",
}
"""What a mechanism of each method still has, once it is returned."""
Made = tuple[om.Mechanism, Record]
Attempt = tuple[str, Any, Callable[[], Made]]


def approximate(city: City, user: int, store: Store, joint: bool) -> None:
    """Every approximation of the metric problem, or thresholds of the joint one."""
    prior = city.prior(user)
    exact = _problem(prior)
    design = None
    for method, parameter, attempt in _joint(city, user) if joint else _attempts(city, prior):
        task = {"grid": city.grid, "user": user, "method": method, "parameter": parameter}
        if store.find(task) is None:
            design = design or om.solve(exact)
            found = store.add(task, _measured(prior, design, attempt))
            print(user, method, parameter, found.get("loss", found.get("failed")), flush=True)


def _problem(prior: om.Prior, *constraints: Any, observables: Any = None) -> om.Problem:
    given = constraints or (om.MetricPrivacy(EPSILON, EUCLIDEAN),)
    return om.Problem(prior, HAMMING, observables, constraints=given)


def _measured(prior: om.Prior, exact: om.Design, attempt: Callable[[], Made]) -> Record:
    started, processor = time.perf_counter(), time.process_time()
    try:
        m, more = attempt()
    except om.OptmechError as error:
        return {"failed": str(error).splitlines()[0]}
    seconds = time.perf_counter() - started
    return {
        "seconds": round(seconds, 3),
        "cpu": round(time.process_time() - processor, 3),
        "loss": om.measures.expected_loss(m, prior, HAMMING),
        "epsilon": _finite(om.measures.epsilon(m, EUCLIDEAN)),
        "optimal": om.attacks.optimal_attack(m, prior, EUCLIDEAN).error,
        "exact_loss": exact.loss,
        "exact_bound": exact.lower_bound,
        **more,
    }


def _attempts(city: City, prior: om.Prior) -> Iterator[Attempt]:
    metric = _problem(prior)
    yield "exact", None, lambda: _solved(metric)
    for far in THRESHOLDS:
        cut = om.MetricPrivacy(EPSILON, EUCLIDEAN, threshold=far)
        yield "threshold", far, lambda cut=cut: _solved(_problem(prior, cut))
    for far in WINDOWS:
        both = om.MetricPrivacy(EPSILON, EUCLIDEAN, threshold=far, observable_threshold=far)
        given = _problem(prior, both)
        yield "both thresholds", far, lambda given=given: _solved(given, limit=GENERAL_LIMIT)
    near = om.Support(city.distances <= THRESHOLDS[-1])
    both = om.MetricPrivacy(EPSILON, EUCLIDEAN), near
    yield "support", THRESHOLDS[-1], lambda: _solved(_problem(prior, *both))
    for count in (5, 10):
        yield "observables", count, lambda count=count: _most_visited(city, prior, count)
    for side in (2, COARSEST):
        yield "coarse", side, lambda side=side: _coarse(city, prior, side)
    for stretch in (1.05, 1.2):
        profile = om.Profile(reductions=(*EXACT, f"spanner:{stretch}"), gap=1e-6)
        yield "spanner", stretch, lambda profile=profile: _solved(metric, profile)
    yield "resolution", 75, lambda: _solved(metric, om.Profile(resolution=75))
    for gap in (1e-2, 1e-3):
        profile = om.Profile(engine="structured", gap=gap)
        yield "early stop", gap, lambda profile=profile: _solved(metric, profile)
    cvxpy = om.Profile(engine="cvxpy", solver="HIGHS")
    yield "cvxpy", None, lambda: _solved(metric, cvxpy, GENERAL_LIMIT)
    yield "coarse, cvxpy", COARSEST, lambda: _coarse(city, prior, COARSEST, cvxpy)
    for name in ("planar_laplace", "exponential"):
        yield name, "remapped", lambda name=name: _known(name, prior)


def _joint(city: City, user: int) -> Iterator[Attempt]:
    """PG Appendix C: thresholds of both kinds beside a distortion constraint."""
    prior = city.prior(user)
    metric = om.MetricPrivacy(EPSILON, EUCLIDEAN)
    alone = om.solve(_problem(prior, metric)).mechanism
    reached = om.attacks.optimal_attack(alone, prior, EUCLIDEAN).error
    minimum = reached + BINDING * (city.blind_error(user) - reached)
    distortion = om.DistortionPrivacy(minimum, EUCLIDEAN)
    yield "joint", None, lambda: _solved(_problem(prior, metric, distortion))
    for far in THRESHOLDS:
        cut = om.MetricPrivacy(EPSILON, EUCLIDEAN, threshold=far, observable_threshold=far)
        given = _problem(prior, cut, distortion)
        yield "joint threshold", far, lambda given=given: _solved(given)


def _solved(problem: om.Problem, profile: om.Profile | None = None, limit: float = LIMIT) -> Made:
    profile = profile or om.Profile()
    design = om.solve(problem, profile=profile, time_limit=limit)
    found = design.approximation
    return design.mechanism, {
        "status": design.status,
        "lower_bound": design.lower_bound,
        "verified": design.verified,
        "rows": _rows(problem, profile),
        "repaired_loss": None if found is None else _finite(found.repaired_loss),
    }


def _rows(problem: om.Problem, profile: om.Profile) -> int | None:
    """Inequalities between pairs of secrets that the engine is given, after reductions; None for a
    resolution, which solves smaller programs of its own."""
    if profile.resolution:
        return None
    programs = [compile_lp(Inequalities.of(problem.statement)).lp]
    for reduction in profile.parsed_reductions():
        programs = [part.lp for program in programs for part in reduction.apply(program)]
    return sum(program.cone_rows for program in programs)


def _most_visited(city: City, prior: om.Prior, count: int) -> Made:
    """Reports of the most visited cells only."""
    most = np.sort(np.argsort(-prior.weights, kind="stable")[:count])
    labels, points = city.cells.labels, city.cells.require_points("a benchmark")
    few = om.Domain([labels[k] for k in most], points=points[most], unit=city.cells.unit)
    return _solved(_problem(prior, observables=few))


def _coarse(city: City, prior: om.Prior, side: int, profile: om.Profile | None = None) -> Made:
    """Cells of a block of side x side report alike; blocks are as far apart as their nearest
    cells, so that the fine mechanism keeps its ε between all cells."""
    rows, columns = GRIDS[city.grid]
    index = np.arange(rows * columns)
    _, block = np.unique(
        (index // columns // side) * columns + index % columns // side, return_inverse=True
    )
    count = int(block.max()) + 1
    nearest = np.full((count, count), np.inf)
    np.minimum.at(nearest, (block[:, None], block[None, :]), city.distances)
    mass = np.zeros((count, len(index)))
    mass[block, index] = prior.weights
    weights = mass.sum(axis=1)
    hit = np.divide(mass, weights[:, None], out=np.zeros_like(mass), where=weights[:, None] > 0)
    promise = om.MetricPrivacy(EPSILON, om.distances.matrix(_shortest(nearest)))
    blocks = om.Prior(om.Domain(range(count)), weights)
    problem = om.Problem(blocks, 1.0 - hit, observables=city.cells, constraints=[promise])
    m, found = _solved(problem, profile)
    # its bound and its losses are those of blocks
    known = {name: found[name] for name in ("status", "verified", "rows")}
    return om.Mechanism(city.cells, city.cells, m.matrix[block]), known


def _shortest(distances: np.ndarray) -> np.ndarray:
    """Shortest ways: least distances between blocks break the triangle inequality."""
    from scipy.sparse.csgraph import floyd_warshall

    return floyd_warshall(distances)


def _known(name: str, prior: om.Prior) -> Made:
    """A mechanism from the literature, every report replaced by the best one in hindsight."""
    cells = prior.domain
    if name == "planar_laplace":
        m = om.mechanisms.planar_laplace(cells, EPSILON)
    else:
        m = om.mechanisms.exponential(cells, EPSILON, EUCLIDEAN)
    posterior = prior.weights[:, None] * m.matrix
    best = posterior.argmax(axis=0)
    return m.remap(lambda label: cells.labels[best[m.observables.index(label)]]), {}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def tables(store: Store) -> dict[str, str]:
    """One table a grid: medians over users of whom everything is there, and the worst of them."""
    tasks = [r["task"] for r in store.records.values() if r["task"]["method"] in PROMISES]
    known = Counter((task["grid"], task["user"]) for task in tasks)
    most = {grid: max(known[key] for key in known if key[0] == grid) for grid, _ in known}
    groups: dict[str, dict[tuple[str, Any], list[Record]]] = {
        grid: defaultdict(list) for grid in GRIDS
    }
    for r in store.records.values():
        task = r["task"]
        if known[task["grid"], task["user"]] == most.get(task["grid"]):
            groups[task["grid"]][task["method"], task["parameter"]].append(r)
    return {f"approximations-{grid}": _table(found) for grid, found in groups.items() if found}


def _table(groups: dict[tuple[str, Any], list[Record]]) -> str:
    head = (
        "method", "parameter", "users", "rows", "s (processor)", "loss / optimum", "largest true ε",
        "repaired loss / optimum", "largest gap", "still promised",
    )  # fmt: skip
    order = list(PROMISES)

    def place(key: tuple[str, Any]) -> tuple[int, float]:
        return order.index(key[0]), key[1] if isinstance(key[1], int | float) else 0

    rows = [_line(*key, groups[key]) for key in sorted(groups, key=place)]
    return table(head, rows)


def _line(method: str, parameter: Any, of: list[Record]) -> tuple[str, ...]:
    done = [r for r in of if "failed" not in r]
    if not done:
        return method, f"{parameter}", "0", *[""] * 6, "no mechanism was found"
    finite = [r["epsilon"] for r in done if r["epsilon"] is not None]
    gaps = [
        max(0.0, 1 - r["lower_bound"] / r["loss"])
        for r in done
        if r.get("lower_bound") is not None and r["loss"] > 0
    ]
    repaired = [r["repaired_loss"] / r["exact_loss"] for r in done if r.get("repaired_loss")]
    sizes = [r["rows"] for r in done if r.get("rows") is not None]
    lost = len(done) - len(finite)
    return (
        method,
        "" if parameter is None else f"{parameter:g}" if parameter != "remapped" else parameter,
        f"{len(done)}",
        f"{np.median(sizes):,.0f}" if sizes else "",
        f"{np.median([r['cpu'] for r in done]):.2f}",
        _spread([r["loss"] / r["exact_loss"] for r in done]),
        (f"{max(finite):.3g}" if finite else "") + (f"; none for {lost}" if lost else ""),
        _spread(repaired) if repaired else "",
        f"{max(gaps):.0e}" if gaps else "",
        PROMISES[method]
        + (f"; no mechanism for {len(of) - len(done)}" if len(of) > len(done) else ""),
    )


def _spread(values: list[float]) -> str:
    return f"{np.median(values):.4f} ({max(values):.4f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grid", choices=list(GRIDS), default="paper")
    parser.add_argument("--users", type=int, default=10, help="how many, drawn at random; 0: all")
    parser.add_argument("--joint", action="store_true", help="thresholds beside a distortion")
    parser.add_argument("--table", action="store_true", help="write the tables of the page")
    parser.add_argument("--processes", type=int, default=1)
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.table:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(filled(text, tables(Store(args.results))), encoding="utf-8")
        return
    settle(args, *FILES)
    city, store = City(args.data, args.grid), Store(args.results)
    one = partial(approximate, city, store=store, joint=args.joint)
    with ProcessPoolExecutor(args.processes) as pool:
        list(pool.map(one, city.drawn(args.users)))
    store = Store(args.results)
    print("\n".join(tables(store).values()))


if __name__ == "__main__":
    main()
