"""The stand-alone audit: agrees with the checker, needs the standard library only."""

from __future__ import annotations

import ast
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from conformance.problems import KINDS, Make
from forgery import reseal
from optmech_audit import inequalities, statements
from optmech_audit.alone import CHAPTERS

import optmech as om
from optmech.certificate import lower_bound

E, H = om.distances.euclidean(), om.distances.hamming()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    grid = om.Grid(2, 2)
    problem = om.Problem(
        om.Prior(grid, [1, 2, 3, 4]),
        H,
        constraints=[om.MetricPrivacy("ln 3", E), om.LossBound(0.9)],
    )
    path = tmp_path / "design.json"
    om.solve(problem).save(path)
    return path


def alone(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Isolated: no site packages, no environment, no current folder on the path."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=script.parent,
    )


def test_one_file_runs_without_any_package(saved: Path, audit_file: Path, tmp_path: Path) -> None:
    script = Path(shutil.copy(audit_file, tmp_path / "elsewhere.py"))
    found = alone(script, str(saved))
    assert (found.returncode, found.stderr) == (0, "")
    assert "48 ratios" in found.stdout
    assert "everything that the file claims holds" in found.stdout
    content = bytearray(saved.read_bytes())
    content[-20] ^= 1
    saved.write_bytes(content)
    found = alone(script, str(saved))
    assert found.returncode == 1
    assert "FAILED: the digest" in found.stdout
    assert alone(script, str(tmp_path / "none")).returncode == 2
    assert alone(script).returncode == 2


def test_imports_are_of_the_standard_library(audit_file: Path) -> None:
    tree = ast.parse(audit_file.read_text())
    names = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_no_chapter_gives_the_name_of_another_to_something_else(audit_file: Path) -> None:
    named: list[str] = []
    for node in ast.parse(audit_file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            named.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named += [n.id for part in targets for n in ast.walk(part) if isinstance(n, ast.Name)]
    assert len(set(named)) == len(named)


def test_one_file_has_every_chapter() -> None:
    files = Path(audit.__file__).parent.glob("[a-z]*.py")
    assert {file.stem for file in files} == {*CHAPTERS, "alone"}


def _set(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        place: Any = body
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value(place[keys[-1]]) if callable(value) else value

    return change


def _swap(body: dict[str, Any]) -> None:
    rows = body["mechanism"]["rows"]
    rows[0], rows[3] = rows[3], rows[0]


FORGERIES = {
    "loss": _set("result", "loss", value=lambda v: v * 0.99),
    "bound": _set("result", "bound", value=lambda v: v * 1.001),
    "lower bound": _set("result", "lower_bound", value=lambda v: v * 1.001),
    "objective": _set("result", "objective", value=lambda v: np.nextafter(v, 0)),
    "rows": _swap,
    "bits": _set("mechanism", "bits", value=lambda v: v + 1),
    "numerator": _set("mechanism", "rows", 0, 1, 0, value=lambda v: f"{int(v, 16) + 1:x}"),
    "negative": _set("mechanism", "rows", 0, 1, 0, value=lambda v: "-" + v),
    "more privacy": _set("problem", "constraints", 0, "epsilon", value="ln 2"),
    "less loss allowed": _set("problem", "constraints", 1, "maximum", value=0.01),
    "other prior": _set("problem", "prior", value=[0.25] * 4),
    "no distribution": _set("problem", "prior", value=[1.0] * 4),
    "negative loss": _set("problem", "loss", 0, 1, value=-1.0),
    "nan": _set("problem", "loss", 0, 1, value=float("nan")),
    "infinity": _set("problem", "loss", 0, 1, value=float("inf")),
    "huge": _set("problem", "loss", 0, 1, value=10**400),
    "index": _set("multipliers", "ratio", "i", 0, value=77),
    "kind": _set("problem", "constraints", 0, "kind", value="mechanism"),
    "status": _set("result", "status", value="infeasible"),
    "nothing": _set("mechanism", value=None),
    "format": _set("format", value="optmech-design/1"),
    "bomb": _set("problem", "secrets", "grid", value=[10**9, 10**9]),
    "nested": _set("problem", "title", value=lambda v: [[[[v]]]] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in FORGERIES if n != "nested"])
def test_forgeries_with_a_good_digest_are_refused_by_both(saved: Path, name: str) -> None:
    reseal(saved, FORGERIES[name])
    with pytest.raises(audit.Fault):
        audit.audit(str(saved))
    with pytest.raises((om.VerificationError, om.ProblemError)):
        om.Design.load(saved)


def test_a_title_that_is_no_text_is_refused(saved: Path) -> None:
    reseal(saved, FORGERIES["nested"])
    with pytest.raises(om.VerificationError):
        om.Design.load(saved)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_both_evaluate_multipliers_alike(make: Make, tmp_path: Path) -> None:
    """The audit's bound is exact: never below the one with rounding taken off, and near it."""
    problem = make(np.random.default_rng(6))
    design = om.solve(problem)
    assert design.exact is not None
    path = tmp_path / "d.json"
    design.save(path)
    body = json.loads(path.read_text())
    exact = statements.Statement(body["problem"], []).lagrangian(body["multipliers"]).value()
    bound = lower_bound(problem.statement, design.certificate.multipliers)
    assert bound.value <= bound.proved <= exact
    assert exact - Fraction(bound.value) <= 10 * Fraction(bound.rounding) + Fraction(1, 10**15)
    assert bound.rounding <= 1e-11 * max(1.0, abs(bound.value))


@pytest.mark.parametrize(("reach", "status"), [(1.0, "infeasible"), (0.0, "optimal")])
def test_a_support_is_emptied_through_windows_only_where_they_are(
    reach: float, status: str, tmp_path: Path
) -> None:
    """Place 0 may report 1 only, and place 1 only 0. Where observable 1 is near place 0 as well,
    what place 1 never says place 0 must not say either, and nothing is left to it."""
    line = om.Domain.range(2)
    e = om.distances.euclidean()
    mask = np.array([[False, True], [True, False]])
    windowed = om.MetricPrivacy(1.0, e, observable_threshold=reach)
    problem = om.Problem(om.Prior.uniform(line), e, constraints=[windowed, om.Support(mask)])
    design = om.solve(problem)
    assert design.status == status
    design.save(tmp_path / "design.json")
    assert om.check(tmp_path / "design.json").passed
    said = audit.audit(str(tmp_path / "design.json"))
    assert ("the support leaves a secret without observables" in said) == (status == "infeasible")


@pytest.mark.parametrize("there", [False, True])
def test_nothing_reaches_the_terminal_unescaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], there: bool
) -> None:
    path = tmp_path / "a\x1b[2J\u202e\u2028.json"
    if there:
        path.write_text("{}")
    assert audit.main([str(path)]) == (1 if there else 2)
    said = "".join(capsys.readouterr())
    assert "a\\x1b[2J\\u202e\\u2028.json" in said
    assert said.replace("\n", "").isprintable()


def _nested(*keys: Any) -> Callable[[dict[str, Any]], None]:
    """A new entry where all but the last of the keys lead."""
    return _set(*keys, value=lambda part: {**part, "renyi": []})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_set("problem", "constraints", 0, "kind", value="renyi"), r"constraints\[0\].*'renyi'"),
        (_set("problem", "constraints", 1, "kind", value=None), r"constraints\[1\].*None"),
        (_set("problem", "constraints", 1, value="support"), r"constraints\[1\]"),
        (_nested("problem", "constraints", 0), r"constraints\[0\].*'renyi'"),
        (_nested("problem", "constraints", 0, "distance"), r"constraints\[0\].*'renyi'"),
        (_nested("problem", "constraints", 1), r"constraints\[1\].*'renyi'"),
        (_nested("multipliers"), "multipliers.*'renyi'"),
        (_set("multipliers", "lifted", value=[{}]), "multipliers: lifted"),
        (_nested("result"), "result.*'renyi'"),
        (_nested("problem"), "'renyi'"),
        (_nested("mechanism"), "mechanism.*'renyi'"),
        (_set("problem", "objective", value="renyi"), "'renyi'"),
    ],
)
def test_what_it_does_not_know_is_refused_by_name(
    saved: Path, change: Callable[[dict[str, Any]], None], named: str
) -> None:
    """By the check as well: nothing is passed over."""
    reseal(saved, change)
    with pytest.raises(audit.Fault, match=named):
        audit.audit(str(saved))
    with pytest.raises((om.VerificationError, om.ProblemError)):
        om.Design.load(saved)


def test_an_unknown_divergence_is_refused_and_not_evaluated(tmp_path: Path) -> None:
    line = om.Prior.uniform(om.Domain.range(2))
    pairs = [([1.0, 0.0], [0.0, 1.0])]
    constraint = om.DistributionPrivacy(0.1, pairs, divergence="kl")
    om.solve(om.Problem(line, H, constraints=[constraint])).save(tmp_path / "d.json")
    reseal(tmp_path / "d.json", _set("problem", "constraints", 0, "divergence", value="renyi"))
    with pytest.raises(audit.Fault, match=r"constraints\[0\].*divergence 'renyi'"):
        audit.audit(str(tmp_path / "d.json"))
    with pytest.raises(audit.Fault, match="'tv'"):
        inequalities.divergence("tv", [Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)])


def test_observables_with_the_labels_of_secrets_at_other_places(
    audit_file: Path, tmp_path: Path
) -> None:
    """Two secrets at 0 and 1, whose two reports lie near 0: only the row of the first is in the
    window, P[a,o] <= 3 P[b,o]. Where a is always reported as itself, b is reported as a for 1/3."""
    secrets, stations = om.Domain("ab", [[0.0], [1.0]]), om.Domain("ab", [[0.25], [-0.25]])
    near = om.MetricPrivacy("ln 3", E, observable_threshold=0.5)
    problem = om.Problem(om.Prior.uniform(secrets), 1 - np.eye(2), stations, constraints=[near])
    path = tmp_path / "design.json"
    design = om.solve(problem)
    assert design.loss == pytest.approx(1 / 6, rel=1e-9)
    design.save(path)
    assert om.check(path).loss == design.loss
    assert alone(audit_file, str(path)).returncode == 0


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("", ""),
        ("2>&-", ""),
        ("2>/dev/full", ""),
        (">/dev/full", "standard output cannot be written: No space left on device\n"),
        (">&-", "standard output cannot be written: it is closed\n"),
        ("<&- >&-", "standard output cannot be written: it is closed\n"),
        (">&- 2>&-", ""),
        (">/dev/full 2>/dev/full", ""),
    ],
)
def test_a_verdict_that_cannot_be_written_is_status_2(
    saved: Path, audit_file: Path, ending: str, reason: str, there: bool
) -> None:
    if "full" in ending and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    if not there:
        saved = saved.with_name("no such file")
    command = f'exec "$0" -I -S "$1" "$2" {ending}'
    found = subprocess.run(
        ["sh", "-c", command, sys.executable, str(audit_file), str(saved)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    written = there and ">&-" not in ending.replace("2>&-", "") and not ending.startswith(">")
    assert found.returncode == (0 if written else 2)
    assert ("everything that the file claims holds" in found.stdout) == written
    if there:
        assert found.stderr == reason
    elif "2>" not in ending:
        assert found.stderr == f"{saved}: No such file or directory\n"


def test_a_file_without_anything_to_read_yet_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the kernel's messages are: a regular file by its kind, of which reads return nothing."""
    path = tmp_path / "d.json"
    path.write_bytes(b"{}")

    class Waiting(io.BytesIO):
        def fileno(self) -> int:
            return 0

        def read(self, size: int | None = -1) -> Any:
            return None

    monkeypatch.setattr("optmech_audit.document.stream_of", lambda *_: Waiting())
    monkeypatch.setattr("optmech_audit.earth.stream_of", lambda *_: Waiting())
    monkeypatch.setattr("optmech_audit.packed.stream_of", lambda *_: Waiting())
    for given in ([str(path)], [str(path), str(path)]):
        assert audit.main(given) == 1
        said = capsys.readouterr()
        assert "has nothing to read yet" in said.out + said.err
        assert "AttributeError" not in said.out + said.err
