"""Constraints of an own making against programs of HiGHS that are written from the inequalities:
optimum, infeasibility, and the verdicts of check and audit on the design and on a spoilt one.

Forty kinds: ten from papers, the others random systems of linear inequalities and of log ratios,
per report, per secret and in all, with exact texts, equalities, windows and mixtures.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import optmech_audit as audit
from optmech_audit import constraints as audited
from optmech_audit.inequalities import Mechanism as Audited
from scipy.optimize import linprog

import optmech as om
from optmech.certificate import check_exact
from optmech.certificate.objective import relative_gap, status_of
from optmech.certificate.statement import Statement
from optmech.designs.encoding import encode_numerators
from optmech.exact.number import rounded_up
from optmech.exact.numerators import Numerators
from tests.forgery import resealed

Rng = np.random.Generator
Row = tuple[np.ndarray, float]
"""Weights (n, m) and what their sum with the probabilities is at most."""


class World:
    """Secrets, observables, prior and loss, and rows of the program."""

    def __init__(self, rng: Rng, n: int | None = None, m: int | None = None) -> None:
        self.n = int(rng.integers(2, 6)) if n is None else n
        self.m = int(rng.integers(2, 6)) if m is None else m
        self.prior = rng.dirichlet(np.ones(self.n))
        if rng.uniform() < 0.2:
            self.prior = np.full(self.n, 1 / self.n)
        self.loss = rng.uniform(0, 2, (self.n, self.m))
        if rng.uniform() < 0.3:
            self.loss = np.round(self.loss)
        self.rows: list[Row] = []

    def add(self, weights: np.ndarray, most: float) -> None:
        self.rows.append((weights, most))

    def ratio(self, left: np.ndarray, right: np.ndarray, rate: float, o: int) -> None:
        table = np.zeros((self.n, self.m))
        table[:, o] = left - math.exp(rate) * right
        self.add(table, 0.0)

    def solve(self) -> float | None:
        """The least expected loss; None where nothing is feasible."""
        sums = np.kron(np.eye(self.n), np.ones(self.m))
        found = linprog(
            (self.prior[:, None] * self.loss).ravel(),
            A_ub=np.array([w.ravel() for w, _ in self.rows]) if self.rows else None,
            b_ub=[v for _, v in self.rows] if self.rows else None,
            A_eq=sums,
            b_eq=np.ones(self.n),
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert found.status in (0, 2), found.message
        return float(found.fun) if found.status == 0 else None


def number(rng: Rng, low: float, high: float) -> object:
    """A float, a fraction or, above 0, a logarithm."""
    choice = int(rng.integers(4))
    if choice == 0:
        return f"{int(rng.integers(math.ceil(low * 7), math.floor(high * 7) + 1))}/7"
    if choice == 1 and high > 0.8:
        top = min(math.exp(high), 9.0)
        return f"ln {int(rng.integers(1, math.floor(top) + 1))}"
    if choice == 2:
        return float(rng.integers(math.ceil(low), math.floor(high) + 1))
    return float(rng.uniform(low, high))


def value(given: object) -> float:
    if isinstance(given, str):
        log = given.removeprefix("ln ")
        return math.log(Fraction(log)) if given != log else float(Fraction(given))
    return float(given)  # type: ignore[arg-type]


def table(rng: Rng, shape: tuple[int, ...], low: float, high: float, share: float) -> list:
    """Nested lists with so many of their numbers other than 0."""
    out = np.zeros(shape, dtype=object)
    for place in np.ndindex(shape):
        if rng.uniform() < share:
            out[place] = number(rng, low, high)
    return out.tolist()


def floats(given: list) -> np.ndarray:
    return np.vectorize(value, otypes=[float])(np.array(given, dtype=object))


def linear(rng: Rng, w: World, per: str, dims: int, kind: str) -> om.Linear:
    """Random sums; limits near what a mechanism has, or anywhere."""
    n, m, k = w.n, w.m, int(rng.integers(1, 4))
    one = {"all": (n, m), "report": (n,), "secret": (m,)}[per]
    shape = {1: one, 2: one if per == "all" else (k, *one), 3: (k, n, m)}[dims]
    given = table(rng, shape, -2, 2, 0.7)
    dense = floats(given)
    count = 1 if shape == one else k
    dense = dense.reshape(count, *dense.shape[-len(one) :] if dims < 3 else dense.shape[-2:])
    rows = [[] for _ in range(count)]
    for j in range(count):
        for at in range({"all": 1, "report": m, "secret": n}[per]):
            full = np.zeros((n, m))
            if per == "all":
                full = dense[j]
            elif per == "report":
                full[:, at] = dense[j][:, at] if dims == 3 else dense[j]
            else:
                full[at] = dense[j][at] if dims == 3 else dense[j]
            rows[j].append(full)
    row = rng.dirichlet(np.ones(m))  # of a mechanism that ignores the secret
    inside = [[float((full * row).sum()) for full in own] for own in rows]
    tight = rng.uniform() < 0.15
    limits: dict[str, list] = {}
    if kind == "equal":
        # what one mechanism has: of all its sums the mean where they differ is often infeasible
        limits["equal"] = [float(np.mean(own)) for own in inside]
    if kind in ("upper", "both"):
        room = -0.3 if tight else rng.uniform(0, 0.5)
        limits["upper"] = [max(own) + room for own in inside]
    if kind in ("lower", "both"):
        room = -0.3 if tight else rng.uniform(0, 0.5)
        limits["lower"] = [min(own) - room for own in inside]
    for j in range(count):
        for full in rows[j]:
            for name, sign in (("upper", 1), ("lower", -1), ("equal", 1), ("equal", -1)):
                if name in limits:
                    w.add(sign * full, sign * limits[name][j])
    return om.Linear(given, per=per, title="drawn", **limits)


def ratios(rng: Rng, w: World, shape: str, some: bool) -> om.Ratios:
    n, m, k = w.n, w.m, int(rng.integers(1, 4))
    sides = {"pairs": (n, n), "pairs each": (n, n, m), "mixed": (k,), "mixed each": (k, m)}[shape]
    given = np.full(sides, "inf", dtype=object)
    for place in np.ndindex(sides):
        if rng.uniform() < 0.6:
            given[place] = 0 if rng.uniform() < 0.05 else number(rng, 0, 2)
    columns = (
        sorted(rng.choice(m, int(rng.integers(1, m + 1)), replace=False)) if some else range(m)
    )
    mixed = shape.startswith("mixed")
    of, to = (list(rng.dirichlet(np.ones(n) * 0.7, k)) for _ in range(2)) if mixed else (None, None)
    unit = np.eye(n)
    for place in np.ndindex((k,) if mixed else (n, n)):
        if not mixed and place[0] == place[1]:
            continue
        left, right = (of[place[0]], to[place[0]]) if mixed else (unit[place[0]], unit[place[1]])
        for o in columns:
            own = given[(*place, o)] if shape.endswith("each") else given[place]
            if own != "inf":
                w.ratio(left, right, value(own), int(o))
    more = {"of": of, "to": to} if mixed else {}
    labels = [int(o) for o in columns] if some else None
    return om.Ratios(given.tolist(), reports=labels, **more)


def papers(rng: Rng, which: int) -> tuple[World, list]:
    """Ten constraints of papers, each with its inequalities."""
    n = int(rng.integers(3, 6))
    w = World(rng, n, n)
    e = float(rng.uniform(0.3, 2))
    unit, inf = np.eye(n), np.full((n, n), np.inf)
    high = int(rng.integers(1, n))

    def pairs(log: np.ndarray, columns: range | list[int] = range(n)) -> om.Ratios:
        for i, j in zip(*np.nonzero(np.isfinite(log)), strict=True):
            for o in columns:
                if i != j:
                    w.ratio(unit[i], unit[j], log[i, j], o)
        return om.Ratios(log, reports=None if len(columns) == n else list(columns))

    if which == 0:  # utility-optimised: protected reports, and the others by one answer alone
        mask = np.eye(n, dtype=int)
        mask[:, :high] = 1
        for s, o in np.argwhere(mask == 0):
            own = np.zeros((n, n))
            own[s, o] = 1
            w.add(own, 0)
        return w, [pairs(np.full((n, n), e), list(range(high))), om.Support(mask)]
    if which == 1:  # one-sided
        inf[0] = e
    elif which == 2:  # high-low
        inf[:high] = e
    elif which == 3:  # blocks
        block = rng.integers(0, 2, n)
        inf[block[:, None] == block] = e
    elif which == 4:  # protected report
        return w, [pairs(np.full((n, n), e), [0])]
    elif which == 5:  # metric, as a table
        inf = e * np.abs(np.subtract.outer(range(n), range(n)))
    elif which == 6:  # a policy graph, edge by edge
        for i in range(n - 1):
            inf[i, i + 1] = inf[i + 1, i] = e
    elif which == 7:  # personalised: every secret an ε of its own
        inf = np.tile(rng.uniform(0.3, 2, (n, 1)), (1, n))
    elif which == 8:  # obedience
        gain = rng.normal(size=(n, n)) * w.prior[:, None]
        weights = [gain - gain[:, [a] * n] for a in range(n)]
        for own in weights:
            for o in range(n):
                full = np.zeros((n, n))
                full[:, o] = -own[:, o]
                w.add(full, 0)
        return w, [om.Linear(np.array(weights), lower=0, per="report", title="obedience")]
    else:  # fairness: two groups report each thing about as often
        a, b = rng.dirichlet(np.ones(n), 2)
        most = float(rng.uniform(0.01, 0.2))
        for o in range(n):
            for sign in (1, -1):
                full = np.zeros((n, n))
                full[:, o] = sign * (a - b)
                w.add(full, most)
        return w, [om.Linear(a - b, upper=most, lower=-most, per="report", title="parity")]
    return w, [pairs(inf)]


def _kinds() -> list[Callable[[Rng], tuple[World, list]]]:
    def of_linear(per: str, dims: int, kind: str) -> Callable[[Rng], tuple[World, list]]:
        def make(rng: Rng) -> tuple[World, list]:
            w = World(rng)
            return w, [linear(rng, w, per, dims, kind)]

        return make

    def of_ratios(shape: str, some: bool, more: bool) -> Callable[[Rng], tuple[World, list]]:
        def make(rng: Rng) -> tuple[World, list]:
            w = World(rng)
            own = [ratios(rng, w, shape, some)]
            return w, [*own, linear(rng, w, "all", 3, "upper")] if more else own

        return make

    out = [lambda rng, k=k: papers(rng, k) for k in range(10)]
    for per, dims in (("all", 2), ("all", 3), ("report", 1), ("report", 2), ("report", 3),
                      ("secret", 1), ("secret", 2), ("secret", 3)):  # fmt: skip
        out += [of_linear(per, dims, kind) for kind in ("upper", "both")]
    out += [of_linear(per, 2, "equal") for per in ("all", "secret")]
    for shape in ("pairs", "pairs each", "mixed", "mixed each"):
        out += [
            of_ratios(shape, some, more)
            for some, more in ((False, False), (True, False), (False, True))
        ]
    return out


KINDS = _kinds()
assert len(KINDS) == 40


def judge(rng: Rng) -> Iterator[str]:
    """What is false of one instance."""
    which = int(rng.integers(len(KINDS)))
    w, stated = KINDS[which](rng)
    secrets = om.Prior(om.Domain(range(w.n)), w.prior)
    w.prior = secrets.weights
    problem = om.Problem(secrets, w.loss, om.Domain(range(w.m)), constraints=stated)
    least = w.solve()
    try:
        design = om.solve(problem)
    except om.SolverError as error:
        yield f"kind {which}: no verified mechanism ({error}), where the program has {least}"
        return
    if (design.status == "infeasible") != (least is None):
        yield f"kind {which}: {design.status}, where the program has {least}"
        return
    document = design.document()
    if not om.check(document_of(document)).passed:
        yield f"kind {which}: the check fails"
    try:
        audit.audit(document_of(document))
    except audit.Fault as fault:
        yield f"kind {which}: the audit says {fault}"
    if least is None or design.exact is None:
        return
    size = max(abs(least), 1e-3)
    if abs(design.loss - least) > 2e-6 * size or design.lower_bound > least + 1e-7 * size:
        yield f"kind {which}: {design.loss} and bound {design.lower_bound} instead of {least}"
    if design.status != "optimal":
        yield f"kind {which}: {design.status}, gap {design.gap}"
    yield from spoilt(rng, problem, design.exact, which)


def document_of(content: bytes) -> str:
    import tempfile
    from pathlib import Path

    path = Path(tempfile.gettempdir()) / "optmech-referee-own.json"
    path.write_bytes(content)
    return str(path)


def spoilt(rng: Rng, problem: om.Problem, exact: Numerators, which: int) -> Iterator[str]:
    """Both judges on a matrix that may break what is stated."""
    rows = [list(row) for row in exact.rows]
    s = int(rng.integers(len(rows)))
    a, b = rng.permutation(len(rows[0]))[:2]
    moved = int(rows[s][a] * int(rng.integers(1, 9)) >> int(rng.choice([3, 20, 50])))
    rows[s][a], rows[s][b] = rows[s][a] - moved, rows[s][b] + moved
    tried = Numerators(exact.bits, tuple(map(tuple, rows)))
    ours = all(check.passed for check in check_exact(problem.statement, tried))
    theirs = True
    space = type("Stated", (), {"n": len(rows), "m": len(rows[0]), "say": lambda *_: None})()
    for c in problem.constraints:
        plain = {**c.plain(problem.space), "kind": c.kind}
        for part in audited.KINDS[c.kind](space, plain):
            try:
                part.check(Audited(exact.bits, rows))
            except audit.Fault:
                theirs = False
    if ours != theirs:
        yield f"kind {which}: the check says {ours} and the audit {theirs}"


def written(seed: int, first: int, count: int, folder: Path) -> None:
    """Files of instances, sound and spoilt, with what their own program says of them: for
    ``judged_files``, in a process that has made none of them."""
    said = {}
    for index in range(first, first + count):
        rng = np.random.default_rng([seed, index])
        w, stated = KINDS[index % len(KINDS)](rng)
        secrets = om.Prior(om.Domain(range(w.n)), w.prior)
        w.prior = secrets.weights
        problem = om.Problem(secrets, w.loss, om.Domain(range(w.m)), constraints=stated)
        design, least = om.solve(problem), w.solve()
        name = f"{index}.json"
        (folder / name).write_bytes(design.document())
        said[name] = {"least": least, "kind": index % len(KINDS), "sound": True}
        if design.exact is None:
            continue
        row, o = int(rng.integers(w.n)), int(rng.integers(w.m))
        rows = [list(own) for own in design.exact.rows]
        most = int(np.argmax(rows[row]))
        moved = rows[row][most] >> int(rng.choice([1, 2, 30]))
        rows[row][most] -= moved
        rows[row][o] += moved
        matrix = np.array(rows, dtype=float) / 2.0**design.exact.bits
        over = max((float((own * matrix).sum()) - top for own, top in w.rows), default=-1.0)
        tried = Numerators(design.exact.bits, tuple(map(tuple, rows)))
        change = partial(spoil, tried, problem.statement, design.bound)
        (folder / f"spoilt-{name}").write_bytes(resealed(design.document(), change))
        said[f"spoilt-{name}"] = {"over": over, "kind": index % len(KINDS), "sound": False}
    (folder / f"said-{first}.json").write_text(json.dumps(said))


def spoil(tried: Numerators, statement: Statement, bound: float, body: dict) -> None:
    """Another matrix, with the figures that are true of it."""
    value = Fraction(0)
    for weight, costs, row in zip(
        statement.prior.tolist(), statement.loss.tolist(), tried.rows, strict=True
    ):
        for cost, p in zip(costs, row, strict=True):
            value += Fraction(weight) * Fraction(cost) * p / 2**tried.bits
    figure = rounded_up(value)
    claimed = {
        "objective": figure,
        "loss": figure,
        "status": status_of(relative_gap(figure, bound)),
    }
    body["mechanism"] = encode_numerators(tried)
    body["result"].update(claimed)


def judged_files(folder: Path) -> Iterator[str]:
    """What is false of files: of the optimum, of infeasibility, and of both judges' verdicts."""
    for path in sorted(folder.glob("said-*.json")):
        for name, own in json.loads(path.read_text()).items():
            file = folder / name
            try:
                ours = om.check(file).passed
            except om.OptmechError:
                ours = False
            try:
                theirs = bool(audit.audit(str(file)))
            except audit.Fault:
                theirs = False
            if ours != theirs or (own["sound"] and not ours):
                yield f"{name} of kind {own['kind']}: check {ours}, audit {theirs}"
            if not own["sound"]:
                if own["over"] > 1e-6 and ours:
                    yield f"{name} passes, and misses a limit by {own['over']}"
                continue
            result, least = json.loads(file.read_text())["result"], own["least"]
            if (result["status"] == "infeasible") != (least is None):
                yield f"{name} of kind {own['kind']}: {result['status']}, own {least}"
            elif least is not None:
                size = max(abs(least), 1e-3)
                near = abs(result["loss"] - least) <= 2e-6 * size
                if not near or result["lower_bound"] > least + 1e-7 * size:
                    yield f"{name} of kind {own['kind']}: {result['loss']} instead of {least}"


def main() -> int:
    """``python -m tests.referee.own FOLDER --write 250 --first 0``; then without ``--write``, in a
    process of its own: 0 where nothing is false."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=53)
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    if args.write is not None:
        written(args.seed, args.first, args.write, args.folder)
        return 0
    found = list(judged_files(args.folder))
    print("\n".join(found))
    print(f"{len(list(args.folder.glob('*.json')))} files, {len(found)} false")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
