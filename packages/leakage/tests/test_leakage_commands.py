"""``optmech measure --leakage`` and ``compare``: numbers known in closed form."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from optmech.cli.main import main

PROBLEM = """
format = 1
loss = "hamming"
prior = "uniform"
[secrets]
kind = "labels"
labels = ["a", "b", "c"]
"""


def response(path: Path, rate: float) -> str:
    """Randomised response as a matrix of another tool."""
    rows = [[rate if s == o else 1 for o in range(3)] for s in range(3)]
    text = "".join(",".join(repr(v / (rate + 2)) for v in row) + "\n" for row in rows)
    path.write_text(text)
    return str(path)


@pytest.fixture
def problem(tmp_path: Path) -> str:
    (tmp_path / "p.toml").write_text(PROBLEM)
    return str(tmp_path / "p.toml")


def test_leakage_is_measured(
    tmp_path: Path, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    m = response(tmp_path / "m.csv", 6)
    argv = ["measure", m, "--problem", problem, "--leakage", "--reports", "2"]
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["leakage"]
    assert found["prior_vulnerability"] == pytest.approx(1 / 3)
    assert found["posterior_vulnerability"] == pytest.approx(3 / 4)
    assert found["multiplicative_leakage"] == pytest.approx(9 / 4)
    assert found["maximal_leakage"] == pytest.approx(math.log(9 / 4))
    assert found["additive_capacity"] == pytest.approx(1 - 3 / 8)
    assert found["bayes_risk_capacity"] == pytest.approx(1 / (1 - 5 / 8))
    assert found["guessing_entropy"] == pytest.approx((6 + 2 + 3) / 8)
    assert found["posteriors"] == 3
    capacity = math.log(3) + 0.75 * math.log(0.75) + 0.25 * math.log(0.125)
    low, high = found["shannon_capacity"]
    assert low - 1e-12 <= capacity <= high + 1e-12
    assert high - low < 1e-8
    assert found["repeated_epsilon"] == pytest.approx(2 * math.log(6))
    # two answers: the best guess is one of them, 9 pairs of 64ths: 3 * 36 + 6 * 6 over 3
    low, high = found["repeated_vulnerability"]
    assert (low, high) == pytest.approx(((3 * 36 + 6 * 6) / 64 / 3,) * 2)
    assert found["repeated_error"] == pytest.approx([1 - high, 1 - low])
    assert main(argv) == 0
    shown = capsys.readouterr().out
    assert "Leakage" in shown
    assert "best guess after 2 reports" in shown
    assert main(["measure", m, "--problem", problem, "--reports", "2"]) == 2
    assert "--reports: counts with --leakage only" in capsys.readouterr().err
    assert main([*argv[:-1], "0"]) == 2
    assert "--reports.k: 0 is not a whole number from 1" in capsys.readouterr().err


def test_designs_are_compared(
    tmp_path: Path, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    sharp, blurred = response(tmp_path / "a.csv", 6), response(tmp_path / "b.csv", 2)
    argv = ["compare", sharp, blurred, "--problem", problem]
    assert main([*argv, "--json", "--picture", str(tmp_path / "c.png")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["second_refines_first"]["relation"] in ("holds", "rounding")
    back = found["first_refines_second"]
    assert back["relation"] == "fails"
    # guesses: 3/4 right instead of 1/2
    assert back["gap"] == pytest.approx(1 / 4)
    assert back["deficiency"] == pytest.approx([1 / 4, 1 / 4])
    assert found["first"]["epsilon"] == pytest.approx(math.log(6))
    assert found["second"]["posterior_vulnerability"] == pytest.approx(1 / 2)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert main(argv) == 0
    shown = capsys.readouterr().out
    assert "The second never leaks more than the first, whatever an adversary wants" in shown
    assert "the first earns an adversary more, by up to" in shown
    assert main([argv[0], sharp, sharp, *argv[3:]]) == 0
    assert "leak the same to every adversary" in capsys.readouterr().out


def test_incomparable_designs_and_other_secrets(
    tmp_path: Path, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("1,0,0\n0,0.5,0.5\n0,0.5,0.5\n")
    other.write_text("0.5,0.5,0\n0.5,0.5,0\n0,0,1\n")
    assert main(["compare", str(one), str(other), "--problem", problem]) == 0
    assert "depends on the adversary" in " ".join(capsys.readouterr().out.split())
    assert main(["solve", "line-geometric", "-o", str(tmp_path / "a.json"), "-q"]) == 0
    assert main(["solve", "differential", "-o", str(tmp_path / "b.json"), "-q"]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 2
    assert "has other secrets than" in capsys.readouterr().err


def two_grids(tmp_path: Path, first: str, second: str) -> list[str]:
    """Designs for 2 x 2 cells, in a problem file each; their ε per unit of distance are given."""
    out = []
    for name, secrets in (("near", first), ("far", second)):
        cell, unit, epsilon = secrets.split()
        text = f"""format = 1
prior = "uniform"
loss = "euclidean"
[secrets]
kind = "grid"
rows = 2
columns = 2
cell = {cell}
unit = "{unit}"
[[constraints]]
kind = "metric_privacy"
epsilon = {epsilon}
distance = "euclidean"
"""
        (tmp_path / f"{name}.toml").write_text(text)
        out.append(str(tmp_path / f"{name}.json"))
        assert main(["solve", str(tmp_path / f"{name}.toml"), "-q", "-o", out[-1]]) == 0
    return out


def test_each_design_is_measured_at_its_own_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A grid that is a thousand times as wide: ε per km a thousandth, errors a thousandfold."""
    near, far = two_grids(tmp_path, "1.0 km 1.0", "1000.0 km 0.001")
    capsys.readouterr()
    assert main(["compare", near, far, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unit"] == "km"
    assert found["second"]["metric_epsilon"] == pytest.approx(1e-3, rel=1e-6)
    ratio = found["second"]["distortion"] / found["first"]["distortion"]
    assert ratio == pytest.approx(1000, rel=1e-6)
    for design, side in ((near, "first"), (far, "second")):
        assert main(["measure", design, "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        for key in ("metric_epsilon", "distortion", "expected_loss"):
            assert found[side][key] == alone[key]
    # what both reports reveal per km is said of no pair of places that two designs put elsewhere
    assert found["together"]["both_metric_epsilon"] is None
    assert main(["compare", near, far]) == 0
    shown = capsys.readouterr().out
    assert "per km (euclidean)" in shown
    assert "lie elsewhere in the second" in " ".join(shown.split())


def test_designs_in_different_units_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    near, far = two_grids(tmp_path, "1.0 km 1.0", "1000.0 m 0.001")
    capsys.readouterr()
    assert main(["compare", near, far]) == 2
    assert (
        "are per km (euclidean) in the first and per m (euclidean) in the second"
        in capsys.readouterr().err
    )
    assert main(["compare", near, far, "--distance", "hamming"]) == 0


def test_reports_about_a_population(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reports are right with probability 2/3: of two reports δ at ε = ln 2 is 4/9 - 2/9."""
    text = PROBLEM.replace('["a", "b", "c"]', '["a", "b"]') + (
        '[[constraints]]\nkind = "distribution_privacy"\nepsilon = "ln 2"\n'
        "pairs = [[[1, 0], [0, 1]]]\n"
    )
    (tmp_path / "p.toml").write_text(text)
    right, wrong = repr(2 / 3), repr(1 - 2 / 3)
    (tmp_path / "m.csv").write_text(f"{right},{wrong}\n{wrong},{right}\n")
    argv = ["measure", str(tmp_path / "m.csv"), "--problem", str(tmp_path / "p.toml"), "--leakage"]
    assert main([*argv, "--reports", "2", "--json"]) == 0
    low, high = json.loads(capsys.readouterr().out)["leakage"]["population_delta_0"]
    assert low - 1e-9 <= 4 / 9 - 2 / 9 <= high + 1e-9
    assert high - low < 1e-3
