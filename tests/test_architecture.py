"""The order of the packages is that of docs/architecture.md, and imports follow it."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import optmech

HOUSE = Path(optmech.__file__).parent
ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SIBLINGS = {path.name: path for path in sorted(ROOT.glob("packages/*/optmech_*"))}
"""Distributions beside the core, by the names of their packages."""
TAKEN = {
    "optmech_audit": "",
    "optmech_devices": """
        analysis.measures base.arrays base.labels base.lock base.machine base.memory base.minplus
        base.names base.read_only base.shown base.storage certificate certificate.check
        certificate.families.gradient certificate.objective certificate.statement certificate.values
        cli.inputs cli.output designs.design designs.encoding designs.notes designs.promise
        designs.stated errors exact.arguments exact.codec exact.exponentials exact.number
        exact.numerators exact.ratios.generators exact.rounding exact.sampler files.extent
        lp.inequalities pipeline.mesh_search pipeline.search problem problem.constraint
        problem.gains problem.problem problem.promised problem.ratios problem.space reading.bounded
        reading.chosen reading.columns reading.errors reading.sealed reading.tables repair.cone
        repair.fixed_rows repair.gradients repair.mixing repair.release show.description show.words
        spaces.arguments spaces.domain spaces.labels spaces.mechanism spaces.mesh
        spaces.mesh.elements spaces.mesh.mechanism spaces.mesh.mesh spaces.mesh.network
        spaces.mesh.triangulation spaces.observables spaces.sphere spaces.tables
    """,
    "optmech_leakage": """
        analysis.measures analysis.probabilities analysis.repetition base.arrays base.highs
        base.labels base.names base.read_only base.shown base.simplex cli.commands.solve cli.inputs
        cli.output designs.design designs.file errors exact.arguments exact.number exact.numerators
        exact.ratios.generators exact.rounding pipeline.profiles pipeline.session pipeline.solve
        problem problem.attack problem.constraints.fixed_rows problem.space reading.sealed
        show.plots show.plots.drawing spaces.arguments spaces.distances spaces.domain spaces.labels
        spaces.mechanism spaces.prior spaces.rationals
    """,
    "optmech_noise": """
        base.arrays base.bisection base.highs base.machine base.names base.numerals base.read_only
        base.shown base.storage certificate.check certificate.objective certificate.proved
        cli.output designs.design errors exact.arguments exact.codec exact.exponentials exact.number
        exact.numerators exact.ratios.hockey_stick exact.rounding exact.sampler
        exchange.measurement mechanisms.hockey_sum pipeline.solve problem reading.sealed
        show.plots.drawing spaces.arguments spaces.domain spaces.prior
    """,
    "optmech_surveys": """
        analysis.counts analysis.measures analysis.probabilities analysis.surveys base.arrays
        base.names base.read_only base.shown base.simplex base.storage certificate.variance
        cli.inputs cli.output designs.design errors exact.arguments exact.number exact.numerators
        exact.rounding
        files.load lp.inequalities mechanisms.discrete mechanisms.planar pipeline.solve problem
        repair show.plots.drawing spaces.arguments spaces.domain spaces.labels spaces.mechanism
        spaces.prior spaces.rationals
    """,
    "optmech_sweeps": """
        analysis.attacks analysis.measures base.arrays base.lock base.machine base.names
        base.read_only base.shown base.storage cli.inputs cli.output designs.design
        designs.encoding designs.facts designs.promise designs.sentences errors exact.arguments
        exact.number exchange.matrices files files.gallery files.load files.validate
        mechanisms.discrete mechanisms.planar mechanisms.tupling pipeline.profiles pipeline.search
        pipeline.session pipeline.solve problem problem.attack problem.segments reading.bounded
        reading.columns reading.data reading.errors reading.sealed reading.sections reading.source
        show.description show.figures spaces.arguments spaces.distances spaces.domain spaces.labels
        spaces.mechanism spaces.prior
    """,
    "optmech_traces": """
        base.arrays base.bisection base.conic base.labels base.names base.numerals base.read_only
        base.shown
        base.storage certificate.statement cli.inputs cli.output designs.design errors
        exact.arguments exact.exponentials exact.number exact.ratios.hockey_stick
        exact.ratios.wide exact.rounding files.domains files.gallery files.metrics files.place
        files.priors files.problem files.validate pipeline.profiles pipeline.search problem
        problem.fields reading.chosen reading.columns reading.data reading.errors
        reading.sections reading.source reading.tables reductions.pairs show.plots.drawing
        show.words spaces.arguments spaces.distances spaces.domain spaces.labels spaces.losses
        spaces.mechanism spaces.observables spaces.prior transport.gains
    """,
    "optmech_verified": """
        base.arrays base.storage certificate certificate.bound certificate.families
        certificate.families.ratio certificate.objective certificate.statement
        designs.design errors exact.exponentials exact.number exact.numerators
    """,
}
"""The modules of the core that each of them stands on, beside the names of ``om``."""
ALONE = {"__init__", "__main__", "audit", "errors"}
"""The only modules that lie loose in the package."""

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="docs/ is not beside the tests")


def floors() -> list[str]:
    """Packages from the bottom up, as the page's first table has them from the top down."""
    rows = re.findall(r"^\| `(\w+)/?` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return rows[::-1]


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(*houses: Path) -> dict[str, Path]:
    """Those of the core, or of other packages."""
    named = {
        ".".join(path.relative_to(house.parent).with_suffix("").parts): path
        for house in houses or (HOUSE,)
        for path in house.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of optmech that a module imports anywhere, in functions and for annotations too."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("optmech"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("optmech"))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def graph() -> nx.DiGraph:
    """Modules and their imports."""
    known = modules()
    return nx.DiGraph(
        (name, other)
        for name, path in known.items()
        for other in imports(path, known)
        if other != name
    )


def test_the_root_is_a_table_of_contents() -> None:
    loose = {path.stem for path in HOUSE.glob("*.py")}
    packages = {path.name for path in HOUSE.iterdir() if (path / "__init__.py").exists()}
    assert loose == ALONE
    assert packages | {"errors"} == set(floors())
    for package in packages:
        text = (HOUSE / package / "__init__.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), package


def test_imports_point_down(capsys: pytest.CaptureFixture[str]) -> None:
    found, order = graph(), floors()
    rooms: nx.DiGraph = nx.DiGraph()
    back = []
    for name, other in found.edges:
        # the root's lazy names open every door, and the command is started from outside
        if room(name) in ("__init__", "__main__") or room(name) == room(other):
            continue
        rooms.add_edge(room(name), room(other))
        if order.index(room(other)) > order.index(room(name)):
            back.append(f"{name} -> {other}")
    circles = [c for c in nx.strongly_connected_components(rooms) if len(c) > 1]
    # also inside rooms
    inside = found.subgraph(set(found) - {"optmech"})
    circles += [c for c in nx.strongly_connected_components(inside) if len(c) > 1]
    with capsys.disabled():
        print(
            f"\n{found.number_of_nodes()} modules in {len(order)} rooms, "
            f"{found.number_of_edges()} imports, {rooms.number_of_edges()} arrows between rooms; "
            f"{len(circles)} circles, {len(back)} back arrows"
        )
    assert not circles
    assert not back
    # a house that one can remember: goals are 60,000 lines in 280 modules. Designs for statistics,
    # constraints of an own making and labels of tables have added 5,700 in 24 to 61,250 in 280
    sources = [path.read_text(encoding="utf-8") for path in HOUSE.rglob("*.py")]
    assert sum(len(text.splitlines()) for text in sources) <= 64_000
    assert len(sources) <= 292
    assert len(order) <= 20
    assert nx.dag_longest_path_length(rooms) < 13


def test_what_decides_stands_on_little() -> None:
    """Nothing that searches is below the certificate."""
    found = graph()
    below = {room(module) for module in nx.descendants(found, "optmech.certificate.exact")}
    assert below <= {
        "errors", "base", "exact", "reading", "spaces", "certificate"
    }  # fmt: skip


def test_the_core_knows_no_sibling() -> None:
    """Neither by an import nor in a string; what it says of them are names of distributions."""
    for name, path in modules().items():
        text = path.read_text(encoding="utf-8")
        assert not [sibling for sibling in SIBLINGS if re.search(rf"\b{sibling}\b", text)], name


def test_siblings_stand_on_few_modules() -> None:
    """And on one another not at all: their tests compare them."""
    assert set(TAKEN) == set(SIBLINGS)
    for sibling, house in SIBLINGS.items():
        own = modules(house)
        known = modules() | own
        found = {other for path in own.values() for other in imports(path, known)}
        core = {name.partition(".")[2] for name in found if name.split(".")[0] == "optmech"}
        others = {name.split(".")[0] for name in found} - {"optmech", sibling}
        assert not others, sibling
        assert core == set(TAKEN[sibling].split()), sibling


def test_one_library_declares_records() -> None:
    """That is the standard one; pydantic has the tables of files, and nothing more."""
    found: dict[str, set[str]] = {"attr": set(), "attrs": set(), "pydantic": set()}
    for name, path in modules(HOUSE, *SIBLINGS.values()).items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom | ast.Import):
                origin = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                found.get((origin or "").split(".")[0], set()).add(room(name))
    assert found == {"attr": set(), "attrs": set(), "pydantic": {"files", "problem", "reading"}}


def test_every_private_name_is_used_and_no_branch_is_empty() -> None:
    """A constant, function or class whose name begins with _ is used where it is made."""
    for name, path in modules(HOUSE, *SIBLINGS.values()).items():
        text, tree = path.read_text(encoding="utf-8"), parsed(path)
        words = Counter(re.findall(r"\w+", text))
        targets = [n.targets[0] for n in tree.body if isinstance(n, ast.Assign)]
        targets += [n.target for n in tree.body if isinstance(n, ast.AnnAssign)]
        made = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        made += [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        for own in {found for found in made if re.fullmatch("_[^_].*", found)}:
            assert words[own] > 1, (name, own)
        for node in ast.walk(tree):
            if isinstance(node, ast.If):
                assert not all(isinstance(part, ast.Pass) for part in node.body), (
                    name,
                    node.lineno,
                )


def test_no_error_is_without_words() -> None:
    """Errors of optmech and faults of the audit say something, wherever they are raised."""
    own = {"Fault", "ProblemError", "VerificationError", "SolverError", "OptmechError"}
    found = 0
    for name, path in modules(HOUSE, *SIBLINGS.values()).items():
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Call):
                continue
            kind = getattr(node.func, "id", "")
            if kind not in own and not (kind == "need" and name.startswith("optmech_audit.")):
                continue
            found += 1
            words = node.args[kind == "need" :]
            said = words[0] if words else None
            assert said is not None, (name, node.lineno)
            assert not (isinstance(said, ast.Constant) and not said.value), (name, node.lineno)
    assert found > 500


TESTS = [
    path
    for folder in (ROOT / "tests", *sorted(ROOT.glob("packages/*/tests")))
    for path in sorted(folder.rglob("test_*.py"))
]
"""Every module of tests, of the core and of what stands beside it."""


def test_no_two_modules_of_tests_have_one_name() -> None:
    """Where their folder is no package, pytest imports them by the last part of their path."""
    named = Counter(path.name for path in TESTS if not (path.parent / "__init__.py").exists())
    assert len(TESTS) > 250
    assert [name for name, count in named.items() if count > 1] == []


def test_every_folder_of_tests_is_collected(tmp_path: Path) -> None:
    """Modules with nothing in them at the same places, with the same settings: all are imported,
    and none is taken for another, also of folders that became packages."""
    for path in TESTS:
        stub = tmp_path / path.relative_to(ROOT)
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text("def test_nothing() -> None: ...\n")
        for folder in path.relative_to(ROOT).parents:
            if (ROOT / folder / "__init__.py").exists():
                (tmp_path / folder / "__init__.py").touch()
    stated = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = re.search(r"^\[tool\.pytest\.ini_options\]\n.*?(?=^\[|\Z)", stated, re.M | re.S)
    assert section is not None
    (tmp_path / "pyproject.toml").write_text(section[0], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.count("test_nothing") == len(TESTS)
