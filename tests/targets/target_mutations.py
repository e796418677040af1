"""Altered files of families with a good digest: do the check and the stand-alone audit agree?

    PYTHONPATH=tests python tests/targets/target_mutations.py --count 5000 --seed 1

As ``mutations`` does for designs. Whatever both accept is examined a third time, by exact linear
programs and Hall's condition over all sets.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from exact_lp import joint_optimum, maximum
from mutations import Tally, Way, altered, anywhere, change, judge

import optmech as om
from optmech.errors import OptmechError
from optmech.mechanisms.targets.file import decode

Body = dict[str, Any]
D = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
INPUTS = [[3, 1, 1, 0], [1, 2, 3, 4]]


def files() -> dict[str, bytes]:
    """Families of every kind, over every kind of domain."""
    grid = om.Grid(2, 2, cell=(0.5, 0.75), unit="km")
    globe = om.Domain.geographic(["x", "y", "z"], [[2.35, 48.85], [2.36, 48.86], [2.34, 48.87]])
    places = om.Domain(["a", "b", "c", "d"], [[0, 0], [3, 4], [6, 8], [0, 1]], unit="km")
    own = np.array([[0, 1, 5.5, 2], [1, 0, 2, 1], [5.5, 2, 0, 1], [2, 1, 1, 0]])
    across = om.distances.haversine()(globe, globe)
    wide = np.array([[0, 1e-9, 1e16, 2], [1, 0, 2, 1e16], [1e16, 2, 0, 3], [2, 1e10, 1, 0]])
    target, couple = om.mechanisms.optimal_target, om.mechanisms.coupling_design
    euclidean = om.distances.euclidean()
    designs = {
        "coupling": couple(INPUTS, ["1/4", "1/4", "1/3", "1/6"], D, names=["home", "out"]),
        "grid": couple(INPUTS, [1, 1, 1, 1], euclidean(grid, grid), weights=[1, 3], secrets=grid),
        "worst": couple(INPUTS, [1, 1, 1, 1], D, math.inf, outside="nearest"),
        "worst places": couple(INPUTS, [4, 1, 1, 2], own, math.inf, secrets=places),
        "common": target(INPUTS, euclidean(places, places), secrets=places),
        "three": target([[1, 0, 2], [0, 1, 1], [2, 1, 0]], across, secrets=globe),
        "ln 2": target(INPUTS, D, "ln 2", [1, 2], names=["a", "b"]),
        "half": target(INPUTS, own, 0.5, secrets=grid),
        "delta": target(INPUTS, D, "1/3 ln 8", delta="1/100"),
        "wide": target(INPUTS, wide, "ln 3/2"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "family.json"
        out = {}
        for name, design in designs.items():
            design.save(path)
            out[name] = path.read_bytes()
    return out


# ---------------------------------------------------------------- mutations
def _claims(rng: np.random.Generator, body: Body) -> str:
    claims, which = body["claims"], int(rng.integers(6))
    if which == 0:
        claims["status"] = "feasible" if claims["status"] == "optimal" else "optimal"
    elif which == 1:
        claims["lower_bound"] *= float(rng.choice([0.0, 0.5, 1 - 1e-9, 1 + 1e-9, 2]))
    elif which == 2:
        claims["lower_bound"], claims["status"] = 0.0, "feasible"
    elif which == 3:
        claims["loss"] = claims["lower_bound"]
    else:
        name = str(rng.choice(list(claims)))
        claims[name] = change(rng, claims[name])
    return f"claims {which}"


def _moves(rng: np.random.Generator, body: Body) -> str:
    """Mass moved around a cycle: the marginals stay, the cost does not."""
    plan = body["plans"][int(rng.integers(len(body["plans"])))]
    flows = {(x, y): int(text, 16) for x, y, text in plan["moves"]}
    arcs = list(flows)
    (a, b), (c, d) = (arcs[int(k)] for k in rng.integers(len(arcs), size=2))
    if a == c or b == d:
        return "nothing"
    part = max(1, min(flows[a, b], flows[c, d]) >> int(rng.choice([0, 0, 1, 40])))
    for place, amount in (((a, b), -part), ((c, d), -part), ((a, d), part), ((c, b), part)):
        flows[place] = flows.get(place, 0) + amount
    plan["moves"] = [[x, y, f"{flow:x}"] for (x, y), flow in sorted(flows.items()) if flow]
    _recompute(body)
    return "other moves"


def _recompute(body: Body, status: bool = True) -> None:
    """Claims as a forger would write them: losses that are right, and the rest as it was."""
    with suppress(OptmechError):
        design = decode({"digest": "", **body}, "forged")[0]
        claims = body["claims"]
        claims["losses"], claims["worst_moves"] = list(design.losses), list(design.worst_moves)
        claims["loss"] = design.loss
        claims["lower_bound"] = min(claims["lower_bound"], design.lower_bound)
        if status:
            gap = (design.loss - claims["lower_bound"]) / (design.loss or 1)
            claims["status"] = "optimal" if gap <= 1e-6 else "feasible"


def _proof(rng: np.random.Generator, body: Body) -> str:
    """Potentials, sets of points and multipliers."""
    which = int(rng.integers(5))
    if which == 0 and body["crowded"]:
        points = body["crowded"][int(rng.integers(len(body["crowded"])))]
        points += points[:1] * int(rng.integers(1, 50)) or [0]
    elif which == 1 and body["crowded"]:
        k = int(rng.integers(len(body["crowded"])))
        body["crowded"][k] = rng.permutation(4)[: int(rng.integers(5))].tolist()
    elif which == 2 and body["multipliers"] is not None:
        body["multipliers"]["shift"] += int(rng.choice([-1, 1, -10, 40]))
        _recompute(body)
    elif which == 3 and body["task"] == "coupling":
        side = body["plans"][0]["potentials"][int(rng.integers(2))]
        k = int(rng.integers(len(side)))
        side[k] = f"{int(side[k], 16) + int(rng.choice([-1, 1, 1 << 40])):x}"
    else:
        body["epsilon"] = [0.0, 0.1, "ln 3", 1.0, 700.0, 2000.0][int(rng.integers(6))]
        _recompute(body)
    return f"proof {which}"


def _geometry(rng: np.random.Generator, body: Body) -> str:
    which = int(rng.integers(6))
    if which == 0:
        names = ["euclidean", "manhattan", "hamming", "haversine", "matrix", "graph"]
        body["distance_name"] = str(rng.choice(names))
    elif which == 1:
        factor = float(rng.choice([0.1, 1 + 1e-15, 10.0]))
        body["distance"] = [[value * factor for value in row] for row in body["distance"]]
        _recompute(body)
    elif which == 2:
        body["names"] = body["names"][::-1]
    elif which == 3:
        body["plans"] = body["plans"][::-1]
        _recompute(body)
    else:
        domain = body[str(rng.choice(["secrets", "observables"]))]
        if "grid" in domain:
            domain["grid"] = [4, 1] if which == 4 else domain["grid"]
            domain["cell"] = domain["cell"][::-1]
        else:
            key = "points" if which == 4 and domain["points"] else "labels"
            domain[key] = domain[key][::-1]
    return f"geometry {which}"


_WAYS: tuple[Way, ...] = (
    anywhere, anywhere, _claims, _moves, _proof, _geometry,
)  # fmt: skip


def mutate(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    """A changed file with a good digest, and what was done to it."""
    return altered(rng, content, _WAYS, raw=0.2, again=0.25)


# ---------------------------------------------------------------- the third opinion
def _shares(texts: list[str]) -> list[Fraction]:
    units = [int(text, 16) for text in texts]
    return [Fraction(unit, sum(units)) for unit in units]


def _factor(value: Any) -> tuple[float, Fraction]:
    """e^ε, about, and a rational below it."""
    if isinstance(value, str):
        head, _, log = value.rpartition("ln ")
        power, base = Fraction(head.strip() or 1), Fraction(log or 1)
        if power == 1:
            return float(base), base
        epsilon = float(power) * math.log(base) if log else float(Fraction(value))
    else:
        epsilon = value
    about = math.exp(min(epsilon, 700))
    return about, max(Fraction(1), Fraction(about) * (1 - Fraction(1, 10**11)))


def _value(number: Any) -> Fraction:
    """A stated number, from below where it is a logarithm."""
    head, ln, log = str(number).rpartition("ln ")
    if not ln:
        return Fraction(number)
    return Fraction(head.strip() or 1) * Fraction(math.log(Fraction(log)) * (1 - 1e-12))


def _least(first: list[Fraction], second: list[Fraction], d: Any, limit: float) -> Fraction:
    """The least cost of a coupling whose moves are at most ``limit``, from the dual."""
    n, m = len(first), len(second)
    rows, limits = [], []
    for x, y in itertools.product(range(n), range(m)):
        if first[x] and second[y] and d[x][y] <= limit:
            row = [Fraction(0)] * 2 * (n + m)
            row[x] = row[n + y] = Fraction(1)
            row[n + m + x] = row[n + m + n + y] = Fraction(-1)
            rows.append(row)
            limits.append(Fraction(d[x][y]))
    both = [*first, *second]
    return maximum([*both, *(-v for v in both)], rows, limits)


def _longest(first: list[Fraction], second: list[Fraction], d: Any) -> float:
    """W_∞: the least distance at which no set of points has too little room (Hall)."""
    sets = [
        s for k in range(1, len(first) + 1) for s in itertools.combinations(range(len(first)), k)
    ]
    for r in sorted({value for row in d for value in row}):
        if all(
            sum(first[x] for x in points)
            <= sum(v for y, v in enumerate(second) if any(d[x][y] <= r for x in points))
            for points in sets
        ):
            return float(r)
    raise AssertionError("there is always room at the largest distance")


def falsehood(content: bytes) -> str:
    """What an accepted file says that is not so."""
    body = json.loads(content)
    claims, d = body["claims"], body["distance"]
    inputs = [_shares(plan["input"]) for plan in body["plans"]]
    outputs = [_shares(plan["output"]) for plan in body["plans"]]
    weights = _shares(body["weights"])
    costs = []
    for plan, lam, mu in zip(body["plans"], inputs, outputs, strict=True):
        total = sum(int(text, 16) for _, _, text in plan["moves"])
        gamma = {(x, y): Fraction(int(text, 16), total) for x, y, text in plan["moves"]}
        for x, mass in enumerate(lam):
            if sum(v for (a, _), v in gamma.items() if a == x) != mass:
                return "another input"
        for y, mass in enumerate(mu):
            if sum(v for (_, b), v in gamma.items() if b == y) != mass:
                return "another output"
        costs.append(sum(v * Fraction(d[x][y]) for (x, y), v in gamma.items()))
    loss = sum(w * c for w, c in zip(weights, costs, strict=True))
    for stated, proper in [(claims["loss"], loss), *zip(claims["losses"], costs, strict=True)]:
        if not proper <= stated <= proper * (1 + Fraction(1, 2**50)):
            return "another loss"
    gap = (loss - Fraction(claims["lower_bound"])) / loss if loss else 0
    if claims["status"] != ("optimal" if gap <= 1e-6 else "feasible"):
        return "another status"
    if body["distance_name"] != "matrix" and not _named(body):
        return "other distances"
    if body["task"] == "coupling":
        if any(mu != outputs[0] for mu in outputs):
            return "outputs that differ"
        for lam, mu, cost, move in zip(inputs, outputs, costs, claims["worst_moves"], strict=True):
            limit = math.inf
            if body["p"] == "inf":
                limit = _longest(lam, mu, d)
                if move != limit:
                    return "a longest move that can be shorter"
            if _least(lam, mu, d, limit) != cost:
                return "a plan that is not optimal"
        return ""
    about, factor = _factor(body["epsilon"])
    delta = body["delta"]
    spare = _value(delta)
    for p, q in itertools.permutations(outputs, 2):
        over = sum(
            max(0.0, float(a) - about * float(b) * (1 + 1e-9)) for a, b in zip(p, q, strict=True)
        )
        if over > float(spare) + (1e-12 if spare else 0):
            return "outputs that are not close"
    best = joint_optimum(
        inputs, [[Fraction(v) for v in row] for row in d], weights, factor, min(spare, Fraction(1))
    )
    return "" if claims["lower_bound"] <= best else "a bound beyond the optimum"


def _named(body: Body) -> bool:
    """Whether the matrix is the named distance of the coordinates, by formulas of its own."""
    points = []
    for name in ("secrets", "observables"):
        plain = body[name]
        if body["distance_name"] == "hamming":
            points.append(plain.get("labels") or list(np.ndindex(*plain["grid"])))
        elif "grid" in plain:
            rows, columns = plain["grid"]
            row, column = np.divmod(np.arange(rows * columns), columns)
            cell, origin = plain["cell"], plain["origin"]
            points.append(
                np.column_stack(
                    [origin[0] + (column + 0.5) * cell[0], origin[1] + (row + 0.5) * cell[1]]
                )
            )
        else:
            points.append(np.array(plain["points"]))
    if body["distance_name"] == "hamming":
        proper = np.array([[float(a != b) for b in points[1]] for a in points[0]])
    elif body["distance_name"] == "haversine":
        unit = []
        for lonlat in points:
            lon, lat = np.radians(lonlat).T
            unit.append(
                np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
            )
        chord = np.linalg.norm(unit[0][:, None] - unit[1][None], axis=2)
        proper = 2 * 6371.0088 * np.arcsin(np.minimum(chord / 2, 1))
    else:
        order = 2 if body["distance_name"] == "euclidean" else 1
        proper = np.linalg.norm(points[0][:, None] - points[1][None], ord=order, axis=2)
    return bool(np.allclose(body["distance"], proper, rtol=1e-7, atol=1e-9))


def run(count: int, seed: int, folder: Path) -> Tally:
    """Judge ``count`` mutations; ``wrong`` tells every disagreement and every false claim."""
    rng, tally, made = np.random.default_rng(seed), Tally(Counter(), []), files()
    names, path = list(made), folder / "mutated.json"
    for k in range(count):
        name = names[int(rng.integers(len(names)))]
        content, done = mutate(rng, made[name])
        path.write_bytes(content)
        where = f"{k} {name}: {done}"
        try:
            verdict = judge(path)
        except Exception as error:
            tally.wrong.append(f"{where}: {type(error).__name__}: {error}")
            continue
        if bool(verdict.check) != bool(verdict.audit):
            tally.wrong.append(f"{where}: check {verdict.check}, audit {verdict.audit}")
        same = content == made[name]
        tally.counts["unchanged" if same else "refused" if verdict.check else "accepted"] += 1
        if not (verdict.check or same):
            false = falsehood(content)
            if false:
                tally.wrong.append(f"{where}: accepted and {false}")
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = run(args.count, args.seed, Path(folder))
    print(dict(tally.counts), f"{len(tally.wrong)} wrong")
    print("\n".join(tally.wrong))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
