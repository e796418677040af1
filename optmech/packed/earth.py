"""One packed file for the whole earth: reports private at every point of it, without a prior.

A fix is moved to the centre of its cell, a report is drawn around that, and becomes the number of
the cell that it lies in: cells of one height, in bands of latitude. Everything is computed in
float64 in one order, as docs/packed.md has it, so that every reader gives the same report.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.read_only import ReadOnly, frozen
from optmech.base.shown import card
from optmech.base.storage import refuse_unwritable, write_atomically
from optmech.certificate.check import Check, CheckReport
from optmech.errors import OptmechError, ProblemError, VerificationError
from optmech.exact.checked import require_keys
from optmech.exact.number import Exact, Number, parse_exact, rounded_down
from optmech.exact.sampler import EachBytes, bytes_for
from optmech.packed.cbor import Tag, decode, encode, typed, untyped
from optmech.packed.header import (
    COMMON,
    DIGEST,
    Accuracy,
    Header,
    Loss,
    header_entries,
    read_header,
)
from optmech.packed.spherical import (
    LEAST_BANDS,
    MOST_BANDS,
    RADIUS,
    ROUND,
    Rings,
    least_mean,
    made,
)
from optmech.packed.words import EARTH, least_above
from optmech.reading.bounded import read_start
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.sphere import is_position, sines

FORMAT = "optmech-packed/3"
START = b"\xd9\xd9\xf7\x84\x70" + FORMAT.encode()
DRAW_BYTES = 19
"""Eight for a ring, six within it, five for a bearing."""
_CBOR = 55799
_KEYS = COMMON | {"kind", "bands", "heights", "snap"}
_CELL = 0.1
"""Height of a cell beside 1/ε where nothing is said."""
_REGION = "the whole earth, in {} bands of latitude"
_PER = "km (haversine)"
_NEAR = 1e-9
_AT_ONCE = 2_000
_START = 48
"""Bytes that have the format in them, also behind the head of a signed file."""


@dataclass(frozen=True)
class Cells(ReadOnly):
    """Cells of the earth, by their numbers: cell c of band k is number 2 k ``bands`` + c, bands
    from the south pole on, cells eastward from the meridian of Greenwich; not all numbers are
    cells."""

    bands: int

    @property
    def labels(self) -> range:
        """All numbers that a cell might have."""
        return range(len(self))

    def __len__(self) -> int:
        return 2 * self.bands * self.bands

    def index(self, number: object) -> int:
        """The number itself. Raises ProblemError on what is no cell."""
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(self):
            band, cell = divmod(number, 2 * self.bands)
            if cell < int(self.counts(np.array([band]))[0]):
                return number
        raise ProblemError(f"{str(number)[:40]} is no number of a cell", where="place")

    def counts(self, band: Ints) -> Ints:
        """How many cells bands have."""
        _, flat = sines((band + 0.5) / self.bands * 180 - 90)
        return np.asarray(np.ceil(2 * self.bands * flat).astype(np.int64))

    def centres(self, numbers: Ints) -> Floats:
        """Longitudes from 0 to 360 and latitudes of cells, (n, 2)."""
        band, cell = np.divmod(numbers, 2 * self.bands)
        longitude = (cell + 0.5) / self.counts(band) * 360
        return np.column_stack([longitude, (band + 0.5) / self.bands * 180 - 90])

    def locate(self, positions: Floats) -> Ints:
        """The cells of positions, (n, 2) degrees."""
        band = np.floor((positions[:, 1] + 90) / 180 * self.bands).astype(np.int64)
        band = np.minimum(band, self.bands - 1)
        x = np.fmod(positions[:, 0], 360.0)
        x = np.where(x < 0, x + 360, x)
        count = self.counts(band)
        cell = np.minimum(np.floor(x / 360 * count).astype(np.int64), count - 1)
        return np.asarray(2 * self.bands * band + cell)

    def of_vectors(self, v: Floats) -> Ints:
        """The cells that vectors (n, 3) point at: by comparisons with sines alone."""
        low, high = np.zeros(len(v), dtype=np.int64), np.full(len(v), self.bands)
        while (high - low > 1).any():
            middle = (low + high) // 2
            up = sines(middle / self.bands * 180 - 90)[0] <= v[:, 2]
            low, high = np.where(up, middle, low), np.where(up, high, middle)
        count, band = self.counts(low), low
        west = (v[:, 1] < 0) | ((v[:, 1] == 0) & (v[:, 0] < 0))
        low, high = np.zeros(len(v), dtype=np.int64), count
        while (high - low > 1).any():
            middle = (low + high) // 2
            angle = middle / count * 360
            s, c = sines(angle)
            left = c * v[:, 1] - s * v[:, 0] >= 0
            up = np.where(west == (angle >= 180), left, west) & (high - low > 1)
            stays = high - low <= 1
            low = np.where(up, middle, low)
            high = np.where(up | stays, high, middle)
        return np.asarray(2 * self.bands * band + low)


@frozen
class Earth(ReadOnly):
    """Reports that are private at every point of the earth: between positions that are d km apart
    along great circles, log ratios of reports are at most ε · (d + 2 ``header.snap``).

    No prior is used: of all laws of a report that depend on the distance alone, the density
    e^(-ε d) has the least mean of every rising loss (docs/theory.md, "The whole earth in one
    file"), and this is that one in rings of a fiftieth of 1/ε. Make one with ``Earth.of``.

    Examples
    --------
    >>> earth = om.Earth.of("ln 2")
    >>> here = earth.locate((16.37, 48.21))
    >>> where = earth.coordinates(earth.sample(here))
    >>> round(earth.header.loss.packed, 1)  # km from the position, on average, at most
    3.2
    >>> where == earth.coordinates(earth.locate(where))  # a report is the centre of a cell
    True
    >>> 0 <= earth.report(here, bytes(earth.draw_bytes)) < len(earth.secrets)
    True
    >>> earth.reports(np.array([here, here]), np.zeros((2, earth.draw_bytes), np.uint8)).shape
    (2,)
    >>> round(earth.accuracy(here))  # metres
    7138
    >>> earth.save("earth.omm")
    >>> om.Earth.load("earth.omm").check().passed
    True
    >>> cells = earth.cells_of(np.array([[16.37, 48.21], [2.35, 48.86]]))  # of many positions
    >>> earth.centres_of(cells).round(1).tolist()
    [[16.4, 48.2], [2.3, 48.9]]
    >>> earth.draws(cells, lambda rows, count, _: bytes(count * len(rows))).shape
    (2,)
    """

    header: Header
    rings: Rings
    secrets: Cells
    digest: bytes
    _content: bytes

    def __init__(self, content: bytes, where: str = "") -> None:
        """From the content of a plain file; see ``Earth.load``."""
        header, rings, bands = _read(content, where)
        vars(self).update(
            header=header,
            rings=rings,
            secrets=Cells(bands),
            digest=content[-DIGEST:],
            _content=content,
        )

    @property
    def observables(self) -> Cells:
        """Reports are cells, as places are."""
        return self.secrets

    @property
    def draw_bytes(self) -> int:
        """Bytes that a report takes."""
        return DRAW_BYTES

    def __repr__(self) -> str:
        return f"Earth({self.header.protects[0]}, {self.secrets.bands:,} bands)"

    def _repr_html_(self) -> str:
        return card("Earth", [("protects", self.header.protects[0]), ("of", self.header.region)])

    @classmethod
    @checked_arguments
    def of(cls, epsilon: Number, *, cell: float | None = None, title: str = "") -> Earth:
        """The file for ``epsilon`` per km (0.01 to 10), with cells of about ``cell`` km, by
        default a tenth of 1/ε. A report is the same for all positions of a cell: for sticky
        reports it should be larger than what a receiver at rest wanders.

        Raises ProblemError where ε is out of range or cells are too small or too large.
        """
        given = parse_exact(epsilon, where="epsilon", positive=True)
        # what the file says in words is what it promises
        exact = parse_exact(str(given.text), where="epsilon", positive=True)
        rate = _rate(exact)
        rings = made(rate)
        size = _CELL / rate if cell is None else float(cell)
        if not size > 0 or not LEAST_BANDS <= math.pi * RADIUS / size <= MOST_BANDS:
            raise ProblemError(
                f"{size:g} km is out of range",
                where="cell",
                remedy=f"Give {math.pi * RADIUS / MOST_BANDS:.2g} to "
                f"{math.pi * RADIUS / LEAST_BANDS:.0f} km",
            )
        bands = round(math.pi * RADIUS / size)
        header = _header(exact, rings, bands, title or f"Everywhere on earth, {_said(exact)}")
        return cls(_written(header, rings, bands))

    @classmethod
    @checked_arguments
    def load(cls, path: str | Path, *, signer: str | Path | None = None) -> Earth:
        """Read a file and prove again what it says; ``signer`` as of ``load_packed``. Raises
        ProblemError where it cannot be read, VerificationError where it is not exactly as
        specified, or says what does not hold."""
        from optmech.packed.load import payload_of

        return cls(payload_of(path, signer), str(path))

    @checked_arguments
    def save(self, path: str | Path, *, sign: str | Path | None = None) -> None:
        """Write the file, signed with an Ed25519 key where one is named. Raises ProblemError where
        that cannot be done."""
        refuse_unwritable(path)
        content = self._content
        if sign is not None:
            from optmech.packed.file import sign as signed

            content = signed(content, sign)
        write_atomically(path, content)

    def locate(self, position: Sequence[float]) -> int:
        """The number of the cell of a position (longitude, latitude) in degrees. Raises
        ProblemError on what is none."""
        where = finite_array(position, where="position", ndim=1)
        if len(where) != 2 or not is_position(where[None], True)[0]:
            raise ProblemError("is no longitude and latitude", where="position")
        return int(self.secrets.locate(where[None])[0])

    def coordinates(self, place: int) -> tuple[float, float]:
        """Longitude (-180 to 180) and latitude of the centre of a cell, in degrees."""
        x, y = self.centres_of(np.array([self.secrets.index(place)]))[0].tolist()
        return x, y

    def accuracy(self, place: int) -> float:
        """Metres within which the position is from a report, with the header's probability."""
        self.secrets.index(place)
        assert self.header.accuracy is not None
        return self.header.accuracy.radius[0]

    def report(self, place: int, entropy: bytes) -> int:
        """The report that ``draw_bytes`` bytes stand for. Raises ProblemError on another number of
        bytes, or what is no cell."""
        if not isinstance(entropy, bytes) or len(entropy) != DRAW_BYTES:
            raise ProblemError(f"a draw takes {DRAW_BYTES} bytes", where="entropy")
        number = np.array([self.secrets.index(place)])
        return int(self.reports(number, np.frombuffer(entropy, np.uint8)[None])[0])

    @property
    def fingerprint(self) -> bytes:
        """The file's digest."""
        return self.digest

    def cells_of(self, positions: Floats) -> Ints:
        """The numbers of the cells of positions, (n, 2) degrees, as ``locate``."""
        return self.secrets.locate(positions)

    def centres_of(self, cells: Ints) -> Floats:
        """Longitudes from -180 to 180 and latitudes of the centres of cells, (n, 2)."""
        found = self.secrets.centres(cells)
        found[:, 0] -= 360 * (found[:, 0] > 180)
        return found

    def draws(self, places: Ints, source: EachBytes) -> Ints:
        """A report for each of ``places`` (n,), with the bytes that ``source`` gives for them."""
        out = np.empty(len(places), dtype=np.int64)
        for begin in range(0, len(places), _AT_ONCE):
            part = np.arange(begin, min(begin + _AT_ONCE, len(places)))
            entropy = np.frombuffer(source(part, DRAW_BYTES, 0), np.uint8)
            out[part] = self.reports(places[part], entropy.reshape(-1, DRAW_BYTES))
        return out

    def sample(self, place: int, size: int | None = None, seed: int | None = None) -> Any:
        """A report for a cell, or a list of ``size`` of them, from the entropy of the operating
        system. A ``seed`` makes them reproducible, and therefore unfit for release."""
        count, source = bytes_for(size, seed)
        drawn = np.frombuffer(source(count * DRAW_BYTES), np.uint8).reshape(count, DRAW_BYTES)
        found = self.reports(np.full(count, self.secrets.index(place)), drawn).tolist()
        return found[0] if size is None else found

    def reports(self, places: Ints, entropy: NDArray[np.uint8]) -> Ints:
        """A report for each of ``places`` (n,) and row of ``entropy`` (n, draw_bytes)."""
        words = np.zeros((len(entropy), 3, 8), dtype=np.uint8)
        words[:, 0] = entropy[:, :8]
        words[:, 1, :6] = entropy[:, 8:14]
        words[:, 2, :5] = entropy[:, 14:]
        drawn, within, turn = words.view("<u8")[:, :, 0].T
        ring = (self._sums <= drawn[:, None]).sum(axis=1)
        everywhere = ring == len(self._sums)
        edges = np.concatenate([[0.0], self.rings.heights, [0.0]])
        begin = np.where(everywhere, 0.0, edges[ring])
        end = np.where(everywhere, 2.0, edges[ring + 1])
        height = begin + within / 2.0**48 * (end - begin)
        centre = np.where(everywhere[:, None], [0.0, 90.0], self.secrets.centres(places))
        return self.secrets.of_vectors(_led(centre, height, turn * 360.0 / 2.0**40))

    @cached_property
    def _sums(self) -> NDArray[np.uint64]:
        return np.array(self.rings.sums, dtype=np.uint64)

    def check(self) -> CheckReport:
        """What was proved when the file was read: the largest log ratio, and its own words."""
        rate, snap = self.header.constraints[0]["epsilon"], self.header.snap
        detail = f"log ratios at most ε · (d + {2 * (snap or 0):.4g} km) at every distance d"
        checks = (Check("every point", 0, len(self.rings.densities), True, 1.0, detail),)
        loss = self.header.loss
        return CheckReport(
            path="",
            status="packed",
            checks=checks,
            objective=loss.packed,
            bound=loss.design,
            gap=loss.increase,
            loss=loss.packed,
            lower_bound=least_mean(rate),
            faults=(),
            notes=("not checked, as it is the file's own word: title",),
        )


def is_earth_file(path: str | Path) -> bool:
    """Whether a file begins like one for the whole earth, plain or signed; False where it cannot be
    read."""
    try:
        return START in read_start(path, _START)
    except ProblemError:
        return False


def _led(centre: Floats, height: Floats, bearing: Floats) -> Floats:
    """Where one comes from centres (n, 2) in degrees, by heights and bearings, as vectors."""
    (s, c), (up, flat), (east, north) = sines(centre[:, 0]), sines(centre[:, 1]), sines(bearing)
    sine, cosine = np.sqrt(height * (2 - height)), 1 - height
    n, e = sine * north, sine * east
    x = cosine * (flat * c) - n * (up * c) - e * s
    y = cosine * (flat * s) - n * (up * s) + e * c
    return np.column_stack([x, y, cosine * up + n * flat])


def _rate(exact: Exact) -> float:
    """The float that is proved: not above ε."""
    found = least_above(exact)
    if exact.log_of is None and rounded_down(exact.factor) == found:
        return found
    return math.nextafter(found, 0.0)


def _said(exact: Exact) -> str:
    return f"ε = {exact.text} per {_PER}, at every point"


def _header(exact: Exact, rings: Rings, bands: int, title: str) -> Header:
    rate = _rate(exact)
    snap = rings.snap(rate, bands)
    said = _said(exact)
    constraint = {"kind": "metric_privacy", "promise": said, "epsilon": rate, "per": _PER}
    return _stated(rings, bands, title, constraint, snap)


def _stated(
    rings: Rings, bands: int, title: str, constraint: dict[str, Any], snap: float
) -> Header:
    """All that follows from the law, the cells and what is promised."""
    least = least_mean(constraint["epsilon"])
    height = math.pi * RADIUS / bands
    # to the centre of a cell, and from a report to that of its own
    way = 2 * ROUND * height
    mean = rings.mean() + way
    law = hashlib.sha256(rings.heights.tobytes() + _bytes(rings)).hexdigest()
    return Header(
        title=title,
        protects=(f"{constraint['kind']}: {constraint['promise']}",),
        does_not_promise=EARTH,
        constraints=(constraint,),
        region=_REGION.format(f"{bands:,}"),
        prior="none",
        prior_date=None,
        loss=Loss("mean distance in km, at most", least, mean, mean / least - 1),
        design=law,
        outside="refuse",
        reach=None,
        accuracy=Accuracy(0.95, (1000 * (rings.quantile() + way),)),
        snap=snap,
    )


def _bytes(rings: Rings) -> bytes:
    return np.array(rings.sums, dtype="<u8").tobytes()


def _written(header: Header, rings: Rings, bands: int) -> bytes:
    body = {
        **header_entries(header),
        "kind": "earth",
        "bands": bands,
        "heights": typed(rings.heights, 86),
        "snap": header.snap,
    }
    parts = [FORMAT, encode(body), _bytes(rings), bytes(DIGEST)]
    head = encode(Tag(_CBOR, parts))[:-DIGEST]
    return head + hashlib.sha256(head).digest()


def _read(content: bytes, where: str) -> tuple[Header, Rings, int]:
    """Header, law and bands of a file, proved."""
    try:
        return _decoded(content)
    except OptmechError as error:
        place = ": ".join(part for part in (where, error.where) if part)
        remedy = "Make it again (optmech pack --earth)"
        raise VerificationError(error.message, where=place, remedy=remedy) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        said = f"is no file of the earth: {type(error).__name__} {str(error)[:200]}"
        raise VerificationError(said, where=where, remedy="Make it again") from error


def _decoded(content: bytes) -> tuple[Header, Rings, int]:
    if not content.startswith(START):
        raise ProblemError("is no file of the earth")
    _, inner, rows, digest = decode(content).value
    if not all(isinstance(part, bytes) for part in (inner, rows, digest)):
        raise ProblemError("is no file of the earth")
    if digest != hashlib.sha256(content[:-DIGEST]).digest():
        raise ProblemError("the content does not match its digest: the file was altered")
    body = decode(inner)
    require_keys(body, _KEYS, "header")
    bands = body["bands"]
    if type(bands) is not int or not LEAST_BANDS <= bands <= MOST_BANDS:
        raise ProblemError("is out of range", where="bands")
    if body["kind"] != "earth" or len(rows) % 8:
        raise ProblemError("is of another kind", where="kind")
    rings = Rings(untyped(body["heights"], 86), tuple(np.frombuffer(rows, "<u8").tolist()))
    header = read_header(body, 1)
    if header.snap is None:
        raise ProblemError("is no number", where="snap")
    _require_proved(header, rings, bands)
    return header, rings, bands


def _require_proved(header: Header, rings: Rings, bands: int) -> None:
    """Raise ProblemError unless all but the title follows from law and cells."""
    (constraint,) = header.constraints
    rate, promise, snap = constraint["epsilon"], constraint["promise"], header.snap
    words = promise.removeprefix("ε = ").partition(" per ")[0]
    exact = parse_exact(words, where="epsilon", positive=True)
    if rate is None or not 0 < rate <= least_above(exact) or _rate(exact) != rate:
        raise ProblemError("is not the rate that is promised", where="epsilon")
    proved = rings.snap(rate, bands)
    assert snap is not None
    if not proved <= snap <= proved * (1 + _NEAR):
        raise ProblemError("is not what the law keeps", where="snap")
    own = {"kind": "metric_privacy", "promise": _said(exact), "epsilon": rate, "per": _PER}
    proper = _stated(rings, bands, header.title, own, snap)
    for name, value in vars(proper).items():
        said = getattr(header, name)
        if isinstance(value, Loss | Accuracy):
            near = _figures(said), _figures(value)
            if (
                said is None
                or near[0][0] != near[1][0]
                or not np.allclose(near[0][1], near[1][1], rtol=_NEAR, atol=_NEAR)
            ):
                raise ProblemError("is not that of the law", where=name)
        elif said != value:
            raise ProblemError("is not that of the law", where=name.replace("_", " "))


def _figures(part: Loss | Accuracy | None) -> tuple[object, list[float]]:
    """What has to be equal, and what only nearly."""
    if isinstance(part, Loss):
        return part.objective, [part.design, part.packed, part.increase]
    return (None, []) if part is None else (part.quantile, list(part.radius))
