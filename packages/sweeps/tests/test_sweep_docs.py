"""docs/sweeps.md shows what happens, and mentions every key of sweep files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from optmech_sweeps.plan import read_plan

from optmech.files import sweep_schema
from optmech.files.gallery import SWEEPS, gallery_names

DOCUMENT = Path(__file__).parents[3] / "docs" / "sweeps.md"


@pytest.fixture(scope="module")
def text() -> str:
    if not DOCUMENT.is_file():
        pytest.skip("docs/ is not beside the tests")
    return DOCUMENT.read_text(encoding="utf-8")


def test_every_key_and_kind_is_documented(text: str) -> None:
    schema = sweep_schema()
    keys = set(schema["properties"])
    for model in schema["$defs"].values():
        keys |= set(model["properties"])
        keys.add(model["properties"]["kind"]["const"])
    missing = [key for key in keys if f"`{key}`" not in text and f'`"{key}"`' not in text]
    assert len(keys) > 20
    assert not missing


def test_the_example_is_a_sweep_and_so_is_the_gallery(text: str, tmp_path: Path) -> None:
    path = tmp_path / "curve.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    plan = read_plan(path)
    assert plan.count == 18
    assert plan.columns == ("epsilon", "d_m")
    assert gallery_names(SWEEPS)
    for name in gallery_names(SWEEPS):
        assert read_plan(name).count > 1


def test_the_python_example_runs(text: str, tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", text, re.S)[0]
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    epsilon, loss, status = done.stdout.split()
    assert float(loss) <= 0.5
    assert status == "optimal"
    assert epsilon == "1.0" or epsilon.startswith("ln")
