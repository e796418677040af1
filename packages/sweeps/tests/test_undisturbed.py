"""Ctrl-C that waits until steps which belong together are done."""

from __future__ import annotations

import signal
import threading

import pytest
from optmech_sweeps.undisturbed import undisturbed


def test_an_interrupt_comes_after_the_last_step() -> None:
    steps: list[int] = []

    def both() -> None:
        with undisturbed():
            steps.append(1)
            signal.raise_signal(signal.SIGINT)
            steps.append(2)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            both()
        assert steps == [1, 2]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(ValueError, match="own"), undisturbed():
            raise ValueError("own")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_handlers_alone() -> None:
    seen: list[object] = []

    def work() -> None:
        with undisturbed():
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
