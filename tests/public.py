"""What is public, once each."""

from __future__ import annotations

from types import ModuleType

import optmech as om
from optmech.base.extensions import NAMES, added
from optmech.base.names import stated

OWN = {*stated("optmech"), *om.__all__, *(name for name in added(NAMES) if "." not in name)}
OWN -= {"__version__"}
"""Of ``om``, with those that its list leaves out."""


def names_of(space: ModuleType) -> list[str]:
    """Of a namespace, without those that ``om`` has too."""
    return sorted(OWN) if space is om else [name for name in space.__all__ if name not in OWN]
