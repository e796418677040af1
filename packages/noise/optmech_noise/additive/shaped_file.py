"""Noise of any shape as files."""

from functools import partial
from typing import Any

from optmech.exact.arguments import probability, require_keys
from optmech.exact.codec import Codec, exact, listing, optional, record, within
from optmech_noise.additive.cells import MOST_CELLS
from optmech_noise.additive.entries import (
    FEW_BITS,
    LINE,
    MOST_TERMS,
    NUMBER,
    NUMBERS,
    ON_CELLS,
    Plain,
    decode_loss,
    demand,
    demand_few,
    demand_small,
    encode_loss,
)
from optmech_noise.additive.shaped import ShapedNoise, ShapedRealNoise, reach_of
from optmech_noise.additive.shaped_law import (
    MOST_PAIRS_OF,
    Part,
    Parts,
    ShapedLaw,
    SidedLoss,
    require_curve,
)

MOST_SHAPED = 40_000_000
"""Places times multipliers of noise of any shape."""


def shaped_codec(real: bool) -> Codec[Any]:
    """Of noise of any shape."""
    made = ShapedRealNoise if real else ShapedNoise
    lattice = ON_CELLS if real else LINE | {"loss": ("measure", _SIDES), "support": _SUPPORT}
    entries = {"curve": _CURVE, **lattice, "law": _SHAPED_LAW, "multipliers": _PARTS_OF}
    return record(partial(_shaped_noise, made), "the file", **entries)


def _shaped_noise(made: Any, **given: Any) -> Any:
    require_curve(given["curve"])
    design = made(**given)
    law, rates = design.law, [rate for rate, _ in design.curve]
    demand_small(rates[-1], "curve")
    terms = (law.count + design.steps) * design.steps * len(rates)
    demand(terms <= MOST_TERMS, "has too many places for its sensitivity", "law")
    demand(made is ShapedNoise or law.is_even, "is not even", "law")
    if (found := design.multipliers) is None:
        return design
    loss = design.measure
    even = made is ShapedRealNoise or (loss.is_even and design.support == (None, None))
    demand(even or not found.even, "are not of even noise", "multipliers")
    for part in found.parts:
        known = part.bound < len(rates) and abs(part.shift) <= design.steps
        demand(known, "has a bound or a shift that is none", "multipliers")
    every = found.every
    demand_few(found.parts)
    low, high = reach_of(design, every)
    work = (high - low) * max(1, len(every))
    demand(work <= MOST_SHAPED and low <= high, "span too many places", "multipliers")
    return design


def _decode_sides(plain: Plain) -> SidedLoss:
    if "name" in plain:
        both = decode_loss(plain)
        return SidedLoss(both, both)
    require_keys(plain, {"below", "above"}, "loss")
    found = SidedLoss(decode_loss(plain["below"]), decode_loss(plain["above"]))
    demand(not found.is_even, "is written as two where it is one", "loss")
    return found


def _encode_sides(loss: SidedLoss) -> Plain:
    if loss.is_even:
        return encode_loss(loss.above)
    return {"below": encode_loss(loss.below), "above": encode_loss(loss.above)}


def _truth(plain: Plain) -> bool:
    demand(plain is True or plain is False, "is neither true nor false", "even")
    return bool(plain)


_END = within("support", -(10**9), 10**9)
_SUPPORT = listing(optional(_END), 2)
_SIDES = Codec(_encode_sides, _decode_sides)
_PAIR = (exact("curve"), exact("curve", probability))
_CURVE = listing(
    Codec(
        lambda pair: [pair[0].text, pair[1].text],
        lambda plain: tuple(_PAIR[k].read(v) for k, v in zip((0, 1), plain, strict=True)),
    ),
    most=MOST_PAIRS_OF,
)
_SHAPED_LAW = record(ShapedLaw, "law", bits=within("bits"), low=_END, masses=NUMBERS)
_PARTS_OF = optional(
    record(
        Parts,
        "multipliers",
        bits=FEW_BITS,
        even=Codec(bool, _truth),
        parts=listing(
            record(
                Part,
                "multipliers",
                bound=within("bound", 0, MOST_PAIRS_OF - 1),
                shift=within("shift", -MOST_CELLS, MOST_CELLS),
                first=_END,
                inner=NUMBERS,
                tail=NUMBER,
                limit=("price", NUMBER),
            )
        ),
    )
)
