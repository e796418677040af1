"""Bounds by cells: what files say that proves them, read by the check and by the audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from hypothesis import given, settings, strategies as st
from optmech_audit import cells
from scipy.optimize import linprog

import optmech as om
from optmech.designs import outer
from optmech.designs.file import load_mechanism
from optmech.reading.lists import contracted
from optmech.reading.sealed import FORMATS, expanded, seal
from optmech.reductions.aggregation import Members
from optmech.reductions.witness import Witness, rounded, witness_of, witnessed
from optmech.transport.gains import Arcs

E = om.distances.euclidean()
Body = dict[str, Any]


def scattered(count: int, coordinates: str = "plane") -> om.Problem:
    """Places of very different mass, some of none, a region around them, and six reports."""
    rng = np.random.default_rng(count)
    points = rng.uniform(0.1, 3.9, (count, 2))
    weights = rng.dirichlet([0.3] * count)
    weights[::11] = 0
    weights /= weights.sum()
    epsilon: object = "ln 2"
    if coordinates == "plane":
        places, km = om.Domain(range(count), points), E
        reports, mesh = om.Domain(range(6), points[:6]), om.Mesh.grid((0, 0, 4, 4), 2)
    else:
        points = points * [0.02, 0.015] + [12.45, 41.87]
        places, km = om.Domain.geographic(range(count), points), om.distances.haversine()
        reports, epsilon = om.Domain.geographic(range(6), points[:6]), 0.8
        mesh = om.Mesh.around(places, 4)
    promise = om.MetricPrivacy(epsilon, km, everywhere=mesh)
    return om.Problem(om.Prior(places, weights), km, reports, constraints=[promise])


def of_cells() -> om.Problem:
    rng = np.random.default_rng(4)
    grid = om.Grid(6, 6)
    return om.Problem(
        om.Prior(grid, rng.dirichlet([0.5] * 36)), E, constraints=[om.MetricPrivacy(0.4, E)]
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A design for every point in the plane and one in degrees, and one of a resolution."""
    folder = tmp_path_factory.mktemp("cells")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outer, "_CELLS", 30)
        designs = {
            "plane": om.solve(scattered(200), gap=1e-2),
            "degrees": om.solve(scattered(160, "lonlat"), gap=1e-2),
            "resolution": om.solve(of_cells(), resolution=9),
        }
    for name, design in designs.items():
        design.save(folder / f"{name}.json")
    return {name: folder / f"{name}.json" for name in designs}


NAMES = ("plane", "degrees", "resolution")


def changed(path: Path, change: Callable[[Body], object], out: Path) -> Path:
    body = json.loads(path.read_text())
    del body["digest"]
    form = {each.listed: each.name for each in FORMATS.values()}.get(body["format"])
    if form is not None:
        body = {**expanded(body), "format": form}
    change(body)
    out.write_bytes(seal(json.dumps(body).encode()))
    return out


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_proves_what_the_check_proves(name: str, files: dict[str, Path]) -> None:
    report = om.check(files[name])
    assert report.passed, report.faults
    lines, unchecked = audit.judge(str(files[name]))
    assert "cells" not in unchecked
    words = " ".join(lines)
    assert " cells of the " in words
    assert f"{report.lower_bound!r}" in words
    assert report.lower_bound > 0
    again = om.Design.load(files[name])
    assert again.lower_bound == report.lower_bound


@pytest.mark.parametrize("name", NAMES)
def test_lists_as_bytes_and_as_text(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    text = changed(files[name], lambda _: None, tmp_path / "text.json")
    body = json.loads(text.read_text())
    del body["digest"]
    listed = {**contracted(body), "format": FORMATS[body["format"]].listed}
    (tmp_path / "bytes.json").write_bytes(seal(json.dumps(listed).encode()))
    figures = set()
    for path in (text, tmp_path / "bytes.json"):
        report = om.check(path)
        assert report.passed
        audit.audit(str(path))
        figures.add((report.loss, report.lower_bound))
        assert om.Design.load(path).lower_bound == report.lower_bound
    assert len(figures) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_bound_is_below_the_optimum_of_the_places(name: str, files: dict[str, Path]) -> None:
    design = om.Design.load(files[name])
    problem = design.problem
    promise = problem.constraints[0]
    assert isinstance(promise, om.MetricPrivacy)
    alone = om.Problem(
        problem.prior, problem.loss_matrix, problem.observables,
        constraints=[om.MetricPrivacy(promise.epsilon, promise.distance)],
    )  # fmt: skip
    best = om.solve(alone, gap=1e-3)
    assert 0.75 * best.loss < design.lower_bound <= best.loss


def raised(body: Body) -> None:
    result = body["result"]
    result["lower_bound"] *= 1 + 1e-6
    if "objective" in result:
        result["bound"] = result["lower_bound"]


def raised_much(body: Body) -> None:
    result = body["result"]
    result["lower_bound"] *= 1.01
    if "objective" in result:
        result["bound"] = result["lower_bound"]


def moved(body: Body) -> None:
    """A place with mass that its cell is not alone in changes to another cell."""
    cells, prior = body["outer"]["cells"], body["problem"]["prior"]
    heavy = max(range(len(cells)), key=lambda s: prior[s] * (cells.count(cells[s]) > 1))
    cells[heavy] = (cells[heavy] + 1) % max(cells)


def without_pairs(body: Body) -> None:
    plans = body["outer"]["plans"]
    body["outer"]["plans"] = {name: [] for name in plans}


def reversed_targets(body: Body) -> None:
    """Every plan that has several targets sends to the wrong ones."""
    plans = body["outer"]["plans"]
    at = 0
    for count in plans["arcs"]:
        part = slice(at, at + count)
        plans["share"][part] = plans["share"][part][::-1]
        at += count
    plans["target"][:] = [0] * len(plans["target"])


def lopsided(body: Body) -> None:
    shares = body["outer"]["plans"]["share"]
    shares[:] = [1 if share > 500_000 else share for share in shares]


def cheaper_costs(body: Body) -> None:
    costs = body["outer"]["costs"]
    if "radii" in costs:
        costs["radii"] = [0.999 * f for f in costs["radii"]]
    else:
        costs["target"] = [0] * len(costs["target"])


def stretched(body: Body) -> None:
    ratio = body["outer"]["multipliers"]["ratio"]
    ratio["value"] = [1.01 * z for z in ratio["value"]]


def no_multipliers(body: Body) -> None:
    ratio = body["outer"]["multipliers"]["ratio"]
    body["outer"]["multipliers"]["ratio"] = {name: [] for name in ratio}


def cut_short(body: Body) -> None:
    body["outer"]["plans"]["share"].pop()


def too_many(body: Body) -> None:
    for name in ("target", "share"):
        body["outer"]["plans"][name].append(1)


def nowhere(body: Body) -> None:
    body["outer"]["plans"]["target"][0] = 200


def negative(body: Body) -> None:
    body["outer"]["plans"]["share"][0] = -1


def idle(body: Body) -> None:
    body["outer"]["plans"]["share"][0] = 0


def unknown_pair(body: Body) -> None:
    body["outer"]["plans"]["first"][0] = 10**6


def own_pair(body: Body) -> None:
    plans = body["outer"]["plans"]
    plans["first"][0] = plans["second"][0]


def repeated_arc(body: Body) -> None:
    """A plan that proves less, with which what is worked on together grows without a bound."""
    result = body["result"]
    result["lower_bound"] *= 0.5
    if "objective" in result:
        result["bound"] = result["lower_bound"]
    plans = body["outer"]["plans"]
    plans["arcs"][0] += 2000
    for name in ("target", "share"):
        plans[name][:0] = plans[name][:1] * 2000


def turned_pairs(body: Body) -> None:
    """The same plans with the first of them at the end, and once more where it was."""
    plans, own = body["outer"]["plans"], body["outer"]["cells"].count(0)
    arcs = sum(plans["arcs"][:own])
    assert (plans["first"][0], plans["second"][0]) == (0, 1)
    for name, count in (("first", 1), ("second", 1), ("arcs", own)):
        plans[name] += plans[name][:count]
    for name in ("target", "share"):
        plans[name] += plans[name][:arcs]


def half(body: Body) -> None:
    del body["outer"]["costs"]


def more(body: Body) -> None:
    body["outer"]["plans"]["note"] = "x"


def larger_loss(body: Body) -> None:
    body["problem"]["prior"] = body["problem"]["prior"][::-1]


MUTATIONS = [
    raised, moved, without_pairs, reversed_targets, lopsided, cheaper_costs, stretched,
    no_multipliers, cut_short, too_many, nowhere, negative, idle, unknown_pair, own_pair, half,
    more, larger_loss, repeated_arc, turned_pairs,
]  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("name", ["plane", "resolution"])
def test_both_refuse_what_was_changed(
    name: str, mutation: Callable[[Body], None], files: dict[str, Path], tmp_path: Path
) -> None:
    path = changed(files[name], mutation, tmp_path / "changed.json")
    with suppress(om.VerificationError):
        assert not om.check(path).passed
    with pytest.raises(audit.Fault):
        audit.audit(str(path))


def weaker_plan(body: Body) -> None:
    body["result"]["lower_bound"] *= 0.5
    if "objective" in body["result"]:
        body["result"]["bound"] = body["result"]["lower_bound"]
    shares = body["outer"]["plans"]["share"]
    shares[:] = [max(1, share - share % 2**14) for share in shares]


@pytest.mark.parametrize("name", ["plane", "resolution"])
def test_any_plan_proves_something(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    path = changed(files[name], weaker_plan, tmp_path / "weaker.json")
    assert om.check(path).passed
    assert audit.audit(str(path))


@pytest.mark.parametrize("name", NAMES)
def test_older_files_have_no_plans(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    def older(body: Body) -> None:
        del body["outer"]["plans"], body["outer"]["costs"]

    path = changed(files[name], older, tmp_path / "older.json")
    assert om.check(path).passed
    _, unchecked = audit.judge(str(path))
    assert "by cells of the" in unchecked
    # what is found again proves a little more than whole shares do
    assert om.check(changed(path, raised, tmp_path / "raised.json")).passed
    assert not om.check(changed(path, raised_much, tmp_path / "raised.json")).passed


def least_arrival(ratio: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """min λ: shares of rows sum to one, Σ_i a_i s_ij e^{r_ij} <= λ b_j, as a linear program."""
    n, m = ratio.shape
    arrive = np.zeros((m, n * m + 1))
    for i in range(n):
        for j in range(m):
            arrive[j, i * m + j] = a[i] * np.exp(ratio[i, j])
    arrive[:, -1] = -b
    sums = np.hstack([np.kron(np.eye(n), np.ones(m)), np.zeros((n, 1))])
    objective = np.r_[np.zeros(n * m), 1.0]
    return float(linprog(objective, arrive, np.zeros(m), sums, np.ones(n), method="highs").fun)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.2, 1.0, 20.0]))
def test_ratios_and_costs_are_those_of_a_linear_program(seed: int, alpha: float) -> None:
    """Never below, and above by little: whole shares cost a part in ten thousand at most."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 1, (12, 2))
    ratio = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    weights = np.maximum(rng.dirichlet([alpha] * 12), 1e-6)
    weights /= weights.sum()
    cost = rng.uniform(0.1, 2, (12, 2))
    cells = np.repeat([0, 1, 2], 4)
    prior = om.Prior(om.Domain(range(12)), weights)
    pairs = np.array([0, 1, 2]), np.array([1, 2, 0])
    members = Members.of(prior, cost, lambda i, j: ratio[i, j], cells)
    found = witnessed(members, witness_of(members, pairs, boxes=False))
    boxed = witnessed(members, witness_of(members, pairs, boxes=True))
    for c in range(3):
        own, to = np.flatnonzero(cells == c), np.flatnonzero(cells == (c + 1) % 3)
        a, b = (weights[part] / weights[part].sum() for part in (own, to))
        best = np.log(least_arrival(ratio[np.ix_(own, to)], a, b))
        assert best - 1e-6 <= found.log_ratio[c, (c + 1) % 3] <= best + 1e-4
        for o in range(2):
            least = 1 / least_arrival(ratio[np.ix_(own, own)], a, a * cost[own, o])
            assert least * (1 - 1e-4) <= found.cost[c, o] <= least * (1 + 1e-6)
            assert boxed.cost[c, o] <= least * (1 + 1e-6)


def test_shares_in_whole_numbers_sum_to_the_same() -> None:
    rng = np.random.default_rng(0)
    source = np.tile([0, 0, 0, 1, 1, 2], (50, 1))
    target = np.tile([0, 1, 2, 2, 0, 1], (50, 1))
    share = rng.dirichlet([0.2] * 6, 50)
    share[:, 0] = 0
    found = rounded(Arcs(source, target, share), 3)
    for s in range(3):
        assert (found.share[source == s].reshape(50, -1).sum(axis=1) == 2**20 - 1).all()
    assert (found.share[share == 0] == 0).all()
    assert (found.share == np.floor(found.share)).all()


def by_hand(epsilon: float) -> tuple[float, Fraction]:
    """Two cells of two equal places at the corners of a unit square, and one report at cost 1 or
    2: the audit's own numbers for plans that send everything straight across."""
    body: Body = {
        "cells": [0, 0, 1, 1],
        "plans": {"first": [0], "second": [1], "arcs": [1, 1], "target": [0, 1], "share": [1, 1]},
        "costs": {"radii": [0.0, 0.0, 0.0, 0.0]},
        "multipliers": {
            "ratio": None, "windowed": [], "lifted": [], "approximate": [], "distortion": [],
            "loss_limits": [], "objective": None,
        },
    }  # fmt: skip

    stated = SimpleNamespace(
        n=4, m=1, prior=[Fraction(1, 4)] * 4, loss=[[Fraction(c)] for c in (1, 2, 1, 1)]
    )

    def logs(s: int, t: int) -> Fraction:
        return Fraction(epsilon) if abs(s - t) == 2 else Fraction(0)

    found = cells.Cells(body, stated, logs)  # type: ignore[arg-type]
    return float(found.ratios()[0, 1]), found.bound()


def test_two_cells_by_hand() -> None:
    factor, bound = by_hand(0.5)
    assert factor == pytest.approx(np.exp(0.5), rel=1e-15)
    assert factor >= np.exp(0.5) * (1 - 1e-16)
    # one report: (1 + 2)/4 + 2/4, as members of a cell are alike
    assert Fraction(5, 4) - Fraction(1, 2**50) <= bound <= Fraction(5, 4)


def test_a_design_of_cells_can_be_drawn_from(files: dict[str, Path]) -> None:
    drawn = load_mechanism(files["resolution"])
    assert drawn.matrix.shape == (36, 36)


def test_a_witness_is_read_as_it_was_written() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    ratio = np.array([[0.0, 1.0], [1.0, 0.0]])
    prior = om.Prior.uniform(om.Domain(range(2)))
    cells = np.zeros(2, dtype=np.int64)
    members = Members.of(prior, np.eye(2), lambda i, j: ratio[i, j], cells)
    found: Witness = witness_of(members, (nothing, nothing), boxes=True)
    assert found.plain()["plans"] == {
        "first": [], "second": [], "arcs": [], "target": [], "share": [],
    }  # fmt: skip
    # one cell: the best constant of the means within e^{±1/2}
    low = float(np.exp(-1.0) / (1 + np.exp(-1.0)))
    assert witnessed(members, found).cost == pytest.approx(low, rel=1e-9)


def test_places_in_degrees_by_cells_are_few(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Detours between all of them are looked for: a file may not ask for that of any number."""
    monkeypatch.setattr("optmech.designs.outer._GLOBAL", 100)
    with pytest.raises(om.VerificationError, match="so many places in degrees"):
        om.check(files["degrees"])
