"""Noise that people use, calibrated to the same promise: how much of its loss is avoidable.

Densities and calibrations are floats: these are measurements, and the promise of each is that of
its source.
"""

import math
from collections.abc import Callable

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.bisection import reached
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import probability, whole
from optmech.exact.number import Number, parse_exact
from optmech_noise.additive.loss import NoiseLoss, least_whole
from optmech_noise.proposals import excess, mirrored
from optmech_noise.session import require_range

_TAIL = 1e-16
_MOST = 4_000_000
_STEPS = 200
_LEAST = 1e-9


@record
class NoisePeer(Shown):
    """Known noise: ``pmf[k]`` = P(Z = k) = P(Z = -k) for k >= 0, cut where next to nothing is left;
    ``parameters`` in words.

    Examples
    --------
    >>> laplace = om.noise.peers("ln 2")["discrete Laplace"]
    >>> print(laplace.pmf[:3].round(4), laplace.source)
    [0.3333 0.1667 0.0833] Ghosh et al. 2009
    >>> print(round(laplace.loss(om.noise.NoiseLoss.of("absolute")), 4))
    1.3333
    >>> print(laplace.delta(epsilon=np.log(2), shift=1) < 1e-12)
    True
    """

    name: str
    pmf: Floats
    parameters: str
    source: str

    def loss(self, measure: NoiseLoss) -> float:
        """E c(Z). Raises ProblemError for what is no ``NoiseLoss``."""
        if not isinstance(measure, NoiseLoss):
            raise ProblemError("is no NoiseLoss", where="measure", remedy="Give NoiseLoss.of(…)")
        cost = measure.floats(np.arange(len(self.pmf), dtype=np.float64))
        return float(2 * (self.pmf @ cost) - self.pmf[0] * cost[0])

    def delta(self, epsilon: float, shift: int) -> float:
        """Σ max(0, z(i) - e^ε z(i + shift)), of what was not cut. Raises ProblemError
        for an ε or a shift that are none."""
        steps = whole(shift, "shift", 1, _MOST)
        return _hockey(self.pmf, _stated(epsilon), steps)


def peers(epsilon: Number, delta: Number = 0, *, sensitivity: int = 1) -> dict[str, NoisePeer]:
    """The noises of practice that keep (ε, δ) at a sensitivity, by name.

    With ε > 0: "discrete Laplace" (two-sided geometric: Ghosh, Roughgarden and Sundararajan, STOC
    2009) and the "staircase" for the loss |k| (Geng and Viswanath 2016), which are ε-private. With
    ε and δ > 0 also "truncated Laplace" (Geng, Ding, Guo and Kumar, AISTATS 2020), "discrete
    Gaussian" (Canonne, Kamath and Steinke, NeurIPS 2020), "analytic Gaussian" rounded to whole
    numbers (Balle and Wang, ICML 2018) and the "canonical" noise of (ε, δ), rounded (Awan and
    Vadhan, Annals of Statistics 2023). With δ > 0: "uniform". Raises ProblemError for ε = δ = 0
    and for what spreads over too many places.

    Examples
    --------
    >>> design = om.noise.optimal(1, "1/1000")
    >>> peers = om.noise.peers(1, "1/1000")
    >>> all(peer.loss(design.measure) >= design.lower_bound for peer in peers.values())
    True
    """
    rate, part = _stated(epsilon), float(probability(delta))
    steps = whole(sensitivity, "sensitivity", 1, 2**53)
    if rate == 0 and part == 0:
        raise ProblemError("is 0, as ε is", where="delta", remedy="Give a positive ε or δ")
    found: list[NoisePeer] = []
    if rate > 0:
        found += [_laplace(rate, steps), _staircase(rate, steps)]
    if rate > 0 and part > 0:
        both = _truncated, _gaussian, _analytic, _canonical
        found += [made(rate, part, steps) for made in both]
    if part > 0:
        found.append(_uniform(part, steps))
    return {peer.name: peer for peer in found}


def _stated(epsilon: Number) -> float:
    """ε, as floats can deal with it; raises ProblemError for another."""
    rate = parse_exact(epsilon, where="epsilon")
    require_range(rate, _LEAST, zero=True)
    return float(rate)


def _laplace(rate: float, steps: int) -> NoisePeer:
    b = math.exp(-rate / steps)
    pmf = (1 - b) / (1 + b) * b ** _places(math.log(_TAIL) / math.log(b))
    return NoisePeer("discrete Laplace", pmf, f"ratio {b:.6g}", "Ghosh et al. 2009")


def _staircase(rate: float, steps: int) -> NoisePeer:
    b = math.exp(-rate)
    k = _places(steps * (1 - math.log(_TAIL) / rate))
    found = []
    for first in range(1, steps + 1):
        pmf = _normalised(b ** (k // steps) * np.where(k % steps < first, 1.0, b))
        found.append((float(pmf @ k), first, pmf))
    _, first, pmf = min(found, key=lambda made: made[0])
    return NoisePeer("staircase", pmf, f"first step {first} of {steps}", "Geng, Viswanath 2016")


def _truncated(rate: float, part: float, steps: int) -> NoisePeer:
    b = math.exp(-rate / steps)

    def made(end: int) -> Floats:
        return _normalised(b ** _places(end))

    end = least_whole(lambda end: _hockey(made(end), rate, steps) <= part, 1)
    return NoisePeer("truncated Laplace", made(end), f"up to ±{end}", "Geng et al. 2020")


def _gaussian(rate: float, part: float, steps: int) -> NoisePeer:
    def made(sigma: float) -> Floats:
        k = _places(sigma * math.sqrt(-2 * math.log(_TAIL * part)) + steps)
        return _normalised(np.exp(-(k**2) / (2 * sigma**2)))

    sigma = _smallest(lambda sigma: _hockey(made(sigma), rate, steps) <= part, steps / 50)
    return NoisePeer("discrete Gaussian", made(sigma), f"σ = {sigma:.6g}", "Canonne et al. 2020")


def gaussian_scale(rate: float, part: float, span: float) -> float:
    """The least standard deviation of (ε, δ)-private Gaussian noise, nearly (Balle and Wang,
    Improving the Gaussian mechanism for differential privacy, ICML 2018)."""
    from scipy.special import log_ndtr, ndtr

    def delta(sigma: float) -> float:
        x, y = span / (2 * sigma), rate * sigma / span
        return float(ndtr(x - y) - math.exp(rate + float(log_ndtr(-x - y))))

    return _smallest(lambda sigma: delta(sigma) <= part, span / 50)


def _analytic(rate: float, part: float, steps: int) -> NoisePeer:
    from scipy.special import ndtr

    sigma = gaussian_scale(rate, part, steps)
    k = _places(sigma * 9 + 2)
    upper, lower = (k + 0.5) / sigma, (k - 0.5) / sigma
    pmf = ndtr(-lower) - ndtr(-upper)
    return NoisePeer("analytic Gaussian", pmf, f"σ = {sigma:.6g}, rounded", "Balle, Wang 2018")


def _canonical(rate: float, part: float, steps: int) -> NoisePeer:
    """The Tulap law with ratio e^-ε, cut at its quantiles q/2, times the sensitivity, rounded."""
    b = math.exp(-rate)
    q = 2 * part * b / (1 - b + 2 * part * b)

    def above(x: Floats) -> Floats:
        """P(X > x) for x > 0, before the cut."""
        near = np.rint(x)
        return np.asarray(b**near / (1 + b) * (b + (near - x + 0.5) * (1 - b)))

    end = steps * (1 - math.log(max(q, _TAIL)) / rate) + 2 * steps
    k = _places(end)
    tails = np.clip((above((k + 0.5) / steps) - q / 2) / (1 - q), 0.0, 0.5)
    pmf = np.append(1 - 2 * tails[0], tails[:-1] - tails[1:])
    return NoisePeer("canonical", np.maximum(pmf, 0), f"q = {q:.6g}, rounded", "Awan, Vadhan 2023")


def _uniform(part: float, steps: int) -> NoisePeer:
    end = max(0, math.ceil((steps / part - 1) / 2 - 1e-12))
    _places(end)
    return NoisePeer("uniform", np.full(end + 1, 1 / (2 * end + 1)), f"up to ±{end}", "folklore")


def _places(end: float) -> Floats:
    if end > _MOST:
        raise ProblemError(
            f"such noise spreads over {end:.3g} places",
            where="epsilon",
            remedy="Allow a larger ε or δ",
        )
    return np.arange(math.ceil(end) + 1, dtype=np.float64)


def _normalised(pmf: Floats) -> Floats:
    return np.asarray(pmf / (2 * pmf.sum() - pmf[0]))


def _hockey(pmf: Floats, rate: float, shift: int) -> float:
    return excess(np.pad(mirrored(pmf), shift), math.exp(rate), shift)


def _smallest(holds: Callable[[float], bool], start: float) -> float:
    """The least number >= ``start`` from which on a claim holds, to twelve digits."""
    return reached(holds, start, 2 * start, _STEPS, 1e-12)[1]
