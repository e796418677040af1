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

from optmech.audit.cbor import array
from optmech.audit.designs import Verdict
from optmech.audit.document import Body, fields, listing, members, stream_of, text, whole
from optmech.audit.numbers import Fault, Real, need, paired, real
from optmech.audit.packed import QUANTILE, SAME, TIMES, content_of, opened, require_same
from optmech.audit.places import EARTH_RADIUS_KM
from optmech.audit.promises import odds_said

EARTH = b"\xd9\xd9\xf7\x84\x70optmech-packed/3"
EARTH_HEADER = ("accuracy/bands/constraints/design/does not promise/heights/kind/loss/outside/"
                "prior/protects/region/snap/title")  # fmt: skip
FARTHEST = 5000.0
ON_EARTH = (
    "A position counts as the centre of its cell, and a report as that of its own: the promise "
    "between positions that are d apart is that for a distance of d + 2 snap.",
    "Distances are those along great circles of a sphere of 6371.0088 km; on the ellipsoid they "
    "differ by up to 0.6 %.",
)


def begins_with(path: str, head: bytes) -> bool:
    """Whether a file does."""
    with stream_of(path) as stream:
        return stream.read(len(head)) == head


def judge_earth(path: str) -> Verdict:
    """The law of the file keeps ε at every two positions, and nothing but the title is its own."""
    head, rows = opened(content_of(path, 2**24), len(EARTH), EARTH_HEADER)
    need(len(rows) % 8 == 0, "is no file for the whole earth")
    sums = struct.unpack(f"<{len(rows) // 8}Q", rows)
    heights, bands = array(head["heights"], 86), whole(head["bands"], 2**22)
    need(bands >= 64, "there are too few bands")
    law = EarthLaw(heights, sums)
    (constraint,) = listing(head["constraints"], 1)
    kind, promise, below, per = members(constraint, "kind promise epsilon per")
    words = text(promise, "the promise")
    number = words.removeprefix("ε = ").partition(" per ")[0]
    rate, epsilon = real(below, 0), stated_number(number)
    need(words == f"ε = {number} per km (haversine), at every point", "it promises something else")
    need(kind == "metric_privacy" and per == "km (haversine)", "another kind")
    need(0.009 < rate <= 10, "ε is out of range")
    # the rate is the float below ε, or ε itself
    need(math.isclose(rate, epsilon.nearest, rel_tol=1e-15), "the rate is not the promised one")
    exact = epsilon.log_of is None and rate == epsilon.factor
    need(exact or rate < epsilon.bounds(128).low, "the rate is above the promised one")
    content = struct.pack(f"<{len(heights)}d", *heights) + rows
    own: Body = {
        "kind": "earth",
        "outside": "refuse",
        "prior": {"words": "none", "date": None},
        "region": f"the whole earth, in {bands:,} bands of latitude",
        "protects": [
            f"metric_privacy: {words}", *odds_said([fields(constraint)], None, real(head["snap"]))
        ],
        "does not promise": [*TIMES[:3], *ON_EARTH],
        "design": hashlib.sha256(content).digest(),
    }  # fmt: skip
    require_same(head, own, "law")
    snap = law.snap(rate, bands)
    need(math.isclose(real(head["snap"], 0), snap, rel_tol=SAME), f"snap is {snap:.12g} km")
    check_earth_figures(head, law, rate, bands)
    return [
        f"{len(sums)} rings and the rest of the earth are a distribution over 2^64",
        f"between positions d km apart log ratios are at most {number} · (d + {2 * snap:.6g})",
        "its sentences, accuracy and mean distance are those of the law",
    ], "title"


def stated_number(number: str) -> Real:
    """ε in words: as in designs, or a float as it is written."""
    try:
        return Real.read(number)
    except Fault:
        value = float(number)
        need(repr(value) == number and value > 0, f"{number!a}: no number")
        return Real(Fraction(value))


def check_earth_figures(head: Body, law: EarthLaw, rate: float, bands: int) -> None:
    """The mean distance, the least that there is, and the radius that 95 % are within."""
    k = rate * EARTH_RADIUS_KM
    tail = math.pi / (math.exp(k * math.pi) + 1) if k < 200 else 0.0
    least = EARTH_RADIUS_KM * (2 * k / (1 + k * k) + tail)
    way = 1.88 * math.pi / bands * EARTH_RADIUS_KM
    objective, *said = members(head["loss"], "objective design packed increase")
    need(objective == "mean distance in km, at most", "the loss is another")
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
