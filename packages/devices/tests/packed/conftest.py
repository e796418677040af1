"""The browser of the report pages, for the client too, Node, and a packed mechanism."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from reports.conftest import browser as browser

import optmech as om


@pytest.fixture(scope="session")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("no Node")
    return found


@pytest.fixture(scope="session")
def line() -> om.PackedMechanism:
    """Six places in a row, ε = 1 per year."""
    found = om.load_packed(Path(__file__).parent / "vectors" / "line.omm")
    assert isinstance(found, om.PackedMechanism)
    return found
