"""Progress of a search on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from optmech.cli.output import note

if TYPE_CHECKING:
    from rich.console import Console

_GAP = re.compile(r"gap ([0-9.]+(?:e[+-]?[0-9]+)?)")
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=+*#@"
_WIDTH = 24


@contextmanager
def showing(target: float, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """What ``solve`` is to tell about its progress; ``target`` is the gap asked for.

    On a terminal one block is redrawn: the gap against time on a logarithmic scale, and the last
    message. It is gone at the end. Without a terminal, or on a dumb one, every message is a line.
    ``NO_COLOR`` is respected.
    """
    if quiet:
        yield None
    elif not sys.stderr.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        yield note
    else:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        shown = GapAgainstTime(target)
        with Live(shown, console=console, transient=True, refresh_per_second=4):
            yield shown


class GapAgainstTime:
    """Keeps gaps with their times, and draws them."""

    def __init__(self, target: float, clock: Callable[[], float] = time.monotonic) -> None:
        # solve refuses an unusable gap in its own words
        self.target, self.clock = target if 0 < target < 1 else 1e-6, clock
        self.started = clock()
        self.points: list[tuple[float, float]] = []
        self.message = "starting"

    def __call__(self, text: str) -> None:
        """Take a message; a gap in it becomes a point."""
        self.message = text
        found = _GAP.search(text)
        if found is not None and float(found[1]) > 0:
            self.points.append((self.clock() - self.started, float(found[1])))

    def bars(self, symbols: str = _BARS) -> str:
        """The best gap so far over the time so far, from 1 (high) to the target (low)."""
        passed = max(self.clock() - self.started, 1e-9)
        heights = []
        for k in range(_WIDTH):
            known = [gap for at, gap in self.points if at <= passed * (k + 1) / _WIDTH]
            decades = math.log10(max(min(known, default=1.0), self.target) / self.target)
            top = max(math.log10(1.0 / self.target), 1e-9)
            share = min(max(decades / top, 0.0), 1.0)
            heights.append(symbols[round(share * (len(symbols) - 1))])
        return "".join(heights)

    def __rich_console__(self, console: Console, options: Any) -> Iterator[Any]:
        from rich.text import Text

        from optmech.reading.errors import printable

        symbols = _BARS if options.encoding.lower().startswith("utf") else _PLAIN_BARS
        gap = f"gap {min(gap for _, gap in self.points):.1e}" if self.points else "no gap yet"
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{self.clock() - self.started:7.1f} s  ")
        line.append(self.bars(symbols), style="cyan")
        line.append(f"  {gap}", style="bold")
        line.append(f" (asked {self.target:.0e})\n", style="dim")
        line.append(printable(self.message), style="dim")
        yield line
