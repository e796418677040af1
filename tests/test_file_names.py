"""What is no path is refused in words, by everything that takes the name of a file."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from public import names_of

import optmech as om
from optmech.spaces.arguments import words_of

KM = om.distances.euclidean()
TWO = om.Domain([0, 1], [[0.0, 0.0], [1.0, 0.0]], "km")
PROBLEM = om.Problem(om.Prior.uniform(TWO), KM, constraints=[om.MetricPrivacy(1, KM)])
DESIGN = om.solve(PROBLEM)
M = DESIGN.mechanism
MESH = om.Mesh.grid((0, 0, 1, 1), 1)
LINE = Path(__file__).parents[1] / "packages/devices/tests/packed/vectors/line.omm"
TARGET = om.mechanisms.optimal_target([om.Prior(TWO, w) for w in ([1, 3], [3, 1])], KM, 1)
CELLS = om.Grid.geographic(1, 2, (8.5, 47.3, 8.6, 47.4))
MAP = om.solve(om.Problem(om.Prior.uniform(CELLS), KM, constraints=[om.MetricPrivacy(1, KM)]))


def saved(make: Callable[[], Any]) -> Callable[[Any], object]:
    """``save`` of what is made once, when it is first asked for."""
    made = functools.cache(make)
    return lambda path: made().save(path)


TAKES: dict[str, Callable[[Any], object]] = {
    "Design.load": om.Design.load,
    "Design.save": DESIGN.save,
    "devices.Ledger.open": lambda x: om.devices.Ledger.open(
        x, om.devices.load_packed(LINE), None, radius=2
    ),
    "Mesh.read": om.Mesh.read,
    "Mesh.write": MESH.write,
    "Prior.from_csv": lambda x: om.Prior.from_csv(om.Grid(2, 2), x, x="x", y="y"),
    "SweepResult.load": om.SweepResult.load,
    "check": om.check,
    "devices.check_packed": lambda x: om.devices.check_packed(x, DESIGN),
    "exchange.read_geojson": om.exchange.read_geojson,
    "exchange.read_matrix": lambda x: om.exchange.read_matrix(x, TWO, TWO),
    "exchange.read_netcdf": om.exchange.read_netcdf,
    "exchange.read_osm": om.exchange.read_osm,
    "exchange.read_parquet": om.exchange.read_parquet,
    "exchange.write_geojson": lambda x: om.exchange.write_geojson(MAP, x),
    "exchange.write_matrix": lambda x: om.exchange.write_matrix(M, x),
    "exchange.write_netcdf": lambda x: om.exchange.write_netcdf(M, x),
    "exchange.write_noise_table": lambda x: om.exchange.write_noise_table(om.noise.optimal(1), x),
    "exchange.write_parquet": lambda x: om.exchange.write_parquet(M, x),
    "frontier.least_epsilon": lambda x: om.frontier.least_epsilon(PROBLEM, 0.1, 1, 9, profile=x),
    "load": om.load,
    "devices.load_packed": om.devices.load_packed,
    "load_problem": om.load_problem,
    "load_task": om.load_task,
    "mechanisms.TargetDesign.load": om.mechanisms.TargetDesign.load,
    "mechanisms.TargetDesign.save": TARGET.save,
    "Network.read": om.Network.read,
    "Network.write": lambda x: om.Mesh.line(0, 1, 2).write(x),
    "devices.Earth.load": om.devices.Earth.load,
    "devices.Earth.save": saved(lambda: om.devices.Earth.of(1)),
    "noise.RadialNoise.load": om.noise.RadialNoise.load,
    "noise.RadialNoise.save": saved(lambda: om.noise.radial(2, 0.1, 3, cells=2, gap=0.5)),
    "noise.RealNoise.load": om.noise.RealNoise.load,
    "noise.RealNoise.save": saved(lambda: om.noise.real(1, "1e-3", cells=2)),
    "noise.Release.save": saved(lambda: om.noise.histogram(1)),
    "noise.RoundedNoise.load": om.noise.RoundedNoise.load,
    "noise.RoundedNoise.save": saved(lambda: om.noise.optimal(1, sensitivity=2000)),
    "noise.ShapedNoise.load": om.noise.ShapedNoise.load,
    "noise.ShapedNoise.save": saved(lambda: om.noise.optimal(1, 0.1, support=(0, None))),
    "noise.ShapedRealNoise.load": om.noise.ShapedRealNoise.load,
    "noise.ShapedRealNoise.save": saved(lambda: om.noise.real(curve=[(1, 0.1)], cells=2)),
    "noise.NoiseDesign.load": om.noise.NoiseDesign.load,
    "noise.NoiseDesign.save": saved(lambda: om.noise.optimal(1)),
    "noise.PlanarNoise.load": om.noise.PlanarNoise.load,
    "noise.PlanarNoise.save": saved(lambda: om.noise.for_pairs(1)),
    "noise.RealRenyiNoise.load": om.noise.RealRenyiNoise.load,
    "noise.RealRenyiNoise.save": saved(lambda: om.noise.rdp((1, 1), cells=2)),
    "noise.RenyiNoise.load": om.noise.RenyiNoise.load,
    "noise.RenyiNoise.save": saved(lambda: om.noise.rdp((2, 1))),
    "devices.pack": lambda x: om.pack(DESIGN, x),
    "plots.mechanism_picture": lambda x: om.plots.mechanism_picture(DESIGN, x),
    "plots.region_picture": lambda x: om.plots.region_picture(DESIGN, x),
    "plots.save": lambda x: om.plots.save(om.plots.mechanism(DESIGN), x),
    "redesign": lambda x: om.redesign(x, PROBLEM),
    "report": lambda x: om.report(DESIGN, x),
    "plan": lambda x: om.plan(PROBLEM, x),
    "solve": lambda x: om.solve(PROBLEM, x),
    "sweep": om.sweep,
    "traces.Fixes.from_csv": lambda x: om.traces.Fixes.from_csv(
        x, user="u", time="t", x="x", y="y"),
}  # fmt: skip


def takers(owner: Any, before: str = "") -> Iterator[str]:
    """Public functions and methods with an argument that is the name of a file."""
    if isinstance(owner, ModuleType):
        names = names_of(owner)
    else:
        ours = [part for part in owner.__mro__ if part.__module__.startswith("optmech")]
        names = list(dict.fromkeys(name for part in ours for name in vars(part)))
    for name in (name for name in names if not name.startswith("_")):
        found = getattr(owner, name)
        if inspect.isclass(found) and issubclass(found, om.OptmechError):
            continue  # the place of an error may be a path, and no error opens it
        if isinstance(found, ModuleType) or inspect.isclass(found):
            of = found.__name__ if isinstance(found, ModuleType) else found.__module__
            if of.startswith("optmech") and before.count(".") < 2:
                yield from takers(found, f"{before}{name}.")
        elif callable(found):
            parameters = inspect.signature(found).parameters.values()
            if any("str | Path" in words_of(p.annotation) for p in parameters):
                yield before + name


def test_all_that_take_a_path_are_here() -> None:
    assert set(takers(om)) == set(TAKES)


@pytest.mark.parametrize("name", TAKES)
def test_what_is_no_path_is_refused(name: str) -> None:
    # an array of numbers is a mechanism, where one may be given
    arrays = [] if name == "redesign" else [np.eye(2)]
    for wrong in (None, 5, 1.5, True, b"name.json", ["name.json"], object(), *arrays):
        with pytest.raises(om.ProblemError) as caught:
            TAKES[name](wrong)
        assert "no path" in str(caught.value) or type(wrong).__name__ in str(caught.value), name
