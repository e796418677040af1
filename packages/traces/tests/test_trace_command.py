"""``optmech trace``: trace files, their errors, and what is written."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_traces.files import read as read_trace

import optmech as om
from optmech import traces
from optmech.base.extensions import gallery_of
from optmech.base.machine import data_folder
from optmech.cli.main import main
from optmech.files import task_schema
from optmech.files.gallery import gallery_names
from optmech.reading.source import read_document

TRACE = """
format = 1
kind = "gaussian"
times = { count = 10 }
secrets = [0, 2, 4, 6, 8]
radius = 1.0
order = 2.0
epsilon = 1
kernel = { kind = "rbf", length_scale = 1.0 }
"""


def write(folder: Path, *changes: tuple[str, str]) -> str:
    text = TRACE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "t.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any, str]:
    status = main(["trace", *argv])
    out, err = capsys.readouterr()
    return status, json.loads(out) if "--json" in argv else out, err


def test_a_promise_is_answered_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, noise = write(tmp_path, ("epsilon = 1", "epsilon = 1\ndelta = 1e-5")), tmp_path / "n.json"
    status, found, _ = output(capsys, path, "--json", "-o", str(noise))
    assert status == 0
    assert found["status"] == "designed"
    assert found["verified"] is True
    assert found["loss"] <= 1
    assert found["lower_bound"] <= found["variance"]
    best, diagonal, equal, naive = found["choices"]
    assert best["variance"] <= diagonal["variance"] <= equal["variance"] * (1 + 1e-9)
    # independent points: λ r² m / (2ε) on each, which is not enough
    assert naive["variance"] == pytest.approx(10 * 2 * 5 / 2)
    assert naive["loss"] > 1.5
    trace = traces.GaussianPrior(np.arange(10.0), traces.rbf(1.0))
    loss = traces.privacy_loss(trace, 5.0, range(0, 10, 2), 1.0, 2.0)
    assert naive["loss"] == pytest.approx(loss.upper, rel=1e-12)
    # and the noise that was written is measured to keep it
    again = write(tmp_path, ("epsilon = 1", 'noise = { file = "n.json" }'))
    status, measured, _ = output(capsys, again, "--json")
    assert status == 0
    assert measured["status"] == "measured"
    assert measured["loss"] == found["loss"]


def test_words_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "t.png"
    status, out, err = output(capsys, write(tmp_path), "--picture", str(picture))
    assert status == 0
    for word in ("kept, proved", "least noise", "points taken as independent", "hypothesis"):
        assert word in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "picture written" in err


def test_subsets_and_length_scales(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, ("epsilon = 1", "noise = 1.0\nsubsets = 2\nlength_scales = [0.5, 1.0]"))
    status, found, _ = output(capsys, path, "--json")
    assert status == 0
    assert found["subsets"]["count"] == 55
    assert found["subsets"]["loss"] <= found["subsets"]["upper"]
    assert found["length_scales"]["worst"] == 1.0
    assert found["length_scales"]["loss"] == pytest.approx(found["loss_lower"])
    _, text, _ = output(capsys, path)
    assert "worst set" in text
    assert "length scales" in text


def test_a_promise_for_an_interval_of_length_scales(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        tmp_path,
        ("count = 10", "count = 5"),
        ("[0, 2, 4, 6, 8]", "[0, 2, 4]"),
        ("epsilon = 1", "epsilon = 1\nlength_scales = [0.8, 1.2]"),
    )
    status, found, _ = output(capsys, path, "--json")
    assert status == 0
    assert found["verified"] is True
    assert found["length_scales"]["upper"] <= 1
    assert found["choices"] == []
    status, _, err = output(
        capsys, write(tmp_path, ("epsilon = 1", "epsilon = 1\nlength_scales = [2, 3]"))
    )
    assert status == 2
    assert "length_scales: do not hold" in err


GPS = """
format = 1
kind = "gaussian"
secrets = [0, 3]
radius = 0.1
order = 2.0
noise = 0.01
[gps]
file = "fixes.csv"
user = "b"
count = 12
spacing = 30
[kernel]
kind = "fitted"
family = "matern"
"""


def test_gps_fixes_become_a_path_in_km(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = np.random.default_rng(4).standard_normal((40, 2)).cumsum(axis=0) * 0.001
    rows = ["user,time,lon,lat", "a,0,9,9"]
    rows += [f"b,{20 * k},{116 + x},{40 + y}" for k, (x, y) in enumerate(steps.tolist())]
    (tmp_path / "fixes.csv").write_text("\n".join(rows) + "\n")
    path = tmp_path / "g.toml"
    path.write_text(GPS)
    problem = read_trace(path).task
    # of fixes 20 s apart every other one is 30 s after the last one kept
    np.testing.assert_allclose(problem.trace.times, np.arange(12) * 40 / 60)
    assert problem.path is not None
    north = (steps[2, 1] - steps[0, 1]) * np.pi / 180 * 6371.0088
    assert problem.path[1, 1] - problem.path[0, 1] == pytest.approx(north, rel=1e-9)
    east = (steps[2, 0] - steps[0, 0]) * np.pi / 180 * 6371.0088 * np.cos(np.radians(40))
    assert problem.path[1, 0] - problem.path[0, 0] == pytest.approx(east, rel=1e-3)
    status, found, _ = output(capsys, str(path), "--json", "--picture", str(tmp_path / "g.svg"))
    assert status == 0
    assert found["dimensions"] == 2
    assert found["fitted"]["length_scale"] > 0
    for old, new, where in (
        ('user = "b"', 'user = "c"', "gps.user"),
        ("count = 12", "count = 30", "gps.run"),
        ("fixes.csv", "nosuch.csv", "gps.file"),
        ('kind = "fitted"', 'kind = "fited"', "kernel.kind"),
    ):
        path.write_text(GPS.replace(old, new))
        status, _, err = output(capsys, str(path))
        assert status == 2
        assert where in err


def test_every_error_is_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        tmp_path,
        ("radius = 1.0", "radius = 0.0"),
        ("order = 2.0", 'order = "two"\ncolour = 3'),
        ("length_scale = 1.0", "length_scale = -1.0"),
        ("format = 1\n", ""),
    )
    status, _, err = output(capsys, path)
    assert status == 2
    for place in ("format", "radius", "order", "colour", "kernel.length_scale"):
        assert f": {place}: " in err


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("{ count = 10 }", "{ values = [0, 2, 1] }", "times.values[2]"),
        ("{ count = 10 }", "{ values = [0, 1, 1] }", "times.values[2]"),
        ("{ count = 10 }", "{ count = 10, values = [1] }", "times"),
        ("[0, 2, 4, 6, 8]", "[0, 12]", "secrets[1]"),
        ("[0, 2, 4, 6, 8]", "[[0], [12]]", "secrets[1][0]"),
        ("[0, 2, 4, 6, 8]", "[0, [1]]", "secrets"),
        ("[0, 2, 4, 6, 8]", "[0, 0.5]", "secrets[1]"),
        ("[0, 2, 4, 6, 8]", "[]", "secrets"),
        ("epsilon = 1", "", "epsilon"),
        ("epsilon = 1", "epsilon = 1\nnoise = 1", "epsilon"),
        ("epsilon = 1", "noise = [1, 2]", "noise"),
        ("epsilon = 1", 'noise = "much"', "noise"),
        ("epsilon = 1", "noise = -1", "noise"),
        ("epsilon = 1", 'noise = { file = "no.json" }', "noise.file"),
        ("epsilon = 1", "epsilon = 1\nsubsets = 11", "subsets"),
        ("epsilon = 1", "epsilon = 1\nlength_scales = [2, 1]", "length_scales"),
        ('"rbf", length_scale = 1.0', '"rbf"', "kernel.length_scale"),
        ('"rbf"', '"rbff"', "kernel.kind"),
        ('"rbf", length_scale', '"fitted", family = "rbf"}\n#', "kernel.kind"),
        ('kind = "gaussian"', 'kind = "gausian"', "kind"),
        ('kind = "gaussian"\n', "", "kind"),
        ("format = 1", "format = 2", "format"),
    ],
)
def test_mistakes_are_placed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, where: str
) -> None:
    status, out, err = output(capsys, write(tmp_path, (old, new)))
    assert status == 2, out
    assert f".toml: {where}: " in err
    assert err.count("\n") == 1


def test_a_problem_file_is_told_from_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = output(capsys, str(data_folder("problems") / "metric.toml"))
    assert status == 2
    assert "optmech solve" in err
    status = main(["solve", str(gallery_of("trace") / "ten-points.toml")])
    assert status == 2
    assert "Use optmech trace" in capsys.readouterr().err
    status, _, err = output(capsys, "ten-pionts")
    assert status == 2
    assert "'ten-points'" in err or "ten-points" in err


def test_the_gallery_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert "ten-points" in gallery_names("trace")
    for name in gallery_names("trace"):
        status, found, _ = output(capsys, name, "--json")
        assert status == 0, name
        assert found["verified"] is True
    main(["problems", "--json"])
    listed = json.loads(capsys.readouterr().out)["traces"]
    assert [entry["name"] for entry in listed] == gallery_names("trace")
    assert all(Path(entry["path"]).is_file() for entry in listed)


def test_the_schema_accepts_the_gallery(capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema", "trace", "--json"])
    schema = json.loads(capsys.readouterr().out)
    assert schema == task_schema("trace")
    required = schema["$defs"]["GaussianTrace"]["required"]
    assert set(required) == {"kind", "format", "kernel", "secrets", "radius", "order"}
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    validator = jsonschema.Draft202012Validator(schema)
    for name in gallery_names("trace"):
        document = read_document(gallery_of("trace") / f"{name}.toml")
        assert not list(validator.iter_errors(document)), name
        assert list(validator.iter_errors({**document, "zzz": 1}))
        assert list(validator.iter_errors({**document, "secrets": [-1]}))


@pytest.fixture(scope="module")
def saved_noise(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of the noise of the trace."""
    folder = tmp_path_factory.mktemp("noise")
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert main(["trace", write(folder), "-o", str(folder / "n.json")]) == 0
    assert "computing losses of 10 positions" in said.getvalue()
    return (folder / "n.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"times": [0, 1, 2]}, "was made for other times"),
        ({"times": list(range(1, 11))}, "was made for other times"),
        ({"dimensions": 2}, "positions of 2 coordinates, and these have 1"),
        ({"covariance": [["1"] * 10] * 10}, "is not rows of numbers"),
        ({"covariance": [[True] * 10] * 10}, "is not rows of numbers"),
        ({"covariance": "5"}, "is not rows of numbers"),
        ({"covariance": None}, "has no covariance"),
    ],
)
def test_noise_of_another_trace_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], saved_noise: str,
    changes: dict[str, Any], message: str,
) -> None:  # fmt: skip
    noise = tmp_path / "n.json"
    noise.write_text(json.dumps(json.loads(saved_noise) | changes))
    again = write(tmp_path, ("epsilon = 1", 'noise = { file = "n.json" }'))
    status, _, err = output(capsys, again)
    assert status == 2
    assert message in err
    assert "t.toml: noise.file: " in err


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("secrets", ("secrets = [0, 2, 4, 6, 8]", "secrets = [0, 1]")),
        ("radius", ("radius = 1.0", "radius = 0.5")),
        ("order", ("order = 2.0", "order = 3.0")),
    ],
)
def test_noise_made_for_another_question_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, change: tuple[str, str]
) -> None:
    assert output(capsys, write(tmp_path), "-o", str(tmp_path / "n.json"))[0] == 0
    given = ("epsilon = 1", 'noise = { file = "n.json" }')
    status, found, err = output(capsys, write(tmp_path, given), "--json")
    assert (status, found["notes"]) == (0, [])
    assert "made for other" not in err
    status, found, err = output(capsys, write(tmp_path, given, change), "--json")
    assert status == 0
    assert [f"made for other {name}" in line for line in found["notes"]] == [True]
    assert f"made for other {name}" in err


def test_the_noise_of_a_trace_is_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = tmp_path / "n.json"
    assert output(capsys, write(tmp_path), "-o", str(noise))[0] == 0
    held = noise.read_bytes()
    path = write(tmp_path, ("epsilon = 1", 'noise = { file = "n.json" }'))
    for option in ("-o", "--picture"):
        status, _, err = output(capsys, path, option, str(noise))
        assert status == 2
        assert "input file" in err
    assert noise.read_bytes() == held


@pytest.mark.parametrize(("times", "said"), [([1.0, 7.57374, 7.57374], "repeats"),
                                             ([1.0, 7.57374, 2.5], "is before")])  # fmt: skip
def test_times_in_messages_are_not_quoted(times: list[float], said: str) -> None:
    with pytest.raises(om.ProblemError, match=f"^times\\[2\\]: {said} the time") as caught:
        om.traces.GaussianPrior(np.array(times), om.traces.rbf(1.0))
    assert "7.57" not in str(caught.value)
