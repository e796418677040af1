"""Whatever takes a design, a mechanism, a file or another thing of ours, called with one of every
kind: a right answer, or one sentence that says what was given, what is wanted and what to do.

Functions are found by their annotations and by the names of their parameters: new ones are tried as
well.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from each import each
from public import names_of

import optmech as om
from optmech.spaces.arguments import KINDS, asked_by, words_of

E = om.distances.euclidean()
PLACES = om.Domain(range(3), [[0, 0], [1, 1], [2, 1]])
PRIOR = om.Prior.uniform(PLACES)
MESH = om.Mesh.grid((0, 0, 2, 2), 1)
PROBLEM = om.Problem(PRIOR, E, constraints=[om.MetricPrivacy(1, E)])
REGION = om.Problem(PRIOR, E, constraints=[om.MetricPrivacy(1, E, everywhere=MESH)])
DESIGN: Any = om.solve(REGION, gap=1e-2)
LINE = om.Mesh.line(0, 1, 4)
INTERVAL: Any = om.solve(
    om.Problem(om.Prior.uniform(LINE.domain), E, constraints=[om.MetricPrivacy(1, everywhere=LINE)])
)
ROADS = om.Mesh.roads(
    ({"node": ["a", "b"], "x": [0, 1], "y": [0, 0]}, {"source": ["a"], "target": ["b"]}),
    divide="1/2",
    coordinates="plane",
)
ALONG: Any = om.solve(
    om.Problem(
        ROADS.prior("crossings"),
        ROADS.distance,
        constraints=[om.MetricPrivacy(1, everywhere=ROADS)],
    )
)
UNIFORM = om.Mechanism(PLACES, PLACES, np.full((3, 3), 1 / 3))
WALK = om.traces.MarkovPrior.random_walk(PLACES, E, 1.0)
OURS = re.compile("Design|Mechanism|CertifiedNoise|ProvedNoise|Packed")
"""What annotations of designs and mechanisms have in them."""
NAMES = {"m", "mechanism", "mechanisms", "design", "designs", "old", "new", "packed"}
"""Names of parameters that are designs and mechanisms, whatever their annotations say."""
OTHERS: dict[str, Any] = {
    "lams": [PRIOR, PRIOR],
    "pairs": [(PRIOR, PRIOR)],
    "counts": [1, 2, 3],
    "divergence": "max",
    "gain": "identity",
    "members": [1, 0, 0],
    "strategy": np.eye(3),
    "across": "promised",
    "key": b"k" * 32,
    "data": [0, 1, 2],
    "f": lambda label: label,
    "blocks": [0, 0, 1],
    "space": PROBLEM.space,
}
FITTING: dict[str, Any] = {
    "MarkovPrior": WALK,
    "GaussianPrior": om.traces.GaussianPrior([0.0, 1.0], om.traces.rbf(1.0)),
    "Policy": om.traces.FixedPolicy(WALK, UNIFORM),
    "State": om.traces.FixedPolicy(WALK, UNIFORM).start(),
    "Problem": PROBLEM,
    "Prior": PRIOR,
    "Distribution": PRIOR,
    "Distance": E,
    "Loss": E,
    "Grid": om.Grid(2, 2),
    "Domain": PLACES,
    "Guarantee": om.guarantees.points(0.5, per="km"),
    "Sequence[Hashable]": [0, 1, 2],
    "Callable": lambda *given: om.traces.rbf(1.0),
}
"""What fits where no design does, by what is in the annotation."""
COARSE = {"gap": 0.3, "cells": 2}
"""Arguments with a default that are given all the same, as what is found is not looked at."""
NOTHING: Mapping[str, Any] = {"None": None, "3": 3, "text": "text", "{}": {}}


def methods(path: str, of: Any) -> Iterator[tuple[str, Callable[..., object]]]:
    """Those written down in a class, as they are called: constructors, of classes, of objects."""
    for name in dir(of):
        raw = inspect.getattr_static(of, name)
        plain = inspect.unwrap(getattr(raw, "__func__", raw))
        # records store what they are given
        if not inspect.isfunction(plain) or plain.__code__.co_filename.startswith("<"):
            continue
        if name == "__init__":
            yield path, of
        elif not name.startswith("_"):
            yield f"{path}.{name}", getattr(of, name)


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """All public functions, constructors and methods of the package and of its namespaces."""
    for prefix, space in [("", om), *((f"{name}.", getattr(om, name)) for name in om.__all__)]:
        if not isinstance(space, ModuleType):
            continue
        for name in names_of(space):
            found = getattr(space, name)
            if inspect.isfunction(found):
                yield prefix + name, found
            elif inspect.isclass(found) and not issubclass(found, Exception):
                yield from methods(prefix + name, found)


def parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    called = function.__init__ if inspect.isclass(function) else function  # type: ignore[misc]
    found = dict(inspect.signature(called).parameters)
    if inspect.isclass(function):
        del found["self"]
    return found


def is_asked(parameter: inspect.Parameter) -> bool:
    """Whether all that its annotation names is checked."""
    return asked_by(words_of(parameter.annotation)) is not None


def is_taker(parameter: inspect.Parameter) -> bool:
    """Whether it is a design, a mechanism or another thing of ours, or a file."""
    words = words_of(parameter.annotation)
    ours = OURS.search(words) or "str | Path" in words or parameter.name in NAMES
    return bool(ours or is_asked(parameter)) and words != "bool"


FUNCTIONS = dict(functions())
TAKEN = [
    (name, at)
    for name, function in FUNCTIONS.items()
    for at, parameter in parameters(function).items()
    if is_taker(parameter)
]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of every kind that there is."""
    folder, design = tmp_path_factory.mktemp("kinds"), om.solve(PROBLEM)
    return {
        "mechanism": UNIFORM,
        "mechanism on a mesh": DESIGN.mechanism,
        "design": design,
        "design for every point": DESIGN,
        "mechanism on a line": INTERVAL.mechanism,
        "design for a line": INTERVAL,
        "mechanism on roads": ALONG.mechanism,
        "design for roads": ALONG,
        "noise": om.noise.optimal(epsilon=1, sensitivity=1, gap=1e-2),
        "Rényi noise": om.noise.rdp((2, 0.5), sensitivity=1, gap=1e-1),
        "real noise": om.noise.real(1, 0.01, cells=4),
        "everyday noise": om.noise.histogram(1, per_person=2),
        "noise of pairs": om.noise.for_pairs(epsilon=1, sensitivity=1, gap=0.3),
        "coupling": om.mechanisms.coupling_design([PRIOR], PRIOR, E),
        "packed": om.pack(design, folder / "design.omm"),
        "packed mesh": om.pack(DESIGN, folder / "mesh.omm", bits=32, max_loss="10 %"),
        "the whole earth": om.devices.Earth.of("ln 2"),
        **NOTHING,
    }


def fitting(parameter: inspect.Parameter, kinds: dict[str, Any], folder: Path) -> Any:
    """Something that is right for another parameter."""
    if parameter.name in OTHERS:
        return OTHERS[parameter.name]
    words = words_of(parameter.annotation)
    many = words.startswith(("Sequence", "Iterable"))
    if "Path" in words:
        return folder / "file.png"
    for word, value in FITTING.items():
        if word in words:
            return [value] if many and not isinstance(value, list) else value
    if OURS.search(words):
        one = kinds["packed" if "Packed" in words else "noise" if "Noise" in words else "design"]
        return [one] if many else one
    return [[1]] if len(re.findall(r"(?:Sequence|Iterable)\[", words)) > 1 else [1] if many else 1


def itself(name: str, kinds: dict[str, Any]) -> tuple[object, bool]:
    """What a method is called on, and whether it is whole: an object without fields else, of which
    only what is refused at once can be tried."""
    of: Any = om
    for part in name.split(".")[:-1]:
        of = getattr(of, part)
    known = [value for value in (*kinds.values(), MESH) if isinstance(value, of)]
    if known:
        return known[0], True
    return object.__new__(of), False


def arguments(name: str, kinds: dict[str, Any], folder: Path) -> tuple[dict[str, Any], bool]:
    """Right arguments, coarse ones among them, and whether there is an object to call it on."""
    found, whole = {}, True
    for key, parameter in parameters(FUNCTIONS[name]).items():
        if key == "self":
            found[key], whole = itself(name, kinds)
        elif key in COARSE and parameter.default is not parameter.empty:
            found[key] = COARSE[key]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            found[key] = fitting(parameter, kinds, folder)
    return found, whole


@pytest.mark.parametrize(("name", "at"), TAKEN)
def test_every_kind_is_answered_or_refused_in_words(
    name: str, at: str, kinds: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parameter = parameters(FUNCTIONS[name])[at]
    right, whole = arguments(name, kinds, tmp_path)
    listed = re.search("Sequence|Iterable", words_of(parameter.annotation))
    for kind, given in kinds.items():
        for value in [given, [given]] if listed else [given]:
            if whole or kind == "{}":
                # anything but an error of ours is a test that fails
                with suppress(om.ProblemError if kind in NOTHING else om.OptmechError):
                    FUNCTIONS[name](**(right | {at: value}))
                    if isinstance(right.get("path"), Path) and kind not in NOTHING:
                        for ending in (".html", ".csv", ".json"):
                            path = right["path"].with_suffix(ending)
                            FUNCTIONS[name](**(right | {at: value, "path": path}))


CHECKED = [(name, at) for name, at in TAKEN if is_asked(parameters(FUNCTIONS[name])[at])]
ODD: tuple[Any, ...] = (None, 1, "text", {}, [], [[]], math.nan, 10**400)
INNER = {
    "build", "built", "load", "of", "of_body", "of_document", "opened", "enclosed", "drawn",
    "of_dict", "figures_of", "gap_to", "reports", "PackedMechanism", "PackedEverywhere",
    "ball", "covariance",
}  # fmt: skip
"""What other parts of the package call, with what they have made or read."""


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n.rpartition(".")[2] not in INNER])
def test_no_argument_ends_in_an_error_of_somebody_else(
    name: str, kinds: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each argument is replaced by what is of no use there: an answer, or a ProblemError."""
    monkeypatch.chdir(tmp_path)
    right, whole = arguments(name, kinds, tmp_path)
    for at, parameter in parameters(FUNCTIONS[name]).items():
        named = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        for value in ODD if whole and named and at != "self" else ():
            if value is None and parameter.default is None:
                continue
            # a call may wait for what never comes, such as a report of each of 10^400
            with suppress(om.OptmechError):
                FUNCTIONS[name](**(right | {at: value}))


@each(("name", "at"), CHECKED)
def test_what_is_of_no_kind_is_refused_in_one_sentence(
    name: str, at: str, kinds: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(om.ProblemError, match=f"^{at}: dict is not a ") as caught:
        FUNCTIONS[name](**(arguments(name, kinds, tmp_path)[0] | {at: {}}))
    assert caught.value.remedy


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: om.plots.mechanism(UNIFORM), "design: Mechanism is not a Design. A mechanism alone"),
    (lambda: om.prices.of_pairs(DESIGN.mechanism), "om.exchange.adopt"),
    (lambda: om.report([DESIGN, UNIFORM], "p.html"), "designs[1]: Mechanism is not a Design"),
    (lambda: om.plots.tradeoff(DESIGN), "designs: Design is not a list of Designs. Give a list"),
    (lambda: om.pack("d.json", "d.omm"), "design: str is not a Design. Read it with om.load(path)"),
    (
        lambda: om.measures.epsilon("d.json"),
        "m: str is not a Mechanism. Read it with om.load(path)",
    ),
    (lambda: om.check(DESIGN), "path: Design is not a path. Give the name of the file that design"),
    (lambda: om.devices.load_packed(3), "path: int is not a path. Give the name of a file"),
    (lambda: om.solve(DESIGN), "problem: Design is not a Problem. Give design.problem"),
    (
        lambda: om.solve("p.toml"),
        "problem: str is not a Problem. Read it with om.load_problem(path)",
    ),
    (
        lambda: om.solve(PROBLEM, 3),
        'profile: int is not a path or a profile. Give a name, such as "auto"',
    ),
    (
        lambda: om.devices.Ledger(DESIGN, 1, 0.5),
        "mechanism: Design is not a packed mechanism or a mechanism for the whole earth. Pack it",
    ),
    (lambda: UNIFORM.remap({}), "f: dict is not a function. Give a function"),
    (lambda: UNIFORM.then(3), "other: int is not a Mechanism. Give a design, or make one"),
    (lambda: om.Prior.uniform(3), "domain: int is not a Domain. Make one with om.Domain.range(3)"),
    (lambda: om.redesign({}, PROBLEM), "old: dict is not a Design, a Mechanism or a path"),
]


@pytest.mark.parametrize(("mistake", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_it_says_what_was_given_what_is_wanted_and_what_to_do(
    mistake: Callable[[], object], said: str
) -> None:
    with pytest.raises(om.ProblemError) as caught:
        mistake()
    assert said in str(caught.value)


def test_there_are_many() -> None:
    assert len(TAKEN) > 200
    assert len(CHECKED) > 150
    assert {
        ("prices.of_pairs", "design"),
        ("exchange.to_frame", "mechanism"),
        ("plots.tradeoff", "designs"),
        ("report", "designs"),
        ("check", "path"),
        ("devices.load_packed", "path"),
        ("Mechanism.then", "other"),
        ("Mechanism.remap", "f"),
        ("devices.Ledger", "mechanism"),
        ("traces.FixedPolicy", "mechanisms"),
    } <= set(CHECKED)


def test_kinds_are_their_classes() -> None:
    assert {"Design", "Mechanism", "Ledger", "NoiseDesign", "Policy"} <= set(KINDS)
    for name, kind in KINDS.items():
        assert kind.cls is None or kind.cls.__name__ == name
    assert asked_by("Design | Source") is None
    assert asked_by("int") is None


def test_a_matrix_in_a_file_is_that_of_the_places(tmp_path: Path) -> None:
    om.exchange.write_matrix(DESIGN.mechanism, tmp_path / "m.npy")
    exact = [DESIGN.mechanism.exactly_at(place) for place in PLACES.points.tolist()]
    assert np.load(tmp_path / "m.npy") == pytest.approx(np.array(exact, dtype=float), abs=1e-15)


def test_it_is_a_mechanism_from_its_places() -> None:
    m = DESIGN.mechanism
    assert isinstance(DESIGN, om.Design)
    assert isinstance(m, om.Mechanism)
    assert m.secrets == PLACES
    assert om.measures.epsilon(m, E) <= 1 + 1e-9
    assert om.leakage.refines(m, m.remap(lambda label: min(label, 1))).holds
    merged = m.remap(lambda label: min(label, 1))
    for point in ([0.3, 1.7], [2.0, 0.1]):
        first, *others = m.exactly_at(point)
        assert merged.exactly_at(point) == (first, sum(others))


def test_what_takes_packed_mechanisms_refuses_others_by_name() -> None:
    for given in (DESIGN, DESIGN.mechanism, om.Mechanism(PLACES, PLACES, np.eye(3)), None):
        with pytest.raises(om.ProblemError, match="not a packed mechanism"):
            om.devices.Ledger(given, 1, 0.5)  # type: ignore[arg-type]
        with pytest.raises(om.ProblemError, match="not a packed mechanism"):
            om.devices.StickyReports(given, b"0" * 32)  # type: ignore[arg-type]


def test_rows_of_a_mechanism_for_every_point_are_refused_in_words() -> None:
    for given in (DESIGN, DESIGN.mechanism):
        with pytest.raises(om.ProblemError, match="every point of a region"):
            om.constraints.FixedRows(given)


def test_its_promise_is_a_number_for_pictures() -> None:
    om.plots.constraint_slack(DESIGN)
    om.plots.tradeoff([DESIGN])
