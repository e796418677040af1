"""The code of the guide runs, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from optmech.files import task_schema

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "traces-discrete.md"


def test_code_of_the_guide() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    assert names["report"].traces == 5
    assert names["done"].states[-1].total_epsilon <= 6
    assert len(names["done"].releases) == 3


def test_keys_of_trace_files_are_in_the_guide() -> None:
    schema = task_schema("trace")["$defs"]
    own = ("MarkovTrace", "RandomWalk", "Matrices", "Fixes", "Adversary")
    keys = {key for name in own for key in schema[name]["properties"]}
    for kind in ("conditional_privacy", "conditional_distortion"):
        (part,) = [
            part
            for part in schema.values()
            if part.get("properties", {}).get("kind", {}).get("const") == kind
        ]
        keys |= {kind, *part["properties"]}
    text = GUIDE.read_text(encoding="utf-8")
    shared = {"format", "title", "description", "source"}
    assert not [key for key in keys - shared if not re.search(rf"\b{key}\b", text)]
