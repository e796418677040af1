"""docs/theory.md and its chapters against the code: every section in its table, every family and
objective in theirs, and a row in "What each 'at most' assumes" for every public bound."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from test_reference import PUBLIC

import optmech as om
from optmech.certificate.families import FAMILIES
from optmech.certificate.families.base import _OBJECTIVES
from optmech.certificate.objective import Figures

DOCS = Path(__file__).resolve().parent.parent / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="not a checkout")

OBJECTIVES = {
    "expected_loss": "objective: expected loss",
    "worst_loss": "objective: worst loss",
    "maximize_distortion": "objective: −distortion",
    "minimize_leakage": "objective: leakage",
    "minimize_variance": "objective: variance",
}

WORDS = re.compile(
    r"\b(bound(s|ed)?|lower|upper|intervals?|guarantees?|proofs?|prove[sdn]?|certified|gap|budget"
    r"|enclos\w+|exact(ly)?|at most|at least|no (less|more) than)\b"
)
FIELDS = {"lower", "upper", "bound", "lower_bound", "gap", "total_gap", "deficiency", "snap"}

ENDS = {
    "lower": "lower",
    "lower_bound": "lower",
    "bound": "lower",
    "upper": "upper",
    "snap": "upper",
}

# Names whose docstrings have one of the words, and claim no bound of a number.
NOTHING_CLAIMED = {
    "bounds of a rectangle or range of places": (
        "Grid Grid.geographic Grid.frame mechanisms.rounded_degrees"
    ),
    "limits of a size, of a search or of a file": (
        "Profile.gap Profile.with_limits exchange.read_osm observables.quadrisect "
        "mechanisms.dense_areas"
    ),
    "gaps and intervals of time": (
        "traces.Fixes.sequences traces.Fixes.visits traces.Fixes.runs traces.MarkovPrior.marginals"
    ),
    "pictures of figures that are proved elsewhere": (
        "plots.attack_error plots.constraint_slack plots.tradeoff plots.region_picture"
    ),
    "definitions that have the word, of values in floating point": (
        "distances.elastic divergences.hockey_stick divergences.max_divergence transport.diameter "
        "measures.delta noise.NoiseLoss noise.NoiseLoss.is_bounded noise.NoiseLoss.minorant"
    ),
}


def section(title: str, page: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def table(text: str, head: str) -> list[list[str]]:
    """The rows of the table whose first head this is."""
    rest = text[text.index(f"| {head} |") :].split("\n\n")[0].splitlines()
    return [row.removeprefix("| ").removesuffix(" |").split(" | ") for row in rest[2:]]


def first_cells(text: str, head: str) -> list[str]:
    return [row[0] for row in table(text, head)]


def families(text: str) -> list[str]:
    return [re.split(r"[ $(]", cell)[0] for cell in first_cells(text, "family")]


def test_sections_stand_by_room_and_once() -> None:
    text = (DOCS / "theory.md").read_text(encoding="utf-8")
    architecture = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rooms = {cell.strip("`") for cell in first_cells(architecture, "room")}
    listed = table(text, "chapter")
    named = {room.strip("`") for _, cell, _ in listed for room in cell.split(", ")}
    assert named - rooms <= {"every room", *(path.name for path in DOCS.parent.glob("packages/*"))}
    titles: list[str] = []
    for chapter, _, cell in listed:
        (heading, page), *_ = re.findall(r"\[([^]]+)\]\(([^)]+)\)", chapter)
        told = (DOCS / page).read_text(encoding="utf-8")
        assert told.startswith(f"# {heading}\n")
        own = re.findall(r"^## (.*)$", told, flags=re.MULTILINE)
        assert own == re.findall(rf"\[([^]]+)\]\({page}#", cell)
        titles += own
    assert len(set(titles)) == len(titles)
    chapters = {path.relative_to(DOCS).as_posix() for path in (DOCS / "theory").glob("*.md")}
    assert chapters == set(re.findall(r"theory/[\w-]+\.md(?=\) \|)", text))


@pytest.mark.parametrize(
    ("page", "title"),
    [("theory/lagrangian.md", "The statement"), ("architecture.md", "The statement")],
)
def test_every_family_is_listed_once(page: str, title: str) -> None:
    assert sorted(families(section(title, page).replace("lifted ratio", "lifted"))) == sorted(
        FAMILIES
    )


def test_every_family_and_objective_has_its_multipliers() -> None:
    bound = section("The Lagrangian bound", "theory/lagrangian.md")
    cells = first_cells(bound, "family")
    stated = [cell for cell in cells if cell.startswith("objective")]
    assert sorted(stated) == sorted(OBJECTIVES.values())
    assert sorted(OBJECTIVES) == sorted(_OBJECTIVES)
    assert sorted(set(families(bound)) - {"objective:"}) == sorted(FAMILIES)
    assert len(cells) == len(FAMILIES) + len(OBJECTIVES)


def test_the_number_of_families_in_words() -> None:
    numbers = ["nine", "ten", "eleven", "twelve", "thirteen", "fourteen"]
    word = numbers[len(FAMILIES) - 9]
    for page in DOCS.rglob("*.md"):
        for found in re.findall(r"(\w+) families of inequalities|inequalities of (\w+) families",
                                page.read_text(encoding="utf-8")):  # fmt: skip
            count = "".join(found)
            assert count not in numbers or count == word, (page, count)


# ---------------------------------------------------------------- What each "at most" assumes
def rows() -> list[tuple[list[str], str]]:
    """The names of every row, as users write them after ``om.``, and what it says is proved."""
    out = []
    assumed = section('What each "at most" assumes', "theory/assumptions.md")
    for claim, proved, *_ in table(assumed, "claim"):
        names: list[str] = []
        for token in re.findall(r"`([^`]+)`", claim):
            name = re.sub(r"\(.*?\)", "", token)
            owner = names[-1].rpartition(".")[0] if name.startswith(".") else ""
            names.append(owner + name)
        out.append((names, proved))
    return out


def found(name: str) -> Any:
    """What ``om.name`` is, also where it is a field of a class; None where there is none."""
    value: Any = om
    for part in name.split("."):
        if inspect.isclass(value):
            held = inspect.getattr_static(value, part, None)
            value = part if held is None and part in names_of(value) else held
        else:
            value = getattr(value, part, None)
    if value is None:
        with suppress(ImportError):
            return import_module(f"optmech.{name}")
    return value


def names_of(kind: type) -> list[str]:
    return [name for part in kind.__mro__ for name in getattr(part, "__annotations__", {})]


def claims() -> Iterator[str]:
    """Public names that speak of a bound, in their docstring without its parameters, examples and
    errors, and public fields that are called one."""
    for name in sorted(PUBLIC):
        value = found(name)
        if speaks(value):
            yield name
        if inspect.isclass(value):
            yield from (f"{name}.{field}" for field in sorted(FIELDS) if held(value, field))
            yield from (f"{name}.{place}" for place in inside(value))
            for part, member in vars(value).items():
                if not part.startswith("_") and speaks(inner(member)):
                    yield f"{name}.{part}"


def inside(kind: type) -> Iterator[str]:
    """Fields that are called a bound, of fields whose class is not public."""
    public = {id(found(name)) for name in PUBLIC}
    for part in kind.__mro__:
        for name, stated in getattr(part, "__annotations__", {}).items():
            within = getattr(inspect.getmodule(part), str(stated), None)
            # figures have the bounds that the result itself states
            if inspect.isclass(within) and within is not Figures and id(within) not in public:
                yield from (f"{name}.{field}" for field in sorted(FIELDS) if held(within, field))


def held(kind: type, field: str) -> bool:
    return field in names_of(kind) or isinstance(getattr(kind, field, None), property)


def inner(member: Any) -> Any:
    """The function of a property, a cached one, a class method."""
    for name in ("fget", "func", "__func__"):
        member = getattr(member, name, member)
    return member if inspect.isfunction(member) else None


def speaks(value: Any) -> bool:
    own = inspect.getdoc(value) if inspect.isfunction(value) or inspect.isclass(value) else ""
    prose = re.split(r"\n(?:Parameters|Raises|Examples)\n-+\n", own or "")[0]
    return WORDS.search(prose) is not None


def test_every_name_in_the_table_is_there() -> None:
    named = [name for names, _ in rows() for name in names]
    assert len(named) > 150
    assert [name for name in named if re.fullmatch(r"[\w.]+", name) and found(name) is None] == []


def test_every_public_bound_says_what_it_assumes() -> None:
    stated = rows()
    excused = {name for names in NOTHING_CLAIMED.values() for name in names.split()}
    asked = list(claims())
    assert len(asked) > 150
    bare = []
    for name in asked:
        covering = [
            proved for names, proved in stated if any(f"{name}.".startswith(f"{s}.") for s in names)
        ]
        field = name.rpartition(".")[2]
        end = ENDS.get(field, "")
        told = [proved for proved in covering if re.search(f"{end}|both|neither", proved)]
        if name not in excused and not told:
            bare.append(name)
    assert not bare, "give each a row in docs/theory/assumptions.md"
    # nothing is excused that does not ask for it
    assert sorted(excused - set(asked)) == []
