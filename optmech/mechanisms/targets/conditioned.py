"""Optimal targets under any divergence (CM19 Def. 15): one mechanism on pairs of an auxiliary input
and a secret.

A family C(t, ·) of mechanisms is one mechanism P[(t,x), y] = C(t,x)[y] on the pairs, and its output
under t is the push of λ_t written on the pairs of t: closeness of outputs is distribution privacy
of that mechanism. So problems, certificates, files and the audit of ``om.solve`` serve as they are
(docs/theory.md, "Optimal targets under any divergence").
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.exact.number import Number
from optmech.mechanisms.targets.build import read_family
from optmech.problem import DistributionPrivacy, Problem
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution, Prior


@checked_arguments
def target_problem(
    inputs: Sequence[Distribution],
    distance: DistanceLike,
    epsilon: Number,
    *,
    divergence: str = "kl",
    weights: ArrayLike | None = None,
    delta: Number = 0.0,
    names: Sequence[str] | None = None,
    secrets: Domain | None = None,
    observables: Domain | None = None,
    title: str = "",
) -> Problem:
    """The problem whose designs are families of mechanisms, one for every auxiliary input, with
    D(μ_t ‖ μ_t') <= ε for all t, t' (CM19 Def. 15) and the least average loss Σ_t w_t Σ γ_t d.

    ``om.solve`` of it is a certified design over the pairs (name of t, label of x) with
    λ_t[x] > 0, and ``target_mechanisms`` takes the family out of it. ``divergence`` and ``delta``
    are those of ``DistributionPrivacy``: "kl", "tv", "chi2", "hellinger", "renyi:3/2", "max".
    For "max", and "tv" as (0, ε), ``optimal_target`` is faster and exact in its marginals.

    Other arguments as in ``optimal_target``. Probabilities count as the floats next to them.

    Raises
    ------
    ProblemError
        On unusable arguments; with a single input, which has nothing to be close to.
    """
    family = read_family(inputs, distance, weights, "target", names, secrets, observables)
    if len(family.inputs) < 2:
        raise ProblemError(
            "one input has no other to be close to",
            where="inputs",
            remedy="Give at least two; a single one is best reported as it is",
        )
    rows: list[tuple[int, int]] = []
    shares: list[Fraction] = []
    for t, (share, lam) in enumerate(
        zip(family.blank.weights.fractions, family.inputs, strict=True)
    ):
        rows += [(t, x) for x in lam.support]
        shares += [share * lam.fractions[x] for x in lam.support]
    count, used = len(rows), np.array(rows)
    labels = family.blank.secrets.labels
    pairs = Domain([(family.blank.names[t], labels[x]) for t, x in rows])
    laws = np.zeros((len(family.inputs), count))
    for t, lam in enumerate(family.inputs):
        laws[t, used[:, 0] == t] = lam.weights[list(lam.support)]
    return Problem(
        Prior(pairs, [float(share) for share in shares]),
        family.distance[used[:, 1]],
        family.blank.observables,
        constraints=[
            DistributionPrivacy(
                epsilon,
                list(itertools.combinations(laws, 2)),
                delta=delta,
                divergence=divergence,
            )
        ],
        title=title,
    )


@checked_arguments
def target_mechanisms(design: Design, secrets: Domain | None = None) -> dict[str, Mechanism]:
    """The mechanisms C(t, ·) of a design of ``target_problem``, by the names of the inputs.

    ``secrets`` are all that may be asked for, by default those that the input has. One of
    probability 0 under an input is answered there with a draw from the output of that input:
    unforeseen inputs reveal nothing (CM19 leaves them open).

    Raises
    ------
    ProblemError
        Where the design is none of ``target_problem``.
    """
    problem = design.problem
    stated = problem.constraints[0] if len(problem.constraints) == 1 else None
    pairs = [p for p in problem.secrets.labels if isinstance(p, tuple) and len(p) == 2]
    fits = len(pairs) == len(problem.secrets) and all(isinstance(t, str) for t, _ in pairs)
    if not (fits and isinstance(stated, DistributionPrivacy) and _by_name(stated, pairs)):
        raise ProblemError(
            "is no design for pairs of an input and a secret",
            where="design",
            remedy="Give one of om.solve(om.mechanisms.target_problem(...))",
        )
    matrix = design.mechanism.matrix
    laws = {pairs[int(law.argmax())][0]: law for pair in stated.pairs for law in pair}
    found: dict[str, Mechanism] = {}
    for name, law in laws.items():
        own = {label: row for (t, label), row in zip(pairs, matrix, strict=True) if t == name}
        asked = Domain(own) if secrets is None else secrets
        output = law @ matrix
        rows = np.array([own.get(label, output / output.sum()) for label in asked.labels])
        found[name] = Mechanism(asked, problem.observables, rows)
    return found


def _by_name(stated: DistributionPrivacy, pairs: list[tuple[str, object]]) -> bool:
    """Whether every law of a promise is of the pairs of one name, and every name has one law."""
    laws: dict[str, bytes] = {}
    for law in itertools.chain.from_iterable(stated.pairs):
        names = {pairs[k][0] for k in np.flatnonzero(law)}
        if len(names) != 1 or laws.setdefault(names.pop(), law.tobytes()) != law.tobytes():
            return False
    return laws.keys() == {name for name, _ in pairs}
