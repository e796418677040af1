"""Columns that leave a run: what remains is private, the bounds hold for all, and a wrong guess
costs time only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.base.native import has_kernels
from optmech.engines.structured import engine, narrowing
from optmech.engines.structured.model import build
from optmech.engines.structured.narrowing import Narrowing
from optmech.engines.structured.rows import make_cone
from optmech.engines.structured.state import start
from optmech.engines.structured.tuning import TUNING
from optmech.lp.inequalities import Inequalities, compile_lp

pytestmark = pytest.mark.skipif(not has_kernels(), reason="no kernels are compiled")

WIDER = replace(TUNING, narrowed=0.75)
EUCLIDEAN = om.distances.euclidean()


def problem(loss: Any = EUCLIDEAN, side: int = 8) -> om.Problem:
    cells = om.Grid(side, side)
    weights = np.random.default_rng(3).dirichlet(np.full(side * side, 0.3))
    privacy = om.MetricPrivacy(0.9, EUCLIDEAN)
    return om.Problem(om.Prior(cells, weights), loss, constraints=[privacy])


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of 64 places are compiled as well, and narrowed to more of their columns."""
    monkeypatch.setattr(engine, "SMALL", 1_000)
    monkeypatch.setattr(narrowing, "TUNING", WIDER)


def solved(given: om.Problem) -> tuple[om.Design, list[str]]:
    said: list[str] = []
    return om.solve(given, gap=1e-6, progress=said.append), said


@pytest.mark.parametrize("loss", [EUCLIDEAN, om.distances.hamming()], ids=["euclidean", "hamming"])
def test_the_optimum_is_that_of_another_engine(loss: Any) -> None:
    given = problem(loss, 6)
    design, said = solved(given)
    assert any("the others are hardly used" in line for line in said)
    other = om.solve(given, "lazy", gap=1e-6)
    assert design.lower_bound <= other.loss * (1 + 1e-12)
    assert other.lower_bound <= design.loss * (1 + 1e-12)
    assert design.gap <= 1e-6


@pytest.mark.parametrize("widened", [3, 0], ids=["they alone", "all columns"])
def test_columns_that_should_not_have_left_come_back(
    widened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three most used columns are thrown out, whatever their sums do."""
    given = problem()
    best = solved(given)[0]
    most = np.argsort(-best.matrix.sum(axis=0))[:3]
    honest = Narrowing._in_use
    thrown: list[int] = []

    def lying(self: Narrowing, state: Any, active: Any, now: Any) -> Any:
        used = honest(self, state, active, now)
        if self.before is None and used.sum() - 3 <= WIDER.narrowed * len(active):
            thrown.extend(most)
            used[most] = False
        return used

    monkeypatch.setattr(Narrowing, "_in_use", lying)
    monkeypatch.setattr(narrowing, "TUNING", replace(WIDER, most_widened=widened))
    design, said = solved(given)
    assert thrown
    assert any("and come back" in line for line in said) == bool(widened)
    assert any("all reports" in line for line in said) == (not widened)
    assert design.gap <= 1e-6
    assert design.loss == pytest.approx(best.loss, rel=2e-6)
    assert (design.matrix.sum(axis=0)[most] > 1e-3).all()


def test_a_column_that_is_missing_joins_where_the_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is hardly used is thrown out late: its return neither starts the run again nor
    costs more than the columns that nothing asks for."""
    given = problem()
    best = solved(given)[0]
    sums = best.matrix.sum(axis=0)
    least = int(np.argmin(np.where(sums > 1e-2, sums, np.inf)))
    honest, back = Narrowing._in_use, narrowing._with_more
    joined: list[int] = []

    def lying(self: Narrowing, state: Any, active: Any, now: Any) -> Any:
        used = honest(self, state, active, now)
        if now.gap < 0.02 and not self._back.any():
            used[active == least] = False
        return used

    def counted(*given: Any) -> Any:
        state = back(*given)
        joined.append(len(state.P) - len(given[0].P))
        assert state.P[:, :-1].sum(axis=0) == pytest.approx(given[0].P[:, :-1].sum(axis=0))
        rows = state.rows
        held = rows.e * state.P[rows.block, rows.j] - state.P[rows.block, rows.i]
        before = given[0].rows
        own = before.e * given[0].P[before.block, before.j]
        inside = own - given[0].P[before.block, before.i] > 0
        assert (held[: len(inside)][inside] > 0).all()
        assert (held[len(inside) :] > 0).all()
        assert rows.s.min() > 0
        return state

    monkeypatch.setattr(Narrowing, "_in_use", lying)
    monkeypatch.setattr(narrowing, "_with_more", counted)
    design, said = solved(given)
    assert any("and come back" in line for line in said)
    assert joined == [1]
    assert design.gap <= 1e-6
    assert design.loss == pytest.approx(best.loss, rel=2e-6)
    assert design.matrix.sum(axis=0)[least] > 1e-3


def test_what_remains_is_a_mechanism_as_far_inside() -> None:
    """Row sums stay one and no pair loses slack when columns leave."""
    model = build(compile_lp(Inequalities.of(problem().statement)).lp)
    cone = make_cone(model)
    before = start(model, cone)
    rng = np.random.default_rng(1)
    before.P[:, :-1] *= rng.uniform(0.5, 2.0, (model.blocks, 1))
    before.P[:, :-1] /= before.P[:, :-1].sum(axis=0)
    used = rng.random(model.blocks) < 0.3
    after = narrowing._within(before, used)
    assert after.P.shape == (used.sum(), model.variables + 1)
    assert after.P[:, :-1].sum(axis=0) == pytest.approx(np.ones(model.variables), abs=1e-12)
    rows = after.rows
    assert len(rows) == sum(np.diff(before.rows.offset)[used])
    slack = rows.e * after.P[rows.block, rows.j] - after.P[rows.block, rows.i]
    held = before.P[used]
    least = rows.e * held[rows.block, rows.j] - held[rows.block, rows.i]
    assert (slack >= least - 1e-15).all()
