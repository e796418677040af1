"""What files of noise have in common: promises, numbers, losses, and laws on the integers and on
cells."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from optmech.errors import ProblemError
from optmech.exact.arguments import probability, require_keys
from optmech.exact.codec import Codec, digits, exact, listing, record, within, worded
from optmech.exact.number import Exact
from optmech_noise.additive.bound import ShiftWindow
from optmech_noise.additive.cells import MOST_CELLS
from optmech_noise.additive.law import MOST_ENTRIES, Law
from optmech_noise.additive.loss import LARGEST, MOST_VALUES, NAMES, NoiseLoss, require_losses
from optmech_noise.additive.real_loss import MOST_CORNERS, PARTS, RealLoss, rational
from optmech_noise.additive.shaped_law import (
    Part,
)

Plain = Any
_PARTS: dict[str, tuple[str, ...]] = {
    "absolute": (),
    "square": (),
    "threshold": ("width",),
    "table": ("values",),
    "function": ("values", "most", "least"),
}
"""What files say of losses on whole numbers, by their names."""
LARGEST_EPSILON = 64
MOST_SENSITIVITY = 1000
"""Of whole numbers, and cells of a sensitivity."""
MOST_MULTIPLIERS = 4_000_000
MOST_TERMS = 4_000_000
"""Places times shifts: what the decision looks at."""


def demand(condition: bool, message: str, where: str) -> None:
    """Raise ProblemError where a condition does not hold."""
    if not condition:
        raise ProblemError(message, where=where)


def demand_small(epsilon: Exact, where: str = "epsilon") -> None:
    """Raise ProblemError for an ε above all that are looked for."""
    demand(epsilon <= LARGEST_EPSILON, f"is above {LARGEST_EPSILON}", where)


def demand_few(parts: Iterable[ShiftWindow | Part]) -> None:
    """Raise ProblemError for more multipliers than are looked at."""
    count = sum(len(part.inner) for part in parts)
    demand(count <= MOST_MULTIPLIERS, f"are more than {MOST_MULTIPLIERS:,}", "multipliers")


def encode_loss(loss: NoiseLoss) -> Plain:
    """A loss by its name, or its values."""
    known = {
        "width": loss.last - 1,
        "values": _floats(loss.values),
        "most": _floats((loss.slope, loss.curvature)),
        "least": _floats((loss.minorant.slope, loss.minorant.curvature)),
    }
    return {"name": loss.name, **{part: known[part] for part in _PARTS[loss.name]}}


def _floats(values: Sequence[Fraction]) -> list[float]:
    return [float(value) for value in values]


def decode_loss(plain: Plain) -> NoiseLoss:
    """Also from values and the two polynomials between which a function goes on."""
    name = plain["name"]
    demand(name in tuple(_PARTS), "is no loss of noise", "loss")
    require_keys(plain, {"name", *_PARTS[name]}, "loss")
    if name in NAMES:
        return NoiseLoss.of(name, width=plain.get("width"))
    parts = {part: _losses(plain[part]) for part in _PARTS[name]}
    values = parts["values"]
    if name == "table":
        return NoiseLoss.of(_floats(values))
    most, least = parts["most"], parts["least"]
    ends = len(most) == len(least) == 2 and all(a <= b for a, b in zip(least, most, strict=True))
    demand(ends and 1 <= len(values) <= MOST_VALUES, "is no function that goes on", "loss")
    require_losses(values)
    found = (least[0], least[1]) if least != most else None
    return NoiseLoss("function", values, most[0], most[1], found)


def _losses(plain: Plain) -> tuple[Fraction, ...]:
    """Floats >= 0."""
    fits = type(plain) is list and all(type(v) is float and 0 <= v < LARGEST for v in plain)
    demand(fits, "is no loss of noise", "loss")
    return tuple(map(Fraction, plain))


def _decode_real_loss(plain: Plain) -> RealLoss:
    demand(plain["name"] in _REAL_LOSSES, "is no loss of noise", "loss")
    loss: RealLoss = _REAL_LOSSES[plain["name"]].read(plain)
    return loss


NUMBER = digits(1201)
NUMBERS = listing(NUMBER, most=2 * MOST_ENTRIES)
FEW_BITS = within("bits", 0, 4096)
PROMISE: dict[str, Codec[Any]] = {
    "epsilon": exact("epsilon"),
    "delta": exact("delta", probability),
}
TAILS: dict[str, Codec[Any]] = {
    "tails": NUMBERS,
    "ratio": NUMBER,
    "ratio_bits": within("ratio_bits"),
}
LINE: dict[str, Any] = {
    "sensitivity": within("sensitivity", 1, MOST_SENSITIVITY),
    "loss": ("measure", Codec(encode_loss, decode_loss)),
    "law": record(Law, "law", bits=within("bits"), window=NUMBERS, **TAILS),
}
_FRACTION = worded(partial(rational, where="the file", positive=False), "the file")
_CORNERS = listing(listing(_FRACTION, 2), most=MOST_CORNERS)
_REAL_PARTS: dict[str, Codec[Any]] = {
    "width": _FRACTION,
    "corners": _CORNERS,
    "most": listing(_FRACTION, 2),
}
_REAL_LOSSES = {
    name: record(RealLoss, "loss", name=Codec(str, str), **{k: _REAL_PARTS[k] for k in parts})
    for name, parts in PARTS.items()
}
ON_CELLS: dict[str, Any] = {
    "sensitivity": worded(partial(rational, where="the file"), "the file"),
    "cells": within("cells", 1, MOST_CELLS),
    "loss": ("measure", Codec(lambda loss: _REAL_LOSSES[loss.name].write(loss), _decode_real_loss)),
    "law": LINE["law"],
}
