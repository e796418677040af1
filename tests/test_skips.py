"""A skip needs a reason from the list of conftest.py that holds here, or the run fails."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = {
    "known": "import pytest\ndef test(): pytest.skip('not a checkout')\n",
    "known of a module": "import pytest\npytest.importorskip('torch.no_such_module')\n",
    "known by a mark": (
        "import pytest\n@pytest.mark.skipif(True, reason='docs/ is not beside the tests')\n"
        "def test(): pass\n"
    ),
    "another": "import pytest\ndef test(): pytest.skip('no time today')\n",
    "another of a module": "import pytest\npytest.importorskip('no_such_package')\n",
    "another by a mark": ("import pytest\n@pytest.mark.skip(reason='flaky')\ndef test(): pass\n"),
    "another, which holds elsewhere": "import pytest\ndef test(): pytest.skip('no fork here')\n",
    "expected failures are not skips": (
        "import pytest\n@pytest.mark.xfail(strict=True)\ndef test(): assert False\n"
    ),
}


@pytest.mark.parametrize("name", TESTS)
def test_reasons(name: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text("def test_passes(): pass\n")
    (tmp_path / "test_skipped.py").write_text(TESTS[name])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    refused = name.startswith("another")
    assert done.returncode == (1 if refused else 0), done.stdout + done.stderr
    assert ("not among the reasons" in done.stdout) == refused
    assert ("skipped tests and why" in done.stdout) == (name != "expected failures are not skips")


def test_whatever_a_machine_lacks_is_known() -> None:
    """Every reason that is written in a test, but for packages that ``optmech[test]`` installs."""
    written = re.compile(r"""(?:\bskip\(|reason=)\s*f?["']([^"']{6,})["']""")
    folders = [ROOT / "tests", *ROOT.glob("packages/*/tests")]
    files = {path for folder in folders for path in folder.rglob("*.py")} - {Path(__file__)}
    found = {each for path in files for each in written.findall(path.read_text("utf-8"))}
    asked = {each.format(name="clang") for each in found if not re.search("install|scikit", each)}
    assert len(asked) > 15
    known = runpy.run_path(str(ROOT / "conftest.py"))["SKIPS"]
    assert not [each for each in asked if not any(re.match(reason, each) for reason in known)]
