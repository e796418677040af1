"""Bounds by cells of the secrets (theory, "Cells and what proves them")."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from optmech_audit.document import fields, fractions, keys, listing, members, together, whole
from optmech_audit.mechanisms import MOST_ENTRIES, SCALE, Lagrangian
from optmech_audit.numbers import LARGEST_LOG, ceiling, exp_bounds, inside, need, paired
from optmech_audit.statements import Statement

Growth = Callable[[int, int], Fraction | None]  # a number >= the log ratio stated for two secrets
FINE = 1 << 64  # powers of e are whole numbers over this, rounded up


class Cells:
    """A bound on every mechanism P from its means Q[C,o] over cells, weighted by the prior: rows of
    Q sum to one, Q[C,o] <= Λ Q[C',o] where a plan moves C to C', and C pays at least κ Q[C,o] for
    o. Masses are in multiples of 2^-SCALE."""

    def __init__(self, plain: object, stated: Statement, logs: Growth) -> None:
        cells, self.multipliers, self.plans, self.costs = members(
            plain, "cells multipliers plans costs"
        )
        self.stated, self.logs = stated, logs
        self.known = cache(self.grown)  # of secrets that are asked for often
        self.mass = [int(p * 2**SCALE) for p in stated.prior]
        held: dict[int, list[int]] = {}
        for s, cell in enumerate(listing(cells, stated.n)):
            held.setdefault(whole(cell, MOST_ENTRIES), []).append(s)
        parts = ([s for s in held[cell] if self.mass[s]] for cell in sorted(held))
        self.groups = [group for group in parts if group]
        self.total = [sum(self.mass[s] for s in group) for group in self.groups]

    def grown(self, s: int, t: int) -> int | None:
        """A number >= FINE e^r of two secrets; none where nothing is stated, or too much."""
        r = self.logs(s, t)
        if s == t or r is None or r > LARGEST_LOG:
            return FINE if s == t else None
        return math.ceil(exp_bounds(r, 64).high * FINE)

    def arrivals(self, plan: Plans, first: int, second: int) -> list[int] | None:
        """FINE times what arrives at every member of the second cell when shares of sum one of all
        mass of the first go as the plan says, times e^r; none where some cannot."""
        sources, targets = self.groups[first], self.groups[second]
        arrived, possible = [0] * len(targets), True
        power = self.known if first == second else self.grown
        for s in sources:
            arcs = plan.next_arcs(len(targets))
            sent = sum(share for _, share in arcs)
            possible &= sent > 0
            for j, share in arcs:
                grown = power(s, targets[j])
                if grown is None:
                    possible = False
                else:
                    arrived[j] += ceiling(self.mass[s] * share * grown, sent)
        return arrived if possible else None

    def bound(self) -> Fraction:
        """Of all mechanisms, by any multipliers >= 0 of the cells (theory, Theorem 1)."""
        bound = Lagrangian([[True] * self.stated.m for _ in self.groups])
        with inside("costs"):
            self.pay(bound)
        with inside("plans"):
            ratios = {pair: -ratio for pair, ratio in self.ratios().items()}
        with inside("multipliers"):
            names = "windowed lifted approximate distortion loss_limits objective"
            given = dict(keys(self.multipliers, f"ratio {names}", "divergence"))
            charged, objective = given.pop("ratio"), given.pop("objective")
            none = objective in (None, []) and all(part == [] for part in given.values())
            need(none, "of nothing")
            if charged is not None:
                bound.add_ratios(charged, lambda i, j, _: ratios.get((i, j)))
        return bound.value()

    def ratios(self) -> dict[tuple[int, int], Fraction]:
        """Λ of pairs of cells, from above: any plan proves one."""
        first, second, *arcs = members(self.plans, "first second arcs target share")
        out: dict[tuple[int, int], Fraction] = {}
        plan, count, last = Plans(*arcs), len(self.groups), (-1, -1)
        for i_, j_ in together(first, second):
            i, j = whole(i_, count), whole(j_, count)
            need(i != j, "a plan from a cell to itself")
            need(last < (i, j), "pairs of cells are out of order")
            last = i, j
            arrived = self.arrivals(plan, i, j)
            if arrived is not None:
                # rounded once, as masses may be of any sizes
                over = max(
                    ceiling(v * FINE * self.total[j], self.mass[t] * self.total[i])
                    for t, v in paired(self.groups[j], arrived)
                )
                out[i, j] = Fraction(over, FINE * FINE)
        plan.end()
        return out

    def pay(self, bound: Lagrangian) -> None:
        """What each cell pays for every observable, at least, is added to the bound."""
        if "radii" in fields(self.costs):
            need(sum(len(g) ** 2 for g in self.groups) <= MOST_ENTRIES, "cells of too many secrets")
            radii = fractions(keys(self.costs, "radii")["radii"], self.stated.n)
            for k, group in enumerate(self.groups):
                self.pay_box(bound.L[k], group, [radii[s] for s in group])
            return
        plan = Plans(*members(self.costs, "arcs target share"))
        for k, group in enumerate(self.groups):
            for o in range(self.stated.m):
                arrived = self.arrivals(plan, k, k)
                paid = [
                    (self.total[k] * self.mass[t] * c.numerator * FINE) // (c.denominator * v)
                    for t, v in zip(group, arrived or [], strict=arrived is not None)
                    for c in (self.stated.loss[t][o],)
                    if v
                ]
                bound.L[k][o] += min(paid, default=0)
        plan.end()

    def pay_box(self, row: list[int], group: list[int], radii: list[Fraction]) -> None:
        """Every column within the ratios is within factors e^{±f} of a level if f_s + f_t >= r_st:
        its mean cost is least where the cheapest are high and the others low."""
        for s, f in paired(group, radii):
            for t, g in paired(group, radii):
                r = self.logs(s, t)
                need(s == t or (r is not None and f + g >= r), "radii are too small")
        if max(radii) > LARGEST_LOG:
            return
        ups = [math.ceil(exp_bounds(f, 64).high * FINE) for f in radii]
        high = [self.mass[s] * u for s, u in paired(group, ups)]
        low = [self.mass[s] * (FINE * FINE // u) for s, u in paired(group, ups)]
        total = sum(self.mass[s] for s in group)
        for o in range(self.stated.m):
            costs = [self.stated.loss[s][o] for s in group]
            grain = max(c.denominator for c in costs)
            units = [int(c * grain) for c in costs]
            over, under = sum(c * v for c, v in paired(units, low)), sum(low)
            least = over * total // (under * grain) if under else min(units) * total // grain
            for k in sorted(range(len(group)), key=units.__getitem__):
                over, under = over + units[k] * (high[k] - low[k]), under + high[k] - low[k]
                least = min(least, over * total // (under * grain))
            row[o] += least


class Plans:
    """Plans as the file has them: source by source so many arcs, their targets and shares."""

    def __init__(self, arcs: object, target: object, share: object) -> None:
        self.arcs, self.sources = together(target, share), iter(listing(arcs))

    def next_arcs(self, targets: int) -> list[tuple[int, int]]:
        found = []
        for _ in range(whole(next(self.sources, None), targets + 1)):
            target, given = next(self.arcs, (None, None))
            share = whole(given, 2**32)
            need(share > 0, "a share of nothing")
            found.append((whole(target, targets), share))
        return found

    def end(self) -> None:
        need(next(self.sources, None) is None and next(self.arcs, None) is None, "arcs of nothing")
