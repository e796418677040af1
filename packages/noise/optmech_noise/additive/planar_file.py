"""Noise for pairs of numbers as files."""

from functools import partial
from typing import Any

from optmech.exact.codec import Codec, listing, optional, record, within
from optmech_noise.additive.bound import (
    ShiftWindow,
)
from optmech_noise.additive.entries import (
    FEW_BITS,
    LARGEST_EPSILON,
    NUMBER,
    NUMBERS,
    PROMISE,
    TAILS,
    Plain,
    decode_loss,
    demand,
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


def planar_codec(norm: str) -> Codec[PlanarNoise]:
    """Of noise for pairs, in this norm."""
    width = ("n", within("width", 0, MOST_WIDTH))
    law = record(
        partial(PlanarLaw, shape_of(norm)),
        "law",
        width=width,
        bits=within("bits"),
        core=NUMBERS,
        **TAILS,
    )
    place = listing(within("shift"), 2)
    shift = record(
        partial(ShiftWindow, tail=()),
        "multipliers",
        shift=place,
        values=("inner", NUMBERS),
        limit=("price", NUMBER),
    )
    multipliers = record(
        PlanarMultipliers, "multipliers", bits=FEW_BITS, width=width, shifts=listing(shift)
    )
    return record(
        _planar_noise,
        "the file",
        **PROMISE,
        sensitivity=within("sensitivity", 1, MOST_PLANAR_SENSITIVITY),
        norm=Codec(str, lambda plain: plain),
        loss=("measure", _PLANAR_LOSS),
        law=law,
        multipliers=optional(multipliers),
    )


def _planar_noise(**given: Any) -> PlanarNoise:
    design = PlanarNoise(**given)
    law, sensitivity = design.law, design.sensitivity
    places = (2 * (law.n + sensitivity) + 1) ** 2
    shifts = len(shifts_within(design.norm, sensitivity))
    blocks = -(-sensitivity // len(law.tails)) + 2 if law.tails else 0
    longest = places * (law.bits + blocks * law.ratio_bits)
    demand(design.epsilon <= LARGEST_EPSILON, f"is above {LARGEST_EPSILON}", "epsilon")
    demand(places * shifts <= MOST_PAIRS, "has too many places for its sensitivity", "law")
    demand(longest <= MOST_PLANAR_DIGITS, "has too many digits for its places", "law")
    demand(len(law.tails) <= sensitivity, "has more tails than the sensitivity", "law")
    if (found := design.multipliers) is not None:
        work = (2 * (found.n + sensitivity) + 1) ** 2 * len(found.shifts)
        demand(work <= MOST_PAIRS, "are too many", "multipliers")
    return design


def _decode_planar_loss(plain: Plain) -> PlanarLoss:
    stated = {name: value for name, value in plain.items() if name != "norm"}
    return PlanarLoss(decode_loss(stated), plain["norm"])


_PLANAR_LOSS = Codec(
    lambda loss: encode_loss(loss.loss) | {"norm": loss.norm},
    _decode_planar_loss,
)
