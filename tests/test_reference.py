"""The reference pages against what can be imported."""

from __future__ import annotations

import doctest
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from each import each
from public import OWN, names_of

import optmech as om

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MODULES = [name for name in om.__all__ if isinstance(getattr(om, name), ModuleType)]
PUBLIC = {
    *(f"{module}.{name}" for module in MODULES for name in names_of(getattr(om, module))),
    *(OWN - {*MODULES}),
}


def found(name: str) -> object:
    value: object = om
    for part in name.split("."):
        value = getattr(value, part)
    return value


CALLABLE = sorted(name for name in PUBLIC if callable(found(name)))
WITHOUT = {"distances.DistanceLike"}
"""An alias of types, which nobody calls."""
NEEDED = {
    "plots": ("matplotlib",), "exchange.explore": ("folium",), "exchange.from_h3": ("h3",),
    "exchange.features": ("shapely",), "exchange.write_geojson": ("shapely",),
    "exchange.from_geopandas": ("geopandas",), "exchange.to_geopandas": ("geopandas",),
    "exchange.read_geojson": ("shapely",), "exchange.to_frame": ("pandas",),
    "exchange.read_netcdf": ("xarray", "h5netcdf"), "exchange.write_netcdf": ("xarray", "h5netcdf"),
    "exchange.read_parquet": ("pandas", "pyarrow"), "exchange.write_parquet": ("pandas", "pyarrow"),
    "exchange.to_xarray": ("xarray",), "exchange.to_opendp": ("opendp",),
    "exchange.noise_to_opendp": ("opendp",),
    "exchange.noise_to_dp_accounting": ("dp_accounting",),
    "exchange.to_dp_accounting": ("dp_accounting",),
}  # fmt: skip
"""Packages without which the examples of a name, or of a module, cannot run."""


def on_pages() -> list[str]:
    """Names as a user writes them after ``om.``; a function that shares its name with a module of
    its package is looked up in that module."""
    listed = []
    for path in sorted(REFERENCE.glob("*.md")):
        for directive in re.split(r"\n::: optmech[._]", path.read_text(encoding="utf-8"))[1:]:
            name, *options = directive.split("\n")
            members = [line.split("- ")[1] for line in options if line.startswith("        - ")]
            listed += [f"{name}.{member}" for member in members] if members else [name]
    # what other distributions add to ``om`` itself and to its namespaces
    peers = "known", "snapped", "offset_snapped", "rounded_degrees", "dense_areas"
    moved = {f"sweeps.{name}": f"mechanisms.{name}" for name in peers}
    moved |= {"leakage.picture.compared": "plots.compared", "leakage.redesign.redesign": "redesign"}
    listed = [
        moved.get(name, re.sub(r"^sweeps\.|^surveys\.(?=estimate\.)", "", name)) for name in listed
    ]
    listed = [re.sub(r"^\w+\.(?=exchange\.)", "", name) for name in listed]
    return [re.sub(r"\.(\w+)\.\1$", r".\1", name) for name in listed]


def test_every_public_name_is_on_one_page() -> None:
    # what is inherited from and used to make a kind of constraint of one's own is not an om.X
    listed = [name for name in on_pages() if not name.startswith("problem.")]
    assert len(listed) > 200
    assert sorted(listed) == sorted(PUBLIC)


@pytest.mark.parametrize("module", MODULES)
def test_public_modules_say_what_is_public(module: str) -> None:
    public = getattr(om, module)
    assert public.__all__
    assert public.__doc__
    for name in public.__all__:
        assert not name.startswith("_")
        assert not isinstance(getattr(public, name), ModuleType), name


@each("name", sorted(PUBLIC))
def test_public_names_have_docstrings(name: str) -> None:
    value = found(name)
    if name == "distances.DistanceLike":
        return  # an alias of types, whose text stands below it in the source
    own = inspect.getdoc(value)
    assert own
    assert not own.startswith(f"{name.split('.')[-1]}(")


def methods() -> Iterator[tuple[str, str, list[str]]]:
    """A name of every public method of every public class, its function's own name, and the texts
    in which an example may call it: its own, and those of its classes, since a method that several
    classes have is shown where it is stated first."""
    seen = set()
    for name in filter(lambda name: inspect.isclass(found(name)), CALLABLE):
        kinds = [kind for kind in inspect.getmro(found(name)) if kind.__module__[:7] == "optmech"]
        for part in sorted({part for kind in kinds for part in vars(kind) if part[0] != "_"}):
            held = inspect.getattr_static(found(name), part)
            function = getattr(held, "__func__", held)
            if not inspect.isfunction(function):
                continue
            function = inspect.unwrap(function)
            own = f"{function.__module__}.{function.__qualname__}"
            if own not in seen and function.__module__.startswith("optmech"):
                seen.add(own)
                texts = [inspect.getdoc(vars(kind).get(part)) or "" for kind in kinds]
                yield f"{name}.{part}", own, texts + [vars(kind)["__doc__"] or "" for kind in kinds]


def calls(text: str, part: str) -> bool:
    """Whether an example of a text calls a function or method of this name."""
    shown = doctest.DocTestParser().get_examples(inspect.cleandoc(text))
    return any(re.search(rf"\b{part}\(", example.source) for example in shown)


def test_every_public_callable_has_an_example() -> None:
    shown = {name for name in CALLABLE if ">>> " in (inspect.getdoc(found(name)) or "")}
    assert len(CALLABLE) > 300
    assert sorted(shown | WITHOUT) == CALLABLE
    listed = list(methods())
    assert len(listed) > 280
    bare = [
        name
        for name, _, texts in listed
        if not any(calls(t, name.rpartition(".")[2]) for t in texts)
    ]
    assert bare == []


def test_sentences_of_names_stand_alone() -> None:
    told = [(name, inspect.getdoc(found(name)) or "") for name in CALLABLE]
    told += [(name, own[0]) for name, _, own in methods()]
    leaning = re.compile(r"(The same|As |See |Ditto|Like |It |This |These |They )")
    assert [name for name, text in told if leaning.match(text)] == []


def test_names_in_signatures_are_explained() -> None:
    """What ``help`` shows in two signatures and more is public, of Python, or explained by
    ``help(optmech)``."""
    known = {name.rpartition(".")[2] for name in CALLABLE} | {"Any", "None", "Path", "Fraction"}
    known |= {"Sequence", "Iterable", "Mapping", "Callable", "Literal"}
    used: Counter[str] = Counter()
    for name in CALLABLE:
        shape = inspect.signature(found(name))
        stated = [str(p.annotation) for p in shape.parameters.values()]
        if not inspect.isclass(found(name)):
            stated.append(str(shape.return_annotation))
        used.update(set(re.findall(r"\b[A-Z]\w+", " ".join(stated))) - known)
    told = set(re.findall(r"``(\w+)``", om.__doc__ or ""))
    assert len(told & set(used)) > 20
    assert [name for name, count in used.items() if count > 1 and name not in told] == []


def test_sources_are_named_in_words() -> None:
    """A paper by its authors and year: nothing that ``help`` does not explain."""
    short = re.compile(r"\b(PG (eq|section|Appendix|\d)|DP19|CM19|TP19)")
    told = [(name, inspect.getdoc(found(name)) or "") for name in PUBLIC]
    for name in CALLABLE:
        members = vars(found(name)).items() if inspect.isclass(found(name)) else ()
        told += [
            (f"{name}.{part}", inspect.getdoc(member) or "")
            for part, member in members
            if not part.startswith("_")
        ]
    assert len(told) > 500
    assert [name for name, text in told if short.search(text)] == []


def texts() -> dict[str, str]:
    """Every text with examples: of public callables, of their methods, and of the classes that
    these stand in."""
    out = {name: inspect.getdoc(found(name)) or "" for name in CALLABLE if name not in WITHOUT}
    known = set(out.values())
    for name, _, places in methods():
        for k, text in enumerate(map(inspect.cleandoc, places)):
            if ">>> " in text and text not in known:
                known.add(text)
                out[f"{name}:{k}"] = text
    return out


TEXTS = texts()


@pytest.mark.parametrize("name", TEXTS)
def test_examples_print_what_they_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stands alone, beside ``import numpy as np`` and ``import optmech as om``."""
    for package in (*NEEDED.get(name, ()), *NEEDED.get(name.partition(".")[0], ())):
        pytest.importorskip(package)
    if "geopandas" in TEXTS[name]:
        pytest.importorskip("geopandas")
    monkeypatch.chdir(tmp_path)
    text = TEXTS[name]
    shown = doctest.DocTestParser().get_doctest(text, {"om": om, "np": np}, name, None, None)
    assert any(example.want for example in shown.examples), "an example that shows nothing"
    said: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags).run(shown, out=said.append)
    assert not said, "".join(said)


@pytest.mark.skipif(not (REFERENCE.parents[1] / "mkdocs.yml").is_file(), reason="not a checkout")
def test_every_page_is_in_the_navigation() -> None:
    listed = (REFERENCE.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    assert [p.name for p in REFERENCE.glob("*.md") if f"reference/{p.name}" not in listed] == []
