"""Mechanisms for devices: one small file, specified in docs/packed.md, sampled without rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech.packed.documents import load_packed as load_packed
    from optmech.packed.earth import Earth as Earth
    from optmech.packed.ledger import Ledger as Ledger
    from optmech.packed.make import check_packed as check_packed, pack as pack
    from optmech.packed.mechanism import PackedMechanism as PackedMechanism
    from optmech.packed.sticky import StickyReports as StickyReports
else:
    __getattr__, __dir__ = lazily(__name__)
