"""What road networks are made of: forms that people have, and everything that is none of them."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from each import each

import optmech as om


def plane(source: Any, **options: Any) -> Any:
    return om.Mesh.roads(source, coordinates="plane", **options)


def pair(geometry: Any = None, **found: Any) -> nx.MultiGraph:
    """Two crossings, one apart."""
    graph = nx.MultiGraph()
    graph.add_node("a", x=0, y=0)
    graph.add_node("b", x=1, y=0)
    more = {} if geometry is None else {"geometry": geometry}
    graph.add_edge("a", "b", **more, **found)
    return graph


def test_layouts_of_networkx_are_coordinates() -> None:
    graph = nx.cycle_graph(5)
    layout = nx.circular_layout(graph)
    assert isinstance(layout[0], np.ndarray)
    nx.set_node_attributes(graph, layout, "pos")
    roads = plane(graph)
    assert roads.vertices == pytest.approx(np.array([layout[k] for k in range(5)]))
    sides = [math.dist(layout[k], layout[(k + 1) % 5]) for k in range(5)]
    assert sorted(roads.widths) == pytest.approx(sorted(sides))


NAMES: list[list[Any]] = [
    [(0, 0), (0, 1), (1, 0)],
    ["a", 1, (2, "b")],
    [1.5, -2, 10**30],
    ["1", 1, "01"],
    [np.int64(4), (1, 0), np.str_("q")],
]


@pytest.mark.parametrize("names", NAMES)
def test_names_in_tables_are_those_of_graphs(names: list[Any]) -> None:
    nodes = {"node": names, "x": [0, 1, 1], "y": [0, 0, 2]}
    edges = {"source": names[:2], "target": names[1:], "length": [1.25, 2.5]}
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    graph = nx.Graph()
    for name, x, y in zip(plain, nodes["x"], nodes["y"], strict=True):
        graph.add_node(name, x=x, y=y)
    for (u, v), length in zip(pairwise(plain), edges["length"], strict=True):
        graph.add_edge(u, v, length=length)
    roads = plane((nodes, edges), divide=1)
    assert roads == plane(graph, divide=1)
    assert set(plain) <= set(roads.labels)
    for u, v in pairwise(plain):
        assert roads.position((u, v, 0.75)) is not None
    assert om.Mesh.from_dict(json.loads(json.dumps(roads.to_dict()))) == roads


def test_fixes_in_an_array_are_matched_for_a_prior() -> None:
    roads = plane(pair(), divide=0.5)
    fixes = np.array([[0.25, 0.1], [1.5, -0.3]])
    own = roads.prior(roads.match(fixes))
    assert roads.prior(fixes) == own
    assert own.weights == pytest.approx([0.25, 0.5, 0.25])


def test_the_way_along_a_line_is_measured_on_the_globe() -> None:
    """Far north half a degree of longitude is half as long as one of latitude."""
    graph = nx.Graph()
    graph.add_node("a", x=0, y=60)
    graph.add_node("b", x=1, y=60.5)
    graph.add_edge("a", "b", geometry="LINESTRING Z (0 60 1, 0 60.5 1, 1 60.5 2)")
    roads = om.Mesh.roads(graph, divide=60)
    up = math.radians(0.5) * 6371.0088
    across = 2 * 6371.0088 * math.asin(math.cos(math.radians(60.5)) * math.sin(math.radians(0.5)))
    assert roads.widths == pytest.approx([(up + across) / 2] * 2)
    # half of the way is hardly below the bend
    assert roads.vertices[2] == pytest.approx([0, 60 + 0.5 * (up + across) / 2 / up])


TURNS = [(179.99, -179.98), (-179.98, 179.99), (179.99, 180.02), (-0.01, 0.02), (359.99, 0.02)]


@pytest.mark.parametrize("ends", TURNS)
@pytest.mark.parametrize("divide", [None, 0.7])
def test_roads_across_180_degrees_go_the_short_way(
    ends: tuple[float, float], divide: float | None
) -> None:
    graph = nx.Graph()
    for name, x in zip("ab", ends, strict=True):
        graph.add_node(name, x=x, y=10.0)
    graph.add_edge("a", "b")
    roads = om.Mesh.roads(graph, divide)
    start = ends[0] if roads.vertices[0, 0] >= ends[0] - 180 else ends[0] - 360
    turn = (ends[1] - start + 180) % 360 - 180
    for share in (0.0, 0.2, 0.5, 0.9, 1.0):
        for round_ in (-360, 0, 360):
            x = start + share * turn + round_
            if abs(x) <= 360:
                ((u, v, found),) = roads.match([[x, 10.0]], within=0.01)
                assert (u, v) == ("a", "b")
                assert float(found) == pytest.approx(share, abs=1e-6)
    # nothing of it on the other side of the globe
    with pytest.raises(om.ProblemError, match="from the nearest road"):
        roads.match([[start + turn / 2 + 180, 10.0]], within=1000)


def test_a_road_around_half_of_the_globe_is_refused() -> None:
    graph = nx.path_graph(3)
    places = {0: (-170, 0), 1: (0, 0), 2: (170, 0)}
    nx.set_node_attributes(graph, places, "pos")
    graph.add_edge(0, 2)
    with pytest.raises(om.ProblemError, match="Count longitudes on beyond 180"):
        om.Mesh.roads(graph)


def test_a_line_from_elsewhere_does_not_shorten_a_road() -> None:
    """The straight line between the crossings is the least length, whatever is drawn."""
    for geometry in ("LINESTRING (5 5, 5.1 5)", "LINESTRING (0 0, 0.2 0)"):
        with pytest.raises(om.ProblemError, match=r"below the 1 of the straight line"):
            plane(pair(geometry, length=0.3))
        with pytest.raises(om.ProblemError, match=r"below the 1 of the straight line"):
            plane(pair(geometry))
    assert plane(pair("LINESTRING (0 0, 0.5 0.5, 1 0)")).widths == pytest.approx([math.sqrt(2)])


THINGS: list[Any] = [
    None, True, 0, -1, 5, math.nan, math.inf, 1e-320, 1e300, 10**400, "", "x", "1/2", b"x", (), [],
    {}, {1: 2}, [1], [[1, 2]], (1, 2, 3), (0.5,), np.array(3.0), np.zeros((2, 2)), np.array(["a"]),
    1 + 2j, object(), int,
]  # fmt: skip


def positions(roads: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "a position": roads.position,
        "a share": lambda v: roads.position(("a", "b", v)),
        "an end": lambda v: roads.position((v, "b", 0.5)),
        "a road": lambda v: roads.position((v, 0.5)),
        "positions": roads.locate,
        "weights": roads.interpolation,
        "a prior": roads.prior,
        "priors": lambda v: roads.prior([v]),
        "a match": roads.match,
        "how far": lambda v: roads.match([[0.5, 0.1]], within=v),
    }


def on_a_line(line: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "a number": line.position,
        "numbers": line.locate,
        "weights": line.interpolation,
        "a prior": line.prior,
        "priors": lambda v: line.prior([v]),
    }


def sources() -> dict[str, Callable[[Any], Any]]:
    nodes = {"node": ["a", "b"], "x": [0, 1], "y": [0, 0]}
    edges = {"u": ["a"], "v": ["b"], "length": [1.5]}

    def placed(value: Any) -> Any:
        graph = nx.path_graph(2)
        nx.set_node_attributes(graph, {0: (0, 0), 1: value}, "pos")
        return plane(graph)

    return {
        "a source": om.Mesh.roads,
        "tables": lambda v: plane((v, v)),
        "edges": lambda v: plane((nodes, v)),
        "a divide": lambda v: plane(pair(), divide=v),
        "a place": placed,
        "x": lambda v: plane(({**nodes, "x": [0, v]}, edges)),
        "a column": lambda v: plane(({**nodes, "x": v}, edges)),
        "names": lambda v: plane(({**nodes, "node": v}, edges)),
        "a name": lambda v: plane(({**nodes, "node": ["a", v]}, {**edges, "v": [v]})),
        "an end": lambda v: plane((nodes, {**edges, "v": [v]})),
        "a length": lambda v: plane(pair(length=v)),
        "a line": lambda v: plane(pair(v)),
        "a line with a length": lambda v: plane(pair(v, length=1.5), divide=0.2),
    }


def answered(ask: Callable[[Any], Any], thing: Any) -> bool:
    """Whether there is an answer, or a refusal of more than a word."""
    try:
        ask(thing)
    except om.ProblemError as error:
        return len(str(error)) > 20
    return True


LINES: list[Any] = [
    "LINESTRING ()", "LINESTRING (1)", "LINESTRING (1 2)", "LINESTRING EMPTY", "LINESTRING (1 2",
    "LINESTRING (a b, c d)", "LINESTRING (0,0,1,0)", "LINESTRING (nan 0, 1 1)", "POINT (1 2)",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@each("thing", [*THINGS, *LINES], ids=lambda thing: re.sub(r" at 0x\w+", "", repr(thing))[:40])
def test_what_is_no_road_or_position_is_refused_in_words(thing: Any) -> None:
    """Everything ends in an answer or a ProblemError."""
    roads, line = plane(pair(length=1.5), divide=0.5), om.Mesh.line(0, 1, 4)
    for name, ask in {**positions(roads), **sources()}.items():
        assert answered(ask, thing), name
    for name, ask in on_a_line(line).items():
        assert answered(ask, thing), name


def test_shapes_that_are_no_lines_are_refused() -> None:
    shapely = pytest.importorskip("shapely")
    corners = [(0, 0), (1, 0), (1, 1)]
    for shape in (
        shapely.LineString(), shapely.Point(1, 2), shapely.MultiLineString([corners]),
        shapely.Polygon(corners), shapely.LineString([(0, 0), (1e999, 1), (1, 0)]),
    ):  # fmt: skip
        with pytest.raises(om.ProblemError):
            plane(pair(shape))
    assert len(plane(pair(shapely.LineString([(1, 0, 3), (0.5, 1, 3), (0, 0, 3)])))) == 2


WORDS = ["", "0", "-1", "nan", "inf", "1e309", "x", "9" * 30, "LINESTRING (0 0)", "180", "1,5"]


def spoilt(text: str, rng: random.Random) -> str:
    """A quoted text or what stands between two tags replaced, or a piece cut or doubled."""
    kind = rng.randrange(5)
    if kind < 3:
        found = rng.choice(list(re.finditer(r'(?<=")[^"<>]*(?=")|(?<=>)[^<>]+(?=<)', text)))
        return text[: found.start()] + rng.choice(WORDS) + text[found.end() :]
    start = rng.randrange(len(text))
    end = min(len(text), start + rng.randrange(1, 60))
    return text[:start] + (text[start:end] * 2 if kind == 3 else "") + text[end:]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_spoilt_files_are_read_or_refused_in_words(tmp_path: Path) -> None:
    graph = nx.MultiDiGraph(crs="epsg:4326")
    for k in range(6):
        graph.add_node(k, x=str(12.48 + 0.002 * (k % 3)), y=str(41.9 + 0.002 * (k // 3)))
    bend = "LINESTRING (12.48 41.9, 12.481 41.9003, 12.482 41.9)"
    for a, b in ((0, 1), (1, 2), (0, 3), (3, 4), (4, 5), (2, 5), (0, 0)):
        more = {"geometry": bend} if (a, b) == (0, 1) else {}
        graph.add_edge(a, b, length="300.5", oneway="False", **more)
    nx.write_graphml(graph, tmp_path / "known.graphml")
    ends = [[12.4, 41.9], [12.41, 41.9], [12.42, 41.91]]
    lines = [ends, [ends[1], [12.42, 41.93]]]
    features = [
        {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": c}}
        for c in lines
    ]
    (tmp_path / "known.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": features})
    )
    osm = [f'<node id="{k + 1}" lat="{y}" lon="{x}"/>' for k, (x, y) in enumerate(ends)]
    osm.append('<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="1"/>')
    osm.append('<tag k="highway" v="residential"/></way>')
    (tmp_path / "known.osm").write_text(f"<osm>{''.join(osm)}</osm>")

    def read(path: Path) -> Any:
        if path.suffix == ".osm":
            return om.Mesh.roads(om.exchange.read_osm(path), largest=True)
        return om.Mesh.roads(path, divide=0.5, metres=path.suffix == ".graphml")

    rng = random.Random(5)
    for kind in ("graphml", "geojson", "osm"):
        known = tmp_path / f"known.{kind}"
        assert len(read(known)) >= 2
        text = known.read_text()
        for _ in range(60):
            path = tmp_path / f"spoilt.{kind}"
            path.write_text(spoilt(text, rng))
            assert answered(read, path)
