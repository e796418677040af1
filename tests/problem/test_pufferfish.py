"""Pufferfish privacy and policy graphs: beliefs against enumeration, optima in closed form."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest

import optmech as om

E, H = om.distances.euclidean(), om.distances.hamming()
FLU = [0.1, 0.15, 0.5, 0.15, 0.1]


def clique(law: list[float]) -> list[list[float]]:
    """The law of the number of ill given that one member is not, and is."""
    n = len(law) - 1
    healthy = [p * (n - k) / n for k, p in enumerate(law)]
    ill = [p * k / n for k, p in enumerate(law)]
    return [[v / sum(row) for v in row] for row in (healthy, ill)]


def chain_laws(start: np.ndarray, moves: np.ndarray, length: int, values: list[int]) -> dict:
    """By enumeration of all paths: the law of the sum given X_t = a, as {(t, a): {sum: p}}."""
    out: dict = {}
    for path in itertools.product(range(len(start)), repeat=length):
        p = start[path[0]] * math.prod(moves[a, b] for a, b in itertools.pairwise(path))
        total = sum(values[state] for state in path)
        for t, state in enumerate(path):
            law = out.setdefault((t, state), {})
            law[total] = law.get(total, 0.0) + p
    return {
        key: {k: v / sum(law.values()) for k, v in law.items()}
        for key, law in out.items()
        if sum(law.values()) > 0
    }


def test_laws_of_a_chain_are_those_of_its_paths() -> None:
    rng = np.random.default_rng(4)
    start, moves, values = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), [2, -1, 0]
    known = om.beliefs.chains([(start, moves)], 4, values)
    labels = list(known.answers.labels)
    assert labels == list(range(-4, 9))
    laws = chain_laws(start, moves, 4, values)
    expected = {
        f"state {i} or {j} at time {t}": (laws[t, i], laws[t, j])
        for t in range(4)
        for i, j in itertools.combinations(range(3), 2)
    }
    assert set(known.names) == set(expected)
    for name, pair in zip(known.names, known.pairs, strict=True):
        for law, found in zip(expected[name], pair, strict=True):
            assert found == pytest.approx([law.get(k, 0.0) for k in labels], abs=1e-14)
    mean: dict = {}
    for path in itertools.product(range(3), repeat=4):
        p = start[path[0]] * math.prod(moves[a, b] for a, b in itertools.pairwise(path))
        total = sum(values[state] for state in path)
        mean[total] = mean.get(total, 0.0) + p
    assert known.prior.weights == pytest.approx([mean.get(k, 0.0) for k in labels])


def test_laws_of_independent_records() -> None:
    rng = np.random.default_rng(5)
    laws, values = rng.dirichlet(np.ones(3), 4), [0, 1, 3]
    known = om.beliefs.products(laws, values)
    for name, pair in zip(known.names, known.pairs, strict=True):
        record, a, b = (int(word) for word in name.replace("record ", "").split() if word.isdigit())
        for category, found in zip((a, b), pair, strict=True):
            law = np.zeros(13)
            for row in itertools.product(range(3), repeat=4):
                if row[record] == category:
                    others = [laws[i][c] for i, c in enumerate(row) if i != record]
                    law[sum(values[c] for c in row)] += math.prod(others)
            assert found == pytest.approx(law, abs=1e-15)
    assert len(known.pairs) == 12


def test_secrets_that_a_belief_excludes_are_not_compared() -> None:
    known = om.beliefs.chains([([1, 0], [[0.5, 0.5], [0, 1]])], 3, [0, 1])
    assert known.names == ("state 0 or 1 at time 1", "state 0 or 1 at time 2")
    with pytest.raises(om.ProblemError, match="no secret changes"):
        om.beliefs.chains([([1, 0], [[1, 0], [0, 1]])], 3, [0, 1])


def test_the_household_of_the_paper() -> None:
    """Song et al., section 3.1: the conditional laws, and the W_∞ of 2 between them."""
    healthy, ill = clique(FLU)
    assert healthy == pytest.approx([0.2, 0.225, 0.5, 0.075, 0])
    assert ill == pytest.approx([0, 0.075, 0.5, 0.225, 0.2])
    known = om.beliefs.tables([healthy, ill], prior=FLU)
    ((a, b),) = known.pairs
    domain = known.answers
    far = om.transport.wasserstein(om.Prior(domain, a), om.Prior(domain, b), E, math.inf)
    assert far.value == 2
    design = om.solve(om.load_problem("pufferfish"))
    again = om.solve(
        om.Problem(known.prior, E, constraints=[om.constraints.Pufferfish(1, known.pairs)])
    )
    assert again.loss == pytest.approx(design.loss, rel=1e-8)
    assert design.status == "optimal"
    assert design.loss < 0.7


def test_secrets_that_decide_the_answer_are_differential_privacy() -> None:
    """Laws that are points: randomised response."""
    n, rate = 4, math.log(3)
    known = om.beliefs.tables(np.eye(n))
    design = om.solve(
        om.Problem(known.prior, H, constraints=[om.constraints.Pufferfish("ln 3", known.pairs)])
    )
    assert design.loss == pytest.approx((n - 1) / (math.exp(rate) + n - 1), abs=1e-9)


def test_a_chain_that_forgets_at_once_is_a_product() -> None:
    laws = [[0.3, 0.7]] * 5
    chain = om.beliefs.chains([([0.3, 0.7], [[0.3, 0.7]] * 2)], 5, [0, 1])
    product = om.beliefs.products(laws, [0, 1])
    for (a, b), (c, d) in zip(chain.pairs, product.pairs, strict=False):
        assert (a, b) == (pytest.approx(c), pytest.approx(d))
    both = om.beliefs.union(chain, product)
    assert len(both.pairs) <= len(chain.pairs) + len(product.pairs)


def test_two_tables_are_two_beliefs() -> None:
    one, other = [[1, 0, 0], [0, 1, 0]], [[0.5, 0.5, 0], [0, 0, 1], [1, 0, 0]]
    known = om.beliefs.tables(one, other, names=["no", "yes", "maybe"])
    assert known.names == ("no or yes", "no or yes", "no or maybe", "yes or maybe")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_policy_of_a_clique_and_a_path(epsilon: float) -> None:
    """k-ary randomised response in a clique; the geometric mechanism on a path of two."""
    prior = om.Prior.uniform(om.Domain("abcde"))
    clique_graph = nx.complete_graph(list("abc"))
    design = om.solve(
        om.Problem(prior, H, constraints=[om.constraints.PolicyGraph(epsilon, clique_graph)])
    )
    wrong = 3 * 2 / (math.exp(epsilon) + 2)
    assert design.loss == pytest.approx(wrong / 5, abs=1e-9)
    line = om.Prior.uniform(om.Domain.range(6))
    path = om.constraints.PolicyGraph(epsilon, nx.path_graph(6))
    metric = om.solve(om.Problem(line, E, constraints=[om.MetricPrivacy(epsilon, E)]))
    assert om.solve(om.Problem(line, E, constraints=[path])).loss == pytest.approx(metric.loss)


def test_lengths_and_loose_ends_of_a_policy() -> None:
    prior = om.Prior.uniform(om.Domain("abcd"))
    long = om.constraints.PolicyGraph(1, [("a", "b", 2.0), ("a", "b"), ("b", "c"), ("a", "c", 5)])
    problem = om.Problem(prior, H, constraints=[long])
    assert "1 secrets are joined with none" in problem.notes[0]
    assert "longer than a path" in problem.notes[1]
    assert long.edges(problem.space).table[0, 1] == 1


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: om.constraints.PolicyGraph(1, 3), "graph"),
        (lambda: om.constraints.PolicyGraph(1, []), "graph"),
        (lambda: om.constraints.PolicyGraph(1, [("a", "a")]), "graph[0]"),
        (lambda: om.constraints.PolicyGraph(1, [("a", "b", -1)]), "graph[0]"),
        (lambda: om.constraints.PolicyGraph(1, [("a",)]), "graph[0]"),
        (lambda: om.constraints.PolicyGraph(1, nx.DiGraph([("a", "b")])), "graph"),
        (lambda: stated(om.constraints.PolicyGraph(1, [("a", "z")])), "constraints[0].graph[0]"),
        (
            lambda: stated(om.constraints.Pufferfish(1, [([1, 0], [0, 1])])),
            "constraints[0].pairs[0][0]",
        ),
        (lambda: om.constraints.Pufferfish(1, []), "pairs"),
        (lambda: om.beliefs.tables([[1.0, 0.0]]), "tables[0]"),
        (lambda: om.beliefs.tables([[1, 0], [0, -1]]), "tables[0][1]"),
        (lambda: om.beliefs.tables([[1, 0], [0, 1]], [[1, 0, 0], [0, 1, 0]]), "tables"),
        (lambda: om.beliefs.chains([([1, 1], np.eye(2))], 3, [0, 0.5]), "values[1]"),
        (lambda: om.beliefs.chains([([1, 1], np.eye(3))], 3, [0, 1]), "chains[0].transitions"),
        (lambda: om.beliefs.chains([([1, 1], np.eye(2))], 0, [0, 1]), "length"),
        (lambda: om.beliefs.chains([([1, 1], np.eye(2))], 20, [0, 999]), "values"),
        (lambda: om.beliefs.products([[1, 1], [1, 1, 1]], [0, 1]), "records[1]"),
        (lambda: om.beliefs.products([], [0, 1]), "records"),
        (om.beliefs.union, "beliefs"),
    ],
)
def test_what_cannot_be_meant(make: object, where: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        make()
    assert caught.value.where == where


def stated(constraint: object) -> om.Problem:
    return om.Problem(om.Prior.uniform(om.Domain("abc")), H, constraints=[constraint])
