"""The reader in C: the committed answers, the exact law, and nothing beyond its memory."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import os
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from optmech_devices.packed.cbor import decode, encode
from optmech_devices.packed.places import encode_places
from packed import native
from packed.readers import sealed
from packed.test_client import STATED, VECTORS, folder as folder, mesh_reports, reports
from scipy.stats import chi2

import optmech as om
from optmech.cli.main import main

EARTH = json.loads((VECTORS / "earth.json").read_text())

pytestmark = pytest.mark.skipif(native.compiler() is None, reason="no compiler of C")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native.built(tmp_path_factory.mktemp("c"))


@pytest.fixture
def reader(program: Path) -> Iterator[native.Native]:
    found = native.Native(program)
    yield found
    found.close()


@pytest.mark.parametrize("name", STATED["files"])
def test_the_committed_answers(name: str, reader: native.Native) -> None:
    stated = STATED["files"][name]
    _, size, _, _ = reader.open(VECTORS / name)
    for place, entropy, report in stated["draws"]:
        assert reader.draw(place, bytes.fromhex(entropy)) == report
    for position, place in stated["positions"]:
        assert reader.locate(position) == place
    own = {report: part for report, *part in reader.reports()}
    for report, where, accuracy in stated["reports"]:
        assert own[report] == [where, accuracy]
    key = bytes.fromhex(STATED["key"])
    for place, epoch, entropy in stated["sticky"]:
        drawn, report = reader.ask("sticky", key.hex(), place, epoch).split()
        assert drawn == entropy
        assert reader.draw(place, bytes.fromhex(entropy)) == int(report)
        digest = (VECTORS / name).read_bytes()[-32:]
        message = b"optmech-sticky/1" + digest + struct.pack("<IQ", place, int(epoch))
        assert hmac.new(key, message, hashlib.sha256).digest()[:size].hex() == drawn


@pytest.mark.parametrize(
    ("name", "level"),
    [("gcc", "-O0"), ("gcc", "-O3"), ("gcc", "-Os"), ("clang", "-O2"), ("clang", "-O3")],
)
def test_every_compiler_makes_the_same_of_it(
    name: str, level: str, folder: Path, tmp_path: Path
) -> None:
    """At levels of optimisation that differ most: all files are read, and the draws at positions
    are those of Python. (GCC 12.2 made wrong vectors of a loop once, which no sanitizer sees.) The
    first hundreds of positions of each mesh are within and on every side of it; the sanitizers see
    them all."""
    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    reader = native.Native(native.built(tmp_path, level, compiler_=name))
    for path in sorted(VECTORS.glob("*.omm")):
        assert reader.open(path) is not None, path
    for name in STATED["refused"]:
        (tmp_path / "m.omm").write_bytes(bytes.fromhex(STATED["refused"][name]))
        assert reader.open(tmp_path / "m.omm") is None, name
    for name in ["grid.omm", "points.omm"]:
        reader.open(folder / name)
        found = [int(part) for part in reader.ask("many", folder / f"{name}.draws").split()]
        assert found == reports(folder, name)
    for name in STATED["meshes"]:
        _, size, _, _ = reader.open(folder / name)
        first = (folder / f"{name}.draws").read_bytes()[: 300 * (16 + size)]
        (tmp_path / "first").write_bytes(first)
        found = [int(part) for part in reader.ask("many", tmp_path / "first").split()]
        assert found == mesh_reports(folder, name)[:300]
    reader.close()


@pytest.mark.parametrize("name", STATED["meshes"])
def test_the_committed_answers_at_positions(name: str, reader: native.Native) -> None:
    stated = STATED["meshes"][name]
    reader.open(VECTORS / name)
    for position, entropy, report in stated["draws"]:
        assert reader.at(position, bytes.fromhex(entropy))[1] == report
    for position, place in stated["positions"]:
        assert reader.at(position, bytes(24))[0] == place
    own = {report: part for report, *part in reader.reports()}
    for report, where, accuracy in stated["reports"]:
        assert own[report] == [where, accuracy]
    for position, place in stated["places"]:
        assert reader.locate(position) == place
    for place, epoch, entropy, report in stated["sticky"]:
        assert reader.ask("sticky", STATED["key"], place, epoch) == f"{entropy} {report}"
        assert reader.draw(place, bytes.fromhex(entropy)) == report


def test_what_has_to_be_refused(reader: native.Native, tmp_path: Path) -> None:
    for name, content in STATED["refused"].items():
        path = tmp_path / "m.omm"
        path.write_bytes(bytes.fromhex(content))
        assert reader.open(path) is None, name


def test_many_draws_are_those_of_python(reader: native.Native, folder: Path) -> None:
    for name in STATED["files"] | STATED["meshes"]:
        reader.open(folder / name)
        found = [int(part) for part in reader.ask("many", folder / f"{name}.draws").split()]
        own = mesh_reports if name in STATED["meshes"] else reports
        assert found == own(folder, name)


def test_every_prefix_and_every_flipped_bit_is_refused(
    reader: native.Native, tmp_path: Path
) -> None:
    """Memory ends with the file: a byte read beyond it is an error of the sanitizer."""
    content = (VECTORS / "labels.omm").read_bytes()
    path = tmp_path / "m.omm"
    for k in range(len(content)):
        path.write_bytes(content[:k])
        assert reader.open(path) is None
        flipped = bytearray(content)
        flipped[k] ^= 1 << k % 8
        path.write_bytes(bytes(flipped))
        assert reader.open(path) is None


def test_signatures_are_asked_for(program: Path, tmp_path: Path) -> None:
    """The message is that of RFC 9052, as cryptography signs it."""
    pytest.importorskip("cryptography")
    from packed.readers import Key

    key, plain = Key.made(tmp_path), VECTORS / "grid.omm"
    asked = []

    def verify(message: bytes, signature: bytes) -> bool:
        asked.append(message)
        return key.signed(message, signature)

    reader = native.Native(program, verify)
    signed = tmp_path / "signed.omm"
    signed.write_bytes(key.sign(plain.read_bytes()))
    assert reader.open(signed) is None
    assert reader.open(plain, signed=True) is None
    assert asked == []
    assert reader.open(signed, signed=True) is not None
    # more than once, as memory for verifying it was found in steps
    assert len(set(asked)) == 1
    place, entropy, report = STATED["files"]["grid.omm"]["draws"][0]
    assert reader.draw(place, bytes.fromhex(entropy)) == report
    other = bytearray(signed.read_bytes())
    other[-1] ^= 1
    signed.write_bytes(bytes(other))
    assert reader.open(signed, signed=True) is None
    reader.close()


def test_decimals_are_the_floats_of_python(reader: native.Native) -> None:
    rng = random.Random(4)
    numbers = [rng.randrange(-1_800_000_000, 1_800_000_000) for _ in range(2000)]
    for number in [0, 1, -1, 1_800_000_000, -900_000_000, *numbers]:
        found, back = reader.ask("float", number).split()
        assert native.value(found) == number / 1e7
        assert int(back) == number


@pytest.mark.slow
def test_many_draws_from_the_system_have_the_exact_law(tmp_path: Path) -> None:
    """χ² of every file at one place or position, from the system's entropy; a million draws of each
    are ``python packages/devices/tests/packed/law.py``. In n draws a report of probability p is
    found that comes up too often by a share of 6/√(np): six in ten of a report in a hundred of
    10,000, four in ten of one in ten of 2,000."""
    reader = native.Native(native.built(tmp_path, "-O2"))
    least = 1.0
    for name in [*STATED["files"], *STATED["meshes"]]:
        found = om.load_packed(VECTORS / name)
        reader.open(VECTORS / name)
        position = [0.0, 0.0]
        if isinstance(found, om.PackedEverywhere):
            # the middle of a triangle
            position = found.mesh.vertices[found.mesh.triangles[1]].mean(axis=0).tolist()
            row = found.at([position])[0]
        else:
            row = found.matrix[1]
        # a draw finds the nearest of many parts of the border or the roads first, in some 100 µs
        draws = 2_000 if name in ("globe.omm", "north.omm", "roads.omm") else 10_000
        answer = reader.ask("count", 1, *map(native.bits, position), draws)
        seen, expected = np.array([int(n) for n in answer.split()]), row * draws
        assert seen[expected == 0].sum() == 0
        kept = expected > 5
        rare = expected[~kept].sum()
        pairs = [*zip(seen[kept], expected[kept], strict=True)]
        if rare > 5:
            pairs.append((seen[~kept].sum(), rare))
        statistic = sum((a - b) ** 2 / b for a, b in pairs)
        least = min(least, float(chi2.sf(statistic, max(len(pairs) - 1, 1))))
    reader.close()
    # the least of ten
    assert least > 1e-5


def test_it_is_c99_to_two_compilers(tmp_path: Path) -> None:
    """As a library for C and for C++, without a warning."""
    tried = 0
    for name, language in (
        ("gcc", "c99"),
        ("clang", "c99"),
        ("g++", "c++11"),
        ("clang++", "c++11"),
    ):
        found = shutil.which(name)
        if found is None:
            continue
        source = native.SOURCE / "optmech.c"
        if language != "c99":
            source = tmp_path / "use.cc"
            source.write_text(
                '#include "optmech.h"\nint main() { optmech_mechanism m; (void)m; }\n'
            )
        command = [found, f"-std={language}", *native.STRICT[1:], "-Wconversion", "-Os", "-c"]
        done = subprocess.run(
            [*command, f"-I{native.SOURCE}", str(source), "-o", str(tmp_path / "o")],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        tried += done.returncode == 0
    assert tried


FORMATS = {"PLACES": "grid.omm", "MESH": "field.omm", "EARTH": "earth.omm"}


def nothing_from(reader: native.Native) -> None:
    """Each function that takes a mechanism, its places or sentences answers OPTMECH_ARGUMENT."""
    for number in (0, 1, 2**16, 2**32 - 1, 2**64 - 1):
        assert set(reader.ask("every", number).split()) == {"4"}, number


def test_a_mechanism_that_was_refused_or_never_opened_gives_nothing(
    program: Path, tmp_path: Path
) -> None:
    header = (native.SOURCE / "optmech.h").read_text()
    asked = (native.HERE / "reader.c").read_text()
    begin = asked.index("static void every")
    asked = asked[begin : asked.index("int main", begin)]
    takers = re.findall(
        r"^int (optmech_\w+)\(\s*(?:const optmech_(?:mechanism|places) |optmech_bytes )",
        header,
        re.M,
    )
    assert len(takers) == 11
    assert all(f"{name}(" in asked for name in takers)
    reader = native.Native(program)
    nothing_from(reader)
    whole = [(VECTORS / name).read_bytes() for name in FORMATS.values()]
    # of every format: empty, of no kind, cut anywhere, altered at the end
    for content in [b"", bytes(3), *whole]:
        for k in {0, 3, len(content) // 2, len(content) - 33, len(content) - 1}:
            (tmp_path / "m.omm").write_bytes(content[: max(k, 0)])
            assert reader.open(tmp_path / "m.omm") is None
            nothing_from(reader)
    for name in STATED["refused"]:
        (tmp_path / "m.omm").write_bytes(bytes.fromhex(STATED["refused"][name]))
        assert reader.open(tmp_path / "m.omm") is None
        nothing_from(reader)
    reader.close()


@pytest.mark.parametrize(
    "left_out", [c for n in (1, 2) for c in itertools.combinations(FORMATS, n)], ids=",".join
)
def test_formats_can_be_left_out(left_out: tuple[str, ...], tmp_path: Path) -> None:
    """Their files are refused, and then nothing is drawn; of the others the draws are the same."""
    # a few draws: it takes longest to compile
    options = [*native.SANITIZED, "-O0", "-g1", *(f"-DOPTMECH_NO_{name}" for name in left_out)]
    reader = native.Native(native.built(tmp_path, *options))
    for name, file in FORMATS.items():
        found = reader.open(VECTORS / file)
        assert (found is None) == (name in left_out)
        if found is None:
            assert reader.draw(0, bytes(24)) == "refused"
            assert reader.locate([0.0, 0.0]) == "refused"
            assert reader.at([0.0, 0.0], bytes(24)) == "refused"
            nothing_from(reader)
            continue
        if name == "MESH":
            for position, drawn, report in STATED["meshes"][file]["draws"][:50]:
                assert reader.at(position, bytes.fromhex(drawn))[1] == report
            continue
        stated = STATED["files"] if name == "PLACES" else EARTH
        for place, drawn, report in stated[file]["draws"][:50]:
            assert reader.draw(place, bytes.fromhex(drawn)) == report
    reader.close()


PAGE = Path(__file__).parents[4] / "docs" / "packed.md"


def compiled(cpu: str, left_out: tuple[str, ...], folder: Path) -> tuple[int, dict[str, int]]:
    """Bytes of code and constants of the reader for a processor, and of stack of its functions."""
    arm = shutil.which("arm-none-eabi-gcc")
    if arm is None:
        pytest.skip("no compiler for ARM")
    options = [*native.STRICT, "-Os", f"-mcpu={cpu}", "-mthumb", "-fcallgraph-info=su"]
    kinds = [f"-DOPTMECH_NO_{kind}" for kind in left_out]
    for name in ("optmech.c",) if left_out else ("optmech.c", "radio.c"):
        made = ["-c", str(native.SOURCE / name), "-o", str(folder / f"{name}.o")]
        done = subprocess.run(
            [arm, *options, *kinds, *made], check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        ["arm-none-eabi-size", str(folder / "optmech.c.o")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    text, data, bss = listed[1].split()[:3]
    assert (data, bss) == ("0", "0")
    (graph,) = folder.glob("optmech.c*.ci")
    return int(text), native.stacks_of(graph.read_text())


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is not beside the tests")
@pytest.mark.parametrize("cpu", ["Cortex-M0+", "Cortex-M4", "Cortex-M33"])
def test_it_fits_a_small_processor(cpu: str, tmp_path: Path) -> None:
    """Code and stack as the documentation has them, and nothing that is written but the stack."""
    row = re.search(rf"^\| {re.escape(cpu)} \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert row is not None
    whole, places, earth, opening, drawing, sticky = (
        int(cell.replace(",", "")) for cell in row[1].split(" | ")
    )
    name = cpu.lower().replace("+", "plus")
    size, stacks = compiled(name, (), tmp_path)
    drawn = max(stacks[f"optmech_{part}"] for part in ("locate", "draw", "draw_at"))
    found = [size, stacks["optmech_open"], drawn, stacks["optmech_sticky"]]
    assert found == pytest.approx([whole, opening, drawing, sticky], rel=0.02)
    assert max(stacks.values()) < 2048
    for left_out, stated in ((("MESH", "EARTH"), places), (("PLACES", "MESH"), earth)):
        folder = tmp_path / "-".join(left_out)
        folder.mkdir()
        assert compiled(name, left_out, folder)[0] == pytest.approx(stated, rel=0.02)


IN_DEGREES = {
    "grid.omm": (16.35, 48.15, 16.45, 48.3),
    "earth.omm": (-180, -90, 180, 90),
    "globe.omm": (179.4, 46.9, 180.5, 47.8),
    "north.omm": (-0.5, 59.5, 4.5, 62.5),
    "points.omm": (179.9, -17.1, 180.1, -16.9),
    "hexagons.omm": (16.34, 48.19, 16.39, 48.23),
    "around.omm": (-180, -85, 180, -55),
    "beyond.omm": (-80, 40, -60, 50),
}
"""Files of places in degrees and around where they lie; the last is stated beyond 180 degrees."""


def beyond(folder: Path) -> Path:
    """The committed grid, over longitudes from 280 to 300 degrees."""
    form, header, rows, _ = decode((VECTORS / "grid.omm").read_bytes()).value
    grid = om.Grid.geographic(4, 5, (280.0, 40.0, 300.0, 50.0))
    out = folder / "beyond.omm"
    body = {**decode(header), "secrets": encode_places(grid)}
    out.write_bytes(sealed(form, encode(body), rows))
    return out


@pytest.mark.parametrize("name", IN_DEGREES)
def test_a_radio_sends_one_place_a_day(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `optmech client c` copies it and says that it is built, with the file beside it: fixes of
    15 minutes in whole numbers, and the places that Python reports with the same key."""
    source = beyond(tmp_path) if name == "beyond.omm" else VECTORS / name
    radio = tmp_path / "radio"
    assert main(["client", "c", str(radio), "--mechanism", str(source)]) == 0
    (command,) = re.findall(r"(cc -std=c99 .+? -o radio)", capsys.readouterr().out)
    # the same for every file
    words = command.replace("cc ", f"{native.compiler()} -O0 ", 1).removesuffix(" -o radio").split()
    words = [str(native.SOURCE / word) if word.endswith(".c") else word for word in words]
    for path in native.SOURCE.iterdir():
        assert (radio / path.name).read_bytes() == path.read_bytes()
    shutil.copy(native.compiled(tuple(words)), radio / "radio")
    found = om.load(source)
    sticky = om.StickyReports(found, bytes(32))
    rng = random.Random(3)
    box = [round(value * 1e7) for value in IN_DEGREES[name]]
    fixes = [
        ((rng.randrange(box[0], box[2]) + 1_800_000_000) % 3_600_000_000 - 1_800_000_000,
         rng.randrange(box[1], box[3]), 900 * k) for k in range(300)
    ]  # fmt: skip
    # a night within some metres
    x, y = (box[0] + box[2]) // 20_000 * 5_000 + 10_000, (box[1] + box[3]) // 20_000 * 10_000
    x = (x // 10_000 * 10_000 + 1_800_000_000) % 3_600_000_000 - 1_800_000_000
    night = [(x + 13 * k, y - 7 * k, 864_000 + 900 * k) for k in range(40)]
    lines = "".join(f"{x} {y} {t}\n" for x, y, t in fixes + night)
    sent = subprocess.run(
        [str(radio / "radio"), "mechanism.omm"],
        input=lines,
        check=True,
        capture_output=True,
        text=True,
        cwd=radio,
    ).stdout.splitlines()
    outside = 0
    for (x, y, t), line in zip(fixes + night, sent, strict=True):
        place = (x / 1e7, y / 1e7)
        if name not in STATED["meshes"]:
            place = found.locate(place)
        report = None if place is None else sticky.report(place, t)
        if report is None:
            assert line == "nothing"
            outside += 1
            continue
        own = [int(part) / 1e7 for part in line.split()]
        assert own == pytest.approx(found.coordinates(report), abs=6e-8)
        assert abs(own[0]) <= 180
    refuses = name != "earth.omm" and found.header.outside == "refuse"
    assert 0 < outside < 300 if refuses else outside == 0
    # a place of the earth is smaller than that, and so may those of the others be cut by a border
    assert len(set(sent[300:])) <= 2 or name == "earth.omm"


@pytest.mark.parametrize("name", ["labels.omm", "plane.omm", "field.omm"])
def test_a_radio_says_what_it_cannot_use(name: str, tmp_path: Path) -> None:
    names = [str(native.SOURCE / part) for part in ("radio.c", "optmech.c")]
    found = native.compiler()
    assert found is not None
    for more, path, said in (
        ((), VECTORS / name, "no places in degrees"),
        (("-DWORK=2",), VECTORS / "globe.omm", "-DWORK="),
        ((), tmp_path / "none", "usage"),
    ):
        program = native.compiled((found, *native.STRICT, "-DRADIO_MAIN", *more, *names))
        done = subprocess.run(
            [str(program), str(path)], check=False, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert said in done.stderr


@pytest.mark.slow
def test_fuzzing_finds_nothing(tmp_path: Path) -> None:
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("no clang")
    program, corpus = tmp_path / "fuzz", tmp_path / "corpus"
    options = [*native.STRICT, *native.SANITIZED, "-fsanitize=fuzzer", f"-I{native.SOURCE}"]
    files = [str(native.HERE / "fuzz.c"), str(native.SOURCE / "optmech.c")]
    made = subprocess.run(
        [clang, *options, *files, "-o", str(program)], check=False, capture_output=True, text=True
    )
    if "libclang_rt" in made.stderr:
        pytest.skip("no runtime of libFuzzer")
    assert made.returncode == 0, made.stderr
    corpus.mkdir()
    seconds = os.environ.get("OPTMECH_FUZZING")
    # so many inputs, and not seconds, of which a busy machine makes less
    limits = ["-runs=4000"] if seconds is None else [f"-max_total_time={seconds}"]
    limits += ["-max_len=32768", "-timeout=20", "-seed=1"]
    done = subprocess.run(
        [str(program), *limits, str(corpus), str(VECTORS)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(list(corpus.iterdir())) > 100
