"""Designs that are private at every point of every road, against programs written again here,
another algorithm of shortest paths, and points drawn at random."""

from __future__ import annotations

import csv
import gzip
import heapq
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import optmech_audit as audit
import pytest
from altered_regions import altered, last_digit, raise_figure
from test_line_design import own_program

import optmech as om
from optmech.cli.main import main
from optmech.spaces.domain import great_circle

Edge = tuple[Any, Any, float]


def city(rows: int = 5, columns: int = 5, seed: int = 3) -> nx.MultiGraph:
    """Streets around blocks, bent, some closed; a dead end, a loop and two roads side by side."""
    rng = np.random.default_rng(seed)
    graph = nx.MultiGraph()
    for i, j in itertools.product(range(rows), range(columns)):
        x, y = np.array([i, j]) + rng.uniform(-0.2, 0.2, 2)
        graph.add_node((i, j), x=float(x), y=float(y))

    def join(a: Any, b: Any, bend: float) -> None:
        straight = math.dist(*((graph.nodes[n]["x"], graph.nodes[n]["y"]) for n in (a, b)))
        graph.add_edge(a, b, length=straight * bend)

    for a in list(graph):
        for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)):
            if b in graph and rng.random() > 0.1:
                join(a, b, rng.uniform(1, 1.5))
    graph.add_node("end", x=-1.0, y=-1.0)
    join("end", (0, 0), 1.1)
    join((1, 1), (1, 2), 2.5)
    graph.add_edge((2, 2), (2, 2), length=1.7)
    part = max(nx.connected_components(graph), key=len)
    return graph.subgraph(part).copy()


def ways(edges: list[Edge]) -> dict[Any, dict[Any, float]]:
    """Shortest distances between crossings (Dijkstra, with a heap of our own)."""
    beside: dict[Any, list[tuple[Any, float]]] = {}
    for a, b, length in edges:
        beside.setdefault(a, []).append((b, length))
        beside.setdefault(b, []).append((a, length))
    out = {}
    for start in beside:
        found: dict[Any, float] = {}
        heap = [(0.0, 0, start)]
        ticket = itertools.count(1)
        while heap:
            far, _, node = heapq.heappop(heap)
            if node in found:
                continue
            found[node] = far
            for other, length in beside[node]:
                heapq.heappush(heap, (far + length, next(ticket), other))
        out[start] = found
    return out


def apart(edges: list[Edge], known: Any, x: tuple[int, float], y: tuple[int, float]) -> float:
    """The distance of two points, each the share of a way along an edge."""
    (i, s), (j, t) = x, y
    (a, b, one), (c, d, two) = edges[i], edges[j]
    best = min(
        from_x + known[u][v] + from_y
        for u, from_x in ((a, s * one), (b, (1 - s) * one))
        for v, from_y in ((c, t * two), (d, (1 - t) * two))
    )
    return min(best, abs(s - t) * one) if i == j else best


@pytest.fixture(scope="module")
def roads() -> Any:
    return om.Mesh.roads(city(), divide=0.4, coordinates="plane", unit="km")


@pytest.fixture(scope="module")
def design(roads: Any) -> Any:
    promise = om.MetricPrivacy("3/2", everywhere=roads)
    some = om.Domain([(0, 0), (2, 2), (4, 4), (0, 4), (4, 0), (2, 3)])
    return om.solve(
        om.Problem(roads.prior("crossings"), roads.distance, some, constraints=[promise])
    )


def test_no_pair_of_points_on_roads_breaks_the_promise(roads: Any, design: Any) -> None:
    graph = city()
    edges = [(a, b, found["length"]) for a, b, found in graph.edges(data=True)]
    known = ways(edges)
    # the same roads by their ends and lengths
    number = {}
    for k, road in enumerate(roads.ways):
        ends = frozenset((roads.labels[road[0]], roads.labels[road[-1]]))
        length = roads.widths[roads._first[k] : roads._first[k + 1]].sum()
        number[ends, round(length, 9)] = k
    place = [number[frozenset((a, b)), round(length, 9)] for a, b, length in edges]
    first = [roads.labels[roads.ways[k][0]] for k in place]
    forward = [start == a for start, (a, _, _) in zip(first, edges, strict=True)]
    rng = np.random.default_rng(11)
    points = [(int(rng.integers(0, len(edges))), float(rng.random())) for _ in range(1000)]
    # a millimetre from each crossing, on every road that meets there
    points += [(k, 1e-6 / e[2]) for k, e in enumerate(edges)]
    points += [(k, 1 - 1e-6 / e[2]) for k, e in enumerate(edges)]
    asked = [(place[k], s if forward[k] else 1 - s) for k, s in points]
    p = design.mechanism.at(asked)
    assert np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
    tried, tight = 0, 0.0
    pairs = rng.integers(0, len(points), (100_000, 2))
    near = np.column_stack([np.arange(1000, len(points)), np.arange(1000, len(points))[::-1]])
    for i, j in np.vstack([pairs, near]).tolist():
        d = apart(edges, known, points[i], points[j])
        used = (p[i] > 0) | (p[j] > 0)
        if i != j and used.any():
            most = float((p[i][used] / p[j][used]).max())
            assert most <= math.exp(1.5 * d) * (1 + 1e-9), (points[i], points[j])
            tried, tight = tried + 1, max(tight, math.log(most) / (1.5 * d) if d > 1e-3 else 0.0)
    assert tried > 90_000
    assert 0.8 < tight <= 1 + 1e-9


def test_the_loss_and_the_bound_are_those_of_programs_written_again() -> None:
    graph = city(2, 3, seed=5)
    roads = om.Mesh.roads(graph, coordinates="plane", divide=0.7)
    weights = roads.prior("length").weights
    cost = weights[:, None] * roads.along
    joined = {
        (a, b): float(length)
        for (a, b), length in zip(roads.segments.tolist(), roads.exact_lengths, strict=True)
    }
    joined |= {(b, a): length for (a, b), length in joined.items()}
    edges = [(a, b, length) for (a, b), length in joined.items()]
    known = ways(edges)
    problem = om.Problem(
        om.Prior(roads.domain, weights),
        roads.distance,
        constraints=[om.MetricPrivacy(2, everywhere=roads)],
    )
    found = om.solve(problem)

    def near(i: int, j: int) -> float:
        return 1 + 2 * joined[i, j] if (i, j) in joined else math.inf

    assert found.loss == pytest.approx(own_program(near, cost), 1e-5)
    bound = own_program(lambda i, j: math.exp(2 * known[i][j]), cost)
    assert found.lower_bound == pytest.approx(bound, 1e-3)
    assert found.lower_bound <= bound * (1 + 1e-6)


def test_division_comes_nearer_to_the_bound(design: Any) -> None:
    some = design.problem.observables
    losses, bounds = [], []
    for step in (None, 0.4, 0.14):
        roads = om.Mesh.roads(city(), step, coordinates="plane")
        given = roads.prior("crossings"), roads.distance, some
        found = om.solve(
            om.Problem(*given, constraints=[om.MetricPrivacy("3/2", everywhere=roads)]), gap=1e-4
        )
        losses.append(found.loss)
        bounds.append(found.lower_bound)
    assert losses[0] > losses[1] > losses[2] > bounds[2] > bounds[1] > bounds[0]
    # of first order in the length of segments
    assert losses[2] / bounds[2] - 1 < 0.45 * (losses[1] / bounds[1] - 1)


def test_files_prove_it_and_altered_ones_do_not(design: Any, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    design.save(path)
    assert om.load(path) == design
    assert "segments" in "\n".join(audit.audit(str(path)))
    m = om.load(path).mechanism
    assert m.sample_at(((0, 0), "end", "1/3")) in design.problem.observables.labels
    assert sum(m.exactly_at(((0, 0), "end", Fraction(1, 3)))) == 1
    features = om.exchange.features(design, degrees=False)
    assert {f["geometry"]["type"] for f in features} == {"LineString"}

    def mesh(body: Any) -> Any:
        return body["problem"]["constraints"][0]["everywhere"]

    changes = [
        lambda body: mesh(body)["lengths"].__setitem__(3, mesh(body)["lengths"][3] / 2),
        lambda body: mesh(body)["ways"].pop(),
        lambda body: mesh(body)["lengths"].pop(),
        lambda body: mesh(body)["lengths"].__setitem__(0, 0.0),
        lambda body: mesh(body)["ways"][0].__setitem__(0, mesh(body)["ways"][0][1]),
        lambda body: mesh(body)["vertices"][0].__setitem__(0, 99.0),
        last_digit(2), raise_figure("lower_bound", 1e-2), raise_figure("loss", -1e-3),
    ]  # fmt: skip
    for change in changes:
        wrong = altered(path, change)
        with pytest.raises(om.OptmechError):
            om.load(wrong)
        with pytest.raises(audit.Fault):
            audit.audit(str(wrong))


def tables(graph: nx.MultiGraph) -> tuple[dict[str, Any], dict[str, Any]]:
    named = {node: k for k, node in enumerate(graph)}
    nodes = {
        "node": list(named.values()),
        "x": [graph.nodes[n]["x"] for n in named],
        "y": [graph.nodes[n]["y"] for n in named],
    }
    edges = list(graph.edges(data=True))
    ends = [[named[e[k]] for e in edges] for k in (0, 1)]
    return nodes, {"u": ends[0], "v": ends[1], "length": [e[2]["length"] for e in edges]}


def test_tables_graphs_and_graphml_are_one_network(tmp_path: Path) -> None:
    graph = nx.convert_node_labels_to_integers(city())
    flat = om.Mesh.roads(graph, 0.5, coordinates="plane")
    assert om.Mesh.roads(tables(graph), 0.5, coordinates="plane") == flat
    # both ways, as osmnx lists streets, with texts for numbers
    both = nx.MultiDiGraph(graph)
    for _, found in both.nodes(data=True):
        found.update(x=str(found["x"]), y=str(found["y"]))
    for _, _, found in both.edges(data=True):
        found["length"] = str(found["length"])
    nx.write_graphml(both, tmp_path / "city.graphml")
    read = om.Mesh.roads(tmp_path / "city.graphml", 0.5, coordinates="plane")
    assert len(read) == len(flat)
    assert sorted(read.widths) == pytest.approx(sorted(flat.widths))
    assert om.Mesh.from_dict(json.loads(json.dumps(flat.to_dict()))) == flat


def test_lines_of_geojson_meet_where_they_share_a_corner(tmp_path: Path) -> None:
    lines = [
        [[12.40, 41.90], [12.41, 41.90], [12.42, 41.91], [12.43, 41.91]],
        [[12.42, 41.91], [12.42, 41.93]],
    ]
    features = [
        {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": c}}
        for c in lines
    ]
    path = tmp_path / "roads.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    roads = om.Mesh.roads(path, divide=0.3)
    assert len(roads.ways) == 3
    points = np.array(lines[0])
    first = float(great_circle(points[:2], points[1:3]).sum())
    total = sum(map(float, roads.exact_lengths))
    last = float(great_circle(points[2], points[3]))
    side = float(great_circle(np.array(lines[1][0]), np.array(lines[1][1])))
    assert total == pytest.approx(first + last + side)
    assert roads.widths.max() <= 0.3
    assert roads.unit == "km"
    # vertices inside a road lie on its bends
    where = roads.match([[12.405, 41.9001]], within=0.1)
    assert roads.position(where[0]) is not None
    with pytest.raises(om.ProblemError, match="from the nearest road"):
        roads.match([[12.5, 41.9]], within=1)


def test_a_network_is_written_and_read(roads: Any, tmp_path: Path) -> None:
    for mesh in (roads, om.Mesh.line(0, 3, 5, unit="km")):
        mesh.write(tmp_path / "mesh.json")
        assert om.Mesh.read(tmp_path / "mesh.json") == mesh
        with pytest.raises(om.ProblemError, match="written as JSON"):
            mesh.write(tmp_path / "mesh.geojson")
        with pytest.raises(om.ProblemError, match="smaller divide"):
            mesh.refine(np.ones(3))
        with pytest.raises(om.ProblemError, match="degree: 2 is not 1"):
            mesh.with_degree(2)
    assert om.Mesh.line(0, 1, 2).locate([0.25, 1.5])[0].tolist() == [0, -1]


def test_points_are_matched_and_found_again(roads: Any) -> None:
    rng = np.random.default_rng(2)
    for k in rng.integers(0, len(roads.segments), 40).tolist():
        share = rng.random()
        a, b = roads.vertices[roads.segments[k]]
        point = (1 - share) * a + share * b
        (found,) = roads.match([point])
        weights = roads.interpolation([found]).toarray()[0]
        assert weights @ roads.vertices == pytest.approx(point, abs=1e-9)


def test_priors(roads: Any) -> None:
    by = roads.prior("crossings").weights
    crossings = {end for road in roads.ways for end in (road[0], road[-1])}
    assert set(np.flatnonzero(by)) == crossings
    assert roads.prior("length").weights.sum() == pytest.approx(1)
    fixes = roads.prior([((0, 0), "end", "1/4"), ((0, 0), "end", 1)])
    assert fixes.weights.sum() == pytest.approx(1)
    with pytest.raises(om.ProblemError, match="crossings"):
        roads.prior("people")


def small(**more: Any) -> Any:
    nodes = {"node": ["a", "b", "c"], "x": [0, 3, 3], "y": [0, 0, 4]}
    edges = {"source": ["a", "b"], "target": ["b", "c"], "length": [3.0, 5.0]}
    own = {k: v for k, v in more.items() if k in edges}
    return om.Mesh.roads(
        (nodes, edges | own), coordinates="plane", **{k: v for k, v in more.items() if k not in own}
    )


REFUSED = {
    "below the 4 of the straight line": lambda: small(length=[3.0, 3.9]),
    "a hundred times": lambda: small(length=[3000.0, 4000.0]),
    "in 2 parts": lambda: small(source=["a", "b"], target=["b", "a"], length=[3.0, 3.0]),
    "without coordinates": lambda: small(source=["a", "z"]),
    "has no length above 0": lambda: small(source=["a", "a"], target=["b", "a"], length=[3.0, 0.0]),
    "is no finite number": lambda: small(length=[math.nan, 5.0]),
    "columns of different lengths": lambda: small(length=[3.0]),
    "divide": lambda: small(divide=0),
    "is no road network": lambda: om.Mesh.roads(3),
    "are possible": lambda: small(divide=1e-6),
    "has no coordinates": lambda: om.Mesh.roads(nx.path_graph(3)),
    "is no point of a road": lambda: small().position(("a", "c", 0.5)),
    "is not between 0 and 1": lambda: small().position(("a", "b", 1.5)),
    "points of a line are numbers": lambda: om.Mesh.line(0, 1, 2).match([[0, 0]]),
    "joins what another joins": lambda: om.Network(
        [[0, 0], [1, 0]], [[0, 1], [1, 0]], lengths=[1, 1]
    ),
    "cannot be reached": lambda: om.Network(np.eye(4)[:, :2], [[0, 1], [2, 3]], lengths=[1, 1]),
    "is no list of roads": lambda: om.Network([[0, 0], [1, 0]], 3),  # type: ignore[arg-type]
    "is not (V, 1) or (V, 2)": lambda: om.Network([[0, 0, 0], [1, 0, 0]], [[0, 1]], lengths=[1]),
    "one length for every segment": lambda: om.Network([[0, 0], [1, 0]], [[0, 1]]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_no_network_is_refused(words: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        REFUSED[words]()
    assert words in str(caught.value)


def test_the_largest_part_is_kept_where_that_is_asked_for() -> None:
    roads = small(source=["a", "b"], target=["b", "a"], length=[3.0, 3.0], largest=True)
    assert (roads.labels, len(roads.ways)) == (("a", "b"), 1)


def test_loops_and_roads_side_by_side_are_divided() -> None:
    graph = nx.MultiGraph()
    graph.add_node("a", pos=(0, 0))
    graph.add_node("b", pos=(1, 0))
    for length in (1.0, 2.0, 4.0):
        graph.add_edge("a", "b", length=length)
    graph.add_edge("b", "b", length=6.0)
    roads = om.Mesh.roads(graph, coordinates="plane")
    assert sorted(len(road) - 1 for road in roads.ways) == [1, 2, 2, 3]
    # the middle of the longest way around, and the far side of the loop
    places = dict(zip(roads.labels, range(len(roads)), strict=True))
    middle = places["a", "b", "1/2", 2]
    assert roads.along[middle, places["a"]] == 2.0
    assert roads.along[places["b", "b", "1/3"], places["b", "b", "2/3"]] == 2.0
    assert roads.position(("a", "b", 0.5)) == (0, (1, 1))


def test_the_worst_loss_of_roads_is_that_of_the_vertices(roads: Any) -> None:
    promise = om.DifferentialPrivacy(1, everywhere=roads)
    given = roads.prior("crossings"), roads.distance, om.Domain([(0, 0), (4, 4)])
    found = om.solve(om.Problem(*given, constraints=[promise], objective="worst_loss"), gap=1e-4)
    losses = (found.problem.loss_matrix * found.mechanism.matrix).sum(axis=1)
    assert found.loss == pytest.approx(losses.max(), rel=1e-9)
    assert found.lower_bound == found.bound


@pytest.fixture
def rome(shared_data: Path) -> Any:
    def columns(name: str) -> dict[str, np.ndarray]:
        with gzip.open(shared_data / name, "rt") as stream:
            rows = list(csv.DictReader(stream))
        return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}

    return columns("rome_osm_nodes.csv.gz"), columns("rome_osm_edges.csv.gz")


def around(rome: Any, half: float, divide: float | None) -> Any:
    """The roads of Rome in a square of so many km each way around (41.9, 12.49)."""
    nodes, edges = rome
    x = (nodes["longitude"] - 12.49) * 111.32 * math.cos(math.radians(41.9))
    y = (nodes["latitude"] - 41.9) * 110.57
    some = (abs(x) < half) & (abs(y) < half)
    a, b = (edges[name].astype(int) for name in ("source", "target"))
    kept = some[a] & some[b] & (a != b) & (edges["metres"] > 0)
    here = np.flatnonzero(some)
    places = {"node": here, **{n: nodes[n][here] for n in ("longitude", "latitude")}}
    between = {"source": a[kept], "target": b[kept], "metres": edges["metres"][kept]}
    return om.Mesh.roads((places, between), divide, metres=True, largest=True)


def test_one_quarter_of_rome(rome: Any) -> None:
    roads = around(rome, 0.4, 0.05)
    crossings = sorted({roads.labels[end] for road in roads.ways for end in (road[0], road[-1])})
    some = om.Domain(crossings[:: len(crossings) // 12])
    promise = om.MetricPrivacy(2, everywhere=roads)
    problem = om.Problem(roads.prior("crossings"), roads.distance, some, constraints=[promise])
    found = om.solve(problem, gap=1e-3)
    assert found.loss <= 1.03 * found.lower_bound


def test_a_table_of_places_is_protected_from_the_nearest_roads(roads: Any, design: Any) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.uniform(0, 4, (50, 2)), columns=["x", "y"])
    out = om.protect(design, table, x="x", y="y", rows_are_people=True)
    assert len(out) == 50
    assert set(out.iloc[:, 0]) <= set(design.problem.observables.labels)
    p = design.mechanism.at(table.to_numpy())
    assert p == pytest.approx(design.mechanism.at(roads.match(table.to_numpy())))


def test_problem_files_and_the_command_line(tmp_path: Path, capsys: Any) -> None:
    text = """
    format = 1
    loss = "graph"
    prior = "uniform"
    [secrets]
    kind = "graph"
    nodes = ["a", "b", "c"]
    points = [[0, 0], [1, 0], [1, 2]]
    edges = [["a", "b", 1], ["b", "c", 2], ["a", "c", 2.5]]
    unit = "km"
    [[constraints]]
    kind = "metric_privacy"
    epsilon = 1
    everywhere = { kind = "roads" }
    """
    file, saved = tmp_path / "p.toml", str(tmp_path / "d.json")
    file.write_text(text)
    assert main(["solve", str(file), "-q", "-o", saved]) == 0
    assert main(["sample", saved, "--at", "a,b,1/3", "-n", "4"]) == 0
    assert set(capsys.readouterr().out.split()[-4:]) <= {"a", "b", "c"}
    assert main(["sample", saved, "--at", "a,z,1/3"]) == 2
    assert main(["show", saved]) == 0
    assert "d apart along it" in " ".join(capsys.readouterr().out.split())
    assert main(["report", saved, "-o", str(tmp_path / "d.html")]) == 0
    found = om.load(saved)
    assert found.mesh.along[0].tolist() == [0, 1, 2.5]
