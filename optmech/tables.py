"""Numeric columns of CSV files, with errors that name the file and the column."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from optmech.domain import Floats
from optmech.errors import ProblemError


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, Floats]:
    """Read the named columns of a CSV file (plain or .gz, UTF-8, with a header) as float64.

    Cells that are empty or not numbers become NaN: the caller counts and reports them.
    """
    return {name: _numbers(cells) for name, cells in read_text_columns(path, names).items()}


def read_text_columns(path: str | Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read the named columns of a CSV file as text."""
    file = Path(path)
    columns: dict[str, list[str]] = {name: [] for name in names}
    opener: Callable[..., TextIO] = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            header = reader.fieldnames or []
            for name in names:
                if name not in header:
                    raise ProblemError(
                        f"there is no column {name!r}",
                        where=str(file),
                        remedy=f"The columns are {', '.join(map(repr, header)) or 'none'}",
                    )
            for row in reader:
                for name in names:
                    columns[name].append(row[name] or "")
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProblemError(
            f"cannot be read: {reason}", where=str(file), remedy="Check the path"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ProblemError(f"is not a UTF-8 CSV file: {error}", where=str(file)) from error
    return columns


def _numbers(cells: Iterable[str]) -> Floats:
    def number(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            return float("nan")

    return np.array([number(cell) for cell in cells], dtype=np.float64)
