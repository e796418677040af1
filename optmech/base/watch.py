"""A line that says what goes on and for how long, where somebody looks: on a terminal or in a
notebook, and silent everywhere else; and Ctrl-C at a moment of our choosing.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self, TextIO

_TICK = 1.0
"""Seconds between two lines: no stretch is silent for longer."""
_PATIENCE = 2.0
"""Seconds of a call in Python after which it is worth saying what it does."""


class Line(str):
    """A line of progress with the best relative gap so far; inf while there is none."""

    gap: float

    def __new__(cls, text: str, gap: float = math.inf) -> Self:
        """The text, and the gap beside it."""
        line = super().__new__(cls, text)
        line.gap = gap
        return line


class Ticker:
    """Rewrites one line of a ``stream`` every second, from so many seconds ``after`` its beginning
    on, with the last text that it was given; at the end the line is gone."""

    def __init__(self, text: str, after: float, stream: TextIO) -> None:
        self._text, self._after, self._stream = text, after, stream
        self._width, self._held = 0, False
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="optmech-line", daemon=True)

    def __call__(self, text: str) -> None:
        """Say this from now on, if it is anything."""
        self._text = text or self._text

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.clear()

    def clear(self) -> None:
        """Take the line away, until the next one: what is printed next begins a line."""
        with self._lock:
            if self._width:
                self._write("\r" + " " * self._width + "\r")
                self._width = 0

    @contextmanager
    def held(self, text: str) -> Iterator[None]:
        """No line inside; after it, this ``text``."""
        with self._lock:
            self.clear()
            self._held = True
        try:
            yield
        finally:
            self._text, self._held = text, False

    def _run(self) -> None:
        wait = self._after
        while not self._ended.wait(wait):
            with self._lock:
                if not self._held:
                    self._draw()
            wait = _TICK

    def _draw(self) -> None:
        room = max(shutil.get_terminal_size().columns - 1, 20)
        line = f"{time.monotonic() - self._began:7.1f} s  {self._text}"[:room]
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # nobody looks any more
            self._ended.set()


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which a line can be rewritten."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def is_watched() -> bool:
    """Whether somebody looks at what this call writes to standard error: not from a pipe, a test, a
    thread or a worker."""
    if "PYTEST_CURRENT_TEST" in os.environ or sys.stderr is None:
        return False
    if multiprocessing.parent_process() or threading.current_thread() != threading.main_thread():
        return False
    return type(sys.stderr).__module__.startswith("ipykernel") or is_terminal(sys.stderr)


@contextmanager
def watched(
    progress: Callable[[str], None] | None, text: str
) -> Iterator[Callable[[str], None] | None]:
    """The ``progress`` that was given; without one a line that begins with ``text``, where somebody
    looks, once it has taken two seconds."""
    if progress is not None or not is_watched():
        yield progress
        return
    with Ticker(text, _PATIENCE, sys.stderr) as line:
        yield line


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
