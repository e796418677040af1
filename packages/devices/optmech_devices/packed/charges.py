"""What draws are charged, in whole numbers: logarithms and Rényi divergences, rounded up.

Every step is one of whole numbers and rounds up, so that a charge is never below what it stands
for, and every reader of a packed file computes the same one (docs/theory/budgets.md, "What many
reports cost").
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.codec import Codec, listing, record

UNIT = 10**18
"""Charges are whole numbers of this part of one."""
ORDERS = tuple(1 + eighths / 8 for eighths in (
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024
))  # fmt: skip
"""The Rényi orders that a ledger chooses from."""
_WRITTEN = re.compile(r"(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{0,17}[1-9])?", re.ASCII)
_PLACES = 128
_ONE = 1 << _PLACES
_LOG_2 = 0xB17217F7D1CF79ABC9E3B39803F2F6B0
"""ln 2, as the logarithms: over 2^128, rounded up."""
_TERMS = 85
_ROOTS, _SMALL = 3, 51
_FACTORS = 12
_KEPT, _MEANT, _SURE = 9, 12, 15
"""Digits of a charge, of a product of numbers that are not exact themselves, and of a float."""
_LARGE = 2**10 * UNIT
"""From here on a charge stands for the divergences within it: e to it is not worth computing."""
_USUAL = 100
"""Draws that an order is chosen for where there is no budget."""


def decimal(value: float) -> Fraction:
    """The number that a float is written as, in the fewest digits: 0.8 is eight tenths."""
    return Fraction(repr(float(value)))


def units(value: Fraction) -> int:
    """A charge that is stated, such as ε · radius: brought to twelve digits, as those behind come
    from rounding, and up to nine."""
    return short(_nearest(value, _MEANT))


def above(value: Fraction) -> int:
    """A charge that nothing is compared with afterwards: up to nine digits, and never down."""
    return short(math.ceil(value * UNIT))


def limit(budget: float) -> int:
    """A budget as the decimal of at most fifteen digits that it is meant for: 3 · 0.7 is 2.1."""
    return _nearest(decimal(budget), _SURE)


def short(charge: int) -> int:
    """A charge, rounded up to nine digits: N of them are a number of few digits too."""
    step: int = 10 ** max(0, len(str(charge)) - _KEPT)
    return -(-charge // step) * step


def written(charge: int) -> str:
    """A charge as a decimal."""
    whole, rest = divmod(charge, UNIT)
    return f"{whole}.{rest:018}".rstrip("0").removesuffix(".")


def charge_of(text: object) -> int:
    """A charge from its decimal. Raises ProblemError on what ``written`` does not write."""
    if not isinstance(text, str) or not _WRITTEN.fullmatch(text):
        raise ProblemError(f"{str(text)[:40]!r} is no charge")
    whole, _, rest = text.partition(".")
    return int(whole) * UNIT + int(f"{rest:0<18}")


def log_up(over: int, under: int) -> int:
    """At least 2^128 · ln(over / under), for whole numbers over >= under > 0."""
    if over == under:
        return 0
    shift = max(0, over.bit_length() - under.bit_length())
    if over < under << shift:
        shift -= 1
    under <<= shift
    # ln m = 2 artanh((m - 1) / (m + 1)), and that is at most a third
    part = -(-((over - under) << _PLACES) // (over + under))
    square, total = _scaled(part * part), 0
    for odd in range(1, _TERMS, 2):
        total -= -part // odd
        part = _scaled(part * square)
    return shift * _LOG_2 + 2 * (total + 1)


def log_charge(over: int, under: int) -> int:
    """At least ln(over / under), as a charge."""
    return _charge(log_up(over, under), 1)


def divergence(p: Sequence[int], q: Sequence[int], order: float) -> int:
    """At least the Rényi divergence of an order (1 and some eighths) of p from q, as a charge.

    Both are whole numbers with one sum, and 0 at the same entries.
    """
    power = eighths(order)
    total = sum(a * _power(-(-(a << _PLACES) // b), power) for a, b in zip(p, q, strict=True) if a)
    return _charge(8 * log_up(total, sum(p) << _PLACES), power)


def tail(delta: Fraction, order: float) -> int:
    """At least what δ costs at an order, as a charge: ln((α-1)/α) - (ln δ + ln α)/(α-1), and 0
    where that is negative."""
    power = eighths(order)
    over = delta.denominator**8 * 8**8 * power**power
    under = delta.numerator**8 * (8 + power) ** (8 + power)
    return _charge(log_up(over, under), power) if over > under else 0


def within(charge: int, order: float) -> int:
    """At least the Rényi divergence of an order of any two laws whose log ratios are at most a
    charge: that of randomised response."""
    if charge >= _LARGE:
        return charge
    likely = _exponential(charge)
    return min(charge, divergence((likely, _ONE), (_ONE, likely), order))


@lru_cache
def best_order(charge: int, delta: Fraction, budget: int | None) -> float:
    """The order at which most draws of a charge stay within a budget, as far as is known before
    the first of them; without a budget the one at which a hundred cost least."""
    each = [max(1, within(charge, order)) for order in ORDERS]
    tails = [tail(delta, order) for order in ORDERS]
    if budget is None:
        scores = [Fraction(-_USUAL * a - b) for a, b in zip(each, tails, strict=True)]
    else:
        scores = [Fraction(budget - b, a) for a, b in zip(each, tails, strict=True)]
    return ORDERS[scores.index(max(scores))]


def eighths(order: float) -> int:
    """By how many eighths an order is above 1. Raises ProblemError where that is no whole number
    from 1 to 1024."""
    found = (order - 1) * 8
    if not 1 <= found <= 1024 or found != int(found):
        raise ProblemError(
            f"{order!r} is no order",
            where="order",
            remedy="Give 1 and a number of eighths, up to 129; or None",
        )
    return int(found)


def _nearest(value: Fraction, digits: int) -> int:
    found = (2 * value.numerator * UNIT + value.denominator) // (2 * value.denominator)
    step: int = 10 ** max(0, len(str(found)) - digits)
    return (found + step // 2) // step * step


def _exponential(charge: int) -> int:
    """At least 2^128 · e^charge."""
    halvings = max(0, charge.bit_length() - _SMALL)
    small = -(-(charge << _PLACES) // (UNIT << halvings))
    out = term = _ONE
    for k in range(1, _FACTORS):
        term = -(-_scaled(term * small) // k)
        out += term
    # what is left out of the series is less than its last term
    out += term
    for _ in range(halvings):
        out = _scaled(out * out)
    return out


def _power(ratio: int, power: int) -> int:
    """At least ratio^(power / 8), all over 2^128."""
    for _ in range(_ROOTS):
        ratio = math.isqrt((ratio << _PLACES) - 1) + 1
    out = _ONE
    while power:
        if power & 1:
            out = _scaled(out * ratio)
        ratio = _scaled(ratio * ratio)
        power >>= 1
    return out


def _scaled(product: int) -> int:
    return -(-product >> _PLACES)


def _charge(logarithm: int, divisor: int) -> int:
    return short(-(-logarithm * UNIT // (divisor << _PLACES)))


FORMAT = "optmech-ledger/1"
MOST_DRAWS = 2**53 - 1
"""What a JavaScript client can count to."""
MOST_CHARGED = 10**24 * UNIT
"""Of one draw: as many as can be counted have a sum that is read again."""


class Spent(NamedTuple):
    """Sums of charges, in parts of 10^18."""

    draws: int = 0
    plain: int = 0
    rows: int = 0
    divergence: int = 0

    def __add__(self, other: object) -> Spent:
        """The sums of both together."""
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
        return {"format": FORMAT, **_STATE.write(self)}

    @staticmethod
    def of(plain: Any) -> State:
        """A state from its plain form. Raises ProblemError on what ``to_dict`` does not give."""
        try:
            body = dict(plain) if isinstance(plain, Mapping) else {}
            if body.pop("format", None) != FORMAT:
                raise ProblemError("is of another format")
            found: State = _STATE.read(body)
            own = found.spent.draws
            if own != sum(found.draws.values()) or own + found.before.draws > MOST_DRAWS:
                raise ProblemError("its draws do not add up")
        except (ProblemError, TypeError, ValueError, OverflowError) as error:
            raise no_ledger(str(error)) from None
        return found


def no_ledger(why: str) -> ProblemError:
    """What to say of something that is no ledger."""
    return ProblemError(
        f"is no ledger: {why}",
        where="ledger",
        remedy="Give what to_dict gave; what was spent cannot be known from this",
    )


def _given(*kinds: type) -> Codec[Any]:
    """A value of one of these types, as it is."""

    def read(plain: Any) -> Any:
        if type(plain) not in kinds:
            raise ProblemError(f"{str(plain)[:40]} is of another type")
        return plain

    return Codec(lambda value: value, read)


def _counted(plain: Any) -> Counter[int]:
    """Pairs of a place and how often it was drawn for."""
    found: Counter[int] = Counter()
    for place, count in _PAIRS.read(plain):
        if place in found:
            raise ProblemError(f"place {place} occurs twice")
        found[place] = count
    return found


_COUNT = Codec(int, lambda plain: whole(plain, "draws", most=MOST_DRAWS))
_PAIRS = listing(listing(_COUNT, 2))
_NUMBER, _CHARGE = _given(int, float), Codec(written, charge_of)
_SPENT = record(Spent, "ledger", draws=_COUNT, plain=_CHARGE, rows=_CHARGE, divergence=_CHARGE)
_STATE = record(
    State,
    "ledger",
    file=_given(str),
    radius=_NUMBER,
    between=_given(str),
    delta=_NUMBER,
    order=Codec(float, lambda order: 1 + eighths(order) / 8),
    draws=Codec(lambda draws: list(map(list, sorted(draws.items()))), _counted),
    spent=_SPENT,
    before=_SPENT,
)
