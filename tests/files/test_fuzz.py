"""Whatever a problem file holds, reading it ends in a Problem or in a ProblemError."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from optmech.errors import ProblemError
from optmech.files import find_problem, load_problem
from optmech.files.gallery import gallery_names
from optmech.problem import Problem
from optmech.reading.source import read_document

SMALL = [
    read_document(find_problem(name))
    for name in gallery_names()
    if name not in ("paper", "montreal", "montreal-small")
]
HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 10**18, 2**63, -(2**80), 0.0, -0.0, 0.5, 1e-320, 1e308,
    -1e308, math.nan, math.inf, -math.inf, "", " ", "ln 3", "1/0", "ln 0", "nan", "1e999", "all",
    "uniform", "euclidean", "graph", "kind=grid", "../../etc/passwd", "/dev/zero", "/dev/stdin",
    "\x00", "\n\r\x1b[31m", "\ud800", "é" * 300, "x" * 5000, "$a_{b", "[red]", "{0}", "%s", [], {},
    [[]], [1, 2], [[1, 2], [3]], [[0.5, 0.5], [0.5, 0.5]], {"kind": "grid"}, {"kind": "matrix"},
    {"kind": 3}, {"kind": "grid", "rows": 10**9, "columns": 10**9}, {"a": 1}, {"": {"": []}},
    {"fraction_of_blind": 0.5}, ["a", "b"], [None], [[[[[[]]]]]], {"pairs": [["a", "a"]]},
]  # fmt: skip
KEYS = st.sampled_from(["kind", "epsilon", "weights", "labels", "zzz", "", "aggregate", "delta"])


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = [here]
    for key, inner in items:
        place = (*here, key)
        found += places(inner, place) if isinstance(inner, dict | list) else [place]
    return found


@st.composite
def documents(draw: st.DrawFn) -> Any:
    document = copy.deepcopy(draw(st.sampled_from(SMALL)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(document)))
        value = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        if not place:
            document[draw(KEYS)] = value
            continue
        parent = document
        for key in place[:-1]:
            parent = parent[key]
        action = draw(st.sampled_from(["replace", "delete", "insert"]))
        if action == "replace":
            parent[place[-1]] = value
        elif action == "delete":
            del parent[place[-1]]
        elif isinstance(parent, list):
            parent.insert(place[-1], value)
        else:
            parent[draw(KEYS)] = value
    return document


NUMBERS = st.sampled_from([0, 1, 2, 3, 5, 0.0, -0.0, 0.5, 1e-320, 1e-9, 1e9, 1e155, 1e308])
NAMES = st.sampled_from(
    ["euclidean", "manhattan", "hamming", "haversine", "graph", "uniform", "all", "ln 2", "1/3"]
)


@st.composite
def plausible_documents(draw: st.DrawFn) -> Any:
    """Numbers replaced by numbers and names by names: most of these have the right shape."""
    document = copy.deepcopy(draw(st.sampled_from(SMALL)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(document)[1:]))
        parent = document
        for key in place[:-1]:
            parent = parent[key]
        old = parent[place[-1]]
        if place[-1] in ("kind", "format"):
            continue
        if isinstance(old, bool):
            parent[place[-1]] = not old
        elif isinstance(old, int | float):
            parent[place[-1]] = draw(NUMBERS)
        elif isinstance(old, str):
            parent[place[-1]] = draw(NAMES)
    return document


def read(content: bytes, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fuzz{suffix}"
        path.write_bytes(content)
        try:
            problem = load_problem(path)
            assert isinstance(problem, Problem)
            with np.errstate(all="ignore"):
                assert all(isinstance(note, str) for note in problem.notes)
        except ProblemError as error:
            for line in str(error).split("\n"):
                assert line.startswith(str(path)), line
                assert line.isprintable(), line
                assert not line.rstrip().endswith(":"), line


@given(st.one_of(documents(), plausible_documents()))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("error")
def test_mutated_problems(document: Any) -> None:
    read(json.dumps(document).encode("utf-8", "surrogatepass"), ".json")


@given(st.binary(max_size=200), st.sampled_from([".toml", ".json"]))
@settings(max_examples=100, deadline=None)
def test_arbitrary_bytes(content: bytes, suffix: str) -> None:
    read(content, suffix)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
@pytest.mark.parametrize("depth", [33, 2_000, 100_000])
def test_deep_nesting(suffix: str, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    content = f"a = {nested}" if suffix == ".toml" else f'{{"a": {nested}}}'
    with pytest.raises(ProblemError, match="nests deeper than 32 levels"):
        read_text(content, suffix)


def read_text(content: str, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"deep{suffix}"
        path.write_text(content)
        read_document(path)
