"""Beliefs about secrets behind an answer: the laws of the answer that Pufferfish privacy compares
(Kifer and Machanavajjhala, *Pufferfish*, ACM TODS 2014; Song, Wang and Chaudhuri, SIGMOD 2017).

The mechanism sees an answer F(X) about data X and reports something near it. Somebody who believes
that X has a law θ and hears the report weighs two secrets s_i and s_j against each other: what
counts are the laws P(F(X) = · | s_i, θ) and P(F(X) = · | s_j, θ). Each function here computes such
pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array, normalised
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import weights, whole
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior

__all__ = ["Beliefs", "chains", "products", "tables", "union"]
__dir__ = __all__.copy


Compared = tuple[tuple[Floats, Floats], str]
"""Laws of the answer given one secret and given another, and which secrets."""
MOST_ANSWERS = 10_000


@record
class Beliefs(Shown):
    """Pairs of laws of an answer, for ``om.constraints.Pufferfish``.

    Examples
    --------
    >>> pages = om.beliefs.products([[0.5, 0.5], [0.5, 0.5]], values=[0, 1])
    >>> pages.answers.labels
    (0, 1, 2)
    >>> print(pages.prior.weights)  # two fair coins
    [0.25 0.5  0.25]
    """

    answers: Domain
    """What the answer may be: the secrets of the mechanism."""
    prior: Prior
    """The law of the answer, averaged over the beliefs."""
    pairs: tuple[tuple[Floats, Floats], ...]
    """Laws of the answer given one secret and given another, each of shape (answers,)."""
    names: tuple[str, ...]
    """Which secrets, in the order of the pairs."""


@checked_arguments
def tables(
    *given: ArrayLike,
    answers: Domain | None = None,
    prior: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Beliefs:
    """From conditional laws of the answer: a table for every belief, with a row for every secret
    and a column for every answer, rows normalised here; all pairs of rows of a table are compared.

    ``answers`` are 0, 1, ... by default. ``prior`` is the law of the answer, by default the mean of
    all rows; ``names`` those of the secrets, in the order of the rows.

    Raises
    ------
    ProblemError
        Where a table has fewer than two rows, or rows that are no distributions over the answers.

    Examples
    --------
    >>> flu = om.beliefs.tables([[0.8, 0.2], [0.3, 0.7]], names=["healthy", "ill"])
    >>> print(flu.prior.weights)  # the mean of the rows
    [0.55 0.45]
    >>> law, other = flu.pairs[0]
    >>> print(round(om.divergences.max_divergence(law, other), 4))  # ln(0.7 / 0.2)
    0.9808
    """
    laws: list[list[Floats]] = []
    for k, table in enumerate(given):
        at = f"tables[{k}]"
        rows = finite_array(table, where=at, ndim=2)
        if len(rows) < 2:
            raise ProblemError("has fewer than two rows", where=at, remedy="Give a row per secret")
        laws.append([normalised(weights(row, f"{at}[{i}]")) for i, row in enumerate(rows)])
    if not laws:
        raise ProblemError("there is no table", where="tables", remedy="Give one for every belief")
    domain = Domain.range(laws[0][0].size) if answers is None else answers
    every = [row for rows in laws for row in rows]
    if any(row.size != len(domain) for row in every):
        raise ProblemError(
            "the tables are not of one width",
            where="tables",
            remedy=f"Give a column for each of the {len(domain)} answers",
        )
    most = max(map(len, laws))
    named = [f"secret {i}" for i in range(most)] if names is None else list(names)
    if len(named) < most:
        raise ProblemError(f"{len(named)} names for {most} rows", where="names")
    mean = Prior(domain, np.mean(every, axis=0) if prior is None else prior)
    own = (_compared(zip(named, rows, strict=False), "{} or {}") for rows in laws)
    return _distinct(domain, mean, chain.from_iterable(own))


@checked_arguments
def chains(
    given: Sequence[tuple[ArrayLike, ArrayLike]], length: int, values: Sequence[int]
) -> Beliefs:
    """The answer is Σ_t ``values``[X_t] over a Markov chain of ``length`` times; the secrets are
    the states at each time (Song et al., section 4.4).

    ``given`` holds a (law of X_0, transition matrix) for every belief, shapes (n,) and (n, n);
    ``values`` (n,) are whole numbers: 0 and 1 count the visits of some states. Secrets that a
    belief excludes are not compared.

    Raises
    ------
    ProblemError
        On shapes that do not fit, rows that are no distributions, or too many possible answers.

    Examples
    --------
    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> home = om.beliefs.chains([([0.5, 0.5], stay)], length=2, values=[0, 1])
    >>> print(home.prior.weights)  # no visit, one, two: 0.5 * 0.9, 0.1, 0.5 * 0.9
    [0.45 0.1  0.45]
    """
    whole(length, "length", least=1, most=2**31)
    steps = _whole_values(values)
    low, high = length * min(steps), length * max(steps)
    domain = _sums(low, high)
    found: list[Compared] = []
    mean = np.zeros(len(domain))
    if not len(given):
        raise ProblemError("there is no chain", where="chains", remedy="Give at least one")
    for k, belief in enumerate(given):
        if not hasattr(belief, "__len__") or len(belief) != 2:
            raise ProblemError("is not a first law and transitions", where=f"chains[{k}]")
        initial, transitions = belief
        with inside(f"chains[{k}]"):
            start, moves = _chain(initial, transitions, len(steps))
        before, after = _sums_of_chain(start, moves, steps, length)
        mean += before[-1].sum(axis=0)
        for t in range(length):
            laws = (
                (state, _law(np.convolve(before[t][state], after[t][state]), len(domain)))
                for state in np.flatnonzero(before[t].sum(axis=1) > 0).tolist()
            )
            found += _compared(laws, f"state {{}} or {{}} at time {t}")
    return _distinct(domain, Prior(domain, mean), found)


@checked_arguments
def products(given: Sequence[ArrayLike], values: Sequence[int]) -> Beliefs:
    """The answer is Σ_i ``values``[X_i] over independent records; the secrets are the categories of
    each record.

    ``given`` holds the law of every record, shape (n,); ``values`` (n,) are whole numbers.

    Raises
    ------
    ProblemError
        On shapes that do not fit, or too many possible answers.

    Examples
    --------
    >>> count = om.beliefs.products([[0.5, 0.5]] * 2, values=[0, 1])
    >>> print(count.pairs[0])  # the first coin shows 0, or 1
    (array([0.5, 0.5, 0. ]), array([0. , 0.5, 0.5]))
    """
    steps = _whole_values(values)
    count = len(given)
    if not count:
        raise ProblemError("there is no record", where="records", remedy="Give at least one law")
    domain = _sums(count * min(steps), count * max(steps))
    laws = []
    for i, law in enumerate(given):
        row = normalised(weights(law, f"records[{i}]"))
        if row.size != len(steps):
            raise ProblemError(f"{row.size} entries for {len(steps)} values", where=f"records[{i}]")
        laws.append(row)
    offsets = [step - min(steps) for step in steps]
    single = [np.bincount(offsets, law) for law in laws]
    ahead, behind = [np.ones(1)], [np.ones(1)]
    for one, other in zip(single, reversed(single), strict=True):
        ahead.append(np.convolve(ahead[-1], one))
        behind.append(np.convolve(behind[-1], other))
    found: list[Compared] = []
    for i, law in enumerate(laws):
        others = np.convolve(ahead[i], behind[count - 1 - i])
        known = (
            (category, _law(others, len(domain), offsets[category]))
            for category in np.flatnonzero(law).tolist()
        )
        found += _compared(known, f"record {i} is {{}} or {{}}")
    return _distinct(domain, Prior(domain, _law(ahead[-1], len(domain))), found)


def union(*given: Beliefs) -> Beliefs:
    """All pairs of several classes of beliefs about one answer, whose laws are averaged. Raises
    ProblemError where the answers differ.

    Examples
    --------
    >>> one = om.beliefs.tables([[0.8, 0.2], [0.3, 0.7]])
    >>> two = om.beliefs.tables([[0.6, 0.4], [0.5, 0.5]])
    >>> len(om.beliefs.union(one, two).pairs)
    2
    """
    if not given or any(one.answers != given[0].answers for one in given):
        raise ProblemError(
            "the answers differ", where="beliefs", remedy="Give beliefs about one answer"
        )
    mean = np.mean([one.prior.weights for one in given], axis=0)
    found = (part for one in given for part in zip(one.pairs, one.names, strict=True))
    return _distinct(given[0].answers, Prior(given[0].answers, mean), found)


def _whole_values(values: Sequence[int]) -> list[int]:
    found = [whole(value, f"values[{k}]", least=None) for k, value in enumerate(values)]
    if not found:
        raise ProblemError("there is no value", where="values", remedy="Give one per category")
    return found


def _sums(low: int, high: int) -> Domain:
    if high - low >= MOST_ANSWERS:
        raise ProblemError(
            f"{high - low + 1:,} possible answers; at most {MOST_ANSWERS:,}",
            where="values",
            remedy="Round the values to fewer steps",
        )
    labels = range(low, high + 1)
    return Domain(labels, points=np.array(labels, dtype=np.float64))


def _chain(initial: ArrayLike, transitions: ArrayLike, count: int) -> tuple[Floats, Floats]:
    start = normalised(weights(initial, "initial"))
    rows = finite_array(transitions, where="transitions", ndim=2)
    if start.size != count or rows.shape != (count, count):
        raise ProblemError(
            f"shapes {start.shape} and {rows.shape} do not fit {count} values",
            where="transitions",
            remedy="Give a law of the states and a row of the matrix for every state",
        )
    moves = [normalised(weights(row, f"transitions[{i}]")) for i, row in enumerate(rows)]
    return start, np.array(moves)


def _sums_of_chain(
    start: Floats, moves: Floats, steps: list[int], length: int
) -> tuple[list[Floats], list[Floats]]:
    """P(X_t = k, Σ_{u <= t} v = r) and P(Σ_{u > t} v = r | X_t = k), for every t, as arrays (n, r)
    of sums of v less its least value."""
    offsets, widest = [step - min(steps) for step in steps], max(steps) - min(steps)

    def shifted(rows: Floats) -> Floats:
        out = np.zeros((len(rows), rows.shape[1] + widest))
        for state, offset in enumerate(offsets):
            out[state, offset : offset + rows.shape[1]] = rows[state]
        return out

    before = [shifted(start[:, None])]
    after = [np.ones((len(start), 1))]
    for _ in range(length - 1):
        before.append(shifted(moves.T @ before[-1]))
        after.append(moves @ shifted(after[-1]))
    return before, after[::-1]


def _law(values: Floats, width: int, begin: int = 0) -> Floats:
    """``values`` from the answer ``begin`` on, as a distribution of ``width`` answers."""
    return normalised(np.pad(values, (begin, width - begin - len(values))))


def _compared(laws: Iterable[tuple[object, Floats]], words: str) -> list[Compared]:
    """All pairs of laws, and ``words`` about the names of both."""
    return [((p, q), words.format(a, b)) for (a, p), (b, q) in combinations(laws, 2)]


def _distinct(answers: Domain, prior: Prior, found: Iterable[Compared]) -> Beliefs:
    """Without pairs that say the same as an earlier one, or nothing."""
    seen: dict[tuple[bytes, ...], Compared] = {}
    for (a, b), name in found:
        if not np.array_equal(a, b):
            seen.setdefault(tuple(sorted((a.tobytes(), b.tobytes()))), ((a, b), name))
    if not seen:
        raise ProblemError(
            "no secret changes the law of the answer",
            where="beliefs",
            remedy="There is nothing to protect: report the answer",
        )
    pairs, names = zip(*seen.values(), strict=True)
    return Beliefs(answers, prior, pairs, names)
