"""Every file that optmech writes, given to every command that reads designs: what it is, and where
it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from optmech.cli.main import main

MADE = {
    "design": ["solve", "male-female", "-q"],
    "region": ["solve", "square-everywhere", "-q", "--gap", "0.5"],
    "family": ["transport", "home-out-target"],
    "noise": ["noise", "--epsilon", "1", "--delta", "0.01"],
    "renyi": ["noise", "--epsilon", "1", "--order", "2"],
    "pair": ["noise", "--epsilon", "2", "--dimensions", "2"],
}
WORDS = {
    "design": "this is a design, and no",
    "region": "this is a design for every point of a region, and no",
    "family": "this is a family of coupling mechanisms, and no",
    "noise": "this is noise for numbers, and no",
    "renyi": "this is noise for numbers, and no",
    "pair": "this is noise for numbers, and no",
    "packed": "this is a packed mechanism, and no",
    "map": "this is a map, and no",
    "problem": "this is a problem file, and no",
}
TAKEN = {
    "check": {"design", "region", "family", "noise", "renyi", "pair"},
    "attack": {"design", "region"},
    "measure": {"design", "region"},
    "report": {"design", "region"},
    "export": {"design", "region"},
    "compare": {"design", "region"},
    "estimate": {"design", "region"},
    "pack": {"design", "region"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    for kind, argv in MADE.items():
        assert main([*argv, "-o", str(folder / f"{kind}.json")]) == 0
    # named so that the name says nothing
    assert main(["pack", str(folder / "design.json"), "-o", str(folder / "packed.omm")]) == 0
    (folder / "packed.omm").rename(folder / "packed.json")
    (folder / "map.json").write_text('{"type": "FeatureCollection", "features": []}')
    (folder / "problem.json").write_text('{"format": 1, "loss": "euclidean", "secrets": {}}')
    (folder / "seen.csv").write_text("observable,count\n")
    return folder


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("command", TAKEN)
def test_a_file_of_another_kind_is_named(
    command: str, kind: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind in TAKEN[command] or (command, kind) == ("check", "packed"):
        return
    design = str(files / f"{kind}.json")
    more = {
        "report": ["-o", str(files / "r.html")],
        "export": ["--format", "matrix", "-o", str(files / "m.csv")],
        "compare": [str(files / "design.json")],
        "estimate": [str(files / "seen.csv")],
        "pack": ["-o", str(files / "p.omm")],
    }.get(command, [])
    capsys.readouterr()
    assert main([command, design, *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{kind}.json: {WORDS[kind]}" in line
    # and a command that takes it, or what to do with it
    assert "optmech" in line.partition(WORDS[kind])[2]


@pytest.mark.parametrize(
    ("argv", "place"),
    [
        (["pack", "design.json", "-o", "new.omm", "--bits", "17"], "--bits"),
        (["pack", "design.json", "-o", "new.omm", "--outside", "drop"], "--outside"),
        (["noise", "--epsilon", "x"], "--epsilon"),
        (["measure", "design.json", "--delta", "2"], "--delta"),
    ],
)
def test_errors_name_the_option(
    argv: list[str], place: str, files: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(files)
    capsys.readouterr()
    assert main(argv) == 2
    assert capsys.readouterr().err.startswith(f"optmech: error: {place}: ")
