"""Taking flow back in whole numbers: shortest paths of the residual network of a plan."""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import Any

import numpy as np

from optmech.errors import SolverError
from optmech.transport.optimality import ExactCost

_AUGMENTATIONS = 10**6


class Residual:
    """A plan's flows with potentials that are feasible, and complementary to the flows.

    Nodes are the sources, then the sinks. ``potentials`` and ``flows`` are changed in place.
    """

    def __init__(
        self,
        cost: ExactCost,
        potentials: list[int],
        sources: int,
        flows: dict[tuple[int, int], int],
    ) -> None:
        self.value, self.sources, self.flows = potentials, sources, flows
        self.sinks = len(potentials) - sources
        units = [[cost.entry(i, j) for j in range(self.sinks)] for i in range(sources)]
        self.cost = np.array(units, dtype=object)

    def cancel(self, source: int, sink: int, amount: int) -> None:
        """Let the source ship ``amount`` less and the sink receive as much less, at least cost;
        every step follows a shortest path, so that the potentials stay feasible."""
        for _ in range(_AUGMENTATIONS):
            if not amount:
                return
            amount -= self._step(source, self.sources + sink, amount)
        raise SolverError("the plan could not be made exact")

    def _step(self, source: int, sink: int, amount: int) -> int:
        path = self._shortest(sink, source)
        steps = list(pairwise(path))
        back = [(b, a - self.sources) for a, b in steps if a >= self.sources]
        forth = [(a, b - self.sources) for a, b in steps if a < self.sources]
        amount = min(amount, *(self.flows[arc] for arc in back))
        for arc in back:
            self.flows[arc] -= amount
        for arc in forth:
            self.flows[arc] = self.flows.get(arc, 0) + amount
        return amount

    def _shortest(self, start: int, goal: int) -> list[int]:
        """Dijkstra with reduced costs, forward along all arcs and back along those with flow;
        potentials move with the distances."""
        shippers: dict[int, list[int]] = {}
        for (i, j), flow in self.flows.items():
            if flow:
                shippers.setdefault(self.sources + j, []).append(i)
        prices: Any = np.array(self.value[self.sources :], dtype=object)
        unknown = 1 << (max(map(abs, self.value)) + int(self.cost.max())).bit_length() + 64
        far: Any = np.full(len(self.value), unknown, dtype=object)
        far[start] = 0
        came: dict[int, int] = {}
        done: set[int] = set()
        queue = [(0, start)]
        while goal not in done:
            length, node = heapq.heappop(queue)
            if node in done:
                continue
            done.add(node)
            if node >= self.sources:
                reached = [(i, length) for i in shippers.get(node, ()) if length < far[i]]
            else:
                lengths = self.cost[node] - prices + (length - self.value[node])
                closer = np.flatnonzero(lengths < far[self.sources :]).tolist()
                reached = [(self.sources + j, lengths[j]) for j in closer]
            for other, longer in reached:
                far[other], came[other] = longer, node
                heapq.heappush(queue, (longer, other))
        limit = far[goal]
        for node in range(len(self.value)):
            moved = min(far[node], limit)
            self.value[node] += moved if node >= self.sources else -moved
        path = [goal]
        while path[-1] != start:
            path.append(came[path[-1]])
        return path[::-1]
