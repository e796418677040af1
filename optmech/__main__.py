"""``python -m optmech``, and the console script."""

from __future__ import annotations

import sys
from typing import NoReturn


def entry() -> NoReturn:
    """Load the command line and run it; Ctrl-C while it loads ends like any other."""
    try:
        from optmech.cli.main import entry as run

        run()
    except KeyboardInterrupt:
        print("optmech: error: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    entry()
