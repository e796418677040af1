"""Dask clusters (the extra ``dask``)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from optmech.base.machine import installing
from optmech.errors import ProblemError


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """The executor of the cluster whose scheduler is at ``address``; None for no address. Raises
    ProblemError where distributed is not installed or no scheduler answers."""
    if address is None:
        yield None
        return
    if find_spec("distributed") is None:
        raise ProblemError("Dask is not installed", where="dask", remedy=installing("dask"))
    client, reason = _connected(address)
    if client is None:
        raise ProblemError(
            f"no scheduler answers at {address!r}: {reason}",
            where="dask",
            remedy="Start one with dask scheduler, and give its address",
        )
    with client:
        yield client.get_executor(pure=False, retries=2)


def _connected(address: str) -> tuple[Any, str]:
    """A client, or None and the reason. A client that could not be made complains of itself when
    it is taken down: that happens here, unheard."""
    from distributed import Client

    heard, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        return Client(address, timeout="10s", set_as_default=False), ""
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
    finally:
        # the error holds the client until here
        gc.collect()
        sys.unraisablehook = heard
    return None, reason
