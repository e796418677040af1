"""Mechanisms for devices: small files, specified in docs/packed.md and sampled without rounding,
their clients, reports that repeat, and protected tables. Every name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

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
