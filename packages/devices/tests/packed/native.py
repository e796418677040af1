"""The reader in C, built with warnings as errors and sanitizers, and asked over its streams."""

from __future__ import annotations

import atexit
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import optmech_devices

HERE = Path(__file__).parent
SOURCE = Path(optmech_devices.__file__).parent / "client" / "c"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow"]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
Verify = Callable[[bytes, bytes], bool]


def compiler() -> str | None:
    """A compiler of C, where there is one."""
    return shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")


def built(
    folder: Path, *options: str, main: str = "reader.c", compiler_: str | None = None
) -> Path:
    """The program, built with sanitizers or with other ``options``."""
    found = compiler_ or compiler()
    assert found is not None
    files = (str(HERE / main), str(SOURCE / "optmech.c"))
    command = (found, *STRICT, *(options or SANITIZED), f"-I{SOURCE}", *files)
    return Path(shutil.copy(compiled(command), folder / Path(main).stem))


@cache
def compiled(command: tuple[str, ...]) -> Path:
    """The program that a command makes, once in a process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    out = folder / "program"
    done = subprocess.run([*command, "-o", str(out)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def bits(value: float) -> str:
    """A float64 as the program writes it."""
    return struct.pack(">d", value).hex()


def value(text: str) -> float:
    """The inverse."""
    return float(struct.unpack(">d", bytes.fromhex(text))[0])


class Native:
    """A running reader; ``verify`` says whether a message has a signature."""

    def __init__(self, program: Path, verify: Verify | None = None) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [str(program)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        self._verify = verify

    def ask(self, *words: object) -> str:
        """The answer to a command. Raises AssertionError where the program has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(" ".join(map(str, words)) + "\n")
        stdin.flush()
        while True:
            line = stdout.readline()
            if not line:
                _, said = self._process.communicate()
                raise AssertionError(f"the reader in C ended at {words[:3]}: {said[-3000:]}")
            name, *parts = line.split()[:3] or [""]
            if name != "verify":
                return line.strip()
            message, signature = map(bytes.fromhex, parts)
            fits = self._verify is not None and self._verify(message, signature)
            stdin.write(f"{int(fits)}\n")
            stdin.flush()

    def close(self) -> None:
        """End it; a leak of memory is an error as well."""
        _, said = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, said[-3000:]

    def open(self, path: Path, signed: bool = False) -> tuple[str, int, int, int] | None:
        """The kind of its mechanism, bytes of a draw, places and their dimension; None refused."""
        name, *parts = self.ask("open", path, int(signed)).split()
        if name != "read":
            return None
        kind, size, count, dimension = map(int, parts)
        return ("places", "mesh", "earth")[kind], size, count, dimension

    def words(self) -> dict[str, Any]:
        """Title and what is done outside, and of every promise its words and numbers."""
        title, *parts, outside = self.ask("words").split()
        promises = []
        for part in parts:
            *texts, ratio, epsilon, delta = part.split(",")
            rate = value(epsilon) if ratio == "1" else None
            promises.append([*[bytes.fromhex(text).decode() for text in texts], rate, value(delta)])
        return {"title": [bytes.fromhex(title[1:]).decode(), outside], "promises": promises}

    def reports(self) -> list[list[Any]]:
        """Number, coordinates and accuracy of every report that is made."""
        out: list[list[Any]] = []
        for part in self.ask("reports").split():
            number, where, radius = part.split(":")
            point = [value(text) for text in where.split(",") if text] or None
            out.append([int(number), point, value(radius) if radius else None])
        return out

    def where(self, report: int) -> list[Any]:
        """Coordinates, of which it has two, and accuracy of a report, None where there is none."""
        east, north, *radius = map(value, self.ask("where", report).split())
        return [[east, north], radius[0] if radius else None]

    def number(self, *words: object) -> int | str:
        """A report, -1 outside, or "refused"."""
        found = self.ask(*words)
        return -1 if found == "outside" else "refused" if "refused" in found else int(found)

    def locate(self, position: list[float]) -> int | str:
        """The place of a position."""
        return self.number("locate", *map(bits, position))

    def draw(self, place: int, entropy: bytes) -> int | str:
        """The report for a place."""
        return self.number("draw", place, entropy.hex())

    def at(self, position: list[float], entropy: bytes) -> list[Any] | str:
        """Triangle and weights of a position, and the report there, as ``readers.mjs`` has them."""
        found = self.ask("at", *map(bits, position), entropy.hex())
        if found == "outside":
            return [None, -1]
        if found.startswith("refused"):
            return "refused"
        *place, report = map(int, found.split())
        return [place, report]


def answers(reader: Native, path: Path, signed: bool, positions: list[list[float]],
            entropy: list[str]) -> Any:  # fmt: skip
    """What ``readers.mjs`` answers, from C."""
    found = reader.open(path, signed)
    if found is None:
        return "refused"
    kind, size, count, dimension = found
    data = [bytes.fromhex(text)[:size] for text in entropy]
    if kind == "earth":
        places = [reader.locate(position) for position in positions]
        draws = [reader.draw(place, data[k % len(data)]) for k, place in enumerate(places)]
        reports = [[number, *reader.where(number)] for number in draws]
        return {**reader.words(), "reports": reports, "draws": draws, "places": places}
    words = {**reader.words(), "reports": reader.reports()}
    if kind == "mesh":
        draws = [reader.at(p, data[k % len(data)]) for k, p in enumerate(positions)]
        places = [reader.locate(p) for p in positions]
        repeated = [
            reader.draw(p, data[k % len(data)]) if isinstance(p, int) and p >= 0 else "refused"
            for k, p in enumerate(places)
        ]
        return {**words, "draws": draws, "places": places, "repeated": repeated}
    drawn = [reader.draw(k * 7 % count, own) for k, own in enumerate(data)]
    places = [reader.locate(p[:dimension]) for p in positions] if dimension else []
    return {**words, "draws": drawn, "places": places}


DEEPEST = {"verified": 17, "label_is": 9, "label_order": 9}
"""How often these may be on the stack at once: items nest 16 deep, labels 8."""


def stacks_of(graph: str) -> dict[str, int]:
    """Bytes of stack of the deepest path from every function, through what
    ``-fcallgraph-info=su`` wrote."""
    node = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?(\d+) bytes \((\w+)\)')
    edge = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
    size = {}
    for name, count, kind in node.findall(graph):
        assert kind == "static", f"{name} takes memory by what it is given"
        size[name] = int(count)
    calls: dict[str, set[str]] = {}
    for caller, callee in edge.findall(graph):
        calls.setdefault(caller, set()).add(callee)
    # comparisons are called through a pointer
    calls["__indirect_call"] = {name for name in size if name.split(":")[-1].startswith("by_")}

    def deepest(name: str, above: tuple[str, ...]) -> int:
        assert name not in above, f"{name} calls itself by way of others"
        own = size.get(name, 0) * DEEPEST.get(name.split(":")[-1], 1)
        below = [deepest(n, (*above, name)) for n in calls.get(name, set()) - {name}]
        return own + max(below, default=0)

    return {name.split(":")[-1]: deepest(name, ()) for name in size}
