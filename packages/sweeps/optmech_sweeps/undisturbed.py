"""Steps that Ctrl-C does not part."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undisturbed() -> Iterator[None]:
    """Steps that belong together: Ctrl-C inside takes effect after the last of them.

    Interrupts reach the main thread only, so nothing is done in others; nor where the handler was
    not installed from Python, as it could not be put back.
    """
    here = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT) if here else None
    if previous is None:
        yield
        return
    late: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: late.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if late and callable(previous):
            previous(*late[0])
