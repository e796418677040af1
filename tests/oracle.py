"""An independent, naive solver of design problems: every inequality written row by row, in the
words of the papers, and given to scipy. Slow and small on purpose; shares no code with optmech's
statement, compiler, repair or certificate."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

import optmech as om


def optimum(problem: om.Problem) -> float | None:
    """The optimal objective (maximal distortion where that is the objective); None: infeasible."""
    n, m = len(problem.secrets), len(problem.observables)
    model = _Model(n, m)
    prior = problem.prior.weights
    loss = _loss(problem, problem.loss)
    maximise = isinstance(problem.objective, om.MaximizeDistortion)
    if problem.objective == "expected_loss":
        for s in range(n):
            for o in range(m):
                model.cost[model.p(s, o)] = prior[s] * loss[s, o]
    elif problem.objective == "worst_loss":
        top = model.new(cost=1.0)
        for s in range(n):
            model.at_most({**{model.p(s, o): loss[s, o] for o in range(m)}, top: -1.0}, 0.0)
    elif isinstance(problem.objective, om.MinimizeLeakage):
        gains, weights = _goal(problem, model.n)
        for variable, sign in _best_guess(model, gains, weights):
            model.cost[variable] = sign
    else:
        xs = _best_response(model, problem, problem.objective.distance, problem.objective.prior)
        for x in xs:
            model.cost[x] = -1.0
    for constraint in problem.constraints:
        KINDS[constraint.kind](model, problem, constraint)
    result = model.solve()
    if result is None:
        return None
    return -result if maximise else result


def _metric(model, problem, constraint) -> None:
    d = constraint.distance(problem.secrets, problem.secrets)
    reach = None
    if constraint.observable_threshold is not None:
        reach = constraint.distance(problem.secrets, problem.observables)
    for s in range(model.n):
        for t in range(model.n):
            if s == t or (constraint.threshold is not None and d[s, t] > constraint.threshold):
                continue
            columns = [
                o
                for o in range(model.m)
                if reach is None or reach[s, o] <= constraint.observable_threshold
            ]
            rate = constraint.epsilon * d[s, t]
            _indistinguishable(model, {s: 1.0}, {t: 1.0}, rate, constraint.delta, columns)


def _differential(model, problem, constraint) -> None:
    rate, columns = float(constraint.epsilon), range(model.m)
    for s in range(model.n):
        for t in range(model.n):
            if s != t and _adjacent(problem, constraint.adjacency, s, t):
                _indistinguishable(model, {s: 1.0}, {t: 1.0}, rate, constraint.delta, columns)


def _distribution(model, problem, constraint) -> None:
    for k, (a, b) in enumerate(constraint.pairs):
        rate = float(constraint.epsilon) * (
            1.0 if constraint.scale is None else constraint.scale[k]
        )
        for left, right in ((a, b), (b, a)):
            if constraint.divergence != "max":
                model.divergences.append((constraint.divergence, left, right, rate))
                continue
            sides = dict(enumerate(left)), dict(enumerate(right))
            _indistinguishable(model, *sides, rate, constraint.delta, range(model.m))


def _distortion(model, problem, constraint) -> None:
    xs = _best_response(model, problem, constraint.distance, constraint.prior)
    model.at_most(dict.fromkeys(xs, -1.0), -float(constraint.minimum))
    if constraint.radius is None:
        return
    weights = (problem.prior if constraint.prior is None else constraint.prior).weights
    for near in _moved_once(model, problem, constraint, weights):
        other = om.Prior(problem.secrets, near)
        xs = _best_response(model, problem, constraint.distance, other)
        model.at_most(dict.fromkeys(xs, -1.0), -float(constraint.minimum))


def _moved_once(model, problem, constraint, weights):
    """A radius that empties no place: one move of all of it, from each place to each."""
    apart = 1 - np.eye(model.n)
    if constraint.within is not None:
        apart = constraint.within(problem.secrets, problem.secrets)
    for s in range(model.n):
        for t in range(model.n):
            if s != t:
                moved = float(constraint.radius) / apart[s, t]
                assert moved <= weights[s]
                near = np.array(weights)
                near[s], near[t] = near[s] - moved, near[t] + moved
                yield near


def _fixed_rows(model, problem, constraint) -> None:
    """Rows given in the order of the observables."""
    given = constraint.rows
    for label, row in zip(given.secrets, given.exact.rows, strict=True):
        if constraint.free is None or label not in constraint.free:
            s = problem.secrets.index(label)
            for o, value in enumerate(row):
                exactly = value / 2**given.exact.bits
                model.at_most({model.p(s, o): 1.0}, exactly)
                model.at_most({model.p(s, o): -1.0}, -exactly)


def _best_guess(model, gains, weights) -> list[int]:
    """y_o >= Σ_s weight_s g(w,s) p(o|s) for every guess w, as a difference of two variables."""
    ys = []
    for o in range(model.m):
        up, down = model.new(), model.new()
        for row in gains:
            own = {model.p(s, o): weights[s] * row[s] for s in range(model.n)}
            model.at_most({**own, up: -1.0, down: 1.0}, 0.0)
        ys += [(up, 1.0), (down, -1.0)]
    return ys


def _goal(problem, n) -> tuple:
    objective, unit = problem.objective, [[float(w == s) for s in range(n)] for w in range(n)]
    if isinstance(objective.gain, str) and objective.gain == "maximal":
        return unit, np.ones(n)
    if isinstance(objective.gain, str) and objective.gain == "additive":
        # any row may be the one that is subtracted from
        return [[float(s == n - 1) - v for s, v in enumerate(row)] for row in unit], np.ones(n)
    prior = problem.prior if objective.prior is None else objective.prior
    return (unit if isinstance(objective.gain, str) else objective.gain), prior.weights


def _gain_leakage(model, problem, constraint) -> None:
    weights = (problem.prior if constraint.prior is None else constraint.prior).weights
    gains = constraint.gain
    if isinstance(gains, str):
        gains = [[float(w == s) for s in range(model.n)] for w in range(model.n)]
    elif callable(gains):
        gains = gains(problem.secrets, problem.secrets)
    model.at_most(dict(_best_guess(model, gains, weights)), float(constraint.maximum))
    if constraint.radius is None:
        return
    for near in _moved_once(model, problem, constraint, weights):
        guesses = dict(_best_guess(model, gains, near))
        model.at_most(guesses, float(constraint.maximum))


def _maximal_leakage(model, problem, constraint) -> None:
    largest = []
    for o in range(model.m):
        largest.append(model.new())
        for s in range(model.n):
            model.at_most({model.p(s, o): 1.0, largest[-1]: -1.0}, 0.0)
    model.at_most(dict.fromkeys(largest, 1.0), math.exp(constraint.maximum))


def _pointwise_maximal_leakage(model, problem, constraint) -> None:
    prior = (problem.prior if constraint.prior is None else constraint.prior).weights
    for s in range(model.n):
        if prior[s] > 0:
            sides = {s: 1.0}, dict(enumerate(prior))
            _indistinguishable(model, *sides, float(constraint.epsilon), 0.0, range(model.m))


def _additive_capacity(model, problem, constraint) -> None:
    least = []
    for o in range(model.m):
        least.append(model.new())
        for s in range(model.n):
            model.at_most({least[-1]: 1.0, model.p(s, o): -1.0}, 0.0)
    model.at_most(dict.fromkeys(least, -1.0), float(constraint.maximum) - 1.0)


def _pufferfish(model, problem, constraint) -> None:
    for first, second in constraint.pairs:
        for a, b in ((first, second), (second, first)):
            sides = dict(enumerate(a)), dict(enumerate(b))
            rate, delta = float(constraint.epsilon), constraint.delta
            _indistinguishable(model, *sides, rate, delta, range(model.m))


def _policy_graph(model, problem, constraint) -> None:
    """All pairs, with shortest paths of scipy."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    labels = list(problem.secrets.labels)
    ends = [(labels.index(a), labels.index(b), d) for a, b, d in constraint.graph]
    i, j, d = zip(*ends, strict=True)
    graph = csr_array((d, (i, j)), shape=(model.n, model.n))
    paths = dijkstra(graph, directed=False)
    for s in range(model.n):
        for t in range(model.n):
            if s != t and np.isfinite(paths[s, t]):
                rate = float(constraint.epsilon) * paths[s, t]
                _indistinguishable(model, {s: 1.0}, {t: 1.0}, rate, 0.0, range(model.m))


def _mutual_information(model, problem, constraint) -> None:
    prior = problem.prior if constraint.prior is None else constraint.prior
    model.information.append((prior.weights, float(constraint.maximum)))


def _renyi_privacy(model, problem, constraint) -> None:
    apart = np.ones((model.n, model.n))
    if constraint.distance is not None:
        apart = constraint.distance(problem.secrets, problem.secrets)
    order, unit = float(constraint.order), np.eye(model.n)
    name = "kl" if order == 1 else f"renyi:{order!r}"
    for s in range(model.n):
        for t in range(model.n):
            if s != t:
                limit = float(constraint.epsilon) * apart[s, t]
                model.divergences.append((name, unit[s], unit[t], limit))


def _bias(model, problem, constraint) -> None:
    meant = problem.secrets.points if constraint.values is None else constraint.values
    reported = constraint.reported
    if reported is None:
        reported = problem.observables.points if constraint.values is None else meant
    most = float(constraint.maximum)
    sides = [np.reshape(side, (len(side), -1)).T for side in (meant, reported)]
    for a, b in zip(*sides, strict=True):
        for s in range(model.n):
            row = {model.p(s, o): b[o] for o in range(model.m)}
            model.at_most(row, a[s] + most)
            model.at_most({key: -value for key, value in row.items()}, most - a[s])


def _loss_bound(model, problem, constraint) -> None:
    n, m, most = model.n, model.m, float(constraint.maximum)
    prior = problem.prior.weights
    values = _loss(problem, problem.loss if constraint.loss is None else constraint.loss)
    if constraint.worst_case:
        for s in range(n):
            model.at_most({model.p(s, o): values[s, o] for o in range(m)}, most)
    else:
        row = {model.p(s, o): prior[s] * values[s, o] for s in range(n) for o in range(m)}
        model.at_most(row, most)


def _support(model, problem, constraint) -> None:
    mask = constraint.mask
    if mask is None:
        mask = constraint.distance(problem.secrets, problem.observables) <= constraint.radius
    for s in range(model.n):
        for o in range(model.m):
            if not mask[s][o]:
                model.upper[model.p(s, o)] = 0.0


def _linear(model, problem, constraint) -> None:
    """Every sum over the entries, as the docstring says it."""
    given = constraint.weights
    dense = np.zeros(given.shape)
    dense.flat[given.at] = given.value
    n, m, per = model.n, model.m, constraint.per
    one = {"all": (n, m), "report": (n,), "secret": (m,)}[per]
    rows = dense[None] if dense.shape == one else dense
    for k, row in enumerate(rows):
        for at in range({"all": 1, "report": m, "secret": n}[per]):
            body = {}
            for s in range(n):
                for o in range(m):
                    if (per == "report" and o != at) or (per == "secret" and s != at):
                        continue
                    body[model.p(s, o)] = (
                        row[s, o] if row.ndim == 2 else row[s if per == "report" else o]
                    )
            for name, sign in (("upper", 1), ("lower", -1), ("equal", 1), ("equal", -1)):
                limits = getattr(constraint, name)
                if limits is not None:
                    limit = float(limits[k % len(limits)])
                    model.at_most({key: sign * v for key, v in body.items()}, sign * limit)


def _ratios(model, problem, constraint) -> None:
    """Every pair and report by itself."""
    given, n, m = constraint.log_ratio, model.n, model.m
    dense = np.full(given.shape, np.inf)
    dense.flat[given.at] = given.value
    labels = list(problem.observables.labels)
    columns = (
        range(m) if constraint.reports is None else [labels.index(r) for r in constraint.reports]
    )
    mixed = constraint.of is not None
    unit = np.eye(n)
    pairs = [(k,) for k in range(len(dense))] if mixed else list(np.ndindex(n, n))
    for pair in pairs:
        if mixed:
            left, right = constraint.of[pair[0]], constraint.to[pair[0]]
        elif pair[0] == pair[1]:
            continue
        else:
            left, right = unit[pair[0]], unit[pair[1]]
        for o in columns:
            rate = float(dense[(*pair, o)] if dense.ndim == len(pair) + 1 else dense[pair])
            if np.isfinite(rate):
                sides = dict(enumerate(left)), dict(enumerate(right))
                _indistinguishable(model, *sides, rate, 0.0, [o])


KINDS = {
    "linear": _linear,
    "ratios": _ratios,
    "metric_privacy": _metric,
    "differential_privacy": _differential,
    "distribution_privacy": _distribution,
    "distortion_privacy": _distortion,
    "loss_bound": _loss_bound,
    "support": _support,
    "pufferfish": _pufferfish,
    "policy_graph": _policy_graph,
    "bias": _bias,
    "renyi_privacy": _renyi_privacy,
    "mutual_information": _mutual_information,
    "gain_leakage": _gain_leakage,
    "fixed_rows": _fixed_rows,
    "maximal_leakage": _maximal_leakage,
    "additive_capacity": _additive_capacity,
    "pointwise_maximal_leakage": _pointwise_maximal_leakage,
}
"""How every kind of constraint is written, by its name in files."""


def _indistinguishable(model, left, right, log_ratio, delta, columns) -> None:
    factor = math.exp(log_ratio)
    slacks = []
    for o in columns:
        row: dict[int, float] = {}
        for s, w in left.items():
            row[model.p(s, o)] = row.get(model.p(s, o), 0.0) + w
        for s, w in right.items():
            row[model.p(s, o)] = row.get(model.p(s, o), 0.0) - factor * w
        if delta > 0:
            slacks.append(model.new())
            row[slacks[-1]] = -1.0
        model.at_most(row, 0.0)
    if delta > 0:
        model.at_most(dict.fromkeys(slacks, 1.0), float(delta))


def _best_response(model, problem, distance, adversary) -> list[int]:
    prior = (problem.prior if adversary is None else adversary).weights
    d = distance(problem.secrets, problem.secrets)
    xs = []
    for o in range(model.m):
        x = model.new()
        for guess in range(model.n):
            row = {model.p(s, o): -prior[s] * d[guess, s] for s in range(model.n)}
            model.at_most({**row, x: 1.0}, 0.0)
        xs.append(x)
    return xs


def _adjacent(problem, adjacency, s, t) -> bool:
    if adjacency == "all":
        return True
    if callable(adjacency[0]):
        return bool(adjacency[0](problem.secrets, problem.secrets)[s, t] <= adjacency[1])
    return (s, t) in adjacency or (t, s) in adjacency


def _loss(problem, loss):
    return loss(problem.secrets, problem.observables) if callable(loss) else np.asarray(loss)


class _Model:
    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m
        self.cost = [0.0] * (n * m)
        self.upper: list[float | None] = [None] * (n * m)
        self.rows: list[dict[int, float]] = []
        self.rhs: list[float] = []
        self.divergences: list[tuple] = []
        self.information: list[tuple] = []

    def p(self, s: int, o: int) -> int:
        return s * self.m + o

    def new(self, cost: float = 0.0) -> int:
        self.cost.append(cost)
        self.upper.append(None)
        return len(self.cost) - 1

    def at_most(self, row: dict[int, float], rhs: float) -> None:
        self.rows.append(row)
        self.rhs.append(rhs)

    def solve(self) -> float | None:
        count = len(self.cost)
        matrix = np.zeros((len(self.rows), count))
        for k, row in enumerate(self.rows):
            size = max((abs(v) for v in row.values()), default=1.0)
            for column, value in row.items():
                # rows of large e^{εd} would drown in the solver's absolute tolerance
                matrix[k, column] += value / math.sqrt(max(size, 1.0))
            self.rhs[k] = self.rhs[k] / math.sqrt(max(size, 1.0))
        equal = np.zeros((self.n, count))
        for s in range(self.n):
            equal[s, s * self.m : (s + 1) * self.m] = 1.0
        if self.divergences or self.information:
            return self.solve_convex(matrix, equal)
        result = linprog(
            self.cost,
            A_ub=matrix if len(matrix) else None,
            b_ub=self.rhs if len(matrix) else None,
            A_eq=equal,
            b_eq=np.ones(self.n),
            bounds=[(0.0, u) for u in self.upper],
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status == 2:
            return None
        assert result.status == 0, result.message
        return float(result.fun)

    def solve_convex(self, matrix: np.ndarray, equal: np.ndarray) -> float | None:
        """The same with cvxpy's own atoms for divergences, in the words of CM19 Table I."""
        import cvxpy as cp

        x = cp.Variable(len(self.cost), nonneg=True)
        fixed = [k for k, upper in enumerate(self.upper) if upper is not None]
        constraints = [equal @ x == 1, *([x[fixed] == 0] if fixed else [])]
        if len(matrix):
            constraints.append(matrix @ x <= np.array(self.rhs))
        rows = cp.reshape(x[: self.n * self.m], (self.n, self.m), order="C")
        for name, left, right, limit in self.divergences:
            p, q = np.asarray(left) @ rows, np.asarray(right) @ rows
            if name == "reverse_kl":
                name, p, q = "kl", q, p
            if limit == 0:
                constraints.append(p == q)
            elif name.startswith("renyi:"):
                # Σ p^a q^(1-a) against e^((a-1) limit), by cvxpy's weighted geometric means
                top, _, bottom = name.removeprefix("renyi:").partition("/")
                a = float(top) / float(bottom or 1)
                weights, power = Fraction(a).limit_denominator(64), cp.Variable(self.m)
                for o in range(self.m):
                    if a > 1:
                        mean = [1 / weights, 1 - 1 / weights]
                        inside = cp.geo_mean(cp.hstack([power[o], q[o]]), mean)
                        constraints.append(p[o] <= inside)
                    else:
                        inside = cp.geo_mean(cp.hstack([p[o], q[o]]), [weights, 1 - weights])
                        constraints.append(power[o] <= inside)
                sign = 1 if a > 1 else -1
                constraints.append(sign * cp.sum(power) <= sign * math.exp((a - 1) * limit))
            elif name == "tv":
                constraints.append(cp.norm1(p - q) / 2 <= limit)
            elif name == "kl":
                constraints.append(cp.sum(cp.kl_div(p, q)) <= limit)
            elif name == "chi2":
                terms = [cp.quad_over_lin(p[o] - q[o], q[o]) for o in range(self.m)]
                constraints.append(cp.sum(terms) <= limit)
            else:
                means = [cp.geo_mean(cp.hstack([p[o], q[o]])) for o in range(self.m)]
                constraints.append(1 - cp.sum(means) <= limit)
        for weights, limit in self.information:
            common = weights @ rows
            spent = [w * cp.sum(cp.rel_entr(rows[s], common)) for s, w in enumerate(weights)]
            constraints.append(sum(spent) <= limit)
        problem = cp.Problem(cp.Minimize(np.array(self.cost) @ x), constraints)
        accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
        problem.solve(solver="CLARABEL", **accuracy)
        if problem.status == "infeasible":
            return None
        assert problem.status == "optimal", problem.status
        return float(problem.value)
