"""Writing: all or nothing, and nothing destroyed that is not a file of the user's choice."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from optmech.base.storage import (
    ending,
    is_standard_output,
    refuse_unwritable,
    write_atomically,
    written_in_parts,
)
from optmech.cli.main import main
from optmech.errors import ProblemError

ROOT = Path(__file__).resolve().parents[2]
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def reader_of(path: Path, into: list[bytes]) -> threading.Thread:
    """Opened here: a pipe that nobody reads yet is refused, and a thread may begin late."""
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")

    def read() -> None:
        select.select([stream], [], [], 30)  # until somebody writes: before, a pipe is at its end
        os.set_blocking(stream.fileno(), True)
        with stream:
            into.append(stream.read())

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def test_a_new_file_has_the_mode_that_the_mask_leaves(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "x", b"abc")
    finally:
        os.umask(old)
    assert (tmp_path / "x").read_bytes() == b"abc"
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old and longer")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("there", [True, False])
def test_links_are_followed(tmp_path: Path, there: bool) -> None:
    (tmp_path / "far").mkdir()
    real = tmp_path / "far" / "real.json"
    if there:
        real.write_bytes(b"old")
    (tmp_path / "middle").symlink_to(Path("far") / "real.json")
    (tmp_path / "link").symlink_to("middle")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert not real.is_symlink()
    assert real.read_bytes() == b"new"
    assert names(tmp_path / "far") == ["real.json"]


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ProblemError, match="leads back to itself"):
        write_atomically(tmp_path / "a", b"x")
    assert (tmp_path / "a").is_symlink()


def test_a_pipe_is_written_to(fifo: Path) -> None:
    got: list[bytes] = []
    content = bytes(range(256)) * 4096
    thread = reader_of(fifo, got)
    write_atomically(fifo, content)
    thread.join(30)
    assert got == [content]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.skipif(not IS_ROOT, reason="only root makes device nodes")
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    node = tmp_path / "null"
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        node.read_bytes()
    except OSError:
        pytest.skip("device nodes are not allowed here")
    write_atomically(node, b"gone")
    assert stat.S_ISCHR(node.stat().st_mode)
    assert main(["solve", "metric", "-q", "-o", str(node)]) == 0
    assert main(["export", "metric", "-o", str(node)]) == 0
    assert main(["transport", "home-out-target", "--plan", str(node)]) == 0
    assert stat.S_ISCHR(node.stat().st_mode)
    assert names(tmp_path) == ["null"]


@pytest.mark.skipif(not IS_ROOT, reason="only root makes device nodes")
def test_a_disk_is_refused(tmp_path: Path) -> None:
    node = tmp_path / "disk"
    try:
        # 240 to 254 are for local use: no driver answers
        os.mknod(node, 0o666 | stat.S_IFBLK, os.makedev(240, 77))
    except OSError:
        pytest.skip("device nodes are not allowed here")
    with pytest.raises(ProblemError, match="is a disk"):
        write_atomically(node, b"x")


def test_read_only_files_are_refused_for_everybody(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"precious")
    path.chmod(0o444)
    with pytest.raises(ProblemError, match=r"is read-only\. Make it writable"):
        write_atomically(path, b"x")
    assert path.read_bytes() == b"precious"
    assert names(tmp_path) == ["x"]


def test_folders_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="is a folder"):
        write_atomically(tmp_path, b"x")
    with pytest.raises(ProblemError, match="does not exist"):
        write_atomically(tmp_path / "no" / "x", b"x")
    (tmp_path / "file").write_bytes(b"x")
    for path in (tmp_path / "file" / "x", tmp_path / ("x" * 300), tmp_path / "a\0b"):
        with pytest.raises(ProblemError):
            write_atomically(path, b"x")
    assert names(tmp_path) == ["file"]


def test_names_as_long_as_a_name_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    for content in (b"one", b"two"):
        write_atomically(path, content)
        assert path.read_bytes() == content


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProblemError, match="No space left"):
        write_atomically("/dev/full", b"x")
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ProblemError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


def test_without_nameless_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "x"
    for content in (b"one", b"two"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"three")
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["x"]


def test_a_mount_point_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old and longer")

    def busy(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["x"]


def test_a_file_whose_folder_takes_no_others_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old and longer")
    number = path.stat().st_ino
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != tmp_path)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino == number
    writing = written_in_parts(path)
    writing.__enter__()(b"half")
    assert not writing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["x"]


ENDED = """
import os, signal, sys
from optmech.base.storage import write_atomically
if sys.argv[2] == "named":
    del os.O_TMPFILE
os.fsync = lambda _: os.kill(os.getpid(), getattr(signal, sys.argv[3]))
write_atomically(sys.argv[1], b"new")
"""


@pytest.mark.parametrize("how", ["named", "nameless"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_signals_leave_nothing_behind(tmp_path: Path, how: str, name: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", ENDED, str(path), how, name],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == -getattr(signal, name)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


def test_names_of_standard_output() -> None:
    for path in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        assert is_standard_output(path)
        refuse_unwritable(path)
        assert ending(path, ".png") == ".png"
    assert not is_standard_output("./-")
    assert not is_standard_output("/dev/stderr")
    assert ending("x.PDF", ".png") == ".pdf"
    assert ending("x", ".png") == ""


def test_streams_and_open_descriptors(tmp_path: Path, capsysbinary: object) -> None:
    write_atomically("-", b"\x00\xff")
    write_atomically("/dev/stdout", b"two")
    assert capsysbinary.readouterr().out == b"\x00\xfftwo"  # type: ignore[attr-defined]
    path = tmp_path / "x"
    with path.open("wb") as stream:
        write_atomically(f"/dev/fd/{stream.fileno()}", b"one")
        write_atomically(f"/proc/self/fd/{stream.fileno()}", b"two")
    assert path.read_bytes() == b"onetwo"
    with pytest.raises(ProblemError, match="Bad file descriptor"):
        write_atomically("/dev/fd/4000", b"x")


def run(*argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "optmech", *argv],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=120,
    )


COMMANDS = {
    "solve": (["solve", "metric", "-q"], rb'\{"digest"'),
    "picture": (["solve", "metric", "-q", "--picture"], rb"\x89png"),
    "export": (["export", "metric"], b"NAME"),
    "matrix": (["export", "{design}", "--format", "matrix"], rb"[0-9.e-]+,"),
    "report": (["report", "{design}"], b"<!doctype html>"),
    "adopt": (["adopt", "{matrix}", "--problem", "metric"], rb'\{"digest"'),
    "transport": (["transport", "home-out-target"], rb'\{"digest"'),
    "plan": (["transport", "home-out-target", "--plan"], b"input,from"),
    "trace": (["trace", "ten-points"], rb'\{"format"'),
}


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "design.json"
    assert main(["solve", "metric", "-q", "-o", str(path)]) == 0
    matrix = path.with_name("matrix.csv")
    assert main(["export", str(path), "--format", "matrix", "-o", str(matrix)]) == 0
    return path


def argv_of(command: str, design: Path) -> list[str]:
    places = {"design": str(design), "matrix": str(design.with_name("matrix.csv"))}
    argv = [word.format(**places) for word in COMMANDS[command][0]]
    return argv if argv[-1].startswith("--") and argv[-1] != "--problem" else [*argv, "-o"]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_dash_is_standard_output_for_every_command(
    command: str, design: Path, tmp_path: Path, capsysbinary: object
) -> None:
    argv = argv_of(command, design)
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert main([*argv, "-"]) == 0
    finally:
        os.chdir(before)
    out = capsysbinary.readouterr().out  # type: ignore[attr-defined]
    assert re.match(COMMANDS[command][1].lower(), out.lower())
    if out.startswith(b"{"):
        # nothing but the one document
        json.loads(out)
    assert names(tmp_path) == []
    # the report comes back to standard output with the next command
    assert main(["profiles"]) == 0
    assert capsysbinary.readouterr().out  # type: ignore[attr-defined]
    assert main([*argv, "-", "--json"]) == 2
    refused = capsysbinary.readouterr()  # type: ignore[attr-defined]
    assert b"where --json prints" in refused.err


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_twice_with_the_same_output(
    command: str, design: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endings = {"picture": ".png", "report": ".html", "matrix": ".csv"}
    path = tmp_path / f"out{endings.get(command, '.json')}"
    argv = [*argv_of(command, design), str(path)]
    for _ in range(2):
        assert main(argv) == 0, capsys.readouterr().err
    path.chmod(0o400)
    content = path.read_bytes()
    assert main(argv) == 2
    assert "read-only" in capsys.readouterr().err
    assert path.read_bytes() == content
    assert names(tmp_path) == [path.name]


def test_a_design_through_a_shell_pipe(tmp_path: Path) -> None:
    done = run("solve", "metric", "-o", "-")
    assert done.returncode == 0, done.stderr
    (tmp_path / "d.json").write_bytes(done.stdout)
    assert run("check", str(tmp_path / "d.json")).returncode == 0
    matrix = run("export", str(tmp_path / "d.json"), "--format", "matrix", "-o", "/dev/stdout")
    rows = np.loadtxt(matrix.stdout.decode().splitlines(), delimiter=",")
    assert np.abs(rows.sum(axis=1) - 1).max() < 1e-12


def test_one_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "metric", "-q", "-o", "-", "--picture", "/dev/stdout"]) == 2
    assert "is the same file as --output" in capsys.readouterr().err
    assert main(["sweep", "epsilon-curve", "-o", "-"]) == 2
    assert "Name a directory" in capsys.readouterr().err
    assert not Path("-").exists()


def test_inputs_are_no_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text('engine = "highs"\n', encoding="utf-8")
    assert main(["solve", "metric", "--profile", str(profile), "-o", str(profile)]) == 2
    assert "is an input file" in capsys.readouterr().err
    assert profile.read_text(encoding="utf-8") == 'engine = "highs"\n'


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_reads_is_refused_and_one_that_is_read_is_written(
    tmp_path: Path,
) -> None:
    """Opening it would wait for a reader for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ProblemError, match="cannot be written"):
        write_atomically(pipe, b"lost")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, b"heard")
        assert os.read(reader, 100) == b"heard"
    finally:
        os.close(reader)
