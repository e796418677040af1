"""No message about a file holds an entry of its lists, be it a number or a text."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.samples import MESH, PLANTED, PROBLEMS, STREETS, SWEEP, documents, planted
from optmech_sweeps.plan import read_plan

import optmech as om
from optmech.errors import OptmechError, described
from optmech.files import read_problem

WRONG = (
    f"{PLANTED} km", f"-0.{PLANTED}", float(f"-7.{PLANTED}"), float(f"1.{PLANTED}e300"),
    int(PLANTED * 3), [float(f"7.{PLANTED}")], {"a": float(f"7.{PLANTED}")}, [PLANTED],
    f"ln 0.{PLANTED}",
)  # fmt: skip
"""In the place of a number: all of them have these digits."""


LOOKED_UP = re.compile(
    "there is no ('[^']*'|[0-9]+|\\[.*\\]) among|The first ones are .*|path from .* to .*"
)
"""Names that are looked up, and the first ones that there are: they are said as written."""


def entries(
    plain: Any, place: tuple[Any, ...] = (), data: bool = False
) -> Iterator[tuple[Any, ...]]:
    """The places of entries of lists, the first and last of each."""
    if isinstance(plain, dict):
        for key, part in plain.items():
            yield from entries(part, (*place, key))
    elif isinstance(plain, list):
        if place and place[-1] != "constraints":
            yield place
        for k in sorted({0, len(plain) - 1} & set(range(len(plain)))):
            yield from entries(plain[k], (*place, k), True)
    elif data:
        yield place


def changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    out = copy.deepcopy(document)
    parent = out
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    return out


KNOWN = {
    **{name: document for name, document in documents().items() if name in PROBLEMS},
    "mesh": planted(MESH),
    "streets": planted(STREETS),
}


@pytest.mark.parametrize("name", KNOWN)
def test_no_message_about_a_problem_holds_an_entry(name: str, tmp_path: Path) -> None:
    path, refused = tmp_path / "p.json", 0
    for place in entries(KNOWN[name]):
        for value in WRONG:
            path.write_text(json.dumps(changed(KNOWN[name], place, value)))
            try:
                read_problem(path).problem.statement  # noqa: B018
            except OptmechError as error:
                refused += 1
                said = LOOKED_UP.sub("", str(error))
                assert "737" not in said, place
    assert refused or not list(entries(KNOWN[name]))


def test_no_message_about_a_sweep_holds_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for place in entries(SWEEP["problem"]):
        for value in WRONG:
            path.write_text(json.dumps(changed(SWEEP, ("problem", *place), value)))
            try:
                read_plan(path)
            except OptmechError as error:
                said = LOOKED_UP.sub("", str(error))
                assert "737" not in said, place


def test_parameters_are_still_said(tmp_path: Path) -> None:
    """The value of a key is what somebody chose, and is shown."""
    document = changed(KNOWN["line-geometric"], ("constraints", 0, "epsilon"), -1.25)
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    with pytest.raises(OptmechError, match=r"epsilon: -1\.25 is"):
        read_problem(path)


@pytest.mark.parametrize("value", [7.25, "café", [7.25], {"a": 7.25}, (7,), None, True, object()])
def test_what_a_value_is_does_not_say_it(value: object) -> None:
    found = described(value)
    assert "7" not in found
    assert "caf" not in found
    assert described(-7) == "a number below 0"
    assert described(float("nan")) == "nan"


def test_points_outside_are_counted_and_not_said() -> None:
    mesh = om.Mesh.grid((0, 0, 2, 2), 1)
    for inside in (mesh.inside, lambda point: mesh.interpolation([point])):
        with pytest.raises(om.ProblemError, match="outside of the region") as error:
            inside((7.375, 1))
        assert "375" not in str(error.value)
