"""A reduction turns a program into smaller ones, and their points back into points of the first."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from optmech.base.read_only import record
from optmech.lp.blocks import BlockLP, Point, Start

_T = TypeVar("_T")


def _as_it_is(given: _T) -> _T:
    return given


@record
class Reduced:
    """A smaller program, and what its points are good for.

    ``recover`` maps a point of ``lp`` to a point of the program it came from. ``primal`` says
    that recovered primal points are near feasible for it, ``dual`` that recovered multipliers
    give its lower bound without loss. (Every bound is safe in any case: see the certificate.)
    ``enter`` maps a neighbour's design to one for ``lp``.
    """

    lp: BlockLP
    recover: Callable[[Point], Point] = _as_it_is
    primal: bool = True
    dual: bool = True
    enter: Callable[[Start], Start] = _as_it_is


class Reduction(Protocol):
    """A pure function on programs; see each module for why source and target are equivalent."""

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]: ...
