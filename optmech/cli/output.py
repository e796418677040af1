"""Standard output for people (tables) and for machines (JSON), standard error for the rest."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from optmech.base.shown import plain_values
from optmech.base.storage import ending, is_standard_output, refuse_unwritable, write_atomically
from optmech.errors import ProblemError
from optmech.exact.number import Interval
from optmech.reading.errors import printable

if TYPE_CHECKING:
    from optmech.certificate.check import Check
    from optmech.problem import Problem
    from optmech.show.figures import Measured

PIPE_WIDTH = 100

_ASIDE: ContextVar[bool] = ContextVar("aside", default=False)
"""Whether standard output belongs to a file's content, and tables go to standard error."""


_OPTION = {"page": "report"}
"""Names of outputs that are not those of their options."""


def print_json(value: Mapping[str, Any]) -> None:
    """One object on standard output; nan and infinities become null."""
    print(json.dumps(plain_values(value), allow_nan=False))


def note(text: str) -> None:
    """A line on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def doubts(problem: Problem) -> None:
    """What can hardly be meant, before a search that would answer it all the same."""
    for line in problem.doubts:
        note(f"warning: {line}")


def written(what: str, path: str | None) -> None:
    """Note where something was written, if it was; nothing is said of standard output."""
    if path and not is_standard_output(path):
        note(f"{what} written to {path}")


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


def checks(found: Iterable[Check]) -> None:
    """Verdicts on a matrix, as a table."""
    rows = [(c.name, f"{c.inequalities:,}", "yes" if c.passed else "NO", c.detail) for c in found]
    grid(("check", "inequalities", "passed", "tightest"), rows, right=(1,))


def promises(name: str, found: Iterable[Measured]) -> None:
    """What constraints promise and what was measured, as a table under a blank line, if any."""
    rows = [
        (f"{row.constraint} {row.kind}, {row.quantity}", f"{row.sense} {number(row.promised)}",
         number(row.measured))
        for row in found
    ]  # fmt: skip
    if rows:
        blank()
        grid((name, "promised", "measured"), rows, right=(1, 2))


def write_moves(path: str, moves: Iterable[tuple[Any, ...]], *names: str) -> None:
    """A CSV file of moved mass, in UTF-8: ``names``, then two labels, mass and distance."""
    from optmech.base.labelled import label_text

    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow([*names, "from", "to", "mass", "distance"])
    for *first, start, end, mass, distance in moves:
        numbers = repr(float(mass)), repr(float(distance))
        table.writerow([*first, label_text(start), label_text(end), *numbers])
    write_atomically(path, text.getvalue().encode())


def blank() -> None:
    """An empty line."""
    print(file=_stream())


def number(value: float) -> str:
    """A number with nine significant digits, or the word for what it is instead."""
    if math.isnan(value):
        return "unknown"
    return "infinite" if math.isinf(value) else f"{value:.9g}"


def either(value: float | Interval) -> str:
    """A number, or one that is known to lie between two."""
    if not isinstance(value, Interval):
        return number(value)
    low, high = number(value.lower), number(value.upper)
    return low if low == high else f"{low} to {high}"


def plain(value: float | Interval) -> float | list[float]:
    """The same for JSON."""
    return [value.lower, value.upper] if isinstance(value, Interval) else float(value)


def claim_outputs(args: Namespace, inputs: Iterable[str | Path | None]) -> None:
    """Refuse unusable outputs before any work is spent on what they shall hold.

    Where one of them is standard output, tables go to standard error from now on, until the end of
    the command. Raises ProblemError where an output cannot be written, is an input or another
    output, or is standard output while ``--json`` wants that too; where a picture could not be
    drawn.
    """
    known: dict[str, str] = {}
    sources = list(inputs)
    for name in ("output", "picture", "plan", "page"):
        option, path = f"--{_OPTION.get(name, name)}", getattr(args, name, None)
        if path is None:
            continue
        _require_writable(path, option, sources)
        aside = is_standard_output(path)
        if aside and args.json:
            raise ProblemError(
                f"{path}: is standard output, where --json prints",
                where=option,
                remedy="Leave one of the two out",
            )
        place = "standard output" if aside else os.path.realpath(path)
        if place in known and (aside or not _is_special(path)):
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


def _require_writable(path: str, where: str, apart_from: Iterable[str | Path | None]) -> None:
    """Refuse an output path that cannot be written or is one of the files ``apart_from``; what is
    there no file of is ignored, such as the name of a gallery problem."""
    try:
        refuse_unwritable(path)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error.message}", where=where, remedy=error.remedy) from error
    if is_standard_output(path) or _is_special(path):
        return
    for source in apart_from:
        if source is not None and _is_same_file(path, source):
            raise ProblemError(
                f"{path}: is an input file", where=where, remedy="Choose another path"
            )


def require_seed(seed: int | None) -> None:
    """Refuse a seed that is no whole number of at most 64 bits."""
    if seed is not None and not 0 <= seed < 2**64:
        raise ProblemError(
            f"{seed if abs(seed) < 2**70 else 'the number'} is out of range",
            where="--seed",
            remedy="Give 0 to 2^64 - 1",
        )


def _is_special(path: str | Path) -> bool:
    """Whether a path leads to something that is there and no regular file."""
    return os.path.exists(path) and not os.path.isfile(path)


def _is_same_file(path: str | Path, source: str | Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return os.path.samefile(path, source)
    return False


def _stream() -> TextIO:
    return sys.stderr if _ASIDE.get() else sys.stdout


def _show(content: Any) -> None:
    """Print without the blanks that fill a table's last column."""
    from rich.console import Console

    stream = _stream()
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
        console.print(content)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()), file=stream)


def _text(value: str, style: str = "") -> Any:
    from rich.text import Text

    return Text(printable(value), style=style)
