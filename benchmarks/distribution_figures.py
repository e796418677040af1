"""More of DP19 section 7 and Appendix A on open data: Figs. 2 and 9 to 12 with KL, Fig. 2d, Fig. 4
for every attribute, Figs. 5 and 6 at equal loss, Figs. 13 to 16.

    python benchmarks/distribution_figures.py                   # every part, ten minutes
    python benchmarks/distribution_figures.py --part hours      # one of them

Data, regions and units as in distribution_privacy.py, which has the tables. Results go to
results/distribution_figures.json; distribution_tables.py puts both into docs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from distribution_privacy import (
    DELTA,
    EUCLIDEAN,
    HERE,
    KM_PER_DEGREE,
    Setting,
    run,
)

import optmech as om
from optmech.mechanisms import planar_gaussian, planar_laplace, randomized_response, tupling

RESULTS = HERE / "results" / "distribution_figures.json"
DUMMIES = (1, 2, 5, 10, 20)
SCALES = (10.0, 50.0, 100.0, 200.0, 500.0)
"""eps_A per degree."""
RADII = (0.005, 0.01, 0.02, 0.03, 0.04)
"""In degrees."""
LOSSES = (0.7, 1.0, 1.5, 2.2, 3.6)
"""In km."""
HOURS = ("00h-05h", "06h-11h", "12h-17h", "18h-23h")
SHUFFLES = 5

Rows = list[dict[str, Any]]


def settings() -> Iterator[tuple[str, int, float, float]]:
    """What Fig. 2 varies, one at a time: (panel, k, eps_A per degree, r in degrees)."""
    yield from (("a", k, 100.0, 0.02) for k in DUMMIES)
    yield from (("b", 10, scale, 0.02) for scale in SCALES)
    yield from (("c", 10, 100.0, radius) for radius in RADII)


def figure2(at: Setting) -> Rows:
    """eps and KL of the tupling mechanism over k, eps_A and r (Figs. 2, 9 to 12, a to c)."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    out = []
    for (name, (lam0, lam1)), (panel, *rest) in itertools.product(at.pairs.items(), settings()):
        key = (name, *rest)
        if key not in known:
            k, scale, radius = rest
            made = tupling(at.base(scale, radius * KM_PER_DEGREE), int(k))
            known[key] = {
                "epsilon": finite(made.epsilon(lam0, lam1, DELTA).upper),
                "kl": finite(made.kl(lam0, lam1).upper),
                "kl_back": finite(made.kl(lam1, lam0).upper),
            }
        k, scale, radius = rest
        where = {"attribute": name, "panel": panel, "k": k}
        out.append({**where, "eps_A_per_degree": scale, "radius_degrees": radius, **known[key]})
    return out


def finite(value: float) -> float | None:
    """JSON knows no infinity."""
    return value if math.isfinite(value) else None


def losses(at: Setting) -> Rows:
    """The expected loss for k = 5 over eps_A and r (Fig. 2d and its siblings)."""
    out = []
    for name, radius, scale in itertools.product(at.attributes, RADII, SCALES):
        made = tupling(at.base(scale, radius * KM_PER_DEGREE), 5)
        out.append(
            {
                "attribute": name,
                "radius_degrees": radius,
                "eps_A_per_degree": scale,
                "loss_nearest_km": made.expected_loss(at.prior(name), EUCLIDEAN),
            }
        )
    for k in DUMMIES:
        made = tupling(at.base(100.0), k)
        nearest = made.expected_loss(at.prior("male/female"), EUCLIDEAN)
        out.append({"attribute": "male/female", "k": k, "loss_nearest_km": nearest})
    return out


def attack(at: Setting) -> Rows:
    """eps against the success of the Bayes rule in each class, k = 10 (Fig. 4)."""
    out = []
    for name, pair in at.attributes.items():
        for scale in (1.0, 30.0, 100.0, 200.0, 300.0, 500.0, 1000.0):
            made = tupling(at.base(scale), 10)
            has, has_not = made.attack_success(*pair)
            out.append(
                {
                    "attribute": name,
                    "eps_A_per_degree": scale,
                    "epsilon": made.epsilon(*pair, DELTA).upper,
                    "success": [has.lower, has.upper],
                    "success_without": [has_not.lower, has_not.upper],
                    "accuracy": (1 + made.delta(*pair, 0.0).upper) / 2,
                }
            )
    return out


def equal_loss(at: Setting) -> Rows:
    """eps of RR, PL, PG and TM where they lose the same (Figs. 5, 6): ln eps is interpolated over
    ln loss between 25 parameters of each (13 of TM)."""
    families: dict[str, list[om.Mechanism]] = {
        "RR": [randomized_response(at.regions, e) for e in np.linspace(1, 10, 25).tolist()],
        "PL": [planar_laplace(at.regions, e) for e in np.geomspace(0.3, 4, 25).tolist()],
        "PG": [planar_gaussian(at.regions, s) for s in np.geomspace(4.5, 0.4, 25).tolist()],
    }
    tuplings = [tupling(at.base(scale), 10) for scale in np.geomspace(10, 1000, 13).tolist()]
    out = []
    for name, (lam0, lam1) in at.attributes.items():
        prior = at.prior(name)
        curves = {
            kind: [
                (
                    om.measures.expected_loss(m, prior, EUCLIDEAN),
                    om.measures.distribution_epsilon(m, lam0, lam1, DELTA),
                )
                for m in made
            ]
            for kind, made in families.items()
        }
        curves["TM"] = [
            (t.expected_loss(prior, EUCLIDEAN), t.epsilon(lam0, lam1, DELTA).upper)
            for t in tuplings
        ]
        for loss in LOSSES:
            row = {"attribute": name, "loss_km": loss}
            out.append({**row, **{kind: _at(curve, loss) for kind, curve in curves.items()}})
    return out


def _at(curve: list[tuple[float, float]], loss: float) -> float | None:
    x, y = np.log(np.array(sorted(curve)).T)
    return (
        None if not x[0] <= np.log(loss) <= x[-1] else float(np.exp(np.interp(np.log(loss), x, y)))
    )


def hours(at: Setting) -> Rows:
    """eps in four periods of the day, k = 10, eps_A = 100 per degree (Figs. 13 to 16), and what it
    is where the labels within a period are shuffled: the eps of finite samples alone."""
    made = tupling(at.base(100.0), 10)
    rng = np.random.default_rng(2019)
    out = []
    for name, (places, values, times) in at.labelled.items():
        inside = at.inside(places)
        for period, title in enumerate(HOURS):
            of = inside & (times // 6 == period)
            counts = {bool(v): int((values[of] == v).sum()) for v in (True, False)}
            row: dict[str, Any] = {"attribute": name, "hours": title}
            row |= {"has": counts[True], "has_not": counts[False]}
            if min(counts.values()) >= 50:
                drawn = [values[of]]
                drawn += [rng.permutation(values[of]) for _ in range(SHUFFLES)]
                found = [made.epsilon(*at.pair(places[of], v), DELTA).upper for v in drawn]
                row |= {"epsilon": found[0], "shuffled": float(np.mean(found[1:]))}
            out.append(row)
    return out


PARTS: dict[str, Callable[[Setting], Rows]] = {
    "figure2": figure2,
    "losses": losses,
    "attack": attack,
    "equal loss": equal_loss,
    "hours": hours,
}

if __name__ == "__main__":
    run(__doc__, PARTS, RESULTS)
