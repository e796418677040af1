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
from contextlib import suppress
from functools import cached_property
from itertools import chain, starmap
from pathlib import Path
from typing import Any

import numpy as np
import optmech_devices
import optmech_noise
import optmech_surveys
import optmech_sweeps
import optmech_traces
import optmech_verified
import pytest
from conformance.problems import KINDS

import optmech as om
from optmech.base.read_only import Fixed, ReadOnly
from optmech.certificate import lower_bound
from optmech.pipeline.profiles import load_profile
from optmech.problem.constraint import kinds

WORKING = {
    *("engines", "lp", "reductions", "repair", "pipeline", "optmech_noise", "show"),
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
    houses = [
        (om.__path__, "optmech."),
        (optmech_devices.__path__, "optmech_devices."),
        (optmech_noise.__path__, "optmech_noise."),
        (optmech_surveys.__path__, "optmech_surveys."),
        (optmech_sweeps.__path__, "optmech_sweeps."),
        (optmech_traces.__path__, "optmech_traces."),
        (optmech_verified.__path__, "optmech_verified."),
    ]
    for found in chain.from_iterable(starmap(pkgutil.walk_packages, houses)):
        if found.name == "optmech.__main__":
            continue
        module = importlib.import_module(found.name)
        for cls in [*vars(module).values()]:
            if inspect.isclass(cls) and cls.__module__ == found.name and is_frozen(cls):
                yield cls


def is_frozen(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]


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
        and set(cls.__module__.split(".")[:2]).isdisjoint(WORKING)
        and cls.__name__ not in SHORT_LIVED
    ]
    assert wrong == []


def test_fields_are_converted_before_anything_is_checked() -> None:
    held = [cls for cls in frozen_classes() if any(f.metadata for f in dataclasses.fields(cls))]
    assert len(held) >= 20
    for cls in held:
        assert issubclass(cls, ReadOnly), cls
        own = cls.__mro__[: cls.__mro__.index(ReadOnly)]
        checks = [base.__post_init__ for base in own if "__post_init__" in vars(base)]
        assert all("super().__post_init__()\n" in inspect.getsource(check) for check in checks), cls


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
    "regions": lambda: om.observables.quadrisect(GRID, [[0.2, 0.2], [0.3, 0.9], [1.5, 1.5]], 7),
    "mechanism": lambda: FLOATS,
    "distance": lambda: om.distances.matrix(np.ones((3, 3)) - np.eye(3)),
    "mesh": lambda: om.Mesh.grid((0, 0, 4, 3), 1, degree=2),
    "design": lambda: om.solve(
        om.Problem(EVEN, KM, constraints=[om.MetricPrivacy(1, KM), om.DifferentialPrivacy(3)])
    ),
    "everywhere": mesh_design,
    "noise": lambda: om.noise.optimal("ln 2", sensitivity=2),
    "attack": lambda: om.attacks.optimal_attack(FLOATS, om.Prior.uniform(FLOATS.secrets), KM),
    "hyper": lambda: om.leakage.hyper(FLOATS, om.Prior.uniform(FLOATS.secrets)),
    "parallel": lambda: om.leakage.parallel(FLOATS, FLOATS),
    "curve": lambda: om.measures.hockey_stick_curve([0.5, 0.5], [0.2, 0.8]),
    "chain": lambda: om.traces.MarkovPrior(GRID, EVEN, np.full((4, 4), 0.25)),
}


CITY = om.solve(om.Problem(EVEN, KM, constraints=[om.MetricPrivacy(1, KM)]))
LINE = om.Domain(range(3), [[0.0], [1], [3]], "km")
HOME, AWAY = om.Prior(LINE, [1, 1, 2]), om.Prior(LINE, [0, 3, 1])
OTHER = om.Prior(FLOATS.secrets, [1, 2, 3, 4])
WALK = om.traces.MarkovPrior(GRID, EVEN, np.full((4, 4), 0.25))
ALWAYS = om.traces.FixedPolicy(WALK, CITY.mechanism)
MOVES = om.traces.GaussianPrior([0.0, 1.0], om.traces.rbf(1.0))
WAYS: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    lambda value: pickle.loads(pickle.dumps(value)),
    lambda value: pickle.loads(pickle.dumps(value, 2)),
]
RESULTS: dict[str, Callable[[Path], Any]] = {
    **{name: (lambda folder, make=make: make()) for name, make in LIVE.items()},
    "coupling": lambda _: om.mechanisms.coupling_design([HOME], AWAY, KM),
    "target": lambda _: om.mechanisms.optimal_target([HOME, AWAY], KM, "ln 2"),
    "Rényi noise": lambda _: om.noise.rdp((2, 0.5), sensitivity=1, gap=0.1),
    "noise of pairs": lambda _: om.noise.for_pairs(1, sensitivity=1, gap=0.3),
    "releases": lambda _: om.noise.for_releases(1, delta=1e-3, releases=2, sensitivity=1),
    "composed": lambda _: om.noise.optimal(1, sensitivity=1, gap=0.1).privacy(3),
    "peers": lambda _: tuple(om.noise.peers(1, 0.0, sensitivity=1).values()),
    "packed": lambda folder: om.pack(CITY, folder / "d.omm"),
    "packed mesh": lambda folder: om.pack(
        mesh_design(), folder / "m.omm", bits=32, max_loss="10 %"
    ),
    "repeated": lambda _: om.leakage.repeated(FLOATS, 3),
    "versions": lambda _: om.leakage.versions(FLOATS, FLOATS),
    "refinement": lambda _: om.leakage.refines(
        FLOATS, om.mechanisms.geometric(FLOATS.secrets, "ln 3")
    ),
    "deficiency": lambda _: om.leakage.refinement_distance(FLOATS, FLOATS, OTHER),
    "capacity": lambda _: om.leakage.multiplicative_capacity(FLOATS),
    "additive capacity": lambda _: om.leakage.additive_capacity(FLOATS),
    "Shannon capacity": lambda _: om.leakage.shannon_capacity(FLOATS),
    "pairwise": lambda _: om.distributional.pairwise_epsilon(FLOATS, [OTHER, [1, 1, 1, 1]]),
    "success": lambda _: om.distributional.attack_success(FLOATS, [OTHER, [1, 1, 1, 1]]),
    "estimate": lambda _: om.estimate.prior(FLOATS, [1, 2, 3, 4]),
    "frequencies": lambda _: om.estimate.frequencies(FLOATS, [1, 2, 3, 4]),
    "barycentre": lambda _: om.transport.barycenter([HOME, AWAY], KM),
    "plan": lambda _: om.transport.wasserstein(HOME, AWAY, KM),
    "carry-over": lambda _: om.guarantees.carry_over(np.zeros((3, 3)), HOME, AWAY),
    "tupling": lambda _: om.mechanisms.tupling(FLOATS, 2),
    "minimax": lambda _: om.attacks.minimax(FLOATS, KM),
    "positions": lambda _: om.measures.everywhere(om.mechanisms.planar_laplace(GRID, 1), 1.0),
    "Gaussian": lambda _: MOVES,
    "correlated": lambda _: om.traces.GaussianPrior(
        [0.0, 1.0], om.traces.rbf(1.0), 2, cross=[[1, 0.5], [0.5, 1]]
    ),
    "noise of traces": lambda _: om.traces.optimal_noise(MOVES, 1, [[0]], 0.5, 2.0),
    "loss of traces": lambda _: om.traces.privacy_loss(MOVES, np.eye(2), [0], 0.5, 2.0),
    "subset": lambda _: om.traces.worst_subset(MOVES, np.eye(2), 1, 0.5, 2.0),
    "protected": lambda _: om.traces.release(ALWAYS, [(0, 0), (0, 1)], seed=1),
    "leakage": lambda _: om.traces.leakage_about(WALK, [CITY.mechanism] * 2, 0),
    "adversary": lambda _: om.traces.enumerate_releases(ALWAYS, KM, 2),
    "prices": lambda _: om.prices.of_pairs(CITY),
    "bracket": lambda _: om.frontier.least_epsilon(CITY.problem, 2.0, 0.1, 3.0, tolerance=0.5),
    "sweep": lambda folder: om.sweep(
        CITY.problem, {"constraints[0].epsilon": [0.5]}, folder / "run", workers=1
    ),
    "beliefs": lambda _: om.beliefs.products([[0.5, 0.5], [0.2, 0.8]], values=[0, 1]),
    "rows": lambda _: om.constraints.FixedRows(CITY, keep=[(0, 0)]),
    "subsets": lambda _: om.observables.subsets(LINE, {"low": [0, 1], "high": [2]}),
    "profile": lambda _: load_profile("auto"),
}
"""Of every public result and input one."""


def reached(value: object, path: str, seen: dict[int, object]) -> Iterator[tuple[str, object]]:
    """What public attributes lead to, step by step, where the same is found at every look."""
    if isinstance(value, np.ndarray | list | dict | set):
        yield path, value
    if isinstance(value, list | tuple):
        for part in value[:3]:
            yield from reached(part, f"{path}[]", seen)
    elif isinstance(value, dict):
        yield from reached((*value.values(),), path, seen)
    elif type(value).__module__.startswith("optmech.") and id(value) not in seen:
        seen[id(value)] = value
        for name in dir(value):
            raw = inspect.getattr_static(value, name)
            if name[0] == "_" or inspect.isroutine(raw) or isinstance(raw, classmethod):
                continue
            with suppress(om.OptmechError, AttributeError):
                found = getattr(value, name)
                if not isinstance(raw, property) or getattr(value, name) is found:
                    yield from reached(found, f"{type(value).__name__}.{name}", seen)


def can_be_changed(value: object) -> bool:
    if not isinstance(value, np.ndarray):
        return not isinstance(value, Fixed)
    try:
        value.setflags(write=True)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", RESULTS)
def test_what_is_public_is_never_changed(name: str, tmp_path: Path) -> None:
    """Neither arrays, lists nor dictionaries, and numpy makes no array writable again."""
    made = RESULTS[name](tmp_path)
    for way in [lambda value: value, *WAYS]:
        wrong = {path for path, found in reached(way(made), "", {}) if can_be_changed(found)}
        assert wrong == set()


def test_a_dictionary_that_stays_as_it_is() -> None:
    kept = Fixed({"a": 1})
    for change in (
        lambda: kept.update(b=2),
        lambda: kept.pop("a"),
        lambda: kept.setdefault("b", 2),
        kept.popitem,
        kept.clear,
        lambda: kept.__setitem__("a", 2),
        lambda: kept.__delitem__("a"),
        lambda: kept.__ior__({"b": 2}),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert kept == {"a": 1}
    for way in WAYS:
        assert type(way(kept)) is Fixed
        assert way(kept) == kept


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
