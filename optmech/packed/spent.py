"""What a ledger keeps, as plain values: Python and JavaScript read and write the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from optmech.errors import ProblemError
from optmech.exact.checked import require_keys
from optmech.packed.charges import UNIT, charge_of, eighths, written

FORMAT = "optmech-ledger/1"
MOST_DRAWS = 2**53 - 1
"""What a JavaScript client can count to."""
MOST_CHARGED = 10**24 * UNIT
"""Of one draw: as many as can be counted have a sum that is read again."""
_KEYS = {"format", "file", "radius", "between", "delta", "order", "draws", "spent", "before"}
_FIGURES = ("plain", "rows", "divergence")


class Spent(NamedTuple):
    """Sums of charges, in parts of 10^18."""

    draws: int = 0
    plain: int = 0
    rows: int = 0
    divergence: int = 0

    def __add__(self, other: object) -> Spent:
        """Of both together."""
        if not isinstance(other, Spent):
            return NotImplemented
        return Spent(*(a + b for a, b in zip(self, other, strict=True)))


class State(NamedTuple):
    """All that is kept of a ledger."""

    file: str
    """Digest of the packed file, in hexadecimal digits."""
    radius: float
    between: str
    delta: float
    order: float
    draws: Counter[int]
    """How many, at the place of each number."""
    spent: Spent
    """What these cost."""
    before: Spent
    """What was spent with files that this one was redesigned from."""

    def to_dict(self) -> dict[str, Any]:
        """The plain form."""
        return {
            "format": FORMAT,
            **self._asdict(),
            "draws": [[place, count] for place, count in sorted(self.draws.items())],
            "spent": _written(self.spent),
            "before": _written(self.before),
        }

    @classmethod
    def of(cls, plain: Any) -> State:
        """The inverse. Raises ProblemError on anything that ``to_dict`` does not give."""
        try:
            body = dict(plain) if isinstance(plain, Mapping) else plain
            require_keys(body, _KEYS, "ledger")
            if body.pop("format") != FORMAT:
                raise ProblemError("is of another format")
            order, draws = 1 + eighths(body["order"]) / 8, _counted(body["draws"])
            spent, before = _read(body["spent"]), _read(body["before"])
            if spent.draws != sum(draws.values()) or spent.draws + before.draws > MOST_DRAWS:
                raise ProblemError("its draws do not add up")
            kinds = {"file": (str,), "radius": (int, float), "delta": (int, float)}
            if any(type(body[name]) not in known for name, known in kinds.items()):
                raise ProblemError("its file, radius or delta is none")
        except (ProblemError, TypeError, ValueError, OverflowError) as error:
            raise no_ledger(str(error)) from None
        return cls(**{**body, "order": order, "draws": draws, "spent": spent, "before": before})


def no_ledger(why: str) -> ProblemError:
    """What to say of something that is no ledger."""
    return ProblemError(
        f"is no ledger: {why}",
        where="ledger",
        remedy="Give what to_dict gave; what was spent cannot be known from this",
    )


def _written(spent: Spent) -> dict[str, Any]:
    figures = zip(_FIGURES, spent[1:], strict=True)
    return {"draws": spent.draws, **{name: written(charge) for name, charge in figures}}


def _read(plain: Any) -> Spent:
    require_keys(plain, {"draws", *_FIGURES}, "ledger")
    return Spent(_count(plain["draws"]), *(charge_of(plain[name]) for name in _FIGURES))


def _counted(plain: Any) -> Counter[int]:
    """Pairs of a place and how often it was drawn for."""
    found: Counter[int] = Counter()
    for entry in plain if isinstance(plain, list | tuple) else [None]:
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            raise ProblemError(f"{str(entry)[:40]} is no entry")
        place, count = map(_count, entry)
        if place in found:
            raise ProblemError(f"place {place} occurs twice")
        found[place] = count
    return found


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MOST_DRAWS:
        raise ProblemError(f"{str(value)[:40]} is no number of draws")
    return value
