"""Writes the tables and the figure of docs/benchmarks.md and of the README from result files.

    python benchmarks/scaling.py             # tables into both documents, docs/figures/scaling.svg
    python benchmarks/scaling.py --check     # exit status 1 where a document says something else

``benchmarks/results/engines.jsonl`` is what ``engines.py --suite scaling peers small paper``
measured on one machine, and ``engines-again.jsonl`` what was measured later, some solvers and sizes
on one day; ``transport.jsonl`` beside them comes from ``transport.py``.
No number of the tables is written by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tables
import transport
from compared import load
from engines import ROOT
from scaling_figure import draw

RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS = ("README.md", "docs/benchmarks.md")


def blocks(folder: Path) -> dict[str, str]:
    """The text of every block for which there are results."""
    found = {}
    if runs := load(folder / "engines.jsonl"):
        found = {
            "readme": tables.readme_block(runs),
            "machine": tables.machine_text(runs),
            "peers": tables.peers_block(runs),
            "figure": "![Seconds and memory against the number of places](figures/scaling.svg)",
            "sizes": tables.sizes_block(runs),
            "losses": tables.losses_block(runs),
            "answers": tables.answers_block(runs),
            "ours": tables.ours_block(runs),
            "suites": tables.suites_block(runs),
        }
    if runs := load(folder / "engines-again.jsonl"):
        found |= {"again": f"{tables.machine_text(runs)}\n\n{tables.peers_block(runs)}"}
    if rows := transport.load(folder / "transport.jsonl"):
        found["transport"] = transport.transport_table(rows)
    return found


def filled(text: str, found: dict[str, str]) -> str:
    """A document with every block between its markers."""

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        body = f"\n{found[name]}\n" if name in found else "\n"
        return f"<!-- begin benchmarks:{name} -->{body}<!-- end benchmarks:{name} -->"

    pattern = r"<!-- begin benchmarks:(?P<name>\w+) -->.*?<!-- end benchmarks:(?P=name) -->"
    return re.sub(pattern, fill, text, flags=re.S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the result files")
    parser.add_argument("--into", type=Path, default=ROOT, help="folder of the documents")
    arguments = parser.parse_args()
    found = blocks(arguments.results)
    stale = []
    for name in DOCUMENTS:
        path = arguments.into / name
        text = path.read_text(encoding="utf-8")
        if filled(text, found) != text:
            stale.append(name)
            if not arguments.check:
                path.write_text(filled(text, found), encoding="utf-8")
    if arguments.check:
        if stale:
            raise SystemExit(f"not what the result files say: {', '.join(stale)}")
        return
    if "peers" in found:
        draw(load(arguments.results / "engines.jsonl"), arguments.into / tables.FIGURE)


if __name__ == "__main__":
    main()
