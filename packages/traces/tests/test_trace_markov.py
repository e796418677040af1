"""``optmech trace`` on files of kind "markov"."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from optmech.cli.main import main

TWO = """
format = 1
kind = "markov"
title = "Two places"
steps = 2
loss = "hamming"
secrets = { kind = "labels", labels = ["a", "b"] }
chain = { kind = "matrix", transitions = [[0.75, 0.25], [0.25, 0.75]], initial = "uniform" }
adversary = { distance = "hamming", exact = true }

[[constraints]]
kind = "differential_privacy"
epsilon = "ln 3"
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict, str]:
    status = main(["trace", *arguments, "--json"])
    done = capsys.readouterr()
    return status, json.loads(done.out), done.err


def test_two_places_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Randomised response with odds 3 is optimal first: error 1/4. Then the place is known with
    odds 5 : 3, and a second release of odds 3 leaves 3/32 where it agrees and 5/32 where not."""
    file = tmp_path / "two.toml"
    file.write_text(TWO)
    status, out, _ = run(capsys, str(file))
    assert status == 0
    assert out["verified"]
    assert out["first"]["loss"] == pytest.approx(0.25)
    repeated = out["repeated"]
    np.testing.assert_allclose(repeated["filtering"]["mean"][0], 0.25)
    np.testing.assert_allclose(repeated["filtering"]["mean"][1], 3 / 32 + 5 / 32)
    # smoothing about time 0: z_1 adds odds (3/4·3/4 + 1/4·1/4) : (3/4·1/4 + 1/4·3/4) = 5 : 3, too
    # little to overturn 3 : 1
    np.testing.assert_allclose(repeated["smoothing"]["mean"][0], 0.25)
    np.testing.assert_allclose(repeated["leakage"], np.log([5, 5]))
    # randomised response is possible on the filtered prior too
    assert out["sequential"]["loss"]["mean"][1] <= 0.25 + 1e-9
    assert out["sequential"]["loss"]["standard_error"] == [0, 0]


def test_gallery_with_picture_and_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, output = tmp_path / "c.png", tmp_path / "c.json"
    status = main(["trace", "commuter", "--picture", str(picture), "-o", str(output)])
    shown = capsys.readouterr().out
    assert status == 0
    assert "filtering" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    saved = json.loads(output.read_text())
    assert saved["sequential"]["traces"] == 8
    assert len(saved["releases"]) == 4
    assert saved["releases"][-1]["total_epsilon"] == pytest.approx(4 * np.log(8))
    assert sum(saved["sequential"]["actions"].values()) == 32
    assert saved["sequential"]["filtering"]["average"] > saved["repeated"]["filtering"]["average"]


def test_chain_from_fixes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps 00, 01, 10, with smoothing 1 around uniform: rows (3/2, 3/2)/3 and (3/2, 1/2)/2."""
    (tmp_path / "fixes.csv").write_text(
        "who,when,x,y\na,0,0.5,0.5\na,60,0.5,0.5\na,120,1.5,0.5\na,180,0.5,0.5\n"
    )
    file = tmp_path / "gps.toml"
    file.write_text(
        TWO.replace(
            'kind = "labels", labels = ["a", "b"]', 'kind = "grid", rows = 1, columns = 2'
        ).replace(
            'kind = "matrix", transitions = [[0.75, 0.25], [0.25, 0.75]], initial = "uniform"',
            'kind = "fixes", file = "fixes.csv", user = "who", time = "when", x = "x", y = "y", '
            "interval = 60, max_gap = 60",
        )
    )
    status, out, _ = run(capsys, str(file))
    assert status == 0
    # visits 3 and 1, with 1 each around uniform: 4/6 and 2/6
    np.testing.assert_allclose(
        out["sequential"]["blind"], [1 / 3, 1 - (4 / 6 * 1 / 2 + 2 / 6 * 3 / 4)]
    )


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ("steps = 2", "", 2, "steps: is missing"),
        ("steps = 2", "steps = 0", 2, "steps"),
        ("[[0.75, 0.25], [0.25, 0.75]]", "[[0.75, 0.25]]", 2, "chain"),
        ("[[0.75, 0.25], [0.25, 0.75]]", "[[0.75, 0.5], [0.25, 0.75]]", 2, "chain"),
        ("steps = 2", 'steps = 2\ntrace = ["a", "c"]', 2, "trace[1]"),
        ("steps = 2", "steps = 2\ntotal_epsilon = 1", 2, "total_epsilon"),
        ("steps = 2", 'steps = 2\non_infeasible = "wait"', 2, "on_infeasible"),
        ("exact = true", 'exact = "yes"', 2, "adversary.exact"),
        (
            'kind = "differential_privacy"\nepsilon = "ln 3"',
            'kind = "conditional_privacy"\nepsilon = "ln 3"',
            2,
            "constraints[0]",
        ),
        (
            'kind = "differential_privacy"\nepsilon = "ln 3"',
            'kind = "distortion_privacy"\nminimum = 0.9\ndistance = "hamming"',
            3,
            "0.9",
        ),
    ],
)  # fmt: skip
def test_bad_files_and_hopeless_ones(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    status: int,
    words: str,
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(TWO.replace(old, new))
    assert main(["trace", str(file)]) == status
    assert words in capsys.readouterr().err


FIXES = """
format = 1
kind = "markov"
steps = 2
loss = "euclidean"
secrets = { kind = "line", count = 3 }
adversary = { distance = "euclidean", traces = 20 }
[chain]
kind = "fixes"
file = "fixes.csv"
user = "who"
time = "t"
x = "x"
y = "y"
max_gap = 100
smoothing = 1
[[constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
"""


def test_says_what_became_of_the_fixes_and_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight rows: one without a position, one alone, two far away; four of six are used."""
    (tmp_path / "fixes.csv").write_text(
        "who,t,x,y\na,0,0.2,0.5\na,10,0.4,0.5\na,20,9,0.5\na,30,,1\n"
        "b,0,1.2,0.5\nb,5,1.4,1.5\nb,7,99,99\nc,0,1,1\n"
    )
    text = FIXES.replace('{ kind = "line", count = 3 }', '{ kind = "grid", rows = 2, columns = 2 }')
    (tmp_path / "t.toml").write_text(text)
    status, out, err = run(capsys, str(tmp_path / "t.toml"))
    assert status == 0
    counted = (
        "4 of 6 fixes in 2 sequences counted; 2 (33.3 %) fall outside the cells "
        "(file: 7 fixes, 1 more without a position)"
    )
    assert out["data"] == counted
    lines = err.splitlines()
    assert lines[0] == counted
    assert "designing and attacking every step" in lines
    assert sum("trace " in line for line in lines) == 20
    assert "  trace 20 of 20" in lines
    assert main(["trace", str(tmp_path / "t.toml")]) == 0
    assert "4 of 6 fixes" in " ".join(capsys.readouterr().out.split())
