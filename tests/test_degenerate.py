"""Degenerate problems, by every engine and on every way through the pipeline: places in parts far
apart, equal, on a line or alone, mass in one place, reports or losses that say nothing, ε at both
ends. Loss and bounds are compared with a linear program of this file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from scipy.optimize import linprog

import optmech as om
from optmech.designs import outer
from optmech.engines import NAMES
from optmech.pipeline.profiles import load_profile

_RNG = np.random.default_rng(4)
_SQUARE = _RNG.uniform(0, 4, (6, 2))


@dataclass(frozen=True, eq=False)
class Case:
    """Places in a square of side 12 with weights, what reports cost, and ε per unit."""

    points: np.ndarray
    weights: np.ndarray
    cost: np.ndarray
    epsilon: float = 1.0


def case(
    points: object,
    weights: object = None,
    cost: object = None,
    epsilon: float = 1.0,
    reports: int = 3,
) -> Case:
    at = np.array(points, dtype=float).reshape(-1, 2)
    mass = np.full(len(at), 1 / len(at)) if weights is None else np.array(weights, dtype=float)
    marks = np.array([[1.0, 1.0], [9.0, 2.0], [4.0, 10.0], [6.0, 6.0]])[np.arange(reports) % 4]
    far = np.hypot(*(at[:, None] - marks).transpose(2, 0, 1))
    return Case(at, mass, far if cost is None else np.array(cost, dtype=float), epsilon)


def clusters(count: int) -> np.ndarray:
    middles = 1.0 + 3.5 * np.column_stack([np.arange(count) % 3, np.arange(count) // 3])
    return np.asarray(middles.repeat(3, axis=0) + 1e-3 * _RNG.normal(size=(3 * count, 2)))


CASES = {
    "one place": case([[3, 4]]),
    "two equal places": case([[3, 4], [3, 4], [8, 1]]),
    "equal places only": case([[3, 4]] * 3),
    "nearly equal places": case([[3, 4], [3 + 1e-12, 4], [3, 4 + 1e-14]]),
    "two parts": case(clusters(2)),
    "four parts": case(clusters(4)),
    "eight parts": case(clusters(8), epsilon=8.0),
    "mass in one place": case(_SQUARE, np.eye(6)[2]),
    "mass in one of two equal places": case([[3, 4], [3, 4], [8, 1]], [0, 1, 0]),
    "places without mass": case(_SQUARE, [0.5, 0, 0, 0.5, 0, 0]),
    "next to no mass": case(_SQUARE, [1 - 5e-300, *[1e-300] * 5]),
    "one report": case(_SQUARE, reports=1),
    "equal reports": case(_SQUARE, cost=np.tile(_SQUARE[:, :1], (1, 3))),
    "one report best everywhere": case(_SQUARE, cost=_SQUARE[:, :1] + [[0.0, 1.0, 2.0]]),
    "no losses": case(_SQUARE, cost=np.zeros((6, 3))),
    "one report without loss": case(_SQUARE, cost=_SQUARE[:, :1] * [[0.0, 1.0, 2.0]]),
    "no loss where mass is": case(
        _SQUARE, [0.5, 0.5, 0, 0, 0, 0], cost=np.repeat([0.0, 0, 1, 1, 1, 1], 2).reshape(6, 2)
    ),
    "tiny losses": case(_SQUARE, cost=1e-200 * _RNG.uniform(size=(6, 3))),
    "huge losses": case(_SQUARE, cost=1e150 * _RNG.uniform(size=(6, 3))),
    "losses of many sizes": case(_SQUARE, cost=10.0 ** _RNG.uniform(-30, 30, (6, 3))),
    "tiny epsilon": case(_SQUARE, epsilon=1e-13),
    "small epsilon": case(_SQUARE, epsilon=3e-8),
    "huge epsilon": case(_SQUARE, epsilon=1e5),
    "on a line": case([[k, 2] for k in range(6)]),
    "on a slope": case([[k, 2 + k / 3] for k in range(6)]),
    "many reports": case(_SQUARE[:2], reports=9),
    "many places": case(_RNG.uniform(0, 12, (14, 2)), reports=2),
}  # fmt: skip
E = om.distances.euclidean()


def stated(given: Case, **more: object) -> om.Problem:
    places = om.Domain(range(len(given.points)), given.points)
    reports = om.Domain(range(given.cost.shape[1]))
    prior = om.Prior(places, given.weights / given.weights.sum())
    return om.Problem(
        prior, given.cost, reports, constraints=[om.MetricPrivacy(given.epsilon, E, **more)]
    )


@functools.cache
def optimum(given: Case) -> float:
    """Over the places, by a program written out here."""
    size, reports = given.cost.shape
    away = given.points[:, None] - given.points
    limit = given.epsilon * np.hypot(away[..., 0], away[..., 1])
    rows = []
    for i in range(size):
        for j in range(size):
            if i != j and limit[i, j] < 300:
                for o in range(reports):
                    row = np.zeros((size, reports))
                    row[i, o], row[j, o] = np.exp(-limit[i, j] / 2), -np.exp(limit[i, j] / 2)
                    rows.append(row.ravel() / np.abs(row).max())
    scale = given.cost.max() or 1.0
    found = linprog(
        (given.weights[:, None] / given.weights.sum() * given.cost / scale).ravel(),
        np.array(rows) if rows else None,
        np.zeros(len(rows)) if rows else None,
        np.kron(np.eye(size), np.ones(reports)),
        np.ones(size),
    )
    return float(found.fun * scale)


def judge(given: Case, design: object, *, best: float | None = None) -> None:
    """Verified, bounds below the loss and below the optimum over the places."""
    assert isinstance(design, om.Design)
    assert design.verified
    assert 0 <= design.lower_bound <= design.loss
    scale = given.cost.max()
    own = optimum(given) if best is None else best
    assert design.lower_bound <= own + 1e-7 * scale
    assert design.loss >= own - 1e-7 * scale
    assert not [note for note in (*design.notes, design.reason) if "failed" in note]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", [name for name in NAMES if name != "auto"])
def test_engines(engine: str, name: str) -> None:
    given = CASES[name]
    design = om.solve(stated(given), replace(load_profile("auto"), engine=engine, time_limit=20))
    judge(given, design)


def by_auto(given: Case) -> object:
    return om.solve(stated(given))


def from_a_neighbour(given: Case) -> object:
    neighbour = om.solve(stated(replace(given, epsilon=2 * given.epsilon)))
    return om.solve(stated(given), start=neighbour)


def by_cells(given: Case) -> object:
    return om.solve(stated(given), resolution=2, time_limit=20)


def on_the_plane(given: Case) -> object:
    mesh = om.Mesh.grid((-1, -1, 13, 13), 7, degree=2)
    return om.solve(stated(given, everywhere=mesh), gap=1e-3, time_limit=20)


WAYS: list[Callable[[Case], object]] = [by_auto, from_a_neighbour, by_cells, on_the_plane]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_ways(way: Callable[[Case], object], name: str) -> None:
    judge(CASES[name], way(CASES[name]))


def on_the_globe(given: Case) -> object:
    """Degrees of a box where a hundredth of a degree is about a kilometre."""
    points = [10.0, 45.0] + 0.01 * given.points
    places = om.Domain(range(len(points)), points, coordinates="lonlat")
    mesh = om.Mesh.grid((9.99, 44.99, 10.13, 45.13), 8.0, coordinates="lonlat", degree=2)
    prior = om.Prior(places, given.weights / given.weights.sum())
    promise = om.MetricPrivacy(given.epsilon, om.distances.haversine(), everywhere=mesh)
    reports = om.Domain(range(given.cost.shape[1]))
    return om.solve(om.Problem(prior, given.cost, reports, constraints=[promise]), gap=1e-3)


def some_rows_anew(given: Case) -> object:
    """Only where one row at least is kept, and one is not."""
    old = om.solve(stated(given))
    if len(given.points) == 1:
        return old
    return om.redesign(old, stated(given), free=[0])


@pytest.mark.parametrize("name", CASES)
def test_the_globe(name: str) -> None:
    design = on_the_globe(CASES[name])
    # distances differ a little, and with them the optimum
    judge(CASES[name], design, best=getattr(design, "loss", 0.0))


@pytest.mark.parametrize("name", CASES)
def test_rows_anew(name: str) -> None:
    given = CASES[name]
    design = some_rows_anew(given)
    judge(given, design, best=getattr(design, "loss", 0.0))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", [on_the_plane, on_the_globe])
def test_the_bound_by_cells(
    way: Callable[[Case], object], name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, value in (("FEW", 0), ("_CELLS", 4), ("_MEMBERS", 2)):
        monkeypatch.setattr(outer, number, value)
    design = way(CASES[name])
    best = None if way is on_the_plane else getattr(design, "loss", 0.0)
    judge(CASES[name], design, best=best)
    assert isinstance(design, om.Design)
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert audit.main([str(tmp_path / "d.json")]) == 0


# every case beside two kinds of three, in turns
BESIDE = [
    (kind, name)
    for k, name in enumerate(CASES)
    for m, kind in enumerate(("loss", "attack", "support"))
    if (k + m) % 3
]


@pytest.mark.parametrize(("beside", "name"), BESIDE)
def test_constraints_beside(beside: str, name: str, tmp_path: Path) -> None:
    given = CASES[name]
    blind = float((given.weights / given.weights.sum() @ given.cost).min())
    allowed = np.ones(given.cost.shape, dtype=int)
    allowed[:, 0] = 0
    constraint = {
        "loss": lambda: om.LossBound(1.01 * blind + 1e-9),
        "attack": lambda: om.constraints.GainLeakage(0.999, "identity"),
        "support": lambda: om.Support(allowed if allowed.shape[1] > 1 else 1 - allowed),
    }[beside]()
    mesh = om.Mesh.grid((-1, -1, 13, 13), 7, degree=2)
    promise = om.MetricPrivacy(given.epsilon, E, everywhere=mesh)
    plain = stated(given)
    problem = om.Problem(
        plain.prior, plain.loss, plain.observables, constraints=[promise, constraint]
    )
    design = om.solve(problem, gap=1e-3, time_limit=20)
    if design.status == "infeasible":
        # whoever is at one place is known to be there
        assert beside == "attack"
        assert given.weights.max() > 0.999 * given.weights.sum()
        design.save(tmp_path / "none.json")
        assert om.check(tmp_path / "none.json").status == "infeasible"
        assert audit.main([str(tmp_path / "none.json")]) == 0
        return
    judge(given, design, best=design.loss)
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert audit.main([str(tmp_path / "d.json")]) == 0


@pytest.mark.parametrize("name", ["no losses", "one report without loss", "no loss where mass is"])
@pytest.mark.parametrize("way", [*WAYS, on_the_globe])
def test_a_loss_of_zero_is_reached(
    way: Callable[[Case], object], name: str, tmp_path: Path
) -> None:
    design = way(CASES[name])
    assert isinstance(design, om.Design)
    assert (design.loss, design.gap, design.status) == (0, 0, "optimal")
    assert "-0.0" not in f"{design.bound} {design.lower_bound} {design!r} {design.summary()}"
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert audit.main([str(tmp_path / "d.json")]) == 0
