"""Would the blocks of one large design be faster on Dask workers? Measured parts, and a model.

    python benchmarks/blocks_apart.py profile 1000  # one core's seconds of a solve of Rome, by part
    python benchmarks/blocks_apart.py send          # messages and arrays between two Dask workers
    python benchmarks/blocks_apart.py table         # the tables of docs/machines.md

A design of N crossings and 100 reports spends its iterations in the blocks of the reports, which
are independent between two moments at which all are waited for: a sum over blocks of vectors of N
numbers (a product of the conjugate gradients, say), or a largest step. Blocks on W workers take a
W-th of the time in blocks; every such moment costs one message to all workers and back with a
vector of N numbers, and every preconditioner that is made one addition of their N x N matrices.
The rest, its factor above all, stays where it is. Results go to results/blocks_apart.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from everywhere_rome import FILES
from given import add_files, settle
from privacy_games.store import Store

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "blocks_apart.jsonl"
SIZES = (1000, 2000, 5000)
TIMES = 9
WORKERS = (2, 4, 8, 16)
IN_BLOCKS = (
    "structure", "factor", "solve", "affine_rhs", "corrector_rhs",
    "affine_step", "corrector_step", "move", "violations", "majorant", "charge", "shifted", "drain",
)  # fmt: skip
"""What a backend does in all blocks at once."""
Found = dict[str, Any]


class Timed:
    """Processor seconds and calls of what is wrapped, but for what is called inside it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._inside: list[float] = []

    def wrap(self, holder: type, name: str, label: str) -> None:
        setattr(holder, name, self.around(getattr(holder, name), label))

    def around(self, plain: Callable[..., Any], label: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.process_time()
            self._inside.append(0.0)
            try:
                return plain(*args, **kwargs)
            finally:
                took = time.process_time() - begun
                self.seconds[label] += took - self._inside.pop()
                self.calls[label] += 1
                if self._inside:
                    self._inside[-1] += took

        return call


def profile(data: Path, size: int) -> Found:
    """A solve to 1e-3 on one thread, by part."""
    from city import rome

    import optmech as om
    from optmech.engines.structured import newton, run
    from optmech.engines.structured.compiled import SparseBackend
    from optmech.engines.structured.iterative import Preconditioner

    problem = rome(data, size)
    timed = Timed()
    for name in IN_BLOCKS:
        timed.wrap(SparseBackend, name, f"blocks: {name}")
    timed.wrap(Preconditioner, "__init__", "preconditioner: factor")
    inverse = Preconditioner.at
    Preconditioner.at = lambda *of: timed.around(  # type: ignore[method-assign]
        inverse(*of), "preconditioner: solve"
    )
    timed.wrap(run.Bounds, "offer", "offer")
    timed.wrap(newton._Iteration, "run", "iteration: rest")
    timed.wrap(run.Run, "finish", "rest of the engine")
    begun = time.process_time()
    design = om.solve(problem, gap=1e-3, resolution=0)
    return {
        "seconds": round(time.process_time() - begun, 2),
        "gap": design.gap,
        "iterations": timed.calls["iteration: rest"],
        "parts": {name: round(value, 3) for name, value in timed.seconds.most_common()},
        "calls": dict(timed.calls),
    }


def made(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((size, size))


def product(vector: np.ndarray) -> np.ndarray:
    """What a worker answers to a product: a vector as long as it got."""
    return vector


def added(mine: np.ndarray, other: np.ndarray) -> float:
    """The sum of two matrices, of which one is fetched from the other worker."""
    return float((mine + other)[-1, -1])


def median(call: Callable[[], object]) -> float:
    times = []
    for _ in range(TIMES):
        begun = time.monotonic()
        call()
        times.append(time.monotonic() - begun)
    return round(statistics.median(times), 5)


class Blocks:
    """An actor: what a worker would keep its blocks in."""

    def product(self, vector: np.ndarray) -> np.ndarray:
        return vector


def send(size: int) -> Found:
    """Wall seconds of a message with ``size`` numbers to both workers and back, by tasks and by
    actors, and of a matrix that goes from one worker to the other and is added there."""
    from distributed import wait
    from districts import cluster

    with cluster() as client:
        first, second = sorted(client.run(os.getpid))
        vector = np.random.default_rng(0).random(size)

        def by_tasks() -> None:
            sent = [
                client.submit(product, vector, workers=[one], pure=False) for one in (first, second)
            ]
            client.gather(sent)

        actors = [
            client.submit(Blocks, actor=True, workers=[one], pure=False).result()
            for one in (first, second)
        ]

        def by_actors() -> None:
            for answer in [actor.product(vector) for actor in actors]:
                answer.result()

        by_tasks(), by_actors()
        found = {"tasks": median(by_tasks), "actors": median(by_actors)}
        moved, alone = [], []
        for k in range(TIMES):
            a = client.submit(made, size, 2 * k, workers=[first], pure=False)
            b = client.submit(made, size, 2 * k + 1, workers=[second], pure=False)
            c = client.submit(made, size, 2 * k + 1, workers=[first], pure=False)
            wait([a, b, c])
            for other, times in ((b, moved), (c, alone)):
                begun = time.monotonic()
                client.submit(added, a, other, workers=[first], pure=False).result()
                times.append(time.monotonic() - begun)
            del a, b, c
        found["matrix"] = round(statistics.median(moved), 4)
        found["added_at_home"] = round(statistics.median(alone), 4)
    return found


def modelled(profile: Found, sent: Found, workers: int, *, most: bool = False) -> float:
    """Seconds of a solve with the blocks on ``workers`` workers as fast as the one that was
    measured: what is in blocks divided, or with ``most`` everything but the preconditioner, and
    for the messages the cheaper kind."""
    parts, calls = profile["parts"], profile["calls"]
    blocks = _of(parts, "blocks")
    divided = profile["seconds"] - _of(parts, "preconditioner") if most else blocks
    message = min(sent["tasks"], sent["actors"]) * max(1.0, workers / 2)
    # added in a tree
    adding = sent["matrix"] * np.ceil(np.log2(workers))
    waiting = _of(calls, "blocks") * message + calls["preconditioner: factor"] * adding
    return float(profile["seconds"] - divided + divided / workers + waiting)


def _of(values: Found, kind: str) -> float:
    return float(sum(value for name, value in values.items() if name.startswith(f"{kind}:")))


def table(store: Store) -> str:
    """Markdown: the parts of a solve, the messages, and the model."""
    profiles = {
        record["task"]["size"]: record
        for record in store.records.values()
        if record["task"]["part"] == "profile"
    }
    sent = {
        record["task"]["size"]: record
        for record in store.records.values()
        if record["task"]["part"] == "send"
    }
    lines = [
        "| places | seconds | in blocks | preconditioner | else | iterations | matrices | waits |",
        "|---|" + "---|" * 7,
    ]
    for size, found in profiles.items():
        blocks, conditioned = (_of(found["parts"], kind) for kind in ("blocks", "preconditioner"))
        rest = found["seconds"] - blocks - conditioned
        lines.append(
            f"| {size:,} | {found['seconds']:.1f} | {blocks:.1f} | {conditioned:.1f} | "
            f"{rest:.1f} | {found['iterations']} | {found['calls']['preconditioner: factor']} | "
            f"{_of(found['calls'], 'blocks'):.0f} |"
        )
    lines += ["", "| numbers | both, tasks | both, actors | matrix added | at home |"]
    lines += ["|---|" + "---|" * 4]
    for size, found in sent.items():
        lines.append(
            f"| {size:,} | {1000 * found['tasks']:.1f} ms | {1000 * found['actors']:.1f} ms | "
            f"{found['matrix']:.3f} s | {found['added_at_home']:.3f} s |"
        )
    heads = ["places", "one thread", "two threads", *(f"{count} workers" for count in WORKERS)]
    lines += ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for size, found in profiles.items():
        if size in sent:
            some, most = (
                [modelled(found, sent[size], count, most=much) for count in WORKERS]
                for much in (False, True)
            )
            times = " | ".join(f"{a:.0f}, {b:.0f}" for a, b in zip(some, most, strict=True))
            threads = found["seconds"] - _of(found["parts"], "blocks") / 2
            lines.append(f"| {size:,} | {found['seconds']:.0f} | {threads:.0f} | {times} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("profile", "send", "table"))
    parser.add_argument("size", type=int, nargs="?", default=1000)
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.what == "table":
        print(table(Store(args.results)))
        return
    settle(args, *(FILES if args.what == "profile" else ()))
    store = Store(args.results)
    for size in SIZES if args.what == "send" else (args.size,):
        task = {"part": args.what, "size": size}
        if not store.find(task):
            found = send(size) if args.what == "send" else profile(args.data, size)
            print(json.dumps(store.add(task, found)), flush=True)


if __name__ == "__main__":
    main()
