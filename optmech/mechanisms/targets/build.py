"""Making coupling mechanisms and optimal targets (Kawamoto and Murakami, Allerton 2019, §VI;
mathematics of the joint program in docs/theory/targets.md), and optimal targets under any
divergence (Def. 15): one mechanism on pairs of an auxiliary input and a secret.

A family C(t, ·) of mechanisms is one mechanism P[(t,x), y] = C(t,x)[y] on the pairs, and its output
under t is the push of λ_t written on the pairs of t: closeness of outputs is distribution privacy
of that mechanism. So problems, certificates, files and the audit of ``om.solve`` serve as they are
(docs/theory/targets.md, "Optimal targets under any divergence").
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.designs.design import Design
from optmech.errors import ProblemError, SolverError
from optmech.exact.arguments import float_or_nan, one_of, probability
from optmech.exact.number import Exact, Number, parse_exact
from optmech.mechanisms.targets.design import Outside, TargetDesign, dual_value
from optmech.problem import DistributionPrivacy, Problem
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution, Prior, domain_of
from optmech.spaces.rationals import Shares
from optmech.transport import read_joint
from optmech.transport.joint import Arcs
from optmech.transport.outputs import Outputs, largest_divergence
from optmech.transport.rational import cheapest_plan, worst_case_plan


@checked_arguments
def coupling(
    inputs: Sequence[Distribution],
    target: Distribution,
    distance: DistanceLike,
    p: float | str = 1,
    *,
    outside: Outside = "target",
    secrets: Domain | None = None,
    observables: Domain | None = None,
) -> list[Mechanism]:
    """The coupling mechanisms C(t,x)[y] = γ_t[x,y] / λ̂_t[x] (Kawamoto and Murakami, Allerton 2019,
    Def. 16), one for every input.

    Parameters
    ----------
    inputs:
        λ̂_t, the exact or approximate input distribution for every auxiliary input t: weights >= 0
        of shape (n,) or priors. Numbers count as what they are (see ``Shares.of``): whole
        numbers, fractions and texts such as "1/3" exactly, floats as binary fractions.
    target:
        μ, the common output distribution, shape (m,).
    distance:
        d(x,y) >= 0: an array of shape (n, m), or, where the domains are known, a function of the
        two or a table with their labels.
    p:
        1: γ_t of least mean move, so that the expected loss is W_1(λ̂_t, μ) (Kawamoto and Murakami,
        Allerton 2019, Def. 18, Prop. 2). ``math.inf``: of least longest move W_∞(λ̂_t, μ), and
        least mean among those.
    outside:
        The row of an x with λ̂_t[x] = 0, which Kawamoto and Murakami, Allerton 2019, leave open: a
        draw from μ ("target": nothing is revealed by unforeseen inputs), or the nearest point with
        mass under μ ("nearest").
    secrets, observables:
        Domains of the mechanisms; default: those of priors, else 0, 1, 2, ...

    Every mechanism has exact probabilities (``Mechanism.exact``) under which λ̂_t is mapped to μ in
    rational numbers. ``coupling_design`` returns the same with the proof, ready to be saved.

    Raises
    ------
    ProblemError
        On unusable arguments.

    Examples
    --------
    >>> d = om.distances.euclidean()(om.Domain.range(2), om.Domain.range(2))
    >>> young, old = om.mechanisms.coupling([["3/4", "1/4"], ["1/4", "3/4"]], ["1/2", "1/2"], d)
    >>> print(young.matrix)
    [[0.66666667 0.33333333]
     [0.         1.        ]]
    >>> print(young.push([0.75, 0.25]), old.push([0.25, 0.75]))  # one output for both
    [0.5 0.5] [0.5 0.5]
    """
    made = coupling_design(
        inputs,
        target,
        distance,
        p,
        outside=outside,
        secrets=secrets,
        observables=observables,
    )
    return list(made.mechanisms)


@checked_arguments
def coupling_design(
    inputs: Sequence[Distribution],
    target: Distribution,
    distance: DistanceLike,
    p: float | str = 1,
    *,
    weights: ArrayLike | None = None,
    outside: Outside = "target",
    names: Sequence[str] | None = None,
    secrets: Domain | None = None,
    observables: Domain | None = None,
) -> TargetDesign:
    """The mechanisms of ``coupling`` as a design: plans, losses, and the proof that no plans do
    better (for p = inf: that no longest move is shorter, and no mean move among those).

    ``weights`` are those of the average loss, ``names`` those of the auxiliary inputs.

    Examples
    --------
    >>> d = om.distances.euclidean()(om.Domain.range(2), om.Domain.range(2))
    >>> design = om.mechanisms.coupling_design([["3/4", "1/4"], ["1/4", "3/4"]], ["1/2", "1/2"], d)
    >>> print(design.status, design.loss)  # a quarter of the mass moves by 1
    optimal 0.25
    """
    started = time.perf_counter()
    given, blank = read_family(
        inputs, distance, weights, outside, names, secrets, observables, target
    )
    goal = Shares.of(target, "target")
    if len(goal) != blank.distance.shape[1]:
        raise ProblemError(
            f"{len(goal)} weights for {blank.distance.shape[1]} columns of distances",
            where="target",
        )
    order = float_or_nan(p)
    if order not in (1.0, math.inf):
        raise ProblemError(
            f"{p!r} is neither 1 nor inf",
            where="p",
            remedy="Use 1 (least mean move) or math.inf (least longest move)",
        )
    crowded: tuple[tuple[int, ...], ...] = ()
    if order == 1:
        plans = [cheapest_plan(lam, goal, blank.distance) for lam in given]
    else:
        found = [worst_case_plan(lam, goal, blank.distance) for lam in given]
        plans, crowded = [one.plan for one in found], tuple(one.sources for one in found)
    design = replace(blank, task="coupling", plans=tuple(plans), order=order, crowded=crowded)
    for plan, cost in zip(design.plans, design.exact_losses, strict=True):
        if dual_value(plan) != cost:
            raise SolverError("a plan is not optimal", where="coupling")
    return replace(design, seconds=time.perf_counter() - started)


@checked_arguments
def optimal_target(
    inputs: Sequence[Distribution],
    distance: DistanceLike,
    epsilon: Number = 0.0,
    weights: ArrayLike | None = None,
    *,
    delta: Number = 0.0,
    outside: Outside = "target",
    names: Sequence[str] | None = None,
    secrets: Domain | None = None,
    observables: Domain | None = None,
) -> TargetDesign:
    """The mechanisms of least average loss whose outputs are pairwise (ε, δ)-close.

    Minimises Σ_t w_t Σ γ_t d over all families of mechanisms, one for every auxiliary input, with
    Σ_y max(0, μ_t[y] − e^ε μ_t'[y]) <= δ for all t, t': the best that any mechanism with auxiliary
    input can do under (ε, δ)-distribution privacy (Kawamoto and Murakami, Allerton 2019, Def. 15).
    At ε = δ = 0 the outputs are one distribution, a Wasserstein barycentre.

    Arguments as in ``coupling``; ``weights`` w_t are divided by their sum (default: equal),
    ``epsilon`` and ``delta`` numbers >= 0 or exact strings such as "ln 2".

    The privacy of the released outputs is decided exactly, their loss is exact, and
    ``lower_bound`` holds for every family, whatever the solver did.

    Raises
    ------
    ProblemError
        On unusable arguments.
    SolverError
        Where the program could not be solved.

    Examples
    --------
    >>> d = om.distances.euclidean()(om.Domain.range(2), om.Domain.range(2))
    >>> ages = [["3/4", "1/4"], ["1/4", "3/4"]]
    >>> equal = om.mechanisms.optimal_target(ages, d)
    >>> print(equal.status, equal.loss)  # half of W_1 between the two
    optimal 0.25
    >>> near = om.mechanisms.optimal_target(ages, d, epsilon="ln 2")
    >>> print(round(near.loss, 4))  # (3/4 - x) = 2 (1/4 + x)
    0.0833
    """
    given, blank = read_family(inputs, distance, weights, outside, names, secrets, observables)
    return _optimal(given, blank, *_read_budget(epsilon, delta), None)[0]


@checked_arguments
def target_frontier(
    inputs: Sequence[Distribution],
    distance: DistanceLike,
    epsilons: Sequence[Number],
    *,
    weights: ArrayLike | None = None,
    delta: Number = 0.0,
    outside: Outside = "target",
    names: Sequence[str] | None = None,
    secrets: Domain | None = None,
    observables: Domain | None = None,
) -> list[TargetDesign]:
    """``optimal_target`` for every ε of a list, each start taken from the one before.

    The loss falls with ε from the barycentre's at 0 to 0 at ``no_obfuscation_epsilon``, which is
    inf where supports differ (then it falls like 1 / (e^ε + T − 1)). It need not be convex in ε,
    nor in e^ε (docs/theory/targets.md).

    Examples
    --------
    >>> d = om.distances.euclidean()(om.Domain.range(2), om.Domain.range(2))
    >>> ages = [["3/4", "1/4"], ["1/4", "3/4"]]
    >>> designs = om.mechanisms.target_frontier(ages, d, epsilons=[0, "ln 2", "ln 3"])
    >>> [round(design.loss, 4) for design in designs]
    [0.25, 0.0833, 0.0]
    """
    given, blank = read_family(inputs, distance, weights, outside, names, secrets, observables)
    budgets = [_read_budget(epsilon, delta, f"epsilons[{k}]") for k, epsilon in enumerate(epsilons)]
    designs: list[TargetDesign] = []
    arcs: Arcs | None = None
    for rate, spare in budgets:
        design, arcs = _optimal(given, blank, rate, spare, arcs)
        designs.append(design)
    return designs


def _optimal(
    given: list[Shares], blank: TargetDesign, rate: Exact, spare: Exact, arcs: Arcs | None
) -> tuple[TargetDesign, Arcs | None]:
    started = time.perf_counter()
    asked = Outputs(tuple(given), blank.distance, blank.weights, rate, spare)
    found, arcs = asked.optimum(arcs)
    design = replace(
        blank,
        plans=found.plans,
        epsilon=rate,
        delta=spare,
        multipliers=found.multipliers,
        seconds=time.perf_counter() - started,
    )
    return design, arcs


def read_family(
    inputs: Sequence[Distribution],
    distance: DistanceLike,
    weights: ArrayLike | None,
    outside: Outside,
    names: Sequence[str] | None,
    secrets: Domain | None,
    observables: Domain | None,
    target: Distribution | None = None,
) -> tuple[list[Shares], TargetDesign]:
    """What all tasks are given, read and checked: the inputs, and the design, of equal outputs and
    order 1, without plans and time."""
    to = observables or (None if target is None else domain_of(target))
    read, values, shares = read_joint(
        inputs, distance, weights, where="inputs", secrets=secrets, observables=to
    )
    one_of(outside, ("target", "nearest"), "outside")
    n, m = values.shape
    known = [domain for domain in map(domain_of, inputs) if domain is not None]
    first = secrets or (known[0] if known else Domain.range(n))
    second = to or (first if n == m else Domain.range(m))
    for where, domain, count in (("secrets", first, n), ("observables", second, m)):
        if len(domain) != count:
            raise ProblemError(f"{len(domain)} labels for {count} points", where=where)
    blank = TargetDesign(
        secrets=first,
        observables=second,
        names=_read_names(names, len(read)),
        weights=shares,
        distance=values,
        plans=(),
        task="target",
        epsilon=Exact(Fraction(0)),
        delta=Exact(Fraction(0)),
        order=1.0,
        outside=outside,
        multipliers=None,
    )
    return read, blank


def _read_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names, or numbers."""
    if names is None:
        return tuple(str(t) for t in range(count))
    listed = [] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    given = tuple(str(name) for name in listed if name is not None)
    if len(given) != count or len(set(given)) != count:
        raise ProblemError(
            f"{names!r} are not {count} different names",
            where="names",
            remedy="Give one for every input",
        )
    return given


def _read_budget(epsilon: Number, delta: Number, where: str = "epsilon") -> tuple[Exact, Exact]:
    """ε and δ <= 1."""
    return parse_exact(epsilon, where=where), probability(delta)


@checked_arguments
def no_obfuscation_epsilon(inputs: Sequence[Distribution]) -> float:
    """The least ε at which nothing need be changed: max_{t,t'} D_∞(λ_t ‖ λ_t'), rounded upwards.

    inf where supports differ. ``optimal_target`` loses 0 from there on, and more than 0 below if
    d(x,y) > 0 for x ≠ y.

    Examples
    --------
    >>> ages = [["3/4", "1/4"], ["1/4", "3/4"]]
    >>> print(round(om.mechanisms.no_obfuscation_epsilon(ages), 4))  # ln 3
    1.0986
    """
    return largest_divergence([Shares.of(lam, f"inputs[{t}]") for t, lam in enumerate(inputs)])


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
    D(μ_t ‖ μ_t') <= ε for all t, t' (Kawamoto and Murakami, Allerton 2019, Def. 15) and the least
    average loss Σ_t w_t Σ γ_t d.

    ``om.solve`` of it is a certified design over the pairs (name of t, label of x) with
    λ_t[x] > 0, and ``target_mechanisms`` takes the family out of it. ``divergence`` and ``delta``
    are those of ``DistributionPrivacy``: "kl", "tv", "chi2", "hellinger", "renyi:3/2", "max".
    For "max", and "tv" as (0, ε), ``optimal_target`` is faster and exact in its marginals.

    Other arguments as in ``optimal_target``. Probabilities count as the floats next to them.

    Raises
    ------
    ProblemError
        On unusable arguments; with a single input, which has nothing to be close to.

    Examples
    --------
    >>> ages = [om.Prior(om.Domain.range(2), w) for w in ([3, 1], [1, 3])]
    >>> km = om.distances.euclidean()
    >>> problem = om.mechanisms.target_problem(ages, km, "1/4", divergence="tv")
    >>> print(round(om.solve(problem).loss, 4))  # outputs 1/4 apart, of inputs 1/2 apart
    0.125
    """
    given, blank = read_family(inputs, distance, weights, "target", names, secrets, observables)
    if len(given) < 2:
        raise ProblemError(
            "one input has no other to be close to",
            where="inputs",
            remedy="Give at least two; a single one is best reported as it is",
        )
    rows = [(t, x) for t, lam in enumerate(given) for x in lam.support]
    shares = [float(blank.weights[t] * given[t][x]) for t, x in rows]
    pairs = Domain([(blank.names[t], blank.secrets.labels[x]) for t, x in rows])
    first, second = np.array(rows).T
    laws = np.zeros((len(given), len(rows)))
    for t, lam in enumerate(given):
        laws[t, first == t] = lam.weights[lam.support]
    return Problem(
        Prior(pairs, shares),
        blank.distance[second],
        blank.observables,
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
    unforeseen inputs reveal nothing (Kawamoto and Murakami, Allerton 2019, leave them open).

    Raises
    ------
    ProblemError
        Where the design is none of ``target_problem``.

    Examples
    --------
    >>> ages = [om.Prior(om.Domain.range(2), w) for w in ([3, 1], [1, 3])]
    >>> km = om.distances.euclidean()
    >>> problem = om.mechanisms.target_problem(ages, km, 0.1, names=["young", "old"])
    >>> family = om.mechanisms.target_mechanisms(om.solve(problem))
    >>> list(family)
    ['young', 'old']
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
    laws = {pairs[law.argmax()][0]: law for pair in stated.pairs for law in pair}
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
