"""What others need to cite, install and contribute: one name, one version, one list of needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import optmech

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(not (ROOT / "CITATION.cff").is_file(), reason="not a checkout")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, object]:
    return dict(tomllib.loads(text("pyproject.toml"))["project"])


def test_name_version_and_licence_are_the_same_everywhere() -> None:
    yaml = pytest.importorskip("yaml")
    own = project()
    cited = yaml.safe_load(text("CITATION.cff"))
    meta = json.loads(text("codemeta.json"))
    recipe = text("conda/meta.yaml")
    named = dict(re.findall(r'{% set (\w+) = "([^"]+)" %}', recipe))
    assert own["name"] == optmech.__name__ == meta["name"] == named["name"]
    assert cited["title"].startswith(f"{own['name']}: ")
    assert own["version"] == cited["version"] == meta["version"] == named["version"]
    assert own["license"] == cited["license"] == meta["license"].rpartition("/")[2]
    assert own["license"] in recipe
    assert own["description"] == meta["description"]
    assert own["keywords"] == meta["keywords"] == cited["keywords"]
    assert cited["cff-version"] == "1.2.0"
    assert all({"type", "title", "authors"} <= set(entry) for entry in cited["references"])


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe = text("conda/meta.yaml")
    oldest = re.search(r'set python_min = "([\d.]+)"', recipe)
    assert oldest is not None
    recipe = recipe.replace("{{ python_min }}", oldest[1])
    run = recipe.partition("\n  run:\n")[2].partition("\n\n")[0]
    needed = [line.strip(" -").replace(" ", "") for line in run.splitlines()]
    assert needed[0] == f"python{project()['requires-python']}"
    assert needed[1:] == project()["dependencies"]
    scripts = project()["scripts"]
    assert isinstance(scripts, dict)
    assert f"- optmech = {scripts['optmech']}" in recipe


def test_the_paper_has_its_parts_and_cites_what_it_lists() -> None:
    paper, listed = text("paper/paper.md"), text("paper/paper.bib")
    for part in ("Summary", "Statement of need", "State of the field", "References"):
        assert f"\n# {part}\n" in paper
    cited = set(re.findall(r"@(\w+)", paper.partition("\n# Summary")[2]))
    assert cited == set(re.findall(r"^@\w+{(\w+),", listed, re.M))
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", paper):
        assert (ROOT / "paper" / picture).is_file(), picture
    # figures of docs/benchmarks.md
    tables = text("docs/benchmarks.md")
    simplex = re.search(r"^\| HiGHS simplex \|.*\| (\d) of (\d);", tables, re.M)
    largest = re.search(r"^\| optmech \|[^|]*\|[^|]*\| (\d+) in (\d+)(?:\.0)? s \|", tables, re.M)
    middle = re.search(r"^\| 300, metric \| (\d+) of \d+ \| ([\d.]+) \|", tables, re.M)
    assert simplex is not None
    assert largest is not None
    assert middle is not None
    plain = " ".join(paper.split())
    words = {"3": "three", "7": "seven"}
    assert f"calls {words[simplex[2]]} matrices optimal" in plain
    assert f"only {words[simplex[1]]} of them are private" in plain
    assert f"{int(largest[1]):,} in {largest[2]} seconds" in plain
    assert f"300 in {float(middle[2]):.0f} seconds (the median of {middle[1]} problems)" in plain


def test_nothing_tells_to_install_from_an_index() -> None:
    """Whoever registered the name there could run code on readers' machines."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "optmech").rglob("*.py")]
    pages += [p for end in ("md", "py") for p in (ROOT / "packages").rglob(f"*.{end}")]
    told = re.compile(r"(pip|uv|conda|mamba|pipx) +(add|install)( +-\S+)* +['\"]?optmech\b(?![/.])")
    assert len(pages) > 400
    assert [p.name for p in pages if told.search(p.read_text(encoding="utf-8"))] == []


def test_hooks_do_what_make_lint_does() -> None:
    lint = text("Makefile").partition("\nlint:")[2].partition("\n\n")[0]
    hooks = re.findall(r"entry: \.venv/bin/(.*)", text(".pre-commit-config.yaml"))
    assert hooks == [line.replace(" .", "") for line in re.findall(r"\$\(BIN\)/(.*)", lint)]


@pytest.mark.slow
def test_wheel_and_archive_carry_what_they_need(tmp_path: Path) -> None:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    # without a compiler the wheel is pure, and made in a moment
    alone = {**os.environ, "PATH": str(tmp_path), "CC": ""}
    subprocess.run(command, check=True, capture_output=True, env=alone)
    stem = f"optmech-{project()['version']}"
    [found] = tmp_path.glob(f"{stem}-py3-none-any.whl")
    with zipfile.ZipFile(found) as wheel:
        inside = set(wheel.namelist())
        metadata = wheel.read(f"{stem}.dist-info/METADATA").decode()
    assert {name.split("/")[0] for name in inside} == {"optmech", f"{stem}.dist-info"}
    shipped = {p for p in (ROOT / "optmech").rglob("*") if p.is_file() and p.suffix != ".pyc"}
    shipped = {p for p in shipped if "__pycache__" not in p.parts and p.suffix != ".library"}
    assert {p.relative_to(ROOT).as_posix() for p in shipped} <= inside
    for folder in ("problems", "solvers"):
        for path in (ROOT / folder).glob("*.toml"):
            assert f"optmech/data/{folder}/{path.name}" in inside
    assert f"{stem}.dist-info/licenses/LICENSE" in inside
    assert "Project-URL: Method, https://doi.org/" in metadata
    with tarfile.open(tmp_path / f"{stem}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = (
        "CITATION.cff codemeta.json SECURITY.md README.md CHANGELOG.md LICENSE mkdocs.yml Makefile"
    )
    wanted += " paper/paper.md paper/paper.bib conda/meta.yaml tests/test_citing.py docs/index.md"
    assert set(wanted.split()) <= names
