"""Dask clusters (the extra ``optmech[dask]``)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.util import find_spec

from optmech.errors import ProblemError


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """The executor of the cluster whose scheduler is at ``address``; None for no address.

    Raises
    ------
    ProblemError
        Where distributed is not installed or no scheduler answers.
    """
    if address is None:
        yield None
        return
    if find_spec("distributed") is None:
        raise ProblemError(
            "Dask is not installed", where="dask", remedy="Run: pip install optmech[dask]"
        )
    from distributed import Client

    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise ProblemError(
            f"no scheduler answers at {address!r}: {' '.join(str(error).split())}",
            where="dask",
            remedy="Start one with dask scheduler, and give its address",
        ) from error
    with client:
        yield client.get_executor(pure=False, retries=2)
