"""docs/traces.md: its code runs, its file is a trace file, and it names every key of its kind."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from optmech_traces.files import read as read_trace
from optmech_traces.files.gaussian import GaussianTrace
from optmech_traces.gaussian.task import GaussianAnswer

import optmech as om

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "traces.md"
pytestmark = pytest.mark.skipif(not GUIDE.is_file(), reason="docs/ is not beside the tests")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)


def test_the_code_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {}
    for code in blocks("python"):
        exec(code, scope)
    out = capsys.readouterr().out
    assert out.startswith("8.7931")
    assert "38.27" in out
    assert "95.47" in out
    assert scope["sigma"] == pytest.approx(3.0321, abs=5e-5)
    assert scope["release"].shape == (10,)


def test_the_example_is_a_trace_file(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    path = tmp_path / "t.toml"
    path.write_text(example, encoding="utf-8")
    assert len(read_trace(path).task.trace) == 10


def names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.get("properties", {}).items():
            yield key
            yield from (str(kind) for kind in [value.get("const"), *value.get("enum", [])] if kind)
        for value in node.values():
            yield from names(value)
    elif isinstance(node, list):
        for value in node:
            yield from names(value)


def test_every_key_and_kind_is_documented() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    known = sorted(set(names(GaussianTrace.model_json_schema())))
    assert len(known) > 40
    missing = [name for name in known if f"`{name}`" not in text and f'"{name}"' not in text]
    assert not [name for name in missing if not re.search(rf"\b{name} = ", text)]


def test_calls_in_the_text_name_their_arguments() -> None:
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    called = re.findall(r"`(?:om\.traces\.)?(\w+)(\([^`]*\))`", text)
    known = [(name, given) for name, given in called if name in om.traces.__all__]
    assert {"worst_length_scale", "robust_noise", "worst_subset", "fit"} <= dict(known).keys()
    for name, given in known:
        call = ast.parse("f" + re.sub(", …|…, |…", "", given), mode="eval").body
        assert isinstance(call, ast.Call)
        named = {part.arg: None for part in call.keywords if part.arg is not None}
        inspect.signature(getattr(om.traces, name)).bind_partial(*call.args, **named)


def test_the_key_epsilon_says_for_which_region_noise_is_made(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    for count, more, region in ((10, "", "box"), (10, "ball = true", "ball"), (25, "", "ball")):
        (example,) = blocks("toml")
        path.write_text(
            example.replace("count = 10", f"count = {count}").replace("radius", f"{more}\nradius"),
            encoding="utf-8",
        )
        assert GaussianAnswer(read_trace(path).task).region == region
