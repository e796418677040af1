"""Noise of a bounded Rényi divergence as files."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optmech.additive.encoded import (
    LARGEST_EPSILON,
    MOST_SENSITIVITY,
    Plain,
    decode_law,
    decode_loss,
    encode_law,
    encode_loss,
    hexadecimal,
    whole_numbers,
)
from optmech.additive.power import ShiftTangents, Tangents, order_of
from optmech.additive.renyi import RenyiNoise
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys, whole
from optmech.exact.number import parse_exact
from optmech.reading.sealed import NOISE

MOST_TERMS = 200_000
"""Places times shifts: powers that are taken."""
MOST_DIGITS = 10**9
"""Bits of all powers together."""
MOST_GROWTH = 4000
"""Of (α - 1)ε."""
_KEYS = {"digest", "format", "renyi", "sensitivity", "loss", "law", "tangents", "claims",
         "seconds"}  # fmt: skip


def encode_renyi(design: RenyiNoise) -> dict[str, Any]:
    """What a file says but for its claims."""
    return {
        "format": NOISE,
        "renyi": {"order": str(design.order), "epsilon": design.epsilon.text},
        "sensitivity": design.sensitivity,
        "loss": encode_loss(design.measure),
        "law": encode_law(design.law),
        "tangents": _encode_tangents(design.tangents),
    }


def _encode_tangents(tangents: Tangents | None) -> Plain:
    if tangents is None:
        return None
    parts = [
        {
            "shift": part.shift,
            "price": f"{part.price:x}",
            "inner": hexadecimal(part.inner),
            "tail": hexadecimal(part.tail),
        }
        for part in tangents.shifts
    ]
    return {"bits": tangents.bits, "price_bits": tangents.price_bits, "shifts": parts}


def decode_renyi(body: dict[str, Any]) -> RenyiNoise:
    """The way back; raises ProblemError for what is none."""
    require_keys(body, _KEYS, "the file")
    stated = body["renyi"]
    require_keys(stated, {"order", "epsilon"}, "renyi")
    order = order_of(stated["order"])
    epsilon = parse_exact(stated["epsilon"], where="epsilon")
    if stated["order"] != str(order) or repr(epsilon.text) != repr(stated["epsilon"]):
        raise ProblemError("is not written as it must be", where="renyi")
    if epsilon > LARGEST_EPSILON or float(order - 1) * epsilon > MOST_GROWTH:
        raise ProblemError("is too large", where="epsilon")
    sensitivity = whole(body["sensitivity"], "sensitivity", 1, MOST_SENSITIVITY)
    law = decode_law(body["law"])
    if (law.n + len(law.tails) + sensitivity) * sensitivity > MOST_TERMS:
        raise ProblemError("has too many places for its sensitivity", where="law")
    if 0 < len(law.tails) < sensitivity:
        raise ProblemError("has fewer tails than the sensitivity", where="law")
    terms = (law.n + len(law.tails) + sensitivity) * sensitivity
    if terms * (law.bits + 3 * law.ratio_bits) * order.numerator > MOST_DIGITS:
        raise ProblemError("has too many digits for its order", where="law")
    return RenyiNoise(
        law=law,
        measure=decode_loss(body["loss"]),
        order=order,
        epsilon=epsilon,
        sensitivity=sensitivity,
        tangents=_decode_tangents(body["tangents"], order),
        seconds=body["seconds"],
    )


def _decode_tangents(plain: Plain, order: Fraction) -> Tangents | None:
    if plain is None:
        return None
    require_keys(plain, {"bits", "price_bits", "shifts"}, "tangents")
    if sum(len(part["inner"]) for part in plain["shifts"]) > 2 * MOST_TERMS:
        raise ProblemError("are too many", where="tangents")
    bits = whole(plain["bits"], "bits", 0, 4096)
    parts = []
    digits = 0
    for part in plain["shifts"]:
        require_keys(part, {"shift", "price", "inner", "tail"}, "tangents")
        far, near = whole_numbers(part["tail"])
        price = whole_numbers([part["price"]])[0]
        shift = whole(part["shift"], "shift", 1, MOST_SENSITIVITY)
        inner = whole_numbers(part["inner"])
        # powers are taken of the numbers and of their unit
        widest = max(bits, max((*inner, far, near)).bit_length())
        digits += (len(inner) + 2) * widest * order.numerator
        if digits > MOST_DIGITS:
            raise ProblemError("have too many digits for the order", where="tangents")
        parts.append(ShiftTangents(shift, price, inner, (far, near)))
    return Tangents(bits, whole(plain["price_bits"], "price_bits", 0, 4096), tuple(parts))
