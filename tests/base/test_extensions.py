"""What other distributions add: who has it is said where it is not installed, and only what they
state is known of them."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import optmech as om
from optmech.base import extensions
from optmech.cli.commands import measure
from optmech.cli.main import main

ROOT = Path(__file__).parents[2]
PACKED = ROOT / "packages/devices/tests/packed/vectors/line.omm"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation of the core without others."""

    def own(group: str) -> dict[str, EntryPoint]:
        return {
            name: entry for name, entry in known[group].items() if entry.module[:8] == "optmech."
        }

    groups = (getattr(extensions, name) for name in dir(extensions) if name.isupper())
    known = {group: extensions.added(group) for group in groups if isinstance(group, str)}
    monkeypatch.setattr(extensions, "added", own)
    monkeypatch.setattr("optmech.cli.main.added", own)
    # it asked when it was imported, and is what it was afterwards
    monkeypatch.setattr("optmech.cli.commands.measure", measure)
    monkeypatch.delitem(sys.modules, "optmech.cli.commands.measure")


def told(name: str, folder: str = "devices", how: str = "in") -> str:
    return (
        f"{name}: is {how} optmech-{folder}, which is not installed. In a clone of optmech run pip "
        f"install ./packages/{folder}"
    )


@pytest.mark.usefixtures("alone")
def test_who_has_a_name_is_said() -> None:
    for name, folder in (("pack", "devices"), ("devices", "devices"), ("noise", "noise")):
        with pytest.raises(AttributeError) as refused:
            getattr(om, name)
        assert str(refused.value) == told(folder, folder)
        assert name not in dir(om)
    with pytest.raises(AttributeError, match="has no attribute 'packs'"):
        _ = om.packs


@pytest.mark.usefixtures("alone")
def test_who_has_a_command_a_file_or_an_option_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    design, page, packed = str(tmp_path / "d.json"), tmp_path / "d.html", str(PACKED)
    assert main(["solve", "male-female", "-q", "-o", design]) == 0
    asked = {
        ("pack", design, "-o", "d.omm"): told("pack"),
        ("protect", design, "fixes.csv"): told("protect"),
        ("trace", "commuter"): told("trace", "traces"),
        ("measure", design, "--crossings", "f.csv"): told("crossings"),
        ("show", packed): told(packed, how="read by"),
        ("sample", packed, "0"): told(packed, how="read by"),
        ("check", packed, design): told(packed, how="read by"),
        ("compare", design, design): told("compare", "leakage"),
    }
    for argv, expected in asked.items():
        capsys.readouterr()
        assert main([*argv]) == 2
        assert capsys.readouterr().err == f"optmech: error: {expected}\n"
    for read in (om.load, om.check):
        with pytest.raises(om.ProblemError) as refused:
            read(PACKED)
        assert str(refused.value) == told(packed, how="read by")
    assert main(["report", design, "-o", str(page)]) == 0
    assert "const client" not in page.read_text()


@pytest.mark.skipif(not (ROOT / "packages").is_dir(), reason="not a checkout")
def test_owners_are_those_that_state_it() -> None:
    stated = {}
    for path in ROOT.glob("packages/*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        if groups := project.get("entry-points"):
            stated[project["name"]] = {group: set(names) for group, names in groups.items()}
    known = {
        owner: {group: set(names) for group, names in has.items()}
        for owner, has in extensions.OWNERS.items()
    }
    assert stated == known
