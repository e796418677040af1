"""The audit as one file, to hand on: ``python -m optmech.audit.alone audit.py``."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

CHAPTERS = (
    "numbers", "document", "places", "mechanisms", "inequalities", "statements", "networks",
    "constraints", "cells", "designs", "couplings", "globe", "regions", "losses", "noise",
    "pairs", "cbor", "promises", "packed", "earth", "verdict",
)  # fmt: skip


def chapter(name: str) -> tuple[set[str], str]:
    """What a chapter imports from the standard library, and its text without imports."""
    source = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    lines, first = source.splitlines(), tree.body[0].end_lineno or 0
    words = (ast.get_docstring(tree) or "").splitlines()
    head = [f"# {line}".rstrip() for line in (f"==== {words[0]}", *words[1:])]
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    wanted = {text for text in map(ast.unparse, imports) if "optmech" not in text}
    last = max((node.end_lineno or 0 for node in imports), default=first)
    return wanted, "\n".join([*head, *lines[last:]])


def alone() -> str:
    """All chapters as the text of one file, which needs Python and nothing beside it."""
    about = (Path(__file__).parent / "__init__.py").read_text(encoding="utf-8")
    words = (ast.get_docstring(ast.parse(about)) or "").replace(
        "python -m optmech.audit", "python audit.py"
    )
    parts = [chapter(name) for name in CHAPTERS]
    wanted = set().union(*(imports for imports, _ in parts))
    future = "from __future__ import annotations"
    imports = [future, *sorted(wanted - {future})]
    end = 'if __name__ == "__main__":\n    raise SystemExit(main(sys.argv[1:]))\n'
    texts = [f'"""{words}\n"""', "\n".join(imports), *(text for _, text in parts), end]
    return "\n\n\n".join(texts)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m optmech.audit.alone FILE")
    Path(sys.argv[1]).write_text(alone(), encoding="utf-8")
