"""Which command a document is for, where it was given to another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optmech.errors import ProblemError
from optmech.reading.recognised import WORDS, Kind, kind_of

__all__ = ["kind_of", "require_kind"]


def require_kind(document: Mapping[str, Any], wanted: Kind, path: Path) -> None:
    """Raises ProblemError, with the command to use, where a document is clearly of another kind."""
    found = kind_of(document)
    if found is not None and found != wanted:
        what, remedy = WORDS[found]
        raise ProblemError(
            f"this is {what}, not {WORDS[wanted][0]}", where=str(path), remedy=remedy
        )
