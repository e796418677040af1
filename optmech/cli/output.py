"""Standard output for people (tables) and for machines (JSON), standard error for the rest."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optmech.errors import ProblemError

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 100


def print_json(value: Mapping[str, Any]) -> None:
    """One object on standard output; nan and infinities become null."""
    print(json.dumps(plain_values(value), allow_nan=False))


def note(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr, flush=True)


def title(text: str) -> None:
    """A heading."""
    _show(_text(text, "bold"))


def facts(rows: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns; long values are wrapped."""
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(_text(name, "dim"), _text(value))
    _show(table)


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    """A table with a header; the columns in ``right`` are aligned to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for k, name in enumerate(header):
        table.add_column(_text(name), justify="right" if k in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    _show(table)


def blank() -> None:
    """An empty line."""
    print()


def number(value: float) -> str:
    """A number with nine significant digits, or the word for what it is instead."""
    if math.isnan(value):
        return "unknown"
    return "infinite" if math.isinf(value) else f"{value:.9g}"


def require_writable(path: str | Path, *, where: str, apart_from: str | Path | None = None) -> None:
    """Refuse an output path before any work is spent on what it shall hold."""
    import os

    target = Path(path)
    problem = ""
    try:
        folder = target.parent
        if not folder.is_dir():
            problem = f"the folder {str(folder)!r} does not exist"
        elif target.is_dir():
            problem = "is a folder"
        elif not os.access(folder, os.W_OK):
            problem = f"the folder {str(folder)!r} is not writable"
        elif apart_from is not None and target.exists() and target.samefile(apart_from):
            problem = "is an input file"
    except (OSError, ValueError) as error:
        problem = f"cannot be used: {getattr(error, 'strerror', None) or error}"
    if problem:
        raise ProblemError(f"{path}: {problem}", where=where, remedy="Choose another path")


def _show(content: Any) -> None:
    """Print without the blanks that fill a table's last column."""
    console = _console()
    with console.capture() as capture:
        console.print(content)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _console() -> Console:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        width=None if terminal else PIPE_WIDTH,
        force_terminal=None if terminal else False,
        color_system="auto" if terminal else None,
        emoji=False,
        markup=False,
        highlight=False,
    )


def _text(value: str, style: str = "") -> Any:
    from rich.text import Text

    from optmech.files.report import printable

    return Text(printable(value), style=style)


def plain_values(value: Any) -> Any:
    """The same with nan and infinities as None, for JSON."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    return value
