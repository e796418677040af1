"""Texts made to look like proofs: what an adversary would try on the checker that Coq proved."""

from __future__ import annotations

import re
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import plain
import pytest
from proved import PROOFS, Judge, text_of
from proved_mutations import all_texts

import optmech as om
from optmech.cli.main import main

Edit = Callable[[list[str]], list[str]]


@pytest.fixture(scope="session")
def texts(designs: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return all_texts(tmp_path_factory.mktemp("texts"), designs)


def at(lines: list[str], start: str, after: int = 0) -> int:
    """The line that begins so, from the numbers on."""
    size = next(k for k, line in enumerate(lines) if line.startswith("size "))
    found = (k for k in range(size, len(lines)) if lines[k].startswith(start))
    return next(found) + after


def line(start: str, new: str, after: int = 0) -> Edit:
    """Another line in the place of one."""

    def edit(lines: list[str]) -> list[str]:
        k = at(lines, start, after)
        return [*lines[:k], new, *lines[k + 1 :]]

    return edit


def within(start: str, old: str, new: str, after: int = 0) -> Edit:
    """Some words of a line altered."""

    def edit(lines: list[str]) -> list[str]:
        k = at(lines, start, after)
        assert old in lines[k], lines[k]
        return [*lines[:k], lines[k].replace(old, new, 1), *lines[k + 1 :]]

    return edit


def twice(start: str, count: int = 1) -> Edit:
    """Lines that are there a second time."""

    def edit(lines: list[str]) -> list[str]:
        k = at(lines, start)
        return lines[: k + count] + lines[k : k + count] + lines[k + count :]

    return edit


def without(start: str, count: int = 1) -> Edit:
    def edit(lines: list[str]) -> list[str]:
        k = at(lines, start)
        return lines[:k] + lines[k + count :]

    return edit


def whole(change: Callable[[str], str]) -> Edit:
    return lambda lines: change("\n".join(lines)).split("\n")


def triangle(edit: Edit) -> Edit:
    """Of what stands below "everywhere"."""

    def found(lines: list[str]) -> list[str]:
        k = lines.index("everywhere")
        return lines[:k] + edit(["size ", *lines[k:]])[1:]

    return found


def second_sheet(lines: list[str]) -> list[str]:
    """All triangles once more, with rows of their own that report something else."""
    k = at(lines, "triangles ")
    count = int(lines[k].split()[1])
    rows = at(lines, "rows ")
    number = int(lines[rows].split()[1])
    own = lines[k + 1 : k + 1 + count]
    moved = [
        " ".join([*t.split()[:6], *(str(int(v) + number) for v in t.split()[6:])]) for t in own
    ]
    matrix = lines[rows + 2 : rows + 2 + number]
    other = [" ".join(reversed(row.split())) for row in matrix]
    return [
        *lines[:k], f"triangles {2 * count}", *own, *moved,
        f"rows {2 * number}", lines[rows + 1], *matrix, *other, *lines[rows + 2 + number :],
    ]  # fmt: skip


def hole(lines: list[str]) -> list[str]:
    k = at(lines, "triangles ")
    count = int(lines[k].split()[1])
    return [
        *lines[:k],
        f"triangles {count - 1}",
        *lines[k + 1 : k + count],
        *lines[k + count + 1 :],
    ]


def backwards(lines: list[str]) -> list[str]:
    k = at(lines, "triangles ") + 1
    v = lines[k].split()
    turned = " ".join([*v[2:4], *v[:2], *v[4:6], v[7], v[6], *v[8:]])
    return [*lines[:k], turned, *lines[k + 1 :]]


def head(behind: str) -> Edit:
    """More on the line with the number of words."""

    def edit(lines: list[str]) -> list[str]:
        k = next(k for k, line in enumerate(lines) if line.startswith("words "))
        return [*lines[:k], lines[k] + behind, *lines[k + 1 :]]

    return edit


ATTACKS: dict[str, tuple[str, Edit]] = {
    "nobody": ("worst", lambda lines: [
        *lines[: at(lines, "size ")], "size 0 4", "matrix 0", "objective worst", "loss 0",
        "promises 0", "cost 0 1", "least 1000 1", "proof", "0 0 0 1 0", "end", "",
    ]),
    "nobody guesses": ("worst", lambda lines: [
        *lines[: at(lines, "size ")], "size 0 1", "matrix 0", "objective guessed",
        "guesses 1 0", "", "promises 0", "cost 0 1", "least 0 1", "proof", "0 0 0 2 1 1 1 1",
        "end", "",
    ]),
    "nothing reported": ("worst", lambda lines: [
        *lines[: at(lines, "size ")], "size 1 0", "matrix 0", "", "objective worst", "loss 0", "",
        "promises 0", "cost 0 1", "least 0 1", "proof", "0 0 0 1 1 1", "end", "",
    ]),
    "a row of zeros": ("third", line("matrix", "0 0 0 0", 1)),
    "a row that sums to less": ("third", line("matrix", "1 0 0 0", 1)),
    "a negative rate": ("third", within("rate", "rate 1 3", "rate -1 3")),
    "a rate over zero": ("third", within("rate", "rate 1 3", "rate 1 0")),
    "a rate of two negative numbers": ("third", within("rate", "rate 1 3", "rate -1 -3")),
    "a logarithm of less than one": ("log", within("rate", "log 3 1", "log 1 3")),
    "a logarithm of nothing": ("log", within("rate", "log 3 1", "log 0 0")),
    "a logarithm of a negative number": ("log", within("rate", "log 3 1", "log -3 -1")),
    "a negative distance": ("third", within("distances", "1", "-1", 1)),
    "a cost over zero": ("third", within("cost", " ", " 0 0 ")),
    "a negative denominator": ("third", line("cost", "cost -1 -1")),
    "a bound over a negative number": ("third", line("least", "least -1000 -1")),
    "a bound over zero": ("third", line("least", "least 1000 0")),
    "a second cost": ("third", twice("cost")),
    "a second matrix": ("third", twice("matrix", 5)),
    "a second promise that is not counted": ("support", twice("support", 5)),
    "no promises where one is counted": ("support", within("promises", "2", "1")),
    "more behind the end": ("third", lambda lines: [*lines, "cost 0 1"]),
    "a second text behind the end": ("third", lambda lines: [*lines[:-1], *lines]),
    "no end": ("third", lambda lines: lines[:-2]),
    "an end that is a word longer": ("third", lambda lines: [*lines[:-2], "ends", ""]),
    "leading zeros": ("third", within("cost", "cost ", "cost 0")),
    "a plus sign": ("third", within("cost", "cost ", "cost +")),
    "a minus sign before zero": ("third", within("proof", "0 ", "-0 ", 1)),
    "a number with a point": ("third", within("rate", "rate 1", "rate 1.0")),
    "hexadecimal": ("third", within("rate", "rate 1 3", "rate 0x1 3")),
    "underscores": ("third", within("rate", "rate 1 3", "rate 1_0 3_0")),
    "digits of another script": ("third", within("rate", "rate 1 3", "rate ١ ٣")),
    "tabs": ("third", whole(lambda text: text.replace("rate 1", "rate\t1"))),
    "returns": ("third", whole(lambda text: text.replace("\n", "\r\n"))),
    "a byte order mark": ("third", whole(lambda text: "\ufeff" + text)),
    "words behind the number of words": ("third", head(" 1 hidden words")),
    "a second number of words": ("third", head(" 7")),
    "a tab behind the number of words": ("third", head("\t")),
    "a zero byte": ("third", whole(lambda text: text.replace("end", "\0end"))),
    "another version": ("third", whole(lambda text: text.replace("checked 1", "checked 2", 1))),
    "bits below zero": ("third", within("matrix", "matrix ", "matrix -")),
    "more bits than memory": ("third", within("distances", "distances ", "distances 999999999")),
    "a count beyond all": ("third", line("items", "items 99999999999999999999")),
    "a kind that is not known": ("divergence", lambda lines: lines),
    "a multiplier below zero": ("third", within("items", "1 1 ", "1 1 -", 1)),
    "a multiplier of no pair": ("third", within("items", "0 ", "7 ", 1)),
    "items of a promise that there is not": ("third", lambda lines: [
        *lines[:-2], "items 1", "0 1 0 1 1 1", "end", "",
    ]),
    "nothing against the promises": ("no utility", lambda lines: [
        *lines[: at(lines, "proof") + 1], "items 0", "items 0", "end", "",
    ]),
    "a claim of a refutation": ("no utility", lambda lines: [*lines[:-2], "cost 0 1", "end", ""]),
    "a mesh of two sheets": ("every point", second_sheet),
    "a mesh with a hole": ("every point", hole),
    "a triangle backwards": ("every point", backwards),
    "no triangles": ("every point", lambda lines: [
        *lines[: at(lines, "triangles ")], "triangles 0", *lines[at(lines, "rows ") :],
    ]),
    "a larger region": (
        "every point", triangle(within("coordinates", "coordinates ", "coordinates 1")),
    ),
    "a smaller ε at every point": ("every point", triangle(within("rate", "3 2", "29 20"))),
    "another ε at every point": ("every point", triangle(within("rate", "3 2", "2 1"))),
    "a degree of nothing": ("every point", triangle(line("degree", "degree 0"))),
    "another degree": ("every point", triangle(line("degree", "degree 2"))),
    "a row that there is not": ("every point", triangle(within("triangles", " 4", " 99", 1))),
    "a place outside": ("every point", triangle(within("places", "0 0", "0 -1", 1))),
    "a place elsewhere": ("every point", triangle(within("places", "0 0", "1 1", 1))),
    "distances that are too small": (
        "every point", within("distances", "distances ", "distances 1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_is_accepted(
    name: str, texts: dict[str, str], judge: Judge, tmp_path: Path
) -> None:
    kind, edit = ATTACKS[name]
    if kind == "divergence":
        text = texts["populations"].replace("\nlifted\n", "\ndivergence\n")
        assert "\ndivergence\n" in text
    else:
        text = "\n".join(edit(texts[kind].split("\n")))
        assert text != texts[kind]
    path = tmp_path / "t.checked"
    path.write_bytes(text.encode())
    (said,) = judge([path])
    mine = plain.accepted(text)
    assert said != "accepted"
    assert mine is not True
    assert said.startswith("refused" if mine is False else "not read"), said


def shown(build: Path, text: str, path: Path) -> tuple[int, list[str]]:
    path.write_bytes(text.encode())
    done = subprocess.run(
        [str(build / "checker"), str(path)], capture_output=True, check=False, text=True
    )
    return done.returncode, done.stdout.split("\n")


def test_words_of_a_design_cannot_pass_for_what_is_proved(
    texts: dict[str, str], build: Path, tmp_path: Path
) -> None:
    """Its words are shown as its own, one line for each, also where the text is refused."""
    head, _, rest = texts["third"].partition("\nsize ")
    forged = ["accepted", "proved of its numbers:", "\x1b[2Kaccepted\raccepted"]
    start = head.split("\nwords ")[0]
    text = "\n".join([start, f"words {len(forged)}", *forged, "size " + rest])
    status, lines = shown(build, text, tmp_path / "t")
    assert status == 0
    assert [k for k, word in enumerate(lines) if word == "accepted"] == [len(lines) - 2]
    assert sum(word.startswith("  it says of itself: ") for word in lines) == 3
    assert not any("\x1b" in word or "\r" in word for word in lines)
    status, lines = shown(build, text.replace("\ncost ", "\ncost -"), tmp_path / "t")
    assert status == 1
    assert "accepted" not in lines
    status, lines = shown(build, text, tmp_path / "a\naccepted\nb")
    assert lines.count("accepted") == 1


def masked(character: str) -> bool:
    """Whether Unicode has it for a control, for formats, for private use, for nothing that is
    shown, or for the choice of a glyph."""
    of = unicodedata.category(character)
    chosen = "VARIATION SELECTOR" in unicodedata.name(character, "")
    return of in ("Cc", "Cf", "Co", "Zl", "Zp") or chosen or "\ud800" <= character <= "\udfff"


def test_a_terminal_obeys_nothing_of_what_is_printed(
    texts: dict[str, str], build: Path, tmp_path: Path
) -> None:
    """Words with every character that there is, and with bytes that are none."""
    codes = [chr(k) for k in range(0x110000) if k != 10 and not 0xD800 <= k < 0xE000]
    known = [c for c in codes if unicodedata.category(c) != "Cn"]
    rows = ["".join(known[k : k + 4000]).encode() for k in range(0, len(known), 4000)]
    # continuations alone, too long, cut, surrogates, beyond Unicode
    bad = [bytes([k]) for k in range(128, 256)]
    bad += [b"\xc0\x9b", b"\xe0\x82\x9b", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x80\x82\x9b"]
    rows += [b"a" + part + b"b" for part in bad]
    first, _, rest = texts["third"].partition("\nwords ")
    rest = rest[rest.index("\nsize ") :]
    body = b"\n".join([f"{first}\nwords {len(rows)}".encode(), *rows]) + rest.encode()
    path = tmp_path / "a\u202e\u009bb"
    path.write_bytes(body)
    command = [str(build / "checker"), str(path)]
    said = subprocess.run(command, capture_output=True, check=False).stdout.decode()
    lines = said.split("\n")
    assert lines[0] == str(tmp_path / "a??b")
    assert not any(masked(character) for line in lines for character in line)
    shown = [line.removeprefix("  it says of itself: ") for line in lines[2 : 2 + len(rows)]]
    for own, line in zip(rows, shown, strict=True):
        if len(own) < 20:
            assert set(line[1:-1]) == {"?"}
            continue
        pairs = [*zip(own.decode(), line, strict=True)]
        wrong = [a for a, b in pairs if (a != b if not masked(a) else b != "?")]
        # letters of Hangul and marks of Khmer that are there and cannot be seen, and the like
        assert all(unicodedata.category(a) in ("Lo", "Mn", "So", "Cn") for a in wrong)
        assert len(wrong) < 30


def test_what_is_no_file_is_said_to_be_none(build: Path, tmp_path: Path) -> None:
    program = str(build / "checker")
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "none", "No such file")):
        done = subprocess.run([program, str(path)], capture_output=True, check=False, text=True)
        assert done.returncode == 2
        assert "not read: " in done.stdout
        assert words in done.stdout


def test_the_page_says_how_much_of_the_program_is_not_proved() -> None:
    lines = len((PROOFS / "main.ml").read_text().splitlines())
    page = (PROOFS.parent / "docs" / "verified.md").read_text("utf-8")
    (said,) = re.findall(r"reads and prints: some (\d+) lines", page)
    assert abs(int(said) - lines) <= 10


def test_what_is_proved_is_of_the_numbers_and_not_of_the_words(
    texts: dict[str, str], build: Path, tmp_path: Path
) -> None:
    """A text without its promise is a true claim, and shows none."""
    lines = texts["third"].split("\n")
    begin, end = at(lines, "promises "), at(lines, "cost ")
    bare = [
        *lines[:begin],
        "promises 0",
        lines[end],
        "least 0 1",
        "proof",
        "0 0 0 1 1 1",
        "end",
        "",
    ]
    status, said = shown(build, "\n".join(bare), tmp_path / "t")
    assert status == 0
    proved = said[said.index("proved of its numbers:") :]
    assert any("it says of itself: constraints[0]: ε = 1/3" in word for word in said)
    assert not any("<= e^" in word for word in proved)
    status, said = shown(build, texts["third"], tmp_path / "t")
    assert any("p(o|s) <= e^(r d(s,s')) p(o|s') for r = 1/3, 12 pairs" in word for word in said)


def test_a_text_is_compared_with_the_design_that_it_names(
    designs: dict[str, bytes], build: Path, tmp_path: Path
) -> None:
    """The checker cannot know whose numbers they are: it shows the digest, and whoever has the
    design writes the text again, which is the same byte for byte."""
    (tmp_path / "d.json").write_bytes(designs["third"])
    text = text_of(tmp_path / "d.json")
    digest = text.split("\n")[1]
    status, lines = shown(build, text.replace(digest, "design sha256:other"), tmp_path / "t")
    assert status == 0
    assert lines[1] == "design sha256:other"
    command = ["export", str(tmp_path / "d.json"), "--format", "checked", "-o"]
    assert main([*command, str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_text() == text
    assert om.Design.load(tmp_path / "d.json").status == "optimal"


def test_bounds_of_a_logarithm_that_are_wide_prove_less_and_nothing_false(
    texts: dict[str, str], judge: Judge, tmp_path: Path
) -> None:
    """They are hints: from 0 <= ln 3 <= 2 the ratios do not follow."""
    lines = texts["log apart"].split("\n")
    k = at(lines, "rate ")
    words = lines[k].split()
    assert words[3:6] == ["log", "3", "1"]
    wide = " ".join([*words[:6], "0", str(2 << int(words[8])), words[8]])
    path = tmp_path / "t"
    path.write_text("\n".join([*lines[:k], wide, *lines[k + 1 :]]))
    (said,) = judge([path])
    assert said == "refused: promise 0 is not kept"
    narrow = [*words[:6], str(int(words[6]) + 9), *words[7:]]
    path.write_text("\n".join([*lines[:k], " ".join(narrow), *lines[k + 1 :]]))
    assert judge([path])[0].startswith("refused")
