"""Every block of code in the guides and documents runs, and prints what is shown."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from optmech.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
NEEDED = {"other-tools": ("xarray", "h5netcdf", "pyarrow", "h3", "opendp"),
          "pictures": ("matplotlib", "plotly")}  # fmt: skip

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="docs/ is not beside the tests")


def blocks(path: Path) -> list[tuple[str, str]]:
    return _BLOCK.findall(path.read_text(encoding="utf-8"))


PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if any(language in ("python", "sh") for language, _ in blocks(path))
)


def run_command(line: str) -> None:
    words = shlex.split(line)
    if words[0] == "python":
        assert words[1:3] == ["-P", "-m"], line
        assert words[3].startswith("optmech_audit"), line
        subprocess.run([sys.executable, *words[1:]], check=True)
        return
    assert words[0] == "optmech", line
    assert main(words[1:]) == 0, line


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NEEDED.get(Path(page).stem, ()):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    found = list(blocks(DOCS / page))
    assert {"python", "sh"} & {language for language, _ in found}
    for language, text in found:
        shown = io.StringIO()
        if language == "python":
            with contextlib.redirect_stdout(shown):
                exec(compile(text, page, "exec"), space)
            printed = shown.getvalue()
        elif language == "sh":
            with contextlib.redirect_stdout(shown):
                for line in filter(
                    None, (line.split("  #")[0].strip() for line in text.split("\n"))
                ):
                    run_command(line)
        elif language == "text":
            shown_lines = text.splitlines()
            if "…" not in shown_lines:
                assert shown_lines == printed.splitlines(), (page, printed)
            for line in shown_lines:
                assert line == "…" or line in printed.splitlines(), (page, line, printed)


def test_the_guides_are_among_them() -> None:
    guides = {Path(page).stem for page in PAGES if page.startswith("guides/")}
    assert guides >= {"first-design", "choosing", "certificate", "attributes", "first-trace",
                      "scaling", "pictures", "other-tools"}  # fmt: skip


@pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="not a checkout")
def test_the_site_leads_to_every_page() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    guides = [path.relative_to(DOCS).as_posix() for path in DOCS.glob("guides/*.md")]
    assert [page for page in guides if page not in listed] == []
