"""``om.protect`` and the command for tests of single reports: rows are people, in their order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import optmech as om
from optmech.certificate import proved
from optmech.cli.main import main as _main


def plainly(design: Any, data: Any, **options: Any) -> Any:
    """The table that protects each row of ``data`` for itself; what lies outside is refused."""
    given = {"rows_are_people": True, "keep_order": True, "outside": "refuse", **options}
    return om.protect(design, data, **given).table


def main(argv: Sequence[str]) -> int:
    """The command line, where rows that are protected are people and stay in their order."""
    return _main([*argv, *ROWS] if argv[:1] == ["protect"] else list(argv))


@contextmanager
def proved_once() -> Iterator[None]:
    """For what asks much of one file: it is proved when it is read first, and then known by its
    digest."""
    known: dict[str, Any] = {}
    examined = proved.examined

    def once(body: Any, where: str) -> Any:
        key = body["digest"]
        if key not in known:
            known[key] = examined(body, where)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proved, "examined", once)
        yield


ROWS = ("--rows-are-people", "--keep-order")
