"""Problem files: their sections, put together with every error of those that do not fit."""

import re
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Discriminator, Field, Tag, create_model

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, TooLargeError
from optmech.files.domains import Aggregable, Observables, Secrets
from optmech.files.extent import merge, places_of, zones_of
from optmech.files.metrics import LossSection
from optmech.files.place import Place, require_room
from optmech.files.priors import ListedWeights, PriorSection
from optmech.files.transport import Transport, TransportTask
from optmech.problem import (
    Constraint,
    MaximizeDistortion,
    MinimizeLeakage,
    MinimizeVariance,
    Problem,
)
from optmech.problem.constraint import kinds
from optmech.problem.fields import built
from optmech.problem.problem import make_statement
from optmech.problem.space import Space
from optmech.reading.errors import Collector
from optmech.reading.sections import ByKind, FileSection, NonNegative, Section, kind_of, narrowed
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain
from optmech.spaces.losses import loss_matrix
from optmech.spaces.prior import Prior

_BELOW_A_DISTANCE = re.compile(
    r"(distance|adjacency|loss)\."
    r"(points|euclidean|manhattan|hamming|haversine|graph|distance matrix)$"
)
_DISTORTION: Any = MaximizeDistortion.table()
_LEAKAGE: Any = MinimizeLeakage.table()
_VARIANCE: Any = MinimizeVariance.table()
_REQUIRED = ("format", "secrets", "prior", "loss")
Goal = Annotated[
    Literal["expected_loss", "worst_loss"] | _DISTORTION | _LEAKAGE | _VARIANCE, ByKind()
]


class ProblemSection(FileSection):
    """A whole problem file; ``problem_section`` is the model with its constraints.

    The required sections are optional here: the reader reports what is missing itself, so that
    the errors of the sections that are there can be reported together with it.
    """

    model_config = ConfigDict(
        title="optmech problem file",
        json_schema_extra={"required": [*_REQUIRED]},
    )

    profile: str | None = None
    optimum: NonNegative | None = None
    secrets: Secrets | None = None
    observables: Observables | None = None
    prior: PriorSection | None = None
    loss: LossSection | None = None
    objective: Goal = "expected_loss"
    constraints: list[Any] = Field(default_factory=list, max_length=1000)
    transport: Transport | None = None
    mechanisms: list[dict[str, Any]] = Field(default_factory=list, max_length=1000)


S = TypeVar("S", bound=Section)


def problem_section() -> type[ProblemSection]:
    """The model of problem files with the kinds that are registered now."""
    return with_constraints(ProblemSection, gaps=True)


def section_for(document: Mapping[str, Any]) -> type[ProblemSection] | None:
    """A model of files with the same kinds as this one alone, which is made in a fraction of the
    time; None where the document is not like a problem file. What it refuses, ``problem_section``
    refuses in better words."""
    items, known = document.get("constraints", []), kinds()
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    stated = {str(item.get("kind")): None for item in items}
    if not known.keys() >= stated.keys() or any(document.get(key) is None for key in _REQUIRED):
        return None
    fields = ProblemSection.model_fields.items()
    types = [
        (name, narrowed(own.rebuild_annotation(), document[name]) if name in document else Any)
        for name, own in fields
        if name != "constraints"
    ]
    return _narrow_section(tuple(types), tuple(known[name] for name in stated))  # type: ignore[no-any-return]


@cache
def _narrow_section(types: Any, stated: Any) -> Any:
    tables = [Annotated[_table(cls), Tag(f"kind={cls.kind}")] for cls in stated]
    item: Any = tables[0] if tables else Any
    if len(tables) > 1:
        item = Annotated[reduce(or_, tables), Discriminator(kind_of)]
    limits = ProblemSection.model_fields["constraints"].metadata
    own = {**dict(types), "constraints": Annotated[list[item], *limits]}
    fields: dict[str, Any] = {}
    for name, field in ProblemSection.model_fields.items():
        made: Any = field.default_factory
        default: Any = Field(default_factory=made) if made else Field(default=field.default)
        fields[name] = own[name], default
    return create_model(ProblemSection.__name__, __base__=ProblemSection, **fields)


def with_constraints(model: type[S], *, gaps: bool = False, **others: type[Section]) -> type[S]:
    """A model of files whose ``constraints`` are of the kinds that are registered now, or of
    ``others``; with ``gaps``, a reader may put None in the place of a wrong one."""
    made: type[S] = _with_kinds(model, gaps, tuple(kinds().items()), tuple(others.items()))
    return made


@cache
def _with_kinds(model: Any, gaps: bool, stated: Any, others: Any) -> Any:
    tables = {name: _table(cls) for name, cls in stated} | dict(others)
    tagged = [Annotated[table, Tag(f"kind={name}")] for name, table in tables.items()]
    item: Any = Annotated[reduce(or_, tagged), Discriminator(kind_of)]
    items: Any = list[item | None if gaps else item]  # type: ignore[misc]
    constraints: Any = (items, copy(model.model_fields["constraints"]))
    return create_model(
        model.__name__, __base__=model, __doc__=model.__doc__, constraints=constraints
    )


@cache
def _table(cls: type[Constraint]) -> Any:
    """The table of a kind, made once: all models have the same."""
    return cls.table()


def assemble(
    spec: ProblemSection, directory: Path, title: str, errors: Collector
) -> tuple[Problem, TransportTask | None] | None:
    """The problem and what its ``[transport]`` table asks, or None when ``errors`` has gathered
    any."""
    place = build_secrets(spec, directory, errors)
    if place is None:
        return None
    transport = None
    prior = spec.prior and errors.tried("prior", spec.prior.build, place)
    parts = Parts(spec, place, errors)
    if parts.observed is not None:
        if spec.transport is not None:
            transport = errors.tried("transport", spec.transport.build, parts.place)
        parts.state(spec.constraints, prior)
    if errors.errors or prior is None or parts.observed is None or parts.loss is None:
        parts.find_misfits()
        return None
    try:
        problem = Problem(
            prior,
            parts.loss,
            parts.observed,
            objective=parts.objective,
            constraints=[constraint for _, constraint in parts.constraints],
            title=title,
        )
        if spec.transport is None or transport is None:
            return problem, None
        return problem, TransportTask(problem, spec.transport, *transport)
    except TooLargeError as error:
        errors.add(error)
    except ProblemError as error:
        parts.find_misfits()
        errors.add(_in_file(error))
    return None


def build_secrets(spec: ProblemSection, directory: Path, errors: Collector) -> Place | None:
    """The secrets, aggregated where the file says so."""
    return None if spec.secrets is None else errors.tried("secrets", _secrets, spec, directory)


def _secrets(spec: ProblemSection, directory: Path) -> Place:
    assert spec.secrets is not None
    listed = spec.secrets.listed(directory)
    wanted = getattr(spec.secrets, "aggregate", None)
    if wanted is None:
        merging = isinstance(spec.secrets, Aggregable)
        places = len(places_of(listed.domain)[0]) if merging else None
        observables = len(listed.domain) if spec.observables is None else 1
        require_room(len(listed.domain), "", observables=observables, places=places)
        return Place.of(directory, listed)
    zone = zones_of(listed.domain, wanted.zones)
    weights: Floats | None = None
    if isinstance(spec.prior, ListedWeights):
        # the prior's errors come later
        with suppress(ProblemError):
            weights, _ = spec.prior.of_rows(listed, directory)
    if weights is not None and not weights.max() > 0:
        weights = None
    return Place.of(directory, listed, (merge(listed.domain, zone, weights), zone))


class Parts:
    """The sections that several kinds of files have, each built on its own, so that one error does
    not hide another."""

    def __init__(self, spec: Any, place: Place, errors: Collector) -> None:
        self.place, self.errors = place, errors
        self.loss: Distance | Floats | None = None
        self.constraints: list[tuple[int, Any]] = []
        self.observed: Domain | None = place.secrets
        if spec.observables is not None:
            self.observed = errors.tried("observables", spec.observables.build, place)
        objective = errors.tried("objective", built, spec.objective, place)
        self.objective: Any = objective or "expected_loss"
        if self.observed is not None:
            self.place = replace(place, observed=self.observed)
            self.loss = spec.loss and errors.tried("loss", spec.loss.build, self.place)

    def state(self, constraints: list[Any], prior: Prior | None) -> None:
        """Build the constraints with the prior that they are stated under."""
        if prior is not None:
            self.place = replace(self.place, prior=prior)
        for k, item in enumerate(constraints):
            if item is not None:
                with self.errors.at(f"constraints[{k}]"):
                    self.constraints.append((k, item.build(self.place)))

    def find_misfits(self) -> None:
        """Try the parts that were built one by one against the domains, and keep what fails."""
        if self.observed is None:
            return
        prior, observed = self.place.prior, self.observed
        values = np.zeros((len(prior), len(observed)))
        try:
            if self.loss is not None:
                values = loss_matrix(self.loss, prior.domain, observed)
        except ProblemError as error:
            self.errors.add(_in_file(error))
        space = Space(prior, observed, values)
        tried: list[tuple[int, Any, tuple[Constraint, ...]]] = [(0, self.objective, ())]
        tried[:0] = [(k, "expected_loss", (stated,)) for k, stated in self.constraints]
        for k, objective, constraints in tried:
            try:
                make_statement(space, objective, constraints)
            except ProblemError as error:
                place = error.where.replace("constraints[0]", f"constraints[{k}]", 1)
                self.errors.add(_in_file(error.moved(place)))


def _in_file(error: ProblemError) -> ProblemError:
    """The error with a place that is a path into the file."""
    return error.moved(_BELOW_A_DISTANCE.sub(r"\1", error.where))
