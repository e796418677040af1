"""Noise for points as files."""

from typing import Any

from optmech.exact.arguments import require_keys
from optmech.exact.codec import Codec, listing, optional, record, within
from optmech_noise.additive.caps import MOST_CAPS, MOST_NODES, MOST_WEIGHTS, Cap, Caps
from optmech_noise.additive.entries import (
    FEW_BITS,
    NUMBER,
    ON_CELLS,
    PROMISE,
    Plain,
    demand,
    demand_small,
)
from optmech_noise.additive.radial import DEGREES, MOST_BALLS, RadialLaw, RadialNoise

_MOST_RINGS = 1000
"""Of a sensitivity."""


def _radial_noise(**given: Any) -> RadialNoise:
    design = RadialNoise(**given)
    demand_small(design.epsilon)
    demand(design.law.n <= MOST_BALLS, "has too many balls", "law")
    return design


def _caps(**given: Any) -> Caps:
    found = Caps(**given)
    weights = sum(len(cap.weights) for cap in found.caps)
    few = len(found.caps) <= MOST_CAPS and weights <= MOST_WEIGHTS and found.end <= MOST_NODES
    demand(few, "are too many", "multipliers")
    return found


def _degree_name(plain: Plain) -> str:
    require_keys(plain, {"name"}, "loss")
    demand(plain["name"] in tuple(DEGREES), "is no loss of such noise", "loss")
    return str(plain["name"])


_CAP = record(
    Cap,
    "multipliers",
    shift=within("shift", 1, 64),
    depth=NUMBER,
    first=within("first", 0, MOST_NODES),
    weights=listing(NUMBER),
)
_CAPS = record(
    _caps,
    "multipliers",
    bits=FEW_BITS,
    nodes=within("nodes", 1, 64),
    level=NUMBER,
    caps=listing(_CAP),
)
RADIAL: Codec[Any] = record(
    _radial_noise,
    "the file",
    **PROMISE,
    sensitivity=ON_CELLS["sensitivity"],
    dimension=within("dimension", 2, 3),
    cells=within("cells", 1, _MOST_RINGS),
    loss=("measure", Codec(lambda name: {"name": name}, _degree_name)),
    law=record(RadialLaw, "law", bits=within("bits"), balls=listing(NUMBER, most=MOST_BALLS)),
    multipliers=optional(_CAPS),
)
