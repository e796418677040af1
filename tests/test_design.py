"""Design files: bit-by-bit round trips, and nothing altered is accepted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conformance.problems import KINDS, Make, everything, most_distortion_private, thresholds
from forgery import reseal
from optmech_audit import Fault, audit

import optmech as om
from optmech.errors import ProblemError, VerificationError
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_kind_of_design_reads_back_exactly(make: Make, tmp_path: Path) -> None:
    design = om.solve(make(np.random.default_rng(41)))
    path = tmp_path / "design.json"
    design.save(path)
    again = om.Design.load(path)
    assert again.status == design.status
    report = om.check(path)
    assert report.passed, report.faults
    if design.status == "infeasible":
        assert again.reason == design.reason
        return
    assert np.array_equal(again.mechanism.matrix, design.mechanism.matrix)
    for name in ("loss", "lower_bound", "gap", "objective", "bound", "verified", "notes"):
        assert getattr(again, name) == getattr(design, name), name
    first, second = design.problem.statement, again.problem.statement
    assert np.array_equal(first.log_ratio, second.log_ratio)
    assert np.array_equal(first.loss, second.loss)
    assert np.array_equal(first.prior, second.prior)
    assert again.problem.secrets.labels == design.problem.secrets.labels
    assert report.bound == design.bound


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    grid = om.Grid(2, 2)
    problem = om.Problem(
        om.Prior(grid, [1, 2, 3, 4]), H, constraints=[om.MetricPrivacy("ln 3", E)], title="four"
    )
    path = tmp_path / "design.json"
    om.solve(problem).save(path)
    return path


def test_exact_epsilon_and_title_survive(saved: Path) -> None:
    problem = om.Design.load(saved).problem
    assert problem.constraints[0].epsilon.text == "ln 3"
    assert problem.title == "four"
    assert isinstance(problem.secrets, om.Grid)


def test_a_flipped_byte_is_noticed(saved: Path) -> None:
    rng = np.random.default_rng(0)
    original = saved.read_bytes()
    for k in [*range(120), *rng.choice(len(original), 300, replace=False)]:
        changed = bytearray(original)
        changed[k] ^= 1 << int(rng.integers(8))
        saved.write_bytes(bytes(changed))
        with pytest.raises((VerificationError, ProblemError)):
            om.Design.load(saved)


def test_a_forged_digest_does_not_help(saved: Path) -> None:
    original = saved.read_bytes()

    def better_loss(body: dict) -> None:
        body["result"]["loss"] *= 0.9

    def better_bound(body: dict) -> None:
        body["result"]["bound"] = body["result"]["objective"]

    def less_private(body: dict) -> None:
        first, second, *rest = body["mechanism"]["rows"][0][1]
        moved = int(second, 16) // 100
        first, second = f"{int(first, 16) + moved:x}", f"{int(second, 16) - moved:x}"
        body["mechanism"]["rows"][0][1] = [first, second, *rest]

    def no_problem(body: dict) -> None:
        del body["problem"]["secrets"]

    def infinite(body: dict) -> None:
        body["mechanism"]["bits"] = 10**30

    def wild_index(body: dict) -> None:
        body["multipliers"]["ratio"]["i"] = [-1] * len(body["multipliers"]["ratio"]["i"])

    for change in (better_loss, better_bound, less_private, no_problem, infinite, wild_index):
        saved.write_bytes(original)
        reseal(saved, change)
        with pytest.raises(VerificationError):
            om.Design.load(saved)


def test_checking_loads_nothing_that_solves(saved: Path) -> None:
    code = (
        "import sys, optmech as om; om.check(sys.argv[1]); om.Design.load(sys.argv[1]).mechanism;"
        "print(*[m for m in sys.modules if m.startswith('optmech.')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=True
    )
    modules = {name.removeprefix("optmech.") for name in found.stdout.split()}
    loaded = {name.split(".")[0] for name in modules}
    assert "certificate" in loaded
    assert not loaded & {"engines", "lp", "pipeline", "reductions", "repair"}


HOSTILE = [
    None, True, -1, -0.0, 10**400, 1e308, -1e308, 5e-324, 1e999, float("nan"), "", "ln 3", "1/0",
    "9" * 5000, "é" * 10, [], [[]], [[1.0]], {}, {"grid": [3]}, "../../etc/passwd", [None] * 4,
]  # fmt: skip


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    yield path
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in inside:
            yield from places(part, (*path, key))


@pytest.mark.parametrize("make", [everything, thresholds, most_distortion_private])
def test_hostile_values_are_refused_or_harmless(make: Make, tmp_path: Path) -> None:
    """Any value anywhere, under a valid digest: an orderly refusal by both checkers, or a file
    whose mechanism and claims still hold."""
    path = tmp_path / "d.json"
    design = om.solve(make(np.random.default_rng(4)))
    design.save(path)
    original = path.read_text()
    rng = np.random.default_rng(7)
    spots = list(places(json.loads(original)))[1:]
    accepted = 0
    for spot in rng.permutation(len(spots))[:100]:
        body = json.loads(original)
        place = body
        for key in spots[spot][:-1]:
            place = place[key]
        if spots[spot] == ("digest",):
            continue
        place[spots[spot][-1]] = HOSTILE[int(rng.integers(len(HOSTILE)))]
        body.pop("digest")
        path.write_bytes(seal(json.dumps(body).encode()))
        try:
            lines = audit(str(path))
        except Fault:
            lines = []
        try:
            again = om.Design.load(path)
        except (VerificationError, ProblemError):
            continue
        accepted += 1
        assert lines, f"{spots[spot]} passes the checker and not the audit"
        assert again.mechanism.exact.rows == design.exact.rows
    assert accepted < 24


@pytest.mark.parametrize("depth", [500, 990, 5000])
def test_deep_nesting_is_refused(saved: Path, depth: int) -> None:
    body = json.loads(saved.read_text())
    body.pop("digest")
    body["problem"]["title"] = "x"
    text = json.dumps(body).replace('"title": "x"', '"title": ' + "[" * depth + "]" * depth)
    saved.write_bytes(seal(text.encode()))
    with pytest.raises((VerificationError, ProblemError)):
        om.Design.load(saved)
    with pytest.raises(Fault):
        audit(str(saved))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_are_no_numbers_are_refused(saved: Path, constant: str) -> None:
    body = json.loads(saved.read_text())
    body.pop("digest")
    text = json.dumps(body).replace('"seconds": ', f'"seconds": {constant}, "was": ')
    saved.write_bytes(seal(text.encode()))
    with pytest.raises(ProblemError, match="not a number"):
        om.Design.load(saved)


def test_an_unproved_infeasibility_is_a_fault(saved: Path) -> None:
    def give_up(body: dict) -> None:
        body["result"]["status"] = "infeasible"
        body["mechanism"] = None

    reseal(saved, give_up)
    assert om.check(saved).faults


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1,2", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}']
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ProblemError, match=r"x\.json"):
        om.check(path)
    with pytest.raises(ProblemError, match="cannot be read"):
        om.check(tmp_path / "missing.json")


def test_unwritable_labels_and_places_are_refused(tmp_path: Path) -> None:
    problem = om.Problem(om.Prior.uniform(om.Domain([frozenset("a"), "b"])), H)
    with pytest.raises(ProblemError, match="label"):
        om.solve(problem).save(tmp_path / "d.json")
    with pytest.raises(ProblemError, match="cannot be written"):
        om.solve(om.Problem(om.Prior.uniform(om.Domain("ab")), H)).save(
            tmp_path / "no" / "such" / "d.json"
        )
    assert list(tmp_path.iterdir()) == []
