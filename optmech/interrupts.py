"""Ctrl-C at a moment of our choosing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undisturbed() -> Iterator[None]:
    """Steps that belong together: Ctrl-C inside takes effect after the last of them.

    Interrupts reach the main thread only, so nothing is done in others.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    late: list[tuple[int, FrameType | None]] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: late.append((number, frame)))
    try:
        yield
    finally:
        # None: a handler that was not installed from Python cannot be put back
        signal.signal(signal.SIGINT, signal.SIG_DFL if previous is None else previous)
        if late and callable(previous):
            previous(*late[0])
