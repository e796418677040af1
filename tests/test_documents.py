"""What the documents show is what happens: README code runs, commands in it exist, CI runs its
test command."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from prose import mean_length, pages, sentences

import optmech as om
from optmech.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)
SHELL = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.strip()
]
FIRST = "optmech solve metric -o design.json\noptmech pack design.json -o city.omm\n"
INSTALLING = [line for line in SHELL if line.startswith("python3 -m venv")]
COMMANDS = [
    line.replace("python -P -m optmech_audit", "audit").removeprefix("optmech ")
    for line in SHELL
    if line.startswith(("optmech ", "python -P -m optmech_audit "))
]


def run_module(module: str, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("code", PYTHON)
def test_python_of_the_readme_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("optimal")


def test_the_readme_names_the_notions_each_with_a_line_that_runs() -> None:
    """Every line of its table, with the names that its program makes."""
    rows = re.findall(r"^\| ([\w -]+) \| `(om\..+?)` \| (.+) \|$", README, re.M)
    assert len(rows) == 12
    names: dict[str, object] = {}
    exec(PYTHON[0], names)
    for words, line, proved in rows:
        assert eval(line, names) is not None, words
        assert len(proved.split()) > 5, words
    named = "linear programming|linear program |adversar|coupling|threshold|W_∞|joint|certificate"
    for word in [*named.split("|"), "distortion privacy", "distribution privacy"]:
        assert word in README, word


def test_what_the_readme_says_of_its_designs_is_so(tmp_path: Path) -> None:
    """Of the joint problem; of the gallery's record of Montréal, which is another run."""
    done = subprocess.run(
        [sys.executable, "-c", PYTHON[0]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = re.search(r"It prints `optimal ([\d.]+) ", README)
    assert said is not None
    assert done.stdout.split()[1] == said[1]
    printed = README.partition("```text\n")[2].partition("```")[0]
    found = re.search(r"^loss +([\d.]+) km\nlower bound +([\d.]+) km", printed, re.M)
    assert found is not None
    records = json.loads((ROOT / "docs" / "gallery" / "records.json").read_text(encoding="utf-8"))
    zones = records["montreal"]
    loss, bound = (float(figure) for figure in found.groups())
    # six digits are printed
    assert found[1] == f"{zones['loss']:.6g}"
    assert loss == pytest.approx(bound, rel=1e-5)


@pytest.mark.parametrize("guide", ["divergences"])
def test_python_of_the_guides_runs(guide: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.S)
    assert programs
    for code in programs:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_commands_of_the_readme_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a table of somebody's own, with more columns than are used: 400 visits of forty places,
    as what bounds below counts places. In this process, as those of siblings."""
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 6
    rng = np.random.default_rng(3)
    places = np.column_stack([rng.normal(8.54, 0.03, 40), rng.normal(47.37, 0.02, 40)])
    rows = places[rng.integers(40, size=400)]
    lines = [f"{k % 9},{k},{x:.5f},{y:.5f}" for k, (x, y) in enumerate(rows.tolist())]
    (tmp_path / "fixes.csv").write_text("\n".join(["user,time,lon,lat", *lines, ""]))
    for line in COMMANDS:
        arguments = shlex.split(line)
        if arguments[0] == "audit":
            done = run_module("optmech_audit", arguments[1:], tmp_path)
            assert done.returncode == 0, (line, done.stderr)
        else:
            assert main(arguments) == 0, line
    protected = (tmp_path / "protected.csv").read_text().split()
    assert protected[0] == "lon,lat"
    assert len(protected) == 401
    assert not set(protected) & {line.split(",", 2)[2] for line in lines}
    assert (tmp_path / "report.html").stat().st_size > 10_000
    # rows of a mesh for every point, of four bytes a number and less
    assert 10_000 < (tmp_path / "city.omm").stat().st_size < 100_000


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("packages/*/README.md")), ids=lambda page: page.parent.name
)
def test_pages_of_siblings_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their commands but installations, and their Python; files that they name and do not make are
    a design and its packed file."""
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    shell = "".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    if "solve" not in shell:
        shell = f"{FIRST}{shell}"
    # in this process, as a start takes longer than what they do
    monkeypatch.chdir(tmp_path)
    for line in shell.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "python":
            done = run_module(arguments[2], arguments[3:], tmp_path)
            assert done.returncode == 0, (line, done.stderr)
        elif program != "pip":
            assert program == "optmech"
            assert main(arguments) == 0, line
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(code, page.name, "exec"), {"__name__": "__main__"})


def test_the_readme_is_short_and_leads_to_six_places() -> None:
    assert len(README.splitlines()) <= 130
    ways = README.partition("## Where to go on\n")[2].partition("\n\n")[0].splitlines()
    assert len(ways) == 6
    for place in re.findall(r"\]\(([^)#]+)[^)]*\)", README):
        assert (ROOT / place).is_file(), place
    assert README.count("![") == 2


def test_the_picture_of_the_readme_is_what_its_script_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    people = pytest.importorskip("benchmarks.people")
    with pytest.warns(UserWarning, match="seed"):
        drawn = people.drawn()
    shown = people.FIGURE.read_text(encoding="utf-8")
    # which person gets which report may differ with the last bits of a design
    assert drawn.count("<circle") == pytest.approx(shown.count("<circle"), abs=10)
    assert re.findall("<text.*?</text>", drawn) == re.findall("<text.*?</text>", shown)


def test_heat_maps_are_those_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second picture of the README, and the table of its page."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    maps = pytest.importorskip("heat_maps")
    store = maps.Store(maps.RESULTS)
    assert maps.drawn(store) == maps.FIGURE.read_text(encoding="utf-8")
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    assert all(line in page for line in maps.table(store).splitlines()[2:])


def test_brackets_of_statistics_are_those_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    surveys = pytest.importorskip("surveys")
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    rows = surveys.table(surveys.Store(surveys.RESULTS)).splitlines()
    assert len(rows) > 20
    assert all(row in page for row in rows)


def _without_numbers(text: str) -> str:
    return re.sub(r"[\d.,]*\d(e-\d+)?", "#", " ".join(text.split()))


def test_the_demonstration_prints_and_draws(tmp_path: Path) -> None:
    """README command one without the installation, on the aggregated zones to save time."""
    pytest.importorskip("matplotlib")
    command = INSTALLING[0].split("&&")[-1].strip()
    assert command.startswith("optmech solve montreal ")
    command = command.replace("solve montreal ", "solve montreal-small ")
    done = run_module("optmech", shlex.split(command)[1:], tmp_path)
    assert done.returncode == 0, done.stderr
    # but for its numbers, what the README shows is printed
    shown = README.partition("Among what it prints:\n\n```text\n")[2].partition("```")[0]
    assert len(shown.splitlines()) > 5
    printed = _without_numbers(done.stdout)
    for line in shown.splitlines():
        assert _without_numbers(line.removesuffix("...").rstrip("; ")) in printed, line
    assert (tmp_path / "montreal.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not (ROOT / ".ci" / "run").exists(), reason="not a checkout")
def test_ci_calls_the_test_command_of_the_readme() -> None:
    assert len(INSTALLING) == 2
    assert INSTALLING[1] in (ROOT / ".ci" / "run").read_text().splitlines()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_seconds_of_the_readme_are_those_that_were_measured() -> None:
    """Of 64 and of 300 places, beside the generated tables of docs/benchmarks.md."""
    tables = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "guides" / "scaling.md").read_text(encoding="utf-8")
    row = re.search(r"^\| 300, metric \| (\d+) of \d+ \| ([\d.]+) \|", tables, re.M)
    small = re.search(r"^\| 64 \| ([\d.]+) \|", tables, re.M)
    assert row is not None
    assert small is not None
    seconds = f"{float(row[2]):.0f} seconds"
    plain = " ".join(README.split())
    assert f"300 (27 million inequalities) {seconds} (median of {row[1]} problems" in plain
    assert f"| 300 | {seconds} (median of {row[1]} problems)" in guide
    assert round(float(small[1])) == 1
    # what is said of the comparison beside its tables
    peers = {
        name: row.split(" | ")
        for name, row in re.findall(
            r"^\| (optmech|scipy linprog, default) \| (.*) \|$", tables, re.M
        )
    }
    ours, scipy = peers["optmech"], peers["scipy linprog, default"]
    kept = ours[6].split(" of ")
    assert kept[0] == kept[1]
    assert f"all {kept[0]} designs of this comparison keep their ε" in plain
    assert f"where scipy's linprog keeps it in {scipy[6].partition(';')[0]}." in plain
    digit, power = ours[5].split("e−")
    superscript = power.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    largest = int(ours[2].split()[0])
    assert f"{digit}·10⁻{superscript} for the {largest:,} places below" in plain
    assert "64 places take a second" in plain


def test_seconds_of_other_pages_are_those_of_the_tables() -> None:
    """One place has a figure; whoever repeats it says the same."""
    tables = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    ours = tables.partition("<!-- begin benchmarks:ours -->")[2].partition("<!-- end")[0]
    rows = [line.strip("| ").split(" | ") for line in ours.splitlines() if line[2:3].isdigit()]
    # of two runs of one size the one with the smaller gap comes last
    seconds = {int(row[0].replace(",", "")): float(row[1]) for row in rows}
    engines = " ".join((ROOT / "docs" / "engines.md").read_text(encoding="utf-8").split())
    said = re.search(r"Square grids of unit cells.*?to 1e-6: (.*?) \(\d+ processor s", engines)
    assert said is not None
    told = {
        int(n.replace(",", "")): float(s)
        for n, s in re.findall(r"([\d,]+) cells ([\d.]+) s", said[1])
    }
    assert len(told) == 4
    assert told == {n: round(seconds[n]) for n in told}
    guide = (ROOT / "docs" / "guides" / "scaling.md").read_text(encoding="utf-8")
    assert "| 100 | about a second |" in guide
    assert round(seconds[100]) == 1
    largest = re.search(r"\| 1,024 \| one to ten minutes, ", guide)
    assert largest is not None
    assert 60 < seconds[1024] < 600


def measured() -> dict[str, tuple[str, int]]:
    """Patterns of what pages say, each with the figure that has to stand in it and on how many
    pages it is said at least. Figures come from result files, problems and the library."""
    tables = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    ours = tables.partition("<!-- begin benchmarks:ours -->")[2].partition("<!-- end")[0]
    rows = [line.strip("| ").split(" | ") for line in ours.splitlines() if line[2:3].isdigit()]
    seconds = {int(row[0].replace(",", "")): float(row[1]) for row in rows}
    middle = re.search(r"^\| 300, metric \| (\d+) of \d+ \| ([\d.]+) \|", tables, re.M)
    assert middle is not None
    gallery = json.loads((ROOT / "docs" / "gallery" / "records.json").read_text(encoding="utf-8"))
    zones = gallery["montreal"]["secrets"]
    figures = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    hour = figures.partition("## The first hour")[2].partition("\n\n(")[0]
    first = sum(float(found) for found in re.findall(r"\| ([\d.]+) \|$", hour, re.M))
    tens = {10: "ten", 20: "twenty", 30: "thirty", 40: "forty", 50: "fifty"}
    earth = len(om.devices.Earth.of("ln 2")._content)
    return {
        r"(\d+) million inequalities\)": (f"{(300**3 - 300**2) / 1e6:.0f}", 1),
        r"inequalities: (\d+) million at n = 300": (f"{(300**3 - 300**2) / 1e6:.0f}", 1),
        r"(\d+) million for 300 places": (f"{(300**3 - 300**2) / 1e6:.0f}", 1),
        r"(\d+) real Montréal car-sharing zones": (f"{zones}", 1),
        r"[Aa]ll (\d+) zones of": (f"{zones}", 2),
        r"(\d+) million privacy inequalities": (f"{(zones**3 - zones**2) / 1e6:.0f}", 1),
        r"median of (\d+) problems": (middle[1], 3),
        r"300 (?:places )?(?:\(.{0,30}\) )?(?:in )?(\d+) seconds": (f"{float(middle[2]):.0f}", 2),
        r"1,?024 (?:cells )?(?:in )?(\d+)(?:\.0)? s(?:econds)?\b": (f"{seconds[1024]:.0f}", 3),
        r"64 places (?:take |in )a (second)": ("second" if 0.75 < seconds[64] < 1.5 else "", 2),
        r"take about (\w+) processor seconds": (tens[round(first, -1)], 1),
        r"one file of some (\d+) kB": (f"{10 * round(earth / 1e4)}", 1),
    }


def test_a_figure_is_the_same_on_every_page() -> None:
    texts = {path: " ".join(path.read_text(encoding="utf-8").split()) for path in pages()}
    paper = ROOT / "paper" / "paper.md"
    texts[paper] = " ".join(paper.read_text(encoding="utf-8").split())
    assert len(measured()) > 10
    for pattern, (figure, least) in measured().items():
        found = [(path.name, said) for path in texts for said in re.findall(pattern, texts[path])]
        assert len({name for name, _ in found}) >= least, (pattern, found)
        assert {said for _, said in found} == {figure}, (pattern, figure, found)


def named_places(path: Path) -> set[str]:
    """Headings of a page, and the bold words that paragraphs begin with."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^#+ (.*)$|^(?:\* )?\*\*(.+?)\.?\*\*", text, re.M)
    plain = {"".join(pair).replace("`", "") for pair in found}
    return {name.replace('"', "'") for name in plain}


def test_no_reference_dangles() -> None:
    """Links to files, pages named in code, and the headings that are quoted with them."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "solvers").glob("*.md")]
    known = {path.relative_to(ROOT).as_posix(): named_places(path) for path in pages}
    dangling, links, quoted = [], 0, 0
    for path in pages:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
        for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", text):
            if not link.startswith(("http:", "https:", "mailto:")):
                links += 1
                if not (path.parent / link).exists():
                    dangling.append((path.name, link))
    sources = [*(ROOT / "optmech").rglob("*.py"), *(ROOT / "packages").rglob("*.py")]
    for path in [*pages, *sources]:
        text = re.sub(r"\s*\n\s*(# )?", " ", path.read_text(encoding="utf-8"))
        named = set(re.findall(r"\bdocs/[\w/-]+\.md\b", text))
        dangling += [(path.name, page) for page in named if page not in known]
        for page, title in re.findall(r"\b(docs/[\w/-]+\.md)`{0,2}, \"([^\"]+)\"", text):
            quoted += 1
            if title.strip() not in known.get(page, ()):
                dangling.append((path.name, f"{page}, {title}"))
    assert links > 150
    assert quoted > 20
    assert dangling == []


def test_sentences_have_twenty_words_on_every_page() -> None:
    """The mean of a page, by the count of tests/prose.py, which prints it."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in pages()}
    assert len(texts) > 50
    means = {name: mean_length(text) for name, text in texts.items()}
    assert {name: round(mean, 1) for name, mean in means.items() if mean > 20} == {}
    shown = (
        "# Head\nOne `a b` is\n$x + y$. Two 3.5 here!\n\n| not | this |\n\n* An item: it\n  ends\n"
    )
    assert sentences(shown) == ["One code is it.", "Two 35 here!", "An item: it ends."]


def test_make_has_what_the_documents_call() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    texts = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    called = {
        name
        for path in texts
        for name in re.findall(r"`make ([a-z]+)", path.read_text(encoding="utf-8"), re.M)
    }
    assert {"setup", "test", "check", "docs"} <= called <= targets


@functools.cache
def functions_of(path: str) -> set[str]:
    """Names of the functions and methods of a file."""
    made = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(made) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_of_defects_names_is_there() -> None:
    rows = re.findall(r"^\|(.*)\|$", (ROOT / "docs" / "defects.md").read_text("utf-8"), re.M)
    rows = [row for row in rows if "---" not in row and not row.startswith(" what was wrong ")]
    assert len(rows) > 60
    for row in rows:
        wrong, now, tests = (cell.strip() for cell in row.split(" | "))
        assert wrong, row
        assert now, row
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", tests)
        assert named, row
        assert tests == ", ".join(f"`{path}::{name}`" for path, name in named)
        for path, name in named:
            assert name in functions_of(path), (path, name)
