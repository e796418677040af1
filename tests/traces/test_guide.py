"""The code of the guide runs, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "traces-discrete.md"


def test_code_of_the_guide() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    assert names["report"].traces == 5
    assert names["done"].states[-1].total_epsilon <= 6
    assert len(names["done"].releases) == 3
