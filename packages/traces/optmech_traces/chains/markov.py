"""Markov chains over a finite domain: what is known of a discrete trace before it is released, and,
since the posterior of a hidden Markov chain is again a Markov chain, after.

TP19 = Meehan and Chaudhuri, Location Trace Privacy Under Conditional Priors (workshop version of
the paper in AISTATS 2021; numbers of equations and definitions are those of the former).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.read_only import locked, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, moved
from optmech.exact.arguments import weights, whole
from optmech.exact.number import float_of
from optmech.exact.ratios.wide import Wide, product, pushed, tilted
from optmech.spaces.arguments import checked_arguments, kind
from optmech.spaces.distances import DistanceLike, between
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Distribution, Prior
from optmech_traces.chains.sequences import transition_counts, whole_indices

_ROW_SUM_TOLERANCE = 1e-9
LONGEST = 100_000
"""Steps beyond which a time is taken for a mistake."""


@kind("Make one with om.traces.MarkovPrior(domain, initial, transitions)")
@record
class MarkovPrior(Shown):
    """The conditional prior of a discrete trace X_0, X_1, ...: a Markov chain (Meehan and Chaudhuri
    2019, Def. 2.1 with a finite domain).

    Parameters
    ----------
    domain:
        The cells, n of them.
    initial:
        P(X_0), shape (n,), non-negative, normalised here; or a ``Prior``.
    transitions:
        P(X_{t+1} = y | X_t = x) in row x, column y: one matrix for all steps, shape (n, n), or
        one for each of the first k steps, shape (k, n, n). Rows sum to one (within 1e-9).
    repeat:
        How many of the last matrices repeat, cyclically, after step k: 24 of 24 for hours of the
        day. 0 ends the trace after k + 1 times. Default: 1 for one matrix, 0 for several.

    Raises
    ------
    ProblemError
        On shapes that do not fit, entries that are negative or not finite, rows that do not sum
        to one.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [1, 0], [[0.9, 0.1], [0.3, 0.7]])
    >>> print(chain.marginals(3).round(4))  # P(X_0), P(X_1), P(X_2)
    [[1.   0.  ]
     [0.9  0.1 ]
     [0.84 0.16]]
    >>> print(chain.stationary().weights.round(4))  # 3/4, 1/4
    [0.75 0.25]
    >>> print(chain.conditional(0, given=1).round(4))
    [[1. 0.]
     [1. 0.]]
    >>> print(chain.transition(0)[1], chain.marginal(2).weights.round(4))
    [0.3 0.7] [0.84 0.16]
    >>> after = chain.given({1: [0.1, 0.9]})  # a report at time 1 that cell 1 makes likelier
    >>> print(after.marginal(1).weights.round(4))
    [0.5 0.5]
    >>> chain.sample(length=3, size=5, seed=1).shape, chain.indices([0, 0, 1])
    ((5, 3), [0, 0, 1])
    >>> print(round(chain.log_likelihood([0, 0, 1]), 4))  # ln(0.9 * 0.1)
    -2.4079
    >>> learnt = om.traces.MarkovPrior.from_sequences(cells, [[0, 0, 1, 0]], smoothing=1)
    >>> print(learnt.transition(0).round(4))
    [[0.5  0.5 ]
     [0.75 0.25]]
    >>> walk = om.traces.MarkovPrior.random_walk(cells, om.distances.euclidean(), scale=1)
    >>> walk.require_time(1000)  # no error: a chain without an end has every time to 100,000
    >>> print(walk.transition(0).round(3))
    [[0.731 0.269]
     [0.269 0.731]]
    >>> print(chain.wide_marginals(2)[-1].floats(), chain.wide_conditional(1, 0).floats()[0])
    [0.9 0.1] [0.9 0.1]
    """

    domain: Domain
    initial: Floats
    transitions: Floats
    repeat: int

    @checked_arguments
    def __init__(
        self,
        domain: Domain,
        initial: Distribution,
        transitions: ArrayLike,
        *,
        repeat: int | None = None,
    ) -> None:
        if isinstance(initial, Prior) and initial.domain.labels != domain.labels:
            raise ProblemError("is over another domain", where="initial")
        with moved("initial"):
            start = (initial if isinstance(initial, Prior) else Prior(domain, initial)).weights
        stack = finite_array(transitions, where="transitions")
        single = stack.ndim == 2
        if single:
            stack = stack[None]
        count = len(domain)
        if stack.ndim != 3 or stack.shape[1:] != (count, count):
            raise ProblemError(
                f"shape {np.shape(transitions)} does not fit {count} cells",
                where="transitions",
                remedy=f"Give ({count}, {count}), or one such matrix per step",
            )
        cycle = int(single) if repeat is None else whole(repeat, "repeat")
        if cycle > len(stack):
            raise ProblemError(f"{cycle} of {len(stack)} matrices cannot repeat", where="repeat")
        if not len(stack):
            raise ProblemError("there is no matrix", where="transitions")
        sums = stack.sum(axis=2)
        wrong = np.argwhere((stack < 0).any(axis=2) | (np.abs(sums - 1) > _ROW_SUM_TOLERANCE))
        if len(wrong):
            k, x = wrong[0].tolist()
            raise ProblemError(
                f"the row of {domain.labels[x]!r} has least entry {stack[k, x].min():g} and sum "
                f"{sums[k, x]:.12g}",
                where=f"transitions[{k}]",
                remedy="Rows must be distributions; MarkovPrior.from_sequences counts them",
            )
        chain = locked(stack / sums[:, :, None])
        vars(self).update(domain=domain, initial=start, transitions=chain, repeat=cycle)

    @classmethod
    @checked_arguments
    def from_sequences(
        cls,
        domain: Domain,
        sequences: Sequence[ArrayLike],
        smoothing: float = 0.0,
        *,
        base: MarkovPrior | None = None,
        classes: Sequence[ArrayLike] | None = None,
        schedule: Sequence[int] | None = None,
    ) -> MarkovPrior:
        """Estimate the chain from sequences of cell indices, -1 where the cell is not known.

        Rows are (c(x, y) + α b(y|x)) / (c(x) + α) with c(x, y) the number of steps from x to y
        and α = ``smoothing``: the posterior mean under a Dirichlet prior of weight α around
        ``base``, which is uniform unless given. A chain pooled over users as base makes a user's
        own chain that falls back on the others where the user has been little. P(X_0) is counted
        from all visits, with the same weight per cell.

        With ``classes``, class indices in the shape of the sequences, steps are counted apart by
        the class of their departure (hours of the day, say), and ``schedule`` names the class of
        each step, cyclically.

        Raises
        ------
        ProblemError
            On indices outside the domain, sequences without a visit, classes that do not fit, or
            a cell that is never left while ``smoothing`` is 0.
        """
        visits, steps = transition_counts(sequences, len(domain), classes)
        weight, cells = float_of(smoothing, "smoothing"), len(domain)
        first, next_ = np.full(cells, 1 / cells), np.full((cells, cells), 1 / cells)
        if base is not None:
            first, next_ = base.initial, base.transition(0)
        if len(first) != cells:
            raise ProblemError(f"is over {len(first)} cells, not {cells}", where="base")
        if not visits.any():
            raise ProblemError(
                "no visit falls into the domain",
                where="sequences",
                remedy="Check how positions were turned into cells",
            )
        rows = steps.sum(axis=2) + weight
        empty = np.argwhere(rows == 0)
        if len(empty):
            raise ProblemError(
                f"{len(empty)} cell(s) are never left, the first {domain.labels[empty[0, 1]]!r}",
                where="sequences",
                remedy="Give smoothing > 0, or drop these cells from the domain",
            )
        start = visits + weight * cells * first
        stack = (steps + weight * next_) / rows[:, :, None]
        if classes is None:
            if schedule is not None:
                raise ProblemError("a schedule needs classes", where="schedule")
            return cls(domain, start, stack[0])
        order = whole_indices([] if schedule is None else schedule, 0, len(stack), "schedule")
        if not len(order):
            raise ProblemError("is missing", where="schedule", remedy="Name the class of each step")
        return cls(domain, start, stack[order], repeat=len(order))

    @classmethod
    @checked_arguments
    def random_walk(
        cls,
        domain: Domain,
        distance: DistanceLike,
        scale: float,
        *,
        initial: Distribution | None = None,
    ) -> MarkovPrior:
        """P(y|x) proportional to exp(-d(x, y) / ``scale``), the scale > 0 in the distance's unit;
        P(X_0) uniform unless given."""
        width = float_of(scale, "scale", positive=True)
        apart = between(distance, domain)
        kernel = np.exp(-(apart - apart.min(axis=1, keepdims=True)) / width)
        start = np.ones(len(domain)) if initial is None else initial
        return cls(domain, start, kernel / kernel.sum(axis=1, keepdims=True))

    def __len__(self) -> int:
        return len(self.domain)

    @property
    def horizon(self) -> int | None:
        """Number of times of the trace; None where it has no end."""
        return None if self.repeat else len(self.transitions) + 1

    def transition(self, step: int) -> Floats:
        """P(X_{step+1} | X_step), shape (n, n)."""
        k = whole(step, "step")
        self.require_time(k + 1)
        return np.asarray(self.transitions[self._position(k)])

    def marginals(self, count: int) -> Floats:
        """P(X_t) for t = 0, ..., count - 1, shape (count, n).

        A cell has 0 exactly where the chain cannot be there; chances below 2^-1022 count as that.
        """
        found = self.wide_marginals(whole(count, "count", least=1))
        return np.array([chances.floats() for chances in found])

    def wide_marginals(self, count: int) -> list[Wide]:
        """``marginals``, however small the chances are."""
        self.require_time(count - 1)
        out = [Wide.of(self.initial)]
        for t in range(count - 1):
            ahead = pushed(out[-1], self.transition(t))
            settled = abs(ahead.floats().sum() - 1) <= 2.0**-52 * len(self)
            out.append(ahead if settled else ahead.normalised())
        return out

    def marginal(self, time: int) -> Prior:
        """P(X_time)."""
        return Prior(self.domain, self.marginals(whole(time, "time") + 1)[-1])

    def conditional(self, time: int, given: int) -> Floats:
        """P(X_time = y | X_given = x) in row x, column y, for any two times (Meehan and Chaudhuri
        2019, section 2).

        The row of an x with P(X_given = x) = 0 is zero: there is nothing to condition on. It is
        so only where the chain cannot be in x; chances below 2^-1022 count as that.
        """
        return self.wide_conditional(time, given).floats()

    def wide_conditional(self, time: int, given: int) -> Wide:
        """``conditional``, however small the chances are."""
        t, condition = whole(time, "time"), whole(given, "given")
        self.require_time(max(t, condition))
        first = min(t, condition)
        at_first = self.wide_marginals(first + 1)[-1]
        if t >= condition:
            at_first = Wide.of(at_first.positive.astype(float))
        forward = Wide.of(np.eye(len(self))).times(at_first)
        for step in range(first, max(t, condition)):
            forward = product(forward, Wide.of(self.transition(step).T))
        return (forward if t >= condition else forward.T).normalised()

    def given(self, likelihoods: Mapping[int, ArrayLike]) -> MarkovPrior:
        """The posterior after releases: P(X_0, X_1, ... | z), a Markov chain again.

        ``likelihoods`` maps a time t to P(z_t | X_t = s), shape (n,): the column of what was
        released in the mechanism that released it. Times without a release are left out. This is
        forward-backward smoothing: ``marginal`` of the result is P(X_t | all releases), and
        ``conditional`` is conditioned on them too.

        Raises
        ------
        ProblemError
            On likelihoods that are negative, not finite or of the wrong shape, and when the
            releases together are impossible.
        """
        seen = {
            whole(t, "likelihoods"): weights(value, f"likelihoods[{t}]", len(self))
            for t, value in likelihoods.items()
        }
        if not seen:
            return self
        last = max(seen)
        self.require_time(last)
        message = Wide.of(seen[last])
        head: list[Floats] = []
        for t in reversed(range(last)):
            step, message = tilted(self.transition(t), message)
            head.append(step)
            if t in seen:
                message = message.times(Wide.of(seen[t]))
            if not message.positive.any():
                break
        start = message.times(Wide.of(self.initial)).normalised().floats()
        if not start.any():
            raise ProblemError(
                "the releases are impossible under the prior",
                where="likelihoods",
                remedy="Smooth the prior, so that every cell can be reached",
            )
        # what describes the trace from then on, with the same ``repeat``
        ahead = range(last, last + max(len(self.transitions) - last, self.repeat))
        tail = self.transitions[[self._position(step) for step in ahead]]
        stack = np.concatenate([np.array(head[::-1]).reshape(-1, *tail.shape[1:]), tail])
        return MarkovPrior(self.domain, start, stack, repeat=self.repeat)

    def stationary(self) -> Prior:
        """The distribution that a step leaves unchanged.

        Raises
        ------
        ProblemError
            Where the matrices differ between steps, or several distributions are stationary.
        """
        from scipy.sparse.csgraph import connected_components

        if len(self.transitions) != 1 or self.repeat != 1:
            raise ProblemError(
                "the steps have different matrices",
                where="stationary",
                remedy="Use marginal(time), or a chain with one matrix",
            )
        matrix = self.transitions[0]
        parts, part = connected_components(matrix > 0, directed=True, connection="strong")
        x, y = np.nonzero(matrix > 0)
        # parts that the chain can leave
        passed = np.unique(part[x[part[x] != part[y]]])
        if parts - len(passed) > 1:
            raise ProblemError(
                "several distributions are stationary: the chain falls into separate parts",
                where="stationary",
                remedy="Smooth the transitions, or use marginal(time)",
            )
        count = len(self)
        system = np.vstack([matrix.T - np.eye(count), np.ones(count)])
        solved = np.linalg.lstsq(system, np.append(np.zeros(count), 1.0), rcond=None)[0]
        return Prior(self.domain, np.maximum(solved, 0.0))

    def sample(self, length: int, size: int, seed: int | None = None) -> Ints:
        """``size`` traces of ``length`` cell indices, shape (size, length), for simulations."""
        length, size = whole(length, "length"), whole(size, "size")
        self.require_time(length - 1)
        rng = np.random.default_rng(seed)
        out = np.empty((size, length), dtype=np.int64)
        rows = np.broadcast_to(self.initial, (size, len(self)))
        for t in range(length):
            heads = np.cumsum(rows, axis=1)
            drawn = rng.random(size) * heads[:, -1]
            out[:, t] = (heads <= drawn[:, None]).sum(axis=1)
            if t + 1 < length:
                rows = self.transition(t)[out[:, t]]
        return out

    def log_likelihood(self, trace: Sequence[int]) -> float:
        """ln P(X_0 = x_0, X_1 = x_1, ...) of a trace of cell indices; -inf where impossible."""
        cells = self.indices(trace)
        with np.errstate(divide="ignore"):
            steps = [self.transition(t)[x, y] for t, (x, y) in enumerate(pairwise(cells))]
            return float(np.log([self.initial[cells[0]], *steps]).sum())

    def indices(self, trace: Sequence[int]) -> list[int]:
        """The trace as a list of whole numbers, checked to be cells of the domain."""
        values = finite_array(trace, where="trace", observations=True)
        cells = whole_indices(values, 0, len(self), "trace")
        if not len(cells):
            raise ProblemError("is empty", where="trace", remedy="Give a cell index per time")
        self.require_time(len(cells) - 1)
        return [int(cell) for cell in cells]

    def require_time(self, time: int) -> None:
        """Raise ProblemError unless the trace has this time."""
        if time > LONGEST or (self.horizon is not None and time >= self.horizon):
            last = LONGEST if self.horizon is None else self.horizon - 1
            raise ProblemError(
                f"there is no time {time}: the last one is {last}",
                where="time",
                remedy="Give more transition matrices, or let the last ones repeat",
            )

    def _position(self, step: int) -> int:
        """Index of the matrix of a step."""
        count = len(self.transitions)
        if step < count:
            return step
        return count - self.repeat + (step - count) % self.repeat
