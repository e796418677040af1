"""Changes to files: to their bytes, and to the values inside."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

NUMBERS: list[Any] = [
    0, -1, 1, 2, 3, 7, 10**5, 10**9, 10**18, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63),
    -(2**80), 10**400, 0.0, -0.0, 0.5, -0.5, 1e-9, 1e-320, 1e9, 1e155, 1e200, 1e308, -1e308,
    math.nan, math.inf, -math.inf,
]  # fmt: skip
"""Either tiny or far too large: a size that is merely large makes a problem that takes its time."""
TEXTS = [
    "", " ", "a", "0", "1e-6", "1/2", "1/0", "ln 3", "ln 0", "ln 1e400", "nan", "inf", "1e999",
    "9" * 30, "9" * 5000, "0o777", "all", "uniform", "euclidean", "manhattan", "hamming",
    "haversine", "graph", "same", "grid", "kind=grid", "\x00", "\n\r\x1b[31m\x1b]0;title\x07",
    "\u202eabc\u2066\u200f", "\ud800", "\x85\u2028", "é" * 300, "x" * 5000, "$a_{b$", "[red]x[/]",
    "{0}", "%s%n", "../../etc/passwd", "/dev/zero", "/dev/stdin", "/", ".", "pipe", "folder",
    "\U0001f469\u200d\U0001f4bb",
]  # fmt: skip
SHAPES: list[Any] = [
    None, True, False, [], {}, [[]], [None], [{}], [1, 2], ["a", "b"], [[1, 2], [3]],
    [[0.5, 0.5], [0.5, 0.5]], [[[[[[[[]]]]]]]], {"a": 1}, {"": {"": []}}, {"kind": "grid"},
    {"kind": 3}, {"kind": "graph"}, {"kind": "csv", "file": "data.csv", "x": "x", "y": "y"},
    {"kind": "grid", "rows": 10**9, "columns": 10**9}, {"file": "pipe"}, {"pairs": [["a", "a"]]},
    {"fraction_of_blind": 0.5}, {"uniform": True}, {"low": 1, "high": 0}, [0.0] * 1000,
    [[0.0] * 300] * 2, [""] * 1000, {str(k): k for k in range(1000)},
]  # fmt: skip
KEYS = ["kind", "epsilon", "weights", "labels", "zzz", "", "aggregate", "delta", "file", "format"]


def value(rng: random.Random) -> Any:
    """A hostile value of any type."""
    return copy.deepcopy(rng.choice(rng.choice([NUMBERS, TEXTS, SHAPES])))


def places(document: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside, at most a few of a long list."""
    items: list[tuple[Any, Any]] = []
    if isinstance(document, dict):
        items = list(document.items())
    elif isinstance(document, list):
        items = list(enumerate(document))[:12]
    found = []
    for key, inner in items:
        found += [(*here, key), *places(inner, (*here, key))]
    return found


def change(document: Any, rng: random.Random, times: int) -> Any:
    """The document with some values replaced, removed, added, doubled or nested."""
    document = copy.deepcopy(document)
    for _ in range(times):
        found = places(document)
        if not found:
            return value(rng)
        place = rng.choice(found)
        parent = document
        for key in place[:-1]:
            parent = parent[key]
        _change_at(parent, place[-1], rng)
    return document


def _change_at(parent: Any, key: Any, rng: random.Random) -> None:
    action = rng.choice(["replace", "replace", "alike", "alike", "remove", "add", "nest", "repeat"])
    old = parent[key]
    if action == "replace":
        parent[key] = value(rng)
    elif action == "alike":
        parent[key] = _alike(old, rng)
    elif action == "remove":
        del parent[key]
    elif action == "nest":
        parent[key] = rng.choice([[old], {"kind": old} if isinstance(old, str) else [old, old]])
    elif isinstance(parent, list):
        parent.insert(key, old if action == "repeat" else value(rng))
    else:
        parent[rng.choice(KEYS)] = copy.deepcopy(old) if action == "repeat" else value(rng)


def _alike(old: Any, rng: random.Random) -> Any:
    """A value of the same type, so that the shape stays right."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return rng.choice([x for x in NUMBERS if isinstance(x, int)])
    if isinstance(old, float):
        return rng.choice([x for x in NUMBERS if isinstance(x, float)])
    if isinstance(old, str):
        return rng.choice(TEXTS)
    if isinstance(old, list):
        return rng.choice([old[::-1], old[:1], old + old, []])
    return {} if isinstance(old, dict) else value(rng)


def garble(content: bytes, rng: random.Random) -> bytes:
    """The bytes with a few of them flipped, cut out, repeated, or replaced by others."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        if not data:
            return bytes(rng.randrange(256) for _ in range(20))
        at = rng.randrange(len(data))
        length = rng.choice([1, 1, 2, 8, 64, 512])
        action = rng.choice(["flip", "set", "cut", "repeat", "insert", "number", "end"])
        if action == "flip":
            data[at] ^= 1 << rng.randrange(8)
        elif action == "set":
            data[at] = rng.choice([0, 1, 9, 10, 34, 44, 46, 91, 93, 127, 128, 255])
        elif action == "cut":
            del data[at : at + length]
        elif action == "repeat":
            data[at:at] = data[at : at + length] * rng.choice([1, 2, 50])
        elif action == "insert":
            data[at:at] = rng.choice(TEXTS).encode("utf-8", "surrogatepass")[:200]
        elif action == "number":
            text = str(rng.choice(NUMBERS[:16] + NUMBERS[17:]))[:60]
            data[at : at + length] = text.encode()
        else:
            del data[at:]
    return bytes(data)
