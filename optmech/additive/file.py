"""Noise as files: everything that is needed to prove it again.

A file has the promise, the loss, the law and the multipliers as whole numbers, and the claims.
Reading computes every claim anew, in exact arithmetic.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from optmech.additive.bound import NoiseMultipliers, ShiftMultipliers
from optmech.additive.certified import ProvedNoise
from optmech.additive.design import NoiseDesign
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
from optmech.additive.lattice import MOST_EXPONENT
from optmech.additive.planar import PlanarNoise
from optmech.additive.planar_file import decode_planar, encode_planar
from optmech.additive.power_file import decode_renyi, encode_renyi
from optmech.additive.renyi import RenyiNoise
from optmech.base.storage import write_atomically
from optmech.certificate.check import Check, CheckReport
from optmech.certificate.claims import Claim, bounded, proved, report_on
from optmech.certificate.objective import Figures, relative_gap
from optmech.errors import ProblemError
from optmech.exact.checked import probability, require_keys, whole
from optmech.exact.number import parse_exact
from optmech.reading.sealed import NOISE, decoding, read_sealed, seal

MOST_RELEASES = 10_000
"""Of a promise that they keep together."""
MOST_MULTIPLIERS = 4_000_000
MOST_TOGETHER = 50_000
"""Places of noise for several releases."""
MOST_TERMS = 4_000_000
"""Places times shifts: what the decision looks at."""
REWRITE = "Make the noise again with optmech noise -o"
_KEYS = {"digest", "format", "epsilon", "delta", "sensitivity", "loss", "law", "multipliers",
         "claims", "seconds"}  # fmt: skip


def save_noise(design: ProvedNoise, path: str | Path) -> None:
    """Write a design; raises ProblemError where the path cannot be written."""
    if isinstance(design, PlanarNoise):
        stated = encode_planar(design)
    else:
        stated = encode_renyi(design) if isinstance(design, RenyiNoise) else _encode(design)
    body = stated | {
        "claims": {
            "status": design.status,
            "loss": design.loss,
            "lower_bound": design.lower_bound,
        },
        "seconds": design.seconds,
    }
    write_atomically(path, seal(json.dumps(body, allow_nan=False).encode()))


def load_noise(path: str | Path) -> ProvedNoise:
    """Read a design and prove it again; raises ProblemError where the file cannot be read or is not
    one of this format, VerificationError where it does not hold what it claims."""
    return proved(decode_noise, read_sealed(path, (NOISE,), REWRITE), str(path), REWRITE)


def decode_noise(body: dict[str, Any], path: str) -> tuple[ProvedNoise, CheckReport]:
    """A design from a file's content, and every claim of it recomputed."""
    design = _read(body, path)
    return design, _examined(design, body, path)


def _read(body: dict[str, Any], path: str) -> ProvedNoise:
    with decoding(path, REWRITE):
        if type(body["seconds"]) is not float or not 0 <= body["seconds"] < math.inf:
            raise ProblemError("is no number >= 0", where="seconds")
        if "norm" in body:
            return decode_planar(body)
        return decode_renyi(body) if "renyi" in body else _decode(body, path)


def _checks(design: ProvedNoise) -> tuple[Check, ...]:
    count, detail = design.described
    worst, words = design.decided
    passed = design.is_private
    if not passed:
        words += f", above what is promised: {design.promise}"
    return (
        Check("distribution", None, count, True, 0.0, detail),
        Check("privacy", 0, 2 * design.sensitivity, passed, worst, words),
    )


def _examined(design: ProvedNoise, body: dict[str, Any], path: str) -> CheckReport:
    with decoding(path, REWRITE):
        claims = body["claims"]
        require_keys(claims, {"status", "loss", "lower_bound"}, "claims")
        stated = claims["lower_bound"]
        if type(stated) is not float or type(claims["loss"]) is not float:
            raise ProblemError("claims are not numbers", where="claims")
        checks = _checks(design)
        least, cost = design.lower_bound, design.loss
    gap = relative_gap(cost, stated)
    return report_on(
        path,
        checks,
        [Claim("loss", claims["loss"], cost), bounded("lower_bound", stated, least)],
        claims["status"],
        Figures(cost, stated, cost, stated, gap),
        others=[] if stated >= 0 else ["lower_bound is below 0 in the file"],
        notes=(
            f"noise on all {design.numbers}: {design.measured}, tails included; the lower bound "
            f"is of {design.compared}",
            "the seconds are the file's own words",
        ),
    )


def _encode(design: ProvedNoise) -> dict[str, Any]:
    assert isinstance(design, NoiseDesign)
    body = {
        "format": NOISE,
        "epsilon": design.epsilon.text,
        "delta": design.delta.text,
        "sensitivity": design.sensitivity,
        "loss": encode_loss(design.measure),
        "law": encode_law(design.law),
        "multipliers": _encode_multipliers(design.multipliers),
    }
    if design.releases > 1:
        body["releases"] = {"count": design.releases, "exponent": design.exponent}
    return body


def _encode_multipliers(multipliers: NoiseMultipliers | None) -> Plain:
    if multipliers is None:
        return None
    parts = [
        {
            "shift": part.shift,
            "inner": hexadecimal(part.inner),
            "tail": hexadecimal(part.tail),
            "limit": f"{part.limit:x}",
        }
        for part in multipliers.shifts
    ]
    return {"bits": multipliers.bits, "shifts": parts}


def _decode(body: dict[str, Any], path: str) -> NoiseDesign:
    with decoding(path, REWRITE):
        require_keys(body, _KEYS, "the file", "releases")
        epsilon = parse_exact(body["epsilon"], where="epsilon")
        delta = probability(body["delta"])
        for name, number in (("epsilon", epsilon), ("delta", delta)):
            # as text, which also tells 0.0 from -0.0
            if repr(number.text) != repr(body[name]):
                raise ProblemError("is not written as it must be", where=name)
        if epsilon > LARGEST_EPSILON:
            raise ProblemError(f"is above {LARGEST_EPSILON}", where="epsilon")
        law = decode_law(body["law"])
        sensitivity = whole(body["sensitivity"], "sensitivity", 1, MOST_SENSITIVITY)
        if (law.n + len(law.tails) + sensitivity) * sensitivity > MOST_TERMS:
            raise ProblemError("has too many places for its sensitivity", where="law")
        if 0 < len(law.tails) < sensitivity:
            raise ProblemError("has fewer tails than the sensitivity", where="law")
        releases, exponent = _decode_releases(body)
        if releases > 1 and law.n + len(law.tails) > MOST_TOGETHER:
            raise ProblemError("has too many places for several releases", where="law")
        return NoiseDesign(
            law=law,
            measure=decode_loss(body["loss"]),
            epsilon=epsilon,
            delta=delta,
            sensitivity=sensitivity,
            multipliers=_decode_multipliers(body["multipliers"]),
            seconds=body["seconds"],
            releases=releases,
            exponent=exponent,
        )


def _decode_releases(body: dict[str, Any]) -> tuple[int, int]:
    """How many releases keep the promise together, and the exponent of the lattice."""
    if "releases" not in body:
        return 1, 0
    require_keys(body["releases"], {"count", "exponent"}, "releases")
    count = whole(body["releases"]["count"], "releases", 2, MOST_RELEASES)
    return count, whole(body["releases"]["exponent"], "exponent", 0, MOST_EXPONENT)


def _decode_multipliers(plain: Plain) -> NoiseMultipliers | None:
    if plain is None:
        return None
    require_keys(plain, {"bits", "shifts"}, "multipliers")
    if sum(len(part["inner"]) for part in plain["shifts"]) > MOST_MULTIPLIERS:
        raise ProblemError(f"are more than {MOST_MULTIPLIERS:,}", where="multipliers")
    parts = []
    for part in plain["shifts"]:
        require_keys(part, {"shift", "inner", "tail", "limit"}, "multipliers")
        a, b, d = whole_numbers(part["tail"])
        limit = whole_numbers([part["limit"]])[0]
        shift = whole(part["shift"], "shift", 1, MOST_SENSITIVITY)
        parts.append(ShiftMultipliers(shift, whole_numbers(part["inner"]), (a, b, d), limit))
    return NoiseMultipliers(whole(plain["bits"], "bits", 0, 4096), tuple(parts))
