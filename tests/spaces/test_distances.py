from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from strategies import metrics, nonnegative_matrices

import optmech as om
from optmech import distances
from optmech.spaces.distances import evaluate, triangle_report

finite = st.floats(-1e3, 1e3)


class TestPlane:
    @pytest.mark.parametrize("dimensions", [1, 2, 3])
    @given(data=st.data())
    def test_formulas(self, dimensions, data):
        a = data.draw(hnp.arrays(np.float64, (3, dimensions), elements=finite))
        b = data.draw(hnp.arrays(np.float64, (4, dimensions), elements=finite))
        p, q = om.Domain(range(3), a), om.Domain("wxyz", b)
        euclidean, manhattan = distances.euclidean()(p, q), distances.manhattan()(p, q)
        for i, j in itertools.product(range(3), range(4)):
            assert euclidean[i, j] == pytest.approx(math.dist(a[i], b[j]), rel=1e-14, abs=1e-150)
            steps = math.fsum(abs(x - y) for x, y in zip(a[i], b[j], strict=True))
            assert manhattan[i, j] == pytest.approx(steps, rel=1e-14, abs=1e-150)

    def test_symmetric_to_the_bit_with_a_zero_diagonal(self, rng):
        domain = om.Domain(range(30), rng.normal(size=(30, 2)))
        for distance in (distances.euclidean(), distances.manhattan()):
            values = distance(domain, domain)
            assert (values == values.T).all()
            assert (values.diagonal() == 0).all()

    @pytest.mark.parametrize("distance", [distances.euclidean(), distances.manhattan()])
    def test_refuses_degrees_missing_points_and_mixed_dimensions(self, distance):
        plane, globe = om.Domain("ab", [[0, 1], [2, 3]]), om.Domain.geographic("a", [[0, 1]])
        for other, message in (
            (globe, "not plane coordinates"),
            (om.Domain("ab"), "no coordinates"),
            (om.Domain.range(2), "2 and 1 coordinates"),
        ):
            with pytest.raises(om.ProblemError, match=message):
                distance(plane, other)


class TestHamming:
    def test_compares_labels_across_domains(self):
        a, b = om.Domain("abc"), om.Domain(["c", "x", "a"])
        assert distances.hamming()(a, b).tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
        assert distances.hamming()(a, a).tolist() == (1 - np.eye(3)).tolist()


class TestHaversine:
    @given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=2, max_size=2))
    def test_agrees_with_the_angle_between_unit_vectors(self, lonlat):
        domain = om.Domain.geographic("ab", lonlat)
        (x1, y1), (x2, y2) = np.radians(lonlat)
        u = np.array([np.cos(y1) * np.cos(x1), np.cos(y1) * np.sin(x1), np.sin(y1)])
        v = np.array([np.cos(y2) * np.cos(x2), np.cos(y2) * np.sin(x2), np.sin(y2)])
        angle = math.atan2(float(np.linalg.norm(np.cross(u, v))), float(u @ v))
        # arcsin loses half the digits close to antipodes: 1e-4 km of 20 000
        assert distances.haversine()(domain, domain)[0, 1] == pytest.approx(
            6371.0088 * angle, rel=1e-9, abs=1e-3
        )

    def test_known_distances(self):
        """On the mean sphere of 6371.0088 km: a degree, a quarter, half way round."""
        domain = om.Domain.geographic(range(4), [[0, 0], [0, 1], [90, 0], [180, 0]])
        values = distances.haversine()(domain, domain)
        half = 6371.0088 * math.pi
        assert values[0] == pytest.approx([0, 111.19508, half / 2, half], abs=1e-5)
        assert (values == values.T).all()

    def test_needs_degrees(self):
        plane = om.Domain("ab", [[0, 1], [2, 3]])
        with pytest.raises(om.ProblemError, match=r"Domain\.geographic"):
            distances.haversine()(plane, plane)


class TestGraph:
    @given(
        data=st.data(), kind=st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
    )
    def test_agrees_with_networkx(self, data, kind):
        """Random connected graphs with parallel edges, loops, zero lengths and missing lengths."""
        count = data.draw(st.integers(1, 7))
        nodes = [f"n{k}" for k in range(count)]
        ring = list(zip(nodes, nodes[1:] + nodes[:1], strict=True))
        extra = data.draw(
            st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=12)
        )
        network = kind()
        network.add_nodes_from(nodes)
        for u, v in ring + extra:
            length = data.draw(st.sampled_from([None, 0.0, 0.25, 1, 3.5, 10]))
            attributes = {} if length is None else {"km": length}
            network.add_edge(u, v, **attributes)
        domain = om.Domain(data.draw(st.permutations(nodes)))
        found = distances.graph(network, weight="km")(domain, domain)
        for _, _, keys in network.edges(data=True):
            keys.setdefault("km", 1)
        table = dict(nx.all_pairs_dijkstra_path_length(network, weight="km"))
        expected = [[table[a][b] for b in domain.labels] for a in domain.labels]
        assert found.tolist() == pytest.approx(np.array(expected), abs=1e-12)

    def test_parallel_edges_count_once_by_the_shortest(self):
        network = nx.MultiGraph()
        for length in (5.0, 2.0, 7.0):
            network.add_edge("a", "b", weight=length)
        network.add_edge("b", "a", weight=2.5)
        domain = om.Domain("ab")
        assert distances.graph(network)(domain, domain).tolist() == [[0, 2], [2, 0]]

    def test_zero_length_edges_join(self):
        network = nx.Graph()
        network.add_weighted_edges_from([(0, 1, 0.0), (1, 2, 2.0), (0, 2, 5.0)])
        domain = om.Domain(range(3))
        assert distances.graph(network)(domain, domain).tolist() == [
            [0, 0, 2],
            [0, 0, 2],
            [2, 2, 0],
        ]

    def test_parts_of_a_directed_graph_in_both_orders(self):
        network = nx.DiGraph()
        network.add_weighted_edges_from([("a", "b", 1), ("b", "c", 1), ("c", "a", 5)])
        a, b = om.Domain(["c", "a"]), om.Domain(["b"])
        assert distances.graph(network)(a, b).tolist() == [[6], [1]]
        assert distances.graph(network)(b, a).tolist() == [[1, 6]]

    def test_large_sparse_graph(self):
        network = nx.grid_2d_graph(12, 12)
        domain = om.Domain(network.nodes)
        found = distances.graph(network)(domain, domain)
        steps = [[abs(a - c) + abs(b - d) for c, d in domain.labels] for a, b in domain.labels]
        assert found.tolist() == steps

    @pytest.mark.parametrize("length", [-1, math.nan, math.inf, "far", None, [1]])
    @pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
    def test_refuses_unusable_lengths(self, length, kind):
        network = kind(
            [(1, 2, {"weight": 1.0}), (0, 1, {"weight": length}), (0, 1, {"weight": length})]
        )
        domain = om.Domain([0, 1, 2])
        with pytest.raises(om.ProblemError, match="'weight' of edge"):
            distances.graph(network)(domain, domain)

    def test_refuses_missing_nodes_gaps_and_other_things(self):
        network = nx.Graph([(0, 1), (2, 3)])
        with pytest.raises(om.ProblemError, match="'0' is not a node"):
            distances.graph(network)(om.Domain(["0"]), om.Domain(["0"]))
        with pytest.raises(om.ProblemError, match="no path from 0 to 2"):
            distances.graph(network)(om.Domain([0, 1]), om.Domain([0, 2]))
        with pytest.raises(om.ProblemError, match="int is not a networkx graph"):
            distances.graph(5)


class TestMatrix:
    def test_is_what_was_given_and_checks_its_size(self):
        values = [[0, 2.5], [1, 0]]
        distance = distances.matrix(values)
        assert distance(om.Domain("ab"), om.Domain("xy")).tolist() == values
        with pytest.raises(om.ProblemError, match=r"\(2, 2\) does not fit 3 x 2"):
            distance(om.Domain("abc"), om.Domain("xy"))

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ([[0, math.nan], [1, 0]], "NaN"),
            ([[0, 1], [-1e-9, 0]], r"\[1, 0\] is below 0"),
            ([0, 1], "1 dimension"),
            ([[0, 1], [1]], "not a rectangular"),
            ("euclidean", "not a rectangular"),
            (None, "dimension|NaN"),
        ],
    )
    def test_refuses(self, values, message):
        with pytest.raises(om.ProblemError, match=message):
            distances.matrix(values)


class TestEvaluate:
    @pytest.mark.parametrize(
        ("distance", "message"),
        [
            (None, "NoneType is not a distance"),
            (np.ones((2, 3)), r"shape \(2, 3\) does not fit 2 x 2"),
            ("euclidean", "'euclidean' is not a distance. Use om.distances.euclidean"),
            (lambda a, b: np.ones((2, 3)), r"shape \(2, 3\) for 2 x 2"),
            (lambda a, b: np.ones(4), "1 dimension"),
            (lambda a, b: -np.ones((2, 2)), "below 0"),
            (lambda a, b: np.full((2, 2), np.nan), "NaN"),
            (lambda a, b: "far", "not a rectangular"),
            (distances.matrix(np.ones((3, 3))), "does not fit 2 x 2"),
        ],
    )
    def test_refuses_and_names_the_place(self, distance, message):
        domain = om.Domain("ab")
        with pytest.raises(om.ProblemError, match=rf"^constraints\[0\]\.distance.*{message}"):
            evaluate(distance, domain, domain, where="constraints[0].distance")


class TestTriangleReport:
    @given(st.integers(1, 5).flatmap(lambda n: nonnegative_matrices(n, n)))
    def test_finds_the_largest_excess(self, values):
        np.fill_diagonal(values, 0.0)
        report = triangle_report(values)
        excess = {
            (i, j, k): values[i, k] - values[i, j] - values[j, k]
            for i, j, k in itertools.product(range(len(values)), repeat=3)
        }
        worst = max(excess.values())
        assert report.excess == max(worst, 0)
        if worst > 0:
            assert excess[report.triple] == worst
        else:
            assert report.triple is None

    @given(st.integers(1, 6).flatmap(metrics))
    def test_nothing_to_report_on_a_metric(self, values):
        assert triangle_report(values).triple is None

    def test_rounding_is_not_a_violation(self):
        grid = om.Grid(6, 7, cell=(0.1, 0.7))
        for distance in (distances.euclidean(), distances.manhattan()):
            assert triangle_report(distance(grid, grid)).triple is None


@pytest.mark.parametrize("distance", [om.distances.euclidean(), om.distances.manhattan()])
def test_nothing_is_said_of_what_rounding_does_to_a_metric(distance: om.Distance) -> None:
    """Of points (k, k) times the least float, roots of 2 and 8 are 1 and 3 times that float."""
    least = 5e-324
    domain = om.Domain(range(3), [[k * least, k * least] for k in range(3)])
    problem = om.Problem(
        om.Prior.uniform(domain), distance, constraints=[om.MetricPrivacy(1, distance)]
    )
    assert not any("not a metric" in note for note in problem.notes)


HOLLOW = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
THREE = om.Prior.uniform(om.Domain.range(3))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.0, 1.0], [1.0]], "not a rectangular array of numbers|not a pair"),
        (np.ma.masked_array(HOLLOW, HOLLOW > 1), "has masked entries"),
        (np.where(HOLLOW > 1, np.nan, HOLLOW), "NaN or infinite"),
        (-HOLLOW, "below 0"),
    ],
)
def test_tables_that_are_no_distances_are_refused_at_their_place(values, message):
    for stated, place in (
        (lambda: om.MetricPrivacy(1, values), "distance"),
        (lambda: om.DifferentialPrivacy(1, (values, 1)), "adjacency"),
        (
            lambda: om.measures.epsilon(
                om.Mechanism(THREE.domain, THREE.domain, np.eye(3)), values
            ),
            "",
        ),
    ):
        with pytest.raises(om.ProblemError, match=f"{place}.*({message})"):
            stated()


def test_what_is_masked_is_missing() -> None:
    masked = np.ma.masked_array([0.2, 0.3, 0.5], [False, True, False])
    with pytest.raises(om.ProblemError, match="has masked entries"):
        om.Prior(THREE.domain, masked)
    with pytest.raises(om.ProblemError, match="mask"):
        om.Support(np.ma.masked_array(np.ones((3, 3), dtype=bool), HOLLOW > 1))


def test_neighbours_by_a_table_of_distances() -> None:
    """Of a path 0 - 1 - 2, the pairs (0, 1) and (1, 2)."""
    stated = [
        om.DifferentialPrivacy("ln 3", adjacency)
        for adjacency in ((HOLLOW, 1), (HOLLOW.tolist(), 1), [(0, 1), (1, 2)])
    ]
    losses = [
        om.solve(om.Problem(THREE, om.distances.hamming(), constraints=[c])).loss for c in stated
    ]
    assert losses[:2] == [losses[2]] * 2
    wrong = om.DifferentialPrivacy(1, (HOLLOW[:2, :2], 1))
    with pytest.raises(
        om.ProblemError, match=r"constraints\[0\]\.adjacency.*\(2, 2\) does not fit"
    ):
        om.Problem(THREE, om.distances.hamming(), constraints=[wrong])
