"""Fixtures shared by all tests, and the hypothesis profile that they run under."""

from __future__ import annotations

import gc
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# processes side by side have a processor each, and threads of BLAS would only wait for one
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import optmech as om
from optmech.base.machine import cores

# the same examples in every run; ``pytest --hypothesis-profile explore`` draws others
settings.register_profile(
    "optmech",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("optmech"), derandomize=False)
settings.load_profile("optmech")

_HERE = Path(__file__).resolve().parent
_SHARED_DATA = _HERE.parent / "shared" / "data"


def _lacks(*programs: str) -> bool:
    return not any(map(shutil.which, programs))


_NO_NODE, _NO_C = _lacks("node"), _lacks("gcc", "clang", "cc")
SKIPS = {
    r"could not import '(torch|cupy|qif)(\.\w+)*'": True,
    r"no Chromium with its driver": _lacks("chromium", "chromium-browser")
    or _lacks("chromedriver"),
    r"no Coq or OCaml": _lacks("coqc") or _lacks("ocamlfind"),
    r"no axe-core": True,
    r"no Node": _NO_NODE,
    r"no npm": _lacks("npm"),
    r"no clang": _lacks("clang"),
    r"no gcc|GCC's sanitizers": _lacks("gcc") or sys.platform != "linux",
    r"no runtime of libFuzzer": True,
    r"no compiler for ARM": _lacks("arm-none-eabi-gcc"),
    r"no compiler of C, or no Node": _NO_C or _NO_NODE,
    r"no compiler of C|no kernels are compiled": _NO_C,
    r"no package index can be reached": True,
    r"the real location data \(\.\./shared/data\) is not at hand": not _SHARED_DATA.is_dir(),
    r"(docs/|native/|CONTRIBUTING.md) is not beside": not (_HERE / "CONTRIBUTING.md").is_file(),
    r"not a checkout": not (_HERE / ".git").exists(),
    r"every linear engine gives way to the same tangents": True,
    r"device nodes are not allowed here": True,
    r"only root makes device nodes": not hasattr(os, "geteuid") or os.geteuid() != 0,
    r"this system has no /dev/full": not os.path.exists("/dev/full"),
    r"no named pipes": not hasattr(os, "mkfifo"),
    r"no fork": not hasattr(os, "fork"),
    r"a file that is open cannot be removed": os.name == "nt",
    r"only the GNU C library is told": platform.libc_ver()[0] != "glibc",
}
"""Why a test may be skipped, by the beginning of the reason, and whether it is so here: what
``optmech[test]`` does not install, and what a machine or an installation lacks. Any other skip
fails the run."""

_skipped: Counter[str] = Counter()

# hundreds of tests start processes, each of which would compile the package again
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# a shell in the background, or nohup, leaves these ignored, here and in every child
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """One process more than processors: tests wait for browsers, timers and other processes."""
    return cores() + 1


def pytest_configure(config: pytest.Config) -> None:
    """Files begin in the order of ``pytest_collection_modifyitems``, not those of most tests."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what took long when it was last measured (``tests/tiers.py``); workers begin with the
    files of most such tests, since whoever gets a long one last is waited for."""
    listed = _HERE / "tests" / "slow.txt"
    names = set(listed.read_text(encoding="utf-8").split() if listed.is_file() else ())
    for item in items:
        test = item.nodeid.partition("[")[0]
        if names & {test, test.partition("::")[0]}:
            item.add_marker(pytest.mark.slow)
    if "PYTEST_XDIST_WORKER" in os.environ:
        tests, slow = Counter[Path](), Counter[Path]()
        for item in items:
            tests[item.path] += 1
            slow[item.path] += item.get_closest_marker("slow") is not None
        items.sort(key=lambda item: (-slow[item.path], -tests[item.path]))


def pytest_collection_finish() -> None:
    """The garbage collector need not look at thousands of tests again and again, and seldom at what
    tests make: with the thresholds of Python a fiftieth of all processor time is its own."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session")
def audit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit as one file, as it is handed on."""
    path = tmp_path_factory.mktemp("audit") / "audit.py"
    subprocess.run([sys.executable, "-m", "optmech_audit.alone", str(path)], check=True)
    return path


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note_skip(report)


def _note_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skipped[reason.removeprefix("Skipped: ")] += 1


def _unexplained() -> Iterator[str]:
    known = [reason for reason, holds in SKIPS.items() if holds]
    return (reason for reason in _skipped if not any(re.match(k, reason) for k in known))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if any(_unexplained()) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _skipped:
        return
    terminalreporter.section("skipped tests and why")
    for reason, count in sorted(_skipped.items()):
        terminalreporter.line(f"{count:4d}  {reason}")
    for reason in _unexplained():
        terminalreporter.line(f"not among the reasons in conftest.py: {reason}", red=True)


@pytest.fixture
def benchmark_modules() -> Iterator[None]:
    """The modules of ``benchmarks``, as they import one another; some are named as folders of tests
    are (``engines``, ``noise``), which Python may have taken for packages before."""
    folder = _HERE / "benchmarks"
    names = {file.stem for file in folder.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in names & set(sys.modules)}
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(before)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240611)


@pytest.fixture
def line() -> om.Domain:
    """0, 1, ..., 5."""
    return om.Domain.range(6)


@pytest.fixture
def grid() -> om.Grid:
    """Three rows, four columns, cells that are not square."""
    return om.Grid(3, 4, cell=(0.75, 0.5), unit="km")


@pytest.fixture
def prior(grid: om.Grid, rng: np.random.Generator) -> om.Prior:
    """Uneven, with one secret that never occurs."""
    weights = rng.dirichlet(np.full(len(grid), 0.6))
    weights[5] = 0.0
    return om.Prior(grid, weights)


@pytest.fixture
def mechanism(grid: om.Grid) -> om.Mechanism:
    """The planar exponential mechanism on ``grid``: full support, not optimal."""
    kernel = np.exp(-0.8 * om.distances.euclidean()(grid, grid))
    return om.Mechanism(grid, grid, kernel / kernel.sum(axis=1, keepdims=True))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real location data beside the repository."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the real location data (../shared/data) is not at hand")
    return _SHARED_DATA
