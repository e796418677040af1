"""What the documents show is what happens: README code runs, commands in it exist, CI runs its
test command."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)
SHELL = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.strip()
]
INSTALLING = [line for line in SHELL if line.startswith("python3 -m venv")]
COMMANDS = [
    line.replace("python -m optmech.audit", "audit").removeprefix("optmech ")
    for line in SHELL
    if line.startswith(("optmech ", "python -m optmech.audit "))
]


def run_module(module: str, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("code", PYTHON)
def test_python_of_the_readme_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("optimal")


@pytest.mark.parametrize("guide", ["divergences"])
def test_python_of_the_guides_runs(guide: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.S)
    assert programs
    for code in programs:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_commands_of_the_readme_run_in_order(tmp_path: Path) -> None:
    assert len(COMMANDS) >= 5
    for line in COMMANDS:
        module, arguments = "optmech", shlex.split(line)
        if arguments[0] == "audit":
            module, arguments = "optmech.audit", arguments[1:]
        done = run_module(module, arguments, tmp_path)
        assert done.returncode == 0, (line, done.stderr)


def test_the_demonstration_prints_and_draws(tmp_path: Path) -> None:
    """README command one without the installation, on the aggregated zones to save time."""
    pytest.importorskip("matplotlib")
    command = INSTALLING[0].split("&&")[-1].strip()
    assert command.startswith("optmech solve montreal ")
    command = command.replace("solve montreal ", "solve montreal-small ")
    done = run_module("optmech", shlex.split(command)[1:], tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("loss", "bound", "gap", "privacy", "attack"):
        assert word in done.stdout
    assert (tmp_path / "montreal.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not (ROOT / ".ci" / "run").exists(), reason="not a checkout")
def test_ci_calls_the_test_command_of_the_readme() -> None:
    assert len(INSTALLING) == 2
    assert INSTALLING[1] in (ROOT / ".ci" / "run").read_text().splitlines()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_seconds_of_the_readme_are_those_that_were_measured() -> None:
    """Of 64 and of 300 places, beside the generated tables of docs/benchmarks.md."""
    tables = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "guides" / "scaling.md").read_text(encoding="utf-8")
    row = re.search(r"^\| 300, metric \| (\d+) of \d+ \| ([\d.]+) \|", tables, re.M)
    small = re.search(r"^\| 64 \| ([\d.]+) \|", tables, re.M)
    assert row is not None
    assert small is not None
    seconds = f"{float(row[2]):.0f} seconds"
    plain = " ".join(README.split())
    assert f"300 (27 million inequalities) {seconds} (median of {row[1]} problems" in plain
    assert f"| 300 | {seconds} (median of {row[1]} problems)" in guide
    assert round(2 * float(small[1])) == 1
    assert "64 places take half a second" in plain


def test_make_has_what_the_documents_call() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    texts = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    called = {
        name
        for path in texts
        for name in re.findall(r"`make ([a-z]+)", path.read_text(encoding="utf-8"), re.M)
    }
    assert {"setup", "test", "check", "docs"} <= called <= targets


def test_every_test_that_the_page_of_defects_names_is_there() -> None:
    rows = re.findall(r"^\|(.*)\|$", (ROOT / "docs" / "defects.md").read_text("utf-8"), re.M)
    rows = [row for row in rows if "---" not in row and not row.startswith(" what was wrong ")]
    assert len(rows) > 60
    for row in rows:
        wrong, now, tests = (cell.strip() for cell in row.split(" | "))
        assert wrong, row
        assert now, row
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", tests)
        assert named, row
        assert tests == ", ".join(f"`{path}::{name}`" for path, name in named)
        for path, name in named:
            made = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            functions = {n.name for n in ast.walk(made) if isinstance(n, ast.FunctionDef)}
            assert name in functions, (path, name)
