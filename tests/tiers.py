"""Which tests are slow: ``pytest --durations=0 | python -m tests.tiers`` writes ``slow.txt`` anew.

A line of ``slow.txt`` is a test without its parameters, or a file whose fixtures take long. The
conftest marks them as slow, so that ``pytest -m "not slow"`` leaves them out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

SLOW = Path(__file__).with_name("slow.txt")
TEST, FIXTURE = 0.15, 1.0
"""Seconds from which a test is slow, and from which the fixtures of a file are."""
_LINE = re.compile(r"([\d.]+)s (setup|call) +(((?:packages/\w+/)?tests/[\w/]+\.py)::[\w:]+)")


def slow(durations: Iterable[str], test: float = TEST, fixture: float = FIXTURE) -> list[str]:
    """The slow tests and files of what pytest prints, in alphabetical order."""
    found = set()
    for line in durations:
        if read := _LINE.match(line):
            seconds, when, name, file = float(read[1]), read[2], read[3], read[4]
            if when == "call" and seconds >= test:
                found.add(name)
            if when == "setup" and seconds >= fixture:
                found.add(file)
    return sorted(name for name in found if "::" not in name or name.split("::")[0] not in found)


if __name__ == "__main__":
    SLOW.write_text("".join(f"{name}\n" for name in slow(sys.stdin)), encoding="utf-8")
