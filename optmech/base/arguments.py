"""Arguments that are known by two names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def also_called(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Take an argument by a second keyword: ``also_called(other="name")``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            for other, name in names.items():
                if other in given:
                    if name in given:
                        raise TypeError(f"{name} is given twice, as {other} too")
                    given[name] = given.pop(other)
            return function(*args, **given)

        return called

    return decorate
