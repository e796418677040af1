"""Pictures of noise. Needs matplotlib, and draws without a display."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats
from optmech.noise.additive.cells import CellNoise
from optmech.noise.additive.design import NoiseDesign, RealNoise
from optmech.noise.additive.planar import PlanarNoise
from optmech.noise.additive.renyi import DivergenceNoise
from optmech.noise.additive.result import CertifiedNoise, ProvedNoise
from optmech.noise.baselines import gaussian_scale
from optmech.show.plots.drawing import MARK, SERIES, new_figure, require_matplotlib, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["noise_picture"]

_SHOWN = 0.999
_MOST_BARS = 400
_MOST_SIDE = 60
_MOST_CELLS = 20_000
_FAINTEST = 1e-9


def noise_picture(design: ProvedNoise, file: str | Path) -> None:
    """Draw the probabilities of noise where nearly all of them are, and in a second panel on a
    logarithmic scale beside the two-sided geometric law of the same ε, or the discrete Gaussian one
    of the same divergence. Of pairs: a map of them, and the same on a logarithmic scale. Of real
    noise: its density beside that of Laplace's noise, the staircase and the analytic Gaussian.

    Raises ProblemError without matplotlib, or on a path that is not .png, .pdf or .svg.
    """
    require_matplotlib(file)
    planar = isinstance(design, PlanarNoise)
    figure = new_figure(10.4, 4.6 if planar else 3.8)
    left, right = figure.subplots(1, 2)
    if isinstance(design, PlanarNoise):
        x, y = _draw_pairs(design, left, right)
    elif isinstance(design, CellNoise):
        x, y = _draw_real(design, left, right)
    else:
        assert isinstance(design, CertifiedNoise)
        x, y = _draw_whole(design, left, right)
    for axes in (left, right):
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    figure.suptitle(
        f"{design.promise}: {design.measured} {design.loss:.4g}, lower bound "
        f"{design.lower_bound:.4g}",
        fontsize=10,
    )
    save(figure, file)


def _draw_whole(design: CertifiedNoise, left: Axes, right: Axes) -> tuple[str, str]:
    """Probabilities of whole numbers, and what the axes show."""
    law = design.law
    far = min(law.n + 3 * len(law.tails), _MOST_BARS)
    places = np.arange(-far, far + 1)
    values = np.array([float(law.at(abs(k))) for k in places.tolist()])
    share = np.cumsum(values[far:] * np.where(np.arange(far + 1), 2, 1))
    near = max(3, min(far, int(np.searchsorted(share, _SHOWN)) + 1))
    inner = slice(far - near, far + near + 1)
    left.bar(places[inner], values[inner], width=0.85, color=SERIES[0])
    right.plot(places, np.where(values > 0, values, np.nan), ".", ms=3, color=SERIES[0],
               label="this noise")  # fmt: skip
    if isinstance(design, NoiseDesign) and design.epsilon > 0:
        rate = math.exp(-float(design.epsilon) / design.sensitivity)
        peer = (1 - rate) / (1 + rate) * rate ** np.abs(places)
        right.plot(places, peer, lw=0.9, color=MARK, label="two-sided geometric")
    elif isinstance(design, DivergenceNoise):
        peer = np.exp(-((places / _gaussian_of(design)) ** 2) / 2)
        right.plot(places, peer / peer.sum(), lw=0.9, color=MARK, label="discrete Gaussian")
    right.legend(fontsize=8)
    right.set_yscale("log")
    return "noise", "probability"


def _gaussian_of(design: DivergenceNoise) -> float:
    """The standard deviation of Gaussian noise that keeps the promise."""
    wide = max(float(order) / (2 * float(rate)) for order, rate in design.bounds)
    return float(design.sensitivity) * math.sqrt(wide)


def _gaussian(places: Floats, sigma: float) -> Floats:
    """The density of Gaussian noise."""
    return np.exp(-((places / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))


def _draw_real(design: CellNoise, left: Axes, right: Axes) -> tuple[str, str]:
    """The density, and those of known noise for the same promise; and what the axes show."""
    law, width, span = design.law, float(design.step), float(design.sensitivity)
    rate, part = 0.0, 0.0
    if isinstance(design, RealNoise):
        rate, part = float(design.each), float(design.delta)
    known: list[tuple[str, Floats]] = []
    far = min(law.n + 3 * len(law.tails), _MOST_CELLS)
    ends = (np.arange(-far, far + 2) - 0.5) * width
    middles = (ends[1:] + ends[:-1]) / 2
    values = np.array([float(law.at(abs(k))) for k in range(-far, far + 1)]) / width
    if rate > 0:
        known.append(("Laplace", rate / (2 * span) * np.exp(-rate / span * np.abs(middles))))
        step = 1 / (1 + math.exp(rate / 2))
        level = np.floor(np.abs(middles) / span + 1 - step)
        first = -math.expm1(-rate) / (2 * span * (step + math.exp(-rate) * (1 - step)))
        known.append(("staircase", first * np.exp(-rate * level)))
    if part > 0:
        known.append(("analytic Gaussian", _gaussian(middles, gaussian_scale(rate, part, span))))
    if isinstance(design, DivergenceNoise):
        peer = _gaussian(middles, _gaussian_of(design))
        known.append(("Gaussian of the same divergence", peer))
    share = np.cumsum(values[far:] * width * np.where(np.arange(far + 1), 2, 1))
    near = ends[min(2 * far + 1, far + 2 + int(np.searchsorted(share, _SHOWN)))]
    for axes in (left, right):
        axes.stairs(np.where(values > 0, values, np.nan), ends, color=SERIES[0],
                    lw=1.4, label="this noise")  # fmt: skip
        for k, (name, peer) in enumerate(known, 1):
            axes.plot(middles, peer, lw=0.9, color=SERIES[k % len(SERIES)], label=name)
    left.set_xlim(-near, near)
    right.set_yscale("log")
    right.set_ylim(bottom=max(1e-9, 0.3 * float(values[values > 0].min())))
    right.legend(fontsize=8)
    return "noise", "density"


def _draw_pairs(design: PlanarNoise, left: Axes, right: Axes) -> tuple[str, str]:
    """Probabilities of pairs as two maps, and what the axes show."""
    from matplotlib.colors import LogNorm

    law = design.law
    far = min(law.n + 2 * len(law.tails), _MOST_SIDE)
    ends = range(-far, far + 1)
    values = np.array([[float(law.at(x, y)) for x in ends] for y in ends])
    share = [values[far - k : far + k + 1, far - k : far + k + 1].sum() for k in range(far + 1)]
    near = max(3, min(far, int(np.searchsorted(share, _SHOWN)) + 1))
    inner = slice(far - near, far + near + 1)
    size, most = near + 0.5, float(values.max())
    first = left.imshow(values[inner, inner], origin="lower", extent=(-size, size, -size, size))
    # what is next to impossible does not set the scale
    scale = LogNorm(vmin=max(most * _FAINTEST, float(values[values > 0].min())), vmax=most)
    size = far + 0.5
    held = np.where(values > 0, values, np.nan)
    second = right.imshow(held, origin="lower", norm=scale, extent=(-size, size, -size, size))
    for axes, image in ((left, first), (right, second)):
        left.figure.colorbar(image, ax=axes, label="probability")
    return "noise of the first", "noise of the second"
