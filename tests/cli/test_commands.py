"""Every command in-process: what it prints, and how it ends."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.files import problem_schema

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: str) -> tuple[int, str, str]:
        status = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return call


def toml(tmp_path: Path, text: str, name: str = "p.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


PAIR = """
format = 1
title = "Two points"
loss = "euclidean"
[secrets]
kind = "line"
values = [0, 2]
unit = "km"
[prior]
kind = "weights"
weights = [1, 3]
"""
METRIC = '[[constraints]]\nkind = "metric_privacy"\nepsilon = "1/2 ln 3"\ndistance = "euclidean"\n'


@pytest.fixture
def saved(tmp_path: Path, run: Run) -> Path:
    """A design whose numbers are known: two points 2 km apart, e^{εd} = 3, weights 1/4, 3/4.

    With a = p(0|0), b = p(0|2): loss = 2 ((1-a)/4 + 3b/4). Reporting 2 always (a = b = 0) costs
    1/2, and so does a = 3/4, b = 1/4 (randomised response): with a <= 3b, nothing costs less.
    """
    out = tmp_path / "design.json"
    assert run("solve", str(toml(tmp_path, PAIR + METRIC)), "-o", str(out), "-q")[0] == 0
    return out


def test_solve_json_is_one_object_with_the_promised_fields(tmp_path: Path, run: Run) -> None:
    status, out, err = run("solve", str(toml(tmp_path, PAIR + METRIC)), "--json")
    assert status == 0
    assert out.count("\n") == 1
    answer = json.loads(out)
    assert answer["status"] == "optimal"
    assert answer["verified"] is True
    assert answer["loss"] == pytest.approx(0.5, rel=1e-9)
    assert answer["lower_bound"] == pytest.approx(0.5, rel=1e-6)
    assert answer["gap"] <= 1e-6
    assert (answer["secrets"], answer["observables"]) == (2, 2)
    assert answer["engine"]
    assert answer["seconds"] > 0
    assert answer["problem"] == "Two points"
    assert answer["attack"]["distance"] == "euclidean"
    assert answer["attack"]["blind_error"] == pytest.approx(0.5)
    assert answer["attack"]["error"] == pytest.approx(0.5, rel=1e-6)
    (row,) = answer["privacy"]
    assert row["quantity"] == "epsilon"
    assert row["promised"] == pytest.approx(math.log(3) / 2)
    assert row["measured"] <= row["promised"] * (1 + 1e-12)
    assert all(check["passed"] for check in answer["checks"])
    assert "HiGHS" in err


def test_solve_for_people(run: Run) -> None:
    status, out, err = run("solve", "differential", "-q")
    assert status == 0
    assert err == ""
    for words in (
        "Differential privacy: randomised response",
        "ε = ln 3, all pairs",
        "status",
        "optimal",
        "lower bound",
        "verified",
        "yes",
        "measured from the matrix",
        "1.09861229",
        "optimal attack",
        "best guess right with 25.0%",
    ):
        assert words in out, words
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_output_does_not_depend_on_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run("problems")[1]
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "30"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    assert run("problems")[1] == plain


def test_a_thresholded_design_warns_about_the_true_epsilon(run: Run) -> None:
    status, _, err = run("solve", "threshold", "-q")
    assert status == 0
    # the worst pair is a knight's move apart: a path of 1 + sqrt(2) against a line of sqrt(5)
    epsilon = (1 + math.sqrt(2)) / math.sqrt(5)
    assert f"constraints[0]: with its thresholds the design has ε = {epsilon:.6f}" in err
    assert "and not 1; repaired to keep the promise" in err


def test_maximised_distortion_is_shown(run: Run) -> None:
    status, out, _ = run("solve", "max-distortion", "-q")
    assert status == 0
    assert "distortion " in out
    assert "upper bound" in out
    assert "is maximised" in out


def test_infeasible_has_both_numbers_and_status_3(tmp_path: Path, run: Run) -> None:
    hard = '[[constraints]]\nkind = "distortion_privacy"\nminimum = 0.75\ndistance = "euclidean"\n'
    path = toml(tmp_path, PAIR + hard)
    status, _, err = run("solve", str(path), "-q")
    assert status == 3
    last = err.splitlines()[-1]
    assert last.startswith(f"optmech: error: {path}: infeasible: ")
    assert "0.75" in last
    assert "0.5" in last
    status, out, err = run("solve", str(path), "-q", "--json")
    assert status == 3
    answer = json.loads(out)
    assert answer["status"] == "infeasible"
    assert answer["verified"] is False
    assert answer["loss"] is None


def test_an_infeasible_design_can_be_saved_and_checked(tmp_path: Path, run: Run) -> None:
    hard = '[[constraints]]\nkind = "distortion_privacy"\nminimum = 0.75\ndistance = "euclidean"\n'
    out = tmp_path / "d.json"
    assert run("solve", str(toml(tmp_path, PAIR + hard)), "-q", "-o", str(out))[0] == 3
    assert run("check", str(out))[0] == 0
    status, _, err = run("sample", str(out), "0")
    assert status == 3
    assert "0.75" in err


def test_the_recommended_profile_is_used(tmp_path: Path, run: Run) -> None:
    path = toml(tmp_path, 'profile = "highs-simplex"\n' + PAIR + METRIC)
    assert json.loads(run("solve", str(path), "--json")[1])["profile"] == "highs-simplex"
    answer = json.loads(run("solve", str(path), "--json", "--profile", "highs")[1])
    assert answer["profile"] == "highs"


def test_check_passes_and_finds_tampering(saved: Path, run: Run) -> None:
    status, out, _ = run("check", str(saved))
    assert status == 0
    assert "passed" in out
    report = json.loads(run("check", str(saved), "--json")[1])
    assert report["passed"] is True
    assert report["loss"] == pytest.approx(0.5)
    saved.write_text(saved.read_text().replace('"optimal"', '"feasible"'))
    status, _, err = run("check", str(saved))
    assert status == 1
    assert "was altered" in err


@pytest.mark.parametrize("kind", ["optimal", "bayesian", "prior-free", "minimax"])
def test_attacks(saved: Path, run: Run, kind: str) -> None:
    design = om.Design.load(saved)
    answer = json.loads(run("attack", str(saved), "--kind", kind, "--json")[1])
    p, weights = design.mechanism.matrix, np.array([0.25, 0.75])
    joint = weights[:, None] * p
    distance = np.array([[0.0, 2.0], [2.0, 0.0]])
    if kind == "optimal":
        assert answer["error"] == pytest.approx((distance @ joint).min(axis=0).sum(), rel=1e-9)
    if kind == "bayesian":
        reached = joint.sum(axis=0) > 0
        posterior = joint[:, reached] / joint[:, reached].sum(axis=0)
        expected = sum(
            joint[s, o] * posterior[t, k] * distance[t, s]
            for k, o in enumerate(np.flatnonzero(reached))
            for s in range(2)
            for t in range(2)
        )
        assert answer["error"] == pytest.approx(expected, rel=1e-9)
    if kind == "minimax":
        assert answer["value"] >= answer["lower_bound"] >= answer["value"] - 2e-6
    assert set(answer["error_per_secret"]) == {"0", "2"}
    assert answer["unit"] == "km"
    assert run("attack", str(saved), "--kind", kind)[0] == 0


def test_attack_in_another_distance(saved: Path, run: Run) -> None:
    near = json.loads(run("attack", str(saved), "--json")[1])
    hamming = json.loads(run("attack", str(saved), "--distance", "hamming", "--json")[1])
    assert hamming["error"] == pytest.approx(near["error"] / 2)
    status, _, err = run("attack", str(saved), "--distance", "parsec")
    assert status == 2
    assert "'parsec' is unknown here. Use one of euclidean" in err


def test_measure(saved: Path, run: Run) -> None:
    design = om.Design.load(saved)
    answer = json.loads(run("measure", str(saved), "--epsilon", "0", "--delta", "0.5", "--json")[1])
    p = design.mechanism.matrix
    assert answer["expected_loss"] == pytest.approx(0.5, rel=1e-9)
    assert answer["worst_loss"] == pytest.approx(max(2 * p[0, 1], 2 * p[1, 0]), abs=1e-12)
    assert answer["metric_epsilon"] <= math.log(3) / 2 * (1 + 1e-12)
    assert answer["epsilon"] == pytest.approx(2 * answer["metric_epsilon"])
    # at ε = 0, δ is the total variation
    assert answer["delta_at_epsilon"] == pytest.approx(abs(p[0, 0] - p[1, 0]), abs=1e-12)
    assert answer["epsilon_at_delta"] == 0
    assert answer["bayes_vulnerability"] == pytest.approx(0.75, rel=1e-6)
    entropy = -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))
    assert answer["prior_entropy"] == pytest.approx(entropy)
    told = answer["mutual_information_nats"] / math.log(2)
    assert answer["conditional_entropy"] + told == pytest.approx(entropy)
    assert run("measure", str(saved), "--epsilon", "ln 2")[0] == 0
    assert run("measure", str(saved), "--epsilon", "-1")[0] == 2


def test_sample(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "d.json"
    assert run("solve", "grid-4x4", "-q", "-o", str(out))[0] == 0
    first = run("sample", str(out), "1,2", "-n", "5", "--seed", "7")[1]
    assert first == run("sample", str(out), "(1, 2)", "-n", "5", "--seed", "7")[1]
    assert len(first.splitlines()) == 5
    assert all(line[0] in "0123" and line[1] == "," for line in first.splitlines())
    answer = json.loads(run("sample", str(out), "1,2", "-n", "4000", "--seed", "1", "--json")[1])
    assert answer["secret"] == [1, 2]
    row = om.Design.load(out).mechanism.matrix[6]
    share = np.mean([label == [1, 2] for label in answer["observables"]])
    assert share == pytest.approx(row[6], abs=5 * math.sqrt(row[6] * (1 - row[6]) / 4000))
    for bad in (["9,9"], ["x"], ["1,2", "-n", "0"], ["1,2", "--seed", "-1"], ["1,2", "-n", "1e3"]):
        status, text, err = run("sample", str(out), *bad)
        assert (status, text) == (2, "")
        assert err.startswith("optmech: error: ")
        assert err.count("\n") == 1


def test_two_draws_differ_without_a_seed(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "d.json"
    assert run("solve", "grid-4x4", "-q", "-o", str(out))[0] == 0
    draws = {run("sample", str(out), "1,2", "-n", "60")[1] for _ in range(2)}
    assert len(draws) == 2


@pytest.mark.parametrize("form", ["mps", "lp"])
@pytest.mark.parametrize("name", ["differential", "medical-tree", "joint", "support", "worst-case"])
def test_exported_programs_have_the_same_optimum(
    tmp_path: Path, run: Run, form: str, name: str
) -> None:
    import highspy

    out = tmp_path / f"program.{form}"
    status, text, err = run("export", name, "--format", form, "-o", str(out), "--json")
    assert (status, err) == (0, "")
    size = json.loads(text)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(out))
    assert (solver.getNumRow(), solver.getNumCol()) == (size["rows"], size["columns"])
    solver.run()
    expected = om.solve(om.load_problem(name)).objective
    assert solver.getObjectiveValue() == pytest.approx(expected, rel=1e-5)


def test_export_says_what_the_columns_are(tmp_path: Path, run: Run) -> None:
    status, out, err = run("export", "differential", "-o", str(tmp_path / "x"))
    assert (status, out) == (0, "")
    assert "column p_S_O is the probability of observable number O" in err
    assert "p_9_9" in (tmp_path / "x").read_text()


def test_problems(run: Run) -> None:
    listed = json.loads(run("problems", "--json")[1])["problems"]
    sizes = {entry["name"]: entry["secrets"] for entry in listed}
    assert sizes["paper"] == 300
    assert all(os.path.isfile(entry["path"]) for entry in listed)
    text = run("problems")[1]
    assert all(entry["name"] in text for entry in listed)


def test_profiles(run: Run) -> None:
    listed = json.loads(run("profiles", "--json")[1])["profiles"]
    assert "auto" in [profile["name"] for profile in listed]
    assert all(profile["description"] in run("profiles")[1] for profile in listed[:1])


def test_schema(run: Run) -> None:
    assert json.loads(run("schema")[1]) == problem_schema()
    assert run("schema", "--json")[1].count("\n") == 1


def test_labels_are_text_and_not_markup(tmp_path: Path, run: Run) -> None:
    text = PAIR + METRIC
    text = text.replace("values = [0, 2]", 'values = [0, 2]\nlabels = ["[red]x[/]", "\\u001b[31m"]')
    out = tmp_path / "d.json"
    assert run("solve", str(toml(tmp_path, text)), "-q", "-o", str(out))[0] == 0
    shown = run("attack", str(out))[1]
    assert "[red]x[/]" in shown
    assert "\x1b" not in shown
    assert "\x1b" not in run("sample", str(out), "[red]x[/]", "-n", "20")[1]
