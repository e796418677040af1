"""The proved checker, built once, and designs that it covers."""

from __future__ import annotations

from pathlib import Path

import pytest
from proved import Judge, built, problems, verdicts

import optmech as om


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proofs")
    built("checker", folder)
    return folder


@pytest.fixture(scope="session")
def judge(build: Path) -> Judge:
    return lambda paths: verdicts(build / "checker", paths)


@pytest.fixture(scope="session")
def designs() -> dict[str, bytes]:
    return {name: om.solve(problem).document() for name, problem in problems().items()}
