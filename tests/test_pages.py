"""All documents together: nothing stands twice, and what refers to a page, a section or a file
finds it."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from each import each

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="not a checkout")

_GENERATED = re.compile(r"<!-- begin ([\w:.-]+).*?<!-- end \1 -->", re.S)
_CODE = re.compile(r"^ *```.*?^ *``` *$", re.S | re.M)


def kept(*endings: str) -> list[Path]:
    """The files of the repository with these endings, but for what is built or installed."""
    roots = [ROOT / "docs", ROOT / "optmech", ROOT / "solvers", ROOT / "benchmarks", ROOT / "tests"]
    roots += [ROOT / "problems", ROOT / "packages"]
    found = [path for folder in roots for path in folder.rglob("*") if path.suffix in endings]
    return sorted({*found, *(path for path in ROOT.iterdir() if path.suffix in endings)})


PAGES = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in kept(".md")}


# by benchmarks/gallery.py, from one template for every problem
BY_TEMPLATE = {"docs/gallery.md", "docs/gallery-more.md"}


def prose(text: str) -> str:
    """A page without code and without what programs write, line by line where it was."""
    for pattern in (_GENERATED, _CODE):
        text = pattern.sub(lambda found: "\n" * found[0].count("\n"), text)
    return text


def bare(text: str) -> str:
    """Without blanks and formatting, so that what is set in another way is the same."""
    return re.sub(r"[\\${}*`_\s,]|left|right", "", text).replace("varphi", "φ")


def twice(where: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    return [(what, places) for what, places in where.items() if len(places) > 1]


# ---------------------------------------------------------------- what stands twice
def test_no_three_lines_stand_twice() -> None:
    seen = defaultdict(list)
    for name, text in PAGES.items():
        lines = [line.strip() for line in prose(text).splitlines()]
        for k in range(len(lines) - 2):
            block = lines[k : k + 3]
            head = any(line.startswith("|--") for line in block)
            if all(block) and not head and len(bare("".join(block))) >= 40:
                seen["\n".join(block)].append(f"{name}:{k + 1}")
    assert len(seen) > 2000
    assert twice(seen) == []


@each("name", sorted(PAGES.keys() - BY_TEMPLATE))
def test_no_sentence_stands_twice_on_a_page(name: str) -> None:
    seen = defaultdict(list)
    text = "\n".join("" if x.startswith("|") else x for x in prose(PAGES[name]).splitlines())
    for sentence in re.split(r"(?<=[.:;])\s+|\n\n", text):
        if len(bare(sentence)) >= 40:
            seen[bare(sentence)].append(sentence[:60])
    assert twice(seen) == []


def tables(text: str) -> list[list[list[str]]]:
    """The rows of every table, cell by cell."""
    blocks = re.findall(r"(?:^\|.*\n?)+", prose(text), re.M)
    rows = [[re.split(r"(?<!\\)\|", line)[1:-1] for line in block.splitlines()] for block in blocks]
    return [table[2:] for table in rows if len(table) > 2]


@each("name", PAGES)
def test_no_row_stands_twice_in_a_table(name: str) -> None:
    """Rows begin with what they are about: its words, or, where it has few, two cells."""
    for table in tables(PAGES[name]):
        seen = defaultdict(list)
        for row in table:
            link = re.search(r"\]\([^)]*\)", row[0])
            words = bare(row[0]) if link else "|".join(map(bare, row[:2]))
            if link or len(re.findall(r"[a-z]", words)) >= 6:
                numbers = "|".join(cell for cell in map(bare, row[2:]) if re.match(r"[−\d.]", cell))
                seen[words if link else f"{words}|{numbers}"].append(" |".join(row)[:60])
        assert twice(seen) == []


@each("name", PAGES)
def test_lists_count_up(name: str) -> None:
    last = 0
    for line in prose(PAGES[name]).splitlines():
        item = re.match(r"(\d)\d?\. ", line)
        if item and (last or item[0].startswith("1.")):
            assert int(line.split(".")[0]) == last + 1, line
            last += 1
        elif line and not line.startswith(" "):
            last = 0


@each("name", PAGES)
def test_no_heading_stands_twice_on_a_page(name: str) -> None:
    headings = re.findall(r"^##? .*$", prose(PAGES[name]), re.M)
    if name != "CHANGELOG.md":
        assert sorted(headings) == sorted(set(headings))


# ---------------------------------------------------------------- how pages are told apart
ON_THE_SITE = sorted(name for name in PAGES if name.startswith("docs/"))


@each("name", ON_THE_SITE)
def test_no_page_is_longer_than_an_hour_of_reading(name: str) -> None:
    assert len(PAGES[name].split()) <= 8000


def test_no_two_pages_have_one_name() -> None:
    """Neither the name of a file, nor a title, nor a line of the navigation."""
    files, titles = defaultdict(list), defaultdict(list)
    for name in ON_THE_SITE:
        files[Path(name).name].append(name)
        title = re.search(r"^# (.*)$", _CODE.sub("", PAGES[name]), re.M)
        assert title is not None, name
        titles[title[1].lower()].append(name)
    assert twice(files) == twice(titles) == []
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    lines = re.findall(r"^ *- (.*?): (\S+\.md)$", navigation, re.M)
    assert sorted(f"docs/{page}" for _, page in lines) == ON_THE_SITE
    assert len({words.lower() for words, _ in lines}) == len(lines)


def test_diaries_stand_behind_the_notes_for_developers() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    notes = navigation.partition("- Notes for developers:\n")[2].partition("\n  - ")[0]
    for page in ("architecture", "engines", "city", "defects"):
        assert f": {page}.md" in notes


# ---------------------------------------------------------------- what refers to something
def places(text: str) -> set[str]:
    """The anchors of a page's headings, as the site writes them: without accents."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", _CODE.sub("", text), re.M):
        plain = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading))
        ascii = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        found.add(re.sub(r"[-\s]+", "-", ascii.strip().lower()))
    return found | set(re.findall(r'(?:id|name)="([^"]+)"', text))


@each("name", PAGES)
def test_every_relative_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    for link in re.findall(r"\]\(<?([^)\s>]+)>?[^)]*\)", _CODE.sub("", PAGES[name])):
        plain, place = urldefrag(unquote(link))
        if re.match(r"[a-z]+:", link) or plain.startswith("/"):
            continue
        target = (page.parent / plain).resolve() if plain else page
        assert target.exists(), link
        if place and target.suffix == ".md":
            assert place in places(target.read_text("utf-8")), link


THEORY = {name: text for name, text in PAGES.items() if re.match(r"docs/theory[./]", name)}
TITLES = {
    name: {
        *re.findall(r"^#+ (.*)$", text, re.M),
        *(title.rstrip(".") for title in re.findall(r"^(?:\* )?\*{1,2}([^*]+?)\*", text, re.M)),
    }
    for name, text in THEORY.items()
}
ALL_TITLES = set().union(*TITLES.values())
# what the theory has in quotation marks that is no section
WORDS = {
    "Optimal",
    "Floats as they are",
    "As drawn",
    "Rounded out",
    "Neither",
    "Distribution privacy of P for all pairs (λ̄_t, λ̄_t'), both ways",
}


def joined(text: str) -> str:
    """Lines of prose, of docstrings and of comments as one."""
    return re.sub(r"\s*\n\s*(?:#\s+|//\s*)?", " ", text)


def test_every_section_of_the_theory_that_is_referred_to_is_there() -> None:
    count = 0
    named = re.compile(
        r"[Tt]heory(/[\w-]+)?(?:\.md)?(?:`|\)|\]|\]\(\S*theory(/[\w-]+)\.md[^)]*\))*[,:]? \(?"
        r'(?:(?:end of )?sections? (\d+)|§ ?(\d+)|(?:section )?"([^"]+)"|Theorem (\d+))'
    )
    for path in kept(".md", ".py", ".js", ".toml", ".html"):
        if path == Path(__file__):
            continue
        for *chapters, section, sign, title, theorem in named.findall(
            joined(path.read_text("utf-8"))
        ):
            count += 1
            chapter = "".join(chapters)
            titles = TITLES[f"docs/theory{chapter}.md"] if chapter else ALL_TITLES
            if theorem:
                assert any(f"**Theorem {theorem}" in text for text in THEORY.values()), path
            else:
                assert title.replace("'", '"') in titles, (path, section or sign or title)
    assert count > 60


def test_the_theory_refers_to_its_own_sections() -> None:
    """Those of its own chapter by their names, those of others with a link."""
    linked = 0
    for name, page in THEORY.items():
        text = joined(_CODE.sub("", page))
        away = re.findall(r'\["([^"]+)"\]\(([^)#]+)#', text)
        linked += len(away)
        assert {
            title for title, other in away if title not in TITLES[f"docs/theory/{other}"]
        } == set()
        text = re.sub(r'\["[^"]+"\]\([^)#]+#', "", text)
        quoted = set(re.findall(r'"([A-Z][^"]{2,80})"', text))
        assert sorted(quoted - TITLES[name] - WORDS) == [], name
        # of other works; its own have names
        assert re.findall(r"(?<!TP19 )(?<!edition, )[Ss]ections? \d+", text) == []
    assert linked > 20


def test_theorems_have_numbers_of_their_own() -> None:
    numbers = [
        number for text in THEORY.values() for number in re.findall(r"\*\*Theorem (\d+)", text)
    ]
    assert sorted(map(int, numbers)) == list(range(1, len(numbers) + 1))


def test_nothing_is_said_to_come_from_an_index() -> None:
    """optmech is on no package index, where anybody could take its name."""
    for path in kept(".md", ".py", ".toml", ".js", ".html"):
        text = joined(path.read_text("utf-8"))
        told = re.search(r"pip3? install (?:-\S+ )*[\"']?optmech\b", text)
        assert told is None or path == Path(__file__), (path, told)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = "\n".join(
        PAGES["docs/platforms.md"].split("## Extras\n")[1].split("\n\n")[1].split("\n")
    )
    needed = {name for name, packages in extras["optional-dependencies"].items() if packages}
    assert set(re.findall(r"`(\w+)`", named)) == needed
