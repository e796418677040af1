"""Reading files: syntax errors with their line, and what is refused before it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from optmech.errors import ProblemError
from optmech.files import find_problem
from optmech.reading.bounded import MAX_BYTES
from optmech.reading.source import read_document


def write(tmp_path: Path, content: str | bytes, name: str = "p.toml") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_toml_and_json_give_the_same_document(tmp_path: Path) -> None:
    toml = write(tmp_path, 'format = 1\nx = [1.5, "é"]\n[a]\nb = true\n')
    json = write(tmp_path, '{"format": 1, "x": [1.5, "é"], "a": {"b": true}}', "p.json")
    assert read_document(toml) == read_document(json)
    assert read_document(toml) == {"format": 1, "x": [1.5, "é"], "a": {"b": True}}


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    assert read_document(write(tmp_path, b"\xef\xbb\xbfformat = 1")) == {"format": 1}


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("a = 1\nb = = 2\n", "p.toml", r"is not valid TOML: .*line 2"),
        ("a = 1\na = 2\n", "p.toml", r"is not valid TOML: .*line 2"),
        ('{"a": 1,\n "b": }', "p.json", r"is not valid JSON: .*line 2, column 7"),
        ('{"a": 1, "a": 2}', "p.json", "key 'a' occurs twice"),
        ("[1, 2]", "p.json", "the top level is a list"),
        (b"a = '\xff'", "p.toml", "is not UTF-8 text: byte 5"),
        ("a = 9223372036854775808", "p.toml", "does not fit into 64 bits"),
        ("a = 0x" + "f" * 4000, "p.toml", "does not fit into 64 bits"),
        ("a = 1" + "0" * 5000, "p.toml", "is not valid TOML"),
        ('{"a": 1' + "0" * 5000 + "}", "p.json", "is not valid JSON"),
        ('{"a": "\\ud800"}', "p.json", "half of a surrogate pair"),
        ('{"\\ud800": 1}', "p.json", "half of a surrogate pair"),
        ("a = 1\n" + "b" + ".b" * 40 + " = 1", "p.toml", "nests deeper than 32 levels"),
    ],
)
def test_refused_content(tmp_path: Path, content: str | bytes, name: str, message: str) -> None:
    path = write(tmp_path, content, name)
    with pytest.raises(ProblemError, match=message) as caught:
        read_document(path)
    assert caught.value.where.startswith(str(path))
    assert caught.value.remedy


def test_too_large_a_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    with path.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(ProblemError, match="more than the 67,108,864 allowed"):
        read_document(path)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "."])
def test_only_regular_files_are_read(path: str) -> None:
    with pytest.raises(ProblemError, match=r"is not a file|cannot be read"):
        read_document(Path(path))


@pytest.mark.parametrize("name", ["nosuch.toml", "nosuch", "a\0b", "x" * 5000, ""])
def test_missing_files_name_the_gallery(name: str) -> None:
    with pytest.raises(ProblemError) as caught:
        read_document(find_problem(name))
    assert caught.value.remedy
    assert str(caught.value).isprintable()


def test_a_misspelt_gallery_name_is_suggested() -> None:
    with pytest.raises(ProblemError, match="Did you mean montreal"):
        find_problem("montreall")


def test_a_file_comes_before_the_gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "format = 1", "metric")
    (tmp_path / "joint").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_problem("metric") == Path("metric")
    assert find_problem("joint").name == "joint.toml"
