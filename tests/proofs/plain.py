"""What a text for the proved checker claims, decided once more from ``proofs/Definitions.v``.

Fractions, and balls of python-flint for powers of e. Nothing is shared with the checker or with
what writes the text: ``accepted`` is None where a text cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import factorial
from typing import Any, NamedTuple

from flint import arb, ctx, fmpq

WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
Table = list[list[Fraction]]


class UnreadError(Exception):
    """The text is none of its kind."""


class RefusedError(Exception):
    """What the text claims is not so, or not proved by it."""


class Words:
    """Words of a text from one place on."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def word(self) -> str:
        while self.at < len(self.text) and self.text[self.at] in " \n":
            self.at += 1
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \n":
            self.at += 1
        if begin == self.at:
            raise UnreadError
        return self.text[begin : self.at]

    def line(self) -> str:
        stop = self.text.find("\n", self.at)
        if stop < 0:
            raise UnreadError
        found, self.at = self.text[self.at : stop], stop + 1
        return found

    def expect(self, *words: str) -> str:
        found = self.word()
        if found not in words:
            raise UnreadError
        return found

    def number(self) -> int:
        word = self.word()
        if not WHOLE.fullmatch(word) or word == "-0":
            raise UnreadError
        return int(word)

    def small(self, digits: int = 7) -> int:
        word = self.word()
        if not WHOLE.fullmatch(word) or word[0] == "-" or len(word) > digits:
            raise UnreadError
        return int(word)

    def bits(self) -> int:
        return self.small(6)

    def table(self, n: int, m: int) -> list[list[int]]:
        return [[self.number() for _ in range(m)] for _ in range(n)]


class Rate(NamedTuple):
    """a/b, or a/b ln c with the bounds of that logarithm that the text has."""

    share: Fraction | None
    log: Fraction | None
    sound: bool
    low: Fraction
    high: Fraction

    @property
    def below(self) -> Fraction:
        return (self.share or Fraction(0)) * self.low


class Power(NamedTuple):
    """e^x as a fraction, where it is a whole power, else between balls of any precision."""

    exact: Fraction | None
    low: Callable[[], Any]
    high: Callable[[], Any]


def quotient(a: int, b: int) -> Fraction:
    if b <= 0:
        raise RefusedError("a denominator")
    return Fraction(a, b)


def ball_of(q: Fraction) -> Any:
    return arb(fmpq(q.numerator, q.denominator))


def read_rate(words: Words) -> Rate:
    words.expect("rate")
    a, b = words.number(), words.number()
    share = Fraction(a, b) if b > 0 and a >= 0 else None
    sound = share is not None
    if words.expect("plain", "log") == "plain":
        return Rate(share, None, sound, Fraction(1), Fraction(1))
    c, d, low, high = (words.number() for _ in range(4))
    over = 1 << words.small(4)
    log = Fraction(c, d) if d > 0 and c > 0 else None
    sound = sound and log is not None and log >= 1 and low >= 0 and high >= 0
    if sound:
        assert log is not None
        ends = Fraction(low, over), Fraction(high, over)
        sound = (
            low == 0
            if log == 1
            else (
                decided(lambda: ball_of(log).log() - ball_of(ends[0]))
                and decided(lambda: ball_of(ends[1]) - ball_of(log).log())
            )
        )
    return Rate(share, log, sound, Fraction(low, over), Fraction(high, over))


def precise(make: Callable[[], Any]) -> Callable[[int], Any]:
    """A ball of so many bits."""

    def found(bits: int) -> Any:
        before, ctx.prec = ctx.prec, bits
        try:
            return make()
        finally:
            ctx.prec = before

    return found


def decided(difference: Callable[[], Any]) -> bool:
    """Whether a number that is not 0 is positive; False where 4,096 bits do not tell."""
    ball = precise(difference)
    for bits in (300, 1100, 4500):
        found = ball(bits)
        if found > 0 or found < 0:
            return bool(found > 0)
    return False


def power(rate: Rate, distance: Fraction) -> Power:
    assert rate.share is not None
    exponent, log = rate.share * distance, rate.log
    whole = exponent.denominator == 1 and exponent <= 2048
    exact = None
    if exponent == 0:
        exact = Fraction(1)
    elif log is not None and whole:
        exact = log**exponent.numerator
    if exact is not None:
        return Power(exact, lambda: ball_of(exact), lambda: ball_of(exact))
    low, high = exponent * rate.low, exponent * rate.high
    return Power(None, lambda: ball_of(low).exp(), lambda: ball_of(high).exp())


def at_most(x: Fraction, rate: Rate, distance: Fraction, y: Fraction) -> bool:
    """x <= e^(rate distance) y."""
    if x <= y:
        return True
    e = power(rate, distance)
    if e.exact is not None:
        return x <= e.exact * y
    exponent = (rate.share or Fraction(0)) * distance
    top, root = exponent.numerator, exponent.denominator
    powers = rate.log is not None and root <= 64 and top <= 2048
    if powers and x**root <= (rate.log or 0) ** top * y**root:
        return True
    return decided(lambda: e.low() * ball_of(y) - ball_of(x))


# what a text holds
class Pair(NamedTuple):
    distance: Fraction
    a: list[int]
    b: list[int]

    def fits(self) -> bool:
        both = self.a + self.b
        return min(both) >= 0 and sum(self.a) == sum(self.b) > 0 and self.distance >= 0


Promise = dict[str, Any]
Item = tuple[int, int, int, list[list[int]]]


def scaled(table: list[list[int]], bits: int) -> Table:
    return [[Fraction(v, 1 << bits) for v in row] for row in table]


def read_pairs(words: Words, n: int) -> list[Pair]:
    words.expect("pairs")
    over, count = 1 << words.bits(), words.small()
    found = []
    for _ in range(count):
        distance = Fraction(words.number(), over)
        sides = [[words.number() for _ in range(n)] for _ in range(2)]
        found.append(Pair(distance, *sides))
    return found


def read_guesses(words: Words, n: int) -> Table:
    words.expect("guesses")
    count, bits = words.small(), words.bits()
    return scaled(words.table(count, n), bits)


def read_table(words: Words, name: str, n: int, m: int) -> Table:
    words.expect(name)
    bits = words.bits()
    return scaled(words.table(n, m), bits)


def flags(words: Words, n: int, m: int) -> list[list[bool]]:
    return [[words.expect("0", "1") == "1" for _ in range(m)] for _ in range(n)]


def read_promise(words: Words, n: int, m: int) -> Promise:
    kinds = ["ratios", "lifted", "approximate", "adversary", "mean", "means", "support", "fixed"]
    kind = words.expect(*kinds)
    p: Promise = {"kind": kind}
    if kind in ("ratios", "lifted", "approximate"):
        p["rate"] = read_rate(words)
    if kind == "ratios":
        words.expect("distances")
        over = 1 << words.bits()
        p["d"] = [[None] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                word = words.word()
                if word != "-":
                    if not WHOLE.fullmatch(word) or word == "-0":
                        raise UnreadError
                    p["d"][i][j] = Fraction(int(word), over)
        words.expect("window")
        every = words.expect("all", "some") == "all"
        p["seen"] = [[True] * m for _ in range(n)] if every else flags(words, n, m)
        p["plain"] = every
    elif kind == "lifted":
        p["pairs"] = read_pairs(words, n)
    elif kind == "approximate":
        words.expect("delta")
        p["limit"] = words.number(), words.number()
        p["pairs"] = read_pairs(words, n)
    elif kind == "adversary":
        words.expect("least")
        p["limit"] = words.number(), words.number()
        p["w"] = read_guesses(words, n)
    elif kind == "mean":
        words.expect("most")
        p["limit"] = words.number(), words.number()
        p["u"] = read_table(words, "costs", n, m)
    elif kind == "means":
        words.expect("most")
        p["den"] = words.number()
        p["most"] = [words.number() for _ in range(n)]
        p["u"] = read_table(words, "costs", n, m)
    elif kind == "support":
        p["seen"] = flags(words, n, m)
    else:
        over = 1 << words.bits()
        p["rows"] = [
            None
            if words.expect("-", "row") == "-"
            else [Fraction(words.number(), over) for _ in range(m)]
            for _ in range(n)
        ]
    return p


def read_item(words: Words) -> Item:
    i, j, o, rows = (words.small() for _ in range(4))
    return i, j, o, [[words.number() for _ in range(words.small())] for _ in range(rows)]


def read_items(words: Words, promises: list[Promise]) -> list[list[Item]]:
    found = []
    for _ in promises:
        words.expect("items")
        found.append([read_item(words) for _ in range(words.small())])
    return found


# promises
def pushed(weights: list[int], rows: Table, o: int) -> Fraction:
    total = sum(weights)
    return sum((w * row[o] for w, row in zip(weights, rows, strict=True)), Fraction(0)) / total


def guessed(w: Table, rows: Table) -> Fraction:
    n = len(rows)
    return sum(
        (min(sum((t[s] * rows[s][o] for s in range(n)), Fraction(0)) for t in w)
         for o in range(len(rows[0]))),
        Fraction(0),
    )  # fmt: skip


def mean(u: list[Fraction], row: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(u, row, strict=True)), Fraction(0))


def stated(p: Promise) -> None:
    """Whether what is stated is a statement."""
    if "rate" in p and not p["rate"].sound:
        raise RefusedError("the rate")
    if p["kind"] == "adversary" and not p["w"]:
        raise RefusedError("no guesses")


def kept(p: Promise, rows: Table) -> bool:
    kind, n, m = p["kind"], len(rows), len(rows[0])
    if kind == "ratios":
        d, seen = p["d"], p["seen"]
        return all(
            d[i][j] is None
            or (d[i][j] >= 0
            and all(
                at_most(rows[i][o], p["rate"], d[i][j], rows[j][o])
                for o in range(m) if seen[i][o]
            ))
            for i in range(n) for j in range(n)
        )  # fmt: skip
    if kind in ("lifted", "approximate") and not all(pair.fits() for pair in p["pairs"]):
        return False
    if kind == "lifted":
        return all(
            at_most(pushed(a, rows, o), p["rate"], d, pushed(b, rows, o))
            for d, a, b in p["pairs"] for o in range(m)
        )  # fmt: skip
    if kind == "approximate":
        delta = quotient(*p["limit"])
        return all(excess_fits(p["rate"], pair, rows, delta) for pair in p["pairs"])
    if kind == "adversary":
        return guessed(p["w"], rows) >= quotient(*p["limit"])
    if kind == "mean":
        paid = sum((mean(u, row) for u, row in zip(p["u"], rows, strict=True)), Fraction(0))
        return paid <= quotient(*p["limit"])
    if kind == "means":
        most = [quotient(q, p["den"]) for q in p["most"]]
        return all(mean(p["u"][s], rows[s]) <= most[s] for s in range(n))
    if kind == "support":
        return all(p["seen"][s][o] or rows[s][o] == 0 for s in range(n) for o in range(m))
    return all(given is None or given == row for given, row in zip(p["rows"], rows, strict=True))


def excess_fits(rate: Rate, pair: Pair, rows: Table, delta: Fraction) -> bool:
    e = power(rate, pair.distance)
    both = [(pushed(pair.a, rows, o), pushed(pair.b, rows, o)) for o in range(len(rows[0]))]
    if e.exact is not None:
        return sum((max(x - e.exact * y, Fraction(0)) for x, y in both), Fraction(0)) <= delta
    over = [(x, y) for x, y in both if decided(lambda x=x, y=y: ball_of(x) - e.low() * ball_of(y))]  # type: ignore[misc]
    if not over:
        return delta >= 0
    x, y = (sum(part, Fraction(0)) for part in zip(*over, strict=True))
    return decided(lambda: ball_of(delta - x) + e.low() * ball_of(y))


# the bound
class Sums:
    """Coefficients of the entries, and a constant: balls."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m
        self.table: list[list[Any]] = [[arb(0)] * m for _ in range(n)]
        self.constant: Any = arb(0)

    def add(self, s: int, o: int, v: Any) -> None:
        if not (0 <= s < self.n and 0 <= o < self.m):
            raise RefusedError("an entry that there is not")
        self.table[s][o] = self.table[s][o] + v

    def column(self, o: int, weights: list[Fraction], v: Any) -> None:
        for s, w in enumerate(weights):
            if w:
                self.add(s, o, v * ball_of(w))

    def least(self) -> Any:
        total = self.constant
        for row in self.table:
            least = row[0]
            for v in row[1:]:
                least = least.min(v)
            total = total + least
        return total


def one_number(values: list[list[int]]) -> int:
    if [len(row) for row in values] != [1]:
        raise RefusedError("an item")
    return values[0][0]


def multiplier(values: list[list[int]]) -> int:
    v = one_number(values)
    if v < 0:
        raise RefusedError("a negative multiplier")
    return v


def strategy(values: list[list[int]], w: Table, m: int) -> tuple[int, list[list[int]]]:
    if not values or len(values[0]) != 1 or len(values) != m + 1:
        raise RefusedError("an item")
    total, played = values[0][0], values[1:]
    if total < 0 or any(
        len(own) != len(w) or min(own, default=0) < 0 or sum(own) != total for own in played
    ):
        raise RefusedError("a strategy")
    return total, played


def add_strategy(sums: Sums, w: Table, played: list[list[int]]) -> None:
    for o, own in enumerate(played):
        for costs, v in zip(w, own, strict=True):
            if v:
                sums.column(o, costs, arb(-v))


def charge(p: Promise, item: Item, sums: Sums) -> None:
    """Add an inequality <= 0 that follows from a promise. The unit of a multiplier is what makes
    its inequality one of whole numbers, which is another in every kind."""
    (i, j, o, values), kind, n, m = item, p["kind"], sums.n, sums.m
    if kind == "ratios":
        v = multiplier(values)
        if not (i < n and j < n and o < m) or p["d"][i][j] is None or not p["seen"][i][o]:
            raise RefusedError("no such ratio")
        if p["d"][i][j] < 0:
            raise RefusedError("a negative distance")
        sums.add(i, o, arb(v) * 2**192)
        sums.add(j, o, -v * power(p["rate"], p["d"][i][j]).high() * 2**192)
    elif kind in ("lifted", "approximate"):
        if i >= len(p["pairs"]) or not p["pairs"][i].fits():
            raise RefusedError("no such pair")
        d, a, b = p["pairs"][i]
        e = power(p["rate"], d).high() * 2**192
        x, y = ([Fraction(v) for v in side] for side in (a, b))
        if kind == "lifted":
            v = multiplier(values)
            if o >= m:
                raise RefusedError("no such entry")
            sums.column(o, x, arb(v) * 2**192)
            sums.column(o, y, -v * e)
        else:
            if [len(row) for row in values] != [1, m]:
                raise RefusedError("an item")
            (total,), tests = values
            top, bottom = p["limit"]
            if total < 0 or bottom <= 0 or not all(0 <= t <= total for t in tests):
                raise RefusedError("a test")
            for place, t in enumerate(tests):
                sums.column(place, x, arb(t * bottom) * 2**192)
                sums.column(place, y, -t * bottom * e)
            sums.constant = sums.constant - arb(total * top * sum(a)) * 2**192
    elif kind == "adversary":
        top, bottom = p["limit"]
        quotient(top, bottom)
        total, played = strategy(values, p["w"], m)
        unit = unit_of(p["w"])
        add_strategy(sums, [[c * bottom * unit for c in costs] for costs in p["w"]], played)
        sums.constant = sums.constant + arb(total * top * unit)
    elif kind == "mean":
        v, (top, bottom), unit = multiplier(values), p["limit"], unit_of(p["u"])
        quotient(top, bottom)
        for s in range(n):
            for place in range(m):
                sums.add(s, place, ball_of(v * bottom * unit * p["u"][s][place]))
        sums.constant = sums.constant - arb(v * top * unit)
    elif kind == "means":
        v, unit = multiplier(values), unit_of(p["u"])
        quotient(1, p["den"])
        if i >= n:
            raise RefusedError("no such secret")
        for place in range(m):
            sums.add(i, place, ball_of(v * p["den"] * unit * p["u"][i][place]))
        sums.constant = sums.constant - arb(v * p["most"][i] * unit)
    elif kind == "support":
        v = one_number(values)
        if not (i < n and o < m) or p["seen"][i][o]:
            raise RefusedError("no such zero")
        sums.add(i, o, arb(v))
    else:
        v = one_number(values)
        if not (i < n and o < m) or p["rows"][i] is None:
            raise RefusedError("no such row")
        unit = p["unit"]
        sums.add(i, o, arb(v * unit))
        sums.constant = sums.constant - ball_of(v * unit * p["rows"][i][o])


UNITS: dict[int, int] = {}


def unit_of(table: Table) -> int:
    """The power of two that a table is stated over."""
    return UNITS[id(table)]


def objective(goal: dict[str, Any], item: Item, sums: Sums) -> int:
    """Its terms, and what the objective is multiplied by in them."""
    _, _, _, values = item
    kind, n, m = goal["kind"], sums.n, sums.m
    if kind == "expected":
        v, unit = one_number(values), unit_of(goal["loss"]) * goal["unit"]
        if v <= 0:
            raise RefusedError("the weight of the objective")
        weights = [v * unit * q for q in goal["prior"]]
        scale = v * unit
    elif kind == "worst":
        if len(values) != 1 or len(values[0]) != n or min(values[0]) < 0 or not sum(values[0]):
            raise RefusedError("the weights of the objective")
        weights = [Fraction(v * unit_of(goal["loss"])) for v in values[0]]
        scale = sum(values[0]) * unit_of(goal["loss"])
    else:
        total, played = strategy(values, goal["w"], m)
        if total <= 0:
            raise RefusedError("the strategy of the objective")
        unit = unit_of(goal["w"])
        add_strategy(sums, [[c * unit for c in costs] for costs in goal["w"]], played)
        return total * unit
    for s in range(n):
        for o in range(m):
            sums.add(s, o, ball_of(weights[s] * goal["loss"][s][o]))
    return scale


def cost_of(goal: dict[str, Any], rows: Table) -> Fraction:
    if goal["kind"] == "guessed":
        return -guessed(goal["w"], rows)
    losses = [mean(u, row) for u, row in zip(goal["loss"], rows, strict=True)]
    return max(losses) if goal["kind"] == "worst" else mean(goal["prior"], losses)


def proper(goal: dict[str, Any], n: int) -> bool:
    if goal["kind"] == "guessed":
        return bool(goal["w"])
    losses = all(c >= 0 for row in goal["loss"] for c in row)
    if goal["kind"] == "worst":
        return losses
    total = sum(goal["prior"], Fraction(0))
    return losses and min(goal["prior"]) >= 0 and abs(total - 1) <= Fraction(n, 2**52)


def distributions(rows: Table) -> bool:
    return all(min(row, default=-1) >= 0 and sum(row) == 1 for row in rows)


# meshes
Place = tuple[Fraction, Fraction]


def turn(a: Place, b: Place, z: Place) -> Fraction:
    return (b[0] - a[0]) * (z[1] - a[1]) - (b[1] - a[1]) * (z[0] - a[0])


def on_mesh(words: Words, n: int, m: int, doc: dict[str, Any]) -> None:
    doc["epsilon"] = read_rate(words)
    words.expect("degree")
    d = words.small()
    if d > 9:
        raise UnreadError
    words.expect("coordinates")
    over = 1 << words.bits()

    def place() -> Place:
        return Fraction(words.number(), over), Fraction(words.number(), over)

    words.expect("triangles")
    order = [(d - j - k, j, k) for k in range(d + 1) for j in range(d + 1 - k)]
    doc["triangles"] = [
        ([place() for _ in range(3)], {at: words.small() for at in order})
        for _ in range(words.small())
    ]
    words.expect("rows")
    rows = words.small()
    doc["control"] = read_table(words, "matrix", rows, m)
    words.expect("places")
    doc["places"] = [place() for _ in range(n)]
    doc["degree"] = d


def tiles(triangles: list[Any], d: int) -> bool:
    edges = []
    for (a, b, c), rows in triangles:
        if turn(a, b, c) <= 0:
            return False
        along = [(i, d - i) for i in range(d, -1, -1)]
        edges += [
            (a, b, [rows[i, j, 0] for i, j in along]),
            (b, c, [rows[0, i, j] for i, j in along]),
            (c, a, [rows[j, 0, i] for i, j in along]),
        ]
    known = [(a, b, rows) for a, b, rows in edges]
    every = [v for places, _ in triangles for v in places]
    for a, b, rows in edges:
        twins = any(x == b and y == a and own == rows[::-1] for x, y, own in known)
        if not twins and any(turn(a, b, v) < 0 for v in every):
            return False
    for k, (one, _) in enumerate(triangles):
        for other, _ in triangles[:k]:
            if not (apart(one, other) or apart(other, one)):
                return False
    return True


def apart(one: list[Place], other: list[Place]) -> bool:
    return any(
        all(turn(one[k], one[(k + 1) % 3], v) <= 0 for v in other) for k in range(3)
    )  # fmt: skip


def everywhere(doc: dict[str, Any], rows: Table) -> None:
    d, rate, n = doc["degree"], doc["epsilon"], len(rows)
    if d < 1 or not rate.sound or not distributions(doc["control"]):
        raise RefusedError("the mesh's mechanism")
    triangles, control = doc["triangles"], doc["control"]
    if any(k >= len(control) for _, own in triangles for k in own.values()):
        raise RefusedError("a row that there is not")
    if not tiles(triangles, d):
        raise RefusedError("the mesh")
    for (a, b, c), own in triangles:
        # ∂p along both edges from a, in degree d: Σ_k α_k (P[α - e_k + e_1] - P[α - e_k + e_0])
        area = turn(a, b, c)
        for o in range(len(rows[0])):
            for at, row in own.items():
                rises = [Fraction(0), Fraction(0)]
                for k in range(3):
                    if at[k]:
                        near = [v - (place == k) for place, v in enumerate(at)]
                        ends = [
                            control[own[tuple(v + (q == e) for q, v in enumerate(near))]][o]
                            for e in range(3)
                        ]
                        rises[0] += at[k] * (ends[1] - ends[0])
                        rises[1] += at[k] * (ends[2] - ends[0])
                gx, gy = (rises[0] * (c[q] - a[q]) - rises[1] * (b[q] - a[q]) for q in (0, 1))
                if gx**2 + gy**2 > (rate.below * area * control[row][o]) ** 2:
                    raise RefusedError("a gradient")
    for s, z in enumerate(doc["places"]):
        inside = [
            (t, own) for t, own in triangles
            if all(turn(t[k], t[(k + 1) % 3], z) >= 0 for k in range(3))
        ]  # fmt: skip
        if not inside:
            raise RefusedError("a place outside")
        (a, b, c), own = inside[0]
        area = turn(a, b, c)
        lam = turn(b, c, z) / area, turn(c, a, z) / area, turn(a, b, z) / area
        for o in range(len(rows[0])):
            value = Fraction(0)
            for at, row in own.items():
                share = Fraction(factorial(d))
                for k in range(3):
                    share *= lam[k] ** at[k] / factorial(at[k])
                value += share * control[row][o]
            if value != rows[s][o]:
                raise RefusedError("the row of a place")
    first = doc["promises"][0] if doc["promises"] else {"kind": ""}
    if first["kind"] != "ratios" or first["rate"][:2] != rate[:2]:
        raise RefusedError("the ratios of the places")
    if not first["same"]:
        raise RefusedError("the rate of the places, written otherwise")
    for i in range(n):
        for j in range(n):
            (x, y), (u, v) = doc["places"][i], doc["places"][j]
            limit = first["d"][i][j]
            if limit is not None and (limit < 0 or limit**2 < (x - u) ** 2 + (y - v) ** 2):
                raise RefusedError("a distance that is too small")


# a text
def accepted(text: str) -> bool | None:
    """Whether its claims hold and are proved by it; None where it cannot be read."""
    try:
        doc = read(text)
    except UnreadError:
        return None
    before, ctx.prec = ctx.prec, 1400
    try:
        judge(doc)
    except RefusedError:
        return False
    finally:
        ctx.prec = before
        UNITS.clear()
    return True


def read(text: str) -> dict[str, Any]:
    words = Words(text)
    words.expect("optmech-checked")
    words.expect("1")
    words.expect("design")
    words.word()
    words.expect("words")
    count = words.small()
    if words.line().strip(" "):
        raise UnreadError
    for _ in range(count):
        words.line()
    words.expect("size")
    n, m = words.small(), words.small()
    doc: dict[str, Any] = {"n": n, "m": m, "kind": words.expect("infeasible", "matrix")}
    if doc["kind"] == "matrix":
        bits = words.bits()
        doc["rows"] = scaled(words.table(n, m), bits)
        doc["goal"] = read_goal(words, n, m)
    words.expect("promises")
    doc["promises"] = [counted(words, read_promise, n, m) for _ in range(words.small())]
    if doc["kind"] == "matrix":
        for name in ("cost", "least"):
            words.expect(name)
            doc[name] = words.number(), words.number()
    words.expect("proof")
    if doc["kind"] == "matrix":
        doc["goal item"] = read_item(words)
    doc["items"] = read_items(words, doc["promises"])
    last = words.expect("end") if doc["kind"] != "matrix" else words.expect("end", "everywhere")
    if last == "everywhere":
        before = words.at
        on_mesh(words, n, m, doc)
        doc["kind"] = "everywhere"
        for p in doc["promises"][:1]:
            if "text" in p:
                stated_rate = words.text[before:].split()[:6]
                p["same"] = stated_rate[1:3] == p["text"][1:3] and stated_rate[4:6] == (
                    p["text"][4:6] if p["text"][3] == "log" else stated_rate[4:6]
                )
        words.expect("end")
    if words.text[words.at :].strip(" \n"):
        raise UnreadError
    return doc


def counted(words: Words, make: Callable[..., Promise], n: int, m: int) -> Promise:
    """A promise, with the powers of two that its tables are over."""
    begin = words.at
    p = make(words, n, m)
    given = words.text[begin : words.at].split()
    if p["kind"] == "ratios":
        p["text"] = given[1:7]
    if p["kind"] == "fixed":
        p["unit"] = 1 << int(given[1])
    if "u" in p:
        UNITS[id(p["u"])] = 1 << int(given[given.index("costs") + 1])
    if "w" in p:
        UNITS[id(p["w"])] = 1 << int(given[given.index("guesses") + 2])
    return p


def read_goal(words: Words, n: int, m: int) -> dict[str, Any]:
    words.expect("objective")
    begin = words.at
    goal: dict[str, Any] = {"kind": words.expect("expected", "worst", "guessed")}
    if goal["kind"] == "guessed":
        goal["w"] = read_guesses(words, n)
        UNITS[id(goal["w"])] = 1 << int(words.text[begin:].split(None, 4)[3])
        return goal
    if goal["kind"] == "expected":
        words.expect("prior")
        goal["unit"] = 1 << words.bits()
        goal["prior"] = [Fraction(words.number(), goal["unit"]) for _ in range(n)]
    begin = words.at
    goal["loss"] = read_table(words, "loss", n, m)
    UNITS[id(goal["loss"])] = 1 << int(words.text[begin:].split(None, 2)[1])
    return goal


def judge(doc: dict[str, Any]) -> None:
    n, m = doc["n"], doc["m"]
    if n == 0 or m == 0:
        raise RefusedError("nobody, or nothing")
    for p in doc["promises"]:
        stated(p)
    sums = Sums(n, m)
    if doc["kind"] != "infeasible":
        rows = doc["rows"]
        if not distributions(rows):
            raise RefusedError("a distribution")
        if doc["kind"] == "everywhere":
            everywhere(doc, rows)
        if not proper(doc["goal"], n):
            raise RefusedError("the goal")
        if cost_of(doc["goal"], rows) > quotient(*doc["cost"]):
            raise RefusedError("the cost")
        for k, p in enumerate(doc["promises"]):
            if not kept(p, rows):
                raise RefusedError(f"promise {k}")
        scale = objective(doc["goal"], doc["goal item"], sums)
    for p, own in zip(doc["promises"], doc["items"], strict=True):
        for item in own:
            charge(p, item, sums)
    if doc["kind"] == "infeasible":
        if not sums.least() > 0:
            raise RefusedError("no contradiction")
    elif not sums.least() >= ball_of(quotient(*doc["least"]) * scale):
        raise RefusedError("the bound")
