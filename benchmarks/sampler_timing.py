"""Whether the time of one draw tells the secret: an attacker's best threshold on its own draws.

    python benchmarks/sampler_timing.py --places 300 --draws 10000

A line of places whose supports reach five places each way: rows have zeros in front and behind, in
every proportion. Secrets are drawn from in random order, so that what else the machine does falls
on all of them alike. For every pair of secrets a threshold and its direction are fitted on half of
the draws and judged on the other half; 0.5 is guessing. The same is done with the times dealt out
to the secrets at random, which shows what chance gives for the worst of that many pairs.
"""

from __future__ import annotations

import argparse
import gc
import json
import time

import numpy as np

import optmech as om
from optmech.exact.numerators import Numerators


def supported_line(places: int, reach: int) -> om.Mechanism:
    """Reports at most ``reach`` places away, nearer ones more often."""
    away = np.abs(np.subtract.outer(np.arange(places), np.arange(places)))
    weights = np.where(away <= reach, np.exp(-0.5 * away), 0.0)
    line = om.Domain.range(places)
    return om.Mechanism.of(
        line, line, Numerators.rounded(weights / weights.sum(axis=1, keepdims=True))
    )


def timings(mechanism: om.Mechanism, draws: int, seed: int) -> np.ndarray:
    """Nanoseconds of single draws, shape (places, draws), taken in random order."""
    places = len(mechanism.secrets)
    rng = np.random.default_rng(seed)
    labels = mechanism.secrets.labels
    out = np.empty((places, draws))
    mechanism.sample(labels[0])
    gc.disable()
    for k in range(draws):
        for s in rng.permutation(places).tolist():
            label = labels[s]
            begin = time.perf_counter_ns()
            mechanism.sample(label)
            out[s, k] = time.perf_counter_ns() - begin
    gc.enable()
    return out


def accuracies(times: np.ndarray) -> np.ndarray:
    """For every pair the accuracy on the second half of the threshold fitted on the first."""
    places = len(times)
    grid = np.quantile(times, np.linspace(0.002, 0.998, 400))
    fitted, judged = (_shares(times[:, first::2], grid) for first in (0, 1))
    pairs = np.triu_indices(places, 1)
    found = np.empty(len(pairs[0]))
    for n, (i, j) in enumerate(zip(*pairs, strict=True)):
        difference = fitted[i] - fitted[j]
        k = int(np.abs(difference).argmax())
        found[n] = 0.5 + 0.5 * np.sign(difference[k]) * (judged[i, k] - judged[j, k])
    return found


def _shares(half: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The share of each secret's draws at or below each threshold."""
    ordered = np.sort(half, axis=1)
    return np.array([np.searchsorted(row, grid, side="right") / len(row) for row in ordered])


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", type=int, default=300)
    parser.add_argument("--reach", type=int, default=5)
    parser.add_argument("--draws", type=int, default=8000, help="of every secret")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    times = timings(supported_line(args.places, args.reach), args.draws, args.seed)
    found = accuracies(times)
    chance = accuracies(np.random.default_rng(0).permuted(times.ravel()).reshape(times.shape))
    last = args.places - 2  # the pair (0, places - 1) is the last of those with 0
    medians = np.median(times, axis=1) / 1000
    figures = {
        "places": args.places,
        "draws of each": args.draws,
        "median microseconds, over secrets": [
            round(float(x), 2) for x in np.quantile(medians, [0, 0.5, 1])
        ],
        "accuracy, first against last": round(float(found[last]), 4),
        "accuracy, all pairs: mean, 99 %, worst": _three(found),
        "the same with the draws shuffled over all secrets": _three(chance),
    }
    print(json.dumps(figures, indent=1))


def _three(values: np.ndarray) -> list[float]:
    return [round(float(x), 4) for x in (values.mean(), np.quantile(values, 0.99), values.max())]


if __name__ == "__main__":
    main()
