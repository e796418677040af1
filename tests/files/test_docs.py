"""docs/problem-files.md mentions every key and every kind of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from optmech.files import load_problem, problem_schema

DOCUMENT = Path(__file__).parents[2] / "docs" / "problem-files.md"


def names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.get("properties", {}).items():
            yield key
            yield from (str(kind) for kind in [value.get("const"), *value.get("enum", [])] if kind)
        for value in node.values():
            yield from names(value)
    elif isinstance(node, list):
        for value in node:
            yield from names(value)


def test_every_key_and_kind_is_documented() -> None:
    if not DOCUMENT.is_file():
        pytest.skip("docs/ is not beside the tests")
    text = DOCUMENT.read_text(encoding="utf-8")
    known = sorted(set(names(problem_schema())))
    assert len(known) > 60
    missing = [name for name in known if f"`{name}`" not in text and f'"{name}"' not in text]
    assert not [name for name in missing if f"{name} =" not in text]


def test_the_example_is_a_problem(tmp_path: Path) -> None:
    if not DOCUMENT.is_file():
        pytest.skip("docs/ is not beside the tests")
    example = DOCUMENT.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    path = tmp_path / "example.toml"
    path.write_text(example, encoding="utf-8")
    assert len(load_problem(path).secrets) == 20
