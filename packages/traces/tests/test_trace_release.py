"""``optmech trace --release``: a trace of one's own, released as it was designed."""

from __future__ import annotations

import csv
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
kind = "loss_bound"
maximum = 0.0
"""
"""Nothing may be lost: every release is the truth."""
MEASURED = """
format = 1
kind = "gaussian"
title = "Given noise"
times = { values = [0.0, 1.0, 2.0] }
kernel = { kind = "rbf", length_scale = 1.0 }
secrets = [0]
radius = 1.0
order = 2.0
noise = { file = "noise.json" }
"""


def rows(path: Path) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_labels_under_a_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, source, out = tmp_path / "two.toml", tmp_path / "mine.csv", tmp_path / "out.csv"
    file.write_text(TWO)
    source.write_text("when,where\n1,a\n2,b\n3,b\n4,a\n")
    command = ["trace", str(file), "--release", str(source), "--label", "where", "-o", str(out)]
    assert main(command) == 0
    assert rows(out) == [["where", "action"], *([x, "design"] for x in "abba")]
    assert f"released trace written to {out}" in capsys.readouterr().err
    source.write_text("where\na\nhome\n")
    assert main(command) == 2
    assert "mine.csv: row 2 (line 3): the label is none of the 2 labels" in capsys.readouterr().err
    source.write_text("where\n")
    assert main(command) == 2
    assert "has no rows" in capsys.readouterr().err


def test_points_under_a_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "mine.csv", tmp_path / "out.csv"
    source.write_text("x,y\n0.2,0.9\n1.4,1.4\n2.9,0.1\n")
    place = ["--x", "x", "--y", "y"]
    command = ["trace", "commuter", "--release", str(source), *place, "-o", str(out)]
    assert main(command) == 0
    header, *released = rows(out)
    assert header == ["x", "y", "report", "action"]
    for x, y, report, action in released:
        # the centre of the cell that the label names: row, column
        assert f"{int(float(y))},{int(float(x))}" == report
        assert float(x) % 1 == float(y) % 1 == 0.5
        assert action in ("design", "relax")
    source.write_text("x,y\n7,7\n")
    assert main(command) == 2
    assert "row 1 (line 2): lies outside" in capsys.readouterr().err
    assert main(["trace", "commuter", "--release", str(source)]) == 2
    assert "--x: no column says where a row is" in capsys.readouterr().err


def test_gaussian_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "mine.csv", tmp_path / "out.csv"
    file = tmp_path / "given.toml"
    file.write_text(MEASURED)
    noise = {"format": 1, "kind": "noise", "covariance": (1e-12 * np.eye(3)).tolist()}
    (tmp_path / "noise.json").write_text(json.dumps(noise))
    source.write_text("x\n1\n2\n4\n")
    command = ["trace", str(file), "--release", str(source), "--x", "x", "-o", str(out)]
    assert main(command) == 0
    assert "drawn in floating point" in capsys.readouterr().err
    shift = np.array([float(row[0]) for row in rows(out)[1:]]) - [1, 2, 4]
    # a standard deviation of a millionth
    assert 0 < np.abs(shift).max() < 1e-5
    source.write_text("x\n1\n2\n")
    assert main(command) == 2
    assert "2 usable rows, and the noise is for 3 times" in capsys.readouterr().err
    assert main([*command, "--y", "x"]) == 2
    assert "both x and y" in capsys.readouterr().err
