"""``worst_loss``: the least worst loss on lines, against a program of cutting planes, and the
largest value of every quadratic in fractions (``test_worst_loss.py``)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from test_worst_loss import judge_a_line


def judge(rng: np.random.Generator) -> Iterator[str]:
    """One line of 1 to 8 segments: what is false raises, and is told as that."""
    judge_a_line(int(rng.integers(2**40)))
    yield from ()
