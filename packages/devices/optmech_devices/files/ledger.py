"""Ledgers of draws, for somebody who has nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optmech.designs.promise import Promise
from optmech.exact.number import from_above
from optmech.show.description import Described
from optmech_devices.packed.charges import State, written


def described(body: Mapping[str, Any], digest: str, size: int) -> Described:
    """What a ledger is: the object of its file, and the digest and size of that."""
    state = State.of(body)
    spent = state.spent + state.before
    cost = ", ".join(
        f"{words} {from_above(float(written(charge)))}"
        for words, charge in (("plainly", spent.plain), ("by the rows used", spent.rows))
    )
    radius = f"{state.radius:g} in the unit of the packed file"
    promise = Promise(
        "places",
        f"After {spent.draws:,} draws: whoever was within {radius} at each of them is told apart "
        f"with a log ratio of {cost} at most.",
    )
    return Described(
        "ledger", "a ledger of draws", promise, digest, size, False,
        "its draws add up; that they cost what it says is seen by a ledger of the packed file "
        f"{state.file[:16]}…",
        f"{spent.draws:,} draws at {len(state.draws):,} places",
        more=(("packed file", f"sha256:{state.file}"),
              ("radius", f"{radius}, between {state.between}"), ("δ", f"{state.delta:g}"),
              ("Rényi order", f"{state.order:g}")),
    )  # fmt: skip
