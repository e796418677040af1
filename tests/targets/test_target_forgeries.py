"""Forged families: what a file says is proved, computed again, or refused, by both checkers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from each import each
from forgery import resealed
from target_mutations import _least, _longest, falsehood, files, run

import optmech as om
from optmech.reading.sealed import seal

Body = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    return files()


def test_check_and_audit_agree_on_altered_files(tmp_path: Path) -> None:
    tally = run(200, 3, tmp_path)
    assert tally.wrong == []
    assert min(tally.counts["accepted"], tally.counts["refused"]) > 25


def test_honest_families_pass_both(made: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in made.items():
        path = tmp_path / "family.json"
        path.write_bytes(content)
        assert om.check(path).passed, name
        assert audit.main([str(path)]) == 0
        assert falsehood(content) == ""


def refused(content: bytes, path: Path) -> bool:
    """By both, and in order."""
    path.write_bytes(content)
    try:
        passed = om.check(path).passed
    except (om.VerificationError, om.ProblemError):
        passed = False
    assert (audit.main([str(path)]) == 0) is passed
    return not passed


def put(*path: Any) -> Callable[[Body], None]:
    """Set the entry at all but the last, to the last."""

    def change(body: Body) -> None:
        inner: Any = body
        for key in path[:-2]:
            inner = inner[key]
        inner[path[-2]] = path[-1]

    return change


FALSE: list[tuple[str, Callable[[Body], Any]]] = [
    ("wide", put("claims", "status", "feasible")),
    ("ln 2", put("claims", "lower_bound", 0.0)),
    ("ln 2", put("claims", "status", "best")),
    ("ln 2", put("claims", "lower_bound", None)),
    ("ln 2", put("claims", "lower_bound", "0.1")),
    ("ln 2", put("claims", "loss", True)),
    ("coupling", put("epsilon", -0.0)),
    ("common", put("delta", -0.0)),
    ("ln 2", lambda body: body["claims"].pop("loss")),
    ("ln 2", lambda body: body["claims"].pop("lower_bound")),
    ("ln 2", lambda body: body.update(status="optimal")),
    ("ln 2", put("multipliers", "values", [[["f" * 600] * 4] * 2] * 2)),
    ("ln 2", put("multipliers", "shift", 5001)),
    ("ln 2", put("multipliers", [[[1e300] * 4] * 2] * 2)),
    ("ln 2", put("epsilon", 0.1)),
    ("ln 2", put("names", ["a", "a"])),
    ("ln 2", put("names", [1, 2])),
    ("coupling", put("p", True)),
    ("coupling", put("epsilon", 0.5)),
    ("coupling", put("weights", ["1", 1])),
    ("coupling", put("plans", 0, "moves", 0, 0, False)),
    ("coupling", put("distance", 0, 1, "1.0")),
    ("grid", put("secrets", "cell", [0.75, 0.5])),
    ("grid", put("secrets", "grid", [4, 1])),
    ("grid", put("distance_name", "manhattan")),
    ("common", lambda body: body["secrets"]["points"].reverse()),
    ("three", put("secrets", "unit", "")),
    ("three", put("observables", "unit", "")),
    ("worst", lambda body: body["crowded"][0].append(body["crowded"][0][0])),
    ("worst", put("crowded", 0, [True])),
    ("worst", put("crowded", 0, [0.0])),
    ("worst", put("crowded", [])),
    ("worst", put("plans", 1, "moves", [])),
    ("coupling", put("plans", 0, "moves", [])),
    ("ln 2", put("plans", 0, "moves", [])),
]


@each(("name", "change"), FALSE)
def test_false_claims_are_refused(
    name: str, change: Callable[[Body], Any], made: dict[str, bytes], tmp_path: Path
) -> None:
    assert refused(resealed(made[name], change), tmp_path / "family.json")


def test_points_of_a_violating_set_count_once(tmp_path: Path) -> None:
    """Two points that could stay and change places: the longest move is 1, and can be 0."""
    path = tmp_path / "family.json"
    d = [[0.0, 1.0], [1.0, 0.0]]
    om.mechanisms.coupling_design([[1, 1]], [1, 1], d, math.inf).save(path)

    def swap(body: Body) -> None:
        body["plans"][0]["moves"] = [[0, 1, "1"], [1, 0, "1"]]
        body["plans"][0] |= {"potentials": [["1", "1"], ["0", "0"]], "shift": 0}
        body["claims"] |= {"loss": 1.0, "lower_bound": 1.0, "losses": [1.0], "worst_moves": [1.0]}

    honest = path.read_bytes()
    for points in ([], [0], [0, 1], [0] * 50):
        content = resealed(honest, lambda body, p=points: (swap(body), body.update(crowded=[p])))
        assert refused(content, path)
        assert falsehood(content) == "a longest move that can be shorter"


def test_duplicate_keys_are_refused(made: dict[str, bytes], tmp_path: Path) -> None:
    rest = made["ln 2"].partition(b"\n")[2]
    twice = rest.replace(b'"epsilon": "ln 2"', b'"epsilon": 0.001, "epsilon": "ln 2"')
    assert twice != rest
    assert refused(seal(b"{" + twice), tmp_path / "family.json")


def test_huge_multipliers_are_only_a_bad_bound(made: dict[str, bytes], tmp_path: Path) -> None:
    """Anything but an orderly verdict would be a crash."""

    def change(body: Body) -> None:
        body["epsilon"] = 700.0
        none, huge = ["0"] * 4, ["f" * 500] * 4
        body["multipliers"] = {"values": [[none, huge], [huge, none]], "shift": 0}

    path = tmp_path / "family.json"
    assert refused(resealed(made["ln 2"], change), path)
    assert any("lower_bound" in fault for fault in om.check(path).faults)


def test_a_weaker_claim_holds_and_is_called_what_it_is(
    made: dict[str, bytes], tmp_path: Path
) -> None:
    def weaken(body: Body) -> None:
        body["claims"] |= {"lower_bound": 0.0, "status": "feasible"}

    path = tmp_path / "family.json"
    assert not refused(resealed(made["common"], weaken), path)
    report = om.check(path)
    assert (report.status, report.gap, report.lower_bound) == ("feasible", 1, 0)


def test_what_cannot_be_proved_is_named(
    made: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of inputs may be exchanged by whoever writes a file; a reader is told so."""
    path = tmp_path / "family.json"
    path.write_bytes(resealed(made["coupling"], lambda body: body["names"].reverse()))
    notes = " ".join(om.check(path).notes)
    assert "names of the inputs" in notes
    assert "euclidean, computed again" in notes
    assert audit.main([str(path)]) == 0
    assert "names of the inputs" in capsys.readouterr().out
    path.write_bytes(made["wide"])
    assert "not compared with any coordinates" in " ".join(om.check(path).notes)


def test_a_name_is_found_for_distances_of_the_coordinates(made: dict[str, bytes]) -> None:
    names = {name: json.loads(content)["distance_name"] for name, content in made.items()}
    assert names["grid"] == names["common"] == "euclidean"
    assert names["three"] == "haversine"
    assert names["worst places"] == names["wide"] == "matrix"


def test_bounds_are_the_same_in_both_for_every_kind_of_number(tmp_path: Path) -> None:
    """e^ε and δ irrational, huge or tiny: whoever reads the file finds the same bound."""
    d = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    path = tmp_path / "family.json"
    for epsilon, delta in [
        (1e-300, 0), (0.3, "1/1000 ln 2"), ("1/65 ln 3", 0), (35.5, 1e-12), (999, 0), (1500, 0),
        ("1/3 ln 7", "1/7"), (1e-9, 1e-300),
    ]:  # fmt: skip
        om.mechanisms.optimal_target([[1, 2, 0], [0, 1, 3]], d, epsilon, delta=delta).save(path)
        assert om.check(path).passed
        assert audit.main([str(path)]) == 0


def test_longest_moves_against_halls_condition(tmp_path: Path) -> None:
    """W_∞ by going through all sets, and the least mean among plans that move no farther."""
    path = tmp_path / "family.json"
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 5, 2)
        wide = 10.0 ** rng.uniform(-15, 15, (n, m))
        d = wide if seed % 2 else rng.integers(0, 5, (n, m)).astype(float)
        lam, mu = rng.integers(0, 5, n), rng.integers(0, 5, m)
        lam[0] += 1
        mu[0] += 1
        design = om.mechanisms.coupling_design([lam], mu, d, math.inf)
        first, second = (side.fractions for side in (design.plans[0].first, design.plans[0].second))
        assert first == [Fraction(int(v), int(lam.sum())) for v in lam]
        reach = _longest(first, second, d.tolist())
        assert design.worst_moves == (reach,)
        assert design.exact_losses == (_least(first, second, d.tolist(), reach),)
        design.save(path)
        assert om.check(path).passed
        assert audit.main([str(path)]) == 0
