"""Design files whose long lists are bytes: the same design, the same verdicts, nothing inflated."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from hypothesis import given, strategies as st
from memory import taken
from optmech_audit import document
from optmech_audit.document import Lists

import optmech as om
from optmech.designs import file
from optmech.reading import lists, sealed
from optmech.reading.lists import contracted, unpacked
from optmech.reading.sealed import FORMATS, seal

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(0, 2**33)
HEX = st.integers(0, 2**200).map(lambda n: f"{n:x}")
LISTS = (
    st.lists(FINITE, max_size=60)
    | st.lists(WHOLE, min_size=30, max_size=60)
    | st.lists(st.integers(0, 300), min_size=30, max_size=60)
    | st.lists(HEX, min_size=30, max_size=60)
    | st.lists(FINITE | WHOLE, min_size=30, max_size=40)
    | st.lists(st.lists(FINITE, min_size=4, max_size=4), max_size=20)
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), LISTS | st.dictionaries(st.just("d"), LISTS))


@pytest.fixture(scope="module")
def design() -> om.Design:
    return om.solve(om.load_problem("grid-4x4"))


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as a large one."""
    monkeypatch.setattr(sealed, "_LONG", 0)


@given(DOCUMENTS)
def test_there_and_back(document: dict[str, Any]) -> None:
    """As text, in which 1 is not 1.0 and 0.0 not -0.0; and in the second reader."""
    written = json.loads(json.dumps(contracted(document)))
    assert json.dumps(unpacked(written)) == json.dumps(document)
    assert json.dumps(Lists().expanded(written)) == json.dumps(document)


def test_the_bytes_are_what_is_documented() -> None:
    found = contracted({"value": [k / 8 for k in range(40)]})["value"]
    assert (found["list"], found["shape"]) == ("float64", [40])
    content = zlib.decompress(base64.b64decode(found["zlib"]))
    assert np.frombuffer(content, "<f8").tolist() == [k / 8 for k in range(40)]


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_the_same_design(design: om.Design, audit_file: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    design.save(path)
    content = path.read_bytes()
    text = gzip.decompress(content) if name.endswith(".gz") else content
    assert json.loads(text)["format"] == "optmech-design/3"
    found = om.Design.load(path)
    assert found.mechanism == design.mechanism
    assert found.summary() == design.summary()
    assert om.check(path).passed
    assert file.load_mechanism(path) == design.mechanism
    run = subprocess.run(
        [sys.executable, "-S", "-I", str(audit_file), str(path)], capture_output=True, check=False
    )
    assert (run.returncode, b"holds" in run.stdout) == (0, True), run


def test_small_designs_stay_text(design: om.Design, tmp_path: Path) -> None:
    design.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_bytes())["format"] == "optmech-design/2"


@pytest.mark.usefixtures("everything")
def test_the_proof_is_not_read_to_sample(design: om.Design, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    body = json.loads(design.document())
    del body["digest"]
    body["multipliers"] = {"list": "nonsense"}
    path.write_bytes(seal(json.dumps(body).encode()))
    assert file.load_mechanism(path) == design.mechanism
    assert not verified(path)


@pytest.mark.usefixtures("everything")
def test_sampling_still_decides_the_inequalities(design: om.Design, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    body = unpacked(json.loads(design.document()))
    del body["digest"]
    rows = body["mechanism"]["rows"]
    rows[0] = [[0], [f"{1 << body['mechanism']['bits']:x}"]]
    body["format"] = "optmech-design/2"
    path.write_bytes(seal(json.dumps(body).encode()))
    with pytest.raises(om.VerificationError, match="ratio"):
        file.load_mechanism(path)


def verified(path: Path) -> bool:
    """Whether the library takes a file; the second reader has to agree."""
    try:
        ours = om.check(path).passed
    except om.OptmechError:
        ours = False
    assert (audit.main([str(path)]) == 0) == ours
    return ours


DAMAGE: dict[str, Any] = {
    "an unknown kind": {"list": "int3"},
    "a kind that is no text": {"list": ["float64"]},
    "a shape of two where one is meant": {"shape": [6, 10]},
    "no shape": {"shape": []},
    "a shape of truth": {"shape": [True]},
    "a shape below one": {"shape": [0]},
    "a shape that is too short": {"shape": [59]},
    "a shape that is too long": {"shape": [61]},
    "a shape beyond all memory": {"shape": [2**40]},
    "no base64": {"zlib": "*"},
    "no zlib": {"zlib": "AAAA"},
    "more than it says": {"zlib": base64.b64encode(zlib.compress(bytes(10**7))).decode()},
    "bytes behind": {
        "zlib": base64.b64encode(zlib.compress(bytes(60)) + b"x").decode(),
        "list": "uint8",
    },
    "no number": {
        "zlib": base64.b64encode(zlib.compress(np.full(60, np.nan).tobytes())).decode(),
        "list": "float64",
    },
    "another entry": {"more": 1},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_lists_are_refused_by_both(damage: dict[str, Any], tmp_path: Path) -> None:
    good = contracted({"a": list(range(60))})
    bad = {"a": {**good["a"], **damage}}
    with pytest.raises(om.ProblemError):
        unpacked(bad)
    with pytest.raises((audit.Fault, ValueError, TypeError)):
        Lists().expanded(bad)
    path = tmp_path / "bad.json"
    path.write_bytes(seal(json.dumps({"format": "optmech-design/3", **bad}).encode()))
    assert not verified(path)


def test_a_compressed_file_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"digest": "sha256:x",\n')[:-5])
    assert not verified(path)


MOST = 200 * 2**20
"""Bytes that a small file may take; what these held took two to forty times that."""
HIDDEN: dict[str, tuple[bytes, list[int]]] = {
    "hex": (b"\x01\x01" * 2**22, [2**22, 2]),
    "uint8": (bytes(2**25), [2**25]),
    "float64": (bytes(8 * 2**23), [2**23]),
    "float64 rows": (bytes(8 * 2**22), [2**22, 1]),
}


def short_file(path: Path, **entries: Any) -> Path:
    """A sealed design file, of good keys where none are given otherwise."""
    keys = FORMATS["optmech-design/2"].keys - {"digest", "format"}
    body = dict.fromkeys(sorted(keys)) | entries
    path.write_bytes(seal(json.dumps({"format": "optmech-design/3", **body}).encode()))
    return path


def listed(kind: str) -> dict[str, Any]:
    content, shape = HIDDEN[kind]
    text = base64.b64encode(zlib.compress(content, 9)).decode()
    return {"list": kind.split()[0], "shape": shape, "zlib": text}


def peak(path: Path) -> int:
    """Bytes that check and audit take before both refuse a file."""
    found: list[bool] = []
    most = taken(lambda: found.append(verified(path)))
    assert found == [False]
    return most


def test_memory_is_seen() -> None:
    for work in (lambda: [{k: [k]} for k in range(200_000)], lambda: b"x" * 2**26):
        assert 2**25 < taken(work) < 2**27


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("where", ["unknown", "problem", "mechanism", "in many parts"])
def test_a_small_file_takes_little_memory(kind: str, where: str, tmp_path: Path) -> None:
    given = listed(kind)
    if where == "in many parts":
        kind, (content, shape) = kind.split()[0], HIDDEN[kind]
        size = len(content) // 256
        text = base64.b64encode(zlib.compress(content[:size], 9)).decode()
        given = {"list": kind, "shape": [shape[0] // 256, *shape[1:]], "zlib": text}
        path = short_file(tmp_path / "a.json", problem=[given] * 256)
    else:
        path = short_file(tmp_path / "a.json", **{where: given})
    assert path.stat().st_size < 200_000
    assert peak(path) < MOST


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_problem_file_cannot_reach_more(kind: str, tmp_path: Path) -> None:
    short_file(tmp_path / "kept.json", mechanism=listed(kind))
    (tmp_path / "p.toml").write_text(
        'format = 1\nprior = "uniform"\nloss = "hamming"\n[secrets]\nkind = "line"\ncount = 2\n'
        '[[constraints]]\nkind = "fixed_rows"\ndesign = "kept.json"\n'
    )

    def loaded() -> None:
        with pytest.raises(om.OptmechError, match="lists would take"):
            om.load_problem(tmp_path / "p.toml")

    assert taken(loaded) < MOST


@pytest.mark.parametrize("part", [b" " * 2**20, b'"ab",' * 2**18, b"[],{}," * 2**17])
@pytest.mark.parametrize("good", [True, False])
def test_a_small_compressed_file_takes_little_memory(
    part: bytes, good: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.json.gz"
    content = seal(b'{"format":"optmech-design/3","problem":[' + part * 128 + b"0]}")
    given = content if good else content.replace(b"sha256:", b"sha256:0")
    path.write_bytes(gzip.compress(given, 3))
    assert path.stat().st_size < 1_000_000
    assert peak(path) < MOST


def test_many_lists_are_refused_by_both(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    lists = b"[]," * 5_000_001
    path.write_bytes(seal(b'{"format":"optmech-design/2","problem":[' + lists + b"0]}"))
    assert peak(path) < MOST


@pytest.fixture(scope="module")
def randomised() -> om.Design:
    """Forty secrets whose matrix has two entries in all."""
    hamming = om.distances.hamming()
    answers = om.Prior.uniform(om.Domain.range(40))
    return om.solve(om.Problem(answers, hamming, constraints=[om.MetricPrivacy(1, hamming)]))


@pytest.mark.parametrize("factor", [0, 1, 5, 50])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_what_is_written_is_read(
    randomised: om.Design, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, factor: int, name: str
) -> None:
    """However far a design can be compressed."""
    design = randomised
    for module in (lists, sealed):
        monkeypatch.setattr(module, "_FREE", 0)
        monkeypatch.setattr(module, "_FACTOR", factor)
    for each, value in (("FREE_TEXT", 0), ("FREE_ROOM", 0), ("ROOM_A_BYTE", factor)):
        monkeypatch.setattr(document, each, value)
    monkeypatch.setattr(document, "TEXT_A_BYTE", factor)
    monkeypatch.setattr(sealed, "_LONG", 0)
    path = tmp_path / name
    design.save(path)
    if name.endswith(".gz") and not factor:
        return  # nothing may be unpacked
    assert om.check(path).passed
    assert om.load(path) == design
    assert verified(path)
