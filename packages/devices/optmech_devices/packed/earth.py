"""One packed file for the whole earth: reports private at every point of it, without a prior.

A fix is moved to the centre of its cell, a report is drawn around that, and becomes the number of
the cell that it lies in: cells of one height, in bands of latitude. Everything is computed in
float64 in one order, as docs/packed.md has it, so that every reader gives the same report.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optmech.base.arrays import Bools, Floats, Ints, coordinate_rows, finite_array
from optmech.base.read_only import ReadOnly, frozen
from optmech.base.shown import card
from optmech.certificate.check import Check, CheckReport
from optmech.errors import ProblemError
from optmech.exact.exponentials import stated_down
from optmech.exact.number import Number, from_above, parse_exact
from optmech.exact.sampler import EachBytes, bytes_for, system_bytes
from optmech.problem.promised import Measure
from optmech.reading.sealed import start_of
from optmech.spaces.arguments import checked_arguments, kind
from optmech.spaces.sphere import is_position, sines
from optmech_devices.packed.cbor import typed, untyped
from optmech_devices.packed.file import (
    little_endian,
    one_draw,
    payload_of,
    require_grounded,
    sealed,
    unsealed,
    verified,
    write_file,
)
from optmech_devices.packed.header import (
    DIGEST,
    Accuracy,
    Clause,
    Header,
    Loss,
    differing,
    header_entries,
    read_header,
)
from optmech_devices.packed.sentences import Said, region_words, rounded
from optmech_devices.packed.spherical import (
    LEAST_BANDS,
    MOST_BANDS,
    RADIUS,
    ROUND,
    Rings,
    least_mean,
    made,
)

_START = b"\x64kind\x65earth"
"""The first entry of the header."""
DRAW_BYTES = 19
"""Eight for a ring, six within it, five for a bearing."""
_KIND = "file of the earth"
_CELL = 0.1
"""Height of a cell beside 1/ε where nothing is said."""
_MEASURE = Measure("haversine", "km", "great circle")
_NEAR = 1e-9
_AT_ONCE = 8_000


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
            if cell < self.counts(np.array([band]))[0]:
                return number
        raise ProblemError(f"{str(number)[:40]} is no number of a cell", where="place")

    def counts(self, band: Ints) -> Ints:
        """How many cells bands have."""
        _, flat = sines((band + 0.5) / self.bands * 180 - 90)
        return np.ceil(2 * self.bands * flat).astype(np.int64)

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
        return 2 * self.bands * band + cell

    def of_vectors(self, v: Floats) -> Ints:
        """The cells that vectors (n, 3) point at: by comparisons with sines alone."""

        def above(bands: Ints) -> Bools:
            return sines(bands / self.bands * 180 - 90)[0] <= v[:, 2]

        band = _last(
            above,
            np.full(len(v), self.bands),
            self.bands * (np.arcsin(np.clip(v[:, 2], -1, 1)) / math.pi + 0.5),
        )
        count, west = self.counts(band), (v[:, 1] < 0) | ((v[:, 1] == 0) & (v[:, 0] < 0))

        def eastward(cells: Ints) -> Bools:
            angle = cells / count * 360
            s, c = sines(angle)
            left = c * v[:, 1] - s * v[:, 0] >= 0
            return np.where(west == (angle >= 180), left, west)

        around = np.arctan2(v[:, 1], v[:, 0]) / (2 * math.pi)
        return 2 * self.bands * band + _last(eastward, count, count * (around + (around < 0)))


def _last(fits: Callable[[Ints], Bools], end: Ints, guess: Floats) -> Ints:
    """The last numbers before ``end`` (n,) that fit, as 0 does and those after some do not: near a
    ``guess``, which may be off, and elsewhere by bisection."""
    low, high = np.zeros_like(end), end.copy()
    near = np.clip(np.nan_to_num(guess), 0, end - 1).astype(np.int64)
    for numbers in (near, near + 1):
        up = (numbers == 0) | ((numbers < end) & fits(numbers))
        low = np.where(up, np.maximum(low, numbers), low)
        high = np.where(up, high, np.minimum(high, numbers))
    while (wide := high - low > 1).any():
        middle = (low + high) // 2
        up = fits(middle)
        low, high = np.where(wide & up, middle, low), np.where(wide & ~up, middle, high)
    return low


@kind("Make one with om.devices.Earth.of(…)", words="mechanism for the whole earth")
@frozen
class Earth(Said, ReadOnly):
    """Reports that are private at every point of the earth: between positions that are d km apart
    along great circles, log ratios of reports are at most ε · (d + 2 ``header.snap``).

    No prior is used: of all laws of a report that depend on the distance alone, the density
    e^(-ε d) has the least mean of every rising loss (docs/theory/files.md, "The whole earth in one
    file"), and this is that one in rings of a fiftieth of 1/ε. Make one with ``Earth.of``.

    Examples
    --------
    >>> earth = om.devices.Earth.of("ln 2")
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
    >>> zeros = bytes(earth.draw_bytes)
    >>> earth.report_of(here, zeros) == earth.report(here, zeros)
    True
    >>> earth.number(here) == here  # cells are numbers
    True
    >>> round(earth.accuracy(here))  # metres
    7138
    >>> earth.save("earth.omm")
    >>> om.devices.Earth.load("earth.omm").check().passed
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
    lattice = None
    place_bytes = 8
    draw_bytes = DRAW_BYTES
    """Bytes that a report takes."""

    def __init__(self, content: bytes, where: str = "") -> None:
        """From the content of a plain file; see ``Earth.load``."""
        with verified(where, _KIND, "Make it again (optmech pack --earth)"):
            header, rings, bands = _decoded(content)
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
    def numbers(self) -> int:
        """How many numbers a place may have."""
        return len(self.secrets)

    def number(self, place: Any) -> int:
        """The number of a cell is the cell. Raises ProblemError on what is none."""
        return self.secrets.index(place)

    def __repr__(self) -> str:
        return f"Earth({self.promise.brief}, {self.secrets.bands:,} bands)"

    def _repr_html_(self) -> str:
        return card("Earth", [*self.promise.facts, ("of", self.region)])

    @property
    def region(self) -> str:
        """Where it reports from, in words."""
        return region_words(None, self.secrets.bands)

    @classmethod
    @checked_arguments
    def of(cls, epsilon: Number, *, cell: float | None = None, title: str = "") -> Earth:
        """The file for ``epsilon`` per km (0.01 to 10), with cells of about ``cell`` km, by
        default a tenth of 1/ε. A report is the same for all positions of a cell: for sticky
        reports it should be larger than what a receiver at rest wanders.

        Raises ProblemError where ε is out of range or cells are too small or too large.
        """
        rate = stated_down(parse_exact(epsilon, where="epsilon", positive=True))
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
        title = title or f"Everywhere on earth, ε = {rounded(rate)} per km"
        header = _stated(rate, rings, bands, title, rings.snap(rate, bands))
        body = {
            **header_entries(header),
            "kind": "earth",
            "bands": bands,
            "heights": typed(rings.heights, 86),
            "snap": header.snap,
        }
        return cls(sealed(body, rings.content))

    @classmethod
    @checked_arguments
    def load(cls, path: str | Path, *, signer: str | Path | None = None) -> Earth:
        """Read a file and prove again what it says; ``signer`` as of ``load_packed``. Raises
        ProblemError where it cannot be read, VerificationError where it is not exactly as
        specified, or says what does not hold."""
        return cls(payload_of(path, signer), str(path))

    @checked_arguments
    def save(self, path: str | Path, *, sign: str | Path | None = None) -> None:
        """Write the file, signed with an Ed25519 key where one is named. Raises ProblemError where
        that cannot be done."""
        write_file(path, self._content, sign)

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

    def report(self, place: int | Sequence[float], entropy: bytes | None = None) -> int:
        """A report from a position (longitude, latitude), by the entropy of the operating system;
        or the report that ``draw_bytes`` bytes stand for, of a cell. Raises ProblemError on another
        number of bytes, or what is no cell or position."""
        if not isinstance(place, int | np.integer):
            place = self.locate(place)
        if entropy is None:
            entropy = system_bytes(DRAW_BYTES)
        number = np.array([self.secrets.index(place)])
        return int(self.reports(number, one_draw(entropy, DRAW_BYTES))[0])

    def report_of(self, number: int, entropy: bytes) -> int:
        """The report that ``draw_bytes`` bytes stand for, of a place's number."""
        return self.report(number, entropy)

    @property
    def fingerprint(self) -> bytes:
        """The file's digest."""
        return self.digest

    def cells_of(self, positions: ArrayLike) -> Ints:
        """The numbers of the cells of positions, (n, 2) degrees, as ``locate``."""
        return self.secrets.locate(finite_array(coordinate_rows(positions, 2), where="positions"))

    def centres_of(self, cells: ArrayLike) -> Floats:
        """Longitudes from -180 to 180 and latitudes of the centres of cells, (n, 2)."""
        found = self.secrets.centres(self._whole(cells))
        found[:, 0] -= 360 * (found[:, 0] > 180)
        return found

    def _whole(self, cells: ArrayLike) -> Ints:
        """Numbers that cells may have, (n,). Raises ProblemError on others."""
        found = np.asarray(cells)
        proper = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
        if not proper or ((found < 0) | (found >= len(self.secrets))).any():
            raise ProblemError("are no numbers of cells", where="cells")
        return found.astype(np.int64)

    def draws(self, places: ArrayLike, source: EachBytes) -> Ints:
        """A report for each of ``places`` (n,), with the bytes that ``source`` gives for them."""
        places = self._whole(places)
        out = np.empty(len(places), dtype=np.int64)
        for begin in range(0, len(places), _AT_ONCE):
            part = np.arange(begin, min(begin + _AT_ONCE, len(places)))
            entropy = np.frombuffer(source(part, DRAW_BYTES, 0), np.uint8)
            entropy = entropy.reshape(-1, DRAW_BYTES)
            # what is read of the memory depends on the draw: nobody watches caches over tables
            ring = np.searchsorted(self.rings.words, little_endian(entropy[:, :8]), side="right")
            out[part] = self._from_rings(places[part], ring, entropy)
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
        drawn = little_endian(entropy[:, :8])
        ring = (self.rings.words <= drawn[:, None]).sum(axis=1)
        return self._from_rings(places, ring, entropy)

    def _from_rings(self, places: Ints, ring: Ints, entropy: NDArray[np.uint8]) -> Ints:
        within, turn = map(little_endian, np.split(entropy[:, 8:], (6,), axis=1))
        everywhere = ring == len(self.rings.words)
        edges = np.concatenate([[0.0], self.rings.heights, [0.0]])
        begin = np.where(everywhere, 0.0, edges[ring])
        end = np.where(everywhere, 2.0, edges[ring + 1])
        height = begin + within / 2.0**48 * (end - begin)
        centre = np.where(everywhere[:, None], [0.0, 90.0], self.secrets.centres(places))
        return self.secrets.of_vectors(_led(centre, height, turn * 360.0 / 2.0**40))

    def check(self) -> CheckReport:
        """What was proved when the file was read: the largest log ratio, and its own words."""
        rate, snap = self.header.rate or 0.0, self.header.snap
        detail = (
            f"log ratios at most ε · (d + {from_above(2 * (snap or 0), 4)} km) at every distance d"
        )
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
            unit="km",
        )


def is_earth_file(path: str | Path) -> bool:
    """Whether a file begins like one for the whole earth, plain or signed; False where it cannot be
    read."""
    return _START in start_of(path)


def _led(centre: Floats, height: Floats, bearing: Floats) -> Floats:
    """Where one comes from centres (n, 2) in degrees, by heights and bearings, as vectors."""
    (s, c), (up, flat), (east, north) = sines(centre[:, 0]), sines(centre[:, 1]), sines(bearing)
    sine, cosine = np.sqrt(height * (2 - height)), 1 - height
    n, e = sine * north, sine * east
    x = cosine * (flat * c) - n * (up * c) - e * s
    y = cosine * (flat * s) - n * (up * s) + e * c
    return np.column_stack([x, y, cosine * up + n * flat])


def _stated(rate: float, rings: Rings, bands: int, title: str, snap: float) -> Header:
    """All that follows from the law, the cells and what is promised."""
    clause = Clause(
        kind="metric_privacy",
        scope="every point",
        pairs="all",
        limit=None,
        measure=_MEASURE,
        epsilon=rate,
        delta=None,
        bound=None,
        repeats="adds",
        details={},
    )
    least = least_mean(rate)
    height = math.pi * RADIUS / bands
    # to the centre of a cell, and from a report to that of its own
    way = 2 * ROUND * height
    mean = rings.mean() + way
    return Header(
        title=title,
        promises=(clause,),
        prior=None,
        loss=Loss("mean_distance", least, mean, mean / least - 1),
        design=hashlib.sha256(rings.heights.tobytes() + rings.content).hexdigest(),
        outside="refuse",
        reach=None,
        accuracy=Accuracy(0.95, (1000 * (rings.quantile() + way),)),
        snap=snap,
    )


def _decoded(content: bytes) -> tuple[Header, Rings, int]:
    body, rows = unsealed(content)
    if body["kind"] != "earth" or len(rows) % 8:
        raise ProblemError(f"is no {_KIND}", where="kind")
    bands = body["bands"]
    if type(bands) is not int or not LEAST_BANDS <= bands <= MOST_BANDS:
        raise ProblemError("is out of range", where="bands")
    rings = Rings(untyped(body["heights"], 86), tuple(np.frombuffer(rows, "<u8").tolist()))
    header = read_header(body, 1)
    if header.snap is None:
        raise ProblemError("is no number", where="snap")
    require_grounded(header.promises, None)
    _require_proved(header, rings, bands)
    return header, rings, bands


def _require_proved(header: Header, rings: Rings, bands: int) -> None:
    """Raise ProblemError unless all but the title follows from law and cells."""
    rate, snap = header.rate, header.snap
    if not rate:
        raise ProblemError("is no rate above 0", where="epsilon")
    proved = rings.snap(rate, bands)
    if snap is None or not proved <= snap <= proved * (1 + _NEAR):
        raise ProblemError("is not what the law keeps", where="snap")
    proper = _stated(rate, rings, bands, header.title, snap)
    for name in differing(header, proper, (Loss, Accuracy), _NEAR):
        raise ProblemError("is not that of the law", where=name)
