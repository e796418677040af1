"""What makes a sweep another one: every input file, whatever the key that names it."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
from optmech_sweeps.templates import DocumentTemplate, digest

from optmech.reading.bounded import MAX_BYTES

LINE = {"kind": "line", "values": [0, 1]}
PLAIN = {"format": 1, "secrets": LINE, "prior": "uniform", "loss": "hamming"}
PLACES: dict[str, dict[str, Any]] = {
    "secrets of a table": {"secrets": {"kind": "table", "file": "DATA", "x": "x", "y": "y"}},
    "an OpenStreetMap extract": {"secrets": {"kind": "graph", "osm": "DATA"}},
    "edges": {"secrets": {"kind": "graph", "file": "DATA"}},
    "a GeoJSON file": {"secrets": {"kind": "zones", "file": "DATA"}},
    "the matrix of the loss": {"loss": {"file": "DATA"}},
    "the graph of a distance": {"loss": {"distance": {"kind": "graph", "file": "DATA"}}},
    "a prior": {"prior": {"kind": "csv", "file": "DATA", "x": "x", "y": "y"}},
    "a constraint": {"constraints": [{"kind": "support", "file": "DATA"}]},
    "the prior of a pair": {
        "constraints": [{"pairs": [[{"kind": "csv", "file": "DATA", "x": "x", "y": "y"}, [1, 2]]]}]
    },
    "a key of another version": {"secrets": {"kind": "new", "raster": ["DATA"]}},
}


def identity(folder: Path, sections: dict[str, Any]) -> str:
    return digest(DocumentTemplate({**PLAIN, **sections}, folder / "s.toml").identity())


@pytest.mark.parametrize("name", PLACES)
def test_another_content_is_another_sweep(tmp_path: Path, name: str) -> None:
    sections = PLACES[name]
    data = tmp_path / "DATA"
    data.write_text("before")
    before = identity(tmp_path, sections)
    assert identity(tmp_path, sections) == before
    data.write_text("after!")
    after = identity(tmp_path, sections)
    assert after != before
    data.unlink()
    assert identity(tmp_path, sections) not in (before, after)


@pytest.mark.parametrize("name", PLACES)
def test_another_name_of_the_same_content_is_the_same_sweep(tmp_path: Path, name: str) -> None:
    moved = copy.deepcopy(PLACES[name])
    text = repr(moved).replace("'DATA'", "'folder/other'")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "other").write_text("content")
    (tmp_path / "DATA").write_text("content")
    assert identity(tmp_path, eval(text)) == identity(tmp_path, PLACES[name])


def test_resources_of_packages_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packaged_places"
    package.mkdir()
    (package / "__init__.py").write_text("")
    data = package / "places.csv"
    monkeypatch.syspath_prepend(tmp_path)
    secrets = {"package": "packaged_places", "resource": "places.csv", "kind": "table"}
    found = []
    for content in ("x,y\n0,0\n", "x,y\n0,1\n", "x,y\n0,0\n"):
        data.write_text(content)
        found.append(identity(tmp_path, {"secrets": secrets}))
    assert found[0] == found[2] != found[1]


def test_values_of_an_axis_too(tmp_path: Path) -> None:
    template = DocumentTemplate(PLAIN, tmp_path / "s.toml")
    (tmp_path / "DATA").write_text("before")
    before = digest(template.values([("secrets.osm", "DATA")]))
    (tmp_path / "DATA").write_text("after!")
    assert digest(template.values([("secrets.osm", "DATA")])) != before


def test_titles_name_no_files(tmp_path: Path) -> None:
    (tmp_path / "DATA").write_text("before")
    before = identity(tmp_path, {"title": "DATA"})
    (tmp_path / "DATA").write_text("after!")
    assert identity(tmp_path, {"title": "DATA"}) == before


def test_texts_that_name_what_is_no_file_of_data(tmp_path: Path) -> None:
    """A pipe, a device, and files that are longer than any that is read, however they are named."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("sparse", "sparse.json"):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(40 * 2**30)
    with (tmp_path / "long").open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    (tmp_path / "folder").mkdir()
    others = ["/dev/zero", "/proc/kmsg", "\0", "."]
    for name in ["pipe", "sparse", "sparse.json", "long", "folder", *others]:
        secrets = {"kind": "labels", "labels": [name, "b"]}
        document = {**PLAIN, "secrets": secrets}
        found = DocumentTemplate(document, tmp_path / "s.toml").identity()
        assert found == document


def test_long_designs_are_told_apart_by_their_content(tmp_path: Path) -> None:
    found = set()
    for last in (b"a", b"b"):
        with (tmp_path / "kept.json").open("wb") as stream:
            stream.truncate(MAX_BYTES + 1)
            stream.seek(MAX_BYTES + 1)
            stream.write(last)
        document = {**PLAIN, "kept": {"design": "kept.json"}}
        found.add(digest(DocumentTemplate(document, tmp_path / "s.toml").identity()))
    assert len(found) == 2
