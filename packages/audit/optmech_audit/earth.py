"""Files for the whole earth (docs/packed.md): theory, "The whole earth in one file".

Distances, logarithms and the bound of a file are computed in floats; they may differ from what the
file says by a part in 10^9.
"""

from __future__ import annotations

import hashlib
import math
import struct
from fractions import Fraction
from itertools import accumulate, pairwise

from optmech_audit.cbor import array
from optmech_audit.designs import Verdict
from optmech_audit.document import Body, fields, listing, members, part_of, stream_of, whole
from optmech_audit.numbers import need, paired, real
from optmech_audit.packed import PACKED, QUANTILE, SAME, content_of, opened, require_same
from optmech_audit.places import EARTH_RADIUS_KM

EARTH = b"\x64kind\x65earth"  # the first entry of the header
FARTHEST = 5000.0


def is_earth(path: str) -> bool:
    """Whether a file begins like one for the whole earth; a pipe is not opened, as that would wait
    for a writer."""
    return is_packed(path) and EARTH in start_of(path)


def is_packed(path: str) -> bool:
    return start_of(path).startswith(PACKED)


def start_of(path: str) -> bytes:
    """The first bytes of a file; of a pipe none."""
    with stream_of(path) as stream:
        return part_of(stream, 64)


def judge_earth(path: str) -> Verdict:
    """The law of the file keeps ε at every two positions, and nothing but the title is its own."""
    head, rows = opened(content_of(path, 2**24))
    need(head["kind"] == "earth" and len(rows) % 8 == 0, "is no file for the whole earth")
    sums = struct.unpack(f"<{len(rows) // 8}Q", rows)
    heights, bands = array(head["heights"], 86), whole(head["bands"], 2**22)
    need(bands >= 64, "there are too few bands")
    law = EarthLaw(heights, sums)
    (clause,) = listing(head["promises"], 1)
    rate = real(fields(clause)["epsilon"], 0)
    need(0.009 < rate <= 10, "ε is out of range")
    own: Body = {
        "outside": "refuse",
        "prior": None,
        "promises": [promised(rate)],
        "design": hashlib.sha256(struct.pack(f"<{len(heights)}d", *heights) + rows).digest(),
    }
    require_same(head, own, "law")
    snap, said = law.snap(rate, bands), real(head["snap"], 0)
    need(math.isclose(said, snap, rel_tol=SAME), f"snap is {snap:.12g} km")
    check_earth_figures(head, law, rate, bands)
    return [
        f"{len(sums)} rings and the rest of the earth are a distribution over 2^64",
        f"between positions d km apart log ratios are at most {rate!r} · (d + {2 * said!r})",
        "its promise, accuracy and mean distance are those of the law",
    ], "title"


def promised(rate: float) -> Body:
    """The one promise of such a file."""
    return {
        "kind": "metric_privacy",
        "scope": "every point",
        "pairs": "all",
        "limit": None,
        "measure": {"name": "haversine", "unit": "km", "course": "great circle"},
        "epsilon": rate,
        "delta": None,
        "bound": None,
        "repeats": "adds",
        "details": {},
    }


def check_earth_figures(head: Body, law: EarthLaw, rate: float, bands: int) -> None:
    """The mean distance, the least that there is, and the radius that 95 % are within."""
    k = rate * EARTH_RADIUS_KM
    tail = math.pi / (math.exp(k * math.pi) + 1) if k < 200 else 0.0
    least = EARTH_RADIUS_KM * (2 * k / (1 + k * k) + tail)
    way = 1.88 * math.pi / bands * EARTH_RADIUS_KM
    objective, *said = members(head["loss"], "objective design packed increase")
    need(objective == "mean_distance", "the loss is another")
    mean = law.mean() + way
    for figure, value in paired(said, (least, mean, mean / least - 1)):
        near = math.isclose(real(figure), value, rel_tol=SAME, abs_tol=SAME)
        need(near, f"the loss is {value:.9g}")
    quantile, radii = members(head["accuracy"], "quantile radius")
    (radius,) = array(radii, 86)
    need(quantile == QUANTILE, "the accuracy is another")
    need(math.isclose(radius, 1000 * (law.within() + way), rel_tol=SAME), "another radius")


class EarthLaw:
    """Probabilities of rings around a position, over 2^64, by the heights of their ends."""

    def __init__(self, heights: list[float], sums: tuple[int, ...]) -> None:
        need(1 <= len(heights) == len(sums) <= 2**15, "another number of sums than rings")
        self.masses = [b - a for a, b in pairwise((0, *sums))]
        edges = [0.0, *heights]
        self.rest = 2**64 - sums[-1]
        need(min(self.masses) > 0 and self.rest > 0, "a ring, or the rest, has no probability")
        need(all(a < b for a, b in pairwise(edges)), "rings do not ascend")
        need(heights[-1] < 2, "a ring ends nowhere")
        self.ends = [2 * EARTH_RADIUS_KM * math.asin(math.sqrt(u / 2)) for u in edges]
        need(self.ends[-1] <= FARTHEST, "rings are too far")
        widths = [Fraction(b) - Fraction(a) for a, b in pairwise(edges)]
        self.widest = max(map(float, widths))
        self.logs = [
            math.log(mass / width + Fraction(self.rest, 2))
            for mass, width in paired(self.masses, widths)
        ]
        self.logs.append(math.log(Fraction(self.rest, 2)))

    def lag(self, rate: float) -> float:
        """Half of how much more than rate · (their distance) two rings differ by, over the rate."""
        high, low, most = -math.inf, math.inf, 0.0
        for k, log in enumerate(self.logs):
            inner = log + rate * self.ends[k], log - rate * self.ends[k]
            if k:
                most = max(most, high - inner[0], inner[1] - low)
            if k + 1 < len(self.logs):
                high = max(high, log + rate * self.ends[k + 1])
                low = min(low, log - rate * self.ends[k + 1])
        return most / (2 * rate)

    def snap(self, rate: float, bands: int) -> float:
        angle = math.pi / bands
        height, lag = angle * EARTH_RADIUS_KM, self.lag(rate)
        moved = self.ends[-1] * 2.0**-37 + EARTH_RADIUS_KM * 2.0**-44
        moved += 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(self.widest / 2)) * 2.0**-23
        moved += EARTH_RADIUS_KM * 2.0**-46 / math.sin(angle)
        share = moved / height
        even = 2.0**-46 / (0.49 * angle * angle) + bands * 2.0**-38
        need(share < 0.01 and even < 0.2, "there are too many bands")
        lost = (8 * share + math.pi * share * share) / 0.78
        grown = math.exp(rate * (1.88 * height + 2 * moved + 2 * lag))
        edge = math.log1p(lost / (1 - lost) * grown)
        return 0.94 * height + moved + lag + (edge + 2 * even) / (2 * rate)

    def mean(self) -> float:
        far = sum(mass * end for mass, end in paired(self.masses, self.ends[1:]))
        return (far + self.rest * math.pi / 2 * EARTH_RADIUS_KM) / 2**64

    def within(self) -> float:
        """The least end that the quantile lies within."""
        known = paired(accumulate(self.masses), self.ends[1:])
        ends = (end for mass, end in known if mass >= Fraction(QUANTILE) * 2**64)
        return next(ends, math.pi * EARTH_RADIUS_KM)
