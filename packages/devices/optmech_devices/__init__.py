"""Mechanisms for devices: small files, specified in docs/packed.md and sampled without rounding,
their clients, reports that repeat, and protected tables. Every name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily
from optmech.spaces.arguments import KINDS, Kind

if TYPE_CHECKING:
    from optmech_devices.packed.documents import load_packed as load_packed
    from optmech_devices.packed.earth import Earth as Earth
    from optmech_devices.packed.ledger import Ledger as Ledger
    from optmech_devices.packed.make import check_packed as check_packed, pack as pack
    from optmech_devices.packed.mechanism import PackedMechanism as PackedMechanism
    from optmech_devices.packed.regions import PackedEverywhere as PackedEverywhere
    from optmech_devices.packed.sticky import StickyReports as StickyReports
    from optmech_devices.protection.data import protect as protect
else:
    __getattr__, __dir__ = lazily(__name__)

_PACK = {"Design": "Pack it first, with om.pack(design, path)"}
KINDS |= {
    "PackedMechanism": Kind(
        f"{__name__}.packed.mechanism",
        "Read one with om.load_packed(path)",
        _PACK,
        "packed mechanism",
    ),
    "Earth": Kind(f"{__name__}.packed.earth", "", _PACK, "packed mechanism"),
    "Anywhere": Kind(
        f"{__name__}.protection.places",
        "Give om.Earth.of(…)",
        words="mechanism for the whole earth",
    ),
    "Ledger": Kind(
        f"{__name__}.packed.ledger", "Make one with om.Ledger(mechanism, epsilon, radius)"
    ),
}
