"""Large networks: constraints on segments alone, against programs and sums written again here."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import optmech_audit as audit
import pytest
import scipy.sparse as sp
from altered_regions import altered, last_digit, raise_figure
from test_line_design import own_program
from test_roads_design import city

import optmech as om
from optmech.base.edges import Edges
from optmech.base.native import has_kernels
from optmech.certificate import Multipliers, check_exact, lower_bound
from optmech.certificate.families import PairMultipliers, Ratio
from optmech.certificate.statement import Statement
from optmech.engines.structured import edges as engine
from optmech.engines.structured.state import residuals
from optmech.exact.number import parse_exact
from optmech.exact.numerators import Numerators
from optmech.spaces.mesh.network import Network

pytestmark = pytest.mark.skipif(not has_kernels(), reason="no kernels are compiled")


@pytest.fixture(scope="module")
def problem() -> om.Problem:
    roads = om.Mesh.roads(city(33, 33), coordinates="plane", unit="km")
    assert len(roads) > 1_000
    some = om.Domain([(4, 4), (4, 28), (28, 4), (28, 28), (16, 16), (9, 20)])
    promise = om.MetricPrivacy("3/2", everywhere=roads)
    return om.Problem(roads.prior("length"), roads.distance, some, constraints=[promise])


@pytest.fixture(scope="module")
def design(problem: om.Problem) -> om.Design:
    return om.solve(problem, gap=2e-3)


def lengths(design: om.Design) -> list[tuple[int, int, Fraction]]:
    mesh: Any = design.mesh
    ends = mesh.segments.tolist()
    return [(a, b, length) for (a, b), length in zip(ends, mesh.exact_lengths, strict=True)]


def test_every_segment_keeps_its_ratio_in_whole_numbers(design: om.Design) -> None:
    assert design.verified
    assert design.exact is not None
    rows = design.exact.rows
    for a, b, length in lengths(design):
        most = 1 + Fraction(3, 2) * length
        for p, q in zip(rows[a], rows[b], strict=True):
            assert p <= most * q
            assert q <= most * p


@pytest.mark.parametrize("outer", [False, True])
def test_the_bounds_are_those_of_sums_of_fractions(design: om.Design, outer: bool) -> None:
    """L[s,o] = π c + Σ z - f z, and Σ_s min_o L[s,o], added up here."""
    proof = design.certificate.outer if outer else design.certificate
    assert proof is not None
    given = proof.multipliers.families[0]
    factor = {}
    for a, b, length in lengths(design):
        power = Fraction(math.exp(1.5 * float(length)) * (1 + 1e-15))
        factor[a, b] = factor[b, a] = power if outer else 1 + Fraction(3, 2) * length
    statement = design.problem.statement
    left = [
        [Fraction(p) * Fraction(c) for c in row]
        for p, row in zip(statement.prior.tolist(), statement.loss.tolist(), strict=True)
    ]
    for i, j, o, z in zip(given.i, given.j, given.o, given.value.tolist(), strict=True):
        left[i][o] += Fraction(z)
        left[j][o] -= Fraction(z) * factor[i, j]
    bound = float(sum(map(min, left)))
    stated = design.lower_bound if outer else design.bound
    assert stated <= bound * (1 + 1e-12)
    assert stated == pytest.approx(bound, rel=1e-8)
    assert design.loss <= design.bound * (1 + 2.1e-3)
    assert design.lower_bound < design.bound


def test_nothing_is_made_for_all_pairs(
    problem: om.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a table of all pairs is asked for, there is an error: none of these asks."""

    def refuse(*_: object) -> Any:
        raise AssertionError("a table of all pairs")

    path = tmp_path / "d.json"
    for kind, name in ((Edges, "table"), (Ratio, "table"), (Ratio, "log_ratio"),
                       (Network, "along"), (Network, "apart"),
                       (Statement, "log_ratio")):  # fmt: skip
        monkeypatch.setattr(kind, name, property(refuse))
    mesh: Any = problem.mesh
    family = problem.statement.families[0]
    assert isinstance(family, Ratio)
    assert family.factors[0].shape == (2 * len(mesh.segments),)
    promise = om.MetricPrivacy(1, everywhere=mesh)
    again = om.Problem(problem.prior, mesh.distance, problem.observables, constraints=[promise])
    found = om.solve(again, gap=0.3)
    found.save(path)
    assert om.load(path) == found
    assert om.check(path).passed
    assert found.mechanism.at([((4, 4), (4, 5), 0.5)]).sum() == pytest.approx(1)


def test_files_prove_it_and_altered_ones_do_not(design: om.Design, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    plain = tmp_path / "plain.json"
    design.save(path)
    said = "\n".join(audit.audit(str(path)))
    assert f"{len(lengths(design))} segments" in said
    assert f"lower bound {design.lower_bound!r}" in said
    from optmech.reading.lists import unpacked
    from optmech.reading.sealed import seal

    body = unpacked(json.loads(path.read_text()))
    del body["digest"]
    body["format"] = "optmech-design/2"
    plain.write_bytes(seal(json.dumps(body).encode()))
    audit.audit(str(plain))

    def shorten(body: Any) -> None:
        stated = body["problem"]["constraints"][0]["everywhere"]["lengths"]
        stated[3] /= 1e6

    def joined(body: Any) -> None:
        """A multiplier of two vertices that no segment joins."""
        body["outer"]["multipliers"]["ratio"]["j"][0] = 999

    for change in (shorten, last_digit(2), raise_figure("lower_bound", 1e-2),
                   raise_figure("loss", -1e-3), raise_figure("bound", 1e-2)):  # fmt: skip
        wrong = altered(plain, change)
        with pytest.raises(om.OptmechError):
            om.load(wrong)
        with pytest.raises(audit.Fault):
            audit.audit(str(wrong))
    # it counts for nothing, and a bound that needed it is not proved
    wrong = altered(plain, joined)
    assert not om.check(wrong).passed or om.load(wrong).lower_bound == design.lower_bound


def test_small_networks_attain_the_optimum_of_a_program_written_again() -> None:
    roads = om.Mesh.roads(city(4, 4, seed=8), coordinates="plane")
    statement = om.Problem(
        roads.prior("crossings"), roads.distance, om.Domain([(0, 0), (3, 3), (1, 2)]),
        constraints=[om.MetricPrivacy(1, everywhere=roads)],
    ).statement  # fmt: skip
    ratio = statement.families[0]
    assert isinstance(ratio, Ratio)
    assert ratio.edges is not None
    known = dict(zip(zip(ratio.edges.i, ratio.edges.j, strict=True), ratio.edges.value,
                     strict=True))  # fmt: skip
    best = own_program(lambda i, j: math.exp(known.get((i, j), math.inf)), statement.cost)
    from optmech.pipeline.networks import EdgeSession
    from optmech.pipeline.profiles import load_profile

    session = EdgeSession(statement=statement, edges=ratio.edges, gap_asked=1e-6)
    session.search(load_profile("auto").with_limits(1e-6, None))
    assert session.value == pytest.approx(best, rel=2e-6)
    assert session.bound.value == pytest.approx(best, rel=2e-6)
    assert session.bound.value <= best * (1 + 1e-7) <= session.value * (1 + 1e-6)


def test_edges_and_tables_state_and_prove_the_same() -> None:
    rng = np.random.default_rng(4)
    n, m = 7, 3
    i, j = np.nonzero(np.triu(rng.random((n, n)) < 0.5, 1))
    value = rng.uniform(0.1, 1, len(i))
    edges = Edges.of(n, np.r_[i, j], np.r_[j, i], np.r_[value, value])
    table = np.full((n, n), np.inf)
    table[i, j] = table[j, i] = value
    assert np.array_equal(edges.table, table)
    assert np.array_equal(edges.at(*np.indices((n, n))), table)
    one = parse_exact(1, where="")
    prior, loss = np.full(n, 1 / n), rng.random((n, m))
    sparse, dense = (
        Statement(prior, loss, "expected_loss", (Ratio(0, one, given),)) for given in (edges, table)
    )
    flat = np.full((n, m), 1 / m)
    for size in (0.0, 0.01, 0.05, 0.3):
        matrix = flat + size * rng.uniform(-1, 1, (n, m))
        exact = Numerators.rounded(matrix / matrix.sum(axis=1, keepdims=True))
        found = [check_exact(s, exact)[1] for s in (sparse, dense)]
        assert found[0].passed == found[1].passed
        assert found[0].inequalities == found[1].inequalities == len(edges) * m
        if size:  # of equal rows a table has nothing to compare
            assert found[0].worst == pytest.approx(found[1].worst, rel=1e-12)
    some = rng.integers(0, len(edges), 20)
    given = PairMultipliers(edges.i[some], edges.j[some], rng.integers(0, m, 20), rng.random(20))
    bounds = [lower_bound(s, Multipliers((given,))).value for s in (sparse, dense)]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-14)
    # zeros go on along edges
    zero = np.zeros((n, m), dtype=bool)
    zero[i[0], 0] = True
    after = [s.families[0].forced_zeros(zero) for s in (sparse, dense)]
    assert np.array_equal(*after)


@pytest.mark.parametrize("wrong", ["order", "twice", "far", "negative", "nan"])
def test_edges_that_state_nothing_are_refused(wrong: str) -> None:
    i, j, value = np.array([0, 1, 1]), np.array([1, 0, 2]), np.array([1.0, 1.0, 2.0])
    if wrong == "order":
        i, j = i[::-1].copy(), j[::-1].copy()
    elif wrong == "twice":
        j[2] = 0
    elif wrong == "far":
        j[2] = 3
    else:
        value[0] = -1.0 if wrong == "negative" else math.nan
    family = Ratio(0, parse_exact(1, where=""), Edges(3, i, j, value))
    statement = Statement(np.full(3, 1 / 3), np.ones((3, 2)), "expected_loss", (family,))
    with pytest.raises(om.VerificationError, match="distance"):
        check_exact(statement, Numerators.rounded(np.full((3, 2), 0.5)))


def test_the_preconditioner_is_exact_where_all_reports_are_alike() -> None:
    """One block's inverse is the covariance matrix of a Markov field: nothing is lost of it."""
    graph = nx.convert_node_labels_to_integers(city(6, 6, seed=2))
    a, b = np.array([edge for edge in nx.Graph(graph).edges if edge[0] != edge[1]]).T
    edges = Edges.of(len(graph), np.r_[a, b], np.r_[b, a], np.full(2 * len(a), 0.3))
    cost = np.tile(np.random.default_rng(1).random((len(graph), 1)), 3)
    model = engine._model(edges, cost)
    backend = engine.EdgeBackend(model, engine.EdgeCone(edges), 1)  # type: ignore[arg-type]
    state = engine._start(model, edges)
    backend.structure(state.rows, np.arange(3))
    near = backend.conditioner(state, 0)
    y = np.random.default_rng(2).standard_normal(len(graph))
    found = near.at(state.P)(backend.summed(y, False))
    assert np.allclose(found, y, rtol=1e-8, atol=1e-8)
    # and the sum is that of the blocks' inverses, made here
    rows, m, total = state.rows, len(graph), np.zeros((len(graph),) * 2)
    for o in range(3):
        own = slice(rows.offset[o], rows.offset[o + 1])
        w, count = rows.z[own] / rows.s[own], np.arange(rows.offset[o + 1] - rows.offset[o])
        G = sp.csr_array((rows.e[own], (count, rows.j[own])), shape=(len(count), m))
        G = G - sp.csr_array((np.ones(len(count)), (count, rows.i[own])), shape=(len(count), m))
        total += np.linalg.inv((G.T @ sp.diags_array(w) @ G).toarray())
    assert np.allclose(total @ y, backend.summed(y, False), rtol=1e-9)
    assert np.isfinite(residuals(model, backend, state).mu)


def test_majorants_are_the_least_columns_of_the_cone() -> None:
    rng = np.random.default_rng(3)
    i, j = np.nonzero(np.triu(rng.random((20, 20)) < 0.2, 1))
    value = rng.uniform(0.1, 1, len(i))
    edges = Edges.of(20, np.r_[i, j], np.r_[j, i], np.r_[value, value])
    backend = engine.EdgeBackend(  # type: ignore[arg-type]
        engine._model(edges, np.ones((20, 2))), engine.EdgeCone(edges), 1
    )
    P = np.zeros((2, 21))
    P[:, :-1] = rng.random((2, 20))
    path = np.where(np.eye(20, dtype=bool), 0.0, edges.table)
    for k in range(20):
        path = np.minimum(path, path[:, k, None] + path[k])
    wanted = (np.exp(-path)[None] * P[:, :-1, None]).max(axis=1)
    assert np.allclose(backend.majorant(P)[:, :-1], wanted, rtol=1e-12)


def test_a_grid_under_manhattan_distance_is_a_graph_of_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same optimum as with a table of all pairs, and no such table."""
    steps = [((i, j), (i + di, j + dj)) for i in range(34) for j in range(32)
             for di, dj in ((0, 1), (1, 0)) if i + di < 34 and j + dj < 32]  # fmt: skip
    places = [(i, j) for i in range(34) for j in range(32)]
    cells = om.Domain(places, np.array(places, dtype=float))
    reports = om.Domain([(8, 8), (8, 24), (25, 8), (25, 24)],
                        np.array([[8, 8], [8, 24], [25, 8], [25, 24.0]]))  # fmt: skip
    promise = om.constraints.PolicyGraph("1/4", steps)
    prior, far = om.Prior.uniform(cells), om.distances.manhattan()
    with monkeypatch.context() as patch:
        for kind, name in ((Edges, "table"), (Ratio, "table"), (Statement, "log_ratio")):
            patch.setattr(kind, name, property(lambda _: pytest.fail("a table of all pairs")))
        found = om.solve(om.Problem(prior, far, reports, constraints=[promise]), gap=1e-3)
        found.save(tmp_path / "d.json")
        assert om.check(tmp_path / "d.json").passed
    assert found.gap <= 1e-3
    assert found.bound == found.lower_bound
    assert f"bound {found.bound!r}" in "\n".join(audit.audit(str(tmp_path / "d.json")))
    # every pair of cells, for the distance by rows and columns
    p, at = found.matrix, np.array(places)
    assert p is not None
    apart = abs(at[:, None] - at).sum(axis=2)
    assert (np.log(p)[:, None] - np.log(p)[None]).max(axis=2)[apart == 1].max() > 0.2
    assert ((np.log(p)[:, None] - np.log(p)[None]).max(axis=2) <= apart / 4 + 1e-9).all()


def test_long_edges_and_secrets_that_are_joined_with_none_are_told() -> None:
    rooms = om.Domain(["a", "b", "c", "d"])
    promise = om.constraints.PolicyGraph(1, [("a", "b", 1), ("b", "c", 2), ("a", "c", 4)])
    problem = om.Problem(om.Prior.uniform(rooms), om.distances.hamming(), constraints=[promise])
    said = " ".join(problem.notes)
    assert "1 secrets are joined with none" in said
    assert "longer than a path" in said
    edges = promise.edges(problem.space)
    assert edges.shortest().tolist() == [1, 3, 1, 2, 3, 2]
