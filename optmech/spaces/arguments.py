"""Mechanisms, priors, domains and truth values as arguments of public functions: checked once,
before use."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from optmech.errors import ProblemError
from optmech.exact.checked import truth
from optmech.spaces.domain import Domain, require_domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior

P = ParamSpec("P")
R = TypeVar("R")

_KINDS: dict[str, type] = {
    "Mechanism": Mechanism,
    "Prior": Prior,
    "Domain": Domain,
    "bool": bool,
}
_REMEDIES = {
    "Mechanism": "Give a design, or make one with om.Mechanism(secrets, observables, matrix)",
    "Prior": "Make one with om.Prior(secrets, weights)",
}


def checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments that are annotated as ``Mechanism``, ``Prior``, ``Domain`` or ``bool``: a
    design counts as its mechanism, and anything else raises ProblemError with the argument's
    name."""
    signature = inspect.signature(function)
    stated = {k: str(p.annotation).split(" | ") for k, p in signature.parameters.items()}
    alone = {name: set(kinds) - {"None"} for name, kinds in stated.items()}
    wanted = {name: stated[name] for name, kinds in alone.items() if kinds <= set(_KINDS)}

    @wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> R:
        bound = signature.bind(*args, **given)
        for name, kinds in wanted.items():
            value = bound.arguments.get(name)
            if name in bound.arguments and not (value is None and "None" in kinds):
                bound.arguments[name] = _of_kind(kinds[0], value, name, list(signature.parameters))
        return function(*bound.args, **bound.kwargs)

    return called


def mechanism_from(value: object, where: str) -> Mechanism:
    """A mechanism, or that of a design; ProblemError at ``where`` on anything else."""
    found: Mechanism = _of_kind("Mechanism", value, where, [where])
    return found


def _of_kind(kind: str, value: Any, where: str, names: list[str]) -> Any:
    if isinstance(value, _KINDS[kind]):
        return value
    if kind == "Mechanism":
        inner = getattr(value, "mechanism", None)
        if isinstance(inner, Mechanism):
            return inner
    if kind == "bool":
        return truth(value, where)
    remedy = _REMEDIES.get(kind, "")
    if isinstance(value, Mechanism | Prior | Domain):
        remedy = f"The arguments are {', '.join(names)}, in this order"
    elif kind == "Domain":
        return require_domain(value, where)
    raise ProblemError(f"{type(value).__name__} is not a {kind}", where=where, remedy=remedy)
