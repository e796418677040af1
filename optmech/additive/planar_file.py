"""Noise for pairs of whole numbers as files."""

from __future__ import annotations

from typing import Any

from optmech.additive.encoded import (
    LARGEST_EPSILON,
    Plain,
    decode_loss,
    encode_loss,
    hexadecimal,
    whole_numbers,
)
from optmech.additive.planar import PlanarMultipliers, PlanarNoise, PlanarShift, shape_of
from optmech.additive.planar_law import MOST_PLACES, Place, PlanarLaw, shifts_within
from optmech.additive.planar_loss import PlanarLoss
from optmech.errors import ProblemError
from optmech.exact.checked import probability, require_keys, whole
from optmech.exact.number import parse_exact
from optmech.reading.sealed import NOISE

MOST_SENSITIVITY = 40
MOST_WIDTH = 300
"""The largest radius of a window."""
MOST_PAIRS = 6_000_000
"""Places times shifts up to symmetry: what the decision looks at."""
MOST_DIGITS = 4 * 10**8
"""Bits of all probabilities that are compared."""
_KEYS = {"digest", "format", "epsilon", "delta", "sensitivity", "norm", "loss", "law",
         "multipliers", "claims", "seconds"}  # fmt: skip


def encode_planar(design: PlanarNoise) -> dict[str, Any]:
    """What a file says but for its claims."""
    law = design.law
    return {
        "format": NOISE,
        "epsilon": design.epsilon.text,
        "delta": design.delta.text,
        "sensitivity": design.sensitivity,
        "norm": design.norm,
        "loss": encode_loss(design.measure.loss) | {"norm": design.measure.norm},
        "law": {
            "width": law.n,
            "bits": law.bits,
            "core": hexadecimal(law.core),
            "tails": hexadecimal(law.tails),
            "ratio": f"{law.ratio:x}",
            "ratio_bits": law.ratio_bits,
        },
        "multipliers": _encode_multipliers(design.multipliers),
    }


def _encode_multipliers(found: PlanarMultipliers | None) -> Plain:
    if found is None:
        return None
    parts = [
        {
            "shift": list(part.shift),
            "values": hexadecimal(part.values),
            "limit": f"{part.limit:x}",
        }
        for part in found.shifts
    ]
    return {"bits": found.bits, "width": found.n, "shifts": parts}


def decode_planar(body: dict[str, Any]) -> PlanarNoise:
    """The way back; raises ProblemError for what is none."""
    require_keys(body, _KEYS, "the file")
    epsilon = parse_exact(body["epsilon"], where="epsilon")
    delta = probability(body["delta"])
    for name, number in (("epsilon", epsilon), ("delta", delta)):
        if repr(number.text) != repr(body[name]):
            raise ProblemError("is not written as it must be", where=name)
    if epsilon > LARGEST_EPSILON:
        raise ProblemError(f"is above {LARGEST_EPSILON}", where="epsilon")
    sensitivity = whole(body["sensitivity"], "sensitivity", 1, MOST_SENSITIVITY)
    shape = shape_of(body["norm"])
    plain = body["law"]
    require_keys(plain, {"width", "bits", "core", "tails", "ratio", "ratio_bits"}, "law")
    n = whole(plain["width"], "width", 0, MOST_WIDTH)
    if (2 * (n + sensitivity) + 1) ** 2 * len(shifts_within(body["norm"], sensitivity)) > (
        MOST_PAIRS
    ):
        raise ProblemError("has too many places for its sensitivity", where="law")
    law = PlanarLaw(
        shape,
        n,
        whole(plain["bits"], "bits"),
        whole_numbers(plain["core"]),
        whole_numbers(plain["tails"]),
        whole_numbers([plain["ratio"]])[0],
        whole(plain["ratio_bits"], "ratio_bits"),
    )
    blocks = -(-sensitivity // len(law.tails)) + 2 if law.tails else 0
    if (2 * (n + sensitivity) + 1) ** 2 * (law.bits + blocks * law.ratio_bits) > MOST_DIGITS:
        raise ProblemError("has too many digits for its places", where="law")
    if len(law.tails) > sensitivity:
        raise ProblemError("has more tails than the sensitivity", where="law")
    if type(body["loss"]) is not dict:
        raise ProblemError("is no loss of noise", where="loss")
    return PlanarNoise(
        law=law,
        measure=_loss(dict(body["loss"])),
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        norm=body["norm"],
        multipliers=_decode_multipliers(body["multipliers"], body["norm"], sensitivity),
        seconds=body["seconds"],
    )


def _loss(stated: dict[str, Any]) -> PlanarLoss:
    norm = stated.pop("norm")
    return PlanarLoss(decode_loss(stated), norm)


def _decode_multipliers(plain: Plain, norm: str, sensitivity: int) -> PlanarMultipliers | None:
    if plain is None:
        return None
    require_keys(plain, {"bits", "width", "shifts"}, "multipliers")
    n = whole(plain["width"], "width", 0, MOST_WIDTH)
    if (2 * (n + sensitivity) + 1) ** 2 * len(plain["shifts"]) > MOST_PAIRS:
        raise ProblemError("are too many", where="multipliers")
    allowed = set(shifts_within(norm, sensitivity))
    parts = []
    for part in plain["shifts"]:
        require_keys(part, {"shift", "values", "limit"}, "multipliers")
        if len(part["values"]) > 8 * MOST_PLACES:
            raise ProblemError("are too many", where="multipliers")
        shift: Place = (whole(part["shift"][0], "shift"), whole(part["shift"][1], "shift"))
        if shift not in allowed or len(part["shift"]) != 2:
            raise ProblemError("there is a shift beyond the sensitivity", where="multipliers")
        limit = whole_numbers([part["limit"]])[0]
        values = whole_numbers(part["values"])
        parts.append(PlanarShift(shift, values, limit))
    return PlanarMultipliers(whole(plain["bits"], "bits", 0, 4096), n, tuple(parts))
