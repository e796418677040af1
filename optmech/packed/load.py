"""A packed mechanism as one to sample from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.read_only import frozen
from optmech.errors import ProblemError, VerificationError
from optmech.exact.numerators import SAMPLED_BITS, FixedNumerators
from optmech.exact.sampler import Bytes, EachBytes, Table, draw, draw_each
from optmech.packed.everywhere import Packed, PackedEverywhere
from optmech.packed.file import MAX_BYTES, Parts, decode_parts, is_packed, opened
from optmech.packed.meshes import Weights
from optmech.packed.places import Finder
from optmech.reading.bounded import read_bytes, read_start
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.sphere import is_position

_START = 32


@frozen
class PackedMechanism(Packed):
    """The mechanism of a packed file: a ``Mechanism`` whose probabilities are whole numbers over
    2^bits, and what the file says in its ``header``.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> packed = om.pack(om.solve(problem), "cells.omm")
    >>> packed.bits, packed.draw_bytes, packed.header.protects
    (24, 3, ('metric_privacy: ε = 1 per km (euclidean)',))
    >>> packed.sample(packed.locate((1.5, 0.2))) in cells.labels
    True
    >>> zeros = bytes(packed.draw_bytes)
    >>> packed.report((0, 0), zeros), packed.reports((0, 0), np.zeros((2, 3), np.uint8))
    ((0, 0), [(0, 0), (0, 0)])
    """

    def __init__(self, parts: Parts) -> None:
        vars(self).update(
            secrets=parts.places,
            observables=parts.reports,
            header=parts.header,
            bits=parts.table.bits,
            _parts=parts,
        )

    @property
    def _from(self) -> str:
        return repr(self.secrets)

    @cached_property
    def exact(self) -> FixedNumerators:
        """The whole numbers, with a column for every observable. Raises TooLargeError where there
        is no memory for so many."""
        table = self._parts.table
        entries = self._entries(len(self.secrets))
        entries[:, table.columns] = table.rows[self._parts.row_of]
        return FixedNumerators(table.bits, entries)

    @cached_property
    def matrix(self) -> Floats:
        """The probabilities, shape (secrets, observables), exactly."""
        return self.exact.matrix

    @cached_property
    def _table(self) -> Table:
        """The sums of the distinct rows, over the columns that there are."""
        sums = np.cumsum(self._parts.table.rows, axis=1, dtype=np.uint64)
        steps = sums << np.uint64(SAMPLED_BITS - self.bits)
        return Table(np.ascontiguousarray(steps.T[None]))

    @property
    def draw_bytes(self) -> int:
        """Bytes that a report takes."""
        return self.bits // 8

    def report(self, secret: Hashable, entropy: bytes) -> Hashable:
        """The report that ``draw_bytes`` bytes stand for, as docs/packed.md has it: every reader of
        the file gives the same. Uniform bytes give every report its exact probability; use each
        byte once. Raises ProblemError on another number of bytes or an unknown secret."""
        return self.reports(secret, self._require_bytes(entropy))[0]

    def reports(self, secret: Hashable, entropy: NDArray[np.uint8]) -> list[Hashable]:
        """One report for each row of ``entropy``, shape (n, draw_bytes)."""
        words = np.zeros((len(entropy), 8), dtype=np.uint8)
        words[:, : self.draw_bytes] = entropy
        drawn = words.view("<u8")[:, 0].astype(np.uint64)
        # every row is read, and every sum of one compared
        row = int(self._parts.row_of[self.secrets.index_evenly(secret)])
        steps = self._table.row(row)[0]
        shifted = drawn << np.uint64(SAMPLED_BITS - self.bits)
        indices = (steps[None, :] <= shifted[:, None]).sum(axis=1)
        labels = list(self.observables.labels)
        return [labels[k] for k in self._parts.table.columns[indices]]

    def _draw_of(self, secret: int, count: int, source: Bytes) -> Ints:
        row = int(self._parts.row_of[secret])
        return np.asarray(self._parts.table.columns[draw(self._table, row, count, source)])

    def _draws_of(self, secrets: Ints, source: EachBytes) -> Ints:
        rows = self._parts.row_of[secrets]
        return np.asarray(self._parts.table.columns[draw_each(self._table, rows, source)])

    def locate(self, position: Sequence[float]) -> Hashable | None:
        """The label of the place that a position belongs to: (longitude, latitude) in degrees, or
        the coordinates of the places. None outside the region, where the file says to refuse
        that. Raises ProblemError where places have no coordinates."""
        dimension = self.secrets.require_points("look up a position").shape[1]
        where = finite_array(position, where="position", ndim=1)
        if len(where) != dimension:
            raise ProblemError(f"{len(where)} coordinates instead of {dimension}", where="position")
        if not is_position(where[None], self._finder.globe)[0]:
            raise ProblemError("is too large for a position", where="position")
        found = int(self._finder.find(where[None])[0])
        return None if found < 0 else self.secrets.labels[found]

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self.secrets, self.header.reach, self.header.outside)


@checked_arguments
def load_packed(
    path: str | Path, *, signer: str | Path | None = None
) -> PackedMechanism | PackedEverywhere:
    """Read a file that ``pack`` wrote: all of it is checked before anything is built from it. Of a
    design that is private at every point a ``PackedEverywhere``.

    Parameters
    ----------
    signer:
        A PEM file with the Ed25519 public key that the file has to be signed with; signed files
        are read only with one.

    Raises
    ------
    ProblemError
        Where the file or the key cannot be read.
    VerificationError
        Where the file was altered, is not exactly as specified, or is not signed as it should be.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> _ = om.pack(om.solve(problem), "cells.omm")
    >>> packed = om.load_packed("cells.omm")
    >>> packed.locate((1.5, 0.2))  # the cell of a position, in km
    (0, 1)
    """
    return mechanism_of(decode_parts(payload_of(path, signer), str(path)))


def mechanism_of(parts: Parts) -> PackedMechanism | PackedEverywhere:
    """What the parts of a file are."""
    of_mesh = isinstance(parts.places, Weights)
    return PackedEverywhere(parts) if of_mesh else PackedMechanism(parts)


def is_packed_file(path: str | Path) -> bool:
    """Whether a file begins like a packed one; False where it cannot be read."""
    try:
        return is_packed(read_start(path, _START))
    except ProblemError:
        return False


def payload_of(path: str | Path, signer: str | Path | None) -> bytes:
    """The plain file's bytes, after the signature was verified where there is one or has to be."""
    content, where = read_bytes(path, MAX_BYTES), str(path)
    found = opened(content, where)
    if found is None and signer is None:
        return content
    if found is None:
        raise VerificationError(
            "is not signed, and a signature was asked for",
            where=where,
            remedy="Pack the design with --sign",
        )
    if signer is None:
        raise ProblemError(
            "is signed, and there is no key to verify that with",
            where=where,
            remedy="Give the signer's public key (--signer, signer=)",
        )
    from optmech.packed.file import verify

    verify(*found, signer, where)
    return found[0]
