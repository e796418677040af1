"""Whatever takes a design or a mechanism works with one for every point of a region, or refuses it
in words. Functions are found by their annotations: new ones are tried as well."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om

E = om.distances.euclidean()
PLACES = om.Domain(range(3), [[0, 0], [1, 1], [2, 1]])
PRIOR = om.Prior.uniform(PLACES)
MESH = om.Mesh.grid((0, 0, 2, 2), 1)
STATED = om.Problem(PRIOR, E, constraints=[om.MetricPrivacy(1, E, everywhere=MESH)])
DESIGN: Any = om.solve(STATED, gap=1e-2)


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """All public functions of the package and of its namespaces."""
    for name in dir(om):
        found = getattr(om, name)
        if inspect.ismodule(found):
            for inner in getattr(found, "__all__", ()):
                if inspect.isfunction(function := getattr(found, inner)):
                    yield f"{name}.{inner}", function
        elif inspect.isfunction(found):
            yield name, found


def asked(parameter: inspect.Parameter) -> bool:
    """Whether it is a design or a mechanism."""
    return any(word in str(parameter.annotation) for word in ("Design", "Mechanism"))


TAKERS = {
    name: function
    for name, function in functions()
    if any(map(asked, inspect.signature(function).parameters.values()))
}
OTHERS: dict[str, Any] = {
    "lams": [PRIOR, PRIOR],
    "pairs": [(PRIOR, PRIOR)],
    "counts": [1, 2, 3],
    "divergence": "max",
    "gain": "identity",
    "members": [1, 0, 0],
    "strategy": np.eye(3),
    "problem": STATED,
    "across": "epsilon",
}


def other(parameter: inspect.Parameter, path: Path) -> Any:
    """Something that fits where no design does."""
    annotation = str(parameter.annotation)
    if parameter.name in OTHERS:
        return OTHERS[parameter.name]
    for word, value in (
        ("Path", path),
        ("Prior", PRIOR),
        ("Distribution", PRIOR),
        ("Distance", E),
        ("Loss", E),
        ("Domain", PLACES),
    ):
        if word in annotation:
            return value
    return 1


def arguments(function: Callable[..., object], given: object, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        required = parameter.default is parameter.empty
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if asked(parameter) and (required or len(found) == 0):
            listed = str(parameter.annotation).startswith(("Sequence", "Iterable", "list"))
            found[name] = [given] if listed else given
        elif required:
            found[name] = other(parameter, path)
    return found


def test_a_matrix_in_a_file_is_that_of_the_places(tmp_path: Path) -> None:
    om.exchange.write_matrix(DESIGN.mechanism, tmp_path / "m.npy")
    exact = [DESIGN.mechanism.exactly_at(place) for place in PLACES.points.tolist()]
    assert np.load(tmp_path / "m.npy") == pytest.approx(np.array(exact, dtype=float), abs=1e-15)


@pytest.mark.parametrize("name", TAKERS)
def test_functions(name: str, tmp_path: Path) -> None:
    function = TAKERS[name]
    annotations = {str(p.annotation) for p in inspect.signature(function).parameters.values()}
    given = [DESIGN]
    if not any("Design" in annotation for annotation in annotations):
        given.append(DESIGN.mechanism)
    for what in given:
        for ending in ("html", "png", "csv"):
            # anything else is a test that fails
            with suppress(om.OptmechError):
                function(**arguments(function, what, tmp_path / f"f.{ending}"))


def test_there_are_many() -> None:
    assert len(TAKERS) > 60
    assert {"prices.of_pairs", "exchange.to_frame", "attacks.optimal", "plots.posterior"} <= set(
        TAKERS
    )


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
            om.Ledger(given, 1, 0.5)  # type: ignore[arg-type]
        with pytest.raises(om.ProblemError, match="not a packed mechanism"):
            om.StickyReports(given, b"0" * 32)  # type: ignore[arg-type]


def test_rows_of_a_mechanism_for_every_point_are_refused_in_words() -> None:
    for given in (DESIGN, DESIGN.mechanism):
        with pytest.raises(om.ProblemError, match="every point of a region"):
            om.FixedRows(given)


def test_its_promise_is_a_number_for_pictures() -> None:
    om.plots.constraint_slack(DESIGN)
    om.plots.frontier([DESIGN])
