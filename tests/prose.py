"""How the prose of the pages reads: words a sentence, and Flesch's reading ease where textstat is.

``python tests/prose.py`` prints a line for every page, ``python tests/prose.py REVISION`` those of
an older state of the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def pages() -> list[Path]:
    """Every page of the documentation, and the pages beside it but for the list of changes."""
    own = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    return sorted([*own, *(ROOT / "docs").rglob("*.md")])


def prose(text: str) -> str:
    """A page's sentences, a paragraph or item of a list a line: without code, tables, headings and
    pictures. What is set as code or as a formula counts as one word, the end of a proof as
    none."""
    for left_out in (
        r"\A---\n.*?\n---\n", r"```.*?```", r"<!--.*?-->", r"</?[a-zA-Z][^>\n]*>", r"\$\$.*?\$\$",
        r"\\\[.*?\\\]", r"!\[[^\]]*\]\([^)]*\)",
    ):  # fmt: skip
        text = re.sub(left_out, "", text, flags=re.S)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found: list[str] = []
    open_one = False
    for line in text.split("\n"):
        words = line.strip()
        heading = words.startswith(("|", "#", ":::", "---"))
        if not words or heading or (line.startswith("    ") and not open_one):
            open_one = False
            continue
        item = re.match(r"([*\-]|\d+\.)\s+(.*)", words)
        if item or not open_one:
            found.append(item[2] if item else words)
        else:
            found[-1] += f" {words}"
        open_one = True
    closed = [one if re.search(r"[.!?:]$", one) else f"{one}." for one in found]
    plain = "\n".join(closed)
    for pattern, word in ((r"`[^`]*`", "code"), (r"\$[^$]*\$", "it"), (r"[*_]|\s∎", "")):
        plain = re.sub(pattern, word, plain)
    return re.sub(r"(\d)[.,](\d)", r"\1\2", plain)


def sentences(text: str) -> list[str]:
    """A sentence ends where a blank and a capital, a figure or a quotation follows."""
    ends = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“(0-9])")
    return [one for line in prose(text).split("\n") for one in ends.split(line) if one.strip()]


def mean_length(text: str) -> float:
    """Words a sentence, 0 for a page without any."""
    found = sentences(text)
    return sum(len(one.split()) for one in found) / len(found) if found else 0.0


def main(revision: str | None = None) -> None:
    try:
        import textstat
    except ImportError:
        textstat = None
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        if revision:
            command = ["git", "show", f"{revision}:{name}"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                continue
            text = done.stdout
        found = sentences(text)
        ease = f"{textstat.flesch_reading_ease(prose(text)):4.0f}" if textstat and found else ""
        longer = sum(len(one.split()) > 30 for one in found)
        print(f"{name:32} {len(found):5} {mean_length(text):5.1f} {longer:4} {ease}")


if __name__ == "__main__":
    main(*sys.argv[1:])
