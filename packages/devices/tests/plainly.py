"""``om.protect`` and the command for tests of single reports: rows are people, in their order."""

from collections.abc import Sequence
from typing import Any

import optmech as om
from optmech.cli.main import main as _main


def plainly(design: Any, data: Any, **options: Any) -> Any:
    """The table that protects each row of ``data`` for itself; what lies outside is refused."""
    given = {"rows_are_people": True, "keep_order": True, "outside": "refuse", **options}
    return om.protect(design, data, **given).table


def main(argv: Sequence[str]) -> int:
    """The command line, where rows that are protected are people and stay in their order."""
    return _main([*argv, *ROWS] if argv[:1] == ["protect"] else list(argv))


ROWS = ("--rows-are-people", "--keep-order")
