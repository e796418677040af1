"""What a resumed sweep believes of the files that it finds: designs that pass, and nothing else."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from optmech_sweeps import SweepResult

import optmech as om
from optmech.errors import ProblemError

H = om.distances.hamming()
RESPONSE = om.Problem(
    om.Prior.uniform(om.Domain("abcd")), H, constraints=[om.DifferentialPrivacy(1.0)]
)
EPSILONS = [0.5, 1.0, 2.0]


def run(folder: Path, said: list[str] | None = None) -> SweepResult:
    report = None if said is None else said.append
    with ThreadPoolExecutor(1) as pool:
        return om.sweep(
            RESPONSE, {"constraints[0].epsilon": EPSILONS}, folder, executor=pool, progress=report
        )


def losses(result: SweepResult) -> list[float]:
    return [float(str(row["loss"])) for row in result.rows]


# (n - 1) / (e^ε + n - 1)
TRUE = [3 / (math.exp(epsilon) + 3) for epsilon in EPSILONS]


def record(folder: Path, task: int, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "tasks" / f"{task:06d}.json"
    body = json.loads(path.read_text())
    change(body["record"])
    path.write_text(json.dumps(body))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(tmp_path / "sw")
    return tmp_path / "sw"


def test_figures_are_those_of_the_design(folder: Path) -> None:
    record(folder, 1, lambda r: r.update(loss=0.0001, gap=0.0, status="optimal", epsilon=9.0))
    assert losses(run(folder)) == pytest.approx(TRUE)
    assert losses(SweepResult.load(folder)) == pytest.approx(TRUE)


def test_swapped_designs_are_done_again(folder: Path) -> None:
    first, last = (folder / "designs" / f"{k:06d}.json" for k in (0, 2))
    shutil.move(first, folder / "designs" / "x.json")
    shutil.move(last, first)
    shutil.move(folder / "designs" / "x.json", last)
    record(folder, 0, lambda r: r.update(digest=digest(first)))
    record(folder, 2, lambda r: r.update(digest=digest(last)))
    with pytest.raises(ProblemError, match="other figures than the table"):
        SweepResult.load(folder).design(0)
    said: list[str] = []
    result = run(folder, said)
    assert losses(result) == pytest.approx(TRUE)
    assert sum("another problem" in line for line in said) == 2
    assert result.design(0).problem.constraints[0].epsilon == 0.5


def test_a_forged_design_is_done_again(folder: Path) -> None:
    from optmech.reading.sealed import seal

    path = folder / "designs" / "000001.json"
    body = json.loads(path.read_text())
    del body["digest"]
    for name in ("loss", "objective"):
        body["result"][name] = 0.0001
    path.write_bytes(seal(json.dumps(body).encode()))
    record(folder, 1, lambda r: r.update(digest=digest(path), loss=0.0001))
    said: list[str] = []
    assert losses(run(folder, said)) == pytest.approx(TRUE)
    assert any("task 1 is done again" in line for line in said)


def test_records_of_no_task_are_ignored_with_a_word(folder: Path) -> None:
    for name in ("000007.json", "000003.json", "notes.json"):
        shutil.copy(folder / "tasks" / "000000.json", folder / "tasks" / name)
    record(folder, 7, lambda r: r.update(task=7))
    said: list[str] = []
    assert losses(run(folder, said)) == pytest.approx(TRUE)
    ignored = [line for line in said if "ignored" in line]
    assert len(ignored) == 3


def test_a_table_with_other_figures_is_not_believed(folder: Path) -> None:
    table = (folder / "table.csv").read_text().replace(f"{losses(run(folder))[0]}", "0.0001")
    (folder / "table.csv").write_text(table)
    with pytest.raises(ProblemError, match="other figures"):
        SweepResult.load(folder).design(0)
    assert losses(run(folder)) == pytest.approx(TRUE)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize(
    "name", ["tasks/000001.json", "designs/000001.json", "table.csv", "sweep.json", ".lock"]
)
def test_nothing_waits_for_a_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(ProblemError):
        run(folder)
    (folder / name).unlink()
    if name != "sweep.json":
        assert losses(run(folder)) == pytest.approx(TRUE)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"record": 1}', b"\xff", b" " * 5_000_000])
def test_a_record_that_is_none_is_made_again(folder: Path, content: bytes) -> None:
    (folder / "tasks" / "000001.json").write_bytes(content)
    assert losses(run(folder)) == pytest.approx(TRUE)


@pytest.mark.parametrize("content", [b"a\n1,2\n", b"task\n\x00\n", b"\xff", b"x" * 200_000])
def test_a_table_that_is_none_is_refused(folder: Path, content: bytes) -> None:
    (folder / "table.csv").write_bytes(content)
    with pytest.raises(ProblemError):
        SweepResult.load(folder)
    assert losses(run(folder)) == pytest.approx(TRUE)


def test_a_lock_that_is_a_link_destroys_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear")
    (folder / ".lock").unlink(missing_ok=True)
    (folder / ".lock").symlink_to(tmp_path / "letter")
    with pytest.raises(ProblemError, match="cannot be used"):
        run(folder)
    assert (tmp_path / "letter").read_text() == "Dear"


@pytest.mark.parametrize("call", ["ftruncate", "write"])
def test_no_room_for_the_lock(folder: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    real = getattr(os, call)

    def full(handle: int, *rest: Any) -> Any:
        if os.path.realpath(f"/proc/self/fd/{handle}").endswith(".lock"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(ProblemError, match="No space"):
            run(folder)
    assert losses(run(folder)) == pytest.approx(TRUE)


def test_a_table_has_every_task_once(folder: Path) -> None:
    table = folder / "table.csv"
    text = table.read_text()
    for changed in (text.replace("\n1,", "\none,"), text + text.splitlines()[1] + "\n"):
        table.write_text(changed)
        with pytest.raises(ProblemError, match="no task, or one twice"):
            SweepResult.load(folder)


def test_whether_a_design_is_verified_is_compared_too(folder: Path) -> None:
    table = folder / "table.csv"
    table.write_text(table.read_text().replace(",true,", ",false,"))
    with pytest.raises(ProblemError, match="other figures"):
        SweepResult.load(folder).design(1)
