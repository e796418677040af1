"""A file or word meant for another command: said at once, with the command that takes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import optmech as om
from optmech.base.machine import data_folder
from optmech.cli.main import COMMANDS, main

SWEEP = """
format = 1
problem = "grid-4x4"
[[axes]]
kind = "list"
path = "constraints[0].epsilon"
values = [1, 2]
"""
TRACE = 'format = 1\nkind = "gaussian"\ntimes = { count = 3 }\n'


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    design = tmp_path / "design.json"
    om.solve(om.load_problem("grid-4x4")).save(design)
    noise = tmp_path / "noise.json"
    noise.write_text(json.dumps({"format": 1, "kind": "noise", "covariance": [[1]]}))
    found = {"design": str(design), "noise": str(noise)}
    profile = 'engine = "highs"\n'
    for name, text in (("sweep", SWEEP), ("trace", TRACE), ("profile", profile)):
        (tmp_path / f"{name}.toml").write_text(text)
        found[name] = str(tmp_path / f"{name}.toml")
    found["problem"] = str(data_folder("problems") / "grid-4x4.toml")
    return found


@pytest.mark.parametrize(
    ("command", "given", "said"),
    [
        ("solve", "sweep", "this is a sweep file, not a problem file. Use optmech sweep"),
        ("solve", "trace", "this is a trace file, not a problem file. Use optmech trace"),
        ("solve", "noise", "this is noise for a trace, not a problem file. Name it in a trace"),
        ("solve", "design", "this is a design, not a problem file. Use optmech check, attack"),
        ("solve", "profile", "this is a solver profile, not a problem file. Use optmech solve"),
        ("export", "sweep", "this is a sweep file"),
        ("transport", "trace", "this is a trace file"),
        ("sweep", "problem", "this is a problem file, not a sweep file. Use optmech solve"),
        ("sweep", "design", "this is a design, not a sweep file"),
        ("sweep", "trace", "this is a trace file, not a sweep file. Use optmech trace"),
        ("trace", "problem", "this is a problem file, not a trace file. Use optmech solve"),
        ("trace", "sweep", "this is a sweep file, not a trace file. Use optmech sweep"),
        ("trace", "noise", "this is noise for a trace, not a trace file"),
        ("check", "problem", "no design. Make one with optmech solve"),
        ("attack", "sweep", "no design. Make one with optmech solve"),
        ("measure", "problem", "no design. Make one with optmech solve"),
        ("report", "problem", "no design. Make one with optmech solve"),
    ],
)
def test_a_file_for_another_command(
    command: str,
    given: str,
    said: str,
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out.html"
    wanted = ["-o", str(out)] if command in ("report", "export", "transport") else []
    extra = ["--format", "mps"] if command == "export" else []
    assert main([command, files[given], *wanted, *extra]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert files[given] in lines[0]
    assert not out.exists()


@pytest.mark.parametrize(
    ("word", "meant"),
    [("sovle", "solve"), ("Check", "check"), ("problem", "problems"), ("atack", "attack")],
)
def test_a_mistyped_command_is_suggested(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == 2
    said = capsys.readouterr().err
    assert f"{word!r} is unknown. Did you mean {meant!r}?" in said


def test_what_is_like_no_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zzzzzz"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in COMMANDS)


def test_mistyped_choices_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", "grid-4x4", "--format", "mpps", "-o", str(tmp_path / "x")]) == 2
    assert "'mpps' is unknown. Did you mean 'mps'?" in capsys.readouterr().err


def test_an_attack_in_the_distance_of_the_loss_has_its_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a constraint that names a distance, in a design that is read back from its file."""
    path = tmp_path / "p.toml"
    path.write_text(
        'format = 1\nprior = "uniform"\nloss = "euclidean"\n'
        'secrets = { kind = "grid", rows = 2, columns = 3, unit = "km" }\n'
        '[[constraints]]\nkind = "differential_privacy"\nepsilon = 1\n'
    )
    assert main(["solve", str(path), "-o", str(tmp_path / "d.json")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "km (euclidean)" in said
    assert "6 cells, 2 rows x 3 columns" in said
    assert main(["attack", str(tmp_path / "d.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["distance"] == "euclidean"
