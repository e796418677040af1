"""Smaller programs, equivalent or safely approximate, by name."""

from collections.abc import Callable

from optmech.errors import ProblemError
from optmech.reductions.base import Reduced as Reduced, Reduction as Reduction
from optmech.reductions.dominance import (
    DominatedEstimates as DominatedEstimates,
    DominatedObservables as DominatedObservables,
)
from optmech.reductions.pairs import ImpliedPairs as ImpliedPairs, Spanner as Spanner
from optmech.reductions.symmetry import Symmetry as Symmetry

_PLAIN: dict[str, Callable[[], Reduction]] = {
    "symmetry": Symmetry,
    "dominated-observables": DominatedObservables,
    "dominated-estimates": DominatedEstimates,
    "implied-pairs": ImpliedPairs,
}


def parse_reduction(text: str) -> Reduction:
    """A reduction by the name that profiles write: those above, or ``"spanner:T"``."""
    if text in _PLAIN:
        return _PLAIN[text]()
    name, _, argument = text.partition(":")
    if name == "spanner":
        try:
            return Spanner(float(argument))
        except ValueError:
            pass
    raise ProblemError(
        f"{text!r} is unknown",
        where="reductions",
        remedy=f"Use {', '.join(_PLAIN)} or spanner:T with a stretch T >= 1",
    )
