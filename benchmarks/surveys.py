"""How near designs for statistics are to what no mechanism can do better.

    python benchmarks/surveys.py run                    # every line of docs/statistics.md
    python benchmarks/surveys.py run "16 points" cells  # lines with these in their name
    python benchmarks/surveys.py table                  # into the page
    python benchmarks/surveys.py blocks                 # the table of docs/literature.md
    python benchmarks/surveys.py simulate               # a million surveys by each of some designs

Every design is checked by `optmech.check` and by the stand-alone audit. Results go to
results/surveys.jsonl; what is there is not done again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from given import add_files
from optmech_audit.designs import judge_design
from optmech_audit.document import read
from optmech_surveys import hadamard
from privacy_games.pages import filled
from privacy_games.store import Record, Store

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "surveys.jsonl"
PAGE = HERE.parent / "docs" / "statistics.md"
E = om.distances.euclidean()
CHAPTERS = (4, 6, 7, 8, 9, 11, 13, 15, 17)
"""Codes of every chapter of a tree: with the chapters and the root 100."""


class Case(NamedTuple):
    """A line: what kind of secrets, how many, ε, the statistic, and the gap that is asked for."""

    kind: str
    size: int
    epsilon: float
    statistic: str
    gap: float

    @property
    def name(self) -> str:
        what = {"points": "points", "values": "values, all pairs", "codes": "codes of a tree"}
        counted = f"{self.size} {what[self.kind]}" if self.kind in what else self.kind
        return f"{counted}, ε {self.epsilon:g}, {self.statistic}"


SURVEYS, AT_ONCE, PEOPLE, SEED = 1_000_000, 20_000, 1_000, 51
NORMAL = 3.2905
"""Standard errors of an interval of 99.9 %."""
SIMULATED = (
    Case("points", 6, 0.3, "histogram", 1e-3), Case("points", 16, 1.0, "cdf", 1e-3),
    Case("values", 8, 1.0, "histogram", 1e-3), Case("3 × 3 cells", 9, 0.8, "histogram", 1e-3),
)  # fmt: skip


def cases() -> Iterator[Case]:
    """All lines, the small ones first."""
    for rows, columns, rates in ((2, 2, (0.4,)), (2, 3, (0.4, 1.6)), (3, 3, (0.4, 0.8, 1.6))):
        for epsilon in rates:
            yield Case(f"{rows} × {columns} cells", rows * columns, epsilon, "histogram", 1e-3)
    for size in (16, 64):
        for statistic in ("histogram", "cdf"):
            for epsilon in (0.1, 0.3, 1.0, 3.0):
                gap = 1e-3 if size == 16 else 5e-3 if epsilon >= 0.3 else 8e-3
                yield Case("points", size, epsilon, statistic, gap)
    for size in (8, 16, 64):
        for statistic in ("histogram", "cdf"):
            yield Case("values", size, 1.0, statistic, {8: 1e-3, 16: 5e-3, 64: 2.5e-2}[size])
    yield Case("codes", 100, 1.0, "histogram", 1.8e-2)
    for side, epsilon in ((4, 0.6), (5, 0.4), (6, 0.6), (8, 0.6)):
        yield Case(f"{side} × {side} cells", side * side, epsilon, "histogram", 1e-2)


def tree() -> om.Distance:
    """Distances along a tree of 100 codes."""
    made = nx.Graph([(0, k + 1) for k in range(len(CHAPTERS))])
    for chapter, count in enumerate(CHAPTERS):
        first = len(made)
        made.add_edges_from((chapter + 1, first + k) for k in range(count))
    apart = np.asarray(nx.floyd_warshall_numpy(made, nodelist=sorted(made)))
    return om.distances.matrix(apart)


def problem(case: Case) -> om.Problem:
    """What is asked, of a population that is everywhere the same."""
    promise: om.Constraint = om.MetricPrivacy(case.epsilon, E)
    secrets: om.Domain = om.Domain.range(case.size)
    loss: om.Distance = E
    if case.kind == "values":
        promise, loss = om.DifferentialPrivacy(case.epsilon), om.distances.hamming()
    elif case.kind == "codes":
        loss = tree()
        promise = om.MetricPrivacy(case.epsilon, loss)
    elif case.kind != "points":
        rows, columns = (int(v) for v in case.kind.split(" cells")[0].split(" × "))
        secrets = om.Grid(rows, columns, unit="km")
    goal = om.MinimizeVariance(case.statistic)
    return om.Problem(om.Prior.uniform(secrets), loss, objective=goal, constraints=[promise])


def solved(case: Case) -> Record:
    """A design, how long it took, and what both checkers say."""
    stated = problem(case)
    begun, used = time.perf_counter(), time.process_time()
    design = om.solve(stated, gap=case.gap)
    wall, seconds = time.perf_counter() - begun, time.process_time() - used
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "design.json"
        design.save(path)
        begun = time.process_time()
        passed = om.check(path).passed
        checked = time.process_time() - begun
        judge_design(read(str(path)))
        audited = time.process_time() - begun - checked
    return {
        "variance": design.variance,
        "bound": design.variance_bound,
        "reports": len(design.problem.observables),
        "wall": round(wall, 1),
        "seconds": round(seconds, 1),
        "passed": passed,
        "check": round(checked, 1),
        "audit": round(audited, 1),
    }


def table(store: Store) -> str:
    """A row for every line that is there."""
    lines = [
        "| promise, statistic | designed | bound | apart | reports | processor s | check, audit |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases():
        record = store.find(case._asdict())
        if record is not None:
            value, bound = record["variance"], record["bound"]
            named = case.name.replace("cdf", "distribution function")
            apart = f"{100 * (value / bound - 1):.2g} %" if bound > 0 else "not proved"
            lines.append(
                f"| {named} | {value:.5g} | {bound:.5g} | {apart} | "
                f"{record['reports']} | {record['seconds']:.2g} | "
                f"{record['check']:.1f}, {record['audit']:.1f} |"
            )
    return "\n".join(lines)


def blocks(sizes: tuple[int, ...], zipf: bool, epsilon: float = 1.0) -> dict[str, float]:
    """Values in blocks that may be told, ε within each: N times the variance of the histogram of
    mechanisms that tell the block. In a block all values are as frequent, or the k-th 1/k times.

    With shares w of the blocks, and μ within one, it is Σ w (V + |μ|²) - |π|² for V of one block.
    """
    total, made = sum(sizes), dict[str, float]()
    spread = 0.0
    for size in sizes:
        secrets, share = om.Domain.range(size), size / total
        weights = 1 / np.arange(1, size + 1) if zipf else np.ones(size)
        prior, local = om.Prior(secrets, weights), om.DifferentialPrivacy(epsilon)
        goal, hamming = om.MinimizeVariance("histogram"), om.distances.hamming()
        design = om.solve(om.Problem(prior, hamming, objective=goal, constraints=[local]))
        own = {
            "Hadamard response": hadamard(secrets, epsilon),
            "k-ary response": om.mechanisms.randomized_response(secrets, epsilon),
            "subset selection": om.mechanisms.subset_selection(secrets, epsilon),
        }
        each = {
            name: float(om.estimate.variances(m, "histogram", prior).sum())
            for name, m in own.items()
        }
        each |= {"designed": design.variance, "no mechanism below": design.variance_bound}
        square = float(prior.weights @ prior.weights)
        spread += share**2 * square
        for name, value in each.items():
            made[name] = made.get(name, 0.0) + share * (value + square)
    return {name: value - spread for name, value in made.items()}


def blocks_table() -> str:
    """The table of docs/literature.md."""
    lines = []
    for sizes in ((4, 4, 4, 4), (8, 4, 2, 2), (8, 8)):
        for zipf in (False, True):
            found = blocks(sizes, zipf)
            if not lines:
                lines = ["| blocks, population | " + " | ".join(found) + " |"]
                lines.append("|---" + "|---:" * len(found) + "|")
            named = ", ".join(map(str, sizes)) + ("; 1/k" if zipf else "; the same")
            lines.append(f"| {named} | " + " | ".join(f"{v:.4g}" for v in found.values()) + " |")
    return "\n".join(lines)


def simulated(design: om.Design, seed: int = SEED) -> tuple[float, float]:
    """N times the mean squared error of so many simulated surveys, and what it may be off."""
    prior, rng = design.problem.prior.weights, np.random.default_rng(seed)
    survey, reports = design.problem.statement.survey, np.eye(len(design.problem.observables))
    assert survey is not None
    # the estimate is linear in the counts
    weights = np.array([design.estimate(own).values for own in reports])
    seen, true = prior @ design.mechanism.matrix, survey.statistic @ prior
    squares = []
    for _ in range(SURVEYS // AT_ONCE):
        counts = rng.multinomial(PEOPLE, seen, size=AT_ONCE)
        squares.append((((counts / PEOPLE) @ weights - true) ** 2) @ survey.weights)
    every = PEOPLE * np.concatenate(squares)
    return float(every.mean()), float(NORMAL * every.std() / np.sqrt(len(every)))


def simulations() -> str:
    """A row for some designs, of a population that is not everywhere the same."""
    lines = ["| promise, statistic | variance | of simulated surveys |", "|---|---:|---:|"]
    for case in SIMULATED:
        stated = problem(case)
        people = om.Prior(stated.secrets, np.arange(case.size, 2 * case.size, dtype=float))
        made = om.Problem(
            people, stated.loss, objective=stated.objective, constraints=stated.constraints
        )
        design = om.solve(made, gap=case.gap)
        mean, off = simulated(design)
        if not abs(mean - design.variance) <= off:
            raise SystemExit(f"{case.name}: {mean} +- {off}, and {design.variance} is stated")
        named = case.name.replace("cdf", "distribution function")
        lines.append(f"| {named} | {design.variance:.6g} | {mean:.6g} ± {off:.2g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table", "blocks", "simulate"))
    parser.add_argument("parts", nargs="*", default=[""], help="lines with one of these in them")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.what == "blocks":
        print(blocks_table())
        return
    if args.what == "simulate":
        made = simulations()
        PAGE.write_text(filled(PAGE.read_text(), {"simulated": made}))
        print(made)
        return
    store = Store(args.results)
    for case in cases():
        task: dict[str, Any] = case._asdict()
        wanted = any(part in case.name for part in args.parts)
        if args.what == "run" and wanted and store.find(task) is None:
            record = store.add(task, solved(case))
            print(f"{case.name}: {record['variance']:.6g} {record['bound']:.6g}", flush=True)
    print(table(store))
    if args.what == "table":
        PAGE.write_text(filled(PAGE.read_text(), {"brackets": table(store)}))


if __name__ == "__main__":
    main()
