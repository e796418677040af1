"""Altered design files: both checkers agree, and no false claim passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mutations import designs, falsehood, judge, networks, regions, run, surveys

from optmech.reading.sealed import seal


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return designs()


def test_unaltered_files_pass(files: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / "d.json").write_bytes(content)
        verdict = judge(tmp_path / "d.json")
        assert not verdict.check, name
        assert not verdict.audit, name
        assert not falsehood(content, json.loads(content)), name


def test_files_of_earlier_versions_pass(files: dict[str, bytes], tmp_path: Path) -> None:
    """Written before the loss had a name, and divergences multipliers."""
    for name, content in files.items():
        body = json.loads(content)
        del body["digest"]
        body["problem"].pop("loss_name", None)
        if not body["multipliers"]["divergence"]:
            del body["multipliers"]["divergence"]
        (tmp_path / "d.json").write_bytes(seal(json.dumps(body).encode()))
        verdict = judge(tmp_path / "d.json")
        assert not verdict.check, name
        assert not verdict.audit, name


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_the_checkers_agree_on_altered_files(
    files: dict[str, bytes], seed: int, tmp_path: Path
) -> None:
    tally = run(files, 150, seed, tmp_path)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["accepted"] >= 6
    assert tally.counts["refused"] >= 60


def test_the_checkers_agree_on_designs_for_statistics(tmp_path: Path) -> None:
    made = surveys()
    for name, content in made.items():
        (tmp_path / "d.json").write_bytes(content)
        verdict = judge(tmp_path / "d.json")
        assert not verdict.check, name
        assert not verdict.audit, name
        assert not falsehood(content, json.loads(content)), name
    tally = run(made, 80, 51, tmp_path)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["accepted"] >= 5
    assert tally.counts["refused"] >= 40


@pytest.fixture(scope="module")
def of_regions() -> dict[str, bytes]:
    return regions()


BESIDE = [
    "ratios", "delta", "populations", "bias", "leakage", "thresholds", "none for losses",
    "none together",
]  # fmt: skip


@pytest.mark.parametrize("name", ["every point", "cubic", "degrees", "beside", "cells", *BESIDE])
def test_the_checkers_agree_on_regions_and_cells(
    of_regions: dict[str, bytes], name: str, tmp_path: Path
) -> None:
    (tmp_path / "d.json").write_bytes(of_regions[name])
    verdict = judge(tmp_path / "d.json")
    assert not verdict.check
    assert not verdict.audit
    count = 10 if name == "degrees" else 30
    tally = run({name: of_regions[name]}, count, 14, tmp_path)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["refused"] >= count // 2


@pytest.fixture(scope="module")
def of_networks() -> dict[str, bytes]:
    return networks()


@pytest.mark.parametrize("name", ["line", "worst", "squares", "delta", "roads"])
def test_the_checkers_agree_on_lines_and_roads(
    of_networks: dict[str, bytes], name: str, tmp_path: Path
) -> None:
    content = of_networks[name]
    (tmp_path / "d.json").write_bytes(content)
    verdict = judge(tmp_path / "d.json")
    assert not verdict.check
    assert not verdict.audit
    assert not falsehood(content, json.loads(content))
    tally = run({name: content}, 80, 15, tmp_path)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["refused"] >= 40


@pytest.mark.parametrize("name", ["every point", "cubic", "degrees", "beside", "cells"])
@pytest.mark.parametrize(
    ("share", "true"), [(-1e-3, True), (5e-10, True), (2e-9, False), (1e-3, False)]
)
def test_a_lower_bound_is_refused_where_it_is_not_proved(
    of_regions: dict[str, bytes], name: str, share: float, true: bool, tmp_path: Path
) -> None:
    """A billionth of what multipliers prove is not claimed; whoever claims it says the truth."""
    body = json.loads(of_regions[name])
    del body["digest"]
    result = body["result"]
    result["lower_bound"] *= 1 + share
    if name == "cells":
        result["bound"] = result["lower_bound"]
        result["status"] = "feasible"
    (tmp_path / "d.json").write_bytes(seal(json.dumps(body).encode()))
    verdict = judge(tmp_path / "d.json")
    assert (not verdict.check, not verdict.audit) == (true, true)


@pytest.mark.parametrize("unit", ["", "m", "max", "km ", "KM", "km"])
@pytest.mark.parametrize("name", ["every point", "degrees", "beside"])
@pytest.mark.parametrize("part", ["mesh", "secrets", "observables"])
def test_units_that_differ_are_refused_by_both(
    of_regions: dict[str, bytes], part: str, name: str, unit: str, tmp_path: Path
) -> None:
    body = json.loads(of_regions[name])
    del body["digest"]
    problem = body["problem"]
    where = problem["constraints"][0]["everywhere"] if part == "mesh" else problem[part]
    where["unit"] = unit
    (tmp_path / "d.json").write_bytes(seal(json.dumps(body).encode()))
    verdict = judge(tmp_path / "d.json")
    assert bool(verdict.check) == bool(verdict.audit), (verdict.check, verdict.audit)
    if unit == "km":
        assert not verdict.check


@pytest.mark.parametrize("value", [None, False, 0, "", {}, [0]], ids=repr)
@pytest.mark.parametrize("family", ["windowed", "lifted", "approximate", "loss_limits"])
def test_multipliers_of_nothing_are_no_list_or_empty(
    of_regions: dict[str, bytes], family: str, value: object, tmp_path: Path
) -> None:
    body = json.loads(of_regions["cells"])
    del body["digest"]
    body["outer"]["multipliers"][family] = value
    (tmp_path / "d.json").write_bytes(seal(json.dumps(body).encode()))
    verdict = judge(tmp_path / "d.json")
    assert verdict.check
    assert verdict.audit
