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
import pytest
from hypothesis import given, strategies as st

import optmech as om
from optmech import audit
from optmech.audit.document import Lists
from optmech.designs import file
from optmech.reading import sealed
from optmech.reading.sealed import contracted, seal, unpacked

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
