"""Arguments of families of mechanisms, read and checked; ProblemError on unusable ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from optmech.errors import ProblemError
from optmech.exact.checked import float_or_nan, probability
from optmech.exact.number import Exact, Number, parse_exact


def read_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names, or numbers."""
    if names is None:
        return tuple(str(t) for t in range(count))
    given = tuple(map(str, names))
    if isinstance(names, str) or len(given) != count or len(set(given)) != count:
        raise ProblemError(
            f"{names!r} are not {count} different names",
            where="names",
            remedy="Give one for every input",
        )
    return given


def read_budget(epsilon: Number, delta: Number, where: str = "epsilon") -> tuple[Exact, Exact]:
    """ε and δ <= 1."""
    return parse_exact(epsilon, where=where), probability(delta)


def read_order(p: float | str) -> float:
    """1 or inf."""
    order = float_or_nan(p)
    if order not in (1.0, math.inf):
        raise ProblemError(
            f"{p!r} is neither 1 nor inf",
            where="p",
            remedy="Use 1 (least mean move) or math.inf (least longest move)",
        )
    return order
