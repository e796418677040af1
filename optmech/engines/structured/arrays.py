"""Array libraries behind one interface: the array API standard, and the little it leaves out."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.machine import needed
from optmech.base.read_only import record
from optmech.errors import ProblemError

_LEAF = 8
"""Triangles of this size are inverted row by row, all of them together."""
_USE = "Use cpu, cuda or cuda:1 (PyTorch), cupy or cupy:1 (CuPy), or numpy"


def lower_inverse(lower: Floats) -> Floats:
    """Inverses of lower triangular matrices (k, m, m); above the diagonal nothing is read."""
    count, m, _ = lower.shape
    inverse = np.zeros(lower.shape)
    whole = m - m % _LEAF
    starts = np.arange(0, whole, _LEAF)
    index = starts[:, None] + np.arange(_LEAF)
    leaves = lower[:, index[:, :, None], index[:, None, :]]
    inverse[:, index[:, :, None], index[:, None, :]] = _rowwise(
        leaves.reshape(-1, _LEAF, _LEAF)
    ).reshape(count, len(starts), _LEAF, _LEAF)
    if whole < m:
        inverse[:, whole:, whole:] = _rowwise(lower[:, whole:, whole:])
    _merge(lower, inverse, 0, m)
    return inverse


def _merge(lower: Floats, inverse: Floats, start: int, stop: int) -> None:
    """Fill in what lies between the leaves of ``inverse``, by halves."""
    leaves = -(-(stop - start) // _LEAF)
    if leaves <= 1:
        return
    middle = start + leaves // 2 * _LEAF
    _merge(lower, inverse, start, middle)
    _merge(lower, inverse, middle, stop)
    between = inverse[:, middle:stop, middle:stop] @ lower[:, middle:stop, start:middle]
    inverse[:, middle:stop, start:middle] = -(between @ inverse[:, start:middle, start:middle])


def _rowwise(lower: Floats) -> Floats:
    """Inverses of small triangles, row after row."""
    m = lower.shape[1]
    rows = np.ascontiguousarray(lower.transpose(1, 2, 0))
    inverse = np.zeros(rows.shape)
    for k in range(m):
        inverse[k, k] = 1.0
        inverse[k, :k] = -(rows[k, :k, None] * inverse[:k, :k]).sum(axis=0)
        inverse[k, : k + 1] /= rows[k, k]
    return inverse.transpose(2, 0, 1)


Array = Any
"""An array of whichever library."""


@record
class Arrays:
    """A namespace of the array API standard on one device, and what the standard has not.

    ``sums(index, values, size)`` adds values up by their index. ``inverse_factors`` takes a batch
    of symmetric matrices of at most ``leaf`` rows, of which it reads the lower triangles, and gives
    the inverses of their Cholesky factors, with NaN for those that are not positive definite.
    ``workspace`` is how many bytes are best worked on together, ``free_bytes`` the device's memory
    still to be had. ``shared``: whether the host's arrays are the device's.
    """

    xp: Any
    device: Any
    name: str
    to_host: Callable[[Array], np.ndarray]
    sums: Callable[[Array, Array, int], Array]
    inverse_factors: Callable[[Array], Array]
    free_bytes: Callable[[], int]
    workspace: int = 2 * 2**30
    leaf: int = 64
    shared: bool = False

    def from_host(self, array: np.ndarray) -> Array:
        """The array on the device, which is not to be written to."""
        if self.shared:
            return array
        return self.xp.asarray(np.ascontiguousarray(array), device=self.device, copy=True)

    def zeros(self, *shape: int) -> Array:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)


def open_device(text: str) -> Arrays:
    """The library and device that ``text`` names.

    ``"cpu"``, ``"cuda"`` and ``"cuda:1"`` are PyTorch's, ``"cupy"`` and ``"cupy:1"`` CuPy's, and
    ``"numpy"`` is NumPy. Raises ProblemError when the library is not installed, or there is no such
    device.
    """
    library, _, number = text.partition(":")
    if number and not number.isdecimal():
        raise _unknown(text)
    if text == "numpy":
        return from_numpy(needed("array_api_compat.numpy", "gpu", where="device"))
    if library == "cupy":
        if find_spec("cupy") is None:
            raise ProblemError(
                "needs cupy, which is not installed",
                where="device",
                remedy="Install CuPy for this machine's CUDA (cupy-cuda12x, say), or use cuda",
            )
        return _cupy(needed("array_api_compat.cupy", "gpu", where="device"), int(number or 0))
    if text == "cpu" or library == "cuda":
        needed("torch", "gpu", where="device")
        return _torch(needed("array_api_compat.torch", "gpu", where="device"), text)
    raise _unknown(text)


def _unknown(text: str) -> ProblemError:
    return ProblemError(f"{text!r} is not a device", where="device", remedy=_USE)


def _missing(text: str, there: list[str]) -> ProblemError:
    return ProblemError(
        f"there is no device {text!r}", where="device", remedy=f"There are: {', '.join(there)}"
    )


def on_host() -> Arrays:
    """NumPy itself, whose arrays need not be copied. Its matrices are factored whole, as many at a
    time as the processor's caches hold."""

    def inverse_factors(batch: Array) -> Array:
        return lower_inverse(_factors(batch, np.linalg.cholesky, np.full_like))

    return replace(
        from_numpy(np, "the processor", np.asarray),
        inverse_factors=inverse_factors,
        workspace=3 * 2**20,
        leaf=1 << 30,
        shared=True,
    )


def from_numpy(
    xp: Any, name: str = "numpy", host: Callable[[Array], np.ndarray] = np.from_dlpack
) -> Arrays:
    """NumPy's namespace, or another one whose arrays live in NumPy's memory."""

    def sums(index: Array, values: Array, size: int) -> Array:
        total = np.bincount(host(index), host(values), size)
        return xp.asarray(total.astype(np.float64, copy=False))

    def cholesky(batch: Array) -> Array:
        return xp.asarray(_factors(host(batch), np.linalg.cholesky, np.full_like))

    return Arrays(
        xp=xp,
        device=None,
        name=name,
        to_host=host,
        sums=sums,
        inverse_factors=partial(_inverse_factors, xp, cholesky),
        free_bytes=memory.available_bytes,
    )


def _inverse_factors(xp: Any, cholesky: Callable[[Array], Array], batch: Array) -> Array:
    """Inverse factors of small matrices out of matrix products: with L = D(I - M), M nilpotent and
    nowhere negative, L⁻¹ = (I + M)(I + M²)(I + M⁴)···D⁻¹."""
    L, size = cholesky(batch), batch.shape[-1]
    diagonal = xp.linalg.diagonal(L)
    power = -xp.tril(L, k=-1) / diagonal[:, :, None]
    X = power + xp.eye(size, dtype=xp.float64, device=batch.device)
    reach = 2
    while reach < size:
        power = power @ power
        X = X + X @ power
        reach *= 2
    return X / diagonal[:, None, :]


def _factors(batch: Array, cholesky: Callable[[Array], Array], full: Callable[..., Array]) -> Array:
    """The factors of a batch; one by one where the library refuses the whole."""
    try:
        return cholesky(batch)
    except np.linalg.LinAlgError:
        factors = full(batch, np.nan)
        for k, matrix in enumerate(batch):
            try:
                factors[k] = cholesky(matrix)
            except np.linalg.LinAlgError:
                continue
        return factors


def _torch(xp: Any, text: str) -> Arrays:
    import torch

    there = [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    if text != "cpu" and f"cuda:{int(text.partition(':')[2] or 0)}" not in there:
        raise _missing(text, ["cpu", *there])
    device = torch.device(text)

    def sums(index: Array, values: Array, size: int) -> Array:
        total = torch.zeros(size, dtype=torch.float64, device=device)
        return total.index_add_(0, index, values)

    def cholesky(batch: Array) -> Array:
        factors, info = torch.linalg.cholesky_ex(batch)
        return torch.where((info != 0)[:, None, None], torch.nan, factors)

    def free() -> int:
        # what PyTorch holds and does not use can be had as well
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + unused)

    return Arrays(
        xp=xp,
        device=device,
        name=text if device.type == "cpu" else f"{text} ({torch.cuda.get_device_name(device)})",
        to_host=lambda array: array.cpu().numpy(),
        sums=sums,
        inverse_factors=partial(_inverse_factors, xp, cholesky),
        free_bytes=memory.available_bytes if device.type == "cpu" else free,
    )


def _cupy(xp: Any, number: int) -> Arrays:
    import cupy
    import cupyx

    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError:
        count = 0
    if number >= count:
        raise _missing(f"cupy:{number}", [f"cupy:{k}" for k in range(count)] or ["none"])
    device = cupy.cuda.Device(number)
    device.use()

    def cholesky(batch: Array) -> Array:
        with cupyx.errstate(linalg="raise"):
            return _factors(batch, cupy.linalg.cholesky, cupy.full_like)

    return Arrays(
        xp=xp,
        device=device,
        name=f"cupy:{number}",
        to_host=lambda array: array.get(),
        sums=cupy.bincount,
        inverse_factors=partial(_inverse_factors, xp, cholesky),
        free_bytes=lambda: int(
            runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
        ),
    )
