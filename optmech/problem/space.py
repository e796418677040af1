"""What the constraints of one problem are stated over."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from optmech.base.arrays import Bools as Bools, Floats
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError
from optmech.problem.given_rows import GivenRows
from optmech.spaces.distances import Distance, distance_name, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.losses import loss_matrix
from optmech.spaces.prior import Prior
from optmech.spaces.tabulated import NAMED, distance_words, misnamed


@record
class Space(ReadOnly):
    """Secrets with their prior, observables, and the loss of every report."""

    prior: Prior
    observables: Domain
    loss: Floats
    """c(s, o), shape (S, O)."""

    @property
    def secrets(self) -> Domain:
        """The domain of the prior."""
        return self.prior.domain

    def apart(self, distance: Distance, where: str = "distance") -> Floats:
        """d(s, s'), shape (S, S); not to be written to."""
        return evaluate(distance, self.secrets, self.secrets, where=where)

    def reach(self, distance: Distance) -> Floats:
        """d(s, o), shape (S, O); not to be written to."""
        return evaluate(distance, self.secrets, self.observables, where="distance")

    def near(self, distance: Distance, radius: float, where: str = "distance") -> Bools:
        """The pairs of different secrets that are at most ``radius`` apart, shape (S, S)."""
        return (self.apart(distance, where) <= radius) & ~np.eye(len(self.secrets), dtype=bool)

    def losses(self, loss: Distance | Floats | None) -> Floats:
        """A loss of its own as an S x O array, or the problem's for None."""
        if loss is None:
            return self.loss
        return loss_matrix(loss, self.secrets, self.observables, where="loss")

    def adversary(self, prior: Prior | None) -> Prior:
        """The adversary's prior, the problem's for None. Raises ProblemError where it is no prior
        over the secrets."""
        adversary = self.prior if prior is None else prior
        if not isinstance(adversary, Prior) or adversary.domain.labels != self.secrets.labels:
            raise ProblemError(
                "the adversary's prior is not a Prior over the secrets",
                where="prior",
                remedy=f"Make it with om.Prior over the same {len(self.secrets)} labels",
            )
        return adversary

    def unit_of(self, distance: str) -> str:
        """The unit of a distance called so; empty where it has none."""
        if distance == "haversine":
            return "km"
        return self.secrets.unit if distance in ("euclidean", "manhattan", "graph", "roads") else ""

    def per(self, distance: object) -> str:
        """The unit that ε is per, in words."""
        name = distance_words(distance)
        unit = self.unit_of(name)
        if unit or name.startswith("given"):
            return f"{unit or 'unit of distance'} ({name})"
        return f"unit of {name} distance"

    def name_to_write(self, distance: object, *tables: tuple[Domain, Floats]) -> str:
        """The name of a distance for a file, from its values to other domains: never that of
        another distance."""
        name = distance_name(distance)
        try:
            wrong = any(misnamed(name, self.secrets, to, values) for to, values in tables)
        except ProblemError:
            wrong = True
        return "given" if wrong else name

    def loss_name(self, loss: object) -> str | None:
        """The name of the problem's loss, where it is a distance that a reader can compute
        again."""
        if not callable(loss):
            return None
        name = self.name_to_write(loss, (self.observables, self.loss))
        return name if name in NAMED else None


class Place(Protocol):
    """Where a table of a problem file stands, for which sections are built; it reads the CSV files
    of numbers and the designs that are named there. Raises ProblemError where it cannot."""

    @property
    def secrets(self) -> Domain: ...
    @property
    def prior(self) -> Prior: ...
    def rows(self, file: str) -> Floats: ...
    def kept_rows(self, design: str) -> GivenRows: ...
