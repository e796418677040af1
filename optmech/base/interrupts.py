"""Ctrl-C at a moment of our choosing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def undisturbed() -> Iterator[None]:
    """Steps that belong together: Ctrl-C inside takes effect after the last of them.

    Interrupts reach the main thread only, so nothing is done in others; nor where the handler was
    not installed from Python, as it could not be put back.
    """
    previous = _handler()
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


def _handler() -> Any:
    """What takes Ctrl-C; None outside the main thread, or where Python did not install it."""
    here = threading.current_thread() is threading.main_thread()
    return signal.getsignal(signal.SIGINT) if here else None


class _Handler:
    """Tells whoever listens, and those around them that listen as well."""

    def __init__(self, notice: Callable[[], None], around: object) -> None:
        self.notice, self.around, self.seen = notice, around, False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.tell()

    def tell(self) -> None:
        self.seen = True
        self.notice()
        if isinstance(self.around, _Handler) and not self.around.seen:
            self.around.tell()


@contextmanager
def noticed(notice: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C inside calls ``notice``, and that of a ``noticed`` around this one; a second
    one interrupts as usual. Outside the main thread, or where the handler was not installed from
    Python, nothing changes."""
    previous = _handler()
    if previous is None:
        yield
        return
    signal.signal(signal.SIGINT, _Handler(notice, previous))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
