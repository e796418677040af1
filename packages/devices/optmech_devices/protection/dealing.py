"""Rows that wait on disk between the tasks of a large table: dealt out, and read again."""

from __future__ import annotations

import hashlib
import pickle
import secrets
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.reading.tables import Part
from optmech_devices.protection.spool import joined, taken

_WAITING = 500_000
"""Rows that a task has in memory before it writes them aside."""
Segment = tuple[int, str, int]
"""Rows that wait: of which part, in which file, from which byte on."""


class Digests:
    """Numbers that stand for values, the same for equal ones."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: dict[Any, int] = {}
        self._table = np.zeros((2, 0), dtype=np.int64)

    def of(self, values: Sequence[Any]) -> Ints:
        """Of what is the same where its text is."""
        return np.array([self._number(repr(value)) for value in values], dtype=np.int64)

    def persons(self, names: Sequence[Any], buckets: int) -> tuple[Ints, Ints]:
        """Of names, and the bucket of each."""
        new = []
        # in an order that does not depend on the process
        for name in dict.fromkeys(names):
            if name not in self._known:
                self._known[name] = len(self._known)
                encoded = str(name).encode("utf-8", "surrogatepass")
                new.append((self._number(name), zlib.crc32(encoded) % buckets))
        found = np.array(new, dtype=np.int64).reshape(-1, 2).T
        self._table = np.concatenate([self._table, found], axis=1)
        digests, bucket = self._table[:, [self._known[name] for name in names]]
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
