"""How many matrices keep what they promise: released designs, and solvers' answers as they come.

    python benchmarks/certificates.py             # and --every 20, for a look

Every problem is solved by optmech and by three solvers at their default tolerances, given the
same linear program. Their matrices get every courtesy (negative entries are set to zero, rows are
divided by their sums) and go through the same exact check as released designs, which are also read
back from their files and audited. "by far" counts matrices with a likelihood ratio above 1 + 10^-6
times the allowed one, "no privacy" those with p(o|s) > 0 = p(o|s') for a constrained pair; the rest
fails by digits behind that, or in sums.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from optmech_audit import Fault, audit
from scipy.optimize import linprog

import optmech as om
from optmech.base.arrays import Floats
from optmech.certificate import check_exact
from optmech.certificate.families import Divergence, Information
from optmech.exact.numerators import Numerators
from optmech.lp.flatten import FlatLP, flatten
from optmech.lp.inequalities import Inequalities, compile_lp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
E, H = om.distances.euclidean(), om.distances.hamming()


def problems() -> Iterator[tuple[str, om.Problem]]:
    """Groups of the table, and their problems, which are linear."""
    from conformance.problems import KINDS

    for make in KINDS:
        for seed in range(4):
            problem = make(np.random.default_rng(seed))
            given = problem.statement
            if not (given.of_kind(Divergence) or given.of_kind(Information)):
                yield "every constraint, 1-12 secrets", problem
    for reach in (0.01, 1.0, 5.0, 14.0, 25.0, 40.0):
        for n in (2, 4, 9, 16, 25):
            for shape in ("uniform", "skewed", "sparse"):
                rng = np.random.default_rng(n)
                xy = rng.uniform(0, 1, (n, 2))
                if n == 9:
                    xy[4] = xy[0]
                domain = om.Domain(range(n), xy)
                weights = np.ones(n)
                if shape == "skewed":
                    weights = 0.5 ** np.arange(n)
                elif shape == "sparse":
                    weights = (np.arange(n) % 3 == 0).astype(float)
                epsilon = reach / E(domain, domain).max()
                yield (
                    f"metric, ε·diameter {reach:g}",
                    om.Problem(
                        om.Prior(domain, weights),
                        E if n % 2 else H,
                        constraints=[om.MetricPrivacy(epsilon, E)],
                    ),
                )


def scipy_solver(method: str) -> Callable[[FlatLP], Floats | None]:
    """scipy's HiGHS with default options."""

    def solve(flat: FlatLP) -> Floats | None:
        equal = flat.lower == flat.upper
        result = linprog(
            flat.cost,
            A_ub=flat.matrix[~equal] if (~equal).any() else None,
            b_ub=flat.upper[~equal] if (~equal).any() else None,
            A_eq=flat.matrix[equal] if equal.any() else None,
            b_eq=flat.upper[equal] if equal.any() else None,
            bounds=np.column_stack([np.zeros(len(flat.cost)), flat.upper_x]),
            method=method,
        )
        return None if result.x is None else np.asarray(result.x)

    return solve


def cvxpy_default(flat: FlatLP) -> Floats | None:
    """``Problem.solve()`` and nothing more."""
    import cvxpy as cp

    equal = flat.lower == flat.upper
    x = cp.Variable(len(flat.cost), nonneg=True)
    constraints = [flat.matrix[equal] @ x == flat.upper[equal]] if equal.any() else []
    if (~equal).any():
        constraints.append(flat.matrix[~equal] @ x <= flat.upper[~equal])
    fixed = np.flatnonzero(flat.upper_x == 0)
    if len(fixed):
        constraints.append(x[fixed] == 0)
    try:
        cp.Problem(cp.Minimize(flat.cost @ x), constraints).solve()
    except cp.SolverError:
        return None
    return None if x.value is None else np.asarray(x.value)


SOLVERS = {
    "HiGHS simplex": scipy_solver("highs-ds"),
    "HiGHS interior point": scipy_solver("highs-ipm"),
    "cvxpy default": cvxpy_default,
}


def raw_verdict(problem: om.Problem, solve: Callable[[FlatLP], Floats | None]) -> str:
    """What the exact check says about a solver's matrix."""
    compiled = compile_lp(Inequalities.of(problem.statement))
    flat = flatten(compiled.lp)
    point = solve(flat)
    if point is None:
        return "no answer"
    matrix = np.maximum(compiled.recover(flat.point(point, np.zeros(len(flat.upper))))[0], 0.0)
    sums = matrix.sum(axis=1, keepdims=True)
    if not (np.isfinite(sums).all() and (sums > 0).all()):
        return "no answer"
    matrix = matrix / sums
    checks = check_exact(problem.statement, Numerators.rounded(matrix))
    if all(check.passed for check in checks):
        return "passes"
    linked = np.isfinite(problem.statement.log_ratio)
    lost = any(
        (linked[:, matrix[:, o] == 0][matrix[:, o] > 0]).any() for o in range(matrix.shape[1])
    )
    if lost:
        return "no privacy"
    ratios = [check.worst for check in checks if "ratio" in check.name]
    return "by far" if max(ratios, default=0.0) > 1 + 1e-6 else "narrowly"


def released_verdict(problem: om.Problem, path: Path) -> str:
    """Solve, save, and let both checkers read the file."""
    design = om.solve(problem)
    design.save(path)
    try:
        audit(str(path))
    except Fault:
        return "fails"
    return "passes" if om.check(path).passed else "fails"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th problem")
    every = parser.parse_args().every
    table: dict[str, dict[str, Counter[str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for group, problem in itertools.islice(problems(), 0, None, every):
            row = table.setdefault(group, {name: Counter() for name in ("released", *SOLVERS)})
            row["released"][released_verdict(problem, Path(folder) / "d.json")] += 1
            for name, solve in SOLVERS.items():
                row[name][raw_verdict(problem, solve)] += 1
    heads = ["problems", "count", "released designs that pass both checkers"]
    heads += [f"{name}: fail (by far, no privacy)" for name in SOLVERS]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for group, row in table.items():
        count = row["released"].total()
        cells = [group, str(count), str(row["released"]["passes"])]
        for name in SOLVERS:
            failed = count - row[name]["passes"]
            cells.append(f"{failed} ({row[name]['by far']}, {row[name]['no privacy']})")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
