"""The part of CBOR that packed mechanisms use, in the deterministic form of RFC 8949, 4.2.1.

Integers of 64 bits, byte and text strings, arrays, maps with texts as keys, tags, the simple values
and floats. Whatever is not written in the one form that ``encode`` gives is refused. Of texts that
are keys the canonical order of cbor2 (RFC 7049) is the deterministic one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import cbor2
import numpy as np
from numpy.typing import NDArray

from optmech.errors import ProblemError

Plain = Any
Tag = cbor2.CBORTag
_DEPTH = 16
MOST_ITEMS = 2**20
"""Of one encoding: 2^16 places have at most as many labels, twice, and all else is few. Each takes
a byte of a file, and some hundred in memory."""
_ARRAYS = {70: "<u4", 71: "<u8", 86: "<f8"}
"""Tags of RFC 8746 and the numbers they stand for."""


def typed(values: NDArray[Any] | list[Any], tag: int) -> Tag:
    """Numbers as a typed array of RFC 8746, under one of the tags 70, 71 and 86."""
    return Tag(tag, np.ascontiguousarray(values, dtype=_ARRAYS[tag]).tobytes())


def untyped(item: Plain, tag: int) -> NDArray[Any]:
    """The numbers of a typed array, (n,). Raises ProblemError on anything else, and on numbers that
    are not finite."""
    kind = np.dtype(_ARRAYS[tag])
    whole = isinstance(item, Tag) and item.tag == tag and isinstance(item.value, bytes)
    if not whole or len(item.value) % kind.itemsize:
        raise ProblemError(f"is not an array under tag {tag}")
    found = np.frombuffer(item.value, dtype=kind)
    if not np.isfinite(found).all():
        raise ProblemError("holds a number that is not finite")
    return found.astype(np.int64) if tag == 70 else found


class _Readers(dict[int, Callable[[Plain, bool], Tag]]):
    """By tags what reads the item behind them: nothing is made of any item, be it a time, a number
    of any size, or a part that stands for another."""

    def __missing__(self, tag: int) -> Callable[[Plain, bool], Tag]:
        return lambda item, _: Tag(tag, item)


def encode(value: Plain) -> bytes:
    """The one encoding of a value. Raises ProblemError on what has none."""
    if _known(value, 0) > MOST_ITEMS:
        raise ProblemError(f"has more than {MOST_ITEMS:,} items")
    try:
        return cbor2.dumps(value, canonical=True)
    except UnicodeEncodeError as error:
        raise ProblemError(f"the text {error.object[:40]!a} is not Unicode") from error


def decode(content: bytes) -> Plain:
    """What some bytes encode, arrays as lists. Raises ProblemError on what ``encode`` never
    gives."""
    _require_few(content)
    try:
        found = cbor2.loads(content, semantic_decoders=_Readers(), allow_indefinite=False)
    except cbor2.CBORError as error:
        raise ProblemError(f"cannot be read as CBOR: {error}") from error
    if encode(found) != content:
        raise ProblemError("is not in the one form that is written, or goes on after its end")
    return found


def _require_few(content: bytes) -> None:
    """Raise ProblemError on too many items, before one of them is made."""
    at = count = 0
    while at < len(content) and (short := content[at] & 31) < 28:
        major, wide = content[at] >> 5, 1 << short - 24 if short > 23 else 0
        size = int.from_bytes(content[at + 1 : at + 1 + wide], "big") if wide else short
        at += 1 + wide + (size if major in (2, 3) else 0)
        count += 1
        if count > MOST_ITEMS:
            raise ProblemError(f"has more than {MOST_ITEMS:,} items")


def _known(value: Plain, depth: int) -> int:
    """How many items there are. Raises ProblemError on what is in no packed file."""
    inner: Iterable[Plain] = ()
    match value:
        case None | bool() | bytes() | str():
            pass
        case int():
            if not -(2**64) <= value < 2**64:
                raise ProblemError(f"an integer of {value.bit_length()} bits does not fit into 64")
        case float():
            if not math.isfinite(value):
                raise ProblemError(f"{value!r} is not finite")
        case list() | tuple():
            inner = value
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise ProblemError("has a map whose keys are no texts")
            inner = [part for pair in value.items() for part in pair]
        case Tag():
            inner = [value.value]
        case _:
            raise ProblemError(f"a {type(value).__name__} has no encoding")
    if depth > _DEPTH:
        raise ProblemError(f"nests deeper than {_DEPTH} levels")
    return 1 + sum(_known(part, depth + 1) for part in inner)
