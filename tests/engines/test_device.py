"""The structured engine through the array API: every method against compiled code and LAPACK, the
inverse factors against dense inverses, choosing a device, and what is said when there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import astuple, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

import optmech as om
from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.native import has_kernels
from optmech.cli.main import main
from optmech.engines.structured import array_backend
from optmech.engines.structured.array_backend import ArrayBackend
from optmech.engines.structured.arrays import Arrays, from_numpy, on_host, open_device
from optmech.engines.structured.model import Model, build
from optmech.engines.structured.rows import Backend, Cone, Rows, add_rows, first_rows, make_cone
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.pipeline.profiles import Profile

pytest.importorskip("array_api_compat")
if not has_kernels():
    pytest.skip("no kernels are compiled", allow_module_level=True)

from optmech.engines.structured.compiled import CompiledBackend

E, H = om.distances.euclidean(), om.distances.hamming()
Call = Callable[[Backend, Rows], object]


def problem(rows: int = 5, columns: int = 5, **more: object) -> om.Problem:
    grid = om.Grid(rows, columns)
    prior = om.Prior(grid, np.random.default_rng(0).dirichlet(np.ones(len(grid))))
    return om.Problem(prior, H, constraints=[om.MetricPrivacy(0.8, E)], **more)  # type: ignore[arg-type]


@pytest.fixture(params=["host", "numpy", "strict", "torch"])
def arrays(request: pytest.FixtureRequest) -> Arrays:
    """NumPy itself, its namespace, one with nothing but the standard, and PyTorch where it is."""
    if request.param == "host":
        return on_host()
    if request.param == "strict":
        return from_numpy(pytest.importorskip("array_api_strict"), "strict")
    if request.param == "torch":
        pytest.importorskip("torch")
        return open_device("cpu")
    return open_device("numpy")


class Pair:
    """The same random iterate, long pairs and rows v >= 0 included, on two backends."""

    def __init__(self, model: Model, cone: Cone, other: Backend) -> None:
        rng = np.random.default_rng(5)
        self.shape = (model.blocks, model.variables + 1)
        self.P, self.R, self.dP = (self.variables(rng, low) for low in (0.2, -1.0, -1.0))
        far = rng.integers(0, model.variables, (30, 3))
        far = np.unique(far[cone.later[far[:, 1], far[:, 2]] > 0], axis=0)
        assert len(far) > 5
        first = first_rows(model, cone)
        self.sides: list[tuple[Backend, Rows]] = []
        s, z = rng.uniform(0.1, 2, (2, len(first) + len(far)))
        for backend in (CompiledBackend(model, cone, 2), other):
            rows = add_rows(first, cone, self.P, (far[:, 0], far[:, 1], far[:, 2]), 0.1)
            rows.s, rows.z = s.copy(), z.copy()
            backend.structure(rows, np.arange(model.blocks))
            self.sides.append((backend, rows))

    def variables(self, rng: np.random.Generator, low: float) -> Floats:
        made = rng.uniform(low, 1.0, self.shape) / self.shape[0]
        made[:, -1] = 0.0
        return made

    def agree(self, call: Call, rtol: float = 1e-13) -> None:
        mine, other = (flat(call(*side)) for side in self.sides)
        assert len(mine) == len(other) > 0
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol * np.abs(a).max(initial=0.0))


def flat(value: object) -> list[Floats]:
    if is_dataclass(value) and not isinstance(value, type):
        value = astuple(value)
    if isinstance(value, tuple):
        return [part for item in value for part in flat(item)]
    return [np.asarray(value)]


def into(name: str, buffer: Floats, *arguments: object) -> Call:
    """The method ``name``, which writes to its last argument."""

    def call(backend: Backend, rows: Rows) -> object:
        out = buffer.copy()
        return getattr(backend, name)(*arguments, out), out

    return lambda backend, rows: tuple(part for part in call(backend, rows) if part is not None)


@pytest.mark.parametrize("together", [1, 4, 1000])
def test_every_method_agrees_with_compiled_code_and_lapack(
    arrays: Arrays, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(compile_lp(Inequalities.of(problem(objective="worst_loss").statement)).lp)
    cone = make_cone(model)
    assert len(model.coupling.rhs) == 25
    # panels, leaves and chunks of blocks as small as the problem
    monkeypatch.setattr(array_backend, "_PANEL", 10)
    monkeypatch.setattr(array_backend, "chunk", lambda m, arrays: together)
    pair = Pair(model, cone, ArrayBackend(model, cone, replace(arrays, leaf=4)))
    P, R, dP, weights = pair.P, pair.R, pair.dP, np.linspace(0, 1, 11)
    none = np.zeros(pair.shape)
    several = np.stack([R, dP, P], axis=1)
    z = pair.sides[0][1].z.copy()
    pair.agree(lambda backend, rows: backend.factor(rows), 1e-11)
    pair.agree(into("solve", several), 1e-11)
    pair.agree(into("affine_rhs", none, P, R))
    pair.agree(lambda backend, rows: backend.affine_step(P, dP), 1e-12)
    pair.agree(into("corrector_rhs", none, None, 0.3))
    pair.agree(lambda backend, rows: backend.corrector_step(0.5 * dP, weights))
    pair.agree(into("corrector_rhs", none, (0.3, 0.7), 0.3))
    pair.agree(lambda backend, rows: backend.corrector_step(R, weights))

    def moved(backend: Backend, rows: Rows) -> object:
        backend.move((0.3, 0.7), (0.01, 0.02))
        return rows.s, rows.z

    pair.agree(moved)
    for level in (0.1, 0.6, 1.5):
        pair.agree(lambda backend, rows, level=level: backend.violations(P, level))
    pair.agree(lambda backend, rows: backend.majorant(P))
    pair.agree(into("charge", R, z))
    pair.agree(lambda backend, rows: backend.shifted(z, dP))
    pair.agree(lambda backend, rows: backend.drain(z, R, 60), 1e-12)
    pair.agree(
        lambda backend, rows: backend.factor(replace(rows, s=rows.s * 2, z=rows.z / 3)), 1e-11
    )
    pair.agree(into("solve", several), 1e-11)


def test_inverse_factors_are_as_accurate_as_factors(arrays: Arrays) -> None:
    """Weights over many orders of magnitude on the edges of a path that is tied to zero at one
    end, where H⁻¹[i, j] = Σ_{k <= min(i, j)} 1/w_k, beside LAPACK with the same ridge."""
    size, blocks = 150, 3
    w = 10.0 ** np.random.default_rng(2).uniform(-5, 5, (blocks, size))
    H = np.zeros((blocks, size, size))
    for o in range(blocks):
        for k in range(size):
            H[o, k, k] += w[o, k]
            if k:
                H[o, k - 1, k - 1] += w[o, k]
                H[o, k, k - 1] = H[o, k - 1, k] = -w[o, k]
    scale = 1 / np.sqrt(np.einsum("okk->ok", H))
    scaled = H * scale[:, :, None] * scale[:, None, :]
    found = array_backend.Inverses(arrays, blocks, size)
    entries = arrays.from_host(np.tril(scaled, -1).reshape(blocks, -1))
    assert found.factor(0, entries, arrays.from_host(scale))
    unit = np.broadcast_to(np.eye(size), (blocks, size, size))
    mine = arrays.to_host(found.solve(arrays.from_host(unit)))
    index = np.minimum.outer(np.arange(size), np.arange(size))
    for o in range(blocks):
        exact = np.cumsum(1 / w[o])[index]
        factors = cho_factor(scaled[o] + 1e-15 * np.eye(size), lower=True)
        lapack = scale[o][:, None] * cho_solve(factors, np.diag(scale[o]))
        worst, usual = (np.abs(x / exact - 1).max() for x in (mine[o], lapack))
        assert 1e-10 < usual < 1e-2, "ill-conditioned, and not hopeless"
        assert worst < 3 * usual


def test_blocks_that_are_not_positive_definite_are_given_up(arrays: Arrays) -> None:
    lower = np.zeros((3, 2, 2))
    lower[:, 1, 0] = [-0.5, -1.0, -0.25]
    found = array_backend.Inverses(arrays, 3, 2)
    ones = arrays.from_host(np.ones((3, 2)))
    assert found.factor(0, arrays.from_host(lower.reshape(3, 4)), ones), "a ridge helps"
    solved = arrays.to_host(found.solve(arrays.from_host(np.array([[[1.0, 0.0]]] * 3))))
    np.testing.assert_allclose(solved[0, 0], [4 / 3, 2 / 3], rtol=1e-12)
    np.testing.assert_allclose(solved[2, 0], [16 / 15, 4 / 15], rtol=1e-12)
    lower[1, 1, 0] = -1.1
    assert not found.factor(0, arrays.from_host(lower.reshape(3, 4)), ones)


def test_the_whole_way_on_pytorch() -> None:
    pytest.importorskip("torch")
    design = om.solve(problem(), device="cpu")
    expected = om.solve(problem(), profile="highs")
    assert design.engine == "structured"
    assert design.engine_reason == "asked for by device cpu"
    assert design.gap <= 1e-6
    assert design.loss == pytest.approx(expected.loss, rel=2e-6)


def test_a_device_is_chosen_by_argument_profile_or_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[str] = []
    design = om.solve(problem(3, 3), device="numpy", progress=lines.append)
    assert "blocks on numpy" in lines
    assert (design.engine, design.status) == ("structured", "optimal")
    path = tmp_path / "mine.toml"
    path.write_text('device = "numpy"\n')
    assert om.solve(problem(3, 3), profile=path).engine == "structured"
    assert om.solve(problem(3, 3), profile=path, device="").engine == "highs"
    assert main(["solve", "differential", "--device", "numpy", "--quiet"]) == 0
    assert "asked for by device numpy" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["gpu", "numpy:1", "cuda:x", "cuda:1:2", "cpu:0", "torch"])
def test_refuses_what_is_not_a_device(wrong: str) -> None:
    with pytest.raises(om.errors.ProblemError, match="is not a device") as caught:
        om.solve(problem(2, 2), device=wrong)
    assert "cuda:1" in caught.value.remedy


def test_says_which_devices_there_are() -> None:
    pytest.importorskip("torch")
    with pytest.raises(om.errors.ProblemError, match="There are: cpu"):
        om.solve(problem(2, 2), device="cuda:98")


@pytest.mark.parametrize(("device", "module"), [("cuda", "torch"), ("numpy", "array_api_compat")])
def test_says_what_to_install(device: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(om.errors.ProblemError, match=rf"needs {module}.*\[gpu\]"):
        om.solve(problem(2, 2), device=device)


def test_refuses_before_starting_what_does_not_fit_on_the_device() -> None:
    arrays = replace(open_device("numpy"), name="a small one", free_bytes=lambda: 4 * 2**20)
    model = build(compile_lp(Inequalities.of(problem(8, 8).statement)).lp)
    with pytest.raises(om.errors.TooLargeError, match=r"64 observables on a small one .* MiB"):
        array_backend.require_device_memory(model, arrays)
    array_backend.require_device_memory(model, replace(arrays, free_bytes=lambda: 2**30))


def test_memory_that_runs_out_on_the_way_leaves_the_work_to_another_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = [10]

    class OutOfMemoryError(RuntimeError):
        """As PyTorch's."""

    factor = ArrayBackend.factor

    def failing(self: ArrayBackend, rows: Rows, wanted: object = None) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise OutOfMemoryError("CUDA out of memory")
        return factor(self, rows)

    monkeypatch.setattr(ArrayBackend, "factor", failing)
    design = om.solve(problem(), profile="structured", device="numpy")
    assert design.status == "optimal"
    assert design.verified
    assert design.engine != "structured"
    assert design.notes[0].startswith("structured broke off (")
    assert memory.is_exhausted(MemoryError())
    assert not memory.is_exhausted(RuntimeError())


def test_only_the_structured_engine_takes_a_device() -> None:
    with pytest.raises(om.errors.ProblemError, match="computes on a device"):
        Profile(device="numpy", engine="highs")
    with pytest.raises(om.errors.ProblemError, match="is not a text"):
        Profile(device=0)  # type: ignore[arg-type]
