"""Noise for several releases: the least loss for which all of them together keep (ε, δ)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import OptmechError, ProblemError, TooLargeError
from optmech.exact.checked import probability, whole
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, parse_exact, rounded_down, rounded_up
from optmech.noise.additive.composition import ComposedPrivacy
from optmech.noise.additive.design import NoiseDesign
from optmech.noise.additive.lattice import MOST_EXPONENT
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import LossLike, NoiseLoss
from optmech.noise.additive.privacy import largest_delta
from optmech.noise.optimum import optimal, reach_of
from optmech.noise.proposals import tail_ratio, with_tails
from optmech.noise.session import Note
from optmech.spaces.arguments import checked_arguments

EXPONENTS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5)
"""Of the laws z(k) ∝ exp(-(|k|/a)^p) that are tried: p = 1 is Laplace's, p = 2 Gauss'."""
SHARES = (0.0, 0.1, 0.5, 0.9)
"""Of δ that single releases may spend, all together."""
MANY = 400
"""From more releases on only Gaussian noise is calibrated."""
_MOST_RELEASES = 10_000
_NODES = 2**16
_BISECTIONS = 14
_AIMS = 8
_ROOM = 1e-5
"""The share of δ that the proof in whole numbers may lack."""
_COARSEST = 5
_LATTICES = 4
_TAIL = 60.0


@record
class ReleaseNoise(Shown):
    """The result of ``om.noise.for_releases``: ``design`` is the noise of every release, with its
    own promise for one; ``privacy`` what all of them together promise, proved by ``bounds``.

    ``loss`` is that of one release. ``lower_bound`` is of all noise that is (ε, δ)-private for a
    single release, as noise for several is. ``tried`` has the loss of every law that was
    calibrated, by name, the calibrated "discrete Gaussian" among them. ``together`` is the same
    family with the promise of all releases as its own, proved in whole numbers: to save, check and
    audit.

    Examples
    --------
    >>> two = om.noise.for_releases(1, 1e-3, 2)
    >>> print(two.loss >= two.lower_bound, two.privacy.delta(1).upper <= 1e-3)
    True True
    """

    design: NoiseDesign
    privacy: ComposedPrivacy
    epsilon: Exact
    delta: Exact
    lower_bound: float
    name: str
    tried: dict[str, float]
    together: NoiseDesign

    @property
    def loss(self) -> float:
        """E c(Z) of one release, rounded up."""
        return self.design.loss


@checked_arguments
def for_releases(
    epsilon: Number,
    delta: Number,
    releases: int,
    *,
    sensitivity: int = 1,
    loss: LossLike = "absolute",
    width: int | None = None,
    note: Note | None = None,
) -> ReleaseNoise:
    """Noise for ``releases`` numbers, each changed by at most ``sensitivity``, that are together
    (ε, δ)-private; of small loss, which is searched among calibrated families: the best noise of a
    single release at a smaller ε and δ, and exp(-(|k|/a)^p) for several p; of more than 400
    releases among discrete Gaussians.

    The promise is proved (the upper bound of ``ComposedPrivacy.delta``); that no other noise does
    better is not, but for the bound from a single release. Raises ProblemError for arguments that
    are none of this, δ = 0 among them.

    Examples
    --------
    >>> two = om.noise.for_releases(1, 1e-3, 2)
    >>> print(two.loss <= two.tried["discrete Gaussian"])
    True
    """
    rate, part = parse_exact(epsilon, where="epsilon", positive=True), probability(delta)
    if not part > 0:
        raise ProblemError("must be above 0", where="delta", remedy="Without δ, divide ε by k")
    count = whole(releases, "releases", 1, _MOST_RELEASES)
    steps = whole(sensitivity, "sensitivity", 1, 1000)
    reach = reach_of(float(rate) / count, float(part), steps)
    measure = NoiseLoss.of(loss, width, reach)
    started = time.perf_counter()
    say = note or (lambda _: None)
    once = optimal(rate, part, sensitivity=steps, loss=measure)
    best: tuple[float, str, Law, Made, float] | None = None
    tried: dict[str, float] = {}

    limit = rounded_down(bracket(part)[0])

    def private(law: Law, nodes: int, most: float = limit) -> bool:
        found = ComposedPrivacy(law, steps, count, nodes).delta(rate)
        return found.upper <= most

    for name, made, start in _families(measure, rate, part, steps, count):
        law = _calibrated(made, start, private)
        if law is None:
            continue
        tried[name] = float(law.expected(measure))
        say(f"{name}: loss {tried[name]:.6g}")
        if best is None or tried[name] < best[0]:
            best = tried[name], name, law, made, start
    if best is None:
        raise ProblemError(
            "no noise of the families tried keeps it",
            where="epsilon",
            remedy="Allow a larger ε or δ, or fewer releases",
        )
    law = best[2]
    single = Exact(Fraction(rounded_up(largest_delta(law, rate, steps)[0])))
    design = NoiseDesign(law, measure, rate, single, steps).require_private()
    privacy = ComposedPrivacy(law, steps, count)
    if privacy.delta(rate).upper > limit:
        # for a tiny δ the transform's error grows with the lattice: that of the proof is kept
        privacy = ComposedPrivacy(law, steps, count, _NODES)
    stated = replace(once, law=law, releases=count, seconds=0.0)
    if count > 1:
        stated = _stored(stated, best[3], best[4], private)
    stated = replace(stated, seconds=time.perf_counter() - started)
    return ReleaseNoise(design, privacy, rate, part, once.lower_bound, best[1], tried, stated)


Made = Callable[[float], Law | None]


def _stored(
    stated: NoiseDesign, made: Made, start: float, private: Callable[[Law, int, float], bool]
) -> NoiseDesign:
    """The law of a family whose promise for all releases is proved on a lattice of whole numbers,
    which knows δ a little less sharply than floats do."""
    limit = rounded_down(bracket(stated.delta)[0])
    most = limit
    for _ in range(_AIMS):
        found = _on_a_lattice(stated)
        if found.proved_delta <= limit * (1 - _ROOM):
            return found.require_private()
        most *= min(1 - _ROOM, limit / float(found.proved_delta)) * (1 - _ROOM)
        aim = most
        law = _calibrated(made, start, lambda law, nodes, aim=aim: private(law, nodes, aim))  # type: ignore[misc]
        if law is None:
            break
        stated = replace(stated, law=law)
    raise ProblemError(
        "the promise of all releases could not be proved on a lattice of losses",
        where="releases",
        remedy="Allow a larger ε or δ, or fewer releases",
    )


def _on_a_lattice(stated: NoiseDesign) -> NoiseDesign:
    """The design with the coarsest lattice that finer ones hardly improve on."""
    best: NoiseDesign | None = None
    for exponent in range(_COARSEST, MOST_EXPONENT + 1):
        tried = replace(stated, exponent=exponent)
        try:
            known = tried.proved_delta
        except TooLargeError:
            break
        better = best is None or known < best.proved_delta
        small = best is not None and known > best.proved_delta * (1 - Fraction(_ROOM) / 4)
        best = tried if better else best
        if small and exponent > _COARSEST + _LATTICES:
            break
    if best is None:
        raise TooLargeError("losses spread over too many places", where="releases")
    return best


def _families(
    loss: NoiseLoss, rate: Exact, part: Exact, steps: int, count: int
) -> Iterator[tuple[str, Made, float]]:
    """Names, laws as functions of a size (more is more private), and a size to start from."""
    spread = steps * math.sqrt(count) / float(rate)
    # sums of many losses are nearly normal, and so is the best noise
    for p in EXPONENTS if count <= MANY else (2.0,):
        name = {1.0: "discrete Laplace", 2.0: "discrete Gaussian"}.get(p, f"exponent {p:g}")
        yield name, lambda size, p=p: _power(size, p), spread  # type: ignore[misc]
    for share in SHARES if count <= MANY // 2 else ():
        one = Exact(Fraction(float(part) * share / count))

        def single(size: float, one: Exact = one) -> Law | None:
            try:
                return optimal(
                    Fraction(steps / size), one, sensitivity=steps, loss=loss, gap=1e-4
                ).law
            except OptmechError:
                return None

        yield f"optimal for one, δ share {share:g}", single, spread


def _power(size: float, p: float) -> Law:
    """z(k) ∝ exp(-(|k|/size)^p), cut where it is below e^-60 of the most."""
    k = np.arange(math.ceil(size * _TAIL ** (1 / p)) + 2.0)
    pmf: Floats = np.exp(-((k / size) ** p))
    pmf[-1] = 0.0
    return with_tails(pmf, 1, *tail_ratio(Exact(Fraction(1))))


def _calibrated(made: Made, start: float, private: Callable[[Law, int], bool]) -> Law | None:
    """The law of the least size that is private, proved on the finer lattice."""

    def holds(size: float) -> bool:
        law = made(size)
        return law is not None and private(law, _NODES)

    high = start
    for _ in range(12):
        if holds(high):
            break
        high *= 1.6
    else:
        return None
    low = high / 1.6
    while low > start / 100 and holds(low):
        low, high = low / 1.6, low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return made(high)
