"""Times of rows: on which day, how many seconds since 1970, and when an hour or a day began."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.labels import is_missing
from optmech.errors import ProblemError
from optmech.reading.columns import number_of, numbers_of
from optmech.reading.errors import show

_DAY = 86_400.0
Unit = Literal["hour", "day", "week", "month", "year"]
_CODES = {"hour": "h", "day": "D", "month": "M", "year": "Y"}
_LATEST = 1e11
"""Seconds since 1970: beyond are thousandths of them, or no times."""


def seconds_of(cells: Sequence[Any]) -> Floats | int:
    """Times in seconds, from numbers of seconds or texts such as 2008-10-23T02:53:04, which are UTC
    unless they say otherwise; the index of the first text that is none."""
    texts = [str(cell).strip() for cell in cells]
    numbers = numbers_of([text.replace(",", ".") for text in texts])
    sound = np.isfinite(numbers)
    if sound.all():
        return numbers
    # a text stands out among numbers, and a number among texts
    if sound[0]:
        return int(np.argmin(sound))
    found = []
    for k, text in enumerate(texts):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return k
        found.append((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return np.array(found)


def days_of(cells: Sequence[Any], name: Hashable, rows: Sequence[int]) -> list[int]:
    """The days of times in UTC, by number. Raises ProblemError on what is no time."""
    seconds = seconds_of(cells)
    if isinstance(seconds, int):
        raise _no_time(name, rows[seconds], "Name another column of times, or give a budget in all")
    return [math.floor(second / _DAY) for second in seconds.tolist()]


def _no_time(name: Hashable, row: int, remedy: str) -> ProblemError:
    said = f"{show(str(name))} holds no time as 2008-10-23T02:53:04, and no number of seconds"
    return ProblemError(said, where=f"row {row + 1}", remedy=remedy)


def cut(cells: Any, name: Hashable, unit: Unit) -> Any:
    """Times as they are written, each at the beginning of its hour, day, week (Monday), month or
    year: texts in their own zone, numbers of seconds in UTC. What is missing stays so. Raises
    ProblemError on what is no time."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return _begin_of(cells, unit)
    known: dict[Any, Any] = {}
    out = []
    for k, cell in enumerate(cells):
        if is_missing(cell) or not str(cell).strip():
            out.append(cell)
            continue
        if cell not in known:
            known[cell] = _cut(cell, unit)
        if known[cell] is None:
            raise _no_time(name, k, "Leave the column out, or write its times so")
        out.append(known[cell])
    return np.array(out, dtype=cells.dtype) if isinstance(cells, np.ndarray) else out


def _begin_of(times: Any, unit: Unit) -> Any:
    """The beginnings of the units that times of numpy lie in."""
    if unit == "week":
        days = times.astype("datetime64[D]")
        return (days - (days.astype(np.int64) + 3) % 7).astype(times.dtype)
    return times.astype(f"datetime64[{_CODES[unit]}]").astype(times.dtype)


def _cut(cell: Any, unit: Unit) -> Any:
    """One time at the beginning of its unit, of the same kind; None for what is none."""
    if isinstance(cell, datetime):
        return _began(cell, unit)
    text = str(cell).strip()
    number = number_of(text.replace(",", "."))
    if math.isfinite(number):
        if abs(number) >= _LATEST:
            return None
        moment = datetime.fromtimestamp(number, UTC)
        seconds = int(_began(moment, unit).timestamp())
        return str(seconds) if isinstance(cell, str) else type(cell)(seconds)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    began = _began(moment, unit)
    if unit != "hour":
        return began.date().isoformat()
    return began.isoformat(sep=" " if " " in text else "T", timespec="minutes")


def _began(moment: datetime, unit: Unit) -> datetime:
    hour = moment.replace(minute=0, second=0, microsecond=0)
    if unit == "hour":
        return hour
    day = hour.replace(hour=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    month = day.replace(day=1)
    return {"day": day, "month": month, "year": month.replace(month=1)}[unit]
