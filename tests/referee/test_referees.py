"""A few instances of every family; thousands by ``python -m tests.referee.run``."""

from __future__ import annotations

import pytest
from referee.run import families, judged


@pytest.mark.parametrize("index", range(12))
@pytest.mark.parametrize("family", families())
def test_nothing_false(family: str, index: int) -> None:
    assert judged(family, 3, index) == []
