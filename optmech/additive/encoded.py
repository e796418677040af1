"""Parts of files of noise: losses and laws, whole numbers in hexadecimal digits."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from optmech.additive.law import MOST_ENTRIES, Law
from optmech.additive.loss import LARGEST, MOST_VALUES, NAMES, NoiseLoss, require_losses
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys, whole

Plain = Any
MOST_SENSITIVITY = 1000
LARGEST_EPSILON = 64
_HEX = re.compile(r"0|[1-9a-f][0-9a-f]{0,1200}", re.ASCII)


def encode_loss(loss: NoiseLoss) -> Plain:
    """A loss by its name, or its values."""
    if loss.name == "threshold":
        return {"name": loss.name, "width": loss.last - 1}
    if loss.name in NAMES:
        return {"name": loss.name}
    plain = {"name": loss.name, "values": [float(value) for value in loss.values]}
    if loss.name == "function":
        for name, ends in (("most", loss), ("least", loss.minorant)):
            plain[name] = [float(ends.slope), float(ends.curvature)]
    return plain


def encode_law(law: Law) -> Plain:
    """A law in whole numbers."""
    return {
        "bits": law.bits,
        "window": hexadecimal(law.window),
        "tails": hexadecimal(law.tails),
        "ratio": f"{law.ratio:x}",
        "ratio_bits": law.ratio_bits,
    }


def hexadecimal(values: tuple[int, ...]) -> list[str]:
    """Whole numbers >= 0 as texts."""
    return [f"{value:x}" for value in values]


def decode_loss(plain: Plain) -> NoiseLoss:
    """The way back; raises ProblemError for what is none."""
    name = plain["name"]
    if name == "threshold":
        require_keys(plain, {"name", "width"}, "loss")
        return NoiseLoss.of(name, width=plain["width"])
    if name in NAMES:
        require_keys(plain, {"name"}, "loss")
        return NoiseLoss.of(name)
    if name == "function":
        return _decode_function(plain)
    require_keys(plain, {"name", "values"}, "loss")
    if name != "table":
        raise ProblemError("is no loss of noise", where="loss")
    return NoiseLoss.of([float(value) for value in _losses(plain["values"])])


def _decode_function(plain: Plain) -> NoiseLoss:
    """Values, and the two polynomials between which the function goes on."""
    require_keys(plain, {"name", "values", "most", "least"}, "loss")
    values, most, least = (_losses(plain[key]) for key in ("values", "most", "least"))
    ends = len(most) == len(least) == 2 and all(a <= b for a, b in zip(least, most, strict=True))
    if not ends or not 1 <= len(values) <= MOST_VALUES:
        raise ProblemError("is no function that goes on", where="loss")
    require_losses(values)
    found = (least[0], least[1]) if least != most else None
    return NoiseLoss("function", values, most[0], most[1], found)


def _losses(plain: Plain) -> tuple[Fraction, ...]:
    """Floats >= 0."""
    if type(plain) is not list or any(type(v) is not float or not 0 <= v < LARGEST for v in plain):
        raise ProblemError("is no loss of noise", where="loss")
    return tuple(map(Fraction, plain))


def decode_law(plain: Plain) -> Law:
    """The way back; raises ProblemError for what is none."""
    require_keys(plain, {"bits", "window", "tails", "ratio", "ratio_bits"}, "law")
    window, tails = whole_numbers(plain["window"]), whole_numbers(plain["tails"])
    bits, ratio_bits = whole(plain["bits"], "bits"), whole(plain["ratio_bits"], "ratio_bits")
    ratio = whole_numbers([plain["ratio"]])[0]
    return Law(bits, window, tails, ratio, ratio_bits)


def whole_numbers(texts: Plain) -> tuple[int, ...]:
    """Whole numbers >= 0 from hexadecimal texts, written in one way only."""
    if type(texts) is not list or len(texts) > 2 * MOST_ENTRIES:
        raise ProblemError("is no list of numbers, or too long")
    for text in texts:
        if not isinstance(text, str) or not _HEX.fullmatch(text):
            raise ProblemError(f"{text!r:.80} is no whole number")
    return tuple(int(text, 16) for text in texts)
