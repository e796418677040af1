"""Altered design files: both checkers agree, and no false claim passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mutations import designs, falsehood, judge, run

from optmech.reading.sealed import seal


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return designs()


def test_unaltered_files_pass(files: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / "d.json").write_bytes(content)
        verdict = judge(tmp_path / "d.json")
        assert not verdict.check, name
        assert not verdict.audit, name
        assert not falsehood(content, json.loads(content)), name


def test_files_of_earlier_versions_pass(files: dict[str, bytes], tmp_path: Path) -> None:
    """Written before the loss had a name, and divergences multipliers."""
    for name, content in files.items():
        body = json.loads(content)
        del body["digest"]
        body["problem"].pop("loss_name", None)
        if not body["multipliers"]["divergence"]:
            del body["multipliers"]["divergence"]
        (tmp_path / "d.json").write_bytes(seal(json.dumps(body).encode()))
        verdict = judge(tmp_path / "d.json")
        assert not verdict.check, name
        assert not verdict.audit, name


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_the_checkers_agree_on_altered_files(
    files: dict[str, bytes], seed: int, tmp_path: Path
) -> None:
    tally = run(files, 250, seed, tmp_path)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["accepted"] >= 10
    assert tally.counts["refused"] >= 100
