"""Shells complete commands, options, their choices and gallery names, by asking the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optmech.cli.main import main


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("optmech pro", {"protect", "problems", "profiles"}),
        ("optmech solve --ti", {"--time-limit"}),
        ("optmech solve montr", {"montreal", "montreal-small"}),
        ("optmech solve t", {"t.csv", "threshold"}),
        ("optmech trace ten", {"ten-points"}),
        ("optmech protect d.json t.csv --outside ", {"refuse", "nearest", "drop", "few"}),
        ("optmech completion f", {"fish"}),
    ],
)
def test_the_command_completes(line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").touch()
    answer = tmp_path / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
    }
    program = "from optmech.cli.main import entry; entry()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | asked, cwd=tmp_path, check=True,
        capture_output=True,
    )  # fmt: skip
    assert done.stdout == b""
    found = {word.strip() for word in answer.read_text().split("\n")}
    assert expected <= found if line.endswith(" t") else found == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_ask_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "_ARGCOMPLETE" in text
    assert "optmech" in text


def test_bash_takes_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "optmech.bash"
    path.write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["bash", "-c", f"source {path}; complete -p optmech"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "optmech" in done.stdout
