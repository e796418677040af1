"""Reading what a caller gives, checked once: arrays, whole numbers, probabilities, distributions.

On anything but what its docstring says, each raises ProblemError. A rate ε is read by
``exact.parse_exact``, which keeps what was written.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.numerals import float_of_cell
from optmech.errors import ProblemError
from optmech.exact.number import Exact, parse_exact, shortened

SUM_TOLERANCE = 1e-9
"""How far from 1 the sum of a distribution may be that is not normalised."""


def whole(value: object, where: str, least: int | None = 0, most: int | None = None) -> int:
    """A whole number, no truth value or float, from ``least`` and to ``most`` where given."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        number = int(value)
        if (least is None or number >= least) and (most is None or number <= most):
            return number
    allowed = "" if least is None else f" >= {least}"
    if most is not None:
        allowed = f" from {least:,} to {most:,}"
    raise ProblemError(f"{shortened(value)} is not a whole number{allowed}", where=where)


def truth(value: object, where: str) -> bool:
    """True or false. Raises ProblemError on anything else, such as "no", 1 and None."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ProblemError(
        f"{shortened(value)} is not a truth value", where=where, remedy="Give True or False"
    )


def text(value: object, where: str) -> str:
    """A text. Raises ProblemError on anything else."""
    if isinstance(value, str):
        return str(value)
    raise ProblemError(f"{shortened(value)} is not text", where=where, remedy="Give text")


def one_of(value: object, known: Collection[str], where: str) -> None:
    """Raises ProblemError on anything but the texts that are known, of which there are several."""
    if not isinstance(value, str) or value not in known:
        *others, last = (f'"{name}"' for name in known)
        remedy = f"Use {', '.join(others)} or {last}"
        raise ProblemError(f"{shortened(value)} is unknown", where=where, remedy=remedy)


def float_or_nan(value: Any) -> float:
    """The value as a float; nan for what is none."""
    try:
        return float_of_cell(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def probability(value: object, where: str = "delta", *, positive: bool = False) -> Exact:
    """A number from 0 (or above it) to 1, such as δ, or an exact string."""
    number = parse_exact(value, where=where, positive=positive)
    # the float of a number just above 1 may be 1
    if number > 1 or (number.log_of is None and number.factor > 1):
        sign = "<" if positive else "<="
        raise ProblemError(
            f"{float(number):g} is above 1", where=where, remedy=f"Give 0 {sign} δ <= 1"
        )
    return number


def positive(value: ArrayLike, where: str) -> float:
    """A finite number > 0. Raises ProblemError on anything else, truth values included."""
    number = float(finite_array(value, where=where, ndim=0))
    if isinstance(value, bool) or not number > 0:
        raise ProblemError(
            f"{value!r} must be above 0", where=where, remedy="Give a positive number"
        )
    return number


def nonnegative(value: ArrayLike, where: str, shape: tuple[int, ...]) -> Floats:
    """Finite numbers >= 0, an array of exactly this shape."""
    array = finite_array(value, where=where)
    if array.shape != shape or (array < 0).any():
        least = f" with least entry {array.min():g}" if array.size else ""
        raise ProblemError(
            f"is of shape {array.shape}{least}",
            where=where,
            remedy=f"Give numbers >= 0 of shape {shape}",
        )
    return array


def weights(value: ArrayLike, where: str, count: int | None = None) -> Floats:
    """``count`` (any number of) finite numbers >= 0, not all 0; not normalised here."""
    array = finite_array(value, where=where, ndim=1)
    fits = count is None or len(array) == count
    if not fits or (array < 0).any() or not array.any():
        wanted = "" if count is None else f"{count} "
        found = f"{len(array)} with least entry {array.min():g}" if array.size else "none"
        raise ProblemError(
            f"not {wanted}numbers >= 0 with a positive sum, but {found}",
            where=where,
            remedy=f"Give {wanted}weights >= 0, not all 0",
        )
    return array


def distribution(value: ArrayLike, where: str) -> Floats:
    """Numbers >= 0, shape (m,), that sum to 1 within ``SUM_TOLERANCE``; as they are."""
    array = finite_array(value, where=where, ndim=1)
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if (array < 0).any() or abs(total - 1) > SUM_TOLERANCE:
        raise ProblemError(
            f"is not a distribution: least entry {array.min(initial=0):g}, sum {total:.12g}",
            where=where,
            remedy="Give numbers >= 0 that sum to 1",
        )
    return array


def require_keys(plain: Any, keys: Set[str], where: str, optional: str | None = None) -> None:
    """Raise ProblemError unless ``plain`` is an object with exactly these keys."""
    found = set(plain) if type(plain) is dict else set()
    if found - {optional} != keys:
        wrong = sorted(map(str, (found - {optional}) ^ keys))
        raise ProblemError(f"has missing or unknown entries: {', '.join(wrong)}", where=where)
