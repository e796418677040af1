"""Hostile command lines: tables to protect, packed files, every option of every command, standard
streams that are closed or full, and names that no file should have."""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

from optmech.base.extensions import COMMANDS as EXTENSIONS, added
from optmech.cli.main import COMMANDS as OWN, build_parser

from .mutate import NUMBERS, TEXTS, garble
from .pool import Case
from .samples import CITY, MAP, POINTS, SPOTS, SWEEP, document_of, made, packed_as, written

COMMANDS = (*OWN, *added(EXTENSIONS))
DESIGNS = ("metric", "grid", "zones", "city", "mesh", "line", "streets", "everywhere", "beside",
           "targets", "survey")  # fmt: skip
PACKED = ("metric.omm", "city.omm", "mesh.omm", "everywhere.omm", "earth.omm")
NAMES = (
    "caf\udce9", "a\nb", "a b", "-x", "n" * 300, "é", "$(x)", "a'b\"", "%s", "[red]a[/]", "~",
    "\u202ea", "\x1b[31m", "a=b", "a:b", "{0}", "\t",
)  # fmt: skip
ENVIRONMENTS = (
    {"COLUMNS": "1"}, {"COLUMNS": "0"}, {"COLUMNS": "-9"}, {"COLUMNS": "9" * 30}, {"LINES": "x"},
    {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"},
    {"HOME": "/nowhere"}, {"TMPDIR": "/nowhere"}, {"MPLCONFIGDIR": "/dev/null"},
    {"OMP_NUM_THREADS": "x"}, {"OMP_NUM_THREADS": "-1"}, {"LANG": "C"}, {"LC_ALL": "xx_YY"},
    {"encoding": "ascii"}, {"encoding": "latin-1"}, {"encoding": "cp1252"},
)  # fmt: skip
STREAMS = (
    {1: "closed"}, {2: "closed"}, {0: "closed"}, {1: "closed", 2: "closed"}, {1: "full"},
    {2: "full"}, {1: "full", 2: "full"}, {1: "unread"}, {0: "closed", 1: "closed", 2: "closed"},
)  # fmt: skip


def counts(rng: random.Random) -> Case:
    """How often each report was seen, for a saved design."""
    labels = ["station", "market", "school", "0", *TEXTS]
    rows = [f"{rng.choice(labels)},{rng.choice([1, 2.5, 0, *NUMBERS])}" for _ in range(5)]
    sound = "observable,count\nstation,4\nmarket,9\n"
    text = "\n".join([rng.choice(["observable,count", "observable", "a,b", ""]), *rows])
    content = rng.choice([sound, text]).encode("utf-8", "surrogatepass")
    more = rng.choice([[], ["--bootstrap", "5"], ["--json"], ["-o", "e.csv"]])
    files = {"metric.json": made().files["metric.json"], "c.csv": garble(content, rng)}
    return Case("", ["estimate", "metric.json", "c.csv", *more], files)


def packed(rng: random.Random) -> Case:
    """A packed mechanism with changed bytes, half of them under a digest that fits."""
    name = rng.choice(PACKED)
    content = bytearray(garble(made().files[name], rng))
    if rng.random() < 0.5 and len(content) > 32:
        content[-32:] = hashlib.sha256(content[:-32]).digest()
    if name == "earth.omm":
        argv = rng.choice([["check", "c.omm"], ["sample", "c.omm", "--at=-180,-90", "-n", "3"]])
        return Case("", argv, {"c.omm": bytes(content)})
    design = f"{Path(name).stem}.json"
    argv = rng.choice(
        [["check", "c.omm", design], ["sample", "c.omm", "0"], ["sample", "c.omm", "--at", "1,45"],
         ["protect", "c.omm", "city.csv", "--outside", "drop", "-o", "-"]]
    )  # fmt: skip
    files = {"c.omm": bytes(content), design: made().files[design], "city.csv": CITY.encode()}
    return Case("", argv, files)


def places(rng: random.Random) -> Case:
    """A table that is protected, or that a first problem is written for."""
    design = rng.choice([*(f"{name}.json" for name in DESIGNS), *PACKED])
    files = {design: made().files[design], "key": bytes(range(40)), "short": b"k"}
    plane = design.partition(".")[0] in ("metric", "grid", "everywhere", "beside", "targets")
    text = POINTS if plane else CITY
    name, content = packed_as(_numbers(text, rng).encode("utf-8", "surrogatepass"), "data.csv", rng)
    if rng.random() < 0.3:
        name, content = "map.geojson", document_of(rng, rng.choice([MAP, SPOTS, SPOTS]))
    elif rng.random() < 0.1:
        name, content = "points.parquet", garble(made().files["points.parquet"], rng)
    files[name] = content
    columns = text.split("\n")[0].split(",")
    named = rng.choice([[], [], columns[:2], columns[:2], columns[1::-1], columns[:1]])
    argv = [part for pair in zip(["--x", "--y"], named, strict=False) for part in pair]
    if rng.random() < 0.2:
        argv += ["--label", rng.choice(columns)]
    if rng.random() < 0.4:
        argv += rng.choice([[], ["--cells", "9"], ["--radius", _number(rng)], ["--uniform"],
                            ["--factor", _number(rng)], ["--unit", rng.choice(TEXTS)]])  # fmt: skip
        argv += rng.choice([[], [], ["--json"], ["--force"]])
        out = rng.choice(["made.toml", "-", "old.toml"])
        return Case("", _clean(["init", name, *argv, "-o", out]), {**files, "old.toml": b"old"})
    argv += ["--outside", rng.choice(["refuse", "nearest", "drop"])]
    argv += rng.choice([[], [], ["--keep", *columns[2:]], ["--keep", columns[0]],
                        ["--keep", "rider", "n"], ["--summary", "s.json"]])  # fmt: skip
    argv += rng.choice([[], [], ["--sticky-key-file", "key"], ["--sticky-key-file", "short"],
                        ["--sticky-key-file", "key", "--sticky-by", columns[2]]])  # fmt: skip
    argv += rng.choice([[], [], [], ["--max-distance", _number(rng)], ["--seed", _number(rng)],
                        ["--report", rng.choice(["r", *columns, *TEXTS])], ["--json"]])  # fmt: skip
    out = rng.choice(["out.csv", "out.csv.gz", "out.geojson", "out.parquet", "-", name])
    return Case("", _clean(["protect", design, name, *argv, "-o", out]), files)


def _numbers(table: str, rng: random.Random) -> str:
    """A table whose cells are partly other numbers."""
    if rng.random() < 0.3:
        return table
    head, *rows = table.splitlines()
    others = [repr(number) for number in NUMBERS if len(repr(number)) < 400] + ["", "1,5", '"1,5"']
    if rng.random() < 0.4:
        # all of one column, as of another unit
        scale = rng.choice([1e16, 1e-320, 1e308, 0.0, -1.0, 1e5, 1e-9])
        shift = rng.choice([0.0, 0.0, 1e16, 179.9, -90.0])
        k = rng.randrange(2)
        cells = [row.split(",") for row in rows]
        for row in cells:
            row[k] = repr(float(row[k]) * scale + shift)
        return "\n".join([head, *map(",".join, cells)]) + "\n"
    for _ in range(rng.choice([1, 1, 2, 6])):
        k = rng.randrange(len(rows))
        row = rows[k].split(",")
        row[rng.randrange(len(row))] = rng.choice(others)
        rows[k] = ",".join(row)
    return "\n".join([head, *rows]) + "\n"


def run_directory(rng: random.Random) -> Case:
    """The directory of a sweep with something changed in it."""
    files = {name: content for name, content in made().files.items() if name.startswith("run/")}
    name = rng.choice(sorted(files))
    if rng.random() < 0.2:
        files[name] = rng.choice([b"", b"<pipe>", b"<folder>", b"<loop>"])
    elif rng.random() < 0.5 and name.endswith(".json") and not name.startswith("run/designs"):
        files[name] = document_of(rng, json.loads(files[name]))
    else:
        files[name] = garble(files[name], rng)
    again = ["sweep", "s.json", "-o", "run", "--workers", "1", "-q"]
    argv = rng.choice([["report", "run", "-o", "r.html"], ["report", "run", "-o", "r.html"], again])
    return Case("", argv, {**files, "s.json": written(SWEEP)})


@cache
def _options() -> dict[str, list[argparse.Action]]:
    """The options of every command."""
    parser = build_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {
        name: [action for action in commands.choices[name]._actions if action.option_strings]
        for name in COMMANDS
    }


SOUND: dict[str, list[list[str]]] = {
    "init": [["city.csv", "-o", "new.toml"], ["points.csv", "--label", "name", "-o", "new.toml"]],
    "solve": [["metric"], ["city-asked.json"], ["mesh-asked.json"], ["line-asked.json"],
              ["streets-asked.json"]],
    "show": [["metric.json"], ["city.omm"], ["additive.json"], ["run"]],
    "redesign": [["metric.json", "metric"], ["city.json", "city-asked.json"]],
    "compare": [["metric.json", "metric.json"], ["city.json", "grid.json"],
                ["everywhere.json", "beside.json"]],
    "estimate": [["metric.json", "seen.csv"], ["survey.json", "seen.csv"]],
    "plan": [["metric"], ["city-asked.json"], ["mesh-asked.json"]],
    "plan-survey": [["metric", "--people", "100"], ["survey", "--people", "100"]],
    "statement": [["metric.json", "-o", "new.md"], ["city.omm", "-o", "new.html"]],
    "compare-coarsening": [["grid-4x4"], ["metric"]],
    "sample": [["metric.json", "station"], ["everywhere.json", "--at", "1,1"], ["metric.omm"],
               ["line.json", "--at", "1/3"], ["streets.json", "--at", "a,b,1/3"],
               ["earth.omm", "--at", "1,1"], ["targets.json", "home"], ["additive.json", "3"],
               ["pair.json", "1,2"], ["real.json", "2.5"]],
    "protect": [["city.json", "city.csv"], ["mesh.json", "city.csv"], ["mesh.omm", "city.csv"],
                ["metric.json", "points.csv"], ["everywhere.json", "points.csv"]],
    "adopt": [["m.csv", "--problem", "metric", "-o", "a.json"]],
    "mechanism": [["metric", "exponential", "--epsilon", "1", "-o", "m.csv"]],
    "pack": [
        *([f"{name}.json", "-o", "new.omm"] for name in DESIGNS),
        ["--earth", "ln 3", "--cell", "0.5", "-o", "new.omm"],
    ],
    "client": [["c", "new"], ["js", "new"], ["extension", "new", "--mechanism", "metric.omm"]],
    "sweep": [["run-asked.json", "-o", "new", "--workers", "1", "-q"]],
    "transport": [["home-out"], ["home-out-target"]],
    "trace": [["ten-points"], ["commuter"]],
    "noise": [["--epsilon", "1", "--delta", "0.01"], ["--epsilon", "ln 3"],
              ["--epsilon", "1", "--dimensions", "2"], ["--zcdp", "1"],
              ["--order", "1", "--budget", "1"],
              ["--epsilon", "1", "--delta", "0.01", "--real", "--cells", "4"],
              ["--epsilon", "1", "--delta", "0.01", "--support", "0:"], ["--gdp", "1"],
              ["--curve", "0:0.3,1:0.05"]],
    "problems": [[]],
    "profiles": [[]],
    "schema": [[]],
    "completion": [["bash"], ["zsh"], ["fish"]],
}  # fmt: skip
FILES = (
    "metric.json", "city.json", "mesh.json", "everywhere.json", "beside.json", "grid.json",
    "zones.json", "targets.json", "additive.json", "pair.json", "real.json", "renyi.json",
    "together.json", "noise.json", "metric.omm", "mesh.omm", "everywhere.omm", "city.omm", "m.csv",
    "m.npy",
    "city-asked.json", "mesh-asked.json", "run-asked.json", "points.parquet", "survey.json",
)  # fmt: skip


USUAL = (
    "1", "2", "0.5", "ln 3", "out.json", "out.csv", "out.html", "out.png", "out.omm", "euclidean",
    "haversine", "city.csv", "points.csv", "metric", "map.geojson", "key", "u1", "rider", "lon",
)  # fmt: skip


def command(rng: random.Random) -> Case:
    """Any command with some of its options, their values sound, odd or those of another."""
    name = rng.choice(COMMANDS)
    base = [[design] for design in FILES]
    argv = list(rng.choice(SOUND.get(name, base)))
    if rng.random() < 0.15 and argv:
        # a file of another kind
        argv[rng.randrange(len(argv))] = rng.choice(FILES)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        action = rng.choice(_options()[name])
        argv.append(rng.choice(action.option_strings))
        if action.nargs != 0:
            argv += [_value(action, rng) for _ in range(rng.choice([1, 1, 1, 2]))]
    if name == "solve" and "--time-limit" not in argv:
        argv += ["--time-limit", "3"]
    named = {word for word in argv if word in made().files}
    files = {"city.csv": CITY.encode(), "points.csv": POINTS.encode(), "key": bytes(range(40)),
             "seen.csv": b"observable,count\nstation,4\nmarket,9\n",
             "map.geojson": written(MAP)}  # fmt: skip
    return Case("", _clean([name, *argv]), files | {word: made().files[word] for word in named})


def _value(action: argparse.Action, rng: random.Random) -> str:
    choices = [*map(str, action.choices or ())]
    odd = rng.choice([*FILES, "folder", "pipe", "loop", *TEXTS])
    return rng.choice([rng.choice(choices or USUAL), rng.choice(USUAL), _number(rng), odd])


def _number(rng: random.Random) -> str:
    return str(rng.choice([*NUMBERS[:16], *NUMBERS[17:], 1, 2, 0.5]))


def _clean(argv: list[str]) -> list[str]:
    """Words as a system can hand them over; no device that never ends."""
    return [word.replace("\0", "?").replace("\ud800", "\udcff") for word in argv]


def surrounded(case: Case, rng: random.Random) -> Case:
    """The same, now and then with odd streams, an odd environment, or odd names of its files."""
    if rng.random() < 0.07:
        case = replace(case, streams=rng.choice(STREAMS))
    if rng.random() < 0.05:
        case = replace(case, environment=rng.choice(ENVIRONMENTS))
    if rng.random() < 0.07:
        case = _renamed(case, rng)
    return case


def _renamed(case: Case, rng: random.Random) -> Case:
    """One of the files in the words of the command line gets another name."""
    words = [word for word in case.argv[1:] if "." in word and not word.startswith((".", "/"))]
    if not words:
        return case
    old = rng.choice(words)
    new = rng.choice(NAMES) + "".join(Path(old).suffixes)[-20:]
    argv = [new if word == old else word for word in case.argv]
    if len(new.encode("utf-8", "surrogateescape")) > 255:
        return replace(case, argv=argv)
    files = {new if name == old else name: content for name, content in case.files.items()}
    return replace(case, argv=argv, files=files)


def line(rng: random.Random) -> Case:
    """A command line with hostile arguments, and inputs that are no files."""
    names = ["pipe", "folder", "loop", "/dev/zero", "/dev/null", "/dev/stdin", "/proc/self/mem"]
    bad = rng.choice([*names, *TEXTS, str(rng.choice(NUMBERS[:16] + NUMBERS[17:]))])
    bad = bad.replace("\0", "?")
    text = "?" if bad.startswith("-") else bad
    argv = rng.choice(
        [
            ["solve", text],
            ["check", text],
            ["attack", text],
            ["sample", text, "0"],
            ["measure", text],
            ["report", text, "-o", "r.html"],
            ["trace", text],
            ["sweep", text],
            ["transport", text],
            ["export", text, "-o", "x.mps"],
            ["solve", "metric", "-q", "--profile", text],
            ["solve", "metric", "-q", "--profile", "pipe.toml"],
            ["check", "pipe.npy", "--problem", "metric"],
            ["check", "pipe.nc", "--problem", "metric"],
            ["check", "pipe.csv", "--problem", "metric"],
            ["check", "pipe.parquet", "--problem", "metric"],
            ["check", "metric.json", "--problem", text],
            ["sample", "metric.json", text],
            ["sample", "metric.json", "0", "--seed", text],
            ["sample", "metric.json", "0", "-n", text],
            ["solve", "metric", "-q", "--gap", text],
            ["solve", "metric", "-q", "--time-limit", text],
            ["trace", "ten-points", "--seed", text],
            ["noise", "--epsilon", text],
            ["noise", "--epsilon", "1", "--delta", text, "--sensitivity", "2"],
            ["noise", "--epsilon", "1", "--loss", text],
            ["noise", "--epsilon", "1", "--loss", "threshold", "--width", text],
            ["noise", "--epsilon", "1", "--sensitivity", text],
            ["noise", "--zcdp", text],
            ["noise", "--order", "1", "--budget", text],
            ["transport", "home-out", "--p", text],
            ["transport", "home-out", "--radius", text],
            ["transport", "home-out", "--distance", text],
            ["measure", "metric.json", "--delta", text],
            ["measure", "metric.json", "--leakage", "--reports", text],
            ["compare", "metric.json", text],
            ["estimate", "metric.json", text],
            ["estimate", "metric.json", text, "--bootstrap", text],
            ["adopt", text, "--problem", "metric", "-o", "x.json"],
            ["solve", "metric", "-q", "--device", text],
            ["sweep", "epsilon-curve", "-o", "run", "--workers", "0", "--gap", text],
        ]
    )
    files = {"metric.json": made().files["metric.json"]}
    for suffix in (".toml", ".npy", ".nc", ".csv", ".parquet"):
        files[f"pipe{suffix}"] = b"<pipe>"
    return Case("", argv, files)
