"""docs/papers.md: every name is public, every line runs, every command, key, page and test is
there."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from public import names_of

import optmech as om
from optmech.cli.main import build_parser, main
from optmech.files.gallery import gallery_names

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "papers.md"
if not PAGE.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")
TRACES = {
    path.stem
    for path in (ROOT / "packages" / "traces" / "optmech_traces" / "problems").glob("*.toml")
}
WORDS = ("", "Python only", "counterexample run")


class Row(NamedTuple):
    item: str
    what: str
    python: str
    command: str
    page: str
    test: str


ROWS = [
    (part.partition("\n")[0], Row(*(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])))
    for part in TEXT.split("\n## ")[1:]
    for line in re.findall(r"^\|.*\|$", part, re.M)[2:]
]
NAMED = [pytest.param(row, id=f"{part}: {row.item}") for part, row in ROWS]


def code(cell: str) -> str:
    return cell.strip("`").replace("\\|", "|")


@cache
def space() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.S):
        exec(block, found)
    return found


@cache
def words_of_files() -> frozenset[str]:
    """Keys and values of problem and trace files, by their schemas."""
    found: set[str] = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            found.update(part.get("properties", {}))
            found.update(part.get("enum", []))
            found.update([part["const"]] if isinstance(part.get("const"), str) else [])
            for inner in part.values():
                walk(inner)
        elif isinstance(part, list):
            for inner in part:
                walk(inner)

    for more in ([], ["trace"]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert main(["schema", *more]) == 0
        walk(json.loads(printed.getvalue()))
    return frozenset(word for word in found if isinstance(word, str))


def test_there_are_rows_of_every_paper() -> None:
    counts = {part: sum(name == part for name, _ in ROWS) for part, _ in ROWS}
    assert [part.rpartition("(")[2][:-1] for part in counts] == ["PG", "DP19", "CM19", "TP19"]
    assert min(counts.values()) >= 12
    assert len(ROWS) == len(set(ROWS)) >= 100


@pytest.mark.parametrize("row", NAMED)
def test_a_row_is_so(row: Row) -> None:
    if row.python == "not offered":
        assert row[3:] == ("", "", "")
        return
    assert row.python or row.command.startswith("`python ")
    if row.python:
        line = code(row.python)
        for name in re.findall(r"\bom(?:\.\w+)+", line):
            public(name)
        with contextlib.redirect_stdout(io.StringIO()):
            assert eval(line, dict(space())) is not None
    if row.command not in WORDS:
        offered(code(row.command))
    target = re.fullmatch(r"\[[^\]]+\]\(([^)#]+)(#[^)]+)?\)", row.page)
    assert target is not None
    assert (PAGE.parent / target[1]).is_file()
    path, _, name = code(row.test).partition(": ")
    place = ROOT / path if path.startswith("packages/") else ROOT / "tests" / path
    assert f"def test_{name}(" in place.read_text(encoding="utf-8")


def public(name: str) -> None:
    """A name after ``om.`` is in the list of its module."""
    owner: Any = om
    for word in name.split(".")[1:]:
        listed = names_of(owner) if owner is om else getattr(owner, "__all__", [word])
        assert word in listed, name
        owner = getattr(owner, word)


def offered(command: str) -> None:
    """A command with its options, or a word of files."""
    first, *words = shlex.split(command)
    if first == "optmech":
        subcommands = next(
            action
            for action in build_parser()._actions
            if isinstance(action, argparse._SubParsersAction)
        )
        known = subcommands.choices[words[0]]
        for word in words[1:]:
            if word.startswith("-"):
                assert word in known._option_string_actions, command
        if words[0] in ("solve", "transport", "trace") and len(words) > 1:
            assert words[1] in {*gallery_names(), *TRACES}, command
    elif first == "python":
        script = ROOT / words[0]
        script = script / "__main__.py" if script.is_dir() else script
        text = script.read_text(encoding="utf-8")
        for word in words[1:]:
            assert f'"{word}"' in text or word in text, command
    else:
        assert not words
        assert first in words_of_files(), first
