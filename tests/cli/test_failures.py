"""However a command fails: one line on standard error, the right status, never a traceback."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import optmech.pipeline.search
from optmech.base.extensions import COMMANDS as EXTENSIONS, added
from optmech.base.machine import data_folder
from optmech.cli.main import COMMANDS, build_parser, main
from optmech.errors import SolverError
from optmech.files import gallery


def fail(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, list[str]]:
    status = main(list(argv))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines
    assert all(line.startswith("optmech: error: ") for line in lines)
    return status, lines


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["solve", "nosuch.toml"], "nosuch.toml: there is no such file"),
        (["solve", "metrc"], "Did you mean metric"),
        (["solve"], "the following arguments are required: FILE|NAME. Run optmech solve --help"),
        (["sovle"], "'sovle' is unknown. Did you mean 'solve'"),
        (["solve", "metric", "--gap", "x"], "--gap: invalid float value"),
        (["solve", "metric", "--gap", "nan"], "--gap: nan is not a positive number"),
        (["solve", "metric", "--gap", "-1"], "--gap: -1 is not a positive number"),
        (["solve", "metric", "--time-limit", "0"], "--time-limit: 0 is not a positive number"),
        (["solve", "metric", "--profile", "nosuch"], "there is no profile 'nosuch'"),
        (["solve", "metric", "--profile", "nosuch.toml"], "nosuch.toml"),
        (["solve", "metric", "-o", "/nosuch/dir/x.json"], "folder '/nosuch/dir' does not exist"),
        (["solve", "metric", "-o", "."], "is a folder"),
        (["solve", "metric", "--picture", "x.doc"], "is not the name of a picture"),
        (["solve", "metric", "-o", "x.png", "--picture", "./x.png"], "the same file as --output"),
        (["check", "nosuch.json"], "nosuch.json: cannot be read"),
        (["check", "."], "cannot be read"),
        (["attack", "nosuch.json", "--kind", "x"], "invalid choice: 'x'"),
        (["sample", "nosuch.json", "1"], "cannot be read"),
        (["measure", "nosuch.json", "--delta", "x"], "--delta: 'x' is not a number"),
        (["export", "metric", "-o", "/proc/x.mps"], "/proc"),
        (["export", "metric"], "required: -o/--output"),
        (["export", "metric", "--format", "pdf", "-o", "x"], "invalid choice: 'pdf'"),
    ],
)
def test_bad_usage_and_input_end_with_status_2(
    capsys: pytest.CaptureFixture[str], argv: list[str], words: str
) -> None:
    status, lines = fail(capsys, *argv)
    assert status == 2
    assert len(lines) == 1
    assert words in lines[0]


def test_every_error_of_a_file_has_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.toml"
    path.write_text('format = 1\nlos = "hamming"\nprior = "unifrom"\n')
    status, lines = fail(capsys, "solve", str(path))
    assert status == 2
    assert len(lines) == 4
    assert all(line.startswith(f"optmech: error: {path}: ") for line in lines)
    status = main(["solve", str(path), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert status == 2
    assert answer["status"] == "error"
    assert {error["where"] for error in answer["errors"]} == {"secrets", "loss", "los", "prior"}
    assert all(error["remedy"] for error in answer["errors"])


def test_outputs_are_refused_before_solving(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("solved before checking the output path")

    monkeypatch.setattr(optmech.pipeline.search, "solve", never)
    assert fail(capsys, "solve", "metric", "-o", str(tmp_path / "no" / "x"))[0] == 2
    monkeypatch.setattr("optmech.show.plots.drawing.find_spec", lambda name: None)
    status, lines = fail(capsys, "solve", "metric", "--picture", str(tmp_path / "x.png"))
    assert status == 2
    assert "pip install '.[plot]'" in lines[0]


def test_the_problem_file_is_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.toml"
    text = 'format = 1\nprior = "uniform"\nloss = "hamming"\n[secrets]\nkind = "line"\ncount = 2\n'
    path.write_text(text)
    status, lines = fail(capsys, "solve", str(path), "-q", "-o", str(tmp_path / "." / "p.toml"))
    assert status == 2
    assert "is an input file" in lines[0]
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (SolverError("no mechanism in 1 s", where="p", remedy="Allow more"), 4, "p: no mechanism"),
        (MemoryError(), 2, "the memory at hand does not suffice. Use a coarser domain"),
        (RecursionError(), 2, "too deep"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("a\nb"), 70, "internal error: ZeroDivisionError: a b. This is a bug"),
    ],
)
def test_other_ends(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    words: str,
) -> None:
    def end(*_: object, **__: object) -> None:
        raise error

    monkeypatch.delenv("OPTMECH_DEBUG", raising=False)
    monkeypatch.setattr(optmech.pipeline.search, "solve", end)
    found, lines = fail(capsys, "solve", "metric", "-q")
    assert found == status
    assert len(lines) == 1
    assert words in lines[0]


def test_bugs_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setenv("OPTMECH_DEBUG", "1")
    monkeypatch.setattr(optmech.pipeline.search, "solve", end)
    with pytest.raises(ZeroDivisionError):
        main(["solve", "metric", "-q"])


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "optmech", *argv]


def test_a_closed_pipe_is_no_error() -> None:
    process = subprocess.Popen(
        command("schema"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.wait(timeout=600)
    process.stderr.close()
    assert error == ""


def test_ascii_terminals_get_escapes() -> None:
    result = subprocess.run(
        command("problems"),
        capture_output=True,
        check=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert b"Montr\\xe9al" in result.stdout


def test_an_interrupt_during_the_search_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(
        'format = 1\nprior = "uniform"\nloss = "euclidean"\n'
        '[secrets]\nkind = "grid"\nrows = 10\ncolumns = 10\n'
        '[[constraints]]\nkind = "metric_privacy"\nepsilon = 1\ndistance = "euclidean"\n'
    )
    process = subprocess.Popen(
        command("solve", str(path), "--profile", "highs-simplex", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert "Traceback" not in out + err
    assert process.returncode in (0, 4, 130)
    if process.returncode != 130:
        assert json.loads(out)["status"] in ("feasible", "optimal", "error")


def test_help_is_instant_because_nothing_is_imported() -> None:
    script = (
        "import sys\n"
        "from optmech.cli.main import main\n"
        "main(['--help'])\n"
        "main(['solve', '--help'])\n"
        "heavy = {'numpy', 'scipy', 'cvxpy', 'pydantic', 'rich', 'highspy', 'matplotlib'}\n"
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stderr.strip() == ""


def test_cvxpy_is_imported_only_when_used(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from optmech.cli.main import main\n"
        "assert main(['solve', 'differential', '-q', '--json']) == 0\n"
        "sys.exit('cvxpy' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert result.returncode == 0


# interface.md, "Command line": the commands of this version
PROMISED = {
    "init": ["--x", "--y", "--label", "--cells", "-o", "--json"],
    "solve": ["--profile", "--gap", "--time-limit", "-o", "--json", "--picture"],
    "redesign": ["--keep", "--free", "--gap", "--time-limit", "-o", "--json"],
    "show": ["FILE", "--json"],
    "check": ["--problem", "--json"],
    "attack": ["--distance", "--kind", "--json"],
    "measure": ["--epsilon", "--delta", "--leakage", "--reports", "--json"],
    "compare": ["--distance", "--picture", "--json"],
    "estimate": ["--bootstrap", "--confidence", "--gap", "-o", "--json"],
    "mechanism": ["--epsilon", "-o", "--json"],
    "plan": ["--profile", "--time-limit", "--json"],
    "plan-survey": ["--error", "--people", "--json"],
    "statement": ["-o", "--json"],
    "compare-coarsening": ["-q", "--json"],
    "pack": ["--bits", "--max-loss", "-o", "--sign", "--json"],
    "client": ["c", "js", "extension", "--mechanism", "--json"],
    "sample": ["-n", "--seed", "--json"],
    "protect": [
        "--x",
        "--y",
        "--label",
        "--keep",
        "--outside",
        "--sticky-key-file",
        "-o",
        "--json",
    ],
    "report": ["-o", "--open", "--json"],
    "adopt": ["--problem", "--repair", "-o", "--json"],
    "export": ["--format", "-o", "--json"],
    "sweep": ["-o", "--workers", "--dask", "--json"],
    "transport": ["--p", "--distance", "--radius", "--plan", "--json"],
    "trace": ["--json"],
    "noise": ["--epsilon", "--delta", "--loss", "-o", "--picture", "--json"],
    "problems": ["--json"],
    "profiles": ["--json"],
    "schema": ["--json"],
    "completion": ["bash", "--json"],
}


@pytest.mark.parametrize("name", PROMISED)
def test_every_command_has_help_with_an_example(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"example:\n  optmech {name}" in text
    for option in PROMISED[name]:
        assert option in text
    summary = text.split("\n\n")[1]
    assert summary[0].isupper()
    assert summary.strip().endswith(".")


def test_no_command_is_without_promise_and_none_is_missing() -> None:
    assert {*COMMANDS, *added(EXTENSIONS)} == set(PROMISED)
    assert build_parser().parse_args(["solve", "x"]).command == "solve"


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert "usage: optmech" in text
    assert "exit status:" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("optmech 0.")


INTERRUPTED_WHILE_LOADING = """
import builtins, optmech.__main__ as main
load = builtins.__import__
def interrupted(name, *more):
    if name == "optmech.cli.main":
        raise KeyboardInterrupt
    return load(name, *more)
builtins.__import__ = interrupted
main.entry()
"""


def test_ctrl_c_while_loading() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "optmech: error: interrupted\n"


@pytest.mark.parametrize("seed", ["-1", str(2**64), "9" * 4000])
@pytest.mark.parametrize("command", [["trace", "ten-points"], ["sample", "nosuch.json", "0"]])
def test_seeds_out_of_range(
    capsys: pytest.CaptureFixture[str], command: list[str], seed: str
) -> None:
    status, lines = fail(capsys, *command, f"--seed={seed}")
    assert status == 2
    assert "--seed" in lines[0]
    assert len(lines[0]) < 200


DATA = """
format = 1
secrets = { kind = "table", file = "data/places.csv", x = "x", y = "y" }
prior = { kind = "uniform" }
loss = "euclidean"
constraints = [{ kind = "metric_privacy", epsilon = 1, distance = "euclidean" }]
"""


@pytest.mark.parametrize("through", ["itself", "link"])
@pytest.mark.parametrize(
    "argv",
    [
        ("solve", "p.toml", "-q", "-o"),
        ("solve", "p.toml", "-q", "--picture"),
        ("export", "p.toml", "-o"),
        ("transport", "p.toml", "--plan"),
        ("adopt", "m.csv", "--problem", "p.toml", "-o"),
    ],
)
def test_a_data_file_of_the_problem_is_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    argv: tuple[str, ...], through: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("p.toml").write_text(DATA)
    Path("data/places.csv").write_text("x,y\n0,0\n1,0\n")
    Path("m.csv").write_text("0.5,0.5\n0.5,0.5\n")
    Path("link").symlink_to("data/places.csv")
    target = "link" if through == "link" else str(tmp_path / "data" / "places.csv")
    assert main([*argv, target]) == 2
    assert "input file" in capsys.readouterr().err
    assert Path("data/places.csv").read_text() == "x,y\n0,0\n1,0\n"


def test_a_map_of_the_problem_is_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    map_file = tmp_path / "m.osm"
    map_file.write_text(
        '<osm><node id="1" lat="0" lon="0"/><node id="2" lat="0" lon="0.01"/><way id="1">'
        '<nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/></way></osm>'
    )
    (tmp_path / "p.toml").write_text(
        'format = 1\nsecrets = { kind = "graph", osm = "m.osm" }\nprior = { kind = "uniform" }\n'
        'loss = "graph"\nconstraints = [{ kind = "differential_privacy", epsilon = 1 }]\n'
    )
    held = map_file.read_bytes()
    assert main(["solve", str(tmp_path / "p.toml"), "-q"]) == 0
    assert main(["solve", str(tmp_path / "p.toml"), "-q", "-o", str(map_file)]) == 2
    assert "input file" in capsys.readouterr().err
    assert map_file.read_bytes() == held


def test_a_folder_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["check"], ["solve"], ["report", "-o", str(tmp_path / "r.html")]):
        assert main([*argv, str(tmp_path)]) == 2
        assert "this is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ("solve", "grid-4x4", "-q", "-o"),
        ("export", "grid-4x4", "-o"),
        ("transport", "grid-4x4", "--plan"),
        ("adopt", "m.csv", "--problem", "grid-4x4", "-o"),
    ],
)
def test_a_gallery_problem_is_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    argv: tuple[str, ...],
) -> None:  # fmt: skip
    shutil.copytree(data_folder("problems"), tmp_path / "problems")
    monkeypatch.setattr(gallery, "data_folder", tmp_path.joinpath)
    packaged = tmp_path / "problems" / "grid-4x4.toml"
    held = packaged.read_bytes()
    assert main([*argv, str(packaged)]) == 2
    assert "input file" in capsys.readouterr().err
    assert packaged.read_bytes() == held


@pytest.mark.parametrize("target", ["", "new/"])
@pytest.mark.parametrize(
    "argv",
    [
        ("solve", "metric", "-q", "-o"),
        ("solve", "metric", "-q", "--picture"),
        ("export", "metric", "-o"),
        ("transport", "coupling", "-o"),
        ("transport", "coupling", "--plan"),
        ("trace", "ten-points", "-o"),
    ],
)
def test_an_output_without_a_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    argv: tuple[str, ...], target: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main([*argv, target]) == 2
    assert ("is empty" if not target else "folder") in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_sweep_into_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "epsilon-curve", "-o", ""]) == 2
    assert "is empty" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
