"""The code of docs/coupling.md runs, in order, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "coupling.md"


def test_the_code_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    if not GUIDE.is_file():
        pytest.skip("docs/ is not beside the tests")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "[0.2 0.4 0.4]"
    assert printed[1].endswith(" 0.0")
    # the barycentre of two inputs: half of W_1 = 1/10 + 5/10
    assert float(printed[3].split()[0]) == pytest.approx(0.3)
