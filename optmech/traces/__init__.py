"""Location traces: privacy under conditional priors (TP19). Every name is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optmech.traces.adversary import AdversaryReport as AdversaryReport
    from optmech.traces.adversary import Series as Series
    from optmech.traces.adversary import enumerate_releases as enumerate_releases
    from optmech.traces.adversary import simulate as simulate
    from optmech.traces.conditional import ConditionalDistortion as ConditionalDistortion
    from optmech.traces.conditional import ConditionalPrivacy as ConditionalPrivacy
    from optmech.traces.markov import MarkovPrior as MarkovPrior
    from optmech.traces.policy import FixedPolicy as FixedPolicy
    from optmech.traces.policy import ProtectedTrace as ProtectedTrace
    from optmech.traces.policy import protect as protect
    from optmech.traces.sequences import CellSequence as CellSequence
    from optmech.traces.sequences import Fixes as Fixes
    from optmech.traces.sequential import SequentialDesigner as SequentialDesigner
    from optmech.traces.sequential import Step as Step

_HOME = {
    "AdversaryReport": "adversary",
    "Series": "adversary",
    "enumerate_releases": "adversary",
    "simulate": "adversary",
    "ConditionalDistortion": "conditional",
    "ConditionalPrivacy": "conditional",
    "MarkovPrior": "markov",
    "FixedPolicy": "policy",
    "ProtectedTrace": "policy",
    "protect": "policy",
    "CellSequence": "sequences",
    "Fixes": "sequences",
    "SequentialDesigner": "sequential",
    "Step": "sequential",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"optmech.traces.{_HOME[name]}"), name)
    raise AttributeError(f"module 'optmech.traces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
