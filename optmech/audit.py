"""``python -m optmech.audit``: the command ``optmech-audit``, where that distribution is installed.

It is found as any command is, and shares no code with this package.
"""

from __future__ import annotations

import sys
from importlib.metadata import entry_points


def main() -> int:
    """The status of ``optmech-audit``; 2 where it is not installed."""
    for command in entry_points(group="console_scripts", name="optmech-audit"):
        return int(command.load()())
    print("optmech.audit needs optmech-audit: pip install optmech-audit", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
