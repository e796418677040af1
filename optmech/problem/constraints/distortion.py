"""Distortion privacy: even the best attack errs by so much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from attrs import field, frozen

from optmech.analysis import measures
from optmech.certificate.families import Distortion
from optmech.exact.number import Exact, parse_exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field
from optmech.problem.gains import Adversary
from optmech.problem.ratios import triangle_notes
from optmech.problem.space import Place, Space
from optmech.spaces.distances import Distance, between
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.tabulated import distance_words


def as_minimum(value: object) -> Exact:
    """A number >= 0; in problem files also a share of the error of an adversary who sees
    nothing."""
    return parse_exact(value, where="")


FIELDS[as_minimum] = Field("number or share", lambda value, _: value.text)


@constraint("distortion_privacy")
@frozen(repr=False, field_transformer=fields.placed)
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
    minimum: Exact = field(converter=as_minimum)
    distance: Distance = field(converter=fields.distance)
    prior: Prior | None = field(default=None, converter=fields.adversary)
    radius: Exact | None = field(default=None, converter=fields.optional_number, kw_only=True)
    within: Distance | None = field(default=None, converter=fields.optional_distance, kw_only=True)

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
