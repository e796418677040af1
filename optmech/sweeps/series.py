"""What the designs of a run are called, and which of them belong together."""

from __future__ import annotations

from collections.abc import Sequence

from optmech.sweeps.axes import Cell
from optmech.sweeps.directory import read_manifest
from optmech.sweeps.run import SweepResult
from optmech.sweeps.table import Row


def named_designs(result: SweepResult) -> tuple[list[int], list[str], list[str] | None]:
    """The tasks of a run that have a design, their names from the axes, and the series of each:
    all that differs but the numbers along which a line is drawn; None where that is all.
    """
    manifest = read_manifest(result.directory)
    listed = manifest.get("columns")
    known = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    rows = [row for row in result.rows if row.get("design") is not None]
    varying = [
        name for name in known if name in result.rows[0] and len({row[name] for row in rows}) > 1
    ] if rows else []  # fmt: skip
    along = _along(varying, rows)
    others = [name for name in varying if name != along]
    names = [_text(row, varying) or f"task {row['task']}" for row in rows]
    tasks = [task for row in rows if isinstance(task := row["task"], int)]
    if not others:
        return tasks, names, None
    return tasks, names, [_text(row, others) for row in rows]


def _along(names: Sequence[str], rows: Sequence[Row]) -> str | None:
    """The column that a line runs along: the last one of numbers, and of these first an ε."""
    numbers = [name for name in names if all(_is_number(row[name]) for row in rows)]
    rates = [name for name in numbers if name.rpartition(".")[2] in ("epsilon", "delta")]
    chosen = rates or numbers
    return chosen[-1] if chosen else None


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(row: Row, names: Sequence[str]) -> str:
    """``user = alice, epsilon = 0.5``; a single name of a thing stands alone."""
    parts = []
    for name in names:
        value = row[name]
        short = f"{value:.6g}" if isinstance(value, float) else str(value)
        parts.append(f"{name.rpartition('.')[2]} = {short}" if _is_number(value) else short)
    return ", ".join(parts)
