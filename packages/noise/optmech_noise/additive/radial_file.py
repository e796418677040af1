"""Noise for points as files."""

from functools import partial
from typing import Any

from optmech.errors import ProblemError
from optmech.exact.arguments import probability, require_keys
from optmech.exact.codec import Codec, digits, exact, listing, optional, record, within, worded
from optmech_noise.additive.caps import MOST_CAPS, MOST_NODES, MOST_WEIGHTS, Cap, Caps
from optmech_noise.additive.radial import DEGREES, MOST_BALLS, RadialLaw, RadialNoise
from optmech_noise.additive.real_loss import rational

_MOST_CELLS = 1000
_LARGEST_EPSILON = 64


def _noise(**given: Any) -> RadialNoise:
    design = RadialNoise(**given)
    if design.epsilon > _LARGEST_EPSILON:
        raise ProblemError(f"is above {_LARGEST_EPSILON}", where="epsilon")
    if design.law.n > MOST_BALLS:
        raise ProblemError("has too many balls", where="law")
    return design


def _caps(**given: Any) -> Caps:
    found = Caps(**given)
    weights = sum(len(cap.weights) for cap in found.caps)
    if len(found.caps) > MOST_CAPS or weights > MOST_WEIGHTS or found.end > MOST_NODES:
        raise ProblemError("are too many", where="multipliers")
    return found


def _loss(plain: Any) -> str:
    require_keys(plain, {"name"}, "loss")
    name = plain["name"]
    if name not in tuple(DEGREES):
        raise ProblemError("is no loss of such noise", where="loss")
    return str(name)


_NUMBER = digits(1201)
_CAP = record(
    Cap,
    "multipliers",
    shift=within("shift", 1, 64),
    depth=_NUMBER,
    first=within("first", 0, MOST_NODES),
    weights=listing(_NUMBER),
)
_CAPS = record(
    _caps,
    "multipliers",
    bits=within("bits", 0, 4096),
    nodes=within("nodes", 1, 64),
    level=_NUMBER,
    caps=listing(_CAP),
)
RADIAL: Codec[Any] = record(
    _noise,
    "the file",
    epsilon=exact("epsilon"),
    delta=exact("delta", probability),
    sensitivity=worded(partial(rational, where="the file"), "the file"),
    dimension=within("dimension", 2, 3),
    cells=within("cells", 1, _MOST_CELLS),
    loss=("measure", Codec(lambda name: {"name": name}, _loss)),
    law=record(RadialLaw, "law", bits=within("bits"), balls=listing(_NUMBER, most=MOST_BALLS)),
    multipliers=optional(_CAPS),
)
