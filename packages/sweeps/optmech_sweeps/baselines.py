"""Known mechanisms by name, as a problem asks for them: of its secrets, its distance and an ε."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optmech.errors import ProblemError
from optmech.exact.number import Number
from optmech.mechanisms.discrete import exponential, geometric, randomized_response
from optmech.mechanisms.planar import planar_geometric, planar_laplace
from optmech.problem import Problem
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism

KNOWN: dict[str, Callable[[Any, Number, Any], Mechanism]] = {
    "exponential": lambda p, e, d: exponential(p.secrets, e, distance=d, observables=p.observables),
    "geometric": lambda p, e, d: geometric(p.secrets, e),
    "planar_geometric": lambda p, e, d: planar_geometric(p.secrets, e),
    "planar_laplace": lambda p, e, d: planar_laplace(p.secrets, e),
    "randomized_response": lambda p, e, d: randomized_response(p.secrets, e),
}
"""What makes each of a problem, an ε and a distance."""


def require_name(name: str) -> None:
    """Raise ProblemError unless a mechanism is called so."""
    if name not in KNOWN:
        raise ProblemError(
            f"{name!r} is unknown", where="mechanism", remedy=f"Use one of {', '.join(KNOWN)}"
        )


def distance_of(problem: Problem) -> Any:
    """The distance that the problem measures privacy by, or else its loss where that is one; None
    where there is none."""
    found = (getattr(stated, "distance", None) for stated in problem.constraints)
    own = next((distance for distance in found if distance is not None), None)
    if own is not None:
        return own
    return problem.loss if callable(problem.loss) else None


@checked_arguments
def known(name: str, problem: Problem, epsilon: Number) -> Mechanism:
    """A known mechanism over the secrets of a problem: "exponential", "planar_laplace",
    "planar_geometric", "geometric" or "randomized_response".

    ``epsilon`` is per unit of the distance that the problem measures privacy by; that of randomised
    response is the same for all pairs.

    Raises
    ------
    ProblemError
        On an unknown name, and where the mechanism does not exist for these secrets or has other
        reports than the problem.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming())
    >>> om.mechanisms.known("randomized_response", problem, "ln 3").matrix.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    require_name(name)
    found = KNOWN[name](problem, epsilon, distance_of(problem))
    if found.observables.labels != problem.observables.labels:
        raise ProblemError(
            f"{name} reports secrets, and the problem has other observables",
            where="mechanism",
            remedy="Use exponential, or leave the observables out",
        )
    return found
