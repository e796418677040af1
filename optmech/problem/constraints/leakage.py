"""What the best guess of an adversary gains by a report, whatever may be guessed, under a prior or
for every one (leakage); and by how much even the best attack errs (distortion)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis import measures
from optmech.base.arrays import Floats
from optmech.base.read_only import Converted, checked, converted, record
from optmech.certificate.families import Distortion, Leakage, LiftedRatio
from optmech.certificate.families.ratio import rounded_product
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, parse_exact, rounded_down
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field
from optmech.problem.gains import (
    PRIOR_FREE,
    Adversary,
    Gain,
    as_gain,
    block_gains,
    gain_matrix,
    gain_words,
    gained,
)
from optmech.problem.promised import LEAKAGE, Promised
from optmech.problem.ratios import triangle_notes
from optmech.problem.space import Place, Space
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import Distance, DistanceLike, between
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.tables import distance_words


@constraint("maximal_leakage")
@record
class MaximalLeakage(Constraint):
    """ln Σ_o max_s p(o|s) <= ``maximum``, in nats (Issa, Wagner and Kamath, *An Operational
    Approach to Information Leakage*, IEEE Trans. Inf. Theory 2020, Theorem 1).

    It bounds, for every prior and whatever function of the secret is guessed, the logarithm of how
    many times likelier a right guess becomes with the report; it is also the largest min-entropy
    leakage of all priors. ``"ln 2"`` is one bit.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.constraints.MaximalLeakage("ln 3/2")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> print(round(om.solve(problem).loss, 6))  # 2 (1 - x) = 3/2
    0.25
    """

    maximum: Converted[Number, Exact] = converted(fields.number)

    def families(self, index: int, space: Space) -> Iterator[Leakage]:
        yield _of_every_prior("maximal", index, self.maximum, len(space.secrets))

    def promise(self, space: Space) -> str:
        return f"maximal leakage at most {self.maximum.words} nats, for every prior"

    def promised(self, space: Space) -> Promised:
        return Promised("guesses", "adds", (LEAKAGE,))

    def measured(self, m: Mechanism, space: Space) -> Kept:
        value = math.log(max(1.0, float(m.matrix.max(axis=0).sum())))
        return Kept("leakage", float(self.maximum), value)

    def idle(self, space: Space) -> Remarks:
        most = min(space.loss.shape)
        if self.maximum < math.log(most):
            return []
        return [("", f"it never exceeds ln {most}")]


@constraint("pointwise_maximal_leakage")
@record
class PointwiseMaximalLeakage(Adversary, Constraint):
    """p(o|s) <= e^ε Σ_s' π(s') p(o|s') for all secrets s with π(s) > 0, all o (Saeidian, Cervia,
    Oechtering and Skoglund, *Pointwise Maximal Leakage*, IEEE Trans. Inf. Theory 2023).

    For every single report o: whatever function of the secret is guessed, a right guess is at most
    e^ε times as likely with o as without it. ``prior`` is the one that π is, by default the
    problem's. ε-differential privacy of all pairs implies it. Where π(s) > 0 for every secret
    it implies maximal leakage of at most ε: rows of other secrets are free. With a ``radius`` it is
    promised under **every** prior within that distance, as in ``GainLeakage``.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.constraints.PointwiseMaximalLeakage("ln 3/2")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> print(round(om.solve(problem).loss, 6))  # 1 - x = 3/2 · 1/2
    0.25
    """

    later = ("radius", "within")
    _upwards = False
    epsilon: Converted[Number, Exact] = converted(fields.number)
    prior: Prior | None = checked(fields.adversary, default=None)

    def families(self, index: int, space: Space) -> Iterator[LiftedRatio]:
        priors = self.priors(space)
        used = np.eye(len(space.secrets))[np.any(priors, axis=0)]
        left, right = np.tile(used, (len(priors), 1)), np.repeat(priors, len(used), axis=0)
        scale = np.repeat([self._scale(weights) for weights in priors], len(used))
        yield LiftedRatio(
            index, left, right, rounded_product(self.epsilon, scale), self.epsilon, scale
        )

    def _scale(self, weights: Floats) -> float:
        """What ε is multiplied by, as families divide weights by their sum: of those that were
        rounded down e^(ε scale) is at most e^ε times that, since -ln(1 - x) <= 2x."""
        missing, least = 1 - sum(map(Fraction, weights.tolist())), bracket(self.epsilon)[0]
        if self.radius is None or not least:
            return 1.0
        # without any room all rows are equal, which keeps every ε
        return max(0.0, rounded_down(1 - 2 * missing / least))

    def promise(self, space: Space) -> str:
        of = f", under {self._against}" if self.radius or self.prior else ""
        return f"pointwise maximal leakage at most {self.epsilon.words} nats{of}"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        priors = self.priors(space)
        top = m.matrix[np.any(priors, axis=0)].max(axis=0)
        with np.errstate(divide="ignore"):
            value = float(np.log(top[top > 0] / (priors @ m.matrix[:, top > 0])).max())
        return Kept("leakage", float(self.epsilon), max(0.0, value))

    def idle(self, space: Space) -> Remarks:
        if self.radius is not None:
            return []
        weights = space.adversary(self.prior).weights
        least = float(weights[weights > 0].min())
        if self.epsilon < -math.log(least):
            return []
        return [("", f"it never exceeds ln {1 / least:.6g}, as that is the rarest secret's")]


def _of_every_prior(name: str, index: int, maximum: Exact, count: int) -> Leakage:
    """The family of a leakage that goes by no prior."""
    gain = PRIOR_FREE[name](count)
    return Leakage(index, gain, maximum, name == "maximal", gain, np.ones(count))


@constraint("additive_capacity")
@record
class AdditiveCapacity(Constraint):
    """1 - Σ_o min_s p(o|s) <= ``maximum`` (Alvim et al., *The Science of Quantitative Information
    Flow*, 2020, chapter 7; Doeblin's coefficient).

    No adversary with gains from 0 to 1 gains more than ``maximum`` by the report, whatever the
    prior: all rows share the mass 1 - ``maximum``, which says nothing of the secret.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin), om.distances.hamming(),
    ...     constraints=[om.constraints.AdditiveCapacity(0.4)]
    ... )
    >>> print(round(om.solve(problem).loss, 6))  # (1 - 0.4) / 2
    0.3
    """

    maximum: Converted[Number, Exact] = converted(fields.delta)

    def families(self, index: int, space: Space) -> Iterator[Leakage]:
        yield _of_every_prior("additive", index, self.maximum, len(space.secrets))

    def promise(self, space: Space) -> str:
        return f"additive capacity at most {self.maximum.words}, for every prior and gain up to 1"

    def promised(self, space: Space) -> Promised:
        return Promised("guesses", "complement")

    def measured(self, m: Mechanism, space: Space) -> Kept:
        value = max(0.0, 1.0 - float(m.matrix.min(axis=0).sum()))
        return Kept("leakage", float(self.maximum), value)

    def idle(self, space: Space) -> Remarks:
        if len(space.secrets) == 1:
            return [("", "there is one secret only")]
        return [("", "it never exceeds 1")] if self.maximum >= 1 else []


@constraint("gain_leakage")
@record
class GainLeakage(Adversary, Constraint):
    """Posterior vulnerability: Σ_o max_w Σ_s π(s) g(w,s) p(o|s) <= ``maximum`` (Alvim et al.,
    *The Science of Quantitative Information Flow*, 2020, chapter 5).

    ``gain`` is g(w, s): an array with a row for every guess w and a column for every secret, which
    need not be guesses of secrets; a function of two domains such as a distance; or "identity",
    where the guess is right or wrong and the left side is the Bayes vulnerability. Gains and
    ``maximum`` have any sign: g = -d with -d_m says that the error d of the best attack is at least
    d_m. ``prior`` is the adversary's, by default the problem's.

    With a ``radius`` the promise is for **every** prior within that distance of it: W_1 for the
    distance ``within``, by default total variation (the mass that is moved). Gains must then be
    >= 0.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin), om.distances.hamming(),
    ...     constraints=[om.constraints.GainLeakage(0.7)]
    ... )
    >>> print(round(om.solve(problem).loss, 6))  # right in 70 % of guesses, reports in as many
    0.3
    >>> clinic = om.constraints.GainLeakage.predicate(0.7, [True, False])  # "is it yes?"
    >>> blocks = om.constraints.GainLeakage.partition(0.7, ["a", "b"])
    >>> clinic.gain.tolist() == blocks.gain.tolist()
    True
    >>> [prior.tolist() for prior in clinic.priors(problem.space)]
    [[0.5, 0.5]]
    """

    _upwards = True
    maximum: Converted[Number, Exact] = converted(fields.signed_number)
    gain: Converted[ArrayLike | Distance, Gain] = converted(as_gain, default="identity")
    prior: Prior | None = checked(fields.adversary, default=None)

    @classmethod
    @checked_arguments
    def partition(
        cls, maximum: Number, blocks: Sequence[Hashable], prior: Prior | None = None
    ) -> Self:
        """The adversary guesses the block of the secret; ``blocks`` names that of every secret."""
        return cls(maximum, block_gains(blocks), prior)

    @classmethod
    @checked_arguments
    def predicate(cls, maximum: Number, holds: ArrayLike, prior: Prior | None = None) -> Self:
        """The adversary guesses whether something holds of the secret ("is she at a hospital?");
        ``holds`` says it of every secret."""
        values = np.asarray(holds)
        if values.dtype != bool or values.ndim != 1:
            raise ProblemError(
                "is not a list of truth values", where="holds", remedy="Give one for every secret"
            )
        return cls(maximum, np.array([values, ~values], dtype=np.float64), prior)

    def families(self, index: int, space: Space) -> Iterator[Leakage]:
        gain = gain_matrix(self.gain, space)
        if self.radius is not None and (gain < 0).any():
            raise ProblemError(
                "has entries below 0",
                where="gain",
                remedy="Add a constant to all gains and to the maximum, or leave radius out",
            )
        for weights in self.priors(space):
            yield Leakage(index, gain * weights, self.maximum, False, gain, weights)

    def promise(self, space: Space) -> str:
        return (
            f"the best guess with {self._against} gains at most {self.maximum.words} "
            f"({gain_words(self.gain)})"
        )

    def measured(self, m: Mechanism, space: Space) -> Kept:
        gain = gain_matrix(self.gain, space)
        spent = max(gained(gain, weights, m.matrix) for weights in self.priors(space))
        return Kept("leakage", float(self.maximum), spent)

    def idle(self, space: Space) -> Remarks:
        gain = gain_matrix(self.gain, space)
        known = max(float((gain * weights).max(axis=0).sum()) for weights in self.priors(space))
        if self.maximum < known:
            return []
        return [("", f"who knows the secret gains {known:.9g} and no more")]


def as_minimum(value: object) -> Exact:
    """A number >= 0; in problem files also a share of the error of an adversary who sees
    nothing."""
    return parse_exact(value, where="")


FIELDS[as_minimum] = Field("number or share")


@constraint("distortion_privacy")
@record
class DistortionPrivacy(Adversary, Constraint):
    """The error of the best attack is at least ``minimum`` (Shokri, PETS 2015, eq. 13, 20, 21).

    Σ_o min_ŝ Σ_s π(s) p(o|s) d(ŝ,s) >= d_m, with π the adversary's ``prior`` (default: the
    problem's). Several constraints with different priors make the design robust against all.

    With a ``radius`` the promise is for **every** prior within that distance of it: W_1 for the
    distance ``within``, by default total variation (the mass that is moved).

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> d = om.distances.hamming()
    >>> promise = om.DistortionPrivacy(minimum=0.3, distance=d)
    >>> design = om.solve(om.Problem(om.Prior.uniform(coin), d, constraints=[promise]))
    >>> print(round(design.loss, 6))  # the best guess is wrong as often as the report
    0.3
    >>> [prior.tolist() for prior in promise.priors(design.problem.space)]
    [[0.5, 0.5]]
    """

    later = ("radius", "within")
    _upwards = False
    minimum: Converted[object, Exact] = converted(as_minimum)
    distance: Converted[DistanceLike, Distance] = converted(fields.distance)
    prior: Prior | None = checked(fields.adversary, default=None)

    @classmethod
    def build(cls, spec: Any, place: Place) -> Self:
        """The record that a validated table stands for, with a share of d_max as the number that it
        is."""
        given = cls.built(spec, place)
        if not isinstance(given["minimum"], Exact):
            adversary = given.get("prior", place.prior)
            secrets, distance = place.secrets, given["distance"]
            apart = between(distance, secrets)
            blind = (apart @ adversary.weights).min()
            given["minimum"] = given["minimum"].fraction_of_blind * blind
        return cls(**given)

    def families(self, index: int, space: Space) -> Iterator[Distortion]:
        values = space.apart(self.distance)
        for weights in self.priors(space):
            yield Distortion(index, values * weights, self.minimum, values, weights)

    def promise(self, space: Space) -> str:
        return (
            f"error of the best attack with {self._against} at least "
            f"{self.minimum.words} ({distance_words(self.distance)})"
        )

    def measured(self, m: Mechanism, space: Space) -> Kept:
        if self.radius is None:
            value = measures.distortion(m, space.adversary(self.prior), self.distance)
        else:
            apart = space.apart(self.distance)
            errors = ((apart * weights) @ m.matrix for weights in self.priors(space))
            value = min(float(found.min(axis=0).sum()) for found in errors)
        return Kept("distortion", float(self.minimum), value, "at least")

    def idle(self, space: Space) -> Remarks:
        return [] if self.minimum > 0 else [("", "the minimum is 0")]

    def notes(self, space: Space) -> Remarks:
        return triangle_notes(self.distance, space)
