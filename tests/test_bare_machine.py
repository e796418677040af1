"""From a machine with Python alone to protected points, a page and a checked design.

The commands are those of docs/guides/protecting.md, word by word, in an environment of their own.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAMS = ("uname", "sed", "dirname", "basename", "env", "sh")
"""What an environment may need to be activated, beside Python."""
ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guides" / "protecting.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GUIDE.is_file() or os.name != "posix", reason="not a checkout"),
]


def commands() -> list[str]:
    """The four commands of the guide."""
    text = GUIDE.read_text(encoding="utf-8").partition("## Four commands")[2]
    found = re.findall(r"```(?:bash|sh)\n(.*?)```", text, re.S)[:2]
    return [line for block in found for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of fixes and a map, before anything is installed; then the four commands."""
    place = tmp_path_factory.mktemp("bare")
    made = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    assert made is not None
    subprocess.run([sys.executable, "-c", made[1]], cwd=place, check=True)
    four = commands()
    assert len(four) == 4
    four[0] = four[0].replace("path/to/optmech", shlex.quote(str(ROOT)))
    four[0] = four[0].replace("python3", shlex.quote(sys.executable))
    # nothing of the environment of the tests is seen
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    # what is imported is compiled when it is, and the rest not at all: pip switches it on by 0
    kept["PIP_NO_COMPILE"] = "0"
    # Python alone: no compiler of C, of which installing takes most of its time where there is one
    bash = shutil.which("bash")
    assert bash is not None
    bare = place / "programs"
    bare.mkdir()
    for program in PROGRAMS:
        (bare / program).symlink_to(shutil.which(program) or "/nonexistent")
    kept |= {"PATH": str(bare), "CC": ""}
    activate = ". hour/bin/activate && "
    for k, line in enumerate(four):
        done = subprocess.run(
            [bash, "-c", line if k == 0 else activate + line],
            cwd=place, env=kept, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        offline = "No matching distribution" in done.stderr or "NewConnection" in done.stderr
        if k == 0 and offline and not os.environ.get("CI"):
            pytest.skip("no package index can be reached")
        assert done.returncode == 0, (line, done.stderr)
    return place


def test_the_design_is_proved_by_a_program_that_needs_nothing_installed(
    folder: Path, audit_file: Path
) -> None:
    command = [sys.executable, "-I", "-S", str(audit_file), "design.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_run_was_what_was_installed(folder: Path) -> None:
    code = "import optmech, sys; print(optmech.__file__); print('pytest' in sys.modules)"
    command = [str(folder / "hour" / "bin" / "python"), "-I", "-c", code]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert str(folder / "hour") in said


def test_every_row_has_a_report_and_no_row_its_place(folder: Path) -> None:
    with open(folder / "fixes.csv", newline="", encoding="utf-8") as stream:
        fixes = list(csv.DictReader(stream))
    with open(folder / "protected.csv", newline="", encoding="utf-8") as stream:
        reports = list(csv.DictReader(stream))
    assert len(reports) == len(fixes) == 500
    assert list(reports[0]) == ["lon", "lat"]
    # reports are centres of the cells of the problem file
    text = (folder / "city.toml").read_text(encoding="utf-8")
    known = dict(line.partition("#")[0].split(" = ") for line in text.splitlines() if " = " in line)
    rows, columns = int(known["rows"]), int(known["columns"])
    west, south, east, north = json.loads(known["bounds"])
    across = np.array([float(row["lon"]) for row in reports]) - west
    along = np.array([float(row["lat"]) for row in reports]) - south
    for cells, count in (
        (across / (east - west) * columns, columns),
        (along / (north - south) * rows, rows),
    ):
        assert np.allclose(cells % 1, 0.5, atol=1e-6)
        assert ((cells > 0) & (cells < count)).all()


def test_the_page_shows_the_roads(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert re.search(r"[1-9]\d* of the backdrop.s 15 corners are drawn", page)
    assert "https://" not in re.sub(r"https?://www\.w3\.org/\S+", "", page)
