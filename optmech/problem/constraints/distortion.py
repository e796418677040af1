"""Distortion privacy: even the best attack errs by so much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self

from attrs import field, frozen

from optmech.analysis import measures
from optmech.certificate.families import Distortion
from optmech.exact.number import Exact, parse_exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, constraint
from optmech.problem.fields import FIELDS, Field
from optmech.problem.ratios import triangle_notes
from optmech.problem.space import Place, Space
from optmech.spaces.distances import Distance, evaluate
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.tabulated import distance_words


def as_minimum(value: object) -> Exact:
    """A number >= 0; in problem files also a share of the error of an adversary who sees
    nothing."""
    return parse_exact(value, where="")


def _key() -> Any:
    from pydantic import Discriminator, Tag
    from pydantic import Field as Key

    from optmech.sections.base import ExactNumber, Spec

    class FractionOfBlind(Spec):
        """A share of d_max, the error of an adversary who sees nothing."""

        fraction_of_blind: Annotated[float, Key(ge=0, le=1)]

    def tag(value: object) -> str:
        return "kind=table" if isinstance(value, dict | FractionOfBlind) else "kind=number"

    number, share = Tag("kind=number"), Tag("kind=table")
    forms = Annotated[ExactNumber, number] | Annotated[FractionOfBlind, share]
    return Annotated[forms, Discriminator(tag)]


FIELDS[as_minimum] = Field(_key, plain=lambda value, _: value.text)


@constraint("distortion_privacy")
@frozen(repr=False, field_transformer=fields.placed)
class DistortionPrivacy(Constraint):
    """The error of the best attack is at least ``minimum`` (PG 13, 20, 21).

    Σ_o min_ŝ Σ_s π(s) p(o|s) d(ŝ,s) >= d_m, with π the adversary's ``prior`` (default: the
    problem's). Several constraints with different priors make the design robust against all.
    """

    minimum: Exact = field(converter=as_minimum)
    distance: Distance = field(converter=fields.distance)
    prior: Prior | None = field(default=None, converter=fields.adversary)

    @classmethod
    def build(cls, spec: Any, place: Place) -> Self:
        """As of all fields, with a share of d_max as the number that it is."""
        given = cls.built(spec, place)
        if not isinstance(given["minimum"], Exact):
            adversary = given.get("prior", place.prior)
            secrets, distance = place.secrets, given["distance"]
            apart = evaluate(distance, secrets, secrets, where="distance")
            blind = (apart @ adversary.weights).min()
            given["minimum"] = given["minimum"].fraction_of_blind * blind
        return cls(**given)

    def families(self, index: int, space: Space) -> Iterator[Distortion]:
        values = space.apart(self.distance)
        weights = space.adversary(self.prior).weights
        yield Distortion(index, values * weights, self.minimum, values, weights)

    def promise(self, space: Space) -> str:
        against = "the prior" if self.prior is None else "another prior"
        return (
            f"error of the best attack with {against} at least "
            f"{self.minimum.words} ({distance_words(self.distance)})"
        )

    def measured(self, m: Mechanism, space: Space) -> Kept:
        value = measures.distortion(m, space.adversary(self.prior), self.distance)
        return Kept("distortion", float(self.minimum), value, "at least")

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        return [] if self.minimum > 0 else [("", "the minimum is 0")]

    def notes(self, space: Space) -> Sequence[tuple[str, str]]:
        return triangle_notes(self.distance, space)
