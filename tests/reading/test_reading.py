"""Reading files that nobody vouches for: bounded, regular, and never a stranger's exception."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.errors import ProblemError
from optmech.exchange import read_matrix, read_netcdf, read_osm, read_parquet
from optmech.exchange.geo import read_geojson
from optmech.pipeline.profiles import load_profile
from optmech.reading import bounded
from optmech.reading.bounded import MAX_BYTES, expanded, read_bytes, read_text, translated
from optmech.reading.columns import read_columns, read_rows, read_text_columns
from optmech.reading.errors import printable
from optmech.reading.source import read_document

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
CELLS = om.Domain(["a", "b"])


def test_content_is_given_as_it_is(tmp_path: Path) -> None:
    for content in (b"", b"abc", bytes(range(256)) * 1000):
        (tmp_path / "x").write_bytes(content)
        assert read_bytes(tmp_path / "x") == content
        for suffix, pack in PACK.items():
            packed = tmp_path / f"x{suffix}"
            packed.write_bytes(pack(content))
            with expanded(packed) as stream:
                assert stream.read() == content


@pytest.mark.parametrize("suffix", sorted(PACK))
@pytest.mark.parametrize("size", [1000, 1001])
def test_bytes_are_counted_after_unpacking(tmp_path: Path, suffix: str, size: int) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(PACK[suffix](bytes(size)))
    if size == 1000:
        with expanded(path, 1000) as stream:
            assert len(stream.read()) == 1000
        return
    with pytest.raises(ProblemError, match="more than the 1,000 bytes"), expanded(path, 1000) as s:
        s.read()


READERS: dict[str, Callable[[Path], object]] = {
    "x.toml": read_document,
    "x.json": read_document,
    "p.toml": load_profile,
    "d.json": om.Design.load,
    "x.csv": lambda path: read_columns(path, ["x"]),
    "x.csv.gz": lambda path: read_columns(path, ["x"]),
    "t.csv": lambda path: read_text_columns(path, ["x"]),
    "x.parquet": lambda path: read_columns(path, ["x"]),
    "m.parquet": read_parquet,
    "x.geojson": read_geojson,
    "y.geojson": lambda path: read_columns(path, ["x"]),
    "x.osm": read_osm,
    "x.osm.bz2": read_osm,
    "m.csv": lambda path: read_matrix(path, CELLS, CELLS),
    "m.npy": lambda path: read_matrix(path, CELLS, CELLS),
    "m.nc": read_netcdf,
    "check": om.check,
}


@pytest.mark.parametrize("name", sorted(READERS))
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    folder, device, loop = (tmp_path / kind / name for kind in ("folder", "device", "loop"))
    folder.mkdir(parents=True)
    device.parent.mkdir()
    device.symlink_to("/dev/zero")
    loop.parent.mkdir()
    loop.symlink_to(name)
    long = tmp_path / ("x" * 300) / name
    for place in (
        path,
        folder,
        device,
        loop,
        tmp_path / "no" / name,
        long,
        tmp_path / f"a\0{name}",
    ):
        with pytest.raises(ProblemError, match=r"cannot be read|there is no profile"):
            READERS[name](place)


@pytest.mark.parametrize("name", sorted(set(READERS) - {"d.json", "check", "m.npy", "m.nc"}))
def test_too_large_files_are_not_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(ProblemError, match="more than the 67,108,864"):
        READERS[name](path)


@pytest.mark.parametrize("name", sorted(READERS))
@pytest.mark.parametrize("content", [b"", b"\0" * 9, b"\xff\xfe" * 9, b"PK\x03\x04", b"{}"])
def test_nonsense(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    try:
        READERS[name](path)
    except ProblemError as error:
        assert str(path) in str(error)  # noqa: PT017
        assert error.message  # noqa: PT017


@pytest.mark.parametrize("suffix", sorted(PACK))
def test_damaged_compression(tmp_path: Path, suffix: str) -> None:
    rows = b"x,y\n" + b"1,2\n" * 5000
    packed = PACK[suffix](rows)
    for at in range(0, len(packed), 3):
        path = tmp_path / f"x.csv{suffix}"
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :])
        try:
            columns = read_columns(path, ["x"])
            assert np.all((columns["x"] == 1) | np.isnan(columns["x"]))
        except ProblemError as error:
            assert str(path) in str(error)  # noqa: PT017


def bomb(tmp_path: Path, name: str, head: bytes, body: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(gzip.compress(head + body * (2 * MAX_BYTES // len(body)), 1))
    assert path.stat().st_size < MAX_BYTES // 50
    return path


@pytest.mark.parametrize(
    ("head", "body"), [(b"x,y\n", b"0"), (b"", b"0"), (b"x,y\n", b","), (b"x\n", b'"')]
)
def test_bombs_of_tables(tmp_path: Path, head: bytes, body: bytes) -> None:
    with pytest.raises(ProblemError, match=r"bytes allowed|characters|field"):
        read_columns(bomb(tmp_path, "x.csv.gz", head, body), ["x"])


@pytest.mark.parametrize("body", [b' <nd ref="1"/>', b" ", b"a"])
def test_bombs_of_maps(tmp_path: Path, body: bytes) -> None:
    head = b'<osm><node id="1" lat="1" lon="1" x="' if body == b"a" else b"<osm><way>"
    with pytest.raises(ProblemError, match=r"bytes allowed|elements allowed"):
        read_osm(bomb(tmp_path, "x.osm.gz", head, body))


def test_billions_of_laughs(tmp_path: Path) -> None:
    path = tmp_path / "x.osm"
    entities = "".join(f'<!ENTITY l{k + 1} "{f"&l{k};" * 10}">' for k in range(9))
    path.write_text(f'<!DOCTYPE osm [<!ENTITY l0 "ha">{entities}]><osm><way>&l9;</way></osm>')
    with pytest.raises(ProblemError, match="not an OpenStreetMap XML extract"):
        read_osm(path)


def parquet(path: Path, columns: dict[str, Any], **more: Any) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    names, arrays = zip(*columns.items(), strict=True)
    pq.write_table(pa.Table.from_arrays([pa.array(a) for a in arrays], list(names)), path, **more)
    return path


def test_parquet_as_it_was(tmp_path: Path) -> None:
    import pandas

    frame = pandas.DataFrame(
        {
            "t": ["a", "b", "a", None],
            "c": pandas.Categorical(["u", "v", "u", "v"]),
            "i": [1, 2, 3, 2**60],
            "f": [0.5, np.nan, np.inf, -1],
            "b": [True, False, True, True],
            "d": pandas.to_datetime(
                ["2020-01-01", "2021-02-03 04:05:06", None, "2020-01-01"], format="mixed"
            ),
        }
    )
    frame.to_parquet(tmp_path / "x.parquet")
    texts = read_text_columns(tmp_path / "x.parquet", ["t", "c", "i", "b", "d", "t"])
    assert texts["t"] == ["a", "b", "a", ""]
    assert texts["c"] == ["u", "v", "u", "v"]
    assert texts["i"] == ["1", "2", "3", str(2**60)]
    assert texts["b"] == ["True", "False", "True", "True"]
    assert texts["d"][1:3] == ["2021-02-03 04:05:06", ""]
    numbers = read_columns(tmp_path / "x.parquet", ["f", "i", "t"])
    assert numbers["f"].tolist()[0] == 0.5
    assert np.isnan(numbers["f"][1])
    assert numbers["i"].tolist() == [1, 2, 3, 2**60]
    assert np.isnan(numbers["t"]).all()
    with pytest.raises(ProblemError, match=r"no column 'z'.*The columns are 't'"):
        read_columns(tmp_path / "x.parquet", ["z"])


def test_parquet_bombs(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    one = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["y" * 3_000_000])
    long = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": one}), long, compression="zstd", store_schema=False)
    assert long.stat().st_size < 10_000
    with pytest.raises(ProblemError, match="texts of 3,000,000 characters"):
        read_text_columns(long, ["x"])
    rows = parquet(tmp_path / "b.parquet", {"x": np.zeros(5_000_001)})
    with pytest.raises(ProblemError, match="5,000,001 rows, more than the 5,000,000"):
        read_columns(rows, ["x"])
    nested = parquet(tmp_path / "c.parquet", {"x": [[1, 2], [3]], "y": [b"ab", b"c"]})
    for name in "xy":
        with pytest.raises(ProblemError, match=f"the column '{name}' holds"):
            read_columns(nested, [name])


def test_parquet_oddities(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    twice = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["x", "x"]), twice)
    with pytest.raises(ProblemError, match="two columns 'x'"):
        read_columns(twice, ["x"])
    far = tmp_path / "b.parquet"
    pq.write_table(pa.table({"x": pa.array([2**62], pa.timestamp("us"))}), far)
    with pytest.raises(ProblemError, match="cannot be read as Parquet"):
        read_text_columns(far, ["x"])


@pytest.mark.parametrize("head", ["x,y,x,n", "x;y;x;n", "x,y,x,n,x"])
def test_two_columns_of_one_name_are_refused_where_it_is_asked_for(
    tmp_path: Path, head: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{head}\n{head.replace('x', '1').replace('y', '2').replace('n', '3')}\n")
    for read in (read_columns, read_text_columns):
        with pytest.raises(ProblemError, match=f"has (two|{head.count('x')}) columns 'x'"):
            read(path, ["y", "x"])
        assert [float(v) for v in read(path, ["n", "y"])["n"]] == [3.0]


def test_features_without_a_geometry_are_rows_without_coordinates(tmp_path: Path) -> None:
    pytest.importorskip("shapely")
    path = tmp_path / "t.geojson"
    places = [{"type": "Point", "coordinates": [1, 2]}, None, {"type": "Point", "coordinates": []},
              {"type": "LineString", "coordinates": [[0, 0], [2, 4]]}]  # fmt: skip
    features = [{"type": "Feature", "properties": {"n": k}, "geometry": place}
                for k, place in enumerate(places)]  # fmt: skip
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    found = read_columns(path, ["longitude", "latitude", "n"])
    assert np.array_equal(found["longitude"], [1, np.nan, np.nan, 1], equal_nan=True)
    assert np.array_equal(found["latitude"], [2, np.nan, np.nan, 2], equal_nan=True)
    assert found["n"].tolist() == [0, 1, 2, 3]
    # a region has a shape, and a feature says at least that it has none
    with pytest.raises(ProblemError, match=r"features\[1\]: is not a GeoJSON feature with"):
        read_geojson(path)
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [{"properties": {}}]}))
    with pytest.raises(ProblemError, match=r"features\[0\]: is not a GeoJSON feature with"):
        read_columns(path, ["longitude"])


@pytest.mark.parametrize("properties", [[1], "text", 3, True, [["a", 1]]])
def test_properties_of_any_type(tmp_path: Path, properties: Any) -> None:
    path = tmp_path / "x.geojson"
    point = {"type": "Point", "coordinates": [1, 2]}
    feature = {"type": "Feature", "properties": properties, "geometry": point}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(ProblemError, match=r"features\[0\]: the properties are a"):
        read_geojson(path, "name")
    with pytest.raises(ProblemError, match=r"features\[0\]: the properties are a"):
        read_text_columns(path, ["name"])


@pytest.mark.parametrize(
    "geometry",
    [
        {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [float("nan"), 1], [0, 0]]]},
        {"type": "Point", "coordinates": [float("inf"), 0]},
        {"type": "Point", "coordinates": ["1", {}]},
        {"type": "Point", "coordinates": [10**400, 1]},
        {"type": "Point", "coordinates": []},
        {"type": "Polygon", "coordinates": []},
        {"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]},
        {"type": ["Point"], "coordinates": [0, 0]},
        {"type": "GeometryCollection", "geometries": "x"},
        {}, None, [], "x",
    ],
)  # fmt: skip
def test_geometries_of_any_kind(tmp_path: Path, geometry: Any) -> None:
    path = tmp_path / "x.geojson"
    feature = {"type": "Feature", "properties": {}, "geometry": geometry}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(ProblemError):
        read_geojson(path)


@pytest.mark.parametrize("encoding", ["utf-7", "rot13", "hex", "idna", "cp65001", "x" * 900, "zip"])
def test_encodings_of_maps(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.osm"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?><osm></osm>'.encode())
    with pytest.raises(ProblemError):
        read_osm(path)


def test_arrays_that_are_none(tmp_path: Path) -> None:
    sound = io.BytesIO()
    np.save(sound, np.eye(2))
    content = sound.getvalue()
    header = b"\x93NUMPY\x02\x00" + (6000).to_bytes(4, "little") + b"[" * 3000 + b" " * 2999 + b"\n"
    archive = io.BytesIO()
    np.savez(archive, np.eye(2))
    claims = content.replace(b"(2, 2), }", b"(2, 2000000000), }")
    for bad in (
        b"PK\x03\x04broken",
        header,
        archive.getvalue(),
        claims,
        content[:-1],
        content[:20],
    ):
        (tmp_path / "m.npy").write_bytes(bad)
        with pytest.raises(ProblemError, match=r"m\.npy"):
            read_matrix(tmp_path / "m.npy", CELLS, CELLS)
    (tmp_path / "m.npy").write_bytes(content)
    assert read_matrix(tmp_path / "m.npy", CELLS, CELLS).matrix.tolist() == [[1, 0], [0, 1]]


def test_damaged_netcdf(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("h5netcdf")
    path = tmp_path / "m.nc"
    om.exchange.write_netcdf(om.Mechanism(CELLS, CELLS, np.eye(2)), path)
    content = path.read_bytes()
    for at in range(0, len(content), len(content) // 2 + 1):
        path.write_bytes(content[:at] + b"\xff" * 40 + content[at + 40 :])
        try:
            assert read_netcdf(path).matrix.shape == (2, 2)
        except ProblemError as error:
            assert str(path) in str(error)  # noqa: PT017
    assert capfd.readouterr() == ("", "")


def test_netcdf_of_other_files(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(tmp_path / "m.nc", "w") as file:
        file.create_dataset("m", (2, 2), "f8", external=[(str(tmp_path / "pipe"), 0, 32)])
    with pytest.raises(ProblemError, match="'m' lies in another file"):
        read_netcdf(tmp_path / "m.nc")
    with h5py.File(tmp_path / "m.nc", "w") as file:
        file["m"] = h5py.ExternalLink(str(tmp_path / "other.nc"), "/x")
    with pytest.raises(ProblemError, match="'m' lies in another file"):
        read_netcdf(tmp_path / "m.nc")
    with h5py.File(tmp_path / "m.nc", "w") as file:
        file.create_dataset("m", (10**6, 10**6), "f8", chunks=(1000, 1000))
    with pytest.raises(ProblemError):
        read_netcdf(tmp_path / "m.nc")


def test_a_reader_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import optmech.reading.sandbox

    path = tmp_path / "m.nc"
    path.write_bytes(b"x")
    for code, words in (
        ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass", ""),
        ("import os; os.abort()", "ended with status -6"),
        ("print('{}')", "ended with status 0"),
    ):
        monkeypatch.setattr(
            optmech.reading.sandbox, "_CHILD", code.replace("{", "{{").replace("}", "}}")
        )
        with pytest.raises(ProblemError, match=words or "cannot be read"):
            read_netcdf(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('gap = "1/2"', "gap: '1/2' is text"),
        ('time_limit = "5"', "time_limit: '5' is text"),
        ('tolerance = "1e-9"', "tolerance: '1e-9' is text"),
        ("gap = [1]", "gap: .* is not a number"),
        ("gap = {a = 1}", "gap: .* is not a number"),
        ("gap = true", "gap: True is not a number"),
        ("gap = nan", "gap: nan is not finite"),
        ("threads = 1000000", "threads: 1000000 is not a whole number of threads, 1 to 256"),
        ("threads = 1.5", "threads: 1.5 is not"),
        ("threads = true", "threads: True is not"),
        ('engine = "highs"\nparameters = {threads = 1000000}', "parameters.threads"),
        ("threads = 1" + "0" * 5000, "is not valid TOML"),
        ("a" + ".a" * 100_000 + " = 1", "nests deeper"),
        ("x\x00 = 1", "is not valid TOML"),
    ],
)
def test_profiles(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(ProblemError, match=words):
        load_profile(path)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "", "nosuch", "\u202e", "../auto"])
def test_names_of_profiles(name: str) -> None:
    with pytest.raises(ProblemError, match="there is no profile") as caught:
        load_profile(name)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("engine", "parameters"),
    [
        ("highs", "presolve = [1]"),
        ("highs", "nope = 1"),
        ("highs", "presolve = {a = 1}"),
        ("highs", "time_limit = true"),
        ('cvxpy"\nsolver = "CLARABEL', "nope = 1"),
        ('cvxpy"\nsolver = "CLARABEL', 'max_iter = "x"'),
        ('cvxpy"\nsolver = "CLARABEL', "max_iter = [1]"),
        ("lazy", 'neighbours = "x"'),
        ("lazy", "neighbours = 0"),
    ],
)
def test_parameters_of_solvers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str, parameters: str
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(f'engine = "{engine}"\n[parameters]\n{parameters}\n', encoding="utf-8")
    assert main(["solve", "metric", "-q", "--profile", str(path)]) == 2
    assert "parameters" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"k{k} = 1\n" for k in range(100_000)),
        "".join(f"[t{k}]\n" for k in range(100_000)),
        '[[constraints]]\nkind = "metric_privacy"\n' * 100_000,
        "[[constraints]]\n" * 100_000,
        "a" + ".a" * 100_000 + " = 1\n",
        "a = " + "[" * 100_000,
        'a = "' + '\\"' * 100_000,
    ],
)
def test_very_many_errors_take_little_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    begun = time.process_time()
    assert main(["solve", str(path)]) == 2
    # the square of a hundred thousand takes hours: this bound is no timing
    assert time.process_time() - begun < 60
    assert len(capsys.readouterr().err.splitlines()) <= 60


def test_only_plain_files_are_designs(tmp_path: Path) -> None:
    for suffix, pack in PACK.items():
        path = tmp_path / f"d.json{suffix}"
        path.write_bytes(pack(b"{}"))
        # designs are read as they are written, by gzip where the name says so
        said = "is no design of format" if suffix == ".gz" else "is compressed"
        with pytest.raises(ProblemError, match=said):
            om.Design.load(path)
        with pytest.raises(ProblemError, match="is compressed"):
            read_document(path)


def test_strangers_exceptions_have_words() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError

    for error in (KeyError("x"), IndexError(), LookupError("e"), OddError(), ZeroDivisionError(),
                  MemoryError(), RecursionError()):  # fmt: skip
        with (
            pytest.raises(ProblemError, match=r"file: is bad: \w+") as caught,
            translated("file", "is bad"),
        ):
            raise error
        assert caught.value.remedy
    with pytest.raises(ProblemError, match=r"^own$"), translated("file", "is bad"):
        raise ProblemError("own")


@pytest.mark.parametrize(
    "text", ["\x1b]0;x\x07", "\0", "\n", "\u202e", "\u2066", "\u200d", "\ud800", "\u2028", "\x85"]
)
def test_nothing_that_a_terminal_obeys_reaches_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    shown = printable(f"a{text}b")
    assert shown.isprintable()
    assert shown == f"a{ascii(text)[1:-1]}b"
    document = {
        "format": 1, "title": f"t{text}", "loss": "euclidean",
        "secrets": {"kind": "line", "count": 2, "unit": f"u{text}"},
        "prior": {"kind": "csv", "file": f"f{text}.csv", "x": "x", "y": "y"},
    }  # fmt: skip
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["solve", str(path)]) == 2
    if text != "\ud800":
        document["prior"] = "uniform"
        path.write_text(json.dumps(document), encoding="utf-8")
        assert main(["solve", str(path), "-q"]) == 0
    out, err = capsys.readouterr()
    assert (out + err).replace("\n", "").isprintable()
    assert len(err.splitlines()) < 4


def test_text_with_a_mark_of_byte_order(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbf\xc3\xa9")
    assert read_text(tmp_path / "x") == "é"


@pytest.mark.parametrize("mark", [";", "\t"])
def test_other_separators_are_read_wherever_tables_are(mark: str, tmp_path: Path) -> None:
    """Numbers with decimal commas, in columns of coordinates, of weights and without a header."""
    cells = [["x", "y", "name, long", "w"], ["1,5", "2", "a", "3"], ["-3", "4,25e0", "b;c", "1,5"]]
    rows = [mark.join(f'"{cell}"' if mark in cell else cell for cell in row) for row in cells]
    (tmp_path / "t.csv").write_text("\n".join(["", *rows]) + "\n")
    found = read_columns(tmp_path / "t.csv", ["x", "y", "w"])
    assert {name: column.tolist() for name, column in found.items()} == {
        "x": [1.5, -3.0], "y": [2.0, 4.25], "w": [3.0, 1.5]
    }  # fmt: skip
    assert read_text_columns(tmp_path / "t.csv", ["name, long"]) == {"name, long": ["a", "b;c"]}
    (tmp_path / "m.csv").write_text(f"1,5{mark}2,5\n3{mark}4\n")
    assert [row.tolist() for row in read_rows(tmp_path / "m.csv")] == [[1.5, 2.5], [3.0, 4.0]]
    (tmp_path / "comma.csv").write_text("1,5\n")
    assert [row.tolist() for row in read_rows(tmp_path / "comma.csv")] == [[1.0, 5.0]]


@pytest.mark.parametrize(
    "cells", [("1,5", "1.5"), ("1.5", "1,5"), ("1,234,567",), ("1.234,5",), ("1,234.5",)]
)
def test_two_decimal_marks_in_a_column_are_refused(cells: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x;y\n" + "".join(f"{cell};1\n" for cell in cells))
    with pytest.raises(ProblemError, match="points and with commas"):
        read_columns(tmp_path / "t.csv", ["x", "y"])
    assert read_columns(tmp_path / "t.csv", ["y"])["y"].tolist() == [1.0] * len(cells)


def test_words_with_marks_are_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x;y\nn.a.;1\n1,5;2\nunknown, lost;3\n;4\n")
    found = read_columns(tmp_path / "t.csv", ["x"])["x"]
    assert np.isnan(found).tolist() == [True, False, True, True]


def test_a_file_with_nothing_to_read_yet_is_refused() -> None:
    """Such as /proc/kmsg, which is a regular file and has no end."""
    for read in (lambda s: s.read(), lambda s: s.read(10), lambda s: s.readline(), list):
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        with bounded._Ready(ours) as raw, pytest.raises(OSError, match="nothing to read"):
            read(io.BufferedReader(raw))
        os.close(theirs)


def test_the_audit_waits_for_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.omm")
    pipe, other = str(tmp_path / "pipe.omm"), tmp_path / "other.omm"
    other.write_bytes(b"")
    for given in ([pipe], [pipe, str(other)], [str(other), pipe]):
        assert audit.main(given) in (1, 2)
