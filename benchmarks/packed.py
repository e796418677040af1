"""Packed mechanisms measured: sizes, mutated files, draws of the client (docs/packed.md).

    python benchmarks/packed.py sizes [DESIGN ...]  # 16 to 48 bits; 1,024 places without designs
    python benchmarks/packed.py solve DESIGN --side 32  # an optimum for 1,024 places, to 1e-3
    python benchmarks/packed.py mutations --count 10000
    python benchmarks/packed.py mutations --mesh        # for every point; draws has it as well
    python benchmarks/packed.py draws                   # chi-square of a million draws, in Node
    python benchmarks/packed.py timing --figure docs/figures/draw-timing.svg

Every part prints one line of JSON, and appends it to results/packed.jsonl with ``--keep``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optmech_devices
from scipy import stats

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "packed.jsonl"
VECTORS = HERE.parent / "packages/devices/tests/packed/vectors"
CLIENT = Path(optmech_devices.__file__).parent / "client"
GENEROUS = 10.0


def city(side: int, epsilon: str) -> om.Problem:
    """``side`` x ``side`` cells of about 1 km, a rough prior, ``epsilon`` per km."""
    cells = om.Grid.geographic(side, side, (116.2, 39.8, 116.6, 40.1))
    euclidean = om.distances.euclidean()
    weights = np.random.default_rng(1).gamma(0.5, size=side * side)
    prior = om.Prior(cells, weights / weights.sum())
    return om.Problem(
        prior,
        euclidean,
        constraints=[om.MetricPrivacy(epsilon, euclidean)],
        title=f"{side * side:,} cells, {epsilon} per km",
    )


def optimal(side: int, path: Path) -> dict[str, Any]:
    """The best mechanism for such a city at 0.5 per km, to a gap of 1e-3, saved."""
    began, wall = time.process_time(), time.monotonic()

    def progress(text: str) -> None:
        spent = time.process_time() - began
        print(f"{spent:8.0f} processor s  {text}", file=sys.stderr, flush=True)

    design = om.solve(city(side, "1/2"), gap=1e-3, progress=progress)
    design.save(path)
    return {
        "part": "solve",
        "places": side * side,
        "loss": design.loss,
        "bound": design.bound,
        "gap": design.gap,
        "engine": design.engine,
        "seconds": time.process_time() - began,
        "wall_seconds": time.monotonic() - wall,
        "bytes": path.stat().st_size,
    }


def large(side: int) -> om.Design:
    """The exponential mechanism in such a city at ln 2 per km: private, not optimal, and at hand
    without a search."""
    problem = city(side, "ln 2")
    cells, euclidean = problem.secrets, om.distances.euclidean()
    matrix = np.exp(-np.log(2) / 2 * (1 - 1e-12) * euclidean(cells, cells))
    made = om.Mechanism(cells, cells, matrix / matrix.sum(axis=1, keepdims=True))
    return om.exchange.adopt(made, problem)


def sizes(designs: list[str]) -> dict[str, Any]:
    """Bytes, loss and columns at every number of bits, and a cold start of the command."""
    found = []
    given = [om.Design.load(path) for path in designs] or [large(32)]
    for design in given:
        for bits in (16, 24, 32, 48):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "m.omm"
                began = time.process_time()
                packed = om.pack(design, path, bits=bits, max_loss=GENEROUS)
                spent = time.process_time() - began
                began = time.process_time()
                report = om.devices.check_packed(path, design)
                checked = time.process_time() - began
                label = json.dumps(packed.secrets.labels[1]).strip("[]")
                found.append(
                    {
                        "title": design.problem.title,
                        "places": len(packed.secrets),
                        "bits": bits,
                        "bytes": path.stat().st_size,
                        "columns": int(packed.matrix.any(axis=0).sum()),
                        "increase": packed.header.loss.increase,
                        "pack_seconds": spent,
                        "check_seconds": checked,
                        "passed": report.passed,
                        "sample_seconds": cold_start(path, label),
                    }
                )
    return {"part": "sizes", "rows": found}


def cold_start(path: Path, label: str) -> float:
    """Processor seconds of ``optmech sample`` in a new process, the least of three."""
    import resource

    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "optmech", "sample", str(path), label],
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def tabled() -> om.Design:
    """Twelve cells over degrees, ln 2 per km."""
    euclidean = om.distances.euclidean()
    cells = om.Grid.geographic(3, 4, (-73.7, 45.4, -73.6, 45.5))
    return om.solve(
        om.Problem(
            om.Prior.uniform(cells), euclidean, constraints=[om.MetricPrivacy("ln 2", euclidean)]
        )
    )


def meshed() -> om.Design:
    """Every point of a square of 4 km, cubic, 16 places."""
    euclidean = om.distances.euclidean()
    places = om.Domain(range(16), [[x, y] for x in range(4) for y in range(4)], "km")
    mesh = om.Mesh.grid([-0.5, -0.5, 3.5, 3.5], 2, unit="km", degree=3)
    private = om.MetricPrivacy("ln 2", euclidean, everywhere=mesh)
    return om.solve(om.Problem(om.Prior.uniform(places), euclidean, constraints=[private]))


def mutations(count: int, mesh: bool, seed: int = 1) -> dict[str, Any]:
    """Files that are changed, half of them with a digest that fits: how many are read at all, and
    of these how many pass the check with other probabilities, places or promises."""
    design = meshed() if mesh else tabled()
    tally = {"unsealed read": 0, "sealed": 0, "sealed read": 0, "passed": 0, "other errors": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.omm"
        original = om.pack(design, path)
        content = path.read_bytes()
        rng = random.Random(seed)
        for _ in range(count):
            data = mutated(content, rng)
            sealed = data[-32:] == hashlib.sha256(data[:-32]).digest()
            tally["sealed"] += sealed
            if data == content:
                continue
            path.write_bytes(data)
            try:
                found = om.devices.load_packed(path)
                tally["sealed read" if sealed else "unsealed read"] += 1
                same = about(found) == about(original) and np.array_equal(
                    found.matrix, original.matrix
                )
                tally["passed"] += om.devices.check_packed(path, design).passed and not same
            except om.OptmechError:
                pass
            except Exception as error:
                tally["other errors"] += 1
                print(repr(error), file=sys.stderr)
    return {"part": "mutations", "mesh": mesh, "count": count, "seed": seed, **tally}


def about(packed: Any) -> Any:
    """The secrets, or the mesh."""
    return packed.mesh if isinstance(packed, om.devices.PackedEverywhere) else packed.secrets


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Bits flipped, bytes removed, inserted, cut or set; half of them sealed again."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 3))):
        place = rng.randrange(len(data) - 32)
        kind = rng.randrange(5)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[place : place + rng.randrange(1, 20)]
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randrange(1, 20))
        elif kind == 3 and place > 100:
            data = data[:place]
        else:
            data[place] = rng.choice([0x00, 0x1B, 0x5B, 0x7F, 0x9B, 0xBB, 0xDB, 0xFB, 0xFF])
    if rng.random() < 0.5:
        data[-32:] = hashlib.sha256(data[:-32]).digest()
    return bytes(data)


def node(file: Path, what: str, count: int) -> Any:
    """What the script prints."""
    found = shutil.which("node")
    if found is None:
        raise SystemExit("no Node")
    command = [found, str(HERE / "packed.mjs"), str(CLIENT), str(file), what, str(count)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def draws(count: int, mesh: bool) -> dict[str, Any]:
    """Chi-square of the client's draws from the system's entropy against the packed numbers."""
    path = VECTORS / ("globe.omm" if mesh else "grid.omm")
    packed = om.devices.load_packed(path)
    found = node(path, "chi", count)
    counts = np.array(found["counts"], dtype=float)
    rows = packed.matrix
    if isinstance(packed, om.devices.PackedEverywhere):
        rows = np.array([list(map(float, packed.exactly_at(at))) for at in found["asked"]])
    expected = counts.sum(axis=1, keepdims=True) * rows
    used = expected > 0
    statistic = float(((counts - expected)[used] ** 2 / expected[used]).sum())
    degrees = int(used.sum() - len(counts))
    return {
        "part": "draws",
        "file": path.name,
        "count": int(counts.sum()),
        "statistic": statistic,
        "degrees": degrees,
        "p_value": float(stats.chi2.sf(statistic, degrees)),
        "never": float(counts[~used].sum()),
    }


def timing(file: Path, rounds: int, figure: Path | None) -> dict[str, Any]:
    """Nanoseconds of a draw for every secret, and whether they differ (Kruskal and Wallis)."""
    times = np.array(node(file, "timing", rounds)["times"])
    median = np.median(times, axis=1)
    test = stats.kruskal(*times)
    if figure is not None:
        draw(times / 1e3, figure)
    return {
        "part": "timing",
        "file": file.name,
        "places": len(times),
        "rounds": rounds,
        "median_us": float(np.median(times) / 1e3),
        "least_median_us": float(median.min() / 1e3),
        "largest_median_us": float(median.max() / 1e3),
        "kruskal_p": float(test.pvalue),
    }


def draw(times: Any, figure: Path) -> None:
    """Medians and quartiles of every secret."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "optmech"
    from matplotlib import pyplot

    low, middle, high = np.quantile(times, (0.25, 0.5, 0.75), axis=1)
    fig, axes = pyplot.subplots(figsize=(7, 2.8), layout="constrained")
    axes.fill_between(range(len(middle)), low, high, alpha=0.3, lw=0, label="quartiles")
    axes.plot(middle, lw=0.8, label="median")
    axes.set(xlabel="number of the secret", ylabel="µs for a draw", ylim=(0, None))
    axes.legend(loc="lower right")
    fig.savefig(figure, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("sizes", "solve", "mutations", "draws", "timing"))
    parser.add_argument("files", nargs="*", help="designs (sizes), or a packed file (timing)")
    parser.add_argument("--count", type=int, help="how many files, draws or rounds")
    parser.add_argument("--side", type=int, default=32, help="cells of a side (solve)")
    parser.add_argument("--mesh", action="store_true", help="for every point (mutations, draws)")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--keep", action="store_true", help="append to results/packed.jsonl")
    args = parser.parse_args()
    if args.part == "sizes":
        found = sizes(args.files)
    elif args.part == "solve":
        found = optimal(args.side, Path(args.files[0]))
    elif args.part == "mutations":
        found = mutations(args.count or 10_000, args.mesh)
    elif args.part == "draws":
        found = draws(args.count or 1_000_000, args.mesh)
    else:
        path = Path(args.files[0]) if args.files else VECTORS / "grid.omm"
        found = timing(path, args.count or 400, args.figure)
    print(json.dumps(found))
    if args.keep:
        with RESULTS.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
