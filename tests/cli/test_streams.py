"""Standard streams that are closed, full or unread: a sentence and a status, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from optmech.cli.main import main

TRIED = [
    ["--version"],
    ["--help"],
    ["check", "--help"],
    ["check", "d.json"],
    ["sample", "d.json", "0,0", "-n", "3"],
    ["schema"],
    ["problems"],
    ["solve", "male-female", "-q", "--json"],
    ["solve", "male-female", "-q", "-o", "-"],
    ["export", "d.json", "--format", "matrix", "-o", "/dev/stdout"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("streams")
    assert main(["solve", "home-out", "-q", "-o", str(place / "d.json")]) == 0
    return place


def shell(folder: Path, argv: list[str], ending: str) -> subprocess.CompletedProcess[bytes]:
    """As a shell runs it, which can close a stream before the start."""
    command = f'exec "$0" -m optmech "$@" {ending}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *argv],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip


REASONS = {
    ">&-": [b"it is closed", b"Bad file descriptor"],
    ">/dev/full": [b"No space left on device"],
}
# of each way to write one closed, and all full
ENDINGS = [(argv, ">/dev/full") for argv in TRIED]
ENDINGS += [(argv, ">&-") for argv in TRIED if "-o" in argv or argv[0] in ("--version", "sample")]


@pytest.mark.parametrize(
    ("argv", "ending"), ENDINGS, ids=lambda given: given if given[0] == ">" else " ".join(given)
)
def test_standard_output_that_takes_nothing(argv: list[str], ending: str, folder: Path) -> None:
    result = shell(folder, argv, ending)
    assert result.returncode == 2
    (line,) = [x for x in result.stderr.splitlines() if x.startswith(b"optmech: error: ")]
    assert b"cannot be written: " in line
    assert any(words in line for words in REASONS[ending])
    assert b"Traceback" not in result.stderr
    assert b"Exception ignored" not in result.stderr


MATRIX = ["export", "d.json", "--format", "matrix", "-o", "-"]


@pytest.fixture(scope="module")
def plain(folder: Path) -> subprocess.CompletedProcess[bytes]:
    """What a command gives whose streams are open."""
    done = shell(folder, MATRIX, "")
    assert done.returncode == 0
    return done


@pytest.mark.parametrize("ending", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_standard_error_that_takes_nothing_changes_no_result(
    ending: str, folder: Path, plain: subprocess.CompletedProcess[bytes]
) -> None:
    result = shell(folder, MATRIX, ending)
    assert (result.returncode, result.stdout) == (0, plain.stdout)
    failed = shell(folder, ["check", "nosuch.json", "--json"], ending)
    assert failed.returncode == 2
    assert failed.stdout.startswith(b'{"status": "error"')
    # nothing of what belongs there is on standard output
    assert b"optmech: error" not in failed.stdout


def test_a_file_led_to_a_closed_stream_is_not_lost_silently(folder: Path) -> None:
    argv = ["export", "d.json", "--format", "matrix", "-o", "/dev/stderr"]
    assert shell(folder, argv, "2>&-").returncode == 2


def test_files_do_not_get_the_number_of_a_closed_stream(folder: Path) -> None:
    saved = folder / "saved.json"
    argv = ["solve", "home-out", "-q", "-o", str(saved)]
    # tables go nowhere, and not into the file that is opened next
    assert shell(folder, argv, "<&- >&- 2>&-").returncode == 2
    assert main(["check", str(saved)]) == 0


def test_an_empty_answer_on_a_closed_standard_input(folder: Path) -> None:
    (folder / "odd.csv").write_text("a,b\n1,2\n")
    result = shell(folder, ["init", "odd.csv"], "<&-")
    assert result.returncode == 2
    assert b"the columns are 'a', 'b'" in result.stderr
    assert shell(folder, ["protect", "d.json", "-"], "<&-").returncode == 2


def test_a_pipe_that_nobody_reads_is_no_error(folder: Path) -> None:
    result = shell(folder, ["schema"], "| true")
    assert result.stderr == b""
