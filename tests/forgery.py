"""Files that are changed and get a digest that fits: what somebody would hand on who lies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optmech.reading.sealed import seal

Change = Callable[[Any], object]


def resealed(content: bytes, change: Change) -> bytes:
    """The content of a file whose object was changed in place."""
    body = json.loads(content)
    del body["digest"]
    change(body)
    return seal(json.dumps(body).encode())


def reseal(path: Path, change: Change, out: Path | None = None) -> Path:
    """The path of the changed file, which is the same one where no other is named."""
    out = path if out is None else out
    out.write_bytes(resealed(path.read_bytes(), change))
    return out
