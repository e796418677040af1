"""One form of every value that reports repeat by, however it is stored.

A column of users is whole numbers in one store, floats in the next, as one user is missing, and
texts in the third. A column of days is texts, dates, or times of another resolution. A report that
repeats by such a value repeats by what it says, and not by its type.
"""

import re
import unicodedata
from collections.abc import Hashable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from optmech.base.labels import is_missing
from optmech.errors import ProblemError
from optmech.reading.errors import show

_BLANK = {
    *("", "nan", "NaN", "-nan", "-NaN", "NaT", "NA", "<NA>", "N/A", "n/a", "#N/A", "NULL", "null"),
    "None",
}
"""Texts that stand for a value that is missing, as libraries write and read them."""
_TRUTH = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+][0-9]{1,4})?")
_MARKED = re.compile(r"-?[0-9][0-9.]*(?:,[0-9]+)+(?:\.[0-9]+)?")
"""Numbers with a comma, which is a decimal mark or stands between thousands."""
_CLOCK = r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
_TIME = re.compile(
    r"([0-9]{4})([-/])([0-9]{1,2})(?:\2([0-9]{1,2}))?"
    rf"(?:[T ]+{_CLOCK} ?(?:(Z|UTC)|([-+])([0-9]{{2}}):?([0-9]{{2}})?)?)?"
)
_HOUR = re.compile(_CLOCK)
_OTHER_TIME = re.compile(
    r"[0-9]{4}([-/])[0-9]{1,2}\1[0-9]{1,2}[T ]+[0-9]"
    r"|[0-3]?[0-9]([-/.])[0-3]?[0-9]\2(?:[0-9]{4}|[0-9]{2})(?![-/.0-9])"
    r"|-?[0-9]+ days?\b"
)
"""What begins like a time, and says it in a form that has several meanings."""
_SURE = 2**53
"""From here on floats skip whole numbers: two values may be one."""
_PLAIN = 40
"""Zeros that a number is written with, instead of an exponent."""
_EASY = (str, int, float, np.number, np.datetime64)
"""Types of which a value is looked up when it comes again."""


def forms(values: Sequence[object], name: Hashable, before: int = 0) -> list[bytes]:
    """The one form of each value of a column ``name``, after ``before`` rows of other parts.

    * Numbers are exact decimals: 7, 7.0 and the text 7.0 are one value.
    * Times are ISO 8601 in UTC, a time without a zone counts as UTC, and a date is its midnight.
    * Truth values are True and False, also where they are written in capitals or without.
    * What is missing is one value: None, NaN, NaT, an empty cell, and texts such as NA.
    * Other texts are as they are, but for blanks around them, in Unicode's form NFC.

    Raises
    ------
    ProblemError
        On a value that has no such form: lengths of time, dates as 01/02/2024, numbers with a
        comma, floats that are infinite or no longer tell whole numbers apart, and objects. The
        message names row and column alone.
    """
    known: dict[Any, bytes] = {}
    out = []
    for k, value in enumerate(values):
        kind = getattr(value, "dtype", type(value))
        key = (kind, value) if isinstance(value, _EASY) else None
        form = known.get(key)
        if form is None:
            try:
                form = _form(value).encode("utf-8", "surrogatepass")
            except _NoFormError as error:
                raise ProblemError(
                    f"the column {show(str(name))}, which reports repeat by, holds {error}",
                    where=f"row {before + k + 1}",
                    remedy="Give texts, whole numbers, or times as 2024-01-31T05:00:00",
                ) from None
            if key is not None:
                known[key] = form
        out.append(form)
    return out


class _NoFormError(Exception):
    """What a value is that has no form of its own."""


def _form(value: Any) -> str:
    if is_missing(value):
        return ""
    match value:
        case str():
            return _of_text(value)
        case bool() | np.bool_():
            return str(bool(value))
        case np.timedelta64():
            raise _NoFormError("a length of time, which may be written in several ways")
        case int() | np.integer():
            return _of_number(Decimal(int(value)))
        case float() | np.floating():
            return _of_float(value)
        case Decimal() if value.is_finite():
            return _of_number(value)
        case Fraction() if value.denominator == 1:
            return _of_number(Decimal(value.numerator))
        case np.datetime64():
            return _of_moment(value)
        case datetime():
            return _of_text(_in_utc(value).isoformat())
        case date() | time(tzinfo=None):
            return _of_text(value.isoformat())
        case bytes():
            return _of_bytes(value)
        case tuple():
            return ",".join(map(_form, value))
        case UUID():
            return str(value)
    if type(value).__name__ == "Period":
        return _of_text(str(value))
    raise _NoFormError(f"a {type(value).__name__}, which may be written in several ways")


def _of_text(text: str) -> str:
    text = unicodedata.normalize("NFC", text).strip()
    if text in _BLANK:
        return ""
    if number := _NUMBER.fullmatch(text):
        value = Decimal(text)
        if number.group(1) or number.group(2):
            _require_sure(value)
        return _of_number(value)
    if _MARKED.fullmatch(text):
        raise _NoFormError("a number with a comma, which has several meanings")
    if found := _TIME.fullmatch(text):
        return _of_time(found) or text
    if found := _HOUR.fullmatch(text):
        return _clock(*found.groups()) or text
    if _OTHER_TIME.match(text):
        raise _NoFormError("a time in a form of its own")
    return _TRUTH.get(text, text)


def _of_bytes(value: bytes) -> str:
    try:
        return _of_text(value.decode())
    except UnicodeDecodeError:
        raise _NoFormError("bytes that are no text") from None


def _of_float(value: Any) -> str:
    number = float(value)
    if not np.isfinite(number) or number != value:
        raise _NoFormError("a number that is infinite, or of more digits than a double has")
    _require_sure(Decimal(number))
    return _of_number(Decimal(repr(number)))


def _require_sure(value: Decimal) -> None:
    if value.copy_abs() >= _SURE:
        raise _NoFormError("a float from 2^53 on, where floats no longer tell whole numbers apart")


def _of_number(value: Decimal) -> str:
    """In plain digits, with an exponent where these were many zeros."""
    sign, places, exponent = value.as_tuple()
    every = "".join(map(str, places)).lstrip("0")
    digits = every.rstrip("0")
    if not digits:
        return "0"
    zeros = int(exponent) + len(every) - len(digits)
    minus = "-" * sign
    if 0 <= zeros <= _PLAIN:
        return minus + digits + "0" * zeros
    if -_PLAIN <= zeros < 0:
        digits = digits.rjust(1 - zeros, "0")
        return f"{minus}{digits[:zeros]}.{digits[zeros:]}"
    return f"{minus}{digits}e{zeros:+d}"


def _of_moment(value: np.datetime64) -> str:
    unit, _ = np.datetime_data(value.dtype)
    if unit in ("Y", "generic"):
        raise _NoFormError("years, which may be numbers or times")
    if unit in "MWD":
        value = value.astype("datetime64[D]")
    elif unit in "hm":
        value = value.astype("datetime64[s]")
    text = str(value)
    if not _TIME.fullmatch(text):
        raise _NoFormError("a time before or after the years of four digits")
    return _of_text(text)


def _in_utc(value: datetime) -> datetime:
    try:
        return value if value.utcoffset() is None else value.astimezone(UTC)
    except (OverflowError, ValueError):
        raise _NoFormError("a time that UTC has not") from None


def _of_time(found: re.Match[str]) -> str:
    """A moment in UTC, its date alone at midnight; "" of what there is not."""
    year, mark, month, day, *clock, _, sign, hours, minutes = found.groups()
    timed = clock[0] is not None
    if day is None and (mark == "/" or len(month) < 2 or timed):
        return ""
    at = _clock(*clock) if timed else "00:00:00"
    away = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        moment = datetime.fromisoformat(f"{year}-{month:0>2}-{day or 1:0>2}T{at[:8]}")
        moment += away if sign == "-" else -away
    except (ValueError, OverflowError):
        if timed:
            raise _NoFormError("a time that no calendar has") from None
        return ""
    return f"{moment.isoformat()}{at[8:]}".removesuffix("T00:00:00")


def _clock(hours: str, minutes: str, seconds: str | None, parts: str | None) -> str:
    """A time of day; "" of what there is not."""
    if int(hours) > 23 or int(minutes) > 59 or int(seconds or 0) > 59:
        return ""
    rest = (parts or "").rstrip("0")
    return f"{hours:0>2}:{minutes}:{seconds or '00'}" + (f".{rest}" if rest else "")
