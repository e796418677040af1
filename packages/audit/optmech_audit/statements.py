"""A problem: the objective, and the inequalities of its constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar

from optmech_audit.document import (
    INFINITE,
    Body,
    Matrix,
    Vector,
    distribution,
    fields,
    fractions,
    keys,
    listing,
    matrix,
    members,
    one_of,
    text,
    weighed,
)
from optmech_audit.inequalities import (
    ADDED,
    FAMILIES,
    NEAR,
    Bias,
    Distortion,
    Fixed,
    LinearRows,
    LossLimit,
    Part,
    Ratios,
    Support,
    charge_ratios,
    negated,
)
from optmech_audit.mechanisms import MOST_ENTRIES, Lagrangian, Mechanism, cut, entries
from optmech_audit.numbers import (
    ONE,
    ZERO,
    Fault,
    Interval,
    Real,
    dot,
    inside,
    need,
    paired,
    rounded_up,
    transposed,
)
from optmech_audit.places import LOSSES, NAMED, Places, compare, read_places
from optmech_audit.variance import Limit, Proof, Survey, figure, read_proof, read_survey
from optmech_audit.variance_bound import bound_of

T = TypeVar("T")
LARGEST_FLOAT = Fraction(2) ** 1023
Segment = tuple[int, int, Fraction]  # its ends, and how the loss bends between them
Inequalities = Iterator[Part]


def gain_rows(gain: object, n: int) -> Matrix:
    """g(w,s)."""
    return unit_matrix(n) if gain == "identity" else signed_rows(gain, n)


def goal_of(stated: Statement, goal: Body) -> Matrix:
    """The gains of an objective, weighted; two names mean measures without a prior."""
    if goal["gain"] not in ("maximal", "additive"):
        return weighed(gain_rows(goal["gain"], stated.n), stated.prior_of(goal["prior"]))
    need(goal["prior"] is None, "a prior of a measure that has none")
    return unit_matrix(stated.n) if goal["gain"] == "maximal" else first_less(stated.n)


def first_less(n: int) -> Matrix:
    return [[Fraction((s == 0) - (s == w)) for s in range(n)] for w in range(n)]


def unit_matrix(n: int) -> Matrix:
    return [[Fraction(s == w) for s in range(n)] for w in range(n)]


def signed_rows(value: object, columns: int) -> Matrix:
    """A row for every guess, of numbers of any sign."""
    rows = [fractions(row, columns, -math.inf) for row in listing(value)]
    need(0 < len(rows) * columns <= MOST_ENTRIES, "there is no guess, or too many")
    return rows


def checked(parts: list[tuple[int, Part]], mechanism: Mechanism, at: str = "") -> Iterator[str]:
    """What was found of every constraint; ``at`` says where."""
    for k, part in parts:
        with inside(f"constraints[{k}]"):
            found = part.check(mechanism)
        yield f"constraints[{k}]: {found}{at}"


def about_edges(constraint: object) -> bool:
    """Whether a constraint speaks of edges of a graph, as along roads."""
    body = fields(constraint)
    along = body.get("kind") == "metric_privacy" and "ways" in fields(body.get("everywhere"))
    return along or body.get("kind") == "policy_graph"


KINDS: dict[str, Callable[[Statement, Body], Inequalities]] = {}


class Statement:
    """Minimise the expected or the worst loss, or maximise the distortion of weights ``attacked``
    (of a leakage those of minus the gains), over the mechanisms that satisfy all inequalities;
    ``allowed`` is what all supports allow."""

    def __init__(self, plain: object, lines: list[str], skip: int | None = None) -> None:
        wanted = "title secrets observables prior loss objective constraints"
        problem, self.lines, self.place = keys(plain, wanted, "loss_name"), lines, ""
        self.n = len(listing(problem["prior"]))
        self.m = len(listing(listing(problem["loss"], self.n)[0]))
        # pairs of secrets count where something is about pairs, and not about edges alone
        stated = listing(problem["constraints"])
        alone = all(map(about_edges, stated)) and problem["objective"] == "expected_loss"
        wide = self.m if alone else max(self.n, self.m)
        need(self.n * wide <= MOST_ENTRIES, "is too large for this audit")
        self.secrets = read_places(problem, "secrets", self.n)
        self.observables = read_places(problem, "observables", self.m)
        text(problem["title"], "the title")
        self.prior = distribution(problem["prior"], self.n)
        self.loss = matrix(problem["loss"], self.n, self.m)
        self.loss_name = ""
        if "loss_name" in problem:
            with self.at("loss"):
                self.loss_name = one_of(problem["loss_name"], LOSSES, "the name")
                compare(self.loss_name, self.loss, self.secrets, self.observables)
                self.say(f"the distance is {self.loss_name}, computed again")
        self.survey: Survey | None = None
        self.objective, self.attacked, goal = "distortion", Matrix(), problem["objective"]
        if isinstance(goal, dict):
            with self.at("objective"):
                if "statistic" in goal:
                    self.objective = "variance"
                    self.survey = read_survey(goal, self.prior, self.secrets)
                elif "gain" in goal:
                    keys(goal, "gain prior")
                    self.objective, self.attacked = "leakage", negated(goal_of(self, goal))
                else:
                    distance, prior = members(goal, "distance prior")
                    self.attacked = weighed(self.among(distance), self.prior_of(prior))
        else:
            self.objective = one_of(goal, ("expected_loss", "worst_loss"), "the objective")
        self.parts: list[tuple[int, Part]] = []
        self.proof: Proof | None = None  # of a variance
        self.roads: tuple[object, Any] | None = None  # of promises for every point
        self.metric: list[int] = []  # the constraints that promise metric privacy there
        self.segments: list[Segment] = []
        for k, constraint in enumerate(stated):
            if k == skip:
                continue
            with self.at(f"constraints[{k}]"):
                body, self.index = fields(constraint), k
                reader = KINDS[one_of(body.get("kind"), KINDS, "the kind")]
                self.parts += [(k, part) for part in reader(self, body)]
        limiting = any(
            isinstance(part, LossLimit | Support | Bias | LinearRows) for _, part in self.parts
        )
        need(not self.attacked or limiting, "distortion or leakage without a limit on loss")
        masks = [part.mask for part in self.of(Support)]
        self.allowed = [
            [all(mask[s][o] for mask in masks) for o in range(self.m)] for s in range(self.n)
        ]
        self.parts = [(k, self.attainable(part)) for k, part in self.parts]
        self.held: dict[int, tuple[int, list[int]]] = {}
        for fixed in self.of(Fixed):
            for s, row in fixed.rows.items():
                self.held.setdefault(s, (fixed.bits, row))

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        self.place = place
        with inside(place):
            yield

    def say(self, words: str) -> None:
        self.lines.append(f"{self.place}: {words}")

    def matrix(self, name: object, plain: object, to: Places, infinite: bool = False) -> Matrix:
        """From the secrets. What has a name that can be computed again has to be it."""
        called, stated = text(name, "a name"), matrix(plain, self.n, len(to.labels), infinite)
        if called in NAMED:
            need(not any(INFINITE in row for row in stated), f"{called} is nowhere infinite")
            compare(called, stated, self.secrets, to)
            self.say(f"the distance is {called}, computed again")
        else:
            own = "" if called in ("matrix", "given") else f", called {called!a}: not checked"
            self.say(f"a distance given as a matrix{own}")
        return stated

    def among(self, plain: object, infinite: bool = False) -> Matrix:
        """A distance among the secrets."""
        name, secrets = members(plain, "name secrets")
        return self.matrix(name, secrets, self.secrets, infinite)

    def across(self, plain: object) -> tuple[Matrix, Matrix]:
        """A distance among the secrets, and from these to the observables."""
        name, among, across = members(plain, "name secrets observables")
        d = self.matrix(name, among, self.secrets, True)
        reach = self.matrix(name, across, self.observables, True)
        same = self.secrets == self.observables
        need(not same or reach == d, "one distance between the same places differs")
        return d, reach

    def prior_of(self, plain: object) -> list[Fraction]:
        """Weights of a prior of its own, or else those of the problem."""
        return self.prior if plain is None else distribution(plain, self.n)

    def everywhere(self, s: int, t: int) -> list[tuple[Real, Fraction]]:
        """What ratios for all observables state of two secrets: ε, and how far apart they are."""
        parts = [part for part in self.of(Ratios) if part.window is None]
        return [(part.epsilon, part.d[s][t]) for part in parts if t in part.d[s]]

    def log_ratio(self, s: int, t: int) -> Fraction | None:
        """A number >= the log ratio stated for two secrets, all observables; none without one."""
        return min((rate.times(d, 256).high for rate, d in self.everywhere(s, t)), default=None)

    def of(self, family: type[T]) -> list[T]:
        return [part for _, part in self.parts if isinstance(part, family)]

    def check(self, mechanism: Mechanism) -> list[str]:
        """Every constraint of the file, family by family."""
        rows = f"{self.n} rows of {self.m} whole numbers, each with sum 2^{mechanism.bits}"
        return [rows, *checked(self.parts, mechanism)]

    def attainable(self, part: Part) -> Part:
        """A limit that misses the least loss by rounding means it (theory, "The statement")."""
        if isinstance(part, LossLimit) and all(map(any, self.allowed)):
            least = self.least(part)
            if part.most.low < least <= part.most.low * (1 + NEAR):
                return part._replace(most=Interval(least, least))
        return part

    def least(self, limit: LossLimit) -> Fraction:
        """What any mechanism on the support loses."""
        rows = paired(limit.loss, self.allowed)
        return limit.of([min(c for c, ok in paired(*row) if ok) for row in rows])

    def lagrangian(self, plain: object, objective: bool = True) -> Lagrangian:
        """The objective, if it counts, and all inequalities with the multipliers of the file;
        those of the last parts of a family may be left out."""
        wanted = "ratio windowed lifted approximate distortion loss_limits objective"
        added = {name: kind for name, kind in ADDED.items() if self.of(kind)}
        body = keys(plain, " ".join([wanted, *added]), "divergence")
        bound = Lagrangian(self.allowed, self.held)
        if self.survey is None or not objective:
            self.add_objective(bound, body["objective"], objective)
        else:
            with inside("objective"):
                self.proof = read_proof(body["objective"], self.n, self.m)
        if body["ratio"] is not None:  # one list for all of them
            ratios = [part for part in self.of(Ratios) if part.window is None]
            charge_ratios(ratios, bound, body["ratio"])
        for name, kind in {**FAMILIES, **added}.items():
            given = listing(body.get(name, []))
            parts = [p for p in self.of(kind) if not isinstance(p, Ratios) or p.window is not None]
            need(len(given) <= len(parts), f"{name}: multipliers of nothing")
            for part, own in zip(parts, given, strict=False):
                part.charge(bound, own)
        return bound

    def factor(self, i: int, j: int) -> Fraction | None:
        """A float >= what the ratio of two secrets may be, for all reports; none without one."""
        found = (rate.above(d) for rate, d in self.everywhere(i, j))
        known = [v for v in found if v is not None]
        least = min(known, default=None)
        return None if least is None or least > LARGEST_FLOAT else rounded_up(least)

    def spread(self, p: Mechanism) -> tuple[Fraction, Fraction]:
        """The variance, or more, and what every mechanism's is at least."""
        if self.survey is None or self.proof is None:
            raise Fault("there is no estimate")
        try:
            least = bound_of(self.survey, self.proof, self.factor, list(self.limits()))
        except Fault:
            least = ZERO
        return figure(self.survey, p, self.proof), max(least, ZERO)

    def limits(self) -> Iterator[Limit]:
        """What bounds on losses and on attacks say of columns, by labels and by guesses."""
        for _, part in self.parts:
            if isinstance(part, LossLimit):
                each, ones = part.prior is None, [ONE] * self.n
                scale, table = part.prior or ones, list(map(list, transposed(part.loss)))
                yield Limit(scale, table, part.most.high, each, False)
            elif isinstance(part, Distortion):
                need(part.least[0] is not None, "an attack without a limit")
                yield Limit([ONE] * self.n, part.w, part.least[0] or ZERO, False, True)

    def value(self, p: Mechanism) -> Fraction:
        """What is minimised: a loss, a leakage, or minus the distortion."""
        if self.attacked:
            return -p.distortion(self.attacked)
        losses = p.losses(self.loss)
        if self.objective != "worst_loss":
            return dot(self.prior, losses)
        return max(losses + [self.along(p, losses, *each) for each in self.segments])

    def along(self, p: Mechanism, losses: Vector, a: int, b: int, bend: Fraction) -> Fraction:
        """The largest loss of a segment: that of a quadratic, between its ends where the middle one
        of its coefficients in Bernstein's form is the largest."""
        crossed = dot(p.rows[a], self.loss[b]) + dot(p.rows[b], self.loss[a])
        low, middle, high = losses[a], (crossed / (1 << p.bits) - bend) / 2, losses[b]
        if middle <= max(low, high):
            return max(low, high)
        return (middle * middle - low * high) / (2 * middle - low - high)

    def add_objective(self, bound: Lagrangian, plain: object, counts: bool) -> None:
        """π_s c(s,o); ω_s c(s,o) for weights ω >= 0, all 1 if none are given, whose sum is divided
        by in the end, and after the secrets α of every segment, then β, of the point that is mixed
        of its ends like that; or an attack on the distortion."""
        goal, worst, terms = None, self.objective == "worst_loss", self.n + 2 * len(self.segments)
        if plain is not None:
            need(self.objective != "expected_loss", "an expected loss has no multipliers")
            goal = entries(plain, *((1, terms) if worst else (self.m, len(self.attacked))))
        if not counts:
            return
        if self.attacked:
            bound.add_attack(ONE, goal or [], self.attacked)
        elif worst:
            given = {s: cut(value) for _, s, value in goal or ()}
            weights = [ONE if goal is None else given.get(s, ZERO) for s in range(terms)]
            bound.unit = sum(weights, ZERO)
            bound.add_losses(weights[: self.n], self.loss)
            half = self.n + len(self.segments)
            first, second = weights[self.n : half], weights[half:]
            for each, (x, y) in paired(self.segments, list(paired(first, second))):
                if x + y > 0:
                    at = self.between(*each, y / (x + y))
                    bound.add_row(each[0], x, at)
                    bound.add_row(each[1], y, at)
        else:
            bound.add_losses(self.prior, self.loss)

    def between(self, a: int, b: int, bend: Fraction, t: Fraction) -> Vector:
        """The loss of every report at the share t of the way from a to b."""
        ends = paired(self.loss[a], self.loss[b])
        return [(1 - t) * c + t * d - t * (1 - t) * bend for c, d in ends]
