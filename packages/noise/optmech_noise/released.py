"""What numbers are released with: noise for each of them, what is assumed, and what is gained."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from optmech.base.machine import needed
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.certificate.objective import relative_gap
from optmech.errors import ProblemError
from optmech.exact.arguments import probability, whole
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, parse_exact, rounded_up
from optmech_noise.additive.design import NoiseDesign, RealNoise
from optmech_noise.baselines import gaussian_scale
from optmech_noise.exchange import noise_to_dp_accounting, noise_to_opendp

Loss = Literal["absolute", "square"]


@record
class Release(Shown):
    """What numbers are released with: the result of ``om.noise.histogram``, ``clipped_sum``,
    ``mean`` and ``together``.

    ``noise`` is that of every number, or of each of them in order; ``assumes`` says what one person
    may change, in a sentence. A person changes ``numbers`` of them at most, each by at most the
    sensitivity of its noise. ``keeps`` is what all released numbers keep together.

    Examples
    --------
    >>> counts = om.noise.histogram(1, 1e-6)
    >>> print(counts.assumes)
    One person more or less in the data changes 1 count by at most 1.
    >>> len(counts.release([120, 45, 0])), counts.status
    (3, 'optimal')
    >>> print(f"{counts.saved['geometric']:.3f} {counts.saved['Gaussian']:.2f}")
    0.000 0.75
    >>> counts.save("counts.json")
    >>> print(counts.gained[:36])  # of |noise|
    Loses 0 % less than geometric noise,
    >>> measurement = counts.opendp()
    >>> len(measurement([120, 45, 0])), measurement.map((1, 1, 1))[0]
    (3, 1.0)
    >>> pld = counts.dp_accounting()
    >>> print(round(pld.get_epsilon_for_delta(1e-6), 3))
    1.0
    """

    noise: tuple[NoiseDesign | RealNoise, ...]
    assumes: str
    epsilon: Exact
    delta: Exact
    numbers: int
    known: tuple[tuple[str, float], ...]
    """Losses of what people use, by name."""
    spent: Fraction | None = None
    """A number at or above δ of all numbers together, where the noise's own promise is another."""
    floor: float | None = None
    """A bound on the loss of all noise, where the noise's own is of another promise."""
    norm: str = ""
    """"l1" or "l2" where all changes together are bounded in that by ``most``."""
    most: Fraction = Fraction(0)

    @property
    def keeps(self) -> str:
        """What is promised, in words."""
        return f"(ε, δ) = ({self.epsilon.words}, {self.delta.words}) of all numbers together"

    @property
    def loss(self) -> float:
        """The mean expected loss of a number, rounded up."""
        return rounded_up(sum((n.exact_loss for n in self.noise), Fraction(0)) / len(self.noise))

    @property
    def lower_bound(self) -> float:
        """What is proved of the loss of all noise that is as private and has the same law for every
        number; of several numbers with δ > 0 of what each of them has to keep."""
        if self.floor is not None:
            return self.floor
        return float(sum(n.lower_bound for n in self.noise) / len(self.noise))

    @property
    def gap(self) -> float:
        """The relative difference of loss and bound."""
        return relative_gap(self.loss, self.lower_bound)

    @property
    def status(self) -> str:
        """ "optimal" where every noise is, else "feasible"."""
        best = self.floor is None and all(n.status == "optimal" for n in self.noise)
        return "optimal" if best else "feasible"

    @property
    def saved(self) -> dict[str, float]:
        """Which share of the loss of other noise is saved, by its name: "geometric" (of whole
        numbers), "Laplace" and, where δ > 0, "Gaussian" noise that keeps the same promise."""
        return {name: 1 - self.loss / loss for name, loss in self.known}

    @property
    def gained(self) -> str:
        """What is gained, in a sentence."""
        parts = [
            f"{abs(share):.0%} {'less' if share > -5e-3 else 'more'} than {name} noise"
            for name, share in self.saved.items()
        ]
        return f"Loses {', '.join(parts).replace('%', ' %')}."

    @cached_property
    def _whole(self) -> bool:
        return all(n.numbers == "whole numbers" for n in self.noise)

    def _of(self, count: int) -> list[NoiseDesign | RealNoise]:
        """The noise of every number; raises ProblemError where there are more or fewer numbers."""
        if len(self.noise) == 1:
            return [self.noise[0]] * count
        if len(self.noise) != count:
            raise ProblemError(
                f"has {count} numbers, not {len(self.noise)}",
                where="values",
                remedy="Give one for every bound",
            )
        return list(self.noise)

    def release(self, values: Any, *, seed: int | None = None) -> Any:
        """A number, or every number of a list, plus noise of its own, drawn exactly from the
        system's entropy; a seed makes draws reproducible and unfit for release. Raises ProblemError
        for what are no such numbers, or not as many."""
        if not isinstance(values, Iterable) or isinstance(values, str):
            return self.release([values], seed=seed)[0]
        given = list(values)
        if seed is not None:
            seed = whole(seed, "seed", 0)
        return [
            _drawn(noise, value, None if seed is None else seed + k)
            for k, (noise, value) in enumerate(zip(self._of(len(given)), given, strict=True))
        ]

    def opendp(self) -> Any:
        """A user-defined OpenDP measurement that adds the noise: to a number, with the absolute
        distance as its metric, where a person changes only one that there is; else to a list, with
        ``l01inf_distance``: (how many numbers change, by how much in all, by how much each). Raises
        ProblemError without opendp."""
        if self.numbers == 1 and self._single:
            return noise_to_opendp(self.noise[0])
        dp = needed("opendp.prelude", "opendp", where="opendp")
        dp.enable_features("contrib", "honest-but-curious")
        kept = rounded_up(bracket(self.epsilon)[1])
        part = rounded_up(bracket(self.delta)[1])

        def spent(distance: Any) -> Any:
            count, total, most = distance
            if self.norm:
                # the sum of changes is at least their l2 norm, and that at most √count times most
                low = min(total, count * most)
                root = math.isqrt(count - 1) + 1 if count else 0
                low = min(low, root * most) if self.norm == "l2" else low
                fits = count <= self.numbers and low <= self.most
            else:
                fits = count <= self.numbers and most <= min(n.sensitivity for n in self.noise)
            found = (kept, part) if fits else (math.inf, 1.0)
            none = (0.0, 0.0) if not count or not most else found
            return none if part else none[0]

        pure = dp.max_divergence()
        number: Any = "i64" if self._whole else float
        atoms = dp.atom_domain(T=number) if self._whole else dp.atom_domain(T=float, nan=False)
        return dp.m.make_user_measurement(
            dp.vector_domain(atoms),
            dp.l01inf_distance(dp.absolute_distance(T=number)),
            dp.approximate(pure) if part else pure,
            lambda values: list(self.release(values)),
            spent,
        )

    @property
    def _single(self) -> bool:
        return "sum" in self.assumes or "mean" in self.assumes

    def dp_accounting(self, *, interval: float = 1e-4) -> Any:
        """A ``PrivacyLossDistribution`` of dp-accounting for everything that one person changes.
        Raises ProblemError without dp-accounting."""
        if self.norm:
            # of a bound for all together no more is known than the promise
            pld = needed("dp_accounting.pld.privacy_loss_distribution", "dp-accounting", where="dp")
            common = needed("dp_accounting.pld.common", "dp-accounting", where="dp")
            kept = (rounded_up(bracket(end)[1]) for end in (self.epsilon, self.delta))
            stated = common.DifferentialPrivacyParameters(*kept)
            return pld.from_privacy_parameters(stated, value_discretization_interval=interval)
        made = [noise_to_dp_accounting(noise, interval=interval) for noise in self.noise]
        if len(made) == 1:
            return made[0].self_compose(self.numbers) if self.numbers > 1 else made[0]
        together = made[0]
        for other in made[1:]:
            together = together.compose(other)
        return together

    def save(self, path: str | Path) -> None:
        """Write the noise to a file, which ``om.check`` proves again. Raises ProblemError where
        numbers have different noise: save each of ``noise``."""
        if len(self.noise) > 1:
            raise ProblemError("has several laws", where="noise", remedy="Save each of them")
        self.noise[0].save(path)


def _drawn(noise: NoiseDesign | RealNoise, value: Any, seed: int | None) -> Any:
    if not isinstance(noise, RealNoise):
        return whole(value, "values", None) + int(noise.law.sample(1, seed)[0])
    drawn: Any = noise.release(value, seed=seed)
    return drawn if isinstance(drawn, int) else float(drawn)


def released(
    noise: Any, assumes: str, epsilon: Number, delta: Number, numbers: int,
    most: Fraction | int, loss: Loss, **more: Any,
) -> Release:  # fmt: skip
    """What is released with this noise, and what others would lose; ``more`` are further fields."""
    rate, part = parse_exact(epsilon, where="epsilon"), probability(delta)
    several = noise if isinstance(noise, tuple) else (noise,)
    made = Release(several, assumes, rate, part, numbers, (), **more)
    norm = "l1" if " in l1" in assumes else "l2" if " in l2" in assumes else ""
    degree = 1 + (loss == "square")
    size = sum(float(n.sensitivity) ** degree for n in several) / len(several)
    unit = float(most) if norm else size ** (1 / degree)
    known = _known(rate, part, unit, numbers, norm, loss, whole_numbers=made._whole)
    return replace(made, norm=norm, most=Fraction(most), known=tuple(known.items()))


def _known(
    rate: Exact, part: Exact, unit: float, count: int, norm: str, loss: Loss, *,
    whole_numbers: bool,
) -> dict[str, float]:  # fmt: skip
    """What known noise loses that keeps the same promise, nearly."""
    found: dict[str, float] = {}
    square = loss == "square"
    if rate > 0:
        # changes in l1, at most
        scale = unit * (1 if norm == "l1" else count**0.5 if norm == "l2" else count) / float(rate)
        if whole_numbers:
            r, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)
            found["geometric"] = 2 * r / rest**2 if square else 2 * r / (rest * (1 + r))
        found["Laplace"] = 2 * scale**2 if square else scale
    if rate > 0 and part > 0:
        sigma = gaussian_scale(float(rate), float(part), unit * (1 if norm else count**0.5))
        found["Gaussian"] = sigma**2 if square else sigma * math.sqrt(2 / math.pi)
    return found
