"""The content of a design's file, whichever of the two sorts of designs it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.designs.file import REWRITE, decode_design
from optmech.reading.sealed import EVERYWHERE, begins, parse_sealed

if TYPE_CHECKING:
    from optmech.designs.design import Design
    from optmech.designs.everywhere import EverywhereDesign


def decode_any(content: bytes, where: str) -> Design | EverywhereDesign:
    """As ``decode_design``, also of a design that is private at every point."""
    if not begins(content, EVERYWHERE):
        return decode_design(content, where)
    # what works on secrets does not load this
    from optmech.designs.everywhere_file import decode_everywhere

    return decode_everywhere(parse_sealed(content, where, (EVERYWHERE,), REWRITE), where)
