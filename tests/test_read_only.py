"""Frozen data stays as it was made: nobody writes to its arrays, in copies and unpickled too."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from conformance.problems import KINDS

import optmech as om
from optmech.base.read_only import ReadOnly
from optmech.certificate import lower_bound
from optmech.problem.constraint import kinds

WORKING = {
    *("engines", "lp", "reductions", "repair", "pipeline", "noise", "show"),
    *("files", "protection", "reading"),
}
"""Rooms whose frozen classes hold the arrays that a search works on."""
SHORT_LIVED = {
    *("ApproximateMultipliers", "AttackMultipliers", "DivergenceMultipliers", "PairMultipliers"),
    *(
        "Multipliers",
        "Weights",
        "Enclosure",
        "Extreme",
        "_Asked",
        "Candidate",
        "Gains",
        "Masses",
        "Wide",
    ),
}
"""Proposals, which the certificate takes as they come, and what lives for one evaluation."""
ARRAYS = re.compile(r"\b(Floats|Ints|Bools|Lags|NDArray|ndarray|csr_array|Words)\b")


def frozen_classes() -> Iterator[type]:
    for found in pkgutil.walk_packages(om.__path__, "optmech."):
        if found.name in ("optmech.audit", "optmech.__main__"):
            continue
        module = importlib.import_module(found.name)
        for cls in [*vars(module).values()]:
            if inspect.isclass(cls) and cls.__module__ == found.name and is_frozen(cls):
                yield cls


def is_frozen(cls: type) -> bool:
    if dataclasses.is_dataclass(cls):
        return cls.__dataclass_params__.frozen  # type: ignore[attr-defined, no-any-return]
    return hasattr(cls, "__attrs_attrs__") and cls.__setattr__ is not object.__setattr__


def with_arrays(cls: type) -> bool:
    """Whether a field, or something that is evaluated once and kept, is an array."""
    kept = (v.func.__annotations__ for v in [*vars(cls).values()] if isinstance(v, cached_property))
    said = [*getattr(cls, "__annotations__", {}).values(), *(k.get("return", "") for k in kept)]
    return any(ARRAYS.search(str(text)) and "Callable" not in str(text) for text in said)


def test_every_frozen_class_with_arrays_is_read_only() -> None:
    held = [cls for cls in frozen_classes() if with_arrays(cls)]
    assert len(held) > 100
    wrong = [
        f"{cls.__module__}.{cls.__name__}"
        for cls in held
        if not issubclass(cls, ReadOnly)
        and cls.__module__.split(".")[1] not in WORKING
        and cls.__name__ not in SHORT_LIVED
    ]
    assert wrong == []


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


GRID = om.Grid(2, 2, unit="km")
EVEN = om.Prior.uniform(GRID)
KM = om.distances.euclidean()
FLOATS = om.mechanisms.geometric(om.Domain.range(4), "ln 2")


def mesh_design() -> Any:
    mesh = om.Mesh.grid((0, 0, 2, 2), 2)
    places = om.Domain(range(3), [[0, 0], [1, 1], [2, 1]], "")
    private = om.MetricPrivacy(1, KM, everywhere=mesh)
    return om.solve(om.Problem(om.Prior.uniform(places), KM, constraints=[private]), gap=0.1)


LIVE: dict[str, Callable[[], Any]] = {
    **{make.__name__: (lambda make=make: make(rng())) for make in KINDS},
    "regions": lambda: om.regions.quadrisect(GRID, [[0.2, 0.2], [0.3, 0.9], [1.5, 1.5]], 7),
    "mechanism": lambda: FLOATS,
    "distance": lambda: om.distances.matrix(np.ones((3, 3)) - np.eye(3)),
    "mesh": lambda: om.Mesh.grid((0, 0, 4, 3), 1, degree=2),
    "design": lambda: om.solve(
        om.Problem(EVEN, KM, constraints=[om.MetricPrivacy(1, KM), om.DifferentialPrivacy(3)])
    ),
    "everywhere": mesh_design,
    "noise": lambda: om.noise.optimal("ln 2", sensitivity=2),
    "attack": lambda: om.attacks.optimal(FLOATS, om.Prior.uniform(FLOATS.secrets), KM),
    "hyper": lambda: om.leakage.hyper(FLOATS, om.Prior.uniform(FLOATS.secrets)),
    "parallel": lambda: om.leakage.parallel(FLOATS, FLOATS),
    "curve": lambda: om.measures.hockey_stick_curve([0.5, 0.5], [0.2, 0.8]),
    "chain": lambda: om.traces.MarkovPrior(GRID, EVEN, np.full((4, 4), 0.25)),
}


def parts(value: object, seen: dict[int, object]) -> dict[int, object]:
    """What of optmech can be reached from a value, with everything that is kept evaluated."""
    if id(value) in seen:
        return seen
    if isinstance(value, list | tuple):
        for part in value:
            parts(part, seen)
    elif isinstance(value, dict):
        parts(list(value.values()), seen)
    elif isinstance(value, np.ndarray):
        seen[id(value)] = value
    elif is_frozen(type(value)) and type(value).__name__ not in SHORT_LIVED:
        seen[id(value)] = value
        for cls in type(value).__mro__:
            names = [n for n, v in vars(cls).items() if isinstance(v, cached_property)]
            for name in [*names, *(n for n in getattr(cls, "__slots__", ()) if n[:2] != "__")]:
                try:
                    parts(getattr(value, name), seen)
                except (om.ProblemError, AttributeError):
                    continue
        parts(dict(getattr(value, "__dict__", {})), seen)
    return seen


WAYS: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    lambda value: pickle.loads(pickle.dumps(value)),
    lambda value: pickle.loads(pickle.dumps(value, 2)),
]


@pytest.mark.parametrize("name", LIVE)
def test_nobody_writes_to_it_or_to_a_copy(name: str) -> None:
    made = LIVE[name]()
    found = [v for v in parts(made, {}).values() if isinstance(v, ReadOnly)]
    assert found
    for value in (made, *found):
        for way in WAYS:
            again = way(value)
            writable = [v for v in parts(again, {}).values() if _writable(v)]
            assert writable == [], f"of a {type(value).__name__}"


def _writable(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.flags.writeable


def test_every_kind_of_constraint_is_among_them() -> None:
    used = {c.kind for make in KINDS for c in make(rng()).constraints}
    assert used == set(kinds())


@pytest.mark.parametrize("way", WAYS)
def test_a_bound_cannot_be_raised_through_what_is_kept(way: Callable[[Any], Any]) -> None:
    design = om.solve(om.Problem(EVEN, KM, constraints=[om.MetricPrivacy(1, KM)]))
    statement = design.problem.statement
    for name in ("cost", "allowed", "log_ratio"):
        assert getattr(statement, name).shape == (4, 4)
        with pytest.raises(ValueError, match="read-only"):
            getattr(way(statement), name)[0] = 5
    found = lower_bound(way(statement), design.certificate.multipliers)
    assert found.value <= design.loss


def test_hashes_are_computed_anew_in_another_interpreter() -> None:
    """Hashes of texts differ between interpreters: a pickle holds none."""
    city = om.Domain(["a", "b"])
    hash(city)
    other = pickle.loads(pickle.dumps(city))
    assert "_hash" not in vars(other)
    assert other == city
    assert hash(other) == hash(city)


@pytest.mark.parametrize("name", LIVE)
def test_nothing_of_it_is_replaced(name: str) -> None:
    for value in parts(LIVE[name](), {}).values():
        if isinstance(value, np.ndarray):
            continue
        for field in ("mesh", "rows", "matrix", "a_new_name", *getattr(value, "__dict__", {})):
            with pytest.raises(AttributeError):
                setattr(value, field, None)
            with pytest.raises(AttributeError):
                delattr(value, field)


def test_heirs_of_frozen_classes_are_frozen() -> None:
    """A dataclass keeps its own fields from being set in its heirs, and no others."""
    wrong = [
        cls.__name__
        for cls in frozen_classes()
        if dataclasses.is_dataclass(cls) and "__setattr__" not in vars(cls)
    ]
    assert wrong == []
