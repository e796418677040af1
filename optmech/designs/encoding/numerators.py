"""Released matrices as plain JSON values, and back: for every row the observables with positive
probability and their numerators, as hexadecimal strings."""

from __future__ import annotations

import re
from typing import Any

from optmech.errors import ProblemError
from optmech.exact.checked import require_keys
from optmech.exact.numerators import MAX_BITS, Numerators

Plain = Any
_HEX = re.compile(rf"[1-9a-f][0-9a-f]{{0,{MAX_BITS // 4}}}", re.ASCII)


def encode_numerators(released: Numerators) -> Plain:
    """``{"bits": k, "rows": [[[o, ...], ["1f", ...]], ...]}``."""
    rows = [[(o, value) for o, value in enumerate(row) if value] for row in released.rows]
    return {
        "bits": released.bits,
        "rows": [[[o for o, _ in row], [f"{value:x}" for _, value in row]] for row in rows],
    }


def decode_numerators(plain: Plain, secrets: int, observables: int) -> Numerators:
    """The inverse; raises ProblemError unless there are ``secrets`` rows of probabilities."""
    require_keys(plain, {"bits", "rows"}, "mechanism")
    if type(plain["bits"]) is not int or len(plain["rows"]) != secrets:
        raise ProblemError(f"needs whole bits and {secrets} rows", where="mechanism")
    return Numerators(
        plain["bits"],
        tuple(_row(indices, texts, observables) for indices, texts in plain["rows"]),
    )


def _row(indices: Plain, texts: Plain, observables: int) -> tuple[int, ...]:
    out = [0] * observables
    before = -1
    if len(indices) != len(texts):
        raise ProblemError("index lists of different lengths", where="mechanism")
    for o, text in zip(indices, texts, strict=True):
        if type(o) is not int or not before < o < observables or not _HEX.fullmatch(text):
            raise ProblemError(f"{o!r}: {text!r} is not a numerator", where="mechanism")
        out[o], before = int(text, 16), o
    return tuple(out)
