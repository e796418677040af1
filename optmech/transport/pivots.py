"""The pivots of the transportation simplex: loops over nodes, compiled where numba is there.

A basis is a spanning tree on the sources 0 … n-1 and the sinks n … n+m-1, rooted at node 0. The
arc between a node and its parent runs from whichever of the two is a source to the sink, and its
flow is kept at the child. Trees are strongly feasible (Cunningham 1976): an arc without flow runs
towards the root. Choosing the last blocking arc of a cycle keeps them so, and rules out cycling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.machine import has_numba

F = TypeVar("F", bound=Callable[..., object])
Arrays = tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Floats]
"""A tree: parent, depth and flow of every node, its first child, its siblings before and after,
room for a stack, and potentials."""

_COMPILED = has_numba()


def _compiled(function: F) -> F:
    """The function compiled by numba where it is installed, else the function itself."""
    if not _COMPILED:
        return function
    import numba

    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})(
        function
    )
    return compiled


@_compiled
def potentials(cost: Floats, tree: Arrays) -> None:
    """Potentials with value[i] + value[n+j] = cost[i,j] on the tree, value[0] = 0."""
    _, _, _, first, following, _, stack, value = tree
    sources = cost.shape[0]
    value[0] = 0.0
    stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        child = first[node]
        while child >= 0:
            if child < sources:
                value[child] = cost[child, node - sources] - value[node]
            else:
                value[child] = cost[node, child - sources] - value[node]
            stack[top] = child
            top += 1
            child = following[child]


@_compiled
def _detach(node: int, parent: Ints, first: Ints, following: Ints, previous: Ints) -> None:
    before, after = previous[node], following[node]
    if before >= 0:
        following[before] = after
    else:
        first[parent[node]] = after
    if after >= 0:
        previous[after] = before


@_compiled
def _attach(node: int, to: int, parent: Ints, first: Ints, following: Ints, previous: Ints) -> None:
    head = first[to]
    following[node] = head
    previous[node] = -1
    if head >= 0:
        previous[head] = node
    first[to] = node
    parent[node] = to


@_compiled
def pivot(source: int, sink: int, reduced: float, sources: int, tree: Arrays) -> None:
    """Bring the arc from node ``source`` to node ``sink`` into the tree, at ``reduced`` cost."""
    parent, depth, flow, first, following, previous, stack, value = tree
    a, b = source, sink
    while a != b:
        if depth[a] >= depth[b]:
            a = parent[a]
        else:
            b = parent[b]
    join = a
    least = np.int64(9223372036854775807)
    leaving, from_source = -1, True
    node = source
    while node != join:
        if node < sources and flow[node] < least:
            least, leaving = flow[node], node
        node = parent[node]
    node = sink
    while node != join:
        if node >= sources and flow[node] <= least:
            least, leaving, from_source = flow[node], node, False
        node = parent[node]
    node = source
    while node != join:
        flow[node] += -least if node < sources else least
        node = parent[node]
    node = sink
    while node != join:
        flow[node] += least if node < sources else -least
        node = parent[node]
    node = root = source if from_source else sink
    above, carried = (sink, least) if from_source else (source, least)
    while True:
        old_parent, old_flow = parent[node], flow[node]
        _detach(node, parent, first, following, previous)
        _attach(node, above, parent, first, following, previous)
        flow[node] = carried
        if node == leaving:
            break
        above, carried, node = node, old_flow, old_parent
    stack[0] = root
    top = 1
    kind = root < sources
    while top > 0:
        top -= 1
        node = stack[top]
        depth[node] = depth[parent[node]] + 1
        value[node] += reduced if (node < sources) == kind else -reduced
        child = first[node]
        while child >= 0:
            stack[top] = child
            top += 1
            child = following[child]


def _price_numpy(cost: Floats, value: Floats, i: int) -> tuple[int, float]:
    reduced = cost[i] - value[i] - value[cost.shape[0] :]
    j = int(reduced.argmin())
    return j, float(reduced[j])


@_compiled
def _price_loop(cost: Floats, value: Floats, i: int) -> tuple[int, float]:
    sources, sinks = cost.shape
    own, row, others = value[i], cost[i], value[sources:]
    best, found = 0.0, 0
    for start in range(0, sinks, 64):
        end = min(start + 64, sinks)
        least = 0.0
        for j in range(start, end):
            least = min(least, row[j] - own - others[j])
        if least < best:
            for j in range(start, end):
                reduced = row[j] - own - others[j]
                if reduced < best:
                    best, found = reduced, j
    return found, best


_price = _price_loop if _COMPILED else _price_numpy


@_compiled
def improve(cost: Floats, slack: float, limit: int, tree: Arrays) -> int:
    """Pivot until no reduced cost is negative by more than ``slack`` relative, at most ``limit``
    times; returns how often. Every row in turn offers its most negative arc.
    """
    sources, value = cost.shape[0], tree[7]
    pivots, clean, i = 0, 0, 0
    while clean < sources and pivots < limit:
        j, reduced = _price(cost, value, i)
        scale = abs(cost[i, j]) + abs(value[i]) + abs(value[sources + j])
        if reduced < -slack * scale:
            pivot(i, sources + j, reduced, sources, tree)
            pivots += 1
            clean = 0
        else:
            clean += 1
        i = i + 1 if i + 1 < sources else 0
    return pivots
