"""How far a sweep is, in one line."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Report = Callable[[str], None]


@dataclass(eq=False)
class Progress:
    """Counts tasks and says so at most every ``every`` seconds."""

    report: Report | None
    tasks: int
    done: int = 0
    """Tasks with a result, those of earlier runs included."""
    infeasible: int = 0
    failed: int = 0
    running: int = 0
    every: float = 2.0
    _here: int = 0
    _started: float = field(default_factory=time.monotonic)
    _said: float = -1e9

    def found(self, status: str) -> None:
        """A result of an earlier run."""
        self.done += 1
        self.infeasible += status == "infeasible"

    def finished(self, status: str) -> None:
        """A result of this run."""
        self._here += 1
        if status == "failed":
            self.failed += 1
        else:
            self.found(status)

    def tell(self, text: str) -> None:
        """Report a fact of its own."""
        if self.report is not None:
            self.report(text)

    def say(self, *, now: bool = False) -> None:
        """Report, unless that was done just before."""
        moment = time.monotonic()
        if self.report is not None and (now or moment - self._said >= self.every):
            self._said = moment
            self.report(self.line(moment - self._started))

    def line(self, seconds: float) -> str:
        """The line after so many seconds of this run."""
        done = f"{self.done} of {self.tasks} tasks done"
        if self.infeasible:
            done += f" ({self.infeasible} infeasible)"
        left = self.tasks - self.done - self.failed
        text = f"{done}, {self.running} running, {self.failed} failed"
        if left and self._here:
            text += f", about {duration(seconds * left / self._here)} left"
        return text


def duration(seconds: float) -> str:
    """Seconds in words: 45 s, 12 min, 3.5 h, 2.0 days."""
    for limit, size, unit in ((120.0, 1.0, "s"), (7200.0, 60.0, "min")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
