"""Documents with parts that are made from results."""

from __future__ import annotations

import re

Rows = list[tuple[str, ...]]


def table(head: tuple[str, ...], rows: Rows) -> str:
    """Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def filled(text: str, parts: dict[str, str]) -> str:
    """Replace what stands between <!-- begin NAME --> and <!-- end NAME -->."""
    for name, part in parts.items():
        text = re.sub(
            rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)",
            lambda found, part=part: f"{found[1]}{part}\n{found[2]}",
            text,
            flags=re.S,
        )
    return text
