"""Position fixes as paths in the plane, and kernels fitted to them by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError, SolverError, inside
from optmech.exact.arguments import one_of, positive
from optmech.exact.number import float_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import flattened
from optmech_traces.chains.sequences import Fixes
from optmech_traces.gaussian.intervals import length_interval
from optmech_traces.gaussian.kernels import Kernel, rbf
from optmech_traces.gaussian.prior import increasing


@record
class Path(ReadOnly):
    """Positions of one user at increasing times."""

    user: str
    times: Floats
    """Minutes since the first position, shape (d,)."""
    positions: Floats
    """Shape (d, 2): km east and north of the mean position for longitude and latitude, else as
    in the data."""


def paths(
    fixes: Fixes, max_gap: float, spacing: float = 0.0, lonlat: bool = True, least: int = 2
) -> list[Path]:
    """Runs of fixes without a gap of more than ``max_gap`` seconds.

    Of fixes closer than ``spacing`` seconds to the last one kept, none is kept. Runs of fewer
    than ``least`` positions are left out. Longitude and latitude are projected equirectangularly
    around the mean of the run, good to about 1 % over 100 km.
    """
    gap = positive(max_gap, "max_gap")
    out = []
    for user, seconds, xy in fixes.runs(gap):
        kept = [0]
        for k, time in enumerate(seconds.tolist()):
            if k and time - seconds[kept[-1]] >= spacing:
                kept.append(k)
        if len(kept) >= least:
            places, centre = xy[kept], xy[kept].mean(axis=0)
            positions = flattened(places, centre) if lonlat else places - centre
            out.append(Path(user, (seconds[kept] - seconds[kept[0]]) / 60, positions))
    return out


Mean = Literal["fitted", "zero"]
_GRID = 13
_LEAST_NOISE = 1e-9
"""Share of the variance; keeps smooth kernels factorisable in floats."""


@dataclass(frozen=True)
class Fit:
    """What maximises the likelihood of the traces.

    Examples
    --------
    >>> times = np.arange(6.0)
    >>> fit = om.traces.fit([(times, np.sin(times)), (times, np.cos(times))], mean="zero")
    >>> print(fit.observations, fit.length_scale > 0)
    12 True
    """

    kernel: Kernel
    """The family at the fitted length scale, times the fitted variance; without the noise."""
    length_scale: float
    variance: float
    """In squared units of position, of every axis."""
    noise: float
    """Variance of independent errors of observation."""
    log_likelihood: float
    observations: int
    """Coordinates that went in."""


@checked_arguments
def fit(
    traces: Sequence[tuple[ArrayLike, ArrayLike]],
    family: Callable[[float], Kernel] = rbf,
    *,
    bounds: tuple[float, float] | None = None,
    noise: float | None = None,
    mean: Mean = "fitted",
) -> Fit:
    """The length scale, variance and error variance under which some traces are likeliest.

    Every trace is a Gaussian process of its own, every axis of it too, all with the same kernel
    variance · family(length_scale) and independent errors. The variance is maximised in closed
    form, a grid and a local search do the rest.

    Parameters
    ----------
    traces:
        Pairs of times, shape (d,), and positions, shape (d,) or (d, k).
    family:
        From a length scale to a kernel of variance 1, such as ``om.traces.rbf``.
    bounds:
        Of the length scale; default: half the least step of time to five times the longest span.
    noise:
        Share of the variance that the errors have; default: fitted, at least 10⁻⁹.
    mean:
        ``"fitted"``: a constant for every trace and axis, by maximum likelihood; or ``"zero"``.

    Raises
    ------
    ProblemError
        On traces that are too short, positions that never change, and bad arguments.
    SolverError
        Where no length scale gives a covariance that can be factorised.

    Examples
    --------
    >>> times = np.arange(6.0)
    >>> fit = om.traces.fit([(times, np.sin(times)), (times, np.cos(times))], mean="zero")
    >>> print(0.5 < fit.length_scale < 5, type(fit.kernel).__name__)
    True _Both
    """
    from scipy.linalg import solve_triangular
    from scipy.optimize import minimize

    try:
        listed = list(traces)
    except TypeError:
        raise ProblemError(
            f"{traces!r} is not a list", where="traces", remedy="Give [(times, positions), ...]"
        ) from None
    data = [_trace(pair, k) for k, pair in enumerate(listed)]
    one_of(mean, get_args(Mean), "mean")
    if not data or max(len(times) for times, _ in data) < 2:
        raise ProblemError("there is no trace of two positions", where="traces")
    if bounds is None:
        low = min(float(np.diff(times).min()) for times, _ in data if len(times) > 1) / 2
        high = 5 * max(float(times[-1] - times[0]) for times, _ in data)
    else:
        low, high = length_interval(bounds, "bounds")
    share = None if noise is None else float_of(noise, "noise")

    def read(point: Floats) -> tuple[float, float]:
        return float(np.exp(point[0])), float(np.exp(point[1])) if share is None else share

    def profile(length: float, ratio: float) -> tuple[float, float]:
        """The likelihood at the best variance, and that variance."""
        kernel = family(length)
        count, square, log_det = 0, 0.0, 0.0
        for times, positions in data:
            try:
                root = np.linalg.cholesky(kernel.covariance(times) + ratio * np.eye(len(times)))
            except np.linalg.LinAlgError:
                return -np.inf, np.nan
            white = solve_triangular(root, positions, lower=True)
            if mean == "fitted":
                ones = solve_triangular(root, np.ones((len(root), 1)), lower=True)
                white = white - ones @ (ones.T @ white) / float((ones**2).sum())
            count += positions.size
            square += float((white**2).sum())
            log_det += positions.shape[1] * 2 * float(np.log(np.diag(root)).sum())
        variance = square / count
        if not variance > 0:
            raise ProblemError(
                "the positions never change", where="traces", remedy="Give traces that move"
            )
        return -(count * (np.log(2 * np.pi * variance) + 1) + log_det) / 2, variance

    def score(point: Floats) -> float:
        return -profile(*read(point))[0]

    ratios = [(np.log(ratio),) for ratio in (1e-6, 1e-3, 0.1)] if share is None else [()]
    lengths = np.log(np.geomspace(low, high, _GRID))
    start = [np.array([length, *ratio]) for length in lengths for ratio in ratios]
    values = [score(point) for point in start]
    if not np.isfinite(min(values)):
        raise SolverError(
            "no length scale gives a covariance that can be factorised",
            where="fit",
            remedy="Give a larger noise, or thin out the times",
        )
    limits = [(np.log(low), np.log(high)), (np.log(_LEAST_NOISE), np.log(100.0))]
    best = min(
        (
            minimize(score, start[k], method="Nelder-Mead", bounds=limits[: len(start[k])],
                     options={"xatol": 1e-5, "fatol": 1e-7, "maxiter": 300})
            for k in np.argsort(values)[:2]
        ),
        key=lambda found: float(found.fun),
    )  # fmt: skip
    length, ratio = read(best.x)
    log_likelihood, variance = profile(length, ratio)
    return Fit(
        variance * family(length),
        length,
        variance,
        ratio * variance,
        float(log_likelihood),
        sum(positions.size for _, positions in data),
    )


def _trace(pair: tuple[ArrayLike, ArrayLike], k: int) -> tuple[Floats, Floats]:
    try:
        times, positions = pair
    except (TypeError, ValueError):
        raise ProblemError(
            "is not a pair of times and positions", where=f"traces[{k}]", remedy="Give (t, x)"
        ) from None
    with inside(f"traces[{k}]"):
        moments = increasing(times)
    values = finite_array(positions, where=f"traces[{k}].positions", observations=True)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(moments) or not values.shape[1]:
        raise ProblemError(
            f"shape {values.shape} does not fit {len(moments)} times",
            where=f"traces[{k}].positions",
        )
    return moments, values
