"""Compile the kernels: ``python native/build.py``, in a checkout.

One library has every file once for each kind of processor; the best one is chosen when it is
loaded. It takes a compiler that knows GCC's options.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
LIBRARY = Path("optmech", "base", "kernels.library")
FLAGS = (
    "-O3", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-psabi",
    # sums keep their order and zeros their signs; what is left out nobody looks at
    "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
)  # fmt: skip
VARIANTS = {
    "baseline": (),
    "avx2": ("-mavx2", "-mfma", "-mbmi2"),
    "avx512": ("-mavx2", "-mfma", "-mbmi2", "-mavx512f", "-mavx512dq", "-mavx512vl"),
}
"""Flags by the names that ``variants.c`` gives; processors other than x86-64 have the first."""


def digest() -> str:
    """Of the sources, by which ``optmech.base.native`` sees whether a library is of today."""
    found = hashlib.sha256()
    for path in sorted(SOURCES.glob("*.[ch]")):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def is_current(library: Path) -> bool:
    """Whether a library is of these sources and runs here, and no compiler is asked for by name."""
    try:
        old = library.stat().st_mtime < Path(__file__).stat().st_mtime
        sources = ctypes.CDLL(str(library)).optmech_sources
        sources.restype = ctypes.c_char_p
        return "CC" not in os.environ and not old and sources().decode() == digest()
    except (OSError, AttributeError):
        return False


def compiler() -> list[str] | None:
    """The command of a C compiler: what CC says, or the first one there is."""
    for command in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return words
    return None


def build(library: Path, *more: str, variants: Sequence[str] = tuple(VARIANTS)) -> None:
    """Compile the library, with ``more`` flags. Raises OSError or CalledProcessError, whose
    ``stderr`` says why, where that cannot be."""
    command = compiler()
    if command is None:
        raise FileNotFoundError("there is no C compiler: none is called cc, gcc or clang")
    if struct.calcsize("P") != 8:
        raise OSError("the kernels are for processors of 64 bits")
    target = _run([*command, "-dumpmachine"], SOURCES)
    names = variants if target.startswith(("x86_64", "amd64")) else ["baseline"]
    kernels = sorted(path for path in SOURCES.glob("*.c") if path.name != "variants.c")
    with tempfile.TemporaryDirectory() as folder:

        def compile_variant(name: str) -> None:
            inside = Path(folder, name)
            inside.mkdir()
            flags = (*FLAGS, *VARIANTS[name], f"-DVARIANT={name}", *more)
            _run([*command, *flags, "-c", *map(str, kernels)], inside)

        with ThreadPoolExecutor() as pool:
            list(pool.map(compile_variant, names))
        own = (f'-DSOURCES="{digest()}"', "-shared", *FLAGS, *more, str(SOURCES / "variants.c"))
        objects = map(str, sorted(Path(folder).glob("*/*.o")))
        made = Path(folder, library.name)
        _run([*command, *own, *objects, "-lm", "-o", str(made)], Path(folder))
        # a process that has loaded the one before goes on with it
        beside = library.with_suffix(".new")
        shutil.copyfile(made, beside)
        beside.replace(library)


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    build(SOURCES.parent / LIBRARY)
