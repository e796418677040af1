"""The pivots of the transportation simplex, and those of transport with gains: loops over nodes,
by compiled kernels where they are there.

A basis is a spanning tree on the sources 0 … n-1 and the sinks n … n+m-1, rooted at node 0. The
arc between a node and its parent runs from whichever of the two is a source to the sink, and its
flow is kept at the child. Trees are strongly feasible (Cunningham 1976): an arc without flow runs
towards the root. Choosing the last blocking arc of a cycle keeps them so, and rules out cycling.

With gains every row has a share of 1 to send; a share of s from row i arrives at column j as s
e^{w_ij}, and the largest arrival λ is to be least. The dual has potentials with p_i <= w_ij + q_j.
A basis is a spanning tree on rows and columns whose arcs hold with equality; on it the flow f_ij =
s_ij e^{p_i} is neither lost nor gained on the way: an ordinary transport from e^{p_i} to λ e^{q_j},
with λ = Σ e^p / Σ e^q the bound that the potentials prove. An arc with negative flow cuts the tree
in two; raising the potentials of the side of its column raises λ, until another arc holds with
equality and takes its place. Potentials are logarithms, and flows are found leaf by leaf, so that
parts of very different size keep their digits. Nothing of this is believed: what comes out proposes
a plan and potentials, which ``gains`` evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.native import Struct, has_kernels, run, work


class Nodes(NamedTuple):
    """A tree, node by node; no node is -1."""

    parent: Ints
    depth: Ints
    flow: Ints
    first: Ints
    """The first child."""
    following: Ints
    """The sibling after it."""
    previous: Ints
    """The sibling before it."""
    stack: Ints
    """Room."""
    value: Floats
    """Potentials."""


def attach(node: int, to: int, tree: Nodes) -> None:
    """Hang a node below another, before its other children."""
    head = tree.first[to]
    tree.following[node] = head
    tree.previous[node] = -1
    if head >= 0:
        tree.previous[head] = node
    tree.first[to] = node
    tree.parent[node] = to


def potentials(cost: Floats, tree: Nodes) -> None:
    """Potentials with value[i] + value[n+j] = cost[i,j] on the tree, value[0] = 0."""
    if has_kernels():
        run("potentials", np.ascontiguousarray(cost), *cost.shape, Struct(tree))
        return
    tree.value[0] = 0.0
    for node in list(_below(0, tree))[1:]:
        over = tree.parent[node]
        i, j = min(node, over), max(node, over) - cost.shape[0]
        tree.value[node] = cost[i, j] - tree.value[over]


def pivot(source: int, sink: int, reduced: float, sources: int, tree: Nodes) -> None:
    """Bring the arc from node ``source`` to node ``sink`` into the tree, at ``reduced`` cost."""
    if has_kernels():
        run("pivot", source, sink, float(reduced), sources, Struct(tree))
        return
    parent, flow = tree.parent, tree.flow
    ways = _ways(source, sink, tree)
    least = np.iinfo(np.int64).max
    leaving, from_source = -1, True
    for node in ways[0]:
        if node < sources and flow[node] < least:
            least, leaving = flow[node], node
    for node in ways[1]:
        if node >= sources and flow[node] <= least:
            least, leaving, from_source = flow[node], node, False
    for way, change in zip(ways, (-least, least), strict=True):
        for node in way:
            flow[node] += change if node < sources else -change
    node = root = source if from_source else sink
    above, carried = (sink, least) if from_source else (source, least)
    while True:
        old_parent, old_flow = parent[node], flow[node]
        _detach(node, tree)
        attach(node, above, tree)
        flow[node] = carried
        if node == leaving:
            break
        above, carried, node = node, old_flow, old_parent
    _settle(root, reduced, sources, tree)


def _ways(a: int, b: int, tree: Nodes) -> tuple[list[int], list[int]]:
    """The ways up from two nodes to where they meet."""
    first: list[int] = []
    second: list[int] = []
    while a != b:
        if tree.depth[a] >= tree.depth[b]:
            first.append(a)
            a = tree.parent[a]
        else:
            second.append(b)
            b = tree.parent[b]
    return first, second


def _below(root: int, tree: Nodes) -> Iterator[int]:
    """A node and all that hang below it, none before its parent."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        child = tree.first[node]
        while child >= 0:
            waiting.append(child)
            child = tree.following[child]


def _detach(node: int, tree: Nodes) -> None:
    before, after = tree.previous[node], tree.following[node]
    if before >= 0:
        tree.following[before] = after
    else:
        tree.first[tree.parent[node]] = after
    if after >= 0:
        tree.previous[after] = before


def _settle(root: int, reduced: float, sources: int, tree: Nodes) -> None:
    """Depths and potentials below a node that hangs elsewhere now."""
    for node in _below(root, tree):
        tree.depth[node] = tree.depth[tree.parent[node]] + 1
        tree.value[node] += reduced if (node < sources) == (root < sources) else -reduced


def improve(cost: Floats, slack: float, limit: int, tree: Nodes) -> int:
    """Pivot until no reduced cost is negative by more than ``slack`` relative, at most ``limit``
    times; returns how often. Every row in turn offers its most negative arc.
    """
    if has_kernels():
        found = np.zeros(1, dtype=np.int64)
        given = *cost.shape, slack, limit, Struct(tree), found
        run("improve", np.ascontiguousarray(cost), *given)
        return int(found[0])
    sources, value = cost.shape[0], tree.value
    pivots, clean, i = 0, 0, 0
    while clean < sources and pivots < limit:
        reduced = cost[i] - value[i] - value[sources:]
        j = int(reduced.argmin())
        scale = abs(cost[i, j]) + abs(value[i]) + abs(value[sources + j])
        if reduced[j] < -slack * scale:
            pivot(i, sources + j, reduced[j], sources, tree)
            pivots += 1
            clean = 0
        else:
            clean += 1
        i = i + 1 if i + 1 < sources else 0
    return pivots


_NOISE = 1e-14
"""Flows below this, relative to what the tree carries behind them, may be rounding."""
_LEAST = -700.0
"""Potentials count as no smaller than this."""
_LITTLE = 1e-13
"""Flows below 0 by less than this part of their row and of their column are left alone."""


def _walk(n: int, root: int, first: Ints, second: Ints) -> tuple[Ints, Ints, Ints]:
    """Nodes of the tree from the row ``root`` on, their parents, and the arcs from there."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    sinks, size = n + second, len(first) + 1
    graph = csr_array((np.ones(size - 1), (first, sinks)), shape=(size, size))
    order, parent = breadth_first_order(graph, root, directed=False)
    up = np.full(size, -1)
    up[np.where(parent[first] == sinks, first, sinks)] = np.arange(size - 1)
    return order, parent, up


def _star(w: Floats, first: Ints, second: Ints) -> int:
    """The basis in which one row, the one whose bound is best, reaches all columns; that row."""
    n, m = w.shape
    least = w.min(axis=1)
    centre = int((least - np.log(np.exp(least[:, None] - w).sum(axis=1))).argmax())
    others = np.delete(np.arange(n), centre)
    first[:m], second[:m] = centre, np.arange(m)
    first[m:], second[m:] = others, (w[others] - w[centre]).argmin(axis=1)
    return centre


def _least_arrival(
    w: Floats, limit: int, first: Ints, second: Ints, share: Floats, q: Floats
) -> int:
    """A basis of w, shape (n, m), close to the least λ, after at most ``limit`` pivots: its arcs in
    ``first`` and ``second``, shape (n + m - 1,), the ``share`` of its row that each sends, and the
    potentials ``q`` of the columns. How many pivots there were."""
    n, m = w.shape
    size = n + m
    root = _star(w, first, second)
    value, flow, side = np.zeros(size), np.empty(size - 1), np.zeros(size, dtype=np.bool_)
    pivots = 0
    while True:
        order, parent, up = _walk(n, root, first, second)
        value[root] = 0.0
        for node in order[1:]:
            length = w[first[up[node]], second[up[node]]]
            value[node] = value[parent[node]] + (length if node < n else -length)
        # what weighs most becomes the root, so that its rounding is nowhere but there
        heaviest = int(value[:n].argmax())
        value -= value[heaviest]
        if heaviest != root:
            root = heaviest
            order, parent, up = _walk(n, root, first, second)
        mass = np.exp(np.maximum(value, _LEAST))
        rate = mass[:n].sum() / mass[n:].sum()
        need = np.append(mass[:n], rate * mass[n:])
        behind = need.copy()
        lowest, cut = 0.0, -1
        for node in order[:0:-1]:
            e = up[node]
            flow[e] = need[node]
            need[parent[node]] -= need[node]
            behind[parent[node]] += behind[node]
            little = min(mass[first[e]], rate * mass[n + second[e]])
            if need[node] < min(lowest, -_NOISE * behind[node], -_LITTLE * little):
                lowest, cut = need[node], node
        if cut < 0 or pivots >= limit:
            break
        # the side that rises is the one of the arc's column
        side[order[0]] = False
        for node in order[1:]:
            side[node] = node == cut or side[parent[node]]
        slack = w + value[n:] - value[:n, None]
        rising = side == (cut >= n)
        slack[~rising[:n, None] | rising[n:]] = np.inf
        row, column = divmod(int(slack.argmin()), m)
        if not slack[row, column] < np.inf:
            break
        first[up[cut]], second[up[cut]] = row, column
        pivots += 1
    share[:] = np.maximum(flow, 0.0) / mass[first]
    q[:] = value[n:]
    return pivots


def least_arrivals(
    w: Floats, rows: Bools, columns: Bools, first: Ints, second: Ints, share: Floats, q: Floats
) -> None:
    """``_least_arrival`` of many, shape (k, n, m), on the rows and columns that count: ``rows``,
    (k, n), and ``columns``, (k, m), are truth values. Arcs, (k, n + m), that a problem lacks keep
    their share."""
    if has_kernels():
        given = map(np.ascontiguousarray, (w, rows, columns))
        work("least_arrivals", *w.shape, *given, first, second, share, q)(0, 1)
        return
    for p in range(len(w)):
        own, others = np.flatnonzero(rows[p]), np.flatnonzero(columns[p])
        n, m = len(own), len(others)
        if n == 0 or m == 0:
            continue
        arcs, potential = n + m - 1, np.empty(m)
        one, two = np.empty(arcs, dtype=np.int64), np.empty(arcs, dtype=np.int64)
        part = w[p][own][:, others]
        _least_arrival(part, 200 + 40 * (n + m), one, two, share[p, :arcs], potential)
        first[p, :arcs], second[p, :arcs] = own[one], others[two]
        q[p][others] = potential
