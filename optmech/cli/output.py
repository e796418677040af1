"""What a command answers, printed in one place: for people (tables) or machines (JSON) on standard
output, the rest on standard error: of a search a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optmech.base.storage import (
    ending,
    is_standard_output,
    plain_values,
    refuse_unwritable,
)
from optmech.base.watch import Line, Ticker, is_terminal
from optmech.errors import OptmechError, ProblemError
from optmech.exact.number import Interval, from_above, from_below
from optmech.reading.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

    from optmech.certificate.check import Check
    from optmech.show.figures import Measured


PIPE_WIDTH = 100

_ASIDE: ContextVar[bool] = ContextVar("aside", default=False)
"""Whether standard output belongs to a file's content, and tables go to standard error."""


_LINE: ContextVar[Ticker | None] = ContextVar("line", default=None)
"""What says on a terminal that a command works."""
_SOON = 0.5
"""Seconds until it does."""
_OPTION = {"page": "report"}
"""Names of outputs that are not those of their options."""


class Title(NamedTuple):
    """A heading."""

    text: str


class Lines(NamedTuple):
    """Text that is printed as it is."""

    text: str


class Facts(NamedTuple):
    """Names and values in two columns; long values are wrapped, empty ones left out."""

    rows: Mapping[str, str | None] | Iterable[tuple[str, str | None]]


class Grid(NamedTuple):
    """A table with a header; the columns in ``right`` are aligned to the right."""

    header: Sequence[str]
    rows: Iterable[Sequence[str]]
    right: Sequence[int] = ()


Piece = Title | Lines | Facts | Grid


@dataclass(frozen=True)
class Answer:
    """What a command found.

    ``values`` are for ``--json``; for people ``shown`` is, a blank line between its pieces.
    ``notes`` and the lines ``said`` go to standard error for both. ``files`` says what the outputs
    hold that were asked for, by the names of their options: their paths are among the values too.
    ``error`` is raised once all is shown, unless JSON says it.
    """

    values: Mapping[str, Any]
    shown: Iterable[Piece] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    notes: Iterable[str] = ()
    said: Iterable[str] = ()
    status: int = 0
    error: Exception | None = None


def present(answer: Answer, args: Namespace) -> int:
    """Print an answer, and return the exit status."""
    paths = {name: getattr(args, name) for name in answer.files}
    if args.json:
        own = {_OPTION.get(name, name): path for name, path in paths.items()}
        # nan and infinities become null
        print(json.dumps(plain_values({**answer.values, **own}), allow_nan=False))
    else:
        _show(answer.shown)
    for line in (*(f"note: {line}" for line in answer.notes), *answer.said):
        note(line)
    for name, path in paths.items():
        # nothing is said of standard output, and JSON has the paths
        if path and not args.json and not is_standard_output(path):
            note(f"{answer.files[name]} written to {path}")
    if answer.error is None:
        return answer.status
    if args.json and isinstance(answer.error, OptmechError):
        return answer.error.exit_status
    raise answer.error


@contextmanager
def working(args: Namespace) -> Iterator[None]:
    """Says on a terminal, until something else is said, that the command works and for how long,
    as what it computes with takes a while to load."""
    texts = (value for value in vars(args).values() if isinstance(value, str))
    aside = any(map(is_standard_output, texts))
    if getattr(args, "quiet", False) or args.json or aside or not is_terminal(sys.stderr):
        yield
        return
    with Ticker(f"optmech {args.command}", _SOON, sys.stderr) as line:
        before = _LINE.set(line)
        try:
            yield
        finally:
            _LINE.reset(before)


def note(text: str) -> None:
    """A line on standard error."""
    if (line := _LINE.get()) is not None:
        line.clear()
    print(printable(text), file=sys.stderr, flush=True)


def checks(found: Iterable[Check]) -> Grid:
    """Verdicts on a matrix, as a table."""
    rows = [(c.name, f"{c.inequalities:,}", "yes" if c.passed else "NO", c.detail) for c in found]
    return Grid(("check", "inequalities", "passed", "tightest"), rows, right=(1,))


def faults(path: str, found: Iterable[str]) -> list[str]:
    """What does not hold of a file, as the lines of errors."""
    return [f"optmech: error: {path}: {fault}" for fault in found]


def promises(name: str, found: Iterable[Measured]) -> Iterator[Grid]:
    """What constraints promise and what was measured, as a table, if any."""
    rows = [
        (f"{row.constraint} {row.kind}, {row.quantity}", f"{row.sense} {number(row.promised)}",
         number(row.measured))
        for row in found
    ]  # fmt: skip
    if rows:
        yield Grid((name, "promised", "measured"), rows, right=(1, 2))


def number(value: float, side: int = 0) -> str:
    """A number with nine significant digits, or the word for what it is instead; of a bound from
    below (``side`` -1) or from above (1) no more or less than it."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite"
    sided = {-1: from_below, 1: from_above}.get(side)
    return f"{value:.9g}" if sided is None else sided(value, 9)


def either(value: float | Interval) -> str:
    """A number, or one that is known to lie between two."""
    if not isinstance(value, Interval):
        return number(value)
    low, high = number(value.lower, -1), number(value.upper, 1)
    return low if low == high else f"{low} to {high}"


def plain(value: float | Interval) -> float | list[float]:
    """A number for JSON, or both ends of one that is known to lie between two."""
    return [value.lower, value.upper] if isinstance(value, Interval) else float(value)


def named(found: object, *names: str) -> dict[str, Any]:
    """Attributes by their names, for JSON."""
    return {name: getattr(found, name) for name in names}


def plain_figures(found: Mapping[str, tuple[str, float | Interval]]) -> dict[str, Any]:
    """Figures with their titles, by their keys, for JSON."""
    return {key: plain(value) for key, (_, value) in found.items()}


def figures(found: Mapping[str, tuple[str, float | Interval]]) -> Facts:
    """Figures with their titles as a table."""
    return Facts([(title, either(value)) for title, value in found.values()])


def claim_outputs(args: Namespace, inputs: Iterable[str | Path | None]) -> None:
    """Refuse unusable outputs before any work is spent on what they shall hold.

    Where one of them is standard output, tables go to standard error from now on, until the end of
    the command. Raises ProblemError where an output cannot be written, is an input or another
    output, or is standard output while ``--json`` wants that too; where a picture could not be
    drawn.
    """
    known: dict[str, str] = {}
    sources = list(inputs)
    for name in ("output", "picture", "plan", "page", "summary"):
        option, path = f"--{_OPTION.get(name, name)}", getattr(args, name, None)
        if path is None:
            continue
        try:
            refuse_unwritable(path)
        except ProblemError as error:
            message = f"{path}: {error.message}"
            raise ProblemError(message, where=option, remedy=error.remedy) from error
        aside = is_standard_output(path)
        # something that is there and no regular file
        special = os.path.exists(path) and not os.path.isfile(path)
        if not (aside or special) and any(_is_same_file(path, source) for source in sources):
            raise ProblemError(
                f"{path}: is an input file", where=option, remedy="Choose another path"
            )
        if aside and args.json:
            raise ProblemError(
                f"{path}: is standard output, where --json prints",
                where=option,
                remedy="Leave one of the two out",
            )
        place = "standard output" if aside else os.path.realpath(path)
        if place in known and (aside or not special):
            raise ProblemError(
                f"is the same file as {known[place]}", where=option, remedy="Choose another path"
            )
        known[place] = option
        if aside:
            _ASIDE.set(True)
    if getattr(args, "picture", None) is not None:
        from optmech.show.plots.drawing import require_matplotlib

        require_matplotlib(args.picture)


def require_page(path: str, where: str) -> None:
    """Refuse a name that is not one of a page."""
    if ending(path, ".html") not in (".html", ".htm"):
        raise ProblemError(
            f"{path}: is not the name of a page",
            where=where,
            remedy="Use a name that ends in .html",
        )


def _is_same_file(path: str, source: str | Path | None) -> bool:
    """Whether both are one file; what is no file, such as a name of the gallery, is none."""
    with contextlib.suppress(OSError, ValueError):
        return source is not None and os.path.samefile(path, source)
    return False


def _show(pieces: Iterable[Piece]) -> None:
    """Print without the blanks that fill a table's last column."""
    stream = sys.stderr if _ASIDE.get() else sys.stdout
    before: Piece | None = None
    for piece in pieces:
        if before is not None and (isinstance(piece, Title) or not isinstance(before, Title)):
            print(file=stream)
        before = piece
        if isinstance(piece, Lines):
            print(piece.text, file=stream)
            continue
        from rich.console import Console

        terminal = stream.isatty()
        console = Console(
            file=stream,
            width=None if terminal else PIPE_WIDTH,
            force_terminal=None if terminal else False,
            color_system="auto" if terminal else None,
            emoji=False,
            markup=False,
            highlight=False,
        )
        with console.capture() as capture:
            console.print(_drawn(piece))
        print("\n".join(line.rstrip() for line in capture.get().splitlines()), file=stream)


def _drawn(piece: Title | Facts | Grid) -> Any:
    from rich import box
    from rich.table import Table

    if isinstance(piece, Title):
        return _text(piece.text, "bold")
    if isinstance(piece, Facts):
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in piece.rows.items() if isinstance(piece.rows, Mapping) else piece.rows:
            if value:
                table.add_row(_text(name, "dim"), _text(value))
        return table
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for k, name in enumerate(piece.header):
        table.add_column(
            _text(name), justify="right" if k in piece.right else "left", overflow="fold"
        )
    for row in piece.rows:
        table.add_row(*map(_text, row))
    return table


def _text(value: str, style: str = "") -> Any:
    from rich.text import Text

    return Text(printable(value), style=style)


_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=+*#@"
_WIDTH = 24


@contextmanager
def showing(target: float, quiet: bool) -> Iterator[Callable[[str], None]]:
    """What ``solve`` is to tell about its progress; ``target`` is the gap asked for.

    On a terminal one block is redrawn: the gap against time on a logarithmic scale, and the last
    message. It is gone at the end. Without a terminal, or on a dumb one, every message is a line.
    ``NO_COLOR`` is respected.
    """
    if quiet:
        yield lambda text: None
    elif not is_terminal(sys.stderr):
        yield note
    else:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        shown, line = GapAgainstTime(target), _LINE.get()
        away = nullcontext() if line is None else line.held("finishing: saving and checking")
        with away, Live(shown, console=console, transient=True, refresh_per_second=4):
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
        """Take a message; a gap with it becomes a point."""
        self.message = text
        if isinstance(text, Line) and 0 < text.gap < math.inf:
            self.points.append((self.clock() - self.started, text.gap))

    def bars(self, symbols: str = _BARS) -> str:
        """The best gap so far over the time so far, from 1 (high) to the target (low)."""
        passed = self.clock() - self.started
        bars = ""
        for k in range(1, _WIDTH + 1):
            known = [gap for at, gap in self.points if at <= passed * k / _WIDTH]
            left = max(min(known, default=1.0), self.target)
            share = min(math.log(left / self.target) / math.log(1 / self.target), 1.0)
            bars += symbols[round(share * (len(symbols) - 1))]
        return bars

    def __rich_console__(self, console: Console, options: Any) -> Iterator[Any]:
        from rich.text import Text

        symbols = _BARS if options.encoding.lower().startswith("utf") else _PLAIN_BARS
        gap = f"gap {min(gap for _, gap in self.points):.1e}" if self.points else "no gap yet"
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{self.clock() - self.started:7.1f} s  ")
        line.append(self.bars(symbols), style="cyan")
        line.append(f"  {gap}", style="bold")
        line.append(f" (asked {self.target:.0e})\n", style="dim")
        line.append(printable(self.message), style="dim")
        yield line
