"""Constraints of an own making: any linear inequalities over the probabilities, and any log ratios
between secrets or mixtures of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from optmech.base.arrays import Ints
from optmech.base.read_only import Converted, checked, converted, record
from optmech.certificate import families
from optmech.certificate.families import LiftedRatio, Ratio
from optmech.certificate.families.ratio import rounded_product
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import one_of, text
from optmech.exact.number import Exact, Number
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.constraints.distribution import Mixtures, as_mixtures, domains_in, require_same
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.listed import Listed, chosen
from optmech.problem.promised import LOG_RATIO, Promised
from optmech.problem.space import Place, Space
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_label
from optmech.spaces.mechanism import Mechanism

Per = Literal["all", "report", "secret"]
_LARGEST = 1e100
TOLERANCE = Exact(Fraction(1, 10**9))


def as_weights(value: ArrayLike) -> Listed:
    """Numbers of any sign, which may be exact texts: what is not listed is 0."""
    return Listed.of(value, fields.signed_number, 0.0)


def as_log_ratios(value: ArrayLike) -> Listed:
    """Numbers >= 0, which may be exact texts: what is not listed is infinite."""
    return Listed.of(value, fields.number, np.inf)


def as_limits(value: Number | Sequence[Number]) -> tuple[Exact, ...]:
    """One number of any sign, or one for every inequality."""
    given: list[Any] = [value]
    if not isinstance(value, str) and np.ndim(value):  # type: ignore[arg-type]
        given = list(value)  # type: ignore[arg-type]
    if not given:
        raise ProblemError("is empty", remedy="Give a number, or one for every inequality")
    out = []
    for k, number in enumerate(given):
        with inside(f"[{k}]" if len(given) > 1 else ""):
            out.append(fields.signed_number(number))
    return tuple(out)


Limits = Converted[Number | Sequence[Number] | None, tuple[Exact, ...] | None]


def as_reports(value: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Labels of observables, or a truth value for each."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, str) or not isinstance(listed, Iterable) or not (listed := list(listed)):
        raise ProblemError("is no list of labels", remedy="Name the reports where it holds")
    return tuple(listed)


def as_per(value: str) -> Per:
    """What an inequality is stated for."""
    one_of(value, ("all", "report", "secret"), "")
    return value  # type: ignore[return-value]


def as_tolerance(value: Number) -> Exact:
    """A number above 0."""
    found = fields.number(value)
    if found.log_of is not None or not found > 0:
        raise ProblemError(
            f"{value!r} is no number above 0",
            remedy="Released probabilities are whole numbers over a power of two, and meet most "
            'equations to within a rounding only: give how much is allowed, such as "1e-9"',
        )
    return found


def as_title(value: str) -> str:
    """Words of whoever states it, at most 200 characters."""
    if len(text(value, "")) > 200:
        raise ProblemError(f"has {len(value):,} characters", remedy="Give at most 200")
    return value


def _build_reports(spec: Any, place: Place) -> list[Hashable]:
    out = []
    for k, given in enumerate(spec):
        with inside(f"[{k}]"):
            out.append(find_label(place.observed, given))
    return out


FIELDS |= {
    as_weights: Field(
        "numbers",
        lambda value, _: value.plain(),
        lambda plain, _: Listed.load(plain, fields.signed_number),
    ),
    as_log_ratios: Field(
        "numbers",
        lambda value, _: value.plain(),
        lambda plain, _: Listed.load(plain, fields.number),
    ),
    as_limits: Field("limits"),
    as_reports: Field(
        "labels",
        lambda value, space: np.flatnonzero(
            chosen(value, space.observables.labels, "reports")
        ).tolist(),
        lambda plain, space: [space.observables.labels[o] for o in plain],
        _build_reports,
    ),
    as_per: Field(lambda: Per),
    as_tolerance: Field("number"),
    as_title: Field(lambda: str),
}


@constraint("linear")
@record
class Linear(Constraint):
    """Linear inequalities or equalities over the probabilities: Σ_s,o w(s,o) p(o|s) is at most
    ``upper``, at least ``lower``, or ``equal`` to a number.

    ``weights`` is an array, sparse or not, of pandas or xarray with the labels of secrets and
    observables, or lists with exact texts ("1/3", "ln 3"). Of shape (S, O) it is one inequality, of
    shape (k, S, O) k of them, and a limit is one number or k. ``per`` says what each is stated for:

    * "all": the sum is over all secrets and reports;
    * "report": for every report o, the sum is over the secrets. Weights (S,) or (k, S) are the same
      for all reports;
    * "secret": for every secret s, the sum is over the reports. Weights (O,) or (k, O) are the same
      for all secrets.

    An equality holds to within ``tolerance`` times its largest weight, 10^-9 unless given: the
    probabilities are whole numbers over a power of two, which meet few equations exactly. Two
    distributions whose reports must agree exactly are ``Ratios`` of 0 both ways. ``title`` is what
    it is called where it is shown.

    Examples
    --------
    >>> state = om.Domain(["innocent", "guilty"])
    >>> prior = om.Prior(state, [0.7, 0.3])  # Kamenica and Gentzkow, AER 2011, section 1
    >>> advice = om.Domain(["acquit", "convict"])
    >>> gain = np.array([[1, 0], [0, 1]]) * prior.weights[:, None]  # of the judge
    >>> obey = np.stack([gain[:, [0, 1]] - gain[:, [1, 0]]])
    >>> obedience = om.Linear(obey, lower=0, per="report", title="obedience")
    >>> acquitted = np.array([[1, 0], [1, 0]])
    >>> design = om.solve(om.Problem(prior, acquitted, advice, constraints=[obedience]))
    >>> print(round(1 - design.loss, 6))  # convicted, of whom half are innocent
    0.6
    """

    limits_loss = True

    weights: Converted[ArrayLike, Listed] = converted(as_weights)
    upper: Limits = converted(as_limits, default=None)
    lower: Limits = converted(as_limits, default=None)
    _: KW_ONLY
    equal: Limits = converted(as_limits, default=None)
    per: Per = checked(as_per, default="all")
    tolerance: Converted[Number, Exact] = converted(as_tolerance, default=TOLERANCE)
    title: str = checked(as_title, default="")

    def __post_init__(self) -> None:
        super().__post_init__()
        limits = [self.upper, self.lower, self.equal]
        if all(v is None for v in limits) or (self.equal is not None and limits.count(None) < 2):
            raise ProblemError(
                "needs upper, lower or both, or equal",
                where="linear",
                remedy="Say what the sum is limited by",
            )
        for name in ("upper", "lower", "equal"):
            own = getattr(self, name)
            if own is not None and len(own) not in (1, self.count):
                raise ProblemError(
                    f"{len(own)} numbers for {self.count} inequalities",
                    where=name,
                    remedy="Give one number, or one for every inequality",
                )
        same = [k for k, (a, b) in enumerate(self._limits) if a is not None and a == b]
        if self.equal is None and same:
            raise ProblemError(
                f"inequality {same[0]} has the same upper and lower limit",
                where="upper",
                remedy="Give it as equal: released probabilities are whole numbers over a power of "
                "two, and meet equations to within a tolerance",
            )

    @property
    def count(self) -> int:
        """How many are stated, each for all reports or secrets where it is per these."""
        shape = self.weights.shape
        several = len(shape) == 3 or (self.per != "all" and len(shape) == 2)
        return shape[0] if several else 1

    @property
    def _limits(self) -> list[tuple[Exact | None, ...]]:
        """Of every inequality that is stated the upper and the lower one."""
        given = (self.upper, self.lower) if self.equal is None else (self.equal, self.equal)
        sides = ((None,) if v is None else v for v in given)
        return list(zip(*(side * (self.count // len(side)) for side in sides), strict=True))

    def _ordered(self, space: Space) -> Listed:
        """The weights in the order of secrets and observables. Raises ProblemError where they do
        not fit."""
        n, m, shape = len(space.secrets), len(space.observables), self.weights.shape
        sides = {"all": (n, m), "report": (n,), "secret": (m,)}[self.per]
        axes = {1: sides, 2: sides if self.per == "all" else (None, *sides), 3: (None, n, m)}
        wanted = axes[len(shape)]
        fits = len(wanted) == len(shape) and all(
            size in (None, own) for size, own in zip(wanted, shape, strict=True)
        )
        if not fits:
            ends = "S, O" if self.per == "all" else "S" if self.per == "report" else "O"
            raise ProblemError(
                f"shape {shape} does not fit {n} secrets x {m} observables, per {self.per}",
                where="weights",
                remedy=f"Give ({ends}{',' if len(ends) == 1 else ''}), (k, {ends}) or (k, S, O)"
                if self.per != "all"
                else "Give (S, O) or (k, S, O)",
            )
        of_axis = {"all": [space.secrets, space.observables], "report": [space.secrets],
                   "secret": [space.observables]}[self.per]  # fmt: skip
        domains = [space.secrets, space.observables] if len(shape) == 3 else of_axis
        with inside("weights"):
            return self.weights.ordered(*[None] * (len(shape) - len(domains)), *domains)

    def plain(self, space: Space) -> dict[str, Plain]:
        """The fields as JSON values, with labelled weights in the order of the domains."""
        ordered: Any = self._ordered(space)
        return super(Linear, replace(self, weights=ordered)).plain(space)

    def families(self, index: int, space: Space) -> Iterator[families.Linear]:
        ordered = self._ordered(space)
        row, s, o, source = self._entries(ordered, space)
        n, m = len(space.secrets), len(space.observables)
        times = {"all": 1, "report": m, "secret": n}[self.per]
        column = s * m + o
        order = np.lexsort((column, row))
        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=self.count * times))])
        table = sp.csr_array(
            (ordered.value[source][order], column[order], start), (self.count * times, n * m)
        )
        number, known = source[order], dict(ordered.exact)
        exact = tuple((int(k), known[int(number[k])]) for k in _those(number, known))
        upper, lower = zip(*(pair for pair in self._limits for _ in range(times)), strict=True)
        slack, largest = [Fraction()] * len(upper), abs(table).max(axis=1).toarray().ravel()
        odd = np.flatnonzero((largest > _LARGEST) | ((largest > 0) & (largest < 1 / _LARGEST)))
        if len(odd):
            raise ProblemError(
                f"those of inequality {odd[0] // times} are all tiny, or one is huge",
                where="weights",
                remedy="Multiply weights and limits, so that the largest weight is about 1",
            )
        if self.equal is not None:
            slack = [self.tolerance.factor * Fraction(v) for v in largest.tolist()]
        yield families.Linear(index, m, table, exact, lower, upper, tuple(slack))

    def _entries(self, ordered: Listed, space: Space) -> tuple[Ints, Ints, Ints, Ints]:
        """Of every weight of every inequality: its row, secret and report, and its number."""
        n, m, source = len(space.secrets), len(space.observables), np.arange(len(ordered.at))
        places = list(ordered.places)
        several = len(places) == (3 if self.per == "all" else 2) or len(places) == 3
        k = places.pop(0) if several else np.zeros(len(source), dtype=np.int64)
        if len(places) == 2:
            s, o = places
        else:  # one weight for all reports, or all secrets
            times = m if self.per == "report" else n
            other = np.tile(np.arange(times), len(source))
            source, k, one = (np.repeat(part, times) for part in (source, k, places[0]))
            s, o = (one, other) if self.per == "report" else (other, one)
        row = {"all": k, "report": k * m + o, "secret": k * n + s}[self.per]
        return row, s, o, source

    def promise(self, space: Space) -> str:
        what = "equalities" if self.equal is not None else "inequalities"
        if self.count == 1:
            what = "an equality" if self.equal is not None else "an inequality"
        counted = what if self.count == 1 else f"{self.count} {what}"
        each = "" if self.per == "all" else f" for every {self.per}"
        within = "" if self.equal is None else f", within {self.tolerance.words} of a weight"
        return f"{counted} linear in the probabilities{each}{within}"

    def promised(self, space: Space) -> Promised:
        return Promised()

    def measured(self, m: Mechanism, space: Space) -> Kept:
        (family,) = self.families(0, space)
        value = family.weights @ m.matrix.ravel()
        over = [
            sign * (value - np.array([np.inf * sign if v is None else float(v) for v in limits]))
            for limits, sign in ((family.upper, 1), (family.lower, -1))
        ]
        return Kept("excess", float(max(family.slack)), float(np.maximum(*over).max()))

    def idle(self, space: Space) -> Remarks:
        return [] if len(self.weights.at) else [("", "every weight is 0")]


def _those(number: Ints, known: dict[int, Exact]) -> list[int]:
    return [int(k) for k in np.flatnonzero(np.isin(number, list(known)))] if known else []


@constraint("ratios")
@record
class Ratios(Constraint):
    """Log ratios of an own making: p(o|i) <= e^r(i,j) p(o|j) for all o, and nothing where r(i,j) is
    infinite.

    ``log_ratio`` is an array (S, S) of numbers >= 0, which need not be symmetric, sparse or not, of
    pandas or xarray with the labels of the secrets, or lists with exact texts ("ln 3"). The
    diagonal says nothing. An array (S, S, O) has a log ratio of its own for every report.

    With ``of`` and ``to``, two lists of k distributions over the secrets (``Prior`` or weights):
    (A_k P)(o) <= e^r_k (B_k P)(o), and ``log_ratio`` has shape (k,) or (k, O). ``reports`` are the
    labels of the reports where it holds, by default all. ``title`` is what it is called where it is
    shown.

    Examples
    --------
    >>> answers = om.Domain(["no", "yes"])
    >>> sensitive = [[0, np.inf], ["ln 2", 0]]  # a "yes" may always have been a "no"
    >>> promise = om.Ratios(sensitive, title="one-sided")
    >>> problem = om.Problem(
    ...     om.Prior.uniform(answers), om.distances.hamming(), constraints=[promise]
    ... )
    >>> print(om.solve(problem).mechanism.matrix.round(6))
    [[0.5 0.5]
     [0.  1. ]]
    >>> promise.promise(problem.space)
    'log ratios of its own for 1 pair of secrets'
    """

    _domains: ClassVar[Sequence[Domain]] = ()
    log_ratio: Converted[ArrayLike, Listed] = converted(as_log_ratios)
    _: KW_ONLY
    of: Mixtures = converted(as_mixtures, default=None)
    to: Mixtures = converted(as_mixtures, default=None)
    reports: Converted[Sequence[Hashable] | None, tuple[Hashable, ...] | None] = converted(
        as_reports, default=None
    )
    title: str = checked(as_title, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "_domains", domains_in(self.of, self.to))
        super().__post_init__()
        if (self.of is None) != (self.to is None):
            raise ProblemError("of and to go together", where="ratios", remedy="Give both")
        if self.of is not None and self.to is not None and len(self.of) != len(self.to):
            raise ProblemError(
                f"{len(self.to)} distributions beside {len(self.of)}",
                where="to",
                remedy="Give as many in both lists",
            )

    def _ordered(self, space: Space) -> Listed:
        n, m, shape = len(space.secrets), len(space.observables), self.log_ratio.shape
        count = n if self.of is None else len(self.of)
        sides = (n, n) if self.of is None else (count,)
        if shape not in (sides, (*sides, m)):
            asked = "(S, S) or (S, S, O)" if self.of is None else "(k,) or (k, O)"
            of = "secrets" if self.of is None else "distributions"
            raise ProblemError(
                f"shape {shape} is not {asked}, with {count} {of} and {m} observables",
                where="log_ratio",
                remedy="Give a number for every pair",
            )
        require_same(self._domains, space, "of")
        for name in ("of", "to"):
            for k, row in enumerate(getattr(self, name) or ()):
                if row.shape != (n,):
                    said = f"{row.size} entries for {n} secrets"
                    raise ProblemError(said, where=f"{name}[{k}]", remedy="Give one for every one")
        domains = [space.secrets, space.secrets] if self.of is None else [None]
        if len(shape) > len(sides):
            domains = [*domains, space.observables]
        with inside("log_ratio"):
            return self.log_ratio.ordered(*domains)

    def plain(self, space: Space) -> dict[str, Plain]:
        """The fields as JSON values, with labelled log ratios in the order of the domains."""
        ordered: Any = self._ordered(space)
        return super(Ratios, replace(self, log_ratio=ordered)).plain(space)

    def _where(self, space: Space) -> Any:
        """(O,): the reports where it holds; None for all."""
        if self.reports is None:
            return None
        return chosen(self.reports, space.observables.labels, "reports")

    def families(self, index: int, space: Space) -> Iterator[Ratio | LiftedRatio]:
        ordered, where = self._ordered(space), self._where(space)
        n, m = len(space.secrets), len(space.observables)
        with inside("log_ratio"):
            units = ordered.units()
        for unit, which, factor in units:
            places = [part[which] for part in ordered.places]
            if self.of is not None and self.to is not None:
                k, *own = places
                kept = np.tile(np.ones(m, dtype=bool) if where is None else where, (len(k), 1))
                if own:
                    kept &= own[0][:, None] == np.arange(m)
                left, right = (np.array([side[j] for j in k]) for side in (self.of, self.to))
                ratio = rounded_product(unit, factor)
                window = None if kept.all() else kept
                yield LiftedRatio(index, left, right, ratio, unit, factor, window)
                continue
            i, j, *own = places
            for o in np.unique(own[0]).tolist() if own else [None]:
                here = i != j if o is None else (i != j) & (own[0] == o)
                at = np.ones(m, dtype=bool) if where is None else np.array(where)
                if o is not None:
                    at &= np.arange(m) == o
                if not here.any() or not at.any():
                    continue
                table = np.full((n, n), np.inf)
                table[i[here], j[here]] = factor[here]
                yield Ratio(index, unit, table, None if at.all() else np.tile(at, (n, 1)))

    def _limited(self, space: Space) -> int:
        """Pairs that it limits."""
        places = self._ordered(space).places
        if self.of is not None:
            return len(np.unique(places[0]))
        apart = places[0] != places[1]
        return len(np.unique(places[0][apart] * len(space.secrets) + places[1][apart]))

    def promise(self, space: Space) -> str:
        count = self._limited(space)
        of = "secrets" if self.of is None else "distributions"
        some = "" if self.reports is None else f", for {self._where(space).sum()} of the reports"
        return f"log ratios of its own for {count} pair{'s' * (count != 1)} of {of}{some}"

    def promised(self, space: Space) -> Promised:
        whole = self.reports is None and len(self.log_ratio.shape) == 2
        if self.of is None and whole:
            return Promised("secrets", "adds", (LOG_RATIO,), pairs="listed")
        return Promised("unknown", "unknown")

    def measured(self, m: Mechanism, space: Space) -> Kept:
        """The largest share of what is allowed."""
        share, matrix = 0.0, m.matrix
        for family in self.families(0, space):
            window = family.window
            if isinstance(family, Ratio):
                i, j = np.nonzero(np.isfinite(family.table))
                left, right, most = matrix[i], matrix[j], family.log_ratio[i, j]
                window = None if window is None else window[i]
            else:
                left, right, most = family.left @ matrix, family.right @ matrix, family.log_ratio
            with np.errstate(divide="ignore", invalid="ignore"):
                spent = np.where(left > 0, np.log(left / right), 0.0)
                if window is not None:
                    spent = np.where(window, spent, 0.0)
                used = np.where(spent > 1e-12, spent / most[:, None], 0.0)
            share = max(share, float(used.max(initial=0.0)))
        return Kept("share", 1.0, share)

    def idle(self, space: Space) -> Remarks:
        return [] if self._limited(space) else [("", "no pair has a limit")]
