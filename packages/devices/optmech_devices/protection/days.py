"""Times of rows: on which day, and how many seconds since 1970."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.reading.columns import numbers_of
from optmech.reading.errors import show

_DAY = 86_400.0


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
        raise ProblemError(
            f"{show(str(name))} holds no time as 2008-10-23T02:53:04, and no number of seconds",
            where=f"row {rows[seconds] + 1}",
            remedy="Name another column of times, or give a budget in all",
        )
    return [math.floor(second / _DAY) for second in seconds.tolist()]
