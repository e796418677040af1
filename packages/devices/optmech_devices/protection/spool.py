"""Rows that wait until all are drawn, and come out in an order that says nothing.

Rows of one person stand together in most tables. Who sees their reports in that order averages
them, whether they carry a name or not. So rows are dealt out to files by chance, and those of each
file are shuffled: every order is as likely as any other, and memory holds one of the files. Between
the tasks of a large table they are dealt out by buckets, and read again.
"""

from __future__ import annotations

import hashlib
import pickle
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
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


_WAITING = 500_000
"""Rows that a task has in memory before it writes them aside."""
Segment = tuple[int, str, int]
"""Rows that wait: of which part, in which file, from which byte on."""


class Digests:
    """Numbers that stand for values, the same for equal ones."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: dict[Any, tuple[int, int]] = {}

    def of(self, values: Sequence[Any]) -> Ints:
        """Of what is the same where its text is."""
        return np.array([self._number(repr(value)) for value in values], dtype=np.int64)

    def persons(self, names: Sequence[Any], buckets: int) -> tuple[Ints, Ints]:
        """Of names, and the bucket of each."""
        for name in set(names) - self._known.keys():
            encoded = str(name).encode("utf-8", "surrogatepass")
            self._known[name] = self._number(name), zlib.crc32(encoded) % buckets
        found = [self._known[name] for name in names]
        digests, bucket = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return digests, bucket

    def _number(self, text: str) -> int:
        content = text.encode("utf-8", "surrogatepass")
        found = hashlib.blake2b(content, digest_size=8, key=self._secret).digest()
        return int.from_bytes(found, "little", signed=True)


class Dealing:
    """A file that rows are dealt out to: those of one bucket stand together."""

    def __init__(self, folder: str, name: str, buckets: int) -> None:
        # a task that is begun again does not write over what another may be reading
        self._path = Path(folder) / f"{name}.{secrets.token_hex(4)}"
        self._parts: list[Part] = []
        self._buckets: list[Ints] = []
        self._rows = 0
        self.waiting: list[list[tuple[str, int]]] = [[] for _ in range(buckets)]

    def __enter__(self) -> Dealing:
        self._file: IO[bytes] = open(self._path, "xb")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._file.close()

    def put(self, columns: Part, bucket: Ints) -> None:
        """Rows, and the bucket of each."""
        if len(bucket):
            self._parts.append(columns)
            self._buckets.append(bucket)
            self._rows += len(bucket)
        if self._rows >= _WAITING:
            self._flush()

    def _flush(self) -> None:
        if not self._parts:
            return
        bucket = np.concatenate(self._buckets)
        order = np.argsort(bucket, kind="stable")
        every = {name: joined([part[name] for part in self._parts]) for name in self._parts[0]}
        every = taken(every, order)
        ends = np.searchsorted(bucket[order], range(len(self.waiting) + 1))
        for k, segments in enumerate(self.waiting):
            begin, end = int(ends[k]), int(ends[k + 1])
            if begin < end:
                segments.append((str(self._path), self._file.tell()))
                own = {name: column[begin:end] for name, column in every.items()}
                pickle.dump(own, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._parts, self._buckets, self._rows = [], [], 0


def read(segments: Sequence[Segment]) -> Iterator[tuple[int, Part]]:
    """The rows that wait, and of which part they are; see ``Dealing``."""
    for part, path, begin in segments:
        with open(path, "rb") as file:
            file.seek(begin)
            yield part, pickle.load(file)


def several(rows: Part, name: str) -> list[Any]:
    """The columns of all places of a row, in their order, taken out of ``rows``."""
    every = [key for key in rows if key.startswith(f"{name}:")]
    every.sort(key=lambda key: int(key.partition(":")[2]))
    return [rows.pop(key) for key in every]
