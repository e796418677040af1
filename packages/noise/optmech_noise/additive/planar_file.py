"""Noise for pairs of numbers as files."""

from functools import partial
from typing import Any

from optmech.exact.codec import Codec, listing, optional, record, within
from optmech_noise.additive.bound import ShiftWindow
from optmech_noise.additive.entries import (
    FEW_BITS,
    NUMBER,
    NUMBERS,
    PROMISE,
    TAILS,
    Plain,
    decode_loss,
    demand,
    demand_small,
    encode_loss,
)
from optmech_noise.additive.planar import PlanarMultipliers, PlanarNoise, shape_of
from optmech_noise.additive.planar_law import PlanarLaw, PlanarLoss, shifts_within

MOST_PLANAR_SENSITIVITY = 40
MOST_WIDTH = 300
"""The largest radius of a window of pairs."""
MOST_PAIRS = 6_000_000
"""Places times shifts up to symmetry: what the decision about pairs looks at."""
MOST_PLANAR_DIGITS = 4 * 10**8
"""Bits of all probabilities of pairs that are compared."""


def _planar_noise(law: dict[str, Any], **given: Any) -> PlanarNoise:
    design = PlanarNoise(PlanarLaw(shape_of(given["norm"]), **law), **given)
    made, sensitivity = design.law, design.sensitivity
    places = (2 * (made.n + sensitivity) + 1) ** 2
    shifts = len(shifts_within(design.norm, sensitivity))
    blocks = -(-sensitivity // len(made.tails)) + 2 if made.tails else 0
    longest = places * (made.bits + blocks * made.ratio_bits)
    demand_small(design.epsilon)
    demand(places * shifts <= MOST_PAIRS, "has too many places for its sensitivity", "law")
    demand(longest <= MOST_PLANAR_DIGITS, "has too many digits for its places", "law")
    demand(len(made.tails) <= sensitivity, "has more tails than the sensitivity", "law")
    if (found := design.multipliers) is not None:
        work = (2 * (found.n + sensitivity) + 1) ** 2 * len(found.shifts)
        demand(work <= MOST_PAIRS, "are too many", "multipliers")
    return design


def _decode_planar_loss(plain: Plain) -> PlanarLoss:
    stated = {name: value for name, value in plain.items() if name != "norm"}
    return PlanarLoss(decode_loss(stated), plain["norm"])


_PLANAR_LOSS = Codec(lambda loss: encode_loss(loss.loss) | {"norm": loss.norm}, _decode_planar_loss)
_WIDTH = ("n", within("width", 0, MOST_WIDTH))
_PLANAR_SHIFT = record(
    partial(ShiftWindow, tail=()),
    "multipliers",
    shift=listing(within("shift"), 2),
    values=("inner", NUMBERS),
    limit=("price", NUMBER),
)
_PLANAR_MULTIPLIERS = record(
    PlanarMultipliers, "multipliers", bits=FEW_BITS, width=_WIDTH, shifts=listing(_PLANAR_SHIFT)
)
PLANAR: Codec[Any] = record(
    _planar_noise,
    "the file",
    **PROMISE,
    sensitivity=within("sensitivity", 1, MOST_PLANAR_SENSITIVITY),
    norm=Codec(str, lambda plain: plain),
    loss=("measure", _PLANAR_LOSS),
    law=record(dict, "law", width=_WIDTH, bits=within("bits"), core=NUMBERS, **TAILS),
    multipliers=optional(_PLANAR_MULTIPLIERS),
)
