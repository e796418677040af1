"""The audit as one file, to hand on: ``python -P -m optmech_audit.alone audit.py``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHAPTERS = (
    "numbers", "document", "places", "mechanisms", "inequalities", "variance", "variance_bound",
    "statements", "networks", "constraints", "cells", "designs", "couplings", "globe", "regions",
    "losses", "noise", "pairs", "shaped", "radial", "cbor", "promises", "packed", "earth",
    "verdict",
)  # fmt: skip
# what a chapter takes from those before it
TAKEN = re.compile(r"^from (?:__future__|optmech\S*) import (?:\([^)]*\)|.*)\n", re.MULTILINE)


def chapter(name: str) -> str:
    source = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    return f"# ==== {name}\n{TAKEN.sub('', source)}"


def alone() -> str:
    """All chapters as the text of one file, which needs Python and nothing beside it."""
    about = (
        chapter("__init__")
        .split('"""')[1]
        .replace("python -P -m optmech_audit", "python -P audit.py")
    )
    future = "from __future__ import annotations\n"
    end = 'if __name__ == "__main__":\n    raise SystemExit(main(sys.argv[1:]))\n'
    return "\n\n".join([f'"""{about}"""\n\n{future}', *map(chapter, CHAPTERS), end])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -P -m optmech_audit.alone FILE")
    Path(sys.argv[1]).write_text(alone(), encoding="utf-8")
