"""Pictures of noise. Needs matplotlib, and draws without a display."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.number import from_below
from optmech.show.plots.drawing import SERIES, new_figure, require_matplotlib, save
from optmech_noise.additive.cells import CellNoise
from optmech_noise.additive.design import NoiseDesign, RealNoise
from optmech_noise.additive.planar import PlanarNoise
from optmech_noise.additive.renyi import DivergenceNoise
from optmech_noise.additive.result import LatticeNoise, ProvedNoise
from optmech_noise.baselines import gaussian_scale

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
    else:
        assert isinstance(design, LatticeNoise)
        x, y = _draw_line(design, left, right)
    for axes in (left, right):
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    figure.suptitle(
        f"{design.promise}: {design.measured} {design.loss:.4g}, lower bound "
        f"{from_below(design.lower_bound, 4)}",
        fontsize=10,
    )
    save(figure, file)


def _draw_line(design: LatticeNoise, left: Axes, right: Axes) -> tuple[str, str]:
    """Probabilities of whole numbers or a density, beside those of known noise; and what the axes
    show."""
    law, width = design.law, float(design.step) if isinstance(design, CellNoise) else 1.0
    whole = not isinstance(design, CellNoise)
    far = min(law.n + 3 * len(law.tails), _MOST_BARS if whole else _MOST_CELLS)
    places = np.arange(-far, far + 1)
    masses = np.array([float(law.at(abs(k))) for k in places.tolist()])
    near = _near(np.cumsum(masses[far:] * np.where(np.arange(far + 1), 2, 1)))
    values = np.where(masses > 0, masses / width, np.nan)
    ends = (np.arange(-far, far + 2) - 0.5) * width
    at = np.asarray(places * width, dtype=np.float64)
    known = _known(design, at, whole)
    for axes in (left, right):
        axes.stairs(values, ends, fill=whole and axes is left, color=SERIES[0], lw=1.4,
                    label="this noise")  # fmt: skip
        for (name, peer), colour in zip(known.items(), SERIES[1:], strict=False):
            axes.plot(at, peer, lw=0.9, color=colour, label=name)
    left.set_xlim(-(near + 0.5) * width, (near + 0.5) * width)
    right.set_yscale("log")
    right.set_ylim(bottom=max(_FAINTEST, 0.3 * float(np.nanmin(values))))
    right.legend(fontsize=8)
    return "noise", "probability" if whole else "density"


def _near(share: Floats) -> int:
    """Within how many steps of 0 nearly all of the noise is, by its shares within each number."""
    return max(3, min(len(share) - 1, int(np.searchsorted(share, _SHOWN)) + 1))


def _known(design: LatticeNoise, at: Floats, whole: bool) -> dict[str, Floats]:
    """Known noise that keeps the same promise, at whole numbers or as a density."""
    from scipy.stats import dlaplace, laplace, norm

    span, known = float(design.sensitivity), dict[str, Floats]()
    if isinstance(design, DivergenceNoise):
        wide = max(float(order) / (2 * float(rate)) for order, rate in design.bounds)
        peer = norm.pdf(at, scale=span * math.sqrt(wide))
        if whole:
            known["discrete Gaussian"] = peer / peer.sum()
        else:
            known["Gaussian of the same divergence"] = peer
    elif isinstance(design, NoiseDesign) and design.epsilon > 0:
        known["two-sided geometric"] = dlaplace.pmf(at, float(design.epsilon) / span)
    elif isinstance(design, RealNoise):
        rate, part = float(design.each), float(design.delta)
        if rate > 0:
            known["Laplace"] = laplace.pdf(at, scale=span / rate)
            step = 1 / (1 + math.exp(rate / 2))
            level = np.floor(np.abs(at) / span + 1 - step)
            first = -math.expm1(-rate) / (2 * span * (step + math.exp(-rate) * (1 - step)))
            known["staircase"] = first * np.exp(-rate * level)
        if part > 0:
            known["analytic Gaussian"] = norm.pdf(at, scale=gaussian_scale(rate, part, span))
    return known


def _draw_pairs(design: PlanarNoise, left: Axes, right: Axes) -> tuple[str, str]:
    """Probabilities of pairs as two maps, and what the axes show."""
    from matplotlib.colors import LogNorm

    law = design.law
    far = min(law.n + 2 * len(law.tails), _MOST_SIDE)
    ends = range(-far, far + 1)
    values = np.array([[float(law.at(x, y)) for x in ends] for y in ends])
    squares = (slice(far - k, far + k + 1) for k in range(far + 1))
    near = _near(np.array([values[square, square].sum() for square in squares]))
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
