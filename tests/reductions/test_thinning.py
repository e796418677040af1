"""Fewer multipliers: no cycles are left, and what they prove is at least the same."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import optmech as om
from optmech.certificate import lower_bound
from optmech.certificate.bound import pairs_of
from optmech.certificate.families import PairMultipliers
from optmech.reductions.pairs import thinned


def charged(pairs: PairMultipliers, ratio: np.ndarray, columns: int) -> np.ndarray:
    """What multipliers add to the Lagrangian: + z at i, - e^r z at j."""
    out = np.zeros((len(ratio), columns))
    for i, j, o, z in zip(pairs.i, pairs.j, pairs.o, pairs.value, strict=True):
        out[i, o] += z
        out[j, o] -= np.exp(ratio[i, j]) * z
    return out


@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from([0.0, 0.3, 2.0]))
def test_no_cycles_and_nothing_lowered(seed: int, secrets: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    ratio = scale * rng.uniform(0, 1, (secrets, secrets))
    i, j, o = (rng.integers(0, n, 80) for n in (secrets, secrets, 3))
    kept = i != j
    _, first = np.unique(np.column_stack([i, j, o])[kept], axis=0, return_index=True)
    i, j, o = (part[kept][first] for part in (i, j, o))
    given_pairs = PairMultipliers(i, j, o, rng.exponential(1, len(i)) ** 3)
    found = thinned(given_pairs, ratio)
    before, after = (charged(part, ratio, 3) for part in (given_pairs, found))
    assert (after >= before - 1e-9 * (1 + np.abs(before).max())).all()
    assert (found.value > 0).all()
    for column in range(3):
        graph = nx.MultiGraph()
        here = found.o == column
        graph.add_edges_from(zip(found.i[here], found.j[here], strict=True))
        assert graph.number_of_edges() == 0 or nx.is_forest(graph)


def test_the_bound_of_a_design_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """All designs are thinned here, and one has no cycles left and is still optimal."""
    from optmech.pipeline import session

    problem = om.load_problem("grid-5x5")
    plain = om.solve(problem)
    monkeypatch.setattr(session, "_MANY", -1)
    monkeypatch.setattr(session, "_WORTH", -1)
    design = om.solve(problem)
    assert design.status == "optimal"
    assert design.bound == pytest.approx(plain.bound, rel=1e-6)
    statement = problem.statement
    assert lower_bound(statement, design.certificate.multipliers).value == design.bound
    pairs = pairs_of(statement, design.certificate.multipliers)
    assert pairs is not None
    assert np.bincount(pairs.o).max() < len(problem.secrets)
