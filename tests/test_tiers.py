"""The list of slow tests names tests that there are, and is made from what pytest prints."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from tests.tiers import SLOW, slow

ROOT = Path(__file__).parents[1]
NAMES = SLOW.read_text(encoding="utf-8").split()


@functools.cache
def statements(file: str) -> list[ast.stmt]:
    return ast.parse((ROOT / file).read_text(encoding="utf-8")).body


def test_every_name_is_a_test() -> None:
    for name in NAMES:
        file, *inner = name.split("::")
        body = statements(file)
        for part in inner:
            found = [
                node
                for node in body
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
            ]
            assert found, name
            body = found[0].body


def test_each_of_them_is_marked(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        test = item.nodeid.partition("[")[0]
        if test in NAMES or test.partition("::")[0] in NAMES:
            assert item.get_closest_marker("slow"), item.nodeid


def test_what_pytest_prints() -> None:
    printed = [
        "1.20s call     tests/a/test_b.py::test_one[x-y]",
        "0.10s call     tests/a/test_b.py::test_two",
        "0.90s setup    tests/test_c.py::test_three",
        "9.00s setup    tests/test_d.py::Test::test_four[0]",
        "2.00s call     tests/test_d.py::Test::test_five",
        "2.00s teardown tests/test_c.py::test_three",
        "2.00s call     tests/test_e.py::Test::test_six",
        "2.00s call     packages/f/tests/g/test_h.py::test_seven",
    ]
    assert slow(printed) == [
        "packages/f/tests/g/test_h.py::test_seven",
        "tests/a/test_b.py::test_one",
        "tests/test_d.py",
        "tests/test_e.py::Test::test_six",
    ]
