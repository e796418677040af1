"""Sweeps in real processes: killed runs, dying workers, Ctrl-C, Dask."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import optmech as om

ROOT = Path(__file__).resolve().parents[3]
TASKS = 16
KILLS = 2

SWEEP = """
format = 1
chain = 4
[problem]
loss = "euclidean"
prior = { kind = "dirichlet", seed = 3 }
secrets = { kind = "grid", rows = 2, columns = 3 }
[[problem.constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
[[axes]]
kind = "list"
path = "prior.seed"
values = [1, 2]
[[axes]]
kind = "range"
path = "constraints[0].epsilon"
start = 0.2
stop = 3
count = 8
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(SWEEP, encoding="utf-8")
    return path


def start(file: Path, folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "optmech", "sweep", str(file), "-o", str(folder), "--json", *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as stream:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)]


def wait_for_tasks(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 600
    while len(list((folder / "tasks").glob("0*.json"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


IN_ONE_PROCESS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import optmech as om
with ThreadPoolExecutor(1) as executor:
    om.sweep(sys.argv[1], directory=sys.argv[2], executor=executor)
"""


def test_killed_at_random_moments_and_resumed(file: Path, tmp_path: Path) -> None:
    """benchmarks/sweeps.py does the same with fifty kills and worker processes."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [sys.executable, "-c", IN_ONE_PROCESS, str(file)]
    subprocess.run([*command, str(whole)], cwd=ROOT, check=True)
    random.seed(4)
    for _ in range(KILLS):
        before = len(list((killed / "tasks").glob("0*.json")))
        process = subprocess.Popen([*command, str(killed)], cwd=ROOT)
        # past the start-up, which is longer than all the tasks together
        while process.poll() is None and len(list((killed / "tasks").glob("0*.json"))) == before:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.05))
        process.kill()
        process.wait()
    subprocess.run([*command, str(killed)], cwd=ROOT, check=True)
    assert [row["status"] for row in rows(killed)] == ["optimal"] * TASKS
    assert rows(killed) == rows(whole)
    designs = sorted((killed / "designs").iterdir())
    assert [path.name for path in designs] == [f"{k:06d}.json" for k in range(TASKS)]
    assert all(om.check(path).passed for path in designs)


def test_a_worker_that_is_killed_costs_nothing_but_time(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(file, folder, "--workers", "2")
    wait_for_tasks(folder, 2)
    for child in psutil.Process(process.pid).children(recursive=True):
        # a worker may end by itself between being listed and being looked at
        with contextlib.suppress(psutil.NoSuchProcess):
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                break
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert json.loads(out)["counts"] == {"optimal": TASKS}


def test_ctrl_c_keeps_what_is_done_and_no_process_is_left(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(file, folder)
    wait_for_tasks(folder, 3)
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode in (0, 130), err
    assert "Traceback" not in out + err
    assert len(rows(folder)) == len(list((folder / "tasks").glob("0*.json"))) >= 3
    _, alive = psutil.wait_procs(children, timeout=120)
    assert not alive


def test_workers_end_with_a_run_that_is_killed(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(file, folder, "--workers", "1")
    wait_for_tasks(folder, 1)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=120)
    assert not alive


def test_a_dask_cluster_that_loses_a_worker(file: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    folder = tmp_path / "run"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        process = start(file, folder, "--dask", cluster.scheduler_address)
        wait_for_tasks(folder, 1)
        victim = next(iter(cluster.workers.values()))
        os.kill(victim.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert json.loads(out)["counts"] == {"optimal": TASKS}
    assert all(om.check(path).passed for path in (folder / "designs").iterdir())


SCRIPT_THAT_IS_GONE = """
import os, sys
import optmech as om
os.unlink(__file__)
sweep = om.sweep(sys.argv[1], directory=sys.argv[2], workers=1)
print(len(sweep.rows), len(sweep.failed))
"""


def test_a_main_module_that_cannot_be_loaded_again(file: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT_THAT_IS_GONE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(file), str(tmp_path / "run")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.split() == [str(TASKS), "0"], done.stderr
    assert done.stderr == ""


SCRIPT = """
import optmech as om

print("begun", flush=True)
line = om.Domain.range(3)
euclidean = om.distances.euclidean()
problem = om.Problem(
    om.Prior.uniform(line), euclidean, constraints=[om.MetricPrivacy(1, euclidean)]
)
{call}
"""
CALL = 'om.sweep(problem, {"constraints[0].epsilon": [1, 2]}, directory="out", workers=2)'


@pytest.mark.parametrize("guarded", [False, True])
def test_a_script_is_not_run_again(tmp_path: Path, guarded: bool) -> None:
    call = f'if __name__ == "__main__":\n    {CALL}' if guarded else CALL
    script = tmp_path / "s.py"
    script.write_text(SCRIPT.format(call=call))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # a script that asks is imported by each process, as Python does it
    assert (done.stdout.count("begun") > 1) == guarded
    with open(tmp_path / "out" / "table.csv", encoding="utf-8") as stream:
        assert [row["status"] for row in csv.DictReader(stream)] == ["optimal", "optimal"]
