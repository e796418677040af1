"""The script that bash sources completes commands, options, their choices and gallery names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from optmech.cli.main import COMMANDS, main


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "optmech.bash"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["optmech", "pro"], {"protect", "problems", "profiles"}),
        (["optmech", "solve", "--ti"], {"--time-limit"}),
        (["optmech", "solve", "montr"], {"montreal", "montreal-small"}),
        (["optmech", "trace", "ten"], {"ten-points"}),
        (["optmech", "protect", "d.json", "t.csv", "--outside", ""],
         {"refuse", "nearest", "drop"}),
        (["optmech", "completion", "f"], {"fish"}),
    ],
)  # fmt: skip
def test_bash_completes(words: list[str], expected: set[str], script: Path) -> None:
    listed = " ".join(f"'{word}'" for word in words)
    program = (
        f"source {script}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _optmech; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=True, cwd=script.parent
    )
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert name in text
