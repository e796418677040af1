"""The best noise for a single release, what is promised and the search that suits it; and for
several releases, the least loss for which all of them together keep (ε, δ).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.bisection import bisected
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.certificate.objective import OPTIMAL_GAP
from optmech.errors import InfeasibleError, OptmechError, ProblemError, TooLargeError
from optmech.exact.arguments import probability, whole
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, parse_exact, rounded_down, rounded_up
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.bound import largest_delta, nothing
from optmech_noise.additive.composition import ComposedPrivacy
from optmech_noise.additive.design import NoiseDesign
from optmech_noise.additive.file import MOST_RELEASES
from optmech_noise.additive.law import Law, certain
from optmech_noise.additive.loss import LossLike, NoiseLoss
from optmech_noise.additive.pairs import MOST_EXPONENT
from optmech_noise.additive.shaped import ShapedNoise
from optmech_noise.additive.shaped_law import SidedLoss
from optmech_noise.curves import stated_curve
from optmech_noise.proposals import tail_ratio, tidied, with_tails
from optmech_noise.repeated import MOST_WITH_DISTANCE, Repeated
from optmech_noise.search import MOST_ROWS, D, Search, truncated_end
from optmech_noise.session import Note, Promise, require_range, silent
from optmech_noise.shaped import ShapedSearch, certain_place

_LEAST_EPSILON = 1e-4
_LEAST_DELTA = 1e-100
_LEAST_REACH, _MOST_REACH = 64, 9_000
_FALLS = 30.0
"""Noise without δ falls by e^-30 at least within so many sensitivities over ε."""

_GOLDEN = (math.sqrt(5) - 1) / 2
_FEW = 8
ROUGH = 1e-3
"""Above such a δ the best noise need not nearly fall."""
_NEAR = 1.25
"""Of the sensitivity, how far from the centre such noise would gather."""
_WIDEST = 1.05
MANY_SHIFTS = 24
"""Above so many whole numbers noise is searched by shifts first."""


def positive_promise(epsilon: Number, delta: Number) -> Promise:
    """ε > 0 and δ; raises ProblemError for what is none."""
    return parse_exact(epsilon, where="epsilon", positive=True), probability(delta)


def stated_promise(epsilon: Number, delta: Number) -> Promise:
    """ε and δ as they are searched for; raises ProblemError for what is none or out of range,
    InfeasibleError where both are 0."""
    rate, part = parse_exact(epsilon, where="epsilon"), probability(delta)
    require_range(rate, _LEAST_EPSILON, zero=True)
    require_delta(part, _LEAST_DELTA)
    if not rate > 0 and not part > 0:
        raise InfeasibleError(
            "with ε = δ = 0 all shifts of the noise would be the same distribution",
            where="epsilon",
            remedy="Allow some ε or δ",
        )
    return rate, part


def require_delta(part: Exact, least: float) -> None:
    """Raise ProblemError for a δ above 0 that is too small for floats."""
    if bracket(part)[1] > 0 and part < least:
        raise ProblemError(f"is below {least:g}", where="delta", remedy="Give 0, or more than that")


def reach_of(rate: float, part: float, steps: int) -> int:
    """How far out noise is likely enough for the values of a function to matter, as far as windows
    go."""
    far = math.inf if rate <= 0 else _FALLS * steps / rate
    if part > 0:
        far = min(far, truncated_end(rate, part, steps))
    return int(max(_LEAST_REACH, min(far, _MOST_REACH, MOST_ROWS / (2 * steps))))


def best_single(
    measure: NoiseLoss,
    promise: Promise,
    steps: int,
    gap: float = OPTIMAL_GAP,
    note: Note = silent,
) -> NoiseDesign:
    """The noise of least loss on whole numbers of which one release keeps ε and δ."""
    stated = NoiseDesign(certain(), measure, *promise, steps)
    if stated.delta >= 1:
        # all noise is private: never anything but what costs least
        return replace(stated, law=certain(measure.cheapest), multipliers=nothing(steps))
    chosen = ShiftSearch if steps > MANY_SHIFTS else Search
    return chosen(stated, gap, note).best()


class ShiftSearch(Search[D]):
    """First the best noise that falls from the centre, for which one shift is enough, and a bound
    from few shifts; then all of them, where that is not enough."""

    def best(self) -> D:
        if self.approximate and not self.loss.is_bounded:
            with self._stopping():
                try:
                    self._falling()
                finally:
                    self._few()
            self.note(f"falling noise, few shifts: gap {self._gap():.2g}")
            if self._is_enough():
                return self._joined()
        return super().best()

    def _is_enough(self) -> bool:
        """Whether nothing more is searched."""
        return self._gap() <= self.gap

    def _falling(self) -> None:
        """The best noise that falls from the centre."""
        above = self.stated.majorant
        window = self._windowed(int(_WIDEST * self.truncated) + above.last + 2)
        window = replace(window, loss=above, ratio=0.0, falling=True)
        self._repaired(tidied(self._solved(window, [self.sensitivity]), window))

    def _few(self) -> None:
        """A bound from few shifts, and of them but for the largest only near the centre, where
        noise that need not fall would gather."""
        rate, cells = self.rate, self.sensitivity
        count = min(cells, _FEW + math.ceil(1.2 * (1 + math.exp(rate / 2))))
        spread = (round(cells * (_GOLDEN * j % 1)) or 1 for j in range(1, count + 1))
        n = int(self.truncated) + 2 + self.loss.last
        # with a tiny δ there is next to nothing farther out, and programs with it are ill-scaled
        share = _NEAR if self.part > ROUGH else min(0.75, 3 / (1 + math.exp(rate / 3)))
        window = replace(self._windowed(n), near=math.ceil(share * cells))
        self._prove(window, self._solved(window, sorted({1, cells, *spread})))


EXPONENTS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5)
"""Of the laws z(k) ∝ exp(-(|k|/a)^p) that are tried: p = 1 is Laplace's, p = 2 Gauss'."""
SHARES = (0.0, 0.1, 0.5, 0.9)
"""Of δ that single releases may spend, all together."""
MANY = 400
"""From more releases on only Gaussian noise is calibrated."""
_NODES = 2**16
_BISECTIONS = 14
_AIMS = 8
_ROOM = 1e-5
"""The share of δ that the proof in whole numbers may lack."""
_MOST_STEPS = 8
"""Sensitivities for which a bound of several releases is looked for."""
_MOST_HALVED, _NARROW, _CURVE_GAP = 10, 0.005, 3e-3
_COARSEST = 5
_LATTICES = 4
_TAIL = 60.0


@record
class ReleaseNoise(Shown):
    """The result of ``om.noise.for_releases``: ``design`` is the noise of every release, with its
    own promise for one; ``privacy`` what all of them together promise, proved by ``bounds``.

    ``loss`` is that of one release. ``lower_bound`` is of all noise with the same law in every
    release: the larger of that for a single release, and of that for what single releases have to
    keep so that no count of an event and its mirror image tells too much
    (``om.noise.curve(releases=…)``).
    ``tried`` has the loss of every law that was calibrated, by name, the calibrated "discrete
    Gaussian" among them; families that are seen to lose more are not. ``together`` is the same
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
    better is not, but for ``lower_bound``. Raises ProblemError for arguments that
    are none of this, δ = 0 among them.

    Examples
    --------
    >>> two = om.noise.for_releases(1, 1e-3, 2)
    >>> print(two.loss <= two.tried["discrete Gaussian"])
    True
    """
    rate, part = positive_promise(epsilon, delta)
    if not part > 0:
        raise ProblemError("must be above 0", where="delta", remedy="Without δ, divide ε by k")
    count = whole(releases, "releases", 1, MOST_RELEASES)
    steps = whole(sensitivity, "sensitivity", 1, 1000)
    reach = reach_of(float(rate) / count, float(part), steps)
    measure = NoiseLoss.of(loss, width, reach)
    started = time.perf_counter()
    say = note or silent
    once = best_single(measure, stated_promise(rate, part), steps)

    def spent(law: Law) -> float:
        return ComposedPrivacy(law, steps, count, _NODES).delta(rate).upper

    limit = rounded_down(bracket(part)[0])
    tried: dict[str, float] = {}
    found: list[tuple[Family, Law]] = []
    for family in _families(measure, rate, part, steps, count):
        # what people use is calibrated anyway
        least = min(tried.values()) if tried and family.searched else math.inf
        if (law := family.calibrated(spent, limit, measure, least)) is not None:
            found.append((family, law))
            tried[family.name] = float(law.expected(measure))
            say(f"{family.name}: loss {tried[family.name]:.6g}")
    if not found:
        raise ProblemError(
            "no noise of the families tried keeps it",
            where="epsilon",
            remedy="Allow a larger ε or δ, or fewer releases",
        )
    best, law = min(found, key=lambda pair: tried[pair[0].name])
    single = Exact(Fraction(rounded_up(largest_delta(law, rate, steps)[0])))
    design = NoiseDesign(law, measure, rate, single, steps).require_private()
    privacy = ComposedPrivacy(law, steps, count)
    if privacy.delta(rate).upper > limit:
        # for a tiny δ the transform's error grows with the lattice: that of the proof is kept
        privacy = ComposedPrivacy(law, steps, count, _NODES)
    stated = replace(once, law=law, releases=count, seconds=0.0)
    if count > 1:
        stated = _stored(stated, best, spent, limit)
    stated = replace(stated, seconds=time.perf_counter() - started)
    least = max(once.lower_bound, bound_of_each(rate, part, count, steps, measure, say))
    return ReleaseNoise(design, privacy, rate, part, least, best.name, tried, stated)


def bound_of_each(
    rate: Exact, part: Exact, count: int, steps: int, measure: NoiseLoss, note: Note = silent
) -> float:
    """A bound on the loss of all noise of which so many releases keep ε and δ together, from what
    each of them has to keep; 0 where none is found. For sensitivity 1 and few releases it is the
    least of several, by how far apart the two laws of a release are."""
    if count == 1 or steps > _MOST_STEPS or not part > 0:
        return 0.0
    kept, sides = Repeated(float(rate), float(part), count), SidedLoss(measure, measure)

    def under(pairs: Sequence[tuple[float, float]]) -> float:
        stated = stated_curve(None, 0, pairs)
        noise = ShapedNoise(certain_place(None, None), sides, stated, steps)
        return ShapedSearch(noise, _CURVE_GAP, silent).best().lower_bound

    def between(low: float, high: float) -> tuple[float, float, float]:
        """A bound of noise of which the laws are that far apart, with these ends."""
        pairs = [(r, min(part, high)) for r, part in kept.pairs(low)]
        return under(pairs) if pairs else math.inf, low, high

    try:
        if steps > 1 or count > MOST_WITH_DISTANCE:
            return under(kept.pairs())
        # between two distances; the part with the least bound is halved
        far = kept.farthest
        ends = [0.0, 0.4 * far, 0.7 * far, far]
        parts = [between(*each) for each in itertools.pairwise(ends)]
        for _ in range(_MOST_HALVED):
            worst = min(parts)
            low, high = worst[1:]
            if high - low < _NARROW * far:
                break
            middle = (low + high) / 2
            parts.remove(worst)
            parts += [between(low, middle), between(middle, high)]
            note(f"bound {min(parts)[0]:.6g} of {count} releases")
        return min(parts)[0]
    except OptmechError:
        return 0.0


class Family(NamedTuple):
    """Laws by a size, of which more is more private, and a size to start from."""

    name: str
    law: Callable[[float], Law | None]
    start: float
    searched: bool = False

    def calibrated(
        self,
        delta: Callable[[Law], float],
        most: float,
        measure: NoiseLoss | None = None,
        least: float = math.inf,
    ) -> Law | None:
        """The law of the least size with so small a δ; None where there is none, or ones that keep
        less lose ``least`` already."""
        kept: dict[float, Law | None] = {}

        def holds(size: float) -> bool:
            law = kept[size] = self.law(size)
            return law is not None and delta(law) <= most

        def beaten(size: float) -> bool:
            law = kept.get(size)
            return measure is not None and law is not None and law.expected(measure) >= least

        high = self.start
        for _ in range(12):
            if holds(high):
                break
            if beaten(high):
                return None
            high *= 1.6
        else:
            return None
        low = high / 1.6
        while low > self.start / 100 and holds(low):
            low, high = low / 1.6, low
        return None if beaten(low) else self.law(bisected(holds, low, high, _BISECTIONS)[1])


def _stored(
    stated: NoiseDesign, family: Family, delta: Callable[[Law], float], limit: float
) -> NoiseDesign:
    """The law of a family whose promise for all releases is proved on a lattice of whole numbers,
    which knows δ a little less sharply than floats do."""
    most = limit
    for _ in range(_AIMS):
        found = _on_a_lattice(stated)
        if found.proved_delta <= limit * (1 - _ROOM):
            return found.require_private()
        most *= min(1 - _ROOM, limit / float(found.proved_delta)) * (1 - _ROOM)
        law = family.calibrated(delta, most)
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
) -> Iterator[Family]:
    """Those that are tried."""
    spread = steps * math.sqrt(count) / float(rate)
    # sums of many losses are nearly normal, and so is the best noise
    for p in EXPONENTS if count <= MANY else (2.0,):
        name = {1.0: "discrete Laplace", 2.0: "discrete Gaussian"}.get(p, f"exponent {p:g}")
        yield Family(name, partial(_power, p), spread)
    for share in SHARES if count <= MANY // 2 else ():
        one = Exact(Fraction(float(part) * share / count))

        def single(size: float, one: Exact = one) -> Law | None:
            try:
                promise = stated_promise(Fraction(steps / size), one)
                return best_single(loss, promise, steps, 1e-4).law
            except OptmechError:
                return None

        yield Family(f"optimal for one, δ share {share:g}", single, spread, searched=True)


def _power(p: float, size: float) -> Law:
    """z(k) ∝ exp(-(|k|/size)^p), cut where it is below e^-60 of the most."""
    k = np.arange(math.ceil(size * _TAIL ** (1 / p)) + 2.0)
    pmf: Floats = np.exp(-((k / size) ** p))
    pmf[-1] = 0.0
    return with_tails(pmf, 1, *tail_ratio(Exact(Fraction(1))))
