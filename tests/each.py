"""Many small cases in one test: what pytest does around a test takes longer than such a case."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
_SHOWN = 20


def each(
    names: str | Sequence[str],
    cases: Iterable[Any],
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """As ``pytest.mark.parametrize``, but all cases are tried in one test, which names those that
    fail and has the traceback of the first. Fixtures are shared by all cases."""
    at = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_values(case, len(at)) for case in cases]
    if ids is None or callable(ids):
        say: Callable[[Any], object] = ids or (lambda value: getattr(value, "__name__", value))
        labels = ["-".join(str(say(value))[:80] for value in row) for row in rows]
    else:
        labels = [str(label) for _, label in zip(rows, ids, strict=True)]

    def decorated(test: Test) -> Test:
        @functools.wraps(test)
        def whole(*args: Any, **fixtures: Any) -> None:
            assert rows, "no cases"
            failed: dict[str, BaseException] = {}
            for k, (label, row) in enumerate(zip(labels, rows, strict=True)):
                try:
                    test(*args, **fixtures, **dict(zip(at, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed[f"[{k}] {label}"] = error
            if failed:
                lines = [f"{label}: {type(e).__name__}: {e}" for label, e in failed.items()]
                said = "\n".join(lines[:_SHOWN])
                first = next(iter(failed.values()))
                raise AssertionError(f"{len(failed)} of {len(rows)} cases fail:\n{said}") from first

        shape = inspect.signature(test)
        assert set(at) <= set(shape.parameters), (at, shape)
        kept = [part for name, part in shape.parameters.items() if name not in at]
        vars(whole)["__signature__"] = shape.replace(parameters=kept)
        return whole

    return decorated


def _values(case: Any, count: int) -> tuple[Any, ...]:
    row = (case,) if count == 1 else tuple(case)
    assert len(row) == count, case
    return row
