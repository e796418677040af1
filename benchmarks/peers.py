"""What a user would pick instead: the same problem, written as its documentation suggests.

Every function takes the prior, the loss (secrets by reports) and ε d, and returns the matrix p(o|s)
and what the solver says of it. All tolerances are the solvers' own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Answer = tuple[np.ndarray, str]
Peer = Callable[[np.ndarray, np.ndarray, np.ndarray], Answer]


def libqif(solver: str, chainable: bool = False) -> Peer:
    """libqif's construction of the optimal mechanism for a privacy metric. With ``chainable``,
    pairs with a secret on the line between them are left out, which libqif offers."""

    def solve(weights: np.ndarray, loss: np.ndarray, log_ratio: np.ndarray) -> Answer:
        import qif

        qif.lp.defaults.solver = solver
        options = {}
        if chainable:
            redundant = between(log_ratio)
            options["d_priv_ch"] = lambda i, j: bool(redundant[i, j])
        matrix = qif.mechanism.d_privacy.min_loss_given_d(
            weights, loss.shape[1], lambda i, j: log_ratio[i, j], lambda i, j: loss[i, j], **options
        )
        return np.asarray(matrix), "returned"

    return solve


def between(metric: np.ndarray) -> np.ndarray:
    """Pairs with a third element exactly between them, up to rounding: shape (n, n), boolean."""
    found = np.zeros(metric.shape, dtype=bool)
    for k in range(len(metric)):
        detour = metric[:, k, None] + metric[None, k, :]
        inside = detour <= metric * (1 + 1e-12)
        inside[k, :] = inside[:, k] = False
        found |= inside
    return found


def full_program(
    weights: np.ndarray, loss: np.ndarray, log_ratio: np.ndarray, scaled: bool = False
) -> tuple:
    """The whole linear program as a user would write it, p(o|s) at index s * m + o: the cost,
    the rows that must be <= 0, and the rows that must be 1. With ``scaled`` rows are divided by
    e^{ε d}, where that is more than solvers take as a number."""
    import scipy.sparse as sp

    n, m = loss.shape
    s, t = np.nonzero(~np.eye(n, dtype=bool))
    pairs, o = np.repeat(np.arange(len(s)), m), np.tile(np.arange(m), len(s))
    row = np.arange(len(pairs))
    factor = np.exp(log_ratio[s, t])[pairs]
    divisor = factor if scaled else np.ones(len(row))
    above = sp.csr_matrix(
        (
            np.concatenate([1 / divisor, -factor / divisor]),
            (
                np.concatenate([row, row]),
                np.concatenate([s[pairs] * m + o, t[pairs] * m + o]),
            ),
        ),
        shape=(len(row), n * m),
    )
    sums = sp.kron(sp.identity(n), np.ones((1, m)), format="csr")
    return (weights[:, None] * loss).ravel(), above, sums


def linprog(weights: np.ndarray, loss: np.ndarray, log_ratio: np.ndarray) -> Answer:
    """scipy's linprog with its default method on the full program."""
    from scipy.optimize import linprog as solve

    cost, above, sums = full_program(weights, loss, log_ratio)
    out = solve(cost, above, np.zeros(above.shape[0]), sums, np.ones(len(weights)))
    return _matrix(out.x, loss), "optimal" if out.status == 0 else out.message


def cvxpy(solver: str | None = None, scaled: bool = False) -> Peer:
    """cvxpy with its default solver, or another, on the full program."""

    def solve(weights: np.ndarray, loss: np.ndarray, log_ratio: np.ndarray) -> Answer:
        import cvxpy as cp

        cost, above, sums = full_program(weights, loss, log_ratio, scaled)
        x = cp.Variable(len(cost), nonneg=True)
        problem = cp.Problem(cp.Minimize(cost @ x), [above @ x <= 0, sums @ x == 1])
        problem.solve(solver=solver)
        claim = f"{problem.status} ({problem.solver_stats.solver_name})"
        return _matrix(x.value, loss), claim

    return solve


def highs(solver: str, scaled: bool = False) -> Peer:
    """HiGHS on the full program; only the algorithm is chosen."""

    def solve(weights: np.ndarray, loss: np.ndarray, log_ratio: np.ndarray) -> Answer:
        import highspy
        import scipy.sparse as sp

        cost, above, sums = full_program(weights, loss, log_ratio, scaled)
        rows = sp.vstack([above, sums], format="csr")
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = rows.shape
        lp.col_cost_ = cost
        lp.col_lower_ = np.zeros(len(cost))
        lp.col_upper_ = np.full(len(cost), highspy.kHighsInf)
        lp.row_lower_ = np.concatenate(
            [np.full(above.shape[0], -highspy.kHighsInf), np.ones(len(weights))]
        )
        lp.row_upper_ = np.concatenate([np.zeros(above.shape[0]), np.ones(len(weights))])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = rows.indptr, rows.indices
        lp.a_matrix_.value_ = rows.data
        engine = highspy.Highs()
        engine.setOptionValue("output_flag", False)
        chosen = engine.setOptionValue("solver", solver)
        if engine.passModel(lp) == highspy.HighsStatus.kError:
            raise SystemExit("refuses the numbers")
        if chosen == highspy.HighsStatus.kError or engine.run() == highspy.HighsStatus.kError:
            raise SystemExit(f"HiGHS could not run {solver}")
        claim = engine.modelStatusToString(engine.getModelStatus()).lower()
        return _matrix(np.array(engine.getSolution().col_value), loss), claim

    return solve


def _matrix(values: np.ndarray | None, loss: np.ndarray) -> np.ndarray:
    if values is None or len(values) != loss.size:
        raise SystemExit("no solution was returned")
    return values.reshape(loss.shape)


PEERS: dict[str, Peer] = {
    "libqif": libqif("AUTO"),
    "libqif-soplex": libqif("SOPLEX"),
    "libqif-best": libqif("GLOP", chainable=True),
    "highs-default": linprog,
    "highs-simplex": highs("simplex"),
    "highs-ipm": highs("ipm"),
    "highs-hipo": highs("hipo"),
    "highs-pdlp": highs("pdlp"),
    "cvxpy-default": cvxpy(),
}
