"""Rows that wait until all are drawn, and come out in an order that says nothing.

Rows of one person stand together in most tables. Who sees their reports in that order averages
them, whether they carry a name or not. So rows are dealt out to files by chance, and those of each
file are shuffled: every order is as likely as any other, and memory holds one of the files.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.exact.arguments import whole
from optmech.exact.sampler import system_bytes
from optmech.reading.tables import Part

_BUCKETS = 64
_IN_MEMORY = 200_000
"""Rows up to which nothing is written aside."""
Bytes = Callable[[int], bytes]


class Order:
    """Chance for orders: from the entropy of the operating system, or from a seed."""

    def __init__(self, seed: int | None = None) -> None:
        """From a ``seed`` orders are reproducible, and unfit for release."""
        self._source: Bytes = system_bytes
        if seed is not None:
            self._source = np.random.default_rng([whole(seed, "seed"), 1]).bytes

    def words(self, count: int) -> Ints:
        """Whole numbers of 63 bits, (count,)."""
        found = np.frombuffer(self._source(8 * count), dtype="<u8")
        return (found >> np.uint64(1)).astype(np.int64)

    def permutation(self, count: int) -> Ints:
        """An order of so many rows: each is as likely, but for words that are equal by chance."""
        return np.argsort(self.words(count), kind="stable")


class Spool:
    """Takes parts of a table, and gives them back shuffled, or as they came without an order."""

    def __init__(self, order: Order | None, in_memory: int = _IN_MEMORY) -> None:
        self._order, self._most = order, in_memory
        self._parts: list[Part] = []
        self._rows = 0
        self._files: list[IO[bytes]] = []
        self._open = ExitStack()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def put(self, part: Part, rows: int) -> None:
        """Keep a part of so many rows."""
        if not rows:
            return
        self._parts.append(part)
        self._rows += rows
        if self._rows > self._most:
            self._spill()

    def _spill(self) -> None:
        shuffled = self._order is not None
        if not self._files:
            count = _BUCKETS if shuffled else 1
            files = (TemporaryFile() for _ in range(count))  # noqa: SIM115
            self._files = [self._open.enter_context(file) for file in files]
        for part in self._parts:
            rows = length(part)
            bucket = self._order.words(rows) % _BUCKETS if self._order else np.zeros(rows, int)
            for k, file in enumerate(self._files):
                chosen = np.flatnonzero(bucket == k)
                if len(chosen):
                    pickle.dump(taken(part, chosen), file, protocol=pickle.HIGHEST_PROTOCOL)
        self._parts, self._rows = [], 0

    def parts(self) -> Iterator[Part]:
        """All rows."""
        if self._files:
            self._spill()
        for file in self._files:
            file.seek(0)
            if self._order is not None:
                yield self._shuffled(list(_read(file)))
            else:
                yield from _read(file)
        if self._parts:
            yield from [self._shuffled(self._parts)] if self._order else self._parts

    def _shuffled(self, parts: list[Part]) -> Part:
        if not parts or self._order is None:
            return {}
        every = {name: joined([part[name] for part in parts]) for name in parts[0]}
        return taken(every, self._order.permutation(length(every)))


def length(part: Part) -> int:
    """How many rows there are."""
    return len(next(iter(part.values()), ()))


def joined(columns: Sequence[Any]) -> Any:
    """One column after the other."""
    if all(isinstance(own, np.ndarray) for own in columns):
        return np.concatenate(columns)
    return [cell for own in columns for cell in own]


def taken(part: Part, rows: Ints) -> Part:
    """The rows of these numbers."""

    def of(column: Any) -> Any:
        if isinstance(column, np.ndarray):
            return column[rows]
        return [column[k] for k in rows.tolist()]

    return {name: of(column) for name, column in part.items()}


def _read(file: IO[bytes]) -> Iterator[Part]:
    """What was written there by ``_spill``, into a file without a name."""
    while True:
        try:
            yield pickle.load(file)
        except EOFError:
            return
