"""The library and what installs it: sanitizers, wheels with and without a compiler, and what is
said where no kernels run."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import optmech as om
from optmech.base import native

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "native"
BUILD = SOURCES / "build.py"
GCC = shutil.which("gcc")

pytestmark = pytest.mark.skipif(not BUILD.exists(), reason="native/ is not beside the tests")


def ran(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_kernels_are_compiled_where_there_is_a_compiler() -> None:
    if GCC is None:
        pytest.skip("no compiler of C")
    assert native.variants(), native._loaded()[1]


@pytest.mark.skipif(GCC is None or sys.platform != "linux", reason="GCC's sanitizers are not here")
@pytest.mark.parametrize("width", [2, 8])
def test_sanitizers_find_nothing(width: int, tmp_path: Path) -> None:
    """Kernels by vectors of every width that processors have, AVX-512's too."""
    library, flags = tmp_path / "kernels.library", ["-O0", "-g1", f"-DWIDTH={width}"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCES)!r}); import build, pathlib\n"
        f"build.build(pathlib.Path({str(library)!r}), *{flags!r}, variants=['baseline'])"
    )
    ran([sys.executable, "-c", program], tmp_path, CC="gcc")
    runtimes = (f"-print-file-name=lib{name}.so" for name in ("asan", "ubsan"))
    loaded = [ran(["gcc", name], tmp_path).strip() for name in runtimes]
    tests = [str(Path(__file__).with_name(f"test_{name}.py")) for name in ("kernels", "loops")]
    ran(
        [sys.executable, str(Path(__file__).with_name("sanitized.py")), str(library), *tests],
        ROOT, LD_PRELOAD=" ".join(loaded), ASAN_OPTIONS="detect_leaks=0",
        PYTHONPATH=os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
    )  # fmt: skip


def test_there_is_no_warning(tmp_path: Path) -> None:
    if GCC is None:
        pytest.skip("no compiler of C")
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCES)!r}); import build, pathlib\n"
        "flags = ['-Werror', '-Wshadow', '-O1']\n"
        "build.build(pathlib.Path('kernels.library'), *flags, variants=['avx2'])"
    )
    ran([sys.executable, "-c", program], tmp_path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The wheel that is built with CC set to a command, in a copy of the sources."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("sources")
    for name in ("native", "problems", "solvers"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    # the whole package takes long to compress, and is not what this is about
    package = folder / "optmech" / "base"
    package.mkdir(parents=True)
    (folder / "optmech" / "__init__.py").touch()

    def build(compiler: str) -> Path:
        shutil.rmtree(folder / "dist", ignore_errors=True)
        path = os.environ["PATH"] if compiler else str(folder)
        ran(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
            folder,
            CC=compiler,
            PATH=path,
        )
        return next((folder / "dist").glob("*.whl"))

    return build


def test_a_wheel_has_the_library_and_no_version_of_python(
    wheel: Callable[[str], Path], tmp_path: Path
) -> None:
    if GCC is None:
        pytest.skip("no compiler of C")
    # what it makes of the kernels is not looked at
    quick = tmp_path / "quick"
    quick.write_text(f'#!/bin/sh\nexec {GCC} "$@" -O0\n')
    quick.chmod(0o755)
    made = wheel(str(quick))
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert made.name.endswith(f"-py3-none-{platform}.whl")
    names = zipfile.ZipFile(made).namelist()
    assert [name for name in names if "kernels" in name] == [f"optmech/base/{native._LIBRARY.name}"]


@pytest.mark.skipif(GCC is None, reason="no compiler of C")
def test_a_library_of_these_sources_is_not_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """But where it is older than how it is made, of other sources, or a compiler is named."""
    build, there = runpy.run_path(str(BUILD)), native._LIBRARY
    is_current, other = build["is_current"], tmp_path / "other"
    monkeypatch.delenv("CC", raising=False)
    assert is_current(there) == (there.stat().st_mtime >= BUILD.stat().st_mtime)
    shutil.copyfile(there, other)
    assert is_current(other)
    for odd in (tmp_path / "none", Path(__file__)):
        assert not is_current(odd)
    os.utime(other, (0, 0))
    assert not is_current(other)
    other.touch()
    monkeypatch.setitem(is_current.__globals__, "digest", lambda: "of other sources")
    assert not is_current(other)
    monkeypatch.undo()
    monkeypatch.setenv("CC", "")
    assert not is_current(other)


def test_without_a_compiler_a_wheel_is_pure(wheel: Callable[[str], Path]) -> None:
    made = wheel("")
    assert made.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(made).namelist() if "kernels" in name]


def test_the_source_has_the_kernels(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    ran([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)], ROOT)
    import tarfile

    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    expected = {f"native/{path.name}" for path in SOURCES.glob("*.[ch]")} | {
        "native/build.py",
        "native/hook.py",
    }
    assert expected <= names
    assert not [name for name in names if name.endswith((".so", ".dll"))]


PROGRAM = """
from pathlib import Path
from optmech.base import native
{setting}
import optmech as om
grid, distance = om.Grid(10, 10), om.distances.euclidean()
problem = om.Problem(om.Prior.uniform(grid), distance, constraints=[om.MetricPrivacy(1, distance)])
design = om.solve(problem, gap=1e-4)
assert design.engine == "structured" and design.gap <= 1e-4
print(native.words())
"""


@pytest.mark.parametrize(
    ("setting", "environment", "said"),
    [
        ("", {"OPTMECH_KERNELS": "numpy"}, "as OPTMECH_KERNELS=numpy forbids them"),
        ("native._LIBRARY = Path('none')", {}, "not compiled: run python native/build.py"),
        ("native._LIBRARY = native._SOURCES = Path('none')", {}, "as no C compiler was there"),
        ("native._LIBRARY = Path(__file__)", {}, "as they cannot be loaded"),
        ("native._digest = lambda: 'other'", {}, "run python native/build.py"),
    ],
)
def test_where_no_kernels_run_numpy_does_the_work(
    setting: str, environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    if "digest" in setting and not native.variants():
        pytest.skip("no kernels are compiled")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(setting=setting))
    found = ran([sys.executable, str(program)], tmp_path, **{"OPTMECH_KERNELS": "", **environment})
    assert said in found
    assert "NumPy takes two to five times as long" in found


def test_kernels_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTMECH_KERNELS", "sse9")
    with pytest.raises(om.ProblemError) as caught:
        native.has_kernels()
    assert caught.value.where == "OPTMECH_KERNELS"
    assert "Say numpy" in str(caught.value)
