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
    said = "is in optmech-audit, which is not installed"
    remedy = "In a clone of optmech run pip install ./packages/audit"
    print(f"optmech.audit: {said}. {remedy}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
