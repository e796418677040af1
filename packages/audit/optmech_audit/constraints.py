"""Kinds of constraints, and the inequalities that they state."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, count, product

from optmech_audit.document import (
    INFINITE,
    Body,
    Matrix,
    Vector,
    distribution,
    fractions,
    indices,
    keys,
    listing,
    matrix,
    members,
    one_of,
    text,
    together,
    weighed,
    whole,
)
from optmech_audit.inequalities import (
    DIVERGENCES,
    NEAR,
    Approximate,
    Bias,
    Distortion,
    Divergences,
    Fixed,
    Information,
    Lifted,
    LinearRows,
    LossLimit,
    Ratios,
    Row,
    Support,
    blind,
    leakage,
    order_of,
)
from optmech_audit.mechanisms import MOST_ENTRIES, Mask, Pair, Shares, read_mechanism
from optmech_audit.networks import along_segments, roads_of
from optmech_audit.numbers import (
    ONE,
    ZERO,
    Interval,
    Real,
    need,
    paired,
    real,
    rounded_up,
    transposed,
)
from optmech_audit.places import Places
from optmech_audit.statements import (
    KINDS,
    Inequalities,
    Statement,
    first_less,
    gain_rows,
    signed_rows,
    unit_matrix,
)

MOST_NUMBERS = 10**9


def metric_privacy(stated: Statement, c: Body) -> Inequalities:
    """ε d for pairs of secrets within the threshold, at the observables near the first of them."""
    if "everywhere" in c:
        yield along_segments(stated, c)
        return
    keys(c, "kind epsilon distance threshold observable_threshold delta")
    near = window = None
    if c["observable_threshold"] is None:
        d = stated.among(c["distance"], infinite=True)
    else:
        d, reach = stated.across(c["distance"])
        window = within(reach, c["observable_threshold"])
    if c["threshold"] is not None:
        near = within(d, c["threshold"])
    some = None if near is None and window is None else d
    yield from between_secrets(stated, c, d, near, window, some)


def differential_privacy(stated: Statement, c: Body) -> Inequalities:
    """ε for neighbours, or for all points of a line or network, whose rows are mixtures."""
    if "everywhere" in c:
        roads_of(c["everywhere"], stated)
        need(c["adjacency"] == "all", "some points are not adjacent")
    keys(c, "kind epsilon adjacency delta", "everywhere")
    n, adjacency, near = stated.n, c["adjacency"], None
    if isinstance(adjacency, dict):
        keys(adjacency, "distance radius")
        near = within(stated.among(adjacency["distance"], True), adjacency["radius"])
    elif adjacency != "all":
        near = [[False] * n for _ in range(n)]
        need(len(listing(adjacency)) > 0, "there is no pair")
        for pair in listing(adjacency):
            i, j = indices(pair, n, 2)
            need(i != j, f"secret {i} is paired with itself")
            near[i][j] = near[j][i] = True
    yield from between_secrets(stated, c, [[ONE] * n for _ in range(n)], near)


def within(d: Matrix, most: object) -> Mask:
    limit = Fraction(real(most, 0))
    return [[v <= limit for v in row] for row in d]


def between_secrets(
    stated: Statement, c: Body, d: Matrix, near: Mask | None, window: Mask | None = None,
    unthresholded: Matrix | None = None,
) -> Inequalities:  # fmt: skip
    """Ratios, or with δ > 0 sums over point masses."""
    kept = [
        {
            t: v
            for t, v in enumerate(row)
            if s != t and v < INFINITE and (near is None or near[s][t])
        }
        for s, row in enumerate(d)
    ]
    epsilon, delta = Real.read(c["epsilon"]), small(c["delta"])
    pairs = [(i, j, v) for i, row in enumerate(kept) for j, v in row.items()]
    if not pairs or (window is not None and not any(map(any, window))):
        stated.say("constrains nothing")
    if not delta.nearest > 0:
        yield Ratios(epsilon, kept, window, unthresholded)
        return
    need(window is None, "a delta with an observable threshold")
    if pairs:
        yield Approximate(epsilon, delta, [Pair({i: ONE}, {j: ONE}, v) for i, j, v in pairs])


def small(value: object) -> Real:
    delta = Real.read(value)
    need(delta.nearest <= 1, "a delta is above 1")
    return delta


def distribution_privacy(stated: Statement, c: Body) -> Inequalities:
    """Of pushed distributions, both ways."""
    keys(c, "kind epsilon pairs delta divergence scale", "among distance radius")
    need(c.get("among") is None and c.get("distance") is None, "distributions that are no pairs")
    given = listing(c["pairs"])
    need(len(given) > 0, "there is no pair")
    scale = [ONE] * len(given) if c["scale"] is None else fractions(c["scale"], len(given))
    pairs: list[Pair] = []
    for pair, factor in paired(given, scale):
        sides: list[list[Vector]] = [[distribution(side, stated.n)] for side in listing(pair, 2)]
        if c.get("radius") is not None:
            need(c["scale"] is None, "a radius with a scale")
            balls = [ball(stated, side, {**c, "within": None}) for (side,) in sides]
            sides = [[[Fraction(float(v)) for v in own] for own in near] for near in balls]
            need(len(pairs) + math.prod(map(len, sides)) <= 10_000, "too many pairs of corners")
        near, far = ([normalised(own) for own in side] for side in sides)
        pairs += [Pair(a, b, factor) for a, b in product(near, far)]
    if all(a == b for a, b, _ in pairs):
        stated.say("constrains nothing")
    epsilon, delta = Real.read(c["epsilon"]), small(c["delta"])
    yield from between_distributions(pairs, epsilon, delta, text(c["divergence"], "the divergence"))


def between_distributions(pairs: list[Pair], epsilon: Real, delta: Real, kind: str) -> Inequalities:
    """Ratios or sums of pushed distributions, or divergences of them."""
    if order_of(kind) is None:
        one_of(kind, ("max", "tv", *DIVERGENCES), "the divergence")
    if kind == "max":
        pairs = both_ways(pairs)
        loose = delta.nearest > 0
        yield Approximate(epsilon, delta, pairs) if loose else Lifted(epsilon, pairs)
        return
    need(not delta.nearest > 0, "a divergence with a delta")
    equal, apart, limits = [], [], []
    for a, b, factor in pairs:
        limit = epsilon.scaled(factor)
        if limit.zero:  # at divergence 0 distributions are equal
            equal.append(Pair(a, b))
            continue
        rate = epsilon.nearest * float(factor)
        need(rate >= 1e-30, "a limit cannot be told from 0")
        need(order_of(kind) is None or rate <= 10, "a limit is too large")
        apart.append(Pair(a, b))
        limits.append(limit)
    if equal:
        yield Lifted(Real(ZERO), both_ways(equal))
    if kind == "tv":  # the same in both directions
        yield from (Approximate(Real(ZERO), v, [p]) for p, v in paired(apart, limits))
    elif apart:
        yield Divergences(kind, both_ways(apart), limits * 2)


def pufferfish(stated: Statement, c: Body) -> Inequalities:
    """Of the laws of the answer given one secret and another."""
    keys(c, "kind epsilon pairs delta", "radius")
    yield from distribution_privacy(stated, {**c, "divergence": "max", "scale": None})


def renyi_privacy(stated: Statement, c: Body) -> Inequalities:
    """Rényi divergence of the reports of all pairs of secrets, both ways; of order 1 that of
    Kullback and Leibler."""
    keys(c, "kind order epsilon distance")
    order, n = Real.read(c["order"]), stated.n
    need(order.log_of is None, "an order is no fraction")
    name = "kl" if order.factor == 1 else f"renyi:{order.factor}"
    apart = None if c["distance"] is None else stated.among(c["distance"])
    pairs = [
        Pair({i: ONE}, {j: ONE}, ONE if apart is None else min(apart[i][j], apart[j][i]))
        for i, j in combinations(range(n), 2)
    ]
    if not pairs:
        stated.say("constrains nothing")
        return
    yield from between_distributions(pairs, Real.read(c["epsilon"]), Real(ZERO), name)


def policy_graph(stated: Statement, c: Body) -> Inequalities:
    """ε times the length of every edge; what follows along paths needs no statement."""
    keys(c, "kind epsilon graph")
    lengths: list[dict[int, Fraction]] = [{} for _ in range(stated.n)]
    need(len(listing(c["graph"])) > 0, "there is no edge")
    for edge in listing(c["graph"]):
        first, second, length = listing(edge, 3)
        i, j, d = whole(first, stated.n), whole(second, stated.n), Fraction(real(length, 0))
        need(i != j, "an edge joins a secret with itself")
        lengths[i][j] = lengths[j][i] = min(d, lengths[i].get(j, d))
    yield Ratios(Real.read(c["epsilon"]), lengths)


def normalised(weights: Vector) -> Shares:
    total = sum(weights, ZERO)
    return {s: v / total for s, v in enumerate(weights) if v}


def both_ways(pairs: list[Pair]) -> list[Pair]:
    return pairs + [Pair(b, a, d) for a, b, d in pairs]


def distortion_privacy(stated: Statement, c: Body) -> Inequalities:
    """An error is concave in the prior: in a ball it is least at a corner, and no larger where
    weights are rounded down."""
    keys(c, "kind minimum distance prior", "radius within")
    least, d = Real.read(c["minimum"]).bounds(), stated.among(c["distance"])
    priors = [stated.prior_of(c["prior"])]
    if "radius" in c or "within" in c:
        keys(c, "kind minimum distance prior radius within")
        priors = [[-rounded_up(-v) for v in near] for near in ball(stated, priors[0], c)]
    for near in priors:
        w = weighed(d, near)
        most = blind(w)
        meant = most < least.high <= most * (1 + NEAR)
        yield Distortion(Interval(most, most) if meant else least, w)


def gain_leakage(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind maximum gain prior radius within")
    most, rows = Real.signed(c["maximum"]), gain_rows(c["gain"], stated.n)
    weights = stated.prior_of(c["prior"])
    if c["radius"] is None:
        need(c["within"] is None, "a distance without a radius")
        yield leakage(most, weighed(rows, weights))
        return
    need(all(v >= 0 for row in rows for v in row), "a gain below 0")
    for near in ball(stated, weights, c):
        yield leakage(most, weighed(rows, list(map(rounded_up, near))))


def ball(stated: Statement, weights: Vector, c: Body) -> list[tuple[Fraction, ...]]:
    """Corners of the priors within the radius of c, in total variation or W_1 of a distance."""
    radius, n = Real.read(c["radius"]).bounds().high, stated.n
    even = [[Fraction(s != t) for t in range(n)] for s in range(n)]
    apart = even if c["within"] is None else stated.among(c["within"])
    need(not any(apart[s][s] for s in range(n)), "a place is away from itself")
    if apart == even:
        return sorted(to_one(weights, radius))
    return sorted(corners(weights, radius, apart))


def with_mass(masses: Vector, t: int, mass: Fraction) -> Vector:
    return [v + mass if s == t else v for s, v in enumerate(masses)]


def to_one(weights: Vector, radius: Fraction) -> set[tuple[Fraction, ...]]:
    """The corners of a ball in total variation: one place receives, and others are emptied in
    some order, until the radius is spent within the last of them (theory, "Leakage")."""
    places, tried, total = range(len(weights)), count(1), sum(weights, ZERO)
    found: set[tuple[Fraction, ...]] = set() if radius else {tuple(weights)}
    for t, last in product(places, places if radius else ()):
        if total - weights[t] <= radius:
            found.add(tuple(with_mass([ZERO] * len(weights), t, total)))
            continue
        if t == last or not weights[last]:
            continue
        # who may still be emptied, what is left to take, and what is there
        stack = [([s for s in places if s not in (t, last) and weights[s]], radius, weights)]
        while stack:
            need(next(tried) < 10**6 and len(found) <= 1000, "too many priors")
            others, left, now = stack.pop()
            if left < 0 or left - sum(weights[s] for s in others) >= weights[last]:
                continue
            if others:
                s, *more = others
                without = with_mass(now, s, -weights[s])
                stack += [(more, left, now), (more, left - weights[s], without)]
            else:
                found.add(tuple(with_mass(with_mass(now, t, radius), last, -left)))
    return found


def corners(weights: Vector, radius: Fraction, apart: Matrix) -> set[tuple[Fraction, ...]]:
    """Priors whose hull has all that mass can be moved to at a cost of at most the radius: the
    mass of every place goes to one, that of one place perhaps to two (theory, "Leakage"). What
    costs less is no corner, unless all is at one place."""
    n, tried = len(weights), count(1)
    used = [s for s in range(n) if weights[s]]
    found: set[tuple[Fraction, ...]] = set()

    def go(k: int, left: Fraction, masses: Vector, split: int | None) -> None:
        need(next(tried) < 10**6 and len(found) <= 1000, "too many priors")
        if k < len(used):
            s = used[k]
            for t in range(n):
                cost = weights[s] * apart[s][t]
                if cost <= left:
                    go(k + 1, left - cost, with_mass(masses, t, weights[s]), split)
            if split is None and left:
                go(k + 1, left, masses, s)
        elif split is None:
            if not left or n - masses.count(ZERO) == 1:
                found.add(tuple(masses))
        else:
            each, mass = apart[split], weights[split]
            for a in (t for t in range(n) if each[t] * mass < left):
                for b in (t for t in range(n) if each[t] * mass > left):
                    share = (left - mass * each[a]) / (each[b] - each[a])
                    found.add(tuple(with_mass(with_mass(masses, a, mass - share), b, share)))

    go(0, radius, [ZERO] * n, None)
    return found


def mutual_information(stated: Statement, c: Body) -> Inequalities:
    """Where nothing may be told, all rows that count are equal."""
    keys(c, "kind maximum prior")
    prior, most = normalised(stated.prior_of(c["prior"])), Real.read(c["maximum"])
    if most.zero:
        first, *others = prior
        pairs = [Pair({first: ONE}, {s: ONE}) for s in others]
        if pairs:
            yield Lifted(Real(ZERO), both_ways(pairs))
        return
    need(most.nearest >= 1e-30, "a limit cannot be told from 0")
    yield Information(most, prior)


def maximal_leakage(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind maximum")
    yield leakage(Real.read(c["maximum"]), unit_matrix(stated.n), natural=True)


def pointwise_maximal_leakage(stated: Statement, c: Body) -> Inequalities:
    """Of every secret that the prior knows, against the mean of all. In a ball weights are rounded
    down, and e^ε with their sum, whose logarithm is at least -2 times what is missing."""
    keys(c, "kind epsilon prior", "radius within")
    epsilon, prior = Real.read(c["epsilon"]), stated.prior_of(c["prior"])
    near, least = [(prior, ONE)], epsilon.bounds().low
    if "radius" in c or "within" in c:
        keys(c, "kind epsilon prior radius within")
        near = []
        for corner in ball(stated, prior, c):
            own = [-rounded_up(-v) for v in corner]
            lost = 2 * (1 - sum(own, ZERO)) / least if least else ZERO
            near.append((own, max(ZERO, -rounded_up(lost - 1))))
    used = [s for s in range(stated.n) if any(own[s] for own, _ in near)]
    yield Lifted(epsilon, [Pair({s: ONE}, normalised(own), d) for own, d in near for s in used])


def additive_capacity(stated: Statement, c: Body) -> Inequalities:
    """1 - Σ_o min_w P[w,o] = Σ_o max_w (P[0,o] - P[w,o])."""
    keys(c, "kind maximum")
    yield leakage(small(c["maximum"]), first_less(stated.n))


def loss_bound(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind maximum worst_case loss")
    worst, most = c["worst_case"], Real.read(c["maximum"]).bounds()
    need(isinstance(worst, bool), "worst_case is neither true nor false")
    loss = stated.loss if c["loss"] is None else matrix(c["loss"], stated.n, stated.m)
    yield LossLimit(most, None if worst else stated.prior, loss)


def bias(stated: Statement, c: Body) -> Inequalities:
    """Of every coordinate of the values, or of the places."""
    keys(c, "kind maximum values reported")
    meant = columns_of(c["values"], stated.secrets, stated.n)
    given = c["values"] if c["reported"] is None else c["reported"]
    reported = columns_of(given, stated.observables, stated.m)
    most = Real.read(c["maximum"])
    need(not most.zero, "a bias of at most 0")
    for of_secrets, of_reports in paired(meant, reported):
        yield Bias(most.bounds(), of_reports, of_secrets)


def columns_of(value: object, places: Places, count: int) -> list[Vector]:
    """Numbers of any sign, one or some for every element, by coordinate; or the coordinates."""
    rows = listing(places.points if value is None else value, count)
    if not isinstance(rows[0], list):
        rows = [[row] for row in rows]
    width = len(listing(rows[0]))
    return [list(column) for column in transposed(signed_rows(rows, width))]


def fixed_rows(stated: Statement, c: Body) -> Inequalities:
    """Rows of whole numbers over a power of two, of secrets in increasing order."""
    keys(c, "kind source bits secrets rows")
    bits, source = whole(c["bits"], 1075), text(c["source"], "the source")
    need(not source or re.fullmatch("sha256:[0-9a-f]{64}", source) is not None, "no digest")
    secrets = indices(c["secrets"], stated.n)
    need(bool(secrets) and sorted(set(secrets)) == secrets, "secrets are out of order")
    rows = read_mechanism({"bits": bits, "rows": c["rows"]}, len(secrets), stated.m).rows
    stated.say(f"rows of the file {source or '(not named)'}, which is not looked at")
    yield Fixed(bits, dict(paired(secrets, rows)))


def support(stated: Statement, c: Body) -> Inequalities:
    keys(c, "kind mask")
    mask = [[v > 0 for v in indices(row, 2, stated.m)] for row in listing(c["mask"], stated.n)]
    need(all(map(any, mask)), "a secret may report nothing")
    yield Support(mask)


Placed = dict[tuple[int, ...], Real]


def placed(plain: object, signed: bool) -> tuple[list[int], Placed]:
    """Numbers at some places of an array: its shape, and the numbers by their indices."""
    shape_, at, value = members(plain, "shape at value")
    shape = indices(shape_, MOST_ENTRIES)
    size, found, before = math.prod(shape), Placed(), -1
    need(0 < len(shape) <= 3 and 0 < size < MOST_NUMBERS, "an array without a shape, or too large")
    for place_, number in together(at, value):
        place, indices_ = whole(place_, size), list[int]()
        need(place > before, "places are out of order")
        rest = before = place
        for length in reversed(shape):
            rest, own = divmod(rest, length)
            indices_.insert(0, own)
        found[tuple(indices_)] = Real.signed(number) if signed else Real.read(number)
    return shape, found


def linear(stated: Statement, c: Body) -> Inequalities:
    """Rows of weights, of which one stands for all reports or all secrets where it is per these."""
    keys(c, "kind weights upper lower equal per tolerance title")
    per, n, m = one_of(c["per"], ("all", "report", "secret"), "per"), stated.n, stated.m
    text(c["title"], "the title")
    shape, found = placed(c["weights"], True)
    sides = {"all": [n, m], "report": [n], "secret": [m]}[per]
    several = shape != sides
    known = (sides, [shape[0], *sides], [shape[0], n, m])
    need(shape in known, "weights of another shape than secrets and reports")
    count, times = shape[0] if several else 1, {"all": 1, "report": m, "secret": n}[per]
    rows: list[list[tuple[int, int, Real]]] = [[] for _ in range(count * times)]
    for place, w in found.items():
        k, *rest = place if several else (0, *place)
        across = len(rest) == 2
        first = [rest[0]] if across or per == "report" else range(n)
        last = [rest[-1]] if across or per == "secret" else range(m)
        for s, o in product(first, last):
            rows[k * times + {"all": 0, "report": o, "secret": s}[per]].append((s, o, w))
    equal, tolerance = c["equal"], Real.read(c["tolerance"])
    need(tolerance.log_of is None and tolerance.factor > 0, "a tolerance that is no number above 0")
    need((equal is None) != (c["upper"] is None and c["lower"] is None), "limits are missing")

    def limits(given: object) -> list[Real | None]:
        if given is None:
            return [None] * count
        own: list[Real | None] = [Real.signed(v) for v in listing(given)]
        need(len(own) in (1, count), "limits of another number of inequalities")
        return own * (count // len(own))

    lower, upper = (limits(c[key] if equal is None else equal) for key in ("lower", "upper"))
    out = []
    for r, row in enumerate(rows):
        largest = max((abs(w.nearest) for *_, w in row), default=0.0)
        slack = ZERO if equal is None else tolerance.factor * Fraction(largest)
        row.sort(key=lambda entry: entry[:2])
        out.append(Row(row, lower[r // times], upper[r // times], slack))
    yield LinearRows(out)


def ratios(stated: Statement, c: Body) -> Inequalities:
    """Log ratios that are multiples of few numbers: of one, of logarithms, or fractions."""
    keys(c, "kind log_ratio of to reports title")
    n, m = stated.n, stated.m
    text(c["title"], "the title")
    shape, found = placed(c["log_ratio"], False)
    mixed = c["of"] is not None
    need(mixed == (c["to"] is not None), "of and to do not go together")
    mixtures = [
        [normalised(distribution(row, n)) for row in listing(c[side])] if mixed else []
        for side in ("of", "to")
    ]
    need(len(mixtures[0]) == len(mixtures[1]), "of and to of different lengths")
    sides = [len(mixtures[0])] if mixed else [n, n]
    need(shape in (sides, [*sides, m]), "log ratios of another shape")
    seen = [True] * m
    if c["reports"] is not None:
        chosen = indices(c["reports"], m)
        need(bool(chosen) and sorted(set(chosen)) == chosen, "reports are out of order")
        seen = [o in set(chosen) for o in range(m)]
    each = len(shape) > len(sides)
    units: dict[tuple[Fraction, Fraction | None], list[tuple[tuple[int, ...], Fraction]]] = {}
    plain = {place: v for place, v in found.items() if v.log_of is None and exactly(v.factor)}
    if plain:
        units[ONE, None] = [(place, v.factor) for place, v in plain.items()]
    for place, v in found.items():
        if place not in plain:
            whole_ = exactly(v.factor) and v.log_of is not None
            unit = (ONE if whole_ else v.factor, v.log_of)
            units.setdefault(unit, []).append((place, v.factor if whole_ else ONE))
    for unit, own in units.items():
        rate = Real(*unit)
        if mixed:
            pairs = [Pair(mixtures[0][k], mixtures[1][k], d) for (k, *_), d in own]
            window = [[ok and (not each or place[1] == o) for o, ok in enumerate(seen)]
                      for place, _ in own]  # fmt: skip
            yield Lifted(rate, pairs, None if all(map(all, window)) else window)
            continue
        for o in sorted({place[2] for place, _ in own}) if each else [None]:
            near: list[dict[int, Fraction]] = [{} for _ in range(n)]
            for (i, j, *rest), d in own:
                if i != j and (o is None or rest == [o]):
                    near[i][j] = d
            at = [ok and o in (None, p) for p, ok in enumerate(seen)]
            if any(near) and any(at):
                yield Ratios(rate, near, None if all(at) else [at] * n)


def exactly(value: Fraction) -> bool:
    """Whether it is a float."""
    return Fraction(float(value)) == value


# a kind without a reader here is refused, as is an entry that its reader does not know
READERS: tuple[Callable[[Statement, Body], Inequalities], ...] = (
    metric_privacy, differential_privacy, distortion_privacy, distribution_privacy, loss_bound,
    support, gain_leakage, maximal_leakage, additive_capacity, pufferfish, policy_graph,
    bias, linear, ratios, mutual_information, renyi_privacy, fixed_rows, pointwise_maximal_leakage,
)  # fmt: skip
KINDS.update((reader.__name__, reader) for reader in READERS)
