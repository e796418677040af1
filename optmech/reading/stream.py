"""CSV tables that are read part by part, from files of any length or from standard input."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TextIO

from optmech.base.paths import path_of
from optmech.base.storage import STANDARD_OUTPUT
from optmech.errors import ProblemError
from optmech.reading.bounded import expanded, translated
from optmech.reading.columns import bounded_lines, refuse_separator

STANDARD_INPUT = STANDARD_OUTPUT
"""The path that stands for standard input: ``-``."""
_LONGEST_FILE = 2**44
_MOST_LINES = 1000
"""Of one row, whose quoted cells may hold line breaks: an open quotation mark ends somewhere."""

Rows = list[tuple[int, list[str]]]
"""Rows with the numbers of their last lines."""


@contextmanager
def csv_parts(path: str | Path, size: int) -> Iterator[tuple[list[str], Iterator[Rows]]]:
    """The header of a CSV file (plain, .gz, .bz2 or .xz; UTF-8), and its rows, ``size`` at a time.

    Every row has the number of its line, and a cell for every column; what it lacks is empty. ``-``
    is standard input. Only a part is in memory at any time. Raises ProblemError on what is no such
    file, on a row with more cells than columns, and on lines of more than a million characters.
    """
    wrong = ("is not a UTF-8 CSV file", "Save it as UTF-8 CSV")
    if path_of(path).suffix.lower() in (".gz", ".bz2", ".xz"):
        wrong = ("is no UTF-8 CSV file packed as its name says", "Pack it again, or give it plain")
    with _opened(path) as text, translated(path, *wrong):
        handed = [0]
        reader = csv.reader(_rows_bounded(text, path, handed))
        header = next((row for row in reader if row), None)
        if not header:
            raise ProblemError(
                "is empty", where=str(path), remedy="Give a table with the names of its columns"
            )
        refuse_separator(header, path)
        handed[0] = 0
        yield header, _parts(reader, len(header), size, path, handed)


def _parts(
    reader: Iterator[list[str]], width: int, size: int, path: str | Path, handed: list[int]
) -> Iterator[Rows]:
    def rows() -> Iterator[tuple[int, list[str]]]:
        for row in reader:
            handed[0] = 0
            line = reader.line_num  # type: ignore[attr-defined]
            if len(row) == width:
                yield line, row
            elif row:
                if len(row) > width:
                    raise ProblemError(
                        f"line {line} has {len(row)} cells, and there are {width} columns",
                        where=str(path),
                        remedy="Quote the cells that have commas in them",
                    )
                yield line, row + [""] * (width - len(row))

    every = rows()
    while part := list(islice(every, size)):
        yield part


def _rows_bounded(text: TextIO, path: str | Path, handed: list[int]) -> Iterator[str]:
    for line in bounded_lines(text, path):
        handed[0] += 1
        if handed[0] > _MOST_LINES:
            raise ProblemError(
                f"has a row of more than {_MOST_LINES:,} lines",
                where=str(path),
                remedy="Close the quotation mark that is open",
            )
        yield line


@contextmanager
def _opened(path: str | Path) -> Iterator[TextIO]:
    if str(path) == STANDARD_INPUT:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            yield sys.stdin
        else:
            wrapped = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            try:
                yield wrapped
            finally:
                # the stream itself belongs to Python
                wrapped.detach()
        return
    with (
        expanded(path, _LONGEST_FILE) as content,
        io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text,
    ):
        yield text
