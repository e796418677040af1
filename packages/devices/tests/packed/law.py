"""Many draws of packed files of every kind in three languages:
``python packages/devices/tests/packed/law.py``.

Python, JavaScript and C get the same recorded bytes (SHAKE-256 of a seed) for the same places and
positions. Every draw has to be the same report in all three, and the counts have to follow the
file's law, which is computed here from the bytes of the file alone: rows as cbor2 reads them; at a
point of a mesh their mixture in fractions; of the whole earth by quadrature.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import optmech_devices
from optmech_devices.packed.earth import is_earth_file
from scipy.stats import chi2

import optmech as om

sys.path.insert(0, str(Path(__file__).parents[1]))
from packed.native import Native, built
from packed.test_earth import Law

HERE = Path(__file__).parent
CLIENT = Path(optmech_devices.__file__).parent / "client"
SOURCES = 12
"""Places or positions of each file."""
AT_ONCE = 2_000
LEAST = 20
"""Draws that are expected of a report; rarer ones are counted together."""


@dataclass
class Found:
    """What the draws of a file were."""

    name: str
    kind: str
    draws: int
    differing: int
    """Draws that are not the same in all three."""
    statistic: float
    degrees: int
    impossible: int
    """Reports that the law never makes."""

    @property
    def p(self) -> float:
        return float(chi2.sf(self.statistic, self.degrees)) if self.degrees else 1.0


def files() -> list[Path]:
    """The committed files of every kind."""
    return sorted((HERE / "vectors").glob("*.omm"))


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and rows of a plain file."""
    _, inner, rows, _ = cbor2.loads(path.read_bytes())
    return cbor2.loads(inner), rows


def words(tagged: Any) -> list[int]:
    return np.frombuffer(tagged.value, "<u4").tolist()


def entries(header: dict[str, Any], rows: bytes) -> list[list[int]]:
    """The whole numbers of the rows."""
    width, count = header["width"], len(header["columns"].value) // 4
    own = [int.from_bytes(rows[k : k + width], "little") for k in range(0, len(rows), width)]
    return [own[k : k + count] for k in range(0, len(own), count)]


def lattice_of(path: Path) -> Any:
    """Where the reports of a mesh repeat."""
    return om.load_packed(path).lattice


def sources_of(path: Path, rng: random.Random, lattice: bool = False) -> list[Any]:
    """Numbers of places, or positions of meshes, also outside, on both sides of 180 degrees."""
    header, _ = read(path)
    if lattice:
        count = math.prod(lattice_of(path).shape)
        return [0, count - 1, *rng.sample(range(count), SOURCES - 2)]
    if header.get("kind") == "earth":
        earth = om.Earth.load(path)
        fixed = [[16.37, 48.21], [180.0, -17.0], [-180.0, 70.0], [5.0, 90.0], [5.0, -90.0]]
        return [earth.locate(position) for position in fixed]
    if "mesh" not in header:
        count = len(words(header["row of"]))
        return sorted(rng.sample(range(count), min(SOURCES, count)))
    points = np.frombuffer(header["mesh"]["vertices"].value, "<f8").reshape(-1, 2)
    low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    inside = [list(map(rng.uniform, low, high)) for _ in range(SOURCES - 1)]
    return [*inside, [high[0] + 0.3, high[1] + 0.2]]


def point_of(found: Any, number: int) -> tuple[int, tuple[int, ...]]:
    """Triangle or segment and weights of a point of the lattice."""
    if not found.mesh.is_region:
        segment, weights = found.lattice.point(number)
        return int(segment), weights
    row, column = divmod(number, found.lattice.shape[0])
    point = found.lattice.points(np.array([[column, row]]))
    (triangle,), (weights,) = found._parts.places.of(point, "nearest")
    return int(triangle), tuple(weights.tolist())


def law_of(path: Path, source: Any) -> dict[int, Fraction]:
    """Probabilities of the reports for a place or at a position; -1 is no report."""
    header, rows = read(path)
    own, columns = entries(header, rows), words(header["columns"])
    total = 1 << header["bits"]
    if "mesh" not in header:
        row = own[words(header["row of"])[source]]
        return {c: Fraction(n, total) for c, n in zip(columns, row, strict=True)}
    found = om.load_packed(path)
    # what a point outside of the region stands for is next to it on the border
    place = point_of(found, source) if isinstance(source, int) else found.locate(source)
    if place is None:
        return {-1: Fraction(1)}
    degree, (triangle, weights) = header["mesh"].get("degree", 1), place
    corners = len(weights)
    per = (degree + 1) * (degree + 2) // 2 if corners == 3 else 2
    control = words(header["mesh"]["rows"])[triangle * per : (triangle + 1) * per]
    counts = [(degree - a1 - a2, a1, a2)
              for a2 in range(degree + 1) for a1 in range(degree + 1 - a2)]  # fmt: skip
    mixed = dict.fromkeys(columns, Fraction(0))
    for alpha, row_number in zip(counts[:per], control, strict=True):
        share = Fraction(math.factorial(degree))
        for a, w in zip(alpha[:corners], weights, strict=True):
            share *= Fraction(w, 1 << 24) ** a / math.factorial(a)
        for c, n in zip(columns, own[row_number], strict=True):
            mixed[c] += share * Fraction(n, total)
    assert sum(mixed.values()) == 1
    return mixed


def judged(path: Path, sources: list[Any], chosen: Any, reports: Any) -> tuple[float, int, int]:
    """χ², its degrees of freedom, and how many reports are impossible."""
    statistic, degrees, impossible = 0.0, 0, 0
    earth = om.Earth.load(path) if is_earth_file(path) else None
    law = None if earth is None else Law(earth)
    for k, source in enumerate(sources):
        own, seen = np.unique(reports[chosen == k], return_counts=True)
        counts = dict(zip(own.tolist(), seen.tolist(), strict=True))
        draws = int(seen.sum())
        if earth is not None and law is not None:
            centre = np.array(earth.coordinates(source))
            pairs = []
            for number, count in counts.items():
                if count < LEAST / 2:
                    continue
                expected = draws * law.chance(centre, divmod(number, 2 * law.bands))
                if expected > LEAST:
                    pairs.append((count, expected))
        else:
            found = {c: draws * float(p) for c, p in law_of(path, source).items()}
            impossible += sum(n for c, n in counts.items() if not found.get(c))
            pairs = [(counts.get(c, 0), e) for c, e in found.items() if e > LEAST]
        rest = draws - sum(n for n, _ in pairs), draws - sum(e for _, e in pairs)
        pairs += [rest] * (rest[1] > LEAST)
        statistic += sum((n - e) ** 2 / e for n, e in pairs)
        degrees += len(pairs) - 1
    return statistic, degrees, impossible


# -- three languages -----------------------------------------------------------------------------


def recorded(path: Path, sources: list[Any], draws: int, seed: int) -> tuple[Any, Any, bytes]:
    """Which source every draw is for, its bytes (n, draw_bytes), and both as files have them."""
    mechanism = om.Earth.load(path) if is_earth_file(path) else om.load_packed(path)
    size = mechanism.draw_bytes
    own = hashlib.shake_256(f"{seed} {path.name}".encode()).digest(draws * (size + 4))
    table = np.frombuffer(own, np.uint8).reshape(draws, size + 4)
    drawn = table[:, :4].copy().view("<u4")[:, 0]
    # finding the nearest point of a border takes C some milliseconds: the last one less often
    chosen = np.where(drawn >> 26 == 0, len(sources) - 1, drawn % max(len(sources) - 1, 1))
    form = "<I" if "row of" in read(path)[0] else "<Q"
    heads = [struct.pack("<dd", *s) if isinstance(s, list) else struct.pack(form, s)
             for s in sources]  # fmt: skip
    width = len(heads[0])
    lines = np.empty((draws, width + size), dtype=np.uint8)
    lines[:, :width] = np.frombuffer(b"".join(heads), np.uint8).reshape(-1, width)[chosen]
    lines[:, width:] = table[:, 4:]
    return chosen, table[:, 4:], lines.tobytes()


def parts_of(rows: Any) -> Iterator[Any]:
    for begin in range(0, len(rows), AT_ONCE):
        yield rows[begin : begin + AT_ONCE]


def in_python(path: Path, sources: list[Any], chosen: Any, entropy: Any) -> Any:
    out = np.full(len(chosen), -1, dtype=np.int64)
    if is_earth_file(path):
        earth = om.Earth.load(path)
        for part in parts_of(np.arange(len(chosen))):
            out[part] = earth.reports(np.array(sources)[chosen[part]], entropy[part])
        return out
    found = om.load_packed(path)
    of_mesh = isinstance(found, om.PackedEverywhere)
    number = {label: k for k, label in enumerate(found.observables.labels)}
    for k, source in enumerate(sources):
        if isinstance(source, int) and of_mesh:
            for j in np.flatnonzero(chosen == k).tolist():
                out[j] = number[found.report_of(source, entropy[j].tobytes())]
            continue
        place = found.secrets.labels[source] if not of_mesh else found.locate(source)
        if of_mesh and place is None:
            continue
        for part in parts_of(np.flatnonzero(chosen == k)):
            out[part] = [number[label] for label in found.reports(place, entropy[part])]
    return out


def in_javascript(path: Path, draws: Path, lattice: bool) -> Any:
    out = draws.with_suffix(".reports")
    node = ["node", str(HERE / "law.mjs"), str(CLIENT), str(path), str(draws), str(out)]
    subprocess.run([*node, *["lattice"] * lattice], check=True)
    return np.frombuffer(out.read_bytes(), "<f8").astype(np.int64)


def in_c(path: Path, draws: Path, reader: Native, lattice: bool) -> Any:
    assert reader.open(path) is not None
    asked = reader.ask("many", draws, *["lattice"] * lattice)
    return np.array([int(part) for part in asked.split()])


def run(
    draws: int, seed: int = 1, names: list[Path] | None = None, program: Path | None = None
) -> Iterator[Found]:
    """Draws of each file, in all three languages; of meshes also where reports repeat. The reader
    in C is built unless its ``program`` is given."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        reader = Native(program or built(folder, "-O2"))
        for path in files() if names is None else names:
            header, _ = read(path)
            for lattice in (False, True)[: 2 if "mesh" in header else 1]:
                sources = sources_of(path, random.Random(f"{seed} {path.name}"), lattice)
                chosen, entropy, lines = recorded(path, sources, draws, seed)
                many = folder / f"{path.name}.draws"
                many.write_bytes(lines)
                own = in_python(path, sources, chosen, entropy)
                others = in_javascript(path, many, lattice), in_c(path, many, reader, lattice)
                differing = int(((own != others[0]) | (own != others[1])).sum())
                kind = "lattice" if lattice else header.get("kind") or header["secrets"]["kind"]
                figures = judged(path, sources, chosen, own)
                yield Found(path.name, kind, draws, differing, *figures)
        reader.close()


def main() -> int:
    """0 where all three languages give the same reports, with the law of the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000, help="of each file")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    wrong = 0
    for found in run(args.draws, args.seed):
        fits = f"χ² = {found.statistic:.1f} of {found.degrees:,}, p = {found.p:.3f}"
        print(
            f"{found.name:14} {found.kind:8} {found.draws:,} draws, differing {found.differing}, "
            f"impossible {found.impossible}, {fits}",
            flush=True,
        )
        wrong += bool(found.differing or found.impossible or found.p < 1e-4)
    return min(wrong, 1)


if __name__ == "__main__":
    begun = time.perf_counter()
    status = main()
    print(f"{time.perf_counter() - begun:.0f} s")
    sys.exit(status)
