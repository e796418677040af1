"""Numbers for some pairs out of many: the edges of a sparse graph, without a table of all pairs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, locked, record

_AT_A_TIME = 256
"""Points from which paths are looked for together."""


@record
class Edges(ReadOnly):
    """``value[k]`` from ``i[k]`` to ``j[k]``, of ``count`` points; inf between all others. Pairs
    are in order, by i and then by j, and each is given once."""

    count: int
    i: Ints
    j: Ints
    value: Floats

    @classmethod
    def of(
        cls, count: int, i: ArrayLike, j: ArrayLike, value: ArrayLike, *, both: bool = False
    ) -> Edges:
        """Pairs in any order, or ``both`` ways; of those given twice the least value."""
        first, second = (np.asarray(part, dtype=np.int64) for part in (i, j))
        number = np.asarray(value, dtype=np.float64)
        if both:
            first, second = np.append(first, second), np.append(second, first)
            number = np.append(number, number)
        order = np.lexsort((number, second, first))
        first, second, number = first[order], second[order], number[order]
        keys = first * count + second
        new = np.concatenate([[True], keys[1:] != keys[:-1]]) if len(keys) else keys > 0
        return cls(count, locked(first[new]), locked(second[new]), locked(number[new]))

    def __len__(self) -> int:
        return len(self.value)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the table that it stands for."""
        return self.count, self.count

    @cached_property
    def start(self) -> Ints:
        """Where the pairs from every point begin, (count + 1,)."""
        return locked(np.searchsorted(self.i, np.arange(self.count + 1)).astype(np.int64))

    @cached_property
    def _keys(self) -> Ints:
        """The pairs by number, in order, and one number beyond all."""
        return locked(np.append(self.i * self.count + self.j, self.count**2))

    def number(self, i: Ints, j: Ints) -> Ints:
        """Which pair leads from i to j, for arrays of both; -1 where there is none."""
        wanted = np.asarray(i, dtype=np.int64) * self.count + j
        found = np.searchsorted(self._keys, wanted)
        return np.asarray(np.where(self._keys[found] == wanted, found, -1), dtype=np.int64)

    def at(self, i: Ints, j: Ints) -> Floats:
        """The values from i to j, for arrays of both; inf where there is none."""
        return np.append(self.value, np.inf)[self.number(i, j)]

    def with_values(self, value: Floats) -> Edges:
        """Other numbers for the same pairs."""
        return Edges(self.count, self.i, self.j, locked(np.asarray(value, dtype=np.float64)))

    def shortest(self) -> Floats:
        """For every pair the length of the shortest path from i to j, in edges of ``value``."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import dijkstra

        graph = sp.csr_array((self.value, self.j, self.start), shape=self.shape)
        out, most = np.empty(len(self)), float(self.value.max(initial=0.0))
        for begin in range(0, self.count, _AT_A_TIME):
            own = np.arange(begin, min(begin + _AT_A_TIME, self.count))
            here = slice(self.start[own[0]], self.start[own[-1] + 1])
            path = dijkstra(graph, indices=own, limit=most)
            out[here] = path[self.i[here] - begin, self.j[here]]
        return out

    @cached_property
    def table(self) -> Floats:
        """All pairs, (count, count), for what needs them."""
        out = np.full(self.shape, np.inf)
        out[self.i, self.j] = self.value
        return locked(out)
