"""The reference pages against what can be imported."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import optmech as om

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MODULES = [name for name in om.__all__ if isinstance(getattr(om, name), ModuleType)]
PUBLIC = {
    *(f"{module}.{name}" for module in MODULES for name in getattr(om, module).__all__),
    *(name for name in om.__all__ if name not in MODULES and name != "__version__"),
}


def on_pages() -> list[str]:
    """Names as a user writes them after ``om.``; a function that shares its name with a module of
    its package is looked up in that module."""
    found = []
    for path in sorted(REFERENCE.glob("*.md")):
        for directive in path.read_text(encoding="utf-8").split("\n::: optmech.")[1:]:
            name, *options = directive.split("\n")
            members = [line.split("- ")[1] for line in options if line.startswith("        - ")]
            found += [f"{name}.{member}" for member in members] if members else [name]
    return [re.sub(r"\.(\w+)\.\1$", r".\1", name) for name in found]


def test_every_public_name_is_on_one_page() -> None:
    # what is inherited from and used to make a kind of constraint of one's own is not an om.X
    found = [name for name in on_pages() if not name.startswith("problem.")]
    assert len(found) > 200
    assert sorted(found) == sorted(PUBLIC)


@pytest.mark.parametrize("module", MODULES)
def test_public_modules_say_what_is_public(module: str) -> None:
    found = getattr(om, module)
    assert found.__all__
    assert found.__doc__
    for name in found.__all__:
        assert not name.startswith("_")
        assert not isinstance(getattr(found, name), ModuleType), name


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_names_have_docstrings(name: str) -> None:
    value: object = om
    for part in name.split("."):
        value = getattr(value, part)
    if name == "distances.DistanceLike":
        return  # an alias of types, whose text stands below it in the source
    own = inspect.getdoc(value)
    assert own
    assert not own.startswith(f"{name.split('.')[-1]}(")


@pytest.mark.skipif(not (REFERENCE.parents[1] / "mkdocs.yml").is_file(), reason="not a checkout")
def test_every_page_is_in_the_navigation() -> None:
    listed = (REFERENCE.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    assert [p.name for p in REFERENCE.glob("*.md") if f"reference/{p.name}" not in listed] == []
